"""Encoding of expressions, constraints and relations as isl text and isl maps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import islpy as isl

from simplifier.atoms import Atom, Floor, Variable
from simplifier.constraints import Constraint
from simplifier.exact.context import BudgetExhaustedError, NotAffineError
from simplifier.exact.verbatim import IslText
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
    """

    inputs: tuple[Variable, ...]
    hidden: tuple[Variable, ...]
    results: tuple[Expr, ...]
    constraints: tuple[Constraint, ...]


def relation_text(relation: Relation, parameters: Sequence[Variable] = ()) -> str:
    """Return the relation in isl notation."""
    every = (*relation.inputs, *parameters, *relation.hidden)
    names = _own_names(every)
    inputs = ", ".join(names[v] for v in relation.inputs)
    outputs = _new_names("o", len(relation.results), names.values())
    equal = [f"{o} = {_text(r, names)}" for o, r in zip(outputs, relation.results, strict=True)]
    condition = " and ".join([*equal, _condition(every, relation.constraints, names)])
    if relation.hidden:
        hidden = ", ".join(names[v] for v in relation.hidden)
        condition = f"exists ({hidden} : {condition})"
    prefix = f"[{', '.join(names[v] for v in parameters)}] -> " if parameters else ""
    return f"{prefix}{{ [{inputs}] -> [{', '.join(outputs)}] : {condition} }}"


def as_set(ctx: Any, domain: Relation) -> isl.Set:
    """The set of inputs of a relation without hidden variables and results."""
    condition = _condition(domain.inputs, domain.constraints)
    return isl.Set.read_from_str(ctx, f"{{ {_tuple(domain.inputs)} : {condition} }}")


def as_domain(
    ctx: Any, variables: tuple[Variable, ...], constraints: tuple[Constraint, ...]
) -> isl.Set:
    """The points of a box that satisfy `constraints`.

    Affine constraints are built with isl calls, ten times as fast as parsing a text.
    """
    if not all(constraint.expr.is_affine for constraint in constraints):
        return as_set(ctx, Relation(variables, (), (), constraints))
    domain = isl.Set.universe(isl.Space.set_alloc(ctx, 0, len(variables)))
    for k, v in enumerate(variables):
        domain = domain.lower_bound_val(isl.dim_type.set, k, _value(ctx, v.lower))
        domain = domain.upper_bound_val(isl.dim_type.set, k, _value(ctx, v.upper))
    functions = as_functions(ctx, variables, [c.expr for c in constraints])
    for function, constraint in zip(functions, constraints, strict=True):
        above = function.add_constant_val(_value(ctx, -constraint.lower))
        below = function.neg().add_constant_val(_value(ctx, constraint.upper))
        domain = domain.add_constraint(isl.Constraint.inequality_from_aff(above))
        domain = domain.add_constraint(isl.Constraint.inequality_from_aff(below))
    return domain


def as_map(ctx: Any, relation: Relation | IslText) -> isl.Map:
    """The relation as an isl map, with hidden variables projected out."""
    if isinstance(relation, IslText):
        return isl.Map.read_from_str(ctx, relation.text)
    every = (*relation.inputs, *relation.hidden)
    names = _names(every)
    results = ", ".join(_text(result, names) for result in relation.results)
    condition = _condition(every, relation.constraints)
    text = f"{{ {_tuple(every)} -> [{results}] : {condition} }}"
    hidden = len(relation.hidden)
    return isl.Map.read_from_str(ctx, text).project_out(
        isl.dim_type.in_, len(relation.inputs), hidden
    )


def as_functions(ctx: Any, inputs: Sequence[Variable], exprs: Sequence[Expr]) -> list[isl.Aff]:
    """Affine expressions as isl functions of `inputs`."""
    _limited(atoms_in_order(exprs))
    space = isl.Space.set_alloc(ctx, 0, len(inputs))
    zero = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(space))
    known: dict[Atom, isl.Aff] = {
        v: zero.set_coefficient_val(isl.dim_type.in_, k, _value(ctx, 1))
        for k, v in enumerate(inputs)
    }

    def function(expr: Expr) -> isl.Aff:
        total = zero.set_constant_val(_value(ctx, expr.constant))
        for atom, coefficient in expr.terms:
            if atom not in known:
                if not isinstance(atom, Floor):
                    raise _hidden(atom)
                divisor = _value(ctx, atom.divisor)
                known[atom] = function(atom.numerator).scale_down_val(divisor).floor()
            total = total.add(known[atom].scale_val(_value(ctx, coefficient)))
        return total

    return [function(expr) for expr in exprs]


def _value(ctx: Any, number: int) -> isl.Val:
    return isl.Val(str(number), ctx)  # as text: the number may exceed 64 bits


def _own_names(variables: Sequence[Variable]) -> dict[Variable, str]:
    """The variables' own names if they are valid in isl, otherwise new names."""
    valid = [v for v in variables if _NAME.fullmatch(v.name) and v.name not in _WORDS]
    others = [v for v in variables if v not in valid]
    new = _new_names("x", len(others), [v.name for v in valid])
    return {v: v.name for v in valid} | dict(zip(others, new, strict=True))


def _new_names(prefix: str, count: int, taken: Iterable[str]) -> list[str]:
    while any(name.startswith(prefix) for name in taken):
        prefix += "_"
    return [f"{prefix}{k}" for k in range(count)]


_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_WORDS: Final = frozenset(
    [
        *("and", "or", "not", "exists", "implies", "mod", "floor", "floord", "ceil", "ceild"),
        *("min", "max", "true", "false", "infty", "nan", "int", "rat"),
    ]
)


def _names(variables: Sequence[Variable]) -> dict[Variable, str]:
    """Names ``x0, x1, …``, which are always valid in isl."""
    return {v: f"x{k}" for k, v in enumerate(variables)}


def _tuple(variables: Sequence[Variable]) -> str:
    return f"[{', '.join(_names(variables).values())}]"


def _condition(
    variables: Sequence[Variable],
    constraints: Iterable[Constraint],
    names: dict[Variable, str] | None = None,
) -> str:
    names = names or _names(variables)
    parts = [f"{v.lower} <= {names[v]} <= {v.upper}" for v in variables]
    parts += [f"{c.lower} <= {_text(c.expr, names)} <= {c.upper}" for c in constraints]
    return " and ".join(parts) or "1 = 1"


def _text(expr: Expr, names: dict[Variable, str]) -> str:
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

    for atom in _limited(atoms_in_order([expr])):
        if isinstance(atom, Variable):
            texts[atom] = names[atom]
        elif isinstance(atom, Floor):
            texts[atom] = f"floor(({total(atom.numerator)})/{atom.divisor})"
        elif isinstance(atom, SemiAffine) and atom.operator in ("min", "max"):
            texts[atom] = f"{atom.operator}({', '.join(map(total, atom.operands))})"
        else:
            raise _hidden(atom)
    return total(expr)


def _limited(atoms: list[Atom]) -> list[Atom]:
    """The atoms.

    Raises:
        BudgetExhaustedError: more than `MAX_DIVISIONS` of them are divisions.
    """
    if sum(isinstance(atom, Floor) for atom in atoms) > MAX_DIVISIONS:
        raise BudgetExhaustedError(f"beyond the budget of {MAX_DIVISIONS} divisions for isl")
    return atoms


def _hidden(atom: Atom) -> NotAffineError:
    return NotAffineError(f"isl cannot represent {from_atom(atom)}, which is not affine")
