"""Products of matrices by cuBLAS: maps, values, and calls that are not understood."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hlo
import indexing
from indexing.codegen.validation import validate_instruction
from indexing.execution import random_inputs, run
from indexing.execution.machine import Environment
from indexing.memory import traffic
from indexing.ops.element import Work
from indexing.ops.work import work_of
from tests.ops.samples import parse_sample

LT = "__cublas$lt$matmul"
DOT = {
    "lhs_contracting_dimensions": ["1"],
    "rhs_contracting_dimensions": ["0"],
    "lhs_batch_dimensions": [],
    "rhs_batch_dimensions": [],
}


def call(text: str, target: str = LT, **config: Any) -> str:
    """A call as XLA prints it."""
    gemm = {
        "alpha_real": 1, "beta": 0, "dot_dimension_numbers": DOT, "alpha_imag": 0,
        "precision_config": {"operand_precision": ["DEFAULT", "DEFAULT"], "algorithm": "ALG_UNSET"},
        "epilogue": "DEFAULT", "damax_output": False, "lhs_stride": "6", "rhs_stride": "15", "grad_x": False, "grad_y": False,
    }  # fmt: skip
    backend = {"operation_queue_id": "0", "gemm_backend_config": gemm | config}
    return f'{text}, custom_call_target="{target}", backend_config={json.dumps(backend)}'


# fmt: off
BATCHED = {"lhs_contracting_dimensions": ["0"], "rhs_contracting_dimensions": ["2"], "lhs_batch_dimensions": ["2"], "rhs_batch_dimensions": ["0"]}
MAPS = [
    (call("(f32[2,5], s8[64]) custom-call(f32[2,3] p, f32[3,5] q)", "__cublas$gemm"),
     ["(d0, d1)[s0] -> (d0, s0)", "(d0, d1)[s0] -> (s0, d1)"]),
    (call("(f32[2,3,5], s8[0]) custom-call(f32[4,3,2] p, f32[2,5,4] q)", "__cublas$gemm", dot_dimension_numbers=BATCHED),
     ["(d0, d1, d2)[s0] -> (s0, d1, d0)", "(d0, d1, d2)[s0] -> (d0, d2, s0)"]),
    (call("f32[2,5] custom-call(f32[2,3] p, f32[3,5] q, f32[2,5] r)", "__cublas$gemm", beta=1),
     ["(d0, d1)[s0] -> (d0, s0)", "(d0, d1)[s0] -> (s0, d1)", "(d0, d1) -> (d0, d1)"]),
    (call("(f32[2,5], s8[9]) custom-call(f32[2,3] p, f32[3,5] q, f32[5] r)", epilogue="BIAS"),
     ["(d0, d1)[s0] -> (d0, s0)", "(d0, d1)[s0] -> (s0, d1)", "(d0, d1) -> (d1)"]),
    # cuBLAS adds the bias along the rows of its column-major result
    (call("(f32[2,5]{0,1}, s8[9]) custom-call(f32[2,3] p, f32[3,5] q, f32[2] r)", epilogue="BIAS"),
     ["(d0, d1)[s0] -> (d0, s0)", "(d0, d1)[s0] -> (s0, d1)", "(d0, d1) -> (d0)"]),
    (call("(f8e4m3fn[2,5], s8[9]) custom-call(f8e4m3fn[2,3] p, f8e4m3fn[3,5] q, bf16[2,5] r, f32[] s, f32[] t, bf16[5] u, f32[] v)", f"{LT}$f8", beta=1, epilogue="BIAS"),
     ["(d0, d1)[s0] -> (d0, s0)", "(d0, d1)[s0] -> (s0, d1)", "(d0, d1) -> (d0, d1)", "(d0, d1) -> ()", "(d0, d1) -> ()", "(d0, d1) -> (d1)", "(d0, d1) -> ()"]),
]
# fmt: on


@pytest.mark.parametrize(("text", "expected"), MAPS)
def test_a_gemm_reads_what_its_dot_reads_and_its_other_operands(
    text: str, expected: list[str]
) -> None:
    instruction = parse_sample(text).instruction
    assert hlo.verify(instruction.module) == []
    answer = indexing.output_to_input(instruction)
    assert [m.grade for maps in answer.maps for m in maps] == ["exact"] * len(expected)
    assert [str(m).partition(", domain")[0] for (m,) in answer.maps] == (expected)


def test_the_bias_has_the_minor_dimensions_in_memory() -> None:
    minor = call(
        "(f32[2,5,7]{1,2,0}, s8[9]) custom-call(f32[2,3] p, f32[3,5,7] q, f32[7,5]{1,0} r)",
        epilogue="BIAS",
    )
    (read,) = indexing.output_to_input(parse_sample(minor).instruction).maps[2]
    assert str(read).startswith("(d0, d1, d2) -> (d2, d1)")


F32, BF16 = np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


# fmt: off
VALUES = [
    (call("(f32[2,5], s8[7]) custom-call(f32[2,3] p, f32[3,5] q)", alpha_real=0.5), lambda a, b: [a @ b / 2]),
    (call("f32[2,5] custom-call(f32[2,3] p, f32[3,5] q, f32[2,5] r)", beta=3), lambda a, b, c: [a @ b + 3 * c]),
    (call("(f32[2,5], s8[7]) custom-call(f32[2,3] p, f32[3,5] q, f32[5] r)", epilogue="BIAS_RELU"), lambda a, b, c: [np.maximum(a @ b + c, 0)]),
    (call("(f32[2,5]{0,1}, s8[7]) custom-call(f32[2,3] p, f32[3,5] q, f32[2] r)", epilogue="BIAS"), lambda a, b, c: [a @ b + c[:, None]]),
    (call("(f32[2,5], s8[7]) custom-call(f32[2,3] p, f32[3,5] q)", epilogue="GELU"), lambda a, b: [gelu(a @ b)]),
    (call("(f32[2,5], f32[2,5], s8[7]) custom-call(f32[2,3] p, f32[3,5] q, f32[5] r)", epilogue="BIAS_GELU_AUX"), lambda a, b, c: [gelu(a @ b + c), a @ b + c]),
    (call("(bf16[2,5], s8[7]) custom-call(bf16[2,3] p, bf16[3,5] q, bf16[5] r)", epilogue="BIAS"), lambda a, b, c: [a @ b + c]),
    (call("(s32[2,5], s8[7]) custom-call(s8[2,3] p, s8[3,5] q)", "__cublas$gemm"), lambda a, b: [a @ b]),
    (call("(c64[2,5], s8[7]) custom-call(c64[2,3] p, c64[3,5] q)", "__cublas$gemm", alpha_real=2), lambda a, b: [2 * (a @ b)]),
    (call("(f32[2,5], s8[9]) custom-call(f8e4m3fn[2,3] p, f8e5m2[3,5] q, f32[] s, f32[] t)", f"{LT}$f8"), lambda a, b, s, t: [s * t * (a @ b)]),
    (call("(f8e4m3fn[2,5], s8[9]) custom-call(f8e4m3fn[2,3] p, f8e4m3fn[3,5] q, f32[] s, f32[] t, f32[] u)", f"{LT}$f8"), lambda a, b, s, t, u: [np.clip(s * t * u * (a @ b), -448, 448)]),
]
# fmt: on


@pytest.mark.parametrize(("text", "expected"), VALUES)
def test_a_gemm_is_computed_as_by_numpy(text: str, expected: Any) -> None:
    module = parse_sample(text).instruction.module
    inputs = random_inputs(module.entry, 0)
    wide = [each.astype(np.complex128 if each.dtype.kind == "c" else np.float64) for each in inputs]
    results = run(module, inputs)
    for result, each in zip(results, expected(*wide), strict=False):
        assert np.allclose(result.astype(each.dtype), each, rtol=0.07, atol=1e-3)
        if result.dtype in (F32, np.dtype(np.complex64)):
            assert np.allclose(result, each, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("text", [row[0] for row in VALUES])
def test_a_gemm_is_valid(text: str) -> None:
    report = validate_instruction(parse_sample(text).instruction, 0, 1 << 20)
    assert {finding.status for finding in report.findings if finding.check == "poke"} == {"ok"}
    assert "wrong" not in {finding.status for finding in report.findings}


PRE = """
ENTRY e {
  p = f32[2,3] parameter(0)  q = f32[3,5] parameter(1)  c = f32[2,5] parameter(2)  v = f32[5] parameter(3)
  d = f32[2,5] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  half = f32[] constant(0.5)  z = f32[] constant(0)
  alpha = f32[2,5] broadcast(half), dimensions={}  zero = f32[2,5] broadcast(z), dimensions={}
  bias = f32[2,5] broadcast(v), dimensions={1}
  scaled = f32[2,5] multiply(d, alpha)  one = f32[2,5] add(scaled, c)  two = f32[2,5] add(one, bias)
  ROOT r = f32[2,5] maximum(two, zero)
}"""
POST = call(
    "(f32[2,5], s8[33554432]) custom-call(p, q, c, v)",
    alpha_real=0.5,
    beta=1,
    epilogue="BIAS_RELU",
)
AFTER = f"""
ENTRY e {{
  p = f32[2,3] parameter(0)  q = f32[3,5] parameter(1)  c = f32[2,5] parameter(2)  v = f32[5] parameter(3)
  g = {POST}
  ROOT r = f32[2,5] get-tuple-element(g), index=0
}}"""


def test_a_gemm_computes_what_the_program_before_the_rewrite_computes() -> None:
    before, after = hlo.parse(PRE), hlo.parse(AFTER)
    inputs = random_inputs(before.entry, 0)
    assert np.allclose(run(before, inputs), run(after, inputs), rtol=1e-5)
    reads = [indexing.to_parameters(module.entry.root).maps for module in (before, after)]
    assert [set(maps) for maps in reads[0]] == [set(maps) for maps in reads[1]]


def test_memory_to_work_in_is_neither_written_nor_executed() -> None:
    module = hlo.parse(AFTER)
    moved = traffic(module)
    assert moved.total.written.number == 2 * 5 * 4
    assert work_of(module.entry["g"]) == Work(flops=2 * 2 * 5 * 3)


def test_a_plain_gemm_has_the_loop_nest_of_a_dot() -> None:
    report = validate_instruction(parse_sample(MAPS[0][0]).instruction, 0, 1 << 20)
    assert {"numpy", "loops", "poke"} <= {finding.check for finding in report.findings}
    assert {finding.status for finding in report.findings} == {"ok"}


# fmt: off
UNKNOWN = [
    (call("(f32[2,5], s8[7]) custom-call(f32[2,3] p, f32[3,5] q)", epilogue="SILU"), "the epilogue is SILU"),
    (call("(f32[2,5], s8[7]) custom-call(f32[2,3] p, f32[3,5] q)", beta=1), "it has 2 operands, expected left, right, matrix"),
    (call("(f32[2,5], s8[7]) custom-call(f32[2,3] p, f32[3,5] q, f32[2] r)", epilogue="BIAS"), "the bias is f32[2], the value f32[2,5]"),
    (call("(f32[2,5], s8[7]) custom-call(f32[2,3] p, f32[4,5] q)"), "dot C4"),
    (call("(f32[5,2], s8[7]) custom-call(f32[2,3] p, f32[3,5] q)"), "the value of dot must be f32[2,5], not f32[5,2]"),
    (call("(f32[2,5], f32[2,5], s8[7]) custom-call(f32[2,3] p, f32[3,5] q)"), "expected 1 values and memory"),
    (call("(f32[2,5], s8[7]) custom-call(f32[2,3] p, f32[3,5] q)", alpha_real=0), "alpha is 0"),
    (call("(f32[2,5], s8[7]) custom-call(f32[2,3] p, f32[3,5] q)", alpha_imag=1), "an imaginary part"),
    (call("(f32[2,5], f32[], s8[7]) custom-call(f32[2,3] p, f32[3,5] q)", damax_output=True), "expected 1 values"),
    (call("(s32[2,5], s8[7]) custom-call(s8[2,3] p, s8[3,5] q)", alpha_real=2), "integers are scaled"),
    (call("(f32[2,5], s8[7]) custom-call(f8e4m3fn[2,3] p, f8e4m3fn[3,5] q, f32[2,1] s, f32[] t)", f"{LT}$f8"), "a scale is not a scalar"),
    ('f32[2,5] custom-call(f32[2,3] p, f32[3,5] q), custom_call_target="__cublas$gemm"', "gemm_backend_config.alpha_real` in backend_config of custom-call is missing"),
    ('f32[2,5] custom-call(f32[?,3] p, f32[3,5] q), custom_call_target="__cublas$gemm"', "arrays of known sizes"),
]
# fmt: on


@pytest.mark.parametrize(("text", "reason"), UNKNOWN)
def test_a_call_that_is_not_understood_may_read_everything(text: str, reason: str) -> None:
    instruction = parse_sample(text).instruction
    assert hlo.verify(instruction.module) == []
    answer = indexing.output_to_input(instruction)
    for maps, reasons, unknown in zip(answer.maps, answer.reasons, answer.unknown, strict=True):
        assert {m.grade for m in maps} <= {"may"}
        assert any(reason in str(each) for row in reasons for each in row) or unknown is not None


def test_a_user_may_execute_a_call_that_is_not_understood() -> None:
    module = parse_sample(UNKNOWN[0][0]).instruction.module
    inputs = random_inputs(module.entry, 0)
    with pytest.raises(hlo.HloError, match="no handler for custom-call target"):
        run(module, inputs)
    targets = {LT: lambda a, b: (a @ b, np.zeros(7, np.int8))}
    product, _ = run(module, inputs, environment=Environment(targets=targets))
    assert np.allclose(product, inputs[0] @ inputs[1])
