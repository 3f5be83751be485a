"""Pickling of expressions: deep ones as a list of atoms, because pickle itself recurses."""

from __future__ import annotations

from typing import Any, TypeAlias

from simplifier.atoms import Atom, Floor, Variable
from simplifier.linear import Expr
from simplifier.semiaffine import SemiAffine
from simplifier.shared import atoms_in_order, is_deep
from simplifier.sums import make

FlatSum: TypeAlias = tuple[tuple[tuple[int, int], ...], int]
"""Pairs of the number of an atom and its coefficient; the constant."""


def constructor_call(expr: Expr) -> tuple[object, tuple[Any, ...]]:
    """Return the constructor call that pickles `expr`, as `object.__reduce__`."""
    if not is_deep(expr):
        return make, (expr.terms, expr.constant)
    numbers: dict[Atom, int] = {}
    atoms: list[Variable | tuple[Any, ...]] = []

    def flat(part: Expr) -> FlatSum:
        return tuple([(numbers[atom], c) for atom, c in part.parts.items()]), part.constant

    for atom in atoms_in_order([expr]):
        numbers[atom] = len(atoms)
        if isinstance(atom, Variable):
            atoms.append(atom)
        elif isinstance(atom, Floor):
            atoms.append((Floor, (flat(atom.numerator),), atom.divisor, atom.bounds))
        else:
            assert isinstance(atom, SemiAffine)
            atoms.append((SemiAffine, tuple(map(flat, atom.operands)), atom.operator))
    return _restore_expr, (tuple(atoms), flat(expr))


def _restore_expr(flat_atoms: tuple[Variable | tuple[Any, ...], ...], whole: FlatSum) -> Expr:
    atoms: list[Atom] = []

    def total(part: FlatSum) -> Expr:
        terms, constant = part
        return make([(atoms[number], c) for number, c in terms], constant)

    for flat in flat_atoms:
        if isinstance(flat, Variable):
            atoms.append(flat)
            continue
        kind, operands, *rest = flat
        if kind is Floor:
            atoms.append(Floor(total(operands[0]), *rest))
        else:
            atoms.append(SemiAffine(rest[0], tuple(map(total, operands))))
    return total(whole)
