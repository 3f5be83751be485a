"""Figures of the kernels of dumps: how many are read and proved, and how long a verdict takes.

    python -m benchmarks.kernel_figures FOLDER [--stages]
    python -m benchmarks.kernel_figures FOLDER --compile TARGET [--unseen]

prints a line for each kernel that is not proved, then the sums; with ``--stages``, also the kernels
of which all stages up to the last one with tensors are proved.  ``--compile`` first compiles the
programs of `benchmarks.kernel_programs`, or of `benchmarks.kernel_programs_unseen`, for a target
such as ``cpu`` or ``gpu:H100``, into FOLDER; that needs JAX and, for a GPU, its compiler.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

import indexing
from hlo.text.source import HloError
from indexing.kernels.checks import check_stages
from indexing.kernels.dumps import kernels_of
from indexing.kernels.kernel import Kernel
from indexing.kernels.verdicts import KernelDiffers, KernelProved, KernelVerdict


def word(verdict: KernelVerdict) -> str:
    """Return ``proved``, ``differs`` or ``undecided``."""
    if isinstance(verdict, KernelProved):
        return "proved"
    return "differs" if isinstance(verdict, KernelDiffers) else "undecided"


def figures(kernels: Sequence[Kernel]) -> None:
    """Print the kernels that are not proved, and the sums."""
    words: Counter[str] = Counter()
    seconds: list[float] = []
    for kernel in kernels:
        start = perf_counter()
        try:
            verdict = indexing.check_kernel(kernel)
            name, text = word(verdict), str(verdict)
        except HloError as error:
            name, text = "not read", error.message
        seconds.append(perf_counter() - start)
        words[name] += 1
        if name != "proved":
            print(f"{kernel.path}: {kernel.kind}: {text[:200]}")
    count = max(len(kernels), 1)
    counts = ", ".join(f"{number} {name}" for name, number in sorted(words.items()))
    print(f"{len(kernels)} kernels: {counts}; {words['proved'] / count:.1%} proved")
    if seconds:
        print(f"seconds for a verdict: median {median(seconds):.3f}, largest {max(seconds):.2f}")


def stage_figures(kernels: Sequence[Kernel]) -> None:
    """Print how many kernels are proved at all stages with tensors."""
    whole, words = 0, Counter[str]()
    logged = [kernel for kernel in kernels if len(kernel.stages) > 1]
    for kernel in logged:
        every = [word(verdict) for _, verdict in check_stages(kernel)]
        whole += set(every) == {"proved"}
        words.update(every)
        if "differs" in every:
            print(f"{kernel.path}: stage {every.index('differs')} differs")
    counts = ", ".join(f"{number} {name}" for name, number in sorted(words.items()))
    print(f"all stages of {whole} of {len(logged)} kernels are proved; stages: {counts}")


def compile_programs(folder: Path, target: str, is_unseen: bool) -> None:
    """Write what XLA dumps of each program into a folder of its name."""
    from benchmarks import kernel_programs, kernel_programs_unseen
    from indexing.frontends.jax import from_jax

    chosen = kernel_programs_unseen if is_unseen else kernel_programs
    for name, (function, arguments) in chosen.PROGRAMS.items():
        dump = from_jax(function, *arguments, stage="kernels", target=target, cache=False)
        assert isinstance(dump, Path)
        shutil.move(dump, folder / f"{name}_{target.replace(':', '_')}")
        print(name, file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures of a folder."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--stages", action="store_true", help="also the later stages")
    parser.add_argument("--compile", metavar="TARGET", help="compile the programs first")
    parser.add_argument("--unseen", action="store_true", help="the programs that are held out")
    options = parser.parse_args(arguments)
    if options.compile is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
        compile_programs(options.folder, options.compile, options.unseen)
    kernels = kernels_of(options.folder)
    figures(kernels)
    if options.stages:
        stage_figures(kernels)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
