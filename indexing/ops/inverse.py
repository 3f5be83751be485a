"""Inverses of indexing maps: by substitution where possible, otherwise by ISL.

A result ``k·x + e`` is solved for x if no other result contains the variable x. A result
``floor(N / n)`` is ``N / n`` if a constraint restricts N to multiples of n. Dimensions without such
an equation become range variables. All other maps are inverted exactly as relations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hlo.shapes.shape import AnyShape, Shape
from indexing import methods
from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.spaces import range_names
from simplifier.atoms import Floor, Variable, inside_atoms
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.substitute import Substitution


def inverses(
    maps: IndexingMap | tuple[IndexingMap, ...] | Unknown, operand: AnyShape
) -> tuple[IndexingMap, ...] | Unknown:
    """Return the inverses of `maps`: from the elements of an operand to the points that read them.

    If a map has no inverse by substitution, all maps are inverted by ISL.

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
    return methods.inverse(maps)


def solve(read: IndexingMap, operand: Shape) -> IndexingMap | None:
    """Return the inverse by substitution; None if substitution does not give a simple formula."""
    equations = _equations(read)
    if equations is None:
        return None
    own = {equation.variable for equation in equations}
    kept = [v for v in (*read.dims, *read.ranges) if v not in own]
    free = [v.renamed(name) for v, name in zip(kept, range_names(kept), strict=True)]
    values = {old: new.as_expr() for old, new in zip(kept, free, strict=True)}
    rename = Substitution(dict(values))
    indices, constraints = [], []
    for index, equation in zip(dims(operand), equations, strict=True):
        refined, value, where = equation.solve(index, rename)
        indices.append(refined)
        constraints += where
        if equation.variable:
            values[equation.variable] = value
    swap = Substitution(values)
    constraints += [Constraint(swap(c.expr), c.lower, c.upper) for c in read.constraints]
    solution = IndexingMap.of(
        indices,
        [values[d] for d in read.dims],
        ranges=free,
        runtime=[replace(rt, index=tuple(map(swap, rt.index))) for rt in read.runtime],
        constraints=[c for c in constraints if not c.is_true],
        grade=read.grade,
    )
    return solution.simplify() if _has_fixed_range(solution) else solution


def _has_fixed_range(solution: IndexingMap) -> bool:
    """Return True if an equation among the constraints determines a range variable."""
    equations = [c.expr.parts for c in solution.constraints if c.lower == c.upper]
    return any(abs(parts.get(s, 0)) == 1 for parts in equations for s in solution.ranges)


@dataclass(frozen=True, slots=True)
class _Equation:
    """``divisor · index = factor · variable + rest``; without variable, ``index = rest``."""

    variable: Variable | None
    factor: int
    rest: Expr
    divisor: int

    def solve(
        self, index: Variable, rename: Substitution
    ) -> tuple[Variable, Expr, list[Constraint]]:
        """The index with refined bounds, the value of the variable, and the conditions for it."""
        rest, x = rename(self.rest), self.variable
        if x is None:
            if rest.is_constant:
                return Variable(index.name, rest.constant, rest.constant), rest, []
            return index, rest, [Constraint(index - rest, 0, 0)]
        where = []
        by = abs(self.factor)
        if rest.is_constant:
            ends = sorted([self.factor * bound + rest.constant for bound in x.bounds])
            low, high = max(0, -(-ends[0] // self.divisor)), ends[1] // self.divisor
            index = Variable(index.name, low, min(high, index.upper))
        value = (index * self.divisor - rest) * (1 if self.factor > 0 else -1)
        if not rest.is_constant:
            where.append(Constraint(value, x.lower * by, x.upper * by))
        if by > 1:
            where.append(Constraint(value % by, 0, 0))
        return index, value // by, where


def _equations(read: IndexingMap) -> list[_Equation] | None:
    """One equation for each result; None if substitution cannot solve one of them."""
    results = [_without_divisor(result, read.constraints) for result in read.results]
    count = Counter(v for scaled, _ in results for v in scaled.variables())
    inner = {*read.dims, *read.ranges}
    equations = []
    for scaled, divisor in results:
        mine = [v for v in _linear(scaled) if count[v] == 1 and v in inner]
        if not mine:
            if divisor != 1 or not inner.isdisjoint(scaled.variables()):
                return None
            equations.append(_Equation(None, 0, scaled, 1))
            continue
        x = min(mine, key=read.variables.index)
        factor = scaled.parts[x]
        rest = scaled - x * factor
        others = inner.intersection(rest.variables())
        if rest.divides or (abs(factor) > 1 and not others.isdisjoint(read.dims)):
            return None
        equations.append(_Equation(x, factor, rest, divisor))
    return equations


def _without_divisor(result: Expr, constraints: Sequence[Constraint]) -> tuple[Expr, int]:
    """``(N, n)`` for a result ``floor(N / n)`` with N a multiple of n; else ``(result, 1)``."""
    for atom, coefficient in result.parts.items():
        if isinstance(atom, Floor) and coefficient == 1:
            n, inside = atom.divisor, atom.operands[0]
            if any(c.expr == inside % n and c.bounds == (0, 0) for c in constraints):
                return inside + (result - inside // n) * n, n
    return result, 1


def _linear(expr: Expr) -> Iterator[Variable]:
    """The variables that occur in an expression only as linear terms."""
    inside = inside_atoms(expr)
    for atom in expr.parts:
        if isinstance(atom, Variable) and atom not in inside:
            yield atom
