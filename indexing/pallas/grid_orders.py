"""The order of a grid that moves fewest bytes, while the visits of outputs stay consecutive.

Only blocks are compared: whether the kernel carries values in scratch buffers from step to step is
not.  Dimensions that ``jax.vmap`` has added stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import factorial, prod
from typing import Final

from indexing.pallas.block_tables import BlockTable
from indexing.pallas.calls import KernelCall
from indexing.pallas.traffic import table_transfers
from simplifier.unknown import Unknown

MAX_WORK: Final = 1 << 24
"""Maximum number of orders times grid points, for operands with blocks of several steps."""


@dataclass(frozen=True, slots=True)
class GridOrder:
    """An order of the dimensions of a grid.

    Attributes:
        dimensions: the numbers of the dimensions, outermost first.
        names: their names in index maps.
        bytes: the bytes that the pipeline moves in this order.
    """

    dimensions: tuple[int, ...]
    names: tuple[str, ...]
    bytes: int


def best_order(
    call: KernelCall, every: Sequence[BlockTable | Unknown]
) -> GridOrder | Unknown | None:
    """Return the order that moves fewest bytes; the present one if no other moves fewer.

    `None` if no order visits the blocks of all outputs consecutively.

    Args:
        every: the tables of all operands.
    """
    obstacle = _obstacle(call)
    if obstacle:
        return Unknown(obstacle)
    tables = [table for table in every if isinstance(table, BlockTable)]
    if len(tables) < len(every):
        return next(table for table in every if isinstance(table, Unknown))
    return _best_of(call, tables)


def _best_of(call: KernelCall, tables: Sequence[BlockTable]) -> GridOrder | Unknown | None:
    sizes = call.static_grid or ()
    moved = [k for k, n in enumerate(sizes) if n > 1 and not call.grid[k].is_vmapped]
    others = sum(not table.is_injective for table in tables)
    if factorial(len(moved)) * (prod(sizes) * others + 1) > MAX_WORK:
        return Unknown(f"more than {MAX_WORK} grid points to compare")
    best: GridOrder | None = None
    for order in _orders(len(sizes), moved):
        total = _bytes_in_order(tables, order)
        if isinstance(total, Unknown):
            return total
        if total is not None and (best is None or total < best.bytes):
            best = GridOrder(order, tuple([call.grid[k].name for k in order]), total)
    return best


def _obstacle(call: KernelCall) -> str:
    """Return why orders of a call cannot be compared, or ""."""
    if call.static_grid is None:
        return "the grid has a symbolic size"
    if call.aliases:
        return "an input aliases an output: another order may read what is written"
    return "programs on a GPU have no order" if call.target == "gpu" else ""


def _orders(rank: int, moved: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the orders of all dimensions in which those of `moved` change places."""
    for chosen in permutations(moved):
        order = list(range(rank))
        for place, k in zip(moved, chosen, strict=True):
            order[place] = k
        yield tuple(order)


def _bytes_in_order(tables: Sequence[BlockTable], order: Sequence[int]) -> int | Unknown | None:
    """Return the bytes in an order; `None` if the visits of an output are not consecutive."""
    total = 0
    for table in tables:
        moves = table_transfers(table, order)
        if isinstance(moves, Unknown):
            return moves
        spec = table.operand.spec
        if spec.is_output and not spec.may_revisit and moves.count > table.count:
            return None
        total += moves.bytes
    return total
