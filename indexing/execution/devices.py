"""The numbering of simulated devices: replicas and partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from indexing.execution.rendezvous import Rendezvous


@dataclass(frozen=True, slots=True)
class Device:
    """One of ``replicas × partitions`` devices: ``number = replica · partitions + partition``.

    Attributes:
        number: from 0 to ``replicas · partitions − 1``.
        replicas, partitions: the numbers of replicas and of partitions per replica.
        rendezvous: exchanges values between devices; None for a single device.
    """

    number: int = 0
    replicas: int = 1
    partitions: int = 1
    rendezvous: Rendezvous | None = None

    @property
    def replica(self) -> int:
        """The number of the device's replica."""
        return self.number // self.partitions

    @property
    def partition(self) -> int:
        """The number of the device's partition."""
        return self.number % self.partitions


SINGLE_DEVICE: Final = Device()
