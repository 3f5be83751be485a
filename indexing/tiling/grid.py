"""GPU grids: which elements a thread of a block computes, as indexing maps.

The dimensions of such a map are the thread and the block, ``th_x, th_y, th_z, bl_x, bl_y, bl_z``;
its range variables are what one thread does one after the other, ``chunk_id`` and ``unroll_id``.
It leads to the elements of the output, in the schedule of a loop emitter: element number e, counted
in the order of memory, is computed as number ``unroll_id`` of its vector by

    thread = th_x + bl_x·threads_x + (th_y + bl_y·threads_y)·all_x + (th_z + bl_z·threads_z)·all_xy
    e = (thread + chunk_id·all_xyz)·unroll + unroll_id

so that neighbouring threads write neighbouring vectors.  Composed with what the output reads, it
says which elements each thread loads; `indexing.maps.layouts.physical_map` after either gives
positions
in memory.

>>> from hlo import parse_shape
>>> print(thread_map(parse_shape("f32[100,300]"), threads=128, unroll=4).pretty())
(th_x, th_y, th_z, bl_x, bl_y, bl_z)[chunk_id, unroll_id] ->
    (bl_x * 2 + (bl_x * -22 + th_x) floordiv 75, unroll_id + ((bl_x * -22 + th_x) mod 75) * 4),
  domain:
  th_x in [0, 127]
  th_y in [0, 0]
  th_z in [0, 0]
  bl_x in [0, 58]
  bl_y in [0, 0]
  bl_z in [0, 0]
  chunk_id in [0, 0]
  unroll_id in [0, 3]
  bl_x * 128 + th_x in [0, 7499]

`tile_map` is another schedule, in which a block computes a tile: that of a transpose emitter.

Source: XLA ``docs/emitters.md``, "Loop emitter"; ``xla/codegen/emitters/kernel_api_builder.h``,
``GetDefaultWorkItemIndexingMap``; ``xla/backends/gpu/codegen/emitters/transpose.h``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from indexing.maps.indexing_map import Difference, Extents, IndexingMap
from indexing.maps.properties import Decision, Verdict, is_bijection
from indexing.maps.witnesses import Witness
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr
from simplifier.unknown import Unknown

AXES: Final = ("x", "y", "z")


@dataclass(frozen=True, slots=True)
class Launch:
    """How many threads a block has, and how many blocks there are, along x, y and z.

    Raises:
        ValueError: a number is not positive.
    """

    threads: tuple[int, int, int]
    blocks: tuple[int, int, int]

    def __post_init__(self) -> None:
        for what, counts in (("threads", self.threads), ("blocks", self.blocks)):
            if min(counts) < 1:
                raise ValueError(f"{what}={counts}: expected at least one along each axis")

    @property
    def count(self) -> int:
        """How many threads there are in all blocks."""
        return prod(self.threads) * prod(self.blocks)

    @property
    def dims(self) -> tuple[Variable, ...]:
        """``th_x, th_y, th_z, bl_x, bl_y, bl_z``."""
        return (
            *[Variable(f"th_{a}", 0, n - 1) for a, n in zip(AXES, self.threads, strict=True)],
            *[Variable(f"bl_{a}", 0, n - 1) for a, n in zip(AXES, self.blocks, strict=True)],
        )

    @property
    def number(self) -> Expr:
        """The number of a thread among all: x fastest, and blocks after the threads of an axis.

        >>> print(Launch((32, 2, 1), (7, 1, 1)).number)
        bl_x * 32 + th_x + th_y * 224
        """
        found, weight = as_expr(0), 1
        for axis in range(3):
            thread, block = self.dims[axis], self.dims[axis + 3]
            found = found + (thread + block * self.threads[axis]) * weight
            weight *= self.threads[axis] * self.blocks[axis]
        return found


def thread_map(
    shape: Extents,
    *,
    threads: int | Sequence[int],
    blocks: int | Sequence[int] | None = None,
    unroll: int = 1,
) -> IndexingMap:
    """``(th_x, …, bl_z)[chunk_id, unroll_id] -> (d0, …)``: the elements that a thread computes.

    Args:
        shape: the output; with a layout, elements are counted from the minor dimension on. Tiles
            and padding of a layout do not count.
        threads: threads of a block, along x or along x, y and z.
        blocks: blocks likewise; if not given, as many along x as compute everything in one chunk.
        unroll: elements of a vector, which one thread computes together.
    Raises:
        ValueError: a number is not positive.

    >>> small = thread_map((6,), threads=2, blocks=2)
    >>> small.evaluate(dims=(1, 0, 0, 0, 0, 0), ranges=(1, 0))
    (5,)
    >>> small.evaluate(dims=(0, 0, 0, 1, 0, 0), ranges=(1, 0)) is None
    True
    """
    if unroll < 1:
        raise ValueError(f"unroll={unroll}: expected at least one element")
    sizes = tuple(shape) if isinstance(shape, Sequence) else shape.dims
    size = prod(sizes)
    launch = Launch(_counts("threads", threads), _counts("blocks", 1 if blocks is None else blocks))
    if blocks is None:
        launch = replace(launch, blocks=(max(1, -(-size // (launch.count * unroll))), 1, 1))
    chunk = Variable("chunk_id", 0, -(-size // (launch.count * unroll)) - 1)
    vector = Variable("unroll_id", 0, unroll - 1)
    first = (launch.number + chunk * launch.count) * unroll
    element = first + vector
    # all elements of a vector are there if one is, where vectors fill the output
    counted = first if size % unroll == 0 else element
    made = IndexingMap.of(
        (*launch.dims, chunk, vector),
        _index(element, sizes, _minor_to_major(shape)),
        constraints=[Constraint(counted, 0, size - 1)],
    )
    return _with_ranges(made.simplify(), 2)


def tile_map(
    shape: Extents,
    tile: Sequence[int],
    *,
    threads: int,
    unroll: int = 1,
    order: Sequence[int] | None = None,
) -> IndexingMap:
    """``(th_x, …, bl_z)[loop_id, unroll_id] -> (d0, …)``: each block computes one tile.

    The threads of a block go through the tile in row-major order, again and again, `unroll`
    elements at a time.  A transpose through shared memory reads its operand like that, and writes
    its result likewise, block by block the same elements: see the example.

    Args:
        shape: the array.
        tile: the size of a tile in each dimension; tiles at the far ends may stick out.
        threads: threads of a block, along x.
        order: in which order of dimensions tiles are numbered, the slowest first; as they are if
            not given.
    Raises:
        ValueError: a number is not positive, or there is not one for each dimension.

    >>> reads = tile_map((64, 96), tile=(32, 32), threads=128)
    >>> writes = tile_map((96, 64), tile=(32, 32), threads=128, order=(1, 0))
    >>> print(*reads.results, sep=", ")
    loop_id * 4 + (bl_x floordiv 3) * 32 + th_x floordiv 32, th_x mod 32 + (bl_x mod 3) * 32
    >>> print(*writes.results, sep=", ")
    loop_id * 4 + th_x floordiv 32 + (bl_x mod 3) * 32, (bl_x floordiv 3) * 32 + th_x mod 32
    """
    sizes = tuple(shape) if isinstance(shape, Sequence) else shape.dims
    order = range(len(sizes)) if order is None else order
    if len(tile) != len(sizes) or min((*tile, threads, unroll)) < 1:
        raise ValueError(
            f"tile={tuple(tile)}, threads={threads}, unroll={unroll}: expected positive numbers, "
            f"and {len(sizes)} of them for a tile"
        )
    if sorted(order) != list(range(len(sizes))):
        raise ValueError(f"order={tuple(order)}: expected each of {len(sizes)} dimensions once")
    tiles = [-(-size // own) for size, own in zip(sizes, tile, strict=True)]
    launch = Launch((threads, 1, 1), (max(1, prod(tiles)), 1, 1))
    loop = Variable("loop_id", 0, -(-prod(tile) // (threads * unroll)) - 1)
    vector = Variable("unroll_id", 0, unroll - 1)
    thread, block = launch.dims[0], launch.dims[3]
    element = (thread + loop * threads) * unroll + vector
    inside = _index(element, tile, range(len(sizes))[::-1])
    corner = _index(block.as_expr(), tiles, tuple(order)[::-1])
    index = [c * own + i for c, own, i in zip(corner, tile, inside, strict=True)]
    made = IndexingMap.of(
        (*launch.dims, loop, vector),
        index,
        constraints=[
            Constraint(element, 0, prod(tile) - 1),
            *[Constraint(i, 0, size - 1) for i, size in zip(index, sizes, strict=True)],
        ],
    )
    return _with_ranges(made.simplify(), 2)


def coverage(schedule: IndexingMap, shape: Extents) -> Decision:
    """Whether the threads compute every element, and each of them once: proved, or a witness.

    Two points that compute the same element differ in a dimension or in a range variable.  Nor may
    a thread compute what is no element.

    >>> coverage(thread_map((5, 7), threads=(4, 2), blocks=3, unroll=2), (5, 7))
    True
    >>> twice = IndexingMap.of([Variable("th_x", 0, 7)], [Variable("th_x", 0, 7) // 2])
    >>> coverage(twice, (4,)).reason
    'not injective: two points have the same result'

    Raises:
        ValueError: the map does not lead to elements of `shape`.
    """
    points = schedule.ranges_to_dims()
    inside = points.is_equal(points.then(IndexingMap.identity(shape)))
    if isinstance(inside, Unknown):
        return inside
    if isinstance(inside, Difference):
        at = tuple([inside.witness[v.name] for v in points.variables])
        reason = f"element {list(inside.results)} is out of bounds"
        return Verdict(False, reason, Witness((at,), (inside.results,)))
    return is_bijection(points, onto=shape)


def _counts(what: str, given: int | Sequence[int]) -> tuple[int, int, int]:
    """Counts along x, y and z; 1 along those that are left out."""
    counts = (given,) if isinstance(given, int) else tuple(given)
    if not 1 <= len(counts) <= 3:
        raise ValueError(f"{what}={given}: expected a number for x, or one each for x, y and z")
    x, y, z = (*counts, 1, 1)[:3]
    return x, y, z


def _minor_to_major(shape: Extents) -> tuple[int, ...]:
    if isinstance(shape, Sequence):
        return tuple(range(len(shape)))[::-1]
    return shape.layout_or_default.minor_to_major


def _index(element: Expr, sizes: Sequence[int], minor_to_major: Sequence[int]) -> list[Expr]:
    """The index of an element from its number, dimensions after each other."""
    found: dict[int, Expr] = {}
    weight = 1
    for k in minor_to_major:
        # the slowest dimension needs no mod: what is beyond it is outside of the domain
        last = len(found) == len(sizes) - 1
        found[k] = element // weight if last or not sizes[k] else element // weight % sizes[k]
        weight *= max(1, sizes[k])
    return [found[k] for k in range(len(sizes))]


def _with_ranges(found: IndexingMap, count: int) -> IndexingMap:
    """The last `count` dimensions as range variables, which so keep their names."""
    return replace(found, dims=found.dims[:-count], ranges=found.dims[-count:])
