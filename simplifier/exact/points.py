"""Answers by enumeration, where isl cannot see inside an expression and there are few points."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Final, TypeAlias

from simplifier.exact.encode import Relation

MOST_POINTS: Final = 100_000
"""Points of the box of a relation that are looked at, at most."""

Pair: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]


def may_be_enumerated(*relations: Relation) -> bool:
    """isl cannot see all of it, and there are few points in the boxes."""
    sizes = [prod(max(0, v.upper - v.lower + 1) for v in (*r.inputs, *r.hidden)) for r in relations]
    return sum(sizes) <= MOST_POINTS and not all(map(_is_affine, relations))


def _is_affine(relation: Relation) -> bool:
    exprs = (*relation.results, *[c.expr for c in relation.constraints])
    return all(expr.is_affine for expr in exprs)


def pairs(relation: Relation) -> Iterator[Pair]:
    """Each input with each of its results, some more than once.

    A point where something is divided by 0 is not in the relation.
    """
    variables = (*relation.inputs, *relation.hidden)
    count = len(relation.inputs)
    for values in product(*[range(v.lower, v.upper + 1) for v in variables]):
        at = dict(zip(variables, values, strict=True))
        try:
            if all(c.lower <= c.expr.value(at) <= c.upper for c in relation.constraints):
                yield values[:count], tuple([r.value(at) for r in relation.results])
        except ZeroDivisionError:
            continue


def first_difference(first: Relation, second: Relation) -> tuple[Pair, bool] | None:
    """A pair that one relation has alone, and whether it is the first; `None` if they are equal."""
    ours, theirs = set(pairs(first)), set(pairs(second))
    alone = min(ours ^ theirs, default=None)
    return None if alone is None else (alone, alone in ours)
