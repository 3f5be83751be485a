"""How a block reads rows of which it needs a statistic: row resident, recompute or online.

A block that needs a finished statistic of a row, such as its maximum, before it goes through the
row again has three ways.  *Row resident*: one step has the whole row, which stays in the block.
*Recompute*: each statistic has a phase of its own, and the row is loaded in each.  *Online*: a
reduction runs in step with the statistic, and is rescaled when that changes (`rescaling`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from indexing.tiling.loops.loop_names import named_loops
from indexing.tiling.loops.loop_tiling import LoopTiling
from indexing.tiling.loops.looped import tiling_of_model
from indexing.tiling.loops.nests import BlockNest, axes_of, waits_for
from simplifier.unknown import Unknown

RowMethodName: TypeAlias = Literal["row resident", "recompute", "online"]


class RowMethod(NamedTuple):
    """A way to read rows, with its figures.

    Attributes:
        name: the way.
        bytes: the bytes that all blocks load and store.
        resident: the most bytes of operand tiles of a block in one stage.
        is_chosen: True if the tiling reads its rows so.
    """

    name: RowMethodName
    bytes: int
    resident: int
    is_chosen: bool


def row_methods(tiling: LoopTiling) -> tuple[RowMethod, ...]:
    """Return the ways to read rows with the tile of a tiling, and the figures of each.

    There are none for tilings without a statistic, with shared loops, or with unknown figures; and
    only the first one if a step has the whole row.
    """
    pairs = list(_statistics(tiling))
    if not pairs or tiling.split_k > 1:
        return ()
    steps = tiling.loop_sizes
    rank = tiling.model.rank
    rows = {axis for pair in pairs for nest in pair for axis in nest.loops}
    wholes = list(steps)
    for name in named_loops(tiling.model):
        if rows.intersection(name.axes):
            for axis in name.axes:
                wholes[axis - rank] = name.size
    kept = [axes_of(statistic.key.map) for statistic, _ in pairs if statistic.key is not None]
    serial = {f"d{axis}": tiling.axes[axis].step for axis in sorted(tiling.serial)}
    across = {f"d{axis}" for axis in tiling.serial if all(axis in axes for axes in kept)}
    found: list[tuple[RowMethodName, LoopTiling]] = []
    resident = _tiling(tiling, wholes, {d: n for d, n in serial.items() if d in across}, True)
    found.append(("row resident", resident))
    is_whole = list(steps) == wholes and set(serial) == across
    if not is_whole:
        found.append(("recompute", _tiling(tiling, steps, serial, False)))
        online = _tiling(tiling, steps, serial, True)
        if online.online:
            found.append(("online", online))
    chosen = "row resident" if is_whole else "online" if tiling.online else "recompute"
    methods = []
    for method, each in found:
        moved, held = each.bytes, each.resident_bytes
        if isinstance(moved, Unknown) or isinstance(held, Unknown):
            return ()
        methods.append(RowMethod(method, moved, held, method == chosen))
    return tuple(methods)


def waiting_sums(tiling: LoopTiling) -> Iterator[str]:
    """Yield why a reduction cannot run in step with a statistic, for each that waits."""
    for statistic, user in _statistics(tiling):
        if user.key is None or statistic.key is None:
            continue
        if statistic in user.needs and not tiling.model.can_rescale(statistic, user):
            first, second = (
                nest.key.array.instruction.name for nest in (statistic, user) if nest.key
            )
            yield f"`{second}` waits for `{first}`, which is no factor of its terms"


def _statistics(tiling: LoopTiling) -> Iterator[tuple[BlockNest, BlockNest]]:
    """Yield the pairs of a statistic, and a later nest that reads an array which it reads, too."""
    for user in tiling.model.nests:
        arrays = {read.array for read in user.reads}
        for statistic in waits_for(user):
            if statistic.loops and arrays.intersection([read.array for read in statistic.reads]):
                yield statistic, user


def _tiling(
    tiling: LoopTiling, steps: list[int] | tuple[int, ...], serial: dict[str, int], online: bool
) -> LoopTiling:
    model = tiling.model
    named = {name.name: steps[name.axes[0] - model.rank] for name in named_loops(model)}
    return tiling_of_model(model, tiling.sizes, {**named, **serial}, online, split_k=1)
