"""Custom calls over-approximate their accesses, unless the target is registered."""

from __future__ import annotations

import pytest

import hlo
import indexing
from tests.ops.samples import parse_sample

MODULE = """
ENTRY main {
  p = (f32[2,3], token[], s32[]) parameter(0)
  q = f32[0] parameter(1)
  c = (f32[5], f32[7], token[]) custom-call(p, q), custom_call_target="opaque"
  ROOT r = f32[7] get-tuple-element(c), index=1
}
"""


def test_every_leaf_of_the_result_may_need_every_leaf_of_the_operands() -> None:
    call = hlo.parse(MODULE).entry.root.operands[0]
    for output, size in ((0, 5), (1, 7)):
        answer = indexing.output_to_input(call, output_id=output)
        assert answer.unknown == (None, None)
        assert answer.paths[0] == ((0,), (2,))
        array, scalar = answer.maps[0]
        assert (array.grade, scalar.grade) == ("may", "may")
        assert [v.upper + 1 for v in (*array.dims, *array.ranges)] == [size, 2, 3]
        assert [v.upper + 1 for v in scalar.dims] == [size]
        assert answer.maps[1] == ()


def test_every_leaf_of_an_operand_may_affect_every_leaf_of_the_result() -> None:
    call = hlo.parse(MODULE).entry.root.operands[0]
    answer = indexing.input_to_output(call, input_id=0)
    sizes = [[v.upper + 1 for v in (*m.dims, *m.ranges)] for m in answer.maps[0]]
    assert [2, 3, 5] in sizes
    assert {m.grade for maps in answer.maps for m in maps} == {"may"}


def test_maps_compose_through_a_custom_call() -> None:
    answer = indexing.to_parameters(hlo.parse(MODULE).entry.root)
    assert str(answer.maps[0][0]) == (
        "(d0)[s0, s1] -> (s0, s1), domain: d0 in [0, 6], s0 in [0, 1], s1 in [0, 2]"
    )
    assert answer.maps[0][0].grade == "may"


def test_a_dimension_of_unknown_size_gives_unknown() -> None:
    call = parse_sample('f32[?] custom-call(f32[2] p), custom_call_target="f"').instruction
    (unknown,) = indexing.output_to_input(call).unknown
    assert unknown is not None
    assert unknown.reason == "custom-call `out`: f32[?] has a dimension of unknown size"


@pytest.mark.parametrize(
    "target",
    [
        "Sharding",
        "xla.sdy.FuncResultSharding",
        "annotate_device_placement",
        "MoveToHost",
        "MoveToDevice",
        "AssumeGatherIndicesInBound",
        "LayoutConstraint",
    ],
)
@pytest.mark.parametrize("shape", ["f32[2,3]", "(f32[2], s32[3])"])
def test_an_annotation_has_the_identity_map(target: str, shape: str) -> None:
    text = f'{shape} custom-call({shape} p), custom_call_target="{target}"'
    sample = parse_sample(text)
    assert hlo.verify(sample.instruction.module) == []
    answer = indexing.output_to_input(sample.instruction)
    ((read,),) = answer.maps
    assert read.is_identity


def test_an_annotation_of_another_shape_is_an_error() -> None:
    text = 'f32[3] custom-call(f32[2] p), custom_call_target="Sharding"'
    (error,) = hlo.verify(parse_sample(text).instruction.module)
    assert error.code == "shape"
