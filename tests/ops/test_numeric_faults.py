"""Faults of convolutions, windows, transforms and decompositions: rule, location and label."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

import pytest

import hlo
from tests.ops.samples import check_fault, parse_sample

CONV = "f32[1,1,3] convolution(f32[1,2,3] p, f32[1,2,1] q), "
SELECT = "select=greater_or_equal, scatter=add"
NORM = "epsilon=1, feature_index"
SOLVE = "left_side=true, transpose_a=NO_TRANSPOSE"

# fmt: off
FAULTS = [
    # instruction                                                     rule   location      label
    (CONV + "window={size=1}, dim_labels=bf01_oi01->bf01",            "C1", "bf01_oi01->bf01", "4 labels, but operand 0 is f32[1,2,3]"),
    (CONV + "window={size=1}, dim_labels=bf?_oi?->bf?",               "C1", "bf?_oi?->bf?", "`?` names no dimension of the convolution"),
    (CONV + "window={size=1x1}, dim_labels=bf0_oi0->bf0",             "C2", "{size=1x1}", "2 values, expected 1: one for each spatial dimension"),
    (CONV + "dim_labels=bf0_oi0->bf0",                                "C2", None, "0 values, expected 1: one for each spatial dimension"),
    (CONV + "window={size=1 rhs_dilate=0}, dim_labels=bf0_oi0->bf0",  "C3", "{size=1 rhs_dilate=0}", "`rhs_dilate` of dimension 0 is 0"),
    (CONV + "window={size=2}, dim_labels=bf0_oi0->bf0",               "C4", "{size=2}", "window dimension 0 has size 2, kernel dimension 2 has size 1"),
    (CONV + "window={size=1}, dim_labels=bf0_oi0->bf0, feature_group_count=0", "C5", "0", "feature_group_count is 0"),
    (CONV + "window={size=1}, dim_labels=bf0_oi0->bf0, feature_group_count=2, batch_group_count=2", "C5", "2", "feature_group_count is 2"),
    (CONV + "window={size=1}, dim_labels=bf0_oi0->bf0, feature_group_count=2", "C6", "2", "the input feature dimension has size 2, expected 2 x 2"),
    (CONV + "window={size=1}, dim_labels=bf0_oi0->bf0, batch_group_count=2", "C7", "2", "2 does not divide the batch size 1"),
    ("f32[1,3] convolution(f32[1,2] p, f32[1,3] q), dim_labels=bf_io->bf, feature_group_count=2", "C7", "2", "2 does not divide the output feature size 3"),
    (f"f32[3] select-and-scatter(f32[3] p, f32[3] q, f32[] z), window={{size=1x1}}, {SELECT}", "C1", "{size=1x1}", "2 values, expected 1: one for each operand dimension"),
    (f"f32[3] select-and-scatter(f32[3] p, f32[3] q, f32[] z), window={{size=0}}, {SELECT}", "C2", "{size=0}", "`size` of dimension 0 is 0"),
    (f"f32[3] select-and-scatter(f32[3] p, f32[3] q, f32[] z), window={{size=2}}, {SELECT}", "C3", None, "the source is f32[3], the window has [2] positions"),
    (f"f32[3] select-and-scatter(f32[3] p, f32[3] q, f32[1] z), window={{size=1}}, {SELECT}", "C4", None, "the init value is f32[1]"),
    (f"f32[3] select-and-scatter(f32[3] p, s32[3] q, f32[] z), window={{size=1}}, {SELECT}", "C4", None, "operand 1 is s32[3], operand 0 is f32[3]"),
    ("f32[2] scaled-dot(f32[2,3] p, f32[3] q, f32[2] r, f32[3] s), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "C5", None, "operand 0 is f32[2,3], its scale is f32[2]"),
    ("f32[2] scaled-dot(f32[2,3] p, f32[3] q, f32[] r, f32[2] s), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "C5", None, "operand 1 is f32[3], its scale is f32[2]"),
    ("f32[2] ragged-dot(f32[2,3] p, f32[3] q, s32[2] g), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={2}", "C1", "{2}", "[2], the left operand has rank 2"),
    ("f32[2] ragged-dot(f32[2,3] p, f32[3] q, s32[2] g), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={0}", "C2", None, "0 dimensions, the ragged dimension is free"),
    ("f32[2] ragged-dot(f32[2,3] p, f32[3,2] q, s32[2] g), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={0}, rhs_group_dims={0}", "C2", "{0}", "expected a free dimension below 2 of the right operand"),
    ("f32[2] ragged-dot(f32[2,3] p, f32[2,4] q, s32[2] g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}", "C3", "{1}", "left dimension 1 has size 3, right dimension 0 has size 4"),
    ("f32[2] ragged-dot(f32[2,3] p, f32[2,3] q, s32[3] g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}", "C4", None, "operand 2 is s32[3]"),
    ("f32[2] ragged-dot(f32[2,3] p, f32[2,3] q, f32[2] g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}", "C4", None, "operand 2 is f32[2]"),
    (f"f32[2,3] batch-norm-inference(f32[2,3] p, f32[3] a, f32[3] b, f32[3] c, f32[3] d), {NORM}=2", "C1", "2", "operand 0 has rank 2"),
    (f"f32[2,3] batch-norm-inference(f32[2,3] p, f32[3] a, f32[2] b, f32[3] c, f32[3] d), {NORM}=1", "C2", None, "operand 2 is f32[2], expected dimensions [3]"),
    (f"(f32[2], f32[2], f32[2]) batch-norm-grad(f32[2] p, f32[2] a, f32[2] b, f32[2] c, f32[3] d), {NORM}=0", "C2", None, "operand 4 is f32[3], expected dimensions [2]"),
    ("c64[3] fft(c64[3] p), fft_type=FFT, fft_length={}",             "C1", "{}", "fft_length has length 0, the operand has rank 1"),
    ("c64[3] fft(c64[3] p), fft_type=FFT, fft_length={1,3}",          "C1", "{1,3}", "fft_length has length 2, the operand has rank 1"),
    ("f32[3] fft(f32[3] p), fft_type=FFT, fft_length={3}",            "C2", "FFT", "the operand is f32, expected c64 or c128"),
    ("c64[2] fft(c64[3] p), fft_type=RFFT, fft_length={3}",           "C2", "RFFT", "the operand is c64, expected f32 or f64"),
    ("c64[3] fft(c64[3] p), fft_type=FFT, fft_length={4}",            "C3", "{4}", "fft_length is {4}, expected {3}, the operand's last sizes"),
    ("f32[3] fft(c64[3] p), fft_type=IRFFT, fft_length={3}",          "C3", "{3}", "the operand's last sizes are {3}, expected {2}"),
    ("f32[2,3] cholesky(f32[2,3] p)",                                 "C1", None, "operand 0 is f32[2,3]"),
    (f"f32[3,1] triangular-solve(f32[2,3] p, f32[3,1] q), {SOLVE}",   "C1", None, "operand 0 is f32[2,3]"),
    (f"f32[1,3] triangular-solve(f32[3,3] p, f32[1,3] q), {SOLVE}",   "C2", None, "the left operand is f32[3,3], the right one f32[1,3]"),
]
LABELS = [
    # labels                location     label
    ("bf0_oi0->bf1",        "bf1",       "expected each of b, f, 0 exactly once"),
    ("bb0_oi0->bf0",        "bb0",       "expected each of b, f, 0 exactly once"),
    ("bf0_oi01->bf0",       "oi01",      "expected each of i, o, 0 exactly once"),
    ("bf0_oi0?->bf0",       "oi0?",      "4 labels, but the first array has 3"),
    ("bf0_oi0",             "bf0_oi0",   "expected input_kernel->result, such as b01f_01io->b01f"),
]
# fmt: on


@pytest.mark.parametrize("text, rule, at, label", FAULTS)
def test_a_fault_has_its_rule_location_and_label(
    text: str, rule: str, at: str | None, label: str
) -> None:
    check_fault(text, rule, at, label)


@pytest.mark.parametrize("labels, at, message", LABELS)
def test_invalid_dim_labels_are_located(labels: str, at: str, message: str) -> None:
    text = f"{CONV}window={{size=1}}, dim_labels={labels}"
    (error,) = hlo.verify(parse_sample(text).instruction.module)
    assert error.code == "attribute"
    assert error.label == message
    assert error.span.text.startswith(at)
