"""Signatures of ops, fusions and computations; OneFlow's document on gather, derived."""

from __future__ import annotations

import pytest

import hlo
import indexing
from hlo.modules.module import Instruction
from indexing import SbpSignature, Unknown, check_signature, sbp
from indexing.ops.samples import instruction_of
from indexing.sharding.signatures.checks import Refused
from tests.sharding.signatures.signature_oracle import first_fault, subject_of


def of(text: str, shards: int | None = None) -> list[str]:
    """The signatures of a sample as texts."""
    return [str(s) for s in sbp(instruction_of(text), shards)]


def split_signatures(text: str, shards: int | None = None) -> list[str]:
    """The signatures with a split operand or result."""
    return [s for s in of(text, shards) if "S(" in s]


def root(text: str) -> Instruction:
    return hlo.parse(text).entry.root


# ---------------------------------------------------------------- OneFlow's gather


def gather(axis: int, rank: int, params: tuple[int, ...]) -> str:
    """Gather along `axis` with indices of a rank: their dimensions replace the axis."""
    indices = (6, 4, 8)[:rank]
    out = (*params[:axis], *indices, *params[axis + 1 :])
    offsets = [k for k in range(len(out)) if not axis <= k < axis + rank]
    sizes = [1 if k == axis else n for k, n in enumerate(params)]
    return (
        f"f32{list(out)} gather(f32{list(params)} p, s32{list(indices)} i), "
        f"offset_dims={{{','.join(map(str, offsets))}}}, collapsed_slice_dims={{{axis}}}, "
        f"start_index_map={{{axis}}}, index_vector_dim={rank}, "
        f"slice_sizes={{{','.join(map(str, sizes))}}}"
    ).replace(" ", "", 0)


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_gather_has_the_signatures_of_oneflow(axis: int, rank: int) -> None:
    text = gather(axis, rank, (4, 6, 10))
    expected = [f"B, S({i}) -> S({axis + i})" for i in range(rank)]
    expected += [f"S({d}), B -> S({d if d < axis else d + rank - 1})" for d in {0, 1, 2} - {axis}]
    expected.append(f"S({axis}), B -> P(sum)")
    assert sorted(split_signatures(text)) == sorted(expected)
    for signature in sbp(instruction_of(text), 2):
        assert signature.needs_place == (str(signature) == f"S({axis}), B -> P(sum)")
        fault = first_fault(
            subject_of(text), signature.operands, signature.results, signature.halo, 2, seed=1
        )
        assert not fault


BATCH_GATHER = (
    "f32[4,5,7] gather(f32[4,6,7] p, s32[4,5,1] i), offset_dims={2}, collapsed_slice_dims={1}, "
    "start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, "
    "index_vector_dim=2, slice_sizes={1,1,7}"
)


def test_a_batch_gather_has_the_signatures_of_oneflow() -> None:
    assert split_signatures(BATCH_GATHER) == [
        *("S(0), S(0) -> S(0)", "B, S(1) -> S(1)", "S(2), B -> S(2)", "S(1), B -> P(sum)"),
    ]
    assert "P(sum), B -> P(sum)" in of(BATCH_GATHER)


def test_a_batch_gather_by_split_indices_is_split_not_partial() -> None:
    gathered = instruction_of(BATCH_GATHER)
    assert check_signature(gathered, ["B", "S(1)"], ["S(1)"], 5)
    refused = check_signature(gathered, ["B", "S(1)"], ["P(sum)"], 5)
    assert isinstance(refused, Refused)
    assert refused.operand is not None


# ---------------------------------------------------------------- other ops

# fmt: off
ROWS = [
    # instruction                                          signatures with a split
    ("f32[4,8] dot(f32[4,6] p, f32[6,8] q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
     ["S(0), B -> S(0)", "B, S(1) -> S(1)", "S(1), S(0) -> P(sum)"]),
    ("f32[4,6] add(f32[4,6] p, f32[4,6] q)",               ["S(0), S(0) -> S(0)",
                                                            "S(1), S(1) -> S(1)"]),
    ("f32[6,4] transpose(f32[4,6] p), dimensions={1,0}",   ["S(1) -> S(0)", "S(0) -> S(1)"]),
    ("f32[4,6] broadcast(f32[6] p), dimensions={1}",       ["B -> S(0)", "S(0) -> S(1)"]),
    ("f32[24] reshape(f32[4,6] p)",                        ["S(0) -> S(0)"]),
    ("f32[4,6] reshape(f32[24] p)",                        ["S(0) -> S(0)"]),
    ("f32[4,6] reverse(f32[4,6] p), dimensions={1}",       ["S(0) -> S(0)"]),
    ("f32[4,8] concatenate(f32[4,2] p, f32[4,6] q), dimensions={1}", ["S(0), S(0) -> S(0)"]),
    ("f32[4,3] slice(f32[4,6] p), slice={[0:4], [0:6:2]}", ["S(0) -> S(0)", "S(1) -> S(1)"]),
    ("f32[4,3] slice(f32[4,6] p), slice={[0:4], [0:3]}",   ["S(0) -> S(0)"]),
    ("s32[4,6] iota(), iota_dimension=1",                  ["-> S(0)", "-> S(1)"]),
    ("f32[4] reduce(f32[4,6] p, f32[] z), dimensions={1}, to_apply=maximum",
     ["S(0), B -> S(0)", "S(1), P(max) -> P(max)", "S(1), B -> P(max)"]),
    ("f32[8,6] scatter(f32[8,6] p, s32[4] i, f32[4,6] u), update_window_dims={1}, "
     "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
     ["S(0), B, B -> S(0)", "S(1), B, S(1) -> S(1)", "P(sum), S(0), S(0) -> P(sum)"]),
]
# fmt: on


@pytest.mark.parametrize(("text", "expected"), ROWS)
def test_signatures_with_a_split(text: str, expected: list[str]) -> None:
    assert split_signatures(text) == expected


# fmt: off
PLACES = [
    # instruction                                                   signature              place
    ("s32[4,6] iota(), iota_dimension=1",                           "-> S(0)",             False),
    ("s32[4,6] iota(), iota_dimension=1",                           "-> S(1)",             True),
    ("f32[4] slice(f32[8] p), slice={[0:8:2]}",                     "S(0) -> S(0)",        False),
    ("f32[6] pad(f32[4] p, f32[] v), padding=1_1",                  "S(0), B -> S(0)",     True),
    ("f32[2] dynamic-slice(f32[6] p, s32[] i), dynamic_slice_sizes={2}", "S(0), B -> P(sum)", True),
    ("f32[6] dynamic-update-slice(f32[6] p, f32[2] u, s32[] i)",    "S(0), B, B -> S(0)",  True),
    ("f32[4,6] add(f32[4,6] p, f32[4,6] q)",                        "B, S(0) -> S(0)",     True),
    ("f32[4,6] sort(f32[4,6] p), dimensions={1}, to_apply=less_than", "S(0) -> S(0)",      False),
    ("f32[4,6] sort(f32[4,6] p), dimensions={1}, to_apply=less_than", "B -> S(1)",         True),
    ("c64[4,6] fft(c64[4,6] p), fft_type=FFT, fft_length={6}",      "S(0) -> S(0)",        False),
]
# fmt: on


@pytest.mark.parametrize(("text", "signature", "place"), PLACES)
def test_a_shard_must_know_its_place(text: str, signature: str, place: bool) -> None:
    operands, results = [
        [s.strip() for s in side.split(",") if s.strip()] for side in signature.split("->")
    ]
    verdict = check_signature(instruction_of(text), operands, results, 2)
    assert getattr(verdict, "needs_place", None) is place


def test_a_convolution_needs_a_halo() -> None:
    text = (
        "f32[1,4,8] convolution(f32[1,2,8] p, f32[4,2,3] q), window={size=3 pad=1_1}, "
        "dim_labels=bf0_oi0->bf0"
    )
    signatures = {str(s): s for s in sbp(instruction_of(text))}
    assert signatures["S(2), B -> S(2)"].halo == ((1, 1), (0, 0))
    assert signatures["B, S(0) -> S(1)"].halo == ((0, 0), (0, 0))
    assert signatures["S(1), S(1) -> P(sum)"].shards == 2


def test_a_strided_window_has_the_halo_of_one_side() -> None:
    text = "f32[4] reduce-window(f32[8] p, f32[] z), window={size=3 stride=2 pad=0_1}, to_apply=add"
    (split,) = [s for s in sbp(instruction_of(text)) if str(s) == "S(0), B -> S(0)"]
    assert split.halo[0] == (0, 1)


def test_a_halo_of_uneven_shards_depends_on_the_shard() -> None:
    text = "f32[6] reduce-window(f32[9] p, f32[] z), window={size=4}, to_apply=add"
    assert isinstance(check_signature(instruction_of(text), ["S(0)", "B"], ["S(0)"], 3), Refused)


def test_numbers_of_shards_divide_all_split_sizes() -> None:
    text = "f32[6,4] reshape(f32[12,2] p)"
    (split,) = [s for s in sbp(instruction_of(text)) if str(s) == "S(0) -> S(0)"]
    assert split.shards == 6


def test_uneven_shards() -> None:
    reshape = instruction_of("f32[12] reshape(f32[6,2] p)")
    assert check_signature(reshape, ["S(0)"], ["S(0)"], 3)
    refused = check_signature(reshape, ["S(0)"], ["S(0)"], 5)  # shards of 3 and of 2·2 elements
    assert isinstance(refused, Refused)
    assert refused.operand is not None
    (element,), (row, _) = refused.result[1], refused.operand[1]
    assert (element // 3, row // 2) == refused.shards
    assert element // 3 != row // 2


# ---------------------------------------------------------------- traps


def pad_signature(value: int) -> str:
    return (
        f"ENTRY e {{ p = f32[4] parameter(0)  v = f32[] constant({value})\n"
        "  ROOT r = f32[6] pad(p, v), padding=1_1 }"
    )


def reduce_signature(init: int) -> str:
    return (
        "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n"
        f"ENTRY e {{ p = f32[4,6] parameter(0)  z = f32[] constant({init})\n"
        "  ROOT r = f32[4] reduce(p, z), dimensions={1}, to_apply=add }"
    )


@pytest.mark.parametrize("text", [pad_signature(5), reduce_signature(3)])
def test_a_constant_counts_once(text: str) -> None:
    assert "P(sum), B -> P(sum)" not in map(str, sbp(root(text)))
    refused = check_signature(root(text), ["P(sum)", "B"], ["P(sum)"], 2)
    assert isinstance(refused, Refused)
    assert "combine to" in refused.reason


@pytest.mark.parametrize("text", [pad_signature(0), reduce_signature(0)])
def test_zero_is_a_partial_value_of_a_sum(text: str) -> None:
    assert "P(sum), B -> P(sum)" in map(str, sbp(root(text)))


def test_terms_are_reduced_where_they_are() -> None:
    assert "S(1), B -> P(sum)" in map(str, sbp(root(reduce_signature(0))))
    refused = check_signature(root(reduce_signature(3)), ["S(1)", "B"], ["P(sum)"], 2)
    assert isinstance(refused, Refused)


def test_a_sum_of_integers_that_is_widened_is_no_sum() -> None:
    text = "s32[3,5] dot(s8[3,4] p, s8[4,5] q), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    assert isinstance(
        check_signature(instruction_of(text), ["P(sum)", "B"], ["P(sum)"], 2), Refused
    )


def test_the_logarithm_of_partial_values_may_be_undefined() -> None:
    log = instruction_of("f32[2,3] log(f32[2,3] x)")
    assert check_signature(log, ["P(min)"], ["P(min)"], 2)
    assert isinstance(check_signature(log, ["P(max)"], ["P(max)"], 2), Refused)


def test_a_maximum_passes_through_products_with_constants() -> None:
    def scale(factor: str) -> list[str]:
        return [str(s) for s in sbp(root(
            f"ENTRY e {{ p = f32[4] parameter(0)  c = f32[] constant({factor})\n"
            "  b = f32[4] broadcast(c), dimensions={}  ROOT m = f32[4] multiply(p, b) }"
        ).computation)]  # fmt: skip

    assert "P(max) -> P(max)" in scale("0.5")
    assert {"P(min) -> P(max)", "P(max) -> P(min)"} <= set(scale("-2"))
    assert "P(max) -> P(max)" not in scale("-2")
    assert "P(max) -> P(max)" not in scale("0")  # of an infinite value


# ---------------------------------------------------------------- fusions and computations

SOFTMAX = """
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] maximum(a, b) }
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
softmax {
  x = f32[4,6] parameter(0)
  low = f32[] constant(-inf)  zero = f32[] constant(0)
  m = f32[4] reduce(x, low), dimensions={1}, to_apply=max
  mb = f32[4,6] broadcast(m), dimensions={0}
  s = f32[4,6] subtract(x, mb)
  e = f32[4,6] exponential(s)
  t = f32[4] reduce(e, zero), dimensions={1}, to_apply=add
  tb = f32[4,6] broadcast(t), dimensions={0}
  ROOT d = f32[4,6] divide(e, tb)
}
ENTRY e { p = f32[4,6] parameter(0)  ROOT f = f32[4,6] fusion(p), kind=kLoop, calls=softmax }
"""


def test_softmax_is_split_along_rows_only() -> None:
    fusion = root(SOFTMAX)
    assert [str(s) for s in sbp(fusion)] == ["B -> B", "S(0) -> S(0)"]
    assert [str(s) for s in sbp(fusion.called_computations[0])] == ["B -> B", "S(0) -> S(0)"]
    assert isinstance(check_signature(fusion, ["S(1)"], ["S(1)"]), Refused)


BIASED = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
f {
  x = f32[4,6] parameter(0)  w = f32[6] parameter(1)  bias = f32[4] parameter(2)
  zero = f32[] constant(0)
  wb = f32[4,6] broadcast(w), dimensions={1}
  y = f32[4,6] multiply(x, wb)
  r = f32[4] reduce(y, zero), dimensions={1}, to_apply=add
  ROOT s = f32[4] add(r, bias)
}
ENTRY e { x = f32[4,6] parameter(0)  w = f32[6] parameter(1)  b = f32[4] parameter(2)
  ROOT f = f32[4] fusion(x, w, b), kind=kLoop, calls=f }
"""


def test_partial_values_pass_through_a_fusion() -> None:
    signatures = {str(s): s for s in sbp(root(BIASED))}
    assert {"S(0), B, S(0) -> S(0)", "S(1), S(0), P(sum) -> P(sum)"} <= set(signatures)
    assert {"P(sum), B, P(sum) -> P(sum)", "B, P(sum), P(sum) -> P(sum)"} <= set(signatures)
    assert not signatures["S(1), S(0), P(sum) -> P(sum)"].needs_place
    assert "S(1), S(0), B -> P(sum)" not in signatures
    refused = check_signature(root(BIASED), ["P(sum)", "B", "B"], ["P(sum)"], 2)
    assert isinstance(refused, Refused)


EMBEDDING = """
f {
  table = f32[8,6] parameter(0)  i = s32[4] parameter(1)  scale = f32[] constant(2)
  g = f32[4,6] gather(table, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1,6}
  sb = f32[4,6] broadcast(scale), dimensions={}
  ROOT m = f32[4,6] multiply(g, sb)
}
ENTRY e { t = f32[8,6] parameter(0)  i = s32[4] parameter(1)
  ROOT f = f32[4,6] fusion(t, i), kind=kLoop, calls=f }
"""


def test_a_gather_in_a_fusion_is_masked() -> None:
    signatures = {str(s): s for s in sbp(root(EMBEDDING))}
    assert signatures["S(0), B -> P(sum)"].needs_place
    assert {"B, S(0) -> S(0)", "S(1), B -> S(1)", "P(sum), B -> P(sum)"} <= set(signatures)


def test_a_tuple_has_a_state_for_each_leaf() -> None:
    text = """ENTRY e {
      p = f32[4,6] parameter(0)  q = f32[8] parameter(1)
      n = f32[4,6] negate(p)  t = f32[6,4] transpose(p), dimensions={1,0}  m = f32[8] negate(q)
      ROOT r = (f32[4,6], f32[6,4], f32[8]) tuple(n, t, m) }"""
    signatures = [str(s) for s in sbp(hlo.parse(text).entry)]
    assert "S(0), B -> S(0), S(1), B" in signatures
    assert "B, S(0) -> B, B, S(0)" in signatures
    assert not [s for s in signatures if s.startswith("S(0), S(0)")]  # they do not belong together


def test_a_loop_is_split_along_a_dimension_that_it_keeps() -> None:
    text = """
    less { s = (s32[], f32[4,6]) parameter(0)  i = s32[] get-tuple-element(s), index=0
      n = s32[] constant(5)  ROOT c = pred[] compare(i, n), direction=LT }
    next { s = (s32[], f32[4,6]) parameter(0)  i = s32[] get-tuple-element(s), index=0
      x = f32[4,6] get-tuple-element(s), index=1  one = s32[] constant(1)
      j = s32[] add(i, one)  y = f32[4,6] reverse(x), dimensions={1}
      ROOT t = (s32[], f32[4,6]) tuple(j, y) }
    ENTRY e { x = f32[4,6] parameter(0)  z = s32[] constant(0)
      s = (s32[], f32[4,6]) tuple(z, x)
      ROOT w = (s32[], f32[4,6]) while(s), condition=less, body=next }"""
    signatures = [str(s) for s in sbp(root(text))]
    assert "B, S(0) -> B, S(0)" in signatures
    assert "B, S(1) -> B, S(1)" not in signatures


ACCUMULATED = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
less { s = (s32[], f32[4], f32[4,6]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)  ROOT c = pred[] compare(i, n), direction=LT }
next { s = (s32[], f32[4], f32[4,6]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  total = f32[4] get-tuple-element(s), index=1  x = f32[4,6] get-tuple-element(s), index=2
  one = s32[] constant(1)  j = s32[] add(i, one)  zero = f32[] constant(0)
  r = f32[4] reduce(x, zero), dimensions={1}, to_apply=add  t = f32[4] add(total, r)
  y = f32[4,6] reverse(x), dimensions={0}
  ROOT n = (s32[], f32[4], f32[4,6]) tuple(j, t, y) }
ENTRY e { x = f32[4,6] parameter(0)  i = s32[] constant(0)  zero = f32[] constant(0)
  z = f32[4] broadcast(zero), dimensions={}
  s = (s32[], f32[4], f32[4,6]) tuple(i, z, x)
  w = (s32[], f32[4], f32[4,6]) while(s), condition=less, body=next
  ROOT t = f32[4] get-tuple-element(w), index=1 }
"""


def test_a_loop_accumulates_partial_values() -> None:
    module = hlo.parse(ACCUMULATED)
    signatures = [str(s) for s in sbp(module.entry)]
    assert "S(1) -> P(sum)" in signatures
    assert "P(sum) -> P(sum)" in signatures
    loop = module.entry["w"]
    assert "B, B, S(1) -> B, P(sum), S(1)" in map(str, sbp(loop))  # the total is 0 at first


def test_a_loop_that_adds_a_constant_accumulates_none() -> None:
    text = ACCUMULATED.replace("zero = f32[] constant(0)\n  r", "zero = f32[] constant(1)\n  r")
    assert "S(1) -> P(sum)" not in map(str, sbp(hlo.parse(text).entry))


def test_branches_agree_on_partial_values() -> None:
    text = """
    f { p = f32[4] parameter(0)  ROOT n = f32[4] negate(p) }
    g { q = f32[4] parameter(0)  ROOT r = f32[4] reverse(q), dimensions={0} }
    ENTRY e { c = pred[] parameter(0)  p = f32[4] parameter(1)  q = f32[4] parameter(2)
      ROOT r = f32[4] conditional(c, p, q), true_computation=f, false_computation=g }"""
    signatures = [str(s) for s in sbp(root(text))]
    assert "B, P(sum), P(sum) -> P(sum)" in signatures
    assert "B, S(0), S(0) -> S(0)" not in signatures  # the other branch reverses its operand


def test_a_collective_is_undecided() -> None:
    text = """
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
    ENTRY e { p = f32[4] parameter(0)  ROOT r = f32[4] all-reduce(p), to_apply=add }"""
    signatures = sbp(root(text))
    assert signatures == ()
    assert "depends on the device" in str(signatures.undecided[0])
    assert isinstance(check_signature(root(text), ["S(0)"], ["S(0)"]), Unknown)


# fmt: off
UNDECIDED = [
    # instruction                                                     reason
    ("f32[2] rng(f32[] a, f32[] b), distribution=rng_uniform",        "draws other values"),
    ('f32[2] custom-call(f32[2] p), custom_call_target="f"',          "no rule for the target 'f'"),
    ("u32[] partition-id()",                                          "depends on the device"),
]
# fmt: on


@pytest.mark.parametrize(("text", "reason"), UNDECIDED)
def test_what_depends_on_the_device_has_no_signatures(text: str, reason: str) -> None:
    signatures = sbp(instruction_of(text))
    assert signatures == ()
    assert reason in str(signatures.undecided[0])


# ---------------------------------------------------------------- arguments

ADD = "f32[4,6] add(f32[4,6] p, f32[4,6] q)"
# fmt: off
FAULTS = [
    # operands           results     shards  error
    (["S(0)"],           ["S(0)"],   2,      "needs 2 states, one for each array, not 1"),
    (["S(0)", "X"],      ["S(0)"],   2,      "states such as S(0), B or P(sum), not 'X'"),
    (["S(2)", "B"],      ["S(0)"],   2,      "operand 0 is f32[4,6] and has no dimension 2"),
    (["P(and)", "B"],    ["B"],      2,      "elements have no partial values P(and)"),
    (["B", "B"],         ["B"],      1,      "`shards` must be at least 2, not 1"),
]
# fmt: on


@pytest.mark.parametrize(("operands", "results", "shards", "error"), FAULTS)
def test_wrong_states_are_errors(
    operands: list[str], results: list[str], shards: int, error: str
) -> None:
    with pytest.raises(ValueError, match="check_signature: ") as raised:
        check_signature(instruction_of(ADD), operands, results, shards)
    assert error in str(raised.value)


def test_sizes_without_a_common_divisor_are_unknown() -> None:
    unknown = check_signature(instruction_of("f32[3] slice(f32[7] p), slice={[0:7:3]}"),
                              ["S(0)"], ["S(0)"])  # fmt: skip
    assert isinstance(unknown, Unknown)
    assert "no number of shards divides the sizes 7, 3" in str(unknown)


def test_a_proof_names_its_maps() -> None:
    (signature,) = [s for s in sbp(instruction_of(ADD)) if str(s) == "S(1), S(1) -> S(1)"]
    assert isinstance(signature, SbpSignature)
    step = signature.proof[0]
    assert "only the same shard of operand 0" in step.text
    assert str(step.maps[0]) == str(indexing.output_to_input(instruction_of(ADD)).maps[0][0])
