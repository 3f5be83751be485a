"""The pairs of an element of a tile and an index of a block that are needed, as relations.

A cell is a tile and a block of one dimension of an operand.  Its points are pairs of an element of
the tile and an index of the block, which are needed if the element needs any element of the operand
with that index.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.tiling.sets.tile_grid import TileGrid
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact.cells import CellPoints
from simplifier.exact.encode import Relation
from simplifier.linear import Expr
from simplifier.substitute import Substitution

BLOCK: Final = "block"
"""The name of the variable that numbers blocks."""


class BlockRelations(NamedTuple):
    """The needed pairs of all tiles and blocks.

    Attributes:
        dims: the dimensions of the grid on which the pairs depend.
        runtime: the runtime values of which each tile has one; their indices are over the tile
            index.
        points: the pairs; the last variable of a cell is the number of the block.
    """

    dims: tuple[int, ...]
    runtime: tuple[RuntimeVariable, ...]
    points: CellPoints


def block_relations(
    maps: Sequence[IndexingMap], grid: TileGrid, dimension: int, extent: int, size: int
) -> BlockRelations:
    """Return the needed pairs of the tiles of a grid and the blocks of one dimension.

    Args:
        maps: the maps of the operand.
        extent: the size of the dimension.
        size: the size of a block.
    """
    block = Variable(BLOCK, 0, -(-extent // size) - 1)
    inside = Variable("inside", 0, size - 1)
    place = block * size + inside
    values = _RuntimeValues(grid)
    needed = [_needed_relation(m, dimension, place, values) for m in maps if not m.is_known_empty]
    exprs = [c.expr for each in needed for c in each.conditions]
    dims = _used_dims([*exprs, *[i for rt in values.given for i in rt.index]], grid)
    cells = (*[grid.tile_index[k] for k in dims], block)
    given = tuple([rt.variable for rt in values.given])
    inner = (*[grid.inner[k] for k in dims], inside)
    chosen = tuple(values.chosen)
    limits = [Constraint(grid.index[k], 0, grid.dims[k] - 1) for k in dims]
    inputs = (*cells, *given, *inner, *chosen)
    relations = [Relation(inputs, each.ranges, (), each.conditions) for each in needed]
    certain = [r for r, own in zip(relations, needed, strict=True) if own.is_certain]
    constraints = (*limits, Constraint(place, 0, extent - 1))
    points = CellPoints(cells, given, inner, chosen, constraints, tuple(relations), tuple(certain))
    return BlockRelations(dims, tuple(values.given), points)


class _Needed(NamedTuple):
    """The needed pairs by one map.

    Attributes:
        ranges: the range variables.
        conditions: those on a pair.
        is_certain: False if the conditions may hold for pairs that are not needed.
    """

    ranges: tuple[Variable, ...]
    conditions: tuple[Constraint, ...]
    is_certain: bool


@dataclass
class _RuntimeValues:
    """The runtime values of all maps, each with a variable for its value.

    Attributes:
        given: those of which each tile has one, with indices over the tile index.
        chosen: those of pairs.
    """

    grid: TileGrid
    given: list[RuntimeVariable] = field(default_factory=list)
    chosen: list[Variable] = field(default_factory=list)
    _known: dict[object, Variable] = field(default_factory=dict)

    def variable(self, rt: RuntimeVariable, m: IndexingMap) -> Variable:
        """Return the variable for the value of a runtime variable of a map."""
        low, high = rt.clamp or rt.variable.bounds
        index = tuple(map(Substitution(dict(zip(m.dims, self.grid.index, strict=True))), rt.index))
        used = {v for i in index for v in i.variables()}
        is_known = rt.array is not None and rt.clamp is not None
        is_given = is_known and used.issubset(self.grid.tile_index)
        of_element = is_known and used.issubset((*self.grid.tile_index, *self.grid.inner))
        key: object = (rt.array, index, rt.clamp) if of_element else (id(m), rt.variable)
        if key not in self._known:
            group: Sequence[object] = self.given if is_given else self.chosen
            name = f"{'rt' if is_given else 'any'}{len(group)}"
            variable = self._known[key] = Variable(name, low, high)
            if is_given:
                self.given.append(RuntimeVariable(variable, rt.array, index, rt.clamp))
            else:
                self.chosen.append(variable)
        return self._known[key]


def _needed_relation(
    m: IndexingMap, dimension: int, place: Expr, values: _RuntimeValues
) -> _Needed:
    grid = values.grid
    swap = dict(zip(m.dims, grid.index, strict=True))
    swap |= {rt.variable: values.variable(rt, m).as_expr() for rt in m.runtime}
    results, constraints = m.substituted(swap)
    bounded = [(v, grid.dims[k] - 1) for k, v in enumerate(m.dims)]
    limits = [
        Constraint(swap[v], v.lower, v.upper) for v, last in bounded if not _is_whole(v, last)
    ]
    limits += [Constraint(swap[rt.variable], *rt.variable.bounds) for rt in m.runtime]
    conditions = (Constraint(results[dimension] - place, 0, 0), *constraints, *limits)
    return _Needed(
        m.ranges, tuple([c for c in conditions if not c.is_true]), _is_certain(m, dimension)
    )


def _is_whole(v: Variable, last: int) -> bool:
    return v.lower <= 0 and v.upper >= last


def _is_certain(m: IndexingMap, dimension: int) -> bool:
    """True if all pairs that satisfy the conditions of a map are needed.

    Not of an over-approximation, nor if one pair may have several elements of an unknown value.
    """
    if m.grade != "exact" or any(rt.clamp is None or rt.array is None for rt in m.runtime):
        return False
    free = set(m.ranges) - _determined_ranges(m, dimension)
    return not any(free & set(i.variables()) for rt in m.runtime for i in rt.index)


def _determined_ranges(m: IndexingMap, dimension: int) -> set[Variable]:
    """The range variable of which a pair has one value: that of a result ``±s + f(d)``."""
    result = m.results[dimension]
    for atom, factor in result.terms:
        if isinstance(atom, Variable) and atom in m.ranges and abs(factor) == 1:
            rest = result - atom * factor
            return {atom} if set(m.dims).issuperset(rest.variables()) else set()
    return set()


def _used_dims(exprs: Iterable[Expr], grid: TileGrid) -> tuple[int, ...]:
    """The dimensions of a grid on which expressions depend."""
    used = {v for expr in exprs for v in expr.variables()}
    both = zip(grid.tile_index, grid.inner, strict=True)
    return tuple([k for k, pair in enumerate(both) if not used.isdisjoint(pair)])
