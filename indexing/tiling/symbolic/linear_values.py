"""The values of a linear expression on a tile, and of its digits and quotients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from indexing.tiling.sizes.size_constraints import (
    ALWAYS,
    NEVER,
    SizeConstraints,
    all_of,
    any_of,
    condition,
)
from indexing.tiling.symbolic.digits import BaseDigit, boundaries
from indexing.tiling.symbolic.progressions import ONE, Term, TiledDim, sum_of
from simplifier.atoms import Variable
from simplifier.linear import Expr, as_expr, constant
from simplifier.semiaffine import maximum, minimum


class NotTileable(Exception):
    """No constraint on tile sizes makes the results a product of progressions."""


class Phase(NamedTuple):
    """The constraint ``base mod modulus = residue``, as interior padding has."""

    base: Expr
    modulus: int
    residue: int

    def __str__(self) -> str:
        return f"({self.base}) mod {self.modulus} = {self.residue}"


class TileSpace(Protocol):
    """The variables of a map on a tile."""

    dims: Mapping[Variable, TiledDim]
    varying: set[Variable]

    def term(self, v: Variable) -> Term:
        """The values of a variable on a tile."""

    def is_partial(self, dim: TiledDim) -> bool:
        """True if the map has a part of a dimension of the tiled array."""


class Base:
    """The values of a linear expression on a tile, of which results are digits."""

    def __init__(self, base: Expr, tile: TileSpace) -> None:
        self.base = base
        varying = tile.varying.intersection(base.variables())
        self.factors = {d: base.parts[v] for v, d in tile.dims.items() if v in varying}
        self.dims = list(self.factors)
        self.fixed = base - sum([v * base.parts[v] for v in varying], constant(0))
        exact = [tile.term(v).scale(c) for v, c in base.parts.items() if v in varying]
        self.ranges = [t for t in exact if t.dim is None and t.size != ONE]
        full = [_full(term, self.factors) for term in exact]
        self.terms = sorted([t for t in full if t.size != ONE], key=lambda t: t.step)
        self.exact, _ = sum_of(exact, self.fixed)
        self.full, self.constraints = sum_of(full, self.fixed)
        self.is_partial = any(map(tile.is_partial, self.dims))
        if self.is_partial and (len(self.dims) > 1 or self.ranges):
            raise NotTileable(f"{base} on a part of the tiled array")

    @property
    def single(self) -> SizeConstraints:
        """The condition that the tile has one value of the base."""
        return NEVER if self.ranges else all_of([dim.has_size(1) for dim in self.dims])

    @property
    def contiguous(self) -> SizeConstraints:
        """The condition that the values of the base follow each other without a gap."""
        if self.full.stride == ONE or self.full.size == ONE:
            return self.constraints
        lowest = self.terms[0]
        if lowest.step != 1 or lowest.dim is None:
            return self.single
        several = lowest.dim.has_at_least(2)
        return any_of([self.single, all_of([self.constraints, several])])

    def contiguous_or_coarse(self, place: int) -> SizeConstraints:
        """The condition that the quotients by `place` are a progression."""
        if self.is_partial:
            raise NotTileable("a quotient on a part of the tiled array")
        if self._step(place):
            return self.constraints
        return self.contiguous

    def _step(self, place: int) -> int:
        """The step of the quotients if all steps of the base are multiples of `place`."""
        stride = self.full.stride
        is_coarse = stride.is_constant and stride.constant and stride.constant % place == 0
        return stride.constant // place if is_coarse else 0

    def quotient(self, place: int) -> Term:
        """The values of ``base floordiv place``."""
        first = self.exact.offset // place
        step = self._step(place)
        if step:
            return Term(first, step, self.exact.size)
        last = (self.exact.offset + self.exact.size - 1) // place
        return Term(first, 1, last - first + 1)

    def with_phase(self, phase: Phase, lowest: int | None = None) -> Term:
        """The values of ``base floordiv modulus`` where ``base mod modulus = residue``.

        With a `lowest` quotient, smaller ones are left out.
        """
        first = -((phase.residue - self.exact.offset) // phase.modulus)
        last = (self.exact.offset + self.exact.size - 1 - phase.residue) // phase.modulus
        if lowest is None:
            return Term(first, 1, last - first + 1, may_be_empty=True)
        first = maximum(first, lowest)
        return Term(first, 1, maximum(last - first + 1, 0), may_be_empty=True)

    def digit(self, digit: BaseDigit, is_cut: bool) -> Term:
        """The values of a digit on a block that `alignment` accepts.

        If `is_cut`, they may exceed the values of the whole array: the result is cut to these.
        """
        offset = self.exact.offset // digit.place
        if digit.radix is not None:
            offset = offset % digit.radix
        full = self._digits(digit, self.full.size)
        is_full = is_cut and self._is_line and self.dims[0].limit % digit.place == 0
        size = full if is_full else self._digits(digit, self.exact.size)
        most = digit.radix or (-(-self.dims[0].limit // digit.place) if self._is_line else 0)
        return Term(offset, 1, size, full=full, dims=tuple(self.dims), most=most)

    def _digits(self, digit: BaseDigit, size: Expr) -> Expr:
        blocks = (size + (digit.place - 1)) // digit.place
        return blocks if digit.radix is None else minimum(blocks, digit.radix)

    def alignment(self, digits: Sequence[BaseDigit]) -> SizeConstraints:
        """The condition that the digits of the base are a product of progressions.

        The base has a block of values that begins at a multiple of `lower` and consists of
        multiples of `lower`, within one multiple of `upper`, two neighbouring places.  Then the
        digits below have all values, those above have one, and one digit has a part.
        """
        if self.is_partial or self.fixed.parts:
            raise NotTileable("digits on a part of the tiled array, or at an unknown place")
        places = boundaries(digits)
        alternatives = [] if self._is_line else [self.single]
        for lower, upper in zip(places, (*places[1:], None), strict=True):
            within = [self._is_multiple(self.full.size, lower)]
            if upper is None:
                within += self._starts_at(as_expr(lower))
            else:
                within.append(condition(as_expr(upper) % self.full.size, 0, 0))
                within += self._starts_at(self.full.size)
            within += self._whole_tiles(lower, upper)
            alternatives.append(all_of([self.contiguous, *within]))
        return any_of(alternatives)

    @property
    def _is_line(self) -> bool:
        """True if the base is a dimension: tiles begin at multiples of their size."""
        return list(self.factors.values()) == [1] and self.full.offset == self.dims[0].start

    def _is_multiple(self, size: Expr, divisor: int) -> SizeConstraints:
        return condition(size % divisor, 0, 0) if divisor > 1 else ALWAYS

    def _starts_at(self, divisor: Expr) -> Iterator[SizeConstraints]:
        """The conditions that the first value of every tile is a multiple of `divisor`."""
        origin = self.fixed + sum([t.offset for t in self.terms if t.dim is None], as_expr(0))
        for dim, factor in self.factors.items():
            if dim.limit > 1:
                aligned = condition((dim.size * factor) % divisor, 0, 0)
                yield aligned if aligned == ALWAYS else aligned | dim.has_size(dim.limit)
            if factor < 0:
                origin = origin + (dim.size - 1) * factor
        if origin != constant(0):
            yield condition(origin % divisor, 0, 0)

    def _whole_tiles(self, lower: int, upper: int | None) -> Iterator[SizeConstraints]:
        """The conditions that no last tile of a dimension spoils the alignment."""
        is_dimension = list(self.factors.values()) == [1] and not self.ranges
        for dim in self.dims:
            if not is_dimension or dim.limit % lower or dim.limit % (upper or 1):
                yield dim.divides()


def _full(term: Term, factors: Mapping[TiledDim, int]) -> Term:
    """The term with a full tile, also at the end of the dimension."""
    return term if term.dim is None else Term.full_tile(term.dim).scale(factors[term.dim])
