"""The help of each command has examples, and they run."""

import re
import shlex
import shutil
from glob import glob
from importlib.util import find_spec
from io import BytesIO, TextIOWrapper
from pathlib import Path

import numpy as np
import pytest

import hlo
from hlo import Shape
from indexing import cli
from indexing.cli.group import COMMANDS
from indexing.execution import archive
from indexing.frontends import compilation

TYPES = {"f32": np.float32, "s32": np.int32}
MODULE = Path(__file__).parents[2] / "examples" / "attention.opt.hlo"
ASSIGNED = Path(__file__).parents[1] / "memory" / "data" / "buffers" / "gpu_kv_cache_decode"
FILES = re.compile(r"\S*\*\S*\.(hlo|txt)")
KERNELS = Path(__file__).parents[1] / "kernels" / "data" / "h100_loop_one_hot"


def help_of(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.run([name, "--help"] if name else ["--help"]) == 0
    return capsys.readouterr().out


def examples(text: str) -> list[str]:
    """Return the commands below the heading "Examples:", with joined lines."""
    block = text.partition("\n  Examples:\n")[2].partition("\n\n")[0]
    return re.sub(r"\\\n *", " ", block).splitlines()


def write_dumps(folder: Path) -> None:
    """Write dumps of a module that a pass changed: it inlined a call."""
    folder.mkdir()
    called = "f { x = f32[3] parameter(0)  ROOT y = f32[3] negate(x) }"
    for number, (called_text, op) in enumerate(
        [(called, "call(p), to_apply=f"), ("", "negate(p)")]
    ):
        stage = ["before_optimizations", "cpu_after_optimizations"][number]
        name = f"module_0001.m.000{number}.simplification.after_call-inliner.before_dce.txt"
        text = (
            f"HloModule m {called_text} ENTRY e {{ p = f32[3] parameter(0) ROOT r = f32[3] {op} }}"
        )
        for each in (name, f"module_0001.m.{stage}.txt"):
            (folder / each).write_text(text)


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_the_examples_of_the_help_run(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for copied in ("m.hlo", "before.hlo", "after.hlo"):
        shutil.copy(MODULE, copied)
    shutil.copy(MODULE.parent / "targets" / "attention.h100.hlo", "gpu.hlo")
    for copied in ("layers.py", "blocks.py"):
        shutil.copy(MODULE.with_name(copied), copied)
    monkeypatch.setattr(compilation, "cache_folder", lambda _: tmp_path / "cache")
    write_dumps(Path("dumps"))
    if name == "kernels":
        shutil.copytree(KERNELS, "dumps", dirs_exist_ok=True)
    arrays = {
        f"in{number}": np.zeros(parameter.shape.dims, TYPES[parameter.shape.element_type])
        for number, parameter in enumerate(hlo.load("m.hlo").entry.parameters)
        if isinstance(parameter.shape, Shape)
    }
    archive.write("in.npz", arrays)
    if name == "triage":
        Path("cases").mkdir()
        for stage in ("pre", "opt"):
            shutil.copy("m.hlo", f"cases/m.{stage}.hlo")
    if name == "memory":
        shutil.copy(ASSIGNED.with_suffix(".hlo"), "m.hlo")
        shutil.copy(ASSIGNED.with_suffix(".buffer-assignment.txt"), "m-buffer-assignment.txt")
    lines = examples(help_of(name, capsys))
    assert len(lines) >= (1 if name == "compose" else 2)
    for line in lines:
        if "tpu:" in line and find_spec("libtpu") is None:
            continue  # its example needs a compiler that is an extra
        if "gpu:" in line and find_spec("jax_cuda12_plugin") is None:
            continue
        command = next(part for part in line.split(" | ") if "hlo-indexing" in part)
        assert name in command
        words = shlex.split(command)[1:]
        if line.strip().startswith("echo"):
            stdin = shlex.split(line)[1].encode()
            monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(stdin)))
        arguments = [
            path for word in words for path in (glob(word) if FILES.fullmatch(word) else [word])
        ]
        assert cli.run(arguments) == 0, line
        path = Path(words[words.index("-o") + 1]) if "-o" in words else None
        written = path is not None and (path.is_dir() or path.read_text())
        assert capsys.readouterr().out or written, line


def test_the_exit_statuses_are_documented(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of("", capsys)
    statuses = re.findall(r"^    (\d+(?: \+ N)?)  ", text, re.MULTILINE)
    assert statuses == ["0", "1", "2", "3", "130", "141", "128 + N"]
    assert cli.run(["ls", "none.hlo"]) == 1
    assert cli.run(["ls"]) == 2


@pytest.mark.parametrize(
    "name",
    [
        "access",
        "bytes",
        "check",
        "diff",
        "ls",
        "maps",
        "memory",
        "run",
        "shard",
        "summary",
        "tile",
        "validate",
    ],
)
def test_help_lists_the_formats_of_input_files(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = " ".join(help_of(name, capsys).split())
    assert "HLO text, a protobuf" in text
    assert "StableHLO" in text
    assert "`-` is standard input" in text


def test_help_is_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["help", "maps"]) == 0
    assert capsys.readouterr().out == help_of("maps", capsys)
    assert cli.run(["help"]) == 0
    assert capsys.readouterr().out == help_of("", capsys)
    assert cli.run(["help", "mpas"]) == 2
    assert "did you mean" in capsys.readouterr().err


def test_a_command_line_without_arguments_prints_the_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.run([]) == 2
    printed = capsys.readouterr()
    assert printed.err == f"{help_of('', capsys)}\nerror[usage]: no command is given\n"
    assert printed.out == ""


def test_the_help_lists_each_command_once_before_the_exit_statuses(
    capsys: pytest.CaptureFixture[str],
) -> None:
    commands, _, _ = help_of("", capsys).partition("Exit status:")
    assert re.findall(r"^  ([a-z]+) +[A-Z]", commands, re.M) == list(COMMANDS)


def test_a_file_without_a_command_is_shown_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([str(MODULE)]) == 2
    assert f"write `hlo-indexing summary {MODULE}`" in capsys.readouterr().err
    assert cli.run(["none.hlo"]) == 2
    assert "summary" not in capsys.readouterr().err
