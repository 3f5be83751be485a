"""``--jobs`` prints what one process prints; the progress bar."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

import hlo
from indexing import cli
from indexing.cli import map_question, progress

ROOT = Path(__file__).parents[2]
EXAMPLES = [str(ROOT / "examples" / name) for name in ("attention.opt.hlo", "layernorm.opt.hlo")]
BROKEN = """\
fused { p = f32[3] parameter(0)  ROOT n = f32[4] negate(p) }
ENTRY main { p = f32[3] parameter(0)  ROOT m = f32[3] mystery(p) }
"""


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = cli.run(["maps", *arguments])
    return status, *capsys.readouterr()


REQUESTS = [
    ["--all"],
    ["--all", "--to", "parameters", "--format", "json"],
    ["--opcode", "fusion", "--direction", "both"],
    ["--instruction", "nowhere"],
    ["--reads", "x", "--kind", "reducing", "--sort", "bytes", "--limit", "2", "-i", "*fusion*"],
    [],
]


@pytest.mark.slow
@pytest.mark.parametrize("request_", REQUESTS, ids=" ".join)
def test_two_processes_print_what_one_prints(
    request_: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(map_question, "PART_BYTES", 1 << 12)  # so that files are divided
    broken = tmp_path / "broken.hlo"
    broken.write_text(BROKEN)
    files = [*EXAMPLES, str(broken), str(tmp_path / "missing.hlo")]
    one_process = ran(capsys, *files, *request_)
    assert ran(capsys, *files, *request_, "--jobs", "2") == one_process
    assert one_process[0] == 1


COMMANDS = [
    "maps --all --verify --format isl",
    "summary",
    "summary --format json",
    "bytes --peak 1TB/s,1TF/s",
    "bytes --format json",
    "check",
    "check --format json",
    "validate --no-xla --max-elements 3000",
    "validate --no-xla --format json -i n -i m -i nowhere",
]


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_prints_the_same_with_several_processes(
    line: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    texts = {
        "first": "ENTRY e { p = f32[3,5] parameter(0)  ROOT n = f32[3,5] negate(p) }",
        "broken": BROKEN,
        "unfinished": "ENTRY e {",
        "several": "ENTRY a { ROOT p = s32[] parameter(0) }\n// -----\n"
        "ENTRY m { ROOT m = f32[2] iota(), iota_dimension=0 }",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.hlo").write_text(text)
    command, *options = line.split()
    names = [str(tmp_path / f"{name}.hlo") for name in [*texts, "missing", "first"]]
    status = cli.run([command, *names, *options])
    out, err = capsys.readouterr()
    assert (status, out.count("first.hlo") > 1) == (1, "isl" not in options)
    assert cli.run([command, *names, *options, "--jobs", "2"]) == 1
    assert capsys.readouterr() == (out, err)


@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_slices_keep_every_computation_once_and_in_order(count: int) -> None:
    computations = list(hlo.load(EXAMPLES[0]).computations.values())
    slices = map_question.slices(computations, count)
    assert len(slices) == count
    assert [c for part in slices for c in part] == computations
    largest = max(map(len, computations))
    share = sum(map(len, computations)) / count
    assert all(sum(map(len, part)) <= share + largest for part in slices)


@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_shares_have_every_instruction_once_and_in_order(count: int) -> None:
    module = hlo.load(EXAMPLES[0])
    computations = list(module.computations.values())
    shares = [
        [
            (c, k)
            for c, positions in map_question.share_of(computations, n, count).items()
            for k in positions
        ]
        for n in range(count)
    ]
    assert [pair for share in shares for pair in share] == [
        (i.computation, i.index) for i in module.instructions
    ]
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Ticks:
    """An event that is set after `count` waits."""

    def __init__(self, count: int) -> None:
        self.count = count

    def wait(self, _: float) -> bool:
        self.count -= 1
        return self.count < 0

    def is_set(self) -> bool:
        return self.count < 0


@pytest.mark.parametrize("delay, shown", [(0.0, True), (1e9, False)])
def test_a_bar_appears_on_a_terminal_after_the_delay(
    delay: float, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "DELAY", delay)
    bar = progress.Bar()
    monkeypatch.setattr(bar, "_done", Ticks(3))
    bar.update("main.42", 3, 7)
    bar._watch()
    bar._remove()
    assert ("main.42" in terminal.getvalue()) == shown


def test_no_bar_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    with progress.Bar() as bar:
        bar.update("main.42", 3, 7)
    assert not bar.is_used
    assert stderr.getvalue() == ""


def test_a_map_that_cannot_be_printed_does_not_stop_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from indexing.views import map_tables

    def fails_on_division(indexing_map: object) -> str:
        if "d0 floordiv" in str(indexing_map):
            raise ValueError("no division here")
        return str(indexing_map)

    monkeypatch.setitem(map_tables.NOTATIONS, "latex", fails_on_division)
    status, out, err = ran(capsys, EXAMPLES[0], "--all", "--format", "latex")
    assert status == 1
    assert "no division here" in err
    _, expected, _ = ran(capsys, EXAMPLES[0], "--all")
    assert out
    assert expected.rstrip().endswith(out.rstrip().splitlines()[-1])
