"""Options that choose the processes that answer: this one, others here, or those of a cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import wraps
from typing import Any, Final, cast

import click
from click.shell_completion import CompletionItem

from indexing.cli.completion import complete_names
from indexing.cli.options import F, jobs_option, with_options
from indexing.cli.parsed_text import ParsedText
from indexing.cli.reporter import Reporter
from indexing.cli.workers import Processes, Workers

SCHEMES = ("local:", "tcp://", "tls://")
"""The forms of the address of a scheduler."""


_ADDRESS: Final = re.compile(
    r"local:0{0,9}[1-9]\d{0,4}|(tcp|tls)://([\w.-]+|\[[0-9A-Fa-f:.]+(%\w+)?\]):\d{1,5}/?", re.ASCII
)
"""A host is a name, an IPv4 address, or an IPv6 address in brackets."""


class SchedulerAddress(ParsedText):
    """The address of a Dask scheduler, or ``local:N``.

    >>> SchedulerAddress().convert("tcp://10.0.0.7:8786", None, None)
    'tcp://10.0.0.7:8786'
    """

    name = "address"

    def parse(self, text: str) -> str:
        if not _ADDRESS.fullmatch(text):
            raise ValueError(f"expected local:N, tcp://HOST:PORT or tls://HOST:PORT, got {text!r}")
        return text

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[Any]]:
        return complete_names(SCHEMES, incomplete)


_OPTIONS = [
    jobs_option,
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        type=SchedulerAddress(),
        help="Use the workers of a Dask scheduler, tcp://HOST:PORT or tls://HOST:PORT, or start N "
        "with local:N; the output does not change",
    ),
    click.option(
        "--send",
        type=click.Choice(["text", "names"]),
        help="Send workers the text of each FILE, or its path if they have the same files; by "
        "default the text, with local:N the path",
    ),
]


def workers_options(command: F) -> F:
    """The options that choose the processes: the argument `workers`, None for this process."""

    @wraps(command)
    def with_workers(
        *arguments: Any, jobs: int, scheduler: str | None, send: str | None, **options: Any
    ) -> None:
        if scheduler is None:
            if send is not None:
                raise click.UsageError("--send needs --scheduler")
            command(*arguments, workers=Processes(jobs) if jobs > 1 else None, **options)
            return
        if jobs > 1:
            raise click.UsageError("--scheduler cannot be used with --jobs")
        with _cluster(scheduler, send) as workers:
            command(*arguments, workers=workers, **options)

    return with_options(cast(F, with_workers), _OPTIONS)


@contextmanager
def _cluster(scheduler: str, send: str | None) -> Iterator[Workers]:
    """The workers of a cluster, and the report of its errors."""
    from indexing.cli.cluster import LOCAL, Cluster
    from indexing.cli.dispatch import ClusterError

    reporter = click.get_current_context().obj
    assert isinstance(reporter, Reporter)
    sends_text = not scheduler.startswith(LOCAL) if send is None else send == "text"
    try:
        with closing(Cluster(scheduler, sends_text, reporter.note)) as cluster:
            try:
                yield cluster
            except ClusterError as error:
                _raise_interrupt(error)
                message = f"error[cluster]: {scheduler}: {error.reason}"
                reporter.error(message, f"  = help: {error.help}")
    except Exception as error:
        _raise_interrupt(error)
        raise


def _raise_interrupt(error: BaseException | None) -> None:
    """Raise the interrupt that an error replaced: Dask fails while it closes what was starting.

    >>> error = UnboundLocalError("result")
    >>> error.__context__ = KeyboardInterrupt()
    >>> try:
    ...     _raise_interrupt(error)
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    interrupted
    """
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        error = error.__cause__ or error.__context__
