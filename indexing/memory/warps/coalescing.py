"""XLA's rule for coalesced reads: the first warp, one range variable, no alignment.

`is_coalesced` follows ``IsIndexingCoalesced``.  The map from threads to positions in memory is
restricted to the threads ``th_x in [0, 31]`` of the first block, unknown starts are 0, and all
range variables but the last are fixed to their lower bound.  The positions of these 32 threads form
intervals of adjacent elements.  If the intervals, each rounded up to transactions of 128 bytes,
need few more transactions than one interval of the same size, the read is coalesced.  `access`
counts what the rule estimates; docs/memory.md lists where they differ.

Source: XLA ``xla/service/gpu/model/coalescing_analysis.cc``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from hlo.shapes.layout import Layout
from hlo.shapes.shape import Shape
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.layouts import physical_map
from indexing.maps.replaced_variables import with_replaced_variables
from indexing.memory.warps.thread_loads import THREAD_DIMS
from simplifier.atoms import Variable, variables_in
from simplifier.interval import Interval
from simplifier.linear import Expr, as_expr, constant, from_atom

_WARP: Final = 32
_TRANSACTION_BYTES: Final = 128
_THRESHOLD: Final = 0.9

Parts: TypeAlias = tuple[Expr, Expr]


def is_coalesced(schedule: IndexingMap, reads: IndexingMap, shape: Shape) -> bool:
    """Return XLA's verdict on the reads of an array by the threads of a schedule.

    Args:
        schedule: the map from threads to elements of the output, with dimension ``th_x``.
        reads: the map from elements of the output to elements of the array.
        shape: the shape of the array.  As in XLA, tiles of its layout are ignored.

    >>> from hlo import parse_shape
    >>> from indexing.devices.grid import thread_map
    >>> schedule = thread_map((64, 96), threads=128)
    >>> transpose = IndexingMap.over((64, 96), lambda d: [d[1], d[0]])
    >>> is_coalesced(schedule, transpose, parse_shape("f32[96,64]{0,1}"))
    True
    >>> is_coalesced(schedule, transpose, parse_shape("f32[96,64]{1,0}"))
    False
    """
    if not shape.rank:
        return True
    plain = shape.with_layout(Layout(shape.layout_or_default.minor_to_major))
    first = _first_warp(schedule.then(reads).then(physical_map(plain)))
    if first.is_known_empty:
        return True
    sample = _with_last_range(first)
    (place,) = sample.results
    parts = _partition(place, sample)
    if parts is None or len(sample.constraints) > 1:
        return False
    if sample.constraints and sample.constraints[0].expr != place:
        return False
    return _is_dense(_intervals(parts, sample), _element_bytes(shape))


def _element_bytes(shape: Shape) -> int:
    return max(1, -(-shape.element_bits // 8))


def _first_warp(places: IndexingMap) -> IndexingMap:
    """Return the positions of 32 threads along x, at the first values of all other dimensions."""
    threads = {v: v for v in places.dims if v.name == THREAD_DIMS[0]}
    for v in threads:
        threads[v] = Variable(v.name, v.lower, min(v.upper, _WARP - 1))
    values: dict[Variable, Expr] = {}
    for v in places.dims:
        values[v] = threads[v].as_expr() if v in threads else constant(0)
    for rt in places.runtime:
        values[rt.variable] = constant(rt.variable.lower)
    return with_replaced_variables(places, values, {v: threads.get(v) for v in values}).simplify()


def _with_last_range(first: IndexingMap) -> IndexingMap:
    """Fix all range variables but the last; as in XLA, this drops the constraints."""
    if len(first.ranges) < 2:
        return first
    fixed = {v: constant(v.lower) for v in first.ranges[:-1]}
    free = IndexingMap(first.dims, first.ranges, (), first.results, (), first.grade)
    return with_replaced_variables(free, fixed, dict.fromkeys(fixed)).simplify()


def _partition(place: Expr, sample: IndexingMap) -> Parts | None:
    """Return ``(f, g)`` with ``place = f(thread) + g(range)`` without constants, if it has any."""
    ranges = set(sample.ranges)
    of_thread, of_range = as_expr(0), as_expr(0)
    for atom, coefficient in place.parts.items():
        term = from_atom(atom) * coefficient
        used = variables_in([term])
        if used & ranges and used - ranges:
            return None
        if used & ranges:
            of_range = of_range + term
        else:
            of_thread = of_thread + term
    return of_thread, of_range


def _intervals(parts: Parts, sample: IndexingMap) -> list[Interval]:
    """Return the intervals of positions that the threads of the sample read."""
    of_thread, of_range = parts
    (thread,) = sample.dims
    length, start = 1, 0
    if sample.ranges and of_range == sample.ranges[0].as_expr():
        length, start = sample.ranges[0].size, sample.ranges[0].lower
    step = of_thread.parts.get(thread, 0)
    is_linear = of_thread == thread * step and bool(step)
    if is_linear and abs(step) == 1:
        return [(0, _WARP - 1)]
    if is_linear and length > 1 and length >= abs(step):
        return [(0, step * (_WARP - 1) + length - 1)]
    if is_linear:
        firsts = [start + step * k for k in range(_WARP)]
        return [(first, first + length - 1) for first in firsts]
    values = range(thread.lower, thread.upper + 1)
    return _join_intervals(sorted({of_thread.value({thread: value}) for value in values}), length)


def _join_intervals(firsts: Sequence[int], length: int) -> list[Interval]:
    """Return the union of the intervals of `length` positions as disjoint intervals."""
    joined: list[Interval] = []
    for first in firsts:
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], first + length - 1)
        else:
            joined.append((first, first + length - 1))
    return joined


def _is_dense(intervals: Iterable[Interval], element_bytes: int) -> bool:
    """Return True if the intervals need few more transactions than one interval of their size."""
    sizes = [upper - lower + 1 for lower, upper in intervals]
    needed = sum([-(-size * element_bytes // _TRANSACTION_BYTES) for size in sizes])
    least = -(-sum(sizes) * element_bytes // _TRANSACTION_BYTES)
    return not needed or least > needed * _THRESHOLD
