"""``hlo-indexing run``: a module's results, from inputs in a file or random ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from indexing.commands.reporter import Reporter, counted

if TYPE_CHECKING:
    from hlo.module import Module
    from indexing.execution.values import Array

LINE = 12
"""Arrays with so many elements or fewer are printed with their values."""


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
) -> None:
    """Run the module in FILE and print or write its results, tuples taken apart in order.

    Types that NumPy lacks, such as bf16 and s4, are float32 in .npz files.
    """
    modules = list(reporter.modules([file]))
    if len(modules) > 1:
        reporter.error(f"error[input]: {file}: it holds {len(modules)} modules, but one is run")
        return
    for module in modules:
        with reporter.reporting(file):
            from indexing.execution import archive, run
            from indexing.execution.memory import check_room

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


def _print(reporter: Reporter, module: Module, named: dict[str, Array], output: str | None) -> None:
    """One line for each array: its name, its type and sizes, and its values if they are few."""
    from indexing.execution.archive import type_text

    if output:
        reporter.print(f"{module.filename}: {counted(len(named), 'array')} in {output}")
        return
    for name, array in named.items():
        values = " ".join(map(str, array.ravel().tolist())) if array.size <= LINE else "..."
        reporter.print(f"{name}: {type_text(array)} {values}".rstrip())
