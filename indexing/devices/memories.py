"""The sizes of the memories of a device, by the numbers ``S(..)`` of layouts.

>>> memory_sizes("v5e")[1] == 128 << 20  # VMEM
True
"""

from __future__ import annotations

from collections.abc import Mapping

from hlo.text.names import did_you_mean, similar
from indexing.devices.gpus import PROCESSORS
from indexing.devices.tpus import TPUS, VMEM_MIB


def memory_sizes(device: str) -> Mapping[int, int]:
    """Return the bytes of the memories of a TPU or GPU whose sizes are known.

    Those of a TPU are HBM, of one chip, and VMEM, of one core; that of a GPU is the device memory.
    A program cannot use all of it: the runtime and the compiler reserve some.

    Raises:
        ValueError: the device is not known.

    >>> memory_sizes("v3"), memory_sizes("H100")
    ({1: 16777216}, {0: 84942979072})
    """
    if device in PROCESSORS:
        return {0: PROCESSORS[device].device_memory_size}
    sizes: dict[int, int] = {}
    if device in TPUS:
        sizes[0] = TPUS[device].hbm_gib << 30
    if device in VMEM_MIB:
        sizes[1] = VMEM_MIB[device] << 20
    if not sizes:
        known = [*PROCESSORS, *VMEM_MIB]
        question = did_you_mean(similar(device, known))
        message = f"unknown device {device!r}: expected one of {', '.join(known)}"
        raise ValueError(f"{message}; {question}" if question else message)
    return sizes
