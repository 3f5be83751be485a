"""Options of ``hlo-indexing diff`` for more than the verdict: correspondences and costs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from indexing.cli.options import gather_options, jobs_option, with_options
from indexing.cli.parsed_text import ParsedText
from indexing.cli.paths import InputPath

if TYPE_CHECKING:
    from hlo.modules.module import Module
    from indexing.cli.reporter import Reporter
    from indexing.equivalence.shares import OutputDivision

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """Answers that are printed besides the verdict.

    Attributes:
        shows_map: the instructions that correspond.
        shows_costs: those that move or hold another number of bytes.
        dumps: folders of dumps of passes of both compilations, or None.
    """

    shows_map: bool
    shows_costs: bool
    dumps: tuple[str, str] | None

    def lines(
        self, before: Module, after: Module, record: dict[str, Any], max_bytes: int
    ) -> Iterator[str]:
        """Yield the lines, and add the answers to the record.

        Args:
            max_bytes: limit on the size of a dump.
        """
        if self.shows_map:
            from indexing.equivalence.correspondence import correspondence
            from indexing.views.correspondence_tables import map_lines, map_record

            matched = correspondence(before, after)
            record["map"] = map_record(matched)
            yield from map_lines(matched)
        if self.shows_costs:
            from indexing.equivalence.costs import compare_costs
            from indexing.views.correspondence_tables import cost_lines, cost_record

            costs = compare_costs(before, after)
            first = self._first_pass(before.name, max_bytes)
            record["cost"] = cost_record(costs, first)
            yield from cost_lines(costs, first)

    def _first_pass(self, name: str, max_bytes: int) -> str:
        """Return the first pass after which the dumps of a module differ; "" without dumps."""
        if not self.dumps:
            return ""
        from indexing.equivalence.costs import first_change
        from indexing.equivalence.dumps import modules_in

        ours, theirs = (
            [m for m in modules_in(folder) if name in m.name.split(".")] for folder in self.dumps
        )
        if not ours or not theirs:
            return f"no dumps of {name} are in both folders"
        change = first_change(ours[0], theirs[0], max_bytes)
        return "the dumps of both compilations are equal" if change is None else str(change)


def comparison_options(command: F) -> F:
    """The options of `ComparisonOptions`, whose value is the argument `shown`."""
    options = [
        click.option(
            "--map",
            "shows_map",
            is_flag=True,
            help="List which instruction became which, and how that was found",
        ),
        click.option(
            "--cost",
            "shows_costs",
            is_flag=True,
            help="List the matched instructions that move more or fewer bytes, or hold more or "
            "less memory",
        ),
        click.option(
            "--dumps",
            nargs=2,
            metavar="DIR_A DIR_B",
            type=InputPath(),
            help="With --cost, name the first pass after which the dumps of both compilations "
            "differ",
        ),
    ]
    return with_options(gather_options("shown", lambda: ComparisonOptions)(command), options)


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """The time and the processes of a comparison.

    Attributes:
        time_limit: in seconds; None without a limit.
        jobs: the maximum number of processes.
    """

    time_limit: float | None
    jobs: int

    def division(
        self, reporter: Reporter, before: Module, after: Module, parameters: Mapping[int, int]
    ) -> OutputDivision | None:
        """Return the division of the outputs among processes.

        Args:
            parameters: as of `equivalent`.
        Returns:
            None for one process, or if other processes cannot read the files.
        """
        files = before.filename, after.filename
        if self.jobs == 1 or not all(map(os.path.isfile, files)):
            return None
        from indexing.cli.loading import load_only
        from indexing.cli.workers import results
        from indexing.equivalence.shares import OutputDivision

        limits = reporter.max_bytes, reporter.uses_cache
        loads = partial(load_only, files[0], *limits), partial(load_only, files[1], *limits)
        workers = partial(results, jobs=self.jobs)
        return OutputDivision(before, after, parameters, self.jobs, workers, loads)


class Seconds(ParsedText):
    """A time, such as ``60s``, ``1.5min`` or ``500ms``.

    >>> Seconds().convert("2min", None, None)
    120.0
    """

    name = "time"

    def parse(self, text: str) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+) ?(ms|s|min|h|)", text.strip(), re.ASCII)
        seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
        if not 0 < seconds < 1e6:
            raise ValueError(f"{text!r} is not a time such as 60s or 2min")
        return seconds


_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}


def work_options(command: F) -> F:
    """The options of `WorkOptions`, whose value is the argument `work`."""
    options = [
        click.option(
            "--time-limit",
            metavar="TIME",
            type=Seconds(),
            help="End the comparison after TIME, such as 60s or 2min: it is then undecided",
        ),
        jobs_option,
    ]
    return with_options(gather_options("work", lambda: WorkOptions)(command), options)
