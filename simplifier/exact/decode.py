"""Decoding of isl maps and sets as relations: disjoint pieces, each with bounded variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final

import islpy as isl

from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact.context import numerator, to_int
from simplifier.exact.encode import Relation
from simplifier.exact.reading import coordinates
from simplifier.linear import Affine, Expr, as_expr, constant

_OUT: Final = isl.dim_type.out
_SET: Final = isl.dim_type.set


def pieces(relation: isl.Map, names: Sequence[str] | None = None) -> tuple[Relation, ...]:
    """Return an isl map in disjoint pieces: functions if single-valued, else with hidden variables.

    Args:
        names: the names of the inputs; by default ``d0, d1, …``.
    """
    relation = relation.coalesce()
    names = names or [f"d{k}" for k in range(relation.dim(isl.dim_type.in_))]
    parts: list[Relation] = []
    if relation.is_single_valued():
        functions: list[tuple[isl.Set, isl.MultiAff]] = []
        # islpy prints what a callback raises, and an exceeded budget raises: only collect here
        relation.as_pw_multi_aff().foreach_piece(lambda *piece: functions.append(piece))
        for domain, function in functions:
            parts += _functions(domain, function, names)
    else:
        for part in _convex_parts(relation.wrap().flatten()):
            parts.append(_general(part, names))
    return tuple(parts)


def _functions(domain: isl.Set, function: isl.MultiAff, names: Sequence[str]) -> Iterator[Relation]:
    """``x -> function(x)`` on each convex part of `domain`."""
    for part in _convex_parts(domain):
        inputs = _boxed(isl.Set(part), names)
        results = [_expr(function.get_at(k), inputs) for k in range(function.dim(_OUT))]
        yield Relation(inputs, (), tuple(results), _constraints(part, inputs))


def _convex_parts(points: isl.Set) -> Sequence[isl.BasicSet]:
    """Return disjoint convex sets whose divisions are explicit."""
    if points.involves_locals():
        points = points.compute_divs()
    if points.n_basic_set() > 1:
        points = points.make_disjoint()
    return points.get_basic_sets()


def _general(part: isl.BasicSet, names: Sequence[str]) -> Relation:
    """One convex set of inputs and results, in which a point may have many results.

    A result determined by the inputs and the preceding results becomes an expression of them; any
    other result becomes a hidden variable.
    """
    points = isl.Set(part)
    hidden: list[Variable] = []
    free = (name for k in count() if (name := f"s{k}") not in names)
    inputs = len(names)
    boxes = _boxed(points, [*names, *[""] * (points.dim(_SET) - inputs)])
    known: list[Affine] = [*boxes[:inputs]]
    for box in boxes[inputs:]:
        expr = _determined(points, known)
        if expr is None:
            hidden.append(box.renamed(next(free)))
        known.append(hidden[-1] if expr is None else expr)
    results = tuple([as_expr(result) for result in known[inputs:]])
    return Relation(boxes[:inputs], tuple(hidden), results, _constraints(part, known))


def _determined(points: isl.Set, known: Sequence[Affine]) -> Expr | None:
    """The next coordinate as a single expression of the `known` ones, or `None`."""
    k = len(known)
    one = isl.Map.from_range(points.project_out(_SET, k + 1, points.dim(_SET) - k - 1))
    one = one.move_dims(isl.dim_type.in_, 0, _OUT, 0, k)
    if not one.is_single_valued():
        return None
    functions: list[isl.MultiAff] = []
    one.as_pw_multi_aff().foreach_piece(lambda _, function: functions.append(function))
    return _expr(functions[0].get_at(0), known) if len(functions) == 1 else None


def _boxed(points: isl.Set, names: Sequence[str]) -> tuple[Variable, ...]:
    values = coordinates(points.get_ctx(), len(names))
    return tuple(
        [
            Variable(name, to_int(points.min_val(x)), to_int(points.max_val(x)))
            for name, x in zip(names, values, strict=True)
        ]
    )


def _constraints(part: isl.BasicSet, variables: Sequence[Affine]) -> tuple[Constraint, ...]:
    """The constraints of one convex set over `variables`, without those implied by bounds."""
    constraints: list[Constraint] = []
    for constraint in part.get_constraints():
        expr = _expr(constraint.get_aff(), variables)
        high = expr.bounds[1]
        decoded = Constraint(expr, 0, 0 if constraint.is_equality() else max(high, 0))
        if not decoded.is_true:
            constraints.append(decoded)
    return tuple(constraints)


def _expr(aff: isl.Aff, variables: Sequence[Affine]) -> Expr:
    """A quasi-affine isl expression, whose value is an integer on its domain."""
    denominator = to_int(aff.get_denominator_val())
    return _scaled(aff, variables, denominator) // denominator


def _scaled(aff: isl.Aff, variables: Sequence[Affine], factor: int) -> Expr:
    """``factor · aff``, where the factor cancels all denominators."""

    def times(value: isl.Val) -> int:
        denominator = 1 if value.is_int() else to_int(value.get_den_val())
        return numerator(value) * factor // denominator

    total = constant(times(aff.get_constant_val()))
    for k, variable in enumerate(variables):
        total = total + as_expr(variable) * times(aff.get_coefficient_val(isl.dim_type.in_, k))
    for k in range(aff.dim(isl.dim_type.div)):
        coefficient = times(aff.get_coefficient_val(isl.dim_type.div, k))
        if coefficient:
            total = total + _expr(aff.get_div(k), variables) * coefficient
    return total
