"""Reports whose details other processes make: the page is the same, also if they fail."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

import hlo
import indexing.ops  # noqa: F401 - registers the ops
from hlo.modules.module import Module
from indexing.cli.workers import WorkerDeath
from indexing.views.report_page.detail_parts import DetailPart, DetailWorkers, part_details
from indexing.views.report_page.page import page_of_modules
from tests.cli.running import runner

EXAMPLES = Path(__file__).parents[2] / "examples"
CHANGED = "ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }"


@pytest.mark.parametrize("names", ["layernorm.opt", "rnn.pre", "attention.pre attention.opt"])
def test_the_page_does_not_depend_on_the_jobs(
    names: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runner(capsys)
    files = " ".join(str(EXAMPLES / f"{name}.hlo") for name in names.split())
    alone = run(f"report {files} -o -")
    assert alone[0] == 0
    assert run(f"report {files} -o - --jobs 2") == alone


def here(function: Callable[[DetailPart], Any], parts: Sequence[DetailPart]) -> Generator[Any]:
    """Make the details of every other part; the processes of the others have died."""
    for number, part in enumerate(parts):
        made = function(part)
        assert made == part_details(part)
        yield made if number % 2 else WorkerDeath("was killed by signal 9 (Killed)")


def page(module: Module, load: Callable[[Module], Callable[[], Module]] | None) -> str:
    workers = None if load is None else DetailWorkers(3, here, load)
    return page_of_modules([module], None, 20, "values", progress=None, workers=workers).html


@pytest.mark.parametrize("name", ["layernorm.opt.hlo", "rnn.pre.hlo"])
def test_parts_without_a_result_are_made_here(name: str) -> None:
    module, again = hlo.load(EXAMPLES / name), hlo.load(EXAMPLES / name)
    assert page(module, lambda _: lambda: again) == page(module, None)


def test_a_file_that_changes_meanwhile_is_not_used() -> None:
    module, changed = hlo.load(EXAMPLES / "layernorm.opt.hlo"), hlo.parse(CHANGED)
    part = DetailPart(lambda: changed, "digest", frozenset(), True, 0, 2)
    assert part_details(part) is None
    assert page(module, lambda _: lambda: changed) == page(module, None)


def test_a_small_module_has_a_part_for_each_instruction() -> None:
    module = hlo.parse(CHANGED)
    assert page(module, lambda _: lambda: module) == page(module, None)
