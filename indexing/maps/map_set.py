"""`MapSet`: the different maps between two arrays, within a budget.

Whatever walks through a program adds maps here, and only here, so that the budget holds on every
path: a map that gets too long, and maps that are too many or too long together, are replaced by
over-approximations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from hlo.shapes.shape import Shape
from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import Grade, IndexingMap, dims, ranges
from indexing.maps.options import Options
from simplifier.atoms import Variable
from simplifier.bounds import Facts
from simplifier.constraints import known_terms
from simplifier.interval import contains, intersected
from simplifier.linear import Expr
from simplifier.unknown import first_unknown

MAX_MAPS = 256
"""Limit on distinct maps between two arrays; beyond it, one `may` map of everything."""
MAX_PARTS = 32
"""Limit on range variables, runtime variables and constraints of one map; a chain of windows gets
longer with each window. Beyond it, a `may` map with fewer of them."""
MAX_PARTS_TOGETHER = 96
"""Limit on the parts of all maps between two arrays; beyond it, those with more than `FEW_PARTS`
are over-approximated."""
MAX_EXACT_PARTS_TOGETHER = 768
"""The same limit where exact pieces are wanted."""
FEW_PARTS = 4
MAX_COMPOSED = 1 << 12
"""Limit on pairs of maps to compose where two arrays meet on the way to a third one; beyond it,
what is read that way is unknown."""


class Spaces(Protocol):
    """The index spaces that maps lead between; `None` for what is no array, such as a token."""

    @property
    def start(self) -> tuple[Variable, ...] | None:
        """The dimensions that the maps have."""

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """The sizes of the array that the results index."""


class Ends(NamedTuple):
    """`Spaces` by their dimensions and sizes."""

    start: tuple[Variable, ...] | None
    sizes: tuple[int, ...] | None


NOWHERE: Final = Ends(None, None)
OPTIONS: Final = Options()


class MapSet:
    """The different maps between two arrays, and why there may be others.

    Attributes:
        maps: as the keys of a dictionary, in the order in which they were added.
        unknown: the reason why not all accesses are known, or `None`.
    """

    __slots__ = ("_ends", "_options", "_whole", "maps", "unknown")

    def __init__(
        self,
        maps: Iterable[IndexingMap] = (),
        ends: Spaces = NOWHERE,
        options: Options = OPTIONS,
    ) -> None:
        self.maps: Final[dict[IndexingMap, None]] = dict.fromkeys(maps)
        self.unknown: Unknown | None = None
        self._ends, self._options = ends, options
        self._whole: IndexingMap | None = None  # the `may` map of everything, if there is one

    @property
    def distinct(self) -> tuple[IndexingMap, ...]:
        """The maps without those that add nothing to a `may` map of everything."""
        return tuple(self.maps) if self._whole is None else (self._whole,)

    def note(self, unknown: Unknown | None) -> None:
        """Keep why there may be other maps; the first reason stays."""
        if self.unknown is None:
            self.unknown = unknown

    def add(self, found: IndexingMap) -> None:
        """Add a map."""
        self.extend((found,))

    def extend(self, maps: Iterable[IndexingMap], unknown: Unknown | None = None) -> None:
        """Add maps, and why there may be others."""
        self.note(unknown)
        for found in maps:
            if self._whole is None or found.grade == "exact":
                self._add(found)
        self._limit()

    def add_composed(
        self,
        firsts: Collection[IndexingMap],
        seconds: Collection[IndexingMap],
        unknown: Unknown | None = None,
    ) -> None:
        """Add ``x -> second(first(x))`` for each pair, and why there may be others."""
        count = len(firsts) * len(seconds)
        if count > MAX_COMPOSED:
            why = f"budget: {count} pairs of maps to compose are more than {MAX_COMPOSED}"
            self.note(first_unknown(unknown, Unknown(why)))
            return
        if self._whole is not None:  # only an exact map adds something
            firsts, seconds = ([m for m in x if m.grade == "exact"] for x in (firsts, seconds))
        composed = self._options.composed
        self.extend((composed(a, b) for a in firsts for b in seconds), unknown)

    # ------------------------------------------------------------ the budget

    def _add(self, found: IndexingMap) -> None:
        """Add a map, unless the same relation is there; the better grade stays.

        An empty relation stays only as long as it is the only one: then an access was found, and it
        reads nothing.
        """
        if _parts(found) > MAX_PARTS:
            found = over_approximate(found, self._ends.sizes)
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

    @property
    def _has_one_element(self) -> bool:
        """All maps lead to the same element."""
        sizes = self._ends.sizes
        return sizes is not None and all(size == 1 for size in sizes)

    def _limit(self) -> None:
        """Fewer and shorter maps, trading precision for size only beyond the limits."""
        if self._whole is not None and self._whole not in self.maps:
            self._whole = None  # it is exact now
        has_may = "may" in [found.grade for found in self.maps]
        if len(self.maps) < 2:
            if has_may:
                self._note_everything()
            return
        most = MAX_EXACT_PARTS_TOGETHER if self._options.exact else MAX_PARTS_TOGETHER
        if sum(map(_parts, self.maps)) > most:
            shorter = [self._shortened(found) for found in self.maps]
            self.maps.clear()
            self.maps.update(dict.fromkeys(shorter))
            self._absorb(["exact", "may"])
        elif has_may or self._has_one_element:
            self._absorb(["may"])
        if (
            len(self.maps) > MAX_MAPS
            and self._ends.start is not None
            and self._ends.sizes is not None
        ):
            self._saturate()

    def _shortened(self, found: IndexingMap) -> IndexingMap:
        return over_approximate(found, self._ends.sizes) if _parts(found) > FEW_PARTS else found

    def _saturate(self, beside: Iterable[IndexingMap] = ()) -> None:
        """Let a `may` map of everything replace all others but those `beside` it.

        Exact maps add no element to it; but what they lead to further on may be certain, such as a
        scalar that is broadcast.
        """
        self._whole = everything(self._ends, self._options)
        kept = [self._whole, *beside]
        self.maps.clear()
        self.maps.update(dict.fromkeys(kept))

    def _note_everything(self) -> None:
        """See whether the only map, a `may` map, is of everything."""
        (found,) = self.maps
        if self._whole is None and _is_box(found) and self._relates_everything(found):
            self._saturate()

    def _absorb(self, grades: Collection[Grade]) -> None:
        """Drop the maps of these grades that relate only what a box relates as well."""
        boxes = [found for found in self.maps if _is_box(found)]
        whole = [box for box in boxes if self._relates_everything(box)]
        certain = [box for box in whole if box.grade == "exact"]
        if whole and not certain:
            self._saturate([found for found in self.maps if found.grade == "exact"])
        elif certain and self._has_one_element:
            self.maps.clear()
            self.maps[certain[0]] = None
        else:
            self._drop_covered(grades, boxes)

    def _drop_covered(self, grades: Collection[Grade], boxes: Iterable[IndexingMap]) -> None:
        for found in [found for found in self.maps if found.grade in grades]:
            if self._is_covered(found, boxes):
                del self.maps[found]

    def _is_covered(self, found: IndexingMap, boxes: Iterable[IndexingMap]) -> bool:
        """Another one of the boxes, if it is still there, relates all that `found` does."""
        hull = found if _is_box(found) else over_approximate(found, self._ends.sizes)
        others = [box for box in boxes if box in self.maps and box is not found]
        return any(_covers(box, hull) for box in others)

    def _relates_everything(self, box: IndexingMap) -> bool:
        start, sizes = self._ends.start, self._ends.sizes
        if start is None or sizes is None:
            return False
        whole = [(0, size - 1) for size in sizes]
        bounds = [v.bounds for v in box.dims] + [result.bounds for result in box.results]
        return bounds == [v.bounds for v in start] + whole and all(
            result.is_constant or _free(result, box) is not None for result in box.results
        )


def everything(ends: Spaces, options: Options = OPTIONS) -> IndexingMap:
    """The `may` map from each index of one space to all of another."""
    assert ends.start is not None
    assert ends.sizes is not None
    return _everything(ends.start, ends.sizes, options.simplify)


@lru_cache(maxsize=1 << 12)
def _everything(start: tuple[Variable, ...], sizes: tuple[int, ...], simplify: bool) -> IndexingMap:
    s = ranges(*sizes)
    whole = IndexingMap.of(start, s, ranges=s, grade="may")
    return whole.simplify() if simplify else whole


def every_element(source: Shape, target: Shape) -> IndexingMap:
    """The map from each element of a tensor to all of another.

    >>> print(every_element(Shape("f32", (5,)), Shape("f32", (2, 3))))
    (d0)[s0, s1] -> (s0, s1), domain: d0 in [0, 4], s0 in [0, 1], s1 in [0, 2]
    """
    return _everything(dims(source), target.dims, False).with_grade("exact")


def over_approximate(found: IndexingMap, sizes: tuple[int, ...] | None = None) -> IndexingMap:
    """A `may` map that relates all that `found` does, and has few parts.

    A result that depends on dimensions only stays.  Any other result may take every value that its
    bounds, the constraints and the array's `sizes` allow.

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
    inside = [(0, size - 1) for size in sizes or ()] or [result.bounds for result in found.results]
    known = Facts(known_terms(found.constraints))
    free: list[Variable] = []
    results: list[Expr] = []
    for result, box in zip(found.results, inside, strict=True):
        if not (set(result.variables()) <= set(found.dims) and contains(box, result.bounds)):
            bounds = intersected(box, known.bounds(result))
            free.append(Variable(f"s{len(free)}", *bounds))
            result = free[-1].as_expr()
        results.append(result)
    return IndexingMap.of(found.dims, results, ranges=free, grade="may")


def _is_box(found: IndexingMap) -> bool:
    """Each result depends on dimensions only, or runs over an interval of its own."""
    if found.constraints or found.runtime:
        return False
    free = [_free(result, found) for result in found.results]
    used = [variable for variable in free if variable is not None]
    return len(found.ranges) == len(used) == len(set(used)) and all(
        v is not None or set(result.variables()) <= set(found.dims)
        for v, result in zip(free, found.results, strict=True)
    )


def _free(result: Expr, found: IndexingMap) -> Variable | None:
    """The range variable s of a result ``±s + c``, which then takes every value in its bounds."""
    if len(result.terms) != 1:
        return None
    ((atom, factor),) = result.terms
    return (
        atom if isinstance(atom, Variable) and atom in found.ranges and abs(factor) == 1 else None
    )


def _covers(box: IndexingMap, other: IndexingMap) -> bool:
    """One box relates all that another one does, decided dimension by dimension."""
    renamed = dict(zip(other.dims, [d.as_expr() for d in box.dims], strict=True))
    same_dims = box.dims == other.dims

    def covers(a: Expr, b: Expr) -> bool:
        if _free(a, box) is not None and contains(a.bounds, b.bounds):
            return True
        return a == b if same_dims else b.as_variable in renamed and a == renamed[b.as_variable]

    pairs = zip(box.dims, other.dims, strict=True)
    if not all(contains(a.bounds, b.bounds) for a, b in pairs):
        return False
    return all(covers(a, b) for a, b in zip(box.results, other.results, strict=True))


def _parts(found: IndexingMap) -> int:
    return len(found.ranges) + len(found.runtime) + len(found.constraints)
