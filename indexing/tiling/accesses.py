"""Maps between arrays with some of their adjacent dimensions merged.

A *join* ``(array, k)`` merges dimensions k and k + 1 of an array.  Every set of joins gives an
equivalent map: a merged dimension of the output is split into its digits (delinearised), and the
merged index of the operand is a linear combination of its digits (linearised).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from hlo.shapes.mixed_radix import number_of
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.maps.spaces import is_iteration
from simplifier.atoms import Variable, inside_atoms
from simplifier.linear import Expr, constant
from simplifier.substitute import Substitution

ArrayKey: TypeAlias = Hashable
"""The identity of an array."""

SizesByArray: TypeAlias = Mapping[ArrayKey, tuple[int, ...]]
Join: TypeAlias = tuple[ArrayKey, int]
Joins: TypeAlias = frozenset[Join]
DimGroup: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ArrayAccess:
    """A map between two arrays.

    Attributes:
        output, operand: the arrays that the map leads from and to.
        map: the map from indices of `output` to indices of `operand`.
        sources: the source array of each runtime variable, or `None` if its dimensions must not be
            merged.
        loop: the loop nest of the range variables, or `None`.  Range variables of equal names in
            two accesses with the same loop nest are the same loop.
    """

    output: ArrayKey
    operand: ArrayKey
    map: IndexingMap
    sources: tuple[ArrayKey | None, ...] = ()
    loop: Hashable = None


@dataclass(frozen=True, slots=True)
class ArrayIndex:
    """The index of an element, with merged dimensions: of an operand or of a runtime source.

    Attributes:
        array: the array; `None` if its dimensions must not be merged.
        groups: the dimensions merged into each component of `index`.
        sizes: the size of each group.
        index: an expression for each group.
    """

    array: ArrayKey | None
    groups: tuple[DimGroup, ...]
    sizes: tuple[int, ...]
    index: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class MergedAccess:
    """An access with some joins applied.

    Attributes:
        map: the map between the merged arrays.
        output_groups: the dimensions of the output merged into each dimension of the map.
        indices: the index in the operand, and the index in the source of each runtime variable.
        fused: pairs of range variables fused into one.
    """

    map: IndexingMap
    output_groups: tuple[DimGroup, ...]
    indices: tuple[ArrayIndex, ...]
    fused: tuple[tuple[Variable, Variable], ...]


def groups(sizes: Sequence[int], array: ArrayKey, joins: Joins) -> tuple[DimGroup, ...]:
    """Return the dimensions of each merged dimension of an array.

    >>> groups((2, 3, 5), "p", frozenset([("p", 1)]))
    ((0,), (1, 2))
    """
    merged: list[list[int]] = []
    for k in range(len(sizes)):
        if k and (array, k - 1) in joins:
            merged[-1].append(k)
        else:
            merged.append([k])
    return tuple(map(tuple, merged))


def merge_access(access: ArrayAccess, sizes: SizesByArray, joins: Joins) -> MergedAccess | None:
    """Apply joins to an access; `None` if its domain is not a box of the merged dimensions."""
    old, extents = access.map, sizes[access.output]
    output_groups = groups(extents, access.output, joins)
    dims: list[Variable] = []
    values: dict[Variable, Expr] = {}
    for n, group in enumerate(output_groups):
        dimensions, widths = [old.dims[k] for k in group], [extents[k] for k in group]
        merged = _merge_digits(dimensions, widths, f"d{n}")
        if merged is None:
            return None
        dims.append(merged)
        values |= dict(zip(dimensions, _digits(merged.as_expr(), dimensions, widths), strict=True))
    swap = Substitution(values)
    arrays = (access.operand, *(access.sources or (None,) * len(old.runtime)))
    old_indices = [old.results, *[rt.index for rt in old.runtime]]
    indices = [
        _merged_index(array, [*map(swap, index)], sizes, joins)
        for array, index in zip(arrays, old_indices, strict=True)
    ]
    now = IndexingMap.of(
        dims,
        indices[0].index,
        ranges=old.ranges,
        runtime=_with_indices(old.runtime, indices[1:]),
        constraints=[c.with_expr(swap(c.expr)) for c in old.constraints],
        grade=old.grade,
    )
    fused = []
    while pair := _fusible(now):
        fused.append(pair)
        now = _fuse_ranges(now, *pair)
    new_indices = [now.results, *[rt.index for rt in now.runtime]]
    updated = [replace(old, index=new) for old, new in zip(indices, new_indices, strict=True)]
    return MergedAccess(now, output_groups, tuple(updated), tuple(fused))


def _with_indices(
    runtime: Sequence[RuntimeVariable], indices: Sequence[ArrayIndex]
) -> list[RuntimeVariable]:
    """Return the runtime variables with these indices in their sources."""
    return [replace(rt, index=each.index) for rt, each in zip(runtime, indices, strict=True)]


def _merged_index(
    array: ArrayKey | None, index: Sequence[Expr], sizes: SizesByArray, joins: Joins
) -> ArrayIndex:
    """Return `index` merged; without an array, every dimension is a group of size 2."""
    widths = (2,) * len(index) if array is None else sizes[array]
    merged = groups(widths, array, joins)
    numbers = [number_of([index[k] for k in g], [widths[k] for k in g]) for g in merged]
    merged_sizes = tuple([prod(widths[k] for k in g) for g in merged])
    return ArrayIndex(array, merged, merged_sizes, tuple(numbers))


# ---------------------------------------------------------------- numbers and digits


def _merge_digits(digits: Sequence[Variable], sizes: Sequence[int], name: str) -> Variable | None:
    """Return the number with these digits; `None` if its values are not an interval.

    They are an interval if all digits before the last restricted digit are constant.
    """
    restricted = [
        k for k, (v, n) in enumerate(zip(digits, sizes, strict=True)) if v.bounds != (0, n - 1)
    ]
    if restricted and any(v.lower != v.upper for v in digits[: restricted[-1]]):
        return None
    ends = [[v.bounds[side] for v in digits] for side in (0, 1)]
    lower, upper = (sum(e * w for e, w in zip(end, _weights(sizes), strict=True)) for end in ends)
    return Variable(name, lower, upper)


def _digits(number: Expr, bounded: Sequence[Variable], sizes: Sequence[int]) -> list[Expr]:
    """Return the digits of `number`; the bounds of each digit are those of its variable."""
    digits: list[Expr] = []
    for v, weight in zip(bounded, _weights(sizes), strict=True):
        digit = constant(v.lower) if v.lower == v.upper else number // weight
        digits.append(digit)
        number = number - digit * weight
    return digits


def _weights(sizes: Sequence[int]) -> list[int]:
    return [prod(sizes[k + 1 :]) for k in range(len(sizes))]


# ---------------------------------------------------------------- range variables


def _fusible(now: IndexingMap) -> tuple[Variable, Variable] | None:
    """Return two range variables used only as digits of one number, high and low, or `None`."""
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
    """Return True if every expression uses both variables only as digits of one number."""
    for expr in exprs:
        terms = dict(expr.terms)
        if terms.get(high, 0) != terms.get(low, 0) * (low.upper + 1):
            return False
        if not inside_atoms(expr).isdisjoint((high, low)):
            return False
    return True


def _fuse_ranges(now: IndexingMap, high: Variable, low: Variable) -> IndexingMap:
    """Return the map with both range variables fused into one.

    It is an iteration variable only if both are.
    """
    size = low.upper + 1
    name = low.name if is_iteration(high) else high.name
    both = Variable(name, high.lower * size, high.upper * size + low.upper)
    swap = Substitution({low: both.as_expr(), high: constant(0)})
    return IndexingMap.of(
        now.dims,
        map(swap, now.results),
        ranges=[both if v is high else v for v in now.ranges if v is not low],
        runtime=[rt.substituted(swap) for rt in now.runtime],
        constraints=[c.with_expr(swap(c.expr)) for c in now.constraints],
        grade=now.grade,
    )
