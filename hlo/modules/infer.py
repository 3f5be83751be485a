"""Inference of the shapes that a module omits, and of unknown dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hlo.arguments import checked
from hlo.modules.instruction_checks import agrees, infer_partial, shape_error
from hlo.modules.module import Computation, Instruction, Module
from hlo.ops.unify import Conflict, PartialShape, Unranked, merge
from hlo.shapes.shape import AnyShape
from hlo.text.names import ByName
from hlo.text.source import HloError


@checked
def infer_shapes(module: Module) -> Module:
    """Return a copy of the module in which every inferable shape is declared.

    Declared shapes remain, except that ``?`` dimensions get their inferred sizes. Shapes that
    cannot be inferred stay omitted: the result of an unregistered opcode, and shapes that depend on
    it. Layouts are not inferred.

    Raises:
        HloError: shapes contradict each other, or an instruction violates a constraint of its op.
            The first error is raised, with notes on all others; inference continues after an error
            with the declared shape.
    Source: XLA ``xla/service/shape_inference.cc``.

    >>> import indexing  # registers the ops
    >>> from hlo.formats.parser import parse
    >>> module = parse("ENTRY e { p = f32[2,?] parameter(0) ROOT n = negate(p) }")
    >>> print(infer_shapes(module).entry.root)
    %n = f32[2,?] negate(%p)
    """
    return with_shapes(module, partial_shapes(module))


def partial_shapes(module: Module) -> dict[Instruction, PartialShape]:
    """Return the partial shape of each instruction, which may be `Unranked`.

    Raises:
        HloError: as `infer_shapes`.
    """
    known: dict[Instruction, PartialShape] = {}
    errors: list[HloError] = []
    for instruction in module.instructions:  # operands come before users, callees before callers
        try:
            known[instruction] = _infer_known(instruction, known)
        except HloError as error:
            known[instruction] = instruction.declared_shape or Unranked()
            errors.append(error)
    if errors:
        raise _all(errors)
    return known


def _all(errors: list[HloError]) -> HloError:
    """Return the first error, with notes on the others."""
    first, *others = errors
    more = [f"at {error.span.place()}: {error.message}" for error in others]
    return HloError(
        first.message, first.span, first.code, first.label, [*first.notes, *more], first.help
    )


def _infer_known(instruction: Instruction, known: dict[Instruction, PartialShape]) -> PartialShape:
    operands = tuple([known[operand] for operand in instruction.operands])
    called = instruction.called_computations
    inferred = infer_partial(instruction, operands, known[called[0].root] if called else None)
    declared = instruction.declared_shape
    if declared is None:
        return inferred
    if isinstance(inferred, Unranked):
        return declared
    if not agrees(declared, inferred):
        raise shape_error(instruction, inferred)
    try:
        return merge(declared, inferred)
    except Conflict:  # a declared bound below the inferred one: the size is dynamic
        return declared


def with_shapes(module: Module, known: Mapping[Instruction, PartialShape | None]) -> Module:
    """Return a copy of a module that declares the known shapes."""
    result = Module(module.name, module.source, module.semantics)
    result.attributes, result.tables = module.attributes, module.tables
    result.has_inferred_shapes = True
    computations: dict[str, Computation] = {}
    for name, computation in module.computations.items():
        computations[name] = _copy_computation(computation, result, computations, known)
    result.computations = MappingProxyType(ByName("computation", computations))
    result.entry = computations[module.entry.name]
    return result


def _copy_computation(
    computation: Computation,
    module: Module,
    computations: dict[str, Computation],
    known: Mapping[Instruction, PartialShape | None],
) -> Computation:
    result = Computation(computation.name, module, computation.start)
    result.end, result.attributes = computation.end, computation.attributes
    made: dict[Instruction, Instruction] = {}
    for old in computation.instructions:
        made[old] = Instruction(
            name=old.name,
            opcode=old.opcode,
            shape=_ranked_or_none(known[old]),
            computation=result,
            index=old.index,
            start=old.start,
            end=old.end,
            operands=tuple([made[operand] for operand in old.operands]),
            values=old.values,
            called_computations=tuple([computations[c.name] for c in old.called_computations]),
        )
    result.complete(tuple(made.values()), made[computation.root])
    return result


def _ranked_or_none(shape: PartialShape | None) -> AnyShape | None:
    return None if isinstance(shape, Unranked) else shape


def infer_missing(instruction: Instruction) -> None:
    """Infer missing shapes in dependency order, without recursion: a chain may be long.

    Raises:
        HloError: the shape of `instruction` cannot be inferred.
    """
    infer = instruction.module.semantics.infer
    waiting, seen = [instruction], {instruction}
    while waiting:
        last = waiting[-1]
        sources = (*last.operands, *(called.root for called in last.called_computations))
        missing = [i for i in sources if i._shape is None and i not in seen]
        if missing:
            seen.update(missing)
            waiting.extend(missing)
            continue
        waiting.pop()
        try:
            last._shape = infer(last)
        except HloError:
            if last is instruction:  # the op may not need another instruction's missing shape
                raise
