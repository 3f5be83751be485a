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
from indexing.cli.tile_cache import CacheOptions, cached_answer
from indexing.cli.tile_options import LoopSizesText
from indexing.cli.tile_search import SearchOptions

if TYPE_CHECKING:
    from indexing.tiling.loops.loop_tiling import LoopTiling
    from indexing.views.loop_tables import LoopAnswer
    from indexing.views.tile_answers import TileAnswer
    from indexing.views.tile_subjects import TileSubject
    from simplifier.unknown import Unknown

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """The options of loops, None where they are not given."""

    loops: dict[str, int] | None
    split_k: int | None
    device: str | None
    as_compiled: bool
    emit: str | None
    online: bool | None

    @property
    def is_looped(self) -> bool:
        """True if the answer is a tiling with loops, which may have none."""
        return self.loops is not None or self.emit is not None

    def check(
        self, sizes: tuple[int, ...] | None, search: bool, others: Mapping[str, bool]
    ) -> None:
        """Raise `click.UsageError` if options contradict each other."""
        has_sizes, is_compiled = sizes is not None, self.as_compiled
        for is_wrong, message in (
            (is_compiled and has_sizes, "--as-compiled cannot be used with --sizes"),
            (is_compiled and search, "--as-compiled cannot be used with --search"),
            (self.loops is not None and not has_sizes, "--loops needs --sizes"),
            (self.split_k is not None and self.loops is None, "--split-k needs --loops"),
            (
                self.online is not None and not self.is_looped,
                "--online and --no-online need --loops",
            ),
            (self.emit is not None and not has_sizes, "--emit needs --sizes"),
            (
                self.device is not None and not (search or is_compiled),
                "--device needs --search or --as-compiled",
            ),
        ):
            if is_wrong:
                raise click.UsageError(message)
        self._check_others(others)

    def _check_others(self, others: Mapping[str, bool]) -> None:
        excluded = [option for option, is_given in others.items() if is_given]
        if self.split_k is None and self.loops is not None:  # the misses of blocks in steps
            excluded = [option for option in excluded if option != "--cache"]
        if excluded and (given := self._given):
            raise click.UsageError(f"{given} cannot be used with {excluded[0]}")

    @property
    def _given(self) -> str:
        """The option that decides about loops; empty if there is none."""
        given = {
            "--as-compiled": self.as_compiled,
            "--split-k": self.split_k is not None,
            "--online": self.online is not None and self.loops is None,
            "--loops": self.loops is not None,
            "--device": self.device is not None,
            "--emit": self.emit is not None,
        }
        return next((option for option, is_given in given.items() if is_given), "")


def loop_options(command: F) -> F:
    """The options of loops, from ``--loops`` to ``--device``: the argument `looped`."""
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
            "--online/--no-online",
            default=None,
            help="With --loops: run a reduction in step with a statistic that it needs, as the "
            "maximum of a row, and rescale it where the formula allows that (the default); or let "
            "it wait, and load the row again",
        ),
        click.option(
            "--emit",
            type=click.Choice(["pallas", "triton", "json"]),
            help="With --sizes and --loops: print a kernel of Pallas or Triton that computes the "
            "tiles, as a Python file, or all figures and boxes as JSON",
        ),
        click.option(
            "--device",
            metavar="DEVICE",
            help="With --search: choose steps of loops, too, and keep the rules of a GPU such as "
            "H100, or of a TPU such as v5e; with --as-compiled: the GPU, by default H100",
        ),
        click.option(
            "--as-compiled",
            is_flag=True,
            help="Tile as XLA:GPU compiled the fusion: with the sizes, steps, warps and stages in "
            "its backend_config; print the rules of --device that they violate",
        ),
    ]
    return with_options(gather_options("looped", lambda: LoopOptions)(command), options)


def looped_answer(
    reporter: Reporter,
    subject: TileSubject,
    sizes: tuple[int, ...],
    options: LoopOptions,
    cache: CacheOptions,
) -> LoopAnswer | TileAnswer | None:
    """Return the tiling with loops, or the misses of its blocks; report loops that do not exist."""
    from indexing.views.loop_tables import LoopAnswer
    from simplifier.unknown import Unknown

    tiling = _tiling(reporter, subject, sizes, options)
    if tiling is None:
        return None
    if cache.capacity is None or isinstance(tiling, Unknown):
        return LoopAnswer.of(subject, tiling)
    return cached_answer(reporter, subject, tiling, cache.capacity, cache)


def print_kernel(
    reporter: Reporter, subject: TileSubject, sizes: tuple[int, ...], options: LoopOptions
) -> None:
    """Print the kernel of a tiling as a Python file; report the reason if there is none."""
    from simplifier.unknown import Unknown

    tiling = _tiling(reporter, subject, sizes, options)
    if tiling is None:
        return
    text: str | Unknown
    if isinstance(tiling, Unknown):
        text = tiling
    else:
        text = tiling.to_pallas() if options.emit == "pallas" else tiling.to_triton()
    if isinstance(text, Unknown):
        reporter.error(f"error[tile]: {place_of(subject.instruction)}: {text.reason}")
        return
    for line in text.splitlines():
        reporter.print(line)


def _tiling(
    reporter: Reporter, subject: TileSubject, sizes: tuple[int, ...], options: LoopOptions
) -> LoopTiling | Unknown | None:
    """Return the tiling with loops; report loops that do not exist, and return None."""
    from indexing.tiling.sets.tiling import tile

    try:
        return tile(
            subject.instruction,
            sizes,
            subject.to,
            subject.output,
            loop_sizes=options.loops or {},
            split_k=options.split_k or 1,
            online=options.online is not False,
        )
    except ValueError as error:
        reporter.error(f"error[tile]: {place_of(subject.instruction)}: {error}")
        return None


def chosen_loops(
    reporter: Reporter, subject: TileSubject, options: LoopOptions, searched: SearchOptions
) -> LoopAnswer | None:
    """Return the tiling of XLA, or the best ones for a device; report a device without rules."""
    if options.as_compiled:
        return _tile_as_compiled(reporter, subject, options)
    assert options.device is not None
    return _search_tilings(reporter, subject, options.device, searched.limit, searched.accept)


def _tile_as_compiled(
    reporter: Reporter, subject: TileSubject, options: LoopOptions
) -> LoopAnswer | None:
    """Return the tiling of XLA; report a device or an output without one."""
    from indexing.tiling.loops.compiled_tilings import compiled_tiling
    from indexing.views.loop_tables import LoopAnswer
    from simplifier.unknown import Unknown

    compiled = compiled_tiling(subject.instruction)
    if isinstance(compiled, Unknown):
        return LoopAnswer.of(subject, compiled)
    try:
        return LoopAnswer.of_compiled(subject, compiled, options.device or "H100")
    except ValueError as error:
        reporter.error(f"error[tile]: {place_of(subject.instruction)}: {error}")
        return None


def _search_tilings(
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
