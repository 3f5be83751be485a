"""Faults of sorting, scans, random numbers, sizes and transfers: rule, location and label."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

import pytest

from tests.ops.samples import check_fault

SCAN = "num_carries=1, to_apply=add_twice"

# fmt: off
FAULTS = [
    # instruction                                                                  rule  location   label
    ("(f32[3], s32[2]) sort(f32[3] p, s32[2] q), dimensions={0}, to_apply=less_than", "C1", None,   "operand 1 is s32[2], operand 0 is f32[3]"),
    ("f32[3] sort(f32[3] p), dimensions={1}, to_apply=less_than",                  "C2", "{1}",     "1 is not in [0, 0]"),
    ("f32[3,2] sort(f32[3,2] p), dimensions={0,1}, to_apply=less_than",            "C2", "{0,1}",   "2 dimensions, expected 1"),
    ("(f32[3], s32[3]) topk(f32[2] p), k=3",                                       "C1", "3",       "k is 3, the last dimension has size 2"),
    ("(f32[], s32[]) topk(f32[] p), k=0",                                          "C1", None,      "the operand is a scalar"),
    ("f32[3] map(f32[3] p, f32[2] q), to_apply=add",                               "C1", None,      "operand 1 is f32[2], operand 0 is f32[3]"),
    ("f32[3] map(f32[3] p, f32[3] q), dimensions={1}, to_apply=add",               "C2", "{1}",     "dimensions are [1], the operands have rank 1"),
    (f"(f32[3], f32[]) scan(f32[3] p, token[] z), dimensions={{0}}, {SCAN}",       "C1", None,      "operand 1 is token[]"),
    (f"((f32[3], f32[])) scan(f32[3] p, f32[] z), dimensions={{0}}, {SCAN}",       "C1", None,      "the result is ((f32[3], f32[]))"),
    ("(f32[3], f32[]) scan(f32[3] p, f32[] z), dimensions={0}, num_carries=2, to_apply=add_twice", "C2", "2", "2 carries, 2 operands"),
    (f"(f32[3], f32[]) scan(f32[3] p, f32[] z), dimensions={{1}}, {SCAN}",         "C3", "{1}",     "operand 0 is f32[3]"),
    (f"(f32[2], f32[]) scan(f32[3] p, f32[] z), dimensions={{0}}, {SCAN}",         "C3", "{0}",     "result 0 has size 2, operand 0 has 3"),
    (f"(f32[3], s32[]) scan(f32[3] p, f32[] z), dimensions={{0}}, {SCAN}",         "C4", None,      "initial f32[], final s32[]"),
    ("f32[3] rng(f32[3] p, f32[] q), distribution=rng_normal",                     "C1", None,      "operand 0 is f32[3], the result f32[3]"),
    ("(u32[2], u32[3]) rng-bit-generator(u32[2] p), algorithm=rng_philox",         "C1", None,      "the state is u32[2]"),
    ("(u64[3], u32[3]) rng-bit-generator(u64[3] p), algorithm=rng_three_fry",      "C1", None,      "the state is u64[3]"),
    ("(u64[2], f32[3]) rng-bit-generator(u64[2] p), algorithm=rng_philox",         "C2", None,      "the result is (u64[2], f32[3])"),
    ("u32[2] rng-get-and-update-state(), delta=1",                                 "C1", None,      "the result is u32[2]"),
    ("s32[] get-dimension-size(f32[3] p), dimensions={1}",                         "C1", "{1}",     "1 is not in [0, 0]"),
    ("f32[<=3] set-dimension-size(f32[3] p, s32[] n), dimensions={0,1}",           "C1", "{0,1}",   "expected one dimension, got 2"),
    ("f32[<=3] set-dimension-size(f32[3] p, f32[] n), dimensions={0}",             "C2", None,      "operand 1 is f32[]"),
    ("f32[<=3] dynamic-reshape(f32[3] p)",                                         "C1", None,      "number of sizes: expected 1, got 0"),
    ("f32[<=3] dynamic-reshape(f32[3] p, s32[1] n)",                               "C1", None,      "operand 1 is s32[1]"),
    ("f32[<=3] dynamic-reshape(f32[4] p, s32[] n)",                                "C2", None,      "4 elements in, 3 elements out"),
    ("(f32[3], token[]) infeed(f32[3] p)",                                         "C1", None,      "operand 0 is f32[3]"),
    ("f32[3] infeed(token[] t)",                                                   "C2", None,      "the result is f32[3]"),
    ("token[] outfeed(f32[3] p, f32[3] q)",                                        "C1", None,      "operand 1 is f32[3]"),
    ("token[] outfeed(f32[3] p, token[] t), outfeed_shape=f32[2]",                 "C2", "f32[2]",  "operand 0 is f32[3]"),
    ("(f32[3], u32[], token[]) send(f32[3] p, f32[3] q)",                          "C1", None,      "operand 1 is f32[3]"),
    ("(f32[3], u32[], token[]) recv(f32[3] p)",                                    "C1", None,      "operand 0 is f32[3]"),
    ("(f32[3], token[]) recv(token[] t)",                                          "C2", None,      "the result is (f32[3], token[])"),
    ("token[] send-done((f32[3], token[]) s)",                                     "C1", None,      "operand 0 is (f32[3], token[])"),
    ("(f32[3], token[]) recv-done((f32[3], f32[], token[]) s)",                    "C1", None,      "operand 0 is (f32[3], f32[], token[])"),
    ("f32[3] copy-done((f32[3], f32[3]) s)",                                       "C1", None,      "operand 0 is (f32[3], f32[3])"),
]
# fmt: on


@pytest.mark.parametrize("text, rule, at, label", FAULTS)
def test_a_fault_has_its_rule_location_and_label(
    text: str, rule: str, at: str | None, label: str
) -> None:
    check_fault(text, rule, at, label)
