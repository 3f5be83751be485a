"""The misses of a cache in several orders of tiles, for the command ``tile``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from indexing.cli.options import ByteSize, with_options
from indexing.cli.reporter import Reporter

if TYPE_CHECKING:
    from indexing.tiling.tiles.tiling import Tiling
    from indexing.views.tile_subjects import TileSubject

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class CacheRequest:
    """The options of the cache; see `indexing.best_block_orders`."""

    capacity: int
    orders: tuple[str, ...] | None
    line: int = 128


def cache_options(command: F) -> F:
    """The options ``--cache`` and those that need it."""
    options = [
        click.option(
            "--cache",
            "capacity",
            metavar="SIZE",
            type=ByteSize(),
            help="Print the misses of an LRU cache of SIZE, such as 40MiB, in several orders of "
            "the tiles, the fewest first",
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
            type=click.IntRange(min=1),
            help="With --cache: the bytes of a line; by default, 128",
        ),
    ]
    return with_options(command, options)


def cache_request(
    capacity: int | None,
    orders: str | None,
    line: int | None,
    has_sizes: bool,
    excluded: Mapping[str, bool],
) -> CacheRequest | None:
    """Return the request; None without ``--cache``.

    Raises:
        click.UsageError: an option needs ``--cache``, or cannot be used with it.
    """
    if capacity is None:
        for option, value in (("--order", orders), ("--line", line)):
            if value is not None:
                raise click.UsageError(f"{option} needs --cache")
        return None
    if not has_sizes:
        raise click.UsageError("--cache needs --sizes")
    for option, is_given in excluded.items():
        if is_given:
            raise click.UsageError(f"--cache cannot be used with {option}")
    names = None if orders is None else tuple([name.strip() for name in orders.split(",")])
    return CacheRequest(capacity, names, line or 128)


def print_misses(
    reporter: Reporter,
    subject: TileSubject,
    place: str,
    tiling: Tiling,
    request: CacheRequest,
    notation: str,
) -> None:
    """Print the misses in each order; report orders that the grid does not have."""
    from indexing.memory.caches.orders import BlockOrder, block_orders
    from indexing.memory.caches.search import best_block_orders
    from indexing.views import cache_records, tile_records
    from indexing.views.tile_lines import heading
    from simplifier.unknown import Unknown

    try:
        orders = [BlockOrder.parse(name, tiling.grid) for name in request.orders or ()]
        best = best_block_orders(
            tiling, request.capacity, orders or block_orders(tiling), request.line
        )
    except ValueError as error:  # of an order
        reporter.error(
            f"error[order]: {place}: {error}", f"  = help: the grid is {list(tiling.grid)}"
        )
        return
    lines: Iterable[str]
    text: list[str]
    if isinstance(best, Unknown):
        lines = tile_records.unknown_lines(subject, best)
        text = [f"{heading(subject, reporter.paint)} unknown: {best.reason}"]
    else:
        lines = cache_records.misses_json(subject, request.capacity, request.line, best)
        text = [
            f"{heading(subject, reporter.paint)} tiles {list(tiling.sizes)}, LRU cache of "
            f"{request.capacity:,} bytes, lines of {request.line} bytes",
            *[f"  {line}" for line in str(best).splitlines()],
        ]
    for line in lines if notation == "json" else text:
        reporter.print(line)
