"""Traffic beside XLA's cost analysis: equal operations, and each difference counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo
from benchmarks.cost_analysis import cost_analysis
from indexing.execution import xla
from indexing.memory.movement.analysis import traffic
from tests.memory.test_traffic import LOOP, SOFTMAX

pytestmark = pytest.mark.skipif(not xla.is_available(), reason="needs jaxlib (extra xla)")
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.hlo"))

TUPLE = """ENTRY e { p = f32[100] parameter(0)  n = f32[100] negate(p)
  x = f32[100] exponential(p)  ROOT t = (f32[100], f32[100]) tuple(n, x) }"""
GATHER = """f { p = f32[1000,64] parameter(0)  i = s32[64] parameter(1)
  ROOT g = f32[64,64] gather(p, i), offset_dims={1}, collapsed_slice_dims={0},
    start_index_map={0}, index_vector_dim=1, slice_sizes={1,64} }
ENTRY e { p = f32[1000,64] parameter(0)  i = s32[64] parameter(1)
  ROOT g = f32[64,64] fusion(p, i), kind=kLoop, calls=f }"""
SLICES = """f { p = f32[100] parameter(0)  a = f32[60] slice(p), slice={[0:60]}
  b = f32[60] slice(p), slice={[20:80]}  ROOT s = f32[60] add(a, b) }
ENTRY e { p = f32[100] parameter(0)  ROOT s = f32[60] fusion(p), kind=kLoop, calls=f }"""
UPDATE = """ENTRY e { p = f32[100] parameter(0)  u = f32[10] parameter(1)  i = s32[] parameter(2)
  ROOT d = f32[100] dynamic-update-slice(p, u, i) }"""
TRANSPOSE = """ENTRY e { p = f32[5,2]{1,0} parameter(0)
  ROOT t = f32[2,5]{0,1} transpose(p), dimensions={1,0} }"""
PART = """f { p = f32[1000] parameter(0)  n = f32[1000] negate(p)
  ROOT s = f32[10] slice(n), slice={[0:10]} }
ENTRY e { p = f32[1000] parameter(0)  ROOT s = f32[10] fusion(p), kind=kLoop, calls=f }"""
NEGATIONS = LOOP.replace(
    "u = f32[1] constant({7})\n  d = f32[100] dynamic-update-slice(x, u, i)",
    "d = f32[100] negate(x)",
).replace(
    "c = f32[100] copy(x)\n  a = (s32[], f32[100]) tuple(z, c)", "a = (s32[], f32[100]) tuple(z, x)"
)

# fmt: off
DIFFERENT = [
    # program, its bytes at least and at most, and as XLA counts them
    (SOFTMAX,   2 * 512 * 911 * 4, 2 * 512 * 911 * 4,            2 * 512 * 911 * 4),
    (TUPLE,     4 * 400, 4 * 400,                                4 * 400 + 2 * 8),
    (GATHER,    64 * 4 + 64 * 64 * 4, 64 * 4 + 2 * 64 * 64 * 4,
                1000 * 64 * 4 + 64 * 4 + 64 * 64 * 4),
    (SLICES,    (80 + 60) * 4, (80 + 60) * 4,                    (60 + 60 + 60) * 4),
    (UPDATE,    (90 + 10 + 1 + 100) * 4, (90 + 10 + 1 + 100) * 4, (10 + 1 + 10) * 4),
    (TRANSPOSE, 2 * 40, 2 * 40,                                  0),
    (PART,      (10 + 10) * 4, (10 + 10) * 4,                    (1000 + 10) * 4),
    # an iteration negates an array and adds two numbers; a test compares two numbers, and writes a
    # byte; XLA counts one iteration, and the tables of the two tuples
    (NEGATIONS, 10 * (800 + 12) + 11 * 9, 10 * (800 + 12) + 11 * 9, 800 + 12 + 9 + 2 * 16),
]
# fmt: on


@pytest.mark.parametrize(("text", "least", "most", "theirs"), DIFFERENT)
def test_bytes_differ_for_a_reason(text: str, least: int, most: int, theirs: int) -> None:
    assert tuple(traffic(hlo.parse(text)).total.bytes) == (least, most)
    costs = cost_analysis(f"HloModule m\n{text}")
    assert isinstance(costs, dict)
    assert costs.get("bytes accessed", 0) == theirs


def test_equal_windows_are_reduced_once() -> None:
    text = """add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
      ENTRY e { p = f32[8,256] parameter(0)  z = f32[] parameter(1)  ROOT r = f32[8,256]
      reduce-window(p, z), window={size=1x511 pad=0_0x255_255}, to_apply=add }"""
    assert traffic(hlo.parse(text)).total.flops.number == 8 * 255
    costs = cost_analysis(f"HloModule m\n{text}")
    assert isinstance(costs, dict)
    assert costs["flops"] == 8 + 255


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_operations_of_the_examples_are_those_of_xla(file: Path) -> None:
    text = file.read_text()
    costs = cost_analysis(text)
    assert isinstance(costs, dict)
    module = hlo.parse(text)
    if any(i.opcode == "while" for i in module.instructions):
        return  # XLA counts one iteration
    total = traffic(module).total
    assert total.flops.number == costs.get("flops", 0)
    assert total.transcendentals.number == costs.get("transcendentals", 0)
