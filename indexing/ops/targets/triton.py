"""Kernels of Triton in custom calls of XLA:GPU."""

from __future__ import annotations

from typing import Final

from hlo.modules.module import Instruction
from hlo.ops.op import custom_call
from indexing.maps.answers import Path, Unknown
from indexing.ops.base import Maps
from indexing.ops.targets.known_reads import KnownReads

_TARGET: Final = "__gpu$xla.gpu.triton"


@custom_call(
    _TARGET,
    samples=[
        f'f32[8,128] custom-call(f32[8,128] p), custom_call_target="{_TARGET}", '
        'backend_config={name = "k", ir = "", grid_x = 8 : i32}'
    ],
)
class TritonKernel(KnownReads):
    """A kernel of Triton, such as one of Pallas for GPUs: any element may need every element.

    Its module has no blocks: each program computes pointers, and loops advance them.

    Source: JAX ``jax/_src/pallas/triton/pallas_call_registration.py``.
    """

    def maps(self, instruction: Instruction, output: Path, operand: int) -> Maps | Unknown:
        return Unknown("a Triton kernel computes pointers, from which no blocks are derived")
