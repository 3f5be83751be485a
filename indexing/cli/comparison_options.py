"""Options of ``hlo-indexing diff`` for more than the verdict: correspondences and costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from indexing.cli.options import gather_options, with_options
from indexing.cli.paths import InputPath

if TYPE_CHECKING:
    from hlo.modules.module import Module

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
