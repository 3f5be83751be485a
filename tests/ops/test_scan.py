"""The maps of a scan are the dependencies of its kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hlo
from hlo import Instruction
from indexing import input_to_output, output_to_input
from indexing.execution import run
from indexing.maps.answers import Answer
from tests.ops.samples import Array, Pair, related_pairs

SLICE = "x = f32[2] parameter(0) c = f32[2] parameter(1)"
TWO = "ROOT r = (f32[2], f32[2]) tuple"


def total(x: Array, c: Array) -> tuple[Array, Array]:
    return x + c, x + c


# one step on a slice and the carry, in HLO and in NumPy
STEPS: dict[str, tuple[str, Callable[..., Any]]] = {
    "sums": (f"{SLICE} s = f32[2] add(x, c) {TWO}(s, s)", total),
    "sums before": (f"{SLICE} s = f32[2] add(x, c) {TWO}(c, s)", lambda x, c: (c, x + c)),
    "last": (f"{SLICE} {TWO}(x, x)", lambda x, c: (x, x)),
    "one before": (f"{SLICE} {TWO}(c, x)", lambda x, c: (c, x)),
    "first": (f"{SLICE} {TWO}(c, c)", lambda x, c: (c, c)),
    "reversed carry": (
        f"{SLICE} s = f32[2] add(x, c) t = f32[2] reverse(s), dimensions={{0}} {TWO}(x, t)",
        lambda x, c: (x, (x + c)[::-1]),
    ),
    "the other element": (
        f"{SLICE} s = f32[2] add(x, c) t = f32[2] reverse(x), dimensions={{0}} {TWO}(t, s)",
        lambda x, c: (x[::-1], x + c),
    ),
}
EXACT = {"sums", "sums before", "last", "first"}


def scan(step: str, is_reverse: bool, count: int) -> Instruction:
    """A scan along the second dimension."""
    return hlo.parse(f"""
    step {{ {STEPS[step][0]} }}
    ENTRY e {{
      p = f32[2,{count}] parameter(0)
      z = f32[2] parameter(1)
      ROOT r = (f32[2,{count}], f32[2]) scan(p, z), dimensions={{1}}, num_carries=1,
        is_reverse={str(is_reverse).lower()}, to_apply=step
    }}""").entry.root


def poke(instruction: Instruction, step: str, operand: int, output: int) -> set[Pair]:
    """Pairs of an output element that changed and the perturbed element of the operand."""
    op: Any = instruction.op
    shapes: list[Any] = [o.shape for o in instruction.operands]
    inputs = [np.arange(s.size, dtype=np.float32).reshape(s.dims) + 1 for s in shapes]
    before = op.kernel(*inputs, to_apply=STEPS[step][1])[output]
    pairs: set[Pair] = set()
    for index in np.ndindex(*shapes[operand].dims):
        perturbed = [array.copy() for array in inputs]
        perturbed[operand][index] += 1000
        after = op.kernel(*perturbed, to_apply=STEPS[step][1])[output]
        pairs.update((tuple(map(int, i)), index) for i in np.argwhere(before != after))
    return pairs


def mapped_pairs(answer: Answer, number: int) -> set[Pair]:
    return {pair for m in answer.maps[number] for pair in related_pairs(m, [])}


@pytest.mark.parametrize("count", [0, 1, 4])
@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_maps_are_the_dependencies_of_the_kernel(step: str, is_reverse: bool, count: int) -> None:
    instruction = scan(step, is_reverse, count)
    assert hlo.verify(instruction.module) == []
    for output in (0, 1):
        back = output_to_input(instruction, output)
        for operand in (0, 1):
            reads = mapped_pairs(back, operand)
            needed = poke(instruction, step, operand, output)
            assert needed <= reads
            is_exact = all(m.grade == "exact" for m in back.maps[operand])
            assert not is_exact or needed == reads
            assert is_exact or step not in EXACT
            writes = mapped_pairs(input_to_output(instruction, operand), output)
            assert {(b, a) for a, b in writes} == reads


def test_a_running_sum_reads_a_prefix() -> None:
    (forward,) = output_to_input(scan("sums", False, 5)).maps[0]
    assert str(forward) == (
        "(d0, d1)[s0] -> (d0, s0), "
        "domain: d0 in [0, 1], d1 in [0, 4], s0 in [0, 4], d1 - s0 in [0, 4]"
    )
    (reverse,) = output_to_input(scan("sums", True, 5)).maps[0]
    assert str(reverse).endswith("d1 - s0 in [-4, 0]")


@pytest.mark.parametrize("step", ["f32[2]", "(f32[2])"])
@pytest.mark.parametrize("result", ["f32[{}2]", "(f32[{}2])"])
@pytest.mark.parametrize("carries", [0, 1])
def test_one_result_may_be_a_tuple_in_the_step_or_in_the_scan(
    step: str, result: str, carries: int
) -> None:
    made = "tuple" if step.startswith("(") else "copy"
    instruction = hlo.parse(f"""
    step {{ {SLICE} s = f32[2] add(x, c) ROOT r = {step} {made}(s) }}
    ENTRY e {{
      p = f32[3,2] parameter(0)
      z = f32[{"" if carries else "3,"}2] parameter(1)
      ROOT r = {result.format("" if carries else "3,")} scan(p, z), dimensions={{0}},
        num_carries={carries}, to_apply=step
    }}""").entry.root
    assert hlo.verify(instruction.module) == []
    inputs = [np.arange(6, dtype=np.float32).reshape(3, 2) + 1 for _ in range(2)]
    inputs[1] = inputs[1][0] if carries else inputs[1]
    before = np.asarray(run(instruction.module, inputs)[0])
    for operand in (0, 1):
        needed: set[Pair] = set()
        for index in np.ndindex(*inputs[operand].shape):
            perturbed = [array.copy() for array in inputs]
            perturbed[operand][index] += 1000
            after = np.asarray(run(instruction.module, perturbed)[0])
            needed.update((tuple(map(int, i)), index) for i in np.argwhere(before != after))
        assert mapped_pairs(output_to_input(instruction), operand) == needed
        assert {(b, a) for a, b in mapped_pairs(input_to_output(instruction, operand), 0)} == needed


def test_a_scan_of_a_mismatched_step_is_unknown_with_a_reason() -> None:
    module = hlo.parse("""
    step { x = f32[2] parameter(0) c = f32[2] parameter(1) ROOT r = (f32[2], f32[2]) tuple(x, c) }
    ENTRY e {
      p = f32[3,5] parameter(0)
      z = f32[2] parameter(1)
      ROOT r = (f32[3,5], f32[2]) scan(p, z), dimensions={1}, num_carries=1, to_apply=step
    }""")
    why, _ = output_to_input(module.entry.root).unknown
    assert why is not None
    assert str(why) == (
        "scan `r`: the parameters of `step` are (f32[2], f32[2]), expected (f32[3], f32[2])"
    )
    with pytest.raises(hlo.HloError, match="scan cannot be executed: the parameters of `step`"):
        run(module, [np.zeros((3, 5), np.float32), np.zeros(2, np.float32)])
