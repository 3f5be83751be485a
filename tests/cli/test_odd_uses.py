"""Odd values of options and files: a usage error or an error with its place, no internal error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from indexing import cli
from tests.cli import odd_uses
from tests.cli.running import Run, runner
from tests.oracles import sampled

NINES = "9" * 5000


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text(odd_uses.MODULE)
    return runner(capsys)


# fmt: off
ODD = [
    # use                                             status  error
    (f"check m.hlo --max-input-size {NINES}",         2,      "expected a size such as 512MiB"),
    (f"tile m.hlo --sizes 2,2 --cache {NINES}",       2,      "expected a size such as 512MiB"),
    (f"tile m.hlo --search --limits tiles={NINES}",   2,      "expected a size such as 512MiB"),
    ("check m.hlo --scheduler 'tcp://[::1'",          2,      "expected local:N, tcp://HOST:PORT"),
    ("check m.hlo --scheduler 'tcp://[::1:80'",       2,      "expected local:N, tcp://HOST:PORT"),
    (f"check m.hlo --scheduler local:{NINES}",        2,      "expected local:N, tcp://HOST:PORT"),
    ("check m.hlo -o ''",                             2,      "got an empty text"),
    ("check ''",                                      2,      "got an empty text"),
    ("check m.hlo --resume -",                        2,      "got standard output"),
    ("passes . --bisect /dev/stdout",                 2,      "got standard output"),
]
# fmt: on


@pytest.mark.parametrize("line, status, error", ODD, ids=lambda value: str(value)[:40])
def test_an_odd_value_is_an_error_with_its_reason(
    line: str, status: int, error: str, run: Run
) -> None:
    actual, out, err = run(line)
    assert (actual, out) == (status, "")
    assert error in err


def test_a_nul_in_a_path_is_a_usage_error(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["check", "m\0"], ["check", "m.hlo", "-o", "\0"], ["ls", "m.hlo", "\0"]):
        assert cli.run(words) == 2
        assert "with a NUL" in capsys.readouterr().err


@pytest.mark.parametrize("line", [1, 2])
def test_each_value_of_a_journal_is_checked(line: int, run: Run) -> None:
    """Any value of JSON in place of one that belongs there: another journal, or none."""
    run("check m.hlo --resume journal -o out")
    records = [json.loads(each) for each in Path("journal").read_text().splitlines()]
    for key in records[line - 1]:
        for value in odd_uses.JSON:
            changed: list[Any] = [dict(each) for each in records]
            if type(value) is type(records[line - 1][key]) and not isinstance(value, dict | list):
                continue
            changed[line - 1][key] = value
            Path("journal").write_text("".join(f"{json.dumps(each)}\n" for each in changed))
            before = Path("journal").read_bytes()
            status, out, err = run("check m.hlo --resume journal -o out")
            is_value = (key, value) in (("counts", {"x": 1}), ("counts", {}), ("matched", []))
            is_value |= (key, value) in (("matched", ["x"]), ("end", 0), ("end", None))
            if is_value:
                continue
            assert (status, out) == (1 if key == "end" and value == 10**30 else 2, ""), (key, value)
            assert f"line {line}: " in err or "is the journal of another run" in err or status == 1
            assert Path("journal").read_bytes() == before
    for value in odd_uses.JSON:
        changed = [*records]
        changed[line - 1] = value
        Path("journal").write_text("".join(f"{json.dumps(each)}\n" for each in changed))
        status, out, err = run("check m.hlo --resume journal -o out")
        assert (status, out, f"line {line}: " in err) == (2, "", True), value


@pytest.mark.sampled
def test_no_random_use_has_an_internal_error() -> None:
    for seed in sampled(range(0, 600, 20)):
        assert not list(odd_uses.faults(seed, 20))


@pytest.mark.parametrize("replacing", [UnboundLocalError("result"), OSError("closed"), None])
def test_an_interrupt_is_no_error_of_a_cluster_that_was_starting(
    replacing: Exception | None, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask fails in many ways while it closes what it was starting."""
    from indexing.cli import cluster

    def starts(self: object) -> None:
        raise KeyboardInterrupt

    def closes(self: object) -> None:
        if replacing is not None:
            raise replacing

    monkeypatch.setattr(cluster.Cluster, "_connect_once", starts)
    monkeypatch.setattr(cluster.Cluster, "close", closes)
    assert run("check m.hlo --scheduler local:2") == (130, "", "")
