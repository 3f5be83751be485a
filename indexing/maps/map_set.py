"""`MapSet`: the distinct maps between two arrays, within a budget.

Every traversal of a program collects its maps in map sets, so the budget holds on every path.  A
map with too many parts is over-approximated; so are sets with too many maps or parts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from typing import Final

from indexing.maps.answers import Unknown
from indexing.maps.deduplicate import deduplicate
from indexing.maps.indexing_map import Grade, IndexingMap
from indexing.maps.options import Options
from indexing.maps.over_approximation import (
    MAX_PARTS,
    MAX_WEIGHT,
    OPTIONS,
    full_map,
    is_within_limits,
    over_approximate,
    parts,
)
from indexing.maps.products import BoxIndex, is_box, is_full, reads_everything, unite_maps
from indexing.maps.reasons import MAX_REASONS, OMITTED, UNDECLARED, Reason
from indexing.maps.space_pairs import NO_SPACES, SpacePair
from simplifier.unknown import first_unknown

MAX_MAPS = 256
"""Limit on distinct maps between two arrays; beyond it, the full `may` map (every index to every
index)."""
MAX_PARTS_TOGETHER = 96
"""Limit on the parts of all maps between two arrays; beyond it, maps with more than `FEW_PARTS`
parts are over-approximated."""
MAX_EXACT_PARTS_TOGETHER = 768
"""The same limit with the option `exact`."""
FEW_PARTS = 4
"""Parts of a map that is short enough to be kept beyond `MAX_PARTS_TOGETHER`."""
MAX_EXACT_KEPT = 16
"""Limit on exact maps that are kept beside the full `may` map; further ones are dropped."""
MAX_COMPOSED = 1 << 12
"""Limit on pairs of maps to compose at one array; beyond it, the accesses are unknown."""
_LONG_MAP: Final = Reason(
    f"budget: a map with more than {MAX_PARTS} variables and constraints, or more than "
    f"{MAX_WEIGHT} atoms"
)
_LONG_SET: Final = Reason("budget: too many variables and constraints of all maps between arrays")
_MANY_MAPS: Final = Reason(f"budget: more than {MAX_MAPS} maps between two arrays")


class MapSet:
    """The distinct maps between two arrays, and the reason if they are incomplete.

    Attributes:
        maps: the maps, as the keys of a dictionary in insertion order.
        spaces: the index spaces of the maps.
        unknown: the reason why some accesses are unknown, or `None`.
        control: the maps whose elements decide only control: which iterations or branches are
            executed.
        is_over_budget: True if maps were over-approximated although the option `exact` is set:
            the maps of this set, or of a set that it is composed from, had too many parts.
    """

    __slots__ = (
        "_full",
        "_options",
        "_reasons",
        "control",
        "is_over_budget",
        "maps",
        "spaces",
        "unknown",
    )

    def __init__(
        self,
        maps: Iterable[IndexingMap] = (),
        spaces: SpacePair = NO_SPACES,
        options: Options = OPTIONS,
    ) -> None:
        self.maps: Final[dict[IndexingMap, None]] = dict.fromkeys(maps)
        self.control: Final[set[IndexingMap]] = set()
        self.unknown: Unknown | None = None
        self.is_over_budget = False
        self._reasons: dict[Reason, None] = {}
        self.spaces, self._options = spaces, options
        self._full: IndexingMap | None = None  # the full `may` map, if the set is saturated

    def like(self, maps: Iterable[IndexingMap]) -> MapSet:
        """Return a set of other maps between the same arrays."""
        others = MapSet((), self.spaces, self._options)
        others.extend(maps, self.unknown, self._reasons, self.control)
        others.is_over_budget = self.is_over_budget
        return others

    def copy(self) -> MapSet:
        """Return a set with the same state, to which other maps can be added."""
        copied = MapSet(self.maps, self.spaces, self._options)
        copied.control.update(self.control)
        copied.unknown, copied.is_over_budget = self.unknown, self.is_over_budget
        copied._reasons, copied._full = dict(self._reasons), self._full
        return copied

    @property
    def state(self) -> Hashable:
        """The value of the set: sets with equal states change in the same way."""
        return (
            *(self.spaces.start, self.spaces.sizes, self._options, self._full),
            *(tuple(self.maps), frozenset(self.control), self.unknown, tuple(self._reasons)),
            self.is_over_budget,
        )

    @property
    def effective(self) -> tuple[IndexingMap, ...]:
        """The maps; only the full `may` map if the set is saturated."""
        return tuple(self.maps) if self._full is None else (self._full,)

    @property
    def by_control(self) -> Iterator[tuple[bool, list[IndexingMap]]]:
        """The maps whose elements are data, with False, and those that decide only control."""
        for is_control in (False, True) if self.control else (False,):
            yield is_control, [m for m in self.effective if (m in self.control) == is_control]

    @property
    def distinct(self) -> tuple[tuple[IndexingMap, bool], ...]:
        """Each different relation, and True if its elements decide only control."""
        if len(self.maps) == 1 and not self.control:
            return tuple([(m, False) for m in self.maps])
        data, *control = [maps for _, maps in self.by_control]
        data = list(deduplicate(data))
        every = deduplicate([*data, *control[0]]) if control else data
        return tuple([(m, k >= len(data)) for k, m in enumerate(every)])

    @property
    def lost_exactness(self) -> bool:
        """True if all maps are `may` because of the budget: exact pieces cannot make them exact."""
        return self.is_over_budget and all(m.grade == "may" for m in self.maps)

    @property
    def uncounted(self) -> Unknown | None:
        """Why the points of the maps may be fewer than the reads; `None` if they are not."""
        beyond = [r.text for r in self.reasons if r is OMITTED or r.text.startswith("budget")]
        return Unknown(f"cannot count reads: {beyond[0]}") if beyond else None

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why maps of the set have the grade "may"; ``()`` if all of them are exact.

        A reason is kept if the maps that it led to are subsumed by other `may` maps.
        """
        if self._reasons and any(m.grade == "may" for m in self.maps):
            return tuple(self._reasons)
        return ()

    @property
    def all_reasons(self) -> tuple[Reason, ...]:
        """Why maps of the set have, or may get, the grade "may"."""
        return tuple(self._reasons)

    def reasons_of(self, m: IndexingMap) -> tuple[Reason, ...]:
        """The reasons for the grade "may" of one map of the set; ``()`` if it is exact."""
        return self.reasons or (UNDECLARED,) if m.grade == "may" else ()

    def add_unknown(self, unknown: Unknown | None) -> None:
        """Record why maps may be missing; the first reason is kept."""
        if self.unknown is None:
            self.unknown = unknown

    def add_reasons(self, reasons: Iterable[Reason]) -> None:
        """Record why maps have the grade "may"; the first `MAX_REASONS` are kept."""
        for reason in reasons:
            if OMITTED in self._reasons:
                return
            if reason not in self._reasons:
                self._reasons[reason if len(self._reasons) < MAX_REASONS else OMITTED] = None

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
        for m in maps:
            self._include(m if changed is None else changed(m), m in control)
        self._limit()

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
        if self._full is not None:  # only an exact map adds something
            firsts, seconds = ([m for m in x if m.grade == "exact"] for x in (firsts, seconds))
        self.add_unknown(unknown)
        if reasons and count:
            self.add_reasons(reasons)
        composed, has_control = self._options.compose_maps, bool(control[0] or control[1])
        for first in firsts:
            for second in seconds:
                if not self._is_closed or reads_everything(second, self.spaces.sizes):
                    is_control = has_control and (first in control[0] or second in control[1])
                    self._include(composed(first, second), is_control)
        self._limit()

    # ------------------------------------------------------------ the budget

    @property
    def _is_closed(self) -> bool:
        """True if only the exact map of everything would change the set."""
        return self._full is not None and len(self.maps) > MAX_EXACT_KEPT

    def _include(self, m: IndexingMap, is_control: bool) -> None:
        """Add a map if it changes the set; limit a set that grows far beyond its limit."""
        if self._full is None or m.grade == "exact":
            self._add(m, is_control)
            if len(self.maps) > MAX_MAPS and self._is_far_beyond_limit:
                self._limit()

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

    def _keep(self, maps: Iterable[IndexingMap]) -> None:
        """Replace all maps; those of the new ones that decide only control are marked already."""
        kept = dict.fromkeys(maps)
        self.maps.clear()
        self.maps.update(kept)
        self.control.intersection_update(kept)

    @property
    def _has_one_element(self) -> bool:
        """True if the target array has one element, which all maps read."""
        sizes = self.spaces.sizes
        return sizes is not None and all(size == 1 for size in sizes)

    def _limit(self) -> None:
        """Drop redundant maps; beyond the limits, trade precision for size."""
        if self._full is not None and self._full not in self.maps:
            self._full = None  # its exact twin replaced it
        has_may = "may" in [m.grade for m in self.maps]
        if len(self.maps) < 2:
            if has_may:
                self._saturate_if_full()
            return
        max_parts = MAX_EXACT_PARTS_TOGETHER if self._options.exact else MAX_PARTS_TOGETHER
        if sum(map(parts, self.maps)) > max_parts:
            self._shorten()
            self.add_reasons([_LONG_SET])
            self.is_over_budget = self._options.exact
            self._absorb(["exact", "may"])
        elif has_may or self._has_one_element:
            self._absorb(["may"])
        if (
            len(self.maps) > MAX_MAPS
            and self.spaces.start is not None
            and self.spaces.sizes is not None
        ):
            self.add_reasons([_MANY_MAPS])
            self._saturate()

    def _shorten(self) -> None:
        """Over-approximate the maps with more than `FEW_PARTS` parts."""
        sizes = self.spaces.sizes
        shorter = {m: over_approximate(m, sizes) if parts(m) > FEW_PARTS else m for m in self.maps}
        data = [short for m, short in shorter.items() if m not in self.control]
        self.control.update(shorter.values())
        self.control.difference_update(data)
        self._keep(shorter.values())

    def _saturate(self) -> None:
        """Replace the maps by the full `may` map, except for the first exact maps.

        Exact maps add no element to it, but compositions with them may be exact, for example if a
        scalar is broadcast.  `MAX_EXACT_KEPT` are kept.
        """
        self._full = full_map(self.spaces, self._options)
        exact = [m for m in self.maps if m.grade == "exact"][:MAX_EXACT_KEPT]
        self.control.discard(self._full)
        self._keep([self._full, *exact])

    def _saturate_if_full(self) -> None:
        """Saturate the set if its only map is the full `may` map."""
        (m,) = self.maps
        is_kept = self._options.keep_multiplicity or m in self.control
        if self._full is None and not is_kept and is_box(m) and is_full(m, self.spaces):
            self._saturate()

    def _absorb(self, grades: Collection[Grade]) -> None:
        """Drop the maps of these grades whose relation is a subset of another map, a box."""
        if self._options.keep_multiplicity:
            return  # they count as well
        self._unite()
        boxes = [m for m in self.maps if is_box(m)]
        full = [box for box in boxes if box not in self.control and is_full(box, self.spaces)]
        exact_full = [box for box in full if box.grade == "exact"]
        if full and not exact_full:
            self._saturate()
        elif exact_full and self._has_one_element:
            self._keep(exact_full[:1])
        else:
            self._drop_covered(grades, boxes)

    def _drop_covered(self, grades: Collection[Grade], boxes: Iterable[IndexingMap]) -> None:
        """Drop the maps of these grades that another remaining box covers.

        Elements that decide only control do not cover data.
        """
        index = BoxIndex(boxes)
        for m in [m for m in self.maps if m.grade in grades]:
            hull = m if is_box(m) else over_approximate(m, self.spaces.sizes)
            is_control = m in self.control
            if any(
                box is not m and box in self.maps and (is_control or box not in self.control)
                for box in index.covering(hull)
            ):
                del self.maps[m]
                self.control.discard(m)

    def _unite(self) -> None:
        """Unite `may` maps to fewer maps with the same union."""
        for is_control in (False, True):
            may = [m for m in self.maps if m.grade == "may" and (m in self.control) == is_control]
            if len(may) < 2:
                continue
            fewer = [self._options.simplify_map(m) for m in unite_maps(may)]
            if len(fewer) < len(may):
                for m in may:
                    del self.maps[m]
                self.control.difference_update(may)
                if is_control:
                    self.control.update([m for m in fewer if m not in self.maps])
                else:
                    self.control.difference_update(fewer)
                self.maps.update(dict.fromkeys(fewer))
