"""Ops that return the id of the executing partition or replica.

Source: XLA ``docs/operation_semantics.md``, "PartitionId" and "ReplicaId".
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from hlo.ops.op import Shape, op
from indexing.devices.devices import Devices
from indexing.ops.base import Array, NullaryOp
from simplifier.linear import Affine


class DeviceId(NullaryOp):
    """An op that returns an id; a kernel runs on a single device with id 0."""

    __slots__ = ()
    has_local_form: ClassVar[bool] = False
    moves_bytes: ClassVar[bool] = False

    @abstractmethod
    def of_device(self, devices: Devices, device: int) -> Affine:
        """The id on device number `device`, as an affine expression of `device`."""

    def infer_shape(self) -> Shape:
        return Shape("u32", ())

    def kernel(self) -> Array:
        return np.zeros((), np.uint32)


@op("partition-id", samples=["u32[] partition-id()"])
class PartitionId(DeviceId):
    """The partition that the device executes."""

    def of_device(self, devices: Devices, device: int) -> Affine:
        return devices.partition_id(device)


@op("replica-id", samples=["u32[] replica-id()"])
class ReplicaId(DeviceId):
    """The replica that the device executes."""

    def of_device(self, devices: Devices, device: int) -> Affine:
        return devices.replica_id(device)
