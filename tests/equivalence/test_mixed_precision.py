"""Values that pass from one floating-point type to another: middle stages of compilers have them."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import hlo
import indexing
from indexing import equivalent
from indexing.codegen.validation import validate_instruction
from indexing.equivalence import Proved
from indexing.execution import run
from indexing.ops.base import RoutingOp

PLAIN = "ENTRY e { p = f32[4,3] parameter(0)  ROOT r = f32[4,3] copy(p) }"
ROUNDED = """ENTRY e { p = f32[4,3] parameter(0)  c = bf16[4,3] convert(p)  ROOT r = f32[4,3] convert(c) }"""
PREFIX = """
narrow { x = bf16[4,3] parameter(0)  ROOT r = bf16[4,3] negate(x) }
never { x = bf16[4,3] parameter(0)  ROOT r = pred[] constant(false) }
wide { x = f32[4,3] parameter(0)  ROOT r = f32[4,3] copy(x) }
forward { x = bf16[4,3] parameter(0)  ROOT r = bf16[4,3] copy(x) }
ENTRY e { p = f32[4,3] parameter(0) """
# fmt: off
PASSED = [
    "c = bf16[4,3] copy(p)",
    "t = (f32[4,3], f32[4,3]) tuple(p, p)  c = bf16[4,3] get-tuple-element(t), index=0",
    "t = (bf16[4,3], f32[4,3]) tuple(p, p)  c = bf16[4,3] get-tuple-element(t), index=0",
    "t = (f32[4,3]) tuple(p)  u = (bf16[4,3]) copy(t)  c = bf16[4,3] get-tuple-element(u), index=0",
    "c = bf16[4,3] optimization-barrier(p)",
    "s = (bf16[4,3], f32[4,3], u32[]) copy-start(p)  c = bf16[4,3] copy-done(s)",
    'c = bf16[4,3] custom-call(p), custom_call_target="LayoutConstraint"',
    "c = bf16[4,3] call(p), to_apply=wide",
    "c = bf16[4,3] call(p), to_apply=forward",
    "c = bf16[4,3] while(p), condition=never, body=narrow",
    "z = pred[] constant(true)  c = bf16[4,3] conditional(z, p, p), true_computation=wide, false_computation=wide",
    "z = pred[] constant(true)  c = bf16[4,3] conditional(z, p, p), true_computation=forward, false_computation=forward",
]
# fmt: on


@pytest.mark.parametrize("passed", PASSED)
def test_a_rounded_value_is_not_proved_to_be_the_value(passed: str) -> None:
    before = hlo.parse(f"{PREFIX}{passed}  ROOT r = f32[4,3] convert(c) }}")
    assert hlo.verify(before) == []
    verdict = equivalent(before, hlo.parse(PLAIN))
    assert not isinstance(verdict, Proved) or verdict.level != "values" or verdict.laws


def test_a_copy_to_another_type_is_a_convert() -> None:
    before = hlo.parse(f"{PREFIX}{PASSED[0]}  ROOT r = f32[4,3] convert(c) }}")
    verdict = equivalent(before, hlo.parse(ROUNDED))
    assert isinstance(verdict, Proved)
    assert (verdict.level, dict(verdict.laws)) == ("values", {})
    copy = before.entry["c"]
    assert copy.opcode == "copy"
    ((read,),) = indexing.output_to_input(copy).maps
    assert read.is_identity
    report = validate_instruction(copy, 0, 1 << 16)
    assert [finding.status for finding in report.findings] == ["ok"] * 3
    value = np.full((4, 3), 1.00390625 + 2**-12, np.float32)  # is no bf16
    module = hlo.parse(f"{PREFIX}ROOT {PASSED[0]} }}")
    expected = value.astype(ml_dtypes.bfloat16)
    assert (run(module, [value]) == expected).all()


def test_a_copy_of_one_type_only_forwards_its_operand() -> None:
    assert isinstance(hlo.parse(PLAIN).entry.root.op, RoutingOp)


MIXED = """ENTRY e {
  p = f32[4,3] parameter(0)  q = bf16[4,3] parameter(1)  u = f32[1,3] parameter(2)  i = s32[] parameter(3)
  j = s32[] constant(0)  ROOT r = bf16[4,3] dynamic-update-slice(q, u, i, j)
}"""


def test_an_update_is_rounded_to_the_type_of_its_base() -> None:
    module = hlo.parse(MIXED)
    assert hlo.verify(module) == []
    base = np.zeros((4, 3), ml_dtypes.bfloat16)
    update = np.full((1, 3), 1 + 2**-9, np.float32)
    (result,) = run(module, [np.zeros((4, 3), np.float32), base, update, np.int32(2)])
    assert (result[2] == update.astype(ml_dtypes.bfloat16)).all()
    assert (result[0] == 0).all()
    report = validate_instruction(module.entry.root, 0, 1 << 16)
    assert "wrong" not in {finding.status for finding in report.findings}
    plain = hlo.parse(MIXED.replace("u = f32", "u = bf16"))
    texts = [
        [str(m) for maps in indexing.output_to_input(each.entry.root).maps for m in maps]
        for each in (module, plain)
    ]
    assert texts[0] == texts[1]


# fmt: off
PARTS = [
    # op on p f32[4,3], q f32[4,3] and start i, j            type of the result, with f32 in place of bf16
    ("slice(p), slice={[1:3], [0:3]}",                       "[2,3]"),
    ("dynamic-slice(p, i, j), dynamic_slice_sizes={2,3}",    "[2,3]"),
    ("transpose(p), dimensions={1,0}",                       "[3,4]"),
    ("reshape(p)",                                           "[12]"),
    ("broadcast(p), dimensions={1,2}",                       "[2,4,3]"),
    ("concatenate(p, q), dimensions={0}",                    "[8,3]"),
]
# fmt: on


@pytest.mark.parametrize("op, dims", PARTS)
def test_a_part_in_another_type_is_rounded(op: str, dims: str) -> None:
    parameters = """ENTRY e { p = f32[4,3] parameter(0)  q = f32[4,3] parameter(1)
      i = s32[] parameter(2)  j = s32[] constant(0) """
    rounded = hlo.parse(f"{parameters} c = bf16{dims} {op}  ROOT r = f32{dims} convert(c) }}")
    after = hlo.parse(
        f"{parameters} c = f32{dims} {op}  n = bf16{dims} convert(c)  ROOT r = f32{dims} convert(n) }}"
    )
    plain = hlo.parse(f"{parameters} ROOT c = f32{dims} {op} }}")
    verdict = equivalent(rounded, after)
    assert isinstance(verdict, Proved), verdict
    assert dict(verdict.laws) == {}
    assert not equivalent(plain, rounded)
    inputs = [np.linspace(1, 2, 12, dtype=np.float32).reshape(4, 3) for _ in range(2)]
    ours, theirs, other = (run(m, [*inputs, np.int32(1)])[0] for m in (rounded, after, plain))
    assert (ours == theirs).all()
    assert (ours != other).any()
