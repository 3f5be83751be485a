"""``hlo-indexing dump``: what XLA dumps while it compiles a function of JAX."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click

from hlo.text.names import counted_noun
from indexing.cli.jax_inputs import compile_input, named_function
from indexing.cli.paths import InputPath, OutputFolder
from indexing.cli.reporter import Reporter
from indexing.frontends.function_names import EXAMPLE, FORM, is_function

_STAGES = ("all", "lowered", "optimized", "passes", "kernels")


@click.command("dump")
@click.argument("function", metavar="FUNCTION", type=InputPath(""))
@click.option(
    "--output-folder",
    "-o",
    "folder",
    metavar="FOLDER",
    required=True,
    type=OutputFolder(),
    help="Write the files into FOLDER, which is created",
)
@click.option(
    "--stage",
    type=click.Choice(_STAGES),
    default="all",
    show_default=True,
    help="Choose what is dumped: the module as JAX passes it to XLA, as it is compiled, after each "
    "pass, or the kernels",
)
@click.pass_obj
def command(reporter: Reporter, function: str, folder: str, stage: str) -> None:
    """Compile a function of JAX, and write what XLA dumps.

    FUNCTION is jax:FILE.py:FUNCTION or jax:MODULE:FUNCTION. It is compiled for TARGET, a TPU or a
    GPU that this machine need not have, or for the CPU. The other commands read the folder; they
    also read functions themselves, and cache the compiled modules.

    \b
    Examples:
      hlo-indexing dump jax:layers.py:mlp --shapes 'f32[8,64],f32[64,64]' -o dumps
      hlo-indexing dump jax:layers.py:mlp --shapes 'f32[8,64],f32[64,64]' --target tpu:v5e:2x2 \\
        --stage passes -o dumps
      hlo-indexing passes dumps
    """
    if not is_function(function):
        raise click.UsageError(f"{function!r} is not a function: write {FORM}, such as {EXAMPLE}")
    context = click.get_current_context()
    source = named_function(context, function)
    answer = compile_input(context, source, source.stage or stage)
    with reporter.reporting(folder):
        os.makedirs(folder, exist_ok=True)
        files = [answer.path]
        if answer.dump.is_dir():
            files += sorted(each for each in answer.dump.rglob("*") if each.is_file())
        for file in files:
            inner = file.relative_to(answer.folder if file == answer.path else answer.dump)
            place = Path(folder, inner)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)
        reporter.print(f"{counted_noun(len(files), 'file')} in {folder}")
