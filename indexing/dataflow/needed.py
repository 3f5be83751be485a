"""The instructions that others depend on within their computation."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hlo.modules.module import Computation, Instruction


def dependencies_of(roots: Iterable[Instruction]) -> list[Instruction]:
    """Return `roots` and the instructions that they depend on, in text order.

    >>> import hlo
    >>> entry = hlo.parse('''ENTRY e {
    ...   p = f32[2] parameter(0)
    ...   unused = f32[2] negate(p)
    ...   ROOT r = f32[2] reverse(p), dimensions={0}
    ... }''').entry
    >>> [instruction.name for instruction in dependencies_of([entry.root])]
    ['p', 'r']
    """
    needed = dict.fromkeys(roots)
    pending = list(needed)
    while pending:
        for operand in pending.pop().operands:
            if operand not in needed:
                needed[operand] = None
                pending.append(operand)
    return sorted(needed, key=lambda instruction: instruction.index)


def needed_by_root(computation: Computation) -> list[Instruction]:
    """Return the parameters of a computation and what its root depends on, in text order."""
    is_needed = {computation.root}
    needed: list[Instruction] = []
    for instruction in reversed(computation.instructions):
        if instruction in is_needed:
            is_needed.update(instruction.operands)
            needed.append(instruction)
        elif instruction.opcode == "parameter":
            needed.append(instruction)
    needed.reverse()
    return needed


def dependent_on_parameters(computation: Computation) -> Collection[Instruction]:
    """Return the parameters of a computation and the instructions that depend on them."""

    def dependent() -> set[Instruction]:
        reached = set(computation.parameters)
        for instruction in computation.instructions:
            if not reached.isdisjoint(instruction.operands):
                reached.add(instruction)
        return reached

    return computation.memoised(dependent_on_parameters, dependent)
