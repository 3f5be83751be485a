"""Fills in the shapes that a module leaves out, and those dimensions that follow from others.

>>> from hlo.formats.parser import parse
>>> module = parse("ENTRY e { p = (f32[2,3], s32[?]) parameter(0) ROOT q = twice(p) }")
>>> print(infer_shapes(module).entry.root.declared_shape)  # nobody has declared `twice`
None
"""

from __future__ import annotations

from hlo.modules.bind import agrees, infer_known, shape_error
from hlo.modules.module import Computation, Instruction, Module
from hlo.ops.unify import Conflict, PartialShape, Unranked, merge
from hlo.shapes.shape import AnyShape
from hlo.text.source import HloError


def infer_shapes(module: Module) -> Module:
    """The module with every shape that follows from others written down.

    What is declared stays, but for dimensions ``?`` whose size follows. What does not follow stays
    out: the value of an opcode that nobody has declared, and what is made of it. Layouts are never
    made up.

    Raises:
        HloError: shapes contradict each other, or an instruction breaks a rule of its op. It is the
            first such error, and its notes tell of all others; after an error, what is declared
            is taken to be so.
    """
    return _with_shapes(module, known_shapes(module))


def known_shapes(module: Module) -> dict[Instruction, PartialShape]:
    """What is known of each instruction's value, `Unranked` included; raises as `infer_shapes`."""
    known: dict[Instruction, PartialShape] = {}
    errors: list[HloError] = []
    for instruction in module.instructions:  # operands come before users, callees before callers
        try:
            known[instruction] = _known(instruction, known)
        except HloError as error:
            known[instruction] = instruction.declared_shape or Unranked()
            errors.append(error)
    if errors:
        raise _all(errors)
    return known


def _all(errors: list[HloError]) -> HloError:
    """The first error, with notes about the others."""
    first, *others = errors
    more = [f"at {error.span.place()}: {error.message}" for error in others]
    return HloError(
        first.message, first.span, first.code, first.label, [*first.notes, *more], first.help
    )


def _known(instruction: Instruction, known: dict[Instruction, PartialShape]) -> PartialShape:
    operands = tuple([known[operand] for operand in instruction.operands])
    called = instruction.called_computations
    inferred = infer_known(instruction, operands, known[called[0].root] if called else None)
    declared = instruction.declared_shape
    if declared is None:
        return inferred
    if isinstance(inferred, Unranked):
        return declared
    if not agrees(declared, inferred):
        raise shape_error(instruction, inferred)
    try:
        return merge(declared, inferred)
    except Conflict:  # a bound that is lower than what is inferred: a size known at run time
        return declared


def _with_shapes(module: Module, known: dict[Instruction, PartialShape]) -> Module:
    """A copy of a module whose instructions are declared to be what is known."""
    result = Module(module.name, module.source, module.semantics)
    result.attributes, result.tables = module.attributes, module.tables
    computations: dict[str, Computation] = {}
    for name, computation in module.computations.items():
        computations[name] = _copied(computation, result, computations, known)
    result.computations = computations
    result.entry = computations[module.entry.name]
    return result


def _copied(
    computation: Computation,
    module: Module,
    computations: dict[str, Computation],
    known: dict[Instruction, PartialShape],
) -> Computation:
    result = Computation(computation.name, module, computation.start)
    result.end, result.attributes = computation.end, computation.attributes
    made: dict[Instruction, Instruction] = {}
    for old in computation.instructions:
        made[old] = Instruction(
            name=old.name,
            opcode=old.opcode,
            shape=_ranked(known[old]),
            computation=result,
            index=old.index,
            start=old.start,
            end=old.end,
            operands=tuple([made[operand] for operand in old.operands]),
            literal=old.literal,
            attributes=old.attributes,
            called_computations=tuple([computations[c.name] for c in old.called_computations]),
        )
    result.instructions = tuple(made.values())
    result.root = made[computation.root]
    return result


def _ranked(shape: PartialShape) -> AnyShape | None:
    return None if isinstance(shape, Unranked) else shape
