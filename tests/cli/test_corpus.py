"""Folders as files, ``--resume`` after a run that was killed anywhere, and the totals."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from indexing import cli
from indexing.cli import journal as journals
from indexing.cli.journal import Journal
from indexing.cli.reporter import Reporter
from tests.cli.running import Run, runner, validator

GOOD = "HloModule m ENTRY e {{ p = f32[3,{0}] parameter(0)  a = f32[3,{0}] negate(p) ROOT r = f32[{0},3] transpose(a), dimensions={{1,0}} }}"  # noqa: E501
FAULTY = "ENTRY e { p = f32[3] parameter(0)  q = f32[4] negate(p)  ROOT n = f32[3] negate(p) }"
COMMANDS = ["maps --all", "summary", "bytes", "check", "validate --no-xla"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys)


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a folder of seven modules, three of which have errors."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "dumps"
    folder.mkdir()
    for number in (1, 2, 10):
        (folder / f"m{number}.hlo").write_text(GOOD.format(number))
    (folder / "faulty.hlo").write_text(FAULTY)
    (folder / "unfinished.hlo").write_text("ENTRY e {")
    (folder / "empty.hlo").write_text("")
    (folder / "report.ll").write_text("; ModuleID\n")
    (folder / "module_0001.jit_f.before_optimizations.txt").write_text(GOOD.format(5))
    return folder


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("notation", ["text", "json"])
def test_a_folder_gives_the_records_of_its_modules(
    command: str, notation: str, corpus: Path, run: Run
) -> None:
    names = [
        *("empty", "faulty", "m1", "m2", "m10"),
        *("module_0001.jit_f.before_optimizations", "unfinished"),
    ]
    files = " ".join(f"dumps/{n}{'.txt' if 'jit' in n else '.hlo'}" for n in names)
    _, expected, errors = run(f"{command} {files} --format {notation}")
    status, out, err = run(f"{command} dumps --format {notation}")
    note, total = err.splitlines()[0], next(x for x in err.splitlines() if x.startswith("total"))
    assert (status, out) == (1, expected)
    assert note == "note: dumps: 7 modules (1 before_optimizations); 1 other file: 1 .ll"
    assert total.startswith("total: 7 files, 3 failed, ")
    assert errors in err
    assert run(f"{command} dumps --format {notation} --jobs 2")[:2] == (1, expected)


def test_a_stage_or_a_pattern_selects_files(corpus: Path, run: Run) -> None:
    out = run("check dumps --stage before_optimizations -q")[1]
    assert out == "dumps/module_0001.jit_f.before_optimizations.txt: ok, 3 instructions\n"
    out = run("check dumps --include 'm1*' --include m2.hlo -q")[1]
    assert [line.partition(":")[0] for line in out.splitlines()] == [
        *("dumps/m1.hlo", "dumps/m2.hlo", "dumps/m10.hlo")
    ]


def test_a_folder_without_modules_is_an_error(corpus: Path, run: Run) -> None:
    (corpus / "none").mkdir()
    (corpus / "none" / "a.ll").touch()
    status, out, err = run("check dumps/none dumps/m1.hlo")
    assert (status, out) == (1, "dumps/m1.hlo: ok, 3 instructions\n")
    assert err.startswith("error[folder]: dumps/none: no module, but 1 .ll: expected *.hlo, ")
    assert "XLA_FLAGS='--xla_dump_to=dumps/none --xla_dump_hlo_as_text'" in err
    status, _, err = run("check dumps --stage passes")
    assert status == 1
    assert err.startswith("error[folder]: dumps: none of 7 modules is selected\n")


def end_of(run_: Callable[[], int]) -> int:
    """Run in a child process, which may kill itself; return its status, or the negative signal."""
    child = os.fork()
    if child == 0:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        os._exit(run_())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_at(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, count: int) -> None:
    """Kill the process at call number `count` of a method, before the call."""
    method, calls = getattr(owner, name), [0]

    def count_call(*arguments: Any) -> Any:
        calls[0] += 1
        if calls[0] == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return method(*arguments)

    monkeypatch.setattr(owner, name, count_call)


PLACES: list[tuple[Any, str]] = [(Reporter, "print"), (Journal, "add"), (journals.os, "write")]  # type: ignore[attr-defined]


@pytest.mark.parametrize("owner, name", PLACES, ids=lambda place: str(place)[:20])
@pytest.mark.parametrize("has_output", [True, False])
@pytest.mark.parametrize("jobs", ["", " --jobs 2"])
def test_runs_that_are_killed_anywhere_give_the_records_of_one_run(
    owner: Any,
    name: str,
    has_output: bool,
    jobs: str,
    corpus: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each run is killed at a later call, until one is complete."""
    whole = run("maps dumps --all --format json")[1]
    line = f"maps dumps --all --format json --resume journal{jobs}"
    killed = 0
    for count in range(1, 99, 1 if name == "add" else 3):

        def killed_run(count: int = count) -> int:
            kill_at(monkeypatch, owner, name, count)
            if has_output:
                return cli.run([*line.split(), "-o", "out"])
            with open("out", "a", buffering=1) as sys.stdout:
                return cli.run(line.split())

        if (status := end_of(killed_run)) != -signal.SIGKILL:
            break
        killed += 1
    assert status == 1  # some files have errors
    assert killed >= 2
    out = Path("out").read_text()
    if has_output:
        assert out == whole
        return
    # a run that is killed while it writes a file, or before the journal, writes the file again
    assert list(dict.fromkeys(out.splitlines())) == list(dict.fromkeys(whole.splitlines()))
    entries = [json.loads(each) for each in Path("journal").read_text().splitlines()[1:]]
    records = [json.loads(each) for each in whole.splitlines()]
    assert [each["file"] for each in entries] == list(dict.fromkeys(r["file"] for r in records))


def test_a_changed_file_is_answered_again(corpus: Path, run: Run) -> None:
    line = "check dumps/m1.hlo dumps/m2.hlo --resume journal"
    run(line)
    (corpus / "m2.hlo").write_text(FAULTY)
    status, out, err = run(line)
    assert (status, out) == (1, "dumps/m2.hlo: 1 error, 3 instructions\n")
    assert "note: 1 of 2 files are done, by the journal journal\n" in err
    assert run(line)[:2] == (1, "")  # an error in a file that is done
    assert run("check dumps/m2.hlo dumps/m2.hlo --resume journal")[1] == out  # given again


def test_files_that_failed_without_results_are_tried_again(corpus: Path, run: Run) -> None:
    names = "dumps/m1.hlo later.hlo dumps/unfinished.hlo dumps/faulty.hlo"
    line = f"maps {names} --all --resume journal"
    status, _, err = run(line)
    assert (status, "error[io]: later.hlo" in err, "error[syntax]" in err) == (1, True, True)
    (corpus.parent / "later.hlo").write_text(GOOD.format(7))
    status, later, err = run(line)
    assert (status, "error[syntax]" in err, "error[shape]:" in err) == (1, True, False)
    assert later == run("maps later.hlo --all")[1]
    assert "failed: dumps/faulty.hlo: error[shape]" in err
    assert "total: 4 files (2 resumed), 2 failed, 9 instructions, " in err


def test_a_file_that_crashes_leaves_no_results_and_is_tried_again(
    corpus: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from indexing.cli import all_answers, map_question

    printed = all_answers.answer_all

    def crashes(reporter: Reporter, module: Any, *arguments: Any) -> None:
        printed(reporter, module, *arguments)
        if "m2" in module.filename:
            raise MemoryError

    names = "dumps/m1.hlo dumps/m2.hlo dumps/m10.hlo"
    whole = run(f"maps {names} --all")[1]
    second = run("maps dumps/m2.hlo --all")[1]
    for journal, results in (("a", "-o out"), ("b", "")):
        line = f"maps {names} --all --resume {journal} {results}"
        with monkeypatch.context() as patch:
            patch.setattr(map_question, "answer_all", crashes)
            status, out, err = run(line)
        assert (status, "error[memory]" in err) == (1, True)
        out = out or Path("out").read_text()
        assert out == whole.replace(second, "")
        assert run(line)[0] == 0
    assert Path("out").read_text() == out + second


def test_another_question_or_file_is_refused(corpus: Path, run: Run) -> None:
    run("check dumps/m1.hlo --resume journal -o out")
    Path("old").write_text('{"journal": 1, "question": {}}\n{"file": "m.hlo", "lines": 3}\n')
    for line, reason in [
        ("check dumps --resume old", "old is the journal of another run: version is "),
        ("check dumps --resume journal", "--output-file is -, and was "),
        ("check dumps --resume journal -o out --format json", "--format is 'json', and was 'text'"),
        ("summary dumps --resume journal -o out", "command is summary, and was check"),
        ("check dumps --resume out", "out is not a journal of --resume"),
        ("check - --resume new", "--resume cannot be used with standard input"),
    ]:
        status, out, err = run(line)
        assert (status, out, reason in err) == (2, "", True), (line, err)
    Path("out").write_text("")
    status, _, err = run("check dumps --resume journal -o out")
    assert (status, "the file has 0 bytes, and the journal counts" in err) == (1, True)
    assert (corpus / "m1.hlo").read_text() == GOOD.format(1)


def test_a_journal_is_used_by_one_run_at_a_time(corpus: Path, run: Run) -> None:
    run("check dumps/m1.hlo --resume journal")
    question = json.loads(Path("journal").read_text().splitlines()[0])["question"]
    journal = Journal("journal", {k: v for k, v in question.items() if k != "version"})
    status = end_of(lambda: cli.run(["check", "dumps", "--resume", "journal"]))
    journal.close()
    assert status == 2
    assert end_of(lambda: cli.run(["check", "dumps", "--resume", "journal"])) == 1


def test_a_name_that_only_finished_files_have_is_no_error(corpus: Path, run: Run) -> None:
    (corpus / "named.hlo").write_text("ENTRY e { ROOT named = f32[3] parameter(0) }")
    line = "maps dumps/named.hlo dumps/m1.hlo -i named --resume journal"
    assert run(line.replace("dumps/m1.hlo ", ""))[0] == 0
    status, out, err = run(line)
    assert (status, out, "error" in err) == (0, "", False)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("jobs", [1, 2])
def test_totals_count_files_and_failures(command: str, jobs: int, corpus: Path, run: Run) -> None:
    _, out, err = run(f"{command} dumps missing.hlo --totals --format json --jobs {jobs}")
    record = json.loads(out.splitlines()[-1])
    validator("totals").validate(record)
    totals = record["totals"]
    failures = {each["file"]: each["errors"] for each in totals["failures"]}
    assert (totals["files"], totals["failed"]) == (8, 4)
    assert failures["missing.hlo"] == {"io": 1}
    assert failures["dumps/faulty.hlo"] == {"shape": 1}
    assert totals["errors"]["io"] == 1
    checked = {"maps": 15, "check": 15, "validate": 8}
    assert totals["counts"]["instructions"] == checked.get(command.split()[0], 12)
    if command == "maps --all":
        records = [json.loads(line) for line in out.splitlines()[:-1]]
        grades = [each["grade"] for each in records if each["map"]]
        assert totals["counts"]["exact"] == len(grades) == grades.count("exact")
    assert "failed: missing.hlo: error[io]\n" in err
