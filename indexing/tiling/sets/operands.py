"""`TiledOperand`: the elements of one array that the tiles of a tiling need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, Literal, TypeAlias

import indexing.methods as methods
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from hlo.text.names import counted_noun
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.indexing_map import Grade, IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.tiling.sets.bounds import bounding_ranges
from indexing.tiling.sets.contiguity import MemoryRuns, box_runs, largest_box
from indexing.tiling.sets.formulas import EMPTY, pieces_of, ranges_of
from indexing.tiling.sets.operand_sets import OperandSets, operand_sets
from indexing.tiling.sets.runtime_values import Starts
from indexing.tiling.sets.stored_tiles import StoredTiles, stored_tiles
from indexing.tiling.sets.tile_grid import TileGrid
from indexing.tiling.sets.tile_sets import AddedStarts, BudgetError
from indexing.tiling.symbolic.progressions import TileSide
from simplifier.linear import Expr, as_expr
from simplifier.unknown import Unknown

Kind: TypeAlias = Literal["box", "boxes", "bounding", "unknown"]

MAX_BOXES_OF_TILE: Final = 8
"""Maximum number of disjoint boxes of a tile of the kind "boxes"."""


@dataclass(frozen=True, eq=False)
class TiledOperand:
    """The elements of one array that the tiles of a tiling need.

    Attributes:
        instruction: the operand, parameter or output.
        path: the leaf, if it is a tuple.
        number: the index of `instruction` among the operands of the answer.
        maps: the maps from the tiled array to this array.
        grid: the tiles.
        unknown: the reason why the maps are incomplete, or `None`.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[8,12] parameter(0)  ROOT t = f32[12,8] transpose(p), dimensions="
    >>> (operand,) = indexing.tile(hlo.parse(text + "{1,0} }").entry.root, (3, 4)).operands
    >>> operand.kind, [str(size) for size in operand.sizes], operand.tile_bytes, operand.reuse
    ('box', ['4', '3'], 48, Fraction(1, 1))

    Windows of 3 elements, at each element: neighbouring tiles share 2 elements.

    >>> module = hlo.parse('''
    ... add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
    ... ENTRY e { p = f32[16] parameter(0)  z = f32[] constant(0)
    ...   ROOT r = f32[14] reduce-window(p, z), window={size=3}, to_apply=add }''')
    >>> read = indexing.tile(module.entry.root, (4,)).operands[0]
    >>> print(read.halo, *read.offsets, *read.sizes, *read.strides)
    (2,) tid_0 * 4 min(tid_0 * -4 + 16, 6) 1
    >>> read.tile_elements, read.elements, read.elements_touched  # 6 + 6 + 6 + 4 of 16 elements
    (6, 22, 16)
    >>> read.tile_bytes, read.bytes, read.bytes_touched, read.reuse, read.overfetch
    (24, 88, 64, Fraction(11, 8), Fraction(1, 1))
    >>> print(read.contiguous, read.grade, read.touched_grade, read.shape)
    1 run of 6 elements exact exact f32[16]
    """

    instruction: Instruction
    path: Path
    number: int
    maps: tuple[IndexingMap, ...]
    grid: TileGrid
    unknown: Unknown | None = None

    def __repr__(self) -> str:
        maps = counted_noun(len(self.maps), "map")
        return f"<tiles {list(self.grid.sizes)} of {self.instruction.name!r}: {maps}>"

    @property
    def shape(self) -> Shape:
        """The shape of the array."""
        shape = ArrayRef(self.instruction, self.path).shape
        assert isinstance(shape, Shape)
        return shape

    @cached_property
    def sets(self) -> OperandSets | Unknown:
        """The sets of all tiles, in classes of translates."""
        if self.unknown is not None:
            return self.unknown
        try:
            return operand_sets(self.maps, self.grid)
        except BudgetError as error:
            return Unknown(str(error), self.instruction)

    @property
    def grade(self) -> Grade:
        """ "exact": bytes are exact; "may": they are upper bounds, and sets may be supersets."""
        return self._grade_of(self.sets)

    @property
    def touched_grade(self) -> Grade:
        """The same for `bytes_touched`: tiles at runtime values may need the same elements."""
        return self._grade_of(self._whole)

    def _grade_of(self, sets: OperandSets | Unknown) -> Grade:
        if isinstance(sets, Unknown) or self._is_over_approximate:
            return "may"
        return "exact" if sets.is_exact else "may"

    # ------------------------------------------------------------ kind

    @property
    def kind(self) -> Kind:
        """The form of the sets of all tiles.

        "box": each tile needs exactly one strided box, or nothing; "boxes": each tile needs at
        most `MAX_BOXES_OF_TILE` boxes; "bounding": a tile may need another set, and the box of
        `offsets`, `sizes` and `strides` contains it; "unknown": the maps are incomplete.
        """
        return self._kind[0]

    @property
    def reason(self) -> str:
        """The reason why the kind is not "box"; empty for a box.

        >>> import hlo, indexing
        >>> text = "ENTRY e { p = f32[3,4] parameter(0)  ROOT r = f32[12] reshape(p) }"
        >>> (read,) = indexing.tile(hlo.parse(text).entry.root, (6,)).operands
        >>> print(read.reason.partition(" by ")[0])  # of a row and half of the next one
        a tile needs up to 2 boxes
        >>> read.kind, len(read.pieces), read.overfetch  # boxes of 8 elements for 6
        ('boxes', 2, Fraction(4, 3))
        """
        return self._kind[1]

    @cached_property
    def _kind(self) -> tuple[Kind, str]:
        sets = self.sets
        if self.unknown is not None:
            return "unknown", str(self.unknown)
        if not self.shape.rank:  # one element, or nothing
            return "box", ""
        if isinstance(sets, Unknown):
            return "bounding", str(sets)
        may = [m for m in self.maps if m.grade == "may"]
        if may:
            return "bounding", f"the map is an over-approximation: {may[0]}"
        if self._is_over_approximate:
            return "bounding", f"the set depends on runtime values: {self._runtime_reason}"
        if not sets.total or sets.boxes == 1:
            return "box", ""
        reason = self._reason(sets)
        if sets.boxes is not None and sets.boxes <= MAX_BOXES_OF_TILE:
            return "boxes", reason
        return "bounding", reason

    @property
    def _is_over_approximate(self) -> bool:
        if any(m.grade == "may" for m in self.maps):
            return True
        sets = self.sets
        return not isinstance(sets, Unknown) and bool(sets.runtime)

    @property
    def _runtime_reason(self) -> str:
        return "; ".join([str(m) for m in self.maps if m.runtime])

    def _reason(self, sets: OperandSets) -> str:
        if len(sets.products) > 1:
            return f"runtime values decide whether {len(self.maps)} maps overlap"
        if sets.rows > 1:
            return f"up to {sets.rows} runtime values in one tile: {self._runtime_reason}"
        several = f"{len(self.maps)} maps" if len(self.maps) > 1 else str(self.maps[0])
        number = "more than a few" if sets.boxes is None else sets.boxes
        return f"a tile needs up to {number} boxes by {several}"

    # ------------------------------------------------------------ boxes

    @cached_property
    def ranges(self) -> tuple[TileSide, ...] | None:
        """The indices of the box of each tile in each dimension; `None` without formulas."""
        if self.unknown is not None:
            return None
        sets = self.sets
        if isinstance(sets, Unknown) or len(sets.products) > 1:
            return bounding_ranges(self.maps, self.grid, self.shape.dims)
        if not sets.total:
            return (EMPTY,) * self.shape.rank
        (product,) = sets.products
        ranges = ranges_of(product)
        return None if ranges is None else self._move_ranges(ranges, sets)

    @cached_property
    def pieces(self) -> tuple[tuple[TileSide, ...], ...] | None:
        """Disjoint boxes whose union each tile needs, for the kinds "box" and "boxes".

        Each box has the indices in each dimension, as expressions of the tile index; boxes may be
        empty for some tiles.  `None` without formulas, and for sets that are not few boxes.
        """
        sets, ranges = self.sets, self.ranges
        if self.kind == "box":
            return None if ranges is None else (ranges,)
        if self.kind != "boxes" or isinstance(sets, Unknown):
            return None
        if sets.rows > 1 or len(sets.products) > 1:
            return None
        pieces = pieces_of(sets.products[0], MAX_BOXES_OF_TILE)
        return (
            None if pieces is None else tuple([self._move_ranges(piece, sets) for piece in pieces])
        )

    def _move_ranges(self, ranges: Sequence[TileSide], sets: OperandSets) -> tuple[TileSide, ...]:
        """The indices translated by the runtime values that are added to them."""
        if sets.starts is None:
            return tuple(ranges)
        starts = {
            place: added
            for own in sets.products[0]
            for place, added in zip(own.places, own.starts, strict=True)
        }
        return tuple(
            [_with_starts(r, starts[k], sets.starts, sets.rows) for k, r in enumerate(ranges)]
        )

    @cached_property
    def runtime(self) -> tuple[RuntimeVariable, ...]:
        """The runtime variables of `offsets`, with their index over the tile index.

        >>> import hlo, indexing
        >>> slice_ = hlo.parse('''ENTRY e { p = f32[9] parameter(0)  i = s32[] parameter(1)
        ...   ROOT s = f32[6] dynamic-slice(p, i), dynamic_slice_sizes={6} }''').entry.root
        >>> read = indexing.tile(slice_, (2,)).operands[0]
        >>> print(*read.offsets, [(rt.source_name, rt.clamp) for rt in read.runtime])
        rt0 + tid_0 * 2 [('i', (0, 3))]
        """
        sets = self.sets
        return () if isinstance(sets, Unknown) or sets.starts is None else sets.starts.runtime

    @property
    def offsets(self) -> tuple[Expr, ...] | None:
        """The offset of the box of a tile in each dimension, as expressions of the tile index."""
        return None if self.ranges is None else tuple([line.offset for line in self.ranges])

    @property
    def sizes(self) -> tuple[Expr, ...] | None:
        """The size of the box of a tile in each dimension; 0 if the tile needs nothing."""
        return None if self.ranges is None else tuple([line.size for line in self.ranges])

    @property
    def strides(self) -> tuple[Expr, ...] | None:
        """The stride of the box of a tile in each dimension."""
        return None if self.ranges is None else tuple([line.stride for line in self.ranges])

    # ------------------------------------------------------------ counts

    @property
    def tile_elements(self) -> int | Unknown:
        """The number of elements that the largest tile needs."""
        sets = self.sets
        return sets if isinstance(sets, Unknown) else sets.largest

    @property
    def elements(self) -> int | Unknown:
        """The sum over all tiles of the number of elements that each needs, once a tile."""
        sets = self.sets
        return sets if isinstance(sets, Unknown) else sets.total

    @property
    def tile_bytes(self) -> int | Unknown:
        """The bytes that the largest tile needs."""
        return self._bytes(lambda sets: sets.largest)

    @property
    def bytes(self) -> int | Unknown:
        """The sum over all tiles of the bytes that each needs, each element once a tile."""
        return self._bytes(lambda sets: sets.total)

    @cached_property
    def _whole(self) -> OperandSets | Unknown:
        """The set that all tiles together need, as that of a single tile."""
        if self.unknown is not None:
            return self.unknown
        dims = self.grid.dims
        try:
            return operand_sets(self.maps, TileGrid(dims, dims))
        except BudgetError as error:
            return Unknown(str(error), self.instruction)

    @property
    def elements_touched(self) -> int | Unknown:
        """The number of distinct elements that all tiles together need."""
        whole = self._whole
        return whole if isinstance(whole, Unknown) else min(whole.total, self.shape.size)

    @property
    def bytes_touched(self) -> int | Unknown:
        """The bytes of the distinct elements that all tiles together need."""
        count = self.elements_touched
        return count if isinstance(count, Unknown) else self._size_of(count)

    @cached_property
    def stored(self) -> StoredTiles | Unknown:
        """The bytes in memory of the tiles of the layout that the tiles touch, with padding.

        Those of the elements, if the layout has no padding.

        >>> import hlo, indexing
        >>> text = "ENTRY e { p = f32[8,200]{1,0:T(8,128)} parameter(0)  ROOT s = f32[8,200] "
        >>> (read,) = indexing.tile(hlo.parse(text + "sine(p) }").entry.root, (8, 50)).operands
        >>> read.bytes, read.stored  # tiles 0 to 3 touch 1, 1, 2 and 1 tiles of 8 x 128 elements
        (6400, StoredTiles(tile_bytes=8192, bytes=20480, bytes_touched=8192, grade='exact'))
        """
        if self.unknown is not None:
            return self.unknown
        if self.shape.layout_or_default.tiles:
            return stored_tiles(self.maps, self.grid, self.shape)
        if self.shape.physical_bytes != self.shape.bytes:
            return Unknown(f"the layout of {self.shape} has padding, but no tiles")
        tile, every, touched = self.tile_bytes, self.bytes, self.bytes_touched
        if isinstance(tile, Unknown):
            return tile
        if isinstance(every, Unknown):
            return every
        if isinstance(touched, Unknown):
            return touched
        is_exact = self.grade == self.touched_grade == "exact"
        return StoredTiles(tile, every, touched, "exact" if is_exact else "may")

    @property
    def reuse(self) -> Fraction | Unknown:
        """Average number of tiles that need an element: `bytes` / `bytes_touched`.

        `Unknown` if one of them is an upper bound: the ratio of upper bounds is no bound.
        """
        sets, touched = self.sets, self.elements_touched
        if isinstance(sets, Unknown):
            return sets
        if isinstance(touched, Unknown):
            return touched
        if "may" in (self.grade, self.touched_grade):
            return Unknown(f"the needed elements are not known exactly: {self.reason}")
        return Fraction(sets.total, touched) if touched else Fraction(1)

    @property
    def overfetch(self) -> Fraction | Unknown:
        """Elements of the smallest boxes of all tiles / elements that the tiles need."""
        sets = self.sets
        if isinstance(sets, Unknown):
            return sets
        if self._is_over_approximate or not sets.is_exact:
            return Unknown(f"the needed elements are not known exactly: {self.reason}")
        boxes = sets.hull_total
        if boxes is None:
            return Unknown("the smallest boxes depend on runtime values")
        return Fraction(boxes, sets.total) if sets.total else Fraction(1)

    @cached_property
    def halo(self) -> tuple[int | Unknown, ...]:
        """For each dimension of the tiled array, the elements that two neighbouring tiles share.

        The largest number for any two neighbours; 0 for a dimension with one tile.
        """
        sets = self.sets
        if isinstance(sets, Unknown):
            return (sets,) * len(self.grid.counts)
        return tuple([sets.halo(k) for k in range(len(self.grid.counts))])

    @cached_property
    def contiguous(self) -> MemoryRuns | Unknown:
        """The runs of adjacent elements of the largest tile, in the layout of the array."""
        if self.kind != "box":
            return Unknown(f"the tiles are not known to be boxes: {self.reason}")
        assert isinstance(self.sets, OperandSets)
        box = largest_box(self.sets)
        return box if isinstance(box, Unknown) else box_runs(box, self.shape)

    def _bytes(self, count: Callable[[OperandSets], int]) -> int | Unknown:
        return self.sets if isinstance(self.sets, Unknown) else self._size_of(count(self.sets))

    def _size_of(self, elements: int) -> int:
        return -(-elements * self.shape.element_bits // 8)

    def __str__(self) -> str:
        return methods.operand_text(self)


def _with_starts(line: TileSide, added: AddedStarts, starts: Starts, rows: int) -> TileSide:
    """The line with runtime values added to its offset; for several rows, with their bounds."""
    for start, factor in added:
        if rows > 1:
            low, high = sorted([start.bounds[0] * factor, start.bounds[1] * factor])
            last = line.stride * (line.size - 1) + (high - low)
            line = TileSide(line.offset + low, last + 1, as_expr(1))
        else:
            line = line._replace(offset=line.offset + starts.names[start] * factor)
    return line
