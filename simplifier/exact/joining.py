"""Unions of relations as few convex ones; disjoint relations stay disjoint.

isl coalesces relations.  What remains grows: the simple hull of two, with the residues that they
have in common, is taken if the union contains it.  So no pair is added or lost.

Source: isl manual, "Simplification" (``isl_map_coalesce``) and "Basic Operations" (simple hull).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from math import gcd
from typing import Any, Final, NamedTuple

import islpy as isl

from simplifier.exact.context import to_int, within_budget
from simplifier.exact.decode import pieces
from simplifier.exact.encode import Relation
from simplifier.exact.reading import as_map, coordinates
from simplifier.unknown import Unknown

JOINING_BUDGET: Final = 400_000
"""isl operations to join the relations of one union; beyond it, they stay as they are."""

MAX_WHOLE: Final = 24
"""Parts whose hulls are compared with the union of all; of more, with the union of two."""

MAX_GROWN: Final = 48
"""Parts that are compared in pairs: in practice, the pairs of more exceed the budget."""


@lru_cache(maxsize=1 << 9)
def join_relations(
    relations: tuple[Relation, ...], most: int, budget: int = JOINING_BUDGET
) -> tuple[Relation, ...] | Unknown:
    """Return affine relations with the same union as `relations`, as few as are found.

    Args:
        most: the relations themselves are returned if more are found.

    >>> from simplifier.atoms import Variable
    >>> from simplifier.constraints import Constraint
    >>> d0 = Variable("d0", 0, 7)
    >>> parity = [Constraint(d0 % 2, k, k) for k in (0, 1)]
    >>> halves = [Relation((d0,), (), ((d0 - k) // 2 + k,), (c,)) for k, c in enumerate(parity)]
    >>> one, = join_relations(tuple(halves), 1)
    >>> print(*one.results)
    (d0 + 1) floordiv 2
    """

    def compute(ctx: Any) -> tuple[Relation, ...]:
        union = as_map(ctx, *relations).coalesce().compute_divs()
        parts = _grow_parts(union)
        if len(parts) > most:
            return relations
        return tuple([piece for part in parts for piece in pieces(part)])

    return within_budget(compute, budget)


class _ConvexPart(NamedTuple):
    """A convex relation, with ``f = c (mod m)`` for each of its forms, as (c, m); f = c if m is 0.

    The forms are the inputs, the results, and the results minus inputs.

    Attributes:
        coefficient: its largest coefficient.
        divisions: the number of its divisions.
    """

    relation: isl.Map
    residues: tuple[tuple[int, int], ...]
    coefficient: int
    divisions: int


def _grow_parts(union: isl.Map) -> list[isl.Map]:
    """Return convex relations with this union: its hull, or parts that grow by other parts."""
    parts = [isl.Map.from_basic_map(part) for part in union.get_basic_maps() if not part.is_empty()]
    whole = _whole(parts, union)
    if whole is None and len(parts) <= MAX_GROWN:
        forms = isl.Map.read_from_str(union.get_ctx(), _forms(union))
        given = [
            _ConvexPart(part, _residues(part, forms), _coefficient(part), _divisions(part))
            for part in parts
        ]
        few = _grow(given, union if len(parts) <= MAX_WHOLE else None)
        if not _are_disjoint(few) and _are_disjoint(parts):
            few = _grow(given, None)
        whole = _whole(few, union) if len(few) < len(parts) else None
        parts = few
    return parts if whole is None else [whole]


def _whole(parts: Sequence[isl.Map], union: isl.Map) -> isl.Map | None:
    """Return the hull of few parts if it is their union and no more complex, or None."""
    if 1 < len(parts) <= MAX_WHOLE:
        hull = isl.Map.from_basic_map(union.simple_hull())
        if _coefficient(hull) <= max(map(_coefficient, parts)):
            hull = _restrict(hull, _bounds(union))
            if _divisions(hull) <= max(map(_divisions, parts)) and hull.is_subset(union):
                return hull
    return None


def _are_disjoint(parts: Sequence[isl.Map]) -> bool:
    """True if no pair is in two of the parts."""
    return all(a.is_disjoint(b) for a, b in combinations(parts, 2))


def _grow(others: list[_ConvexPart], allowed: isl.Map | None) -> list[isl.Map]:
    """Return fewer parts with the same union, where `allowed` contains the hull of two.

    Args:
        allowed: the union of all; None to allow only the union of two, so that disjoint parts stay
            disjoint.
    """
    grown: list[isl.Map] = []
    while others:
        part, others = others[0], others[1:]
        number = 0
        while number < len(others):
            larger = _join_parts(part, others[number], allowed)
            if larger is None:
                number += 1
            else:
                part, number = larger, 0
                others = [p for p in others if not p.relation.is_subset(part.relation)]
        grown = [p for p in grown if not p.is_subset(part.relation)]
        grown.append(part.relation)
    return grown


def _join_parts(a: _ConvexPart, b: _ConvexPart, allowed: isl.Map | None) -> _ConvexPart | None:
    """Return the hull of two parts if it is allowed and no more complex, or None."""
    union = a.relation.union(b.relation)
    hull = isl.Map.from_basic_map(union.simple_hull())
    if _coefficient(hull) > max(a.coefficient, b.coefficient):
        return None
    residues = [
        (c, gcd(m, n, c - e)) for (c, m), (e, n) in zip(a.residues, b.residues, strict=True)
    ]
    stated = [
        f"({form} - {c}) mod {m} = 0"
        for form, (c, m) in zip(_form_texts(union), residues, strict=True)
        if m > 1
    ]
    hull = _restrict(hull, stated)
    divisions = _divisions(hull)
    if divisions > max(a.divisions, b.divisions) + len(stated):
        return None
    if not hull.is_subset(allowed or union):
        return None
    return _ConvexPart(hull, tuple(residues), _coefficient(hull), divisions)


def _bounds(union: isl.Map) -> list[str]:
    """Return the bounds of all forms as conditions."""
    pairs, inputs = union.wrap().flatten(), union.dim(isl.dim_type.in_)
    places = coordinates(union.get_ctx(), pairs.dim(isl.dim_type.set))
    x, y = places[:inputs], places[inputs:]
    forms = [*x, *y, *[b.sub(a) for b in y for a in x]]
    return [
        f"{to_int(pairs.min_val(form))} <= {text} <= {to_int(pairs.max_val(form))}"
        for form, text in zip(forms, _form_texts(union), strict=True)
    ]


def _restrict(relation: isl.Map, conditions: Sequence[str]) -> isl.Map:
    """Return the pairs of a relation that satisfy conditions on its forms."""
    inputs, outputs = _names(relation)
    if not conditions or not inputs + outputs:
        return relation
    text = f"{{ [{', '.join(inputs)}] -> [{', '.join(outputs)}] : {' and '.join(conditions)} }}"
    return relation.intersect(isl.Map.read_from_str(relation.get_ctx(), text))


def _coefficient(part: isl.Map) -> int:
    """Return the largest coefficient of a convex relation.

    A hull of two points is a line, which may have larger ones: such a line is a chance.
    """
    (convex,) = part.get_basic_maps()
    columns = [(k, n) for k in (isl.dim_type.in_, isl.dim_type.out) for n in range(part.dim(k))]
    rows = convex.get_constraints()
    values = [row.get_coefficient_val(kind, n) for row in rows for kind, n in columns]
    return max([abs(to_int(value)) for value in values], default=0)


def _divisions(part: isl.Map) -> int:
    """Return the number of divisions of a convex relation."""
    (convex,) = part.get_basic_maps()
    return int(convex.dim(isl.dim_type.div))


def _residues(part: isl.Map, forms: isl.Map) -> tuple[tuple[int, int], ...]:
    """Return the residues of the values of each form, which `forms` computes from pairs."""
    values = part.wrap().flatten().apply(forms)
    residues: list[tuple[int, int]] = []
    for k in range(values.dim(isl.dim_type.set)):
        fixed, stride = values.plain_get_val_if_fixed(isl.dim_type.set, k), values.get_stride(k)
        if fixed.is_int():
            residues.append((to_int(fixed), 0))
        elif stride.is_one():
            residues.append((0, 1))
        else:
            offset = values.get_stride_info(k).get_offset()
            modulus = to_int(stride) if offset.is_cst() else 1
            residues.append((to_int(offset.get_constant_val()) if modulus > 1 else 0, modulus))
    return tuple(residues)


def _names(relation: isl.Map) -> tuple[list[str], list[str]]:
    """Return names of the inputs and of the results."""
    inputs, outputs = relation.dim(isl.dim_type.in_), relation.dim(isl.dim_type.out)
    return [f"x{k}" for k in range(inputs)], [f"y{k}" for k in range(outputs)]


def _form_texts(relation: isl.Map) -> list[str]:
    """Return the texts of all forms."""
    inputs, outputs = _names(relation)
    return [*inputs, *outputs, *[f"{y} - {x}" for y in outputs for x in inputs]]


def _forms(relation: isl.Map) -> str:
    """Return the text of the function from pairs to the values of all forms."""
    inputs, outputs = _names(relation)
    return f"{{ [{', '.join([*inputs, *outputs])}] -> [{', '.join(_form_texts(relation))}] }}"
