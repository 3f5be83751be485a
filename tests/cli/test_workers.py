"""``maps --jobs``: workers end with the command, and the death of one costs one file."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from operator import methodcaller
from pathlib import Path

import pytest

from indexing.cli.workers import WorkerDeath, results

ROOT = Path(__file__).parents[2]
METHODS = ["fork", "spawn"]  # the defaults of Linux and macOS
MODULE = (
    "ENTRY e {{ p = f32[3,5] parameter(0)  ROOT {0} = f32[5,3] transpose(p), dimensions={{1,0}} }}"
)


@pytest.mark.parametrize("method", METHODS)
def test_results_are_in_the_order_of_the_tasks(method: str) -> None:
    assert list(results(abs, [-3, 5, -7, 11, -13], 2, method)) == [3, 5, 7, 11, 13]


class Mask:
    """A task that is loaded as the set of the signals that are blocked there."""

    def __reduce__(self) -> tuple[object, ...]:
        return signal.pthread_sigmask, (signal.SIG_BLOCK, ())


@pytest.mark.parametrize("method", ["spawn", "forkserver"])  # a forked one imports nothing
def test_the_imports_of_every_worker_cannot_be_interrupted(method: str) -> None:
    """A worker imports modules before it ignores SIGINT; its task is loaded at that time."""
    text = (
        "from indexing.cli.workers import results; from tests.cli.test_workers import Mask; "
        f"print(*[sorted(mask) for mask in results(list, [Mask(), Mask()], 2, {method!r})])"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.count("Signals.SIGINT") == 2, done.stdout


class Kill:
    """A task that sends a signal to its own process; signal 0 does nothing."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self) -> int:
        os.kill(os.getpid(), self.number)
        return 0


call = methodcaller("__call__")
ended = WorkerDeath.with_status


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_death_of_a_worker_costs_its_task(jobs: int) -> None:
    tasks = [signal.SIGKILL, 0, signal.SIGUSR1, 0, signal.SIGTERM]
    outcomes = list(results(call, [Kill(number) for number in tasks], jobs))
    assert outcomes == [ended(-9), 0, ended(-signal.SIGUSR1), 0, ended(-15)]


def test_a_worker_that_exits_is_dead() -> None:
    assert list(results(os._exit, [3, 0], 2)) == [ended(3), ended(0)]


def test_a_task_that_raises_costs_no_other() -> None:
    assert list(results(int, ["3", "x", "5"], 1)) == [
        3,
        WorkerDeath("raised ValueError: invalid literal for int() with base 10: 'x'"),
        5,
    ]


class KillWithinTheResult:
    """A task whose result fills the pipe, since its parent pauses; then its process is killed."""

    def __call__(self) -> bytes:
        os.kill(os.getppid(), signal.SIGSTOP)
        threading.Timer(0.3, self.kill).start()
        return b" " * (1 << 25)

    def kill(self) -> None:
        os.kill(os.getppid(), signal.SIGCONT)
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_killed_while_it_writes_its_result_is_dead() -> None:
    text = (
        "from indexing.cli.workers import results; from tests.cli.test_workers import *; "
        "tasks = [Kill(0), KillWithinTheResult(), Kill(0)]; "
        "print(list(results(call, tasks, 1)) == [0, ended(-9), 0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_a_worker_killed_between_two_tasks_costs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    from indexing.cli import workers

    outcome = workers._Worker.outcome

    def outcome_and_kill(worker: workers._Worker, future: Future[object]) -> object:
        received = outcome(worker, future)
        for child in multiprocessing.active_children():
            child.kill()
            child.join()
        return received

    monkeypatch.setattr(workers._Worker, "outcome", outcome_and_kill)
    assert list(results(abs, [-1, -2, -3], 1)) == [1, 2, 3]


def test_many_workers_are_not_too_many_open_files() -> None:
    text = (
        "import resource; from indexing.cli.workers import results; "
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]; "
        "resource.setrlimit(resource.RLIMIT_NOFILE, (32, hard)); "
        "print(list(results(abs, range(9), 9)) == list(range(9)))"
    )
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_closing_the_results_kills_the_workers() -> None:
    read, write = os.pipe()
    answers = results(call, [Kill(0), signal.pause], 2, "fork")
    assert next(answers) == 0
    answers.close()
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        pipe.read()  # ends when no process has the other end


class Started:
    """A task that leaves a file behind; the first one waits for the file of another."""

    def __init__(self, folder: Path, number: int, awaited: int | None = None) -> None:
        self.folder, self.number, self.awaited = folder, number, awaited

    def __call__(self) -> int:
        (self.folder / str(self.number)).touch()
        while self.awaited is not None and not (self.folder / str(self.awaited)).exists():
            time.sleep(0.001)
        return self.number


@pytest.mark.parametrize("ahead", [1, 3])
def test_results_ahead_of_a_slow_task_are_few(
    ahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from indexing.cli import workers

    monkeypatch.setattr(workers, "AHEAD", ahead)
    last = 2 * ahead - 1  # that starts before the first task ends
    tasks = [Started(tmp_path, 0, last), *[Started(tmp_path, number) for number in range(1, 9)]]
    answers = results(call, tasks, 2, "fork")
    assert next(answers) == 0
    started = {int(path.name) for path in tmp_path.iterdir()}
    assert started <= set(range(last + 1))
    assert list(answers) == list(range(1, 9))


COMMAND = """\
import multiprocessing, os, signal, time
from indexing import cli
from indexing.cli import tasks
answer = tasks.answer_task
def answered(task):
    match os.path.basename(task.file):
        case "killed.hlo":
            os.kill(os.getpid(), signal.SIGKILL)
        case "waits.hlo":
            print("waiting", flush=True)
            while True:
                time.sleep(1000)
    return answer(task)
tasks.answer_task = answered
multiprocessing.set_start_method("fork")  # so that workers have the function above
cli.main()
"""


def command(folder: Path, *names: str) -> subprocess.Popen[str]:
    """Start ``maps --jobs 2`` for modules of these names; its process group has no other member."""
    for name in names:
        (folder / name).write_text(MODULE.format(name.partition(".")[0]))
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, "maps", *names, "--jobs", "2"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_a_killed_worker_is_reported_with_its_file_and_the_others_are_answered(
    tmp_path: Path,
) -> None:
    with command(tmp_path, "a.hlo", "killed.hlo", "b.hlo", "c.hlo") as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == 1
    assert [line for line in out.splitlines() if "transpose" in line] == [
        f"{name}.hlo: e: {name} = f32[5,3] transpose, output-to-input" for name in "abc"
    ]
    assert err == (
        "error[worker]: killed.hlo: no answer: the worker process was killed by signal 9 (Killed)\n"
        "  = help: if memory ran out, use fewer --jobs\n"
    )


STATUS = {
    signal.SIGKILL: -signal.SIGKILL,
    signal.SIGTERM: 128 + signal.SIGTERM,
    signal.SIGHUP: 128 + signal.SIGHUP,
    signal.SIGINT: 130,
}


@pytest.mark.parametrize("number", STATUS)
@pytest.mark.parametrize("whole_group", [False, True])
def test_workers_end_with_the_command_however_it_ends(
    number: signal.Signals, whole_group: bool, tmp_path: Path
) -> None:
    """A terminal sends SIGINT and SIGHUP to the whole process group, `kill` to the command only."""
    names = "waits.hlo", "b.hlo", "waits.hlo"
    with command(tmp_path, *names) as process:
        assert process.stdout is not None
        for _ in range(2):
            assert process.stdout.readline() == "waiting\n"
        (os.killpg if whole_group else os.kill)(process.pid, number)
        # standard output ends when neither the command nor a worker is alive
        out, err = process.communicate(timeout=300)
    assert process.returncode == STATUS[number]
    assert (out, err) == ("", "interrupted\n" if number == signal.SIGINT else "")
