"""Exact answers about domains and relations, from ISL; the only module that imports islpy.

Every call has a budget of isl's own operations.  Beyond it the answer is `Undecided`, a value: the
caller keeps what it had.

Source: the isl manual (``isl_ctx_set_max_operations``); Verdoolaege, "isl: An Integer Set Library
for the Polyhedral Model", 2010.

>>> from simplifier.constraints import Constraint
>>> d0, d1 = Variable("d0", 0, 9), Variable("d1", 0, 9)
>>> is_empty((d0, d1), [Constraint(d0 * 2 - d1 * 4, 3, 3)])
True
>>> bounds((d0, d1), [Constraint(d0 + d1, 0, 5)], d0 * 2 + d1)
(0, 10)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import islpy as isl

from simplifier.constraints import Constraint
from simplifier.interval import Interval
from simplifier.linear import Affine, Expr, Variable, as_expr, constant

Answer = TypeVar("Answer")
_OUT: Final = isl.dim_type.out

BUDGET: Final = 2_000_000
"""Operations of isl for one question: a fraction of a second."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """A question that was not answered, and why."""

    reason: str

    def __str__(self) -> str:
        return self.reason

    def __bool__(self) -> bool:
        raise TypeError(f"neither yes nor no: {self.reason}; compare with `is True`")


@dataclass(frozen=True, slots=True)
class Relation:
    """``inputs -> results`` where `constraints` hold, for some values of `hidden`."""

    inputs: tuple[Variable, ...]
    hidden: tuple[Variable, ...]
    results: tuple[Expr, ...]
    constraints: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class Witness:
    """A point and its results that one of two relations has and the other has not."""

    point: tuple[int, ...]
    results: tuple[int, ...]
    in_first: bool


def is_empty(
    variables: Sequence[Variable], constraints: Iterable[Constraint], budget: int = BUDGET
) -> bool | Undecided:
    """No point of the box of `variables` satisfies all `constraints`."""
    text = f"{{ {_tuple(variables)} : {_condition(variables, constraints)} }}"
    return _ask(lambda ctx: bool(isl.Set.read_from_str(ctx, text).is_empty()), budget)


def bounds(
    variables: Sequence[Variable],
    constraints: Iterable[Constraint],
    expr: Expr,
    budget: int = BUDGET,
) -> Interval | Undecided | None:
    """The least and the greatest value of `expr` on the domain; `None` if it has no points."""
    names = _names(variables)
    condition = _condition(variables, constraints)
    text = f"{{ {_tuple(variables)} -> [{_text(expr, names)}] : {condition} }}"

    def ask(ctx: Any) -> Interval | None:
        image = isl.Map.read_from_str(ctx, text).range()
        if image.is_empty():
            return None
        return int(image.dim_min_val(0).to_python()), int(image.dim_max_val(0).to_python())

    return _ask(ask, budget)


def to_isl(relation: Relation, parameters: Sequence[Variable] = ()) -> isl.Map:
    """The relation as an ``isl.Map``; `parameters` are inputs that become named parameters."""
    return isl.Map.read_from_str(isl.DEFAULT_CONTEXT, relation_text(relation, parameters))


def relation_text(relation: Relation, parameters: Sequence[Variable] = ()) -> str:
    """The relation in isl's notation."""
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


def difference(
    first: Relation, second: Relation, budget: int = BUDGET
) -> Witness | Undecided | None:
    """A point that only one of the relations has; `None` if they are equal.

    Inputs are matched by position; both relations have as many inputs and as many results.
    """

    def ask(ctx: Any) -> Witness | None:
        a, b = _map(ctx, first), _map(ctx, second)
        if a.is_equal(b):
            return None
        only_first = a.subtract(b)
        in_first = not only_first.is_empty()
        point = (only_first if in_first else b.subtract(a)).wrap().sample_point()
        count = len(first.inputs)
        at = [
            int(point.get_coordinate_val(isl.dim_type.set, k).to_python())
            for k in range(count + len(first.results))
        ]
        return Witness(tuple(at[:count]), tuple(at[count:]), in_first)

    return _ask(ask, budget)


def _map(ctx: Any, relation: Relation) -> isl.Map:
    every = (*relation.inputs, *relation.hidden)
    names = _names(every)
    results = ", ".join(_text(result, names) for result in relation.results)
    condition = _condition(every, relation.constraints)
    text = f"{{ {_tuple(every)} -> [{results}] : {condition} }}"
    hidden = len(relation.hidden)
    return isl.Map.read_from_str(ctx, text).project_out(
        isl.dim_type.in_, len(relation.inputs), hidden
    )


def _ask(question: Callable[[Any], Answer], budget: int) -> Answer | Undecided:
    """The answer to `question` in a context of its own, within `budget` operations of isl.

    A text that isl has no budget left to read is a syntax error, says isl.
    """
    ctx = isl.Context()
    ctx.set_max_operations(budget)
    try:
        return question(ctx)
    except isl.Error as error:
        if not any(word in str(error) for word in ("operations", "quota", "syntax error")):
            raise
        return Undecided(f"beyond the budget of {budget} isl operations")


def _own_names(variables: Sequence[Variable]) -> dict[Variable, str]:
    """The variables' own names where isl takes them, new ones for the others."""
    said = [v for v in variables if _NAME.fullmatch(v.name) and v.name not in _WORDS]
    others = [v for v in variables if v not in said]
    new = _new_names("x", len(others), [v.name for v in said])
    return {v: v.name for v in said} | dict(zip(others, new, strict=True))


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
    """Names that isl takes, whatever the variables are called."""
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
    pieces = [str(expr.constant)]
    for atom, coefficient in expr.terms:
        if isinstance(atom, Variable):
            pieces.append(f"{coefficient}*{names[atom]}")
        else:
            inner = _text(atom.numerator, names)
            pieces.append(f"{coefficient}*floor(({inner})/{atom.divisor})")
    return " + ".join(pieces)


# ---------------------------------------------------------------- counting, inverse, image


def count(relation: Relation, budget: int = BUDGET) -> int | Undecided:
    """How many different results the relation has.

    >>> d0 = Variable("d0", 0, 999_999)
    >>> count(Relation((d0,), (), (d0 // 4, d0 // 2), ()))
    500000
    """
    return _ask(lambda ctx: int(_map(ctx, relation).range().count_val().to_python()), budget)


def inverse(relation: Relation, budget: int = BUDGET) -> tuple[Relation, ...] | Undecided:
    """``results -> inputs`` in disjoint pieces; the inputs are called ``d0, d1, …``."""
    return _ask(lambda ctx: _pieces(_map(ctx, relation).reverse()), budget)


def image(relation: Relation, budget: int = BUDGET) -> tuple[Relation, ...] | Undecided:
    """All results, as relations from nothing, in disjoint pieces."""

    def ask(ctx: Any) -> tuple[Relation, ...]:
        results = _map(ctx, relation).range()
        return _pieces(isl.Map.from_range(results))

    return _ask(ask, budget)


def _pieces(found: isl.Map) -> tuple[Relation, ...]:
    """A map of isl in disjoint pieces: functions where it is one, else with hidden variables."""
    found = found.coalesce()
    pieces: list[Relation] = []
    if found.is_single_valued():
        found.as_pw_multi_aff().foreach_piece(lambda *piece: pieces.extend(_functions(*piece)))
    else:
        for basic in found.compute_divs().make_disjoint().get_basic_maps():
            pieces.append(_general(basic))
    return tuple(pieces)


def _functions(domain: isl.Set, function: isl.MultiAff) -> Iterator[Relation]:
    """``x -> function(x)`` on each convex part of `domain`."""
    for part in domain.compute_divs().make_disjoint().get_basic_sets():
        inputs = _boxed(isl.Set.from_basic_set(part), "d")
        results = [_expr(function.get_at(k), inputs) for k in range(function.dim(_OUT))]
        yield Relation(inputs, (), tuple(results), _constraints(part, inputs))


def _general(piece: isl.BasicMap) -> Relation:
    """One convex piece in which a point may have many results.

    A result that follows from the inputs and the results before it is an expression of them; any
    other one is a hidden variable.
    """
    whole = isl.Map.from_basic_map(piece)
    inputs = _boxed(whole.domain(), "d")
    boxes = _boxed(whole.range(), "s")
    results: list[Affine] = []
    hidden: list[Variable] = []
    for k, box in enumerate(boxes):
        expr = _following(whole, k, (*inputs, *results))
        if expr is None:
            hidden.append(box.renamed(f"s{len(hidden)}"))
        results.append(hidden[-1] if expr is None else expr)
    constraints = _constraints(piece.wrap().flatten(), (*inputs, *results))
    return Relation(inputs, tuple(hidden), tuple(map(as_expr, results)), constraints)


def _following(whole: isl.Map, k: int, known: Sequence[Affine]) -> Expr | None:
    """Result `k` as an expression of the inputs and the results before it, if it is just one."""
    one = whole.project_out(_OUT, k + 1, whole.dim(_OUT) - k - 1)
    one = one.move_dims(isl.dim_type.in_, one.dim(isl.dim_type.in_), _OUT, 0, k)
    if not one.is_single_valued():
        return None
    functions: list[isl.MultiAff] = []
    one.as_pw_multi_aff().foreach_piece(lambda _, function: functions.append(function))
    return _expr(functions[0].get_at(0), known) if len(functions) == 1 else None


def _boxed(points: isl.Set, prefix: str) -> tuple[Variable, ...]:
    return tuple(
        [
            Variable(
                f"{prefix}{k}",
                int(points.dim_min_val(k).to_python()),
                int(points.dim_max_val(k).to_python()),
            )
            for k in range(points.dim(isl.dim_type.set))
        ]
    )


def _constraints(part: isl.BasicSet, variables: Sequence[Affine]) -> tuple[Constraint, ...]:
    """The constraints of one convex set over `variables`, without those that always hold."""
    found: list[Constraint] = []
    for constraint in part.get_constraints():
        expr = _expr(constraint.get_aff(), variables)
        high = expr.bounds[1]
        exactly = Constraint(expr, 0, 0 if constraint.is_equality() else max(high, 0))
        if not exactly.is_true:
            found.append(exactly)
    return tuple(found)


def _expr(aff: isl.Aff, variables: Sequence[Affine]) -> Expr:
    """A quasi-affine expression of isl; one with a denominator is a whole number on its domain."""
    denominator = int(aff.get_denominator_val().to_python())
    return _scaled(aff, variables, denominator) // denominator


def _scaled(aff: isl.Aff, variables: Sequence[Affine], factor: int) -> Expr:
    """``factor · aff``, where the factor takes all denominators away."""

    def times(value: isl.Val) -> int:
        return int((value * isl.Val.int_from_si(value.get_ctx(), factor)).to_python())

    total = constant(times(aff.get_constant_val()))
    for k, variable in enumerate(variables):
        total = total + as_expr(variable) * times(aff.get_coefficient_val(isl.dim_type.in_, k))
    for k in range(aff.dim(isl.dim_type.div)):
        coefficient = times(aff.get_coefficient_val(isl.dim_type.div, k))
        if coefficient:
            total = total + _expr(aff.get_div(k), variables) * coefficient
    return total
