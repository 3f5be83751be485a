"""`MapSet`: the distinct maps between two arrays, within a budget.

Every traversal of a program collects its maps in map sets, so the budget holds on every path.  A
map with too many parts is over-approximated; so are sets with too many maps or parts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Final

from indexing import methods
from indexing.maps.answers import Unknown
from indexing.maps.deduplicate import deduplicate
from indexing.maps.indexing_map import Grade, IndexingMap
from indexing.maps.joining import join_maps
from indexing.maps.marked_maps import MarkedMaps
from indexing.maps.mask_values import mask_values, without_values
from indexing.maps.options import Options
from indexing.maps.over_approximation import (
    MAX_PARTS,
    MAX_WEIGHT,
    OPTIONS,
    full_map,
    hull,
    is_within_limits,
    over_approximate,
    parts,
)
from indexing.maps.products import covered_maps, is_box, is_full, reads_everything, unite_maps
from indexing.maps.reasons import Reason
from indexing.maps.space_pairs import NO_SPACES, SpacePair
from simplifier.unknown import first_unknown

MAX_MAPS = 256
"""Limit on distinct maps between two arrays; beyond it, one `may` map, their hull."""
MAX_LISTED: Final = 8
"""Maps between two arrays that are listed as composed; more are coalesced, and again whenever their
number doubles."""
MAX_PARTS_TOGETHER = 96
"""Limit on the parts of all maps between two arrays; beyond it, maps with more than `FEW_PARTS`
parts are over-approximated."""
MAX_EXACT_PARTS_TOGETHER = 768
"""The same limit with the option `exact`."""
FEW_PARTS = 4
"""Parts of a map that is short enough to be kept beyond `MAX_PARTS_TOGETHER`."""
MAX_EXACT_KEPT = 16
"""Limit on exact maps that are kept beside this hull; further ones are dropped."""
MAX_COMPOSED = 1 << 12
"""Limit on pairs of maps to compose at one array; beyond it, the accesses are unknown."""
_LONG_MAP: Final = Reason(
    f"budget: a map with more than {MAX_PARTS} variables and constraints, or more than "
    f"{MAX_WEIGHT} atoms"
)
_LONG_SET: Final = Reason("budget: too many variables and constraints of all maps between arrays")
_MANY_MAPS: Final = Reason(f"budget: more than {MAX_MAPS} maps between two arrays")


class MapSet(MarkedMaps):
    """The distinct maps between two arrays, and the reason if they are incomplete.

    Attributes:
        spaces: the index spaces of the maps.
    """

    __slots__ = ("_options", "spaces")

    def __init__(
        self,
        maps: Iterable[IndexingMap] = (),
        spaces: SpacePair = NO_SPACES,
        options: Options = OPTIONS,
    ) -> None:
        super().__init__(maps)
        self.spaces, self._options = spaces, options

    def like(
        self,
        maps: Iterable[IndexingMap],
        changed: Callable[[IndexingMap], IndexingMap] | None = None,
    ) -> MapSet:
        """Return a set of other maps between the same arrays.

        Args:
            changed: the map to add for each of `maps`; by default, the map itself.
        """
        others = MapSet((), self.spaces, self._options)
        others.extend(maps, self.unknown, self._reasons, self.control, changed)
        others.is_over_budget = self.is_over_budget
        return others

    def copy(self) -> MapSet:
        """Return a set with the same state, to which other maps can be added."""
        copied = MapSet(self.maps, self.spaces, self._options)
        copied.control.update(self.control)
        copied.unknown, copied.is_over_budget = self.unknown, self.is_over_budget
        copied._reasons, copied._hull = dict(self._reasons), self._hull
        return copied

    @property
    def state(self) -> Hashable:
        """The value of the set: sets with equal states change in the same way."""
        return (
            *(self.spaces.start, self.spaces.sizes, self._options, self._hull),
            *(tuple(self.maps), frozenset(self.control), self.unknown, tuple(self._reasons)),
            self.is_over_budget,
        )

    @property
    def distinct(self) -> tuple[tuple[IndexingMap, bool], ...]:
        """Each different relation, and True if its elements decide only control."""
        if len(self.maps) == 1 and not self.control:
            return tuple([(m, False) for m in self.maps])
        data, *control = [maps for _, maps in self.by_control]
        data = list(deduplicate(data))
        every = deduplicate([*data, *control[0]]) if control else data
        return tuple([(m, k >= len(data)) for k, m in enumerate(every)])

    def add(self, indexing_map: IndexingMap) -> None:
        """Add a map."""
        self.extend((indexing_map,))

    def extend(
        self,
        maps: Iterable[IndexingMap],
        unknown: Unknown | None = None,
        reasons: Collection[Reason] = (),
        control: Collection[IndexingMap] = (),
        changed: Callable[[IndexingMap], IndexingMap] | None = None,
    ) -> None:
        """Add maps, the reason why maps may be missing, and why maps have the grade "may".

        Args:
            control: those of `maps` whose elements decide only control.
            changed: the map to add for each of `maps`; by default, the map itself.
        """
        self.add_unknown(unknown)
        if reasons:
            self.add_reasons(reasons)
        before = len(self.maps)
        for m in maps:
            self._include(m if changed is None else changed(m), m in control)
        self._limit(before)

    def add_composed(
        self,
        firsts: Collection[IndexingMap],
        seconds: Collection[IndexingMap],
        unknown: Unknown | None = None,
        reasons: Collection[Reason] = (),
        control: tuple[Collection[IndexingMap], Collection[IndexingMap]] = ((), ()),
    ) -> None:
        """Add ``x -> second(first(x))`` for each pair, with the reasons as in `extend`.

        Args:
            control: those of `firsts` and those of `seconds` whose elements decide only control.
        """
        count = len(firsts) * len(seconds)
        if count > MAX_COMPOSED:
            reason = f"budget: {count} pairs of maps to compose, more than {MAX_COMPOSED}"
            self.add_unknown(first_unknown(unknown, Unknown(reason)))
            return
        if self._is_full:  # only an exact map adds something
            firsts, seconds = ([m for m in x if m.grade == "exact"] for x in (firsts, seconds))
        self.add_unknown(unknown)
        if reasons and count:
            self.add_reasons(reasons)
        composed, has_control = self._options.compose_maps, bool(control[0] or control[1])
        before = len(self.maps)
        for first in firsts:
            for second in seconds:
                if not self._is_closed or reads_everything(second, self.spaces.sizes):
                    is_control = has_control and (first in control[0] or second in control[1])
                    self._include(composed(first, second), is_control)
        self._limit(before)

    # ------------------------------------------------------------ the budget

    @property
    def _is_full(self) -> bool:
        """True if the hull is the full `may` map, so that only exact maps change the set."""
        return self._hull is not None and is_full(self._hull, self.spaces)

    @property
    def _is_closed(self) -> bool:
        """True if only the exact map of everything would change the set."""
        return len(self.maps) > MAX_EXACT_KEPT and self._is_full

    def _include(self, m: IndexingMap, is_control: bool) -> None:
        """Add a map if it changes the set; limit a set that grows far beyond its limit."""
        if m.grade == "exact" or not self._is_full:
            self._add(m, is_control)
            if len(self.maps) > MAX_MAPS and self._is_far_beyond_limit:
                self._limit(0)

    @property
    def _is_far_beyond_limit(self) -> bool:
        """True if no map that follows is likely to keep the set within `MAX_MAPS`.

        A `may` map may still absorb others, but not exact maps.
        """
        return len(self.maps) > 2 * MAX_MAPS or all(m.grade == "exact" for m in self.maps)

    def _add(self, m: IndexingMap, is_control: bool) -> None:
        """Add a map unless the same relation is present; an exact map replaces its `may` twin.

        A relation decides only control if all maps with this relation do.

        An empty relation is kept only if it is the only map: then there is an access that reads
        nothing.
        """
        if not is_within_limits(m):
            m = without_values(m, mask_values(m))
        if not is_within_limits(m):
            m = over_approximate(m, self.spaces.sizes)
            self.add_reasons([_LONG_MAP])
        if self.maps:
            if m in self.maps or m.is_known_empty:
                if not is_control:
                    self.control.discard(m)
                return
            if next(iter(self.maps)).is_known_empty:
                self._keep(())
            twin = m.with_grade("may" if m.grade == "exact" else "exact")
            if twin in self.maps:
                is_control = is_control and twin in self.control
                self.control.discard(twin)
                if m.grade == "may":
                    m = twin
                else:
                    del self.maps[twin]
        self.maps[m] = None
        if is_control:
            self.control.add(m)

    @property
    def _has_one_element(self) -> bool:
        """True if the target array has one element, which all maps read."""
        sizes = self.spaces.sizes
        return sizes is not None and all(size == 1 for size in sizes)

    def coalesce(self, *, is_readable: bool) -> None:
        """Replace maps by fewer ones with the same union: see `indexing.maps.coalescing`.

        The maps of one iteration of a loop stay: the loop coalesces those of all iterations.
        """
        if self._options.in_loop:
            return
        if self._options.simplify and not self._options.keep_multiplicity and self._hull is None:
            self._replace(lambda maps: methods.coalesce_maps(maps, self._options, is_readable))

    def _limit(self, before: int) -> None:
        """Drop redundant maps; beyond the limits, trade precision for size.

        Args:
            before: the number of maps before the last ones were added.
        """
        if self._hull is not None and self._hull not in self.maps:
            self._hull = None  # its exact twin replaced it
        if len(self.maps) < 2:
            self._saturate_if_full()
            return
        has_may = "may" in [m.grade for m in self.maps]
        self._join(before)
        if self._is_long and self._options.runtime_masks:
            self._replace(lambda maps: [self._without_masks(m) for m in maps])
        if self._is_long:
            self._shorten()
        elif has_may or self._has_one_element:
            self._absorb(["may"])
        if len(self.maps) > MAX_MAPS or (self._hull is not None and not self._is_full):
            self._saturate_at_limit()

    def _join(self, before: int) -> None:
        """Coalesce many maps; join the parts into which masks divide a map."""
        listed = max(before, MAX_LISTED).bit_length()
        if len(self.maps).bit_length() > listed or self._is_long:
            self.coalesce(is_readable=False)
        if self._options.runtime_masks and not self._options.keep_multiplicity:
            self._replace(self._joined_masks)

    def _joined_masks(self, maps: list[IndexingMap]) -> list[IndexingMap]:
        known, simplify = set(maps), self._options.simplify_map
        return [m if m in known else simplify(m) for m in join_maps(maps, only_masks=True)]

    def _without_masks(self, m: IndexingMap) -> IndexingMap:
        masks = mask_values(m)
        return self._options.simplify_map(without_values(m, masks)) if masks else m

    @property
    def _is_long(self) -> bool:
        """True if the maps have too many parts together."""
        limit = MAX_EXACT_PARTS_TOGETHER if self._options.exact else MAX_PARTS_TOGETHER
        return sum(map(parts, self.maps)) > limit

    def _shorten(self) -> None:
        """Over-approximate the maps with more than `FEW_PARTS` parts."""
        sizes = self.spaces.sizes
        self._replace(
            lambda maps: [over_approximate(m, sizes) if parts(m) > FEW_PARTS else m for m in maps]
        )
        self.add_reasons([_LONG_SET])
        self.is_over_budget = self._options.exact
        self._absorb(["exact", "may"])

    def _saturate(self, whole: IndexingMap) -> None:
        """Replace the maps by one that contains them, except for the first exact maps.

        Exact maps add no element to it, but compositions with them may be exact, for example if a
        scalar is broadcast.  `MAX_EXACT_KEPT` are kept.
        """
        self._hull = whole
        exact = [m for m in self.maps if m.grade == "exact"][:MAX_EXACT_KEPT]
        self.control.discard(whole)
        self._keep([whole, *exact])

    def _saturate_at_limit(self) -> None:
        """Replace the maps by their hull."""
        if self.spaces.start is not None and self.spaces.sizes is not None:
            self.add_reasons([_MANY_MAPS])
            if not self._options.in_loop:
                whole = self._options.simplify_map(hull(tuple(self.maps), self.spaces))
            else:
                whole = full_map(self.spaces, self._options)
            self._saturate(whole)

    def _saturate_if_full(self) -> None:
        """Saturate the set if its only map is the full `may` map."""
        may = [m for m in self.maps if m.grade == "may" and m not in self.control]
        if self._hull is None and may and not self._options.keep_multiplicity:
            if is_box(may[0]) and is_full(may[0], self.spaces):
                self._saturate(may[0])

    def _absorb(self, grades: Collection[Grade]) -> None:
        """Drop the maps of these grades whose relation is a subset of another map, a box."""
        if self._options.keep_multiplicity:
            return  # they count as well
        self._replace(self._unite_may_maps)
        boxes = [m for m in self.maps if is_box(m)]
        full = [box for box in boxes if box not in self.control and is_full(box, self.spaces)]
        exact_full = [box for box in full if box.grade == "exact"]
        if full and not exact_full:
            self._saturate(full_map(self.spaces, self._options))
        elif exact_full and self._has_one_element:
            self._keep(exact_full[:1])
        else:
            self._drop_covered(grades, boxes)

    def _drop_covered(self, grades: Collection[Grade], boxes: Iterable[IndexingMap]) -> None:
        """Drop the maps of these grades that another remaining box covers."""
        graded = [m for m in self.maps if m.grade in grades]
        dropped = covered_maps(graded, boxes, self.spaces.sizes, self.control)
        self._keep([m for m in self.maps if m not in dropped])

    def _unite_may_maps(self, maps: list[IndexingMap]) -> list[IndexingMap]:
        """Return `may` maps as fewer maps with the same union, after the exact ones."""
        may = [m for m in maps if m.grade == "may"]
        fewer = [self._options.simplify_map(m) for m in unite_maps(may)]
        if len(fewer) == len(may):
            return maps
        return [*[m for m in maps if m.grade == "exact"], *fewer]
