"""Plans of models: hand-written collectives, equal results, bytes and peaks counted by hand."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import hlo
import indexing
from hlo.shapes.shape import dtype, leaves
from hlo.text.names import UnknownName
from indexing.execution import xla
from indexing.execution.program import run
from tests.sharding.partition.xla_partitioner import bytes_of, partition
from tests.sharding.planning.models import ATTENTION, MLP, MODELS, Model


def plan_of(model: Model) -> indexing.Plan:
    return indexing.shard(hlo.parse(model.text), model.mesh, model.specs, out_specs=model.out_specs)


def random_inputs(module: hlo.Module, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    shapes = [s for p in module.entry.parameters for _, s in leaves(p.shape)]
    arrays = []
    for shape in shapes:
        assert isinstance(shape, hlo.Shape)
        kind = dtype(shape.element_type)
        integers = rng.integers(0, 3, shape.dims)
        values = rng.standard_normal(shape.dims) if kind.kind not in "iub" else integers
        arrays.append(values.astype(kind))
    return arrays


def check_equal(plan: indexing.Plan, module: hlo.Module) -> None:
    """Compare a plan with the program; padding of parameters must not reach a result."""
    inputs = random_inputs(module)
    for ours, whole in zip(plan.run(inputs, fill=77), run(module, inputs), strict=True):
        np.testing.assert_allclose(ours, whole, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", MODELS)
def test_models_have_the_collectives_of_experts_and_equal_results(name: str) -> None:
    model = MODELS[name]
    plan = plan_of(model)
    sent = [(c.kind, "".join(map(str, c.axes))) for c in plan.collectives]
    assert sorted(sent) == sorted(model.collectives)
    check_equal(plan, hlo.parse(model.text))
    assert plan.is_cheapest


@pytest.mark.skipif(not xla.is_available(), reason="needs jaxlib (extra xla)")
@pytest.mark.parametrize("name", MODELS)
def test_models_send_no_more_bytes_than_xla(name: str) -> None:
    plan, module = plan_of(MODELS[name]), hlo.parse(MODELS[name].text)
    names = [parameter.name for parameter in module.entry.parameters]
    shardings = dict(zip(names, plan.parameters, strict=True))
    results = plan.results if MODELS[name].out_specs else ()
    theirs = bytes_of(partition(module, plan.mesh, shardings, results), plan.mesh)
    assert plan.bytes_sent <= theirs


@pytest.mark.skipif(not xla.is_available(), reason="needs jaxlib (extra xla)")
@pytest.mark.parametrize("name", MODELS)
def test_models_compute_the_same_on_devices_of_xla(name: str) -> None:
    plan, module = plan_of(MODELS[name]), hlo.parse(MODELS[name].text)
    inputs = random_inputs(module)
    outputs = xla.run(plan.module, plan.shards(inputs, fill=77))
    for ours, whole in zip(plan.assemble(outputs), xla.run(module, inputs), strict=True):
        np.testing.assert_allclose(ours, whole, rtol=1e-3, atol=1e-3)


def test_bytes_and_peak_of_a_block_are_those_counted_by_hand() -> None:
    module = hlo.parse(
        """ENTRY e { x = f32[8,16] parameter(0)  a = f32[16,32] parameter(1)
        b = f32[32,16] parameter(2)
        h = f32[8,32] dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        t = f32[8,32] tanh(h)
        ROOT y = f32[8,16] dot(t, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
    )
    plan = indexing.shard(module, {"x": 4}, {"a": (None, "x"), "b": ("x", None)})
    assert plan.bytes_sent == 2 * 3 * (8 * 16 * 4) // 4
    held = 8 * 16 * 4 + 2 * (16 * 32 * 4) // 4
    assert plan.peak_bytes == held + 2 * 8 * 16 * 4  # partial and full results
    assert [str(plan.specs[name]) for name in "xhty"] == ["[_, _]", "[_, x]", "[_, x]", "[_, _]"]
    assert not plan.reasons
    assert not plan.halos


# fmt: off
ERRORS = [
    # mesh, specs, other arguments           error, message
    ({"x": 0}, {}, {},                       ValueError, "`x` must be a positive integer, not 0"),
    ({"x": 2.5}, {}, {},                     (TypeError, ValueError), "mesh"),
    ("x=", {}, {},                           hlo.HloError, "a mesh must have the form x=4,y=2"),
    ({"rows": 4}, {"a0": (None, "row")}, {}, ValueError, "no axis `row`.* did you mean `rows`"),
    ({"x": 4}, {"a0": ("x", "x")}, {},       ValueError, "spec of `a0`.*axis x is used twice"),
    ({"x": 4}, {"c00": ("x",)}, {},          UnknownName, "named `c00`; did you mean `c0`"),
    ({"x": 4}, {"p17": ("x",)}, {},          UnknownName, "no parameter named `p17`"),
    ({"x": 4}, {"x": ("x", None, None)}, {}, hlo.HloError, r"`x` has 3 entries, but f32\[32,64\]"),
    ({"x": 4}, {"x{3}": ("x",)}, {},         hlo.HloError, r"`x` has no leaf \{3\}"),
    ({"x": 4}, {"x": ("x",)}, {"manual_axes": ["x"]}, ValueError, "axis `x`, which is manual"),
    ({"x": 4}, {}, {"manual_axes": ["y"]},   ValueError, "manual_axes: .* has no axis `y`"),
    ({"x": 4}, {}, {"replicated": {"h0": ["y"]}}, ValueError, "no axis `y`"),
    ({"x": 4}, {"x": ("x",)}, {"replicated": {"x": ["x"]}}, ValueError, "`replicated` excludes"),
    ({"x": 4}, {}, {"out_specs": [None] * 2}, hlo.HloError, "out_specs has 2 entries"),
]
# fmt: on


@pytest.mark.parametrize(("mesh", "specs", "others", "error", "message"), ERRORS)
def test_wrong_arguments_are_named(
    mesh: Any, specs: Any, others: Any, error: Any, message: str
) -> None:
    with pytest.raises(error) as caught:
        indexing.shard(hlo.parse(MLP), mesh, specs, **others)
    assert re.search(message, str(caught.value)), caught.value


def test_faults_of_specs_have_their_place_in_the_original_program() -> None:
    with pytest.raises(hlo.HloError) as caught:
        indexing.shard(hlo.parse(MLP, "mlp.hlo"), {"x": 4}, {"c0": ("x", None)})
    assert caught.value.span.place() == "mlp.hlo:8:3"


def test_programs_that_exchange_values_already_are_refused() -> None:
    text = """HloModule m, num_partitions=2
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
    ENTRY e { p = f32[4] parameter(0)  ROOT s = f32[4] all-reduce(p), to_apply=add }"""
    with pytest.raises(hlo.HloError, match="already divided over devices"):
        indexing.shard(hlo.parse(text), {"x": 2})


def test_sub_axes_split_what_they_name_and_are_printed_merged() -> None:
    module = hlo.parse(MLP)
    plan = indexing.shard(module, {"x": 8}, {"a0": "_,x:(1)4", "b0": "x:(1)4,_", "x": "x:(4)2,_"})
    assert str(plan.specs["t0"]) == "[x:(4)2, x:(1)4]"
    assert [(c.kind, *map(str, c.axes)) for c in plan.collectives] == [("all-reduce", "x:(1)4")]
    check_equal(plan, module)


def test_an_axis_is_divided_where_a_reshape_divides_a_dimension() -> None:
    module = hlo.parse("ENTRY e { p = f32[8,3] parameter(0)  ROOT r = f32[2,4,3] reshape(p) }")
    plan = indexing.shard(module, {"x": 4}, {"p": ("x",)})
    assert str(plan.specs["r"]) == "[x:(1)2, x:(2)2, _]"
    assert not plan.collectives
    check_equal(plan, module)


def test_several_axes_on_a_dimension_keep_their_order() -> None:
    module = hlo.parse("ENTRY e { p = f32[8,3] parameter(0)  ROOT n = f32[8,3] negate(p) }")
    plan = indexing.shard(module, {"x": 2, "y": 2}, {"p0": (("y", "x"), None)})
    assert str(plan.specs["n"]) == "[(y,x), _]"
    assert not plan.collectives
    check_equal(plan, module)


def test_sizes_that_shards_do_not_divide_are_padded_and_the_padding_is_stated() -> None:
    module = hlo.parse(
        """add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
        ENTRY e { p = f32[10,3] parameter(0)  z = f32[] constant(0)
        ROOT s = f32[3] reduce(p, z), dimensions={0}, to_apply=add }"""
    )
    plan = indexing.shard(module, {"x": 4}, {"p": ("x",)})
    assert [str(reason) for reason in plan.reasons] == [
        "`p` dimension 0: 10 elements in 4 shards of 3, 2 of padding"
    ]
    check_equal(plan, module)


SMALL = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  p = f32[4,8] parameter(0)
  n = f32[4,8] exponential(p)
  zero = f32[] constant(0)
  columns = f32[8] reduce(n, zero), dimensions={0}, to_apply=add
  rows = f32[4] reduce(n, zero), dimensions={1}, to_apply=add
  ROOT r = (f32[4,8], f32[8], f32[4]) tuple(n, columns, rows)
}"""


def test_a_dimension_of_fewer_elements_than_devices_is_split_where_a_spec_says_so() -> None:
    module = hlo.parse(SMALL)
    plan = indexing.shard(module, {"x": 8}, {"p": ("x", None)})
    assert {name: str(plan.specs[name]) for name in ("n", "rows")} == {"n": "[x, _]", "rows": "[x]"}
    chain = hlo.parse("ENTRY e { p = f32[4,8] parameter(0)  ROOT n = f32[4,8] negate(p) }")
    assert indexing.shard(chain, {"x": 8}, {"p": ("x", None)}).bytes_sent == 0
    check_equal(plan, module)


def test_output_features_of_groups_that_read_padding_only_are_not_split() -> None:
    module = hlo.parse("""ENTRY e {
      p = f32[1,4,2] parameter(0)
      w = f32[6,2,1] parameter(1)
      ROOT r = f32[1,6,1] convolution(p, w), window={size=1 stride=4 pad=1_1},
        dim_labels=bf0_oi0->bf0, feature_group_count=2
    }""")
    plan = indexing.shard(module, {"x": 2}, {"w": ("x", None, None)})
    (result,) = plan.run([np.ones((1, 4, 2), np.float32), np.ones((6, 2, 1), np.float32)])
    np.testing.assert_array_equal(result, np.zeros((1, 6, 1)))


def test_replicated_axes_do_not_split_an_array() -> None:
    plan = indexing.shard(
        hlo.parse(ATTENTION), {"x": 8}, {"wq": (None, "x")}, replicated={"q": ["x"]}
    )
    assert str(plan.specs["q"]) == "[_, _, _, _]"
    free = indexing.shard(hlo.parse(ATTENTION), {"x": 8}, {"wq": (None, "x")})
    assert str(free.specs["q"]) == "[_, _, x, _]"


def test_partial_sums_are_added_before_they_are_combined() -> None:
    product = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    module = hlo.parse(
        f"""ENTRY e {{ a = f32[8,16] parameter(0)  b = f32[16,8] parameter(1)
        c = f32[8,16] parameter(2)  d = f32[16,8] parameter(3)
        p = f32[8,8] dot(a, b), {product}  q = f32[8,8] dot(c, d), {product}
        s = f32[8,8] add(p, q)  t = f32[8,8] transpose(s), dimensions={{1,0}}
        ROOT n = f32[8,8] exponential(t) }}"""
    )
    columns, rows = (None, "x"), ("x", None)
    specs = {"a": columns, "b": rows, "c": columns, "d": rows}
    plan = indexing.shard(module, {"x": 4}, specs)
    assert [c.kind for c in plan.collectives] == ["all-reduce"]
    check_equal(plan, module)
    scattered = indexing.shard(module, {"x": 4}, specs, out_specs=[rows])
    assert [c.kind for c in scattered.collectives] == ["reduce-scatter"]
    assert scattered.bytes_sent * 2 == plan.bytes_sent
    check_equal(scattered, module)


LOOP = """
less {{ s = (s32[], f32[8,6]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)  ROOT r = pred[] compare(i, n), direction=LT }}
next {{ s = (s32[], f32[8,6]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  x = f32[8,6] get-tuple-element(s), index=1  one = s32[] constant(1)
  j = s32[] add(i, one)  w = f32[6,6] constant({{ {{2,0,0,0,0,1}}, {{0,1,0,0,0,0}}, {{0,0,1,0,0,0}},
    {{0,0,0,1,0,0}}, {{0,0,0,0,1,0}}, {{1,0,0,0,0,1}} }})
  y = f32[8,6] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT t = (s32[], f32[8,6]) tuple(j, y) }}
ENTRY e {{ zero = s32[] constant(0)  x = f32[8,6] parameter(0)
  a = (s32[], f32[8,6]) tuple(zero, x)
  w = (s32[], f32[8,6]) while(a), condition=less, body=next
  ROOT o = f32[8,6] get-tuple-element(w), index=1 }}""".format()


def test_carried_arrays_have_one_sharding_and_collectives_count_iterations() -> None:
    module = hlo.parse(LOOP)
    rows = indexing.shard(module, {"x": 2}, {"x": ("x", None)})
    assert not rows.collectives
    assert str(rows.specs["next/y"]) == str(rows.specs["o"]) == "[x, _]"
    columns = indexing.shard(module, {"x": 2}, {"x": (None, "x")}, out_specs=[(None, "x")])
    inside = [c for c in columns.collectives if c.loop == "next"]
    assert all(c.executions.number == 5 for c in inside)
    assert columns.bytes_sent == sum(
        c.bytes_sent * (5 if c.loop else 1) for c in columns.collectives
    )
    for plan in (rows, columns):
        check_equal(plan, module)


def test_a_whole_gather_names_the_reason_and_the_least_exchange() -> None:
    module = hlo.parse(
        """less { a = f32[] parameter(0) b = f32[] parameter(1)
        ROOT c = pred[] compare(a, b), direction=LT }
        ENTRY e { p = f32[8,6] parameter(0)
        ROOT r = f32[8,6] sort(p), dimensions={0}, to_apply=less }"""
    )
    plan = indexing.shard(module, {"x": 4}, {"p": ("x",)})
    (reason,) = plan.reasons
    assert str(reason).startswith("`r` gathers `p` [x, _] whole: dimension 0 cannot be split")
    assert reason.least_bytes == 8 * 6 * 4 * 3 // 4
    check_equal(plan, module)


def test_a_dimension_that_a_gather_reads_at_0_is_split() -> None:
    """Dimension 1 is collapsed and has no start: only the first device holds the element."""
    text = """ENTRY e { p = f32[4,6,7] parameter(0)  i = s32[3,2,2] parameter(1)
      ROOT g = f32[3,2,2,3] gather(p, i), offset_dims={1,3}, collapsed_slice_dims={1},
        start_index_map={2,0}, index_vector_dim=2, slice_sizes={2,1,3} }"""
    module = hlo.parse(text)
    plan = indexing.shard(module, {"x": 3}, {"p": (None, "x", None)})
    assert [c.kind for c in plan.collectives] == ["all-reduce"]
    check_equal(plan, module)


def test_a_reducer_may_call_a_computation() -> None:
    text = """larger { a = f32[] parameter(0)  b = f32[] parameter(1)
      ROOT m = f32[] maximum(a, b) }
      apply { c = f32[] parameter(0)  d = f32[] parameter(1)
      ROOT n = f32[] call(c, d), to_apply=larger }
      ENTRY e { p = f32[4,6] parameter(0)  z = f32[] constant(-inf)
      ROOT r = f32[4] reduce(p, z), dimensions={1}, to_apply=apply }"""
    module = hlo.parse(text)
    check_equal(indexing.shard(module, {"x": 2}, {"p": ("x", None)}), module)


def test_windows_exchange_the_borders_of_shards() -> None:
    module = hlo.parse(
        """ENTRY e { a = f32[2,16,4] parameter(0)  k = f32[3,4,4] parameter(1)
        ROOT c = f32[2,16,4] convolution(a, k), window={size=3 pad=1_1},
          dim_labels=b0f_0io->b0f }"""
    )
    plan = indexing.shard(module, {"x": 4}, {"a": (None, "x")})
    row = 2 * 4 * 4
    assert [(halo.kind, halo.bytes_sent) for halo in plan.halos] == [
        ("collective-permute", row)
    ] * 2
    assert plan.halos == plan.collectives
    check_equal(plan, module)


def test_loops_of_unknown_length_count_once_and_print_so() -> None:
    text = LOOP.replace("n = s32[] constant(5)", "n = s32[] get-tuple-element(s), index=2")
    text = text.replace("(s32[], f32[8,6])", "(s32[], f32[8,6], s32[])")
    text = text.replace("tuple(j, y)", "tuple(j, y, m)").replace(
        "one = s32[] constant(1)",
        "one = s32[] constant(1)  m = s32[] get-tuple-element(s), index=2",
    )
    text = text.replace("tuple(zero, x)", "tuple(zero, x, n)").replace(
        "zero = s32[] constant(0)", "zero = s32[] constant(0)  n = s32[] parameter(1)"
    )
    module = hlo.parse(text)
    columns = (None, "x")
    plan = indexing.shard(module, {"x": 2}, {"x": columns}, replicated={"w{1}": ["x"]})
    assert str(plan.specs["next/y"]) == "[_, _]"
    kept = indexing.shard(module, {"x": 2}, {"x": columns}, out_specs=[columns])
    inside = [collective for collective in kept.collectives if collective.loop]
    assert inside
    for collective in inside:
        assert collective.executions.number is None
        assert collective.total_bytes == collective.bytes_sent


def test_manual_regions_are_refused_with_their_place() -> None:
    text = """ENTRY e { p = f32[8] parameter(0)
    c = f32[4] custom-call(p), custom_call_target="xla.sdy.GlobalToLocalShape"
    ROOT n = f32[4] negate(c) }"""
    with pytest.raises(hlo.HloError, match="begins a manual region") as caught:
        indexing.shard(hlo.parse(text, "m.hlo"), {"x": 2})
    assert caught.value.span.place() == "m.hlo:2:5"


def test_a_reason_names_the_dimension_that_an_axis_splits_instead() -> None:
    module = hlo.parse(
        """ENTRY e { a = f32[4,64] parameter(0)  w = f32[64,256] parameter(1)
      ROOT y = f32[4,256] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
    )
    split = (None, "x")
    plan = indexing.shard(module, {"x": 4}, {"a": split, "w": split}, out_specs=[split])
    (reason,) = plan.reasons
    assert str(reason) == (
        "`y` gathers `a` [_, x] whole: axis x splits dimension 1 of result 0 instead of dimension "
        f"1; a device must receive at least {3 * 4 * 64 * 4 // 4:,} bytes"
    )


def test_a_spec_takes_the_name_of_the_argument_in_jax() -> None:
    module = hlo.load("examples/attention.opt.hlo")
    by_argument = indexing.shard(module, "x=4", {"p['q']": "_,x", "x": "_,_,_"})
    by_name = indexing.shard(module, "x=4", {"p__q__.1": "_,x", "x.1": "_,_,_"})
    assert by_argument.specs == by_name.specs
    assert by_argument.specs["p__q__.1"] != by_argument.specs["p__k__.1"]


def test_an_argument_that_several_parameters_share_is_no_name() -> None:
    module = hlo.parse("""ENTRY e { a = f32[4] parameter(0), metadata={op_name="p"}
      b = f32[4] parameter(1), metadata={op_name="p"}  ROOT s = f32[4] add(a, b) }""")
    with pytest.raises(UnknownName, match="no parameter named `p`"):
        indexing.shard(module, "x=2", {"p": "x"})
