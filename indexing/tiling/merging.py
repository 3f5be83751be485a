"""Which adjacent dimensions are one: merges them where every map that touches them stays simple.

A *join* ``(array, k)`` makes dimensions k and k + 1 of an array one.  Any set of joins gives maps
with the same meaning: an index of the result is replaced by its digits, and what is read becomes a
number.  Joins are taken that make no expression longer, with those that they need.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.indexing_map import dims as dims_of
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, constant
from simplifier.substitute import Substitution

Array: TypeAlias = Hashable
"""What tells one array from another."""

Sizes: TypeAlias = Mapping[Array, tuple[int, ...]]
Join: TypeAlias = tuple[Array, int]
Joins: TypeAlias = frozenset[Join]
Group: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """A map between two arrays.

    Attributes:
        output, operand: what its dimensions and its results are the indices of.
        map: from indices of `output` to indices of `operand`.
        sources: for each runtime variable the array that it is an element of; `None` if that is no
            array whose dimensions may be merged.
        loop: what has the range variables in common with other reads: range variables of equal
            names in two reads with the same loop run together; `None` where they do not.
    """

    output: Array
    operand: Array
    map: IndexingMap
    sources: tuple[Array | None, ...] = ()
    loop: Hashable = None


@dataclass(frozen=True, slots=True)
class Place:
    """What says where an element is: of the operand, or of the source of a runtime variable.

    Attributes:
        array: which array; `None` if its dimensions may not be merged.
        groups: the dimensions that each of `index` stands for.
        sizes: of these groups.
        index: one expression for each.
    """

    array: Array | None
    groups: tuple[Group, ...]
    sizes: tuple[int, ...]
    index: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """A read with some joins made.

    Attributes:
        map: between the merged arrays.
        over: the dimensions of the output that each dimension of the map stands for.
        places: its results, and what its runtime variables are.
        fused: pairs of range variables that became one.
    """

    map: IndexingMap
    over: tuple[Group, ...]
    places: tuple[Place, ...]
    fused: tuple[tuple[Variable, Variable], ...]


def groups(sizes: Sequence[int], array: Array, joins: Joins) -> tuple[Group, ...]:
    """The dimensions of each merged dimension.

    >>> groups((2, 3, 5), "p", frozenset([("p", 1)]))
    ((0,), (1, 2))
    """
    found: list[list[int]] = []
    for k in range(len(sizes)):
        if k and (array, k - 1) in joins:
            found[-1].append(k)
        else:
            found.append([k])
    return tuple(map(tuple, found))


def best_joins(sizes: Sizes, reads: Sequence[Read]) -> Joins:
    """All joins that can be made.

    >>> transpose = IndexingMap.over((3, 4, 2), lambda d: [d[2], d[0], d[1]])
    >>> sizes = {"out": (3, 4, 2), "in": (2, 3, 4)}
    >>> sorted(best_joins(sizes, [Read("out", "in", transpose)]))
    [('in', 1), ('out', 0)]
    """
    seeds = [(array, k) for array, dims in sizes.items() for k in range(len(dims) - 1)]
    pending = [seed for seed in seeds if 0 not in sizes[seed[0]]]
    drafts = _Drafts(sizes, reads)
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
    in_step = [(read, draft) for read, draft in zip(reads, drafts, strict=True) if read.loop]
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


# ---------------------------------------------------------------- one read


def draft_of(read: Read, sizes: Sizes, joins: Joins) -> Draft | None:
    """The read with these joins; `None` if its domain is no box of the merged dimensions."""
    old, extents = read.map, sizes[read.output]
    over = groups(extents, read.output, joins)
    dims: list[Variable] = []
    values: dict[Variable, Expr] = {}
    for n, group in enumerate(over):
        dimensions, widths = [old.dims[k] for k in group], [extents[k] for k in group]
        whole = _merged(dimensions, widths, f"d{n}")
        if whole is None:
            return None
        dims.append(whole)
        values |= dict(zip(dimensions, _digits(whole.as_expr(), dimensions, widths), strict=True))
    swap = Substitution(values)
    sources = read.sources or (None,) * len(old.runtime)
    tied = zip(old.runtime, sources, strict=True)
    placed = [(read.operand, old.results), *[(source, rt.index) for rt, source in tied]]
    into = [_groups_of(array, len(index), sizes, joins) for array, index in placed]
    numbers = [
        [_number([swap(index[k]) for k in g], [w[k] for k in g]) for g in parts]
        for (_, index), (parts, w) in zip(placed, into, strict=True)
    ]
    now = IndexingMap.of(
        dims,
        numbers[0],
        ranges=old.ranges,
        runtime=[
            replace(rt, index=tuple(index))
            for rt, index in zip(old.runtime, numbers[1:], strict=True)
        ],
        constraints=[Constraint(swap(c.expr), c.lower, c.upper) for c in old.constraints],
        grade=old.grade,
    )
    fused = []
    while pair := _fusible(now):
        fused.append(pair)
        now = _fused(now, *pair)
    index_of = [now.results, *[rt.index for rt in now.runtime]]
    places = [
        Place(array, parts, tuple([prod(w[k] for k in g) for g in parts]), index)
        for (array, _), (parts, w), index in zip(placed, into, index_of, strict=True)
    ]
    return Draft(now, over, tuple(places), tuple(fused))


def _groups_of(
    array: Array | None, rank: int, sizes: Sizes, joins: Joins
) -> tuple[tuple[Group, ...], tuple[int, ...]]:
    """The groups and the sizes of an array; where it is none, each dimension is wide and alone."""
    if array is None:
        return tuple([(k,) for k in range(rank)]), (2,) * rank
    return groups(sizes[array], array, joins), sizes[array]


def _wanted(read: Read, old: Draft, new: Draft) -> set[Join] | None:
    """Joins that may make a draft as simple as the one before; `None` if it is.

    Digits of one merged index that are read next to each other are one there as well; dimensions
    that are one where they are read are one in the result, if they are neighbours.
    """
    longer = any(
        now.expr.weight > before.expr.weight
        for before, now in zip(old.map.constraints, new.map.constraints, strict=True)
    )
    merged = {d for d, group in zip(new.map.dims, new.over, strict=True) if len(group) > 1}
    wants: set[Join] = set()
    for before, now in zip(old.places, new.places, strict=True):
        bad = [not _is_simple(k, before, now, new.map) for k in range(len(now.index))]
        longer = longer or any(bad)
        used = [{*value.variables()} for value in now.index]
        for k in range(len(bad) - 1):
            if (bad[k] or bad[k + 1]) and used[k] & used[k + 1] & merged and now.array is not None:
                wants.add((now.array, now.groups[k][-1]))
        for group, variables, is_bad in zip(now.groups, used, bad, strict=True):
            if is_bad and len(group) > 1:
                at = [n for n, d in enumerate(new.map.dims) if d in variables]
                if at and at == [*range(at[0], at[-1] + 1)]:
                    wants |= {(read.output, new.over[n][-1]) for n in at[:-1]}
    return wants if longer else None


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


# ---------------------------------------------------------------- numbers and digits


def _merged(parts: Sequence[Variable], sizes: Sequence[int], name: str) -> Variable | None:
    """The number of which `parts` are the digits; `None` if its values are no interval.

    They are one if, after digits with just one value, one digit is free and all others are full.
    """
    narrow = [
        k for k, (v, n) in enumerate(zip(parts, sizes, strict=True)) if v.bounds != (0, n - 1)
    ]
    if narrow and any(v.lower != v.upper for v in parts[: narrow[-1]]):
        return None
    ends = [[v.bounds[side] for v in parts] for side in (0, 1)]
    lower, upper = (sum(e * w for e, w in zip(end, _weights(sizes), strict=True)) for end in ends)
    return Variable(name, lower, upper)


def _digits(number: Expr, parts: Sequence[Variable], sizes: Sequence[int]) -> list[Expr]:
    """The digits of `number`, whose bounds are those of `parts`."""
    found: list[Expr] = []
    for v, weight in zip(parts, _weights(sizes), strict=True):
        digit = constant(v.lower) if v.lower == v.upper else number // weight
        found.append(digit)
        number = number - digit * weight
    return found


def _number(digits: Sequence[Expr], sizes: Sequence[int]) -> Expr:
    """The number that has these digits."""
    total = constant(0)
    for digit, weight in zip(digits, _weights(sizes), strict=True):
        total = total + digit * weight
    return total


def _weights(sizes: Sequence[int]) -> list[int]:
    return [prod(sizes[k + 1 :]) for k in range(len(sizes))]


# ---------------------------------------------------------------- range variables


def _fusible(now: IndexingMap) -> tuple[Variable, Variable] | None:
    """Two range variables that are only read as digits of one number: the high and the low one."""
    exprs = [*now.results, *[c.expr for c in now.constraints]]
    exprs += [i for rt in now.runtime for i in rt.index]
    for expr in now.results:
        terms = [(a, c) for a, c in expr.terms if isinstance(a, Variable) and a in now.ranges]
        for low, unit in terms:
            for high, factor in terms:
                is_digit = low.lower == 0 and factor == unit * (low.upper + 1)
                if low is not high and is_digit and _only_together(high, low, exprs):
                    return high, low
    return None


def _only_together(high: Variable, low: Variable, exprs: Sequence[Expr]) -> bool:
    for expr in exprs:
        found = dict(expr.terms)
        if found.get(high, 0) != found.get(low, 0) * (low.upper + 1):
            return False
        inside = [v for v in expr.variables() if v in (high, low)]
        if len(inside) > sum(v in found for v in (high, low)):
            return False
    return True


def _fused(now: IndexingMap, high: Variable, low: Variable) -> IndexingMap:
    """Both range variables as one, under the name of the high one."""
    size = low.upper + 1
    both = Variable(high.name, high.lower * size, high.upper * size + low.upper)
    swap = Substitution({low: both.as_expr(), high: constant(0)})
    return IndexingMap.of(
        now.dims,
        map(swap, now.results),
        ranges=[both if v is high else v for v in now.ranges if v is not low],
        runtime=[replace(rt, index=tuple(map(swap, rt.index))) for rt in now.runtime],
        constraints=[Constraint(swap(c.expr), c.lower, c.upper) for c in now.constraints],
        grade=now.grade,
    )
