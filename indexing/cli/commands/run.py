"""``hlo-indexing run``: a module's results, from inputs in a file or random ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from indexing.cli.reporter import Reporter, counted

if TYPE_CHECKING:
    from hlo.modules.module import Module
    from indexing.codegen.running import Nests
    from indexing.execution.values import Array

LINE = 12
"""Arrays with so many elements or fewer are printed with their values."""


def _tile(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    """The sizes that an option lists."""
    if value is None:
        return None
    words = value.split(",")
    if not all(word.strip().isdecimal() and int(word) > 0 for word in words):
        raise click.BadParameter(f"{value!r} is no list of positive sizes, such as 32,64")
    return tuple(map(int, words))


@click.command("run")
@click.argument("file", metavar="FILE")
@click.option(
    "--inputs",
    metavar="IN.npz",
    help="The inputs, as in0, in1, .. (tuples taken apart in order), or by the parameters' names; "
    "also values for elided constants, by their names. Without it, inputs are random.",
)
@click.option("--output", metavar="OUT.npz", help="Where to write the results, as out0, out1, ..")
@click.option(
    "--seed", metavar="N", default=0, show_default=True, help="Of random inputs and numbers."
)
@click.option(
    "--max-trips",
    metavar="N",
    type=click.IntRange(min=0),
    default=1_000_000,
    show_default=True,
    help="How often a loop may run its body.",
)
@click.option(
    "--elided",
    type=click.Choice(["error", "random"]),
    default="error",
    show_default=True,
    help="What constants are whose values the text leaves out, {...}.",
)
@click.option(
    "--replicas",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Simulate N devices. Inputs device0.in0, .. are for one of them, results come from each.",
)
@click.option(
    "--tile",
    metavar="SIZES",
    callback=_tile,
    help="Run as NumPy programs made from the maps, box by box of these sizes: 32,64. "
    "Results of another rank are computed whole.",
)
@click.option("--loops", is_flag=True, help="Run as loops of Python made from the maps.")
@click.pass_obj
def command(
    reporter: Reporter,
    file: str,
    inputs: str | None,
    output: str | None,
    seed: int,
    max_trips: int,
    elided: str,
    replicas: int,
    tile: tuple[int, ...] | None,
    loops: bool,
) -> None:
    """Run the module in FILE and print or write its results, tuples taken apart in order.

    Types that NumPy lacks, such as bf16 and s4, are float32 in .npz files.

    Each instruction is computed by the kernel of its op. With --tile or --loops the entry runs as
    loop nests made from its maps: as a whole, or else each instruction and fusion by itself. What
    is no loop nest is run as usual; standard error says what, and why.
    """
    if tile is not None and loops:
        raise click.UsageError("--tile runs NumPy programs and --loops runs loops: take one")
    if replicas > 1 and (loops or tile is not None):
        raise click.UsageError("--tile and --loops are for one device: leave out --replicas")
    modules = list(reporter.modules([file]))
    if len(modules) > 1:
        reporter.error(f"error[input]: {file}: it holds {len(modules)} modules, but one is run")
        return
    for module in modules:
        with reporter.reporting(file):
            from indexing.execution import archive, run

            if not reporter.is_sound(module):
                return
            from indexing.execution.machine import RunOptions
            from indexing.execution.memory import check_room

            results: Any
            if loops or tile is not None:
                nests = _nests(reporter, module, tile)
                given = archive.read(inputs, module.entry, replicas, seed)
                results = nests.run(
                    given.inputs, RunOptions(seed, max_trips, elided, given.constants)
                )
            else:
                check_room(module.entry, None, replicas)
                given = archive.read(inputs, module.entry, replicas, seed)
                results = run(
                    module,
                    given.inputs,
                    seed=seed,
                    max_trips=max_trips,
                    replicas=replicas,
                    elided=elided,
                    constants=given.constants,
                )
            named = archive.named(results if replicas > 1 else [results])
            with reporter.reporting(output or file):
                if output:
                    archive.write(output, named)
                _print(reporter, module, named, output)


def _nests(reporter: Reporter, module: Module, tile: tuple[int, ...] | None) -> Nests:
    """The entry as loop nests; what is none is said."""
    from indexing.codegen.running import nests_of

    nests = nests_of(module, tile)
    for remark in nests.remarks:
        reporter.note(f"note: {module.filename}: {remark}")
    nests.check_room()
    return nests


def _print(reporter: Reporter, module: Module, named: dict[str, Array], output: str | None) -> None:
    """One line for each array: its name, its type and sizes, and its values if they are few."""
    from indexing.execution.archive import type_text

    if output:
        reporter.print(f"{module.filename}: {counted(len(named), 'array')} in {output}")
        return
    for name, array in named.items():
        values = " ".join(map(str, array.ravel().tolist())) if array.size <= LINE else "..."
        reporter.print(f"{name}: {type_text(array)} {values}".rstrip())
