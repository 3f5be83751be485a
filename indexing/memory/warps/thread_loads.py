"""Loads and stores of a schedule: positions in memory over block, warp, lane and loops.

The map of a schedule has dimensions ``th_x, th_y, th_z``, the threads of a block, and others, its
blocks.  Threads are numbered ``th_x + th_y·threads_x + th_z·threads_x·threads_y``; each run of
`threads_per_warp` numbers is a warp.  The range variable ``unroll_id`` is the vector of a thread,
which the compiler unrolls; all others are loops.

A vector is loaded with one instruction if its elements are adjacent and aligned, up to the widest
load of the device, and otherwise with one instruction for each element.  Equal loads, and loads
that do not depend on a loop, are executed once: the value stays in a register.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from hlo.shapes.shape import Shape
from indexing.devices.gpus import Gpu
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.layouts import physical_map
from indexing.maps.numbering import number_ranges
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.memory.warps.warp_classes import WarpAccesses
from simplifier.atoms import Variable, variables_in
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution

THREAD_DIMS: Final = ("th_x", "th_y", "th_z")
VECTOR: Final = "unroll_id"
WARP: Final = "warp"


@dataclass(frozen=True, slots=True)
class ThreadLoad:
    """One load or store of a program.

    Attributes:
        accesses: the positions, which may depend on `runtime`.
        runtime: the runtime variables, with the index of their source over the same variables.
        elements: the number of adjacent elements of a vector.
        unroll: the number of the first element in the thread's vector.
    """

    accesses: WarpAccesses
    runtime: tuple[RuntimeVariable, ...]
    elements: int
    unroll: int

    def is_equal(self, other: ThreadLoad) -> bool:
        """Return True if both load the same elements."""
        return self.accesses == other.accesses and self.runtime == other.runtime


def thread_counts(schedule: IndexingMap) -> tuple[int, ...]:
    """Return the numbers of threads of a block along x, y and z.

    Raises:
        ValueError: the schedule has no thread dimension, or one whose lower bound is not 0.

    >>> from indexing.devices.grid import thread_map
    >>> thread_counts(thread_map((64, 64), threads=(32, 4)))
    (32, 4, 1)
    """
    threads = {v.name: v for v in schedule.dims if v.name in THREAD_DIMS}
    if not threads or any(v.lower for v in threads.values()):
        names = ", ".join(v.name for v in schedule.dims)
        raise ValueError(
            f"a schedule needs dimensions th_x, th_y, th_z from 0, the threads of a block; got "
            f"({names}): write one with indexing.thread_map(shape, threads=128)"
        )
    return tuple([threads[n].upper + 1 if n in threads else 1 for n in THREAD_DIMS])


def thread_loads(
    schedule: IndexingMap, reads: IndexingMap, shape: Shape, device: Gpu, offset: int = 0
) -> tuple[ThreadLoad, ...]:
    """Return the loads with which a schedule reads an array.

    Args:
        schedule: the map from threads to elements of the output.
        reads: the map from elements of the output to elements of the array.
        shape: the shape of the array, with its layout.
        device: the sizes of warps and vectors.
        offset: the address of position 0, in bytes from a line.
    """
    counts = thread_counts(schedule)
    positions = _positions(schedule.then(reads).then(physical_map(shape)), counts, device)
    loads: list[ThreadLoad] = []
    while positions:
        width = _vector_width(positions, shape.element_bits, device, offset)
        first = min(positions)
        loads.append(replace(positions[first], elements=width))
        positions = {k: load for k, load in positions.items() if k >= first + width}
    return tuple(loads)


def _positions(places: IndexingMap, counts: Sequence[int], device: Gpu) -> dict[int, ThreadLoad]:
    """Return the different loads of single elements, by their number in the vector."""
    places = _simplify_places(places)
    if places.is_known_empty:
        return {}
    vector = next((v for v in places.dims if v.name == VECTOR), Variable(VECTOR, 0, 0))
    accesses, runtime = _by_warp(places, counts, device.threads_per_warp)
    every = ThreadLoad(accesses, runtime, 1, 0)
    loads: dict[int, ThreadLoad] = {}
    for number in range(vector.lower, vector.upper + 1):
        load = _element(every, vector, number, places.dims)
        if not any(load.is_equal(other) for other in loads.values()):
            loads[number] = load
    return loads


def _simplify_places(places: IndexingMap) -> IndexingMap:
    """Simplify the map with the vector as a dimension, and keep its loops, renumbered.

    A loop of which one iteration is active for each thread is executed nevertheless: other threads
    of the warp are active in other iterations.  Simplification keeps dimensions, but eliminates
    range variables that others determine.
    """
    vector = [v for v in places.ranges if v.name == VECTOR]
    loops = [v for v in places.ranges if v.name != VECTOR]
    fixed = len(places.dims) + len(vector)
    simple = replace(places, dims=(*places.dims, *vector, *loops), ranges=()).simplify()
    return number_ranges(replace(simple, dims=simple.dims[:fixed], ranges=simple.dims[fixed:]))


def _element(
    every: ThreadLoad, vector: Variable, number: int, dims: Sequence[Variable]
) -> ThreadLoad:
    """Return the load of one element of a vector, without the loops on which it does not depend."""
    accesses = with_values(every.accesses, {vector: number})
    swap = Substitution({vector: as_expr(number)})
    starts = tuple([rt.substituted(swap) for rt in every.runtime])
    used = variables_in([*exprs_of(accesses), *[i for rt in starts for i in rt.index]]) | set(dims)
    outer = tuple([v for v in accesses.outer if v in used or v.name == WARP])
    return ThreadLoad(replace(accesses, outer=outer), starts, 1, number)


def _vector_width(loads: Mapping[int, ThreadLoad], bits: int, device: Gpu, offset: int) -> int:
    """Return the number of elements to load at once from the first on, a power of two."""
    first = min(loads)
    start = loads[first].accesses
    place = start.position
    width = 1
    while bits * width * 2 <= 8 * device.vector_bytes and not offset * 8 % (bits * width * 2):
        width *= 2
        for k in range(width // 2, width):
            other = loads.get(first + k)
            if other is None or other.runtime != loads[first].runtime:
                return width // 2
            if not _is_next(start, other.accesses, k):
                return width // 2
        if place.constant % width or any(c % width for c in place.parts.values()):
            return width // 2
    return width


def _is_next(start: WarpAccesses, other: WarpAccesses, distance: int) -> bool:
    """Return True if `other` has the positions of `start` plus `distance`, at the same points."""
    return (
        other.position == start.position + distance
        and other.outer == start.outer
        and set(other.constraints) == set(start.constraints)
    )


def _by_warp(
    position: IndexingMap, counts: Sequence[int], warp_size: int
) -> tuple[WarpAccesses, tuple[RuntimeVariable, ...]]:
    """Return the positions and runtime variables over warp and lane, without thread dimensions."""
    threads = prod(counts)
    warps = -(-threads // warp_size)
    lane = Variable("lane", 0, min(threads, warp_size) - 1)
    warp = Variable(WARP, 0, warps - 1)
    number = warp * warp_size + lane
    values: dict[Variable, Expr] = {}
    constraints: list[Constraint] = []
    if threads % warp_size and warps > 1:
        constraints.append(Constraint(number, 0, threads - 1))
    dims = {v.name: v for v in position.dims}
    for name, count in zip(THREAD_DIMS, counts, strict=True):
        variable = dims.pop(name, None)
        if variable is not None:
            values[variable] = number % count if name != THREAD_DIMS[-1] else number
            constraints.append(Constraint(values[variable], variable.lower, variable.upper))
        number = number // count
    swap = Substitution(values)
    constraints += [c.with_expr(swap(c.expr)) for c in position.constraints]
    accesses = WarpAccesses(
        swap(position.results[0]),
        tuple([c for c in constraints if not c.is_true]),
        tuple([v for v in (*dims.values(), warp, *position.ranges) if v.lower != v.upper]),
        lane,
    )
    return accesses, tuple([rt.substituted(swap) for rt in position.runtime])


def with_values(accesses: WarpAccesses, values: Mapping[Variable, int]) -> WarpAccesses:
    """Return the accesses for values of some variables."""
    if not values:
        return accesses
    swap = Substitution({v: as_expr(value) for v, value in values.items()})
    constraints = [c.with_expr(swap(c.expr)) for c in accesses.constraints]
    return WarpAccesses(
        swap(accesses.position),
        tuple([c for c in constraints if not c.is_true]),
        tuple([v for v in accesses.outer if v not in values]),
        accesses.lane,
    )


def exprs_of(accesses: WarpAccesses) -> Iterator[Expr]:
    """Yield the position and the expressions of the constraints."""
    yield accesses.position
    for constraint in accesses.constraints:
        yield constraint.expr
