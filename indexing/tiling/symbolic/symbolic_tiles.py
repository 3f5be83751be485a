"""Symbolic tiles: the elements that a tile of any size needs, as one strided box.

Tile ``tid`` of sizes ``ts`` has the points ``d_k = tid_k * ts_k + e_k`` with ``0 <= e_k < ts_k``.
Result k of the map takes the values ``offset_k + stride_k * i`` with ``0 <= i < size_k`` on it, cut
to ``[lower_k, upper_k)``, and all combinations of these, if the sizes satisfy the constraints.

>>> from indexing import IndexingMap
>>> rows = IndexingMap.over((48,), lambda d: [d[0] // 6, d[0] % 6])
>>> print(symbolic_tile(rows))
(tid_0) -> offsets [(tid_0 * ts_0) floordiv 6, (tid_0 * ts_0) mod 6]
  sizes [(ts_0 + 5) floordiv 6, min(ts_0, 6)]
  strides [1, 1] upper bounds [8, 6]
  constraints: 6 mod ts_0 in [0, 0] || ts_0 mod 6 in [0, 0]

Source: XLA ``xla/codegen/tiling/symbolic_tile.h``, for offsets, sizes, strides and constraints
of tile sizes; its ``docs/indexing.md`` for the maps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import indexing.methods as methods
from hlo.arguments import checked, checked_constructor
from indexing.maps.displayed import Displayed
from indexing.maps.indexing_map import Grade, IndexingMap
from indexing.maps.memoised import memoised_maps
from indexing.maps.regions.boxes import Box
from indexing.maps.runtime_variable import RuntimeVariable, source_text
from indexing.tiling.sizes.size_constraints import ALWAYS, SizeConstraints
from indexing.tiling.sizes.tile_sizes import size_point
from indexing.tiling.symbolic.progressions import TiledDim, TileSide, box_at
from indexing.tiling.symbolic.result_values import sides_or_unknown
from simplifier.atoms import Variable, variables_in
from simplifier.linear import Expr, as_expr, constant
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown


@checked_constructor
@dataclass(frozen=True, repr=False)
class SymbolicTile(Displayed):
    """The elements that a tile of symbolic size needs: a strided box, cut to bounds.

    Attributes:
        map: the map from the tiled array.
        offsets, sizes, strides: maps from ``(ts_0, …, tid_0, …)`` and runtime variables to one
            value for each result.  A stride is 0 where the size is 1 by construction.
        lower_bounds, upper_bounds: for each result, the bounds ``lower <= value < upper`` of needed
            elements.  A box of the last tile of a dimension may exceed them.
        constraints: the tile sizes for which this holds.

    >>> import indexing
    >>> read = indexing.parse_map("(d0)[s0] -> (d0 * 2 + s0), domain: d0 in [0, 7], s0 in [0, 2]")
    >>> tile = indexing.symbolic_tile(read)
    >>> print(tile.box([4], [1]))  # outputs 4 to 7 read elements 8 to 16
    [8:17]
    >>> tile.grade, tile.runtime
    ('exact', ())
    """

    map: IndexingMap
    offsets: IndexingMap
    sizes: IndexingMap
    strides: IndexingMap
    lower_bounds: tuple[Expr, ...]
    upper_bounds: tuple[Expr, ...]
    constraints: SizeConstraints

    @property
    def runtime(self) -> tuple[RuntimeVariable, ...]:
        """The runtime variables of the offsets, sizes and bounds."""
        return self.offsets.runtime

    @property
    def grade(self) -> Grade:
        """The grade of the map: "may" if the box may have elements that are not needed."""
        return self.map.grade

    @checked
    def satisfied_by(self, sizes: Sequence[int]) -> bool:
        """Return True if the constraints hold for these tile sizes.

        >>> import indexing
        >>> m = indexing.parse_map("(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 63]")
        >>> tile = indexing.symbolic_tile(m)
        >>> [size for size in (4, 6, 8, 16) if tile.satisfied_by([size])]
        [4, 8, 16]
        """
        _check_sizes(self.map, sizes)
        return self.constraints.satisfied_by(sizes)

    @checked
    def violation(self, sizes: Sequence[int]) -> methods.Violation | None:
        """Return the first constraint that these tile sizes violate; `None` if all hold.

        >>> import indexing
        >>> m = indexing.parse_map("(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 63]")
        >>> str(indexing.symbolic_tile(m).violation([6])).partition(":")[0]
        'ts_0 = 6 does not divide 8'
        """
        _check_sizes(self.map, sizes)
        return self.constraints.violation(sizes)

    @checked
    def box(self, sizes: Sequence[int], index: Sequence[int], **runtime: int) -> Box | None:
        """Return the elements that one tile needs; `None` if it needs none.

        Args:
            sizes: the tile sizes.
            index: the index of the tile.
            runtime: values of the runtime variables.
        Raises:
            ValueError: the sizes violate the constraints, or have another rank.

        >>> rows = IndexingMap.over((48,), lambda d: [d[0] // 6, d[0] % 6])
        >>> print(symbolic_tile(rows).box([12], [1]))
        [2:4, 0:6]
        """
        violation = self.violation(sizes)
        if violation is not None:
            raise ValueError(str(violation))
        rank = len(sizes)
        if len(index) != rank:
            raise ValueError(f"index={tuple(index)}: expected {rank} numbers")
        values = size_point(self.offsets.dims[:rank], sizes)
        values |= zip(self.offsets.dims[rank:], index, strict=True)
        for rt in self.runtime:
            if rt.name not in runtime:
                raise ValueError(f"the offsets depend on {rt.name}: write {rt.name}=…")
            values[rt.variable] = runtime[rt.name]
        return box_at(sides_of_tile(self), values)

    def __str__(self) -> str:
        index = ", ".join([v.name for v in self.offsets.dims[len(self.map.dims) :]])
        lines = [
            f"({index}) -> offsets [{_expr_list(self.offsets.results)}]",
            f"  sizes [{_expr_list(self.sizes.results)}]",
            f"  strides [{_expr_list(self.strides.results)}] "
            f"upper bounds [{_expr_list(self.upper_bounds)}]",
        ]
        if any(bound != constant(0) for bound in self.lower_bounds):
            lines[-1] += f" lower bounds [{_expr_list(self.lower_bounds)}]"
        if self.runtime:
            lines.append("  runtime: " + ", ".join(map(_runtime_text, self.runtime)))
        if self.constraints != ALWAYS:
            lines.append(f"  constraints: {self.constraints}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"SymbolicTile({str(self.map)!r})"


def sides_of_tile(tile: SymbolicTile) -> tuple[TileSide, ...]:
    """Return the values of a tile in each dimension."""
    columns = [each.results for each in (tile.offsets, tile.sizes, tile.strides)]
    return tuple(map(TileSide, *columns, tile.lower_bounds, tile.upper_bounds))


def _runtime_text(rt: RuntimeVariable) -> str:
    source = "" if rt.source is None else f" of {source_text(rt, rt.index)}"
    return f"{rt.name} in [{rt.variable.lower}, {rt.variable.upper}]{source}"


def _expr_list(exprs: Sequence[Expr]) -> str:
    return ", ".join(map(str, exprs))


def _check_sizes(m: IndexingMap, sizes: Sequence[int]) -> None:
    """Check that there is a positive tile size for each dimension of `m`.

    Raises:
        ValueError: there is not.
    """
    if len(sizes) != len(m.dims) or any(size < 1 for size in sizes):
        raise ValueError(
            f"sizes={tuple(sizes)}: expected {len(m.dims)} positive tile sizes, one for each "
            f"dimension of {m}"
        )


@checked
def symbolic_tile(m: IndexingMap) -> SymbolicTile | Unknown:
    """Return what a tile of the domain of a map needs, for tiles of any size.

    Args:
        m: a map, such as those of `indexing.output_to_input`.
    Returns:
        The tile; `Unknown` with the reason if no constraint on the sizes makes the needed elements
        one strided box.

    >>> flipped = IndexingMap.over((10, 6), lambda d: [d[1], 9 - d[0]])
    >>> print(symbolic_tile(flipped))
    (tid_0, tid_1) -> offsets [tid_1 * ts_1, -ts_0 - tid_0 * ts_0 + 10]
      sizes [ts_1, ts_0]
      strides [1, 1] upper bounds [6, 10]
    """
    return _symbolic_tile(m)


@memoised_maps(1 << 11)
def _symbolic_tile(m: IndexingMap) -> SymbolicTile | Unknown:
    tiled = [_symbolic_dim(k, d) for k, d in enumerate(m.dims)]
    tile = sides_or_unknown(m, tiled, None)
    if isinstance(tile, Unknown):
        return tile
    limits = [dim.limit for dim in tiled]
    variables = (
        *[Variable(f"ts_{k}", 1, limit) for k, limit in enumerate(limits)],
        *[Variable(f"tid_{k}", 0, limit - 1) for k, limit in enumerate(limits)],
    )
    bounds = [_own_bounds(side, k, m) for k, side in enumerate(tile.sides)]
    runtime = _runtime(m, tiled, chain(*[side[:3] for side in tile.sides], *bounds))

    def over(exprs: Iterable[Expr]) -> IndexingMap:
        return IndexingMap(variables, (), runtime, tuple(exprs), (), m.grade)

    return SymbolicTile(
        m,
        over([side.offset for side in tile.sides]),
        over([side.size for side in tile.sides]),
        over([side.stride for side in tile.sides]),
        tuple([lower for lower, _ in bounds]),
        tuple([upper for _, upper in bounds]),
        tile.constraints,
    )


@lru_cache(maxsize=1 << 11)
def _symbolic_dim(k: int, d: Variable) -> TiledDim:
    limit = max(1, d.upper + 1)
    index = Variable(f"tid_{k}", 0, limit - 1).as_expr() if limit > 1 else constant(0)
    return TiledDim(d, index, Variable(f"ts_{k}", 1, limit).as_expr(), limit)


def _own_bounds(side: TileSide, k: int, m: IndexingMap) -> tuple[Expr, Expr]:
    """The bounds of a result: those of the tile, or else those of the map."""
    low, high = m.results[k].bounds
    lower = as_expr(low) if side.lower is None else side.lower
    return lower, as_expr(high + 1) if side.upper is None else side.upper


def _runtime(
    m: IndexingMap, tiled: Sequence[TiledDim], exprs: Iterable[Expr]
) -> tuple[RuntimeVariable, ...]:
    """The runtime variables of a tile: those whose index varies have tiles of size 1."""
    used = variables_in(exprs)
    starts = Substitution({dim.variable: dim.start for dim in tiled})
    return tuple([rt.substituted(starts) for rt in m.runtime if rt.variable in used])


# ---------------------------------------------------------------- given sizes


def closed_form(
    m: IndexingMap, tile_sizes: Sequence[int], sizes: Sequence[int]
) -> tuple[TileSide, ...] | Unknown:
    """Return the box that each tile needs, exactly, as expressions of the tile index.

    Args:
        m: a map from the tiled array.
        tile_sizes: the sizes of a tile.
        sizes: the sizes of the tiled array, of which the map may cover a part.
    Returns:
        The sides of the boxes, of which one is empty if its size is 0 or less; `Unknown` if the
        elements are not known to be boxes of this form: they may be boxes nevertheless.

    >>> wide = IndexingMap.over((9,), lambda d, s: [d[0] + s[0]], ranges=(3,))
    >>> (side,) = closed_form(wide, [4], [9])
    >>> print(*side[:3])
    tid_0 * 4 min(tid_0 * -4 + 9, 4) + 2 1
    """
    tiled = []
    for k, (d, ts, n) in enumerate(zip(m.dims, tile_sizes, sizes, strict=True)):
        size = max(1, min(ts, n))
        grid = -(-n // size)
        index = Variable(f"tid_{k}", 0, grid - 1).as_expr() if grid > 1 else constant(0)
        tiled.append(TiledDim(d, index, constant(size), max(1, d.upper + 1)))
    tile = sides_or_unknown(m, tiled, sizes)
    if isinstance(tile, Unknown):
        return tile
    if tile.constraints != ALWAYS:  # constant sizes: it is decided
        return Unknown("the tiles of these sizes are not known to be boxes")
    if not all(side.stride.is_constant for side in tile.sides):
        return Unknown("the strides differ between tiles")
    return tuple([side.cut() for side in tile.sides])
