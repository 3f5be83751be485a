"""The work that ops declare, counted by hand and by XLA's cost analysis."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import pytest

import hlo
import indexing.ops  # noqa: F401  # registers the ops
from hlo.ops.op import OPS
from indexing.execution import xla
from indexing.ops.element import Work
from indexing.ops.samples import instruction_of
from indexing.ops.work import work_of
from simplifier.unknown import Unknown

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
    ("f32[6] sort(f32[6] p), dimensions={0}, to_apply=less_than",         (6 * 3, 0)),
]
# fmt: on


@pytest.mark.parametrize(("sample", "work"), TABLE)
def test_work_of_an_instruction(sample: str, work: tuple[int, int]) -> None:
    assert work_of(instruction_of(sample)) == Work(*work)


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
