"""Plans with the mesh and the shardings that a module states, against plans with given ones."""

from __future__ import annotations

from itertools import permutations

import pytest

import hlo
import indexing
from hlo import Sharding
from hlo.shardings.mesh import Axis, Mesh
from indexing import cli
from indexing.sharding.planning.stated_shardings import _over, stated_shardings

# As JAX lowers a matrix product of two arrays that are split along both axes.
SHARDY = r"""HloModule m, num_partitions=4,
  frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=2, "y"=2]>}}
ENTRY e {
  a.1 = f32[8,12] parameter(0), sharding={devices=[2,2]<=[4]},
    frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"x\"}, {\"y\"}]>"}
  b.1 = f32[12,16] parameter(1), sharding={devices=[2,2]<=[4]},
    frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"x\"}, {\"y\"}]>"}
  d = f32[8,16] dot(a.1, b.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  n = f32[8,16] negate(d)
  r = f32[8,16] custom-call(n), custom_call_target="xla.sdy.FuncResultSharding",
    frontend_attributes={
    xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, [{\"x\"}, {\"y\"}]>]>"}
  ROOT t = (f32[8,16]) tuple(r)
}
"""
GSPMD = """HloModule m, num_partitions=4
ENTRY e {
  a.1 = f32[8,12] parameter(0), sharding={devices=[2,2]<=[4]}
  b.1 = f32[12,16] parameter(1), sharding={devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}
  d = f32[8,16] dot(a.1, b.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[8,16] custom-call(d), custom_call_target="Sharding", sharding={devices=[1,4]<=[4]}
  ROOT n = f32[8,16] negate(s), sharding={replicated}
}
"""


def test_the_plan_is_that_of_the_same_given_shardings() -> None:
    module = hlo.parse(SHARDY)
    plan = indexing.shard(module)
    given = indexing.shard(module, "x=2,y=2", {"a.1": "x,y", "b.1": "x,y"}, out_specs=["x,y"])
    assert str(plan) == str(given)
    assert plan.bytes_sent > 0


def test_a_module_of_gspmd_has_an_implied_mesh_and_constraints() -> None:
    module = hlo.parse(GSPMD)
    stated = stated_shardings(module)
    assert stated is not None
    assert str(stated.mesh) == "axis_0=2,axis_1=2"
    assert {k: str(s) for k, s in stated.parameters.items()} == {
        "a.1": "[axis_0, axis_1]",
        "b.1": "[_, axis_1]",
    }
    assert [str(s) for s in stated.results] == ["[_, _]"]
    assert {k: str(s) for k, s in stated.inner.items()} == {"d": "[_, (axis_0,axis_1)]"}
    plan = indexing.shard(module)
    specs = {"a.1": "axis_0,axis_1", "b.1": "_,axis_1", "d": "_,(axis_0,axis_1)"}
    given = indexing.shard(module, {"axis_0": 2, "axis_1": 2}, specs, out_specs=["_,_"])
    assert str(plan) == str(given)
    assert plan.bytes_sent > 0


def test_a_constraint_of_the_program_is_kept() -> None:
    text = GSPMD.replace("sharding={devices=[1,4]<=[4]}", "sharding={devices=[2,2]<=[4]}")
    stated = stated_shardings(hlo.parse(text))
    assert stated is not None
    assert {k: str(s) for k, s in stated.inner.items()} == {"d": "[axis_0, axis_1]"}
    assert str(indexing.shard(hlo.parse(text)).specs["d"]) == "[axis_0, axis_1]"


# As JAX lowers a function that calls another one, such as jax.nn.relu.
CALLED = """HloModule m, num_partitions=4
relu { q = f32[8,12] parameter(0)  z = f32[] constant(0)
  r = f32[8,12] broadcast(z), dimensions={}  ROOT d = f32[8,12] maximum(q, r) }
ENTRY e {
  a.1 = f32[8,12] parameter(0), sharding={devices=[4,1]<=[4]}
  d = f32[8,12] negate(a.1)
  c = f32[8,12] call(d), to_apply=relu
  s = f32[8,12] custom-call(c), custom_call_target="Sharding", sharding={devices=[1,4]<=[4]}
  ROOT n = f32[8,12] negate(s), sharding={devices=[1,4]<=[4]}
}
"""


def test_a_constraint_on_the_value_of_a_call_is_kept() -> None:
    """The value has the name of an instruction of the body, which another one of ENTRY has."""
    plan = indexing.shard(hlo.parse(CALLED))
    (exchange,) = plan.collectives
    assert (exchange.kind, exchange.bytes_sent) == ("all-to-all", 8 * 12 * 4 // 4 * 3 // 4)
    given = indexing.shard(
        hlo.parse(CALLED), {"axis_0": 4}, {"a.1": "axis_0,_", "c": "_,axis_0"},
        out_specs=["_,axis_0"],
    )  # fmt: skip
    assert str(plan) == str(given)


def test_a_constraint_over_other_devices_is_listed() -> None:
    text = GSPMD.replace("sharding={devices=[1,4]<=[4]}", "sharding={devices=[1,4]0,2,3,1}")
    stated = stated_shardings(hlo.parse(text))
    assert stated is not None
    assert not stated.inner
    assert stated.left_out == ("the mesh of `s` is not a part of axis_0=2,axis_1=2",)


def test_parameters_over_several_factors_of_a_mesh_have_a_common_one() -> None:
    text = """HloModule m, num_partitions=8
ENTRY e {
  a = f32[8,16] parameter(0), sharding={devices=[8,1]<=[8]}
  b = f32[8,16] parameter(1), sharding={devices=[2,4]<=[8]}
  ROOT c = f32[8,16] add(a, b)
}"""
    stated = stated_shardings(hlo.parse(text))
    assert stated is not None
    assert {k: str(s) for k, s in stated.parameters.items()} == {
        "a": "[(axis_0,axis_1), _]",
        "b": "[axis_0, axis_1]",
    }
    other = text.replace("devices=[2,4]<=[8]", "devices=[2,4]0,3,1,2,4,6,5,7")
    assert stated_shardings(hlo.parse(other)) is None


SIZES = [(12,), (2, 6), (6, 2), (2, 3, 2), (3, 4), (4, 3), (3, 2, 2), (1, 12)]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("others", SIZES)
def test_a_sharding_over_another_mesh_distributes_the_same(
    sizes: tuple[int, ...], others: tuple[int, ...]
) -> None:
    mesh = Mesh.of({f"x{k}": size for k, size in enumerate(sizes)})
    other = Mesh.of({f"y{k}": size for k, size in enumerate(others)})
    for count in range(1, len(others) + 1):
        for axes in permutations([f"y{k}" for k in range(len(others))], count):
            sharding = Sharding(other, (tuple(map(Axis, axes[1:])), (Axis(axes[0]),)))
            over = _over(mesh, sharding)
            assert over is not None or {sizes, others} & {(3, 4), (3, 2, 2), (4, 3)}
            if over is not None:
                assert over.mesh == mesh
                assert over.same_distribution(sharding)


def test_a_sharding_whose_axes_cross_those_of_a_mesh_has_no_counterpart() -> None:
    sharding = Sharding(Mesh.of({"y": 4, "z": 3}), ((Axis("y"),),))
    assert _over(Mesh.of({"x": 3, "y": 4}), sharding) is None
    assert _over(Mesh.of({"x": 6, "y": 2}), sharding) is None
    assert str(_over(Mesh.of({"x": 2, "y": 6}), sharding)) == "[(x,y:(1)2)]"
    assert str(_over(Mesh.of({"x": 2, "y": 2, "z": 3}), sharding)) == "[(x,y)]"
    assert str(_over(Mesh.of({"x": 12}), sharding)) == "[x:(1)4]"


def test_given_specs_replace_those_of_the_module() -> None:
    plan = indexing.shard(hlo.parse(SHARDY), specs={"p0": "x,_", "b.1": "_,y"})
    assert plan.bytes_sent == 0
    text = SHARDY.replace("parameter(0), ", "parameter(0), metadata={op_name=\"w['a']\"}, ")
    assert str(indexing.shard(hlo.parse(text), specs={"w['a']": "x,_", "b.1": "_,y"})) == str(plan)


def test_a_module_without_shardings_needs_a_mesh(capsys: pytest.CaptureFixture[str]) -> None:
    text = "ENTRY e { p = f32[8] parameter(0)  ROOT n = f32[8] negate(p) }"
    assert stated_shardings(hlo.parse(text)) is None
    with pytest.raises(ValueError, match="pass `mesh`: the module states no shardings"):
        indexing.shard(hlo.parse(text))


def test_the_command_names_a_better_choice(
    tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    file = f"{tmp_path}/m.hlo"
    with open(file, "w") as stream:
        stream.write(SHARDY)
    assert cli.run(["shard", file]) == 0
    out = capsys.readouterr().out
    assert "all-gather" in out
    given = {"a.1": "y,x", "b.1": "x,y"}
    other = indexing.shard(hlo.parse(SHARDY), "x=2,y=2", given, out_specs=["x,y"])
    assert indexing.shard(hlo.parse(SHARDY)).bytes_sent == 320
    assert (other.bytes_sent, other.peak_bytes) == (224, 736)
    better = (
        "  224 bytes sent, 736 held, with other shardings of parameters: a.1 [y, x], b.1 [x, y]"
    )
    assert better in out
