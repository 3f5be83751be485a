"""Walks over expressions with shared subexpressions: each distinct atom is visited once.

Composition shares subexpressions, so the text of an expression can be exponentially larger than
its distinct atoms.  These walks are linear in the atoms.  They do not recurse, so depth has no
limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from simplifier.unique import MAX_DEPTH, Atom, OrderKey

Expr: TypeAlias = Any  # `simplifier.linear.Expr`, which is written on top of this module

MAX_TREE: Final = 64
"""Maximum number of atoms in the text of an expression that is walked by plain recursion."""

MAX_ORDERED: Final = 1 << 20
"""Maximum number of atoms in the text of a sum whose terms are ordered by their nested keys."""


def ordered_terms(expr: Expr) -> tuple[tuple[Atom, int], ...]:
    """Return the terms of `expr` in an order that is the same in every process."""
    terms = list(expr.parts.items())
    if len(terms) > 1:
        terms.sort(key=_key if expr.weight < MAX_ORDERED else _coarse_key)
    return tuple(terms)


def _key(term: tuple[Atom, int]) -> OrderKey:
    return term[0].key


def _coarse_key(term: tuple[Atom, int]) -> tuple[int, int]:
    """A sort key for the terms of a sum whose nested keys take long to compare."""
    return term[0].weight, term[1]


def is_deep(expr: Expr) -> bool:
    """Return True if `expr` is too deep for recursion (`unique.MAX_DEPTH`)."""
    for atom in expr.parts:  # noqa: SIM110  # a generator takes three times as long
        if atom.depth > MAX_DEPTH:
            return True
    return False


def variables_of(expr: Expr) -> list[Any]:
    """Return every variable of `expr`, at any depth, once, in a deterministic order."""
    atoms: dict[Atom, None] = {}
    pending = [expr]
    while pending:
        for atom, _ in pending.pop().terms:
            if atom not in atoms:
                atoms[atom] = None
                pending.extend(atom.operands)
    return [atom for atom in atoms if not atom.operands]


def atoms_in_order(exprs: Iterable[Expr]) -> list[Atom]:
    """Return the distinct atoms of `exprs`, at any depth, after the atoms of their operands.

    >>> from simplifier.linear import variable
    >>> print(*atoms_in_order([variable("d0", 0, 9) // 4 + variable("d0", 0, 9)]), sep="\\n")
    Variable('d0', 0, 9)
    Floor(Expr('d0'), 4)
    """
    ordered: dict[Atom, None] = {}
    pending = [(atom, False) for expr in exprs for atom in expr.parts]
    while pending:
        atom, is_ready = pending.pop()
        if atom in ordered:
            continue
        if is_ready or not atom.operands:
            ordered[atom] = None
            continue
        pending.append((atom, True))
        pending.extend([(part, False) for operand in atom.operands for part in operand.parts])
    return list(ordered)


def term_count(exprs: Iterable[Expr]) -> int:
    """Return the number of terms of `exprs` and their distinct subexpressions, for cost estimates.

    >>> from simplifier.linear import variable
    >>> d0, d1 = variable("d0", 0, 9), variable("d1", 0, 9)
    >>> term_count([(d0 + d1) // 4 + d0])
    4
    """
    own = list(exprs)
    inner = [operand for atom in atoms_in_order(own) for operand in atom.operands]
    return sum([len(expr.parts) for expr in (*own, *inner)])


def shared_value(expr: Expr, point: Mapping[Any, Any]) -> Any:
    """Return the value of `expr` at `point`; each distinct atom is evaluated once."""
    values: dict[Atom, Any] = {}

    def total(part: Expr) -> Any:
        value: Any = part.constant
        for atom, coefficient in part.parts.items():
            value = value + coefficient * values[atom]
        return value

    for atom in atoms_in_order([expr]):
        operands = atom.operands
        values[atom] = atom.value_of(map(total, operands)) if operands else point[atom]
    return total(expr)
