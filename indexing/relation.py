"""Questions about maps as relations, answered exactly through `simplifier.exact`."""

from __future__ import annotations

from indexing.map import Difference, IndexingMap, RuntimeVariable
from simplifier import exact
from simplifier.linear import Variable


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
    runtime = _matched(first, second)
    spaces = [(len(m.dims), len(m.results)) for m in (first, second)]
    if spaces[0] != spaces[1]:
        if is_empty(first) and is_empty(second):
            return None
        raise ValueError(
            f"maps of different spaces: {spaces[0][0]} dimensions to {spaces[0][1]} results, and "
            f"{spaces[1][0]} to {spaces[1][1]}:\n  {first}\n  {second}"
        )
    left = _relation(first, [a for a, _ in runtime])
    right = _relation(second, [b for _, b in runtime])
    found = exact.difference(left, right)
    if isinstance(found, exact.Undecided):
        raise UndecidedError(f"is {first} equal to {second}? {found}")
    if found is None:
        return None
    names = [v.name for v in left.inputs]
    at = dict(zip(names, found.point, strict=True))
    return Difference(at, found.results, "first" if found.in_first else "second")


def to_isl(asked: IndexingMap) -> object:
    """The relation as an ``islpy.Map``; runtime variables are parameters."""
    parameters = [rt.variable for rt in asked.runtime]
    relation = exact.Relation(asked.dims, asked.ranges, asked.results, asked.constraints)
    if asked.is_known_empty and not asked.dims:
        relation = exact.Relation((), (), (), asked.constraints)
    return exact.to_isl(relation, parameters)


def _relation(asked: IndexingMap, runtime: list[Variable]) -> exact.Relation:
    inputs = (*asked.dims, *runtime)
    hidden = [v for v in asked.variables if v not in inputs]
    return exact.Relation(inputs, tuple(hidden), asked.results, asked.constraints)


def _matched(first: IndexingMap, second: IndexingMap) -> list[tuple[Variable, Variable]]:
    """Pairs of runtime variables that have the same value; one that only one map has is a pair with
    a variable of its own on the other side, of which that map does not depend."""
    pairs: list[tuple[Variable, Variable]] = []
    left = list(second.runtime)
    for rt in first.runtime:
        other = next((o for o in left if _same(rt, o)), None)
        if other is None:
            pairs.append((rt.variable, Variable(f"only_first.{rt.name}", *rt.variable.bounds)))
        else:
            left.remove(other)
            pairs.append((rt.variable, other.variable))
    for rt in left:
        pairs.append((Variable(f"only_second.{rt.name}", *rt.variable.bounds), rt.variable))
    return pairs


def _same(a: RuntimeVariable, b: RuntimeVariable) -> bool:
    """Both are the same element of the same source; without a source, they have the same name."""
    if a.source is None or b.source is None:
        return a.name == b.name
    same_element = list(map(str, a.index)) == list(map(str, b.index))
    return a.source is b.source and a.clamp == b.clamp and same_element
