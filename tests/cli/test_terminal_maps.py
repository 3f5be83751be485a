"""The maps on a terminal: what is printed is the answer, at every width."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
from rich.cells import cell_len

import hlo
from indexing import cli, parse_map
from indexing.maps.containment import containers
from indexing.views.formats import lines
from indexing.views.map_answers import answer
from indexing.views.map_query import DIRECTIONS_BY_OPTION, Query
from indexing.views.map_tables import MapTable, plain
from indexing.views.regions import table_regions, terminal_lines
from indexing.views.terminal import Terminal
from tests.oracles import sampled

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.hlo"))
ATTENTION = str(ROOT / "examples" / "attention.opt.hlo")
BUFFERS = "tests/memory/data/buffers/tpu_kv_cache_decode.hlo"
WIDTHS = (60, 80, 120)
COLOUR = re.compile(r"\x1b\[\d*m")
ROWS = """\
ENTRY e {
  p = f32[9,5] parameter(0)
  i = s32[] parameter(1)
  d = f32[?,5] parameter(2)
  s = f32[2,4] dynamic-slice(p, i, i), dynamic_slice_sizes={2,4}
  u = f32[9,5] dynamic-update-slice(p, s, i, i)
  t = (f32[9,5], f32[2,5], token[]) custom-call(u, d), custom_call_target="odd"
  g = f32[2,5] get-tuple-element(t), index=1
  q = (f32[9,5], f32[9,5]) tuple(u, u)
  r = f32[9,5] get-tuple-element(q), index=0
  n = f32[] negate(f32[] constant(1))
  v = f32[9] slice(f32[12] constant({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})), slice={[0:9]}
  c = f32[9] add(v, v)
  ROOT all = (f32[2,5], f32[9,5], f32[9,5], f32[9,5], f32[], f32[9]) tuple(g, p, r, r, n, c)
}
"""
ALIKE = """\
%same (a: f32[], b: f32[], c: f32[], d: f32[]) -> (f32[], f32[]) {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  x = f32[] multiply(a, b)
  y = f32[] add(c, d)
  z = f32[] add(x, y)
  ROOT t = (f32[], f32[]) tuple(z, z)
}
ENTRY e {
  p = f32[4,6] parameter(0)
  zero = f32[] constant(0)
  ROOT r = (f32[4], f32[4]) reduce(p, p, zero, zero), dimensions={1}, to_apply=same
}
"""
SOFTMAX = """\
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
fused {
  p = f32[4,6] parameter(0)
  zero = f32[] constant(0)
  sum = f32[4] reduce(p, zero), dimensions={1}, to_apply=add
  all = f32[4,6] broadcast(sum), dimensions={0}
  ROOT q = f32[4,6] divide(p, all)
}
ENTRY e { p = f32[4,6] parameter(0)  ROOT r = f32[4,6] fusion(p), kind=kLoop, calls=fused }
"""


def batches(module: hlo.Module, **options: object) -> Iterator[list[MapTable]]:
    """The answers for each instruction and direction."""
    query = Query(DIRECTIONS_BY_OPTION["both"], **options)  # type: ignore[arg-type]
    for instruction in module.instructions:
        tables = answer(instruction, query, module.filename)
        for _, batch in groupby(tables, lambda table: table.direction):
            yield list(batch)


def print_tables(batch: Sequence[MapTable], width: int = 100_000) -> list[str]:
    return list(lines(batch, "text", plain, Terminal(width, plain)))


@pytest.fixture(scope="module", params=["rows", *[path.name for path in EXAMPLES]])
def module(request: pytest.FixtureRequest) -> hlo.Module:
    if request.param == "rows":
        return hlo.parse(ROWS, "rows.hlo")
    return hlo.load(ROOT / "examples" / request.param)


BODY = re.compile(
    r"^ *(?:operand (?P<operand>\d+) .*  )?(?P<grade>may: )?"
    r"(?P<map>\((?:d\d+(?:, )?)*\)(?:\[[^]]*\])?(?:\{[^}]*\})? *-> .*|KNOWN EMPTY)$"
)
BOUND = re.compile(r"(\w+) in \[-?\d+, -?\d+\]")


def entries(text: str) -> list[str]:
    """The bounds and constraints of a domain."""
    return re.split(r"(?<=\]), ", text) if text else []


def whole_text(line: str, domain: Sequence[str]) -> str:
    """The text of a map, with the bounds that are printed once for all maps."""
    if line == "KNOWN EMPTY":
        return line
    end = line.index("->") + 4
    while line[:end].count("(") > line[:end].count(")"):
        end += 1
    own = entries(line[end:].removeprefix(", "))
    variables = set(re.findall(r"\w+", line.partition(" -> ")[0]))
    missing = variables - {bound[1] for bound in map(BOUND.fullmatch, own) if bound}
    shared = [bound for bound in domain if bound.split()[0] in missing]
    return f"{line[:end]}, domain: {', '.join([*shared, *own])}".removesuffix(", domain: ")


def numbers(line: str) -> list[int]:
    """The numbers of the outputs on a line such as ``outputs 0–2, 5 f32[3]``."""
    listed = re.match(r" *outputs? ((?:\d+(?:–\d+)?(?:, )?)+) ", line)
    assert listed is not None, line
    spans = [span.split("–") for span in listed[1].split(", ")]
    return [n for low, *high in spans for n in range(int(low), int(*high or [low]) + 1)]


def read_back(batch: Sequence[MapTable]) -> tuple[dict[int, list[tuple[int, str, str]]], int]:
    """The printed maps of each output, with operand and grade, and the number of those omitted."""
    maps: dict[int, list[tuple[int, str, str]]] = {table.output: [] for table in batch}
    outputs, operand, omitted = list(maps), -1, 0
    common: list[str] = []
    domain: list[str] = []
    for line in print_tables(batch)[1:]:
        text = line.strip()
        if text.startswith("output"):
            outputs, domain = numbers(line), common
        elif text.startswith("domain: "):
            domain = entries(text.removeprefix("domain: "))
            common = domain if line.startswith("  d") else common
        elif text.startswith("contains "):
            omitted += int(text.split()[1]) * len(outputs)
        elif body := BODY.match(line):
            operand = int(body["operand"] or operand)
            grade = "may" if body["grade"] else "exact"
            for output in outputs:
                maps[output].append((operand, grade, whole_text(body["map"], domain)))
    return maps, omitted


def test_printed_maps_are_those_of_the_answer(module: hlo.Module) -> None:
    for batch in sampled(batches(module)):
        printed, omitted = read_back(batch)
        for table in batch:
            expected = []
            for number, group in groupby(table.rows, lambda row: (row.operand, row.path)):
                maps = [row.map for row in group if row.map is not None]
                inside = containers(maps)
                omitted -= sum(whole is not None for whole in inside)
                kept = [m for m, whole in zip(maps, inside, strict=True) if whole is None]
                expected += [(number[0], m.grade, str(m)) for m in kept]
            assert [
                (operand, grade, str(parse_map(text)) if "->" in text else text)
                for operand, grade, text in printed[table.output]
            ] == expected
        assert omitted == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_lines_fit_and_have_the_same_words_at_every_width(module: hlo.Module, width: int) -> None:
    for batch in sampled(batches(module), width):
        narrow = print_tables(batch, width)
        assert max(map(cell_len, narrow)) <= width
        assert not any(line.endswith(" ") for line in narrow)
        words, wide = "".join(narrow).split(), "".join(print_tables(batch)).split()
        assert "".join(words) == "".join(wide)


def test_unread_unknown_and_omitted_operands_are_named() -> None:
    module = hlo.parse(ROWS, "rows.hlo")
    text = "\n".join(line for batch in batches(module) for line in print_tables(batch))
    assert "operand 1 d (parameter 2) f32[?,5]  unknown: custom-call `t`: f32[?,5] has a" in text
    assert "no operands" in text
    assert "rt0 = i, clamped to [0, 7]" in text
    assert "operand 0 p (parameter 0) f32[9,5]  may: (d0, d1)      -> (d0, d1)\n" in text


def test_equal_outputs_are_printed_together() -> None:
    root = hlo.parse(ALIKE).entry.root
    batch = list(answer(root, Query(), "alike.hlo"))
    assert print_tables(batch) == [
        "alike.hlo: e: r = reduce with 2 outputs, output-to-input",
        "  domain: d0 in [0, 3]",
        "  outputs 0–1 f32[4]",
        "    operand 0 p (parameter 0) f32[4,6]  (d0)[s0] -> (d0, s0), s0 in [0, 5]",
        "    operand 1 p (parameter 0) f32[4,6]  (d0)[s0] -> (d0, s0), s0 in [0, 5]",
        "    operand 2 zero            f32[]     (d0)     -> ()",
        "    operand 3 zero            f32[]     (d0)     -> ()",
    ]


def test_a_point_is_answered_for_the_outputs_that_have_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "rows.hlo"
    file.write_text(ROWS)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    assert cli.run(["maps", str(file), "-i", "all", "--at", "7,3"]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "e: all = tuple with 6 outputs, output-to-input, at [7, 3]",
        "  output 1 f32[9,5]",
        "    operand 1 p (parameter 0) f32[9,5]  [7, 3]",
        "  output 2 f32[9,5]",
        "    operand 2 r f32[9,5]  [7, 3]",
        "  output 3 f32[9,5]",
        "    operand 3 r f32[9,5]  [7, 3]",
    ]
    assert err.count("error[at]") == 3
    assert cli.run(["maps", str(file), "-i", "s", "--at", "7,3"]) == 1
    assert capsys.readouterr().out == ""


def test_equal_regions_are_printed_together() -> None:
    tables = list(answer(hlo.parse(ALIKE).entry.root, Query(), "alike.hlo"))
    answered = [(table, table_regions(table, (2,))) for table in tables]
    assert list(terminal_lines(answered, (2,), Terminal(80, plain, names_file=False))) == [
        "e: r = reduce with 2 outputs, output-to-input, at [2]",
        "  outputs 0–1 f32[4]",
        "    operand 0 p (parameter 0) f32[4,6]  [2, 0:6]",
        "    operand 1 p (parameter 0) f32[4,6]  [2, 0:6]",
        "    operand 2 zero            f32[]     []",
        "    operand 3 zero            f32[]     []",
    ]


def test_a_map_inside_another_is_counted_on_a_terminal_and_printed_elsewhere() -> None:
    softmax = hlo.parse(SOFTMAX).entry.root
    batch = list(answer(softmax, Query(), "softmax.hlo"))
    assert print_tables(batch)[2:] == [
        "  operand 0 p (parameter 0) f32[4,6]  (d0, d1)[s0] -> (d0, s0), s0 in [0, 5]",
        " " * 40 + "contains 1 map, which is not printed",
    ]
    assert len(list(lines(batch, "text"))) == 3


def terminal_output(arguments: Sequence[str], width: int, **environment: str) -> str:
    """Output of the command on a pseudo-terminal of `width` columns."""
    child, file = pty.fork()
    if child == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
        kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
        kept |= {"TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **environment}
        os.execve(sys.executable, [sys.executable, "-m", "indexing.cli", *arguments], kept)
    output = b""
    while True:
        try:
            part = os.read(file, 1 << 16)
        except OSError:  # Linux reports the end of the child so
            break
        if not part:
            break
        output += part
    os.waitpid(child, 0)
    os.close(file)
    text = output.decode().replace("\r\n", "\n")
    bar_end = text.rfind("\x1b[2K")  # the progress bar precedes the first result
    return text[bar_end + 4 :] if bar_end >= 0 else text


@pytest.mark.parametrize("width", WIDTHS)
def test_the_command_uses_the_width_of_its_terminal(width: int) -> None:
    output = terminal_output(["maps", ATTENTION, "--opcode", "fusion"], width)
    plain_lines = COLOUR.sub("", output).split("\n")
    assert max(map(cell_len, plain_lines)) <= width
    assert any(len(line) > width - 20 for line in plain_lines)
    assert "\x1b[36md0\x1b[0m" in output
    assert "\x1b[32ms0\x1b[0m" in output
    module = hlo.load(ATTENTION)
    query = Query()
    expected = []
    for fusion in module.find(opcode="fusion"):
        batch = list(answer(fusion, query, ATTENTION))
        expected += [*lines(batch, "text", plain, Terminal(width, plain, names_file=False)), ""]
    assert plain_lines == expected


@pytest.mark.parametrize(
    "arguments", [["memory", BUFFERS, "--copies"], ["check", BUFFERS, "--in-place"]]
)
def test_texts_are_wrapped_to_the_width_of_the_terminal(
    arguments: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text, narrow = wide_and_narrow(arguments, capsys, monkeypatch)
    assert narrow.split() == text.split()  # no word is lost


@pytest.mark.parametrize(
    "arguments",
    [
        ["memory", BUFFERS, "--device", "v5e"],
        ["bytes", BUFFERS, "--peak", "v5e"],
        ["access", "examples/attention.opt.hlo", "-i", "ynn_fusion.3"],
    ],
)
def test_rows_of_a_narrow_table_are_parts_of_those_of_the_whole(
    arguments: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text, narrow = wide_and_narrow(arguments, capsys, monkeypatch)
    assert "omitted to fit the terminal: " in narrow
    rows = [line for line in narrow.splitlines() if len(figures(line)) >= 3]
    assert rows
    for row in rows:
        assert any(is_part(figures(row), figures(line)) for line in text.splitlines()), row


def wide_and_narrow(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[str, str]:
    """Return what a command prints into a pipe, and on a terminal of 80 columns, which it fits."""
    monkeypatch.chdir(ROOT)
    assert cli.run(arguments) == 0
    text = capsys.readouterr().out
    narrow = terminal_output(arguments, 80, NO_COLOR="1")
    assert max(map(cell_len, text.splitlines())) > 80
    assert max(map(cell_len, narrow.splitlines())) <= 80
    return text, narrow


def figures(line: str) -> list[str]:
    """Return the words of a line that are numbers."""
    return re.findall(r"(?<=\s)[\d,.]+(?=\s|$)", f" {line}")


def is_part(some: list[str], every: list[str]) -> bool:
    """Return True if `some` are elements of `every`, in this order."""
    rest = iter(every)
    return all(each in rest for each in some)


def test_the_documentation_shows_the_output_on_a_terminal() -> None:
    page = (ROOT / "docs" / "python.md").read_text()
    text = page.partition("with 80 columns:\n\n```text\n")[2].partition("```")[0]
    arguments = ["maps", ATTENTION, "-i", "ynn_fusion.6", "-i", "ynn_fusion.3"]
    assert text == terminal_output(arguments, 80, NO_COLOR="1")


def test_a_terminal_without_colours_has_the_same_lines() -> None:
    arguments = ["maps", ATTENTION, "-i", "transpose_copy_fusion*", "--at", "1,..."]
    coloured, uncoloured = (
        terminal_output(arguments, 80),
        terminal_output(arguments, 80, NO_COLOR="1"),
    )
    assert "\x1b" not in uncoloured
    assert COLOUR.sub("", coloured) == uncoloured
    assert "  operand 0 ynn_fusion.7 f32[64,64]  [32:64, 0:64]\n" in uncoloured


def test_two_processes_print_the_same_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # the length of the folder's name would decide what wraps
    Path("rows.hlo").write_text(ROWS)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "70")
    arguments = ["maps", "rows.hlo", str(EXAMPLES[0]), "--all"]
    cli.run(arguments)
    one = capsys.readouterr()
    cli.run([*arguments, "--jobs", "2"])
    assert capsys.readouterr() == one
    text = COLOUR.sub("", one.out)
    assert "rows.hlo: e: all = tuple with 6 outputs" in text.replace("\n    ", " ")
    assert not text.startswith("\n")


def test_names_are_escaped_before_they_are_measured() -> None:
    name = "\x1b[31m日本語" * 9
    for batch in batches(hlo.parse(ALIKE)):
        strange = [
            replace(
                table,
                file=name,
                computation=name,
                instruction=name,
                rows=tuple([replace(row, name=name) for row in table.rows]),
            )
            for table in batch
        ]
        for line in print_tables(strange, 60):
            assert "\x1b" not in line
            assert cell_len(line) <= 60
