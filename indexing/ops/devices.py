"""Ops whose value is which device runs the program.

Source: XLA ``docs/operation_semantics.md``, "PartitionId" and "ReplicaId".
"""

from __future__ import annotations

import numpy as np

from hlo.ops.op import Shape, op
from indexing.ops.base import Array, NullaryOp


class DeviceId(NullaryOp):
    """A number of the device; kernels run on a single one, whose number is 0.

    It has no `value`: on other devices it is another one.
    """

    __slots__ = ()

    def infer_shape(self) -> Shape:
        return Shape("u32", ())

    def kernel(self) -> Array:
        return np.zeros((), np.uint32)


@op("partition-id", samples=["u32[] partition-id()"])
class PartitionId(DeviceId):
    """Which partition of the program the device runs."""


@op("replica-id", samples=["u32[] replica-id()"])
class ReplicaId(DeviceId):
    """Which replica of the program the device runs."""
