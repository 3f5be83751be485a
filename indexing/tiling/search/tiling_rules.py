"""`TilingRules`: the rules of valid tilings, and the tilings that they exclude."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod
from typing import Final

from indexing.tiling.search.best_first import Evaluated
from indexing.tiling.search.candidate_sizes import TileSizes
from indexing.tiling.search.limits import TileArray, TileMemory, TilingLimits
from indexing.tiling.search.measures import (
    Objective,
    RankedTiling,
    SingleElements,
    measure_tiling,
    tile_memory,
)
from indexing.tiling.search.refusals import AcceptedKind, Refusals
from indexing.tiling.sets.tiling import Tiling, tile
from indexing.tiling.symbolic.symbolic_tiles import SymbolicTile, symbolic_tile
from simplifier.unknown import Unknown

_KINDS: Final = ("box", "boxes", "bounding")

EXCESS: Final = "limits"
COUNTS: Final = "counts"


class TilingRules:
    """The rules of valid tilings, and the tilings that they exclude."""

    def __init__(
        self,
        choices: TileSizes,
        whole: Tiling,
        limits: TilingLimits,
        accept: AcceptedKind,
        predicate: Callable[[Tiling], bool] | None,
        symbolic: bool,
    ) -> None:
        self.choices = choices
        self.whole = whole
        self.limits = limits
        self.kinds = _KINDS[: _KINDS.index(accept) + 1]
        self.predicate = predicate
        self.symbolic = _symbolic_tiles(whole) if symbolic else []
        self.single = SingleElements(whole)
        self.refused: dict[str, Refusals] = {}

    def valid(self) -> Iterator[Tiling]:
        """Yield the valid tilings in the order of the tile sizes."""
        too_large: list[tuple[int, ...]] = []
        for own in self.choices:
            if self.is_refused(own) or any(self.choices.refines(s, own) for s in too_large):
                continue
            tiling = self.whole.with_sizes(own)
            refusal = self.refusal(tiling)
            if refusal is None:
                yield tiling
            elif refusal.rule == EXCESS:
                too_large.append(own)

    def is_refused(self, sizes: tuple[int, ...]) -> bool:
        """True if the tile of the result alone violates a limit."""
        if 0 in sizes:
            return True  # an empty dimension, as XLA enumerates it
        grid = self.choices.grid(sizes)
        result = TileArray(grid.largest, self.whole.shape.element_bits)
        memory = TileMemory(result, (), prod(grid.counts))
        return self.limits.violation(memory) is not None

    def refusal(self, tiling: Tiling) -> Refusals | None:
        """Return the violation of the first rule, or `None` for a valid tiling."""
        for operand in tiling.operands:
            if operand.kind not in self.kinds:
                reason = f"operand {operand.number} has the kind {operand.kind!r}: {operand.reason}"
                return Refusals(f"accept={self.kinds[-1]!r}", 1, tiling.sizes, reason)
        if violation := next(self.violations(tiling.sizes), None):
            return Refusals("symbolic=True", 1, tiling.sizes, violation)
        memory = tile_memory(tiling)
        if isinstance(memory, Unknown):
            return Refusals(COUNTS, 1, tiling.sizes, str(memory))
        if excess := self.limits.excess(memory):
            return Refusals(EXCESS, 1, tiling.sizes, excess)
        if self.predicate is not None and not self.predicate(tiling):
            return Refusals("predicate", 1, tiling.sizes, "the predicate is false")
        return None

    def violations(self, sizes: tuple[int, ...]) -> Iterator[str]:
        """Yield the constraints of symbolic tiles that tile sizes violate, in words."""
        for symbolic in self.symbolic:
            if isinstance(symbolic, Unknown):
                yield f"no symbolic tile: {symbolic}"
            elif not symbolic.satisfied_by(sizes):
                yield str(symbolic.violation(sizes))

    def evaluate(self, sizes: tuple[int, ...], objective: Objective) -> Evaluated[RankedTiling]:
        """Return the value of a tiling, and a bound for the tilings that refine it."""
        tiling = self.whole.with_sizes(sizes)
        refusal = self.refusal(tiling)
        ranked = measure_tiling(tiling, self.single)
        if refusal is None and isinstance(ranked, Unknown):
            refusal = Refusals(COUNTS, 1, sizes, str(ranked))
        if refusal is not None:
            known = self.refused.setdefault(refusal.rule, replace(refusal, count=0))
            self.refused[refusal.rule] = replace(known, count=known.count + 1)
        if isinstance(ranked, Unknown):
            return Evaluated(None, 0, 0)
        bound = self.bound(ranked, objective)
        return Evaluated(None if refusal else ranked, ranked.value(objective), bound)

    @staticmethod
    def bound(ranked: RankedTiling | Unknown, objective: Objective) -> int:
        """Return a lower bound for the tilings that refine this one; upper bounds give none."""
        if isinstance(ranked, Unknown) or ranked.grade == "may":
            return 0
        return ranked.value(objective)


def _symbolic_tiles(whole: Tiling) -> list[SymbolicTile | Unknown]:
    """Return the symbolic tiles of the maps, over-approximations as XLA has them."""
    answer = tile(whole.instruction, whole.sizes, whole.to, whole.answer.domain_id, masks=False)
    operands = () if isinstance(answer, Unknown) else answer.operands
    maps = [m for operand in operands for m in operand.maps]
    return [symbolic_tile(m) for m in dict.fromkeys(maps)]
