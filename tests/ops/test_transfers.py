"""Tokens, endpoints and copies: forwarded leaves and values from outside the program."""

from __future__ import annotations

import pytest

import hlo
from hlo.shapes.shape import leaves
from indexing import input_to_output, output_to_input, to_parameters
from indexing.ops.transfers import EndpointOp
from tests.ops.samples import parse_sample, samples_of

# fmt: off
ROUTES = [
    # instruction                                                        leaf   operand it forwards
    ("(f32[2,3], u32[], token[]) send(f32[2,3] p, token[] t)",           0,     0),
    ("(f32[2,3], u32[], token[]) send(f32[2,3] p, token[] t)",           1,     None),
    ("(f32[2,3], u32[], token[]) send(f32[2,3] p, token[] t)",           2,     None),
    ("(f32[2,3], u32[], token[]) recv(token[] t)",                       0,     None),
    ("(f32[2,3], token[]) recv-done((f32[2,3], u32[], token[]) s)",      0,     0),
    ("(f32[2,3], f32[2,3], u32[]) copy-start(f32[2,3] p)",               0,     0),
    ("(f32[2,3], f32[2,3], u32[]) copy-start(f32[2,3] p)",               1,     0),
    ("(f32[2,3], f32[2,3], u32[]) copy-start(f32[2,3] p)",               2,     None),
    ("f32[2,3] copy-done((f32[2,3], f32[2,3], u32[]) s)",                0,     0),
    ("f32[2,3] add-dependency(f32[2,3] p, token[] t)",                   0,     0),
    ("(f32[2,3], token[]) infeed(token[] t)",                            0,     None),
    ("token[] outfeed((f32[2,3], s32[]) p, token[] t)",                  0,     None),
    ("token[] after-all(f32[2,3] p, token[] t)",                         0,     None),
    ("token[] send-done((f32[2,3], u32[], token[]) s)",                  0,     None),
]
# fmt: on
IDENTITY = "(d0, d1) -> (d0, d1), domain: d0 in [0, 1], d1 in [0, 2]"


@pytest.mark.parametrize("text, output, operand", ROUTES)
def test_a_leaf_forwards_an_operand_or_reads_nothing(
    text: str, output: int, operand: int | None
) -> None:
    instruction = parse_sample(text).instruction
    answer = output_to_input(instruction, output)
    assert not any(answer.unknown)
    for number, maps in enumerate(answer.maps):
        assert list(map(str, maps)) == ([IDENTITY] if number == operand else [])
    for number in range(len(instruction.operands)):
        forward = input_to_output(instruction, number)
        assert not any(forward.unknown)
        expected = [IDENTITY] if number == operand else []
        assert list(map(str, forward.maps[output])) == expected


@pytest.mark.parametrize("opcode", ["send", "recv", "infeed", "outfeed", "after-all"])
def test_an_endpoint_needs_no_kernel(opcode: str) -> None:
    for sample in samples_of(opcode):
        assert isinstance(sample.op, EndpointOp)
        assert not hasattr(sample.op, "kernel")


def test_maps_pass_through_copy_start_and_copy_done() -> None:
    module = hlo.parse("""
    ENTRY e {
      p = f32[2,3] parameter(0)
      s = (f32[2,3], f32[2,3], u32[]) copy-start(p)
      d = f32[2,3] copy-done(s)
      k = token[] after-all(d)
      ROOT r = f32[2,3] add-dependency(d, k)
    }""")
    assert hlo.verify(module) == []
    assert list(map(str, to_parameters(module.entry.root).maps[0])) == [IDENTITY]


def test_a_received_value_does_not_depend_on_a_sent_value() -> None:
    module = hlo.parse("""
    ENTRY e {
      p = f32[2,3] parameter(0)
      t = token[] after-all()
      s = (f32[2,3], u32[], token[]) send(p, t), channel_id=1
      u = token[] send-done(s), channel_id=1
      r = (f32[2,3], u32[], token[]) recv(u), channel_id=2
      d = (f32[2,3], token[]) recv-done(r), channel_id=2
      ROOT x = f32[2,3] get-tuple-element(d), index=0
    }""")
    assert hlo.verify(module) == []
    answer = to_parameters(module.entry.root)
    assert answer.maps == ((),)
    assert answer.unknown == (None,)


def test_a_shuffle_has_unknown_maps() -> None:
    instruction = parse_sample("f32[2,3] shuffle(f32[2,3] p)").instruction
    (why,) = output_to_input(instruction).unknown
    assert str(why) == "shuffle `out`: `shuffle` has no published semantics"
    assert [len(leaves(instruction.shape))] == [1]
    assert input_to_output(instruction).unknown == (why,)
