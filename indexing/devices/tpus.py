"""Peak rates of TPUs.

>>> TPUS["v5e"].flops
197000000000000

Source: "Cloud TPU documentation" of Google, the tables of key specifications of the pages "TPU v4",
"TPU v5e", "TPU v5p" and "TPU v6e".
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Tpu(NamedTuple):
    """The peak rates of one chip.

    Attributes:
        memory_bandwidth: bytes of HBM per second.
        flops: bfloat16 operations of the matrix units per second; a fused multiply-add is two.
    """

    memory_bandwidth: int
    flops: int


TPUS: Final = {
    "v4": Tpu(1_200 * 10**9, 275 * 10**12),
    "v5e": Tpu(819 * 10**9, 197 * 10**12),
    "v5p": Tpu(2_765 * 10**9, 459 * 10**12),
    "v6e": Tpu(1_640 * 10**9, 918 * 10**12),
}
"""The generations whose rates are published, by the names of targets."""
