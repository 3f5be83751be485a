"""Maps of JAX programs with masks, constant indices and runtime positions, against executions.

`python -m benchmarks.masks` judges these and many more programs on XLA:CPU, and writes the files.
"""

from __future__ import annotations

import pathlib
import random
from dataclasses import replace
from typing import Final

import numpy as np
import pytest

import hlo
import indexing
from hlo import Module
from indexing.execution import xla
from indexing.maps.answers import Answer
from tests.dataflow import loop_judge
from tests.dataflow.influence import Pokes
from tests.dataflow.loop_judge import answers, miss
from tests.dataflow.random_masks import VALUES, program, superfluous
from tests.oracles import scale

FOLDER = pathlib.Path(__file__).parent / "data" / "masks"
FILES = sorted(path.name for path in FOLDER.glob("*.hlo"))
SEEDS = range(2)
RANDOM = 20

TIGHT: Final = {
    *("associative_sum", "index_two", "one_hot_of_floats", "set_at_constants", "slice_of_block"),
    *("cache_update_and_attend", "take_constants"),
}
"""The programs of which exact maps relate only what executions show."""


def pokes_of(module: Module, seed: int) -> Pokes:
    """Return executions in which each element has changed."""
    pokes = Pokes.of(module.entry, seed)
    for place in pokes.places():
        pokes.poke(*place, values=VALUES)
    assert pokes.results is not None
    return pokes


@pytest.mark.parametrize("name", FILES)
def test_maps_have_every_dependency_of_an_execution(name: str) -> None:
    module = hlo.load(str(FOLDER / name))
    for seed in SEEDS:
        pokes = pokes_of(module, seed)
        assert any(mask.any() for mask in pokes.seen.values())
        assert not list(miss(module, pokes))
        if name.partition(".")[0] in TIGHT:
            assert not list(superfluous(module, pokes))


@pytest.mark.sampled
def test_maps_of_random_masks_have_every_dependency_of_an_execution() -> None:
    first = random.randrange(1 << 30) if scale(10) > 10 else 0
    for seed in range(first, first + scale(RANDOM)):
        made = program(seed)
        faults = [*miss(*made), *miss(*made, exact=True)] if made else []
        assert not faults, f"seed {seed}: {faults[0]}\n{made and made[0]}"


def test_a_value_that_equals_its_own_index_is_not_its_index() -> None:
    made = program(9099)
    assert made
    assert not list(miss(*made))


def test_most_random_masks_are_executed() -> None:
    """Integers are divided by zero in the others, for example."""
    assert sum(program(seed) is not None for seed in range(10)) >= 7


# ---------------------------------------------------------------- the judges


@pytest.mark.parametrize("name", ["causal_tril.lowered.hlo", "causal_least.optimized.hlo"])
def test_maps_that_lack_elements_are_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_last_row(answer: Answer) -> Answer:
        maps = [
            tuple([m.restrict(d0=slice(0, m.dims[0].upper)) for m in of_operand])
            for of_operand in answer.maps
        ]
        return replace(answer, maps=tuple(maps))

    module = hlo.load(str(FOLDER / name))
    lacking = [without_last_row(each) for each in answers(module)]
    monkeypatch.setattr(loop_judge, "answers", lambda *_: lacking)
    assert " depends on " in "".join(miss(module, pokes_of(module, 0)))


def test_maps_that_have_more_elements_are_noticed() -> None:
    module = hlo.load(str(FOLDER / "take_constants.lowered.hlo"))
    pokes = pokes_of(module, 0)
    pokes.seen[0, 0][0, 10] = False  # x[5, 0]
    assert list(superfluous(module, pokes)) == ["output 0 and x: 1 pairs"]


@pytest.mark.skipif(not xla.is_available(), reason="needs jaxlib (extra xla)")
def test_verdicts_on_maps() -> None:
    from benchmarks.masks import Question, finding

    answer = indexing.to_parameters(hlo.load(str(FOLDER / "take_constants.lowered.hlo")).entry.root)
    question = Question(answer, 0)
    claimed = question.claimed("exact", "may")
    every, none = np.ones_like(claimed), np.zeros_like(claimed)
    verdicts = [finding(question, needed).verdict for needed in (claimed, every, none)]
    assert verdicts == ["tight", "unsound", "over-claimed"]
    for needed, verdict in ((claimed, "may"), (every, "unsound")):
        coarse = replace(answer, maps=(tuple([m.with_grade("may") for m in answer.maps[0]]),))
        assert finding(Question(coarse, 0), needed).verdict == verdict


@pytest.mark.skipif(not xla.is_available(), reason="needs jaxlib (extra xla)")
@pytest.mark.parametrize("form", ["lowered", "optimized"])
def test_the_right_elements_of_a_program_with_a_predicate(form: str) -> None:
    """XLA replaces the product of floats with a predicate: the two forms need other elements."""
    from benchmarks.mask_arithmetic import times_predicate
    from benchmarks.mask_programs import PROGRAMS
    from benchmarks.mask_truth import Executions

    program = PROGRAMS[times_predicate.__name__]
    needed = Executions(program, form).needed(list(program.bases()))
    count = 6 if form == "lowered" else 3
    assert np.array_equal(needed[0, 0], np.diag(np.arange(6) < count))


@pytest.mark.skipif(not xla.is_available(), reason="needs jaxlib (extra xla)")
@pytest.mark.parametrize("form", ["lowered", "optimized"])
def test_programs_are_executed_as_xla_compiles_them_alone(form: str) -> None:
    """In a loop, XLA:CPU omits the products of a kernel with the zeros of padding."""
    from benchmarks.mask_programs import PROGRAMS
    from benchmarks.mask_scans import causal_convolution
    from benchmarks.mask_truth import Executions

    program = PROGRAMS[causal_convolution.__name__]
    needed = Executions(program, form).needed(list(program.bases()))
    assert needed[0, 1].all()
