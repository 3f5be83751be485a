"""Ops whose value is which device runs the program.

Source: XLA ``docs/operation_semantics.md``, "PartitionId" and "ReplicaId".
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from hlo.ops.op import Shape, op
from indexing.devices.devices import Devices
from indexing.ops.base import Array, NullaryOp
from simplifier.linear import Affine


class DeviceId(NullaryOp):
    """A number of the device; kernels run on a single one, whose number is 0."""

    __slots__ = ()

    @abstractmethod
    def of_device(self, devices: Devices, device: int) -> Affine:
        """The number on one of the devices."""

    def infer_shape(self) -> Shape:
        return Shape("u32", ())

    def kernel(self) -> Array:
        return np.zeros((), np.uint32)


@op("partition-id", samples=["u32[] partition-id()"])
class PartitionId(DeviceId):
    """Which partition of the program the device runs."""

    def of_device(self, devices: Devices, device: int) -> Affine:
        return devices.partition_id(device)


@op("replica-id", samples=["u32[] replica-id()"])
class ReplicaId(DeviceId):
    """Which replica of the program the device runs."""

    def of_device(self, devices: Devices, device: int) -> Affine:
        return devices.replica_id(device)
