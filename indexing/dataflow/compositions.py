"""Compositions of edges and map sets, each made once.

Programs repeat few relations: the layers of a network are equal, and so are the maps to most
parameters of one shape.  A walk therefore shares equal map sets, and composes an edge with a shared
set once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from typing import Final, TypeAlias

from hlo.modules.module import Instruction
from indexing.dataflow.equal_runtime import share_equal_values
from indexing.dataflow.related_values import has_possible_values
from indexing.dataflow.shaped_ops import ShapedOp
from indexing.maps.arrays import ArrayRef
from indexing.maps.explanation import is_explaining
from indexing.maps.hulls import hull_of_set
from indexing.maps.map_set import MAX_LISTED, MapSet
from indexing.maps.options import Options
from indexing.maps.reasons import Reason
from indexing.maps.space_pairs import Space, SpacePair
from indexing.ops.access_edge import AccessEdge

WalkStep: TypeAlias = "tuple[ArrayRef, AccessEdge, EdgeCompositions]"
"""A step: the array that an edge leads to, the edge, and the compositions with it."""
MAX_SHARED: Final = 1 << 16
"""Limit on the maps of the sets that one walk shares; beyond it, they are composed again."""
MAX_PAIRS: Final = 1 << 10
"""Limit on the pairs of maps that one walk composes, besides the first `FEW_PAIRS` of each edge;
beyond it, the walk follows one `may` map to each array."""
FEW_PAIRS: Final = 4
"""Pairs of maps of one edge that are not counted: their number is linear in the program."""


class PairBudget:
    """The pairs of maps that one walk has composed, of the `MAX_PAIRS` that it may compose.

    Compositions that are shared count as others do: the answer of a walk does not depend on others.
    """

    __slots__ = ("_composed",)

    def __init__(self) -> None:
        self._composed = 0

    def add(self, edge: AccessEdge, maps: MapSet) -> None:
        """Count the pairs of the maps of an edge and of a set."""
        pairs = len(edge.maps) * len(maps.maps)
        if pairs > FEW_PAIRS:
            self._composed += pairs - FEW_PAIRS

    @property
    def is_exceeded(self) -> bool:
        """True if the walk composes more pairs than `MAX_PAIRS`."""
        return self._composed > MAX_PAIRS


def _many_pairs() -> Reason:
    return Reason(f"budget: more than {MAX_PAIRS} pairs of maps to compose in one walk")


class Compositions:
    """The map sets of one walk, or of several.

    Equal sets are one object, so they are never changed.  Certified and explained compositions are
    not shared: each of them is counted or recorded.

    Args:
        options: the options of the sets.
        edges_first: compose ``x -> maps(edge(x))``; otherwise ``x -> edge(maps(x))``.
        keeps_steps: keep the steps from each array, for further walks through it.
    """

    def __init__(self, options: Options, *, edges_first: bool, keeps_steps: bool = False) -> None:
        self.options, self.edges_first, self.keeps_steps = options, edges_first, keeps_steps
        self.is_sharing = not (options.certify or is_explaining())
        self._steps: Final[dict[Hashable, tuple[WalkStep, ...]]] = {}
        self._along: Final[dict[Hashable, EdgeCompositions]] = {}
        self._of_shapes: Final[dict[Hashable, tuple[tuple[AccessEdge, EdgeCompositions], ...]]] = {}
        self._sets: Final[dict[Hashable, MapSet]] = {}
        self._hulls: Final[dict[MapSet, MapSet]] = {}
        self._coalesced: Final[dict[MapSet, MapSet]] = {}
        self._size = 0

    def steps(
        self,
        array: ArrayRef,
        key: Hashable,
        edges: Callable[[], Iterable[AccessEdge]],
        toward: Collection[Instruction] | None,
        sizes: Callable[[ArrayRef], Space],
        shaped: tuple[ShapedOp | None, Callable[[ArrayRef], bool]],
    ) -> Iterable[WalkStep]:
        """Return the steps from an array back to its operands, found once if they are kept.

        Args:
            key: what the edges depend on besides the array.
            edges: returns the edges from the array.
            toward: leave out operands that are not in it; by default, none.
            sizes: returns the sizes of an operand.
            shaped: what the edges may follow from besides `key`, or None; and a function that
                returns True, once they are found, if they do, so that instructions share them.
        """
        if not (self.keeps_steps and self.is_sharing):
            along = self._edges_along(array, key, edges, sizes, shaped)
            return self._steps_along(array, along, toward)
        known = self._steps.get((array, key))
        if known is None:
            along = self._edges_along(array, key, edges, sizes, shaped)
            known = self._steps[array, key] = tuple(self._steps_along(array, along, toward))
        return known

    def _edges_along(
        self,
        array: ArrayRef,
        key: Hashable,
        edges: Callable[[], Iterable[AccessEdge]],
        sizes: Callable[[ArrayRef], Space],
        shaped: tuple[ShapedOp | None, Callable[[ArrayRef], bool]],
    ) -> Iterable[tuple[AccessEdge, EdgeCompositions]]:
        """Return the edges of an array with their compositions, found once for a shaped op."""
        shaped_op, follow_from_shapes = shaped
        if shaped_op is None or not self.is_sharing:
            return self._along_each(array, edges(), sizes)
        place = shaped_op, array.path, key
        known = self._of_shapes.get(place)
        if known is None:
            known = tuple(self._along_each(array, edges(), sizes))
            if follow_from_shapes(array):
                self._of_shapes[place] = known
        return known

    def _along_each(
        self,
        array: ArrayRef,
        edges: Iterable[AccessEdge],
        sizes: Callable[[ArrayRef], Space],
    ) -> Iterator[tuple[AccessEdge, EdgeCompositions]]:
        operands = array.instruction.operands
        for edge in edges:
            to = ArrayRef(operands[edge.operand], edge.operand_path)
            yield edge, self.along(edge, sizes(to))

    def _steps_along(
        self,
        array: ArrayRef,
        edges: Iterable[tuple[AccessEdge, EdgeCompositions]],
        toward: Collection[Instruction] | None,
    ) -> Iterator[WalkStep]:
        operands = array.instruction.operands
        for edge, along in edges:
            operand = operands[edge.operand]
            if toward is None or operand in toward:
                yield ArrayRef(operand, edge.operand_path), edge, along

    def along(self, edge: AccessEdge, space: Space) -> EdgeCompositions:
        """Return the compositions with an edge.

        Args:
            space: the index space of the array at the end of the edge where the sets are placed.
        """
        if not self.is_sharing:
            return EdgeCompositions(self, edge, space)
        key: Hashable = (space, edge.maps)
        if edge.unknown is not None or edge.reasons or edge.control:
            key = (space, edge.maps, edge.unknown, edge.reasons, frozenset(edge.control))
        known = self._along.get(key)
        if known is None:
            known = self._along[key] = EdgeCompositions(self, edge, space)
        return known

    def shared_set(self, maps: MapSet) -> MapSet:
        """Return the shared set that is equal to `maps`."""
        return self._sets.setdefault(maps.state, maps) if self.is_sharing else maps

    def coalesced(self, maps: MapSet) -> MapSet:
        """Return the set to follow instead of a set to which no map will be added."""
        if len(maps.maps) <= MAX_LISTED:
            return maps
        known = self._coalesced.get(maps)
        if known is None:
            known = maps.copy()
            known.coalesce(is_readable=False)
            known = self.count_set(known)
            if self.is_sharing:
                self._coalesced[maps] = known
        return known

    def hull(self, maps: MapSet) -> MapSet:
        """Return the set to follow instead of `maps` if the budget of a walk is exceeded."""
        if len(maps.maps) < 2:
            return maps
        known = self._hulls.get(maps)
        if known is None:
            known = self.count_set(hull_of_set(maps, self.options, _many_pairs()))
            if self.is_sharing:
                self._hulls[maps] = known
        return known

    def within(
        self, budget: PairBudget, map_sets: dict[ArrayRef, MapSet]
    ) -> dict[ArrayRef, MapSet]:
        """Return the map sets of a walk: hulls if it exceeds its budget."""
        follow = self.hull if budget.is_exceeded else self.coalesced
        return {array: follow(self.possible(maps)) for array, maps in map_sets.items()}

    def possible(self, maps: MapSet) -> MapSet:
        """Return a set with one variable for equal runtime values, without impossible ones."""
        if not self.options.follows_runtime_masks:
            return maps
        kept = {}
        for m in maps.maps:
            shared = share_equal_values(m)
            shared = m if shared is m else self.options.simplify_map(shared)
            is_empty = shared is not m and shared.is_known_empty
            if not is_empty and has_possible_values(shared):
                kept[m] = shared
        is_same = len(kept) == len(maps.maps) and all(m is new for m, new in kept.items())
        return maps if is_same else self.count_set(maps.like(kept, kept.__getitem__))

    def count_set(self, maps: MapSet) -> MapSet:
        """Return the shared set that is equal to `maps`; forget all sets beyond the limit."""
        self._size += 1 + len(maps.maps)
        if self._size > MAX_SHARED:
            self._size = 0
            self._steps.clear()
            self._along.clear()
            self._of_shapes.clear()
            self._sets.clear()
            self._hulls.clear()
            self._coalesced.clear()
        return self.shared_set(maps)


class EdgeCompositions:
    """The compositions of one walk with equal edges, whose sets have one index space in common."""

    __slots__ = ("_edge", "_firsts", "_space", "_sums", "_walk")

    def __init__(self, walk: Compositions, edge: AccessEdge, space: Space) -> None:
        self._walk, self._edge, self._space = walk, edge, space
        self._firsts: dict[MapSet, MapSet] = {}
        self._sums: dict[tuple[MapSet, MapSet], MapSet] = {}

    def first(self, maps: MapSet) -> MapSet:
        """Return the compositions of the edge and `maps`."""
        known = self._firsts.get(maps)
        if known is not None:
            return known
        total = MapSet((), self._spaces(maps), self._walk.options)
        self._add(total, maps)
        if self._walk.is_sharing:
            total = self._firsts[maps] = self._walk.count_set(total)
        return total

    def add_compositions(self, total: MapSet, maps: MapSet) -> MapSet:
        """Return `total` with the compositions of the edge and `maps`.

        Args:
            total: a result of `first` or `add_compositions`, which is not used any more.
        """
        if not self._walk.is_sharing:
            self._add(total, maps)
            return total
        known = self._sums.get((total, maps))
        if known is None:
            copied = total.copy()
            self._add(copied, maps)
            known = self._sums[total, maps] = self._walk.count_set(copied)
        return known

    def _spaces(self, maps: MapSet) -> SpacePair:
        start, sizes = maps.spaces
        return (
            SpacePair(self._space, sizes)
            if self._walk.edges_first
            else SpacePair(start, self._space)
        )

    def _add(self, total: MapSet, maps: MapSet) -> None:
        edge = self._edge
        first, second = (edge, maps) if self._walk.edges_first else (maps, edge)
        total.is_over_budget |= maps.is_over_budget
        total.add_composed(
            first.maps,
            second.maps,
            maps.unknown if edge.unknown is None else edge.unknown,
            first.reasons + second.reasons,
            (first.control, second.control),
        )
