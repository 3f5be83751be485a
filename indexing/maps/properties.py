"""Properties of maps, decided exactly: injective, surjective, bijective, dependent on a dimension.

Each function takes one map or several; several maps are the union of their relations.  The answer
is `True`; or a `Verdict`, which is true or false, with a witness and a grade; or `Unknown`, if
ISL's budget is exhausted or the answer depends on runtime values in an undecided way.

* A property must hold for all values of the runtime variables.  Two points that read the same
  element of a source have the same value; different elements may have any values.
* A map with the grade "may" over-approximates the program.  A `True` of `is_injective` and
  `is_single_valued` therefore holds for the program as well.  An answer that relies on
  over-approximated pairs is a `Verdict` with the grade "may".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement
from typing import Literal, TypeAlias

from hlo.arguments import checked
from indexing.maps.displayed import Displayed
from indexing.maps.indexing_map import Extents, Grade, IndexingMap, dims
from indexing.maps.relation import MapOrMaps, as_maps, check_spaces
from indexing.maps.witnesses import (
    PairProperty,
    Witness,
    change,
    has_two_results,
    pair_of_points,
    shares_result,
    unreached_element,
)
from simplifier.atoms import Variable
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class Verdict(Displayed):
    """The answer to a property of maps, with its reason; its truth value is `holds`.

    Attributes:
        holds: True if the maps have the property.
        reason: the reason, in words.
        witness: points and results that prove the reason; `None` if it needs none.
        grade: "exact": the answer holds for the program; "may": the answer holds for the maps, one
            of which over-approximates the program.

    >>> narrow = IndexingMap.over((2, 8), lambda d: [d[0] * 7 + d[1]])
    >>> verdict = is_injective(narrow)
    >>> bool(verdict), verdict.reason, verdict.witness.points
    (False, 'not injective: two points have the same result', ((0, 7), (1, 0)))
    """

    holds: bool
    reason: str
    witness: Witness | None = None
    grade: Grade = "exact"

    def __bool__(self) -> bool:
        return self.holds


Decision: TypeAlias = Literal[True] | Verdict | Unknown


@checked
def is_injective(maps: MapOrMaps) -> Decision:
    """Return True if no two points have a result in common: ``f(x) = f(y)`` implies ``x = y``.

    For an output-to-input map: at most one output element reads each input element.

    Returns:
        `True`; a false `Verdict` whose witness is two points and their common result; or `Unknown`.
    Raises:
        ValueError: the maps have different numbers of dimensions or results.
    Source: isl manual, "Unary Properties" (``isl_map_is_injective``).

    >>> rows = IndexingMap.over((4, 8), lambda d: [d[0] * 8 + d[1]])
    >>> is_injective(rows)
    True
    >>> narrow = IndexingMap.over((2, 8), lambda d: [d[0] * 7 + d[1]])
    >>> is_injective(narrow).witness
    Witness(points=((0, 7), (1, 0)), results=((7,),), runtime=())
    """
    return _no_pair(
        maps, shares_result, "not injective: two points have the same result", "injective"
    )


@checked
def is_single_valued(maps: MapOrMaps) -> Decision:
    """Return True if no point has two results: the relation is a (partial) function.

    Returns:
        `True`; a false `Verdict` whose witness is a point and two of its results; or `Unknown`.
    Raises:
        ValueError: the maps have different numbers of dimensions or results.
    Source: isl manual, "Unary Properties" (``isl_map_is_single_valued``).

    >>> from indexing.maps.indexing_map import ranges
    >>> is_single_valued(IndexingMap.of(dims((3,)), ranges(2), ranges=ranges(2))).witness
    Witness(points=((0,),), results=((0,), (1,)), runtime=())
    """
    return _no_pair(
        maps, has_two_results, "not single-valued: one point has two results", "single-valued"
    )


@checked
def is_surjective_onto(maps: MapOrMaps, onto: Extents) -> Decision:
    """Return True if every index of an array is a result, for all runtime values.

    Args:
        onto: the shape of the array, or its sizes: one size for each result.
    Returns:
        `True`; a false `Verdict` whose witness is an unreached element; a true `Verdict` of grade
        "may" if only over-approximated pairs reach some element; or `Unknown`.
    Raises:
        ValueError: the number of sizes is not the number of results.

    >>> evens = IndexingMap.over((5,), lambda d: [d[0] * 2])
    >>> is_surjective_onto(evens, (10,)).reason
    'not surjective: element [1] is never reached'
    """
    maps = as_maps(maps)
    target = tuple([v.renamed(f"e{k}") for k, v in enumerate(dims(onto))])
    check_spaces(maps, results=len(target))
    witness = unreached_element(maps, target)
    if isinstance(witness, Unknown):
        return witness
    if witness is not None:
        element = list(witness.results[0])
        return Verdict(False, f"not surjective: element {element} is never reached", witness)
    sure = [m for m in maps if m.grade == "exact"]
    witness = None if len(sure) == len(maps) else unreached_element(sure, target)
    if witness is None:
        return True
    if isinstance(witness, Unknown):
        return witness
    reason = "every element is reached, some only by maps with the grade may"
    return Verdict(True, reason, grade="may")


@checked
def is_bijection(maps: MapOrMaps, onto: Extents | None = None) -> Decision:
    """Return True if the relation is single-valued, injective and, given `onto`, surjective.

    Args:
        onto: the array whose indices must all be results; without it the codomain is the image.
    Raises:
        ValueError: as for `is_injective` and `is_surjective_onto`.
    Source: isl manual, "Unary Properties" (``isl_map_is_bijective``), for the form without `onto`.

    >>> transpose = IndexingMap.over((3, 5), lambda d: [d[1], d[0]])
    >>> is_bijection(transpose, onto=(5, 3))
    True
    """
    maps = as_maps(maps)
    properties = [partial(is_single_valued, maps), partial(is_injective, maps)]
    if onto is not None:
        properties.append(partial(is_surjective_onto, maps, onto))
    weakest: Decision = True
    for decide in properties:
        decision = decide()
        if isinstance(decision, Unknown) or not decision:
            return decision
        weakest = weakest if decision is True else decision
    return weakest


@checked
def depends_on(maps: MapOrMaps, dimension: int | str) -> bool | Verdict | Unknown:
    """Return a true value if the results change with a dimension, all others being equal.

    Both compared points are within the bounds of the dimension.  A point without results differs
    from a point with results.  A change for some values of the runtime variables counts.

    Args:
        dimension: index or name of a dimension.
    Returns:
        `False`; a `Verdict` whose witness is two points and a result of the first that the second
        lacks; or `Unknown`.
    Raises:
        IndexError: `dimension` is an index out of range.
        ValueError: no dimension has the name `dimension`; or the maps have different numbers of
            dimensions or results.

    >>> verdict = depends_on(IndexingMap.over((4, 8), lambda d: [(d[0] * 8 + d[1]) // 4]), 1)
    >>> bool(verdict), verdict.reason
    (True, 'two points that differ only in dimension d1 have different results')
    >>> depends_on(IndexingMap.over((4, 2), lambda d: [(d[0] * 2 + d[1]) // 2]), "d1")
    False
    """
    maps = as_maps(maps)
    check_spaces(maps)
    if not maps:
        return False
    k = _dimension_index(maps[0].dims, dimension)
    name = maps[0].dims[k].name
    witness = change(maps, k) if _mentions(maps, k) else None
    if isinstance(witness, Unknown):
        return witness
    grade: Grade = "may" if _has_may(maps) else "exact"
    if witness is not None:
        reason = f"two points that differ only in dimension {name} have different results"
        return Verdict(True, reason, witness, grade)
    if grade == "exact":
        return False
    return Verdict(False, f"no result changes with dimension {name}", grade=grade)


def _no_pair(
    maps: MapOrMaps, counterexample: PairProperty, reason: str, property_name: str
) -> Decision:
    """`True` if no pair of related points is a counterexample; pairs of exact maps come first."""
    maps = as_maps(maps)
    check_spaces(maps)
    pairs = combinations_with_replacement(maps, 2)
    for pair in sorted(pairs, key=_has_may):
        witness = pair_of_points(*pair, counterexample, property_name)
        if isinstance(witness, Unknown):
            return witness
        if witness is not None:
            return Verdict(False, reason, witness, "may" if _has_may(pair) else "exact")
    return True


def _has_may(maps: Sequence[IndexingMap]) -> bool:
    return any(m.grade == "may" for m in maps)


def _dimension_index(of: Sequence[Variable], dimension: int | str) -> int:
    if isinstance(dimension, str):
        names = [v.name for v in of]
        if dimension not in names:
            raise ValueError(
                f"no dimension is called {dimension!r}: the dimensions are {', '.join(names)}"
            )
        return names.index(dimension)
    if not 0 <= dimension < len(of):
        raise IndexError(f"dimension {dimension} is out of range: the map has {len(of)} dimensions")
    return dimension


def _mentions(maps: Sequence[IndexingMap], k: int) -> bool:
    """True if an expression of some map has dimension k, or the maps bound it differently."""
    if len({m.dims[k].bounds for m in maps}) > 1:
        return True
    exprs = [
        (m.dims[k], expr)
        for m in maps
        for expr in (
            *m.results,
            *[c.expr for c in m.constraints],
            *[i for rt in m.runtime for i in rt.index],
        )
    ]
    return any(d in expr.variables() for d, expr in exprs)
