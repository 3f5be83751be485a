"""Conversion of maps to and from isl sets, maps and functions, through `simplifier.exact`.

Dimensions become inputs of the isl map and runtime variables become parameters.  Range variables
are projected out: a point of the isl relation has several results.

Source: the isl manual, "Sets and Relations" and "Piecewise Quasi Affine Expressions".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable
from simplifier.conjunction import merge_constraints
from simplifier.interval import Interval
from simplifier.unknown import Unknown, with_query

if TYPE_CHECKING:  # isl is imported on first use: other notations do not need it
    from simplifier.exact import ImportedRelation


def to_isl(indexing_map: IndexingMap) -> object:
    """Return the relation as an ``islpy.Map``; runtime variables become parameters.

    Names that are invalid in isl (``other.rt0``, or keywords such as ``mod``) become ``x0, …``.

    >>> print(to_isl(IndexingMap.over((4,), lambda d: [d[0] * 2])))
    { [d0] -> [o0 = 2d0] : 0 <= d0 <= 3 }
    """
    from simplifier import exact

    relation = exact.Relation(
        indexing_map.dims, indexing_map.ranges, indexing_map.results, indexing_map.constraints
    )
    return exact.to_isl(relation, [rt.variable for rt in indexing_map.runtime])


def from_isl(
    given: object, bounds: Mapping[str, Interval] | None = None
) -> tuple[IndexingMap, ...] | Unknown:
    """Return an isl set, map or function as disjoint maps; ``()`` if it is empty.

    Inputs become dimensions with their isl names, and parameters become runtime variables without
    a source. If a point has several results, range variables enumerate them. A set becomes a map
    without results whose domain is the set (``isl.Map.from_range(set)`` gives a map to its
    elements instead). Tuple names are dropped, and nested tuples are flattened.

    Args:
        given: a set, map or function of ``islpy`` (basic, piecewise, multi), or its text. A
            function is restricted to its domain; that of an ``Aff`` is unbounded.
        bounds: inclusive bounds by name, for inputs and parameters that `given` does not bound.
    Raises:
        ValueError: `given` is none of these, has several spaces, or an unbounded dimension.

    >>> print(*from_isl("{ [i] -> [2i] : 0 <= i < 4; [i] -> [i] : 10 <= i < 12 }"), sep="\\n")
    (i) -> (i * 2), domain: i in [0, 3]
    (i) -> (i), domain: i in [10, 11]
    >>> print(*from_isl("[n] -> { [i] -> [i + n] : 0 <= i < 4 }", bounds={"n": (1, 8)}))
    (i){n} -> (i + n), domain: i in [0, 3], n in [1, 8]
    """
    foreign = _foreign(given, bounds)
    return foreign if isinstance(foreign, Unknown) else _pieces(foreign)


def one_from_isl(
    given: object, bounds: Mapping[str, Interval] | None = None
) -> IndexingMap | Unknown:
    """Return an isl set, map or function as a single map.

    Raises:
        ValueError: as for `from_isl`; or several maps are needed.
    """
    foreign = _foreign(given, bounds)
    if isinstance(foreign, Unknown):
        return foreign
    maps = _pieces(foreign)
    if len(maps) > 1:
        raise ValueError(
            f"expected one map, got {len(maps)}: use indexing.maps.interchange.from_isl for all of "
            f"them; the first is {maps[0]}"
        )
    dims = [Variable(name, 0, -1) for name in foreign.inputs]
    return maps[0] if maps else IndexingMap.empty(dims, foreign.rank)


def _foreign(given: object, bounds: Mapping[str, Interval] | None) -> ImportedRelation | Unknown:
    from simplifier import exact

    return with_query(exact.relations(given, bounds or {}), "cannot convert to maps", given)


def _pieces(foreign: ImportedRelation) -> tuple[IndexingMap, ...]:
    rank = len(foreign.inputs)
    return tuple(
        [
            IndexingMap.of(
                piece.inputs[:rank],
                piece.results,
                ranges=piece.hidden,
                runtime=[RuntimeVariable(variable) for variable in piece.inputs[rank:]],
                constraints=merge_constraints(piece.constraints),
            )
            for piece in foreign.pieces
        ]
    )
