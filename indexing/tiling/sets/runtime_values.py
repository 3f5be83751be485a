"""Runtime values in tiles: those that translate the set of a tile, and those that change it.

A start index of a dynamic-slice is added to results: it translates the set of each tile.  That of a
dynamic-update-slice decides which part of the window a tile reads: the set is analysed for each of
its values.  A value that differs between the elements of one tile is added too, or takes all values
of its bounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from indexing.maps.arrays import ArrayName, ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable, inside_atoms
from simplifier.interval import Interval
from simplifier.linear import Expr
from simplifier.substitute import Substitution


class Start(NamedTuple):
    """A runtime value: its source element, as expressions over the variables of a tile.

    Equal starts have equal values, in `bounds`.
    """

    array: ArrayRef | ArrayName
    position: tuple[Expr, ...]
    clamp: Interval | None
    bounds: Interval


@dataclass(frozen=True)
class Starts:
    """The runtime values of the maps of one array.

    Attributes:
        names: the variable of each value.
        fixed: the values that are analysed one by one.
        of_maps: for each map, the values of its runtime variables; without those that take all
            values of their bounds.
    """

    names: Mapping[Start, Variable]
    fixed: frozenset[Start]
    of_maps: tuple[Mapping[Variable, Start], ...]

    @property
    def runtime(self) -> tuple[RuntimeVariable, ...]:
        """The values as runtime variables; their indices are over the variables of a tile."""
        return tuple(
            [RuntimeVariable(v, s.array, s.position, s.clamp) for s, v in self.names.items()]
        )


def starts_of(
    maps: Sequence[IndexingMap],
    index: Sequence[Expr],
    tile_index: Iterable[Variable],
    is_fixing: bool,
) -> Starts:
    """Return the runtime values of maps.

    Args:
        index: the expressions that replace the dimensions of the maps.
        tile_index: the variables that are constant in a tile.
        is_fixing: analyse values one by one that do not only translate sets.
    """
    listed = [_starts_of_map(m, index) for m in maps]
    mixed = {s for m, own in zip(maps, listed, strict=True) for s in _mixed_starts(m, own)}
    constant = {s for s in mixed if _is_constant(s, set(tile_index))}
    fixed = constant if is_fixing else set()
    ambiguous = _ambiguous({s for own in listed for s in own.values()})
    kept = []
    for m, own in zip(maps, listed, strict=True):
        left_out = (set(_mixed_starts(m, own)) - fixed) | ambiguous
        kept.append({v: s for v, s in own.items() if s not in left_out})
    every = dict.fromkeys([s for own in kept for s in own.values()])
    names = {s: Variable(f"rt{k}", *s.bounds) for k, s in enumerate(every)}
    return Starts(names, frozenset(fixed), tuple(kept))


def _starts_of_map(m: IndexingMap, index: Sequence[Expr]) -> dict[Variable, Start]:
    """The runtime values of a map whose sources are known."""
    swap = Substitution(dict(zip(m.dims, index, strict=True)))
    return {rt.variable: _start(rt, swap) for rt in m.runtime if _is_identified(rt, m)}


def _is_constant(start: Start, tile_index: set[Variable]) -> bool:
    """True if the source element is equal for all elements of a tile."""
    return all(tile_index.issuperset(i.variables()) for i in start.position)


def _ambiguous(starts: set[Start]) -> set[Start]:
    """Values of one source with different bounds."""
    counts = Counter([start[:3] for start in starts])
    return {start for start in starts if counts[start[:3]] > 1}


def _is_identified(rt: RuntimeVariable, m: IndexingMap) -> bool:
    """True if the source of the value is known, and no other runtime value."""
    others = {other.variable for other in m.runtime}
    return rt.array is not None and not any(others & set(i.variables()) for i in rt.index)


def _start(rt: RuntimeVariable, swap: Substitution) -> Start:
    assert rt.array is not None
    return Start(rt.array, tuple(map(swap, rt.index)), rt.clamp, rt.clamp or rt.variable.bounds)


def _mixed_starts(m: IndexingMap, own: Mapping[Variable, Start]) -> list[Start]:
    """The values that are not only added to results: they may change the set."""
    inside = {v for result in m.results for v in inside_atoms(result)}
    inside |= {v for c in m.constraints for v in c.expr.variables()}
    return [start for v, start in own.items() if v in inside or v.bounds != start.bounds]
