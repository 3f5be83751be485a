"""Analyses of the arrays of a counted loop: those that are needed, and updates in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from indexing.codegen.induction import integer_value
from indexing.codegen.program_arrays import CarriedLeaf, LoopArrays, ProgramArray, arrays_in
from simplifier.interval import contains
from simplifier.linear import constant


def needed_leaves(loop: LoopArrays, leaves: Iterable[int]) -> dict[int, CarriedLeaf]:
    """Return `leaves` and the leaves that an iteration reads for them, in their order."""
    by_array = {each.carried: leaf for leaf, each in loop.leaves.items()
                if each.carried.known is None}  # fmt: skip
    needed = set(leaves)
    waiting, seen = [loop.leaves[leaf].following for leaf in needed], set[object]()
    while waiting:
        array = waiting.pop()
        leaf = by_array.get(array)
        if leaf is not None and leaf not in needed:
            needed.add(leaf)
            waiting.append(loop.leaves[leaf].following)
        if array.group not in seen and array not in loop.outside:
            seen.add(array.group)
            waiting.extend(_read_by(array))
    return {leaf: each for leaf, each in loop.leaves.items() if leaf in needed}


def updated_in_place(loop: LoopArrays, leaves: Mapping[int, CarriedLeaf]) -> set[int]:
    """Return those of `leaves` that an iteration may update in place.

    The next value is a dynamic-update-slice of the current one, at starts that the number of the
    iteration gives, and nothing else in the loop reads either of them.
    """
    uses = _uses([each.following for each in leaves.values()], loop)
    return {
        leaf
        for leaf, each in leaves.items()
        if uses[each.carried] == uses[each.following] == 1 and _is_update(each)
    }


def _is_update(leaf: CarriedLeaf) -> bool:
    update = leaf.following
    if update.instruction.opcode != "dynamic-update-slice" or update.known is not None:
        return False
    base, piece, *starts = arrays_in(update.operands)
    if base is not leaf.carried or base.dtype != piece.dtype:
        return False
    for start, size, inner in zip(starts, base.dims, piece.dims, strict=True):
        value = integer_value(start, (constant(0),) * len(start.dims))
        if value is None or not contains((0, size - inner), value.bounds):
            return False
    return True


def _uses(roots: Iterable[ProgramArray], loop: LoopArrays) -> Counter[ProgramArray]:
    """Return the number of uses of the arrays below `roots` within the body of a loop."""
    uses: Counter[ProgramArray] = Counter()
    seen: set[object] = set()
    waiting = list(roots)
    while waiting:
        array = waiting.pop()
        uses[array] += 1
        if array.group not in seen and array not in loop.outside:
            seen.add(array.group)
            waiting.extend(_read_by(array))
    return uses


def _read_by(array: ProgramArray) -> Iterator[ProgramArray]:
    """Yield the arrays that an array is computed from."""
    yield from arrays_in(array.operands)
    if isinstance(array.group, LoopArrays):
        yield from array.group.outside
        yield from [source for _, source, _ in array.group.runtime]
        for leaf in array.group.leaves.values():
            yield from (leaf.first, leaf.following)
