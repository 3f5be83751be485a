"""Bits and extrema of indices, against Python's integers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random
from typing import Final

import pytest

import hlo
from indexing import equivalent
from indexing.equivalence import Proved
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.laws.integers import integer_expr
from indexing.equivalence.values.terms.terms import FormulaTable
from simplifier.atoms import Variable

FUNCTIONS: Final[dict[str, Callable[[int, int], int]]] = {
    "and": int.__and__,
    "or": int.__or__,
    "minimum": min,
    "maximum": max,
    "shift-left": int.__lshift__,
    "shift-right-logical": int.__rshift__,
}
TURNS: Final = 3000


def test_functions_of_indices_have_their_values() -> None:
    chance, counts = Random(3), dict.fromkeys(FUNCTIONS, 0)
    for _ in range(TURNS):
        table = FormulaTable()
        algebra = FormulaAlgebra(table)
        x, y = (Variable(name, 0, chance.randint(1, 9)) for name in "de")
        left = x.as_expr() * chance.choice([1, 2, 4, 8, 16]) + y.as_expr() * chance.choice([0, 1])
        right = y.as_expr() * chance.choice([1, 1, 3]) + chance.choice([0, 0, 2, 9])
        opcode = chance.choice(list(FUNCTIONS))
        terms = [table.index(each, "s32") for each in (left, right)]
        number = chance.randint(0, 7) if opcode.startswith("shift") else chance.randint(0, 63)
        if chance.random() < 0.5 or opcode.startswith("shift"):
            right = right * 0 + number
            terms[1] = table.constant(number, "s32")
        term = algebra.apply(opcode, (), "s32", terms)
        expr = integer_expr(term)
        if expr is None:
            continue
        counts[opcode] += 1
        for a, b in product(range(x.upper + 1), range(y.upper + 1)):
            at = {x: a, y: b}
            assert expr.value(at) == FUNCTIONS[opcode](left.value(at), right.value(at))
    assert min(counts.values()) >= 40, counts


PACKED: Final = """ENTRY e {{
  p = f32[5,7] parameter(0)  i = s32[4] parameter(1)  j = s32[4] parameter(2)
  z = s32[] constant(0)  zero = s32[4] broadcast(z), dimensions={{}}
  four = s32[] constant(4)  six = s32[] constant(6)
  fours = s32[4] broadcast(four), dimensions={{}}  sixes = s32[4] broadcast(six), dimensions={{}}
  ci = s32[4] clamp(zero, i, fours)  cj = s32[4] clamp(zero, j, sixes)
  three = s32[] constant({shift})  threes = s32[4] broadcast(three), dimensions={{}}
  sj = s32[4] shift-left(cj, threes)  packed = s32[4] or(ci, sj)
  low = s32[] constant(7)  lows = s32[4] broadcast(low), dimensions={{}}
  high = s32[] constant(56)  highs = s32[4] broadcast(high), dimensions={{}}
  back = s32[] constant(3)  backs = s32[4] broadcast(back), dimensions={{}}
  ui = s32[4] and(packed, lows)  mj = s32[4] and(packed, highs)
  uj = s32[4] shift-right-logical(mj, backs)
  ri = s32[4,1] reshape(ui)  rj = s32[4,1] reshape(uj)
  {gather}
}}"""
PLAIN: Final = """ENTRY e {{
  p = f32[5,7] parameter(0)  i = s32[4] parameter(1)  j = s32[4] parameter(2)
  ri = s32[4,1] reshape(i)  rj = s32[4,1] reshape(j)
  {gather}
}}"""
GATHER: Final = """both = s32[4,2] concatenate(ri, rj), dimensions={1}
  ROOT g = f32[4] gather(p, both), offset_dims={}, collapsed_slice_dims={0,1},
    start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1}"""


@pytest.mark.parametrize("shift", [3, 2])
def test_packed_indices_of_a_gather_are_the_indices_themselves(shift: int) -> None:
    before = hlo.parse(PLAIN.format(gather=GATHER))
    after = hlo.parse(PACKED.format(gather=GATHER, shift=shift))
    verdict = equivalent(before, after)
    assert isinstance(verdict, Proved) == (shift == 3), verdict
