"""Every question about a mutant has an answer, `Unknown` or an `HloError`, and no wrong answer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import hlo
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.transpose import Reverse
from tests.analysis_fuzz.bases import programs
from tests.analysis_fuzz.mutants import mutant
from tests.analysis_fuzz.questions import WrongAnswerError, _tile_on, ask, questions_about
from tests.analysis_fuzz.rows import Program
from tests.analysis_fuzz.shrink import shrunk
from tests.oracles import scale

FOUND = (Path(__file__).parent / "found.hlo").read_text().split("// -----\n")[1:]
QUESTIONS = 3
CASES = 20
COUNT = scale(5_000 // CASES)


def reason(text: str) -> str:
    return text.partition("\n")[0].removeprefix("// ")


@pytest.mark.parametrize("text", FOUND, ids=list(map(reason, FOUND)))
def test_mutants_that_failed_once_have_answers(text: str) -> None:
    assert ask(text, seed=1)["parse"] == "answer"
    ask(text, seed=2)


@pytest.mark.sampled
@pytest.mark.parametrize("case", range(CASES))
def test_mutants_have_answers(case: int) -> None:
    """A failure names its seed: ``python -m tests.analysis_fuzz --seed SEED --count 1``."""
    bases = programs()
    for seed in range(case * COUNT, (case + 1) * COUNT):
        try:
            ask(mutant(bases, seed), seed, QUESTIONS)
        except Exception as error:
            error.add_note(f"python -m tests.analysis_fuzz --seed {seed} --count 1")
            raise


def test_mutants_reach_every_question_with_answers_and_with_errors() -> None:
    bases = programs()
    outcomes: Counter[tuple[str, str]] = Counter()
    for seed in range(600):
        outcomes.update(ask(mutant(bases, seed), seed, 4).items())
    is_answered = {question for question, outcome in outcomes if outcome == "answer"}
    is_refused = {question for question, outcome in outcomes if outcome.startswith("error")}
    names = {name for name, _ in questions_about(hlo.parse(str(bases[0])), 0, is_valid=True)}
    assert names <= is_answered
    assert names - {"validated", "perturbed", "gather_of"} <= is_refused
    assert len({outcome for _, outcome in outcomes}) > 10


def test_unmutated_modules_have_answers() -> None:
    for seed, program in enumerate(dict.fromkeys(map(str, programs()[:12]))):
        assert ask(program, seed)["verify"] == "answer"


def test_rows_print_as_the_module_that_they_were_read_from() -> None:
    for program in programs()[:12]:
        assert str(Program.of(hlo.parse(str(program)))) == str(program)


def test_a_wrong_map_is_found_by_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an output-to-input map of reverse that is right for the middle row only."""
    text = "ENTRY e { p = f32[3,4] parameter(0)  ROOT r = f32[3,4] reverse(p), dimensions={0} }"
    ask(text, 0)
    monkeypatch.setattr(
        Reverse, "output_to_input", lambda op, out, operand: IndexingMap.identity(out)
    )
    with pytest.raises(WrongAnswerError):
        ask(text.replace("3,4", "5,4"), 0)


def test_rounding_that_a_division_amplifies_is_no_wrong_answer() -> None:
    """With these inputs, the sum at [1, 2, 5] is 1e-4, with an error of 1e-7."""
    text = """
      add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
      ENTRY e {
        one = f32[] constant(1)
        q = f32[2,4,16] parameter(1)
        p = f32[2,4,16,16] parameter(0)
        s = f32[2,4,16] reduce(p, one), dimensions={3}, to_apply=add
        ROOT d = f32[2,4,16] divide(q, s)
      }"""
    seed = 20693118
    with pytest.raises(WrongAnswerError):
        _tile_on(hlo.parse(text), seed)
    ask(text, seed)


def test_a_failure_shrinks_to_the_instructions_that_cause_it() -> None:
    text = str(programs()[0])
    small = shrunk(text, lambda each: "dynamic-slice" in each)
    assert len(small.splitlines()) < 12 < len(text.splitlines())
