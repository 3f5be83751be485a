"""Bytes that results need, and bytes that loops load: compared with executions."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import hlo
import indexing
from hlo.modules.module import Instruction
from hlo.shapes.shape import leaves
from indexing.equivalence.verdicts import Proved
from indexing.execution import run
from indexing.memory.movement.amounts import Amount
from indexing.views.verdict_tables import comparison_record, traffic_line

INF = float("inf")

FUSED = """
add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }}
fused {{
  x = f32[6,4] parameter(0)
  y = f32[6,4] parameter(1)
  n = s32[6] parameter(2)
  i = s32[6,4] iota(), iota_dimension=0
  j = s32[6,4] iota(), iota_dimension=1
  lengths = s32[6,4] broadcast(n), dimensions={{0}}
  two = s32[] constant(2)
  twos = s32[6,4] broadcast(two), dimensions={{}}
  zero = f32[] constant(0)
  zeros = f32[6,4] broadcast(zero), dimensions={{}}
  {body}
}}
ENTRY e {{
  x = f32[6,4] parameter(0)
  y = f32[6,4] parameter(1)
  n = s32[6] parameter(2)
  ROOT f = {shape} fusion(x, y, n), kind=kLoop, calls=fused
}}"""

ARRAY = "f32[6,4]"
# fmt: off
MASKS = {
    # the result's shape, the body, the elements needed of x, y and n
    "below a constant": (
        ARRAY, "p = pred[6,4] compare(i, twos), direction=LT"
        "  ROOT r = f32[6,4] select(p, x, zeros)",
        (8, 0, 0)),
    "causal": (
        ARRAY, "p = pred[6,4] compare(i, j), direction=GE  ROOT r = f32[6,4] select(p, x, y)",
        (4 + 4 + 4 + 3 + 2 + 1, 1 + 2 + 3, 0)),
    "and": (
        ARRAY, "p = pred[6,4] compare(i, twos), direction=GE"
        "  q = pred[6,4] compare(j, twos), direction=LT"
        "  m = pred[6,4] and(p, q)  ROOT r = f32[6,4] select(m, x, zeros)",
        (4 * 2, 0, 0)),
    "under a sum": (
        "f32[6]", "p = pred[6,4] compare(i, j), direction=GE  m = f32[6,4] select(p, x, zeros)"
        "  ROOT r = f32[6] reduce(m, zero), dimensions={1}, to_apply=add",
        (18, 0, 0)),
    "of integers": (
        "s32[6,4]", "p = pred[6,4] compare(i, twos), direction=GE  c = s32[6,4] convert(p)"
        "  ROOT r = s32[6,4] multiply(lengths, c)",
        (0, 0, 4)),
    "two outputs need different halves": (
        "(f32[6,4], f32[6,4])",
        "p = pred[6,4] compare(i, twos), direction=LT  a = f32[6,4] select(p, x, zeros)"
        "  b = f32[6,4] select(p, y, x)  ROOT r = (f32[6,4], f32[6,4]) tuple(a, b)",
        (24, 8, 0)),
    "a product of floats hides nothing": (
        ARRAY, "p = pred[6,4] compare(i, twos), direction=LT  c = f32[6,4] convert(p)"
        "  ROOT r = f32[6,4] multiply(x, c)",
        (24, 0, 0)),
}
# fmt: on
LENGTHS = "p = pred[6,4] compare(j, lengths), direction=LT  ROOT r = f32[6,4] select(p, x, zeros)"


def fusion(shape: str, body: str) -> Instruction:
    return hlo.parse(FUSED.format(shape=shape, body=body)).entry.root


def changing_elements(root: Instruction, lengths: list[int]) -> tuple[int, int, int]:
    """The numbers of elements of which some value changes a result."""
    arrays: list[Any] = [
        np.arange(24, dtype=np.float32).reshape(6, 4) + 1,
        -np.arange(24, dtype=np.float32).reshape(6, 4) - 1,
        np.array(lengths, np.int32),
    ]

    def results() -> Any:
        computed = run(root.module, arrays)
        return [computed] if len(leaves(root.shape)) == 1 else computed

    before = results()
    counts = []
    for array in arrays:
        changing = 0
        for at in product(*map(range, array.shape)):
            old = array[at].copy()
            values = (INF, 7.5) if array.dtype == np.float32 else (-1, 3, 99)
            after = []
            for value in values:
                array[at] = value
                after.append(results())
            array[at] = old
            changing += any(
                not np.array_equal(a, b, equal_nan=True)
                for each in after
                for a, b in zip(before, each, strict=True)
            )
        counts.append(changing)
    return counts[0], counts[1], counts[2]


@pytest.mark.parametrize("name", MASKS)
def test_the_result_needs_the_elements_that_change_it(name: str) -> None:
    shape, body, expected = MASKS[name]
    root = fusion(shape, body)
    assert changing_elements(root, [0, 1, 2, 3, 4, 5]) == expected
    moved = indexing.traffic(root).instructions[0]
    assert [each.needed for each in moved.operands] == [Amount(4 * n) for n in expected]
    assert all(each.needed.number <= each.loaded.number for each in moved.operands)
    assert [each.loaded for each in moved.operands] == [each.distinct for each in moved.operands]
    assert (moved.needed.number, moved.totals.needed.upper) == (4 * sum(expected),) * 2


def test_a_loop_loads_what_a_mask_hides() -> None:
    (x, *_) = indexing.traffic(fusion(*MASKS["below a constant"][:2])).instructions[0].operands
    assert (x.loaded, x.needed) == (Amount(96), Amount(32))


def test_runtime_masks_give_an_upper_bound_that_some_values_attain() -> None:
    root = fusion(ARRAY, LENGTHS)
    traffic = indexing.traffic(root)
    x, _, n = traffic.instructions[0].operands
    assert (x.loaded, x.needed) == (Amount(96), Amount(96, "may"))
    assert changing_elements(root, [4] * 6)[0] * 4 == x.needed.number
    assert changing_elements(root, [0, 1, 2, 3, 4, 5])[0] * 4 < x.needed.number
    assert n.needed == n.loaded == Amount(24)
    assert "96 distinct, <= 96 needed" in str(traffic)
    assert traffic.total.needed == (24, 120)


@pytest.mark.parametrize("lengths", [[0, 1, 2, 3, 4, 5], [4] * 6, [-3, 0, 9, 0, -1, 1]])
def test_given_values_decide_what_is_needed(lengths: list[int]) -> None:
    root = fusion(ARRAY, LENGTHS)
    expected = [Amount(4 * n) for n in changing_elements(root, lengths)]
    for target in (root.module, root.computation, root):
        (moved,) = indexing.traffic(target, values={"n": lengths}).instructions
        assert [each.needed for each in moved.operands] == expected
        assert moved.read == Amount(96 + 24)


def test_values_are_those_of_integer_parameters_of_the_target() -> None:
    root = fusion(ARRAY, LENGTHS)
    with pytest.raises(ValueError, match=r"`e` has the integer parameters \['n'\], got"):
        indexing.traffic(root.module, values={"x": 1})
    with pytest.raises(ValueError, match="`n` is s32"):
        indexing.traffic(root.module, values={"n": [1, 2]})


def test_values_do_not_reach_parameters_of_the_same_name_in_other_computations() -> None:
    text = (
        FUSED.format(shape=ARRAY, body=LENGTHS).replace("ENTRY e ", "inner ")
        + """
ENTRY outer {
  x = f32[6,4] parameter(0)
  n = s32[6] parameter(1)
  m = s32[6] negate(n)
  ROOT c = f32[6,4] call(x, x, m), to_apply=inner
}"""
    )
    counted = indexing.traffic(hlo.parse(text), values={"n": [0] * 6})
    assert counted["f"].needed == Amount(96 + 24, "may")


def test_an_op_alone_needs_what_it_loads() -> None:
    module = hlo.parse("""ENTRY e { p = pred[4] parameter(0)  x = f32[4] parameter(1)
      y = f32[4] parameter(2)  ROOT r = f32[4] select(p, x, y) }""")
    (row,) = indexing.traffic(module).instructions
    assert [each.needed for each in row.operands] == [Amount(4), Amount(16), Amount(16)]


@pytest.mark.parametrize("name", MASKS)
def test_access_has_the_counts_of_one_output(name: str) -> None:
    shape, body, expected = MASKS[name]
    root = fusion(shape, body)
    outputs = range(len(leaves(root.shape)))
    every = [indexing.access(root, output_id=number) for number in outputs]
    if len(every) == 1:
        assert every[0].needed == tuple([Amount(4 * n) for n in expected])
        moved = indexing.traffic(root).instructions[0]
        assert every[0].loaded == tuple([each.loaded for each in moved.operands])
    else:
        assert [each.needed[0] for each in every] == [Amount(4 * 8), Amount(4 * 16)]
        assert [each.loaded[0] for each in every] == [Amount(96), Amount(96)]


def test_access_marks_upper_bounds() -> None:
    accesses = indexing.access(fusion(ARRAY, LENGTHS))
    assert (accesses.loaded[0], accesses.needed[0]) == (Amount(96), Amount(96, "may"))


def test_unknown_reads_are_upper_bounds_of_both_counts() -> None:
    root = hlo.parse("""ENTRY e { x = f32[8] parameter(0)
      ROOT r = f32[8] custom-call(x), custom_call_target="nobody-knows" }""").entry.root
    accesses = indexing.access(root)
    assert accesses.needed == accesses.loaded == (Amount(32, "may"),)


def test_a_comparison_of_programs_has_both_counts() -> None:
    masked, whole = (
        indexing.traffic(fusion(*MASKS[name][:2]).module)
        for name in ("below a constant", "a product of floats hides nothing")
    )
    equal = Proved("reads", {})
    record = comparison_record("a", "b", equal, [masked, whole])
    assert (record["bytes_loaded"], record["bytes_needed"]) == ([96, 96], [32, 96])
    line = traffic_line(masked, whole)
    assert line.startswith(
        "bytes: 96 read (32 of them needed under masks), 96 written before; 96 read, "
    )
