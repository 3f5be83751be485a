"""The coverage table of ops is derived from samples and complete."""

# ruff: noqa: E501 - a row of a table is one line
from __future__ import annotations

import json

import pytest

import indexing.ops  # noqa: F401 - registers the ops
from hlo.ops.op import OPS
from hlo.ops.opcodes import OPCODES
from indexing import cli, parse_map
from indexing.maps.answers import Direction
from indexing.views.map_kinds import MAP_KINDS, kind_of, map_kinds
from indexing.views.op_table import DIRECTIONS, op_lines


def test_every_opcode_but_shuffle_has_maps_in_both_directions() -> None:
    assert set(OPS) >= OPCODES
    without_maps = {
        name
        for name in OPCODES
        if any("unknown" in map_kinds(OPS[name], direction).kinds for direction in DIRECTIONS)
    }
    assert without_maps == {"shuffle"}
    assert "no published semantics" in map_kinds(OPS["shuffle"], "output-to-input").reasons[0]


# fmt: off
ROWS: list[tuple[str, Direction, set[str], set[str]]] = [
    # opcode                direction          grades            some kinds
    ("negate",              "output-to-input", {"exact"},        {"identity"}),
    ("transpose",           "input-to-output", {"exact"},        {"permutation"}),
    ("reverse",             "output-to-input", {"exact"},        {"affine"}),
    ("reshape",             "output-to-input", {"exact"},        {"quasi-affine"}),
    ("slice",               "input-to-output", {"exact"},        {"quasi-affine"}),
    ("reduce-window",       "output-to-input", {"exact"},        {"window"}),
    ("gather",              "output-to-input", {"exact"},        {"runtime"}),
    ("dynamic-update-slice", "output-to-input", {"exact", "may"}, {"pieces", "runtime"}),
    ("sort",                "output-to-input", {"exact"},        {"affine"}),
    ("iota",                "output-to-input", {"exact"},        {"nothing"}),
    ("broadcast",           "input-to-output", {"exact"},        {"everything"}),
    ("fusion",              "input-to-output", {"exact"},        {"identity"}),
]
# fmt: on


@pytest.mark.parametrize("opcode, direction, grades, kinds", ROWS)
def test_a_row_has_the_grades_and_kinds_of_its_maps(
    opcode: str, direction: Direction, grades: set[str], kinds: set[str]
) -> None:
    row = map_kinds(OPS[opcode], direction)
    assert set(row.grades) == grades
    assert kinds <= set(row.kinds) <= set(MAP_KINDS)


# fmt: off
MAPS = [
    ("(d0, d1) -> (d0, d1), domain: d0 in [0, 3], d1 in [0, 4]",                     "identity"),
    ("(d0, d1) -> (d0), domain: d0 in [0, 3], d1 in [0, 4]",                         "affine"),
    ("(d0, d1) -> (d1, d0), domain: d0 in [0, 3], d1 in [0, 4]",                     "permutation"),
    ("(d0) -> (d0), domain: d0 in [0, 3], d0 * 2 + 1 in [0, 5]",                     "affine"),
    ("(d0) -> (d0 * 2 + 1), domain: d0 in [0, 3]",                                   "affine"),
    ("(d0)[s0] -> (d0, s0), domain: d0 in [0, 3], s0 in [0, 4]",                     "affine"),
    ("(d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 4]",                         "everything"),
    ("(d0)[s0] -> (d0 * 2 + s0), domain: d0 in [0, 3], s0 in [0, 4]",                "window"),
    ("(d0) -> (d0 floordiv 2), domain: d0 in [0, 3]",                                "quasi-affine"),
    ("(d0) -> (d0), domain: d0 in [0, 3], d0 mod 2 in [0, 0]",                       "quasi-affine"),
    ("(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 3], rt0 in [0, 4]",                 "runtime"),
]
# fmt: on


@pytest.mark.parametrize("text, kind", MAPS)
def test_a_map_has_the_kind_of_its_formula(text: str, kind: str) -> None:
    assert kind_of(parse_map(text)) == kind


def test_the_json_table_has_both_directions() -> None:
    rows = {row["opcode"]: row for row in map(json.loads, op_lines("json"))}
    assert set(rows) >= OPCODES
    assert rows["pad"]["output-to-input"]["grades"] == ["exact", "may"]
    assert rows["shuffle"]["input-to-output"]["kinds"] == ["unknown"]


def test_the_command_describes_a_named_opcode(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["ops", "transpose"]) == 0
    out = capsys.readouterr().out
    assert "dimensions: a list of integers" in out
    assert "C2: dimensions must be a permutation" in out
    assert cli.run(["ops", "transpos"]) == 1
    assert "did you mean `transpose`?" in capsys.readouterr().err
