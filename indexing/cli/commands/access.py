"""``hlo-indexing access``: the sectors and lines of memory that warps touch."""

from __future__ import annotations

import os
from math import prod
from typing import TYPE_CHECKING, Any, Final

import click

from indexing.cli.integers import IntegerRange
from indexing.cli.options import (
    format_option,
    instruction_option,
    max_input_size_option,
    output_option,
)
from indexing.cli.parsed_text import ParsedText
from indexing.cli.paths import InputPath
from indexing.cli.pictures import print_figures
from indexing.cli.reporter import Reporter
from indexing.cli.selected import place_of, selected_instructions

if TYPE_CHECKING:
    from hlo.modules.module import Instruction
    from indexing.drawing.figures import Figure
    from indexing.views.access_tables import AccessSubject

MAX_THREADS: Final = 1024
"""Threads of a block at most, on all GPUs of `indexing.devices.gpus`."""


class ThreadsText(ParsedText):
    """The number of threads along x, or along x, y and z.

    >>> ThreadsText().convert("32,4", None, None)
    (32, 4)
    """

    name = "threads"

    def parse(self, text: str) -> tuple[int, ...]:
        words = [word.strip() for word in text.split(",")]
        if not 1 <= len(words) <= 3 or not all(w.isascii() and w.isdigit() for w in words):
            raise ValueError(f"expected numbers such as 128 or 32,4; got {text!r}")
        counts = tuple([int(word) if len(word) < 5 else 0 for word in words])
        if not 1 <= prod(counts) <= MAX_THREADS:
            raise ValueError(f"a block has 1 to {MAX_THREADS} threads; got {text!r}")
        return counts


class DeviceName(ParsedText):
    """The name of a GPU."""

    name = "device"

    def parse(self, text: str) -> str:
        from indexing.devices.gpus import gpu

        return gpu(text).name

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        from indexing.cli.completion import complete_names
        from indexing.devices.gpus import GPUS

        return complete_names(GPUS, incomplete)


@click.command("access")
@click.argument("file", metavar="FILE", type=InputPath())
@instruction_option
@click.option(
    "--threads",
    metavar="N[,N[,N]]",
    type=ThreadsText(),
    default="128",
    show_default=True,
    help="Choose the number of threads of a block, along x, or along x, y and z",
)
@click.option(
    "--unroll",
    metavar="N",
    type=IntegerRange(min=1, max=1 << 10),
    default=1,
    show_default=True,
    help="Choose the number of elements of a vector, which one thread computes",
)
@click.option(
    "--device",
    metavar="GPU",
    type=DeviceName(),
    default="A100",
    show_default=True,
    help="Choose the GPU, such as H100: the sizes of its warps, sectors and lines",
)
@output_option("Count the threads that compute output N")
@max_input_size_option
@format_option(click.Choice(["text", "json", "svg"]))
@click.pass_obj
def command(
    reporter: Reporter,
    file: str,
    names: tuple[str, ...],
    threads: tuple[int, ...],
    unroll: int,
    device: str,
    output: int,
    notation: str,
) -> None:
    """Count the sectors and lines of memory that all warps of an instruction touch.

    FILE is HLO text, a protobuf or StableHLO; `-` is standard input. Without --instruction, the
    root of the ENTRY computation is counted. Parameters, bitcasts, tuples and the like move no
    bytes: they are omitted, with a note.

    Threads compute the elements of the output in the order of XLA's loop emitter. Each operand,
    and the output, has a row: the bytes that lanes request, and the bytes, sectors and lines that
    move, added over all warps. Counts are exact, with the alignment of every address. Arrays start
    at a line; nothing stays in the cache between two instructions of a warp. If an operand depends
    on start indices that are unknown, the counts are those of the worst starts. All counts include
    elements that a mask hides: they are loaded, too. If the output needs fewer of the distinct
    bytes of an operand than are loaded, both numbers follow the table.

    If XLA dumped the kernel of the instruction beside FILE, a note shows how `kernels` counts its
    sectors, with its own threads and loops in place of those of the loop emitter.

    A TPU has no warps: its modules are refused, and `tile` counts what tiles of their layouts need.

    \b
    Columns:
      requested       bytes of all lanes; an element that several lanes read counts several times
      used            distinct bytes that each warp requests: lanes that read the same count once
      transferred     bytes of the sectors that warps touch
      ratio           transferred / used; 1 is the optimum
      warps           how often a warp executes a load or store
      XLA             the verdict of XLA's rule: the first warp, the iterations of one loop together
      worst warp      a warp with the most sectors
      <=              an upper bound, from a `may` map

    \b
    Examples:
      hlo-indexing access m.hlo -i transpose_copy_fusion.2 --threads 128
      hlo-indexing access m.hlo -i ynn_fusion.3 --unroll 4 --device H100
      hlo-indexing access m.hlo -i ynn_fusion.3 --format svg -o lanes.svg
      hlo-indexing access m.hlo -i ynn_fusion.3 --format json | jq '{name, ratio}'
    """
    from indexing.drawing.warp_pictures import accesses_figure
    from indexing.memory.movement.writes import moves_bytes
    from indexing.memory.spaces import is_for_tpu
    from indexing.memory.warps.access import access
    from indexing.views.access_tables import AccessSubject, access_lines, access_records
    from indexing.views.map_query import Query

    figures: list[Figure] = []
    emitted = _emitted_fusions(file)
    query = Query(output_id=output)
    for instruction in selected_instructions(reporter, file, names, query):
        if is_for_tpu(instruction.computation.module):
            _report_tpu(reporter, instruction)
            continue
        if not moves_bytes(instruction):
            _report_no_bytes(reporter, instruction, is_selected=bool(names))
            continue
        if instruction.name in emitted:
            reporter.note(
                f"note: {place_of(instruction)}: its kernel is beside the module: `kernels "
                f"{os.path.dirname(file) or '.'} -i {instruction.name}` counts its own threads"
            )
        subject = AccessSubject(instruction, threads, unroll, device, output)
        with reporter.reporting(place_of(instruction)):
            accesses = access(instruction, threads, unroll, device, output_id=output)
            if notation == "svg":
                figures.append(accesses_figure(accesses, _title(subject)))
            else:
                lines = access_lines(subject, accesses, reporter.paint, reporter.width)
                reporter.print_answer(notation, lines, access_records(subject, accesses))
    print_figures(reporter, figures)


def _emitted_fusions(file: str) -> frozenset[str]:
    """Return the fusions whose kernels XLA dumped beside a module."""
    from hlo.text.source import HloError
    from indexing.kernels.dumps import kernels_beside

    try:
        kernels = [each for each in kernels_beside(file) if each.target == "gpu"]
    except (OSError, HloError):
        return frozenset()  # `kernels` reports the error
    return frozenset([each.fusion.name for each in kernels if each.fusion is not None])


def _report_tpu(reporter: Reporter, instruction: Instruction) -> None:
    """Report an instruction of a module whose layouts have tiles, and what to ask instead."""
    from hlo.shapes.shape import Shape
    from hlo.shapes.tiling import tile_sizes

    shape = instruction.shape
    options = "-i NAME --sizes SIZES"
    if isinstance(shape, Shape) and shape.rank:
        first = tile_sizes(shape.dims, shape.layout_or_default)
        options = f"-i {instruction.name} --sizes {','.join(map(str, first))}"
    reporter.error(
        f"error[access]: {place_of(instruction)}: the module is for a TPU, which has no warps",
        f"  = help: `tile {options}` counts what each tile of the layout needs; "
        "`bytes` and `memory` count what is moved and stored",
    )


def _title(subject: AccessSubject) -> str:
    """Return the title of a picture: the instruction and its launch."""
    threads = " x ".join(map(str, subject.threads))
    return (
        f"memory accesses of {subject.instruction.name}, {threads} threads, unroll "
        f"{subject.unroll}, {subject.device}"
    )


def _report_no_bytes(reporter: Reporter, instruction: Instruction, is_selected: bool) -> None:
    """Report an instruction that launches no threads: an error only if nothing else is counted."""
    from indexing.memory.movement.writes import moves_bytes

    message = f"{place_of(instruction)}: a {instruction.opcode} moves no bytes"
    if is_selected:
        reporter.note(f"note: {message}")
        return
    operand = instruction
    while operand.operands and not moves_bytes(operand):
        operand = operand.operands[0]
    name = f"-i {operand.name}" if moves_bytes(operand) else "-i NAME"
    reporter.error(
        f"error[access]: {message}",
        f"  = help: select an instruction that computes an array, such as {name}",
    )
