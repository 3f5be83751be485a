"""Estimated costs of plans: bytes that a device sends, and work that it does.

The estimate chooses between plans; a plan's own figures are counted in its local program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Final

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves
from indexing.ops.element import ElementOp, Work
from indexing.sharding.partition.moves import share_sent
from indexing.sharding.planning.array_splits import ArraySplit, AxisNames
from indexing.sharding.planning.elimination import Table

IMPOSSIBLE: Final = 1e30
"""The cost of a conversion that does not exist: to a partial value."""

BYTES_OF_WORK: Final = 0.01
"""Bytes that are sent rather than to do one more operation, or to touch one more element.

Interconnects send a byte in the time of 10 to 1000 operations.
"""


SHARE_OF_COPIES: Final = 1e-4
"""Cost of a byte that a conversion copies on its device: it decides between equal costs."""


class ResharderCosts:
    """Bytes that conversions between splits send, as shares of the bytes of the global array."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self.share = lru_cache(maxsize=1 << 18)(self._share)

    def table(
        self, sources: Sequence[ArraySplit], targets: Sequence[ArraySplit], array_bytes: int
    ) -> Table:
        """Return the bytes that the conversion from each source to each target sends."""
        shares = [[self.share(source, target) for target in targets] for source in sources]
        return np.array(shares, np.float64) * array_bytes

    def _shards(self, names: AxisNames) -> int:
        return prod(self.sizes[name] for name in names)

    def _share(self, source: ArraySplit, target: ArraySplit) -> float:
        """Return the share of one conversion: slices and scatters come first, gathers last."""
        if source == target:
            return 0.0
        if not set(target.partial) <= set(source.partial):
            return IMPOSSIBLE
        wanted = [name for names in target.dims for name in names]
        used = set(source.axes)
        sliced = self._shards(tuple([name for name in wanted if name not in used]))
        held = 1.0 / (sliced * prod(self._shards(names) for names in source.dims))
        sent, held = self._reductions(source, target, held)
        gathered = 1
        for name, is_kept in self._moved_axes(source, target):
            if is_kept:
                sent += _share_sent("all-to-all", self.sizes[name], held)
            else:
                gathered *= self.sizes[name]
        if any(map(_is_reordered, source.dims, target.dims)):
            sent += _share_sent("collective-permute", 1, held)
        return sent + _share_sent("all-gather", gathered, held) + SHARE_OF_COPIES * held

    def _reductions(
        self, source: ArraySplit, target: ArraySplit, held: float
    ) -> tuple[float, float]:
        """Return the share that reductions send, and the share that a device then holds."""
        sent = 0.0
        wanted = {name for names in target.dims for name in names}
        pending = [name for name, kind in source.partial if (name, kind) not in target.partial]
        for name in pending:
            if name in wanted:
                sent += _share_sent("reduce-scatter", self.sizes[name], held)
                held /= self.sizes[name]
        for name in pending:
            if name not in wanted:
                sent += _share_sent("all-reduce", self.sizes[name], held)
        return sent, held

    def _moved_axes(self, source: ArraySplit, target: ArraySplit) -> Iterator[tuple[str, bool]]:
        """Yield the axes that leave a dimension, and whether they split another one then."""
        place = {name: dim for dim, names in enumerate(target.dims) for name in names}
        for dim, names in enumerate(source.dims):
            for name in names:
                if place.get(name) != dim:
                    yield name, name in place


def _share_sent(kind: str, devices: int, held: float) -> float:
    """Return the share that a collective sends of an operand with the share `held`."""
    share = share_sent(kind, devices)
    return held * share.numerator / share.denominator


def _is_reordered(source: AxisNames, target: AxisNames) -> bool:
    """Return True if axes that stay on a dimension change their place: shards are permuted."""
    kept = [name for name in source if name in target]
    return kept != list(source[: len(kept)]) or kept != list(target[: len(kept)])


def work_of(instruction: Instruction) -> float:
    """Return the operations of an instruction and the elements that it reads and writes."""
    operands = tuple([operand.shape for operand in instruction.operands])
    touched = sum(
        leaf.size
        for shape in (instruction.shape, *operands)
        for _, leaf in leaves(shape)
        if isinstance(leaf, Shape)
    )
    op = instruction.op
    applied = tuple([Work(flops=1) for _ in instruction.called_computations])
    work = op.work(instruction.shape, operands, applied) if isinstance(op, ElementOp) else None
    operations = work.flops + work.transcendentals if isinstance(work, Work) else 0
    return float(operations + touched)
