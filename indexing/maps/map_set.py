"""`MapSet`: the different maps between two arrays, within a budget."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from hlo.shapes.shape import Shape
from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import Grade, IndexingMap, dims
from indexing.maps.indexing_map import ranges as ranges_of
from indexing.maps.options import Options
from simplifier.atoms import Variable
from simplifier.bounds import Facts
from simplifier.constraints import known_terms
from simplifier.interval import contains, intersected
from simplifier.linear import Expr
from simplifier.unknown import first_unknown

# So many different maps to one array: the program reads it all over.  One map that reads
# everything, with the grade "may", takes their place.
MOST_MAPS = 256
# So many parts (range and runtime variables, constraints) have the maps to one array together, if
# there are several.  Beyond, those with more than `FEW_PARTS` are told coarsely. Who asks for exact
# pieces waits for more of them.
MOST_PARTS_TOGETHER = 96
MOST_EXACT_PARTS_TOGETHER = 768
FEW_PARTS = 4
# So many pairs of maps are composed where two arrays meet on the way to a third one.  Beyond, what
# is read that way is not known.
MOST_COMPOSED = 1 << 12
# So many range variables, runtime variables and constraints has one map; a chain of windows gets
# longer with each window. Beyond, a map with the grade "may" and fewer of them takes its place.
MOST_PARTS = 32


@dataclass(slots=True)
class MapSet:
    """The different maps that lead to one array, and why there may be others."""

    maps: dict[IndexingMap, None] = field(default_factory=dict)
    unknown: Unknown | None = None

    def add(self, found: IndexingMap) -> None:
        """Add a map, unless the same relation is there; the better grade stays.

        An empty relation stays only as long as it is the only one: then it says that an access was
        found, and that it reads nothing.
        """
        if self.maps:
            if found in self.maps or found.is_known_empty:
                return
            if next(iter(self.maps)).is_known_empty:
                self.maps.clear()
            twin = found.with_grade("may" if found.grade == "exact" else "exact")
            if twin in self.maps:
                if found.grade == "may":
                    return
                del self.maps[twin]
        self.maps[found] = None

    def note(self, unknown: Unknown | None) -> None:
        """Keep why there may be other maps; the first reason stays."""
        self.unknown = first_unknown(self.unknown, unknown)

    def add_composed(
        self,
        firsts: Collection[IndexingMap],
        seconds: Collection[IndexingMap],
        unknown: Unknown | None,
        options: Options,
        target: object = None,
    ) -> None:
        """Add each first map followed by each second one, and why there may be others.

        They lead to an array of shape `target`, where that is said.
        """
        self.note(unknown)
        count = len(firsts) * len(seconds)
        if count > MOST_COMPOSED:
            why = f"budget: {count} pairs of maps to compose are more than {MOST_COMPOSED}"
            self.note(Unknown(why))
            return
        for first in firsts:
            for second in seconds:
                found = options.composed(first, second)
                self.add(found if _size(found) <= MOST_PARTS else over_approximate(found, target))

    def widen(self, source: object, target: object, options: Options) -> None:
        """Fewer and shorter maps to an array of shape `target`, where that loses nothing much.

        A map with the grade "may" goes where another one relates all that it does: that is no loss.
        Where maps are too long together, the longest are told coarsely; where they are too many,
        one takes their place that needs all of `target`.
        """
        if len(self.maps) > 1:
            most = MOST_EXACT_PARTS_TOGETHER if options.exact else MOST_PARTS_TOGETHER
            if sum(map(_size, self.maps)) > most:
                shorter = [
                    over_approximate(m, target) if _size(m) > FEW_PARTS else m for m in self.maps
                ]
                self.maps = dict.fromkeys(shorter)
                self._absorb(["exact", "may"], target)
            elif any(found.grade == "may" for found in self.maps):
                self._absorb(["may"], target)
        if len(self.maps) > MOST_MAPS and isinstance(source, Shape) and isinstance(target, Shape):
            self.maps = {every_element(source, target).with_grade("may"): None}

    def _absorb(self, grades: Collection[Grade], target: object) -> None:
        """Drop the maps of these grades that relate nothing but what a box relates, too."""
        boxes = [found for found in self.maps if _is_box(found)]
        for found in [found for found in self.maps if found.grade in grades]:
            hull = found if _is_box(found) else over_approximate(found, target)
            if any(box in self.maps and _covers(box, hull) for box in boxes if box is not found):
                del self.maps[found]


def over_approximate(found: IndexingMap, target: object = None) -> IndexingMap:
    """A map with the grade "may" that relates all that `found` does, and has few parts.

    A result stays that only dimensions say, within `target`, the shape of the array that it is an
    index of. Any other one may be all that its bounds allow, and its constraints, and `target`.

    >>> from indexing.maps.text import parse_map
    >>> window = "(d0, d1)[s0, s1] -> (d0, d1 + s0 * 2 + s1), domain: d0 in [0, 3], d1 in [0, 5], "
    >>> print(over_approximate(parse_map(window + "s0 in [0, 2], s1 in [0, 1], d1 + s0 in [1, 6]")))
    (d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 3], d1 in [0, 5], s0 in [0, 10]

    A padded window reads no padding:

    >>> padded = parse_map("()[s0, s1] -> (s0 + s1 - 1), domain: s0 in [0, 8], s1 in [0, 2], "
    ...                    "s0 + s1 in [1, 9]")
    >>> print(over_approximate(padded))
    ()[s0] -> (s0), domain: s0 in [0, 8]
    """
    if found.is_known_empty:
        return found
    sizes = target.dims if isinstance(target, Shape) else ()
    inside = [(0, size - 1) for size in sizes] or [result.bounds for result in found.results]
    known = Facts(known_terms(found.constraints))
    ranges: list[Variable] = []
    results: list[Expr] = []
    for result, box in zip(found.results, inside, strict=True):
        if not (set(result.variables()) <= set(found.dims) and contains(box, result.bounds)):
            bounds = intersected(box, known.bounds(result))
            ranges.append(Variable(f"s{len(ranges)}", *bounds))
            result = ranges[-1].as_expr()
        results.append(result)
    return IndexingMap.of(found.dims, results, ranges=ranges, grade="may")


def _is_box(found: IndexingMap) -> bool:
    """Each result is said by dimensions alone, or is a range variable of its own."""
    free = [result for result in found.results if result.as_variable in found.ranges]
    return (
        not found.constraints
        and not found.runtime
        and len(found.ranges) == len(free) == len({result.as_variable for result in free})
        and all(r in free or set(r.variables()) <= set(found.dims) for r in found.results)
    )


def _covers(box: IndexingMap, other: IndexingMap) -> bool:
    """One box relates all that another one does, as is seen dimension by dimension."""
    renamed = dict(zip(other.dims, [d.as_expr() for d in box.dims], strict=True))
    same_dims = box.dims == other.dims
    return all(
        contains(a.bounds, b.bounds) for a, b in zip(box.dims, other.dims, strict=True)
    ) and all(
        (a.as_variable in box.ranges and contains(a.bounds, b.bounds))
        or (a == b if same_dims else b.as_variable in renamed and a == renamed[b.as_variable])
        for a, b in zip(box.results, other.results, strict=True)
    )


def _size(found: IndexingMap) -> int:
    return len(found.ranges) + len(found.runtime) + len(found.constraints)


def every_element(source: Shape, target: Shape) -> IndexingMap:
    """The map from each element of a tensor to all of another.

    >>> print(every_element(Shape("f32", (5,)), Shape("f32", (2, 3))))
    (d0)[s0, s1] -> (s0, s1), domain: d0 in [0, 4], s0 in [0, 1], s1 in [0, 2]
    """
    s = ranges_of(*target.dims)
    return IndexingMap.of(dims(source), s, ranges=s)
