"""The search for the best tilings, for the command ``tile``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

import click

from indexing.cli.options import gather_options, limit_option, with_options
from indexing.cli.tile_options import LimitsText

if TYPE_CHECKING:
    from indexing.tiling.search.candidate_sizes import SizeChoice
    from indexing.tiling.search.candidates import AcceptedKind
    from indexing.tiling.search.limits import TilingLimits
    from indexing.tiling.search.measures import Objective
    from indexing.views.tile_answers import TileAnswer
    from indexing.views.tile_subjects import TileSubject

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The options of the search, None where `indexing.best_tilings` decides."""

    search: bool
    objective: Objective | None
    limits: TilingLimits | None
    candidates: SizeChoice | None
    accept: AcceptedKind | None
    symbolic: bool
    limit: int | None

    @property
    def given(self) -> dict[str, Any]:
        """The options that need ``--search`` and are given, in order."""
        values = {field.name: getattr(self, field.name) for field in fields(self)[1:]}
        return {name: value for name, value in values.items() if value not in (None, False)}

    def check(self, excluded: Mapping[str, bool]) -> None:
        """Raise `click.UsageError` if an option needs ``--search``, or cannot be used with it."""
        if not self.search:
            for name in self.given:
                raise click.UsageError(f"--{name} needs --search")
            return
        for option, is_given in excluded.items():
            if is_given:
                raise click.UsageError(f"--search cannot be used with {option}")


def search_options(command: F) -> F:
    """The options ``--search`` and those that need it: the argument `searched`."""
    options = [
        click.option(
            "--search",
            is_flag=True,
            help="Print the tilings that move the fewest bytes, the best first",
        ),
        click.option(
            "--objective",
            type=click.Choice(["bytes", "requested", "reuse"]),
            help="With --search: rank by the bytes that all tiles load and store (the default), by "
            "the bytes of each access separately, or by the reuse of loaded elements",
        ),
        click.option(
            "--limits",
            metavar="LIMITS",
            type=LimitsText(),
            help="With --search: limits on the tiles, such as H100 or working-set=64KiB",
        ),
        click.option(
            "--candidates",
            type=click.Choice(["powers", "divisors", "xla", "all"]),
            help="With --search: try powers of two and whole dimensions (the default), also all "
            "divisors, the sizes that XLA enumerates, or all sizes",
        ),
        click.option(
            "--accept",
            type=click.Choice(["box", "boxes", "bounding"]),
            help="With --search: accept tiles that are one box (the default), a few boxes, or any "
            "set",
        ),
        click.option(
            "--symbolic",
            is_flag=True,
            help="With --search: refuse sizes that violate the constraints of a symbolic tile, as "
            "XLA does",
        ),
        limit_option("With --search: print at most N tilings; by default, 10"),
    ]
    return with_options(gather_options("searched", lambda: SearchOptions)(command), options)


def searched_answer(subject: TileSubject, options: SearchOptions) -> TileAnswer:
    """Return the best tilings of an output."""
    from indexing.tiling.search.candidates import best_tilings
    from indexing.views.tile_answers import best_answer

    names = {"candidates": "sizes", "limit": "top"}
    given = {names.get(option, option): value for option, value in options.given.items()}
    best = best_tilings(subject.instruction, to=subject.to, output_id=subject.output, **given)
    return best_answer(subject, best)
