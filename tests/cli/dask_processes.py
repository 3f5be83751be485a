"""A Dask scheduler and workers, each a process of this machine, for tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[2]
LOOPBACK = "127.0.0.1"
LIMIT = 120  # seconds in which a process of Dask has to start


class DaskProcesses:
    """A scheduler and its workers, which end with the block.

    Args:
        folder: for their files; workers run in it.
        names: the names of the first workers, for which this waits.
        environ: environment variables of all processes.
    """

    def __init__(self, folder: Path, *names: str, **environ: str) -> None:
        self.folder, self.names = folder, names
        self.environ = {**os.environ, "PYTHONPATH": str(ROOT), **environ}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.file = folder / "scheduler.json"
        self._resources = ExitStack()

    def __enter__(self) -> DaskProcesses:
        from distributed import Client

        with ExitStack() as resources:
            resources.callback(self._end)
            options = "--host", LOOPBACK, "--port", "0", "--no-dashboard"
            self._start("scheduler", *options, "--dashboard-address", f"{LOOPBACK}:0")
            self.address: str = self._describe()["address"]
            for name in self.names:
                self.start_worker(name)
            if self.names:
                with Client(self.address, set_as_default=False) as client:
                    client.wait_for_workers(len(self.names), timeout=LIMIT)
            self._resources = resources.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._resources.close()

    def start_worker(self, name: str, **environ: str) -> None:
        """Start a worker process without a nanny: it does not come back."""
        options = "--host", LOOPBACK, "--nthreads", "1", "--no-nanny"
        pages = "--no-dashboard", "--dashboard-address", f"{LOOPBACK}:0"
        self._start("worker", *options, *pages, "--name", name, name=name, **environ)

    def kill(self, name: str) -> None:
        """Kill a process."""
        self.processes[name].send_signal(signal.SIGKILL)

    def _start(self, kind: str, *options: str, name: str = "", **environ: str) -> None:
        name = name or kind
        with open(self.folder / f"{name}.log", "wb") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "dask", kind, *options, "--scheduler-file", str(self.file)],
                cwd=self.folder,
                env={**self.environ, **environ},
                stdout=log,
                stderr=log,
            )

    def _describe(self) -> Any:
        """Wait for the file that describes the scheduler."""
        for _ in range(10 * LIMIT):
            if self.file.exists() and (text := self.file.read_text()):
                return json.loads(text)
            if self.processes["scheduler"].poll() is not None:
                break
            time.sleep(0.1)
        raise AssertionError((self.folder / "scheduler.log").read_text())

    def _end(self) -> None:
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
