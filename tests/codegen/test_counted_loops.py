"""A counted `while` becomes a `for` in loop nests, and computes what the loop computes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlo
import indexing
from hlo import Computation
from indexing import Unknown
from indexing.codegen import running
from indexing.codegen.nest import LoopNest
from indexing.codegen.stages import Repeat
from indexing.codegen.whole_modules import against_xla
from indexing.execution import run, xla
from indexing.execution.inputs import random_inputs
from indexing.execution.machine import RunOptions
from indexing.execution.values import ExecutionError
from indexing.maps.arrays import array_leaves
from tests.dataflow.loop_programs import LoopText, RandomLoop

DATA = Path(__file__).parent.parent / "dataflow" / "data" / "loops"
SCAN = """
less { s = (s32[], s32[], s32[6], s32[6]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(6)  ROOT r = pred[] compare(i, n), direction=LT }
next { s = (s32[], s32[], s32[6], s32[6]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  total = s32[] get-tuple-element(s), index=1  xs = s32[6] get-tuple-element(s), index=2
  sums = s32[6] get-tuple-element(s), index=3
  zero = s32[] constant(0)  negative = pred[] compare(i, zero), direction=LT
  n = s32[] constant(6)  from_end = s32[] add(i, n)  at = s32[] select(negative, from_end, i)
  x = s32[1] dynamic-slice(xs, at), dynamic_slice_sizes={1}  value = s32[] reshape(x)
  sum = s32[] add(total, value)  row = s32[1] reshape(sum)
  updated = s32[6] dynamic-update-slice(sums, row, at)
  one = s32[] constant(1)  j = s32[] add(i, one)
  ROOT t = (s32[], s32[], s32[6], s32[6]) tuple(j, sum, xs, updated) }
ENTRY cumsum { xs = s32[6] parameter(0)  zero = s32[] constant(0)
  empty = s32[6] broadcast(zero), dimensions={}
  s = (s32[], s32[], s32[6], s32[6]) tuple(zero, zero, xs, empty)
  w = (s32[], s32[], s32[6], s32[6]) while(s), condition=less, body=next
  ROOT sums = s32[6] get-tuple-element(w), index=3 }
"""


def nests_of(main: Computation) -> list[LoopNest]:
    """Return a nest for each result of a program."""
    nests = []
    for number, _, _ in array_leaves(main.root.shape):
        nest = indexing.loop_nest(main, number)
        assert isinstance(nest, LoopNest), nest
        nests.append(nest)
    return nests


def check(main: Computation, inputs: Sequence[Any], nests: Sequence[LoopNest]) -> None:
    """Check loops, programs and tiles against the interpreter, bit by bit."""
    with np.errstate(all="ignore"):
        expected = run(main, inputs)
    for nest, result in zip(nests, expected, strict=True):
        sizes = [max(1, size // 2) for size in result.shape]
        program = nest.vectorized()
        for actual in (nest.run(*inputs), program.run(*inputs), program.run(*inputs, tile=sizes)):
            same = actual.dtype == result.dtype and actual.tobytes() == result.tobytes()
            assert same, f"{main.module}\n{nest.source}\n{program.source}"


def loop(body: str, iterations: int, *, carried: str = "y", step: int = 1) -> Computation:
    """Return a loop over a counter `i` that replaces the array `x`."""
    return LoopText(
        ["i", "x"],
        ["s32[]", "s32[5]"],
        ["start", "p"],
        ["j", carried],
        f"  n = s32[] constant({iterations * step})\n  ROOT r = pred[] compare(i, n), direction=LT",
        f"  step = s32[] constant({step})\n  j = s32[] add(i, step)\n  {body}",
        "  start = s32[] constant(0)\n  p = s32[5] parameter(0)",
    ).entry


def test_a_scan_is_a_loop_over_its_iterations() -> None:
    main = hlo.parse(SCAN).entry
    (nest,) = nests_of(main)
    assert nest.source == "\n".join(
        [
            "def cumsum(xs):",
            "    sum = np.empty((), np.int32)",
            "    sum[()] = np.int32(0)",
            "    updated = np.empty((6,), np.int32)",
            "    for d0 in range(6):",
            "        updated[d0] = np.int32(0)",
            "    for i0 in range(6):",
            "        sum_next = np.empty((), np.int32)",
            "        sum_next[()] = sum[()] + xs[i0]",
            "        updated[i0] = sum_next[()]",
            "        sum = sum_next",
            "    out = np.empty((6,), np.int32)",
            "    for d0 in range(6):",
            "        out[d0] = updated[d0]",
            "    return out",
        ]
    )
    assert nest.vectorized().source == "\n".join(
        [
            "def cumsum(xs):",
            "    sum = np.broadcast_to(np.int32(0), ())",
            "    updated = np.broadcast_to(np.int32(0), (6,))",
            "    updated = np.array(updated)",
            "    for i0 in range(6):",
            "        sum_next = np.broadcast_to(sum[()] + xs[i0], ())",
            "        updated[i0] = sum_next[()]",
            "        sum = sum_next",
            "    out = updated",
            "    return out",
        ]
    )
    check(main, [np.array([3, 1, 4, 1, 5, 9], np.int32)], [nest])


BODIES = [
    "y = s32[5] reverse(x), dimensions={0}",
    "y = s32[5] constant({2,7,1,8,2})",
    "b = s32[5] broadcast(i), dimensions={}  y = s32[5] add(x, b)",
    "e = s32[1] dynamic-slice(x, i), dynamic_slice_sizes={1}  m = s32[1] negate(e)  "
    "y = s32[5] dynamic-update-slice(x, m, i)",
    "e = s32[2] broadcast(i), dimensions={}  y = s32[5] dynamic-update-slice(x, e, i)",
    "a = s32[4] slice(x), slice={[1:5]}  b = s32[1] slice(x), slice={[0:1]}  "
    "y = s32[5] concatenate(a, b), dimensions={0}",
    "m = s32[] constant(-7)  a = s32[] multiply(i, m)  e = s32[1] dynamic-slice(x, a), "
    "dynamic_slice_sizes={1}  r = s32[] reshape(e)  b = s32[5] broadcast(r), dimensions={}  "
    "y = s32[5] subtract(b, x)",
    "v = s32[1] slice(x), slice={[4:5]}  r = s32[] reshape(v)  e = s32[1] dynamic-slice(x, r), "
    "dynamic_slice_sizes={1}  y = s32[5] dynamic-update-slice(x, e, r)",
]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("iterations", [0, 1, 2, 6])
@pytest.mark.parametrize("step", [1, 3])
def test_a_counted_loop_computes_the_same_bits(body: str, iterations: int, step: int) -> None:
    main = loop(body, iterations, step=step)
    check(main, [np.array([3, -1, 4, 1, 2], np.int32)], nests_of(main))


# fmt: off
IN_PLACE = [
    # body                                                             in place
    ("y = s32[5] dynamic-update-slice(x, u, i)",                       True),
    ("a = s32[] add(i, i)  y = s32[5] dynamic-update-slice(x, u, a)",  False),  # is clamped
    ("a = u32[] bitcast-convert(i)  y = s32[5] dynamic-update-slice(x, u, a)",
                                                                       True),
    ("e = s32[1] slice(x), slice={[1:2]}  y = s32[5] dynamic-update-slice(x, e, i)",
                                                                       False),  # x is read
    ("z = s32[5] dynamic-update-slice(x, u, i)  y = s32[5] dynamic-update-slice(z, u, j)",
                                                                       False),  # of z, not of x
]
# fmt: on


@pytest.mark.parametrize(("body", "is_in_place"), IN_PLACE)
def test_an_array_that_is_only_updated_is_not_copied(body: str, is_in_place: bool) -> None:
    main = loop(f"u = s32[1] reshape(j)  {body}", 5)
    nests = nests_of(main)
    (repeat,) = (each for each in nests[2].stages if isinstance(each, Repeat))
    assert [each.is_in_place for each in repeat.carried] == [is_in_place]
    check(main, [np.array([3, -1, 4, 1, 2], np.int32)], nests)


def pair(body: str, carried: list[str], iterations: int = 4) -> Computation:
    """Return a loop over two arrays `x` and `y` whose next values are `carried`."""
    return LoopText(
        ["i", "x", "y"],
        ["s32[]", "s32[5]", "s32[5]"],
        ["start", "p", "q"],
        ["j", *carried],
        f"  n = s32[] constant({iterations})\n  ROOT r = pred[] compare(i, n), direction=LT",
        f"  one1 = s32[] constant(1)\n  j = s32[] add(i, one1)\n  {body}",
        "  start = s32[] constant(0)\n  p = s32[5] parameter(0)\n  q = s32[5] parameter(1)",
    ).entry


@pytest.mark.parametrize(
    ("body", "carried"),
    [
        ("", ["y", "x"]),
        ("a = s32[5] add(x, y)", ["y", "a"]),
        ("u = s32[1] reshape(j)  z = s32[5] dynamic-update-slice(x, u, i)", ["z", "z"]),
        ("u = s32[1] reshape(j)  z = s32[5] dynamic-update-slice(x, u, i)", ["y", "z"]),
        ("u = s32[1] reshape(j)  z = s32[5] dynamic-update-slice(x, u, i)", ["z", "x"]),
        (
            "u = s32[1] reshape(j)  z = s32[5] dynamic-update-slice(x, u, i)  "
            "v = s32[5] dynamic-update-slice(y, u, i)",
            ["z", "v"],
        ),
        (
            "u = s32[1] slice(y), slice={[2:3]}  z = s32[5] dynamic-update-slice(x, u, i)  "
            "v = s32[5] reverse(y), dimensions={0}",
            ["z", "v"],
        ),
    ],
)
def test_arrays_that_change_places_do_not_share_memory(body: str, carried: list[str]) -> None:
    main = pair(body, carried)
    inputs = [np.array([3, -1, 4, 1, 2], np.int32), np.array([-9, 8, 7, 6, 5], np.int32)]
    copies = [array.copy() for array in inputs]
    check(main, inputs, nests_of(main))
    assert all(np.array_equal(*each) for each in zip(inputs, copies, strict=True))


NESTED = """
less1 {{ s = (s32[], s32[], s32[6]) parameter(0)  k = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1  ROOT r = pred[] compare(k, n), direction=LT }}
next1 {{ s = (s32[], s32[], s32[6]) parameter(0)  k = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1  x = s32[6] get-tuple-element(s), index=2
  e = s32[1] dynamic-slice(x, k), dynamic_slice_sizes={{1}}  b = s32[1] reshape(n)
  a = s32[1] multiply(e, b)  c = s32[1] add(a, b)
  y = s32[6] dynamic-update-slice(x, c, k)
  one = s32[] constant(1)  j = s32[] add(k, one)
  ROOT t = (s32[], s32[], s32[6]) tuple(j, n, y) }}
less {{ s = (s32[], s32[6]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)  ROOT r = pred[] compare(i, n), direction=LT }}
next {{ s = (s32[], s32[6]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  x = s32[6] get-tuple-element(s), index=1  zero = s32[] constant(0)  bound = s32[] {bound}
  q = (s32[], s32[], s32[6]) tuple(zero, bound, x)
  w = (s32[], s32[], s32[6]) while(q), condition=less1, body=next1
  z = s32[6] get-tuple-element(w), index=2  v = s32[6] negate(z)
  one = s32[] constant(1)  j = s32[] add(i, one)  ROOT t = (s32[], s32[6]) tuple(j, v) }}
ENTRY main {{ x = s32[6] parameter(0)  zero = s32[] constant(0)
  s = (s32[], s32[6]) tuple(zero, x)
  w = (s32[], s32[6]) while(s), condition=less, body=next
  ROOT r = s32[6] get-tuple-element(w), index=1 }}
"""


def test_nested_loops_have_variables_of_their_own() -> None:
    main = hlo.parse(NESTED.format(bound="constant(3)")).entry
    nests = nests_of(main)
    assert "    for i0 in range(4):\n" in nests[0].source
    assert "        for i1 in range(3):\n" in nests[0].source
    check(main, [np.array([3, -1, 4, 1, 2, 7], np.int32)], nests)


def nest_loops(depth: int, dims: str) -> Computation:
    """Return a program of `depth` nested loops of two iterations each."""
    state = f"(s32[], s32[{dims}])"
    parts = ["add { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT c = s32[] add(a, b) }"]
    rank = dims.count(",") + 1
    kept, reduced = (
        ",".join(map(str, part)) for part in (range(rank // 2), range(rank // 2, rank))
    )
    row = ",".join(dims.split(",")[: rank // 2])
    for level in range(depth):
        inner = (
            f"w = {state} while(q), condition=c{level - 1}, body=b{level - 1}  "
            f"y = s32[{dims}] get-tuple-element(w), index=1"
            if level
            else f"r = s32[{row}] reduce(x, zero), dimensions={{{reduced}}}, to_apply=add  "
            f"z = s32[{dims}] broadcast(r), dimensions={{{kept}}}  y = s32[{dims}] subtract(z, x)"
        )
        parts.append(f"""
c{level} {{ s = {state} parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(2)  ROOT r = pred[] compare(i, n), direction=LT }}
b{level} {{ s = {state} parameter(0)  i = s32[] get-tuple-element(s), index=0
  x = s32[{dims}] get-tuple-element(s), index=1  zero = s32[] constant(0)
  q = {state} tuple(zero, x)  {inner}
  one = s32[] constant(1)  j = s32[] add(i, one)  ROOT t = {state} tuple(j, y) }}""")
    parts.append(f"""
ENTRY main {{ x = s32[{dims}] parameter(0)  zero = s32[] constant(0)
  q = {state} tuple(zero, x)  w = {state} while(q), condition=c{depth - 1}, body=b{depth - 1}
  ROOT r = s32[{dims}] get-tuple-element(w), index=1 }}""")
    return hlo.parse("\n".join(parts)).entry


@pytest.mark.parametrize(("depth", "rank"), [(1, 18), (3, 18), (8, 10), (8, 18)])
def test_python_compiles_nested_loops_of_any_rank(depth: int, rank: int) -> None:
    (nest,) = nests_of(nest_loops(depth, ",".join(["2"] * rank)))
    assert nest.source  # is compiled
    small = nest_loops(depth, ",".join(["2"] * (rank // 4)))
    xs = np.arange(2 ** (rank // 4), dtype=np.int32).reshape([2] * (rank // 4))
    check(small, [xs], nests_of(small))


def test_more_nested_loops_are_refused() -> None:
    unknown = indexing.loop_nest(nest_loops(9, "2"))
    assert isinstance(unknown, Unknown)
    assert "budget: it is within 8 other loops" in unknown.reason


def test_a_bound_may_be_an_outer_iteration() -> None:
    main = hlo.parse(NESTED.format(bound="copy(i)")).entry
    nests = nests_of(main)
    assert "        for i1 in range(i0):\n" in nests[0].source
    check(main, [np.array([3, -1, 4, 1, 2, 7], np.int32)], nests)


BOUNDED = """
less {{ s = (s32[], s32[], s32[6]) parameter(0)  k = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1  ROOT r = pred[] compare(k, n), direction=LT }}
next {{ s = (s32[], s32[], s32[6]) parameter(0)  k = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1  x = s32[6] get-tuple-element(s), index=2
  b = s32[1] reshape(k)  y = s32[6] dynamic-update-slice(x, b, k)
  one = s32[] constant({step})  j = s32[] add(k, one)
  ROOT t = (s32[], s32[], s32[6]) tuple(j, n, y) }}
ENTRY main {{ n = s8[] parameter(0)  x = s32[6] parameter(1)  zero = s32[] constant({start})
  wide = s32[] convert(n)  s = (s32[], s32[], s32[6]) tuple(zero, wide, x)
  w = (s32[], s32[], s32[6]) while(s), condition=less, body=next
  k = s32[] get-tuple-element(w), index=0  r = s32[6] get-tuple-element(w), index=2
  ROOT t = (s32[], s32[6]) tuple(k, r) }}
"""


@pytest.mark.parametrize("bound", [-128, -1, 0, 1, 5, 127])
@pytest.mark.parametrize(("start", "step"), [(0, 1), (-3, 2), (100, 7)])
def test_the_number_of_iterations_may_be_a_formula(bound: int, start: int, step: int) -> None:
    main = hlo.parse(BOUNDED.format(start=start, step=step)).entry
    nests = nests_of(main)
    assert "in range(max(" in nests[1].source
    (repeat,) = (each for each in nests[1].stages if isinstance(each, Repeat))
    assert [each.buffer.name for each in repeat.carried] == ["y"]  # the counter is an expression
    check(main, [np.array(bound, np.int8), np.array([3, 1, 4, 1, 5, 9], np.int32)], nests)


def test_the_limit_on_iterations_holds_for_nests() -> None:
    nests, xs = running.nests_of(hlo.parse(SCAN)), np.array([3, 1, 4, 1, 5, 9], np.int32)
    assert nests.run([xs], RunOptions(max_iterations=6))[0].tolist() == [3, 4, 8, 9, 14, 23]
    with pytest.raises(ExecutionError, match="the loop has 6 iterations, more than 5"):
        nests.run([xs], RunOptions(max_iterations=5))


def test_a_loop_of_unknown_length_is_interpreted() -> None:
    module = hlo.parse(BOUNDED.format(start=0, step=1))
    nests = running.nests_of(module)
    assert nests.by_result is None
    assert "its inputs decide the number of iterations of a loop" in nests.remarks[0]


def random_body(chooser: random.Random) -> tuple[str, list[str]]:
    """Return random instructions on the arrays `x` and `y` and the counters `i` and `j`."""
    arrays, starts, lines = ["x", "y"], ["i", "j"], []
    for number in range(chooser.randint(1, 6)):
        a, b, at = chooser.choice(arrays), chooser.choice(arrays), chooser.choice(starts)
        size, low = chooser.choice([1, 2]), chooser.randrange(4)
        name = f"v{number}"
        match chooser.randrange(7):
            case 0:
                lines.append(f"{name} = s32[5] add({a}, {b})")
            case 1:
                lines.append(f"{name} = s32[5] reverse({a}), dimensions={{0}}")
            case 2 | 3:
                piece = f"s32[{size}] slice({b}), slice={{[{low}:{low + size}]}}"
                lines.append(f"u{number} = {piece if low + size <= 5 else f's32[1] reshape({at})'}")
                lines.append(f"{name} = s32[5] dynamic-update-slice({a}, u{number}, {at})")
            case 4:
                piece = f"s32[{size}] dynamic-slice({b}, {at}), dynamic_slice_sizes={{{size}}}"
                lines.append(f"u{number} = {piece}")
                other = chooser.choice(starts)
                lines.append(f"{name} = s32[5] dynamic-update-slice({a}, u{number}, {other})")
            case 5:
                lines.append(f"k{number} = s32[] constant({chooser.randrange(-3, 4)})")
                function = chooser.choice(["add", "multiply", "subtract", "maximum", "remainder"])
                lines.append(f"c{number} = s32[] {function}({at}, k{number})")
                starts.append(f"c{number}")
                continue
            case _:
                lines.append(f"e{number} = s32[1] slice({b}), slice={{[{low}:{low + 1}]}}")
                lines.append(f"c{number} = s32[] reshape(e{number})")
                starts.append(f"c{number}")
                continue
        arrays.append(name)
    return "\n  ".join(lines), [chooser.choice(arrays[-3:]) for _ in range(2)]


def test_random_bodies_compute_the_same_bits() -> None:
    for seed in range(60):
        chooser = random.Random(seed)
        main = pair(*random_body(chooser), iterations=chooser.randrange(7))
        check(main, random_inputs(main, seed), nests_of(main))


def test_random_counters_compute_the_same_bits() -> None:
    counted = 0
    for seed in range(150):
        main = RandomLoop(seed).entry()
        nest = indexing.loop_nest(main, 1)
        if isinstance(nest, LoopNest):
            counted += 1
            check(main, random_inputs(main, seed), nests_of(main))
    assert counted >= 20


@pytest.mark.parametrize("name", ["jax_fori_and_while", "jax_map", "xla_cpu_scan"])
def test_loops_of_jax_compute_the_same_bits(name: str) -> None:
    main = hlo.load(DATA / f"{name}.hlo").entry
    inputs = random_inputs(main, 3)
    expected = run(main, inputs)
    for number, result in enumerate(expected):
        nest = indexing.loop_nest(main, number)
        if isinstance(nest, LoopNest):
            assert np.array_equal(nest.vectorized().run(*inputs), result)


# fmt: off
REFUSED = [
    # condition                                                        reason
    ("  v = s32[1] slice(x), slice={[0:1]}\n  n = s32[] reshape(v)\n"
     "  ROOT r = pred[] compare(i, n), direction=LT",                  "depends on data"),
    ("  v = s32[1] slice(x), slice={[0:1]}\n  k2 = s32[] reshape(v)\n  n = s32[] constant(3)\n"
     "  a = pred[] compare(i, n), direction=LT\n  b = pred[] compare(k2, n), direction=LT\n"
     "  ROOT r = pred[] and(a, b)",              "only bounds of its trip count are known, [0, 3]"),
    ("  n = s32[] constant(3)\n  ROOT r = pred[] compare(n, n), direction=EQ",
                                                                       "does not terminate"),
]
# fmt: on


@pytest.mark.parametrize(("condition", "reason"), REFUSED)
def test_the_reason_names_the_loop_that_is_not_counted(condition: str, reason: str) -> None:
    main = LoopText(
        ["i", "x"],
        ["s32[]", "s32[5]"],
        ["start", "p"],
        ["j", "y"],
        condition,
        "  one2 = s32[] constant(1)\n  j = s32[] add(i, one2)\n  y = s32[5] negate(x)",
        "  start = s32[] constant(0)\n  p = s32[5] parameter(0)",
    ).entry
    unknown = indexing.loop_nest(main, 2)
    assert isinstance(unknown, Unknown)
    assert "no loop nest for while `w`" in unknown.reason
    assert reason in unknown.reason


def test_one_result_runs_as_a_nest_and_several_results_share_the_interpreted_loop() -> None:
    one = hlo.parse(SCAN)
    xs = np.array([3, 1, 4, 1, 5, 9], np.int32)
    for tile in (None, (4,)):
        nests = running.nests_of(one, tile)
        assert nests.by_result is not None
        assert nests.run([xs])[0].tolist() == [3, 4, 8, 9, 14, 23]
    both = hlo.parse(SCAN.replace("  ROOT sums =", "  sums =").replace(
        "index=3 }\n", "index=3\n  last = s32[] get-tuple-element(w), index=1\n"
        "  ROOT r = (s32[6], s32[]) tuple(sums, last) }\n"))  # fmt: skip
    nests = running.nests_of(both)
    assert nests.by_result is None
    assert "each of its 2 results would execute its loops again" in nests.remarks[0]
    assert [each.tolist() for each in nests.run([xs])] == [[3, 4, 8, 9, 14, 23], 23]


TWO_LOOPS = """
less {{ s = (s32[], s32[6]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)  ROOT r = pred[] compare(i, n), direction=LT }}
next {{ s = (s32[], s32[6]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  x = s32[6] get-tuple-element(s), index=1  b = s32[1] reshape(i)
  y = s32[6] dynamic-update-slice(x, b, i)  one = s32[] constant(1)  j = s32[] add(i, one)
  ROOT t = (s32[], s32[6]) tuple(j, y) }}
filled {{ x = s32[6] parameter(0)  k = s32[] constant({start})  s = (s32[], s32[6]) tuple(k, x)
  w = (s32[], s32[6]) while(s), condition=less, body=next
  ROOT y = s32[6] get-tuple-element(w), index=1 }}
ENTRY main {{ x = s32[6] parameter(0)  first = s32[6] call(x), to_apply=filled
  turned = s32[6] reverse(first), dimensions={{0}}  second = s32[6] call({of}), to_apply=filled
  a = s32[6] add(first, second)  k = s32[] constant({start})  s = (s32[], s32[6]) tuple(k, first)
  w = (s32[], s32[6]) while(s), condition=less, body=next
  y = s32[6] get-tuple-element(w), index=1  b = s32[6] subtract(y, x)
  ROOT r = s32[6] multiply(a, b) }}
"""


@pytest.mark.parametrize("of", ["x", "first", "turned"])
@pytest.mark.parametrize("start", [-1, 0, 3, 4])
def test_loops_leave_their_operands_unchanged(of: str, start: int) -> None:
    main = hlo.parse(TWO_LOOPS.format(of=of, start=start)).entry
    xs = np.array([13, -1, 14, 1, 12, 7], np.int32)
    check(main, [xs], nests_of(main))
    assert xs.tolist() == [13, -1, 14, 1, 12, 7]


@pytest.mark.skipif(not xla.is_available(), reason="needs XLA")
def test_the_loops_of_a_scan_compute_what_xla_computes() -> None:
    for module in (hlo.load(DATA / "xla_cpu_scan.hlo"), hlo.parse(SCAN)):
        report = against_xla(module, 0, 10_000, xla.run)
        checks = {(each.check, each.status) for each in report.findings}
        assert checks == {("kernels = xla", "ok"), ("maps = xla", "ok")}


def test_inputs_of_an_instruction_may_start_a_loop_anywhere() -> None:
    main = hlo.parse(SCAN).entry
    unknown = indexing.loop_nest(main["w"], 3)
    assert isinstance(unknown, Unknown)
    assert "operand" in unknown.reason
