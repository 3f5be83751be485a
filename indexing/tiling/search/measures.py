"""Figures of a tiling: the bytes that its tiles load, store and request, and their memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Literal, TypeAlias

from indexing.maps.indexing_map import Grade, IndexingMap
from indexing.maps.mask_values import mask_values
from indexing.tiling.search.limits import TileArray, TileMemory
from indexing.tiling.sets.operands import TiledOperand
from indexing.tiling.sets.stored_tiles import StoredTiles, stored_tiles
from indexing.tiling.sets.tile_grid import TileGrid
from indexing.tiling.sets.tiling import Tiling, tile
from simplifier.unknown import Unknown

Objective: TypeAlias = Literal["bytes", "requested", "reuse"]


@dataclass(frozen=True)
class SingleElements:
    """The tiling of an array by single elements, built when it is needed.

    Attributes:
        whole: any tiling of the array.
    """

    whole: Tiling

    @cached_property
    def loaded(self) -> int | Unknown:
        """The bytes that the tiles load."""
        return self._tiling.bytes

    @property
    def is_exact(self) -> bool:
        """True if `loaded` is no upper bound."""
        return all(operand.grade == "exact" for operand in self._tiling.operands)

    @cached_property
    def _tiling(self) -> Tiling:
        return self.whole.with_sizes([1] * len(self.whole.sizes))


@dataclass(frozen=True)
class RankedTiling:
    """A tiling with the figures by which it is ranked.

    Attributes:
        tiling: the tiling.
        loaded: bytes that the tiles load, elements included that a mask hides: each tile loads each
            element once.
        requested: bytes that the accesses of the tiles request: each tile loads the elements that
            it needs by each of the maps separately, so two maps to one element count twice.
        memory: the memory of the largest tile.
        grade: "may" if the figures are upper bounds.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[64] parameter(0)  ROOT b = f32[16,64] broadcast(p), "
    >>> broadcast = hlo.parse(text + "dimensions={1} }").entry.root
    >>> (ranked,) = indexing.best_tilings(broadcast, sizes=[[8], [64]])
    >>> ranked.sizes, ranked.loaded, ranked.stored  # each of 2 tiles loads 64 elements of 4 bytes
    ((8, 64), 512, 4096)
    >>> ranked.bytes, ranked.value("bytes"), ranked.needed, ranked.layout_bytes
    (4608, 4608, 512, (4608, 'exact'))
    >>> ranked.single, ranked.reuse  # 16 * 64 tiles of one element would load 4 bytes each
    (4096, Fraction(8, 1))
    >>> ranked.grade, ranked.needed_grade
    ('exact', 'exact')
    """

    tiling: Tiling
    loaded: int
    requested: int
    memory: TileMemory
    grade: Grade
    _single: SingleElements

    def value(self, objective: Objective) -> int:
        """Return the figure that an objective minimises."""
        values = {"bytes": self.bytes, "requested": self.requested, "reuse": self.loaded}
        return values[objective]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The tile sizes."""
        return self.tiling.sizes

    @property
    def stored(self) -> int:
        """Bytes of the result; the tiles store each element once."""
        return self.tiling.shape.bytes

    @property
    def bytes(self) -> int:
        """Bytes that all tiles together load and store."""
        return self.loaded + self.stored

    @cached_property
    def layout_bytes(self) -> tuple[int, Grade] | Unknown:
        """Bytes in memory of the tiles of layouts that the tiles load and store, and the grade."""
        shape, total, grade = self.tiling.shape, 0, self.grade
        result: StoredTiles | Unknown = StoredTiles(0, shape.bytes, 0, "exact")
        if shape.layout_or_default.tiles:
            grid = TileGrid(shape.dims, self.sizes)
            result = stored_tiles([IndexingMap.identity(shape)], grid, shape)
        for own in (result, *[operand.stored for operand in self.tiling.operands]):
            if isinstance(own, Unknown):
                return own
            total += own.bytes
            grade = "may" if own.grade == "may" else grade
        return total, grade

    @property
    def needed(self) -> int | Unknown:
        """Bytes of the elements that each tile needs, without those that a mask hides.

        An upper bound if `needed_grade` is "may", as under masks of runtime values.
        """
        return self._needed[0]

    @property
    def needed_grade(self) -> Grade:
        """Grade "may" if `needed` is an upper bound."""
        return self._needed[1]

    @cached_property
    def _needed(self) -> tuple[int | Unknown, Grade]:
        whole = self.tiling
        masked = tile(whole.instruction, whole.sizes, whole.to, whole.answer.domain_id, exact=True)
        number = masked if isinstance(masked, Unknown) else masked.bytes
        if isinstance(masked, Unknown) or isinstance(number, Unknown) or number > self.loaded:
            return self.loaded, "may"
        is_bound = any(
            operand.grade == "may" or any(map(mask_values, operand.maps))
            for operand in masked.operands
        )
        return number, "may" if is_bound else "exact"

    @property
    def single(self) -> int | Unknown:
        """`loaded` for tiles of one element; `Unknown` if they are too many to count."""
        return self._single.loaded

    @property
    def reuse(self) -> Fraction | Unknown:
        """`single` / `loaded`: how many elements of the result a loaded element serves on average.

        `Unknown` if `single` is, or if one of them is an upper bound.
        """
        single = self.single
        if isinstance(single, Unknown):
            return single
        if self.grade == "may" or not self._single.is_exact:
            return Unknown("the needed elements are not known exactly")
        return Fraction(single, self.loaded) if self.loaded else Fraction(1)


def tile_memory(tiling: Tiling) -> TileMemory | Unknown:
    """Return the largest tile of each array: the smallest boxes, and the number of elements.

    >>> import hlo
    >>> from indexing.tiling.sets.tiling import tile
    >>> text = "ENTRY e { p = f32[8,4] parameter(0)  ROOT t = f32[4,8] transpose(p), "
    >>> module = hlo.parse(text + "dimensions={1,0} }")
    >>> memory = tile_memory(tile(module.entry.root, (4, 3)))
    >>> memory.result.sizes, memory.operands[0].sizes, memory.working_set
    ((4, 3), (3, 4), 96)
    """
    operands = []
    for operand in tiling.operands:
        array = _tile_array(operand)
        if isinstance(array, Unknown):
            return array
        operands.append(array)
    sizes = tuple(map(min, tiling.sizes, tiling.shape.dims))
    result = TileArray(sizes, tiling.shape.element_bits)
    return TileMemory(result, tuple(operands), prod(tiling.grid))


def _tile_array(operand: TiledOperand) -> TileArray | Unknown:
    sets = operand.sets
    if isinstance(sets, Unknown):
        return sets
    sizes = [0] * operand.shape.rank
    for factors in sets.products:
        for own in factors:
            hulls = [c.hull for c in own.inhabited if c.hull is not None]
            for k, place in enumerate(own.places):
                extent = max([hull.sizes[k] for hull in hulls], default=0)
                sizes[place] = max(sizes[place], extent)
    return TileArray(tuple(sizes), operand.shape.element_bits, sets.largest)


def measure_tiling(tiling: Tiling, single: SingleElements) -> RankedTiling | Unknown:
    """Return the figures of a tiling.

    Args:
        tiling: the tiling.
        single: the tiling of the same array by single elements.
    """
    loaded, memory = tiling.bytes, tile_memory(tiling)
    if isinstance(loaded, Unknown):
        return loaded
    if isinstance(memory, Unknown):
        return memory
    requested = 0
    grade: Grade = "exact"
    for operand in tiling.operands:
        for access in _accesses(operand):
            own = access.bytes
            if isinstance(own, Unknown):
                return own
            requested += own
            if "may" in (access.grade, operand.grade):
                grade = "may"
    return RankedTiling(tiling, loaded, requested, memory, grade, single)


def _accesses(operand: TiledOperand) -> list[TiledOperand]:
    """Return the elements needed by each map separately."""
    if len(operand.maps) < 2:
        return [operand]
    return [replace(operand, maps=(m,)) for m in operand.maps]
