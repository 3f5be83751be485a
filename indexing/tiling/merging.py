"""Choice of the adjacent dimensions to merge: every join that keeps the maps simple.

A join is made, together with the joins that it requires, if no expression becomes longer.
`indexing.tiling.accesses` applies joins to maps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.indexing_map import dims as dims_of
from indexing.tiling.accesses import (
    ArrayAccess,
    ArrayIndex,
    ArrayKey,
    Join,
    Joins,
    MergedAccess,
    SizesByArray,
    groups,
    merge_access,
)
from simplifier.atoms import Variable


def best_joins(sizes: SizesByArray, accesses: Sequence[ArrayAccess]) -> Joins:
    """Return all joins that keep the maps of all accesses simple.

    >>> transpose = IndexingMap.over((3, 4, 2), lambda d: [d[2], d[0], d[1]])
    >>> sizes = {"out": (3, 4, 2), "in": (2, 3, 4)}
    >>> sorted(best_joins(sizes, [ArrayAccess("out", "in", transpose)]))
    [('in', 1), ('out', 0)]
    """
    seeds = [(array, k) for array, dims in sizes.items() for k in range(len(dims) - 1)]
    pending = [seed for seed in seeds if 0 not in sizes[seed[0]]]
    merged = _MergedAccesses(sizes, [a for a in accesses if not a.map.is_known_empty])
    made: Joins = frozenset()
    while True:
        before = made
        for seed in pending:
            made = _add_required(seed, made, merged, only_seed=True) or made
        for seed in pending if made == before else ():
            made = _add_required(seed, made, merged) or made
            if made != before:
                break
        if made == before:
            return made


class _MergedAccesses:
    """All accesses with joins applied, memoised: a join affects only accesses of its array."""

    def __init__(self, sizes: SizesByArray, accesses: Sequence[ArrayAccess]) -> None:
        self.sizes, self.accesses = sizes, accesses
        self._memo: dict[tuple[int, tuple[Joins, ...]], MergedAccess | None] = {}

    def of(self, joins: Joins) -> list[MergedAccess | None]:
        """Return each access with `joins` applied, or `None` if its domain is not a box."""
        by_array: dict[ArrayKey, Joins] = {}
        for join in joins:
            by_array[join[0]] = by_array.get(join[0], frozenset()) | {join}
        merged: list[MergedAccess | None] = []
        for n, access in enumerate(self.accesses):
            arrays = (access.output, access.operand, *access.sources)
            key = n, tuple([by_array.get(array, frozenset()) for array in arrays])
            if key not in self._memo:
                self._memo[key] = merge_access(access, self.sizes, frozenset().union(*key[1]))
            merged.append(self._memo[key])
        return merged


def _add_required(
    seed: Join, made: Joins, merged: _MergedAccesses, only_seed: bool = False
) -> Joins | None:
    """Return `made` with `seed` and the joins it requires, or `None` if one of them fails.

    With `only_seed`, fail if `seed` requires another join: independent joins are made first, and
    later joins must keep the maps as simple.
    """
    if seed in made:
        return None
    sizes, accesses = merged.sizes, merged.accesses
    before = merged.of(made)
    tried = made | {seed}
    while True:
        after: list[MergedAccess] = []
        required: set[Join] = set()
        is_simple = True
        for access, old, new in zip(accesses, before, merged.of(tried), strict=True):
            if old is None or new is None:
                return None
            after.append(new)
            if new is not old and (joins := _required_joins(access, old, new)) is not None:
                is_simple = False
                required |= joins
        for join in _required_by_loops(after, sizes, accesses, tried):
            if join is None:
                return None
            required.add(join)
        if required <= tried:
            return tried if is_simple else None
        if only_seed:
            return None
        tried |= required


def _required_by_loops(
    merged: Sequence[MergedAccess],
    sizes: SizesByArray,
    accesses: Sequence[ArrayAccess],
    joins: Joins,
) -> Iterator[Join | None]:
    """Yield joins that fuse range variables in all accesses of a loop if one access fuses them.

    Yield `None` if no join can fuse them.
    """
    in_loops = [(a, m) for a, m in zip(accesses, merged, strict=True) if a.loop is not None]
    for access, fusing in in_loops:
        for pair in fusing.fused:
            for other, other_merged in in_loops:
                is_shared = access.loop == other.loop and {*pair} & {*other_merged.map.ranges}
                if is_shared and pair not in other_merged.fused:
                    yield _join_of(pair, other, other_merged.map, sizes, joins)


def _join_of(
    pair: tuple[Variable, Variable],
    access: ArrayAccess,
    now: IndexingMap,
    sizes: SizesByArray,
    joins: Joins,
) -> Join | None:
    """Return the join of the two results that use these variables, or `None`."""
    at = [[k for k, result in enumerate(now.results) if v in result.variables()] for v in pair]
    if len(at[0]) == len(at[1]) == 1 and at[1][0] == at[0][0] + 1:
        return access.operand, groups(sizes[access.operand], access.operand, joins)[at[0][0]][-1]
    return None


def merged_map(access: ArrayAccess, sizes: SizesByArray, joins: Joins) -> IndexingMap:
    """Return the map of an access between the merged arrays, simplified."""
    operand_groups = groups(sizes[access.operand], access.operand, joins)
    merged = None if access.map.is_known_empty else merge_access(access, sizes, joins)
    if merged is not None:
        return merged.map.simplify()
    output_groups = groups(sizes[access.output], access.output, joins)
    widths = [prod(sizes[access.output][k] for k in group) for group in output_groups]
    return IndexingMap.empty(dims_of(widths), len(operand_groups))


def _required_joins(access: ArrayAccess, old: MergedAccess, new: MergedAccess) -> set[Join] | None:
    """Return joins that may make `new` as simple as `old`, or `None` if it is."""
    pairs = list(zip(old.indices, new.indices, strict=True))
    complex_ = [
        [not _is_simple(k, before, now, new.map) for k in range(len(now.index))]
        for before, now in pairs
    ]
    longer = any(
        now.expr.weight > before.expr.weight
        for before, now in zip(old.map.constraints, new.map.constraints, strict=True)
    )
    if not longer and not any(map(any, complex_)):
        return None
    joins: set[Join] = set()
    for (_, index), flags in zip(pairs, complex_, strict=True):
        joins.update(_required_in_operand(index, flags, new))
        joins.update(_required_in_output(index, flags, new, access.output))
    return joins


def _required_in_operand(
    index: ArrayIndex, is_complex: Sequence[bool], new: MergedAccess
) -> Iterator[Join]:
    """Yield joins of adjacent operand dimensions that use digits of one merged dimension."""
    groups_of_dims = zip(new.map.dims, new.output_groups, strict=True)
    merged = {d for d, group in groups_of_dims if len(group) > 1}
    used = [merged.intersection(value.variables()) for value in index.index]
    for k in range(len(is_complex) - 1 if index.array is not None else 0):
        if (is_complex[k] or is_complex[k + 1]) and used[k] & used[k + 1]:
            yield index.array, index.groups[k][-1]


def _required_in_output(
    index: ArrayIndex, is_complex: Sequence[bool], new: MergedAccess, output: ArrayKey
) -> Iterator[Join]:
    """Yield joins of adjacent output dimensions that are merged in the operand."""
    for group, value, complex_ in zip(index.groups, index.index, is_complex, strict=True):
        if complex_ and len(group) > 1:
            variables = {*value.variables()}
            at = [n for n, d in enumerate(new.map.dims) if d in variables]
            if at and at == [*range(at[0], at[-1] + 1)]:
                yield from [(output, new.output_groups[n][-1]) for n in at[:-1]]


def _is_simple(k: int, before: ArrayIndex, now: ArrayIndex, domain: IndexingMap) -> bool:
    """Return True if expression k is not longer than those it replaces, and has unit stride.

    An index merged from several digits must depend on one dimension or range variable only.
    """
    value = now.index[k]
    weights = [
        old.weight
        for group, size, old in zip(before.groups, before.sizes, before.index, strict=True)
        if group[0] in now.groups[k] and size > 1
    ]
    if value.weight > max(weights, default=0):
        return False
    if len(weights) <= 1 or not value.terms:
        return True
    variables = {*value.variables()}
    is_unit = any(abs(factor) == 1 for _, factor in value.terms)
    return is_unit and len(variables) == 1 and variables <= {*domain.dims, *domain.ranges}
