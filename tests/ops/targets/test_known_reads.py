"""Custom calls whose reads are known, and whose values are not or are those of the operand."""

from __future__ import annotations

import pytest

import hlo
import indexing
from indexing.execution import random_inputs, run
from tests.ops.samples import parse_sample


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
