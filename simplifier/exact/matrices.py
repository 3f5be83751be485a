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
    constraints = ConstraintMatrix(outputs, inputs, [*variables, *range(len(results)), *floors])
    for k, result in enumerate(results):
        constraints.bound([*result.terms, (k, -1)], result.constant, 0, 0)
    for v in variables:
        constraints.bound([(v, 1)], 0, v.lower, v.upper)
    for constraint in relation.constraints:
        expr = constraint.expr
        constraints.bound(expr.terms, expr.constant, constraint.lower, constraint.upper)
    for floor in floors:
        n, d = floor.numerator, floor.divisor
        constraints.bound([*n.terms, (floor, -d)], n.constant, 0, d - 1)
    return constraints.text()


class ConstraintMatrix:
    """The rows of ``{ inputs -> outputs }``; all other columns are quantified."""

    def __init__(
        self, outputs: Iterable[Column], inputs: Iterable[Column], columns: Iterable[Column]
    ) -> None:
        self._outputs, self._inputs = tuple(outputs), tuple(inputs)
        every = dict.fromkeys([*self._outputs, *self._inputs, *columns])
        self._position = {column: k for k, column in enumerate(every, 1)}
        self._rows: list[str] = []

    def bound(self, terms: Iterable[Term], constant: int, lower: int, upper: int | None) -> None:
        """Add ``lower <= sum of terms + constant <= upper``; `None` is no upper bound."""
        row = [0] * (len(self._position) + 2)
        for column, coefficient in terms:
            row[self._position[column]] = coefficient
        row[-1] = constant - lower
        row[0] = int(lower != upper)
        self._rows.append(" ".join(map(str, row)))
        if upper is None or lower == upper:
            return
        row = [-number for number in row]
        row[0], row[-1] = 1, upper - constant
        self._rows.append(" ".join(map(str, row)))

    def text(self) -> str:
        """Return the matrix in PolyLib's format."""
        outputs, inputs = len(self._outputs), len(self._inputs)
        quantified = len(self._position) - outputs - inputs
        width = len(self._position) + 2
        header = f"{len(self._rows)} {width} {outputs} {inputs} {quantified} 0"
        return "\n".join([header, *self._rows])


def union(matrices: Sequence[str]) -> str:
    """Return the union of sets or maps in PolyLib's format."""
    return "\n".join([str(len(matrices)), *matrices])
