"""The inverse of an op's maps, as most ops have it: by substitution, else by ISL.

A result that is ``k·x + e``, where no other result has the variable x, is solved for x. A result
``floor(N / n)`` is ``N / n`` where a constraint holds N to multiples of n. Dimensions that nothing
is solved for become range variables. Other maps are inverted as relations, exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hlo.shapes.shape import AnyShape, Shape
from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.relation import inverse
from simplifier.atoms import Floor, Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.substitute import Substitution


def inverses(
    maps: IndexingMap | tuple[IndexingMap, ...] | Unknown, operand: AnyShape
) -> tuple[IndexingMap, ...] | Unknown:
    """The maps from the elements of an operand to the points that `maps` lead from.

    >>> odd = IndexingMap.over((3,), lambda d: [d[0] * 2 + 1])
    >>> print(*inverses(odd, Shape("f32", (7,))))
    (d0) -> ((d0 - 1) floordiv 2), domain: d0 in [1, 5], (d0 + 1) mod 2 in [0, 0]
    """
    maps = (maps,) if isinstance(maps, IndexingMap) else maps
    if isinstance(maps, Unknown) or not isinstance(operand, Shape):
        return maps
    solved = [solve(m, operand) for m in maps]
    if all(solved):
        return tuple([m for m in solved if m and not any(d.is_empty for d in m.dims)])
    return inverse(maps)


def solve(read: IndexingMap, operand: Shape) -> IndexingMap | None:
    """The inverse by substitution; None if it needs more, or would be no simple formula."""
    equations = _equations(read)
    if equations is None:
        return None
    own = {equation.variable for equation in equations}
    kept = [v for v in (*read.dims, *read.ranges) if v not in own]
    free = [Variable(f"s{k}", *v.bounds) for k, v in enumerate(kept)]
    values = {old: new.as_expr() for old, new in zip(kept, free, strict=True)}
    rename = Substitution(dict(values))
    places, constraints = [], []
    for place, equation in zip(dims(operand), equations, strict=True):
        place, value, where = equation.solved(place, rename)
        places.append(place)
        constraints += where
        if equation.variable:
            values[equation.variable] = value
    swap = Substitution(values)
    constraints += [Constraint(swap(c.expr), c.lower, c.upper) for c in read.constraints]
    found = IndexingMap.of(
        places,
        [values[d] for d in read.dims],
        ranges=free,
        runtime=[replace(rt, index=tuple(map(swap, rt.index))) for rt in read.runtime],
        constraints=[c for c in constraints if not c.is_true],
        grade=read.grade,
    )
    return found.simplify() if _has_fixed_range(found) else found


def _has_fixed_range(found: IndexingMap) -> bool:
    """A constraint is an equation that gives a range variable its value."""
    equations = [c.expr.parts for c in found.constraints if c.lower == c.upper]
    return any(abs(parts.get(s, 0)) == 1 for parts in equations for s in found.ranges)


@dataclass(frozen=True, slots=True)
class _Equation:
    """``divisor · place = factor · variable + rest``; without variable, ``place = rest``."""

    variable: Variable | None
    factor: int
    rest: Expr
    divisor: int

    def solved(
        self, place: Variable, rename: Substitution
    ) -> tuple[Variable, Expr, list[Constraint]]:
        """The place with its bounds, the value of the variable, and the conditions for it."""
        rest, x = rename(self.rest), self.variable
        if x is None:
            if rest.is_constant:
                return Variable(place.name, rest.constant, rest.constant), rest, []
            return place, rest, [Constraint(place - rest, 0, 0)]
        where = []
        by = abs(self.factor)
        if rest.is_constant:
            ends = sorted([self.factor * bound + rest.constant for bound in x.bounds])
            low, high = max(0, -(-ends[0] // self.divisor)), ends[1] // self.divisor
            place = Variable(place.name, low, min(high, place.upper))
        value = (place * self.divisor - rest) * (1 if self.factor > 0 else -1)
        if not rest.is_constant:
            where.append(Constraint(value, x.lower * by, x.upper * by))
        if by > 1:
            where.append(Constraint(value % by, 0, 0))
        return place, value // by, where


def _equations(read: IndexingMap) -> list[_Equation] | None:
    """One equation for each result; None if one has no variable of its own, and is no constant."""
    results = [_undivided(result, read.constraints) for result in read.results]
    count = Counter(v for scaled, _ in results for v in scaled.variables())
    inner = {*read.dims, *read.ranges}
    found = []
    for scaled, divisor in results:
        mine = [v for v in _linear(scaled) if count[v] == 1 and v in inner]
        if not mine:
            if divisor != 1 or not inner.isdisjoint(scaled.variables()):
                return None
            found.append(_Equation(None, 0, scaled, 1))
            continue
        x = min(mine, key=read.variables.index)
        factor = scaled.parts[x]
        rest = scaled - x * factor
        others = inner.intersection(rest.variables())
        if rest.divides or (abs(factor) > 1 and not others.isdisjoint(read.dims)):
            return None
        found.append(_Equation(x, factor, rest, divisor))
    return found


def _undivided(result: Expr, constraints: Sequence[Constraint]) -> tuple[Expr, int]:
    """``(N, n)`` of a result ``floor(N / n)`` whose N is a multiple of n; else ``(result, 1)``."""
    for atom, coefficient in result.parts.items():
        if isinstance(atom, Floor) and coefficient == 1:
            n, inside = atom.divisor, atom.operands[0]
            if any(c.expr == inside % n and c.bounds == (0, 0) for c in constraints):
                return inside + (result - inside // n) * n, n
    return result, 1


def _linear(expr: Expr) -> Iterator[Variable]:
    """The variables that are terms of an expression, and in no other of its atoms."""
    atoms = [atom for atom in expr.parts if not isinstance(atom, Variable)]
    inside = {v for atom in atoms for operand in atom.operands for v in operand.variables()}
    for atom in expr.parts:
        if isinstance(atom, Variable) and atom not in inside:
            yield atom
