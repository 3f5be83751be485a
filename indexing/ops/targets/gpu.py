"""Custom calls of XLA:GPU whose reads are known."""

from __future__ import annotations

from typing import ClassVar

from hlo.modules.module import Instruction
from hlo.ops.dim_labels import dim_labels
from hlo.ops.op import custom_call
from hlo.shapes.shape import leaf_shape
from hlo.text.source import HloError
from indexing.maps.answers import Path, Unknown
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.convolution import Convolution
from indexing.ops.targets.known_reads import KnownReads


@custom_call(
    "__cudnn$convForward",
    samples=[
        "(f32[1,2,2,2], u8[0]) custom-call(f32[1,5,3,2] p, f32[2,2,3,2] q), "
        "window={size=2x3 stride=2x1 pad=-1_0x1_0}, dim_labels=b01f_i01o->b01f, "
        'custom_call_target="__cudnn$convForward"'
    ],
)
class CudnnConvForward(KnownReads):
    """A convolution, and the memory that it works in.

    Source: XLA ``xla/service/gpu/cublas_cudnn.h``.
    """

    obstacle: ClassVar[str] = Convolution.obstacle

    def maps(
        self, instruction: Instruction, output: Path, operand: int, backward: bool
    ) -> tuple[IndexingMap, ...] | None:
        if output != (0,) or operand > 1:
            return None
        try:
            labels = dim_labels.parse(self.dim_labels)
        except HloError:  # a custom call may have any
            return None
        convolution = Convolution(
            window=self.window,
            dim_labels=labels,
            feature_group_count=self.feature_group_count,
            batch_group_count=self.batch_group_count,
        )
        shapes = tuple([each.shape for each in instruction.operands[:2]])
        out = leaf_shape(instruction.shape, output)
        if backward:
            maps = convolution.reads(out, shapes)[operand]
        else:
            (maps,) = convolution.writes(out, shapes, operand)
        return None if isinstance(maps, Unknown) else maps
