"""`Gpu`: facts of GPU models that limit a thread block.

>>> gpu("H100").shared_memory_per_block
232448
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hlo.text.names import did_you_mean, similar


@dataclass(frozen=True, slots=True)
class Gpu:
    """Resources of one GPU model, as XLA describes it to its compiler.

    Attributes:
        name: the name of the model.
        shared_memory_per_block: bytes of shared memory that one block may allocate, with opt-in.
        registers_per_block: number of 32-bit registers of one block.
        threads_per_warp: number of threads that execute in lockstep.
        max_blocks: most blocks of a launch along x.
        source: XLA's description of the model, a file of ``xla/backends/gpu/target_config/specs``.
    """

    name: str
    shared_memory_per_block: int
    registers_per_block: int
    threads_per_warp: int
    max_blocks: int
    source: str


# fmt: off
GPUS: Final = {
    facts[0]: Gpu(*facts)
    for facts in [
        # model  shared memory  registers  warp  blocks         description
        ("V100",    98_304,       65_536,  32,   2_147_483_647, "v100.txtpb"),
        ("A100",    166_912,      65_536,  32,   2_147_483_647, "a100_sxm_80.txtpb"),
        ("A6000",   101_376,      65_536,  32,   2_147_483_647, "a6000.txtpb"),
        ("H100",    232_448,      65_536,  32,   2_147_483_647, "h100_sxm.txtpb"),
        ("B200",    232_448,      65_536,  32,   2_147_483_647, "b200.txtpb"),
        ("MI300",   65_536,       131_072, 64,   2_147_483_647, "mi300.txtpb"),
    ]
}
# fmt: on
"""The models by name; the fields ``shared_memory_per_block_optin``, ``registers_per_block_limit``,
``threads_per_warp`` and ``block_dim_limit_x`` of the descriptions."""


def gpu(name: str) -> Gpu:
    """Return the facts of a GPU model.

    Raises:
        ValueError: the model is not in `GPUS`; the message lists the models.

    >>> gpu("TPU")
    Traceback (most recent call last):
    ...
    ValueError: unknown GPU 'TPU': expected one of V100, A100, A6000, H100, B200, MI300
    """
    if name in GPUS:
        return GPUS[name]
    question = did_you_mean(similar(name, GPUS))
    message = f"unknown GPU {name!r}: expected one of {', '.join(GPUS)}"
    raise ValueError(f"{message}; {question}" if question else message)
