"""Results as sums of parts that share no variable."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import gcd
from typing import NamedTuple

from indexing.maps.independence import connected_variables
from indexing.tiling.symbolic.digits import digit_of
from simplifier.atoms import Atom, Variable, variables_in
from simplifier.linear import Expr


class Part(NamedTuple):
    """The summand ``factor * expr`` of result `place`; `expr` is a variable, or has floors."""

    place: int
    factor: int
    expr: Expr

    @property
    def variables(self) -> list[Variable]:
        return self.expr.variables()


def parts_of(
    results: Sequence[Expr], varying: Collection[Variable]
) -> tuple[list[Part], list[Expr]]:
    """Split each result into parts, and a rest that does not vary within a tile.

    >>> from simplifier.linear import variable
    >>> d0, d1 = variable("d0", 0, 7), variable("d1", 0, 9)
    >>> parts, rest = parts_of([d0 * 6 + d1 // 2 * 3 + 5], [*d0.parts, *d1.parts])
    >>> for part in parts:
    ...     print(part.factor, part.expr)
    6 d0
    3 d1 floordiv 2
    >>> print(*rest)
    5
    """
    parts: list[Part] = []
    rest: list[Expr] = []
    for place, result in enumerate(results):
        left = result
        for own in _connected_terms(result, varying):
            factor, expr = _factor_terms(own, left.constant)
            left -= expr * factor
            parts.append(Part(place, factor, expr))
        rest.append(left)
    return parts, rest


def _connected_terms(result: Expr, varying: Collection[Variable]) -> Iterator[dict[Atom, int]]:
    """The terms of a result, in groups that share no variable."""
    atoms = {atom: _variables(atom).intersection(varying) for atom in result.parts}
    for group in connected_variables(set[Variable]().union(*atoms.values()), list(atoms.values())):
        yield {a: c for a, c in result.parts.items() if atoms[a] & group}


def _variables(atom: Atom) -> set[Variable]:
    return {atom} if isinstance(atom, Variable) else variables_in(atom.operands)


def _factor_terms(own: dict[Atom, int], constant: int) -> tuple[int, Expr]:
    """Terms, perhaps with the constant, as a multiple of a variable or a digit."""
    if len(own) == 1:
        ((atom, factor),) = own.items()
        if isinstance(atom, Variable):
            return factor, atom.as_expr()
    common = gcd(*own.values())
    for kept in (constant, 0):
        for factor in () if kept % common else (common, -common):
            expr = Expr({a: c // factor for a, c in own.items()}, kept // factor)
            if digit_of(expr) is not None:
                return factor, expr
    return 1, Expr(own, 0)


def groups_of(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Parts that share variables, in order."""
    sets = [set(part.variables) for part in parts]
    for group in connected_variables(set[Variable]().union(*sets), sets):
        yield [part for part, own in zip(parts, sets, strict=True) if own & group]
