"""Plans with the mesh and the shardings that a module states, against plans with given ones."""

from __future__ import annotations

import pytest

import hlo
import indexing
from indexing import cli
from indexing.sharding.planning.stated_shardings import stated_shardings

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
    assert not stated.inner  # the call splits along a mesh of one axis of 4
    plan = indexing.shard(module)
    given = indexing.shard(
        module, {"axis_0": 2, "axis_1": 2}, {"a.1": "axis_0,axis_1", "b.1": "_,axis_1"},
        out_specs=["_,_"],
    )  # fmt: skip
    assert str(plan) == str(given)


def test_a_constraint_of_the_program_is_kept() -> None:
    text = GSPMD.replace("sharding={devices=[1,4]<=[4]}", "sharding={devices=[2,2]<=[4]}")
    stated = stated_shardings(hlo.parse(text))
    assert stated is not None
    assert {k: str(s) for k, s in stated.inner.items()} == {"d": "[axis_0, axis_1]"}
    assert str(indexing.shard(hlo.parse(text)).specs["d"]) == "[axis_0, axis_1]"


def test_given_specs_replace_those_of_the_module() -> None:
    plan = indexing.shard(hlo.parse(SHARDY), specs={"p0": "x,_", "b.1": "_,y"})
    assert plan.bytes_sent == 0


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
