"""XLA's choice of tiles for the fusions of modules that XLA:GPU compiled, beside the best tilings.

    python -m benchmarks.compiled_tilings [--device H100] [--top 10] PATH...

reads optimized modules: files, or folders of dumps with ``*after_optimizations.txt`` or
``*.opt.hlo``.  For each fusion with a ``block_level_fusion_config`` it prints the choice, the rules
of the device that it violates, its rank among the best tilings by the default objective and by
those of `OBJECTIVES`, its bytes relative to those of the best, the shared memory by the model of
Triton beside that of the launch, and the number of warps beside that of the rules; then the sums.
A rank without ties counts the tilings that are better by the first two parts of the key: not by
fewer steps or waves.  A choice that the search refuses, but is better than the best, has too few
adjacent bytes.
The launch is that of ``*.thunk_sequence.txt`` beside the module; without it there is none.

XLA measures tiles of dots on the GPU.  Compiled without one, it takes a default, 16 x 8 in steps of
16; with ``--xla_gpu_experimental_cost_model_gemm_tiling_options=top=1``, it takes the best one by
its cost model.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Final

import hlo
import indexing
from hlo.modules.module import Instruction
from indexing.kernels.dumps import thunk_launches
from indexing.tiling.loops.compiled_tilings import CompiledTiling
from indexing.tiling.loops.loop_objectives import (
    AverageProcessor,
    BusiestProcessor,
    FewestBytes,
    LoopObjective,
)
from indexing.tiling.loops.loop_search import BestLoopTilings, best_loop_tilings
from simplifier.unknown import Unknown

OPTIMIZED = "_gpu_after_optimizations.txt"
OBJECTIVES: Final[Sequence[Callable[[int], LoopObjective]]] = (
    FewestBytes,
    AverageProcessor,
    BusiestProcessor,
)


@dataclass(frozen=True)
class ComparedChoice:
    """XLA's choice for one fusion, compared.

    Attributes:
        name: the fusion.
        compiled: the choice.
        violations: the rules that it violates; None if that is unknown.
        rank: the number of better tilings of the best ones; None if unknown.
        untied: the number of those that are better by the first two parts of the key.
        others: the number of better ones by each of `OBJECTIVES`; empty if unknown.
        refused: True if the search refuses it, and it is better than the best.
        ratio: its bytes, relative to those of the best tiling.
        shared: shared memory by the model, and of the launch; None if unknown.
        warps: the number of warps by the rules.
        seconds: the processor time of the search.
        note: the reason why something is unknown.
    """

    name: str
    compiled: CompiledTiling
    violations: tuple[str, ...] | None
    rank: int | None
    untied: int | None
    others: tuple[int, ...]
    refused: bool
    ratio: float
    shared: tuple[int | None, int | None]
    warps: int | None
    seconds: float
    note: str

    @property
    def has_dot(self) -> bool:
        """True if the fusion has a dot."""
        return bool(self.compiled.steps)


def modules(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the files of optimized modules."""
    for path in paths:
        if path.is_dir():
            yield from sorted([*path.rglob(f"*{OPTIMIZED}"), *path.rglob("*.opt.hlo")])
        else:
            yield path


def launched_bytes(path: Path) -> dict[str, int]:
    """Return the bytes of shared memory of each kernel of a module, by its name."""
    name = path.name
    if not name.endswith(OPTIMIZED):
        return {}
    start = name.removesuffix(OPTIMIZED).rpartition(".sm_")[0]
    thunks = path.with_name(f"{start}.thunk_sequence.txt")
    if not thunks.is_file():
        return {}
    return {k: v.shared_bytes for k, v in thunk_launches(thunks.read_text()).items()}


def compare(
    instruction: Instruction, device: str, top: int, launches: dict[str, int]
) -> ComparedChoice | None:
    """Return the comparison of a fusion; None if XLA chose no tiles."""
    compiled = indexing.compiled_tiling(instruction)
    if isinstance(compiled, Unknown):
        return None
    tiling = compiled.tiling()
    start = process_time()
    best = best_loop_tilings(instruction, device, top, masks=False)
    seconds = process_time() - start
    note = ""
    violations: tuple[str, ...] | None = None
    warps = None
    if isinstance(tiling, Unknown):
        note = tiling.reason
    else:
        violated = tiling.violations(device, compiled.stages, compiled.warps)
        if isinstance(violated, Unknown):
            note = violated.reason
        else:
            violations = violated
        own = tiling.warps(device)
        warps = None if isinstance(own, Unknown) else own
    rank = untied = None
    others: list[int] = []
    ratio, refused = 0.0, False
    if isinstance(best, BestLoopTilings) and best.compiled is not None:
        rank, key = best.compiled.better, best.compiled.key
        untied = sum([each[:2] < key[:2] for each in best.keys])
        refused = key < best.keys[0]
        moved, least = best.compiled.tiling.bytes, best[0].bytes
        if isinstance(moved, int) and isinstance(least, int):
            ratio = moved / least
        for ranking in OBJECTIVES:
            objective = ranking(best.rules.processors)
            other = best_loop_tilings(instruction, device, top, objective=objective, masks=False)
            assert isinstance(other, BestLoopTilings)
            assert other.compiled is not None
            others.append(other.compiled.better)
    shared = indexing.triton_shared_bytes(compiled, device)
    launched = launches.get(instruction.name.replace(".", "_").replace("-", "_"))
    pair = (None if isinstance(shared, Unknown) else shared, launched)
    return ComparedChoice(
        instruction.name,
        compiled,
        violations,
        rank,
        untied,
        tuple(others),
        refused,
        ratio,
        pair,
        warps,
        seconds,
        note,
    )


def line(choice: ComparedChoice, top: int) -> str:
    """Return the row of a fusion."""
    if choice.violations is None:
        legal = f"unknown: {choice.note}"
    else:
        legal = "; ".join(choice.violations) or "legal"
    names = ["by default", "without ties", *_names()]
    numbers = [choice.rank, choice.untied, *choice.others]
    pairs = zip(names, numbers, strict=False)
    rank = ", ".join([f"{rank_text(number, top)} {name}" for name, number in pairs])
    rank += f", {choice.ratio:.2f} of the bytes of the best"
    rank += ", refused by the search" if choice.refused else ""
    own, launched = choice.shared
    shared = f"shared {own} of {'-' if launched is None else launched}"
    return f"{choice.name}: {choice.compiled}: {legal}, {rank}, {shared}, warps {choice.warps}"


def _names() -> Iterator[str]:
    """Yield "by" with the name of each of `OBJECTIVES`."""
    for ranking in OBJECTIVES:
        yield f"by {type(ranking(1)).__name__}"


def rank_text(better: int | None, top: int) -> str:
    """Return a rank among the best tilings."""
    if better is None:
        return "no rank"
    return f"rank {better + 1}" if better < top else f"rank beyond {top}"


def share(part: int, whole: int) -> str:
    """Return a number of a whole, with its share."""
    return f"{part} of {whole} ({part / whole:.1%})" if whole else "none"


def sums(choices: Sequence[ComparedChoice], top: int) -> Iterator[str]:
    """Yield the sums for fusions with and without dots."""
    for title, own in (
        ("all", list(choices)),
        ("with dots", [c for c in choices if c.has_dot]),
        ("without dots", [c for c in choices if not c.has_dot]),
    ):
        legal = sum([c.violations == () for c in own])
        columns = [(c.rank, c.untied, *(c.others or [None] * len(OBJECTIVES))) for c in own]
        within = [
            sum([rank is not None and rank < top for rank in ranks])
            for ranks in zip(*columns, strict=True)
        ]
        names = ["by default", "without ties", *_names()]
        ranked = ", ".join(
            [f"{name} {share(n, len(own))}" for name, n in zip(names, within, strict=False)]
        )
        launched = [c for c in own if c.shared[1] is not None]
        equal = sum([c.shared[0] == c.shared[1] for c in launched])
        warps = sum([c.warps == c.compiled.warps for c in own])
        yield (
            f"{title}: legal {share(legal, len(own))}, within the {top} best {ranked}, "
            f"{sum([c.refused for c in own])} refused by the search, "
            f"shared memory equal {share(equal, len(launched))}, "
            f"warps equal {share(warps, len(own))}"
        )
    slowest = max([choice.seconds for choice in choices], default=0)
    yield f"slowest search {slowest:.1f} s"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and the sums."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--device", default="H100")
    parser.add_argument("--top", type=int, default=10)
    options = parser.parse_args(arguments)
    choices: list[ComparedChoice] = []
    kinds: Counter[str] = Counter()
    for path in modules(options.paths):
        launches = launched_bytes(path)
        for computation in hlo.load(path).computations.values():
            for instruction in computation.instructions:
                choice = compare(instruction, options.device, options.top, launches)
                if choice is not None:
                    choices.append(choice)
                    kinds[choice.compiled.kind] += 1
                    print(f"{path.name[:40]}: {line(choice, options.top)}", flush=True)
    print(", ".join([f"{count} {kind}" for kind, count in sorted(kinds.items())]))
    for row in sums(choices, options.top):
        print(row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
