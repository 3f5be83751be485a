"""``hlo-indexing run``: execute a module on inputs from a file or on random inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from hlo.text.names import counted_noun
from indexing.cli.integers import IntegerRange
from indexing.cli.options import (
    format_option,
    max_input_size_option,
    seed_option,
)
from indexing.cli.paths import InputPath, OutputPath
from indexing.cli.reporter import Reporter
from indexing.cli.run_tiles import RunCommand, note_differences, tile_entry
from indexing.cli.signals import ending_on_signals
from indexing.cli.tile_options import LoopSizesText, SizesText

if TYPE_CHECKING:
    from hlo.modules.module import Module
    from indexing.codegen.running import Nests
    from indexing.codegen.tile_programs.stepped_runs import SteppedEntry
    from indexing.execution.machine import RunOptions
    from indexing.execution.values import Array

MAX_OPERATIONS = 500_000_000_000
"""Default limit on element operations, as of `indexing.execution.operations`."""

MAX_PRINTED = 12
"""Limit on the elements of an array whose values are printed."""


@click.command("run", cls=RunCommand)
@click.argument("file", metavar="FILE", type=InputPath())
@click.option(
    "--inputs",
    metavar="IN.npz",
    type=InputPath(),
    help="Read inputs in0, in1, .. (tuples flattened in order), or by parameter name, and values "
    "of elided constants, by instruction name; without this option, inputs are random",
)
@click.option(
    "--output",
    "-o",
    metavar="OUT.npz",
    type=OutputPath(stdout="binary"),
    help="Write the results, as arrays named out0, out1 and so on, into a regular file, which is "
    "replaced when all are complete; `-` is standard output",
)
@seed_option("Seed of all random numbers")
@max_input_size_option
@click.option(
    "--max-iterations",
    metavar="N",
    type=IntegerRange(min=0),
    default=1_000_000,
    show_default=True,
    help="Maximum number of iterations of a `while`",
)
@click.option(
    "--max-operations",
    metavar="N",
    type=IntegerRange(min=0),
    default=MAX_OPERATIONS,
    show_default=True,
    help="Maximum number of element operations, such as 5e11, estimated before the execution: of "
    "each instruction the operations that `bytes` counts, or the elements that it reads and "
    "writes if these are more; with several devices, each device adds 1,000,000",
)
@click.option(
    "--elided",
    type=click.Choice(["error", "random"]),
    default="error",
    show_default=True,
    help="What to do with elided constants `{...}`: fail, or use random values",
)
@click.option(
    "--replicas",
    metavar="N",
    type=IntegerRange(min=1),
    default=1,
    show_default=True,
    help="Simulate N devices; input device0.in0 goes to device 0, in0 to every device",
)
@click.option(
    "--tile",
    metavar="SIZES",
    type=SizesText(),
    help="Run the generated NumPy programs tile by tile; SIZES has one size per result dimension, "
    "such as 32,64; results of another rank are not tiled",
)
@click.option(
    "--loops",
    metavar="[STEPS]",
    type=LoopSizesText(),
    help="Run Python loops generated from the maps, of at most 100,000,000 iterations; with --tile "
    "and steps such as k=64, run each tile step by step, each step on copies of the inputs with "
    "only the elements that it needs, and compare the results with a whole execution",
)
@format_option(click.Choice(["text", "json"]))
@click.pass_obj
def command(
    reporter: Reporter,
    file: str,
    inputs: str | None,
    output: str | None,
    seed: int,
    max_iterations: int,
    max_operations: int,
    elided: str,
    replicas: int,
    tile: tuple[int, ...] | None,
    loops: dict[str, int] | None,
    notation: str,
) -> None:
    """Run the module in FILE and print or write its results, tuples flattened in order.

    FILE is HLO text, a protobuf or StableHLO; `-` is standard input.
    Values of arrays with more than 12 elements are not printed: see --output. Types that NumPy
    lacks, such as bf16 and s4, are stored as float32 in .npz files. JSON has an object for each
    array.

    Each instruction is executed by the reference kernel of its op. With --tile or --loops, the
    entry computation runs as loop nests generated from its maps: one nest per result if possible,
    otherwise one nest per instruction or fusion. Instructions without a loop nest fall back to
    kernels; a note on stderr gives the reason. With --tile and --loops STEPS, each tile runs
    through the phases and steps that `tile --loops STEPS` prints, and the status is 1 if a result
    differs from that of a whole execution.

    \b
    Examples:
      hlo-indexing run m.hlo --seed 7 --output out.npz
      hlo-indexing run m.hlo --inputs in.npz --tile 1,16,32
      hlo-indexing run m.hlo --tile 1,4,16,16 --loops k=8
    """
    _check_options(tile, loops, replicas)
    if notation == "json" and output == "-":
        raise click.UsageError("--format json cannot be used with --output -")
    module = reporter.only_module(file)
    if module is not None:
        with ending_on_signals(), reporter.reporting(file):
            if reporter.report_errors(module):
                return
            from indexing.execution.machine import RunOptions
            from indexing.execution.operations import check_operations

            options = RunOptions(seed, max_iterations, elided, max_operations=max_operations)
            check_operations(module.entry, max_operations, replicas)
            program: Nests | SteppedEntry | None = None
            if tile is not None and loops:
                program = tile_entry(reporter, module, tile, loops)
            elif loops is not None or tile is not None:
                program = _nests(reporter, module, tile)
            named = _execute(reporter, module, inputs, replicas, options, program)
            if named is None:
                return
            with reporter.reporting(file if output is None else output):
                if output is not None:
                    _write(reporter, module, named, output, notation)
                if notation == "json":
                    _print_json(reporter, module, named, output)
                elif output is None:
                    _print(reporter, named)


def _check_options(
    tile: tuple[int, ...] | None, loops: dict[str, int] | None, replicas: int
) -> None:
    """Reject options that contradict each other."""
    if tile is not None and loops == {}:
        raise click.UsageError("--tile cannot be used with --loops without steps, such as k=64")
    if loops and tile is None:
        raise click.UsageError("--loops with steps needs --tile")
    if replicas > 1 and (loops is not None or tile is not None):
        option = "--loops" if loops is not None else "--tile"
        raise click.UsageError(f"{option} cannot be used with --replicas")


def _execute(
    reporter: Reporter,
    module: Module,
    inputs: str | None,
    replicas: int,
    options: RunOptions,
    nests: Nests | SteppedEntry | None,
) -> dict[str, Array] | None:
    """Return the results by name, or None if the file with the inputs cannot be read."""
    from indexing.codegen.running import Nests
    from indexing.execution import archive, run
    from indexing.execution.memory import check_memory

    if nests is None:
        check_memory(module.entry, None, replicas)
    read: list[archive.RunInputs] = []
    with reporter.reporting(inputs or module.filename):
        read.append(
            archive.read(inputs, module.entry, replicas, options.seed, reporter.input_limit)
        )
    for given in read:
        if nests is not None:
            results = nests.run(given.inputs, replace(options, constants=given.constants))
            if not isinstance(nests, Nests):
                note_differences(reporter, nests)
            return archive.name_results([results])
        results = run(
            module,
            given.inputs,
            seed=options.seed,
            max_iterations=options.max_iterations,
            replicas=replicas,
            elided=options.elided,
            max_operations=options.max_operations,
            constants=given.constants,
        )
        return archive.name_results(results if replicas > 1 else [results])
    return None


def _nests(reporter: Reporter, module: Module, tile: tuple[int, ...] | None) -> Nests:
    """Return the entry computation as loop nests; note what falls back to kernels."""
    from indexing.codegen.running import nests_of

    nests = nests_of(module, tile)
    for remark in nests.remarks:
        reporter.note(f"note: {module.filename}: {remark}")
    nests.check_memory()
    return nests


def _write(
    reporter: Reporter, module: Module, named: dict[str, Array], output: str, notation: str
) -> None:
    """Write the arrays, and print their number as text."""
    from indexing.execution import archive
    from indexing.execution.output_file import is_stdout

    archive.write(output, named)
    summary = f"{module.filename}: {counted_noun(len(named), 'array')} in {output}"
    if is_stdout(output):
        reporter.note(summary)
    elif notation == "text":
        reporter.print(summary)


def _print_json(
    reporter: Reporter, module: Module, named: dict[str, Array], output: str | None
) -> None:
    """Print a JSON object for each array."""
    from indexing.views.command_records import result_json

    for name, array in named.items():
        reporter.print(result_json(module.filename, name, array, MAX_PRINTED, output))


def _print(reporter: Reporter, named: dict[str, Array]) -> None:
    """Print one line per array: its name, its shape, and its values if there are few."""
    from indexing.execution.archive import type_text

    for name, array in named.items():
        is_short = array.size <= MAX_PRINTED
        values = f"({array.size} elements, see --output)"
        if is_short:
            values = " ".join(map(str, array.ravel().tolist()))
        reporter.print(f"{name}: {type_text(array)} {values}".rstrip())
