"""Errors of reading and writing files: one line, which has the path once and no error number."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import Run, runner

# fmt: off
LINES = [
    # command line                                        the path in its error
    ("maps x.hlo",                                        "x.hlo"),
    ("maps m.hlo/x",                                      "m.hlo/x"),
    ("maps m.hlo -o m.hlo",                               "m.hlo"),
    ("maps m.hlo -o ./m.hlo",                             "./m.hlo"),
    ("maps m.hlo -o no/x",                                "no/x"),
    ("maps m.hlo --resume dir",                           "dir"),
    ("maps m.hlo --resume m.hlo",                         "m.hlo"),
    ("check x.hlo --format json",                         "x.hlo"),
    ("run x.hlo",                                         "x.hlo"),
    ("run m.hlo --inputs x.npz",                          "x.npz"),
    ("run m.hlo --inputs dir",                            "dir"),
    ("run m.hlo -o dir",                                  "dir"),
    ("diff m.hlo x.hlo",                                  "x.hlo"),
    ("diff m.hlo m.hlo --save-inputs m.hlo",              "m.hlo"),
    ("passes x",                                          "x"),
    ("passes dir",                                        "dir"),
    ("passes one",                                        "one"),
    ("report dir",                                        "dir"),
    ("tile x.hlo",                                        "x.hlo"),
    ("tile m.hlo --format svg --at 0 --sizes 2 -o m.hlo", "m.hlo"),
]
# fmt: on


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text("ENTRY e { p = f32[4] parameter(0)  ROOT n = f32[4] negate(p) }")
    Path("dir").mkdir()
    Path("one").mkdir()
    Path("one", "module_0001.f.0001.p.after_dce.before_cse.txt").write_text("")
    return runner(capsys)


@pytest.mark.parametrize(("line", "path"), LINES)
def test_an_error_has_its_path_once(run: Run, line: str, path: str) -> None:
    status, out, err = run(line)
    assert (status, out) == (1, "")
    (error,) = [each for each in err.splitlines() if each.startswith("error")]
    code, place, reason = error.split(": ", 2)
    assert (code, place) == ("error[io]", path)
    assert "Errno" not in reason
    words = reason.replace("'", " ").split()
    assert path not in [word.rstrip(":,") for word in words], error


@pytest.mark.parametrize("is_short", [False, True])
def test_a_journal_that_cannot_be_written_is_named(
    run: Run, is_short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int, line: bytes) -> int:
        if is_short:
            return len(line) - 1
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.write", fail)
        status, _, err = run("check m.hlo --resume done -o out")
    full = "No space left on device"
    reason = "the journal is cut off: the disk may be full" if is_short else full
    assert status == 1
    assert f"error[io]: done: {reason}\n" in err
