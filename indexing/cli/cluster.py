"""``--scheduler``: the workers of a Dask cluster answer the files.

``local:N`` starts a cluster of this machine, for this command alone.  Only processes that have its
certificate can connect to it: a Dask scheduler runs any function that it receives.
"""

from __future__ import annotations

import logging
import os
import signal
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from indexing.cli import dispatch
from indexing.cli.dispatch import ClusterError
from indexing.cli.tasks import Task
from indexing.cli.workers import WorkerDeath, block_interrupts

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

Argument = TypeVar("Argument")
Result = TypeVar("Result")

LOCAL: Final = "local:"
CONNECT: Final = 10.0  # seconds that a scheduler has to answer
NOT_INSTALLED: Final = "--scheduler needs Dask, which is not installed"
INSTALL: Final = "install it: pip install 'hlo-indexing[dask]'"
START_SCHEDULER: Final = "start one: dask scheduler; or use --scheduler local:N"
NAME_CERTIFICATE: Final = "name the files in Dask's configuration, distributed.comm.tls"
KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)  # on Windows, SIGTERM kills
LOCAL_ADDRESS: Final = "127.0.0.1"
LOCAL_CONFIG: Final = {
    # a task that is given up after the death of one worker is repeated alone
    "distributed.scheduler.allowed-failures": 0,
    # no pages about the tasks
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # measurements, and transfers between workers: three quarters of the time of idle processes
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.tick.interval": "500ms",
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.work-stealing": False,
    "distributed.worker.profile.enabled": False,
}
"""Settings of a cluster on this machine, which only the loopback interface serves."""


class Cluster:
    """The workers of a Dask scheduler; connected when they are used first.

    Args:
        scheduler: ``local:N``, ``tcp://HOST:PORT`` or ``tls://HOST:PORT``.
        sends_text: send the contents of the file of each task, not its path.
        note: called with a message if there are no workers.

    >>> cluster = Cluster("local:2", sends_text=False, note=print)
    >>> list(cluster.results(abs, [-3, 5, -7]))  # doctest: +SKIP
    [3, 5, 7]
    >>> cluster.close()
    """

    option: ClassVar[str] = "--scheduler"

    def __init__(self, scheduler: str, sends_text: bool, note: Callable[[str], None]) -> None:
        self.scheduler = scheduler
        self.sends_text = sends_text
        self._note = note
        self._client: Client | None = None
        self._resources = ExitStack()

    @property
    def jobs(self) -> int:
        """The number of tasks that the workers compute at a time.

        Raises:
            ClusterError: as `results`.
        """
        if self.scheduler.startswith(LOCAL):
            return int(self.scheduler.removeprefix(LOCAL))
        return max(1, len(self._connect_once().scheduler_info(n_workers=-1)["workers"]))

    def results(
        self, function: Callable[[Argument], Result], tasks: Sequence[Argument]
    ) -> Generator[Result | WorkerDeath]:
        """Yield ``function(task)`` for each task, in order, computed by the workers.

        If a worker dies, Dask repeats its task.  A task that it gives up is repeated once, alone;
        if it gives it up again, the result is a `WorkerDeath`.

        Args:
            function: a function of a module, which workers import.
            tasks: its arguments.
        Raises:
            ClusterError: Dask is not installed, there is no connection or no worker, or the
                versions of a worker or of the scheduler differ from those here.
        """
        sent = map(self._send_task, tasks)
        return dispatch.results(self._connect_once(), function, sent, self._note)

    def _send_task(self, task: Any) -> Any:
        """Return what the worker gets of a task."""
        if not isinstance(task, Task):
            return task
        return task.with_contents() if self.sends_text else task.with_place()

    def close(self) -> None:
        """Disconnect; end a cluster that was started for this command."""
        self._resources.close()
        self._client = None

    def _connect_once(self) -> Client:
        if self._client is None:
            self._client = self._resources.enter_context(connect(self.scheduler))
        return self._client


@contextmanager
def connect(scheduler: str) -> Iterator[Client]:
    """Connect to a scheduler, or start a cluster, for the time of the block.

    Raises:
        ClusterError: as `Cluster.results`.
    """
    try:
        from distributed import Client
    except ImportError:
        raise ClusterError(NOT_INSTALLED, INSTALL) from None
    with ExitStack() as resources:
        resources.enter_context(_silence())
        address: Any = scheduler
        if scheduler.startswith(LOCAL):
            workers = int(scheduler.removeprefix(LOCAL))
            address = resources.enter_context(_local_cluster(workers))
        if scheduler.startswith("tls://"):
            _check_certificate()
        try:
            client = Client(address, timeout=CONNECT, set_as_default=False)
        except OSError:
            reason = f"no scheduler answers within {CONNECT:g} s"
            raise ClusterError(reason, START_SCHEDULER) from None
        except ValueError as error:  # the address has the form of one
            raise ClusterError(f"no address: {error}", START_SCHEDULER) from None
        yield resources.enter_context(client)


@contextmanager
def _local_cluster(workers: int) -> Iterator[LocalCluster]:
    """Start `workers` processes of one thread; kill them at the end of the block."""
    import dask
    from distributed import LocalCluster, Security

    try:
        security = Security.temporary()
    except ImportError:  # no `cryptography`
        raise ClusterError(NOT_INSTALLED, INSTALL) from None
    with ExitStack() as resources:
        folder = resources.enter_context(TemporaryDirectory(prefix="hlo-indexing-"))
        settings = {**LOCAL_CONFIG, "temporary-directory": folder}
        resources.enter_context(dask.config.set(settings))
        if os.name == "posix":
            resource_tracker.ensure_running()  # starting it unblocks SIGINT
        with block_interrupts():  # the thread of the cluster, and its workers, inherit the mask
            cluster = LocalCluster(
                n_workers=0,
                threads_per_worker=1,
                processes=True,
                host=LOCAL_ADDRESS,
                dashboard_address=f"{LOCAL_ADDRESS}:0",
                worker_dashboard_address=f"{LOCAL_ADDRESS}:0",
                memory_limit=0,  # no limit, as with --jobs
                local_directory=folder,
                security=security,
                silence_logs=logging.CRITICAL,
            )
        resources.enter_context(cluster)
        resources.callback(_kill_workers, cluster)
        cluster.scale(workers)
        yield cluster


def _kill_workers(cluster: LocalCluster) -> None:
    """Kill all workers, which may have long tasks, and start no others in their places."""
    for nanny in cluster.workers.values():
        nanny.close_gracefully()
        with suppress(OSError, TypeError):  # it ended, or it has not started
            os.kill(nanny.pid, KILL)


def _check_certificate() -> None:
    """Reject a configuration of Dask without a certificate for this process.

    Raises:
        ClusterError: there is none, or a file cannot be read.
    """
    from distributed import Security

    reason = "Dask's configuration has no certificate"
    try:
        if Security().get_connection_args("client")["ssl_context"] is not None:
            return
    except OSError as error:  # also an invalid certificate
        reason = f"the certificate cannot be read: {error.strerror or error}"
    raise ClusterError(reason, NAME_CERTIFICATE)


@contextmanager
def _silence() -> Iterator[None]:
    """Print no messages of Dask: the command reports what fails."""
    names = ["distributed", *[n for n in logging.root.manager.loggerDict if "distributed." in n]]
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
