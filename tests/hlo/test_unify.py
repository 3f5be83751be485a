"""Partial shapes: unification, inference through ops, and contradictions."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

import pytest

import hlo
import indexing.ops  # noqa: F401 - registers the ops
from hlo.modules.infer import partial_shapes
from hlo.ops.unify import Conflict, Dim, PartialShape, Unranked, merge, same_shape, with_rank


def partial(text: str) -> PartialShape:
    return (
        Unranked(text.removesuffix("[..]").strip("?"))
        if text.endswith("[..]")
        else hlo.parse_shape(text)
    )


# fmt: off
MERGED = [
    # one            other           both, or the contradiction
    ("f32[2,?]",     "f32[?,3]",     "f32[2,3]"),
    ("f32[?]",       "f32[?]",       "f32[?]"),
    ("f32[<=4]",     "f32[3]",       "f32[3]"),
    ("f32[<=4]",     "f32[4]",       "f32[4]"),
    ("f32[<=4]",     "f32[<=3]",     "f32[<=3]"),
    ("f32[<=4]",     "f32[?]",       "f32[<=4]"),
    ("f32[3]",       "bf16[3]",      "f32[3]"),
    ("f32[2]{0}",    "f32[?]",       "f32[2]{0}"),
    ("f32[..]",      "f32[2,?]",     "f32[2,?]"),
    ("?[..]",        "(s8[], s8[])", "(s8[], s8[])"),
    ("(f32[?], token[])", "(f32[2], token[])", "(f32[2], token[])"),
    ("f32[2]",       "f32[3]",       "dimension 0 is 2 in f32[2], but 3 in f32[3]"),
    ("f32[<=4]",     "f32[5]",       "dimension 0 is 4 in f32[<=4], but 5 in f32[5]"),
    ("f32[2]",       "f32[2,1]",     "f32[2] has rank 1, but f32[2,1] has rank 2"),
    ("f32[2]",       "s32[2]",       "f32[2] and s32[2] have different element types"),
    ("f32[2]",       "(f32[2])",     "f32[2] and (f32[2]) are incompatible"),
]
# fmt: on


@pytest.mark.parametrize("one, other, both", MERGED)
def test_merge_unifies_two_shapes(one: str, other: str, both: str) -> None:
    try:
        text = str(merge(partial(one), partial(other)))
    except Conflict as conflict:
        text = str(conflict)
    assert text == both


def test_dimensions_propagate_unknown_sizes() -> None:
    open_one = Dim(-1, True)
    assert Dim(2) + 3 * Dim(4, True) == Dim(14, True)
    assert Dim(2) + open_one == open_one
    assert open_one.map(lambda size: size // 2) == open_one


def test_with_rank_refines_or_raises() -> None:
    assert str(with_rank(Unranked("s8"), 2)) == "s8[?,?]"
    assert with_rank(Unranked(), 2) == Unranked()
    with pytest.raises(Conflict, match=r"f32\[2\] is not an array of rank 3"):
        with_rank(hlo.Shape("f32", (2,)), 3)


def test_a_conflict_names_the_operands() -> None:
    shapes = [partial(text) for text in ("f32[2,?]", "f32[?,3]", "f32[4,3]")]
    with pytest.raises(Conflict, match=r"operand 0 is f32\[2,\?\], operand 2 f32\[4,3\]") as caught:
        same_shape(*shapes)
    assert caught.value.operands == (0, 2)


# fmt: off
INFERRED = [
    # operands p, q, ..                  instruction                                     inferred shape
    (["f32[?,3]", "f32[2,?]"],           "add(p, q)",                                    "f32[2,3]"),
    (["f32[?,3]", "f32[?,3]"],           "compare(p, q), direction=LT",                  "pred[?,3]"),
    (["f32[<=5,3]"],                     "negate(p)",                                    "f32[<=5,3]"),
    (["pred[]", "f32[?,3]", "f32[2,?]"], "select(p, q, r)",                              "f32[2,3]"),
    (["f32[?]", "f32[]"],                "clamp(q, p, q)",                               "f32[?]"),
    (["f32[?,3,4]"],                     "transpose(p), dimensions={2,0,1}",             "f32[4,?,3]"),
    (["f32[<=2,3]"],                     "transpose(p), dimensions={1,0}",               "f32[3,<=2]"),
    (["f32[?,3]"],                       "reverse(p), dimensions={0}",                   "f32[?,3]"),
    (["f32[?,3]", "f32[4,?]"],           "concatenate(p, q), dimensions={0}",            "f32[?,3]"),
    (["f32[2,?]", "f32[4,3]"],           "concatenate(p, q), dimensions={0}",            "f32[6,3]"),
    (["f32[<=2,3]", "f32[4,3]"],         "concatenate(p, q), dimensions={0}",            "f32[<=6,3]"),
    (["f32[?,3,?]", "f32[]"],            "reduce(p, q), dimensions={0}, to_apply=add",   "f32[3,?]"),
    (["f32[?,3]", "f32[3,5]"],           "dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "f32[?,5]"),
    (["f32[?,2]", "f32[7,2]"],           "dot(p, q), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}", "f32[7]"),
    (["f32[?,9]"],                       "slice(p), slice={[1:4], [0:9:2]}",             "f32[3,5]"),
    (["f32[?,2]", "f32[]"],              "pad(p, q), padding=1_1x0_0_1",                 "f32[?,3]"),
    (["f32[?]", "s32[]"],                "tuple(p, q)",                                  "(f32[?], s32[])"),
    (["(f32[?], s32[])"],                "get-tuple-element(p), index=0",                "f32[?]"),
    (["f32[?]"],                         "f32[2,?] broadcast(p), dimensions={1}",        "f32[2,?]"),
    (["f32[3]"],                         "f32[2,?] broadcast(p), dimensions={1}",        "f32[2,3]"),
    (["f32[2,3]"],                       "f32[?,3] negate(p)",                           "f32[2,3]"),
    (["f32[?]"],                         "f32[<=6] sort(p), dimensions={0}, to_apply=less", "f32[<=6]"),
    (["f32[?,7]", "f32[]"],              "reduce-window(p, q), window={size=3x2 stride=2x3 pad=0_0x2_0}, to_apply=add", "f32[?,3]"),
    (["f32[<=6,7]", "f32[]"],            "reduce-window(p, q), window={size=3x1 stride=2x1}, to_apply=add", "f32[<=2,7]"),
    (["f32[?,5,?]", "f32[2,?,4]"],       "convolution(p, q), window={size=2}, dim_labels=b0f_0io->b0f", "f32[?,4,4]"),
    (["f32[?,7]", "s32[?,1]"],           "gather(p, q), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,7}", "f32[?,7]"),
    (["f32[4,5]", "s32[?,?]"],           "gather(p, q), offset_dims={1}, collapsed_slice_dims={}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={1,3}", "f32[4,3]"),
    (["f32[?,3]", "s32[2]", "f32[?,?]"], "scatter(p, q, r), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add", "f32[?,3]"),
    (["f32[?,5]", "s32[?]"],             "dynamic-slice(p, q), dynamic_slice_sizes={2,5}", "f32[2,5]"),
    (["f32[?,5]"],                       "dynamic-slice(p, mystery(p)), dynamic_slice_sizes={2,5}", "f32[2,5]"),
    (["f32[?,5]", "f32[2,?]", "s32[2]"], "dynamic-update-slice(p, q, r)",                "f32[?,5]"),
    (["f32[?,3]", "s32[2,?]"],           "sort(p, q), dimensions={0}, to_apply=first",   "(f32[2,3], s32[2,3])"),
    (["f32[<=3,?]"],                     "topk(p), k=2",                                 "(f32[<=3,2], s32[<=3,2])"),
    (["f32[2,?]", "f32[?,3]"],           "f32[?,?] map(p, q), to_apply=add",             "f32[2,3]"),
    (["f32[?,?]", "f32[3,?]", "f32[]"],  "select-and-scatter(p, q, r), window={size=2x2 stride=2x2}, select=less, scatter=add", "f32[?,?]"),
    (["f32[?,?]"],                       "fft(p), fft_type=RFFT, fft_length={8}",        "c64[?,5]"),
    (["c64[2,?]"],                       "fft(p), fft_type=FFT, fft_length={3}",         "c64[2,3]"),
    (["f32[?,3]"],                       "cholesky(p)",                                  "f32[3,3]"),
    (["f32[?,?]", "f32[3,?]"],           "triangular-solve(p, q), left_side=true, transpose_a=NO_TRANSPOSE", "f32[3,?]"),
    (["f32[4,4]", "f32[?,2]"],           "triangular-solve(p, q), left_side=true, transpose_a=NO_TRANSPOSE", "f32[4,2]"),
    (["f32[2,?]", "f32[3]", "f32[?]"],   "batch-norm-training(p, q, r), epsilon=1, feature_index=1", "(f32[2,3], f32[3], f32[3])"),
    (["f32[2,5]"],                       "u8[?,5,4] bitcast-convert(p)",                 "u8[2,5,4]"),
    (["f32[2,6]"],                       "f32[?,4] reshape(p)",                          "f32[3,4]"),
    (["f32[<=2,6]"],                     "f32[?,4] reshape(p)",                          "f32[<=3,4]"),
    (["f32[?,6]"],                       "f32[?,4] reshape(p)",                          "f32[?,4]"),
    (["f32[0,6]"],                       "f32[?,0] reshape(p)",                          "f32[?,0]"),
    (["f32[?,6]"],                       "get-dimension-size(p), dimensions={0}",        "s32[]"),
    (["f32[?,6]", "s32[]"],              "set-dimension-size(p, q), dimensions={1}",     "f32[?,<=6]"),
    (["f32[?,4]", "f32[2,4,5]", "s32[?]"], "ragged-dot(p, q, r), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}", "f32[?,5]"),
    (["f32[2,3]"],                       "f32[?,9] all-gather(p), dimensions={1}",       "f32[2,9]"),
    (["f32[?,3]"],                       "all-reduce(p), to_apply=add",                  "f32[?,3]"),
    (["f32[?]"],                         "copy-start(p)",                                "(f32[?], f32[?], u32[])"),
    (["f32[2]"],                         "mystery(p)",                                   "?[..]"),
    (["f32[2]"],                         "negate(mystery(p))",                           "?[..]"),
    (["f32[2]"],                         "add(p, mystery(p))",                           "f32[2]"),
    (["f32[2]"],                         "f32[3] broadcast(mystery(p)), dimensions={}",  "f32[3]"),
]
CONFLICTS = [
    (["f32[?,3]", "f32[?,4]"],           "add(p, q)",                                    "add C0: the operands must have compatible shapes"),
    (["f32[?,3]"],                       "transpose(p), dimensions={0,1,2}",             "transpose C0: the operands must have compatible shapes"),
    (["f32[?,3]"],                       "slice(p), slice={[0:1], [0:4]}",               "slice C2"),
    (["f32[?,3]"],                       "f32[2,4] negate(p)",                           "`out` is declared f32[2,4], but its inferred shape is f32[?,3]"),
    (["f32[2,?]", "f32[?,3]"],           "f32[2,4] add(p, q)",                           "`out` is declared f32[2,4], but its inferred shape is f32[2,3]"),
    (["f32[?,3,4]"],                     "cholesky(p)",                                  "cholesky C0"),
    (["f32[?,3]", "f32[4,?]"],           "triangular-solve(p, q), left_side=true, transpose_a=NO_TRANSPOSE", "triangular-solve C0"),
    (["f32[?,3]", "f32[4]", "f32[?]"],   "batch-norm-training(p, q, r), epsilon=1, feature_index=1", "batch-norm-training C0"),
    (["f32[3,?]", "s32[4,?]"],           "gather(p, q), offset_dims={1}, collapsed_slice_dims={}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={1,3}", "gather C0"),
    (["f32[?,3]", "s32[2]", "f32[3,?]"], "scatter(p, q, r), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add", "scatter C0"),
    (["f32[?,3]", "f32[?,4]"],           "sort(p, q), dimensions={0}, to_apply=less",    "sort C0"),
    (["f32[?,3]"],                       "topk(p), k=4",                                 "topk C1"),
    (["f32[?,3]"],                       "fft(p), fft_type=RFFT, fft_length={4}",        "fft C3"),
    (["f32[5]"],                         "f32[?,4] reshape(p)",                          "reshape C1"),
    (["f32[?,7]"],                       "dynamic-slice(p), dynamic_slice_sizes={2,8}",  "dynamic-slice C2"),
    (["f32[?,8]", "f32[2,?]", "s32[3]"], "dynamic-update-slice(p, q, r)",                "dynamic-update-slice C3"),
    (["f32[?,?]", "f32[3,?]", "f32[?,?]"], "select-and-scatter(p, q, r), window={size=2x2 stride=2x2}, select=less, scatter=add", "select-and-scatter C0"),
    (["f32[?,7]", "f32[2]"],             "reduce-window(p, q), window={size=3x2}, to_apply=add", "reduce-window C0"),
    (["f32[?,5,?]", "f32[3,?,4]"],       "convolution(p, q), window={size=2}, dim_labels=b0f_0io->b0f", "convolution C4"),
    (["f32[?,3]"],                       "f32[4,9] all-gather(p), dimensions={0}",       "all-gather C1"),
]
# fmt: on
COMPUTATIONS = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
first { a = f32[] parameter(0) b = f32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3) ROOT r = pred[] compare(a, b), direction=LT }
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }
"""


def program(operands: list[str], text: str) -> hlo.Module:
    lines = [
        f"{name} = {shape} parameter({k})"
        for k, (name, shape) in enumerate(zip("pqr", operands, strict=False))
    ]
    return hlo.parse(
        COMPUTATIONS + "ENTRY e {\n" + "\n".join([*lines, f"ROOT out = {text}"]) + "\n}", "m.hlo"
    )


@pytest.mark.parametrize("operands, text, shape", INFERRED)
def test_shapes_are_inferred_through_an_op(operands: list[str], text: str, shape: str) -> None:
    module = program(operands, text)
    assert str(partial_shapes(module)[module.entry.root]) == shape


@pytest.mark.parametrize("operands, text, message", CONFLICTS)
def test_a_contradiction_has_both_locations(operands: list[str], text: str, message: str) -> None:
    with pytest.raises(hlo.HloError) as caught:
        hlo.infer_shapes(program(operands, text))
    assert caught.value.message.startswith(message)
    assert [note.rpartition(" ")[2] for note in caught.value.notes] == [
        f"m.hlo:{6 + k}:1" for k in range(len(operands))
    ]


def test_the_first_contradiction_has_notes_on_the_others() -> None:
    text = (
        "inner { a = f32[3] parameter(0) ROOT b = negate(a) }\n"
        "ENTRY e {\np = f32[?,3] parameter(0)\nq = f32[?,4] parameter(1)\n"
        "a = add(p, q)\nb = negate(a)\nc = call(p), to_apply=inner\nROOT d = tuple(b, c)\n}"
    )
    with pytest.raises(hlo.HloError, match="add C0") as caught:
        hlo.infer_shapes(hlo.parse(text, "m.hlo"))
    assert caught.value.notes[2:] == (
        "at m.hlo:7:1: operand 0 is f32[?,3], but parameter 0 of `inner` is f32[3]",
    )


def test_missing_shapes_are_inferred_and_declared_ones_remain() -> None:
    text = (
        "inner { a = f32[?,3] parameter(0) ROOT b = negate(a) }\n"
        "ENTRY e { p = f32[2,3] parameter(0) c = call(p), to_apply=inner u = strange(c) ROOT d = tuple(c, p) }"
    )
    module = hlo.parse(text)
    filled = hlo.infer_shapes(module)
    shapes = [str(i.declared_shape) for i in filled.instructions]
    assert shapes == [
        "f32[?,3]",
        "f32[?,3]",
        "f32[2,3]",
        "f32[?,3]",
        "None",
        "(f32[?,3], f32[2,3])",
    ]
    assert [i.declared_shape for i in module.entry if i.name == "c"] == [None]
    assert hlo.parse(str(filled)) == filled


def test_a_fully_declared_module_is_unchanged(example: object) -> None:
    module = hlo.load(str(example))
    assert hlo.infer_shapes(module) == module
