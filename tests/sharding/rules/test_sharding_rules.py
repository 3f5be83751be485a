"""Sharding rules derived from maps."""

from math import prod

import pytest
from hypothesis import given

import hlo
from hlo.shapes.shape import Shape
from indexing.ops.samples import instruction_of
from indexing.sharding import sharding_rule
from tests.checks import checks
from tests.ops import strategies
from tests.ops.samples import MAPPED, parse_sample, samples_of
from tests.ops.test_random_ops import ELEMENTWISE, STRATEGIES
from tests.oracles import fuzz
from tests.sharding.rules.sharding_checks import broken_factors
from tests.sharding.rules.shardy import Claim, claims, is_covered

# fmt: off
TABLE = [
    ("f32[8,4] add(f32[8,4] p, f32[8,4] q)", "([i, j], [i, j])->([i, j]) {i=8, j=4}"),
    ("f32[3,5] dot(f32[3,4] p, f32[4,5] q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
     "([i, k], [k, j])->([i, j]) {i=3, j=5, k=4} reduction={k}"),
    ("f32[5,2] reduce(f32[5,3,2] p, f32[] z), dimensions={1}, to_apply=add",
     "([i, k, j], [])->([i, j]) {i=5, j=2, k=3} reduction={k}"),
    ("f32[4,2,3] transpose(f32[2,3,4] p), dimensions={2,0,1}",
     "([j, k, i])->([i, j, k]) {i=4, j=2, k=3}"),
    ("f32[2,5,3] broadcast(f32[3,2] p), dimensions={2,0}",
     "([k, i])->([i, j, k]) {i=2, j=5, k=3}"),
    ("f32[2,4,4] reshape(f32[4,8] p)", "([ij, kl])->([i, jk, l]) {i=2, j=2, k=2, l=4}"),
    ("f32[3,4] reshape(f32[2,6] p)",
     "([l, mk])->([i, jk]) {i=3, j=2, k=2, l=2, m=3} need_replication={i, j, l, m}"),
    ("f32[2,6,2] reshape(f32[8,3] p)",
     "([ijm, n])->([i, jk, l]) {i=2, j=2, k=3, l=2, m=2, n=3} need_replication={k, l, m, n}"),
    ("f32[12,2] reshape(f32[2,4,3] p)",
     "([i, jm, n])->([ijk, l]) {i=2, j=2, k=3, l=2, m=2, n=3} need_replication={k, l, m, n}"),
    ("f32[3,3] slice(f32[10,3] p), slice={[1:10:3], [0:3]}",
     "([i, j])->([i, j]) {i=10, j=3} permutation={i}"),
    ("f32[4] slice(f32[8] p), slice={[0:4]}", "([i])->([i]) {i=8} permutation={i}"),
    ("f32[8] pad(f32[8] p, f32[] v), padding=1_-1", "([i], [])->([i]) {i=8} permutation={i}"),
    ("f32[2,8] concatenate(f32[2,4] p, f32[2,4] q), dimensions={1}",
     "([i, j], [i, j])->([i, j]) {i=2, j=8} need_replication={j}"),
    ("f32[5,3] gather(f32[6,3] p, s32[5] i), offset_dims={1}, collapsed_slice_dims={0}, "
     "start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}",
     "([k, j], [i])->([i, j]) {i=5, j=3, k=6} reduction={k}"),
    ("f32[6,3] scatter(f32[6,3] p, s32[2] i, f32[2,3] u), update_window_dims={1}, "
     "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
     "([i, j], [k], [k, j])->([i, j]) {i=6, j=3, k=2} reduction={k}"),
    ("f32[3,5] sort(f32[3,5] p), dimensions={1}, to_apply=less_than",
     "([i, j])->([i, j]) {i=3, j=5} need_replication={j}"),
    ("f32[2,3] dynamic-slice(f32[5,3] p, s32[] i, s32[] j), dynamic_slice_sizes={2,3}",
     "([i, j], [], [])->([i, j]) {i=5, j=3} need_replication={i}"),
    ("f32[5,7] dynamic-update-slice(f32[5,7] p, f32[2,7] u, s32[] i, s32[] j)",
     "([i, j], [k, j], [], [])->([i, j]) {i=5, j=7, k=2} need_replication={k}"),
    ("f32[2,5] reverse(f32[2,5] p), dimensions={1}",
     "([i, j])->([i, j]) {i=2, j=5} permutation={j}"),
    ("f32[2,2,4] convolution(f32[2,3,6] p, f32[2,3,4] q), window={size=2 rhs_reversal=1}, "
     "dim_labels=b0f_0io->b0f, feature_group_count=2",
     "([i, j, km], [n, m, kl])->([i, j, kl]) {i=2, j=2, k=2, l=2, m=3, n=2} reduction={m} "
     "need_replication={n} permutation={j}"),
    ("u8[3,4] bitcast-convert(f32[3] p)", "([i])->([i, j]) {i=3, j=4} need_replication={j}"),
    ("s32[3,4] iota(), iota_dimension=1", "()->([i, j]) {i=3, j=4}"),
    ("(f32[2,3], s32[]) tuple(f32[2,3] p, s32[] q)",
     "([i, j], [])->([k, l], []) {i=1, j=1, k=1, l=1}"),
]
# fmt: on


@pytest.mark.parametrize(("text", "rule"), TABLE)
def test_rules_have_shardys_text(text: str, rule: str) -> None:
    assert str(sharding_rule(instruction_of(text))) == rule


def test_reductions_name_their_combiner_and_their_initial_values() -> None:
    text = "f32[3] reduce(f32[2,3] p, f32[] z), dimensions={0}, to_apply=maximum"
    rule = sharding_rule(instruction_of(text))
    assert [factor.reduction for factor in rule.factors] == ["", "max"]
    assert rule.inits == (1,)


def test_rules_are_memoised_by_op_and_shapes() -> None:
    text = "f32[7,2] transpose(f32[2,7] p), dimensions={1,0}"
    assert sharding_rule(instruction_of(text)) is sharding_rule(instruction_of(text))


def test_indices_along_a_split_dimension_give_masked_sums() -> None:
    gather = (
        "f32[5,3] gather(f32[6,3] p, s32[5] i), offset_dims={1}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}"
    )
    rule = sharding_rule(instruction_of(gather))
    assert [f.is_masked for f in rule.factors] == [False, False, True]


# ---------------------------------------------------------------- by brute force


@pytest.mark.parametrize("opcode", MAPPED)
def test_factors_of_samples_hold(opcode: str) -> None:
    with checks() as check:
        for sample in samples_of(opcode):
            if all(isinstance(shape, Shape) for shape in sample.shapes):
                with check(sample.text):
                    assert not broken_factors(sample, sharding_rule(sample.instruction))


@pytest.mark.parametrize("name", [*STRATEGIES, "elementwise"])
def test_factors_of_random_instructions_hold(name: str) -> None:
    @fuzz(20)
    @given(STRATEGIES.get(name, strategies.elementwise(ELEMENTWISE)))
    def check(text: str) -> None:
        sample = parse_sample(text)
        if sum(prod(shape.dims) for shape in (*sample.outputs, *sample.arrays)) <= 200:
            assert not broken_factors(sample, sharding_rule(sample.instruction))

    check()


# ---------------------------------------------------------------- computations

COMPUTATIONS = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
softmax {
  p = f32[4,8] parameter(0) z = f32[] constant(-inf)
  m = f32[4] reduce(p, z), dimensions={1}, to_apply=max
  b = f32[4,8] broadcast(m), dimensions={0} ROOT s = f32[4,8] subtract(p, b)
}
squares {
  p = f32[4,8] parameter(0) z = f32[] constant(0) q = f32[4,8] multiply(p, p)
  ROOT r = f32[4] reduce(q, z), dimensions={1}, to_apply=add
}
from_one {
  p = f32[4,8] parameter(0) z = f32[] constant(1)
  ROOT r = f32[4] reduce(p, z), dimensions={1}, to_apply=add
}
from_parameter {
  z = f32[] parameter(0) p = f32[4,8] parameter(1)
  ROOT r = f32[4] reduce(p, z), dimensions={1}, to_apply=add
}
norm { p = f32[4,8] parameter(0) z = f32[] constant(0)
  r = f32[4] reduce(p, z), dimensions={1}, to_apply=add ROOT n = f32[4] sqrt(r) }
bias { p = f32[8] parameter(0) n = f32[8] negate(p)
  ROOT b = f32[4,2,8] broadcast(n), dimensions={2} }
blocks { p = f32[4,8] parameter(0) q = f32[32] reshape(p) ROOT r = f32[8,4] reshape(q) }
both_ways { p = f32[4,4] parameter(0) q = f32[4,4] transpose(p), dimensions={1,0}
  ROOT r = f32[4,4] add(p, q) }
product { p = f32[3,4] parameter(0) q = f32[5,4] parameter(1)
  t = f32[4,5] transpose(q), dimensions={1,0}
  ROOT d = f32[3,5] dot(p, t), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
back { p = f32[4,8] parameter(0) q = f32[4,8] reverse(p), dimensions={1}
  ROOT r = f32[4,8] reverse(q), dimensions={1} }
two_results { p = f32[4,8] parameter(0) n = f32[4,8] negate(p)
  q = f32[32] reshape(p) ROOT r = (f32[4,8], f32[32]) tuple(n, q) }
ENTRY e { p = f32[4,8] parameter(0) ROOT f = f32[4,8] fusion(p), kind=kLoop, calls=softmax }
"""
# fmt: off
FUSED = [
    ("softmax",        "([i, j])->([i, j]) {i=4, j=8} need_replication={j}"),
    ("squares",        "([i, j])->([i]) {i=4, j=8} reduction={j}"),
    ("from_one",       "([i, j])->([i]) {i=4, j=8} need_replication={j}"),
    ("from_parameter", "([], [i, j])->([i]) {i=4, j=8} reduction={j}"),
    ("norm",           "([i, j])->([i]) {i=4, j=8} need_replication={j}"),
    ("bias",           "([k])->([i, j, k]) {i=4, j=2, k=8}"),
    ("blocks",         "([i, jk])->([ij, k]) {i=4, j=2, k=4}"),
    ("both_ways",      "([k, l])->([i, j]) {i=4, j=4, k=4, l=4} need_replication={i, j, k, l}"),
    ("product",        "([i, k], [j, k])->([i, j]) {i=3, j=5, k=4} reduction={k}"),
    ("back",           "([i, j])->([i, j]) {i=4, j=8}"),
    ("two_results",    "([i, j])->([i, j], [ij]) {i=4, j=8}"),
]
# fmt: on


@pytest.mark.parametrize(("name", "rule"), FUSED)
def test_rules_of_computations(name: str, rule: str) -> None:
    assert str(sharding_rule(hlo.parse(COMPUTATIONS).computations[name])) == rule


UNSIZED = """
add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = f32[] add(x, y) }
sum { p = f32[?,4] parameter(0) z = f32[] constant(0) v = f32[8,4] VALUE
  ROOT r = f32[4] reduce(v, z), dimensions={0}, to_apply=add }
ENTRY e { q = f32[?,4] parameter(0) ROOT c = f32[4] call(q), to_apply=sum }
"""


@pytest.mark.parametrize("value", ["slice(p), slice={[0:8], [0:4]}", "reshape(p)", "copy(p)"])
def test_a_reduction_of_unknown_reads_needs_replication(value: str) -> None:
    called = hlo.parse(UNSIZED.replace("VALUE", value)).computations["sum"]
    rule = sharding_rule(called)
    assert rule.factors
    assert {factor.kind for factor in rule.factors} == {"need_replication"}


def test_a_fusion_has_the_rule_of_its_computation() -> None:
    module = hlo.parse(COMPUTATIONS)
    assert sharding_rule(module.entry.root) is sharding_rule(module.computations["softmax"])


@pytest.mark.parametrize("opcode", MAPPED)
def test_a_computation_of_one_instruction_allows_no_more(opcode: str) -> None:
    """Its maps are those of the instruction, but it has no element rule for gathers or scatters."""
    with checks() as check:
        for sample in samples_of(opcode):
            with check(sample.text):
                own = claims(sample, sharding_rule(sample.instruction))
                fused = claims(sample, sharding_rule(sample.instruction.computation))
                assert all(is_covered(claim, own) for claim in fused)
                passes = [claim for claim in own if claim[0] == "pass_through"]
                assert all(claim in fused for claim in passes if {"o", "r"} <= sides(claim))


def sides(claim: Claim) -> set[str]:
    """Return the sides on which a factor has digits: operands, results."""
    return {place[0] for place in claim[1]}
