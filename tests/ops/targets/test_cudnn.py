"""Convolutions by cuDNN: what they read, and what they compute."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

import numpy as np
import pytest

import hlo
import indexing
from indexing.codegen.validation import validate_instruction
from indexing.execution import random_inputs, run
from indexing.maps.answers import Answer, Direction
from indexing.ops.work import work_of
from tests.ops.samples import Array, parse_sample

ATTRIBUTES = "window={size=2x3 stride=2x1 pad=-1_0x1_0}, dim_labels=b01f_i01o->b01f"
OPERANDS = "f32[4,5,3,2] p, f32[2,2,3,6] q"


def answer_of(text: str, number: int, direction: Direction) -> Answer:
    instruction = parse_sample(text).instruction
    assert hlo.verify(instruction.module) == []
    if direction == "output-to-input":
        return indexing.output_to_input(instruction)
    return indexing.input_to_output(instruction, number)


@pytest.mark.parametrize("direction", ["output-to-input", "input-to-output"])
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(
    "operands, groups",
    [(OPERANDS, ""), ("f32[4,5,3,4] p, f32[2,2,3,6] q", ", feature_group_count=2")],
)
def test_a_convolution_of_cudnn_reads_what_a_convolution_reads(
    operands: str, groups: str, number: int, direction: Direction
) -> None:
    plain = f"f32[4,2,2,6] convolution({operands}), {ATTRIBUTES}{groups}"
    call = (
        f"(f32[4,2,2,6], u8[16]) custom-call({operands}), {ATTRIBUTES}{groups}, "
        'custom_call_target="__cudnn$convForward"'
    )
    expected, answer = answer_of(plain, number, direction), answer_of(call, number, direction)
    if direction == "output-to-input":
        assert answer.maps == expected.maps
        assert [len(each) for each in answer.reasons] == [len(each) for each in expected.reasons]
    else:
        assert answer.maps[0] == expected.maps[0]


def test_the_undefined_memory_that_a_convolution_works_in_reads_nothing() -> None:
    text = (
        f"(f32[4,2,2,6], u8[16]) custom-call({OPERANDS}), {ATTRIBUTES}, "
        'custom_call_target="__cudnn$convForward"'
    )
    call = parse_sample(text).instruction
    answer = indexing.output_to_input(call, output_id=1)
    assert answer.maps == ((), ())
    assert answer.unknown == (None, None)
    back = indexing.input_to_output(call, 0)
    assert [len(maps) for maps in back.maps] == [1, 0]


@pytest.mark.parametrize("labels", ["b0f_i01o->b01f", "b01f", "x"])
def test_a_convolution_of_cudnn_with_other_labels_may_read_all(labels: str) -> None:
    text = (
        f"(f32[4,2,2,6], u8[16]) custom-call({OPERANDS}), window={{size=2x3}}, "
        f'dim_labels={labels}, custom_call_target="__cudnn$convForward"'
    )
    answer = indexing.output_to_input(parse_sample(text).instruction)
    assert {m.grade for maps in answer.maps for m in maps} == {"may"}


# fmt: off
CONVOLUTIONS = [
    # left             kernel           result           attributes
    ("f32[2,7,8,3]",   "f32[3,2,3,5]",  "f32[2,3,9,5]",  "window={size=3x2 stride=2x1 pad=0_1x1_1}, dim_labels=b01f_01io->b01f"),
    ("f32[2,7,8,3]",   "f32[5,3,2,3]",  "f32[2,7,6,5]",  "window={size=3x2 pad=1_1x0_0 rhs_dilate=1x2}, dim_labels=b01f_o01i->b01f"),
    ("f32[6,2,9]",     "f32[3,4,4]",    "f32[4,3,2]",    "window={size=4 stride=3 pad=2_1 rhs_reversal=1}, dim_labels=fb0_io0->f0b, feature_group_count=2"),
    ("f32[2,4,4,6]",   "f32[3,3,1,6]",  "f32[2,4,4,6]",  "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=6"),
    ("f32[2,5,1]",     "f32[2,1,3]",    "f32[2,1,3]",    "window={size=2 stride=4 pad=-1_0}, dim_labels=b0f_0io->b0f"),
]
# fmt: on


def arrays(shapes: list[str]) -> list[Array]:
    """Random integers in arrays of these shapes: their products are summed exactly."""
    random, parsed = np.random.default_rng(0), map(hlo.parse_shape, shapes)
    return [random.integers(-3, 4, s.dims).astype(np.float32) for s in parsed]  # type: ignore[union-attr]


def execute(text: str, inputs: list[Array]) -> Array:
    module = parse_sample(text).instruction.module
    assert hlo.verify(module) == []
    results = run(module, inputs)
    return np.asarray(results[0] if isinstance(results, list | tuple) else results)


@pytest.mark.parametrize(("left", "kernel", "out", "attributes"), CONVOLUTIONS)
def test_gradients_are_adjoint_to_the_convolution(
    left: str, kernel: str, out: str, attributes: str
) -> None:
    """``<conv(x, k), g> = <x, gradient of x> = <k, gradient of k>``, as conv is bilinear."""
    x, k, g = arrays([left, kernel, out])
    value = execute(f"{out} convolution({left} p, {kernel} q), {attributes}", [x, k])
    of_input = execute(
        f'({left}, u8[0]) custom-call({out} p, {kernel} q), {attributes}, custom_call_target="__cudnn$convBackwardInput"',
        [g, k],
    )
    of_filter = execute(
        f'({kernel}, u8[0]) custom-call({left} p, {out} q), {attributes}, custom_call_target="__cudnn$convBackwardFilter"',
        [x, g],
    )
    assert (value * g).sum() == (x * of_input).sum() == (k * of_filter).sum() != 0
    for place in np.ndindex(x.shape):  # one element at a time: the gradient itself
        if sum(place) % 7 == 0:
            unit = np.zeros_like(x)
            unit[place] = 1
            moved = execute(f"{out} convolution({left} p, {kernel} q), {attributes}", [unit, k])
            assert (moved * g).sum() == of_input[place]


@pytest.mark.parametrize("target", ["__cudnn$convBackwardInput", "__cudnn$convBackwardFilter"])
@pytest.mark.parametrize(("left", "kernel", "out", "attributes"), CONVOLUTIONS)
def test_gradients_are_valid_and_exact(
    left: str, kernel: str, out: str, attributes: str, target: str
) -> None:
    is_input = target.endswith("Input")
    value, one, two = (left, out, kernel) if is_input else (kernel, left, out)
    text = f'({value}, u8[0]) custom-call({one} p, {two} q), {attributes}, custom_call_target="{target}"'
    instruction = parse_sample(text).instruction
    answer = indexing.output_to_input(instruction)
    assert {m.grade for maps in answer.maps for m in maps} == {"exact"}
    report = validate_instruction(instruction, 0, 1 << 20)
    assert {finding.status for finding in report.findings} == {"ok"}
    plain = parse_sample(f"{out} convolution({left} p, {kernel} q), {attributes}").instruction
    assert work_of(instruction) == work_of(plain)


def test_a_gradient_has_the_maps_that_its_definition_gives() -> None:
    """One tap of size 1 with stride 2: only even elements were read."""
    text = (
        "(f32[1,5,1], u8[0]) custom-call(f32[1,3,1] p, f32[1,1,1] q), window={size=1 stride=2}, "
        'dim_labels=b0f_0io->b0f, custom_call_target="__cudnn$convBackwardInput"'
    )
    (of_out,), _ = indexing.output_to_input(parse_sample(text).instruction).maps
    assert str(of_out.simplify()) == (
        "(d0, d1, d2) -> (0, d1 floordiv 2, 0), "
        "domain: d0 in [0, 0], d1 in [0, 4], d2 in [0, 0], d1 mod 2 in [0, 0]"
    )


# fmt: off
CONFIG = 'backend_config={{"cudnn_conv_backend_config":{{"activation_mode":"{}","conv_result_scale":2,"side_input_scale":{},"leakyrelu_alpha":0.25}}}}'
ACTIVATIONS = [
    ("kNone",      lambda x: x),
    ("kRelu",      lambda x: np.maximum(x, 0)),
    ("kRelu6",     lambda x: np.clip(x, 0, 6)),
    ("kElu",       lambda x: np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1)),
    ("kLeakyRelu", lambda x: np.where(x > 0, x, x / 4)),
]
# fmt: on


@pytest.mark.parametrize("scale", [0, 3])
@pytest.mark.parametrize(("mode", "function"), ACTIVATIONS)
def test_bias_side_input_and_activation(mode: str, function: object, scale: int) -> None:
    left, kernel, out, attributes = CONVOLUTIONS[0]
    side = [out] * bool(scale)
    shapes = [left, kernel, "f32[5]", *side]
    operands = ", ".join([f"{shape} {name}" for shape, name in zip(shapes, "pqrs", strict=False)])
    text = (
        f'({out}, u8[9]) custom-call({operands}), {attributes}, custom_call_target="__cudnn$convBiasActivationForward", '
        f"{CONFIG.format(mode, scale)}"
    )
    inputs = arrays(shapes)
    plain = execute(f"{out} convolution({left} p, {kernel} q), {attributes}", inputs[:2])
    total = 2 * plain + inputs[2] + sum(scale * each for each in inputs[3:])
    assert callable(function)
    assert np.allclose(execute(text, inputs), function(total))
    answer = indexing.output_to_input(parse_sample(text).instruction)
    assert str(answer.maps[2][0]).startswith("(d0, d1, d2, d3) -> (d3), ")
    assert all(maps[0].is_identity for maps in answer.maps[3:])


UNKNOWN = [
    ("kTanh", 0, "the activation kTanh"),
    ("kRelu", 1, "it has 3 operands, expected 4"),
]


@pytest.mark.parametrize(("mode", "scale", "reason"), UNKNOWN)
def test_a_convolution_that_is_not_understood_may_read_everything(
    mode: str, scale: int, reason: str
) -> None:
    left, kernel, out, attributes = CONVOLUTIONS[0]
    text = (
        f'({out}, u8[9]) custom-call({left} p, {kernel} q, f32[5] r), {attributes}, custom_call_target="__cudnn$convBiasActivationForward", '
        f"{CONFIG.format(mode, scale)}"
    )
    answer = indexing.output_to_input(parse_sample(text).instruction)
    assert {m.grade for maps in answer.maps for m in maps} == {"may"}
    assert all(
        reason in str(row[0][0] if isinstance(row[0], tuple) else row[0]) for row in answer.reasons
    )


def test_random_inputs_give_one_value_in_both_forms() -> None:
    """The program before XLA:GPU rewrites a gradient: base dilation and a reversed kernel."""
    before = """ENTRY e {
      g = f32[2,3,3,4] parameter(0)  k = f32[3,3,2,4] parameter(1)
      ROOT c = f32[2,7,7,2] convolution(g, k), window={size=3x3 pad=2_2x2_2 lhs_dilate=2x2 rhs_reversal=1x1},
        dim_labels=b01f_01oi->b01f
    }"""
    after = """ENTRY e {
      g = f32[2,3,3,4] parameter(0)  k = f32[3,3,2,4] parameter(1)
      c = (f32[2,7,7,2], u8[0]) custom-call(g, k), window={size=3x3 stride=2x2}, dim_labels=b01f_01io->b01f,
        custom_call_target="__cudnn$convBackwardInput"
      ROOT r = f32[2,7,7,2] get-tuple-element(c), index=0
    }"""
    first, second = hlo.parse(before), hlo.parse(after)
    inputs = random_inputs(first.entry, 0)
    assert np.allclose(run(first, inputs), run(second, inputs), rtol=1e-4, atol=1e-5)
