"""Loops of a tile, for the command ``tile``: their steps, and the search for tilings with loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from indexing.cli.integers import IntegerRange
from indexing.cli.options import gather_options, with_options
from indexing.cli.reporter import Reporter
from indexing.cli.selected import place_of
from indexing.cli.tile_options import LoopSizesText

if TYPE_CHECKING:
    from indexing.tiling.loops.loop_tiling import LoopTiling
    from indexing.views.loop_tables import LoopAnswer
    from indexing.views.tile_subjects import TileSubject
    from simplifier.unknown import Unknown

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """The options of loops, None where they are not given."""

    loops: dict[str, int] | None
    split_k: int | None
    device: str | None

    def check(
        self, sizes: tuple[int, ...] | None, search: bool, others: Mapping[str, bool]
    ) -> None:
        """Raise `click.UsageError` if options contradict each other."""
        if self.loops is not None and sizes is None:
            raise click.UsageError("--loops needs --sizes")
        if self.split_k is not None and self.loops is None:
            raise click.UsageError("--split-k needs --loops")
        if self.device is not None and not search:
            raise click.UsageError("--device needs --search")
        excluded = [option for option, is_given in others.items() if is_given]
        if self.split_k is None and self.loops is not None:  # the misses of blocks in steps
            excluded = [option for option in excluded if option != "--cache"]
        if excluded and (given := self._given):
            raise click.UsageError(f"{given} cannot be used with {excluded[0]}")

    @property
    def _given(self) -> str:
        """The option that decides about loops; empty if there is none."""
        if self.loops is None:
            return "" if self.device is None else "--device"
        return "--loops" if self.split_k is None else "--split-k"


def loop_options(command: F) -> F:
    """The options ``--loops``, ``--split-k`` and ``--device``: the argument `looped`."""
    options = [
        click.option(
            "--loops",
            metavar="STEPS",
            type=LoopSizesText(),
            help="With --sizes: let each block run over contracted, reduced and window dimensions "
            "in steps, such as k=64; print its phases and the bytes that it moves and holds",
        ),
        click.option(
            "--split-k",
            metavar="N",
            type=IntegerRange(min=1),
            help="With --loops: let N blocks share the loop of one tile",
        ),
        click.option(
            "--device",
            metavar="DEVICE",
            help="With --search: choose steps of loops, too, and keep the rules of a GPU such as "
            "H100, or of a TPU such as v5e",
        ),
    ]
    return with_options(gather_options("looped", lambda: LoopOptions)(command), options)


def looped_tiling(
    reporter: Reporter, subject: TileSubject, sizes: tuple[int, ...], options: LoopOptions
) -> LoopTiling | Unknown | None:
    """Return the tiling with loops; report loops that do not exist."""
    from indexing.tiling.sets.tiling import tile

    try:
        return tile(
            subject.instruction,
            sizes,
            subject.to,
            subject.output,
            loop_sizes=options.loops or {},
            split_k=options.split_k or 1,
        )
    except ValueError as error:
        reporter.error(f"error[tile]: {place_of(subject.instruction)}: {error}")
        return None


def searched_loops(
    reporter: Reporter, subject: TileSubject, device: str, top: int | None, accept: str | None
) -> LoopAnswer | None:
    """Return the best tilings with loops; report a device that is not known."""
    from indexing.tiling.search.candidates import best_tilings
    from indexing.views.loop_tables import LoopAnswer

    given: dict[str, Any] = {"accept": accept} if accept else {}
    try:
        best = best_tilings(
            subject.instruction,
            top=top or 10,
            to=subject.to,
            output_id=subject.output,
            device=device,
            loops=True,
            **given,
        )
    except ValueError as error:
        reporter.error(f"error[tile]: {place_of(subject.instruction)}: {error}")
        return None
    return LoopAnswer.of(subject, best)
