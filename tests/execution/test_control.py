"""Control flow, random numbers, dynamic sizes, and ops that cannot be executed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hlo
from indexing.execution import evaluate, run
from tests.execution.arrays import f32, s32

BRANCHES = """
double { p = s32[] parameter(0) t = s32[] constant(2) ROOT r = s32[] multiply(p, t) }
minus { p = s32[] parameter(0) ROOT r = s32[] negate(p) }
same { p = s32[] parameter(0) ROOT r = s32[] copy(p) }
"""


@pytest.mark.parametrize(
    ("index", "expected"), [(0, 20), (1, -11), (2, 12), (3, 12), (-1, 12), (-(2**31), 12)]
)
def test_an_index_out_of_range_chooses_the_last_branch(index: int, expected: int) -> None:
    text = f"""{BRANCHES} ENTRY e {{ i = s32[] parameter(0)
      a = s32[] constant(10) b = s32[] constant(11) c = s32[] constant(12)
      ROOT r = s32[] conditional(i, a, b, c), branch_computations={{double, minus, same}} }}"""
    assert int(run(hlo.parse(text), [s32(index)])[0]) == expected


@pytest.mark.parametrize(("choice", "expected"), [(True, 20), (False, -11)])
def test_a_pred_chooses_between_two_computations(choice: bool, expected: int) -> None:
    text = f"""{BRANCHES} ENTRY e {{ i = pred[] parameter(0)
      a = s32[] constant(10) b = s32[] constant(11)
      ROOT r = s32[] conditional(i, a, b), false_computation=minus, true_computation=double }}"""
    assert int(run(hlo.parse(text), [np.bool_(choice)])[0]) == expected


COUNTING = """
below { p = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1 ROOT r = pred[] compare(i, n), direction=LT }
next { p = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1 o = s32[] constant(1) j = s32[] add(i, o)
  ROOT r = (s32[], s32[]) tuple(j, n) }
ENTRY e { n = s32[] parameter(0) z = s32[] constant(0) t = (s32[], s32[]) tuple(z, n)
  w = (s32[], s32[]) while(t), condition=below, body=next
  ROOT r = s32[] get-tuple-element(w), index=0 }
"""


@pytest.mark.parametrize(("limit", "iterations"), [(0, 0), (-5, 0), (7, 7)])
def test_a_loop_iterates_while_its_condition_holds(limit: int, iterations: int) -> None:
    assert int(run(hlo.parse(COUNTING), [s32(limit)], max_iterations=7)[0]) == iterations


def test_a_loop_that_exceeds_the_limit_is_an_error_with_its_location() -> None:
    with pytest.raises(hlo.HloError, match="does not terminate within 7 iterations") as caught:
        run(hlo.parse(COUNTING), [s32(8)], max_iterations=7)
    assert caught.value.span.text.startswith("w = (s32[], s32[]) while")
    assert "raise the limit with --max-iterations" in str(caught.value)


# ---------------------------------------------------------------- computations of scalars

FACTORIAL = """
positive { p = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(p), index=0
  z = s32[] constant(0) ROOT r = pred[] compare(i, z), direction=GT }
step { p = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1 o = s32[] constant(1) j = s32[] subtract(i, o)
  m = s32[] multiply(n, i) ROOT r = (s32[], s32[]) tuple(j, m) }
factorial { x = s32[] parameter(0) o = s32[] constant(1) t = (s32[], s32[]) tuple(x, o)
  w = (s32[], s32[]) while(t), condition=positive, body=step
  ROOT r = s32[] get-tuple-element(w), index=1 }
"""


def test_a_map_of_a_computation_with_a_loop_visits_each_element() -> None:
    text = f"""{FACTORIAL} ENTRY e {{ x = s32[2,3] parameter(0)
      ROOT r = s32[2,3] map(x), dimensions={{0,1}}, to_apply=factorial }}"""
    (actual,) = run(hlo.parse(text), [s32([[0, 1, 2], [3, 4, 5]])])
    assert actual.tolist() == [[1, 1, 2], [6, 24, 120]]


def test_a_map_of_a_constant_has_the_size_of_its_operand() -> None:
    text = """seven { x = f32[] parameter(0) ROOT r = s32[] constant(7) }
      ENTRY e { x = f32[3] parameter(0) ROOT r = s32[3] map(x), to_apply=seven }"""
    assert run(hlo.parse(text), [np.zeros(3, np.float32)])[0].tolist() == [7, 7, 7]


@pytest.mark.parametrize("count", [5, 5000])
def test_a_reduce_by_any_computation_combines_several_arrays(count: int) -> None:
    """The minimum and the last index where it occurs; the computation calls another one."""
    text = f"""
    chosen {{ a = f32[] parameter(0) b = f32[] parameter(1)
      ROOT r = pred[] compare(b, a), direction=LE }}
    lowest {{ m = f32[] parameter(0) k = s32[] parameter(1) v = f32[] parameter(2)
      i = s32[] parameter(3) g = pred[] call(m, v), to_apply=chosen
      x = f32[] select(g, v, m) j = s32[] select(g, i, k) ROOT r = (f32[], s32[]) tuple(x, j) }}
    ENTRY e {{ v = f32[{count},3] parameter(0) k = s32[{count},3] iota(), iota_dimension=0
      y = f32[] constant(inf) z = s32[] constant(-1)
      ROOT r = (f32[3], s32[3]) reduce(v, k, y, z), dimensions={{0}}, to_apply=lowest }}"""
    values = np.random.default_rng(count).integers(0, 20, (count, 3)).astype(np.float32)
    minima, indices = run(hlo.parse(text), [values])
    assert minima.tolist() == values.min(0).tolist()
    assert indices.tolist() == [
        max(k for k in range(count) if values[k, c] == values[:, c].min()) for c in range(3)
    ]


# ---------------------------------------------------------------- random numbers

UNIFORM = """ENTRY e { a = f32[] constant(-2) b = f32[] constant(3)
  p = f32[20000] rng(a, b), distribution=rng_uniform
  q = f32[20000] rng(a, b), distribution=rng_normal
  ROOT t = (f32[20000], f32[20000]) tuple(p, q) }"""


def test_random_numbers_follow_the_distribution_and_are_deterministic_for_a_seed() -> None:
    uniform, normal = run(hlo.parse(UNIFORM), [], seed=5)
    assert -2 <= uniform.min() < -1.99
    assert 2.99 < uniform.max() < 3
    assert abs(uniform.mean() - 0.5) < 0.05
    assert abs(normal.mean() + 2) < 0.1
    assert abs(normal.std() - 3) < 0.1
    again, other = run(hlo.parse(UNIFORM), [], seed=5), run(hlo.parse(UNIFORM), [], seed=6)
    np.testing.assert_array_equal(again[0], uniform)
    assert (other[0] != uniform).any()


def test_the_random_state_advances_by_delta() -> None:
    text = """ENTRY e { a = u64[2] rng-get-and-update-state(), delta=5
      b = u64[2] rng-get-and-update-state(), delta=1
      ROOT r = u64[2] subtract(b, a) }"""
    assert run(hlo.parse(text), [])[0].tolist() == [5, 0]


# ---------------------------------------------------------------- dynamic sizes

DYNAMIC = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e { p = f32[2,3] parameter(0) n = s32[] parameter(1)
  d = f32[2,<=3] set-dimension-size(p, n), dimensions={1}
  m = f32[2,<=3] negate(d)  z = f32[] constant(0)
  r = f32[2] reduce(m, z), dimensions={1}, to_apply=add
  g = s32[] get-dimension-size(m), dimensions={1}
  ROOT t = (f32[2], s32[], f32[2,<=3]) tuple(r, g, m) }
"""


@pytest.mark.parametrize("size", [0, 1, 3])
def test_only_elements_within_the_dynamic_size_are_reduced(size: int) -> None:
    values = f32([[1, 2, 4], [8, 16, 32]])
    total, count, array = run(hlo.parse(DYNAMIC), [values, s32(size)])
    assert total.tolist() == (-values[:, :size].sum(1)).tolist()
    assert int(count) == size
    assert array.shape == (2, 3)
    np.testing.assert_array_equal(array[:, :size], -values[:, :size])
    np.testing.assert_array_equal(array[:, size:], 0)


def test_a_size_beyond_the_bound_is_an_error() -> None:
    with pytest.raises(hlo.HloError, match=r"size 4 of dimension 1 of .* is out of range"):
        run(hlo.parse(DYNAMIC), [np.zeros((2, 3), np.float32), s32(4)])


# ---------------------------------------------------------------- other ops, errors, results


def test_asynchronous_ops_complete() -> None:
    text = """minus { p = s32[2] parameter(0) ROOT r = s32[2] negate(p) }
    ENTRY e { p = s32[2] parameter(0)
      s = ((s32[2]), s32[2], u32[]) async-start(p), calls=minus
      u = ((s32[2]), s32[2], u32[]) async-update(s)  d = s32[2] async-done(u)
      c = (s32[2], s32[2], u32[]) copy-start(d)  ROOT r = s32[2] copy-done(c) }"""
    assert run(hlo.parse(text), [s32([1, -2])])[0].tolist() == [-1, 2]


def test_evaluate_returns_every_value_including_dead_code() -> None:
    text = """ENTRY e { p = (s32[2], s32[]) parameter(0) a = s32[2] get-tuple-element(p), index=0
      unused = s32[2] negate(a) ROOT b = s32[] get-tuple-element(p), index=1 }"""
    entry = hlo.parse(text).entry
    values = evaluate(entry, s32([3, 4]), s32(5))
    assert {i.name: _plain(value) for i, value in values.items()} == {
        "p": ([3, 4], 5),
        "a": [3, 4],
        "unused": [-3, -4],
        "b": 5,
    }


def _plain(value: Any) -> Any:
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value.tolist()


def test_dead_code_is_not_executed() -> None:
    text = """ENTRY e { p = f32[2] parameter(0) s = f32[2] shuffle(p) ROOT n = f32[2] negate(p) }"""
    assert run(hlo.parse(text), [f32([1, 2])])[0].tolist() == [-1, -2]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("f32[2] no-such-opcode(p)", "unknown opcode `no-such-opcode`"),
        ("f32[2] shuffle(p)", "shuffle has no kernel"),
        (
            'f32[2] custom-call(p), custom_call_target="mine"',
            'no handler for custom-call target "mine"',
        ),
    ],
)
def test_an_op_without_a_kernel_is_an_error(line: str, message: str) -> None:
    module = hlo.parse(f"ENTRY e {{ p = f32[2] parameter(0) ROOT r = {line} }}")
    with pytest.raises(hlo.HloError, match=message) as caught:
        run(module, [f32([1, 2])])
    assert caught.value.span.text.startswith("r = f32[2]")


def test_results_share_no_memory() -> None:
    """Writing to a result changes no input, constant or other result."""
    text = """ENTRY e { p = f32[2] parameter(0) c = f32[2] constant({5, 6}) b = f32[2] copy(p)
      ROOT t = (f32[2], f32[2], f32[2], f32[2]) tuple(p, c, c, b) }"""
    module, given = hlo.parse(text), f32([1, 2])
    results = run(module, [given])
    for number, array in enumerate(results):
        array[...] = 10 + number
    assert given.tolist() == [1, 2]
    assert [array.tolist() for array in results] == [[n, n] for n in (10, 11, 12, 13)]
    assert [array.tolist() for array in run(module, [given])] == [[1, 2], [5, 6], [5, 6], [1, 2]]


def test_floating_types_may_be_mixed_as_in_xla() -> None:
    text = "ENTRY e { p = f32[] parameter(0) ROOT b = f16[2] broadcast(p), dimensions={} }"
    (actual,) = run(hlo.parse(text), [f32(0.1)])
    assert (actual.dtype, actual.tolist()) == (np.float16, [np.float16(0.1)] * 2)


def test_a_non_associative_function_is_reduced_from_the_first_element() -> None:
    text = """f { a = f32[] parameter(0) b = f32[] parameter(1) s = f32[] add(a, b)
      ROOT m = f32[] maximum(s, a) }
    ENTRY e { p = f32[300] parameter(0) z = f32[] constant(0)
      ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=f }"""
    values = np.random.default_rng(4).integers(-9, 9, 300).astype(np.float32)
    (actual,) = run(hlo.parse(text), [values])
    assert float(actual) == values[values > 0].sum()
