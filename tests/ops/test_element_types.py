"""Samples with other element types: valid ones run as kernels and as loop nests, or are refused."""

from __future__ import annotations

import re
from contextlib import suppress

import numpy as np
import pytest

import hlo
from hlo.ops.op import OPS
from hlo.text.source import HloError
from indexing.codegen.running import nests_of
from indexing.codegen.validation import is_checked, validate_instruction
from indexing.execution import random_inputs, run
from indexing.ops.samples import instruction_of, operands_end
from tests.checks import checks
from tests.ops.samples import ALL
from tests.oracles import sampled

# fmt: off
TYPES = ("pred", "s2", "u4", "s8", "u16", "s64", "f16", "bf16", "f8e5m2", "f8e8m0fnu", "f6e2m3fn",
         "f6e3m2fn", "f4e2m1fn",
         "f64", "c64", "c128")
# fmt: on
TYPE = re.compile(r"\b(?:pred|[su]\d+|f\d\w*|bf16|c\d+)(?=\[)")
MAX_ELEMENTS = 500
INLINED = ("call", "fusion")  # their computations keep their own types


def check_sample(text: str) -> None:
    """Run a sample by its kernel and by loop nests, if its types are accepted."""
    with suppress(HloError):
        root = instruction_of(text)
        if hlo.verify(root.module):
            return
        with np.errstate(all="ignore"):
            inputs = random_inputs(root.computation, 0)
            run(root.module, inputs)
            nests_of(root.module).run(inputs)
            if is_checked(root):
                report = validate_instruction(root, 0, MAX_ELEMENTS)
                assert report.status != "wrong", report.findings


@pytest.mark.filterwarnings("ignore:.*discards the imaginary part")
@pytest.mark.parametrize("opcode", [op for op in ALL if op not in INLINED])
def test_every_element_type_is_executed_or_refused(opcode: str) -> None:
    text = OPS[opcode].samples[0]
    end = operands_end(text) + 1
    with checks() as check:
        for element_type in sampled(TYPES, opcode):
            changed = TYPE.sub(element_type, text[:end]) + text[end:]
            result = TYPE.sub(element_type, text[:end], count=1) + text[end:]
            for sample in (changed, result) if element_type != "f64" else (changed,):
                with check(sample):
                    check_sample(sample)


# fmt: off
ROUNDED = {
    "elementwise": "ENTRY e { p = f32[5] parameter(0)  e = f16[5] exponential(p)  "
                   "ROOT r = f32[5] convert(e) }",
    "copy":        "ENTRY e { p = f32[5] parameter(0)  e = bf16[5,1] reshape(p)  "
                   "ROOT r = f32[5,1] convert(e) }",
    "narrow":      "ENTRY e { p = u4[5] parameter(0)  q = u4[5] parameter(1)  n = u4[5] not(p)  "
                   "ROOT r = pred[5] compare(n, q), direction=GT }",
    "window":      "ENTRY e { p = f8e5m2[1,5,3,2] parameter(0)  q = f32[2,2,3,2] parameter(1)  "
                   "ROOT r = f32[1,2,2,2] convolution(p, q), "
                   "window={size=2x3 stride=2x1 pad=-1_0x1_0}, dim_labels=b01f_i01o->b01f }",
    "reduction":   "most { a = s4[] parameter(0)  b = s4[] parameter(1)  "
                   "ROOT m = s4[] maximum(a, b) } "
                   "ENTRY e { p = s4[2,3] parameter(0)  z = s4[] parameter(1)  "
                   "ROOT r = s4[3] reduce(p, z), dimensions={0}, to_apply=most }",
}
# fmt: on


@pytest.mark.parametrize("text", ROUNDED.values(), ids=ROUNDED)
def test_loop_nests_convert_to_declared_types(text: str) -> None:
    module = hlo.parse(text)
    assert hlo.verify(module) == []
    inputs = random_inputs(module.entry, 1)
    (expected,) = run(module, inputs)
    for tile in (None, (2,) * expected.ndim, (100,) * expected.ndim):
        (result,) = nests_of(module, tile).run(inputs)
        assert result.dtype == expected.dtype
        assert np.allclose(result, expected, rtol=1e-6)


UPDATES = {
    "dynamic-update-slice(bf16[7] p, f32[2] u, s32[] i)": "a start",
    "scatter(bf16[7] p, s32[2,1] i, f32[2] u), update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=maximum": "indices",
    "select-and-scatter(bf16[7] p, f32[3] u, f32[] z), window={size=3 stride=2}, "
    "select=greater_or_equal, scatter=add": "windows",
}


@pytest.mark.parametrize("text", UPDATES, ids=list(UPDATES.values()))
def test_updates_may_have_another_precision(text: str) -> None:
    """XLA's propagation of bf16 leaves them so; their elements are rounded to the result's type."""
    mixed = instruction_of(f"bf16[7] {text}").module
    wide = instruction_of(f"f32[7] {text.replace('bf16', 'f32')}").module
    assert hlo.verify(mixed) == []
    inputs = random_inputs(wide.entry, 1)
    inputs[0] = inputs[0].astype("bfloat16")
    (result,) = run(mixed, inputs)
    (expected,) = run(wide, [inputs[0].astype("float32"), *inputs[1:]])
    assert result.dtype == "bfloat16"
    assert np.array_equal(result, expected.astype("bfloat16"))
    assert any(inputs[k].dtype == "float32" for k in range(1, len(inputs)))


WRONG = {
    "complex(f16[2] p, f16[2] q)": "C3: the operands must both be f32, or both be f64",
    "complex(f4e2m1fn[2] p, f4e2m1fn[2] q)": "C3: the operands must both be f32, or both be f64",
    "complex(f64[2] p, f32[2] q)": "C3: the operands must both be f32, or both be f64",
    "cholesky(s32[2,2] p)": "T: the element types of the operands must be inexact",
    "compare(c64[2] p, c64[2] q), direction=LT, type=TOTALORDER": "C3: complex numbers have no "
    "total order",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_element_types_are_refused(text: str) -> None:
    shape = "s32[2,2]" if text.startswith("cholesky") else "c64[2]"
    (error,) = hlo.verify(instruction_of(f"{shape} {text}").module)
    assert error.message.endswith(WRONG[text])


def test_an_init_value_has_the_type_of_its_array() -> None:
    text = "f32[3] reduce(pred[2,3,5] p, f32[] z), dimensions={0,2}, to_apply=add"
    errors = hlo.verify(instruction_of(text).module)
    assert errors[0].label == "init value 1 is f32, its array pred"
