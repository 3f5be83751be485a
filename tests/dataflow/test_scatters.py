"""Scatters: which elements are kept, and which update the others have, against executions."""

from __future__ import annotations

from typing import Final

import pytest

import hlo
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
