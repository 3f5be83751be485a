"""Maps as isl's, and isl's sets, maps and functions as maps; through `simplifier.exact`.

Dimensions are isl's inputs, runtime variables its parameters, and range variables are gone: isl
sees the relation, in which a point has several results.

Source: the isl manual, "Sets and Relations" and "Piecewise Quasi Affine Expressions".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable
from simplifier.constraints import merged
from simplifier.interval import Interval
from simplifier.unknown import Unknown, about

if TYPE_CHECKING:  # isl is loaded where it is used: other notations do without
    from simplifier.exact import Foreign


def to_isl(shown: IndexingMap) -> object:
    """The relation as an ``islpy.Map``; runtime variables are parameters.

    Names that isl does not take (``other.rt0``, or words such as ``mod``) become ``x0, …``.

    >>> print(to_isl(IndexingMap.over((4,), lambda d: [d[0] * 2])))
    { [d0] -> [o0 = 2d0] : 0 <= d0 <= 3 }
    """
    from simplifier import exact

    relation = exact.Relation(shown.dims, shown.ranges, shown.results, shown.constraints)
    return exact.to_isl(relation, [rt.variable for rt in shown.runtime])


def from_isl(
    given: object, bounds: Mapping[str, Interval] | None = None
) -> tuple[IndexingMap, ...] | Unknown:
    """What `given` relates, as maps that have no point in common; none where it is empty.

    Inputs become dimensions and keep their names where isl has some, parameters become runtime
    variables without a source, and where a point has several results, range variables run over
    them. A set becomes a map to nothing, with the set as its domain (``isl.Map.from_range(set)``
    gives the map to its elements instead). Tuples' names are dropped, nested tuples flattened.

    Args:
        given: a set, map or function of ``islpy`` (basic, piecewise, of several results), or its
            text. A function is defined on its own domain only, so that of an ``Aff`` is unbounded.
        bounds: inclusive bounds by name, for inputs and parameters that `given` does not bound.
    Raises:
        ValueError: `given` is none of these, or holds several spaces, or a dimension is unbounded.

    >>> print(*from_isl("{ [i] -> [2i] : 0 <= i < 4; [i] -> [i] : 10 <= i < 12 }"), sep="\\n")
    (i) -> (i * 2), domain: i in [0, 3]
    (i) -> (i), domain: i in [10, 11]
    >>> print(*from_isl("[n] -> { [i] -> [i + n] : 0 <= i < 4 }", bounds={"n": (1, 8)}))
    (i){n} -> (i + n), domain: i in [0, 3], n in [1, 8]
    """
    found = _foreign(given, bounds)
    return found if isinstance(found, Unknown) else _pieces(found)


def one_from_isl(
    given: object, bounds: Mapping[str, Interval] | None = None
) -> IndexingMap | Unknown:
    """The same as one map, where one is enough.

    Raises:
        ValueError: also if there are several pieces.
    """
    found = _foreign(given, bounds)
    if isinstance(found, Unknown):
        return found
    maps = _pieces(found)
    if len(maps) > 1:
        raise ValueError(
            f"this is {len(maps)} maps, not one: indexing.interchange.from_isl gives all of them, "
            f"the first is {maps[0]}"
        )
    nothing = [Variable(name, 0, -1) for name in found.inputs]
    return maps[0] if maps else IndexingMap.empty(nothing, found.rank)


def _foreign(given: object, bounds: Mapping[str, Interval] | None) -> Foreign | Unknown:
    from simplifier import exact

    return about(exact.relations(given, bounds or {}), given, "as maps")


def _pieces(found: Foreign) -> tuple[IndexingMap, ...]:
    rank = len(found.inputs)
    return tuple(
        [
            IndexingMap.of(
                piece.inputs[:rank],
                piece.results,
                ranges=piece.hidden,
                runtime=[RuntimeVariable(variable) for variable in piece.inputs[rank:]],
                constraints=merged(piece.constraints),
            )
            for piece in found.pieces
        ]
    )
