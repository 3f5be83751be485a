"""Maps of tiles: the dimensions of a map replaced by a tile index and an index inside of the tile.

>>> m = IndexingMap.over((10,), lambda d: [d[0] * 2])
>>> ((tiled,), _) = tiled_maps([m], TileGrid((10,), (4,)))
>>> print(tiled.results[0])
e_0 * 2 + tid_0 * 8
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from indexing.maps.independence import connected_variables
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.tiling.sets.runtime_values import Start, Starts, starts_of
from indexing.tiling.sets.tile_grid import TileGrid
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr


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
        tile_index: the variables that are constant in a tile: the tile index, and runtime values
            that are analysed one by one.
        variables: the variables inside of the tile.
        places: the results.
        constraints: conditions on the variables and the tile index.
        runtime: the runtime variables of the map that take all values of their bounds: if there
            are any, the map is an over-approximation.
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

    @property
    def refers_to_arrays(self) -> bool:
        """True if a runtime value is an element of an array of the module."""
        return bool(self.runtime) or any(place.starts for place in self.places)

    def factors(self) -> tuple[TiledMap, ...]:
        """Return the independent parts, whose product is the map; constants are one part."""
        places = [_variables(place.exprs) for place in self.places]
        conditions = [_variables([c.expr]) for c in self.constraints]
        names = (*self.tile_index, *self.variables)
        groups = connected_variables(names, (*places, *conditions))
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


def tiled_maps(
    maps: Sequence[IndexingMap], grid: TileGrid, is_fixing: bool = True
) -> tuple[list[TiledMap], Starts]:
    """Return maps with dimensions replaced by the tile index and the index in the tile.

    Args:
        maps: the maps from the tiled array to another array.
        grid: the tiles.
        is_fixing: see `starts_of`.
    """
    starts = starts_of(maps, grid.index, grid.tile_index, is_fixing)
    each = zip(maps, starts.of_maps, strict=True)
    return [_tiled_map(m, grid, own, starts) for m, own in each], starts


def _tiled_map(
    m: IndexingMap, grid: TileGrid, own: Mapping[Variable, Start], starts: Starts
) -> TiledMap:
    fixed = {v: starts.names[s] for v, s in own.items() if s in starts.fixed}
    added = {v: s for v, s in own.items() if v not in fixed}
    rest = [rt.variable for rt in m.runtime if rt.variable not in own]
    any_value = {v: Variable(f"any_{v.name}", *v.bounds) for v in rest}
    values = dict(zip(m.dims, grid.index, strict=True))
    values |= {v: new.as_expr() for v, new in (*fixed.items(), *any_value.items())}
    results, constraints = m.substituted(values)
    limits = [c for v in (*m.dims, *fixed) if (c := _limit(v, values[v])) is not None]
    outside = (*grid.tile_index, *dict.fromkeys(fixed.values()))
    inside = (*_several(grid.inner), *m.ranges, *_several(any_value.values()))
    return TiledMap(
        _several(outside),
        inside,
        tuple([_place(k, result, added) for k, result in enumerate(results)]),
        (*constraints, *limits),
        tuple([rt for rt in m.runtime if rt.variable in any_value]),
    )


def _several(variables: Iterable[Variable]) -> tuple[Variable, ...]:
    """The variables with more than one value: others are constants in expressions."""
    return tuple([v for v in variables if v.lower < v.upper])


def _limit(v: Variable, value: Expr) -> Constraint | None:
    """The condition that a value is in the bounds of a variable; `None` if it always is."""
    low, high = value.bounds
    return Constraint(value, v.lower, v.upper) if low < v.lower or high > v.upper else None


def _place(number: int, result: Expr, added: Mapping[Variable, Start]) -> Place:
    """The result without the runtime values that are added to it."""
    starts = []
    for atom, factor in result.terms:
        if isinstance(atom, Variable) and atom in added:
            starts.append((added[atom], factor))
            result -= atom * factor
    return Place(number, result, tuple(starts))
