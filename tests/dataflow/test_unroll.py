"""An unrolled loop computes what the loop computes, bit by bit."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo
import indexing
from hlo import Module
from indexing import TripCount, Unknown
from indexing.execution.inputs import random_inputs
from indexing.execution.program import run
from tests.dataflow.loop_programs import LoopText, RandomLoop, count_from

DATA = Path(__file__).parent / "data" / "loops"
LESS = "  n = s32[] constant({n})\n  ROOT r = pred[] compare(i, n), direction=LT"
"""A condition on the counter `i`."""

BODIES = [
    "y = f32[5] reverse(x), dimensions={0}",
    "c = f32[] convert(i)  b = f32[5] broadcast(c), dimensions={}  y = f32[5] add(x, b)",
    "e = f32[1] dynamic-slice(x, i), dynamic_slice_sizes={1}  m = f32[1] negate(e)  "
    "y = f32[5] dynamic-update-slice(x, m, i)",
    "a = f32[4] slice(x), slice={[1:5]}  b = f32[1] slice(x), slice={[0:1]}  "
    "y = f32[5] concatenate(a, b), dimensions={0}",
    "e = f32[1] dynamic-slice(x, j), dynamic_slice_sizes={1}  r = f32[] reshape(e)  "
    "b = f32[5] broadcast(r), dimensions={}  y = f32[5] multiply(x, b)",
]


def same_results(before: Module, after: Module, seed: int) -> bool:
    """Return True if two programs return the same bits for random inputs."""
    inputs = random_inputs(before.entry, seed)
    results = [run(each, inputs) for each in (before, after)]
    assert len(results[0]) == len(results[1])
    return all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(*results, strict=True)
    )


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("iterations", [0, 1, 2, 6])
def test_an_unrolled_loop_returns_the_same_bits(body: str, iterations: int) -> None:
    loop = LoopText(
        ["i", "x"],
        ["s32[]", "f32[5]"],
        ["start", "p"],
        ["j", "y"],
        LESS.format(n=iterations),
        f"  step = s32[] constant(1)\n  j = s32[] add(i, step)\n  {body}",
        "  start = s32[] constant(0)\n  p = f32[5] parameter(0)",
    ).entry.root
    unrolled = indexing.unroll(loop)
    assert isinstance(unrolled, Module)
    assert not hlo.verify(unrolled)
    assert not unrolled.find(opcode="while")
    assert len(unrolled.find(opcode="add", name="j.*")) == iterations
    assert same_results(loop.module, unrolled, iterations)


@pytest.mark.parametrize("seed", range(12))
def test_random_counters_are_unrolled(seed: int) -> None:
    loop = RandomLoop(seed).entry().root
    unrolled, count = indexing.unroll(loop), indexing.trip_count(loop)
    is_number = isinstance(count, TripCount) and count.number is not None
    assert isinstance(unrolled, Module) == is_number
    if isinstance(unrolled, Module):
        assert not hlo.verify(unrolled)
        for number in range(2):
            assert same_results(loop.module, unrolled, number)


@pytest.mark.parametrize("name", ["jax_map", "jax_fori_and_while", "xla_cpu_scan"])
def test_loops_of_jax_are_unrolled(name: str) -> None:
    """Each counted loop, one after the other, until only loops of unknown length are left."""
    module = hlo.load(str(DATA / f"{name}.hlo"))
    before, count = module, 0
    while True:
        loops = [each for each in module.instructions if each.opcode == "while"]
        results = [indexing.unroll(each) for each in loops]
        modules = [each for each in results if isinstance(each, Module)]
        if not modules:
            break
        module, count = modules[0], count + 1
        assert not hlo.verify(module)
    assert count
    assert same_results(before, module, 0)


def test_control_predecessors_keep_their_meaning() -> None:
    condition = LESS.format(n=2)
    loop = LoopText(
        ["i"],
        ["s32[]"],
        ["start"],
        ["j"],
        condition,
        "  step = s32[] constant(1)\n"
        "  first = s32[] negate(i)\n"
        "  j = s32[] add(i, step), control-predecessors={first}",
        "  start = s32[] constant(0)",
    ).entry.root
    unrolled = indexing.unroll(loop)
    assert isinstance(unrolled, Module)
    sums = [each for each in unrolled.entry if each.opcode == "add" and each.name[0] == "j"]
    texts = [each.attributes["control-predecessors"].normal for each in sums]
    assert texts == ["{first.0}", "{first.1}"]


def test_other_loops_are_not_unrolled() -> None:
    bound = "  n = s32[] constant({})\n  ROOT r = pred[] compare(i, n), direction=LT"
    huge = count_from("s32", "constant(0)", "constant(1)", bound.format(1 << 20))
    assert str(indexing.unroll(huge)).startswith("budget: 1048576 iterations of 8 instructions")
    open_ended = count_from("s32", "parameter(0)", "constant(1)", bound.format(9))
    assert "iterations" in str(indexing.unroll(open_ended))
    endless = count_from("s32", "constant(0)", "constant(0)", bound.format(9))
    assert isinstance(indexing.unroll(endless), Unknown)
    with pytest.raises(ValueError, match="not a while"):
        indexing.unroll(endless.operands[0])
