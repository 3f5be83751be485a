"""Conversion of relations to isl, and of isl sets, maps and functions from other tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final

import islpy as isl

from simplifier.atoms import Variable
from simplifier.exact.context import BUDGET, BudgetExhaustedError, within_budget
from simplifier.exact.decode import pieces
from simplifier.exact.encode import Relation, relation_text
from simplifier.exact.enumeration import LEAST_BUDGET, pieces_budget
from simplifier.interval import Interval
from simplifier.unknown import Unknown

_IN: Final = isl.dim_type.in_
_OUT: Final = isl.dim_type.out
_PARAM: Final = isl.dim_type.param
_SETS: Final = (isl.Set, isl.BasicSet, isl.UnionSet)
_FUNCTIONS: Final = (isl.Aff, isl.PwAff, isl.MultiAff, isl.MultiPwAff, isl.PwMultiAff)
_MAPS: Final = (isl.Map, isl.BasicMap, isl.UnionMap, *_FUNCTIONS)


@dataclass(frozen=True, slots=True)
class ImportedRelation:
    """A converted relation in disjoint pieces.

    Attributes:
        inputs, parameters: names; the inputs of each piece are these, the parameters last.
        rank: number of results.
        pieces: the disjoint pieces; ``()`` for an empty relation.

    >>> from simplifier.exact import relations
    >>> imported = relations("[n] -> { [i] -> [i + n, i] : 0 <= i < 4 and 0 <= n <= 9 }", {})
    >>> imported.inputs, imported.parameters, imported.rank, len(imported.pieces)
    (('i',), ('n',), 2, 1)
    """

    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    rank: int
    pieces: tuple[Relation, ...]


def to_isl(relation: Relation, parameters: Sequence[Variable] = ()) -> isl.Map:
    """Return the relation as an ``isl.Map``; `parameters` become named isl parameters.

    Raises:
        NotAffineError: an expression is not affine.
        BudgetExhaustedError: isl does not read the text within its budget.

    >>> from simplifier import Variable
    >>> from simplifier.exact import Relation, to_isl
    >>> i = Variable("i", 0, 4)
    >>> to_isl(Relation((i,), (), (i.expr * 2,), ())).range().count_val()
    Val("5")
    """
    text = relation_text(relation, parameters)
    every = replace(relation, inputs=(*relation.inputs, *parameters))
    budget = max(pieces_budget(BUDGET, every), LEAST_BUDGET)
    is_read = within_budget(lambda ctx: isl.Map.read_from_str(ctx, text) is not None, budget)
    if isinstance(is_read, Unknown):
        raise BudgetExhaustedError(f"cannot convert the map to isl: {is_read}")
    return isl.Map.read_from_str(isl.DEFAULT_CONTEXT, text)


def relations(
    given: object, bounds: Mapping[str, Interval], budget: int = BUDGET
) -> ImportedRelation | Unknown:
    """Convert an isl set, map or function, or its text; a set becomes a relation without results.

    Args:
        bounds: inclusive bounds of inputs and parameters by name.
    Raises:
        ValueError: `given` is none of these; or an input, parameter or result is unbounded.

    >>> foreign = relations("[n] -> { [i] -> [i + n] : 0 <= i < 4 and 0 <= n <= 9 }", {})
    >>> foreign.inputs, foreign.parameters, foreign.pieces[0].results
    (('i',), ('n',), (Expr('i + n'),))
    """
    if not isinstance(given, (str, *_SETS, *_MAPS)):
        kinds = ", ".join(kind.__name__ for kind in (*_SETS, *_MAPS))
        raise ValueError(f"expected text or an isl object ({kinds}), got {type(given).__name__}")
    text = str(given)
    as_set = not _has_arrow(text) if isinstance(given, str) else isinstance(given, _SETS)
    return within_budget(lambda ctx: _convert_map(_read_map(ctx, text, as_set), bounds), budget)


def _has_arrow(text: str) -> bool:
    """True for the text of a map: an arrow between its tuples, not inside the tuple of a set."""
    depth = 0
    for token in re.findall(r"[\[(]|[\])]|->", text.partition("{")[2]):
        if token == "->" and not depth:
            return True
        depth += {"[": 1, "(": 1, "->": 0}.get(token, -1)
    return False


def _read_map(ctx: Any, text: str, as_set: bool) -> isl.Map:
    """Parse a map, or a set as a map without results."""
    try:
        if as_set:
            return isl.Map.from_domain(isl.Set.read_from_str(ctx, text))
        return isl.Map.read_from_str(ctx, text)
    except isl.Error as error:
        if _is_exhausted(ctx):  # isl also reports an exhausted budget as a syntax error
            raise
        spaces = _spaces(ctx, text, as_set)
        if spaces > 1:
            raise ValueError(
                f"expected one space, got {spaces}: convert each separately: {text}"
            ) from None
        reason = str(error).partition(" failed: ")[2].partition(" in /")[0]
        raise ValueError(f"invalid isl set or map ({reason}): {text}") from None


def _is_exhausted(ctx: Any) -> bool:
    try:
        isl.Set.read_from_str(ctx, "{ [i] : 0 <= i < 4 and i mod 2 = 0 }").is_empty()
    except isl.Error:
        return True
    return False


def _spaces(ctx: Any, text: str, as_set: bool) -> int:
    """Number of spaces of a union of sets or maps; 0 if `text` is not a union."""
    try:
        if as_set:
            return int(isl.UnionSet.read_from_str(ctx, text).n_set())
        return int(isl.UnionMap.read_from_str(ctx, text).n_map())
    except isl.Error:
        return 0


def _convert_map(relation: isl.Map, bounds: Mapping[str, Interval]) -> ImportedRelation:
    rank, count_params = relation.dim(_OUT), relation.dim(_PARAM)
    parameters = [str(relation.get_dim_name(_PARAM, k)) for k in range(count_params)]
    isl_names = [relation.get_dim_name(_IN, k) for k in range(relation.dim(_IN))]
    inputs = list(_distinct_names(isl_names, parameters))
    relation = relation.move_dims(_IN, len(inputs), _PARAM, 0, count_params)
    names = [*inputs, *parameters]
    for name, (lower, upper) in bounds.items():
        if name not in names:
            raise ValueError(f"no variable is called {name!r}: the variables are {names}")
        position = names.index(name)
        relation = relation.lower_bound_val(_IN, position, _val(relation, lower))
        relation = relation.upper_bound_val(_IN, position, _val(relation, upper))
    if relation.is_empty():
        return ImportedRelation(tuple(inputs), tuple(parameters), rank, ())
    domain, results = relation.domain(), relation.range()
    for k, name in reversed([*enumerate(names)]):  # parameters first: inputs may depend on them
        _require_bounds(domain, k, f"'{name}'")
    for k in range(rank):
        _require_bounds(results, k, f"result {k}")
    return ImportedRelation(tuple(inputs), tuple(parameters), rank, pieces(relation, names))


def _val(relation: isl.Map, value: int) -> isl.Val:
    return isl.Val.read_from_str(relation.get_ctx(), str(value))


def _distinct_names(isl_names: Iterable[str | None], taken: Iterable[str]) -> Iterator[str]:
    """Distinct names: those of isl, or ``d0, d1, …`` for missing and repeated names."""
    used = set(taken)
    for k, name in enumerate(isl_names):
        if name is None or name in used:
            name = next(f"d{n}" for n in count(k) if f"d{n}" not in used)
        used.add(name)
        yield name


def _require_bounds(points: isl.Set, k: int, name: str) -> None:
    for side, value in (("lower", points.dim_min_val(k)), ("upper", points.dim_max_val(k))):
        if not value.is_int():
            raise ValueError(
                f"{name} has no {side} bound: add a condition to the set or map, or pass inclusive "
                "bounds by name as `bounds`"
            )
