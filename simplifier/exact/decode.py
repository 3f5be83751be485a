"""Decoding of isl maps and sets as relations: disjoint pieces, each with bounded variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from typing import Any, Final, TypeAlias

import islpy as isl

from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact.context import to_int
from simplifier.exact.convex import ConvexSet, expression
from simplifier.exact.encode import Relation
from simplifier.exact.reading import coordinates
from simplifier.linear import Affine, Expr, as_expr

_OUT: Final = isl.dim_type.out


def pieces(relation: isl.Map, names: Sequence[str] | None = None) -> tuple[Relation, ...]:
    """Return an isl map in disjoint pieces: functions if single-valued, else with hidden variables.

    Args:
        names: the names of the inputs; by default ``d0, d1, …``.
    """
    relation = relation.coalesce()
    return _decode_parts(relation, _disjoint_parts(relation), names)


def few_pieces(relation: isl.Map, most: int) -> tuple[Relation, ...] | None:
    """Return ``pieces(relation)``; None if there are more than `most`, which are not decoded."""
    relation = relation.coalesce()
    parts = list(islice(_disjoint_parts(relation), most + 1))
    return _decode_parts(relation, parts) if len(parts) <= most else None


_Part: TypeAlias = tuple[ConvexSet, "isl.MultiAff | None"]
"""Inputs with their function; or inputs and results, and None."""


def _disjoint_parts(relation: isl.Map) -> Iterator[_Part]:
    if relation.is_single_valued():
        functions: list[tuple[isl.Set, isl.MultiAff]] = []
        # islpy prints what a callback raises, and an exceeded budget raises: only collect here
        relation.as_pw_multi_aff().foreach_piece(lambda *piece: functions.append(piece))
        for domain, function in functions:
            for part in _convex_parts(domain):
                yield part, function
    else:
        for part in _convex_parts(relation.wrap().flatten()):
            yield part, None


def _decode_parts(
    relation: isl.Map, parts: Iterable[_Part], names: Sequence[str] | None = None
) -> tuple[Relation, ...]:
    ctx = relation.get_ctx()
    names = names or [f"d{k}" for k in range(relation.dim(isl.dim_type.in_))]
    return tuple(
        [
            _general(ctx, part, names) if function is None else _on(ctx, part, function, names)
            for part, function in parts
        ]
    )


def _on(ctx: Any, domain: ConvexSet, function: isl.MultiAff, names: Sequence[str]) -> Relation:
    """``x -> function(x)`` on a convex domain."""
    inputs = _box_of_points(ctx, domain, names)
    results = [expression(function.get_at(k), inputs) for k in range(function.dim(_OUT))]
    return Relation(inputs, (), tuple(results), _constraints(domain, inputs))


def _convex_parts(points: isl.Set) -> list[ConvexSet]:
    """Return disjoint convex sets whose divisions are explicit, without those that have no point.

    A set may have rational points only, which isl does not notice until it is asked.
    """
    if points.involves_locals():
        points = points.compute_divs()
    if points.n_basic_set() > 1:
        points = points.make_disjoint()
    return [ConvexSet.of(part) for part in points.get_basic_sets() if not part.is_empty()]


def _general(ctx: Any, part: ConvexSet, names: Sequence[str]) -> Relation:
    """One convex set of inputs and results, in which a point may have many results.

    A result determined by the inputs and the preceding results becomes an expression of them; any
    other result becomes a hidden variable.
    """
    hidden: list[Variable] = []
    free = (name for k in count() if (name := f"s{k}") not in names)
    inputs = len(names)
    boxes = _box_of_points(ctx, part, [*names, *[""] * (part.rank - inputs)])
    known: list[Affine] = [*boxes[:inputs]]
    for box in boxes[inputs:]:
        expr = _determined_expr(ctx, part, known)
        if expr is None:
            hidden.append(box.renamed(next(free)))
        known.append(hidden[-1] if expr is None else expr)
    results = tuple([as_expr(result) for result in known[inputs:]])
    return Relation(boxes[:inputs], tuple(hidden), results, _constraints(part, known))


def _determined_expr(ctx: Any, part: ConvexSet, known: Sequence[Affine]) -> Expr | None:
    """The next coordinate as a single expression of the `known` ones, or `None`."""
    k = len(known)
    defined = part.definition(k, known)
    if defined is not None:
        return defined
    one = isl.Map.read_from_str(ctx, part.matrix([k], range(k)))
    if not one.is_single_valued():
        return None
    functions: list[isl.MultiAff] = []
    one.as_pw_multi_aff().foreach_piece(lambda _, function: functions.append(function))
    return expression(functions[0].get_at(0), known) if len(functions) == 1 else None


def _box_of_points(ctx: Any, part: ConvexSet, names: Sequence[str]) -> tuple[Variable, ...]:
    points = isl.Set.read_from_str(ctx, part.matrix(range(part.rank)))
    values = coordinates(ctx, len(names))
    return tuple(
        [
            Variable(name, to_int(points.min_val(x)), to_int(points.max_val(x)))
            for name, x in zip(names, values, strict=True)
        ]
    )


def _constraints(part: ConvexSet, variables: Sequence[Affine]) -> tuple[Constraint, ...]:
    """The constraints of one convex set over `variables`, without those implied by bounds."""
    constraints: list[Constraint] = []
    for row, is_equality in part.constraints:
        expr = part.divisions.value(row, variables)
        decoded = Constraint(expr, 0, 0 if is_equality else max(expr.bounds[1], 0))
        if not decoded.is_true:
            constraints.append(decoded)
    return tuple(constraints)
