"""``hlo-indexing kernels``: the kernels of a folder of dumps, proved equal to their fusions."""

from __future__ import annotations

import errno
import json
from os.path import isfile
from typing import TYPE_CHECKING, Final

import click

from indexing.cli.colours import paint_outcomes
from indexing.cli.commands.access import DeviceName
from indexing.cli.commands.diff import DIFFERENT, UNDECIDED
from indexing.cli.options import format_option, max_input_size_option
from indexing.cli.paths import InputPath
from indexing.cli.pictures import print_figures
from indexing.cli.reporter import Reporter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from indexing.drawing.figures import Figure
    from indexing.kernels.kernel import Kernel
    from indexing.views.kernel_tables import KernelResult

_NONE: Final = "no kernels: XLA emits no instruction as MLIR"
_REPAIR: Final = (
    "XLA_FLAGS='--xla_dump_to=DUMPDIR --xla_dump_hlo_as_text --xla_dump_emitter_re=.*' writes "
    "those that XLA emits as MLIR"
)
_IS_FILE: Final = f"a file, and no folder of dumps; {_REPAIR}"


@click.command("kernels")
@click.argument("folder", metavar="DUMPDIR", type=InputPath("kernels"))
@click.option(
    "-i",
    "--instruction",
    "fusion",
    metavar="NAME",
    help="Only the kernel of the fusion, or the kernel, of this name",
)
@click.option(
    "--stages",
    is_flag=True,
    help="Also compare the text before each later pass that keeps tensors",
)
@click.option(
    "--device",
    metavar="GPU",
    type=DeviceName(),
    default="H100",
    show_default=True,
    help="Choose the GPU whose sectors are counted",
)
@max_input_size_option
@format_option(click.Choice(["text", "json", "svg"]))
@click.pass_obj
def command(
    reporter: Reporter,
    folder: str,
    fusion: str | None,
    stages: bool,
    device: str,
    notation: str,
) -> None:
    """Compare the kernels of the dumps in DUMPDIR with the fusions that they compute.

    DUMPDIR, or a folder in it, was written by XLA with these flags:

    \b
      XLA_FLAGS="--xla_dump_to=DUMPDIR --xla_dump_hlo_as_text
        --xla_dump_emitter_re=.*"

    For each kernel, the MLIR before the first pass is read: for each thread, block and iteration,
    the elements that it reads and writes, and the formula of each value that it writes. A kernel is
    proved if each output element is written with the value of the fusion's formula, all accesses
    are in bounds, no index wraps, and threads exchange values through shared memory only across
    barriers. Otherwise it differs, with the block, thread and iteration, or it is undecided, with
    the reason. JSON has an object for each kernel. With --stages, the text before each later pass
    is compared with the fusion, too, until tensors are lowered to pointers; the first one that
    differs is named with the pass whose result it is.

    For kernels of GPUs, a second table has the sectors of memory that all warps load and store, by
    the threads, blocks and loops of the kernel; an innermost loop over adjacent, aligned elements
    is one instruction. IDEAL is the fewest sectors with room for the distinct bytes of each warp.
    With -i, each array has a row. `<=` marks an upper bound, of start indices that are unknown.
    SVG has the lanes of a warp and their sectors, or of other kernels the block of each element.

    The exit status is 0 if all kernels are proved, 1 if a kernel differs, a text is invalid or
    DUMPDIR has no kernel, and 3 if none differs but some are undecided.

    \b
    Examples:
      hlo-indexing kernels dumps
      hlo-indexing kernels dumps -i loop_add_fusion
      hlo-indexing kernels dumps --stages
      hlo-indexing kernels jax:layers.py:mlp --shapes 'f32[8,64],f32[64,64]' \\
        --target gpu:H100
    """
    from indexing.views.kernel_tables import (
        array_lines,
        checked_kernel,
        kernel_lines,
        kernel_record,
    )

    chosen = _choose_kernels(reporter, folder, fusion)
    if chosen is None:
        return
    results = []
    for kernel in chosen:
        result = checked_kernel(kernel, stages, device)
        results.append(result)
        if result.fault is not None:
            reporter.error(*str(result.fault).splitlines())
        if notation == "json":
            reporter.print(json.dumps(kernel_record(result)))
    if notation == "text":
        reporter.print(*paint_outcomes(kernel_lines(results), reporter.paint))
        for result in results if fusion is not None else ():
            reporter.print(*array_lines(result))
    if notation == "svg":
        print_figures(reporter, [_figure(result) for result in results if result.fault is None])
    words = {result.worst for result in results}
    if "differs" in words:
        reporter.verdict = DIFFERENT
    elif "undecided" in words:
        reporter.verdict = UNDECIDED


def _figure(result: KernelResult) -> Figure:
    """Return the sectors that warps touch; without them, the threads that write each element."""
    from indexing.drawing.kernel_pictures import kernel_accesses_figure, kernel_figure
    from simplifier.unknown import Unknown

    if isinstance(result.access, Unknown):
        return kernel_figure(result.kernel)
    return kernel_accesses_figure(result.access)


def _choose_kernels(reporter: Reporter, folder: str, fusion: str | None) -> Sequence[Kernel] | None:
    """Return the kernels of a folder, or those of one fusion; report if there are none."""
    from indexing.frontends.function_names import is_function
    from indexing.kernels.dumps import kernels_of

    listed: Sequence[Kernel] = ()
    given = str(click.get_current_context().params["folder"])  # a function of JAX by its name
    with reporter.reporting(given):
        if isfile(given):
            raise NotADirectoryError(errno.ENOTDIR, _IS_FILE, folder)
        listed = kernels_of(folder, max_bytes=reporter.input_limit)
        if not listed:
            repair = _NONE if is_function(given) else f"no dumps of kernels; {_REPAIR}"
            raise FileNotFoundError(errno.ENOENT, repair, folder)
    if not listed:
        return None
    chosen = [each for each in listed if fusion is None or fusion in _names(each)]
    if listed and not chosen:
        names = ", ".join([each.name for each in listed[:8]])
        reporter.error(f"error[name]: no kernel `{fusion}` in {given}", f"  = help: it has {names}")
        return None
    return chosen


def _names(kernel: Kernel) -> tuple[str, ...]:
    return (kernel.name,) if kernel.fusion is None else (kernel.name, kernel.fusion.name)
