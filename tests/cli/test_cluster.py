"""``--scheduler``: workers of Dask print what one process prints, also if one of them is killed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from indexing.cli import cluster
from indexing.cli.cluster import Cluster
from indexing.cli.dispatch import LOST, ClusterError
from indexing.cli.reporter import Reporter
from indexing.cli.worker_options import SCHEMES, SchedulerAddress
from tests.cli.cluster_tasks import POISON, double, double_or_die, double_or_fail
from tests.cli.dask_processes import LOOPBACK, ROOT, DaskProcesses
from tests.cli.running import runner

EXAMPLES = [ROOT / "examples" / name for name in ("attention.opt.hlo", "layernorm.opt.hlo")]
BROKEN = "ENTRY main { p = f32[3] parameter(0)  ROOT n = f32[4] negate(p) }"
COMMANDS = [
    *("maps --all", "maps --all --to parameters --format json", "maps -i nowhere"),
    *("summary", "summary --format json", "check", "check --format json"),
    *("bytes", "bytes --format json", "validate --max-elements 500 --no-xla"),
    "validate --max-elements 500 --no-xla --format json",
]

with_dask = pytest.mark.skipif(
    find_spec("distributed") is None or find_spec("cryptography") is None,
    reason="needs the extra [dask]",
)


FORMS = "expected local:N, tcp://HOST:PORT or tls://HOST:PORT, got"
USAGE = [
    ("--scheduler 10.0.0.7:8786", f"{FORMS} '10.0.0.7:8786'"),
    ("--scheduler local:0", f"{FORMS} 'local:0'"),
    ("--scheduler tcp://h:1 -j2", "--scheduler cannot be used with --jobs"),
    ("--send names", "--send needs --scheduler"),
    ("--scheduler local:1 --explain", "--explain cannot be used with --scheduler"),
]


@pytest.mark.parametrize("options, message", USAGE)
def test_wrong_options(capsys: pytest.CaptureFixture[str], options: str, message: str) -> None:
    status, out, err = runner(capsys, "maps", str(EXAMPLES[0]))(options)
    assert (status, out) == (2, "")
    assert message in err


def test_each_scheme_is_completed() -> None:
    address = SchedulerAddress()
    for scheme in SCHEMES:
        (item,) = address.shell_complete(None, None, scheme[:2])  # type: ignore[arg-type]
        assert item.value == scheme


def test_without_dask_the_error_names_the_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert runner(capsys, "check", str(EXAMPLES[0]))("--scheduler local:2") == (
        1,
        "",
        "error[cluster]: local:2: --scheduler needs Dask, which is not installed\n"
        "  = help: install it: pip install 'hlo-indexing[dask]'\n",
    )


@with_dask
def test_no_scheduler_at_the_address(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "CONNECT", 0.3)
    with socket.socket() as unused:
        unused.bind((LOOPBACK, 0))  # nobody listens
        address = f"tcp://{LOOPBACK}:{unused.getsockname()[1]}"
        assert runner(capsys, "check", str(EXAMPLES[0]))(f"--scheduler {address}") == (
            1,
            "",
            f"error[cluster]: {address}: no scheduler answers within 0.3 s\n"
            "  = help: start one: dask scheduler; or use --scheduler local:N\n",
        )


@with_dask
@pytest.mark.parametrize(
    "certificate, reason",
    [
        (None, "Dask's configuration has no certificate"),
        ("missing.pem", "the certificate cannot be read: "),
    ],
)
def test_tls_needs_a_certificate(
    certificate: str | None, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import dask

    names = ("ca-file", "client.cert", "client.key")
    settings = {f"distributed.comm.tls.{name}": certificate for name in names}
    with dask.config.set(settings):
        run = runner(capsys, "check", str(EXAMPLES[0]))
        status, out, err = run("--scheduler tls://127.0.0.1:1")
    assert (status, out) == (1, "")
    assert err.startswith(f"error[cluster]: tls://127.0.0.1:1: {reason}")
    assert err.endswith("  = help: name the files in Dask's configuration, distributed.comm.tls\n")


@with_dask
def test_a_local_cluster_reports_a_poisonous_task_and_computes_all_others() -> None:
    with closing(Cluster("local:2", sends_text=False, note=lambda _: None)) as workers:
        assert workers.jobs == 2
        assert list(workers.results(double, range(50))) == [2 * number for number in range(50)]
        outcomes = [*workers.results(double_or_die, range(20))]
        reason = str(outcomes.pop(POISON))
        assert reason.startswith("ended on tls://127.0.0.1:")
        assert reason.count("tls://127.0.0.1:") == 2
        assert outcomes == [2 * number for number in range(20) if number != POISON]
        assert str([*workers.results(double_or_fail, range(9))][POISON]) == (
            "raised ValueError: seven"
        )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("files")
    (folder / "broken.hlo").write_text(BROKEN)
    (folder / "plain.hlo.gz").write_bytes(b"not compressed")
    names = "broken.hlo", "missing.hlo", "plain.hlo.gz"
    return [*map(str, EXAMPLES), *[str(folder / name) for name in names], str(EXAMPLES[1])]


@pytest.fixture(scope="module")
def dask_processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskProcesses]:
    with DaskProcesses(tmp_path_factory.mktemp("dask"), "alice", "bob") as processes:
        yield processes


@with_dask
@pytest.mark.slow
@pytest.mark.parametrize("line", COMMANDS)
def test_a_cluster_prints_what_one_process_prints(
    line: str, files: list[str], dask_processes: DaskProcesses, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *options = line.split()
    run = runner(capsys, command, *files, *options)
    alone = run("")
    assert alone[0] == 1  # one file is missing
    assert run("--jobs 2") == alone
    assert run(f"--scheduler {dask_processes.address}") == alone
    assert run(f"--scheduler {dask_processes.address} --send names") == alone


@with_dask
@pytest.mark.slow
def test_a_local_cluster_prints_what_one_process_prints(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run = runner(capsys, "maps", *files, "--all", "--format", "json")
    alone = run("")
    assert run("--scheduler local:2") == alone
    assert run("--scheduler local:1 --send text") == alone


@with_dask
@pytest.mark.slow
def test_the_death_of_a_worker_in_the_middle_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [str(path) for path in EXAMPLES] * 6
    run = runner(capsys, "maps", *files, "--all", "--format", "json")
    alone = run("")
    with DaskProcesses(tmp_path, "alice", "bob") as processes:
        prints = Reporter.print
        printed = 0

        def print_and_kill(reporter: Reporter, *lines: str) -> None:
            nonlocal printed
            printed += 1
            if printed == 10:
                processes.kill("alice")
            prints(reporter, *lines)

        monkeypatch.setattr(Reporter, "print", print_and_kill)
        assert run(f"--scheduler {processes.address}") == alone
        assert printed > 10
        assert processes.processes["alice"].wait() == -signal.SIGKILL


@with_dask
@pytest.mark.slow
def test_a_scheduler_without_a_second_chance_blames_only_the_poisonous_task(
    tmp_path: Path,
) -> None:
    """It gives up a task when one worker dies; a worker that is retired does not die."""
    from distributed import Client

    names = "alice", "bob", "carol", "dave"
    setting = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with DaskProcesses(tmp_path, *names, **setting) as processes:
        workers = Cluster(processes.address, sends_text=False, note=pytest.fail)
        with closing(workers), Client(processes.address, set_as_default=False) as other:
            results = workers.results(double_or_die, range(60))
            outcomes = [next(results)]
            other.retire_workers(names=["alice"])
            outcomes += results
        assert sum(each.poll() == -signal.SIGKILL for each in processes.processes.values()) == 2
    assert str(outcomes.pop(POISON)).startswith("ended on tcp://")
    assert outcomes == [2 * number for number in range(60) if number != POISON]


@with_dask
@pytest.mark.slow
def test_a_lost_scheduler_is_an_error(tmp_path: Path) -> None:
    with DaskProcesses(tmp_path, "alice") as processes:
        workers = Cluster(processes.address, sends_text=False, note=pytest.fail)
        with closing(workers):
            results = workers.results(double, range(1000))
            assert next(results) == 0
            processes.kill("scheduler")
            with pytest.raises(ClusterError, match=LOST[0]):
                list(results)


@with_dask
@pytest.mark.slow
def test_workers_with_another_checkout_are_rejected(tmp_path: Path) -> None:
    for package in ("hlo", "indexing", "simplifier", "tests"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tmp_path / "other" / package, ignore=ignored)
    with open(tmp_path / "other" / "indexing" / "maps" / "compose.py", "a") as file:
        file.write("# changed\n")
    with DaskProcesses(tmp_path) as processes:
        processes.start_worker("old", PYTHONPATH=str(tmp_path / "other"))
        workers = Cluster(processes.address, sends_text=False, note=lambda _: None)
        with closing(workers), pytest.raises(ClusterError) as caught:
            list(workers.results(double, [1]))
    assert caught.value.reason.startswith(f"worker tcp://{LOOPBACK}:")
    assert f"has hlo-indexing {version('hlo-indexing')} (" in caught.value.reason
    assert caught.value.help.startswith("install the same versions")


@with_dask
@pytest.mark.slow
def test_a_scheduler_without_hlo_indexing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "indexing.py").write_text("")  # shadows the package in this folder
    with DaskProcesses(tmp_path, "alice") as processes:
        workers = Cluster(processes.address, sends_text=False, note=lambda _: None)
        with closing(workers), pytest.raises(ClusterError, match="the scheduler cannot import"):
            list(workers.results(double, [1]))


INTERRUPTED = """\
from indexing import cli
from indexing.cli import tasks
import sys
if __name__ == "__main__":
    replay = tasks.BufferedReporter.replay
    def replay_and_tell(record, reporter):
        print("waiting", file=sys.stderr, flush=True)
        replay(record, reporter)
    tasks.BufferedReporter.replay = replay_and_tell
    cli.main()
"""


@with_dask
@pytest.mark.slow
@pytest.mark.parametrize(
    "number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_a_local_cluster_ends_with_the_command(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    script = tmp_path / "command.py"
    script.write_text(INTERRUPTED)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    files = [str(path) for path in EXAMPLES] * 50
    with subprocess.Popen(
        [sys.executable, str(script), "maps", *files, "--all", "--scheduler", "local:2"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting\n"
        os.killpg(process.pid, number)
        # standard error ends when neither the command nor a worker is alive
        err = process.stderr.read().replace("waiting\n", "")
    assert process.returncode == status
    assert err == ("interrupted\n" if number == signal.SIGINT else "")
    assert not [*scratch.iterdir()]
