"""`Gpu`: facts of GPU models that limit a thread block, and the widths of their memories.

>>> gpu("H100").shared_memory_per_block, gpu("H100").sector_bytes
(232448, 32)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from hlo.arguments import checked_constructor
from hlo.text.names import did_you_mean, similar


@dataclass(frozen=True, slots=True)
class Processor:
    """Facts of a GPU that XLA's compiler reads, beside those of `Gpu`.

    The attributes are the fields of XLA's message ``GpuDeviceInfoProto``.

    Attributes:
        shared_memory_per_block: bytes of shared memory of one block without opt-in.
        shared_memory_per_core: bytes of shared memory of one multiprocessor.
        threads_per_core_limit: most threads on one multiprocessor.
        core_count: number of multiprocessors.
        fpus_per_core: number of float32 units of one multiprocessor.
        memory_bandwidth: bytes of device memory per second.
        clock_rate_mhz: clock of the multiprocessors; XLA's field is in GHz.
        device_memory_size: bytes of device memory.
        block_dim_limit_y: most blocks of a launch along y, and along z.
        capability: the architecture: ``9.0a`` for CUDA, ``gfx942`` for ROCm.
        description: the name by which the driver lists the device.
    """

    shared_memory_per_block: int
    shared_memory_per_core: int
    threads_per_core_limit: int
    core_count: int
    fpus_per_core: int
    memory_bandwidth: int
    clock_rate_mhz: int
    device_memory_size: int
    block_dim_limit_y: int
    capability: str
    description: str

    @property
    def platform(self) -> Literal["cuda", "rocm"]:
        """The platform, as JAX names it."""
        return "rocm" if self.capability.startswith("gfx") else "cuda"

    @property
    def flops(self) -> int:
        """The most float32 operations per second; a fused multiply-add is two."""
        return 2 * self.core_count * self.fpus_per_core * self.clock_rate_mhz * 10**6


@checked_constructor
@dataclass(frozen=True, slots=True)
class Gpu:
    """Resources of one GPU model, as XLA and the manuals of the vendors describe it.

    The defaults are those of NVIDIA GPUs.

    Attributes:
        name: the name of the model.
        shared_memory_per_block: bytes of shared memory that one block may allocate, with opt-in.
        registers_per_block: number of 32-bit registers of one block.
        threads_per_warp: number of threads that execute in lockstep.
        max_blocks: most blocks of a launch along x.
        source: XLA's description of the model, a file of ``xla/backends/gpu/target_config/specs``.
        sector_bytes: the unit of transfers between the caches, aligned.
        line_bytes: the size of a cache line, aligned.
        l2_cache_bytes: size of the L2 cache, on AMD GPUs of that of one die; `None` if not known.
        banks: number of banks of shared memory.
        bank_bytes: number of consecutive bytes in one bank.
        vector_bytes: the most bytes that one lane loads or stores with one instruction.

    Source: NVIDIA "CUDA C++ Best Practices Guide", "Coalesced Access to Global Memory" (sectors)
    and "Shared Memory and Memory Banks"; Nsight Compute "Kernel Profiling Guide", "Memory Tables"
    (lines of four sectors); AMD "CDNA 3" white paper (lines, banks) and "ROCm Compute Profiler",
    "Vector L1 cache" (requests of 64 bytes).

    >>> from indexing.devices.gpus import gpu
    >>> h100 = gpu("H100")
    >>> h100.threads_per_warp, h100.sector_bytes, h100.line_bytes, h100.banks
    (32, 32, 128, 32)
    """

    name: str
    shared_memory_per_block: int
    registers_per_block: int
    threads_per_warp: int
    max_blocks: int
    source: str
    sector_bytes: int = 32
    line_bytes: int = 128
    l2_cache_bytes: int | None = None
    banks: int = 32
    bank_bytes: int = 4
    vector_bytes: int = 16


# fmt: off
GPUS: Final = {
    facts[0]: Gpu(*facts)
    for facts in [
        # model   shared   registers warp blocks    description        sector line L2
        ("V100",  98_304,  65_536,   32, 2**31 - 1, "v100.txtpb",        32, 128, 6_291_456),
        ("A100",  166_912, 65_536,   32, 2**31 - 1, "a100_sxm_80.txtpb", 32, 128, 41_943_040),
        ("A6000", 101_376, 65_536,   32, 2**31 - 1, "a6000.txtpb",       32, 128, 6_291_456),
        ("H100",  232_448, 65_536,   32, 2**31 - 1, "h100_sxm.txtpb",    32, 128, 52_428_800),
        ("B200",  232_448, 65_536,   32, 2**31 - 1, "b200.txtpb",        32, 128, 132_644_864),
        ("MI300", 65_536,  131_072,  64, 2**31 - 1, "mi300.txtpb",       64, 128, 4_194_304),
    ]
}
# fmt: on
"""The models by name; the fields ``shared_memory_per_block_optin``, ``registers_per_block_limit``,
``threads_per_warp``, ``block_dim_limit_x`` and ``l2_cache_size`` of the descriptions, and the
widths in bytes."""

# fmt: off
PROCESSORS: Final = {
    facts[0]: Processor(*facts[1:])
    for facts in [
        # model,  shared memory by block and core, threads, cores, units, bytes/s, MHz, memory,
        # blocks along y, architecture, description
        ("V100",  49_152,  98_304, 2048,    80,   64,   898_048_000_000, 1530,  16_935_682_048,
         65_535, "7.0", "Tesla V100-SXM2-16GB"),
        ("A100",  49_152, 167_936, 2048,   108,   64, 2_039_040_000_000, 1410,  85_100_068_864,
         65_535, "8.0", "NVIDIA A100-SXM4-80GB"),
        ("A6000", 49_152, 102_400, 1536,    84,  128,   768_096_000_000, 1800,  51_041_271_808,
         65_535, "8.6", "NVIDIA RTX A6000"),
        ("H100",  49_152, 233_472, 2048,   132,  128, 3_352_320_000_000, 1980,  84_942_979_072,
         65_535, "9.0a", "NVIDIA H100 80GB HBM3"),
        ("B200",  49_152, 233_472, 2048,   148,  128, 7_672_320_000_000, 1965, 191_514_411_008,
         65_535, "10.0a", "NVIDIA B200"),
        ("MI300", 65_536,  65_536, 2048,   304,  128, 6_810_000_000_000, 2100, 270_566_162_432,
         65_536, "gfx942:sramecc+:xnack-", "MI300X"),
    ]
}
# fmt: on
"""What XLA's descriptions, the field `source` of `GPUS`, say of each model beside `GPUS`."""

MEMORY_SPACES: Final = {
    0: "device memory",
    1: "collective memory",
    2: "temporary memory",
    5: "host",
    7: "collective memory",
}
"""The numbers ``S(..)`` of layouts.

Source: XLA ``xla/service/gpu/gpu_memory_space_assignment.h``: collectives use memory that is
registered with NCCL, and temporary buffers may have a space of their own; collective memory is 7
since `Layout` has a number for it.
"""

Device: TypeAlias = "str | Gpu"
"""A GPU, or the name of a model in `GPUS`."""


def gpu(name: Device) -> Gpu:
    """Return the facts of a GPU model.

    Raises:
        ValueError: the model is not in `GPUS`; the message lists the models.

    >>> gpu("TPU")
    Traceback (most recent call last):
    ...
    ValueError: unknown GPU 'TPU': expected one of V100, A100, A6000, H100, B200, MI300
    """
    if isinstance(name, Gpu):
        return name
    if name in GPUS:
        return GPUS[name]
    question = did_you_mean(similar(name, GPUS))
    message = f"unknown GPU {name!r}: expected one of {', '.join(GPUS)}"
    raise ValueError(f"{message}; {question}" if question else message)
