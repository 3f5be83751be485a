"""Shared memory of a kernel of Triton: the staged operands of its dots, or buffers of rows.

A loop of several steps and stages is a pipeline: while a step computes, those after it are loaded.
With ``wgmma``, whose operands are in shared memory, there are as many buffers as stages; other
instructions copy operands to registers, so one buffer less is in use, unless a mask is applied
between the load and the dot.  Without a pipeline, there is one buffer of each operand; operands of
32 bits, and a left operand that is computed, pass through one buffer, one after the other.
Accumulators of 32 bits pass through shared memory on the way to the layout of the store.  Narrower
results do, too, half of them at once at most in all kernels compared: where that is more than the
operands have, the answer is unknown.

Without dots, tiles are in registers, and pass through shared memory where their layout changes, or
where a reduction has values in several warps: see `triton_rows`.

Source: XLA ``xla/service/gpu/model/triton_temporary_memory_estimator.cc``; Triton
``lib/Dialect/TritonGPU/Transforms/Pipeliner``; sizes of buffers as in the kernels of jaxlib 0.10.2,
which `benchmarks.compiled_tilings` compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Final

from hlo.arguments import checked
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.devices.gpus import PROCESSORS, Gpu, gpu
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.conversions import Convert
from indexing.ops.dot import Dot
from indexing.ops.elementwise import ElementwiseOp
from indexing.ops.iota import Parameter
from indexing.tiling.computations.tile_graph import TileNode
from indexing.tiling.loops.compiled_tilings import CompiledTiling
from indexing.tiling.loops.dot_tiles import has_products
from indexing.tiling.loops.loop_model import LoopModel, loop_model
from indexing.tiling.loops.nests import NestKey
from indexing.tiling.loops.triton_rows import row_scratch_bytes
from indexing.tiling.loops.warps import uses_warp_groups
from indexing.tiling.search.limits import padded_size
from indexing.tiling.sizes.tile_sizes import dimension_of
from simplifier.unknown import Unknown

_GROUP_ROWS: Final = 16
"""Rows of accumulators of each warp of a warp group that pass through shared memory at once."""
_COLUMNS: Final = 16
"""Columns of accumulators of other instructions that do."""


@dataclass(frozen=True, slots=True)
class _StagedDot:
    """A dot: padded sizes of its tile, bytes of the tiles of operands, and steps of its loop.

    A left operand that is computed is in registers before the right one is staged.
    """

    rows: int
    columns: int
    operands: tuple[int, ...]
    bits: int
    steps: int
    has_tail: bool
    is_computed: bool


@checked
def triton_shared_bytes(
    compiled: CompiledTiling, device: str | Gpu = "H100", output_id: int = 0
) -> int | Unknown:
    """Return the bytes of shared memory that Triton allocates for a compiled fusion.

    Sizes are those that XLA chose, padded to powers of two, also beyond the edge of an array.

    Args:
        compiled: XLA's choice.
        device: the GPU, or its name.
        output_id: the output whose tiles decide.
    Raises:
        ValueError: the device is not known, or XLA chose no tile of this output.

    >>> import hlo, indexing
    >>> fusion = hlo.parse('''f {
    ...   p = bf16[512,256] parameter(0)
    ...   q = bf16[256,512] parameter(1)
    ...   ROOT d = bf16[512,512] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    ...     backend_config={"sizes":["64"]}
    ... }
    ... ENTRY e {
    ...   p = bf16[512,256] parameter(0)
    ...   q = bf16[256,512] parameter(1)
    ...   ROOT d = bf16[512,512] fusion(p, q), kind=kCustom, calls=f,
    ...     backend_config={"fusion_backend_config":{"kind":"__triton_nested_gemm_fusion",
    ...       "block_level_fusion_config":{"num_warps":"4","output_tiles":[{"sizes":["64","128"]}],
    ...         "num_ctas":1,"num_stages":3}}}
    ... }''').entry.root
    >>> indexing.triton_shared_bytes(indexing.compiled_tiling(fusion))
    73728
    >>> 3 * (64 * 64 + 64 * 128) * 2  # three stages of both operands
    73728
    """
    model = loop_model(compiled.instruction, output_id=output_id, masks=False)
    if isinstance(model, Unknown):
        return model
    dots = list(_dots(compiled, model, output_id))
    if not has_products(model):
        chosen = [*compiled.sizes_of(output_id, model.rank), *compiled.loop_sizes(model)]
        capability = PROCESSORS[gpu(device).name].capability
        major, _, minor = capability.rstrip("af").partition(".")
        if capability.startswith("gfx"):
            return Unknown("shared memory of AMD GPUs is not modelled without dots")

        def tile(node: TileNode) -> tuple[int, ...] | None:
            sizes = None if node.map is None else _padded_tile(node.array, node.map, model, chosen)
            return None if sizes is None else tuple(sizes)

        return row_scratch_bytes(model, tile, compiled.warps, int(major) * 10 + int(minor))
    staged = sum([_staged_bytes(dot, compiled, device) for dot in dots])
    total = max([staged, *[_converted_bytes(dot, compiled, device) for dot in dots]])
    result = compiled.instruction.shape
    if isinstance(result, Shape) and result.element_bits < 32:
        least = max([dot.rows * dot.columns for dot in dots], default=0) * result.element_bits // 16
        if least > total:
            return Unknown(
                f"shared memory: the result passes through a buffer of its own, perhaps larger "
                f"than the {total:,} bytes of operands",
                compiled.instruction,
            )
    return total


def _staged_bytes(dot: _StagedDot, compiled: CompiledTiling, device: str | Gpu) -> int:
    in_place = uses_warp_groups(device, dot.rows, compiled.warps)
    if dot.steps > 1 and compiled.stages > 1:
        buffers = compiled.stages if in_place or dot.has_tail else compiled.stages - 1
        return buffers * sum(dot.operands)
    is_rounded = dot.bits == 32 and not in_place and (dot.steps > 1 or not dot.has_tail)
    if dot.is_computed or is_rounded:
        return max(dot.operands, default=0)
    return sum(dot.operands)


def _converted_bytes(dot: _StagedDot, compiled: CompiledTiling, device: str | Gpu) -> int:
    """Return the bytes through which accumulators of 32 bits pass at once."""
    result = compiled.instruction.shape
    if not isinstance(result, Shape) or result.element_bits != 32:
        return 0
    if uses_warp_groups(device, dot.rows, compiled.warps):
        return min(dot.rows, _GROUP_ROWS * compiled.warps) * dot.columns * 4
    return dot.rows * min(dot.columns, _COLUMNS) * 4


def _dots(compiled: CompiledTiling, model: LoopModel, output_id: int) -> Iterator[_StagedDot]:
    chosen = [*compiled.sizes_of(output_id, model.rank), *compiled.loop_sizes(model)]
    keys = dict.fromkeys([key for nest in model.nests for key in nest.computed])
    for key in keys:
        if isinstance(key.array.instruction.op, Dot):
            dot = _dot(key, model, chosen)
            if dot is not None:
                yield dot


def _dot(key: NestKey, model: LoopModel, chosen: list[int]) -> _StagedDot | None:
    op, operands = key.array.instruction.op, key.array.instruction.operands
    assert isinstance(op, Dot)
    sizes = _padded_tile(key.array, key.map, model, chosen)
    shapes = [operand.shape for operand in operands if isinstance(operand.shape, Shape)]
    if sizes is None or len(shapes) != 2:
        return None
    own = [model.rank + k for k, loop in enumerate(model.loops) if loop.array == key.array]
    contracted = prod([padded_size(chosen[axis]) for axis in own])
    batch, split = len(op.lhs_batch_dims), shapes[0].rank - len(op.lhs_contracting_dims)
    rows, columns = prod(sizes[batch:split]), prod(sizes[split:])
    tiles = [
        prod(sizes[:batch]) * size * contracted * shape.element_bits // 8
        for size, shape in zip((rows, columns), shapes, strict=True)
    ]
    return _StagedDot(
        rows,
        columns,
        tuple([n for n, each in zip(tiles, operands, strict=True) if reads_parameters(each)]),
        shapes[0].element_bits,
        prod([-(-model.sizes[axis] // chosen[axis]) for axis in own]),
        any(model.sizes[axis] % chosen[axis] for axis in own),
        is_computed(operands[0]),
    )


def _padded_tile(
    array: ArrayRef, to_array: IndexingMap, model: LoopModel, chosen: list[int]
) -> list[int] | None:
    """Return the padded sizes of a tile; beyond the edge of the array if chosen so."""
    if array.array_shape is None:
        return None
    sets = model.sets(array, to_array, model.axes(chosen))
    if isinstance(sets, Unknown):
        return None
    sizes = []
    for result, extent in zip(to_array.results, sets.extents, strict=True):
        variable = result.as_variable
        size = extent if variable is None else max(extent, chosen[dimension_of(variable)])
        sizes.append(padded_size(size))
    return sizes


def reads_parameters(instruction: Instruction) -> bool:
    """Return True if an instruction depends on a parameter of its computation."""
    seen: set[Instruction] = set()
    stack = [instruction]
    while stack:
        each = stack.pop()
        if isinstance(each.op, Parameter):
            return True
        stack += [operand for operand in each.operands if operand not in seen]
        seen.update(each.operands)
    return False


def is_computed(instruction: Instruction) -> bool:
    """Return True if a value is a function of those of parameters, and no copy or conversion."""
    seen: set[Instruction] = set()
    stack = [instruction]
    while stack:
        each = stack.pop()
        if isinstance(each.op, ElementwiseOp) and reads_parameters(each):
            if not isinstance(each.op, Convert):
                return True
        stack += [operand for operand in each.operands if operand not in seen]
        seen.update(each.operands)
    return False
