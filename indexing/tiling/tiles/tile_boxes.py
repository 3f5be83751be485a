"""Tiles of maps in a tile space: the box of elements that a tile needs.

The expressions of a box have the numbers of the whole tile space: ``ts_k`` and ``tid_k`` belong to
dimension k, be it a dimension of a root or a loop, which the maps call ``dk``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.tiling.tiles.size_constraints import ALWAYS, SizeConstraints
from indexing.tiling.tiles.symbolic import SymbolicTile, closed_form, symbolic_tile
from simplifier.atoms import Variable
from simplifier.linear import Expr, as_expr, constant
from simplifier.substitute import Substitution


class TileBox(NamedTuple):
    """The elements ``offset + stride * i`` for ``0 <= i < size``, cut to ``[lower, upper)``.

    Attributes:
        offsets, sizes, strides: for each dimension an expression of ``tid_k``, and of ``ts_k``
            before sizes are given.  The offsets may have runtime variables.
            A stride is 0 where the size is 1 for all sizes of tiles; its text is 1, as in XLA.
        lower_bounds, upper_bounds: for each dimension the bounds of the needed elements.
        runtime: the runtime variables.
        grade: "may" if the box may have elements that are not needed.
        constraints: the tile sizes for which this holds.
    """

    offsets: tuple[Expr, ...]
    sizes: tuple[Expr, ...]
    strides: tuple[Expr, ...]
    lower_bounds: tuple[Expr, ...]
    upper_bounds: tuple[Expr, ...]
    runtime: tuple[RuntimeVariable, ...] = ()
    grade: str = "exact"
    constraints: SizeConstraints = ALWAYS

    def variables(self) -> set[str]:
        """Return the names of the variables on which the elements depend."""
        exprs = chain(self.offsets, self.sizes, self.strides, self.lower_bounds, self.upper_bounds)
        return {v.name for expr in exprs for v in expr.variables()}

    def mapped(self, swap: Substitution) -> TileBox:
        """Return the box with variables replaced."""
        return self._replace(
            offsets=tuple(map(swap, self.offsets)),
            sizes=tuple(map(swap, self.sizes)),
            strides=tuple(map(swap, self.strides)),
            lower_bounds=tuple(map(swap, self.lower_bounds)),
            upper_bounds=tuple(map(swap, self.upper_bounds)),
            runtime=tuple([rt.substituted(swap) for rt in self.runtime]),
        )

    def __str__(self) -> str:
        one, zero = constant(1), constant(0)
        strides = [one if stride == zero else stride for stride in self.strides]
        lists = {
            "offsets": self.offsets,
            "sizes": self.sizes,
            "strides": strides,
            "upper bounds": self.upper_bounds,
        }
        pairs = zip(self.lower_bounds, self.offsets, strict=True)
        if any(low != zero and (offset - low).bounds[0] < 0 for low, offset in pairs):
            lists["lower bounds"] = self.lower_bounds
        text = " ".join([f"{name} [{_listed(exprs)}]" for name, exprs in lists.items()])
        return f"{text} (may)" if self.grade == "may" else text


def _listed(exprs: Iterable[Expr]) -> str:
    return ", ".join(map(str, exprs))


def symbolic_box(to_array: IndexingMap, whole: int | None = None) -> TileBox | Unknown:
    """Return the box that a tile of any size needs.

    Args:
        to_array: the map from the tiled dimensions ``d0, d1, …``; a map may lack some.
        whole: the number of the first dimension that tiles have as a whole: the loops.

    >>> print(symbolic_box(IndexingMap.over((10, 6), lambda d: [d[1]])))
    offsets [tid_1 * ts_1] sizes [ts_1] strides [1] upper bounds [6]
    """
    if to_array.runtime:  # a memo would keep the instructions of a module alive
        return _symbolic_box(to_array, whole)
    return _memoised_box(to_array, whole)


@lru_cache(maxsize=1 << 13)
def _memoised_box(to_array: IndexingMap, whole: int | None) -> TileBox | Unknown:
    return _symbolic_box(to_array, whole)


def _symbolic_box(to_array: IndexingMap, whole: int | None) -> TileBox | Unknown:
    to_array = _used(to_array if whole is None else with_whole_loops(to_array, whole))
    tile = symbolic_tile(to_array)
    if isinstance(tile, Unknown):
        return tile
    box = TileBox(
        tile.offsets.results,
        tile.sizes.results,
        tile.strides.results,
        tile.lower_bounds,
        tile.upper_bounds,
        tile.runtime,
        to_array.grade,
        tile.constraints,
    )
    swap = _renumbered(tile, [_number(d) for d in to_array.dims])
    if not swap:
        return box
    return box.mapped(Substitution(swap))._replace(constraints=box.constraints.bind(swap))


def _renumbered(tile: SymbolicTile, numbers: Sequence[int]) -> dict[Variable, Expr]:
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
    box = symbolic_box(to_array)
    if isinstance(box, TileBox) and box.constraints.satisfied_by(tile_sizes):
        return _at_sizes(box, tile_sizes, sizes)
    used = _used(to_array)
    numbers = [_number(d) for d in used.dims]
    form = closed_form(used, [tile_sizes[k] for k in numbers], [sizes[k] for k in numbers])
    if isinstance(form, Unknown):
        return _better_reason(box, tile_sizes, form)
    exprs = chain(form.offsets, form.sizes)
    swap = {
        v: v.renamed(f"tid_{numbers[_number(v)]}").as_expr()
        for expr in exprs
        for v in expr.variables()
        if v.name.startswith("tid_")
    }
    upper = tuple([as_expr(result.bounds[1] + 1) for result in used.results])
    zero = (constant(0),) * len(upper)
    strides = tuple(map(as_expr, form.strides))
    exact = TileBox(form.offsets, form.sizes, strides, zero, upper, grade=used.grade)
    return exact.mapped(Substitution(swap))._replace(runtime=used.runtime)


def _better_reason(box: TileBox | Unknown, tile_sizes: Sequence[int], form: Unknown) -> Unknown:
    """Return the violated constraint as the reason if there is one."""
    violation = None if isinstance(box, Unknown) else box.constraints.violation(tile_sizes)
    return form if violation is None else Unknown(str(violation))


def _at_sizes(box: TileBox, tile_sizes: Sequence[int], sizes: Sequence[int]) -> TileBox:
    """Return a box with its tile sizes given, which satisfy the constraints.

    A size that is larger than a dimension remains where the upper bound cuts it.
    """
    values: dict[Variable, Expr] = {}
    exprs = chain(box.offsets, box.sizes, box.strides, box.lower_bounds, box.upper_bounds)
    for v in {v for expr in exprs for v in expr.variables()}:
        if v.name.startswith("ts_"):
            values[v] = constant(min(tile_sizes[_number(v)], v.upper))
        elif v.name.startswith("tid_"):
            number = _number(v)
            last = -(-sizes[number] // min(tile_sizes[number], sizes[number])) - 1
            values[v] = Variable(v.name, 0, last).as_expr() if last else constant(0)
    concrete = box.mapped(Substitution(values))
    return concrete._replace(
        sizes=tuple(
            [
                as_expr(tile_sizes[_number(v)]) if v is not None else size
                for v, size in zip(map(_variable, box.sizes), concrete.sizes, strict=True)
            ]
        ),
        constraints=ALWAYS,
    )


def _variable(expr: Expr) -> Variable | None:
    """Return the tile size that an expression is, or None."""
    variables = list(expr.variables())
    if len(variables) != 1 or expr != variables[0].as_expr():
        return None
    return variables[0] if variables[0].name.startswith("ts_") else None


def _number(variable: Variable) -> int:
    """Return k for ``dk``, ``ts_k`` and ``tid_k``."""
    return int(variable.name.lstrip("dtis_"))


def _used(to_array: IndexingMap) -> IndexingMap:
    """Return a map without the dimensions on which nothing depends."""
    exprs = [*to_array.results, *[c.expr for c in to_array.constraints]]
    for rt in to_array.runtime:
        exprs += rt.index
    used = {v for expr in exprs for v in expr.variables()}
    dims = tuple([d for d in to_array.dims if d in used or d.is_empty])
    return to_array if len(dims) == len(to_array.dims) else replace(to_array, dims=dims)


def with_whole_loops(to_array: IndexingMap, rank: int) -> IndexingMap:
    """Return a map with the loops, the dimensions from `rank`, as range variables again."""
    loops = [d for d in to_array.dims if _number(d) >= rank]
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
