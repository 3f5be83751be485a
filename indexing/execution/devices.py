"""Which device of how many runs a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from indexing.execution.rendezvous import Rendezvous


@dataclass(frozen=True, slots=True)
class Device:
    """One of ``replicas × partitions`` devices; numbers go through the partitions first.

    Attributes:
        number: 0 to ``replicas · partitions − 1``.
        replicas, partitions: how many there are.
        rendezvous: where devices exchange values; None for a device that is alone.
    """

    number: int = 0
    replicas: int = 1
    partitions: int = 1
    rendezvous: Rendezvous | None = None

    @property
    def replica(self) -> int:
        """Which replica of the program it runs."""
        return self.number // self.partitions

    @property
    def partition(self) -> int:
        """Which partition of it."""
        return self.number % self.partitions


ALONE: Final = Device()
