"""The misses of a cache in several orders of tiles, for the command ``tile``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from indexing.cli.integers import IntegerRange
from indexing.cli.options import ByteSize, gather_options, with_options
from indexing.cli.reporter import Reporter
from indexing.cli.selected import place_of

if TYPE_CHECKING:
    from indexing.tiling.loops.loop_tiling import LoopTiling
    from indexing.tiling.sets.tiling import Tiling
    from indexing.views.tile_answers import TileAnswer
    from indexing.views.tile_subjects import TileSubject

F = TypeVar("F", bound=Callable[..., Any])


DEFAULT_LINE: Final = 128


class CacheSize(ByteSize):
    """The bytes of a cache, or a GPU: the bytes of its L2 cache.

    >>> CacheSize().convert("40MiB", None, None) == CacheSize().convert("A100", None, None)
    True
    """

    def parse(self, text: str) -> int:
        from indexing.devices.gpus import GPUS

        sizes = {model.name: size for model in GPUS.values() if (size := model.l2_cache_bytes)}
        if text in sizes:
            return sizes[text]
        if not text[:1].isdigit():
            expected = f"expected a size such as 40MiB, or one of {', '.join(sizes)}"
            raise ValueError(f"{expected}; got {text!r}")
        return super().parse(text)


@dataclass(frozen=True, slots=True)
class CacheOptions:
    """The options of the cache; see `indexing.best_block_orders`."""

    capacity: int | None
    orders: str | None
    line: int | None
    wave: int | None

    def check(self, has_sizes: bool, excluded: Mapping[str, bool]) -> None:
        """Raise `click.UsageError` if an option needs another or excludes it, or no line fits."""
        if self.capacity is None:
            needing = {"--order": self.orders, "--line": self.line, "--wave": self.wave}
            for option, value in needing.items():
                if value is not None:
                    raise click.UsageError(f"{option} needs --cache")
            return
        if not has_sizes:
            raise click.UsageError("--cache needs --sizes")
        for option, is_given in excluded.items():
            if is_given:
                raise click.UsageError(f"--cache cannot be used with {option}")
        if self.capacity < (line := self.line or DEFAULT_LINE):
            raise click.UsageError(
                f"--cache {self.capacity} holds no line of {line} bytes: write a size such as 40MiB"
            )


def cache_options(command: F) -> F:
    """The options ``--cache`` and those that need it: the argument `cache`."""
    options = [
        click.option(
            "--cache",
            "capacity",
            metavar="SIZE|GPU",
            type=CacheSize(),
            help="Print the misses of an LRU cache of SIZE, such as 40MiB, or of the L2 cache of "
            "a GPU, such as H100, in several orders of the tiles, the fewest first",
        ),
        click.option(
            "--order",
            "orders",
            metavar="ORDERS",
            help="With --cache: the orders to compare, such as row,column,grouped:8,morton,hilbert",
        ),
        click.option(
            "--line",
            metavar="BYTES",
            type=IntegerRange(min=1),
            help="With --cache: the bytes of a line; by default, 128",
        ),
        click.option(
            "--wave",
            metavar="N",
            type=IntegerRange(min=1),
            help="With --cache: let N tiles run in lockstep, such as the 132 multiprocessors of an "
            "H100 times the blocks of each; with --loops, through each step together",
        ),
    ]
    return with_options(gather_options("cache", lambda: CacheOptions)(command), options)


def cached_answer(
    reporter: Reporter,
    subject: TileSubject,
    tiling: Tiling | LoopTiling,
    capacity: int,
    options: CacheOptions,
) -> TileAnswer | None:
    """Return the misses in each order; report orders that the grid does not have."""
    from indexing.memory.caches.orders import BlockOrder, block_orders
    from indexing.memory.caches.search import best_block_orders
    from indexing.views.tile_answers import misses_answer

    line, wave = options.line or DEFAULT_LINE, options.wave or 1
    names = [] if options.orders is None else options.orders.split(",")
    try:
        orders = [BlockOrder.parse(name.strip(), tiling.grid) for name in names]
        best = best_block_orders(tiling, capacity, orders or block_orders(tiling), line, wave)
    except ValueError as error:  # of an order
        reporter.error(
            f"error[order]: {place_of(subject.instruction)}: {error}",
            f"  = help: the grid is {list(tiling.grid)}",
        )
        return None
    return misses_answer(subject, capacity, line, wave, best)
