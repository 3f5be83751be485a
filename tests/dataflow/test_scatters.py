"""Scatters: which elements are kept, and which update the others have, against executions."""

from __future__ import annotations

from typing import Final

import pytest

import hlo
import indexing
from hlo import Module
from indexing.maps.answers import Answer
from tests.dataflow.influence import Pokes
from tests.dataflow.loop_judge import answers, missed
from tests.dataflow.random_masks import VALUES, superfluous

COMBINERS: Final = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
least { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] minimum(a, b) }
set { a = f32[] parameter(0)  ROOT b = f32[] parameter(1) }
"""
NUMBERS: Final = (
    "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1"
)
SEEDS: Final = range(3)


def judge(module: Module) -> Answer:
    """Return the answer of the root, whose exact maps have just what executions show."""
    assert not hlo.verify(module)
    for seed in SEEDS:
        pokes = Pokes.of(module.entry, seed)
        for place in pokes.places():
            pokes.poke(*place, values=VALUES)
        assert pokes.results is not None
        assert not list(missed(module, pokes))
    assert not list(superfluous(module, pokes))
    (answer,) = answers(module)
    return answer


def grades(answer: Answer, parameter: int) -> set[str]:
    return {m.grade for m in answer.maps[parameter]}


@pytest.mark.parametrize("combiner", ["add", "least"])
@pytest.mark.parametrize("indices", ["s32[3,1] constant({{1}, {6}, {1}})", "s32[3,1] parameter(2)"])
def test_every_element_of_an_accumulating_scatter_is_needed(combiner: str, indices: str) -> None:
    module = hlo.parse(f"""{COMBINERS} ENTRY e {{ x = f32[8] parameter(0)  u = f32[3] parameter(1)
      i = {indices}
      ROOT r = f32[8] scatter(x, i, u), {NUMBERS}, to_apply={combiner} }}""")
    answer = judge(module)
    assert [str(m) for m in answer.maps[0]] == ["(d0) -> (d0), domain: d0 in [0, 7]"]
    assert grades(answer, 0) == {"exact"}
    assert not any(answer.reasons[0])


CALLED: Final = """
s { x = f32[8] parameter(0)  i = s32[3,1] parameter(1)  u = f32[3] parameter(2)
  ROOT r = f32[8] scatter(x, i, u), NUMBERS, to_apply=set }
outer { i = s32[3,1] parameter(0)  x = f32[8] parameter(1)  u = f32[3] parameter(2)
  ROOT r = f32[8] fusion(x, i, u), kind=kLoop, calls=s }
""".replace("NUMBERS", NUMBERS)
INDICES: Final = "s32[3,1] constant({{1}, {6}, {3}})"
ARRAYS: Final = "x = f32[8] parameter(0)  u = f32[3] parameter(1)"


@pytest.mark.parametrize(
    "call",
    [
        "f32[8] fusion(x, i, u), kind=kLoop, calls=s",
        "f32[8] call(i, x, u), to_apply=outer",
    ],
)
@pytest.mark.parametrize("indices", [INDICES, "s32[3,1] iota(), iota_dimension=0"])
def test_indices_that_stand_outside_of_a_call_decide_what_its_scatter_keeps(
    call: str, indices: str
) -> None:
    called = CALLED if "outer" in call else CALLED[: CALLED.index("outer")]
    module = hlo.parse(f"""{COMBINERS} {called} ENTRY e {{ {ARRAYS}  i = {indices}
      ROOT r = {call} }}""")
    answer = judge(module)
    assert grades(answer, 0) == grades(answer, 1) == {"exact"}
    assert str(answer.at(1)[0]) == "∅"
    (swept,) = [
        each
        for each in indexing.all_to_parameters(module.entry)
        if each.instruction is module.entry.root
    ]
    assert str(swept.at(1)[0]) == "∅"


def test_a_call_alone_does_not_know_its_arguments() -> None:
    """It is asked about any operands, as XLA is."""
    called = CALLED[: CALLED.index("outer")]
    module = hlo.parse(f"""{COMBINERS} {called} ENTRY e {{ {ARRAYS}  i = {INDICES}
      ROOT r = f32[8] fusion(x, i, u), kind=kLoop, calls=s }}""")
    assert grades(indexing.output_to_input(module.entry.root), 0) == {"may"}
    assert grades(indexing.to_parameters(module.entry.root), 0) == {"exact"}
    assert grades(indexing.output_to_input(module.entry.root), 0) == {"may"}


def test_two_calls_with_other_indices_are_not_mistaken_for_each_other() -> None:
    called = CALLED[: CALLED.index("outer")]
    module = hlo.parse(f"""{COMBINERS} {called} ENTRY e {{ {ARRAYS}  i = {INDICES}
      j = s32[3,1] constant({{{{0}}, {{2}}, {{7}}}})
      f = f32[8] fusion(x, i, u), kind=kLoop, calls=s
      ROOT r = f32[8] fusion(f, j, u), kind=kLoop, calls=s }}""")
    answer = judge(module)
    assert str(answer.at(1)[0]) == "[1]"


def test_a_call_does_not_know_the_arguments_of_its_caller() -> None:
    """The answer about an instruction of `outer` holds for any arguments of `outer`."""
    module = hlo.parse(f"""{COMBINERS} {CALLED} ENTRY e {{ {ARRAYS}  i = {INDICES}
      ROOT r = f32[8] call(i, x, u), to_apply=outer }}""")
    assert grades(indexing.to_parameters(module.entry.root), 0) == {"exact"}
    inside = indexing.to_parameters(module.computations["outer"].root)
    assert grades(inside, 1) == {"may"}
