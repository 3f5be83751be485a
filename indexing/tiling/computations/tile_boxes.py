"""Tiles of maps in a tile space: the box of elements that a tile needs.

The expressions of a box have the numbers of the whole tile space: ``ts_k`` and ``tid_k`` belong to
dimension k, be it a dimension of a root or a loop, which the maps call ``dk``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.memoised import memoised_maps
from indexing.maps.regions.boxes import Box
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.tiling.sizes.size_constraints import ALWAYS, SizeConstraints
from indexing.tiling.sizes.tile_sizes import dimension_of
from indexing.tiling.symbolic.progressions import TileSide, box_at
from indexing.tiling.symbolic.symbolic_tiles import (
    SymbolicTile,
    closed_form,
    sides_of_tile,
    symbolic_tile,
)
from simplifier.atoms import Variable
from simplifier.linear import Expr, as_expr, constant
from simplifier.substitute import Substitution


class TileCondition(NamedTuple):
    """``lower <= start <= upper``: other tiles need no element.

    A map that covers a part of a dimension, as that of an operand of a concatenation, has
    elements only for the tiles that touch the part; `start` is the first element of a tile.
    """

    start: Expr
    lower: Expr
    upper: Expr

    def substitute(self, swap: Substitution) -> TileCondition:
        """Return the condition with variables replaced."""
        return TileCondition(*map(swap, self))

    @property
    def is_true(self) -> bool:
        """True if bounds of the variables show that the condition holds."""
        low, high = self.start.bounds
        return low >= self.lower.bounds[1] and high <= self.upper.bounds[0]

    def __str__(self) -> str:
        return f"{self.start} in [{self.lower}, {self.upper}]"


class TileBox(NamedTuple):
    """The elements that a tile needs: a strided box, cut to bounds.

    Attributes:
        sides: the indices in each dimension, by ``tid_k``, and by ``ts_k`` before sizes are given.
            The offsets may have runtime variables.  The text of a stride of 0 is 1, as in XLA.
        conditions: the tiles that have elements; by default all.
        runtime: the runtime variables.
        grade: "may" if the box may have elements that are not needed.
        constraints: the tile sizes for which this holds.
    """

    sides: tuple[TileSide, ...]
    conditions: tuple[TileCondition, ...] = ()
    runtime: tuple[RuntimeVariable, ...] = ()
    grade: str = "exact"
    constraints: SizeConstraints = ALWAYS

    def variables(self) -> set[str]:
        """Return the names of the variables on which the elements depend."""
        return {v.name for v in self.free()}

    def free(self) -> set[Variable]:
        """Return the variables of all expressions."""
        parts = chain(*self.sides, *self.conditions, *[rt.index for rt in self.runtime])
        return {v for expr in parts if expr is not None for v in expr.variables()}

    def substitute(self, swap: Substitution) -> TileBox:
        """Return the box with variables replaced."""
        return self._replace(
            sides=tuple([side.substitute(swap) for side in self.sides]),
            conditions=tuple([condition.substitute(swap) for condition in self.conditions]),
            runtime=tuple([rt.substituted(swap) for rt in self.runtime]),
        )

    def __str__(self) -> str:
        one, zero = constant(1), constant(0)
        lists: dict[str, list[Expr | None]] = {
            "offsets": [side.offset for side in self.sides],
            "sizes": [side.size for side in self.sides],
            "strides": [one if side.stride == zero else side.stride for side in self.sides],
            "upper bounds": [side.upper for side in self.sides],
        }
        lows = [(s.lower, s.offset) for s in self.sides if s.lower is not None and s.lower != zero]
        if any((offset - low).bounds[0] < 0 for low, offset in lows):
            lists["lower bounds"] = [side.lower for side in self.sides]
        text = " ".join([f"{name} [{_expr_list(exprs)}]" for name, exprs in lists.items()])
        if self.conditions:
            text += f" constraints {{{', '.join(map(str, self.conditions))}}}"
        return f"{text} (may)" if self.grade == "may" else text

    def at(self, index: Sequence[int], runtime: Mapping[str, int]) -> Box | None:
        """Return the elements of the tile with this index; `None` if it has none.

        Args:
            index: the index of the tile in each dimension of the tile space.
            runtime: the value of each runtime variable, by name.
        """
        named = {f"tid_{k}": i for k, i in enumerate(index)} | dict(runtime)
        values = {v: named[v.name] for v in self.free()}
        for each in self.conditions:
            start, lower, upper = [expr.value(values) for expr in each]
            if not lower <= start <= upper:
                return None
        return box_at(self.sides, values)


def _expr_list(exprs: Iterable[Expr | None]) -> str:
    return ", ".join(map(str, exprs))


def symbolic_box(
    to_array: IndexingMap, sizes: Sequence[int], whole: int | None = None
) -> TileBox | Unknown:
    """Return the box that a tile of any size needs.

    Args:
        to_array: the map from the tiled dimensions ``d0, d1, …``; a map may lack some.
        sizes: the size of each dimension of the tile space.
        whole: the number of the first dimension that tiles have as a whole: the loops.

    >>> print(symbolic_box(IndexingMap.over((10, 6), lambda d: [d[1]]), [10, 6]))
    offsets [tid_1 * ts_1] sizes [ts_1] strides [1] upper bounds [6]
    """
    own = tuple([sizes[dimension_of(d)] for d in to_array.dims])
    return _symbolic_box(to_array, own, whole)


@memoised_maps(1 << 11)
def _symbolic_box(
    to_array: IndexingMap, own: tuple[int, ...], whole: int | None
) -> TileBox | Unknown:
    """Return the box of a map whose dimensions have the sizes `own` in the tile space."""
    conditions = _conditions(to_array, own, whole)
    to_array = used_dims(to_array if whole is None else with_whole_loops(to_array, whole))
    tile = symbolic_tile(to_array)
    if isinstance(tile, Unknown):
        return tile
    box = TileBox(sides_of_tile(tile), (), tile.runtime, to_array.grade, tile.constraints)
    swap = _renumber_dims(tile, [dimension_of(d) for d in to_array.dims])
    if swap:
        box = box.substitute(Substitution(swap))._replace(constraints=box.constraints.bind(swap))
    return box._replace(conditions=conditions)


def _conditions(
    to_array: IndexingMap, own: Sequence[int], whole: int | None = None
) -> tuple[TileCondition, ...]:
    """Return the tiles that touch the domain of a map, where it is a part of a dimension."""
    conditions: list[TileCondition] = []
    for d, size in zip(to_array.dims, own, strict=True):
        k = dimension_of(d)
        if (d.lower > 0 or d.upper < size - 1) and (whole is None or k < whole):
            ts = Variable(f"ts_{k}", 1, size).as_expr()
            start = Variable(f"tid_{k}", 0, size - 1) * ts
            lower = ts * -1 + (d.lower + 1) if d.lower else constant(0)
            conditions.append(TileCondition(start, lower, constant(d.upper)))
    return tuple(conditions)


def _renumber_dims(tile: SymbolicTile, numbers: Sequence[int]) -> dict[Variable, Expr]:
    """Return the variables of a tile with the numbers of the dimensions of the tile space."""
    rank = len(numbers)
    if list(range(rank)) == list(numbers):
        return {}
    variables = tile.offsets.dims
    renamed = [v.renamed(f"ts_{k}") for v, k in zip(variables[:rank], numbers, strict=True)]
    renamed += [v.renamed(f"tid_{k}") for v, k in zip(variables[rank:], numbers, strict=True)]
    pairs = zip(variables, renamed, strict=True)
    return {old: new.as_expr() for old, new in pairs if old.name != new.name}


def concrete_box(
    to_array: IndexingMap, tile_sizes: Sequence[int], sizes: Sequence[int]
) -> TileBox | Unknown:
    """Return the box that a tile of given sizes needs.

    Args:
        to_array: see `symbolic_box`.
        tile_sizes: the size of a tile in each dimension of the tile space.
        sizes: the size of each dimension of the tile space.

    >>> print(concrete_box(IndexingMap.over((10, 6), lambda d: [d[1]]), [4, 2], [10, 6]))
    offsets [tid_1 * 2] sizes [2] strides [1] upper bounds [6]
    """
    box = symbolic_box(to_array, sizes)
    if isinstance(box, TileBox) and box.constraints.satisfied_by(tile_sizes):
        return _at_sizes(box, tile_sizes, sizes)
    used = used_dims(to_array)
    numbers = [dimension_of(d) for d in used.dims]
    limits = [max(1, d.upper + 1) for d in used.dims]  # `_conditions` excludes the other tiles
    form = closed_form(used, [tile_sizes[k] for k in numbers], limits)
    if isinstance(form, Unknown):
        return _better_reason(box, tile_sizes, form)
    zero, uppers = constant(0), [as_expr(result.bounds[1] + 1) for result in used.results]
    sides = [TileSide(*side[:3], zero, upper) for side, upper in zip(form, uppers, strict=True)]
    exact = TileBox(tuple(sides), grade=used.grade)
    swap = {
        v: v.renamed(f"tid_{numbers[dimension_of(v)]}").as_expr()
        for v in exact.free()
        if v.name.startswith("tid_")
    }
    own = [sizes[dimension_of(d)] for d in to_array.dims]
    located = exact.substitute(Substitution(swap))._replace(
        conditions=_conditions(to_array, own), runtime=_runtime_at(used, tile_sizes)
    )
    return _at_sizes(located, tile_sizes, sizes)


def _better_reason(box: TileBox | Unknown, tile_sizes: Sequence[int], form: Unknown) -> Unknown:
    """Return the violated constraint as the reason if there is one."""
    violation = None if isinstance(box, Unknown) else box.constraints.violation(tile_sizes)
    return form if violation is None else Unknown(str(violation))


def _at_sizes(box: TileBox, tile_sizes: Sequence[int], sizes: Sequence[int]) -> TileBox:
    """Return a box with its tile sizes given, which satisfy the constraints.

    A size that is larger than a dimension remains where the upper bound cuts it.
    """
    values: dict[Variable, Expr] = {}
    for v in box.free():
        if v.name.startswith("ts_"):
            values[v] = constant(min(tile_sizes[dimension_of(v)], v.upper))
        elif v.name.startswith("tid_"):
            number = dimension_of(v)
            last = -(-sizes[number] // min(tile_sizes[number], sizes[number])) - 1
            values[v] = Variable(v.name, 0, last).as_expr() if last else constant(0)
    concrete = box.substitute(Substitution(values))
    variables = [_variable(side.size) for side in box.sides]
    return concrete._replace(
        sides=tuple(
            [
                side if v is None else side._replace(size=as_expr(tile_sizes[dimension_of(v)]))
                for v, side in zip(variables, concrete.sides, strict=True)
            ]
        ),
        conditions=tuple([each for each in concrete.conditions if not each.is_true]),
        constraints=ALWAYS,
    )


def _runtime_at(m: IndexingMap, tile_sizes: Sequence[int]) -> tuple[RuntimeVariable, ...]:
    """Return the runtime variables of a map, whose indices are those of a tile's first element."""
    starts = {
        d: Variable(f"tid_{dimension_of(d)}", 0, d.upper) * tile_sizes[dimension_of(d)]
        for d in m.dims
    }
    swap = Substitution(starts)
    return tuple([rt.substituted(swap) for rt in m.runtime])


def _variable(expr: Expr) -> Variable | None:
    """Return the tile size that an expression is, or None."""
    variables = list(expr.variables())
    if len(variables) != 1 or expr != variables[0].as_expr():
        return None
    return variables[0] if variables[0].name.startswith("ts_") else None


def used_dims(to_array: IndexingMap) -> IndexingMap:
    """Return a map without the dimensions on which nothing depends."""
    exprs = [*to_array.results, *[c.expr for c in to_array.constraints]]
    for rt in to_array.runtime:
        exprs += rt.index
    used = {v for expr in exprs for v in expr.variables()}
    dims = tuple([d for d in to_array.dims if d in used or d.is_empty])
    return to_array if len(dims) == len(to_array.dims) else replace(to_array, dims=dims)


def with_whole_loops(to_array: IndexingMap, rank: int) -> IndexingMap:
    """Return a map with the loops, the dimensions from `rank`, as range variables again."""
    loops = [d for d in to_array.dims if dimension_of(d) >= rank]
    if not loops:
        return to_array
    taken = len(to_array.ranges)
    ranges = [loop.renamed(f"s{k}") for k, loop in enumerate(loops, taken)]
    swap = dict(zip(loops, [s.as_expr() for s in ranges], strict=True))
    results, constraints = to_array.substituted(swap)
    change = Substitution(swap)
    return replace(
        to_array,
        dims=tuple([d for d in to_array.dims if d not in loops]),
        ranges=(*to_array.ranges, *ranges),
        runtime=tuple([rt.substituted(change) for rt in to_array.runtime]),
        results=tuple(results),
        constraints=tuple(constraints),
    ).simplify()
