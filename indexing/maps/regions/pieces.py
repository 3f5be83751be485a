"""Pieces of regions: boxes, and images of maps without dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from hlo.arguments import brief, integers
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.regions.box_unions import union_of
from indexing.maps.regions.boxes import Box, TooManyBoxes, intersection
from indexing.maps.regions.images import image_boxes
from indexing.maps.spaces import range_prefix
from simplifier import exact
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.unknown import UndecidedError, Unknown

Piece: TypeAlias = Box | IndexingMap
"""A part of a region: a box, or the results of a map without dimensions."""


def map_of(box: Box) -> IndexingMap:
    """The box as the image of a map without dimensions."""
    ranges = [Variable(f"s{k}", 0, size - 1) for k, size in enumerate(box.sizes)]
    results = [v * s + o for v, s, o in zip(ranges, box.strides, box.offsets, strict=True)]
    return IndexingMap.of((), results, ranges=ranges)


def unite_pieces(parts: Sequence[Sequence[Piece]]) -> tuple[Piece, ...]:
    """The union of all pieces, as disjoint boxes in order and the images of other maps.

    The boxes of one part are disjoint.
    """
    sets = [[piece for piece in part if isinstance(piece, Box)] for part in parts]
    images: list[IndexingMap] = []
    for m in [p.simplify() for part in parts for p in part if isinstance(p, IndexingMap)]:
        boxes = image_boxes(m)
        if boxes is None:
            images.append(m)
        else:
            sets.append(boxes)
    try:
        return (*union_of(sets), *dict.fromkeys(images))
    except TooManyBoxes:
        images += [map_of(box) for boxes in sets for box in boxes]
        return tuple(dict.fromkeys(images))


def relation(m: IndexingMap) -> exact.Relation:
    return exact.Relation((), m.variables, m.results, m.constraints)


def text_of(piece: Piece) -> str:
    if isinstance(piece, Box):
        return str(piece)
    results, _, domain = str(piece).partition(" -> ")[2].partition(", domain: ")
    return f"{{{results}: {domain}}}"


def sides_of(piece: Piece) -> list[tuple[int, int]] | Unknown:
    """The smallest and largest index of each dimension."""
    if isinstance(piece, Box):
        return [(p.offset, p.last) for p in piece.progressions]
    bounds_of_all: list[tuple[int, int]] = []
    for result in piece.results:
        bounds = exact.bounds(piece.variables, piece.constraints, result)
        if isinstance(bounds, Unknown):
            return bounds
        assert bounds is not None, "pieces have elements"
        bounds_of_all.append(bounds)
    return bounds_of_all


def checked_element(element: object, rank: int) -> tuple[int, ...]:
    if isinstance(element, int):
        element = (element,)
    if not isinstance(element, Sequence | np.ndarray):
        raise TypeError(f"an element is a tuple of {rank} integers, got {brief(element)}")
    at = integers("Region", "element", element)
    if len(at) != rank:
        raise ValueError(f"an element of the region has {rank} indices, got {len(at)}: {at}")
    return at


def reaches(m: IndexingMap, element: Sequence[int]) -> bool:
    """True if an element is a result of a map without dimensions."""
    equal = [Constraint(r, i, i) for r, i in zip(m.results, element, strict=True)]
    empty = exact.is_empty(m.variables, (*m.constraints, *equal))
    if isinstance(empty, Unknown):
        raise UndecidedError(f"cannot decide whether {tuple(element)} is in {text_of(m)}: {empty}")
    return not empty


def is_inhabited(m: IndexingMap) -> bool:
    empty = m.is_empty()
    if isinstance(empty, Unknown):
        raise UndecidedError(empty.reason)
    return not empty


def common_elements(first: Piece, second: Piece) -> Piece | None:
    """The elements of both pieces, or `None` if intervals show that there are none."""
    if isinstance(first, Box) and isinstance(second, Box):
        return intersection(first, second)
    a, b = [p if isinstance(p, IndexingMap) else map_of(p) for p in (first, second)]
    mine, theirs = _rename_as_ranges(a, 0), _rename_as_ranges(b, len(a.variables))
    equal = [Constraint(x - y, 0, 0) for x, y in zip(mine.results, theirs.results, strict=True)]
    shared = IndexingMap.of(
        (),
        mine.results,
        ranges=(*mine.ranges, *theirs.ranges),
        constraints=(*mine.constraints, *theirs.constraints, *equal),
    ).simplify()
    return None if shared.is_empty() is True else shared


def _rename_as_ranges(m: IndexingMap, first: int) -> IndexingMap:
    """`m` with all its variables as range variables, numbered from `first`."""
    ranges = [v.renamed(f"{range_prefix(v)}{k}") for k, v in enumerate(m.variables, first)]
    swap = dict(zip(m.variables, [v.as_expr() for v in ranges], strict=True))
    results, constraints = m.substituted(swap)
    return IndexingMap.of((), results, ranges=ranges, constraints=constraints)
