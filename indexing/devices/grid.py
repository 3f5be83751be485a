"""GPU grids: indexing maps from the threads of a launch to the elements that they compute.

The dimensions of such a map are the thread and block IDs, ``th_x, th_y, th_z, bl_x, bl_y, bl_z``.
Its range variables are the sequential loops of a thread, ``chunk_id`` and ``unroll_id``.  Its
results are the index of the computed element, in the schedule of XLA's loop emitter.  Linear
element e, in memory order, is element ``unroll_id`` of a vector computed by

    thread = th_x + bl_x·threads_x + (th_y + bl_y·threads_y)·all_x + (th_z + bl_z·threads_z)·all_xy
    e = (thread + chunk_id·all_xyz)·unroll + unroll_id

so neighbouring threads write neighbouring vectors.  Composed with the maps from the output to its
operands, it gives the elements that each thread loads.  Composed with
`indexing.maps.layouts.physical_map`, either gives positions in memory.

>>> from hlo import parse_shape
>>> print(thread_map(parse_shape("f32[100,300]"), threads=128, unroll=4).pretty())
(th_x, th_y, th_z, bl_x, bl_y, bl_z)[chunk_id, unroll_id] ->
    ((bl_x * 128 + th_x) floordiv 75, unroll_id + ((bl_x * -22 + th_x) mod 75) * 4),
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

`tile_map` is the schedule of a transpose emitter, in which each block computes a tile, `row_map`
that of a reduction emitter, in which neighbouring threads read a row.

Source: XLA ``docs/emitters.md``, "Loop emitter"; ``xla/codegen/emitters/kernel_api_builder.h``,
``GetDefaultWorkItemIndexingMap``; ``xla/backends/gpu/codegen/emitters/transpose.h``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from hlo.arguments import checked
from indexing.maps.indexing_map import Difference, Extents, IndexingMap
from indexing.maps.properties import Decision, Verdict, is_bijection
from indexing.maps.witnesses import Witness
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr
from simplifier.unknown import Unknown

AXES: Final = ("x", "y", "z")


@dataclass(frozen=True, slots=True)
class LaunchDimensions:
    """The numbers of threads per block and of blocks, along x, y and z.

    Raises:
        ValueError: a number is not positive.
    """

    threads: tuple[int, int, int]
    blocks: tuple[int, int, int]

    def __post_init__(self) -> None:
        for name, counts in (("threads", self.threads), ("blocks", self.blocks)):
            if min(counts) < 1:
                raise ValueError(f"{name}={counts}: expected at least 1 along each axis")

    @property
    def count(self) -> int:
        """Total number of threads."""
        return prod(self.threads) * prod(self.blocks)

    @property
    def dims(self) -> tuple[Variable, ...]:
        """The dimensions ``th_x, th_y, th_z, bl_x, bl_y, bl_z``."""
        return (
            *[Variable(f"th_{a}", 0, n - 1) for a, n in zip(AXES, self.threads, strict=True)],
            *[Variable(f"bl_{a}", 0, n - 1) for a, n in zip(AXES, self.blocks, strict=True)],
        )

    @property
    def number(self) -> Expr:
        """The linear ID of a thread: x varies fastest, and along each axis threads before blocks.

        >>> print(LaunchDimensions((32, 2, 1), (7, 1, 1)).number)
        bl_x * 32 + th_x + th_y * 224
        """
        linear, weight = as_expr(0), 1
        for axis in range(3):
            thread, block = self.dims[axis], self.dims[axis + 3]
            linear = linear + (thread + block * self.threads[axis]) * weight
            weight *= self.threads[axis] * self.blocks[axis]
        return linear


@checked
def thread_map(
    shape: Extents,
    *,
    threads: int | Sequence[int],
    blocks: int | Sequence[int] | None = None,
    unroll: int = 1,
) -> IndexingMap:
    """Return ``(th_x, …, bl_z)[chunk_id, unroll_id] -> (d0, …)``, the schedule of a loop emitter.

    Args:
        shape: shape or sizes of the output.  With a layout, elements are numbered from the minor
            dimension; tiles and padding of the layout are ignored.
        threads: number of threads per block, along x or along x, y and z.
        blocks: number of blocks, along x or along x, y and z; by default, enough along x to compute
            the output in one chunk.
        unroll: number of elements of a vector, which one thread computes.
    Returns:
        The map from thread, block and loop iteration to the index of the computed element.
    Raises:
        ValueError: a number is not positive.
    Source: XLA ``docs/emitters.md``, "Loop emitter".

    >>> small = thread_map((6,), threads=2, blocks=2)
    >>> small.evaluate(dims=(1, 0, 0, 0, 0, 0), ranges=(1, 0))
    (5,)
    >>> small.evaluate(dims=(0, 0, 0, 1, 0, 0), ranges=(1, 0)) is None
    True
    """
    if unroll < 1:
        raise ValueError(f"unroll={unroll}: expected at least 1")
    sizes = tuple(shape) if isinstance(shape, Sequence) else shape.dims
    size = prod(sizes)
    launch = LaunchDimensions(
        _counts("threads", threads), _counts("blocks", 1 if blocks is None else blocks)
    )
    if blocks is None:
        launch = replace(launch, blocks=(max(1, -(-size // (launch.count * unroll))), 1, 1))
    chunk = Variable("chunk_id", 0, -(-size // (launch.count * unroll)) - 1)
    vector = Variable("unroll_id", 0, unroll - 1)
    first = (launch.number + chunk * launch.count) * unroll
    element = first + vector
    # if vectors divide the output, a vector is in bounds if its first element is
    bounded = first if size % unroll == 0 else element
    schedule = IndexingMap.of(
        (*launch.dims, chunk, vector),
        _index(element, sizes, _minor_to_major(shape)),
        constraints=[Constraint(bounded, 0, size - 1)],
    )
    return _with_ranges(schedule.simplify(), 2)


@checked
def tile_map(
    shape: Extents,
    tile: Sequence[int],
    *,
    threads: int,
    unroll: int = 1,
    order: Sequence[int] | None = None,
) -> IndexingMap:
    """Return ``(th_x, …, bl_z)[loop_id, unroll_id] -> (d0, …)``: each block computes one tile.

    The threads of a block iterate over the tile in row-major order, `unroll` elements at a time.
    A transpose through shared memory uses one such schedule to read its operand and another to
    write its result; each block reads and writes the same elements, as in the example.

    Args:
        shape: shape or sizes of the array.
        tile: the size of a tile in each dimension; tiles at the upper bounds may be partial.
        threads: number of threads per block, along x.
        unroll: number of elements of a vector, which one thread computes.
        order: the order of dimensions in which tiles are numbered, slowest first; by default, the
            order of the dimensions.
    Returns:
        The map from thread, block and loop iteration to the index of the computed element.
    Raises:
        ValueError: a number is not positive, `tile` does not match the rank, or `order` is not a
            permutation.
    Source: XLA ``xla/backends/gpu/codegen/emitters/transpose.h``.

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
            f"tile={tuple(tile)}, threads={threads}, unroll={unroll}: expected positive numbers "
            f"and a tile of rank {len(sizes)}"
        )
    if sorted(order) != list(range(len(sizes))):
        raise ValueError(f"order={tuple(order)}: expected a permutation of range({len(sizes)})")
    tiles = [-(-size // own) for size, own in zip(sizes, tile, strict=True)]
    launch = LaunchDimensions((threads, 1, 1), (max(1, prod(tiles)), 1, 1))
    loop = Variable("loop_id", 0, -(-prod(tile) // (threads * unroll)) - 1)
    vector = Variable("unroll_id", 0, unroll - 1)
    thread, block = launch.dims[0], launch.dims[3]
    element = (thread + loop * threads) * unroll + vector
    inside = _index(element, tile, range(len(sizes))[::-1])
    corner = _index(block.as_expr(), tiles, tuple(order)[::-1])
    index = [c * own + i for c, own, i in zip(corner, tile, inside, strict=True)]
    schedule = IndexingMap.of(
        (*launch.dims, loop, vector),
        index,
        constraints=[
            Constraint(element, 0, prod(tile) - 1),
            *[Constraint(i, 0, size - 1) for i, size in zip(index, sizes, strict=True)],
        ],
    )
    return _with_ranges(schedule.simplify(), 2)


@checked
def row_map(shape: Extents, *, threads: int, rows: int = 1) -> IndexingMap:
    """Return ``(th_x, …, bl_z)[loop_id] -> (d0, …)``: each block reads rows, warps read along them.

    A row is the last dimension.  `threads` neighbouring threads iterate over a row together, and a
    block has `rows` rows.  A reduction of the last dimension reads its operand by such a schedule.

    Args:
        shape: shape or sizes of the operand.
        threads: number of threads for each row.
        rows: number of rows of a block.
    Returns:
        The map from thread, block and loop iteration to the index of the element.
    Raises:
        ValueError: a number is not positive, or the array is a scalar.
    Source: XLA ``xla/backends/gpu/codegen/emitters/reduction.cc``, ``RowReductionFusion`` and
    ``MultiRowReductionFusion``.

    >>> print(*row_map((100, 64, 512), threads=32, rows=8).results, sep=", ")
    bl_x floordiv 8, th_x floordiv 32 + (bl_x mod 8) * 8, loop_id * 32 + th_x mod 32
    """
    sizes = tuple(shape) if isinstance(shape, Sequence) else shape.dims
    if not sizes or min(threads, rows) < 1:
        raise ValueError(
            f"threads={threads}, rows={rows}: expected positive numbers and an array with rows, "
            f"not {sizes}"
        )
    *outer, length = sizes
    launch = LaunchDimensions((threads * rows, 1, 1), (max(1, -(-prod(outer) // rows)), 1, 1))
    loop = Variable("loop_id", 0, -(-length // threads) - 1)
    thread, block = launch.dims[0], launch.dims[3]
    row, column = block * rows + thread // threads, thread % threads + loop * threads
    schedule = IndexingMap.of(
        (*launch.dims, loop),
        [*_index(row, outer, range(len(outer))[::-1]), column],
        constraints=[Constraint(row, 0, prod(outer) - 1), Constraint(column, 0, length - 1)],
    )
    return _with_ranges(schedule.simplify(), 1)


@checked
def coverage(schedule: IndexingMap, shape: Extents) -> Decision:
    """Decide whether a schedule computes every element of `shape` exactly once.

    The schedule, over its dimensions and range variables, must be a bijection onto `shape`.

    Args:
        schedule: a map to the elements of `shape`, such as that of `thread_map` or `tile_map`.
        shape: shape or sizes of the output.
    Returns:
        True if proved; otherwise a `Verdict` with a reason and a witness, or `Unknown`.

    >>> coverage(thread_map((5, 7), threads=(4, 2), blocks=3, unroll=2), (5, 7))
    True
    >>> twice = IndexingMap.of([Variable("th_x", 0, 7)], [Variable("th_x", 0, 7) // 2])
    >>> coverage(twice, (4,)).reason
    'not injective: two points have the same result'

    Raises:
        ValueError: the number of results of `schedule` is not the rank of `shape`.
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


def _counts(name: str, value: int | Sequence[int]) -> tuple[int, int, int]:
    """Return counts along x, y and z; missing counts are 1."""
    counts = (value,) if isinstance(value, int) else tuple(value)
    if not 1 <= len(counts) <= 3:
        raise ValueError(f"{name}={value}: expected one to three numbers, for x, y and z")
    x, y, z = (*counts, 1, 1)[:3]
    return x, y, z


def _minor_to_major(shape: Extents) -> tuple[int, ...]:
    if isinstance(shape, Sequence):
        return tuple(range(len(shape)))[::-1]
    return shape.layout_or_default.minor_to_major


def _index(element: Expr, sizes: Sequence[int], minor_to_major: Sequence[int]) -> list[Expr]:
    """Return the index of an element from its linear number."""
    index: dict[int, Expr] = {}
    weight = 1
    for k in minor_to_major:
        # the slowest dimension needs no mod: its constraint bounds it
        last = len(index) == len(sizes) - 1
        index[k] = element // weight if last or not sizes[k] else element // weight % sizes[k]
        weight *= max(1, sizes[k])
    return [index[k] for k in range(len(sizes))]


def _with_ranges(schedule: IndexingMap, count: int) -> IndexingMap:
    """Return the map with its last `count` dimensions as range variables of the same names."""
    return replace(schedule, dims=schedule.dims[:-count], ranges=schedule.dims[-count:])
