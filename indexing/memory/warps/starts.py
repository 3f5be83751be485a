"""Unknown starts: the best and the worst number of sectors over the range of runtime values.

A start index moves all addresses by a constant, or selects the elements of a pattern.  Values one
period apart move the addresses by a multiple of a line, so only one period is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import gcd, lcm, prod
from typing import Final, TypeAlias

from indexing.devices.gpus import Gpu
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.memory.warps.periods import translation
from indexing.memory.warps.thread_loads import ThreadLoad, exprs_of, with_values
from indexing.memory.warps.transactions import Transactions, segment_sizes, total, transactions
from indexing.memory.warps.warp_classes import WarpAccesses
from simplifier.atoms import mentioned
from simplifier.constraints import FALSE
from simplifier.interval import Interval
from simplifier.unknown import Unknown

MAX_STARTS: Final = 1 << 10
"""Budget: the combinations of start indices to count."""

Load: TypeAlias = tuple[ThreadLoad, int, int]
"""A load, the bits of its elements, and the address of position 0."""


@dataclass(frozen=True, slots=True)
class Started:
    """Counts with the worst starts, and totals with the best.

    Attributes:
        parts: what all warps move with each load, at the worst starts.
        transactions: the total of `parts`.
        best: the total with the best starts.
        best_starts, worst_starts: the values by name.
    """

    parts: tuple[Transactions, ...]
    transactions: Transactions
    best: Transactions
    best_starts: Mapping[str, int]
    worst_starts: Mapping[str, int]


def started(loads: Sequence[Load], device: Gpu, budget: int) -> Started | Unknown:
    """Count loads with the best and the worst values of their runtime variables."""
    line = segment_sizes(device)[-1]
    variables = _variables(loads, line)
    if isinstance(variables, Unknown):
        return variables
    spans = {start: _span(start, bounds, loads, line) for start, bounds in variables.items()}
    if prod(map(len, spans.values())) > MAX_STARTS:
        names = ", ".join(map(_name, spans))
        return Unknown(
            f"the starts {names} have more than {MAX_STARTS} combinations of different alignment"
        )
    best: tuple[Transactions, dict[str, int]] | None = None
    worst: tuple[Transactions, dict[str, int], tuple[Transactions, ...]] | None = None
    for values in product(*spans.values()):
        starts = dict(zip(spans, values, strict=True))
        parts: list[Transactions] = []
        for load, bits, offset in loads:
            part = transactions(
                _with_starts(load, starts),
                element_bits=bits,
                elements=load.elements,
                device=device,
                offset=offset,
                budget=budget,
            )
            if isinstance(part, Unknown):
                return part
            parts.append(part)
        together = total(parts, device)
        named = {_name(start): value for start, value in starts.items()}
        if best is None or together.sectors < best[0].sectors:
            best = together, named
        if worst is None or together.sectors > worst[0].sectors:
            worst = together, named, tuple(parts)
    assert best is not None
    assert worst is not None
    return Started(worst[2], worst[0], best[0], best[1], worst[1])


@dataclass(frozen=True, slots=True)
class _Start:
    """A runtime value; variables of several maps with the same source are the same value."""

    source: object
    index: tuple[object, ...]
    name: str

    @classmethod
    def of(cls, rt: RuntimeVariable) -> _Start:
        """Return the value of a runtime variable."""
        label = rt.name if rt.source_name is None else str(rt.source_name)
        if rt.index:
            label += f"[{', '.join(map(str, rt.index))}]"
        return cls(rt.array or rt.name, rt.index, label)


def _name(start: _Start) -> str:
    return start.name


def _variables(loads: Iterable[Load], line: int) -> dict[_Start, Interval] | Unknown:
    """Return the runtime values with the bounds in which a load reads something.

    A value that differs between warps is left out if it moves addresses by whole lines, so that
    each of its values gives the same counts.  `Unknown` if it has any other effect, or differs
    between the lanes of a warp.
    """
    starts: dict[_Start, Interval] = {}
    for load, bits, _ in loads:
        for rt in load.runtime:
            if all(i.is_constant for i in rt.index):
                start, variable = _Start.of(rt), rt.variable
                low, high = starts.get(start, variable.bounds)
                starts[start] = min(low, variable.lower), max(high, variable.upper)
                continue
            name = f"{rt.name}, an element of `{rt.source_name}`,"
            if load.accesses.lane in mentioned(rt.index):
                return Unknown(f"{name} differs between the lanes of a warp")
            if not _moves_by_lines(load, rt, line * 8 // bits):
                return Unknown(f"{name} differs between warps, and changes their alignment")
    return starts


def _moves_by_lines(load: ThreadLoad, rt: RuntimeVariable, modulus: int) -> bool:
    """Return True if each value of a runtime variable moves all addresses by whole lines."""
    place, *limits = [translation(e, rt.variable) for e in exprs_of(load.accesses)]
    if place is None or place.period > 1 or place.shift % modulus:
        return False
    return all(limit is not None and not limit.shift for limit in limits)


def _with_starts(load: ThreadLoad, starts: Mapping[_Start, int]) -> WarpAccesses:
    """Return the accesses of a load for values of its starts; none out of its bounds."""
    own = {rt.variable: starts.get(_Start.of(rt), rt.variable.lower) for rt in load.runtime}
    if any(not v.lower <= value <= v.upper for v, value in own.items()):
        return replace(load.accesses, constraints=(FALSE,))
    return with_values(load.accesses, own)


def _span(start: _Start, bounds: Interval, loads: Sequence[Load], line: int) -> range:
    """Return the values of a start up to the first repetition of all alignments."""
    repeats = 1
    for load, bits, _ in loads:
        for rt in load.runtime:
            if _Start.of(rt) == start:
                steps = [translation(e, rt.variable) for e in exprs_of(load.accesses)]
                modulus = line * 8 // bits
                place = steps[0]
                is_always_in = rt.variable.bounds == bounds
                if (
                    place is None
                    or not is_always_in
                    or any(s is None or s.shift for s in steps[1:])
                ):
                    return range(bounds[0], bounds[1] + 1)
                own = lcm(*[s.period for s in steps if s is not None])
                shift = place.shift * (own // place.period)
                repeats = lcm(repeats, own * (modulus // gcd(shift, modulus)))
    return range(bounds[0], min(bounds[1], bounds[0] + repeats - 1) + 1)
