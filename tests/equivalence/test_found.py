"""The programs of `docs/found.md`: their values by the interpreter, and by XLA:CPU."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from benchmarks.found import FOLDER, HEAD, PAGE, body, interpret, measure, number_text
from benchmarks.found_cases import CASES, Case
from indexing.execution import xla


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_interpreter_returns_the_value_of_the_semantics(case: Case) -> None:
    assert interpret(case) == ("any value" if case.value is None else number_text(case.value))


def test_every_program_is_a_case() -> None:
    assert sorted(case.name for case in CASES) == sorted(p.stem for p in FOLDER.glob("*.hlo"))


@pytest.mark.slow
@pytest.mark.skipif(not xla.is_available(), reason="needs jaxlib (extra xla)")
def test_the_page_is_what_xla_shows() -> None:
    """`python -m benchmarks.found` writes the page; other versions may have other faults."""
    head, line, rest = PAGE.read_text().partition(f"jaxlib {version('jaxlib')}, ")
    if not line:
        pytest.skip("the page is of another version of jaxlib")
    assert head == HEAD
    assert rest.partition("\n\n")[2] == body(measure())
