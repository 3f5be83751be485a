"""XLA's notation of 2025 for symbolic tiles: maps from tile sizes to offsets, sizes and strides.

The dimensions ``d0, d1, …`` are the tile sizes; the offsets are those of the tile with index 0, and
their symbols ``s0, s1, …`` are runtime variables.

Source: XLA ``xla/codegen/tiling/symbolic_tile.h`` and ``symbolic_tile_test.cc``.

>>> from indexing import IndexingMap
>>> print(text_2025(IndexingMap.over((8,), lambda d: [d[0] // 2, d[0] % 2])))
Symbolic tile with
  offset_map: (d0) -> (0, 0)
  size_map: (d0) -> ((d0 + 1) floordiv 2, min(d0, 2))
  stride_map: (d0) -> (1, 1)
  constraints: 2 mod d0 in [0, 0] || d0 mod 2 in [0, 0]
"""

from __future__ import annotations

from collections.abc import Iterable

from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import IndexingMap
from indexing.tiling.sizes.size_constraints import ALWAYS
from indexing.tiling.symbolic.symbolic_tiles import symbolic_tile
from simplifier.atoms import Variable
from simplifier.linear import Expr, constant
from simplifier.substitute import Substitution


def text_2025(m: IndexingMap) -> str:
    """Return the symbolic tile of a map in the notation of 2025."""
    tile = symbolic_tile(m)
    if isinstance(tile, Unknown):
        return f"unknown: {tile.reason}"
    rank = len(m.dims)
    values: dict[Variable, Expr] = {v: constant(0) for v in tile.offsets.dims[rank:]}
    for k, v in enumerate(tile.offsets.dims[:rank]):
        values[v] = v.renamed(f"d{k}").as_expr()
    symbols = [rt.variable.renamed(f"s{k}") for k, rt in enumerate(tile.runtime)]
    values |= {
        rt.variable: symbol.as_expr() for rt, symbol in zip(tile.runtime, symbols, strict=True)
    }
    swap = Substitution(values)
    sizes = ", ".join([f"d{k}" for k in range(rank)])

    def line(name: str, results: Iterable[Expr], names: str = "") -> str:
        return f"  {name}: ({sizes}){names} -> ({', '.join([str(swap(e)) for e in results])})"

    names = f"[{', '.join([symbol.name for symbol in symbols])}]" if symbols else ""
    lines = ["Symbolic tile with", line("offset_map", tile.offsets.results, names)]
    lines += [line("size_map", tile.sizes.results), line("stride_map", tile.strides.results)]
    if symbols:
        lines.append("  rt_vars:")
        for symbol, rt in zip(symbols, tile.runtime, strict=True):
            lines.append(f"    {symbol.name} in [{symbol.lower}, {symbol.upper}], hlo: {rt.source}")
    if tile.constraints != ALWAYS:
        lines.append(f"  constraints: {tile.constraints.bind(values)}")
    return "\n".join(lines)
