"""Layers on meshes of 8 to 1,024 devices: their partitions proved, and faults of collectives told.

    python -m benchmarks.mesh_equivalence [--devices 8,64,256,1024] [--mutants N] [--save FOLDER]

compiles each layer of `benchmarks.mesh_programs` for the TPU with as many devices, compares the
module before and after the compiler, and prints a row for each: the verdict in words, the seconds
of the comparison, the bytes that the collectives of one device send, and the fewest that its maps
need.  With ``--mutants``, collectives of the program of a device are deleted, doubled, grouped or
ordered otherwise, and the mutants counted by verdict.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Final

import indexing
from benchmarks.mesh_programs import TARGETS, mesh_programs
from hlo.modules.module import Module
from indexing import equivalent
from indexing.views.tables import align_columns
from tests.equivalence.device_mutants import DEVICE_MUTATIONS
from tests.equivalence.mutants import mutants

COLLECTIVE_MUTATIONS: Final = {
    name: mutation
    for name, mutation in DEVICE_MUTATIONS.items()
    if name not in ("other_offset", "other_combiner")
}
COLUMNS: Final = ("layer", "devices", "instructions", "verdict", "seconds")


def compile_layer(name: str, devices: int) -> tuple[Module, Module]:
    """Return the module of a layer before and after the compiler."""
    function, types = mesh_programs(devices)[name]
    before, after = (
        indexing.from_jax(function, *types, target=TARGETS[devices], stage=stage)
        for stage in ("lowered", "optimized")
    )
    assert isinstance(before, Module)
    assert isinstance(after, Module)
    return before, after


def mutant_verdicts(
    name: str, devices: int, before: Module, after: Module, count: int
) -> Counter[str]:
    """Return the number of mutants of a layer by verdict, and print those that are not told."""
    words: Counter[str] = Counter()
    for mutation, line, mutant in mutants(after, devices, count, COLLECTIVE_MUTATIONS):
        start = perf_counter()
        verdict = equivalent(before, mutant)
        words[verdict.word] += 1
        if verdict.word != "differs":
            text = f"{name} {devices} {mutation}: {line[:100]}: {verdict}"
            print(f"{text} ({perf_counter() - start:.0f} s)", flush=True)
    return words


def main() -> None:
    """Measure the layers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--devices", default="8,64,256,1024")
    parser.add_argument("--mutants", type=int, default=0)
    parser.add_argument("--save", type=Path)
    options = parser.parse_intermixed_args()
    cells = [list(COLUMNS)]
    words: Counter[str] = Counter()
    for devices in map(int, options.devices.split(",")):
        for name in options.names or mesh_programs(devices):
            before, after = compile_layer(name, devices)
            start = perf_counter()
            verdict = equivalent(before, after)
            seconds = perf_counter() - start
            size = str(sum(1 for _ in after.instructions))
            cells.append([name, str(devices), size, verdict.word, f"{seconds:.1f}"])
            if options.mutants:
                words += mutant_verdicts(name, devices, before, after, options.mutants)
            if options.save:
                for word, module in (("pre", before), ("opt", after)):
                    (options.save / f"{name}_{devices}.{word}.hlo").write_text(str(module))
    print(*align_columns(cells, right=[1, 2, 4]), sep="\n")
    if words:
        print(f"mutants: {', '.join(f'{word} {count}' for word, count in words.most_common())}")


if __name__ == "__main__":
    main()
