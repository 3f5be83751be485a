"""The work for each question grows at most as n log n with the size n of a program.

Work is the number of function calls, of Python and built-in functions.  It is divided by the size
of the answer where the answer itself is larger than n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final

import pytest

import hlo
import indexing
from hlo import Module
from hlo.formats.parser import parse_outlined
from indexing.codegen import running
from indexing.codegen.running import nests_of
from indexing.execution.interpreter import plan
from indexing.execution.values import ExecutionError
from indexing.maps import map_set
from indexing.maps.answers import Answer, Unknown
from tests.growth.programs import PROGRAMS
from tests.growth.work import calls_in
from tests.hlo.test_outlines import Kept
from tests.memos import OF_CHECKS, OF_MAPS, forget

for _family in ("chains", "nested", "wide"):
    import_module(f"tests.growth.{_family}")

SMALL: Final = 24
SMALL_OF_PAIRS: Final = 15
"""The size for answers about all pairs of instructions: 60 * 60 / 2 fit into the memoised maps."""

MAX_GROWTH: Final = 2.0
"""Limit on the growth of the work for each instruction if a program becomes 4 times as large.

It is 1.4 for work of n log n, and 4 for quadratic work.
"""

Question = Callable[[Module], int]


def maps_in(*answers: Answer) -> int:
    return sum(len(maps) for answer in answers for maps in answer.maps)


def swept(module: Module) -> int:
    return sum(map(maps_in, indexing.all_to_parameters(module.entry)))


def count_verified(module: Module) -> int:
    assert not hlo.verify(module)
    return 0


def lines_of_loop_nest(module: Module) -> int:
    nest = indexing.loop_nest(module.entry)
    if isinstance(nest, Unknown):
        return 0
    return len(nest.source.splitlines()) + len(nest.vectorized().source.splitlines())


def count_lowered(module: Module) -> int:
    plan(module.entry)
    try:
        return len(nests_of(module).remarks)
    except ExecutionError:  # calls that double execute too many instructions
        return 0


QUESTIONS: Final[dict[str, Question]] = {
    "print": lambda module: str(module).count("\n"),
    "verify": count_verified,
    "output_to_input": lambda module: maps_in(indexing.output_to_input(module.entry.root)),
    "input_to_output": lambda module: maps_in(indexing.input_to_output(module.entry.root)),
    "to_parameters": lambda module: maps_in(indexing.to_parameters(module.entry.root)),
    "sweep": swept,
    "grouped": lambda module: sum(map(len, indexing.grouped(module.entry.root).values())),
    "loop_nest": lines_of_loop_nest,
    "lower": count_lowered,
    "read_counts": lambda module: len(indexing.read_counts(module.entry.root)),
    "traffic": lambda module: len(indexing.traffic(module).instructions),
    "memory_profile": lambda module: len(indexing.memory_profile(module).buffers),
    "copies": lambda module: len(indexing.copies(module)),
}

EXPONENTIAL: Final = {
    ("doubling_calls", "memory_profile"),
    ("doubling_conditionals", "memory_profile"),
    ("doubling_whiles", "memory_profile"),
}
"""Pairs whose work doubles with each call, up to a budget: `docs/speed.md` has the reason."""


def work(program: str, question: str, n: int) -> float:
    """Return the calls for each of n instructions, or for each part of an answer that is larger.

    What all modules share, such as the shapes that were read before, is made before the count, and
    fits into tables that nothing else has filled.
    """
    forget(*OF_MAPS, *OF_CHECKS)
    text = PROGRAMS[program](n)
    if question == "parse":
        hlo.parse(text)
        calls, size = calls_in(lambda: len(hlo.parse(text).computations))
    elif question == "find by outline":
        kept = Kept()
        parse_outlined(text, "m", True, kept)
        calls, size = calls_in(lambda: len(parse_outlined(text, "m", True, kept)[0].find("*")))
    else:
        QUESTIONS[question](hlo.parse(text))
        module = hlo.parse(text)
        calls, size = calls_in(lambda: QUESTIONS[question](module))
    return calls / max(n, size)


@pytest.fixture(autouse=True)
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limits on maps and nests, so that small programs exceed them."""
    monkeypatch.setattr(map_set, "MAX_MAPS", 4)
    monkeypatch.setattr(map_set, "MAX_EXACT_KEPT", 4)
    monkeypatch.setattr(running, "MAX_PAIRS", 16)


FREQUENT: Final = {"parse": 1, "print": 1, "verify": 1, "to_parameters": 4, "loop_nest": 6}
"""The questions that are not left to the slow tests, about every k-th program."""


def list_questions() -> Iterator[Any]:
    """Yield each program with each question; most pairs are slow tests."""
    for question in ("parse", "find by outline", *QUESTIONS):
        for number, program in enumerate(PROGRAMS):
            if (program, question) in EXPONENTIAL:
                continue
            is_frequent = question in FREQUENT and number % FREQUENT[question] == 0
            yield pytest.param(program, question, marks=[] if is_frequent else pytest.mark.slow)


@pytest.mark.parametrize(("program", "question"), list(list_questions()))
def test_work_is_at_most_n_log_n(program: str, question: str) -> None:
    has_pairs = question == "sweep" and program in READ_BY_ALL_LATER
    n = SMALL_OF_PAIRS if has_pairs else SMALL
    small, large = work(program, question, n), work(program, question, 4 * n)
    assert large <= MAX_GROWTH * small, f"{small:.0f} calls for each instruction became {large:.0f}"


# Questions whose work was quadratic, with a constant too small for 24 instructions.
LINEAR: Final = [
    ("operands_of_map", "loop_nest"),
    ("equal_operands_of_concatenate", "lower"),
]


@pytest.mark.parametrize(("program", "question"), LINEAR)
def test_work_of_generated_code_is_linear_up_to_256(program: str, question: str) -> None:
    work(program, question, 4)
    small, large = work(program, question, 16), work(program, question, 256)
    assert large <= 1.4 * small, f"{small:.0f} calls for each instruction became {large:.0f}"


# ---------------------------------------------------------------- n = 1,024

LARGEST: Final = 1024
MAX_LARGEST_GROWTH: Final = 2.5
"""Limit on the growth of the work for each instruction from n = 16 to 1,024: that of log n."""

LONG: Final = {"loop_nest", "lower", "read_counts", "sweep", "traffic", "memory_profile"}
"""Questions that take minutes for all programs of 1,024 instructions."""


@pytest.mark.slow
@pytest.mark.parametrize("question", ["parse", *(each for each in QUESTIONS if each not in LONG)])
@pytest.mark.parametrize("program", PROGRAMS)
def test_work_is_at_most_n_log_n_up_to_1024(program: str, question: str) -> None:
    small, large = work(program, question, 16), work(program, question, LARGEST)
    assert large <= MAX_LARGEST_GROWTH * small, f"{small:.0f} calls became {large:.0f}"


# Each of n instructions reads all parameters of the instructions before it.
READ_BY_ALL_LATER: Final = [
    "sums_of_parameters",
    "layers",
    "pads_with_own_values",
    "concatenations_of_parameters",
]


@pytest.mark.parametrize("program", READ_BY_ALL_LATER)
def test_a_sweep_over_own_parameters_has_quadratic_answers(program: str) -> None:
    """The pairs of an instruction and a parameter that it reads are more than n²/2: none can be
    omitted, so `work` divides by the size of the answer."""
    for n in (8, 32):
        module = hlo.parse(PROGRAMS[program](n))
        answers = indexing.all_to_parameters(module.entry)
        assert sum(bool(maps) for answer in answers for maps in answer.maps) >= n * n / 2
