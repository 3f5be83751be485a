"""`Region`: a set of elements of one array, such as the elements that a tile reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hlo.arguments import checked, checked_constructor, checked_on_failure
from indexing.maps.counts.queries import count_image
from indexing.maps.indexing_map import Grade, IndexingMap
from indexing.maps.regions.boxes import Box, TooManyBoxes, progression, subtract_boxes
from indexing.maps.regions.drawn_region import DrawnRegion
from indexing.maps.regions.pieces import (
    Piece,
    checked_element,
    common_elements,
    is_inhabited,
    map_of,
    reaches,
    relation,
    sides_of,
    text_of,
    unite_pieces,
)
from indexing.maps.regions.runtime_values import RegionSide, name_apart, over_values
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier import exact
from simplifier.exact import unions
from simplifier.exact.elements import MAX_ENUMERATED, distinct_results
from simplifier.unknown import UndecidedError, Unknown

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHOWN: Final = 8
"""Maximum number of pieces in the text of a region."""


@checked_constructor
@dataclass(frozen=True, eq=False, repr=False)
class Region(DrawnRegion):
    """A set of elements of one array.

    A region is a union of boxes (slices), and of images of maps that are no unions of few boxes.
    Regions are equal if they have the same elements; grades are not compared.

    Attributes:
        rank: number of indices of an element.
        pieces: the boxes, disjoint and in order, or the images whose union is the region.
        grade: "exact": these are the needed elements; "may": the region is an approximation.
        runtime: runtime variables that had no value, each value once: the region is the union over
            all their values, and its grade is "may".  If maps give one name to different values,
            one of these is renamed to ``rt0_1``.
        side: the side of an approximation.  "over": the region contains all needed elements, and
            some of its elements may not be needed; "under": all its elements are needed for all
            values of runtime variables, and others may be needed, too.

    Source: isl manual, "Sets and Relations", for the operations.

    >>> from indexing import IndexingMap
    >>> window = IndexingMap.over((8,), lambda d, s: [d[0] * 2 + s[0]], ranges=(3,))
    >>> region = window.at(slice(0, 4))
    >>> print(region, region.count(), (8,) in region, (9,) in region)
    [0:9] 9 True False
    """

    rank: int
    pieces: tuple[Piece, ...]
    grade: Grade = "exact"
    runtime: tuple[RuntimeVariable, ...] = ()
    side: RegionSide = "over"
    __hash__ = None  # type: ignore[assignment]  # equal sets may have different pieces

    # ------------------------------------------------------------ construction

    @classmethod
    @checked_on_failure
    def of(cls, maps: Iterable[IndexingMap], rank: int) -> Region:
        """Return all results of maps without dimensions, for any values of runtime variables.

        Args:
            rank: number of results of each map.
        Raises:
            ValueError: a map has dimensions, or another number of results.

        >>> from indexing import parse_map
        >>> text = "()[s0] -> (s0 floordiv 8, s0 mod 8), domain: s0 in [0, 31]"
        >>> print(Region.of([parse_map(text)], rank=2))
        [0:4, 0:8]
        """
        listed = tuple(maps)
        for m in listed:
            if m.dims or len(m.results) != rank:
                raise ValueError(f"expected maps without dimensions and {rank} results, got {m}")
        grade: Grade = "exact"
        if any(m.grade == "may" or m.runtime for m in listed if not m.is_known_empty):
            grade = "may"
        runtime = name_apart([rt for m in listed for rt in m.runtime if not rt.is_fixed])
        return cls._make_unchecked(rank, unite_pieces([[m] for m in listed]), grade, runtime)

    @classmethod
    @checked
    def of_boxes(cls, boxes: Iterable[Box], rank: int) -> Region:
        """Return the union of boxes of the same rank.

        >>> print(Region.of_boxes([Box((0,), (4,), (1,)), Box((2,), (4,), (1,))], rank=1))
        [0:6]
        """
        return cls._make_unchecked(rank, unite_pieces([[box] for box in boxes]), "exact", ())

    @classmethod
    def _make_unchecked(
        cls,
        rank: int,
        pieces: tuple[Piece, ...],
        grade: Grade,
        runtime: tuple[RuntimeVariable, ...],
        side: RegionSide = "over",
    ) -> Region:
        """The region, without the checks of types: there may be many pieces."""
        region = object.__new__(cls)
        region.__dict__.update(rank=rank, pieces=pieces, grade=grade, runtime=runtime, side=side)
        return region

    # ------------------------------------------------------------ boxes

    @cached_property
    def box(self) -> Box | None:
        """The region as one box (offsets, sizes, strides); `None` if it is empty or no box.

        >>> from indexing import IndexingMap
        >>> row = IndexingMap.over((4,), lambda d, s: [d[0], s[0] * 2], ranges=(3,))
        >>> row.at(1).box
        Box(offsets=(1, 0), sizes=(1, 3), strides=(1, 2))
        """
        boxes = self.boxes(limit=1)
        return boxes[0] if boxes else None

    @checked
    def boxes(self, limit: int | None = None) -> tuple[Box, ...] | None:
        """Return disjoint boxes in order of offsets; `None` if more than `limit` are needed.

        The number of boxes is not always the smallest possible.  Without a limit, `None` means
        that no representation by few boxes is known.

        Args:
            limit: maximum number of boxes.

        >>> from indexing import IndexingMap
        >>> diagonal = IndexingMap.over((3,), lambda d: [d[0], d[0]]).at(slice(0, 3))
        >>> print(*diagonal.boxes()), print(diagonal.boxes(limit=2))
        [0, 0] [1, 1] [2, 2]
        None
        (None, None)
        """
        boxes = tuple([piece for piece in self.pieces if isinstance(piece, Box)])
        if len(boxes) < len(self.pieces) or (limit is not None and len(boxes) > limit):
            return None
        return boxes

    @cached_property
    def bounding_box(self) -> Box | Unknown | None:
        """The smallest box with stride 1 that contains the region; `None` if it is empty.

        >>> Region.of_boxes([Box((0,), (2,), (1,)), Box((8,), (1,), (1,))], rank=1).bounding_box
        Box(offsets=(0,), sizes=(9,), strides=(1,))
        """
        lows: list[list[int]] = [[] for _ in range(self.rank)]
        highs: list[list[int]] = [[] for _ in range(self.rank)]
        for piece in self.pieces:
            sides = sides_of(piece)
            if isinstance(sides, Unknown):
                return sides
            for k, (low, high) in enumerate(sides):
                lows[k].append(low)
                highs[k].append(high)
        if not self.pieces:
            return None
        pairs = [(min(low), max(high)) for low, high in zip(lows, highs, strict=True)]
        return Box.of([progression(low, high - low + 1, 1) for low, high in pairs])

    # ------------------------------------------------------------ elements

    def count(self) -> int | Unknown:
        """Return the number of distinct elements.

        >>> from indexing import IndexingMap
        >>> IndexingMap.over((1000, 1000), lambda d: [d[0] + d[1]]).at(..., ...).count()
        1999
        """
        boxes = self.boxes()
        if boxes is not None:
            return sum(box.count() for box in boxes)
        if len(self.pieces) == 1 and isinstance(piece := self.pieces[0], IndexingMap):
            return count_image(piece)
        elements = self._enumerated_elements
        if elements is not None:
            return len(elements)
        total = unions.union_count(self._relations)
        return Unknown(f"cannot count {self}: {total}") if isinstance(total, Unknown) else total

    def elements(self) -> NDArray[Any] | Unknown:
        """Return the distinct elements in lexicographic order: an array ``(count, rank)``.

        Returns:
            The array; `Unknown` beyond 2^22 elements, or points to enumerate.

        >>> Region.of_boxes([Box((1, 5), (2, 2), (1, 2))], rank=2).elements().tolist()
        [[1, 5], [1, 7], [2, 5], [2, 7]]
        """
        elements = self._enumerated_elements
        if elements is None:
            return Unknown(f"{self} has more than {MAX_ENUMERATED} elements to enumerate")
        return elements

    @cached_property
    def _enumerated_elements(self) -> NDArray[Any] | None:
        parts: list[NDArray[Any]] = []
        for piece in self.pieces:
            if isinstance(piece, Box):
                part = piece.elements() if piece.count() <= MAX_ENUMERATED else None
            else:
                part = distinct_results(relation(piece))
            if part is None or sum(map(len, (*parts, part))) > MAX_ENUMERATED:
                return None
            parts.append(part)
        if not parts:
            return np.zeros((0, self.rank), np.int64)
        return np.unique(np.concatenate(parts), axis=0) if len(parts) > 1 else parts[0]

    @property
    def is_empty(self) -> bool:
        """True if the region has no elements.

        >>> Region.of_boxes([], rank=2).is_empty
        True
        """
        return not self  # a piece without elements is dropped where it is made

    def __bool__(self) -> bool:
        return any(isinstance(p, Box) or is_inhabited(p) for p in self.pieces)

    def __contains__(self, element: object) -> bool:
        """Return True for an element of the region: a tuple of `rank` integers.

        Raises:
            ValueError: the element has another number of indices.
            TypeError: an index is not an integer.
            UndecidedError: ISL exceeds its budget.
        """
        at = checked_element(element, self.rank)
        return any(at in p if isinstance(p, Box) else reaches(p, at) for p in self.pieces)

    # ------------------------------------------------------------ operations on sets

    def __or__(self, other: Region) -> Region:
        """Return the elements of at least one of the regions.

        Raises:
            ValueError: the regions have different ranks, or approximate from different sides.
        """
        if not isinstance(other, Region):
            return NotImplemented
        self._check_rank(other)
        for region, rest in ((self, other), (other, self)):
            if not (rest.pieces or rest.runtime) and rest.grade == "exact":
                return region
        return self._with_parts((self.pieces, other.pieces), other)

    def __and__(self, other: Region) -> Region:
        """Return the elements of both regions.

        Raises:
            ValueError: the regions have different ranks, or approximate from different sides.
        """
        if not isinstance(other, Region):
            return NotImplemented
        self._check_rank(other)
        pieces = [common_elements(a, b) for a in self.pieces for b in other.pieces]
        return self._with_parts([[piece for piece in pieces if piece is not None]], other)

    @checked
    def union(self, other: Region) -> Region:
        """Return ``self | other``.

        >>> import indexing
        >>> m = indexing.parse_map("(d0)[s0] -> (d0 * 4 + s0), domain: d0 in [0, 7], s0 in [0, 2]")
        >>> print(m.at(0).union(m.at(1)))
        [0:3] ∪ [4:7]
        """
        return self | other

    @checked
    def intersection(self, other: Region) -> Region:
        """Return ``self & other``.

        >>> import indexing
        >>> m = indexing.parse_map("(d0)[s0] -> (d0 * 2 + s0), domain: d0 in [0, 7], s0 in [0, 2]")
        >>> print(m.at(0).intersection(m.at(1)))
        [2]
        """
        return self & other

    def __eq__(self, other: object) -> bool:
        """Return True if both regions have the same elements.

        Raises:
            UndecidedError: ISL exceeds its budget.
        """
        if not isinstance(other, Region):
            return NotImplemented
        return self.rank == other.rank and self <= other and other <= self

    def __le__(self, other: Region) -> bool:
        """Return True if every element of the region is an element of `other`.

        Raises:
            ValueError: the regions have different ranks.
            UndecidedError: ISL exceeds its budget.
        """
        if not isinstance(other, Region):
            return NotImplemented
        self._check_rank(other)
        if set(self.pieces) <= set(other.pieces):
            return True
        if not other.pieces:
            return not self
        mine, theirs = self.boxes(), other.boxes()
        if mine is not None and theirs is not None:
            try:
                return not subtract_boxes(mine, theirs)
            except TooManyBoxes:
                pass  # decided by enumeration or ISL
        if self._enumerated_elements is not None and other._enumerated_elements is not None:
            joint = np.concatenate([self._enumerated_elements, other._enumerated_elements])
            return len(np.unique(joint, axis=0)) == len(other._enumerated_elements)
        outside = unions.only_first(self._relations, other._relations)
        if isinstance(outside, Unknown):
            raise UndecidedError(f"cannot compare {self} with {other}: {outside}")
        return outside is None

    def _check_rank(self, other: Region) -> None:
        if self.rank != other.rank:
            raise ValueError(f"the regions have ranks {self.rank} and {other.rank}")

    def _with_parts(self, parts: Sequence[Sequence[Piece]], other: Region) -> Region:
        sides = {region.side for region in (self, other) if region.grade == "may"}
        if len(sides) > 1:
            raise ValueError(
                "one region has the side 'over' and the other one 'under': expected equal sides, "
                "since their union and intersection approximate from neither"
            )
        grade: Grade = "may" if sides else "exact"
        runtime = name_apart((*self.runtime, *other.runtime))
        side = sides.pop() if sides else "over"
        return self._make_unchecked(self.rank, unite_pieces(parts), grade, runtime, side)

    @property
    def _relations(self) -> list[exact.Relation]:
        return [relation(p if isinstance(p, IndexingMap) else map_of(p)) for p in self.pieces]

    # ------------------------------------------------------------ text

    def __str__(self) -> str:
        shown = " ∪ ".join([text_of(piece) for piece in self.pieces[:_SHOWN]]) or "∅"
        hidden = len(self.pieces) - _SHOWN
        more = f" ∪ … ({hidden} more)" if hidden > 0 else ""
        least = "at least " if self.grade == "may" and self.side == "under" else ""
        return least + shown + more + over_values(self.runtime, self.side)

    def __repr__(self) -> str:
        grade = f", grade='may', side={self.side!r}" if self.grade == "may" else ""
        return f"Region({str(self)!r}, rank={self.rank}{grade})"


def disjoint_region(boxes: Iterable[Box], rank: int) -> Region:
    """Return the union of disjoint boxes in order of offsets, as `image_boxes` returns them.

    >>> print(disjoint_region([Box((0,), (4,), (1,)), Box((6,), (4,), (1,))], rank=1))
    [0:4] ∪ [6:10]
    """
    return Region._make_unchecked(rank, tuple(boxes), "exact", ())
