"""Sharding rules derived from maps."""

from math import prod

import pytest
from hypothesis import given

from hlo.shapes.shape import Shape
from indexing.ops.samples import instruction_of
from indexing.sharding import sharding_rule
from tests.checks import checks
from tests.indexing.sharding_checks import broken_factors
from tests.ops import strategies
from tests.ops.samples import MAPPED, parse_sample, samples_of
from tests.ops.test_random_ops import ELEMENTWISE, STRATEGIES
from tests.oracles import fuzz

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
