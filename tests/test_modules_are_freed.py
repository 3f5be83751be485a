"""A module is freed with its last reference, whatever was asked about it.

A cache of the process that holds an instruction keeps the module of it in memory, with its text.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest

import hlo
import indexing
from hlo import Module
from indexing.cli.group import invoke
from indexing.cli.loading import _load_version
from indexing.execution import random_inputs, run

ROOT = Path(__file__).parent.parent
EXAMPLES = [ROOT / "examples" / name for name in ("rnn.pre.hlo", "dynamic_slice_update.opt.hlo")]
"""Both read and write at runtime values, inside of a loop and outside."""

COMMANDS = [
    *("maps --all --direction both", "maps --to parameters --format json", "maps --all --explain"),
    *("maps --verify", "summary", "bytes", "ls", "check", "tile", "report -o {folder}/page.html"),
    *("validate --no-xla --max-elements 64", "run", "diff {file}"),
]


def answers(module: Module) -> Iterator[object]:
    for computation in module.computations.values():
        for instruction in computation.instructions:
            yield indexing.output_to_input(instruction)
            if instruction.operands:
                yield indexing.input_to_output(instruction)
    yield indexing.to_parameters(module.entry.root)


def of_maps(module: Module) -> None:
    for answer in answers(module):
        for maps in answer.maps:  # type: ignore[attr-defined]
            for m in maps:
                m.simplify(), m.inverse(), m.image(), m.count_image(), m.is_equal(m), m.to_json()
                indexing.symbolic_tile(m)


# fmt: off
QUESTIONS: list[tuple[str, Callable[[Module], Any]]] = [
    ("answers",      lambda module: list(map(str, answers(module)))),
    ("maps",         of_maps),
    ("grouped",      lambda module: str(indexing.grouped(module.entry.root))),
    ("tiles",        lambda module: indexing.tile_analysis(module.entry)),
    ("loop nest",    lambda module: indexing.loop_nest(module.entry).source),
    ("run",          lambda module: run(module, random_inputs(module.entry, 0))),
    ("equivalent",   lambda module: indexing.equivalent(module, hlo.parse(str(module)))),
    ("readers",      lambda module: module.readers(module.entry.parameters[0].name)),
]
# fmt: on


@pytest.fixture
def alive(monkeypatch: pytest.MonkeyPatch) -> WeakSet[Module]:
    """The modules made by this test that are not freed."""
    modules = WeakSet[Module]()
    initialise = Module.__init__

    def make(self: Module, *arguments: Any) -> None:
        initialise(self, *arguments)
        modules.add(self)

    monkeypatch.setattr(Module, "__init__", make)
    return modules


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_keeps_a_module(
    command: str, file: Path, alive: WeakSet[Module], tmp_path: Path
) -> None:
    name, *options = command.format(folder=tmp_path, file=file).split()
    assert invoke([name, str(file), *options, "--quiet"]) == 0
    _load_version.cache_clear()  # the last file
    gc.collect()
    assert not list(alive)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
@pytest.mark.parametrize(("name", "ask"), QUESTIONS, ids=[name for name, _ in QUESTIONS])
def test_no_question_keeps_a_module(
    name: str, ask: Callable[[Module], Any], file: Path, alive: WeakSet[Module]
) -> None:
    ask(hlo.load(file))
    gc.collect()
    assert not list(alive)
