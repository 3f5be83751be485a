"""Programs whose masks, constants and integer arithmetic decide which elements are read.

Each program has the right pairs as a formula, one for each parameter.  The maps must relate the
same pairs, and so must executions in which one element changes at a time: those of the kernels,
and those of XLA if it is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import hlo
import indexing
from tests.dataflow.mask_checks import (
    EXECUTIONS,
    Program,
    check_executions,
    check_given_values,
    check_maps,
    combiner,
    numbers,
    same,
    splat,
    where,
)
from tests.oracles import union

LENGTHS: Final = (-(2**31), -1, 0, 2, 5, 9, 2**31 - 1)

PROGRAMS: dict[str, Program] = {
    "compare_of_an_iota_with_a_constant": Program(
        """x = f32[4,6] parameter(0)
           y = f32[4,6] parameter(1)
           column = s32[4,6] iota(), iota_dimension=1
           two = s32[] constant(2)
           twos = s32[4,6] broadcast(two), dimensions={}
           right = pred[4,6] compare(column, twos), direction=GT
           ROOT r = f32[4,6] select(right, x, y)""",
        {"x": where(lambda i, j: j >= 3), "y": where(lambda i, j: j < 3)},
    ),
    "compare_of_two_iotas_before_a_reduction": Program(
        """x = f32[5,6] parameter(0)
           row = s32[5,6] iota(), iota_dimension=0
           column = s32[5,6] iota(), iota_dimension=1
           upper = pred[5,6] compare(column, row), direction=GE
           zero = f32[] constant(0)
           zeros = f32[5,6] broadcast(zero), dimensions={}
           masked = f32[5,6] select(upper, x, zeros)
           ROOT r = f32[6] reduce(masked, zero), dimensions={0}, to_apply=sum""",
        {"x": lambda j: [(i, j) for i in range(5) if j >= i]},
        computations=combiner("sum", "add"),
    ),
    "not_equal_and_at_most": Program(
        f"""x = f32[9] parameter(0)
           i = s32[9] iota(), iota_dimension=0
           four = s32[9] {splat(4, 9)}
           seven = s32[9] {splat(7, 9)}
           other = pred[9] compare(i, four), direction=NE
           low = pred[9] compare(i, seven), direction=LE
           both = pred[9] and(other, low)
           zero = f32[9] {splat(0, 9)}
           ROOT r = f32[9] select(both, x, zero)""",
        {"x": where(lambda d: d != 4 and d <= 7)},
    ),
    "runtime_scalar": Program(
        """x = f32[7] parameter(0)
           n = s32[] parameter(1)
           i = s32[7] iota(), iota_dimension=0
           limit = s32[7] broadcast(n), dimensions={}
           before = pred[7] compare(i, limit), direction=LT
           zero = f32[] constant(0)
           zeros = f32[7] broadcast(zero), dimensions={}
           ROOT r = f32[7] select(before, x, zeros)""",
        {"x": where(lambda d, n: d < n), "n": lambda d, n: [()]},
        [{"n": n} for n in LENGTHS],
    ),
    "runtime_vector_at_a_reduced_index": Program(
        """x = f32[3,5] parameter(0)
           n = s32[3] parameter(1)
           column = s32[3,5] iota(), iota_dimension=1
           start = s32[3,5] broadcast(n), dimensions={0}
           after = pred[3,5] compare(column, start), direction=GE
           least = f32[] constant(-inf)
           masked = f32[3,5] broadcast(least), dimensions={}
           kept = f32[3,5] select(after, x, masked)
           ROOT r = f32[3] reduce(kept, least), dimensions={1}, to_apply=largest""",
        {"x": lambda i, n: [(i, j) for j in range(5) if j >= n[i]], "n": lambda i, n: [(i,)]},
        [{"n": n} for n in [(0, 2, 4), (-7, 5, 3), (-(2**31), 2**31 - 1, 1), (4, 4, 4)]],
        combiner("largest", "maximum"),
    ),
    "runtime_flag": Program(
        """x = f32[5] parameter(0)
           y = f32[5] parameter(1)
           flag = pred[] parameter(2)
           flags = pred[5] broadcast(flag), dimensions={}
           ROOT r = f32[5] select(flags, x, y)""",
        {
            "x": where(lambda d, flag: flag),
            "y": where(lambda d, flag: not flag),
            "flag": lambda d, flag: [()],
        },
        [{"flag": True}, {"flag": False}],
    ),
    "runtime_predicates_of_rows_in_a_product": Program(
        """x = s32[3,2] parameter(0)
           mask = pred[3,1] parameter(1)
           rows = pred[3] reshape(mask)
           others = pred[3] not(rows)
           numbers = s32[3] convert(others)
           factors = s32[3,2] broadcast(numbers), dimensions={0}
           ROOT r = s32[3,2] multiply(x, factors)""",
        {
            "x": where(lambda i, j, mask: not mask[i][0]),
            "mask": lambda i, j, mask: [(i, 0)],
        },
        [{"mask": [[a], [b], [not a]]} for a in (True, False) for b in (True, False)],
    ),
    "runtime_predicates_and_an_iota": Program(
        f"""x = f32[6] parameter(0)
           mask = pred[6] parameter(1)
           i = s32[6] iota(), iota_dimension=0
           four = s32[6] {splat(4, 6)}
           low = pred[6] compare(i, four), direction=LT
           both = pred[6] and(mask, low)
           zero = f32[] constant(0)
           zeros = f32[6] broadcast(zero), dimensions={{}}
           ROOT r = f32[6] call(both, x, zeros), to_apply=choice""",
        {
            "x": where(lambda d, mask: mask[d] and d < 4),
            "mask": lambda d, mask: [(d,)] if d < 4 else [],
        },
        [{"mask": [True, False, True, True, True, False]}, {"mask": [False, True] * 3}],
        """choice { p = pred[6] parameter(0)  a = f32[6] parameter(1)  b = f32[6] parameter(2)
          ROOT c = f32[6] select(p, a, b) }""",
    ),
    "gather_at_constants_of_which_one_is_clamped": Program(
        f"""x = f32[6,2] parameter(0)
           i = s32[4] {numbers(5, 1, 9, 1)}
           ROOT r = f32[4,2] gather(x, i), offset_dims={{1}}, collapsed_slice_dims={{0}},
             start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,2}}""",
        {"x": lambda i, j: [((5, 1, 5, 1)[i], j)]},
    ),
    "wrap_around_of_unsigned_bytes": Program(
        """x = f32[9] parameter(0)
           y = f32[9] parameter(1)
           i = u8[9] iota(), iota_dimension=0
           most = u8[] constant(250)
           mosts = u8[9] broadcast(most), dimensions={}
           sum = u8[9] add(i, mosts)
           wraps = pred[9] compare(sum, i), direction=LT
           ROOT r = f32[9] select(wraps, x, y)""",
        {"x": where(lambda d: d >= 6), "y": where(lambda d: d < 6)},
    ),
    "product_with_zero_of_integers_and_of_floats": Program(
        f"""x = s32[6] parameter(0)
           y = f32[6] parameter(1)
           m = s32[6] {numbers(1, 0, 1, 0, 1, 0)}
           n = f32[6] {numbers(1, 0, 1, 0, 1, 0)}
           whole = s32[6] multiply(x, m)
           real = f32[6] multiply(y, n)
           converted = f32[6] convert(whole)
           ROOT r = f32[6] add(real, converted)""",
        {"x": where(lambda d: d % 2 == 0), "y": same},
    ),
    "update_at_a_computed_constant": Program(
        """x = f32[8] parameter(0)
           u = f32[3] parameter(1)
           four = s32[] constant(4)
           back = s32[] constant(-2)
           start = s32[] add(four, back)
           ROOT r = f32[8] dynamic-update-slice(x, u, start)""",
        {"x": where(lambda d: not 2 <= d <= 4), "u": lambda d: [(d - 2,)] if 2 <= d <= 4 else []},
    ),
    "truncating_division": Program(
        f"""x = f32[9] parameter(0)
           y = f32[9] parameter(1)
           i = s32[9] iota(), iota_dimension=0
           four = s32[9] {splat(4, 9)}
           three = s32[9] {splat(3, 9)}
           offset = s32[9] subtract(i, four)
           quotient = s32[9] divide(offset, three)
           zero = s32[9] {splat(0, 9)}
           near = pred[9] compare(quotient, zero), direction=EQ
           ROOT r = f32[9] select(near, x, y)""",
        {"x": where(lambda d: 2 <= d <= 6), "y": where(lambda d: not 2 <= d <= 6)},
    ),
    "all_indices_of_a_row_in_bounds": Program(
        f"""x = f32[3] parameter(0)
           y = f32[3] parameter(1)
           n = s32[] parameter(2)
           first = s32[1] reshape(n)
           second = s32[1] constant({{0}})
           row = s32[2] concatenate(first, second), dimensions={{0}}
           least = s32[2] {numbers(0, 0)}
           most = s32[2] {numbers(5, 0)}
           above = pred[2] compare(row, least), direction=GE
           below = pred[2] compare(row, most), direction=LE
           each = pred[2] and(above, below)
           true = pred[] constant(true)
           inside = pred[] reduce(each, true), dimensions={{0}}, to_apply=all
           p = pred[3] broadcast(inside), dimensions={{}}
           ROOT r = f32[3] select(p, x, y)""",
        {
            "x": where(lambda d, n: 0 <= n <= 5),
            "y": where(lambda d, n: not 0 <= n <= 5),
            "n": lambda d, n: [()],
        },
        values=[{"n": n} for n in LENGTHS],
        computations="""all { a = pred[] parameter(0)  b = pred[] parameter(1)
          ROOT c = pred[] and(a, b) }""",
    ),
    "factors_of_another_computation": Program(
        f"""x = s32[6] parameter(0)
           m = s32[6] {numbers(1, 0, 1, 0, 1, 0)}
           ROOT r = s32[6] fusion(x, m), kind=kLoop, calls=times""",
        {"x": where(lambda d: d % 2 == 0)},
        computations="""times { x = s32[6] parameter(0)  m = s32[6] parameter(1)
          ROOT r = s32[6] multiply(x, m) }""",
    ),
    "a_mask_of_another_computation": Program(
        """x = f32[6,6] parameter(0)
           third = s32[6] fusion(), kind=kLoop, calls=thirds
           ROOT r = f32[6,6] fusion(x, third), kind=kLoop, calls=masked""",
        {"x": where(lambda i, j: j <= i and (j % 3 == 2 or i == j))},
        computations="""
          thirds { i = s32[6] iota(), iota_dimension=0  n = s32[] constant(3)
            ns = s32[6] broadcast(n), dimensions={}  ROOT r = s32[6] remainder(i, ns) }
          masked { x = f32[6,6] parameter(0)  third = s32[6] parameter(1)
            i = s32[6,6] iota(), iota_dimension=0  j = s32[6,6] iota(), iota_dimension=1
            early = pred[6,6] compare(j, i), direction=LE
            same = pred[6,6] compare(j, i), direction=EQ
            n = s32[] constant(2)  ns = s32[6] broadcast(n), dimensions={}
            some = pred[6] compare(third, ns), direction=EQ
            column = pred[6,6] broadcast(some), dimensions={1}
            either = pred[6,6] or(column, same)  both = pred[6,6] and(early, either)
            z = f32[] constant(0)  zs = f32[6,6] broadcast(z), dimensions={}
            ROOT r = f32[6,6] select(both, x, zs) }""",
    ),
    "integers_that_are_compared_with_each_other": Program(
        """s = s32[4] parameter(0)
           rows = s32[4,4] broadcast(s), dimensions={0}
           columns = s32[4,4] broadcast(s), dimensions={1}
           ROOT r = pred[4,4] compare(rows, columns), direction=EQ""",
        {"s": lambda i, j: [(i,), (j,)] if i != j else []},
    ),
    "floats_that_are_compared_with_each_other": Program(  # NaN does not equal itself
        """s = f32[4] parameter(0)
           rows = f32[4,4] broadcast(s), dimensions={0}
           columns = f32[4,4] broadcast(s), dimensions={1}
           ROOT r = pred[4,4] compare(rows, columns), direction=LE""",
        {"s": lambda i, j: [(i,), (j,)]},
    ),
    "an_integer_that_meets_itself_in_the_middle": Program(
        """s = s32[5] parameter(0)
           back = s32[5] reverse(s), dimensions={0}
           ROOT r = s32[5] subtract(s, back)""",
        {"s": lambda i: [(i,), (4 - i,)] if i != 2 else []},
    ),
    "sums_of_shifted_copies": Program(
        """x = f32[8] parameter(0)
           zero = f32[] constant(0)
           by_one = f32[8] pad(x, zero), padding=1_-1
           a = f32[8] add(x, by_one)
           by_two = f32[8] pad(a, zero), padding=2_-2
           ROOT r = f32[8] add(a, by_two)""",
        {"x": lambda d: [(d - s,) for s in range(4) if d >= s]},
    ),
    "conditional_on_constants": Program(
        """x = f32[4] parameter(0)
           y = f32[4] parameter(1)
           three = s32[] constant(3)
           five = s32[] constant(5)
           more = pred[] compare(three, five), direction=GT
           ROOT r = f32[4] conditional(more, x, y), true_computation=itself,
             false_computation=backwards""",
        {"x": lambda d: [], "y": lambda d: [(3 - d,)]},
        computations="""itself { x = f32[4] parameter(0)  ROOT r = f32[4] negate(x) }
          backwards { x = f32[4] parameter(0)  ROOT r = f32[4] reverse(x), dimensions={0} }""",
    ),
}

ONE_MAP: Final = ("sums_of_shifted_copies",)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_maps_relate_the_right_pairs(name: str) -> None:
    check_maps(PROGRAMS[name])


@pytest.mark.parametrize("name", [name for name in PROGRAMS if PROGRAMS[name].values != ({},)])
def test_maps_with_given_values_relate_the_right_pairs(name: str) -> None:
    check_given_values(PROGRAMS[name])


@pytest.mark.parametrize("name", ONE_MAP)
def test_maps_that_one_map_can_say_are_one(name: str) -> None:
    (maps,) = indexing.to_parameters(PROGRAMS[name].entry.root).maps
    assert len(maps) == 1


def test_the_values_of_a_runtime_scalar_decide_what_is_read() -> None:
    answer = indexing.to_parameters(PROGRAMS["runtime_scalar"].entry.root)
    for n, elements in ((3, []), (4, [[3]])):
        region = answer.at(3, n=n)[0]
        assert isinstance(region, indexing.Region)
        assert np.array_equal(region.elements(), np.reshape(elements, (-1, 1)))


def test_booleans_decide_what_is_read() -> None:
    answer = indexing.to_parameters(PROGRAMS["runtime_predicates_and_an_iota"].entry.root)
    mask = [True, False, True, False, True, True]
    for given in (mask, [int(bit) for bit in mask]):
        region = answer.at(slice(0, 6), mask=given)[0]
        assert isinstance(region, indexing.Region)
        assert np.array_equal(region.elements(), [[0], [2]])


def test_the_masks_of_two_calls_are_not_confused() -> None:
    root = hlo.parse(f"""
    times {{ x = s32[4] parameter(0)  m = s32[4] parameter(1)  ROOT r = s32[4] multiply(x, m) }}
    ENTRY e {{
      x = s32[4] parameter(0)
      y = s32[4] parameter(1)
      m = s32[4] {numbers(1, 0, 1, 0)}
      o = s32[4] {numbers(0, 1, 1, 1)}
      a = s32[4] call(x, m), to_apply=times
      b = s32[4] call(y, o), to_apply=times
      ROOT r = s32[4] add(a, b)
    }}""").entry.root
    x, y, *_ = indexing.to_parameters(root).maps
    assert union(x) >= {((k,), (k,)) for k in (0, 2)}
    assert union(y) >= {((k,), (k,)) for k in (1, 2, 3)}


def test_predicates_of_floats_restrict_nothing() -> None:
    root = hlo.parse("""ENTRY e {
      x = f32[4] parameter(0)
      y = f32[4] parameter(1)
      p = pred[4] compare(x, y), direction=GT
      ROOT r = f32[4] select(p, x, y)
    }""").entry.root
    assert not any(each.runtime for maps in indexing.to_parameters(root).maps for each in maps)


@pytest.mark.parametrize("execute", EXECUTIONS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_right_pairs_are_those_of_executions(name: str, execute: Callable[..., Any]) -> None:
    check_executions(PROGRAMS[name], execute)
