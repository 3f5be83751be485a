"""Sums of arithmetic progressions with symbolic sizes: when such a sum is one progression.

The values of ``d0 * 6 + d1`` in a tile are the sums of two progressions, of steps 6 and 1.  They
are one progression if one of the two has a single value, or if the smaller one reaches the step of
the larger one: here, if the tile has all six values of ``d1``.  The sizes are expressions over the
tile sizes ``ts_0, ts_1, …``, so the answer is a condition on tile sizes (`SizeConstraints`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from indexing.maps.regions.boxes import Box, Progression, progression
from indexing.tiling.sizes.size_constraints import (
    ALWAYS,
    NEVER,
    SizeConstraints,
    all_of,
    any_of,
    condition,
)
from simplifier.atoms import Variable
from simplifier.linear import Affine, Expr, as_expr, constant
from simplifier.semiaffine import maximum, minimum
from simplifier.substitute import Substitution

ONE: Final = constant(1)


@dataclass(frozen=True, slots=True)
class TiledDim:
    """A dimension of the tiled array: tile ``index`` has the elements from ``index * size``.

    Attributes:
        variable: the dimension of the map.
        index: the variable ``tid_k``, or 0 if there is one tile.
        size: the tile size: the variable ``ts_k``, or an integer.
        limit: the number of elements of the dimension.
    """

    variable: Variable
    index: Expr
    size: Expr
    limit: int

    @property
    def start(self) -> Expr:
        """The first element of a tile."""
        return self.index * self.size

    @property
    def extent(self) -> Expr:
        """The number of elements of a tile, of which the last one of a dimension may be smaller."""
        return minimum(self.size, self.limit - self.start)

    def has_size(self, size: int) -> SizeConstraints:
        """The condition that tiles have `size` elements."""
        return condition(self.size, size, size)

    def has_at_least(self, size: int) -> SizeConstraints:
        """The condition that every tile, also the last one, has at least `size` elements."""
        if size <= 1:
            return ALWAYS
        if size >= self.limit:
            return self.has_size(size) if size == self.limit else NEVER
        last = as_expr(self.limit) % self.size
        return condition(self.size, size) & (condition(last, 0, 0) | condition(last, size))

    def divides(self) -> SizeConstraints:
        """The condition that all tiles have the same size."""
        return condition(as_expr(self.limit) % self.size, 0, 0)


class Term(NamedTuple):
    """The values ``offset + step * i`` for ``0 <= i < size``, a part of a sum.

    Attributes:
        offset: the smallest value.
        step: the distance of neighbouring values, at least 1.
        size: the number of values.
        dim: the dimension of the tiled array whose tile has these values, if it is only one.
        full: the number of values of a full tile, over tile sizes only, if it is known.
        dims: the dimensions whose last tile may have fewer values than a full one.
        most: the largest number of values, for any tile size; 0 if it is not known.
        may_be_empty: some tiles have no value; `size` is 0 for these.
    """

    offset: Expr
    step: int
    size: Expr
    dim: TiledDim | None = None
    full: Expr | None = None
    dims: tuple[TiledDim, ...] = ()
    most: int = 0
    may_be_empty: bool = False

    @classmethod
    def constant(cls, offset: int, size: int) -> Term:
        """The `size` integers from `offset`.

        >>> print(*Term.constant(4, 3)[:3])
        4 1 3
        """
        count = constant(size)
        return cls(constant(offset), 1, count, full=count, most=size)

    @staticmethod
    def tile(dim: TiledDim) -> Term:
        """The indices of a tile of a dimension."""
        return _tile(dim)

    @staticmethod
    def short_tile(dim: TiledDim) -> Term:
        """The indices of a tile; a tile beyond the dimension has none."""
        return _tile(dim)._replace(size=maximum(dim.extent, 0), may_be_empty=True)

    @staticmethod
    def part_of_tile(dim: TiledDim) -> Term:
        """The indices of a tile in the bounds of the map's dimension; some tiles have none."""
        start = maximum(dim.start, dim.variable.lower)
        stop = minimum(dim.start + dim.size, dim.limit)
        return Term(start, 1, maximum(stop - start, 0), may_be_empty=True)

    @staticmethod
    def full_tile(dim: TiledDim) -> Term:
        """The indices of a tile of a dimension, also those that exceed the dimension."""
        return _full_tile(dim)

    def is_single(self) -> SizeConstraints:
        """The condition that every tile has one value."""
        return NEVER if self.full is None else condition(self.full, 1, 1)

    def has_at_least(self, size: int) -> SizeConstraints:
        """The condition that every tile, also the last one, has at least `size` values."""
        if size <= 1:
            return ALWAYS
        if self.dim:
            return self.dim.has_at_least(size)
        return (
            NEVER
            if self.full is None
            else all_of([condition(self.full, size), *[dim.divides() for dim in self.dims]])
        )

    def scale(self, factor: int) -> Term:
        """Multiply all values by a factor other than 0."""
        if factor > 0:
            return self._replace(offset=self.offset * factor, step=self.step * factor)
        last = self.offset + (self.size - 1) * self.step
        return self._replace(offset=last * factor, step=self.step * -factor)


@lru_cache(maxsize=1 << 11)
def _tile(dim: TiledDim) -> Term:
    return Term(dim.start, 1, dim.extent, dim, dim.size, (dim,), dim.limit)


@lru_cache(maxsize=1 << 11)
def _full_tile(dim: TiledDim) -> Term:
    return Term(dim.start, 1, dim.size, dim, dim.size, (dim,), dim.limit)


Number = TypeVar("Number", int, Expr)


class TileSide(NamedTuple):
    """The values of a tile in one dimension: ``offset + stride * i`` for ``0 <= i < size``.

    Attributes:
        offset, size, stride: expressions of the tile index, and of the tile sizes before these are
            given; a size of 0 means an empty set.  In symbolic tiles the stride is 0 where a tile
            has a single value by construction, as in XLA's.
        lower, upper: the values are cut to ``[lower, upper)``; `None` where they need no cut.
    """

    offset: Expr
    size: Expr
    stride: Expr
    lower: Expr | None = None
    upper: Expr | None = None

    def substitute(self, swap: Substitution) -> TileSide:
        """Return the side with variables replaced."""
        lower, upper = [None if end is None else swap(end) for end in self[3:]]
        return TileSide(swap(self.offset), swap(self.size), swap(self.stride), lower, upper)

    def cut(self) -> TileSide:
        """Return the side within its bounds, by expressions; its stride is constant."""
        step = self.stride.constant or 1
        cut = _cut(self.offset, self.size, step, (self.lower, self.upper), minimum, maximum)
        return TileSide(*cut, as_expr(step))


def _cut(
    first: Number,
    size: Number,
    step: int,
    ends: Sequence[Number | None],
    smallest: Callable[..., Number],
    largest: Callable[..., Number],
) -> tuple[Number, Number]:
    """The first value and the number of values of a progression within its bounds."""
    lower, upper = ends
    if upper is not None:
        size = smallest(size, -((first - upper) // step))
    if lower is not None:
        skipped = largest(0, -((first - lower) // step))
        first, size = first + skipped * step, size - skipped
    return first, size


def box_at(sides: Iterable[TileSide], values: Mapping[Variable, int]) -> Box | None:
    """Return the elements of one tile; `None` without any."""
    progressions: list[Progression] = []
    for side in sides:
        first, size, stride = [expr.value(values) for expr in side[:3]]
        ends = [None if end is None else end.value(values) for end in side[3:]]
        first, size = _cut(first, size, stride or 1, ends, min, max)
        if size <= 0:
            return None
        progressions.append(progression(first, size, stride or 1))
    return Box.of(progressions)


def sum_of(terms: Sequence[Term], offset: Affine = 0) -> tuple[TileSide, SizeConstraints]:
    """Return the sums of one value of each term, and the condition that they are a progression.

    >>> from simplifier.linear import variable
    >>> d0 = TiledDim(Variable("d0", 0, 7), variable("tid_0", 0, 7), variable("ts_0", 1, 8), 8)
    >>> side, constraints = sum_of([Term.tile(d0).scale(2), Term.constant(0, 3)])
    >>> print(side.stride, constraints)
    1 always satisfied
    """
    start = sum([term.offset for term in terms], as_expr(offset))
    several = sorted(
        [t for t in terms if t.size != ONE], key=lambda t: (t.step, -_constant(t.size))
    )
    if not several:
        return TileSide(start, as_expr(1), as_expr(0)), ALWAYS
    if len(several) == 1:
        return TileSide(start, several[0].size, as_expr(several[0].step)), ALWAYS
    extent = sum([(t.size - 1) * t.step for t in several], as_expr(0))
    separate = are_separate(several)
    stride = _stride(several, 0 if separate else several[-1].step)
    if separate:
        size = as_expr(1)
        for term in several:
            size = size * term.size
    else:
        size = extent // stride + 1
        for term in several:
            if term.may_be_empty:
                size = size * minimum(term.size, 1)
    return TileSide(start, size, stride), any_of(_alternatives(several))


def _constant(size: Expr) -> int:
    return size.constant if size.is_constant else 0


def are_separate(terms: Sequence[Term]) -> bool:
    """True if each step exceeds the sum of all smaller terms: all sums are different."""
    extent = 0
    for term in terms:
        if term.step <= extent or not term.most:
            return False
        extent += term.step * (term.most - 1)
    return True


def _stride(terms: Sequence[Term], otherwise: int) -> Expr:
    """The step of the first term with more than one value."""
    stride = as_expr(otherwise)
    for term in reversed(terms):
        if term.size.is_constant or stride == constant(term.step):
            stride = as_expr(term.step)
        else:  # 1 if the term has several values, else 0
            several = minimum((term.size if term.full is None else term.full) - 1, 1)
            stride = several * term.step + (1 - several) * stride
    return stride


def _alternatives(terms: Sequence[Term]) -> Iterator[SizeConstraints]:
    """The conditions that the terms with several values are ``terms[i:j]``, and join seamlessly."""
    for i in range(len(terms)):
        below = all_of([t.is_single() for t in terms[:i]])
        if below == NEVER:
            return
        for j in range(i + 1, len(terms) + 1):
            above = all_of([t.is_single() for t in terms[j:]])
            if above != NEVER:
                yield all_of([below, _run(terms[i:j]), above])


def _run(terms: Sequence[Term]) -> SizeConstraints:
    """The condition that each term continues the sums of the terms before without a gap.

    Sums of constant terms reach ``reach`` values at distance ``step``.  At most one term of
    symbolic size counts beside them; an earlier one must have all its values.
    """
    step, reach = terms[0].step, 1
    symbolic: tuple[Term, int] | None = None
    conditions: list[SizeConstraints] = []
    for term in terms:
        ratio, left = divmod(term.step, step)
        if left:
            return NEVER
        if ratio > reach:
            if symbolic is None:
                return NEVER
            conditions.append(_reaches(symbolic, ratio - reach))
        if term.size.is_constant:
            reach += ratio * (term.size.constant - 1)
            continue
        if symbolic is not None:
            if not symbolic[0].most:
                return NEVER
            conditions.append(symbolic[0].has_at_least(symbolic[0].most))
            reach += symbolic[1] * (symbolic[0].most - 1)
            if ratio > reach:
                return NEVER
        symbolic = term, ratio
    return all_of(conditions)


def _reaches(symbolic: tuple[Term, int], missing: int) -> SizeConstraints:
    """The condition that a term, at distance `ratio`, adds at least `missing` values."""
    term, ratio = symbolic
    return term.has_at_least(-(-missing // ratio) + 1)
