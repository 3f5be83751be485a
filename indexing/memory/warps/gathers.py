"""Gathers: loads whose start indices are elements of an index array, which differ between lanes.

Elements of the index array are independent values.  Lanes with the same element share a start; the
positions from there on are a row.  Every warp moves the fewest sectors if all elements are equal.
It moves the most if the rows of its elements have no sector in common.  Element n of the array gets
row ``(n mod w)·step``, where w is the largest distance of two elements of a warp: so the rows of
all warps are apart at once, and the total is attained.

Both are proved for rows that touch equally many sectors wherever they start:

* rows of whole sectors;
* rows that divide a sector, and so are inside of one;
* rows of which each element of the index array reads one vector.

>>> from indexing.devices.gpus import gpu
>>> from indexing.memory.warps.transactions import transactions
>>> from simplifier.atoms import Variable
>>> lane, rt = Variable("lane", 0, 31), Variable("rt0", 0, 999)
>>> reads = WarpAccesses(rt * 8 + lane % 8, (), (), lane)
>>> load = ThreadLoad(reads, (RuntimeVariable(rt, "ids", (lane // 8,), (0, 999)),), 1, 0)
>>> ends = equal_and_apart([(load, 32, 0)], gpu("A100"), budget=10**6)
>>> for each in ends[0]:
...     moved = transactions(each, element_bits=32, elements=1, device=gpu("A100"))
...     print(each.position, moved.sectors)
lane mod 8 1
lane 4
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from hlo.shapes.mixed_radix import number_of
from indexing.devices.gpus import Gpu
from indexing.maps.arrays import ArrayName, ArrayRef
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.memory.warps.periods import translation
from indexing.memory.warps.thread_loads import ThreadLoad, exprs_of
from indexing.memory.warps.transactions import segment_sizes
from indexing.memory.warps.warp_classes import WarpAccesses, warp_classes
from simplifier.atoms import Variable, variables_in
from simplifier.interval import Interval
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown

Load: TypeAlias = tuple[ThreadLoad, int, int]
"""A load, the bits of its elements, and the address of position 0."""

Source: TypeAlias = "ArrayRef | ArrayName | str"


class EqualAndApart(NamedTuple):
    """The accesses of a load if all rows are the same row, and if those of a warp are apart."""

    equal: WarpAccesses
    apart: WarpAccesses


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that a load reads by the elements of an index array.

    Attributes:
        accesses: the accesses of the load.
        rt: the element of the index array.
        step: the distance between rows without a common sector, in rows.
    """

    accesses: WarpAccesses
    rt: RuntimeVariable
    step: int

    @property
    def source(self) -> Source:
        """The index array."""
        return self.rt.array or self.rt.name


def is_gathered(rt: RuntimeVariable) -> bool:
    """Return True if the value may differ between warps, or between the lanes of a warp."""
    return not all(i.is_constant for i in rt.index)


def equal_and_apart(
    loads: Sequence[Load], device: Gpu, budget: int
) -> list[EqualAndApart | None] | Unknown:
    """Return the accesses with the fewest and with the most sectors, for each load that gathers.

    Args:
        loads: loads of one operand; those of one index array get the same row for an element.
        device: the size of sectors.
        budget: the number of lanes to enumerate.
    Returns:
        An entry for each load, `None` without gathered starts; `Unknown` if the numbers depend on
        the starts in another way, or if the array has too few rows.
    """
    every: list[_Rows | None] = []
    for load in loads:
        rows = _rows(load, device)
        if isinstance(rows, Unknown):
            return rows
        every.append(rows)
    by_source: dict[Source, list[_Rows]] = {}
    for each in every:
        if each is not None:
            by_source.setdefault(each.source, []).append(each)
    assignments: dict[Source, _Assignment] = {}
    for source, same in by_source.items():
        assignment = _assignment(same, budget)
        if isinstance(assignment, Unknown):
            return assignment
        assignments[source] = assignment
    return [None if e is None else _ends(e, assignments[e.source]) for e in every]


def _source_phrase(rt: RuntimeVariable) -> str:
    return f"{rt.name}, an element of `{rt.source_name}`,"


def _moves_by_lines(load: ThreadLoad, rt: RuntimeVariable, line: int) -> bool:
    """Return True if all lanes of a warp share the value, and each value moves by whole lines.

    `line` is the number of elements of a line.
    """
    place, *limits = [translation(e, rt.variable) for e in exprs_of(load.accesses)]
    if place is None or place.period > 1 or place.shift % line:
        return False
    is_shared = load.accesses.lane not in variables_in(rt.index)
    return is_shared and all(limit is not None and not limit.shift for limit in limits)


def _rows(load: Load, device: Gpu) -> _Rows | Unknown | None:
    """Return the rows of a load; `None` if no start changes its numbers."""
    own, bits, offset = load
    sector, line = device.sector_bytes * 8, segment_sizes(device)[-1] * 8 // bits
    starts = [rt for rt in own.runtime if is_gathered(rt) and not _moves_by_lines(own, rt, line)]
    if not starts:
        return None
    if len(starts) > 1:
        names = " and ".join([_source_phrase(rt).rstrip(",") for rt in starts])
        return Unknown(f"{names} differ between warps: only one gathered start is counted")
    (rt,) = starts
    step = _step(own.accesses, rt, bits, sector, offset * 8)
    return step if isinstance(step, Unknown) else _Rows(own.accesses, rt, step)


def _step(
    accesses: WarpAccesses, rt: RuntimeVariable, bits: int, sector: int, offset: int
) -> int | Unknown:
    """Return the distance between rows without a common sector, in rows.

    `bits` is the size of an element; `sector` and `offset` are bits as well.
    """
    stride = abs(accesses.position.parts.get(rt.variable, 0))
    inside = accesses.position - rt.variable * accesses.position.parts.get(rt.variable, 0)
    limits = [constraint.expr for constraint in accesses.constraints]
    if (
        rt.variable in variables_in([inside, *limits])
        or not stride
        or rt.clamp != rt.variable.bounds
    ):
        return Unknown(f"{_source_phrase(rt)} does not only select a row")
    row = stride * bits
    if accesses.lane not in variables_in([inside]):
        return -(-sector // row)
    if row % sector and sector % row:
        return Unknown(
            f"{_source_phrase(rt)} changes the alignment of rows: {row // 8} bytes are neither "
            f"whole sectors of {sector // 8} bytes nor a part of one"
        )
    is_shared = accesses.lane not in variables_in(rt.index)
    is_one_row = inside.bounds[0] // stride == inside.bounds[1] // stride
    is_aligned = offset % min(row, sector) == 0
    if (is_shared and row % sector == 0) or (is_one_row and is_aligned):
        return max(1, sector // row)
    return Unknown(f"{_source_phrase(rt)} starts rows that overlap, or begin inside of a sector")


class _Assignment(NamedTuple):
    """The row of each element of an index array: ``lower + step·(number mod width)``."""

    indices: Sequence[Interval]
    lower: int
    step: int
    width: int

    def number(self, rt: RuntimeVariable) -> Expr:
        """Return the number of the element that a runtime variable holds."""
        digits = [i - lower for i, (lower, _) in zip(rt.index, self.indices, strict=True)]
        return as_expr(number_of(digits, [upper - lower + 1 for lower, upper in self.indices]))


def _assignment(rows: Sequence[_Rows], budget: int) -> _Assignment | Unknown:
    """Return the assignment with which the rows of each warp are apart."""
    step = max([each.step for each in rows])
    lower = max([each.rt.variable.lower for each in rows])
    upper = min([each.rt.variable.upper for each in rows])
    bounds = [[index.bounds for index in each.rt.index] for each in rows]
    indices = [(min(low), max(high)) for low, high in _transpose_bounds(bounds)]
    width = 1
    for each in rows:
        number = _Assignment(indices, lower, step, 1).number(each.rt)
        distance = _distance(replace(each.accesses, position=number), budget)
        if isinstance(distance, Unknown):
            return distance
        width = max(width, distance + 1)
    if lower + step * (width - 1) > upper:
        return Unknown(
            f"{_source_phrase(rows[0].rt)} selects one of {max(0, upper - lower + 1)} rows: too "
            f"few to assign each of {width} elements that a warp may read to sectors of its own"
        )
    return _Assignment(indices, lower, step, width)


def _transpose_bounds(bounds: Sequence[Sequence[Interval]]) -> list[tuple[list[int], list[int]]]:
    """Return the lower and the upper bounds of each index."""
    return [([b[0] for b in every], [b[1] for b in every]) for every in zip(*bounds, strict=True)]


def _distance(numbers: WarpAccesses, budget: int) -> int | Unknown:
    """Return the largest distance of the positions of two active lanes of a warp."""
    classes = warp_classes(numbers, 1, budget)
    if isinstance(classes, Unknown):
        return classes
    largest = 0
    for each in classes:
        rows = each.active.any(axis=1)
        positions, active = each.positions[rows], each.active[rows]
        low = positions.min(axis=1, where=active, initial=positions.max(initial=0))
        high = positions.max(axis=1, where=active, initial=positions.min(initial=0))
        largest = max(largest, int((high - low).max(initial=0)))
    return largest


def _ends(rows: _Rows, assignment: _Assignment) -> EqualAndApart:
    number = assignment.number(rows.rt) % assignment.width
    ends = [as_expr(assignment.lower), number * assignment.step + assignment.lower]
    return EqualAndApart(*[_with(rows.accesses, {rows.rt.variable: end}) for end in ends])


def _with(accesses: WarpAccesses, values: Mapping[Variable, Expr]) -> WarpAccesses:
    """Return the accesses with a row, whose number the constraints do not mention."""
    assert not values.keys() & variables_in(list(exprs_of(accesses))[1:])
    return replace(accesses, position=Substitution(dict(values))(accesses.position))
