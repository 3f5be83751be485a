"""Files in folders that cannot be read: errors with their names, and the answers of the others."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import click
import pytest

from indexing.cli import group
from indexing.cli.paths import InputPath
from indexing.cli.reporter import Reporter
from tests.cli.running import Run, runner

MODULE = "ENTRY e { p = f32[3,5] parameter(0)  ROOT t = f32[5,3] transpose(p), dimensions={1,0} }"
OTHER = MODULE.replace("transpose(p), dimensions={1,0}", "reshape(p)")
DUMP = "dumps/module_000{}.m.000{}.pipeline.after_{}.before_next.txt"
TEXTS = ("garbage", "large", "wrong")
LINKS = ("fifo", "device", "loop", "missing", "packed")
KINDS = [(kind, "") for kind in (*TEXTS, *LINKS)] + [(kind, ".gz") for kind in LINKS]
FOLDER_COMMANDS = ("maps", "summary", "bytes", "memory", "check", "validate", "passes", "report")


def make(kind: str, path: Path) -> str:
    """Make a file that cannot be read; return the reason."""
    match kind:
        case "fifo":
            os.mkfifo(path)
            return "a FIFO, expected a regular file"
        case "device":
            path.symlink_to("/dev/zero")
            return "a device, expected a regular file"
        case "loop":
            path.symlink_to(path.name)
            return "Too many levels of symbolic links"
        case "missing":
            path.symlink_to("nowhere")
            return "No such file or directory"
        case "garbage":
            path.write_text("garbage")
            return "error[syntax]"
        case "packed":
            path.write_bytes(gzip.compress(MODULE.encode())[:-9])
            return "corrupt compressed file" if path.suffix == ".gz" else "error[encoding]"
        case "large":
            path.write_text(MODULE + "/" * 5000)
            return "error[size]"
    path.write_text(MODULE.replace("{1,0}", "{0,0}"))
    return "error[op-constraint]"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("dumps").mkdir()
    for module in (1, 2):
        for number, name, text in ((1, "a", MODULE), (3, "c", MODULE), (4, "d", OTHER)):
            Path(DUMP.format(module, number, name)).write_text(text)
    return runner(capsys)


@pytest.mark.parametrize("kind, suffix", KINDS)
@pytest.mark.parametrize("command", FOLDER_COMMANDS)
def test_one_file_costs_no_other(command: str, kind: str, suffix: str, run: Run) -> None:
    """A FIFO has a writer that writes nothing: whoever opens it waits forever."""
    path = Path(DUMP.format(1, 2, "b") + suffix)
    reason = make(kind, path)
    writer = os.open(path, os.O_RDWR) if kind == "fifo" else None
    status, out, err = run(
        f"{command} dumps --max-input-size 4KiB" + " --no-xla" * (command == "validate")
    )
    if command == "passes":
        line = "passes dumps --max-input-size 4KiB --format json --jobs"
        assert run(f"{line} 7") == run(f"{line} 1")
    if writer is not None:
        os.close(writer)
    assert status == 1, err
    if command == "passes":
        assert "module_0002.m: the module differs after d" in out or "module_0001.m: the mod" in out
        assert len([line for line in out.splitlines() if line.startswith("differs")]) <= 2
    elif command == "report":
        assert out.startswith("<!DOCTYPE html>")
        assert out.count("traffic-") >= 2
    elif command in ("maps", "check"):
        assert sum("module_0002" in line for line in out.splitlines()) >= 3
    assert reason in err
    assert str(path) in err


@pytest.mark.parametrize("jobs", [1, 2, 7])
def test_all_faults_are_reported_once_and_all_modules_compared(jobs: int, run: Run) -> None:
    reasons = {
        path: make(kind, Path(path))
        for number, kind in enumerate(("fifo", "loop", "garbage", "missing"), 5)
        for path in [DUMP.format(1 + number % 2, number, "x")]
    }
    status, out, err = run(f"passes dumps --format json --jobs {jobs}")
    assert status == 1
    for path, reason in reasons.items():
        assert err.count(path) == 1, err
        assert reason in err
    records = [json.loads(line) for line in out.splitlines()]
    assert [(each["pass"], each["verdict"]) for each in records] == [
        ("d", "differs"),
        ("x", "unknown"),
        ("x", "unknown"),
    ] * 2


def test_only_unread_dumps_are_all_reported(run: Run) -> None:
    for path in Path("dumps").iterdir():
        path.write_text("garbage")
    for command in ("passes", "report", "check"):
        status, out, err = run(f"{command} dumps")
        assert (status, "<!DOCTYPE" in out) == (1, False)
        assert err.count("error[syntax]: ") == (1 if command == "report" else 6), command


def test_compressed_dumps_are_compared(run: Run) -> None:
    _, expected, _ = run("passes dumps --format json")
    for path in sorted(Path("dumps").iterdir())[::2]:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    status, out, err = run("passes dumps --format json")
    assert (status, out.replace(".txt.gz", ".txt")) == (1, expected)
    assert "no dump 0002" in err
    assert "no dump 0001" not in err


def test_a_dump_in_two_forms_is_compared_once(run: Run) -> None:
    _, expected, _ = run("passes dumps --format json")
    for path in list(Path("dumps").iterdir()):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.with_suffix(".hlo.pb").write_bytes(b"")
    assert run("passes dumps --format json")[1] == expected


def test_a_subfolder_that_cannot_be_read_is_an_error_with_its_name(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("dumps/secret").mkdir()
    scanned = os.scandir

    def fails(path: str) -> object:
        if "secret" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return scanned(path)

    monkeypatch.setattr(os, "scandir", fails)
    for command in FOLDER_COMMANDS:
        status, out, err = run(f"{command} dumps" + " --no-xla" * (command == "validate"))
        assert status == 1
        assert "error[io]: dumps/secret: Permission denied\n" in err, command
        assert out


@pytest.mark.parametrize("command", FOLDER_COMMANDS)
def test_a_folder_that_is_none_is_an_error(command: str, run: Run) -> None:
    for folder in ("nowhere", "loop"):
        Path("loop").unlink(missing_ok=True)
        Path("loop").symlink_to("loop")
        status, out, err = run(f"{command} {folder}")
        assert (status, out) == (1, "")
        assert f"error[io]: {folder}: " in err


@pytest.mark.parametrize("name", sorted(group.COMMANDS.keys() - {"dump"}))  # reads a function
def test_every_command_that_reads_files_limits_their_size(name: str) -> None:
    context = group.cli.make_context("hlo-indexing", [name], obj=Reporter())
    command = group.cli.get_command(context, name)
    assert isinstance(command, click.Command)
    reads = any(isinstance(each.type, InputPath) for each in command.params)
    assert reads == any("--max-input-size" in each.opts for each in command.params)
