"""Worked examples of XLA's ``docs/operation_semantics.md``, one line of HLO each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hlo
from indexing.execution import run
from tests.execution.arrays import f32

COMPUTATIONS = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
addi { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
maxi { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] maximum(a, b) }
mini { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] minimum(a, b) }
ge { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = pred[] compare(a, b), direction=GE }
first { a = s32[] parameter(0) b = s32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3)
  e = f32[] parameter(4) f = f32[] parameter(5) ROOT r = pred[] compare(a, b), direction=LT }
argmax { m = f32[] parameter(0) k = s32[] parameter(1) v = f32[] parameter(2) i = s32[] parameter(3)
  g = pred[] compare(v, m), direction=GE  x = f32[] select(g, v, m)  j = s32[] select(g, i, k)
  ROOT r = (f32[], s32[]) tuple(x, j) }
below { p = (s32[], f32[2]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(1000)  ROOT r = pred[] compare(i, n), direction=LT }
next { p = (s32[], f32[2]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  v = f32[2] get-tuple-element(p), index=1  n = s32[] constant(1)  c = f32[2] constant({0.5, 2})
  j = s32[] add(i, n)  w = f32[2] add(v, c)  ROOT r = (s32[], f32[2]) tuple(j, w) }
"""
CUBE = [  # v of "Collapse" and "Reshape"
    [[10, 11, 12], [15, 16, 17]],
    [[20, 21, 22], [25, 26, 27]],
    [[30, 31, 32], [35, 36, 37]],
    [[40, 41, 42], [45, 46, 47]],
]
V = f"v = s32[4,2,3] constant({str(CUBE).replace('[', '{').replace(']', '}')}) "
ROWS = np.reshape(CUBE, (8, 3)).tolist()
BY_120 = [10, 20, 30, 40, 11, 21, 31, 41, 12, 22, 32, 42, 15, 25, 35, 45, 16, 26, 36, 46, 17, 27]
BY_120 += [37, 47]
SIX = "v = s32[2,3] constant({{1,2,3},{4,5,6}}) o = s32[4,2,3] broadcast(v), dimensions={1,2} "
Z = "z = s32[] constant(0) "
BOARD = "b = s32[4,3] constant({{0,1,2},{3,4,5},{6,7,8},{9,10,11}}) "
EIGHT = "{{{1,2},{3,4}},{{5,6},{7,8}}}"
LINE = "a = s32[5] constant({0,1,2,3,4}) "
NUMBERS = "x = s32[5] constant({10000,1000,100,10,1}) m = s32[] constant(2147483647) "

TABLE = [
    # section                a line of HLO, whose last instruction is the value
    (
        "Clamp",
        "l = s32[] constant(0) x = s32[3] constant({-1,5,9}) h = s32[] constant(6) "
        "ROOT r = s32[3] clamp(l, x, h)",
        [[0, 5, 6]],
    ),
    ("Collapse 012", V + "ROOT r = s32[24] reshape(v)", [np.ravel(CUBE).tolist()]),
    ("Collapse 01", V + "ROOT r = s32[8,3] reshape(v)", [ROWS]),
    (
        "Collapse 12",
        V + "ROOT r = s32[4,6] reshape(v)",
        [
            [
                [10, 11, 12, 15, 16, 17],
                [20, 21, 22, 25, 26, 27],
                [30, 31, 32, 35, 36, 37],
                [40, 41, 42, 45, 46, 47],
            ]
        ],
    ),
    ("Reshape 120 24", V + "ROOT r = s32[24] reshape(v), dimensions={1,2,0}", [BY_120]),
    (
        "Reshape 120 83",
        V + "ROOT r = s32[8,3] reshape(v), dimensions={1,2,0}",
        [np.reshape(BY_120, (8, 3)).tolist()],
    ),
    (
        "Reshape 120 262",
        V + "ROOT r = s32[2,6,2] reshape(v), dimensions={1,2,0}",
        [np.reshape(BY_120, (2, 6, 2)).tolist()],
    ),
    ("Reshape to scalar", "v = s32[1,1] constant({{5}}) ROOT r = s32[] reshape(v)", [5]),
    ("Reshape from scalar", "v = s32[] constant(5) ROOT r = s32[1,1] reshape(v)", [[[5]]]),
    (
        "Broadcast",
        "v = f32[] constant(2) ROOT r = f32[2,3] broadcast(v), dimensions={}",
        [[[2.0] * 3] * 2],
    ),
    (
        "Concatenate 1",
        "a = s32[2] constant({2,3}) b = s32[2] constant({4,5}) c = s32[2] constant({6,7}) "
        "ROOT r = s32[6] concatenate(a, b, c), dimensions={0}",
        [[2, 3, 4, 5, 6, 7]],
    ),
    (
        "Concatenate 2",
        "a = s32[3,2] constant({{1,2},{3,4},{5,6}}) b = s32[1,2] constant({{7,8}}) "
        "ROOT r = s32[4,2] concatenate(a, b), dimensions={0}",
        [[[1, 2], [3, 4], [5, 6], [7, 8]]],
    ),
    (
        "ConvertElementType",
        "a = s32[3] constant({0,1,2}) ROOT r = f32[3] convert(a)",
        [[0.0, 1.0, 2.0]],
    ),
    (
        "DotGeneral",
        "a = s32[2,3] constant({{1,2,3},{4,5,6}}) b = s32[2,3] constant({{1,1,1},{2,2,2}}) "
        "ROOT r = s32[2,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        [[[6, 12], [15, 30]]],
    ),
    (
        "DotGeneral batch",
        f"a = s32[2,2,2] constant({EIGHT}) "
        "b = s32[2,2,2] constant({{{1,0},{0,1}},{{1,0},{0,1}}}) "
        "ROOT r = s32[2,2,2] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, "
        "lhs_contracting_dims={2}, rhs_contracting_dims={1}",
        [[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]],
    ),
    (
        "DynamicSlice 1",
        LINE + "s = s32[] constant(2) ROOT r = s32[2] dynamic-slice(a, s), dynamic_slice_sizes={2}",
        [[2, 3]],
    ),
    (
        "DynamicSlice 2",
        BOARD + "i = s32[] constant(2) j = s32[] constant(1) "
        "ROOT r = s32[2,2] dynamic-slice(b, i, j), dynamic_slice_sizes={2,2}",
        [[[7, 8], [10, 11]]],
    ),
    (
        "DynamicUpdateSlice 1",
        LINE + "u = s32[2] constant({5,6}) s = s32[] constant(2) "
        "ROOT r = s32[5] dynamic-update-slice(a, u, s)",
        [[0, 1, 5, 6, 4]],
    ),
    (
        "DynamicUpdateSlice 2",
        BOARD + "u = s32[3,2] constant({{12,13},{14,15},{16,17}}) i = s32[] constant(1) "
        "ROOT r = s32[4,3] dynamic-update-slice(b, u, i, i)",
        [[[0, 1, 2], [3, 12, 13], [6, 14, 15], [9, 16, 17]]],
    ),
    (
        "Gather",
        BOARD + "i = s32[3,2] constant({{0,1},{2,0},{9,-4}}) ROOT r = s32[3,2,2] gather(b, i), "
        "offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0,1}, "
        "index_vector_dim=1, "
        "slice_sizes={2,2}",
        [[[[1, 2], [4, 5]], [[6, 7], [9, 10]], [[6, 7], [9, 10]]]],
    ),
    (
        "Pad",
        "a = s32[2] constant({1,2}) v = s32[] constant(7) ROOT r = s32[6] pad(a, v), padding=1_2_1",
        [[7, 1, 7, 2, 7, 7]],
    ),
    (
        "Pad negative",
        "a = s32[3] constant({1,2,3}) v = s32[] constant(7) ROOT r = s32[4] pad(a, v), "
        "padding=-1_0_1",
        [[7, 2, 7, 3]],
    ),
    (
        "Reduce 0",
        SIX + Z + "ROOT r = s32[2,3] reduce(o, z), dimensions={0}, to_apply=addi",
        [[[4, 8, 12], [16, 20, 24]]],
    ),
    (
        "Reduce 2",
        SIX + Z + "ROOT r = s32[4,2] reduce(o, z), dimensions={2}, to_apply=addi",
        [[[6, 15]] * 4],
    ),
    (
        "Reduce 0 and 1",
        SIX + Z + "ROOT r = s32[3] reduce(o, z), dimensions={0,1}, to_apply=addi",
        [[20, 28, 36]],
    ),
    (
        "Reduce all",
        SIX + Z + "ROOT r = s32[] reduce(o, z), dimensions={0,1,2}, to_apply=addi",
        [84],
    ),
    (
        "Variadic Reduce",
        "v = f32[4] constant({3,9,-1,9}) k = s32[4] iota(), "
        "iota_dimension=0 y = f32[] constant(-inf) "
        + Z
        + "ROOT r = (f32[], s32[]) reduce(v, k, y, z), dimensions={0}, "
        "to_apply=argmax",
        [9.0, 3],
    ),
    (
        "ReduceWindow",
        "x = s32[4,6] constant({{3,1,8,2,0,5},{7,4,6,9,1,1},{2,2,2,3,3,4},{0,5,1,8,6,7}}) "
        "l = s32[] constant(-2147483648) "
        "ROOT r = s32[2,2] reduce-window(x, l), window={size=2x3 stride=2x3}, "
        "to_apply=maxi",
        [[[8, 9], [5, 8]]],
    ),
    (
        "ReduceWindow valid",
        NUMBERS + "ROOT r = s32[2] reduce-window(x, m), window={size=3 stride=2}, to_apply=mini",
        [[100, 1]],
    ),
    (
        "ReduceWindow same",
        NUMBERS + "ROOT r = s32[3] reduce-window(x, m), window={size=3 stride=2 pad=1_1}, "
        "to_apply=mini",
        [[1000, 10, 1]],
    ),
    (
        "Select",
        "p = pred[4] constant({1,0,0,1}) a = s32[4] constant({1,2,3,4}) "
        "b = s32[4] constant({100,200,300,400}) "
        "ROOT r = s32[4] select(p, a, b)",
        [[1, 200, 300, 4]],
    ),
    (
        "Select scalar",
        "p = pred[] constant(true) a = s32[4] constant({1,2,3,4}) "
        "b = s32[4] constant({100,200,300,400}) "
        "ROOT r = s32[4] select(p, a, b)",
        [[1, 2, 3, 4]],
    ),
    (
        "SelectAndScatter",
        "x = s32[4,5] constant({{7,2,5,3,8},{3,8,9,3,4},{1,5,7,5,6},{0,6,2,10,2}}) "
        "s = s32[2,2] constant({{2,6},{3,1}}) "
        + Z
        + "ROOT r = s32[4,5] select-and-scatter(x, s, z), window={size=2x3 stride=2x2}, "
        "select=ge, scatter=addi",
        [[[0, 0, 0, 0, 0], [0, 0, 8, 0, 0], [0, 0, 3, 0, 0], [0, 0, 0, 1, 0]]],
    ),
    (
        "Slice 1",
        "a = f32[5] constant({0,1,2,3,4}) ROOT r = f32[2] slice(a), slice={[2:4]}",
        [[2.0, 3.0]],
    ),
    ("Slice 2", BOARD + "ROOT r = s32[2,2] slice(b), slice={[2:4], [1:3]}", [[[7, 8], [10, 11]]]),
    (
        "Sort",
        "a = s32[2] constant({3,1}) b = s32[2] constant({42,50}) c = f32[2] constant({-3,1.5}) "
        "ROOT r = (s32[2], s32[2], f32[2]) sort(a, b, c), dimensions={0}, to_apply=first",
        [[1, 3], [50, 42], [1.5, -3.0]],
    ),
    (
        "TopK",
        "a = s32[5] constant({3,7,1,7,5}) ROOT r = (s32[3], s32[3]) topk(a), k=3, largest=true",
        [[7, 7, 5], [1, 3, 4]],
    ),
    (
        "Transpose",
        "a = s32[2,3] constant({{1,2,3},{4,5,6}}) ROOT r = s32[3,2] transpose(a), dimensions={1,0}",
        [[[1, 4], [2, 5], [3, 6]]],
    ),
    (
        "While",
        "i = s32[] constant(0) v = f32[2] constant({0,0}) t = (s32[], f32[2]) tuple(i, v) "
        "ROOT r = (s32[], f32[2]) while(t), condition=below, body=next",
        [1000, [500.0, 2000.0]],
    ),
    (
        "BitcastConvertType",
        "a = u32[1] constant({1065353216}) ROOT r = f32[1] bitcast-convert(a)",
        [[1.0]],
    ),
    (
        "BitcastConvert wide",
        "a = u8[2,4] constant({{0,0,128,63},{1,0,0,0}}) ROOT r = u32[2] bitcast-convert(a)",
        [[1065353216, 1]],
    ),
    (
        "BitcastConvert narrow",
        "a = u32[2] constant({1065353216,1}) ROOT r = u16[2,2] bitcast-convert(a)",
        [[[0, 16256], [1, 0]]],
    ),
]


@pytest.mark.parametrize(("section", "line", "expected"), TABLE, ids=[row[0] for row in TABLE])
def test_a_worked_example_computes_its_value(section: str, line: str, expected: list[Any]) -> None:
    module = hlo.parse(f"{COMPUTATIONS} ENTRY e {{ {line} }}")
    assert [array.tolist() for array in run(module, [])] == expected


SECOND = [3.0, 5.25]
MOVED = [[0.0, 0.0], [1.0, 2.5]]
REPLICAS = [
    # section, an op on p, and the result of each device
    ("CrossReplicaSum", "f32[2] all-reduce(p), to_apply=add", [[4.0, 7.75], [4.0, 7.75]]),
    ("AllGather", "f32[4] all-gather(p), dimensions={0}", [[1.0, 2.5, 3.0, 5.25]] * 2),
    ("ReduceScatter", "f32[1] reduce-scatter(p), dimensions={0}, to_apply=add", [[4.0], [7.75]]),
    ("CollectivePermute", "f32[2] collective-permute(p), source_target_pairs={{0,1}}", MOVED),
    ("AllToAll", "f32[2] all-to-all(p), dimensions={0}", [[1.0, 3.0], [2.5, 5.25]]),
    ("CollectiveBroadcast", "f32[2] collective-broadcast(p), replica_groups={{1,0}}", [SECOND] * 2),
]  # fmt: skip


@pytest.mark.parametrize(
    ("section", "line", "expected"), REPLICAS, ids=[row[0] for row in REPLICAS]
)
def test_two_replicas_compute_the_documented_values(
    section: str, line: str, expected: list[Any]
) -> None:
    module = hlo.parse(f"{COMPUTATIONS} ENTRY e {{ p = f32[2] parameter(0) ROOT r = {line} }}")
    inputs = [[f32([1.0, 2.5])], [f32([3.0, 5.25])]]
    assert [out.tolist() for (out,) in run(module, inputs, replicas=2)] == expected


# ---------------------------------------------------------------- batch normalization

EPSILON = 0.125
FEATURES = "epsilon=0.125, feature_index=2"
SHAPES = {"x": "f64[3,4,2]", "v": "f64[2]"}


def batch_norm(opcode: str, operands: str, out: str, *inputs: Any) -> Any:
    kinds = [SHAPES[kind] for kind in operands]
    parameters = " ".join(f"p{k} = {kind} parameter({k})" for k, kind in enumerate(kinds))
    names = ", ".join(f"p{k}" for k in range(len(kinds)))
    return run(
        hlo.parse(f"ENTRY e {{ {parameters} ROOT r = {out} {opcode}({names}), {FEATURES} }}"),
        inputs,
    )


def test_batch_norm_computes_the_documented_formulas() -> None:
    """The sums of the document, computed element by element."""
    random = np.random.default_rng(20240229)
    x, g = random.standard_normal((2, 3, 4, 2))
    scale, offset = random.standard_normal((2, 2))
    mean, variance = np.zeros(2), np.zeros(2)
    indices = [(i, j) for i in range(3) for j in range(4)]
    for l in range(2):  # noqa: E741 - the document's letter
        mean[l] = sum(x[i, j, l] for i, j in indices) / 12
        variance[l] = sum((x[i, j, l] - mean[l]) ** 2 for i, j in indices) / 12
    root = np.sqrt(variance + EPSILON)
    normal = scale * (x - mean) / root + offset
    three = "(f64[3,4,2], f64[2], f64[2])"
    actual = batch_norm("batch-norm-training", "xvv", three, x, scale, offset)
    for array, expected in zip(actual, (normal, mean, variance), strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-13, atol=1e-14)
    (inferred,) = batch_norm(
        "batch-norm-inference", "xvvvv", "f64[3,4,2]", x, scale, offset, mean, variance
    )
    np.testing.assert_allclose(inferred, normal, rtol=1e-13, atol=1e-14)
    c, d = np.zeros(2), np.zeros(2)
    for l in range(2):  # noqa: E741 - as above
        c[l] = sum(g[i, j, l] * (x[i, j, l] - mean[l]) for i, j in indices) / root[l] ** 2 / 12
        d[l] = sum(g[i, j, l] for i, j in indices) / 12
    grads = (
        scale / root * (g - d - c * (x - mean)),
        sum(g[i, j] * (x[i, j] - mean) / root for i, j in indices),
        sum(g[i, j] for i, j in indices),
    )
    actual = batch_norm("batch-norm-grad", "xvvvx", three, x, scale, mean, variance, g)
    for array, expected in zip(actual, grads, strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-12, atol=1e-14)
