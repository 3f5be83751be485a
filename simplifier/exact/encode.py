"""Relations, and their formulas in isl notation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from simplifier.atoms import Atom, Floor, Variable
from simplifier.constraints import Constraint
from simplifier.exact.context import BudgetExhaustedError, NotAffineError
from simplifier.linear import Expr, from_atom
from simplifier.semiaffine import SemiAffine
from simplifier.shared import atoms_in_order

MAX_TEXT: Final = 100_000
"""Maximum number of characters of an expression in isl notation."""

MAX_DIVISIONS: Final = 64
"""Maximum number of distinct divisions of an isl query."""


@dataclass(frozen=True, slots=True)
class Relation:
    """``{ inputs -> results : exists hidden : constraints }``.

    Attributes:
        inputs, hidden: variables, whose bounds are further constraints.

    >>> from simplifier import Variable
    >>> from simplifier.exact import Relation, relation_text
    >>> i = Variable("i", 0, 4)
    >>> print(relation_text(Relation((i,), (), (i.expr * 2,), ())))
    { [i] -> [o0] : o0 = 0 + 2*i and 0 <= i <= 4 }
    >>> [Relation((i,), (), (expr,), ()).is_affine for expr in (i * 2, i.expr * i)]
    [True, False]
    """

    inputs: tuple[Variable, ...]
    hidden: tuple[Variable, ...]
    results: tuple[Expr, ...]
    constraints: tuple[Constraint, ...]

    @property
    def is_affine(self) -> bool:
        """True without products, quotients, minima or maxima of variables."""
        exprs = [*self.results, *[constraint.expr for constraint in self.constraints]]
        return all(expr.is_affine for expr in exprs)


def without_inputs(relation: Relation) -> Relation:
    """Return ``{ [] -> results }``: the image of the relation."""
    hidden = (*relation.inputs, *relation.hidden)
    return Relation((), hidden, relation.results, relation.constraints)


def relation_text(relation: Relation, parameters: Sequence[Variable] = ()) -> str:
    """Return the relation in isl notation.

    >>> from simplifier import Variable
    >>> from simplifier.exact import Relation, relation_text
    >>> i, s = Variable("i", 0, 4), Variable("s", 0, 2)
    >>> print(relation_text(Relation((i,), (s,), (i.expr + s.expr,), ())))
    { [i] -> [o0] : exists (s : o0 = 0 + 1*i + 1*s and 0 <= i <= 4 and 0 <= s <= 2) }
    """
    every = (*relation.inputs, *parameters, *relation.hidden)
    names = _own_names(every)
    inputs = ", ".join(names[v] for v in relation.inputs)
    outputs = _new_names("o", len(relation.results), names.values())
    equal = [
        f"{o} = {_expr_text(r, names)}" for o, r in zip(outputs, relation.results, strict=True)
    ]
    condition = " and ".join([*equal, _condition(every, relation.constraints, names)])
    if relation.hidden:
        hidden = ", ".join(names[v] for v in relation.hidden)
        condition = f"exists ({hidden} : {condition})"
    prefix = f"[{', '.join(names[v] for v in parameters)}] -> " if parameters else ""
    return f"{prefix}{{ [{inputs}] -> [{', '.join(outputs)}] : {condition} }}"


def _own_names(variables: Sequence[Variable]) -> dict[Variable, str]:
    """The variables' own names if they are valid in isl, otherwise new names."""
    valid = [v for v in variables if _NAME.fullmatch(v.name) and v.name.lower() not in _WORDS]
    others = [v for v in variables if v not in valid]
    new = _new_names("x", len(others), [v.name for v in valid])
    return {v: v.name for v in valid} | dict(zip(others, new, strict=True))


def _new_names(prefix: str, count: int, taken: Iterable[str]) -> list[str]:
    while any(name.startswith(prefix) for name in taken):
        prefix += "_"
    return [f"{prefix}{k}" for k in range(count)]


_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_WORDS: Final = frozenset(  # of any case
    [
        *("and", "or", "not", "exists", "implies", "mod", "floor", "floord", "ceil", "ceild"),
        *("min", "max", "true", "false", "infty", "infinity", "nan", "int", "rat"),
    ]
)


def _condition(
    variables: Sequence[Variable],
    constraints: Iterable[Constraint],
    names: dict[Variable, str],
) -> str:
    parts = [f"{v.lower} <= {names[v]} <= {v.upper}" for v in variables]
    parts += [f"{c.lower} <= {_expr_text(c.expr, names)} <= {c.upper}" for c in constraints]
    return " and ".join(parts) or "1 = 1"


def _expr_text(expr: Expr, names: dict[Variable, str]) -> str:
    """The text of `expr`.

    Raises:
        BudgetExhaustedError: it has more than `MAX_TEXT` characters, or too many divisions.
    """
    texts: dict[Atom, str] = {}

    def total(part: Expr) -> str:
        text = " + ".join([str(part.constant), *[f"{c}*{texts[atom]}" for atom, c in part.terms]])
        if len(text) > MAX_TEXT:
            raise BudgetExhaustedError(f"beyond the budget of {MAX_TEXT} characters of isl text")
        return text

    for atom in limited_divisions(atoms_in_order([expr])):
        if isinstance(atom, Variable):
            texts[atom] = names[atom]
        elif isinstance(atom, Floor):
            texts[atom] = f"floor(({total(atom.numerator)})/{atom.divisor})"
        elif isinstance(atom, SemiAffine) and atom.operator in ("min", "max"):
            texts[atom] = f"{atom.operator}({', '.join(map(total, atom.operands))})"
        else:
            raise _not_affine(atom)
    return total(expr)


def limited_divisions(atoms: list[Atom]) -> list[Atom]:
    """The atoms.

    Raises:
        BudgetExhaustedError: more than `MAX_DIVISIONS` of them are divisions.
    """
    if sum(isinstance(atom, Floor) for atom in atoms) > MAX_DIVISIONS:
        raise BudgetExhaustedError(f"beyond the budget of {MAX_DIVISIONS} divisions for isl")
    return atoms


def _not_affine(atom: Atom) -> NotAffineError:
    return NotAffineError(f"isl cannot represent {from_atom(atom)}, which is not affine")
