"""Constraints of ops: instructions that break them, with the span and the label of the error."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

import pytest

from tests.ops.samples import check_fault

# fmt: off
FAULTS = [
    # instruction                                                     constraint  points at     label
    ("f32[3,2] transpose(f32[2,3] p), dimensions={1,1}",              "C2", "{1,1}", "1 appears twice, 0 is missing"),
    ("f32[3,2] transpose(f32[2,3] p), dimensions={2,0}",              "C2", "{2,0}", "2 is not in [0, 1], 1 is missing"),
    ("f32[2] transpose(f32[2,3] p), dimensions={0}",                  "C2", "{0}", "1 is missing"),
    ("f32[2] reverse(f32[2] p), dimensions={0,0}",                    "C1", "{0,0}", "0 appears twice"),
    ("f32[2,3] broadcast(f32[3] p), dimensions={}",                   "C1", "{}", "0 values, expected 1: one for each operand dimension"),
    ("f32[2,3] broadcast(f32[3] p), dimensions={2}",                  "C2", "{2}", "2 is not in [0, 1]"),
    ("f32[2,3] broadcast(f32[3] p), dimensions={0}",                  "C3", "{0}", "operand dimension 0 has size 3, result dimension 0 has size 2"),
    ("f32[2,3] broadcast(f32[1] p), dimensions={0}",                  "C3", "{0}", "operand dimension 0 has size 1, result dimension 0 has size 2"),
    ("f32[2] slice(f32[5] p), slice={[4:6]}",                         "C2", "{[4:6]}", "[4:6] is out of bounds: dimension 0 has size 5"),
    ("f32[2] slice(f32[5] p), slice={[3:2]}",                         "C2", "{[3:2]}", "start 3 is greater than limit 2"),
    ("f32[2] slice(f32[5] p), slice={[0:5:0]}",                       "C2", "{[0:5:0]}", "dimension 0 has stride 0"),
    ("f32[2] slice(f32[5] p), slice={}",                              "C1", "{}", "0 values, expected 1: one for each operand dimension"),
    ("f32[2] reshape(f32[3] p)",                                      "C1", None, "the operand has 3 elements, the result 2"),
    ("s8[3] bitcast(f32[3] p)",                                       "C1", None, "3 elements of 32 bits in, 3 elements of 8 bits out"),
    ("f32[5] concatenate(f32[2] p, f32[3] q), dimensions={1}",        "C1", "{1}", "the operands have rank 1"),
    ("f32[5,2] concatenate(f32[2,2] p, f32[3,1] q), dimensions={0}",  "C2", None, "operand 1 is f32[3,1], operand 0 is f32[2,2]"),
    ("f32[5] pad(f32[2] p, f32[] v), padding=1_1_-1",                 "C2", "1_1_-1", "the interior padding of dimension 0 is -1"),
    ("f32[0] pad(f32[2] p, f32[] v), padding=-2_-1",                  "C2", "-2_-1", "-2_-1 removes more than the 2 elements of dimension 0"),
    ("f32[4] pad(f32[2] p, f32[1] v), padding=1_1",                   "C3", None, "operand 1 is f32[1]"),
    ("f32[] reduce(f32[3] p, f32[1] z), dimensions={0}, to_apply=add", "C1", None, "init value 1 is f32[1], not a scalar"),
    ("f32[] reduce(f32[3] p, f32[] z), dimensions={1}, to_apply=add", "C2", "{1}", "1 is not in [0, 0]"),
    ("f32[2] reduce-window(f32[3] p, f32[] z), window={size=2 stride=0}, to_apply=add", "C3", "{size=2 stride=0}", "`stride` of dimension 0 is 0"),
    ("f32[2] reduce-window(f32[3] p, f32[] z), window={size=2x1}, to_apply=add", "C2", "{size=2x1}", "2 values, expected 1: one for each operand dimension"),
    ("f32[2] dot(f32[2,3] p, f32[4] q), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "C4", "{0}", "left dimension 1 has size 3, right dimension 0 has size 4"),
    ("f32[2] dot(f32[2,3] p, f32[3] q), lhs_contracting_dims={2}, rhs_contracting_dims={0}", "C1", "{2}", "2 is not in [0, 1]"),
    ("f32[2] dot(f32[2,3] p, f32[2] q), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={0}, rhs_contracting_dims={}", "C1", "{0}", "0 is also in `lhs_batch_dims`"),
    ("f32[4] all-gather(f32[2] p), dimensions={3}, replica_groups={{0,1}}", "C1", "{3}", "dimension 3 is not in [0, 0]"),
    ("f32[2] dot(f32[2,3] p, f32[3] q), lhs_contracting_dims={1}",    "C4", None, "rhs_contracting_dims has 0 dimensions, lhs_contracting_dims has 1"),
    ("f32[3] dynamic-slice(f32[2] p, s32[] i), dynamic_slice_sizes={3}", "C2", "{3}", "size 3 does not fit into dimension 0 of size 2"),
    ("f32[1] dynamic-slice(f32[2] p, f32[] i), dynamic_slice_sizes={1}", "C3", None, "operand 1 must be an integer scalar, not f32[]"),
    ("f32[1,1] dynamic-slice(f32[2,2] p, s32[] i), dynamic_slice_sizes={1,1}", "C3", None, "number of start indices: expected 2, got 1"),
    ("f32[2] dynamic-update-slice(f32[2] p, f32[3] u, s32[] i)",      "C2", None, "size 3 does not fit into dimension 0 of size 2"),
    ("f32[2] gather(f32[4,2] p, f32[1] i), offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=0, slice_sizes={1,2}", "C1", None, "operand 1 is f32[1]"),
    ("f32[2] gather(f32[4,2] p, s32[1] i), offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,2}", "C2", "2", "2 is not in [0, 1]"),
    ("f32[2] gather(f32[4,2] p, s32[1] i), offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0,1}, index_vector_dim=0, slice_sizes={1,2}", "C3", "{0,1}", "2 values, expected 1: one for each component of an index vector"),
    ("f32[2] gather(f32[4,2] p, s32[1] i), offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=0, slice_sizes={1,3}", "C4", "{1,3}", "size 3 does not fit into dimension 1 of size 2"),
    ("f32[2] gather(f32[4,2] p, s32[1] i), offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=0, slice_sizes={2,2}", "C5", "{2,2}", "dimension 0 has slice size 2"),
    ("f32[2] gather(f32[4,2] p, s32[1] i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=0, slice_sizes={1,2}", "C6", "{}", "0 values, expected 1: one for each window dimension"),
    ("f32[4,2] gather(f32[4,2] p, s32[3,1] i), offset_dims={1}, collapsed_slice_dims={}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={1,2}", "C7", "{0}", "operand dimension 0 has size 4, indices dimension 0 has size 3"),
    ("f32[2] add(f32[2] x, f32[3] y)",                                "C2", None, "operand 1 is [3], operand 0 is [2]"),
    ("f32[2] add(f32[2] x, s32[2] y)",                                "T" , None, "operand 0 is f32, operand 1 is s32"),
    ("s32[2] floor(s32[2] x)",                                        "C1", None, "operand 0 is s32; floor accepts floating"),
    ("f32[2] and(f32[2] x, f32[2] y)",                                "C1", None, "operand 0 is f32; and accepts pred, signed, unsigned"),
    ("f32[2] select(s32[2] p, f32[2] a, f32[2] b)",                   "T" , None, "operand 0 is s32, not pred"),
    ("f32[2] select(pred[3] p, f32[2] a, f32[2] b)",                  "C1", None, "operand 0 is [3], operand 1 is [2]"),
    ("f32[2] select(pred[2] p, f32[2] a, f32[3] b)",                  "C2", None, "operand 2 is [3], operand 1 is [2]"),
    ("f32[2] clamp(f32[3] l, f32[2] x, f32[] h)",                     "C1", None, "operand 0 is [3], operand 1 is [2]"),
    ("u32[3] bitcast-convert(u8[3,3] p)",                             "C3", None, "the last dimension is 3, expected 32 / 8 = 4"),
    ("s32[3] iota(), iota_dimension=1",                               "C1", "1", "iota_dimension is 1, the result has rank 1"),
    ("f32[2] get-tuple-element((f32[2], f32[3]) p), index=2",         "C1", "2", "index is 2, the tuple has 2 elements"),
]
# fmt: on


@pytest.mark.parametrize("text, rule, at, label", FAULTS)
def test_an_error_names_the_broken_constraint_and_points_at_the_fault(
    text: str, rule: str, at: str | None, label: str
) -> None:
    check_fault(text, rule, at, label)
