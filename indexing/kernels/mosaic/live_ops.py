"""The ops of a region whose results or effects are of account.

A kernel that stores a value first loads the old one, which nothing uses.
"""

from __future__ import annotations

from functools import lru_cache

from indexing.kernels.ir import MlirOp, MlirRegion, MlirValue

_WITHOUT_EFFECT = ("load", "read", "gather")


@lru_cache(maxsize=4096)
def live_ops(region: MlirRegion) -> frozenset[MlirOp]:
    """Return the ops of a region, not those within them, without what nothing uses."""
    used: set[MlirValue] = set()
    live: list[MlirOp] = []
    for block in reversed(region.blocks):
        for op in reversed(block.ops):
            if used.isdisjoint(op.results) and not _has_effect(op):
                continue
            live.append(op)
            used.update(op.operands)
            used.update(_used_within(op))
    return frozenset(live)


def _has_effect(op: MlirOp) -> bool:
    """Return True for an op that may do more than compute its results."""
    if not op.results or op.regions or op.name == "func.call":
        return True
    reads_only = any(word in op.name.partition(".")[2] for word in _WITHOUT_EFFECT)
    is_view = all(v.type.kind == "memref" for v in op.results)
    return not reads_only and not is_view and any(v.type.kind == "memref" for v in op.operands)


def _used_within(op: MlirOp) -> set[MlirValue]:
    """Return the values that the ops within an op use."""
    used: set[MlirValue] = set()
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                used.update(inner.operands)
                used |= _used_within(inner)
    return used
