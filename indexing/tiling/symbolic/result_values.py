"""The values of each result of a map on one tile of its dimensions, as progressions.

A tile of the map's domain has the points ``d_k = tid_k * ts_k + e_k`` with ``0 <= e_k < ts_k``.
Each result is a sum of parts that share no variable.  A part is a variable with a factor, or a
digit of a linear expression (`indexing.tiling.symbolic.digits`).  Parts of different results that
share variables must be digits of one base, or have single values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from indexing.maps.indexing_map import IndexingMap
from indexing.tiling.sizes.size_constraints import (
    ALWAYS,
    SizeConstraints,
    all_of,
)
from indexing.tiling.symbolic.digits import BaseDigit, common_base, digit_of
from indexing.tiling.symbolic.domain_conditions import windows, with_conditions_in_results
from indexing.tiling.symbolic.linear_values import Base, NotTileable, Phase
from indexing.tiling.symbolic.parts import Part, groups_of, parts_of
from indexing.tiling.symbolic.progressions import (
    Term,
    TiledDim,
    TileSide,
    are_separate,
    sum_of,
)
from simplifier.atoms import Variable, variables_in
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr
from simplifier.semiaffine import maximum, minimum
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown


class TileSides(NamedTuple):
    """One `TileSide` for each result: the values of a tile are their product, under constraints."""

    sides: tuple[TileSide, ...]
    constraints: SizeConstraints


@dataclass(slots=True)
class _Results:
    """The terms, the rest and the bounds of each result, as they are found."""

    terms: list[list[Term]]
    rest: list[Expr]
    lower: list[list[Expr]]
    upper: list[list[Expr]]
    constraints: list[SizeConstraints] = field(default_factory=list)


def sides_of(m: IndexingMap, tiled: Sequence[TiledDim], sizes: Sequence[int] | None) -> TileSides:
    """Return the values of each result of a map on one tile.

    Args:
        tiled: the tile of each dimension of the map.
        sizes: the sizes of the tiled array, for given tile sizes: the sides are exact.  `None` for
            symbolic tile sizes: dimensions that stand alone in a result have full tiles, also at
            the end, and the result is cut.
    Raises:
        NotTileable: no constraint on tile sizes makes the values a product of progressions.
    """
    return _Tile(m, tiled, sizes).sides()


class _Tile:
    """The computation of `sides_of`."""

    def __init__(
        self, m: IndexingMap, tiled: Sequence[TiledDim], sizes: Sequence[int] | None
    ) -> None:
        self.map = m = with_conditions_in_results(m)
        self.sizes = sizes
        self.dims: Mapping[Variable, TiledDim] = {
            d: replace(each, variable=d) for d, each in zip(m.dims, tiled, strict=True)
        }
        self.windows = windows(m, self.dims)
        self.ranges = set(m.ranges)
        self.varying = {*m.dims, *m.ranges}
        count = len(m.results)
        self.results = _Results(
            [[] for _ in range(count)],
            list(m.results),
            [[] for _ in range(count)],
            [[] for _ in range(count)],
        )

    def is_short(self, dim: TiledDim) -> bool:
        """True if the map has fewer elements in a dimension than the tiled array."""
        place = self.map.dims.index(dim.variable)
        return self.sizes is not None and dim.limit < self.sizes[place]

    def is_partial(self, dim: TiledDim) -> bool:
        """True if the map has a part of a dimension of the tiled array."""
        return dim.variable.lower > 0 or self.is_short(dim)

    def sides(self) -> TileSides:
        self._require_uniform_runtime_variables()
        phases, bounds = self._split_constraints()
        parts, self.results.rest = parts_of(self.map.results, self.varying)
        self._require_used(parts)
        for group in groups_of(parts):
            own = set[Variable]().union(*[part.variables for part in group])
            inside = [phase for phase in phases if own.issuperset(phase.base.variables())]
            self._add_group(group, inside)
            phases = [phase for phase in phases if phase not in inside]
        if phases:
            raise NotTileable(f"{phases[0]} ties several parts of results")
        for constraint in bounds:
            self._cut_result(constraint)
        sides = tuple([self._side(k) for k in range(len(self.map.results))])
        return TileSides(sides, all_of(self.results.constraints))

    # ------------------------------------------------------------ what must hold first

    def _require_uniform_runtime_variables(self) -> None:
        """Dimensions that an index of a runtime variable mentions must have tiles of size 1."""
        used = set(variables_in(self.map.results))
        for rt in self.map.runtime:
            if rt.variable not in used:
                continue
            inside = variables_in(rt.index)
            for v in self.map.ranges:
                if v in inside and v.lower < v.upper:
                    raise NotTileable(
                        f"{rt.name} has another value for each {v.name} in "
                        f"[{v.lower}, {v.upper}]: the windows that it starts are not one box"
                    )
            for v in self.map.dims:
                if v in inside:
                    label = f"{rt.name} has another value for each {v.name}"
                    self._require(self.dims[v].has_size(1), label)

    def _require(self, constraints: SizeConstraints, expression: object) -> None:
        if constraints != ALWAYS:
            self.results.constraints.append(constraints.with_source("", str(expression)))

    def _require_used(self, parts: Iterable[Part]) -> None:
        """A dimension without influence on results must not restrict the domain."""
        used = {v for part in parts for v in part.variables}
        for d in self.map.dims:
            if self.is_partial(self.dims[d]) and d not in used:
                raise NotTileable(
                    f"only tiles with {d.name} in [{d.lower}, {d.upper}] read an element"
                )

    def _split_constraints(self) -> tuple[list[Phase], list[Constraint]]:
        phases, bounds = [], []
        tied = [window.constraint for window in self.windows.values()]
        for c in self.map.constraints:
            if c in tied:
                continue
            digit = digit_of(c.expr)
            if digit and digit.radix and digit.place == 1 and c.lower == c.upper:
                phases.append(Phase(digit.base, digit.radix, c.lower))
            else:
                bounds.append(c)
        return phases, bounds

    # ------------------------------------------------------------ groups of parts

    def _add_group(self, group: Sequence[Part], phases: Sequence[Phase]) -> None:
        """Add the terms of parts that share variables."""
        if len(group) == 1 and not phases and group[0].expr.as_variable is not None:
            part = group[0]
            self._add(part, self.term(group[0].variables[0]))
            return
        digits = [digit for part in group if (digit := digit_of(part.expr)) is not None]
        base = common_base(digits) if len(digits) == len(group) else None
        if base is None or (phases and not self._has_phase(base, digits, phases)):
            self._add_single_points(group, phases)
            return
        values = Base(base, self)
        text = ", ".join([str(part.expr) for part in group])
        if phases:
            self._add_phase(group[0], values, phases[0])
        elif len(digits) == 1 and digits[0].radix is None:
            self._require(values.contiguous_or_coarse(digits[0].place), text)
            self._add(group[0], values.quotient(digits[0].place))
        else:
            self._require(values.alignment(digits), text)
            for part, digit in zip(group, digits, strict=True):
                self._add(part, values.digit(digit, self._is_alone(part)))

    def _add_phase(self, part: Part, values: Base, phase: Phase) -> None:
        """Add the quotient by the modulus of a phase."""
        shift = values.base.constant - phase.base.constant
        residue = (phase.residue + shift) % phase.modulus
        own = Phase(values.base, phase.modulus, residue)
        self._require(values.contiguous, part.expr)
        lowest = self._lowest_quotient(own)
        if lowest is not None and self._is_result(part):  # the result is cut instead
            self.results.lower[part.place].append(self.results.rest[part.place] + lowest)
            lowest = None
        self._add(part, values.with_phase(own, lowest))

    def _lowest_quotient(self, phase: Phase) -> int | None:
        """The lowest quotient by a phase's modulus, if its dimension does not start at 0."""
        if not any(v in self.dims and v.lower > 0 for v in phase.base.variables()):
            return None
        v = _shifted_variable(phase.base)
        if v is None:
            raise NotTileable(f"{phase} on a part of the tiled array")
        low = phase.base.constant + v.lower
        return -(-(low - phase.residue) // phase.modulus)

    def _is_result(self, part: Part) -> bool:
        """True if a part is its result, but for a constant."""
        return part.factor == 1 and self.map.results[part.place].parts == part.expr.parts

    def _is_alone(self, part: Part) -> bool:
        """True if a part is its result, but for a constant, and tile sizes are symbolic."""
        return self.sizes is None and self._is_result(part)

    def _has_phase(self, base: Expr, digits: Sequence[BaseDigit], phases: Sequence[Phase]) -> bool:
        """True if the only digit is the quotient by the modulus of the only phase."""
        if len(phases) > 1 or len(digits) > 1 or digits[0].radix is not None:
            return False
        (phase,) = phases
        difference = (base - phase.base).parts.values()
        return digits[0].place == phase.modulus and not any(c % phase.modulus for c in difference)

    def _add_single_points(self, group: Sequence[Part], phases: Sequence[Phase]) -> None:
        """Add parts whose shared variables must have single values."""
        counts: dict[Variable, int] = {}
        simple = all(part.expr.as_variable is not None for part in group)
        for part in group:
            for v in part.variables:
                counts[v] = counts.get(v, 0) + (1 if simple else 2)
        together = " and ".join(dict.fromkeys([str(part.expr) for part in group]))
        if phases:
            raise NotTileable(f"{phases[0]} ties the values of {together}")
        for v, count in counts.items():
            if count < 2:
                continue
            if v in self.ranges and v.lower < v.upper:
                raise NotTileable(f"{v.name} in [{v.lower}, {v.upper}] ties {together}")
            if v in self.dims:
                self._require(self.dims[v].has_size(1), together)
        for part in group:
            if simple:
                self._add(part, self.term(part.variables[0]))
            else:
                self._add(part, self._point(part))

    def _point(self, part: Part) -> Term:
        """The single value of a part on a tile; none if its point is not in the domain."""
        point = Term.constant(0, 1)._replace(offset=self._at_start(part.expr), most=0)
        partial = [d for v in part.variables if (d := self.dims.get(v)) and self.is_partial(d)]
        for dim in partial:
            after, before = dim.start - dim.variable.lower + 1, dim.limit - dim.start
            inside = [maximum(minimum(distance, 1), 0) for distance in (after, before)]
            point = point._replace(size=point.size * inside[0] * inside[1], may_be_empty=True)
        return point

    def _at_start(self, expr: Expr) -> Expr:
        starts = {v: d.start for v, d in self.dims.items()}
        first = {v: as_expr(v.lower) for v in self.ranges}
        return Substitution({**starts, **first})(expr)

    def _add(self, part: Part, term: Term) -> None:
        window = self.windows.get(part.variables[0])
        if window is not None:
            self.results.lower[part.place].append(as_expr(window.lower))
            self.results.upper[part.place].append(as_expr(window.upper))
        self.results.terms[part.place].append(term.scale(part.factor))

    def term(self, v: Variable) -> Term:
        """The values of a variable on a tile."""
        if v in self.windows:
            return self.windows[v].term
        if v in self.ranges:
            return Term.constant(v.lower, v.size)
        dim = self.dims[v]
        return Term.short_tile(dim) if self.is_short(dim) else Term.tile(dim)

    # ------------------------------------------------------------ bounds of results

    def _cut_result(self, constraint: Constraint) -> None:
        """Apply a constraint that bounds a result."""
        for k, result in enumerate(self.map.results):
            factor = _ratio(result, constraint.expr)
            if not factor:
                continue
            shift = result.constant - factor * constraint.expr.constant
            ends = sorted([factor * constraint.lower + shift, factor * constraint.upper + shift])
            self.results.lower[k].append(as_expr(ends[0]))
            self.results.upper[k].append(as_expr(ends[1] + 1))
            return
        raise NotTileable(f"{constraint} ties several results, or bounds a part of one")

    def _side(self, k: int) -> TileSide:
        terms = self.results.terms[k]
        tiles = [t for t in terms if t.dim is not None]
        rest = self.results.rest[k]  # it does not vary within a tile
        lower, upper = self.results.lower[k], self.results.upper[k]
        alone = len(tiles) == 1 and all(t.dim or t.size.is_constant for t in terms)
        if alone:
            terms = self._cut_alone(k, terms, rest)
        elif self.sizes is None:
            terms = self._cut_largest(k, terms, rest)
        if not alone and any(t.dim and t.dim.variable.lower > 0 for t in terms):
            raise NotTileable(f"{self.map.results[k]} on a part of the tiled array")
        side, constraints = sum_of(terms, rest)
        self._require(constraints, self.map.results[k])
        return side._replace(lower=_of_all(maximum, lower), upper=_of_all(minimum, upper))

    def _cut_alone(self, k: int, terms: list[Term], rest: Expr) -> list[Term]:
        """Terms with a full tile of the only dimension; the result is cut to its bounds."""
        (dim,) = [t.dim for t in terms if t.dim is not None]
        if self.sizes is not None and not self.is_partial(dim):
            return terms  # the extents are exact
        factor = self.map.results[k].parts[dim.variable]
        others = [t for t in terms if t.dim is None]
        if others and (self.sizes is not None or dim.variable.lower > 0):
            return [*others, Term.part_of_tile(dim).scale(factor)]
        full = Term.full_tile(dim).scale(factor)
        ends = sorted([factor * dim.variable.lower, factor * dim.variable.upper])
        low = sum([t.offset for t in others], rest)
        reach = sum([t.step * (t.size.constant - 1) for t in others])
        self.results.lower[k].append(low + ends[0])
        self.results.upper[k].append(low + ends[1] + reach + 1)
        return [*others, full]

    def _cut_largest(self, k: int, terms: list[Term], rest: Expr) -> list[Term]:
        """Terms with a full tile of the dimension of the largest step, cut by the result's bounds.

        If sums of smaller terms do not reach that step, what exceeds the dimension exceeds the
        bounds.
        """
        ordered = sorted(terms, key=lambda t: t.step)
        largest = ordered[-1] if ordered else None
        if largest is None or largest.dim is None or not are_separate(ordered) or rest.parts:
            return terms
        factor = self.map.results[k].parts[largest.dim.variable]
        return [*ordered[:-1], Term.full_tile(largest.dim).scale(factor)]


def _of_all(extremum: Callable[..., Expr], bounds: Sequence[Expr]) -> Expr | None:
    return extremum(*bounds) if len(bounds) > 1 else bounds[0] if bounds else None


def _ratio(result: Expr, expr: Expr) -> int:
    """Return `a` if ``result = a * expr`` but for a constant, else 0."""
    if result.parts.keys() != expr.parts.keys() or not expr.parts:
        return 0
    factors = {divmod(c, expr.parts[a]) for a, c in result.parts.items()}
    if len(factors) > 1:
        return 0
    ((factor, left),) = factors
    return 0 if left else factor


def _shifted_variable(expr: Expr) -> Variable | None:
    if len(expr.parts) != 1:
        return None
    ((atom, factor),) = expr.parts.items()
    return atom if factor == 1 and isinstance(atom, Variable) else None


def sides_or_unknown(
    m: IndexingMap, tiled: Sequence[TiledDim], sizes: Sequence[int] | None
) -> TileSides | Unknown:
    """Return `sides_of`, or `Unknown` with the reason why there are none."""
    if m.is_known_empty:
        return Unknown("the map reads nothing")
    try:
        return sides_of(m, tiled, sizes)
    except NotTileable as error:
        return Unknown(str(error))
