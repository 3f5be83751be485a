"""`Target`: what XLA compiles for, without the device: a TPU topology, a GPU model or a CPU.

>>> Target.parse("tpu:v5e:2x2").platform, Target.parse("gpu:H100:8").count
('tpu', 8)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from hlo.text.names import did_you_mean, similar
from indexing.devices.gpus import GPUS, PROCESSORS, Gpu, Processor

TOPOLOGIES: Final = {
    "v2": "2x2",
    "v3": "2x2",
    "v4": "2x2x1",
    "v5e": "2x2",
    "v5p": "2x2x1",
    "v6e": "2x2",
}
"""Generations of TPUs, and the topology of one host."""

FORMS: Final = "tpu:v5e:2x2, gpu:H100, gpu:H100:8, cpu, cpu:8"

_TOPOLOGY: Final = re.compile(r"[1-9]\d*(?:x[1-9]\d*){1,2}(?:_twisted|_untwisted)?")


@dataclass(frozen=True, slots=True)
class Target:
    """A platform of XLA and the devices of it that a module is compiled for.

    Attributes:
        platform: as JAX names it: ``tpu``, ``cuda``, ``rocm`` or ``cpu``.
        model: a generation of TPUs, or a model of `indexing.devices.gpus.GPUS`; "" for ``cpu``.
        topology: the chips of a TPU slice in each dimension, such as ``4x8``; "" elsewhere.
        count: the number of devices; None for as many as a program needs, or as the topology has.
    """

    platform: str
    model: str = ""
    topology: str = ""
    count: int | None = None

    @classmethod
    def parse(cls, text: str) -> Target:
        """Return the target of a text.

        Raises:
            ValueError: the text names no target; the message says what was expected.

        >>> Target.parse("gpu:H200")
        Traceback (most recent call last):
        ...
        ValueError: unknown GPU 'H200' in 'gpu:H200': expected one of V100, A100, ...
        >>> Target.parse("tpu:v6e")
        Target(platform='tpu', model='v6e', topology='2x2', count=None)
        """
        kind, *rest = text.split(":")
        if kind == "cpu" and len(rest) <= 1:
            return cls("cpu", count=_count(text, rest))
        if kind == "gpu" and 1 <= len(rest) <= 2:
            _check_name(text, "GPU", rest[0], list(GPUS))
            return cls(PROCESSORS[rest[0]].platform, rest[0], count=_count(text, rest[1:]))
        if kind == "tpu" and 1 <= len(rest) <= 2:
            _check_name(text, "generation of TPUs", rest[0], list(TOPOLOGIES))
            topology = rest[1] if rest[1:] else TOPOLOGIES[rest[0]]
            if not _TOPOLOGY.fullmatch(topology):
                example = f"tpu:{rest[0]}:{TOPOLOGIES[rest[0]]}"
                raise ValueError(
                    f"{topology!r} in {text!r} is not a topology: expected the chips in each "
                    f"dimension, such as {example}"
                )
            return cls("tpu", rest[0], topology)
        raise ValueError(f"{text!r} is not a target: expected one such as {FORMS}")

    def __str__(self) -> str:
        """Return the text that `parse` reads.

        >>> str(Target.parse("gpu:A100"))
        'gpu:A100'
        """
        if self.platform == "tpu":
            return f"tpu:{self.model}:{self.topology}"
        name = f"gpu:{self.model}" if self.model else "cpu"
        return name if self.count is None else f"{name}:{self.count}"

    @property
    def configuration(self) -> str:
        """XLA's description of a GPU, a text of ``GpuTargetConfigProto``; "" of other devices.

        Source: XLA ``xla/stream_executor/device_description.proto``.
        """
        if self.platform not in ("cuda", "rocm"):
            return ""
        return _configuration(GPUS[self.model], PROCESSORS[self.model])


def _count(text: str, words: list[str]) -> int | None:
    if not words:
        return None
    if not re.fullmatch(r"[1-9]\d{0,4}", words[0], re.ASCII):
        raise ValueError(f"{words[0]!r} in {text!r} is not a number of devices")
    return int(words[0])


def _check_name(text: str, kind: str, name: str, known: list[str]) -> None:
    if name in known:
        return
    question = did_you_mean(similar(name, known))
    message = f"unknown {kind} {name!r} in {text!r}: expected one of {', '.join(known)}"
    raise ValueError(f"{message}; {question}" if question else message)


def _configuration(model: Gpu, processor: Processor) -> str:
    is_cuda = processor.platform == "cuda"
    if is_cuda:
        major, minor = processor.capability.rstrip("a").split(".")
        extension = "ACCELERATED_FEATURES" if processor.capability.endswith("a") else "NONE"
        capability = (
            f"cuda_compute_capability {{ major: {major} minor: {minor} "
            f"feature_extension: {extension} }}"
        )
    else:
        capability = f'rocm_compute_capability {{ gcn_arch_name: "{processor.capability}" }}'
    blocks = processor.block_dim_limit_y
    limits = {
        "threads_per_block_limit": 1024,
        "threads_per_warp": model.threads_per_warp,
        "shared_memory_per_block": processor.shared_memory_per_block,
        "shared_memory_per_core": processor.shared_memory_per_core,
        "shared_memory_per_block_optin": model.shared_memory_per_block,
        "threads_per_core_limit": processor.threads_per_core_limit,
        "core_count": processor.core_count,
        "fpus_per_core": processor.fpus_per_core,
        "block_dim_limit_x": model.max_blocks,
        "block_dim_limit_y": blocks,
        "block_dim_limit_z": blocks,
        "memory_bandwidth": processor.memory_bandwidth,
        "l2_cache_size": model.l2_cache_bytes,
        "clock_rate_ghz": processor.clock_rate_mhz / 1000,
        "device_memory_size": processor.device_memory_size,
        "registers_per_core_limit": model.registers_per_block,
        "registers_per_block_limit": model.registers_per_block,
        "thread_dim_limit_x": 1024,
        "thread_dim_limit_y": 1024,
        "thread_dim_limit_z": 64 if is_cuda else 1024,
    }
    lines = [f"  {name}: {value}" for name, value in limits.items()]
    versions = (
        "runtime_version { major: 12 minor: 8 patch: 0 }\n"
        "dnn_version_info { major: 9 minor: 10 patch: 0 }\n"
    )
    return (
        "\n".join(["gpu_device_info {", *lines, f"  {capability}", "}"])
        + f'\nplatform_name: "{processor.platform.upper()}"\n'
        + (versions if is_cuda else "")
        + f'device_description_str: "{processor.description}"\n'
    )
