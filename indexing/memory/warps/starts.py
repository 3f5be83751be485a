"""Unknown starts: the best and the worst number of sectors over the range of runtime values.

A start index moves all addresses by a constant, or selects the elements of a pattern.  Values one
period apart move the addresses by a multiple of a line, so only one period is counted.  Elements of
an index array, whose values differ between warps or lanes, are those of module `gathers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import gcd, lcm, prod
from typing import Final

from indexing.devices.gpus import Gpu
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.memory.warps.gathers import Load, equal_and_apart, is_gathered
from indexing.memory.warps.periods import translation
from indexing.memory.warps.thread_loads import ThreadLoad, exprs_of, with_values
from indexing.memory.warps.transactions import Transactions, segment_sizes, total, transactions
from indexing.memory.warps.warp_classes import WarpAccesses
from simplifier.constraints import FALSE
from simplifier.interval import Interval
from simplifier.unknown import Unknown

MAX_STARTS: Final = 1 << 10
"""Budget: the combinations of start indices to count."""


@dataclass(frozen=True, slots=True)
class Started:
    """Counts with the worst starts, and totals with the best.

    Attributes:
        parts: what all warps move with each load, at the worst starts.
        transactions: the total of `parts`.
        best: the total with the best starts.
        best_starts, worst_starts: the values by name, without elements of index arrays.
    """

    parts: tuple[Transactions, ...]
    transactions: Transactions
    best: Transactions
    best_starts: Mapping[str, int]
    worst_starts: Mapping[str, int]


def count_by_starts(loads: Sequence[Load], device: Gpu, budget: int) -> Started | Unknown:
    """Count loads with the best and the worst values of their runtime variables."""
    line = segment_sizes(device)[-1]
    variables = _variables(loads)
    spans = {start: _span(start, bounds, loads, line) for start, bounds in variables.items()}
    if prod(map(len, spans.values())) > MAX_STARTS:
        names = ", ".join(map(_name_of_start, spans))
        return Unknown(
            f"the starts {names} have more than {MAX_STARTS} combinations of different alignment"
        )
    ends = equal_and_apart(loads, device, budget)
    if isinstance(ends, Unknown):
        return ends
    apart = [end and end.apart for end in ends]
    equal = [end and end.equal for end in ends]
    every: list[Started] = []
    for values in product(*spans.values()):
        starts = dict(zip(spans, values, strict=True))
        most = _count_loads(loads, apart, starts, device, budget)
        fewest = _count_loads(loads, equal, starts, device, budget) if any(ends) else most
        if isinstance(most, Unknown):
            return most
        if isinstance(fewest, Unknown):
            return fewest
        named = {_name_of_start(start): value for start, value in starts.items()}
        every.append(Started(most, total(most, device), total(fewest, device), named, named))
    best = min(every, key=lambda each: each.best.sectors)
    worst = max(every, key=lambda each: each.transactions.sectors)
    return replace(worst, best=best.best, best_starts=best.best_starts)


def _count_loads(
    loads: Sequence[Load],
    gathered: Sequence[WarpAccesses | None],
    starts: Mapping[_Start, int],
    device: Gpu,
    budget: int,
) -> tuple[Transactions, ...] | Unknown:
    """Return what all warps move with each load, for values of its starts.

    `gathered` has the accesses of loads whose elements of index arrays have values.
    """
    parts: list[Transactions] = []
    for (load, bits, offset), accesses in zip(loads, gathered, strict=True):
        part = transactions(
            _with_starts(replace(load, accesses=accesses or load.accesses), starts),
            element_bits=bits,
            elements=load.elements,
            device=device,
            offset=offset,
            budget=budget,
        )
        if isinstance(part, Unknown):
            return part
        parts.append(part)
    return tuple(parts)


@dataclass(frozen=True, slots=True)
class _Start:
    """A runtime value; variables of several maps with the same source are the same value."""

    source: object
    index: tuple[object, ...]
    name: str

    @classmethod
    def of(cls, rt: RuntimeVariable) -> _Start:
        """Return the value of a runtime variable."""
        label = rt.name if rt.source_name is None else rt.value_name
        if rt.index:
            label += f"[{', '.join(map(str, rt.index))}]"
        return cls(rt.array or rt.name, rt.index, label)


def _name_of_start(start: _Start) -> str:
    return start.name


def _variables(loads: Iterable[Load]) -> dict[_Start, Interval]:
    """Return the runtime values with the bounds in which a load reads something.

    Elements of index arrays, which differ between warps, are left out.
    """
    starts: dict[_Start, Interval] = {}
    for load, _, _ in loads:
        for rt in load.runtime:
            if not is_gathered(rt):
                start, variable = _Start.of(rt), rt.variable
                low, high = starts.get(start, variable.bounds)
                starts[start] = min(low, variable.lower), max(high, variable.upper)
    return starts


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
