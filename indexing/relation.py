"""Questions about maps as relations, answered exactly through `simplifier.exact`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from math import prod
from typing import Final, Literal, TypeAlias, TypeVar

from indexing.map import Difference, IndexingMap, RuntimeVariable
from simplifier import exact
from simplifier.linear import Expr, Variable
from simplifier.substitute import Substitution

Pair: TypeAlias = tuple[RuntimeVariable | None, RuntimeVariable | None]
Pairs: TypeAlias = Sequence[Pair]
Answer = TypeVar("Answer")

_MOST_PAIRINGS: Final = 64


class UndecidedError(RuntimeError):
    """An exact question was beyond its budget; the message says which."""


def is_empty(asked: IndexingMap) -> bool:
    """No point is in the domain of `asked`.

    Raises:
        UndecidedError: that is beyond the budget to decide.
    """
    if asked.is_known_empty:
        return True
    if not asked.constraints:
        return False
    found = exact.is_empty(asked.variables, asked.constraints)
    if isinstance(found, exact.Undecided):
        raise UndecidedError(f"is {asked} empty? {found}")
    return found


def difference(first: IndexingMap, second: IndexingMap) -> Difference | None:
    """A point that only one of two maps relates, or `None` if they are the same relation.

    Raises:
        ValueError: the maps have different numbers of dimensions or results, so that they relate
            points of different spaces.
        UndecidedError: that is beyond the budget to decide.
    """
    if first == second:
        return None
    spaces = [(len(m.dims), len(m.results)) for m in (first, second)]
    if spaces[0] != spaces[1]:
        if is_empty(first) and is_empty(second):
            return None
        raise ValueError(
            f"maps of different spaces: {spaces[0][0]} dimensions to {spaces[0][1]} results, and "
            f"{spaces[1][0]} to {spaces[1][1]}:\n  {first}\n  {second}"
        )
    found: Difference | None = None
    for pairs in _pairings(first, second):
        found = _difference(first, second, pairs)
        if found is None:
            break
    return found


def _difference(first: IndexingMap, second: IndexingMap, pairs: Pairs) -> Difference | None:
    """A difference, if runtime variables in pairs are the same value.

    The element that each of them is counts as a further result: they are the same value only if it
    is the same element.
    """
    left = _relation(first, pairs)
    right = _relation(second, [(b, a) for a, b in pairs])
    found = exact.difference(left, right)
    if isinstance(found, exact.Undecided):
        raise UndecidedError(f"is {first} equal to {second}? {found}")
    if found is None:
        return None
    at = dict(zip([v.name for v in left.inputs], found.point, strict=True))
    in_first: Literal["first", "second"] = "first" if found.in_first else "second"
    return Difference(at, found.results[: len(first.results)], in_first)


def to_isl(asked: IndexingMap) -> object:
    """The relation as an ``islpy.Map``; runtime variables are parameters."""
    parameters = [rt.variable for rt in asked.runtime]
    relation = exact.Relation(asked.dims, asked.ranges, asked.results, asked.constraints)
    if asked.is_known_empty and not asked.dims:
        relation = exact.Relation((), (), (), asked.constraints)
    return exact.to_isl(relation, parameters)


def _relation(asked: IndexingMap, pairs: Iterable[Pair]) -> exact.Relation:
    """`asked`, whose runtime variables come first in `pairs`; some are only in the other map."""
    inputs = (*asked.dims, *[_variable(*pair) for pair in pairs])
    hidden = [v for v in asked.variables if v not in inputs]
    elements = [expr for mine, other in pairs if mine and other for expr in mine.index]
    return exact.Relation(inputs, tuple(hidden), (*asked.results, *elements), asked.constraints)


def _variable(mine: RuntimeVariable | None, other: RuntimeVariable | None) -> Variable:
    if mine:
        return mine.variable
    assert other, "a pair has a runtime variable of one map at least"
    return Variable(f"other.{other.name}", *other.variable.bounds)


def _pairings(first: IndexingMap, second: IndexingMap) -> Iterator[Pairs]:
    """Ways to pair the runtime variables that may be the same value, the likeliest first.

    Those of one source may be paired in several ways, unless their elements are written alike.  A
    variable that only one map has is paired with `None`: the other map does not depend on it.
    """
    pairs: list[Pair] = []
    left, right = list(first.runtime), list(second.runtime)
    for mine in first.runtime:
        same = [other for other in right if _may_be_same(mine, other)]
        alike = [other for other in same if _element(mine) == _element(other)]
        if alike:
            pairs.append((mine, alike[0]))
            left.remove(mine)
            right.remove(alike[0])
    choices = [[*[o for o in right if _may_be_same(mine, o)], None] for mine in left]
    different = (
        choice
        for choice in product(*choices)
        if len({id(o) for o in choice if o}) == sum(o is not None for o in choice)
    )
    for choice in islice(different, _MOST_PAIRINGS):
        alone: list[Pair] = [(None, other) for other in right if other not in choice]
        yield [*pairs, *zip(left, choice, strict=True), *alone]


def _may_be_same(a: RuntimeVariable, b: RuntimeVariable) -> bool:
    """Both are an element of the same source; without a source, they have the same name."""
    if a.source is None or b.source is None:
        return a.name == b.name
    same_source = (a.source, a.calls) == (b.source, b.calls)
    return same_source and a.clamp == b.clamp and len(a.index) == len(b.index)


def _element(of: RuntimeVariable) -> list[str]:
    return [str(expr) for expr in of.index]


# ---------------------------------------------------------------- inverse, image, counts


def inverse(asked: IndexingMap) -> tuple[IndexingMap, ...]:
    """``results -> dims`` in disjoint pieces; runtime variables stay what they are.

    Raises:
        UndecidedError: that is beyond the budget.
    """
    runtime = [rt.expr for rt in asked.runtime]
    found = exact.inverse(_reading(asked, (*asked.results, *runtime)))
    pieces = _decided(found, f"the inverse of {asked}")
    return tuple([_inverted(piece, asked) for piece in pieces])


def _inverted(piece: exact.Relation, asked: IndexingMap) -> IndexingMap:
    """A piece of the inverse relation, whose last inputs are the runtime variables."""
    rank = len(asked.results)
    elements = Substitution(dict(zip(asked.dims, piece.results, strict=True)))
    runtime = [
        replace(rt, variable=variable, index=tuple(map(elements, rt.index)))
        for rt, variable in zip(asked.runtime, piece.inputs[rank:], strict=True)
    ]
    made = IndexingMap.of(
        piece.inputs[:rank],
        piece.results,
        ranges=piece.hidden,
        runtime=runtime,
        constraints=piece.constraints,
        grade=asked.grade,
    )
    return made.simplify()


def image(asked: IndexingMap) -> tuple[IndexingMap, ...]:
    """All results, for any value of the runtime variables, as maps from nothing in disjoint pieces.

    Raises:
        UndecidedError: that is beyond the budget.
    """
    pieces = _decided(exact.image(_reading(asked, asked.results)), f"the image of {asked}")
    return tuple(
        [
            IndexingMap.of(
                (), p.results, ranges=p.hidden, constraints=p.constraints, grade=asked.grade
            ).simplify()
            for p in pieces
        ]
    )


def count_image(asked: IndexingMap) -> int:
    """How many different results there are, for any value of the runtime variables.

    Raises:
        UndecidedError: that is beyond the budget.
    """
    found = exact.count(_reading(asked, asked.results))
    return _decided(found, f"the number of results of {asked}")


def count_domain(asked: IndexingMap) -> int:
    """How many points the domain has: values of dimensions, ranges and runtime variables.

    Raises:
        UndecidedError: that is beyond the budget.
    """
    if not asked.constraints:
        return prod(max(0, v.upper - v.lower + 1) for v in asked.variables)
    every = tuple([v.as_expr() for v in asked.variables])
    return _decided(exact.count(_reading(asked, every)), f"the size of the domain of {asked}")


def _reading(asked: IndexingMap, results: tuple[Expr, ...]) -> exact.Relation:
    """The dimensions in relation to `results`, everything else hidden."""
    hidden = tuple([v for v in asked.variables if v not in asked.dims])
    return exact.Relation(asked.dims, hidden, results, asked.constraints)


def _decided(found: Answer | exact.Undecided, what: str) -> Answer:
    if isinstance(found, exact.Undecided):
        raise UndecidedError(f"{what}: {found}")
    return found
