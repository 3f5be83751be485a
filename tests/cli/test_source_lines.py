"""`maps --source` lists all lines behind an instruction; the oracle is the text itself."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import hlo
from indexing import cli
from indexing.views.records import SCHEMAS
from indexing.views.source_lines import lines_behind

EXAMPLE = Path(__file__).parents[2] / "examples" / "attention.opt.hlo"


def read_lines(text: str, computation: str) -> dict[str, set[int]]:
    """Return the lines in the metadata of a computation, by a scan of its text."""
    body = text[text.index(f"%{computation} ") :]
    body = body[: body.index("\n}")]
    frames = dict(re.findall(r"^(\d+) \{file_location_id=(\d+)", text, re.MULTILINE))
    places = {
        n: (f, int(line))
        for n, f, line in re.findall(
            r"^(\d+) \{file_name_id=(\d+) function_name_id=\d+ line=(\d+)", text, re.MULTILINE
        )
    }
    section = text[text.index("FileNames") : text.index("FunctionNames")]
    names = dict(re.findall(r'^(\d+) "(.*)"', section, re.MULTILINE))
    numbers: dict[str, set[int]] = defaultdict(set)
    for line in body.splitlines():
        frame = re.search(r"stack_frame_id=(\d+)", line)
        if frame and " parameter(" not in line:
            file, number = places[frames[frame[1]]]
            numbers[names[file]].add(number)
    return numbers


def test_a_fusion_has_the_lines_of_all_instructions_inside_of_it() -> None:
    text = EXAMPLE.read_text()
    module = hlo.parse(text)
    count = 0
    for each in module.entry:
        if each.opcode == "fusion" and not any(
            inner.called_computations and inner.opcode == "fusion"
            for inner in each.called_computations[0]
        ):
            count += 1
            lines = {file: set(numbers) for file, numbers in lines_behind(each).items()}
            assert lines == read_lines(text, each.called_computations[0].name)
    assert count > 5


def test_a_result_depends_on_the_lines_of_its_operands() -> None:
    module = hlo.parse(EXAMPLE.read_text())
    root = module.entry.root
    behind = lines_behind(root, to_parameters=True)
    every: dict[str, set[int]] = {}
    for each in module.instructions:  # the module has no dead code
        frame = each.source.frame
        if frame is not None and frame.line is not None:
            every.setdefault(frame.file, set()).add(frame.line)
    assert {file: set(numbers) for file, numbers in behind.items()} == every
    first = module.entry.instructions[len(module.entry.parameters)]
    assert lines_behind(first, to_parameters=True) != behind


def test_of_a_tuple_only_the_output_counts() -> None:
    root = hlo.parse("""ENTRY e {
      p = f32[2] parameter(0)
      a = f32[2] negate(p), metadata={source_file="m.py" source_line=3}
      b = f32[2] abs(p), metadata={source_file="m.py" source_line=5}
      ROOT t = (f32[2], f32[2]) tuple(a, b) }""").entry.root
    assert lines_behind(root, 0, to_parameters=True) == {"m.py": (3,)}
    assert lines_behind(root, 1, to_parameters=True) == {"m.py": (5,)}


BEFORE = """ENTRY e {
  p = f32[2,3] parameter(0)
  a = f32[2,3] negate(p), metadata={op_name="f/neg" source_file="m.py" source_line=3}
  b = f32[2,3] negate(p), metadata={op_name="f/neg" source_file="m.py" source_line=4}
  c = f32[2,3] abs(p), metadata={op_name="f/abs" source_file="m.py" source_line=5}
  t = f32[3,2] transpose(b), dimensions={1,0}, metadata={op_name="f/t" source_file="m.py"
    source_line=6}
  u = f32[3,2] transpose(c), dimensions={1,0}, metadata={op_name="f/u" source_file="m.py"
    source_line=7}
  k = f32[3,2] exponential(u), metadata={op_name="f/exp" source_file="m.py" source_line=8}
  m = f32[3,2] cosine(u), metadata={op_name="f/exp" source_file="m.py" source_line=9}
  v = f32[3,2] add(k, m), metadata={op_name="f/v" source_file="m.py" source_line=10}
  ROOT r = (f32[2,3], f32[3,2], f32[3,2]) tuple(a, t, v) }"""
AFTER = """g {
  x = f32[2,3] parameter(0)
  c = f32[2,3] abs(x), metadata={op_name="f/abs" source_file="m.py" source_line=5}
  u = f32[3,2] transpose(c), dimensions={1,0}
  k = f32[3,2] sine(u), metadata={op_name="f/exp" source_file="m.py" source_line=8}
  ROOT v = f32[3,2] add(k, k) }
ENTRY e {
  p = f32[2,3] parameter(0)
  a = f32[2,3] negate(p), metadata={op_name="f/neg" source_file="m.py" source_line=3}
  t = f32[3,2] transpose(a), dimensions={1,0}, metadata={op_name="f/t" source_file="m.py"
    source_line=6}
  v = f32[3,2] fusion(p), kind=kLoop, calls=g
  ROOT r = (f32[2,3], f32[3,2], f32[3,2]) tuple(a, t, v) }"""
"""Line 4 was merged into line 3, line 7 lost its metadata, line 9 has the op_name of line 8."""


@pytest.fixture
def modules(tmp_path: Path) -> tuple[str, str]:
    for name, text in (("pre.hlo", BEFORE), ("opt.hlo", AFTER)):
        (tmp_path / name).write_text(text)
    return str(tmp_path / "pre.hlo"), str(tmp_path / "opt.hlo")


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.run(list(words)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name, expected", [
    ("a", {"value": {"m.py": [4]}}),
    ("t", {}),
    ("v", {"value": {"m.py": [7]}, "op_name": {"m.py": [9]}}),
])  # fmt: skip
def test_the_module_before_has_the_lines_of_merged_instructions(
    name: str,
    expected: dict[str, dict[str, list[int]]],
    modules: tuple[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    before, after = modules
    words = ["maps", after, "-i", f"e/{name}", "--source", "--before", before]
    record = json.loads(answer(capsys, *words, "--format", "json").splitlines()[0])
    Draft202012Validator(json.loads(SCHEMAS["maps"].read_text())).validate(record)
    assert record["lines_before"] == expected
    text = answer(capsys, *words)
    if expected:
        assert "(equal value)" in text
        assert ("m.py:9 (same op_name)" in text) is ("op_name" in expected)
    else:
        assert "lines before passes: no others" in text


def test_a_line_that_the_metadata_lost_has_its_kernels(
    modules: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = modules
    assert cli.run(["source", "m.py:4", after]) == 1
    assert "no instruction records the place `m.py:4`" in capsys.readouterr().err
    text = answer(capsys, "source", "m.py:4", after, "--before", before)
    assert re.search(r"1 of 1 +negate e/a +a from b \(equal value\)", text)
    text = answer(capsys, "source", "m.py", after, "--before", before)
    assert {int(row.rpartition(":")[2]) for row in text.splitlines()[2:]} == {3, 4, 5, 6, 7, 8, 9}
    record = json.loads(
        answer(capsys, "source", "m.py:9", after, "--before", before, "--format", "json")
    )
    Draft202012Validator(json.loads(SCHEMAS["source"].read_text())).validate(record)
    (kernel,) = record["kernels"]
    assert [each["how"] for each in kernel["linked"]] == ["op_name"]


def test_a_list_counts_the_lines_inside_of_a_fusion(
    modules: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = answer(capsys, "ls", modules[1], "--source", "--computation", "e")
    assert re.search(r"v +fusion .* 2 more lines$", text, re.MULTILINE)
    assert re.search(r"a +negate .* m.py:3: f/neg$", text, re.MULTILINE)
    lines = answer(capsys, "ls", modules[1], "--source", "-i", "v", "--format", "json")
    records = [json.loads(line) for line in lines.splitlines()]
    for record in records:
        Draft202012Validator(json.loads(SCHEMAS["ls"].read_text())).validate(record)
    assert {"m.py": [5, 8]} in [record["lines"] for record in records]


def test_the_module_before_needs_the_sources(
    modules: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = modules
    assert cli.run(["maps", after, "--before", before]) == 2
    assert "needs --source" in capsys.readouterr().err
    assert cli.run(["maps", after, "--source", "--before", f"{before}.none"]) == 1
