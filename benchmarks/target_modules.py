"""Modules of JAX programs for TPUs and GPUs, for `targets`: before and after optimizations.

usage: python -m benchmarks.target_modules FOLDER [TARGET...]

Writes ``FOLDER/TARGET/NAME.pre.hlo`` and ``NAME.opt.hlo`` for each program of `pass_programs`,
`pass_models` and `pass_sharded`.  Each target has a process, since XLA reads its flags once.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from indexing.frontends.compilation import environment

TARGETS: Final = ("tpu:v5e:2x4", "tpu:v5p:2x2x2", "tpu:v6e:2x4", "gpu:A100:8", "gpu:H100:8")
_FLAGS: Final = (
    "--xla_force_host_platform_device_count=8 --xla_gpu_autotune_level=0 "
    "--xla_gpu_enable_triton_gemm=false"
)


def write_modules(folder: Path, text: str) -> None:
    """Write the modules of all programs for one target; print which do not compile."""
    from benchmarks import pass_models  # noqa: F401 - registers its programs
    from benchmarks.pass_programs import PROGRAMS
    from benchmarks.pass_sharded import sharded_programs
    from indexing.frontends.lowering import lower
    from indexing.frontends.targets import Target
    from indexing.frontends.xla_process import optimized_text

    target = Target.parse(text)
    folder.mkdir(parents=True, exist_ok=True)
    start, failed = time.perf_counter(), 0
    programs = {**PROGRAMS, **sharded_programs()}
    for name, (function, arguments) in programs.items():
        try:
            lowered = lower(function, arguments, {}, target.platform)
            (folder / f"{name}.pre.hlo").write_text(str(lowered.module()))
            optimized = lowered.named(optimized_text(lowered, target))
            (folder / f"{name}.opt.hlo").write_text(str(optimized))
        except Exception as error:  # of JAX or XLA: the other programs count
            failed += 1
            print(f"{text} {name}: {str(error).partition(chr(10))[0][:200]}", flush=True)
    seconds = time.perf_counter() - start
    print(
        f"{text}: {len(programs) - failed} of {len(programs)} programs, {seconds:.0f} s", flush=True
    )


def compile_in_processes(
    program: str, write: Callable[[Path, str], None], targets: Sequence[str], flags: str
) -> None:
    """Run ``python -m program FOLDER [TARGET...]``: write the modules, a process for each target.

    Args:
        write: writes the modules of one target.
        targets: those that are compiled for if none is named.
        flags: the flags of XLA.
    """
    folder, *named = sys.argv[1:]
    if named[:1] == ["--one"]:
        write(Path(folder), named[1])
        return
    for target in named or targets:
        place = Path(folder, target.replace(":", "_"))
        command = [sys.executable, "-m", program, str(place), "--one", target]
        status = subprocess.run(
            command, env=environment(flags), stderr=subprocess.DEVNULL, check=False
        )
        if status.returncode:
            print(f"{target}: the process ended with status {status.returncode}")


def main() -> None:
    """Write the modules for the named targets, or for all."""
    compile_in_processes("benchmarks.target_modules", write_modules, TARGETS, _FLAGS)


if __name__ == "__main__":
    main()
