"""Misses of caches as JSON, one object for each order; `schemas/tile.json` is their JSON schema."""

from __future__ import annotations

import json
from collections.abc import Iterator

from indexing.memory.caches.search import BestBlockOrders
from indexing.views.tile_subjects import TileSubject


def misses_json(
    subject: TileSubject, capacity: int, line: int, best: BestBlockOrders
) -> Iterator[str]:
    """Yield an object for each order, the fewest misses first; then those without an answer."""
    head = subject.record("cache") | {
        "tile_sizes": best.tiling.sizes,
        "capacity": capacity,
        "line": line,
    }
    for rank, misses in enumerate(best.ranked, 1):
        arrays = [
            {
                "name": own.array.instruction.name,
                "path": own.array.path,
                "access": own.kind,
                "touches": own.touches,
                "compulsory": own.compulsory,
                "misses": own.misses,
            }
            for own in misses.arrays
        ]
        record = {
            "rank": rank,
            "order": misses.order.name,
            "misses": misses.misses,
            "touches": misses.touches,
            "bytes": misses.bytes,
            "method": misses.method,
            "arrays": arrays,
            "unknown": None,
        }
        yield json.dumps(head | record)
    for order, reason in best.unknown:
        yield json.dumps(head | {"order": order.name, "unknown": reason.reason})
