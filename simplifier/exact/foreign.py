"""Sets, maps and functions of isl that others made, as relations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import islpy as isl

from simplifier.exact.context import BUDGET, within_budget
from simplifier.exact.decode import pieces
from simplifier.exact.encode import Relation
from simplifier.interval import Interval
from simplifier.unknown import Unknown

_IN: Final = isl.dim_type.in_
_OUT: Final = isl.dim_type.out
_PARAM: Final = isl.dim_type.param
_SETS: Final = (isl.Set, isl.BasicSet, isl.UnionSet)
_FUNCTIONS: Final = (isl.Aff, isl.PwAff, isl.MultiAff, isl.MultiPwAff, isl.PwMultiAff)
_MAPS: Final = (isl.Map, isl.BasicMap, isl.UnionMap, *_FUNCTIONS)


@dataclass(frozen=True, slots=True)
class Foreign:
    """A relation in disjoint pieces.

    Attributes:
        inputs, parameters: names; each piece's inputs are these, the parameters last.
        rank: how many results there are.
        pieces: the parts of the relation; none where it is empty.
    """

    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    rank: int
    pieces: tuple[Relation, ...]


def relations(
    given: object, bounds: Mapping[str, Interval], budget: int = BUDGET
) -> Foreign | Unknown:
    """A set, map or function of isl, or its text, as relations; a set relates to nothing.

    Raises:
        ValueError: it is none of these, or an input, parameter or result is unbounded even with
            `bounds`, which are inclusive and by name.

    >>> found = relations("[n] -> { [i] -> [i + n] : 0 <= i < 4 and 0 <= n <= 9 }", {})
    >>> found.inputs, found.parameters, found.pieces[0].results
    (('i',), ('n',), (Expr('i + n'),))
    """
    if not isinstance(given, (str, *_SETS, *_MAPS)):
        kinds = ", ".join(kind.__name__ for kind in (*_SETS, *_MAPS))
        raise ValueError(f"expected text or one of isl's {kinds}; found {type(given).__name__}")
    text = str(given)
    as_set = not _has_arrow(text) if isinstance(given, str) else isinstance(given, _SETS)
    return within_budget(lambda ctx: _taken_apart(_read(ctx, text, as_set), bounds), budget)


def _has_arrow(text: str) -> bool:
    """A map's text, with an arrow between its tuples; not one inside of the tuple of a set."""
    depth = 0
    for token in re.findall(r"[\[(]|[\])]|->", text.partition("{")[2]):
        if token == "->" and not depth:
            return True
        depth += {"[": 1, "(": 1, "->": 0}.get(token, -1)
    return False


def _read(ctx: Any, text: str, as_set: bool) -> isl.Map:
    """The map, or the set as a map to nothing."""
    try:
        if as_set:
            return isl.Map.from_domain(isl.Set.read_from_str(ctx, text))
        return isl.Map.read_from_str(ctx, text)
    except isl.Error as error:
        if _is_spent(ctx):  # isl takes the text for wrong where the budget ends, too
            raise
        spaces = _spaces(ctx, text, as_set)
        if spaces > 1:
            raise ValueError(f"this holds {spaces} spaces, give the part in one: {text}") from None
        reason = str(error).partition(" failed: ")[2].partition(" in /")[0]
        raise ValueError(f"isl does not read this as a set or map ({reason}): {text}") from None


def _is_spent(ctx: Any) -> bool:
    try:
        isl.Set.read_from_str(ctx, "{ [i] : 0 <= i < 4 and i mod 2 = 0 }").is_empty()
    except isl.Error:
        return True
    return False


def _spaces(ctx: Any, text: str, as_set: bool) -> int:
    """How many spaces the sets or maps of a union are in; 0 if `text` is no union."""
    try:
        if as_set:
            return int(isl.UnionSet.read_from_str(ctx, text).n_set())
        return int(isl.UnionMap.read_from_str(ctx, text).n_map())
    except isl.Error:
        return 0


def _taken_apart(found: isl.Map, bounds: Mapping[str, Interval]) -> Foreign:
    rank, count_params = found.dim(_OUT), found.dim(_PARAM)
    parameters = [str(found.get_dim_name(_PARAM, k)) for k in range(count_params)]
    said = [found.get_dim_name(_IN, k) for k in range(found.dim(_IN))]
    inputs = list(_distinct(said, parameters))
    found = found.move_dims(_IN, len(inputs), _PARAM, 0, count_params)
    names = [*inputs, *parameters]
    for name, (lower, upper) in bounds.items():
        if name not in names:
            raise ValueError(f"{name!r} is bounded, but is none of the variables {names}")
        position = names.index(name)
        found = found.lower_bound_val(_IN, position, _val(found, lower))
        found = found.upper_bound_val(_IN, position, _val(found, upper))
    if found.is_empty():
        return Foreign(tuple(inputs), tuple(parameters), rank, ())
    domain, results = found.domain(), found.range()
    for k, name in reversed([*enumerate(names)]):  # parameters first: others may depend on them
        _require_bounds(domain, k, f"'{name}'")
    for k in range(rank):
        _require_bounds(results, k, f"result {k}")
    return Foreign(tuple(inputs), tuple(parameters), rank, pieces(found, names))


def _val(found: isl.Map, value: int) -> isl.Val:
    return isl.Val.read_from_str(found.get_ctx(), str(value))


def _distinct(said: Iterable[str | None], taken: Iterable[str]) -> Iterator[str]:
    """The names where there are some, ``d0, d1, …`` for the others; none twice."""
    used = set(taken)
    for k, name in enumerate(said):
        if name is None or name in used:
            name = next(f"d{n}" for n in count(k) if f"d{n}" not in used)
        used.add(name)
        yield name


def _require_bounds(points: isl.Set, k: int, name: str) -> None:
    for side, value in (("lower", points.dim_min_val(k)), ("upper", points.dim_max_val(k))):
        if not value.is_int():
            raise ValueError(
                f"{name} has no {side} bound: a map is over bounded integers; say its bounds in a "
                f"condition of the set or map, or by name in `bounds`"
            )
