"""Several threads that analyse one module, or modules with equal maps, get the usual answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hlo
import indexing
from hlo import Instruction, Module
from tests.threads import in_threads

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
LOOP = """
body {
  b = (s32[], f32[7,5]) parameter(0)
  i = s32[] get-tuple-element(b), index=0
  x = f32[7,5] get-tuple-element(b), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  zero = s32[] constant(0)
  row = f32[1,5] dynamic-slice(x, i, zero), dynamic_slice_sizes={1,5}
  put = f32[7,5] dynamic-update-slice(x, row, next, zero)
  ROOT t = (s32[], f32[7,5]) tuple(next, put)
}
condition {
  c = (s32[], f32[7,5]) parameter(0)
  j = s32[] get-tuple-element(c), index=0
  end = s32[] constant(SIZE)
  ROOT less = pred[] compare(j, end), direction=LT
}
ENTRY main {
  p = f32[7,5] parameter(0)
  start = s32[] constant(0)
  state = (s32[], f32[7,5]) tuple(start, p)
  w = (s32[], f32[7,5]) while(state), condition=condition, body=body
  y = f32[7,5] get-tuple-element(w), index=1
  r = f32[35] reshape(y)
  s = f32[17] slice(r), slice={[1:35:2]}
  ROOT n = f32[17] negate(s)
}
"""


def answers(module: Module) -> list[str]:
    """Return the texts of answers of several kinds about all of a module."""
    texts = []
    for instruction in module.instructions:
        texts += [str(indexing.output_to_input(instruction)), tiles(instruction)]
        texts += [str(indexing.input_to_output(instruction))] if instruction.operands else []
    texts += [str(answer) for answer in indexing.all_to_parameters(module.entry)]
    nest = indexing.loop_nest(module.entry)
    return [*texts, str(getattr(nest, "source", nest))]


def tiles(instruction: Instruction) -> str:
    return str(indexing.tile_analysis(instruction)) if instruction.opcode == "fusion" else ""


def loop(batch: int) -> Module:
    return hlo.parse(LOOP.replace("SIZE", str(batch + 2)))


def test_modules_in_threads_have_the_usual_answers() -> None:
    usual = [answers(loop(batch)) for batch in range(3)]
    for results in in_threads(lambda batch: answers(loop(batch)), 3):
        assert results == usual


@pytest.mark.parametrize("name", ["layernorm.opt.hlo", "rnn.pre.hlo"])
def test_threads_share_a_module(name: str) -> None:
    usual = answers(hlo.load(EXAMPLES / name))
    modules = [hlo.load(EXAMPLES / name) for _ in range(2)]

    def share(batch: int) -> tuple[list[Any], list[str]]:
        return list(modules[batch].instructions), answers(modules[batch])

    for results in zip(*in_threads(share, len(modules)), strict=True):
        instructions, texts = zip(*results, strict=True)
        assert all(each == usual for each in texts)
        for equal in zip(*instructions, strict=True):
            assert len(set(map(id, equal))) == 1
