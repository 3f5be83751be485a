"""Claims about maps, decided exactly: injective, surjective, a bijection, dependent on a dimension.

Each is asked of one map or of several: a tuple of maps is the union of what they relate.  The
answer is `True`; or a `Verdict`, which is true or false, with a witness and a grade; or `Unknown`,
where ISL's budget does not suffice or the answer depends on values in a way that is not decided.

* Runtime variables are values that only the program knows.  A claim holds whatever they are: two
  points that read the same element of a source have the same value, different elements may have any
  values.
* A map with the grade "may" relates no less than the program does.  So a `True` of `is_injective`
  and `is_single_valued` holds for the program as well; where an answer holds only for the maps as
  they are written, because it needs such a map, it is a `Verdict` with the grade "may".
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement
from typing import Literal, TypeAlias

from indexing.maps.indexing_map import Extents, Grade, IndexingMap, dims
from indexing.maps.relation import MapOrMaps, as_maps, same_spaces
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
class Verdict:
    """An answer with its reason; as a condition it is what it says.

    Attributes:
        holds: whether the claim holds.
        reason: the reason, in words.
        witness: the points and results that it speaks of; `None` where it needs none.
        grade: "exact": so it is in the program; "may": so it is for the maps as they are written,
            of which one relates perhaps more than the program does.
    """

    holds: bool
    reason: str
    witness: Witness | None = None
    grade: Grade = "exact"

    def __bool__(self) -> bool:
        return self.holds

    @property
    def says(self) -> str:
        """Deprecated name of `reason`."""
        warnings.warn(
            "Verdict.says is deprecated: use Verdict.reason", DeprecationWarning, stacklevel=2
        )
        return self.reason


Decision: TypeAlias = Literal[True] | Verdict | Unknown


def is_injective(asked: MapOrMaps) -> Decision:
    """No two points have a result in common: each element is read by one point at most.

    Raises:
        ValueError: the maps have different numbers of dimensions or results.

    >>> rows = IndexingMap.over((4, 8), lambda d: [d[0] * 8 + d[1]])
    >>> is_injective(rows)
    True
    >>> narrow = IndexingMap.over((2, 8), lambda d: [d[0] * 7 + d[1]])
    >>> is_injective(narrow).witness
    Witness(points=((0, 7), (1, 0)), results=((7,),), runtime=())
    """
    return _no_pair(asked, shares_result, "two points have the same result")


def is_single_valued(asked: MapOrMaps) -> Decision:
    """No point has two results: the maps are a function of the points that have one.

    Raises:
        ValueError: the maps have different numbers of dimensions or results.

    >>> from indexing.maps.indexing_map import ranges
    >>> is_single_valued(IndexingMap.of(dims((3,)), ranges(2), ranges=ranges(2))).witness
    Witness(points=((0,),), results=((0,), (1,)), runtime=())
    """
    return _no_pair(asked, has_two_results, "one point has two results")


def is_surjective_onto(asked: MapOrMaps, onto: Extents) -> Decision:
    """Every index of an array of these sizes is a result, whatever the runtime variables are.

    Args:
        onto: a shape, or sizes: one for each result.
    Raises:
        ValueError: there is not one size for each result.

    >>> evens = IndexingMap.over((5,), lambda d: [d[0] * 2])
    >>> is_surjective_onto(evens, (10,)).witness.results
    ((1,),)
    """
    maps = as_maps(asked)
    target = tuple([v.renamed(f"e{k}") for k, v in enumerate(dims(onto))])
    same_spaces(maps, results=len(target))
    found = unreached_element(maps, target)
    if isinstance(found, Unknown):
        return found
    if found is not None:
        return Verdict(False, "an element is no result", found)
    sure = [m for m in maps if m.grade == "exact"]
    found = None if len(sure) == len(maps) else unreached_element(sure, target)
    if found is None:
        return True
    if isinstance(found, Unknown):
        return found
    says = "every element is a result of the maps, some only of a map with the grade may"
    return Verdict(True, says, grade="may")


def is_bijection(asked: MapOrMaps, onto: Extents | None = None) -> Decision:
    """Every point of the domain has one result, which no other point has; and all are hit.

    Args:
        onto: the array whose every index is to be a result; without it, the results are.
    Raises:
        ValueError: as `is_injective` and `is_surjective_onto`.

    >>> transpose = IndexingMap.over((3, 5), lambda d: [d[1], d[0]])
    >>> is_bijection(transpose, onto=(5, 3))
    True
    """
    maps = as_maps(asked)
    questions = [partial(is_single_valued, maps), partial(is_injective, maps)]
    if onto is not None:
        questions.append(partial(is_surjective_onto, maps, onto))
    doubtful: Decision = True
    for question in questions:
        found = question()
        if isinstance(found, Unknown) or not found:
            return found
        doubtful = doubtful if found is True else found
    return doubtful


def depends_on(asked: MapOrMaps, dimension: int | str) -> bool | Verdict | Unknown:
    """Whether the results change with a dimension: two points that differ in it alone show it.

    Both points lie within the bounds of the dimension; one that has no result is different from one
    that has.  Where the maps have runtime variables, a change for some values of them counts.

    Args:
        dimension: the number of a dimension, or its name.
    Returns:
        `False`; or a `Verdict` whose witness is two points, and a result that only the first has.
    Raises:
        IndexError, ValueError: there is no such dimension.

    >>> found = depends_on(IndexingMap.over((4, 8), lambda d: [(d[0] * 8 + d[1]) // 4]), 1)
    >>> bool(found), found.reason
    (True, 'two points that differ in it have different results')
    >>> depends_on(IndexingMap.over((4, 2), lambda d: [(d[0] * 2 + d[1]) // 2]), "d1")
    False
    """
    maps = as_maps(asked)
    same_spaces(maps)
    if not maps:
        return False
    k = _number(maps[0].dims, dimension)
    found = change(maps, k) if _mentions(maps, k) else None
    if isinstance(found, Unknown):
        return found
    grade: Grade = "may" if _doubtful(maps) else "exact"
    if found is not None:
        return Verdict(True, "two points that differ in it have different results", found, grade)
    if grade == "exact":
        return False
    return Verdict(False, "no result changes with it", grade=grade)


def _no_pair(asked: MapOrMaps, bad: PairProperty, says: str) -> Decision:
    """`True` if no pair of related points is `bad`; exact maps are tried before the others."""
    maps = as_maps(asked)
    same_spaces(maps)
    pairs = combinations_with_replacement(maps, 2)
    for pair in sorted(pairs, key=_doubtful):
        witness = pair_of_points(*pair, bad, says)
        if isinstance(witness, Unknown):
            return witness
        if witness is not None:
            return Verdict(False, says, witness, "may" if _doubtful(pair) else "exact")
    return True


def _doubtful(maps: Sequence[IndexingMap]) -> bool:
    return any(m.grade == "may" for m in maps)


def _number(of: Sequence[Variable], dimension: int | str) -> int:
    if isinstance(dimension, str):
        names = [v.name for v in of]
        if dimension not in names:
            raise ValueError(f"there is no dimension {dimension!r}; there are {', '.join(names)}")
        return names.index(dimension)
    if not 0 <= dimension < len(of):
        raise IndexError(f"there is no dimension {dimension}; there are {len(of)}")
    return dimension


def _mentions(maps: Sequence[IndexingMap], k: int) -> bool:
    """Some map has the dimension in an expression, or the maps bound it differently."""
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
