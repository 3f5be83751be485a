"""`TileAccesses`: the accesses of a tiling, and the order in which tiles touch their blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from indexing.memory.caches.accesses import TiledAccess, tiled_accesses
from indexing.memory.caches.loop_accesses import loop_accesses
from indexing.memory.caches.orders import BlockOrder
from indexing.memory.caches.trace import Touching, touching_of
from indexing.tiling.loops.loop_tiling import LoopTiling
from indexing.tiling.sets.tiling import Tiling
from simplifier.unknown import Unknown


class TileAccesses(Protocol):
    """The accesses of a tiling, and the order in which tiles touch their blocks.

    Attributes:
        tiling: the tiling.
        listed: the accesses.
    """

    @property
    def tiling(self) -> Tiling | LoopTiling: ...
    @property
    def listed(self) -> tuple[TiledAccess, ...]: ...
    def touching(self, order: BlockOrder, wave: int) -> Touching:
        """Return the blocks in the order in which waves of tiles touch them."""


@dataclass(frozen=True, eq=False)
class _WholeTiles:
    """The accesses of tiles that are computed in one step."""

    tiling: Tiling
    listed: tuple[TiledAccess, ...]

    def touching(self, order: BlockOrder, wave: int) -> Touching:
        return touching_of(order, self.listed, wave)


def tile_accesses(tiling: Tiling | LoopTiling) -> TileAccesses | Unknown:
    """Return the accesses of a tiling with or without loops.

    Returns:
        The accesses; `Unknown` as of `tiled_accesses` and `loop_accesses`.
    Raises:
        ValueError: blocks share loops by `split_k`.
    """
    if isinstance(tiling, LoopTiling):
        return loop_accesses(tiling)
    listed = tiled_accesses(tiling)
    return listed if isinstance(listed, Unknown) else _WholeTiles(tiling, listed)
