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
_Statistic: TypeAlias = tuple[BlockNest, BlockNest]
"""The nest of a statistic, and a later nest that reads an array which it reads, too."""


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
    tilings = _tilings_by_method(tiling, pairs)
    chosen: RowMethodName = "online" if tiling.online else "recompute"
    if len(tilings) == 1:
        chosen = "row resident"
    methods = []
    for name, each in tilings.items():
        moved, held = each.bytes, each.resident_bytes
        if isinstance(moved, Unknown) or isinstance(held, Unknown):
            return ()
        methods.append(RowMethod(name, moved, held, name == chosen))
    return tuple(methods)


def _tilings_by_method(
    tiling: LoopTiling, pairs: list[_Statistic]
) -> dict[RowMethodName, LoopTiling]:
    """Return the tilings that read rows in each way; only row resident if a step has the row."""
    steps, wholes = list(tiling.loop_sizes), _whole_row_steps(tiling, pairs)
    serial = {axis: tiling.axes[axis].step for axis in sorted(tiling.serial)}
    kept = _serial_axes_of_all(tiling, pairs)
    tilings: dict[RowMethodName, LoopTiling] = {}
    tilings["row resident"] = _tiling(tiling, wholes, {k: serial[k] for k in kept}, online=True)
    if steps == wholes and list(serial) == kept:
        return tilings
    other = _tiling(tiling, steps, serial, online=not tiling.online)
    online, recompute = (tiling, other) if tiling.online else (other, tiling)
    tilings["recompute"] = recompute
    if online.online:
        tilings["online"] = online
    return tilings


def _whole_row_steps(tiling: LoopTiling, pairs: list[_Statistic]) -> list[int]:
    """Return the step of each loop, with whole dimensions for the loops over rows."""
    axes_of_rows = {axis for pair in pairs for nest in pair for axis in nest.loops}
    steps = list(tiling.loop_sizes)
    for name in named_loops(tiling.model):
        if axes_of_rows.intersection(name.axes):
            for axis in name.axes:
                steps[axis - tiling.model.rank] = name.size
    return steps


def _serial_axes_of_all(tiling: LoopTiling, pairs: list[_Statistic]) -> list[int]:
    """Return the axes that blocks walk serially and on which every statistic depends."""
    used = [axes_of(statistic.key.map) for statistic, _ in pairs if statistic.key is not None]
    return [axis for axis in sorted(tiling.serial) if all(axis in axes for axes in used)]


def waiting_sums(tiling: LoopTiling) -> Iterator[str]:
    """Yield why a reduction cannot run in step with a statistic, for each that waits."""
    for statistic, user in _statistics(tiling):
        if user.key is None or statistic.key is None:
            continue
        if statistic in user.needs and not tiling.model.can_rescale(statistic, user):
            first, second = (
                nest.key.array.instruction.name for nest in (statistic, user) if nest.key
            )
            yield f"`{second}` waits for `{first}`, which is not a factor of its terms"


def _statistics(tiling: LoopTiling) -> Iterator[_Statistic]:
    """Yield the statistics of rows, once for each later nest that reads the row."""
    for user in tiling.model.nests:
        arrays = {read.array for read in user.reads}
        for statistic in waits_for(user):
            if statistic.loops and arrays.intersection([read.array for read in statistic.reads]):
                yield statistic, user


def _tiling(
    tiling: LoopTiling, steps: list[int], serial: dict[int, int], online: bool
) -> LoopTiling:
    """Return the tiling with the same tile.

    Args:
        steps: the step of each loop.
        serial: the step of each parallel axis that blocks walk serially.
        online: let reductions run in step with their statistics.
    """
    model = tiling.model
    named = {name.name: steps[name.axes[0] - model.rank] for name in named_loops(model)}
    walked = {f"d{axis}": step for axis, step in serial.items()}
    return tiling_of_model(model, tiling.sizes, {**named, **walked}, online, split_k=1)
