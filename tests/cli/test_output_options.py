"""The options of every command: ``-o``, ``--color`` and ``-q``."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import click
import pytest

from indexing import cli
from indexing.cli import group
from indexing.cli.colours import COLOURS
from indexing.cli.reporter import Reporter

ROOT = Path(__file__).parents[2]
MODULE = "ENTRY e { p = f32[3,5] parameter(0)  ROOT t = f32[5,3] transpose(p), dimensions={1,0} }"
STRANGE = "ENTRY e { p = f32[3] parameter(0)  ROOT strange = f32[3] no-such-opcode(p) }"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    Path("m.hlo").write_text(MODULE)
    Path("strange.hlo").write_text(STRANGE)

    def run(line: str) -> tuple[int, str, str]:
        return cli.run(shlex.split(line)), *capsys.readouterr()

    return run


@pytest.mark.parametrize("name", group.COMMANDS)
def test_every_command_has_the_common_options(name: str) -> None:
    context = group.cli.make_context("hlo-indexing", [name], obj=Reporter())
    command = group.cli.get_command(context, name)
    assert command is not None
    options = [each for each in command.params if isinstance(each, click.Option)]
    spellings = [spelling for option in options for spelling in option.opts]
    assert {"-o", "-q", "--quiet", "--color"} <= set(spellings)
    assert len(spellings) == len(set(spellings))
    again = group.cli.get_command(context, name)
    assert again is not None
    assert len(again.params) == len(command.params)


# ---------------------------------------------------------------- files


# fmt: off
LINES = [
    # command                                                  status, which may be a verdict
    ("maps m.hlo",                                             0),
    ("maps m.hlo --format json",                               0),
    ("maps m.hlo wrong.hlo --all",                             1),
    ("maps strange.hlo --jobs 2",                              0),
    ("ls m.hlo",                                               0),
    ("ls m.hlo none.hlo",                                      1),
    ("check m.hlo",                                            0),
    ("check wrong.hlo",                                        1),
    ("check wrong.hlo --format json",                          1),
    ("check empty.hlo --format json",                          1),
    ("summary m.hlo wrong.hlo",                                1),
    ("bytes m.hlo wrong.hlo",                                  1),
    ("bytes m.hlo -i t -i none",                               1),
    ("bytes m.hlo --format svg",                               0),
    ("memory m.hlo wrong.hlo",                                 1),
    ("memory m.hlo --copies --format json",                    0),
    ("source m.py m.hlo",                                      1),
    ("kernels emitted",                                        0),
    ("ops dot",                                                0),
    ("ops dot no-such-op",                                     1),
    ("explain syntax no-such-code",                            1),
    ("simplify '(d0) -> (d0 mod 8), domain: d0 in [0, 7]' d0", 1),
    ("compose '() -> (7)' '(d0) -> (d0), domain: d0 in [0, 9]'", 0),
    ("validate m.hlo --no-xla",                                0),
    ("validate m.hlo --no-xla -i t -i no-such-name",           1),
    ("tile m.hlo --sizes 2,2",                                 0),
    ("tile m.hlo -i t -i no-such-name",                        1),
    ("access m.hlo -i t -i no-such-name",                      1),
    ("shard m.hlo --rule -i t -i no-such-name",                1),
    ("shard m.hlo --mesh x=2",                                 0),
    ("diff m.hlo m.hlo",                                       0),
    ("diff m.hlo other.hlo",                                   1),
    ("diff m.hlo other.hlo --format json",                     1),
    ("diff m.hlo opaque.hlo",                                  3),
    ("diff m.hlo opaque.hlo --jobs 2",                         3),
    ("diff m.hlo opaque.hlo --format json",                    3),
    ("passes proved",                                          0),
    ("passes differs",                                         1),
    ("passes differs --format json --jobs 2",                  1),
    ("passes undecided",                                       3),
    ("passes undecided --format json",                         3),
    ("triage differs",                                         1),
    ("report m.hlo",                                           0),
    ("report differs",                                         0),
]
# fmt: on
OTHER = MODULE.replace("transpose(p), dimensions={1,0}", "reshape(p)")
OPAQUE = MODULE.replace("transpose(p), dimensions={1,0}", 'custom-call(p), custom_call_target="f"')
DUMP = "module_0001.m.000{}.pipeline.after_pass.before_next.txt"


@pytest.mark.parametrize("line, status", LINES)
def test_the_results_are_those_of_standard_output(line: str, status: int, run: Run) -> None:
    """A verdict is a result: the file has what standard output has, whatever the status."""
    Path("wrong.hlo").write_text(MODULE.replace("{1,0}", "{0,0}"))
    Path("empty.hlo").touch()
    Path("other.hlo").write_text(OTHER)
    Path("opaque.hlo").write_text(OPAQUE)
    for folder, after in (("proved", MODULE), ("differs", OTHER), ("undecided", OPAQUE)):
        Path(folder).mkdir()
        for number, text in enumerate((MODULE, after)):
            Path(folder, DUMP.format(number)).write_text(text)
    copytree(ROOT / "examples" / "kernels" / "softmax", "emitted")
    actual, out, err = run(line)
    assert actual == status, err
    assert out
    assert run(f"{line} -o out.txt") == (status, "", err)
    assert without_times(Path("out.txt").read_text()) == without_times(out)
    status, again, errors = run(f"{line} -o -")
    assert (status, without_times(again), errors) == (actual, without_times(out), err)


def without_times(text: str) -> str:
    """Return a text without the seconds in the table of `passes`."""
    return re.sub(r" +\d+\.\d$", "", text, flags=re.MULTILINE)


def test_every_command_with_results_has_lines() -> None:
    others = {"run", "dump", "pallas"}
    assert {line.partition(" ")[0] for line, _ in LINES} == {*group.COMMANDS} - others


def test_a_link_stays_and_its_target_is_replaced_with_its_permissions(run: Run) -> None:
    Path("target").write_text("old")
    Path("target").chmod(0o640)
    Path("link").symlink_to("target")
    status, out, err = run("ls m.hlo --output-file link")
    assert (status, out, err) == (0, "", "")
    assert Path("link").is_symlink()
    assert Path("target").read_text() == run("ls m.hlo")[1]
    assert Path("target").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "line",
    [
        "ls m.hlo -o m.hlo",
        "maps -o ./m.hlo strange.hlo m.hlo",
        "maps m.hlo strange.hlo --jobs 2 -o m.hlo",
        "maps link -o m.hlo",
        "maps m.hlo -o link",
        "run m.hlo --output link",
        "check m.hlo -o m.hlo",
        "summary m.hlo -o m.hlo",
        "bytes m.hlo -o m.hlo",
        "validate m.hlo -o m.hlo",
    ],
)
def test_the_input_is_not_replaced(line: str, run: Run) -> None:
    Path("link").symlink_to("m.hlo")
    status, out, err = run(line)
    assert (status, out) == (1, "")
    same = re.fullmatch(
        r"error\[io\]: (\S+): the input( \S+)? is the same file: write to another one\n", err
    )
    assert same, err
    assert same[2] != f" {same[1]}"
    assert Path("m.hlo").read_text() == MODULE


def test_the_redirected_standard_input_is_not_replaced(run: Run) -> None:
    command = [sys.executable, "-m", "indexing.cli", "ls", "-", "-o", "m.hlo"]
    with open("m.hlo") as stdin:
        done = subprocess.run(
            command,
            stdin=stdin,
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
    message = "error[io]: m.hlo: standard input is the same file: write to another one\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)
    assert Path("m.hlo").read_text() == MODULE


def test_devices_are_refused(run: Run) -> None:
    status, out, err = run("ls m.hlo -o /dev/null")
    assert (status, out) == (1, "")
    assert err.startswith("error[io]: /dev/null: a device, expected a regular file, or -")


def test_no_result_is_an_empty_file(run: Run) -> None:
    Path("out").write_text("old")
    assert run("maps m.hlo -i p --format isl -o out") == (0, "", "")
    assert Path("out").read_text() == ""


@pytest.mark.parametrize(
    "path, reason",
    [
        (".", "a directory, expected a regular file"),
        ("no/such/folder", "the folder .* does not exist"),
        ("fifo", "a FIFO, expected a regular file"),
        ("readonly", "the file is read-only"),
    ],
)
def test_other_files_are_refused_before_the_work(path: str, reason: str, run: Run) -> None:
    os.mkfifo("fifo")
    Path("readonly").touch(0o444)
    if path == "readonly" and os.access(path, os.W_OK):
        pytest.skip("needs a user who cannot write read-only files")
    status, out, err = run(f"maps none.hlo -o {path}")
    assert (status, out) == (1, "")
    assert err.startswith(f"error[io]: {path}: ")
    assert "none.hlo" not in err
    assert re.search(reason, err)


def test_an_empty_path_is_a_usage_error(run: Run) -> None:
    status, _, err = run("ls m.hlo -o ''")
    assert status == 2
    assert "expected the path of a file, got an empty text" in err


@pytest.mark.parametrize("line", ["ls none.hlo", "maps m.hlo -i nothing", "maps m.hlo --oops"])
def test_a_failure_without_results_leaves_the_file(line: str, run: Run) -> None:
    Path("out").write_text("old")
    status, out, _ = run(f"{line} -o out")
    assert status in (1, 2)
    assert out == ""
    assert Path("out").read_text() == "old"
    assert not list(Path().glob(".hlo-indexing-*"))


def test_results_beside_errors_are_written(run: Run) -> None:
    status, _, err = run("ls none.hlo m.hlo -o out")
    assert status == 1
    assert "none.hlo" in err
    assert "ENTRY e" in Path("out").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_the_file_and_no_other(
    number: signal.Signals, tmp_path: Path
) -> None:
    (tmp_path / "out").write_text("old")
    (tmp_path / "m.hlo").write_text(MODULE)
    command = [sys.executable, "-m", "indexing.cli", "ls", "m.hlo", "-", "-o", "out"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        while not list(tmp_path.glob(".hlo-indexing-*")):  # m.hlo is printed; it waits for stdin
            assert process.poll() is None
        process.send_signal(number)
        assert process.wait() == (130 if number is signal.SIGINT else 143)
    assert (tmp_path / "out").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.hlo", "out"]


def test_a_full_disk_is_an_error_with_the_name_of_the_file(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from indexing.execution import output_file

    class Full:
        def __init__(self, path: str) -> None: ...
        def __enter__(self) -> object:
            return open("/dev/full", "wb", buffering=0)

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(output_file, "replace_file", Full)
    assert run("ls m.hlo -o out") == (1, "", "error[io]: out: No space left on device\n")


# ---------------------------------------------------------------- colours and notes


# fmt: off
COLOURED = [
    # option        NO_COLOR FORCE_COLOR terminal  coloured
    ("",             "",      "",         False,    False),
    ("",             "",      "",         True,     True),
    ("",             "1",     "",         True,     False),
    ("",             "",      "1",        False,    True),
    ("",             "1",     "1",        True,     False),
    ("--color auto",   "1",     "",         True,     False),
    ("--color auto",   "",      "",         False,    False),
    ("--color always", "1",     "",         False,    True),
    ("--color never",  "",      "1",        True,     False),
    ("--color never",  "",      "",         True,     False),
]
# fmt: on


@pytest.mark.parametrize("option, no_color, force_color, is_terminal, coloured", COLOURED)
def test_the_option_precedes_the_environment_and_that_the_terminal(
    option: str,
    no_color: str,
    force_color: str,
    is_terminal: bool,
    coloured: bool,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("FORCE_COLOR", force_color)
    monkeypatch.setattr("indexing.cli.reporter.terminal_width", lambda: 80 if is_terminal else None)
    _, out, _ = run(f"ls m.hlo {option}")
    assert (COLOURS["name"] in out) == coloured
    assert ("\x1b" in out) == coloured


def test_a_file_has_colours_only_on_request(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexing.cli.reporter.terminal_width", lambda: 80)
    run("ls m.hlo -o plain")
    run("ls m.hlo --color always -o coloured")
    assert "\x1b" not in Path("plain").read_text()
    assert COLOURS["name"] in Path("coloured").read_text()


def test_a_quiet_run_prints_results_and_errors_only(run: Run) -> None:
    for line, note in (
        ("maps m.hlo --verify", "verified"),
        ("check strange.hlo", "warning: "),
        ("maps strange.hlo --format isl", "note: "),
    ):
        status, out, err = run(line)
        assert note in err
        assert run(f"{line} -q") == (status, out, "")
    status, _, err = run("ls none.hlo --quiet")
    assert status == 1
    assert err.startswith("error[io]: none.hlo")


@pytest.mark.parametrize(
    ("after", "word", "style"),
    [
        ("negate(p)", "equal", ""),
        ("abs(p)", "differs", "unknown"),
        ("add(p, p)", "differs", "unknown"),
    ],
)
def test_outcomes_have_colours(
    after: str, word: str, style: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name, op in (("a.hlo", "negate(p)"), ("b.hlo", after)):
        text = f"ENTRY e {{ p = f32[2] parameter(0)  ROOT r = f32[2] {op} }}"
        (tmp_path / name).write_text(text)
    cli.run(["diff", f"{tmp_path}/a.hlo", f"{tmp_path}/b.hlo", "--color", "always"])
    out = capsys.readouterr().out
    assert word in out
    if style:
        assert f"{COLOURS[style]}{word}{COLOURS['end']}" in out
