"""The JSON of the command is described by the packaged schemas."""

import json
from pathlib import Path
from typing import Any

import pytest

import hlo
import indexing
from indexing import cli
from indexing.views.records import SCHEMA_VERSION
from simplifier.constraints import Constraint
from simplifier.reading import parse_expr
from tests.cli.running import validator

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(map(str, (ROOT / "examples").glob("*.hlo")))
SHORT_EXAMPLES = [path for path in EXAMPLES if "gpt2" not in path]
# Runtime variables, a tuple operand, an unknown, operands that are not read, an unbounded size.
ODD = """\
same { x = f32[2,5] parameter(0)  ROOT y = f32[2,5] negate(x) }
ENTRY e {
  p = f32[9,5] parameter(0)
  i = s32[] parameter(1)
  d = f32[?,5] parameter(2)
  s = f32[2,4] dynamic-slice(p, i, i), dynamic_slice_sizes={2,4}
  u = f32[9,5] dynamic-update-slice(p, s, i, i)
  t = (f32[9,5], f32[2,5], token[]) custom-call(u, d), custom_call_target="odd"
  g = f32[2,5] get-tuple-element(t), index=1
  k = pred[] parameter(3)
  c = f32[2,5] conditional(k, g, g), true_computation=same, false_computation=same
  ROOT r = (f32[2,5], f32[9,5]) tuple(c, p)
}
"""


@pytest.fixture
def odd(tmp_path: Path) -> str:
    file = tmp_path / "odd.hlo"
    file.write_text(ODD)
    return str(file)


def records(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert cli.run([*arguments, "--format", "json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    "flags",
    [["--direction", "both"], ["--to", "parameters"], ["--exact"], ["--explain"], ["--source"]],
    ids=lambda flags: flags[0],
)
def test_every_record_of_maps_fits_the_schema(
    flags: list[str], odd: str, capsys: pytest.CaptureFixture[str]
) -> None:
    valid = validator("maps")
    rows = records(capsys, "maps", odd, *SHORT_EXAMPLES, "--all", *flags)
    for row in rows:
        valid.validate(row)
    keys = {key for row in rows for key in row}
    optional = {
        *("at", "region", "box", "boxes"),  # with --at
        "assumptions",  # with --assume
        "lines_before",  # with --before
        *(["source", "lines"] if "--source" not in flags else []),
        *(["steps"] if "--explain" not in flags else []),
    }
    assert keys == set(valid.schema["properties"]) - optional
    assert {"exact", "may", None} == {row["grade"] for row in rows}


def test_every_record_of_a_point_fits_the_schema(
    odd: str, capsys: pytest.CaptureFixture[str]
) -> None:
    valid = validator("maps")
    rows = records(capsys, "maps", odd, *SHORT_EXAMPLES, "--all", "--at", "...")
    for row in rows:
        valid.validate(row)
    assert {"exact", "may", None} == {row["grade"] for row in rows}
    assert any(row["box"] is None and row["region"] for row in rows)
    assert {"offsets", "sizes", "strides"} in [set(row["box"] or ()) for row in rows]
    assert any(row["runtime"] for row in rows)


def test_boxes_of_a_point_are_all_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.hlo"
    path.write_text("ENTRY e { p = f32[30,30] parameter(0)  ROOT r = f32[900] reshape(p) }")
    (row,) = records(capsys, "maps", str(path), "--at", "0:900:31")
    assert [box["offsets"] for box in row["boxes"]] == [[k, k] for k in range(30)]


# fmt: off
WRONG = [
    # key             value of a record with a map
    ("map",            None),
    ("unknown",        "no reason"),
    ("grade",          "perhaps"),
    ("operand",        None),
    ("bounds",         None),
    ("bounds",         {"d0": [0]}),
    ("results",        [0]),
    ("constraints",    [["d0", 0]]),
    ("runtime",        [{"name": "rt0"}]),
    ("output_shape",   "f32[3]"),
    ("schema_version", SCHEMA_VERSION + 1),
]
# fmt: on


@pytest.mark.parametrize(("key", "value"), WRONG)
def test_the_schema_of_maps_rejects_other_records(
    key: str, value: object, odd: str, capsys: pytest.CaptureFixture[str]
) -> None:
    valid, (row, *_) = validator("maps"), records(capsys, "maps", odd, "-i", "s")
    assert valid.is_valid(row)
    assert not valid.is_valid(row | {key: value})
    assert not valid.is_valid({name: row[name] for name in row if name != key})
    assert valid.is_valid(row | {"new": 0})


def test_the_schema_of_maps_requires_reasons_of_may_maps_only(
    odd: str, capsys: pytest.CaptureFixture[str]
) -> None:
    valid, (may, exact, *_) = validator("maps"), records(capsys, "maps", odd, "-i", "u")
    assert (may["grade"], exact["grade"]) == ("may", "exact")
    assert valid.is_valid(may)
    assert not valid.is_valid({key: may[key] for key in may if key != "reasons"})
    assert not valid.is_valid(may | {"reasons": []})
    assert not valid.is_valid(may | {"reasons": ["a text"]})
    assert not valid.is_valid(exact | {"reasons": may["reasons"]})


def test_the_parts_in_a_record_are_those_of_the_map(
    odd: str, capsys: pytest.CaptureFixture[str]
) -> None:
    instruction = hlo.load(odd).entry["u"]
    answer = indexing.output_to_input(instruction, exact=True)
    rows = records(capsys, "maps", odd, "-i", "u", "--exact")
    maps = [(k, m) for k, maps in enumerate(answer.maps) for m in maps]
    assert len(rows) == len(maps)
    assert any(m.constraints for _, m in maps)
    for row, (operand, m) in zip(rows, maps, strict=True):
        names = {v.name: v for v in m.variables}
        assert row["operand_name"] == instruction.operands[operand].name
        assert row["dims"] + row["ranges"] + [r["name"] for r in row["runtime"]] == list(names)
        assert {n: tuple(b) for n, b in row["bounds"].items()} == {
            n: v.bounds for n, v in names.items()
        }
        assert tuple(parse_expr(text, names) for text in row["results"]) == m.results
        stated = [Constraint(parse_expr(text, names), *ends) for text, *ends in row["constraints"]]
        assert tuple(stated) == m.constraints


def test_an_unbounded_size_is_null(odd: str, capsys: pytest.CaptureFixture[str]) -> None:
    row = records(capsys, "maps", odd, "-i", "t", "--operand", "1", "--output", "0")[0]
    shape = {"text": "f32[?,5]", "element_type": "f32", "dims": [None, 5]}
    assert row["operand_shape"] == shape
