"""No option writes a file that the command reads, or that another option writes."""

from __future__ import annotations

import ast
import gzip
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest

from indexing import cli
from indexing.cli import group
from indexing.cli.completion import FilePath
from indexing.cli.paths import InputPath, OutputFolder, OutputPath
from indexing.cli.reporter import Reporter

CLI = Path(__file__).parents[2] / "indexing" / "cli"
MODULE = "ENTRY e { p = f32[3,5] parameter(0)  ROOT t = f32[5,3] transpose(p), dimensions={1,0} }"
OTHER = MODULE.replace("transpose(p), dimensions={1,0}", "reshape(p)")
DUMP = "dumps/module_0001.m."
PASSES = [
    f"{DUMP}0001.pipeline.after_a.before_b.txt",
    f"{DUMP}0002.pipeline.after_b.before_c.txt.gz",
]
DUMPS = [*PASSES, f"{DUMP}cpu_after_optimizations.txt", f"{DUMP}before_optimizations.hlo.pb"]
MODULES = [*DUMPS, "dumps/inner/m.hlo"]

# fmt: off
LINES = {
    # command, without options that write files      the files that it reads
    "maps m.hlo other.hlo":                          ["m.hlo", "other.hlo"],
    "maps dumps":                                    MODULES,
    "maps m.hlo dumps --stage passes --jobs 2":      ["m.hlo", *MODULES],
    "summary m.hlo":                                 ["m.hlo"],
    "summary dumps --include *.pb":                  MODULES,
    "bytes m.hlo --format svg":                      ["m.hlo"],
    "bytes dumps":                                   MODULES,
    "ls m.hlo other.hlo":                            ["m.hlo", "other.hlo"],
    "memory m.hlo --assignment buffers.txt":         ["m.hlo", "buffers.txt"],
    "memory m.hlo --usage usage.txt":                ["m.hlo", "usage.txt"],
    "memory dumps":                                  MODULES,
    "source m.py m.hlo other.hlo":                   ["m.hlo", "other.hlo"],
    "source m.py m.hlo --before other.hlo":          ["m.hlo", "other.hlo"],
    "maps m.hlo --source --before other.hlo":        ["m.hlo", "other.hlo"],
    "check m.hlo":                                   ["m.hlo"],
    "check dumps":                                   MODULES,
    "validate m.hlo --no-xla":                       ["m.hlo"],
    "validate dumps --no-xla":                       MODULES,
    "tile m.hlo":                                    ["m.hlo"],
    "access m.hlo":                                  ["m.hlo"],
    "shard m.hlo --rule":                            ["m.hlo"],
    "run m.hlo --inputs in.npz":                     ["m.hlo", "in.npz"],
    "diff m.hlo other.hlo":                          ["m.hlo", "other.hlo"],
    "passes dumps":                                  DUMPS,
    "kernels dumps":                                 [],
    "triage dumps":                                  MODULES,
    "report m.hlo other.hlo":                        ["m.hlo", "other.hlo"],
    "report dumps":                                  DUMPS,
}
# fmt: on
WITHOUT_FILES = {"simplify", "compose", "ops", "explain", "pallas"}
LINKS = ["itself", "./", "absolute", "symbolic", "hard", "chain"]


def parameters(name: str) -> list[click.Parameter]:
    context = group.cli.make_context("hlo-indexing", [name], obj=Reporter())
    command = group.cli.get_command(context, name)
    assert command is not None
    return command.params


def options_of(name: str) -> list[str]:
    """Return the options of a command that write files."""
    return [each.opts[0] for each in parameters(name) if isinstance(each.type, OutputPath)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("dumps/inner").mkdir(parents=True)
    for name in ("m.hlo", "other.hlo", *MODULES):
        text = (OTHER if "other" in name or "0002" in name else MODULE).encode()
        Path(name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    np.savez("in.npz", in0=np.zeros((3, 5), np.float32))
    Path("buffers.txt").write_text("BufferAssignment:\n")
    Path("usage.txt").write_text("Memory Space: default (color=0)\nTotal bytes: 4 (4B)\n")
    return tmp_path


def alias_of(file: str, link: str, folder: Path) -> str:
    """Return another name of a file."""
    match link:
        case "./":
            return f"./dumps/../{file}"
        case "absolute":
            return str(folder / file)
        case "symbolic":
            Path("link").symlink_to(file)
            return "link"
        case "hard":
            Path("link").hardlink_to(file)
            return "link"
        case "chain":
            Path("first").symlink_to(folder / file)
            Path("link").symlink_to("first")
            return "link"
    return file


def contents() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def cases() -> Iterator[tuple[str, str]]:
    for line in LINES:
        for option in options_of(line.partition(" ")[0]):
            yield line, option


@pytest.mark.parametrize("line, option", list(cases()))
def test_no_file_that_is_read_is_written(
    line: str, option: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in LINES[line]:
        for link in LINKS:
            target = alias_of(file, link, folder)
            before = contents()
            for words in ([*line.split(), option, target], [*line.split(), f"{option}={target}"]):
                name, *rest = words
                if words[-1] == target:  # the option precedes the arguments
                    rest = [*rest[-2:], *rest[:-2]]
                status = cli.run([name, *rest])
                out, err = capsys.readouterr()
                assert (status, out) == (1, ""), (words, err)
                error = err.splitlines()[-1]
                other = "" if target == file else f" {file}"
                same = f"the input{other} is the same file: write to another one"
                assert error == f"error[io]: {target}: {same}", err
                assert contents() == before
            for each in ("link", "first"):
                Path(each).unlink(missing_ok=True)


@pytest.mark.parametrize("name", [n for n in group.COMMANDS if len(options_of(n)) > 1])
def test_no_file_is_written_by_two_options(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = next(line for line in LINES if line.startswith(f"{name} "))
    options = options_of(name)
    Path("old").write_text("old")
    Path("link").symlink_to("old")
    Path("dangling").symlink_to("new")
    before = contents()
    for first in options:
        for second in options:
            for paths in [("old", "link"), ("new", "./new"), ("new", "dangling")]:
                words = [*line.split(), first, paths[0], second, paths[1]]
                if first == second:
                    continue
                status = cli.run(words)
                out, err = capsys.readouterr()
                assert (status, out) == (1, ""), (words, err)
                assert " is the same file: write to another one\n" in err
                assert any(f"the file of {option} is" in err for option in options)
                assert contents() == before


def test_a_new_file_in_a_folder_that_is_read_is_written_twice(folder: Path) -> None:
    for line in ("maps dumps", "check dumps", "passes dumps", "report dumps"):
        for _ in range(2):
            cli.run([*line.split(), "-o", "dumps/results"])
            assert Path("dumps/results").stat().st_size > 0
        Path("dumps/results").unlink()


@pytest.mark.parametrize("name", group.COMMANDS)
def test_every_path_of_a_command_has_a_type_that_is_checked(name: str) -> None:
    for each in parameters(name):
        assert not isinstance(each.type, click.Path | click.File), each
        if isinstance(each.type, FilePath):
            assert isinstance(each.type, InputPath | OutputFolder | OutputPath), each
        words = (getattr(each, "help", None) or "").split()
        if {"FILE", "IN.npz", "OUT.npz", "DUMPDIR"} & {str(each.metavar).removesuffix("...")}:
            is_written = bool({"Write", "append", "write"} & set(words))
            assert isinstance(each.type, OutputPath if is_written else InputPath), each
    reads = any(isinstance(each.type, InputPath) for each in parameters(name))
    assert reads == (name not in WITHOUT_FILES)
    assert reads == any(line.startswith(f"{name} ") for line in [*LINES, "dump jax:m.py:f"])


WRITERS = {
    "archive.write",
    "write_text",
    "write_bytes",
    "savez",
    "save",
    "replace_file",
    "continue_file",
}


def test_only_these_modules_write_files() -> None:
    """Another place that opens a file for writing needs an `OutputPath`."""
    writers = set()
    for path in CLI.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                called = node.func
                called_name = getattr(called, "attr", None) or getattr(called, "id", "")
                modes = [a.value for a in node.args[1:2] if isinstance(a, ast.Constant)]
                is_open = called_name == "open" and modes and set(str(modes[0])) & set("wax+")
                if isinstance(called, ast.Attribute) and "archive" in ast.unparse(called.value):
                    called_name = f"archive.{called_name}"
                if called_name in WRITERS or is_open:
                    writers.add((path.relative_to(CLI).as_posix(), called_name))
    assert writers == {
        ("__init__.py", "open"),  # /dev/null
        ("commands/diff.py", "archive.write"),  # --save-inputs
        ("commands/passes.py", "replace_file"),  # --bisect
        ("commands/run.py", "archive.write"),  # --output
        ("commands/triage.py", "write_text"),  # --save
        ("journal.py", "open"),  # --resume
        ("manual.py", "write_text"),  # pages of this project
        ("reporter.py", "continue_file"),  # --output-file
        ("reporter.py", "replace_file"),
    }
