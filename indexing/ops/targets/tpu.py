"""Custom calls of XLA:TPU whose reads are known.

An approximate choice of the k largest elements first reduces parts of the array.
"""

from __future__ import annotations

from typing import ClassVar, Final

from hlo.modules.module import Instruction
from hlo.ops.attributes import integer, string
from hlo.ops.op import configured, custom_call
from hlo.shapes.shape import Shape, leaf_shape
from indexing import methods
from indexing.maps.answers import Path, Unknown
from indexing.ops.base import Maps, every_element
from indexing.ops.sort import along
from indexing.ops.targets.known_reads import KnownReads


@custom_call(
    "ConcatBitcast",
    samples=['f32[4,3] custom-call(f32[2,3] p, f32[2,3] q), custom_call_target="ConcatBitcast"'],
)
class ConcatBitcast(KnownReads):
    """An array whose slices were copied to their places, one by one: nothing is written.

    The call does not name the order of the slices, which need not be that of the operands.

    Source: XLA ``xla/service/memory_space_assignment/allocation.cc``, ``CreateBitcastConcat``.
    """

    joins_operands: ClassVar[bool] = True

    def maps(self, instruction: Instruction, output: Path, operand: int) -> None:
        return None


_PARTIAL: Final = "PartialReduce"


@custom_call(
    _PARTIAL,
    samples=[
        "(f32[2,2], s32[2,2]) custom-call(f32[2,5] p, s32[2,5] q, f32[] r, s32[] s), "
        f'custom_call_target="{_PARTIAL}", backend_config={{"log2_reduction": 1, '
        '"reduction_dim": 1, "to_apply_type": "comparator", "top_k": 1, "recall_target": 0.9}'
    ],
)
class PartialReduce(KnownReads):
    """Candidates for the k largest elements along a dimension, of fewer elements.

    Which elements are compared for which candidate is up to the compiler.

    Source: XLA ``xla/hlo/builder/lib/approx_topk.cc``.
    """

    obstacle: ClassVar[str] = "the elements that are compared along the dimension are not specified"
    reduction_dim: int = configured(integer, default=-1)

    def maps(self, instruction: Instruction, output: Path, operand: int) -> Maps | None:
        out, array = leaf_shape(instruction.shape, output), instruction.operands[operand].shape
        if not isinstance(out, Shape) or not isinstance(array, Shape):
            return None
        if not array.rank:  # an initial value
            return (every_element(out, array).with_grade("may"),)
        k, sizes = self.reduction_dim, [list(each.dims) for each in (out, array)]
        if not 0 <= k < out.rank == array.rank:
            return None
        is_along = [each[:k] + each[k + 1 :] for each in sizes]
        return (along(out, array, k).with_grade("may"),) if is_along[0] == is_along[1] else None


@custom_call(
    "tpu_custom_call",
    samples=[
        "(f32[8,128], f32[3]) custom-call(f32[8,128] p, s32[5] q), "
        'custom_call_target="tpu_custom_call", backend_config={"custom_call_config": {"body": ""}}'
    ],
)
class MosaicKernel(KnownReads):
    """A kernel of Mosaic, such as one of Pallas: its module is in the configuration.

    An element needs the blocks of the operands at the steps of the grid that compute it.  Which
    elements of a block it needs is not derived from the kernel.

    Source: JAX ``jax/_src/tpu_custom_call.py``.
    """

    obstacle: ClassVar[str] = "a kernel is assumed to use all elements of the blocks that it loads"
    body: str = configured(string, default="", name="custom_call_config.body")

    def maps(self, instruction: Instruction, output: Path, operand: int) -> Maps | Unknown:
        return methods.mosaic_maps(instruction, self.body, output, operand)
