"""``diff --jobs`` prints what one process prints, also if workers die or time is up."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from indexing.cli import workers
from indexing.equivalence import shares
from tests.cli.running import Run, runner
from tests.equivalence import test_shares as samples

# fmt: off
FILES = [
    # outputs                            status  word
    ([samples.SCALED, samples.SQUARES],  0,      "equal over the reals"),
    ([samples.SCALED, samples.UNEQUAL],  1,      "differs"),
    ([samples.SCALED, samples.ROUNDED],  1,      "differs by rounding"),
    ([samples.SCALED, samples.CALLED],   3,      "undecided"),
    ([samples.SCALED],                   0,      "equal over the reals"),
]
# fmt: on


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command, which divides small modules too, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shares, "MIN_INSTRUCTIONS", 0)
    return runner(capsys)


def write(outputs: Sequence[tuple[str, ...]]) -> None:
    for name, module in zip("ab", samples.pair_of(*outputs), strict=True):
        Path(f"{name}.hlo").write_text(module.source.text)


@pytest.mark.parametrize("options", ["", " --format json", " --map --cost --bitwise"])
@pytest.mark.parametrize("outputs, status, word", FILES)
def test_two_processes_print_what_one_prints(
    run: Run, outputs: Sequence[tuple[str, ...]], status: int, word: str, options: str
) -> None:
    write(outputs)
    alone = run(f"diff a.hlo b.hlo{options}")
    assert word in alone[1]
    assert alone[0] == (1 if "--bitwise" in options and status == 0 else status)
    assert run(f"diff a.hlo b.hlo{options} --jobs 2") == alone


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The results of the workers that a run has used."""
    received: list[Any] = []
    results = workers.results

    def record_results(*arguments: Any, **options: Any) -> Any:
        for each in results(*arguments, **options):
            received.append(each)
            yield each

    monkeypatch.setattr(workers, "results", record_results)
    return received


def test_another_process_proves_its_share(run: Run, made: list[Any]) -> None:
    write([samples.SCALED, samples.SQUARES])
    assert run("diff a.hlo b.hlo -j 2")[0] == 0
    assert [len(each.proofs) for each in made] == [1]


def test_one_output_starts_no_process(run: Run, made: list[Any]) -> None:
    write([samples.SCALED])
    assert (run("diff a.hlo b.hlo -j 2")[0], made) == (0, [])


def test_small_modules_start_no_process(
    run: Run, made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "MIN_INSTRUCTIONS", 1_000)
    write([samples.SCALED, samples.SQUARES])
    assert (run("diff a.hlo b.hlo -j 2")[0], made) == (0, [])


def die(share: shares.OutputShare) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def wait(share: shares.OutputShare) -> None:
    signal.pause()


def test_the_share_of_a_worker_that_dies_is_compared_here(
    run: Run, made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    write([samples.SCALED, samples.SQUARES])
    alone = run("diff a.hlo b.hlo")
    monkeypatch.setattr(shares, "share_proofs", die)
    assert run("diff a.hlo b.hlo -j 2") == alone
    assert made == [workers.WorkerDeath.with_status(-9)]


def test_a_time_limit_ends_the_workers(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write([samples.SCALED, samples.SQUARES])
    monkeypatch.setattr(shares, "share_proofs", wait)
    status, out, err = run("diff a.hlo b.hlo -j 2 --time-limit 2s")
    assert (status, err) == (3, "")
    assert out.startswith("undecided: time: the comparison took more than 2 s")
    assert "equal formulas: output 0" in out
    assert multiprocessing.active_children() == []


def test_an_input_that_only_this_process_reads_is_compared_here(
    run: Run, made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    write([samples.SCALED, samples.SQUARES])
    with open("a.hlo") as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert (run("diff - b.hlo -j 2")[0], made) == (0, [])
