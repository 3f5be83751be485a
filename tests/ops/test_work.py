"""The work that ops declare, counted by hand and by XLA's cost analysis."""

from __future__ import annotations

from importlib import import_module
from itertools import product
from math import prod
from random import Random
from typing import Any, Final

import pytest

import hlo
import indexing.ops  # noqa: F401  # registers the ops
from hlo.ops.attributes import WindowDimension
from hlo.ops.op import OPS
from indexing.execution import xla
from indexing.ops.element import Work
from indexing.ops.samples import instruction_of
from indexing.ops.windows import window_applications
from indexing.ops.work import work_of
from simplifier.unknown import Unknown
from tests.oracles import scale

# fmt: off
TABLE: Final = [
    # sample                                                              flops, transcendentals
    ("f32[2,3] add(f32[2,3] p, f32[2,3] q)",                              (6, 0)),
    ("f32[2,3] tanh(f32[2,3] p)",                                         (0, 6)),
    ("f32[3,2] transpose(f32[2,3] p), dimensions={1,0}",                  (0, 0)),
    ("f32[3,5] dot(f32[3,4] p, f32[4,5] q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
                                                                          (2 * 3 * 5 * 4, 0)),
    # each row, each summand or each batch entry is in one group
    ("f32[3,5] ragged-dot(f32[3,4] p, f32[2,4,5] q, s32[2] r), lhs_contracting_dims={1}, "
     "rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}",  (2 * 3 * 5 * 4, 0)),
    ("f32[7,3,5] ragged-dot(f32[3,4] p, f32[4,5] q, s32[7] r), lhs_contracting_dims={1}, "
     "rhs_contracting_dims={0}, lhs_ragged_dims={1}",                      (2 * 3 * 5 * 4, 0)),
    ("f32[7,3,5] ragged-dot(f32[7,3,4] p, f32[7,4,5] q, s32[2] r), lhs_batch_dims={0}, "
     "rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, "
     "lhs_ragged_dims={0}",                                                (2 * 7 * 3 * 5 * 4, 0)),
    # 3 window elements: 4 of 5, 5 and 4 positions are on the array; 2 input, 7 output features
    ("f32[1,7,5] convolution(f32[1,2,5] p, f32[7,2,3] q), window={size=3 pad=1_1}, "
     "dim_labels=bf0_oi0->bf0",                                           (2 * 2 * 7 * 13, 0)),
    ("f32[3] reduce(f32[2,3,5] p, f32[] z), dimensions={0,2}, to_apply=add",
                                                                          (30 - 3, 0)),
    ("f32[4] reduce-window(f32[6] p, f32[] z), window={size=3}, to_apply=add",
                                                                          (4 * (3 - 1), 0)),
    # padding counts as elements of a window
    ("f32[6] reduce-window(f32[6] p, f32[] z), window={size=3 pad=1_1}, to_apply=add",
                                                                          (6 * (3 - 1), 0)),
    # windows over the same elements are one: reductions of rows, of 256 or of 4 elements
    ("f32[8,256] reduce-window(f32[8,256] p, f32[] z), window={size=1x511 pad=0_0x255_255}, "
     "to_apply=add",                                                      (8 * 255, 0)),
    ("f32[8,4,3] reduce-window(f32[8,4,3] p, f32[] z), window={size=1x7x5 pad=0_0x3_3x2_2}, "
     "to_apply=add",                                                      (8 * (4 * 3 - 1), 0)),
    ("f32[8,4] reduce-window(f32[8,4] p, f32[] z), window={size=3x7 pad=1_1x3_3}, to_apply=add",
                                                                          (8 * (3 * 4 - 1), 0)),
    ("f32[2] reduce-window(f32[5] p, f32[] z), window={size=9 stride=4 pad=4_4}, to_apply=add",
                                                                          (5 - 1, 0)),
    # 7 positions: the three in the middle cover all elements
    ("f32[7] reduce-window(f32[4] p, f32[] z), window={size=6 pad=4_4}, to_apply=add",
                                                                          (5 * (4 - 1), 0)),
    ("f32[6] sort(f32[6] p), dimensions={0}, to_apply=less_than",         (6 * 3, 0)),
]
# fmt: on


@pytest.mark.parametrize(("sample", "work"), TABLE)
def test_work_of_an_instruction(sample: str, work: tuple[int, int]) -> None:
    assert work_of(instruction_of(sample)) == Work(*work)


def covered_elements(w: WindowDimension, size: int, position: int) -> frozenset[int]:
    """The elements under a window, by the definition."""
    places = [position * w.stride + s * w.window_dilation - w.low for s in range(w.size)]
    on_array = [p for p in places if p % w.base_dilation == 0]
    return frozenset([p // w.base_dilation for p in on_array if 0 <= p // w.base_dilation < size])


def applications(window: list[WindowDimension], sizes: list[int]) -> int:
    """The applications for each distinct window, by enumeration along each dimension."""
    windows = elements = 1
    for w, size in zip(window, sizes, strict=True):
        sets = [covered_elements(w, size, k) for k in range(w.positions(size))]
        different = {own for own in sets if own}
        empty = sets.count(frozenset())
        windows *= len(different) + empty
        is_repeated = len(different) + empty < len(sets)
        elements *= max(map(len, sets)) if is_repeated else w.size
    return windows * max(0, elements - 1)


def random_window(random: Random) -> WindowDimension:
    return WindowDimension(
        size=random.randint(1, 9),
        stride=random.randint(1, 3),
        low=random.randint(-1, 8),
        high=random.randint(-1, 8),
        base_dilation=random.choice([1, 1, 2, 3]),
        window_dilation=random.choice([1, 1, 2, 3]),
    )


def test_distinct_windows_are_those_of_an_enumeration() -> None:
    random = Random(1)
    repeated = 0
    for _ in range(scale(3000)):
        window = [random_window(random) for _ in range(random.randint(1, 2))]
        sizes = [random.randint(0, 6) for _ in window]
        expected = applications(window, sizes)
        assert window_applications(window, sizes) == expected, (window, sizes)
        positions = [w.positions(n) for w, n in zip(window, sizes, strict=True)]
        repeated += expected < prod(positions) * (prod([w.size for w in window]) - 1)
    assert repeated, "no window was repeated"


def test_windows_within_the_array_reduce_their_elements() -> None:
    """Windows without padding, and those that cover everything, do what their elements need."""
    random = Random(2)
    for _ in range(scale(300)):
        window, sizes = [], []
        for _ in range(random.randint(1, 3)):
            size = random.randint(1, 5)
            pad = random.choice([0, size - 1])
            extent = 2 * size - 1 if pad else random.randint(1, size)
            window.append(WindowDimension(size=extent, low=pad, high=pad))
            sizes.append(size)
        positions = [range(w.positions(n)) for w, n in zip(window, sizes, strict=True)]
        windows = [
            tuple([covered_elements(*each) for each in zip(window, sizes, at, strict=True)])
            for at in product(*positions)
        ]
        expected = sum([prod(map(len, own)) - 1 for own in set(windows)])
        assert window_applications(window, sizes) == expected, (window, sizes)
        each = sum([prod(map(len, own)) - 1 for own in windows])
        assert window_applications(window, sizes, repeats=True) == each, (window, sizes)


def test_a_fusion_does_the_work_of_its_instructions() -> None:
    fusion = hlo.parse("""
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
    softmax {
      p = f32[512,911] parameter(0)
      z = f32[] constant(0)
      e = f32[512,911] exponential(p)
      s = f32[512] reduce(e, z), dimensions={1}, to_apply=add
      b = f32[512,911] broadcast(s), dimensions={0}
      ROOT d = f32[512,911] divide(e, b)
    }
    ENTRY e { p = f32[512,911] parameter(0)
      ROOT f = f32[512,911] fusion(p), kind=kLoop, calls=softmax }""").entry.root
    assert work_of(fusion) == Work(flops=512 * 910 + 512 * 911, transcendentals=512 * 911)


UNDECLARED: Final = {
    *("batch-norm-grad", "batch-norm-inference", "batch-norm-training", "conditional"),
    *("custom-call", "scan", "shuffle", "topk", "while"),
}


def test_ops_without_declared_work() -> None:
    undeclared = {
        opcode
        for opcode, op in OPS.items()
        for sample in op.samples
        if isinstance(work_of(instruction_of(sample)), Unknown)
    }
    assert undeclared <= UNDECLARED


@pytest.mark.parametrize("opcode", ["batch-norm-inference", "topk"])
def test_work_without_a_convention_has_a_reason(opcode: str) -> None:
    work = work_of(instruction_of(OPS[opcode].samples[0]))
    assert isinstance(work, Unknown)
    assert "XLA counts none" in work.reason


# fmt: off
DIFFERENT: Final = {
    # XLA counts
    "bitcast-convert",  # an operation for each element, although it does no arithmetic
    "async-start", "async-update", "async-done",  # other figures in each version
    "ragged-dot",       # every group for each contracted element; not the rows of free groups
    "reduce-scatter",   # nothing
}
# fmt: on


@pytest.mark.skipif(not xla.is_available(), reason="needs jaxlib (extra xla)")
@pytest.mark.parametrize("opcode", sorted(OPS.keys() - UNDECLARED - DIFFERENT))
def test_declared_work_is_that_of_xla(opcode: str) -> None:
    for sample in OPS[opcode].samples:
        instruction = instruction_of(sample)
        indices = len(instruction.operands) - (2 if opcode == "dynamic-update-slice" else 1)
        if opcode.startswith("dynamic-") and not indices:
            continue  # XLA ends the process
        if opcode == "reduce" and 0 in getattr(instruction.operands[0].shape, "dims", ()):
            continue  # XLA counts a negative number
        theirs = _cost(str(instruction.computation.module))
        if theirs is not None:
            counts = theirs.get("flops", 0.0), theirs.get("transcendentals", 0.0)
            assert work_of(instruction) == counts, sample


def _cost(text: str) -> dict[str, float] | None:
    """XLA's cost analysis of a module; None if this version does not parse it."""
    client = import_module("jax").devices("cpu")[0].client
    try:
        module = import_module("jaxlib._hlo").hlo_module_from_text(text)
    except RuntimeError:
        return None
    analysis: Any = import_module("jaxlib._jax").hlo_module_cost_analysis
    costs: dict[str, float] = analysis(client, module)
    return costs
