"""``run --tile … --loops …``: tiles that are executed step by step."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import click

from hlo.text.names import counted_noun
from indexing.cli.reporter import Reporter

if TYPE_CHECKING:
    from hlo.modules.module import Module
    from indexing.codegen.tile_programs.stepped_runs import SteppedEntry

_STEPS: Final = re.compile(r"\[?\s*\w+\s*=\s*\d+.*")


class RunCommand(click.Command):
    """The command ``run``, whose option ``--loops`` may have no value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_values(args))


def with_values(words: list[str]) -> list[str]:
    """Return the words of a command line with an empty value for ``--loops`` that has none.

    >>> with_values(["m.hlo", "--loops", "--seed", "1"]), with_values(["--loops", "k=8", "m.hlo"])
    (['m.hlo', '--loops=', '--seed', '1'], ['--loops=k=8', 'm.hlo'])
    """
    joined: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*joined, word, *rest]
        if word == "--loops":
            has_value = bool(rest) and _STEPS.fullmatch(rest[0])
            word = f"--loops={rest.pop(0) if has_value else ''}"
        joined.append(word)
    return joined


def tile_entry(
    reporter: Reporter, module: Module, tile: tuple[int, ...], loops: dict[str, int]
) -> SteppedEntry:
    """Return the entry computation, tiled with loops; note what is executed whole."""
    from indexing.codegen.tile_programs.stepped_runs import stepped_entry

    entry = stepped_entry(module, tile, loops)
    for remark in entry.remarks:
        reporter.note(f"note: {module.filename}: {remark}")
    return entry


def note_differences(reporter: Reporter, entry: SteppedEntry) -> None:
    """Note how the results differ from those of a whole execution."""
    filename = entry.module.filename
    if entry.by_result is not None:
        for number, program in enumerate(entry.by_result):
            blocks = counted_noun(program.tiling.blocks, "block")
            steps = counted_noun(program.tiling.steps, "step")
            reporter.note(f"note: {filename}: out{number}: {blocks}, each in {steps}")
    most = max(entry.differences, default=0.0)
    reporter.note(
        f"note: {filename}: the results are those of a whole execution, up to {most:.2g} of the "
        "largest element"
    )
