"""Relations as isl sets and maps.

Each is read from one text, of a union, too: what isl reads is freed, and other calls leak (see
`simplifier.exact.context`).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import reduce
from typing import Any

import islpy as isl

from simplifier.exact.encode import Relation, relation_text
from simplifier.exact.matrices import Column, matrix, union
from simplifier.exact.verbatim import IslText


class PointsOf(Enum):
    """The coordinates of the points of a set: inputs, results, or inputs and then results."""

    INPUTS = (True, False)
    RESULTS = (False, True)
    PAIRS = (True, True)


def as_map(
    ctx: Any,
    *relations: Relation | IslText,
    reverse: bool = False,
    use_formulas: bool = False,
) -> isl.Map:
    """Return the union of relations, or ``results -> inputs`` if `reverse`.

    >>> from simplifier.atoms import Variable
    >>> d0 = Variable("d0", 0, 9)
    >>> as_map(isl.Context(), Relation((d0,), (), (d0 * 2,), ()))
    Map("{ [i0] -> [2i0] : 0 <= i0 <= 9 }")
    """
    affine = None if use_formulas else _affine(relations)
    if affine is None:
        formulas = _from_formulas(ctx, relations)
        return formulas.reverse() if reverse else formulas
    sides = [(_columns(each, PointsOf.INPUTS), _columns(each, PointsOf.RESULTS)) for each in affine]
    texts = [
        matrix(each, *((inputs, results) if reverse else (results, inputs)))
        for each, (inputs, results) in zip(affine, sides, strict=True)
    ]
    return isl.Map.read_from_str(ctx, union(texts))


def as_set(
    ctx: Any,
    *relations: Relation | IslText,
    of: PointsOf = PointsOf.INPUTS,
    use_formulas: bool = False,
) -> isl.Set:
    """Return the union of the inputs, results or pairs of relations.

    Args:
        use_formulas: read formulas in place of matrices.  isl samples other points of such a set,
            more often at a lower bound, which are better witnesses.

    >>> from simplifier.atoms import Variable
    >>> d0 = Variable("d0", 0, 9)
    >>> as_set(isl.Context(), Relation((d0,), (), (d0 * 2,), ()), of=PointsOf.PAIRS)
    Set("{ [i0, 2i0] : 0 <= i0 <= 9 }")
    """
    affine = None if use_formulas else _affine(relations)
    if affine is not None:
        texts = [matrix(each, _columns(each, of)) for each in affine]
        return isl.Set.read_from_str(ctx, union(texts))
    formulas = _from_formulas(ctx, relations)
    match of:
        case PointsOf.INPUTS:
            return formulas.domain()
        case PointsOf.RESULTS:
            return formulas.range()
        case PointsOf.PAIRS:
            return formulas.wrap().flatten()


def coordinates(ctx: Any, count: int) -> list[isl.Aff]:
    """Return the functions ``x -> x[k]``: those of the constraints ``x[k] >= 0``.

    >>> coordinates(isl.Context(), 2)
    [Aff("{ [i0, i1] -> [(i0)] }"), Aff("{ [i0, i1] -> [(i1)] }")]
    """
    rows = [f"1 {'0 ' * k}1 {'0 ' * (count - k)}" for k in range(count)]
    text = "\n".join([f"{count} {count + 2} {count} 0 0 0", *rows])
    return [each.get_aff() for each in isl.BasicSet.read_from_str(ctx, text).get_constraints()]


def _columns(relation: Relation, of: PointsOf) -> list[Column]:
    of_inputs, of_results = of.value
    inputs = relation.inputs if of_inputs else ()
    return [*inputs, *(range(len(relation.results)) if of_results else ())]


def _affine(relations: Sequence[Relation | IslText]) -> list[Relation] | None:
    """Return the relations if none needs a formula."""
    affine: list[Relation] = []
    for each in relations:
        if isinstance(each, IslText) or not each.is_affine:
            return None
        affine.append(each)
    return affine


def _from_formulas(ctx: Any, relations: Sequence[Relation | IslText]) -> isl.Map:
    texts = [each.text if isinstance(each, IslText) else relation_text(each) for each in relations]
    return reduce(lambda a, b: a.union(b), [isl.Map.read_from_str(ctx, text) for text in texts])
