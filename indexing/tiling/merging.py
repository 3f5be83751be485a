"""Which adjacent dimensions are one: merges them where every map that touches them stays simple.

Joins are taken that make no expression longer, with those that they need (`indexing.tiling.drafts`
has the maps with some joins made).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.indexing_map import dims as dims_of
from indexing.tiling.drafts import Array, Draft, Join, Joins, Place, Read, Sizes, draft_of, groups
from simplifier.atoms import Variable


def best_joins(sizes: Sizes, reads: Sequence[Read]) -> Joins:
    """All joins that can be made.

    >>> transpose = IndexingMap.over((3, 4, 2), lambda d: [d[2], d[0], d[1]])
    >>> sizes = {"out": (3, 4, 2), "in": (2, 3, 4)}
    >>> sorted(best_joins(sizes, [Read("out", "in", transpose)]))
    [('in', 1), ('out', 0)]
    """
    seeds = [(array, k) for array, dims in sizes.items() for k in range(len(dims) - 1)]
    pending = [seed for seed in seeds if 0 not in sizes[seed[0]]]
    drafts = _Drafts(sizes, [read for read in reads if not read.map.is_known_empty])
    made: Joins = frozenset()
    while True:
        before = made
        for seed in pending:
            made = _with_needed(seed, made, drafts, alone=True) or made
        for seed in pending if made == before else ():
            made = _with_needed(seed, made, drafts) or made
            if made != before:
                break
        if made == before:
            return made


class _Drafts:
    """Drafts of all reads, remembered: a join changes only those that touch its array."""

    def __init__(self, sizes: Sizes, reads: Sequence[Read]) -> None:
        self.sizes, self.reads = sizes, reads
        self._known: dict[tuple[int, tuple[Joins, ...]], Draft | None] = {}

    def of(self, joins: Joins) -> list[Draft | None]:
        by_array: dict[Array, Joins] = {}
        for join in joins:
            by_array[join[0]] = by_array.get(join[0], frozenset()) | {join}
        found: list[Draft | None] = []
        for n, read in enumerate(self.reads):
            arrays = (read.output, read.operand, *read.sources)
            key = n, tuple([by_array.get(array, frozenset()) for array in arrays])
            if key not in self._known:
                self._known[key] = draft_of(read, self.sizes, frozenset().union(*key[1]))
            found.append(self._known[key])
        return found


def _with_needed(seed: Join, made: Joins, drafts: _Drafts, alone: bool = False) -> Joins | None:
    """`made` with `seed` and what that needs; `None` if not all of it can be made.

    With `alone`, only if it needs nothing: what is simpler by itself is made first, and what comes
    later has to be as simple.
    """
    if seed in made:
        return None
    sizes, reads = drafts.sizes, drafts.reads
    before = drafts.of(made)
    tried = made | {seed}
    while True:
        found: list[Draft] = []
        wants: set[Join] = set()
        is_simple = True
        for read, old, new in zip(reads, before, drafts.of(tried), strict=True):
            if old is None or new is None:
                return None
            found.append(new)
            if new is not old and (wanted := _wanted(read, old, new)) is not None:
                is_simple = False
                wants |= wanted
        for join in _unfused(found, sizes, reads, tried):
            if join is None:
                return None
            wants.add(join)
        if wants <= tried:
            return tried if is_simple else None
        if alone:
            return None
        tried |= wants


def _unfused(
    drafts: Sequence[Draft], sizes: Sizes, reads: Sequence[Read], joins: Joins
) -> Iterator[Join | None]:
    """Joins so that range variables that are one in a read are so in all reads of its loop.

    `None` is none that would do.
    """
    in_step = [
        (read, draft) for read, draft in zip(reads, drafts, strict=True) if read.loop is not None
    ]
    for read, draft in in_step:
        for pair in draft.fused:
            for other, theirs in in_step:
                together = read.loop == other.loop and {*pair} & {*theirs.map.ranges}
                if together and pair not in theirs.fused:
                    yield _join_of(pair, other, theirs.map, sizes, joins)


def _join_of(
    pair: tuple[Variable, Variable], read: Read, now: IndexingMap, sizes: Sizes, joins: Joins
) -> Join | None:
    """The join of the two results of a read that these variables are."""
    at = [[k for k, result in enumerate(now.results) if v in result.variables()] for v in pair]
    if len(at[0]) == len(at[1]) == 1 and at[1][0] == at[0][0] + 1:
        return read.operand, groups(sizes[read.operand], read.operand, joins)[at[0][0]][-1]
    return None


def merged_map(read: Read, sizes: Sizes, joins: Joins) -> IndexingMap:
    """The map of a read between the merged arrays, simplified."""
    into = groups(sizes[read.operand], read.operand, joins)
    draft = None if read.map.is_known_empty else draft_of(read, sizes, joins)
    if draft is not None:
        return draft.map.simplify()
    over = groups(sizes[read.output], read.output, joins)
    widths = [prod(sizes[read.output][k] for k in group) for group in over]
    return IndexingMap.empty(dims_of(widths), len(into))


def _wanted(read: Read, old: Draft, new: Draft) -> set[Join] | None:
    """Joins that may make a draft as simple as the one before; `None` if it is."""
    pairs = list(zip(old.places, new.places, strict=True))
    bad = [
        [not _is_simple(k, before, now, new.map) for k in range(len(now.index))]
        for before, now in pairs
    ]
    longer = any(
        now.expr.weight > before.expr.weight
        for before, now in zip(old.map.constraints, new.map.constraints, strict=True)
    )
    if not longer and not any(map(any, bad)):
        return None
    wants: set[Join] = set()
    for (_, place), flags in zip(pairs, bad, strict=True):
        wants.update(_wanted_where_read(place, flags, new))
        wants.update(_wanted_in_result(place, flags, new, read.output))
    return wants


def _wanted_where_read(place: Place, bad: Sequence[bool], new: Draft) -> Iterator[Join]:
    """Digits of one merged index that are read next to each other are one there as well."""
    merged = {d for d, group in zip(new.map.dims, new.over, strict=True) if len(group) > 1}
    used = [merged.intersection(value.variables()) for value in place.index]
    for k in range(len(bad) - 1 if place.array is not None else 0):
        if (bad[k] or bad[k + 1]) and used[k] & used[k + 1]:
            yield place.array, place.groups[k][-1]


def _wanted_in_result(
    place: Place, bad: Sequence[bool], new: Draft, output: Array
) -> Iterator[Join]:
    """Dimensions that are one where they are read are one in the result, if they are neighbours."""
    for group, value, is_bad in zip(place.groups, place.index, bad, strict=True):
        if is_bad and len(group) > 1:
            variables = {*value.variables()}
            at = [n for n, d in enumerate(new.map.dims) if d in variables]
            if at and at == [*range(at[0], at[-1] + 1)]:
                yield from [(output, new.over[n][-1]) for n in at[:-1]]


def _is_simple(k: int, before: Place, now: Place, domain: IndexingMap) -> bool:
    """Expression k is no longer than those in its place before, and counts one by one.

    If it is a number of several digits, it depends on one variable only, whose value the program
    does not choose.
    """
    value = now.index[k]
    wide = [
        old.weight
        for group, size, old in zip(before.groups, before.sizes, before.index, strict=True)
        if group[0] in now.groups[k] and size > 1
    ]
    if value.weight > max(wide, default=0):
        return False
    if len(wide) <= 1 or not value.terms:
        return True
    variables = {*value.variables()}
    is_unit = any(abs(factor) == 1 for _, factor in value.terms)
    return is_unit and len(variables) == 1 and variables <= {*domain.dims, *domain.ranges}
