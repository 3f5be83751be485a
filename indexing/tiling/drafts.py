"""A map between two arrays, some of whose adjacent dimensions are merged.

A *join* ``(array, k)`` makes dimensions k and k + 1 of an array one.  Any set of joins gives maps
with the same meaning: an index of the result is replaced by its digits, and what is read becomes a
number.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable
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
    arrays = (read.operand, *(read.sources or (None,) * len(old.runtime)))
    indices = [old.results, *[rt.index for rt in old.runtime]]
    places = [
        _place(array, [*map(swap, index)], sizes, joins)
        for array, index in zip(arrays, indices, strict=True)
    ]
    now = IndexingMap.of(
        dims,
        places[0].index,
        ranges=old.ranges,
        runtime=_at(old.runtime, places),
        constraints=[c.mapped(swap) for c in old.constraints],
        grade=old.grade,
    )
    fused = []
    while pair := _fusible(now):
        fused.append(pair)
        now = _fused(now, *pair)
    indices = [now.results, *[rt.index for rt in now.runtime]]
    moved = [replace(place, index=i) for place, i in zip(places, indices, strict=True)]
    return Draft(now, over, tuple(moved), tuple(fused))


def _at(runtime: Sequence[RuntimeVariable], places: Sequence[Place]) -> list[RuntimeVariable]:
    """Runtime variables that are the elements at all places but the first."""
    return [replace(rt, index=place.index) for rt, place in zip(runtime, places[1:], strict=True)]


def _place(array: Array | None, index: Sequence[Expr], sizes: Sizes, joins: Joins) -> Place:
    """The place of `index`, merged; without an array, each dimension is wide and alone."""
    widths = (2,) * len(index) if array is None else sizes[array]
    parts = groups(widths, array, joins)
    numbers = [_number([index[k] for k in g], [widths[k] for k in g]) for g in parts]
    return Place(array, parts, tuple([prod(widths[k] for k in g) for g in parts]), tuple(numbers))


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
        runtime=[rt.substituted(swap) for rt in now.runtime],
        constraints=[c.mapped(swap) for c in now.constraints],
        grade=now.grade,
    )
