"""The ``op_name`` of instructions with the names of the calls around them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from hlo.modules.module import Computation, Instruction
from indexing.ops.structure import GetTupleElement
from indexing.ops.structured_ops import InlineOp


def full_names(instructions: Iterable[Instruction]) -> dict[Instruction, tuple[str, ...]]:
    """Return the ``op_name`` of instructions, with those of the calls around them.

    Inlining a call prepends its name to the names in the called computation.

    >>> import hlo
    >>> from indexing.equivalence.correspondence import executed_instructions
    >>> module = hlo.parse('''f { x = f32[] parameter(0)
    ...     ROOT n = f32[] negate(x), metadata={op_name="neg"} }
    ...   ENTRY e { p = f32[] parameter(0)
    ...     ROOT c = f32[] call(p), to_apply=f, metadata={op_name="jit(g)"} }''')
    >>> full_names(executed_instructions(module))[module.computations["f"].root]
    ('jit(g)/neg',)
    """
    ordered = list(instructions)
    callers: dict[Computation, list[Instruction]] = defaultdict(list)
    for instruction in ordered:
        if isinstance(instruction.op, InlineOp):
            for called in instruction.called_computations:
                callers[called].append(instruction)
    names: dict[Instruction, tuple[str, ...]] = {}

    def names_of(instruction: Instruction) -> tuple[str, ...]:
        if instruction not in names:
            own = instruction.source.op_name
            around = [n for c in callers[instruction.computation] for n in names_of(c)]
            joined = [own if own.startswith(n.split("/")[0]) else f"{n}/{own}" for n in around]
            names[instruction] = tuple(dict.fromkeys(joined or [own])) if own else ()
        return names[instruction]

    for instruction in ordered:
        names_of(instruction)
    return {i: _with_inner_names(i, names) for i in ordered}


def _with_inner_names(
    instruction: Instruction, names: Mapping[Instruction, tuple[str, ...]]
) -> tuple[str, ...]:
    """Return the names of an instruction; of a fusion or its leaf also those inside."""
    own, call = names[instruction], instruction
    if isinstance(instruction.op, GetTupleElement):
        call = instruction.operands[0]
    if not own or not isinstance(call.op, InlineOp):
        return own
    inside = [n for c in call.called_computations for i in c for n in names.get(i, ())]
    return tuple(dict.fromkeys([*own, *inside]))


def agree(ours: Iterable[str], theirs: Iterable[str]) -> bool:
    """Return True if two instructions have a name in common, up to the names of calls around them.

    >>> agree(["jit(f)/jit(g)/add"], ["jit(f)/mul", "jit(g)/add"]), agree(["add"], ["my_add"])
    (True, False)
    """
    return any(
        one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")
        for one in ours
        for other in theirs
    )
