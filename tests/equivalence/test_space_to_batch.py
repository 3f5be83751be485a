"""Convolutions whose rows a pass for TPUs splits into blocks, each an image of its own.

A block has the rows that its windows read of the next block behind its own.  The source of the
form is XLA's ``space-to-batch-converter``, as `hlo-indexing dump --target tpu:v5e:2x2` shows it.
"""

from __future__ import annotations

from random import Random
from typing import Final

import numpy as np
import pytest

import hlo
from hlo.shapes.shape import Shape
from indexing import equivalent
from indexing.equivalence import Proved
from indexing.execution import run

TURNS: Final = 40
FAULTS: Final = (
    "",
    "",
    "the halo starts a row later",
    "the halo is of the block before",
    "padding has another value",
    "a row is cut off",
    "the mask hides a row",
)


def split_convolution(chance: Random, fault: str) -> tuple[str, str]:
    """A convolution of ReLUs of rows, and the same with its rows in blocks."""
    taps = chance.choice([2, 3])
    blocks, size = chance.choice([2, 3]), chance.randint(taps, taps + 3)
    low, rows = chance.randint(0, taps - 1), 0
    rows = blocks * size - low - chance.randint(0, 2)
    high = chance.randint(0, taps - 1)
    results = min(rows + low + high - taps + 1, blocks * size)
    high = results + taps - 1 - rows - low
    is_reversed = chance.random() < 0.5
    halo = taps - 1
    inputs = (
        f"x = f32[1,{rows},2] parameter(0)  w = f32[{taps},2,3] parameter(1)  "
        f"z = f32[] constant(0)  zs = f32[1,{rows},2] broadcast(z), dimensions={{}}  "
        f"r = f32[1,{rows},2] maximum(x, zs)  "
    )
    reversal = " rhs_reversal=1" if is_reversed else ""
    before = (
        f"ENTRY e {{ {inputs}ROOT c = f32[1,{results},3] convolution(r, w), "
        f"window={{size={taps} pad={low}_{high}{reversal}}}, dim_labels=b0f_0io->b0f }}"
    )
    start = 1 if fault == "the halo starts a row later" else 0
    other = fault == "the halo is of the block before"
    first, around = (0, "1_0") if other else (1, "0_1")
    number = 1 if fault == "padding has another value" else 0
    hidden = chance.randrange(results) if fault == "the mask hides a row" else -1
    mask = ",".join(str(int(k < results and k != hidden)) for k in range(blocks * size))
    cut = 1 if fault == "a row is cut off" and results < blocks * size else 0
    kernel = "v = f32[{0},2,3] reverse(w), dimensions={{0}}" if is_reversed else ""
    after = (
        f"ENTRY e {{ {inputs}n = f32[] constant({number})  {kernel.format(taps)}  "
        f"p = f32[1,{blocks * size},2] pad(r, n), "
        f"padding=0_0x{low}_{blocks * size - rows - low}x0_0  "
        f"b = f32[{blocks},{size},2] reshape(p)  "
        f"s = f32[{blocks - 1},{halo},2] slice(b), "
        f"slice={{[{first}:{first + blocks - 1}], [{start}:{start + halo}], [0:2]}}  "
        f"h = f32[{blocks},{halo},2] pad(s, z), padding={around}x0_0x0_0  "
        f"i = f32[{blocks},{size + halo},2] concatenate(b, h), dimensions={{1}}  "
        f"c = f32[{blocks},{size},3] convolution(i, {'v' if is_reversed else 'w'}), "
        f"window={{size={taps}}}, dim_labels=b0f_0io->b0f  "
        f"m = pred[{blocks * size}] constant({{{mask}}})  mm = pred[{blocks},{size}] reshape(m)  "
        f"mb = pred[{blocks},{size},3] broadcast(mm), dimensions={{0,1}}  "
        f"zb = f32[{blocks},{size},3] broadcast(z), dimensions={{}}  "
        f"k = f32[{blocks},{size},3] select(mb, c, zb)  "
        f"f = f32[1,{blocks * size},3] reshape(k)  "
        f"ROOT t = f32[1,{results},3] slice(f), slice={{[0:1], [{cut}:{cut + results}], [0:3]}} }}"
    )
    return before, after


@pytest.mark.parametrize("turn", range(TURNS))
def test_blocks_of_rows_are_proved_as_executions_decide(turn: int) -> None:
    chance = Random(turn)
    fault = FAULTS[turn % len(FAULTS)]
    before, after = map(hlo.parse, split_convolution(chance, fault))
    numbers = np.random.default_rng(turn)
    shapes = [parameter.shape for parameter in before.entry.parameters]
    values = [
        numbers.integers(1, 9, shape.dims).astype(np.float32)
        for shape in shapes
        if isinstance(shape, Shape)
    ]
    agree = bool(np.array_equal(run(before, values), run(after, values)))
    assert agree or fault
    verdict = equivalent(before, after)
    assert isinstance(verdict, Proved) is agree, str(verdict)


SCALED: Final = """ENTRY e {
  x = f32[4,5] parameter(0)  p = pred[4,5] parameter(1)  w = f32[5] parameter(2)
  z = f32[] constant(0)  zs = f32[4,5] broadcast(z), dimensions={}
  two = f32[] constant(2)  twos = f32[4,5] broadcast(two), dimensions={}
  %s
}"""


@pytest.mark.parametrize(("otherwise", "is_equal"), [("zs", True), ("x", False), ("twos", False)])
def test_the_constant_of_all_pieces_is_a_factor_of_the_sum(otherwise: str, is_equal: bool) -> None:
    inside = SCALED % (
        f"d = f32[4,5] multiply(twos, x)  s = f32[4,5] select(p, d, {otherwise})  "
        "ROOT r = f32[4] dot(s, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    )
    outside = SCALED % (
        f"s = f32[4,5] select(p, x, {otherwise})  "
        "r = f32[4] dot(s, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}  "
        "t = f32[4] broadcast(two), dimensions={}  ROOT m = f32[4] multiply(t, r)"
    )
    before, after = hlo.parse(inside), hlo.parse(outside)
    numbers = np.random.default_rng(0)
    values = [
        numbers.integers(1, 9, (4, 5)).astype(np.float32),
        np.arange(20).reshape(4, 5) % 3 == 0,
        numbers.integers(1, 9, 5).astype(np.float32),
    ]
    assert np.array_equal(run(before, values), run(after, values)) is is_equal
    assert isinstance(equivalent(before, after), Proved) is is_equal


ENTRIES: Final = """ENTRY e {
  x = f32[6] parameter(0)
  m = pred[8] constant({%s})  s = pred[6] slice(m), slice={[1:7]}
  n = f32[6] negate(x)  ROOT r = f32[6] select(s, x, n)
}"""


@pytest.mark.parametrize(
    ("entries", "is_equal"), [("0,1,1,1,1,1,1,0", True), ("0,1,1,1,0,1,1,0", False)]
)
def test_entries_of_a_table_are_known_at_the_places_that_are_read(
    entries: str, is_equal: bool
) -> None:
    before = hlo.parse(ENTRIES % entries)
    after = hlo.parse("ENTRY e { ROOT x = f32[6] parameter(0) }")
    assert isinstance(equivalent(before, after), Proved) is is_equal
