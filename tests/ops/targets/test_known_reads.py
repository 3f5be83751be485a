"""Custom calls of XLA:TPU and XLA:GPU whose reads are known."""

from __future__ import annotations

import pytest

import hlo
import indexing
from indexing.execution import random_inputs, run
from indexing.maps.answers import Answer, Direction
from tests.ops.samples import parse_sample

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


def test_other_operands_and_results_of_cudnn_are_those_of_any_call() -> None:
    text = (
        f"(f32[4,2,2,6], u8[16]) custom-call({OPERANDS}, f32[6] bias), {ATTRIBUTES}, "
        'custom_call_target="__cudnn$convForward"'
    )
    instruction = parse_sample(text).instruction
    (bias,) = indexing.output_to_input(instruction).maps[2]
    assert bias.grade == "may"
    scratch = indexing.output_to_input(instruction, output_id=1)
    assert {m.grade for maps in scratch.maps for m in maps} == {"may"}


def test_a_value_stays_the_same_in_a_pinned_buffer() -> None:
    module = hlo.parse("""ENTRY e {
      p = f32[4] parameter(0)
      b = b(f32[4]) custom-call(p), custom_call_target="Pin",
        output_to_operand_aliasing={{}: (0, {})}
      ROOT u = f32[4] custom-call(b), custom_call_target="Unpin",
        output_to_operand_aliasing={{}: (0, {})}
    }""")
    assert hlo.verify(module) == []
    ((read,),) = indexing.to_parameters(module.entry.root).maps
    assert read.is_identity
    (inputs,) = random_inputs(module.entry, 0)
    assert (run(module, [inputs]) == inputs).all()


@pytest.mark.parametrize("labels", ["b0f_i01o->b01f", "b01f", "x"])
def test_a_convolution_of_cudnn_with_other_labels_may_read_all(labels: str) -> None:
    text = (
        f"(f32[4,2,2,6], u8[16]) custom-call({OPERANDS}), window={{size=2x3}}, "
        f'dim_labels={labels}, custom_call_target="__cudnn$convForward"'
    )
    answer = indexing.output_to_input(parse_sample(text).instruction)
    assert {m.grade for maps in answer.maps for m in maps} == {"may"}


SPLITS = [
    'u32[2,3] custom-call(u64[2,3] p), custom_call_target="X64SplitLow"',
    'f32[2,3] custom-call(c64[2,3] p), custom_call_target="X64SplitHigh"',
    'c64[2,3] custom-call(f32[2,3] p, f32[2,3] q), custom_call_target="X64Combine"',
]


@pytest.mark.parametrize("text", SPLITS)
def test_parts_of_64_bits_are_at_the_same_index(text: str) -> None:
    instruction = parse_sample(text).instruction
    assert hlo.verify(instruction.module) == []
    for maps in indexing.output_to_input(instruction).maps:
        (read,) = maps
        assert read.is_identity
        assert read.grade == "exact"
    with pytest.raises(hlo.HloError, match="no handler for custom-call target"):
        run(instruction.module, random_inputs(instruction.module.entry, 0))


def test_parts_of_another_size_may_read_all() -> None:
    other = SPLITS[0].replace("u64[2,3]", "u64[3,2]")
    ((read,),) = indexing.output_to_input(parse_sample(other).instruction).maps
    assert read.grade == "may"
