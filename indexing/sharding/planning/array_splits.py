"""Splits: the axes of a mesh by dimension, without the mesh; and those that a rule's factors give.

All axes are used whole here: a mesh whose axes are used in parts is refined before.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from math import prod
from typing import NamedTuple, TypeAlias

from hlo.shardings.mesh import Axis, Mesh
from hlo.shardings.sharding import Sharding
from indexing.sharding.rules.sharding_rules import ShardingRule

AxisNames: TypeAlias = tuple[str, ...]
"""Names of axes, major to minor."""

Partial: TypeAlias = tuple[tuple[str, str], ...]
"""Axes along which values are partial, each with the reduction, in the order of the mesh."""


class ArraySplit(NamedTuple):
    """The axes that split each dimension of an array, and those along which it is partial."""

    dims: tuple[AxisNames, ...]
    partial: Partial = ()

    @property
    def axes(self) -> AxisNames:
        """All axes, in no particular order."""
        return (
            *[name for names in self.dims for name in names],
            *[name for name, _ in self.partial],
        )

    @property
    def is_disjoint(self) -> bool:
        """True if no axis is used twice."""
        return len(set(self.axes)) == len(self.axes)

    def shards(self, sizes: Mapping[str, int]) -> int:
        """Return the number of different shards."""
        return prod(sizes[name] for names in self.dims for name in names)

    def sharding(self, mesh: Mesh) -> Sharding:
        """Return the sharding on a mesh."""
        dims = tuple([tuple([Axis(name) for name in names]) for names in self.dims])
        return Sharding(mesh, dims, tuple([(Axis(name), kind) for name, kind in self.partial]))


def split_of(sharding: Sharding) -> ArraySplit:
    """Return the split of a sharding whose axes are used whole."""
    dims = tuple([tuple([axis.name for axis in axes]) for axes in sharding.dims])
    return ArraySplit(dims, tuple([(axis.name, kind) for axis, kind in sharding.partial]))


class RuleSplits:
    """The splits that axes of a rule's factors give to operands and results.

    Attributes:
        rule: the rule.
        sizes: the size of each axis of the mesh.
        excessive: the axes with more shards than a dimension that may split such dimensions:
            devices without elements hold padding.
        cuts: the axes of which only the major part, of the given size, splits a factor.
    """

    def __init__(
        self, rule: ShardingRule, sizes: Mapping[str, int], excessive: Container[AxisNames] = ()
    ) -> None:
        self.rule = rule
        self.sizes = sizes
        self.excessive = excessive
        self.cuts: dict[str, int] = {}

    @cached_property
    def _compound(self) -> frozenset[int]:
        """The factors of dimensions that have several: their shards must be of equal size."""
        arrays = (*self.rule.operands, *self.rule.results)
        return frozenset(f for array in arrays for fs in array if len(fs) > 1 for f in fs)

    def shards(self, names: Iterable[str]) -> int:
        """Return the number of shards along some axes."""
        return prod(self.sizes[name] for name in names)

    def fits(self, factor: int, names: AxisNames) -> bool:
        """Return True if the axes may split a factor."""
        size, shards = self.rule.factors[factor].size, self.shards(names)
        if self.rule.factors[factor].kind == "need_replication":
            return shards == 1
        if factor in self._compound:
            return shards <= size and size % shards == 0
        return shards <= size or names in self.excessive

    def pieces(self, factors: Sequence[int], names: AxisNames) -> Iterator[tuple[int, AxisNames]]:
        """Yield the axes of each factor of a dimension that the axes split.

        The major factor takes the first axes; the next one takes axes only if the major one is
        split completely.  The first axes that fit no factor end the split.
        """
        rest = list(names)
        for position, factor in enumerate(factors):
            taken: list[str] = []
            while rest and self.fits(factor, (*taken, rest[0])):
                taken.append(rest.pop(0))
            if rest and position + 1 < len(factors):
                self._note_cut(rest[0], self.rule.factors[factor].size // self.shards(taken))
            if taken:
                yield factor, tuple(taken)
            if self.shards(taken) != self.rule.factors[factor].size:
                return

    def _note_cut(self, name: str, part: int) -> None:
        """Note that only a part of an axis splits a factor; the rest may split the next one."""
        if 1 < part < self.sizes[name] and self.sizes[name] % part == 0:
            self.cuts.setdefault(name, part)

    def dimension(self, factors: Sequence[int], axes: Sequence[AxisNames]) -> AxisNames | None:
        """Return the axes that split a dimension, or None if its shards are not contiguous.

        Args:
            factors: the factors of the dimension.
            axes: the axes of each factor of the rule.
        """
        names: AxisNames = ()
        is_whole = True  # all factors before are split completely
        for factor in factors:
            if axes[factor] and not is_whole:
                return None
            names += axes[factor]
            is_whole = is_whole and self.shards(axes[factor]) == self.rule.factors[factor].size
        return names

    def arrays(
        self, arrays: Sequence[Sequence[Sequence[int]]], axes: Sequence[AxisNames]
    ) -> list[tuple[AxisNames, ...]] | None:
        """Return the axes of each dimension of operands or results, or None if one has none."""
        splits = []
        for dims in arrays:
            names = [self.dimension(factors, axes) for factors in dims]
            if None in names:
                return None
            splits.append(tuple([each or () for each in names]))
        return splits

    def partial(self, axes: Sequence[AxisNames]) -> Partial:
        """Return the axes along which the results are partial."""
        return tuple(
            [
                (name, factor.reduction)
                for factor, names in zip(self.rule.factors, axes, strict=True)
                if factor.kind == "reduction"
                for name in names
            ]
        )


def disjoint_products(
    sets: Sequence[Iterable[AxisNames]], limit: int
) -> list[tuple[AxisNames, ...]]:
    """Return the ways to take an element of each set such that no axis is used twice.

    At most `limit` ways are returned, first those that the first elements of the sets give.
    """
    ways: list[tuple[AxisNames, ...]] = []
    for way in product(*sets):
        names = [name for each in way for name in each]
        if len(set(names)) == len(names):
            ways.append(way)
            if len(ways) == limit:
                break
    return ways
