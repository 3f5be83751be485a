"""`best_tilings` with loops: branch and bound over tile sizes and steps.

Sizes are chosen axis by axis.  The bytes with all other axes as coarse as possible are a lower
bound: the elements that a tile reads are those of the finer tiles that it consists of, so coarser
tiles load at most as much, unless the tiles of steps share elements (`_least`).  A branch whose
bound is worse than the worst of the best tilings ends.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import prod
from typing import Final, overload

import indexing.methods as methods
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.maps.displayed import Displayed
from indexing.tiling.loops.accumulators import accumulators_of
from indexing.tiling.loops.axes import Axes
from indexing.tiling.loops.block_figures import BlockFigures
from indexing.tiling.loops.block_rules import BlockRules, DeviceRules
from indexing.tiling.loops.compiled_tilings import CompiledTiling, compiled_tiling
from indexing.tiling.loops.loop_choices import SizeChoices, choices_of
from indexing.tiling.loops.loop_model import LoopModel, loop_model
from indexing.tiling.loops.loop_objectives import LoopCandidate, LoopObjective
from indexing.tiling.loops.loop_tiling import LoopTiling
from indexing.tiling.loops.looped import tiling_of_model
from indexing.tiling.loops.phases import LoopPhase
from indexing.tiling.loops.rules import rules_of
from indexing.tiling.search.refusals import AcceptedKind, Refusals
from indexing.tiling.sets.tiled_answers import Target
from simplifier.unknown import Unknown

MAX_MEASURED: Final = 20_000
"""Limit on the tilings that a search measures; beyond it, the answer is incomplete."""
MAX_POINTS: Final = 1 << 26
"""Limit on the points of maps that a search enumerates, for sets of elements that are no boxes."""


@dataclass(frozen=True, slots=True)
class RankedChoice:
    """XLA's choice beside the best tilings.

    Attributes:
        compiled: what XLA chose.
        tiling: the tiling.
        key: its key by the objective.
        better: the number of ranked tilings with a smaller key.
        violations: how it violates rules of the device, in words.

    >>> import hlo, indexing
    >>> fusion = hlo.load("examples/targets/attention.h100.hlo").entry["triton_softmax.2"]
    >>> best = indexing.best_tilings(fusion, device="H100", loops=True, top=3)
    >>> best.compiled.compiled.output_tiles, best.compiled.violations
    (((2, 256),), ())
    """

    compiled: CompiledTiling
    tiling: LoopTiling
    key: tuple[int, ...]
    better: int
    violations: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class BestLoopTilings(Displayed, Sequence[LoopTiling]):
    """The best tilings of an output with loops, the best first.

    Attributes:
        shape: the shape of the output.
        instruction: the instruction whose output is tiled.
        rules: the rules of the device.
        ranked: the tilings.
        keys: their keys by the objective.
        key_parts: what the parts of a key count; empty for objectives without names.
        candidates: the number of combinations of sizes and steps.
        measured: the number of tilings, or bounds of branches, that were measured.
        refused: the tilings that were visited and are not legal, by rule.
        incomplete: the reason why better tilings may exist; empty if none do.
        compiled: XLA's choice, if the module states one and the device is a GPU.

    >>> import hlo, indexing
    >>> root = hlo.parse('''ENTRY e {
    ...   p = bf16[4096,4096] parameter(0)
    ...   q = bf16[4096,4096] parameter(1)
    ...   ROOT d = bf16[4096,4096] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''').entry.root
    >>> best = indexing.best_tilings(root, device="H100", loops=True, top=1)
    >>> best[0].sizes, best[0].loop_sizes, best[0].bytes, best[0].stages
    ((256, 128), (64,), 1644167168, 3)
    """

    shape: Shape
    instruction: Instruction
    rules: DeviceRules
    ranked: tuple[LoopTiling, ...]
    keys: tuple[tuple[int, ...], ...]
    key_parts: tuple[str, ...]
    candidates: int
    measured: int
    refused: tuple[Refusals, ...]
    incomplete: str
    compiled: RankedChoice | None

    def __len__(self) -> int:
        return len(self.ranked)

    @overload
    def __getitem__(self, index: int) -> LoopTiling: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[LoopTiling, ...]: ...
    def __getitem__(self, index: int | slice) -> LoopTiling | tuple[LoopTiling, ...]:
        return self.ranked[index]

    def __str__(self) -> str:
        return methods.best_loop_tilings_text(self)

    def __repr__(self) -> str:
        return f"<the {len(self.ranked)} best tilings of {self.instruction.name!r} with loops>"


@dataclass(order=True)
class _Found:
    key: tuple[int, ...]
    number: int
    steps: tuple[int, ...] = field(compare=False)
    split: int = field(compare=False)


class _LoopSearch:
    """One search."""

    def __init__(
        self,
        model: LoopModel,
        choices: Sequence[SizeChoices],
        rules: DeviceRules,
        objective: LoopObjective,
        accept: AcceptedKind,
        top: int,
    ) -> None:
        self.model, self.choices, self.rules, self.top = model, tuple(choices), rules, top
        self.objective, self.accept = objective, accept
        self.best: list[_Found] = []
        self.refused: dict[str, Refusals] = {}
        self.measured = 0
        self._phases: dict[tuple[int, ...], tuple[LoopPhase, ...]] = {}
        self._measures: dict[tuple[tuple[int, ...], int], BlockFigures | Unknown] = {}

    @property
    def over(self) -> str:
        """The budget that is spent; empty if none is."""
        if self.measured >= MAX_MEASURED:
            return f"budget: {MAX_MEASURED:,} tilings measured"
        if sum([table.points for table in self.model.tables.values()]) >= MAX_POINTS:
            return f"budget: {MAX_POINTS:,} points of maps enumerated"
        return ""

    def run(self) -> None:
        """Visit all branches."""
        coarse = [1] * len(self.model.sizes)
        for choice in self.choices:
            for axis in choice.axes:
                coarse[axis] = choice.sizes[0]
        self._branch(0, tuple(coarse))

    def _branch(self, depth: int, steps: tuple[int, ...]) -> None:
        """Visit the sizes of the axes from `depth`; others are chosen, and these are coarsest."""
        if self.over or (depth and self._is_hopeless(depth, steps)):
            return
        if depth == len(self.choices):
            self._leaf(steps)
            return
        choice = self.choices[depth]
        for size in choice.sizes:
            chosen = list(steps)
            for axis in choice.axes:
                chosen[axis] = size
            self._branch(depth + 1, tuple(chosen))

    def _is_hopeless(self, depth: int, steps: tuple[int, ...]) -> bool:
        """Return True if no finer tiling of a branch is legal, or better than the worst."""
        finest = list(steps)
        for choice in self.choices[depth:]:
            for axis in choice.axes:
                finest[axis] = choice.sizes[-1]
        model, rules = self.model, self.rules
        coarse = model.axes(steps)
        cut = model.cut_dimension(coarse)
        too_small = chain(rules.too_small(model, coarse), rules.too_short(model, coarse))
        small = ("whole dimension", cut) if cut else next(too_small, None)
        violation = small or next(rules.too_large(model, model.axes(finest)), None)
        if violation is not None:
            self._refuse(*violation, steps if small else tuple(finest))
            return True
        if len(self.best) < self.top:
            return False
        pairs = zip(self.model.sizes, finest, strict=True)
        counts = [-(-n // step) for n, step in pairs]
        splits = prod(counts[self.model.rank :]) if self._splittable else 1
        most = prod(counts[: self.model.rank]) * splits
        return self._is_worse(self._compulsory(steps), most) or self._is_worse(
            self._least(steps), most
        )

    def _is_worse(self, least: LoopCandidate | None, most_blocks: int) -> bool:
        """Return True if no tiling with at least these figures is among the best."""
        if least is None:
            return False
        bound = self.objective.bound(least, most_blocks)
        return bound > self.best[-1].key[: len(bound)]

    def _compulsory(self, steps: tuple[int, ...]) -> LoopCandidate | None:
        """Return figures that no finer tiling is below, without measuring one.

        Each element that is needed is loaded at least once.
        """
        model = self.model
        if isinstance(model.touched, Unknown):
            return None
        blocks = prod([model.axes(steps)[k].count for k in range(model.rank)])
        waves = -(-blocks // self.rules.processors)
        return LoopCandidate(blocks, model.touched + model.shape.bytes, 1, 1, waves)

    def _least(self, steps: tuple[int, ...]) -> LoopCandidate | None:
        """Return figures that no finer tiling is below; None if they are unknown.

        Where the tiles of an array share elements, a finer step may find those of the step before,
        and move less than a coarser one: then each element is loaded once by a block, or by a core.
        Two loops of equal steps share a phase, and may have fewer steps than with a coarser one, so
        that only the first step is sure.
        """
        model = self.model
        is_apart = model.has_disjoint_tiles(model.axes(steps), self.phases(steps))
        chosen = steps if is_apart else (*steps[: model.rank], *model.sizes[model.rank :])
        figures = self.figures(chosen)
        if isinstance(figures, Unknown):
            return None
        candidate = replace(self._candidate(chosen, figures, 1), steps=1)
        if is_apart or not self.rules.keeps_tiles or isinstance(model.touched, Unknown):
            return candidate
        return replace(candidate, bytes=min(candidate.bytes, model.touched + model.shape.bytes))

    # ------------------------------------------------------------ one tiling

    def phases(self, steps: tuple[int, ...]) -> tuple[LoopPhase, ...]:
        """Return the phases for given steps of loops, memoised."""
        loops = steps[self.model.rank :]
        if loops not in self._phases:
            self._phases[loops] = self.model.phases(self.model.axes(steps))
        return self._phases[loops]

    def figures(self, steps: tuple[int, ...], split: int = 1) -> BlockFigures | Unknown:
        """Return the figures of a tiling, memoised."""
        key = steps, split
        if key not in self._measures:
            self.measured += 1
            axes = self.model.axes(steps)
            self._measures[key] = self.model.measure(axes, self.phases(steps), splits=split)
        return self._measures[key]

    def _candidate(
        self, steps: tuple[int, ...], figures: BlockFigures, split: int
    ) -> LoopCandidate:
        moved = self._loaded_bytes(steps, figures) + self.model.shape.bytes
        if split > 1:
            moved += 2 * split * self.model.shape.size * 4
        pairs = zip(self.phases(steps), figures.phases, strict=True)
        number = max(1, sum([own.steps for phase, own in pairs if phase.has_loops]))
        waves = -(-figures.blocks // self.rules.processors)
        return LoopCandidate(figures.blocks, moved, number, split, waves)

    def _loaded_bytes(self, steps: tuple[int, ...], figures: BlockFigures) -> int:
        """Return the bytes that all blocks load; those of blocks that keep nothing if unknown."""
        axes = self.model.axes(steps)
        loaded = self.rules.loaded(self.model, axes, self.phases(steps), figures)
        return figures.loaded if isinstance(loaded, Unknown) else loaded

    def _leaf(self, steps: tuple[int, ...]) -> None:
        axes = self.model.axes(steps)
        figures = self.figures(steps)
        if isinstance(figures, Unknown):
            self._refuse("counts", figures.reason, steps)
            return
        violation = self._violation(axes, steps, figures)
        if violation is not None:
            self._refuse(*violation, steps)
            return
        for split in self._splits(steps, figures):
            own = self.figures(steps, split)
            if isinstance(own, Unknown):
                continue
            key = self.objective.key(self._candidate(steps, own, split))
            insort(self.best, _Found(key, self.measured, steps, split))
        del self.best[self.top :]

    def _violation(
        self, axes: Axes, steps: tuple[int, ...], figures: BlockFigures
    ) -> tuple[str, str] | None:
        """Return the first rule that a tiling violates, and how."""
        if self.accept == "box":
            for phase in figures.phases:
                for tile in phase.tiles:
                    if not tile.is_box:
                        name = tile.array.instruction.name
                        reason = f"a step reads no box of `{name}`; accept='boxes' allows it"
                        return "accept='box'", reason
        accumulators = accumulators_of(self.model, self.phases(steps), axes)
        if isinstance(accumulators, Unknown):
            return "counts", accumulators.reason
        rules, model = self.rules, self.model
        held = rules.of_figures(model, axes, figures, accumulators)
        return next(chain(rules.too_full(model, accumulators), held), None)

    @property
    def _splittable(self) -> bool:
        """True if one nest has loops, so that several blocks may share them."""
        own = [nest for nest in self.model.nests if nest.key is not None]
        return len(own) == 1 and len(own[0].computed) == 1

    def _splits(self, steps: tuple[int, ...], figures: BlockFigures) -> Iterator[int]:
        """Yield the splits to try: several only if blocks are fewer than processors."""
        yield 1
        if figures.blocks >= self.rules.processors or not self._splittable:
            return
        number = figures.phases[0].steps
        split = 2
        while split <= number:
            if number % split == 0:
                yield split
            if figures.blocks * split >= self.rules.processors:
                return
            split *= 2

    def choice_of_xla(self, output_id: int) -> RankedChoice | None:
        """Return the tiling with which XLA compiled the instruction, with its rank."""
        model = self.model
        compiled = compiled_tiling(model.instruction)
        if isinstance(compiled, Unknown) or output_id >= len(compiled.output_tiles):
            return None
        sizes, loops = compiled.sizes_of(output_id, model.rank), compiled.loop_sizes(model)
        tiling = tiling_of_model(model, sizes, loops, online=True, split_k=1)
        steps = tuple([tiling.axes[k].step for k in range(len(model.sizes))])
        figures = self.figures(steps)
        violated = tiling.violations(self.rules.name, compiled.stages, compiled.warps)
        if isinstance(figures, Unknown) or isinstance(violated, Unknown):
            return None
        key = self.objective.key(self._candidate(steps, figures, 1))
        better = sum([each.key < key for each in self.best])
        return RankedChoice(compiled, tiling, key, better, violated)

    def _refuse(self, rule: str, reason: str, steps: tuple[int, ...]) -> None:
        known = self.refused.setdefault(rule, Refusals(rule, 0, steps, reason))
        self.refused[rule] = replace(known, count=known.count + 1)


def best_loop_tilings(
    instruction: Instruction,
    device: str = "H100",
    top: int = 10,
    sizes: Sequence[Sequence[int]] | None = None,
    loop_sizes: Mapping[str, Sequence[int]] | Sequence[Sequence[int]] | None = None,
    accept: AcceptedKind = "box",
    objective: LoopObjective | None = None,
    to: Target = "operands",
    output_id: int = 0,
    masks: bool = True,
) -> BestLoopTilings | Unknown:
    """Return the best legal tilings of an output with loops; see `indexing.best_tilings`."""
    rules = rules_of(device)
    model = loop_model(instruction, to, output_id, masks)
    if isinstance(model, Unknown):
        return model
    choices = choices_of(model, sizes, loop_sizes)
    search = _LoopSearch(model, choices, rules, objective or rules.objective, accept, top)
    search.run()
    ranked = []
    for each in search.best:
        own = each.steps[: model.rank]
        loops = each.steps[model.rank :]
        ranked.append(tiling_of_model(model, own, loops, online=True, split_k=each.split))
    return BestLoopTilings(
        model.shape,
        instruction,
        rules,
        tuple(ranked),
        tuple([each.key for each in search.best]),
        search.objective.parts,
        prod([len(choice.sizes) for choice in choices]),
        search.measured,
        tuple(search.refused.values()),
        search.over,
        search.choice_of_xla(output_id) if isinstance(rules, BlockRules) else None,
    )
