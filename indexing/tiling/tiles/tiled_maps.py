"""Maps of tiles: the dimensions of a map replaced by a tile index and an index inside of the tile.

>>> m = IndexingMap.over((10,), lambda d: [d[0] * 2])
>>> print(tiled_map(m, TileGrid((10,), (4,))).results[0])
e_0 * 2 + tid_0 * 8
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from indexing.maps.arrays import ArrayName, ArrayRef
from indexing.maps.independence import connected
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.tiling.tiles.tile_grid import TileGrid
from simplifier.atoms import Variable, inside_atoms
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.substitute import Substitution


class Start(NamedTuple):
    """A runtime variable that is added to a result: its source element, over the tile's variables.

    Equal starts have equal values.
    """

    array: ArrayRef | ArrayName | None
    position: tuple[Expr, ...]
    clamp: tuple[int, int] | None
    bounds: tuple[int, int]


class Place(NamedTuple):
    """One result of a tiled map: a sum of an expression and of multiples of runtime values."""

    number: int
    expr: Expr
    starts: tuple[tuple[Start, int], ...] = ()

    @property
    def exprs(self) -> list[Expr]:
        """All expressions that the place depends on."""
        return [self.expr, *[i for start, _ in self.starts for i in start.position]]


@dataclass(frozen=True)
class TiledMap:
    """A map over a tile index, variables inside of the tile, and runtime values.

    Attributes:
        variables: the variables inside of the tile.
        places: the results.
        constraints: conditions on the variables and the tile index.
        runtime: the runtime variables of the map that are not only added to results: they take
            all of their values, so the map is an over-approximation.
    """

    tile_index: tuple[Variable, ...]
    variables: tuple[Variable, ...]
    places: tuple[Place, ...]
    constraints: tuple[Constraint, ...]
    runtime: tuple[RuntimeVariable, ...] = ()

    @property
    def results(self) -> tuple[Expr, ...]:
        """The results without runtime values."""
        return tuple([place.expr for place in self.places])

    def factors(self) -> tuple[TiledMap, ...]:
        """Return the independent parts, whose product is the map; constants are one part."""
        places = [_variables(place.exprs) for place in self.places]
        conditions = [_variables([c.expr]) for c in self.constraints]
        names = (*self.tile_index, *self.variables)
        groups = connected(names, (*places, *conditions))
        parts = []
        for group in (*groups, set[Variable]()):
            own = [p for p, used in zip(self.places, places, strict=True) if _owns(group, used)]
            true = zip(self.constraints, conditions, strict=True)
            constraints = [c for c, used in true if _owns(group, used)]
            if own or constraints:
                parts.append(
                    TiledMap(
                        tuple([v for v in self.tile_index if v in group]),
                        tuple([v for v in self.variables if v in group]),
                        tuple(own),
                        tuple(constraints),
                        self.runtime,
                    )
                )
        return tuple(parts)


def product_of(factors: tuple[TiledMap, ...]) -> TiledMap:
    """Return the map whose independent parts are these."""
    return TiledMap(
        tuple([v for f in factors for v in f.tile_index]),
        tuple([v for f in factors for v in f.variables]),
        tuple(sorted([p for f in factors for p in f.places], key=lambda p: p.number)),
        tuple([c for f in factors for c in f.constraints]),
        tuple(dict.fromkeys([rt for f in factors for rt in f.runtime])),
    )


def _variables(exprs: list[Expr]) -> set[Variable]:
    return {v for expr in exprs for v in expr.variables()}


def _owns(group: set[Variable], used: set[Variable]) -> bool:
    return used <= group and bool(used) == bool(group)


def tiled_map(m: IndexingMap, grid: TileGrid) -> TiledMap:
    """Return a map with its dimensions replaced by the tile index and the index in the tile."""
    values = dict(zip(m.dims, grid.index, strict=True))
    results, constraints = m.substituted(values)
    for d, value in values.items():
        low, high = value.bounds
        if low < d.lower or high > d.upper:
            constraints.append(Constraint(value, d.lower, d.upper))
    swap = Substitution(values)
    added = {
        rt.variable: Start(rt.array, tuple(map(swap, rt.index)), rt.clamp, rt.variable.bounds)
        for rt in m.runtime
        if _is_added(rt, m)
    }
    others = tuple([rt for rt in m.runtime if rt.variable not in added])
    tids = [v for v in grid.tile_index if v.lower < v.upper]
    inner = [v for v in grid.inner if v.lower < v.upper]
    variables = (*inner, *m.ranges, *[rt.variable for rt in others])
    places = tuple([_place(k, result, added) for k, result in enumerate(results)])
    return TiledMap(tuple(tids), variables, places, tuple(constraints), others)


def _place(number: int, result: Expr, added: Mapping[Variable, Start]) -> Place:
    """The result without the runtime values that are added to it."""
    starts = []
    for atom, factor in result.terms:
        if isinstance(atom, Variable) and atom in added:
            starts.append((added[atom], factor))
            result -= atom * factor
    return Place(number, result, tuple(starts))


def _is_added(rt: RuntimeVariable, m: IndexingMap) -> bool:
    """True if the value is only added to results, and takes all values of its clamp."""
    mixed = set[Variable]()
    for result in m.results:
        mixed |= inside_atoms(result)
    for c in m.constraints:
        mixed |= set(c.expr.variables())
    return (
        rt.array is not None
        and rt.variable not in mixed
        and rt.clamp == rt.variable.bounds
        and not any(i.variables() and m.runtime and _uses_runtime(i, m) for i in rt.index)
    )


def _uses_runtime(expr: Expr, m: IndexingMap) -> bool:
    return not {rt.variable for rt in m.runtime}.isdisjoint(expr.variables())
