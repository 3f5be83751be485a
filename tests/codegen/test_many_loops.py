"""Loop nests of many dimensions: Python compiles at most 20 nested blocks."""

from __future__ import annotations

import pytest

import hlo
import indexing
from hlo import Module
from indexing.codegen import text
from indexing.codegen.nest import LoopNest
from tests.codegen.comparison import checked_nest

ADD = "sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }"


def list_numbers(numbers: list[int] | range) -> str:
    return ",".join(map(str, numbers))


def reversal(sizes: list[int]) -> Module:
    """A transpose that reverses the dimensions."""
    operand, order = list_numbers(sizes), list_numbers(range(len(sizes))[::-1])
    return hlo.parse(
        f"ENTRY e {{ p = s32[{operand}] parameter(0) "
        f"ROOT r = s32[{list_numbers(sizes[::-1])}] transpose(p), dimensions={{{order}}} }}"
    )


def reduction(sizes: list[int], kept: int) -> Module:
    """A sum over all dimensions but the first `kept`."""
    dimensions = list_numbers(range(kept, len(sizes)))
    return hlo.parse(
        f"{ADD} ENTRY e {{ p = s32[{list_numbers(sizes)}] parameter(0) z = s32[] constant(3) "
        f"ROOT r = s32[{list_numbers(sizes[:kept])}] reduce(p, z), dimensions={{{dimensions}}}, "
        "to_apply=sum }"
    )


@pytest.mark.parametrize("most", [1, 2, 3, 9])
def test_more_loops_than_the_limit_become_one(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MAX_LOOPS", most)
    nests = [checked_nest(reversal([2, 3, 1, 5])), checked_nest(reduction([2, 3, 4, 1, 5, 2], 3))]
    assert ("np.ndindex" in nests[0].source) == (most < 3)
    assert nests[1].source.count("np.ndindex(2, 3, 4)") == (most < 3)
    assert nests[1].source.count("np.ndindex(5, 2)") == (most < 2)


def test_arrays_of_rank_30_have_loops() -> None:
    sizes = [2 if k % 3 else 1 for k in range(18)] + [1] * 12  # 12 loops
    nest = checked_nest(reversal(sizes))
    assert len(nest.output.dims) == 30
    checked_nest(reduction(sizes, 11))


@pytest.mark.parametrize("kept", [0, 11, 20, 25])
def test_more_than_20_loops_compile_and_run(kept: int) -> None:
    nest = indexing.loop_nest(reduction([2] * 25, kept).entry)
    assert isinstance(nest, LoopNest), nest
    assert nest.source.count("np.ndindex") == (kept > 9) + (25 - kept > 9)  # compiled by `source`
    assert nest.vectorized().source
    checked_nest(reduction([2] * 21 if kept == 11 else [2] * 13, min(kept, 11)))
