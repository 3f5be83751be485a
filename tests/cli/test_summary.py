"""`hlo-indexing summary` and `indexing.summary`: counts, rankings, text and JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import hlo
import indexing
from hlo.html import preformatted_html
from indexing import cli
from indexing.views.access_kinds import ACCESS_KINDS
from indexing.views.records import SCHEMAS

EXAMPLES = sorted(map(str, (Path(__file__).parents[2] / "examples").glob("*.hlo")))

# A loop, a fusion whose body is no program of its own, `may` maps of two ops, unknown accesses,
# a tuple parameter, an unbounded size.
ODD = """\
HloModule odd, is_scheduled=true, input_output_alias={ {0}: (1, {}, may-alias) }, \
entry_computation_layout={((f32[7,5]{0,1}, s32[]), f32[7,5]{1,0}, f32[?,3]{1,0})->(f32[7,5]{1,0}, \
f32[?,3]{1,0})}, replica_count=2

padded { a = f32[5,3] parameter(0)  z = f32[] parameter(1)
  ROOT q = f32[5,7] pad(a, z), padding=0_0x1_3 }
body { s = (s32[], f32[7,5], f32[5,3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[7,5] get-tuple-element(s), index=1
  w = f32[5,3] get-tuple-element(s), index=2
  one = s32[] constant(1)  j = s32[] add(i, one)
  xw = f32[7,3] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  wt = f32[3,5] transpose(w), dimensions={1,0}
  y = f32[7,5] dot(xw, wt), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT next = (s32[], f32[7,5], f32[5,3]) tuple(j, y, w) }
running { s = (s32[], f32[7,5], f32[5,3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(9)
  ROOT less = pred[] compare(i, n), direction=LT }
ENTRY main {
  pair = (f32[7,5], s32[]) parameter(0), metadata={op_name="pair"}
  x = f32[7,5] parameter(1), metadata={op_name="params['x']"}
  big = f32[?,3] parameter(2)
  p = f32[7,5] get-tuple-element(pair), index=0
  start = s32[] get-tuple-element(pair), index=1
  strange = f32[5,3] no-such-opcode(p, x)
  init = (s32[], f32[7,5], f32[5,3]) tuple(start, p, strange)
  loop = (s32[], f32[7,5], f32[5,3]) while(init), condition=running, body=body
  last = f32[7,5] get-tuple-element(loop), index=1
  zero = f32[] constant(0)
  wide = f32[5,7] fusion(strange, zero), kind=kLoop, calls=padded
  part = f32[2,5] dynamic-slice(x, start, start), dynamic_slice_sizes={2,5}
  update = f32[7,5] dynamic-update-slice(last, part, start, start)
  ROOT out = (f32[7,5], f32[?,3]) tuple(update, big)
}
"""

PADDING = "elements of operand 0 are included; `exact` leaves them out"
Records = Callable[..., list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("odd.hlo").write_text(ODD)


@pytest.fixture
def records(capsys: pytest.CaptureFixture[str]) -> Records:
    def run(*arguments: str, status: int = 0) -> list[dict[str, Any]]:
        assert cli.run([*arguments, "--format", "json"]) == status
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def test_every_summary_fits_the_schema(records: Records) -> None:
    schema = json.loads(SCHEMAS["summary"].read_text())
    valid = jsonschema.Draft202012Validator(schema)
    valid.check_schema(schema)
    rows = records("summary", *EXAMPLES, "odd.hlo")
    assert [row["file"] for row in rows] == [*EXAMPLES, "odd.hlo"]
    for row in rows:
        valid.validate(row)
    for table in ("parameters", "results", "opcodes", "unknown", "may", "reread", "uncounted"):
        assert any(row[table] for row in rows), table
    assert not valid.is_valid(rows[0] | {"kinds": {}})


@pytest.mark.parametrize("file", [*EXAMPLES[-3:], "odd.hlo"], ids=lambda file: Path(file).name)
def test_counts_are_those_of_all_maps(file: str, records: Records) -> None:
    (row,) = records("summary", file)
    maps = records("maps", file, "--all")
    assert sum(each["count"] for each in row["may"]) == sum(m["grade"] == "may" for m in maps)
    assert sum(each["count"] for each in row["unknown"]) == sum(bool(m["unknown"]) for m in maps)
    for kind in ACCESS_KINDS:
        status = 0 if row["kinds"][kind] else 1  # no match
        selected = records("maps", file, "--all", "--kind", kind, status=status)
        opcodes = {(m["computation"], m["instruction"]): m["opcode"] for m in selected}
        assert row["kinds"][kind] == len(opcodes)
        counts = {o["opcode"]: o["kinds"][kind] for o in row["opcodes"] if o["kinds"][kind]}
        assert counts == Counter(opcodes.values())
    assert sum(o["count"] for o in row["opcodes"]) == row["instructions"]
    assert row["instructions"] == len(list(hlo.load(file).instructions))


def test_the_interface_has_the_layouts_and_attributes_of_the_header() -> None:
    summary = indexing.summary(hlo.load("odd.hlo"))
    assert (summary.module, summary.entry, summary.computations) == ("odd", "main", 4)
    assert (summary.partitions, summary.replicas) == (1, 2)
    assert (summary.is_scheduled, summary.aliases) == (True, 1)
    assert [(p.argument, p.path, str(p.shape), p.bytes) for p in summary.parameters] == [
        ("pair", (0,), "f32[7,5]{0,1}", 140),
        ("pair", (1,), "s32[]", 4),
        ("params['x']", (), "f32[7,5]{1,0}", 140),
        ("", (), "f32[?,3]{1,0}", None),
    ]
    assert [(r.instruction, r.bytes) for r in summary.results] == [("update", 140), ("big", None)]


def test_reasons_name_the_ops_inside_of_a_fusion() -> None:
    summary = indexing.summary(hlo.load("odd.hlo"))
    assert {(r.opcode, r.reason, r.count) for r in summary.may} >= {
        ("pad", PADDING, 1),
        ("fusion", f"`pad`: {PADDING}", 1),
    }
    assert {(r.opcode, r.first) for r in summary.unknown} == {
        ("no-such-opcode", "main/strange"),
        ("tuple", "main/out"),  # an unbounded size
    }


def test_reasons_for_may_that_differ_only_in_a_name_are_one() -> None:
    branches = "branch_computations={same, same}"
    summary = indexing.summary(
        hlo.parse(f"""
        same {{ x = f32[3] parameter(0)  ROOT y = f32[3] negate(x) }}
        ENTRY e {{ p = f32[3] parameter(0)  n = s32[] parameter(1)  two = s32[] constant(2)
          i = s32[] and(n, two)  j = s32[] or(n, two)
          a = f32[3] conditional(i, p, p), {branches}
          ROOT b = f32[3] conditional(j, a, a), {branches} }}""")
    )
    (record,) = summary.may
    assert record.to_json() == {
        "opcode": "conditional",
        "reason": "the executed branch depends on data",
        "count": 6,  # an index that no branch has executes the last one
        "first": "e/a",
    }


def test_equal_reasons_of_several_instructions_are_one() -> None:
    text = "ENTRY e { p = f32[3] parameter(0)  a = f32[3] odd(p)  ROOT b = f32[3] odd(a) }"
    (reason,) = indexing.summary(hlo.parse(text)).unknown
    assert (reason.opcode, reason.count, reason.first) == ("odd", 2, "e/a")
    assert reason.reason == "no maps are defined for this opcode"


def test_a_module_without_arrays_has_empty_tables() -> None:
    summary = indexing.summary(hlo.parse("ENTRY e { ROOT t = token[] after-all() }"))
    assert (summary.largest, summary.reread) == ((), ())
    assert str(summary).splitlines()[-2:] == [
        "largest arrays, in bytes: none",
        "most re-read operands, in bytes read again: none",
    ]


def test_reads_are_counted_where_they_are_executed() -> None:
    """The dots of the loop: 7·5·3 products, each of a read of either operand."""
    summary = indexing.summary(hlo.load("odd.hlo"))
    dots = {(r.instruction, r.operand): r for r in summary.reread if r.opcode == "dot"}
    products = 7 * 5 * 3
    sizes = {("xw", 0): 7 * 5, ("xw", 1): 5 * 3, ("y", 0): 7 * 3, ("y", 1): 3 * 5}
    assert {key: (r.reads, r.distinct, r.bytes_again) for key, r in dots.items()} == {
        key: (products, size, 4 * (products - size)) for key, size in sizes.items()
    }
    again = [r.all_bytes_again for r in summary.reread]
    assert again == sorted(again, reverse=True)
    assert {str(r.executions) for r in dots.values()} == {"0 to 2,147,483,657"}  # 9 - start
    assert "padded" not in {r.computation for r in (*summary.reread, *summary.largest)}
    assert not {"loop", "init", "last"} & {a.instruction for a in summary.largest}  # are no copies


def test_reads_in_a_loop_count_in_each_iteration() -> None:
    start = "two = s32[] constant(2)\n  init"
    text = ODD.replace("init", start, 1).replace("tuple(start, p", "tuple(two, p")
    summary = indexing.summary(hlo.parse(text))
    dots = [r for r in summary.reread if r.opcode == "dot"]
    assert {(r.executions.number, r.to_json()["executions"][1]) for r in dots} == {(7, 7)}
    assert {r.all_bytes_again for r in dots} == {7 * r.bytes_again for r in dots}
    lines = [line for line in str(summary).splitlines() if " of dot " in line]
    assert len(lines) == len(dots)
    assert all(line.endswith(", in 7 executions") for line in lines)
    before = lines[0].split()[0]
    assert before == f"{max(r.all_bytes_again for r in dots):,}"


def test_reads_at_runtime_values_are_reported_as_not_counted() -> None:
    summary = indexing.summary(hlo.load("odd.hlo"))
    assert {(r.opcode, r.reason) for r in summary.uncounted} >= {
        ("dynamic-update-slice", "the read count of an element depends on runtime values")
    }
    assert summary.uncounted[0].count == max(r.count for r in summary.uncounted)


def test_the_largest_arrays_come_first_and_unbounded_arrays_before_them() -> None:
    summary = indexing.summary(hlo.load("odd.hlo"), limit=3)
    assert [a.bytes for a in summary.largest] == [None, 140, 140]
    assert len(summary.reread) == 3


def test_the_text_is_that_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["summary", "odd.hlo"]) == 0
    summary = indexing.summary(hlo.load("odd.hlo"))
    assert capsys.readouterr().out == f"{summary}\n"
    assert summary._repr_html_() == preformatted_html(str(summary))


def test_long_tables_are_elided(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["summary", "odd.hlo", "--limit", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    position = lines.index("parameters: 4 arrays, 284 bytes, and unbounded arrays")
    assert lines[position + 1].split() == ["140", "0", "pair", "{0}", "pair", "f32[7,5]{0,1}"]
    assert lines[position + 2] == "  … 3 more"
    assert any(line.startswith("  … 13 more: ") for line in lines)


def test_an_invalid_module_has_errors_and_no_summary(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.hlo").write_text("ENTRY e { p = f32[2,3] parameter(0)  ROOT r = f32[5] reshape(p) }")
    assert cli.run(["summary", "bad.hlo", "odd.hlo"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("odd.hlo: HloModule odd\n")
    assert "bad.hlo:1:" in err
    assert err.count("error[") == 1


def test_progress_covers_every_instruction() -> None:
    module = hlo.load("odd.hlo")
    steps: list[tuple[int, int]] = []
    indexing.summary(module, progress=lambda done, total: steps.append((done, total)))
    total = len(list(module.instructions)) + sum(len(c) for c in module.computations.values())
    total -= len(module.computations["padded"])
    assert steps == [(done, total) for done in range(total)]
