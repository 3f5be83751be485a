"""Relations as matrices of constraints, which isl reads twenty times as fast as formulas.

A row is a constraint, a column a variable.  ``q = floor(n / d)`` is a column of its own, which is
existentially quantified, with the constraint ``0 <= n - d·q <= d - 1``.

Source: isl manual, "Input and Output", "Extended PolyLib format".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from simplifier.atoms import Atom, Floor
from simplifier.exact.encode import Relation, limited_divisions
from simplifier.shared import atoms_in_order

Column: TypeAlias = Atom | int
"""A variable or division; a number is that of a result."""
Term: TypeAlias = tuple[Column, int]


def matrix(relation: Relation, outputs: Sequence[Column], inputs: Sequence[Column] = ()) -> str:
    """Return ``{ inputs -> outputs }`` in PolyLib's format; other columns are quantified.

    Raises:
        BudgetExhaustedError: the relation has too many divisions.

    >>> from simplifier.atoms import Variable
    >>> d0 = Variable("d0", 0, 9)
    >>> print(matrix(Relation((d0,), (), (d0 // 4 + 1,), ()), outputs=[0], inputs=[d0]))
    5 5 1 1 1 0
    0 -1 0 1 1
    1 0 1 0 0
    1 0 -1 0 9
    1 0 1 -4 0
    1 0 -1 4 3
    """
    kept = (*outputs, *inputs)
    results = relation.results if any(isinstance(column, int) for column in kept) else ()
    variables = (*relation.inputs, *relation.hidden)
    atoms = atoms_in_order([*results, *[constraint.expr for constraint in relation.constraints]])
    floors = [atom for atom in limited_divisions(atoms) if isinstance(atom, Floor)]
    columns = dict.fromkeys([*kept, *variables, *range(len(results)), *floors])
    position = {column: k for k, column in enumerate(columns, 1)}
    width = len(position) + 2
    rows: list[str] = []

    def bound(terms: Iterable[Term], constant: int, lower: int, upper: int) -> None:
        """Add the rows of ``lower <= sum of terms + constant <= upper``."""
        row = [0] * width
        for column, coefficient in terms:
            row[position[column]] = coefficient
        row[-1] = constant - lower
        if lower == upper:
            rows.append(" ".join(map(str, row)))
            return
        row[0] = 1
        rows.append(" ".join(map(str, row)))
        row = [-number for number in row]
        row[0], row[-1] = 1, upper - constant
        rows.append(" ".join(map(str, row)))

    for k, result in enumerate(results):
        bound([*result.terms, (k, -1)], result.constant, 0, 0)
    for v in variables:
        bound([(v, 1)], 0, v.lower, v.upper)
    for constraint in relation.constraints:
        bound(constraint.expr.terms, constraint.expr.constant, constraint.lower, constraint.upper)
    for floor in floors:
        n, d = floor.numerator, floor.divisor
        bound([*n.terms, (floor, -d)], n.constant, 0, d - 1)
    quantified = len(position) - len(kept)
    return "\n".join([f"{len(rows)} {width} {len(outputs)} {len(inputs)} {quantified} 0", *rows])


def union(matrices: Sequence[str]) -> str:
    """Return the union of sets or maps in PolyLib's format."""
    return "\n".join([str(len(matrices)), *matrices])
