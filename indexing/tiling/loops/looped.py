"""Tilings with loops of an instruction, from sizes and steps."""

from __future__ import annotations

from collections.abc import Sequence

from hlo.modules.module import Instruction
from indexing.tiling.loops.axes import Axes
from indexing.tiling.loops.loop_model import LoopModel, loop_model
from indexing.tiling.loops.loop_names import ChosenSteps, LoopName, LoopSizes, named_loops
from indexing.tiling.loops.loop_tiling import LoopTiling, TilingLoop
from indexing.tiling.loops.phases import LoopPhase
from indexing.tiling.sets.tile_grid import TileGrid
from indexing.tiling.sets.tiled_answers import Target
from simplifier.unknown import Unknown


def loop_tiling(
    instruction: Instruction,
    sizes: Sequence[int],
    loop_sizes: LoopSizes,
    to: Target = "operands",
    output_id: int = 0,
    masks: bool = True,
    online: bool = True,
    split_k: int = 1,
) -> LoopTiling | Unknown:
    """Return the tiling of an output with loops; see `indexing.tile`.

    >>> import hlo
    >>> root = hlo.parse('''ENTRY e {
    ...   p = bf16[4096,4096] parameter(0)
    ...   q = bf16[4096,4096] parameter(1)
    ...   ROOT d = bf16[4096,4096] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''').entry.root
    >>> tiling = loop_tiling(root, (128, 256), {"k": 64})
    >>> tiling.bytes, tiling.resident_bytes, tiling.shared_bytes(), tiling.steps
    (1644167168, 49152, 147456, 64)
    """
    model = loop_model(instruction, to, output_id, masks)
    if isinstance(model, Unknown):
        return model
    tiling = tiling_of_model(model, sizes, loop_sizes, online, split_k)
    cut = model.cut_dimension(tiling.axes)
    return Unknown(cut, instruction) if cut else tiling


def tiling_of_model(
    model: LoopModel, sizes: Sequence[int], loop_sizes: LoopSizes, online: bool, split_k: int
) -> LoopTiling:
    """Return the tiling of the output of a model."""
    grid = TileGrid.check_sizes(model.instruction.name, model.shape.dims, sizes)
    chosen = ChosenSteps(model, grid.sizes, loop_sizes)
    axes = model.axes(chosen.steps)
    phases = model.phases(axes, chosen.serial, online)
    check_split(model, phases, axes, split_k)
    loops = [_loop(name, axes) for name in named_loops(model)]
    for axis in sorted(chosen.serial):
        own = axes[axis]
        loops.append(TilingLoop(f"d{axis}", own.size, own.step, (model.instruction.name,)))
    return LoopTiling(
        model.instruction,
        grid.sizes,
        tuple(loops),
        split_k,
        model,
        axes,
        chosen.serial,
        phases,
        online,
    )


def _loop(name: LoopName, axes: Axes) -> TilingLoop:
    own = axes[name.axes[0]]
    return TilingLoop(name.name, own.size, own.step, name.instructions)


def check_split(model: LoopModel, phases: Sequence[LoopPhase], axes: Axes, split_k: int) -> None:
    """Raise ValueError if the loop cannot be split.

    The loop of the first phase is split, and no other phase may have one: a statistic of a part of
    a row is not that of the row.
    """
    if split_k == 1:
        return
    if split_k < 1:
        raise ValueError(f"split_k={split_k}: expected at least 1")
    with_loops = [phase for phase in phases if phase.has_loops]
    if len(with_loops) != 1 or not with_loops[0].loops or len(with_loops[0].nests) != 1:
        raise ValueError(
            f"split_k={split_k}: expected one reduction with a loop, got {len(with_loops)} phases "
            "with loops"
        )
    steps = with_loops[0].steps(axes)
    if steps % split_k:
        legal = [n for n in range(1, steps + 1) if steps % n == 0]
        near = min(legal, key=lambda n: abs(n - split_k))
        raise ValueError(
            f"split_k={split_k} does not divide the {steps} steps of the loop: write {near}"
        )
