"""Custom calls that annotate a value: the result is the operand."""

from __future__ import annotations

from hlo.ops.op import custom_call
from hlo.ops.protocols import InstructionLike
from hlo.shapes.shape import AnyShape, BufferShape, Shape
from indexing.ops.structure import ForwardingOp


class Annotation(ForwardingOp):
    """A call that annotates a value.

    XLA and JAX mark some of them with `custom_call_has_side_effect`, so that they are not removed.
    """

    __slots__ = ()

    def has_side_effect(self, instruction: InstructionLike) -> bool:
        return False


@custom_call(
    "Sharding", samples=['f32[2,3] custom-call(f32[2,3] p), custom_call_target="Sharding"']
)
class ShardingCall(Annotation):
    """The operand, annotated with the distribution in the attribute ``sharding``.

    Source: XLA ``xla/service/sharding_propagation.cc``, where the call annotates a value.
    """


@custom_call(
    "xla.sdy.FuncResultSharding",
    samples=['f32[2,3] custom-call(f32[2,3] p), custom_call_target="xla.sdy.FuncResultSharding"'],
)
class FuncResultSharding(Annotation):
    """The operand, a result of a function, annotated with the distribution in its attributes.

    Source: XLA ``xla/service/spmd/shardy/constants.h``.
    """


@custom_call(
    "xla.sdy.PropagationBarrier",
    samples=['f32[2,3] custom-call(f32[2,3] p), custom_call_target="xla.sdy.PropagationBarrier"'],
)
class PropagationBarrier(Annotation):
    """The operand; shardings do not propagate through it.

    Source: XLA ``xla/service/spmd/shardy/constants.h``.
    """


@custom_call(
    "annotate_device_placement",
    samples=['f32[2] custom-call(f32[2] p), custom_call_target="annotate_device_placement"'],
)
class DevicePlacement(Annotation):
    """The operand, annotated with the memory that the attributes name.

    Source: XLA ``xla/service/memory_annotations.h``.
    """


@custom_call(
    "MoveToHost", samples=['f32[2] custom-call(f32[2] p), custom_call_target="MoveToHost"']
)
class MoveToHost(Annotation):
    """The operand, in host memory.

    Source: XLA ``xla/service/memory_annotations.h``.
    """


@custom_call(
    "MoveToDevice", samples=['f32[2] custom-call(f32[2] p), custom_call_target="MoveToDevice"']
)
class MoveToDevice(Annotation):
    """The operand, in device memory.

    Source: XLA ``xla/service/memory_annotations.h``.
    """


@custom_call(
    "AssumeGatherIndicesInBound",
    samples=['s32[8] custom-call(s32[8] p), custom_call_target="AssumeGatherIndicesInBound"'],
)
class AssumeGatherIndicesInBound(Annotation):
    """The operand: indices that XLA:TPU assumes to be within the gathered array."""


@custom_call(
    "GatherScatterIndicesBitpacked",
    samples=[
        's32[8,2] custom-call(s32[8,2] p), custom_call_target="GatherScatterIndicesBitpacked"'
    ],
)
class GatherScatterIndicesBitpacked(Annotation):
    """The operand, indices that XLA:TPU has joined in one integer and split again.

    A gather or scatter reads the result as the indices.

    Source: dumps of XLA:TPU after the pass ``tpu_scatter_gather_normalizer``: shifts and masks
    split an integer, a concatenate joins its parts, and the call replaces the concatenate.
    """


@custom_call(
    "LayoutConstraint",
    samples=['f32[2,3] custom-call(f32[2,3] p), custom_call_target="LayoutConstraint"'],
)
class LayoutConstraint(Annotation):
    """The operand, in the layout of the result.

    Source: JAX ``jax/_src/interpreters/mlir.py``, `wrap_with_layout_op`.
    """


@custom_call("Pin", samples=['b(f32[2,3]) custom-call(f32[2,3] p), custom_call_target="Pin"'])
class Pin(Annotation):
    """The operand, in a buffer that stays where it is until `Unpin`.

    Source: XLA ``xla/service/hlo_verifier.cc``.
    """

    def infer_shape(self, operand: AnyShape) -> AnyShape:
        return BufferShape(operand) if isinstance(operand, Shape) else operand


@custom_call("Unpin", samples=['f32[2,3] custom-call(f32[2,3] p), custom_call_target="Unpin"'])
class Unpin(Annotation):
    """The operand, out of a buffer that was pinned.

    Source: XLA ``xla/service/hlo_verifier.cc``.
    """

    def infer_shape(self, operand: AnyShape) -> AnyShape:
        return operand.element if isinstance(operand, BufferShape) else operand
