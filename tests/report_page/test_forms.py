"""Details of instructions of one form: made once, with the names of each instruction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import hlo
import indexing
from hlo.modules.module import Instruction
from indexing.views.map_answers import answer
from indexing.views.map_query import Query
from indexing.views.map_tables import MapTable
from indexing.views.report_page import details as module
from tests.report_page.reading import details, scripts

EXAMPLES = Path(__file__).parents[2] / "examples"
MODULE = EXAMPLES / "gpt2_tiny.opt.hlo"

ALIKE = """HloModule m
ENTRY e {
  p = f32[5,3] parameter(0)
  q = f32[5,3] parameter(1)
  i = s32[] parameter(2)
  one = s32[] constant(1)
  a = f32[5,3] add(p, q)
  b = f32[5,3] add(q, a)
  c = f32[5,3] add(p, p)
  t = (f32[5,3], f32[5,3]) tuple(a, b)
  u = (f32[5,3], f32[5,3]) tuple(b, c)
  x = f32[5,3] get-tuple-element(t), index=0
  y = f32[5,3] get-tuple-element(u), index=0
  d = f32[2,3] dynamic-slice(x, one, i), dynamic_slice_sizes={2,3}
  f = f32[2,3] dynamic-slice(y, i, one), dynamic_slice_sizes={2,3}
  ROOT r = f32[2,3] subtract(d, f)
}
"""


def page(text: str) -> str:
    return str(indexing.report(hlo.parse(text), tiled=0))


@pytest.mark.parametrize("text", [MODULE.read_text(), ALIKE], ids=["gpt2", "alike"])
def test_the_page_is_that_of_instructions_on_their_own(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = page(text)
    monkeypatch.setattr(module, "is_of_form", lambda *_: False)
    assert shared == page(text)


def test_operands_have_their_own_names() -> None:
    html = page(ALIKE)
    (data,) = scripts(html)["structure"]["modules"]
    operands = {
        name: [row["name"] for _, _, _, rows, _ in each["maps"] for row in rows]
        for name, each in zip(data["names"], details(html), strict=True)
        if "maps" in each
    }
    assert (operands["a"], operands["b"]) == (["p", "q"], ["q", "a"])
    assert operands["c"] == ["p", "p"]
    assert (operands["x"], operands["y"]) == (["t {0}"], ["u {0}"])


def test_most_instructions_are_not_answered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answered: list[Instruction] = []

    def count(instruction: Instruction, query: Query, file: str) -> Iterator[MapTable]:
        answered.append(instruction)
        return answer(instruction, query, file)

    monkeypatch.setattr(module, "answer", count)
    monkeypatch.setattr("indexing.views.report_page.page.MAX_MAPPED", 0)
    gpt2 = hlo.load(MODULE)
    indexing.report(gpt2, tiled=0)
    assert len(answered) < len(list(gpt2.instructions)) / 2
