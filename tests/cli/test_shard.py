"""``hlo-indexing shard``: its tables, its records and its errors."""
# ruff: noqa: E501 - a row of a table is a line

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hlo
import indexing
from tests.cli.running import Run, runner, valid_records

MODULE = """\
ENTRY e {
  x = f32[8,16] parameter(0)
  w = f32[16,32] parameter(1)
  i = s32[4,1] parameter(2)
  dot = f32[8,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  taken = f32[4,16] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1,16}
  ROOT both = (f32[8,32], f32[4,16]) tuple(dot, taken)
}
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``shard``; return the exit status, the output and the errors."""
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text(MODULE)
    return runner(capsys, "shard")


# ---------------------------------------------------------------- rules


def test_the_rules_of_all_instructions_that_compute(run: Run) -> None:
    status, out, err = run("m.hlo --rule")
    assert (status, err) == (0, "")
    assert out == (
        "m.hlo: e\n"
        "  dot    dot     ([i, k], [k, j])->([i, j]) {i=8, j=32, k=16} reduction={k}\n"
        "  taken  gather  ([k, j], [i, l])->([i, j]) {i=4, j=16, k=8, l=1} reduction={k}\n"
    )


def test_a_selected_rule_has_reasons(run: Run) -> None:
    out = run("m.hlo --rule -i dot")[1]
    rule = indexing.sharding.sharding_rule(hlo.parse(MODULE).entry["dot"])
    assert [line.strip() for line in out.splitlines()[2:]] == rule.explain().splitlines()


def test_the_records_have_the_rules_of_the_library(run: Run) -> None:
    entry = hlo.parse(MODULE).entry
    listed = valid_records(run, "shard", "m.hlo --rule")
    assert [record["instruction"] for record in listed] == ["dot", "taken"]
    for record in listed:
        rule = indexing.sharding.sharding_rule(entry[record["instruction"]])
        assert record["rule"] == str(rule)
        assert [each["kind"] for each in record["factors"]] == [f.kind for f in rule.factors]
        assert [each["size"] for each in record["factors"]] == [f.size for f in rule.factors]
        assert all(each["reasons"] for each in record["factors"] if each["size"] > 1)
        assert [len(dims) for dims in record["operands"]] == [len(dims) for dims in rule.operands]


def test_a_name_without_an_instruction_has_the_nearest_one(run: Run) -> None:
    status, out, err = run("m.hlo --rule -i tken")
    assert (status, out) == (1, "")
    assert "no instruction named `tken`" in err
    assert "did you mean `taken`?" in err


def test_rules_of_an_invalid_instruction_are_an_error(run: Run) -> None:
    Path("bad.hlo").write_text(MODULE.replace("start_index_map={0}", "start_index_map={7}"))
    status, out, err = run("bad.hlo --rule")
    assert status == 1
    assert "dot" in out
    assert "taken" not in out
    assert "error[op-constraint]: gather C3" in err
    assert "bad.hlo:6:94" in err


# ---------------------------------------------------------------- signatures


def test_the_signatures_of_an_instruction(run: Run) -> None:
    status, out, err = run("m.hlo --sbp -i taken")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "m.hlo: e: taken = f32[4,16] gather"
    assert "  B, S(0) -> S(0)        divisors of 4" in lines
    assert "  S(0), B -> P(sum)      divisors of 8         needs its place" in lines


def test_what_breaks_a_signature_is_an_element(run: Run) -> None:
    text = "ENTRY e { p = f32[4,6] parameter(0)  ROOT r = f32[24] reshape(p) }"
    Path("r.hlo").write_text(text)
    out = run("r.hlo --sbp --shards 2")[1]
    refused = indexing.check_signature(hlo.parse(text).entry.root, ["S(1)"], ["B"], shards=2)
    assert f"  refused: S(1) -> B: {refused}" in out.splitlines()


def test_neighbours_send_halos(run: Run) -> None:
    Path("w.hlo").write_text(
        "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
        "ENTRY e { p = f32[8] parameter(0)  zero = f32[] constant(0)\n"
        "ROOT r = f32[8] reduce-window(p, zero), window={size=3 pad=1_1}, to_apply=add }"
    )
    out = run("w.hlo --sbp")[1]
    assert "operand 0: 1 below, 1 above" in out


def test_the_records_have_the_signatures_of_the_library(run: Run) -> None:
    (record,) = valid_records(run, "shard", "m.hlo --sbp -i dot")
    signatures = indexing.sbp(hlo.parse(MODULE).entry["dot"])
    assert [each["operands"] for each in record["signatures"]] == [
        list(s.operands) for s in signatures
    ]
    assert [each["shards"] for each in record["signatures"]] == [s.shards for s in signatures]
    assert record["refused"] == []
    (record,) = valid_records(run, "shard", "m.hlo --sbp --shards 3 -i taken")
    assert record["shards"] == 3
    assert {"operands": ["B", "P(sum)"], "results": ["P(sum)"]}.items() <= record["refused"][
        0
    ].items()


def test_options_without_effect_are_usage_errors(run: Run) -> None:
    status, _, err = run("m.hlo --rule --shards 2")
    assert status == 2
    assert "--shards has no effect without --sbp" in err
    status, _, err = run("m.hlo --sbp --shards 1")
    assert status == 2
    assert "1 is not in the range" in err


# ---------------------------------------------------------------- plans

MLP = """\
ENTRY mlp {
  x = f32[8,16] parameter(0)
  a = f32[16,32] parameter(1)
  b = f32[32,16] parameter(2)
  h = f32[8,32] dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[8,32] tanh(h)
  ROOT y = f32[8,16] dot(t, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
SPECS = "--spec a=_,x --spec b=x,_"


@pytest.fixture(autouse=True)
def mlp(tmp_path: Path) -> None:
    (tmp_path / "mlp.hlo").write_text(MLP)


def test_a_plan_has_the_split_and_the_collectives_of_each_instruction(run: Run) -> None:
    status, out, err = run(f"mlp.hlo --mesh x=4 {SPECS}")
    assert (status, err) == (0, "")
    plan = indexing.shard(hlo.parse(MLP), "x=4", {"a": "_,x", "b": "x,_"})
    assert "768 bytes sent" in out.splitlines()[0]
    rows = [line.split()[0] for line in out.splitlines()[2:]]
    assert rows == list(plan.specs) == ["x", "a", "b", "h", "t", "y"]
    assert "  y            [_, _]  all-reduce  x       768" in out


def test_a_selected_instruction_has_a_row(run: Run) -> None:
    status, out, _ = run(f"mlp.hlo --mesh x=4 {SPECS} -i 't*'")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()[2:]] == ["t"]
    status, out, err = run(f"mlp.hlo --mesh x=4 {SPECS} -i none")
    assert status == 1
    assert "no instruction named `none`" in err


def test_collectives_in_loops_have_rows(run: Run) -> None:
    Path("loop.hlo").write_text("""
body { s = (s32[], f32[4,8], f32[8,8]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)  j = s32[] add(i, one)  x = f32[4,8] get-tuple-element(s), index=1
  w = f32[8,8] get-tuple-element(s), index=2
  y = f32[4,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[4,8], f32[8,8]) tuple(j, y, w) }
condition { s = (s32[], f32[4,8], f32[8,8]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)  ROOT less = pred[] compare(i, n), direction=LT }
ENTRY e { x = f32[4,8] parameter(0)  w = f32[8,8] parameter(1)  zero = s32[] constant(0)
  s = (s32[], f32[4,8], f32[8,8]) tuple(zero, x, w)
  l = (s32[], f32[4,8], f32[8,8]) while(s), condition=condition, body=body
  ROOT r = f32[4,8] get-tuple-element(l), index=1 }""")
    (record,) = valid_records(run, "shard", "loop.hlo --mesh x=2 --spec w=x,_")
    assert record["collectives"]
    out = run("loop.hlo --mesh x=2 --spec w=x,_")[1]
    for each in record["collectives"]:
        assert each["reason"] in out
        assert f"{each['bytes']:,}" in out
    in_loop = [each for each in record["collectives"] if each["loop"]]
    assert all(each["total_bytes"] == 5 * each["bytes"] for each in in_loop)


def test_the_program_of_a_device_is_hlo(run: Run) -> None:
    status, out, _ = run(f"mlp.hlo --mesh x=4 {SPECS} --format hlo")
    assert status == 0
    local = hlo.parse(out)
    assert [str(each.shape) for each in local.entry.parameters][1:] == ["f32[16,8]", "f32[8,16]"]
    assert "all-reduce" in [each.opcode for each in local.instructions]
    assert hlo.verify(local) == []


def test_the_record_of_a_plan_has_its_numbers(run: Run) -> None:
    (record,) = valid_records(run, "shard", f"mlp.hlo --mesh x=2,y=2 {SPECS} --spec x=y,_")
    plan = indexing.shard(hlo.parse(MLP), "x=2,y=2", {"a": "_,x", "b": "x,_", "x": "y,_"})
    assert (record["bytes_sent"], record["peak_bytes"]) == (plan.bytes_sent, plan.peak_bytes)
    assert record["mesh"] == {"x": 2, "y": 2}
    assert {each["instruction"]: each["specs"][0] for each in record["instructions"]} == {
        name: str(spec) for name, spec in plan.specs.items()
    }
    assert [each["total_bytes"] for each in record["collectives"]] == [
        c.total_bytes for c in plan.collectives
    ]
    assert record["instructions"][-1]["local_dims"] == [[4, 16]]


def test_sizes_that_the_shards_do_not_divide_are_padded(run: Run) -> None:
    status, out, _ = run("mlp.hlo --mesh x=3 --spec x=x,_")
    assert status == 0
    (note,) = [line for line in out.splitlines() if "padding" in line]
    assert note.startswith("  8 elements in 3 shards of 3, 1 of padding: `x` dimension 0, ")


def test_the_split_of_the_result_can_be_given(run: Run) -> None:
    _, free, _ = run("mlp.hlo --mesh x=4 --spec a=_,x --spec b=x,_ --out-spec any --format json")
    _, split, _ = run("mlp.hlo --mesh x=4 --spec a=_,x --spec b=x,_ --out-spec x,_ --format json")
    kinds = [[c["kind"] for c in json.loads(out)["collectives"]] for out in (free, split)]
    assert kinds == [["all-reduce"], ["reduce-scatter"]]


# ---------------------------------------------------------------- search


def test_the_search_ranks_choices_by_bytes(run: Run) -> None:
    best = indexing.best_shardings(hlo.parse(MLP), "x=4", memory_limit=3000)
    status, out, err = run("mlp.hlo --mesh x=4 --search --memory-limit 3000 --limit 2")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "mlp.hlo: shardings on x=4, at most 3,000 bytes held"
    assert len(lines) == 5
    assert lines[2].split()[:2] == [
        f"{best.ranked[0].plan.bytes_sent:,}",
        f"{best.ranked[0].plan.peak_bytes:,}",
    ]
    (record,) = valid_records(run, "shard", "mlp.hlo --mesh x=4 --search --memory-limit 3000")
    assert record["is_optimal"] is best.is_optimal
    assert [each["bytes_sent"] for each in record["ranked"]] == [
        r.plan.bytes_sent for r in best.ranked
    ]
    assert all(each["peak_bytes"] <= 3000 for each in record["ranked"])


def test_given_splits_are_not_searched(run: Run) -> None:
    (record,) = valid_records(
        run, "shard", "mlp.hlo --mesh x=4 --search --spec a=_,x --max-plans 5"
    )
    assert record["planned"] <= 5
    assert {frozenset(each["specs"]) for each in record["ranked"]} == {frozenset({"x", "b"})}


@pytest.mark.parametrize("limit", [100, 3000])
def test_the_text_of_a_search_is_that_of_python(limit: int, run: Run) -> None:
    status, out, _ = run(f"mlp.hlo --mesh x=4 --search --memory-limit {limit}")
    head, *lines = str(indexing.best_shardings(hlo.parse(MLP), "x=4", memory_limit=limit)).split(
        "\n"
    )
    assert (status, out.splitlines()) == (0, [f"mlp.hlo: {head}", *[f"  {each}" for each in lines]])
    assert ("no choice holds so few bytes" in out) == (limit == 100)


# fmt: off
WRONG = [
    # arguments                             status  error
    ("--mesh x=4 --spec wx=x,_",            1,      "no parameter named `wx`"),
    ("--mesh x=4 --spec wx=x,_",            1,      "the parameters are x, a, b"),
    ("--mesh batch=4 --spec a=bath,_",      2,      "the mesh has no axis `bath`: its axes are batch=4 (column 1 of `bath,_`); did you mean `batch`?"),
    ("--mesh x=4 --spec a=x,x",             2,      "axis x is used twice (column 3 of `x,x`)"),
    ("--mesh x=4 --spec a=x:(3)2,_",        2,      "the sub-axis x:(3)2 does not divide x=4"),
    ("--mesh x=4 --spec a=x,_,_",           1,      "mlp.hlo:3:"),
    ("--mesh x=4 --spec a",                 2,      "expected NAME=SPEC such as p0=x,_ got 'a'"),
    ("--mesh x:4",                          2,      "expected `=` (column 2 of `x:4`)"),
    ("--mesh x=4,x=2",                      2,      "axis `x` is named twice (column 5 of `x=4,x=2`)"),
    ("--mesh x=0",                          2,      "the size of an axis must be positive, not 0"),
    ("",                                    2,      "states no shardings over one mesh: pass --mesh"),
    ("--mesh x=2 --memory-limit 1KiB",      2,      "--memory-limit has no effect without --search"),
    ("--mesh x=2 --search --format hlo",    2,      "--format hlo has no effect with --search"),
    ("--search",                            2,      "pass --mesh"),
    ("--rule --mesh x=2",                   2,      "--mesh, --spec and --out-spec have no effect with --rule"),
    ("--rule --sbp",                        2,      "--rule and --sbp exclude each other"),
    ("--mesh x=4 --spec a=x --spec a=_,x",  2,      "--spec a=... is given twice"),
    ("--mesh x=4 --spec a=x --spec p1=_,x", 1,      "`p1` names `a`, which has a spec already"),
    ("--mesh x=4 --spec a=y",               2,      "invalid value for --spec a=y: the mesh has no axis `y`"),
    ("--mesh x=4 --out-spec x --out-spec x", 1,     "out_specs has 2 entries, `y` has arrays: 1"),
    ("--mesh x=4 -i nothing",               1,      "no instruction named `nothing`"),
    ("--sbp --format hlo",                  2,      "--format hlo has no effect with --sbp"),
]
# fmt: on


@pytest.mark.parametrize(("arguments", "status", "message"), WRONG)
def test_wrong_arguments_are_refused(run: Run, arguments: str, status: int, message: str) -> None:
    actual, out, err = run(f"mlp.hlo {arguments}")
    assert (actual, out) == (status, "")
    assert message in err


def test_a_program_that_is_already_divided_is_refused(run: Run) -> None:
    Path("divided.hlo").write_text(
        "ENTRY e { p = f32[4] parameter(0)  ROOT g = f32[8] all-gather(p), dimensions={0} }"
    )
    status, out, err = run("divided.hlo --mesh x=2")
    assert (status, out) == (1, "")
    assert "divided.hlo:1:" in err
    assert "already divided over devices" in err
