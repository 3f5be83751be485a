"""The rules of a device by its name."""

from __future__ import annotations

from hlo.text.names import did_you_mean, similar
from indexing.devices.gpus import GPUS
from indexing.devices.tpus import VMEM_MIB
from indexing.tiling.loops.block_rules import BlockRules, DeviceRules
from indexing.tiling.loops.tpu_rules import TpuRules


def rules_of(device: str) -> DeviceRules:
    """Return the rules of a GPU such as "H100", or of a TPU such as "v5e" or "tpu:v5e".

    Raises:
        ValueError: the device is not known.

    >>> rules_of("H100").processors, rules_of("tpu:v5e").processors
    (132, 1)
    """
    name = device.removeprefix("tpu:")
    if name in VMEM_MIB:
        return TpuRules.of_tpu(name)
    if device not in GPUS:
        known = [*GPUS, *VMEM_MIB]
        message = f"unknown device {device!r}: expected one of {', '.join(known)}"
        question = did_you_mean(similar(device, known))
        raise ValueError(f"{message}; {question}" if question else message)
    return BlockRules.of_gpu(device)
