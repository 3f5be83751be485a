"""``hlo-indexing memory``: the buffers of modules along their schedules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from indexing.cli.assignment_option import (
    assignment_option,
    load_assignment,
    load_usage,
    usage_option,
)
from indexing.cli.corpus import Corpus
from indexing.cli.corpus_options import corpus_options
from indexing.cli.jax_inputs import compiled_files, is_fresh
from indexing.cli.options import (
    files_argument,
    format_option,
    limit_option,
    max_input_size_option,
)
from indexing.cli.parsed_text import ParsedText
from indexing.cli.reporter import Reporter
from indexing.cli.tasks import ValidModules, answer_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hlo.modules.module import Module
    from indexing.cli.tasks import Progress, View
    from indexing.frontends.layout_trials import LayoutTrial
    from indexing.frontends.request import CompilationRequest
    from indexing.memory.buffers.profile import MemoryProfile
    from indexing.views.map_tables import Paint
    from simplifier.unknown import Unknown

DEFAULT_ROWS = 12


class MemoryDevice(ParsedText):
    """The name of a device whose memories are known.

    >>> MemoryDevice().convert("v5e", None, None)
    'v5e'
    """

    name = "device"

    def parse(self, text: str) -> str:
        from indexing.devices.memories import memory_sizes

        memory_sizes(text)
        return text

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        from indexing.cli.completion import complete_names
        from indexing.devices.gpus import PROCESSORS
        from indexing.devices.tpus import VMEM_MIB

        return complete_names([*PROCESSORS, *VMEM_MIB], incomplete)


@click.command("memory")
@files_argument
@click.option("--at-peak", is_flag=True, help="Print the buffers that are alive at the peak only")
@click.option(
    "--copies", is_flag=True, help="Print the copies, what they are for, and whether they can go"
)
@click.option(
    "--try-layouts",
    is_flag=True,
    help="With --copies: compile a function jax:... again with the layouts that spare its copies",
)
@limit_option(
    f"Print at most N buffers of each memory space; by default {DEFAULT_ROWS}, in JSON all"
)
@click.option(
    "--device",
    metavar="DEVICE",
    type=MemoryDevice(),
    help="Compare the peaks with the memories of a TPU or GPU, such as v5e or H100; by default "
    "those of --target",
)
@assignment_option
@usage_option
@max_input_size_option
@format_option(click.Choice(["text", "json", "svg"]))
@corpus_options
@click.pass_obj
def command(
    reporter: Reporter,
    corpus: Corpus,
    at_peak: bool,
    copies: bool,
    try_layouts: bool,
    limit: int | None,
    device: str | None,
    assignment: str | None,
    usage: str | None,
    notation: str,
) -> None:
    """Print the memory that the modules in FILE... hold: buffers, their lives, and the peaks.

    A FILE is HLO text, a protobuf, StableHLO, or a folder of them, such as dumps of XLA; `-` is
    standard input. The steps are the instructions in the order of the text, those of called
    computations before their call; the text of a compiled module has the order of execution.

    Sizes are those in memory, with the padding of tiled layouts. Each memory space has its own
    peak: on TPUs HBM, VMEM and others, by the layouts `S(..)`. Arrays share a buffer where XLA's
    rules demand it: views, the state of loops, updates in place, donated arguments. A compiler may
    reuse memory for more arrays; XLA's buffer assignment states where it did. If XLA dumped its
    assignment and its report of memory usage beside FILE, or with --assignment and --usage, their
    sizes are compared with those computed here.

    With --copies, the copies outside fusions are printed instead: copies that change the layout or
    the memory space, that keep a value which is overwritten, and fusions that only move elements. A
    copy is not needed if each reader is a loop that can read the other layout, or if neither the
    source nor the copy is written while the other is read. A proposal is a layout of an argument or
    a result, from minor to major, with which the copy is superfluous. With --try-layouts, a
    function jax:... is compiled again with all proposals, and the output lists the removed copies,
    and the bytes and peaks before and after.

    \b
    Columns:
      stored    bytes in memory
      padding   those of them that hold no element
      kind      argument, donated (an output takes its memory), output, constant or temporary
      alive     the steps from the first write to the last read
      array     the instruction that writes it first, and how many others share the buffer

    \b
    Examples:
      hlo-indexing memory m.hlo
      hlo-indexing memory m.hlo --at-peak --limit 30
      hlo-indexing memory m.hlo --copies
      hlo-indexing memory jax:layers.py:look_up --shapes 'f32[99,64],s32[9]' --target tpu:v5e:2x2 \\
        --copies --try-layouts
      hlo-indexing memory m.hlo --at-peak --format svg -o memory.svg
      hlo-indexing memory m.hlo --assignment m-buffer-assignment.txt
    """
    if copies and (at_peak or device or assignment or usage or notation == "svg"):
        refused = "--at-peak, --device, --assignment, --usage or --format svg"
        raise click.UsageError(f"--copies cannot be used with {refused}")
    fresh = is_fresh(click.get_current_context())
    compiled = compiled_files(click.get_current_context())
    requests = _requests(corpus.files, compiled, copies) if try_layouts else None
    devices = {file: _model(request) for file, request in compiled.items()}
    question = MemoryQuestion(
        at_peak,
        copies,
        limit,
        assignment,
        usage,
        notation,
        requests,
        not fresh,
        device or "",
        devices,
        reporter.width,
    )
    if notation != "svg":
        answer_files(reporter, corpus, question)
        return
    if corpus.workers is not None or corpus.journal is not None:
        raise click.UsageError("--format svg cannot be used with --jobs, --scheduler and --resume")
    from indexing.cli.pictures import draw_memory

    draw_memory(reporter, corpus.files, limit, at_peak, question.profile)


def _model(request: CompilationRequest) -> str:
    """Return the device of a target, or "" for a CPU."""
    from indexing.frontends.targets import Target

    return Target.parse(request.target).model if request.target else ""


def _requests(
    files: Sequence[str], compiled: Mapping[str, CompilationRequest], copies: bool
) -> Mapping[str, CompilationRequest]:
    """Return how each file was compiled, to compile it again with other layouts."""
    if not copies:
        raise click.UsageError("--try-layouts requires --copies")
    for file in files:
        if file not in compiled:
            raise click.UsageError(
                "--try-layouts compiles a function of JAX again: expected "
                f"jax:FILE.py:FUNCTION with --shapes and --target, got {file}"
            )
    return compiled


@dataclass(frozen=True, slots=True)
class MemoryQuestion(ValidModules):
    """The buffers of each module.

    Attributes:
        at_peak: only those that are alive at the peak.
        copies: the copies of each module instead.
        limit: the number of buffers of a memory space; None for the default of the format.
        assignment, usage: the files with XLA's buffer assignment and its report of memory usage;
            None for those beside the module.
        notation: the output format.
        requests: how each file was compiled, if layouts are tried, by the name of the file.
        uses_cache: take compilations from the cache.
        device: the device whose memories are compared with the peaks; "" for that of the target.
        devices: that of the target, by the name of the file.
        width: the number of columns of a terminal; None without a terminal.
    """

    at_peak: bool
    copies: bool
    limit: int | None
    assignment: str | None
    usage: str | None
    notation: str
    requests: Mapping[str, CompilationRequest] | None = None
    uses_cache: bool = True
    device: str = ""
    devices: Mapping[str, str] = field(default_factory=dict)
    width: int | None = None

    def profile(self, module: Module) -> MemoryProfile | Unknown:
        """Return the buffers of a module, with the dumps of XLA that are given or beside it."""
        from indexing.memory.buffers.profile import memory_profile

        return memory_profile(
            module,
            load_assignment(module, self.assignment),
            load_usage(module, self.usage),
        )

    def view(self, module: Module, progress: Progress, paint: Paint) -> View:
        """Return tables of buffers, and their record."""
        from indexing.memory.buffers.array_copies import copies
        from indexing.views.memory_tables import (
            CopyTable,
            MemoryTable,
            unknown_lines,
            unknown_record,
        )
        from simplifier.unknown import Unknown

        if self.copies:
            moved = CopyTable(module, copies(module), self._trial(module))
            lines = moved.lines(self.limit or DEFAULT_ROWS, paint)
            return lines, map(moved.to_json, [self.limit])
        profile = self.profile(module)
        if isinstance(profile, Unknown):
            known = module.filename, module, profile
            return unknown_lines(*known), iter([unknown_record(*known)])
        device = self.device or self.devices.get(module.filename, "")
        table = MemoryTable(module.filename, profile, self.at_peak, device)
        lines = table.lines(self.limit or DEFAULT_ROWS, paint, self.width)
        return lines, map(table.to_json, [self.limit])

    def _trial(self, module: Module) -> LayoutTrial | None:
        if self.requests is None:
            return None
        from indexing.frontends.layout_trials import trial_of

        return trial_of(module, self.requests[module.filename], uses_cache=self.uses_cache)
