"""Published tilings of experts and autotuners beside the best tilings of the search.

    python -m benchmarks.expert_tilings [--top 10]

For each tiling of `EXPERTS` it prints whether the rules of the device allow it, its bytes relative
to those of the best tiling, and the best tiling.  The best is plausible beside the expert's if the
expert's is legal and moves at most `PLAUSIBLE` times the bytes of the best.  Rules of GPUs are
those of Triton, which pads tiles to powers of two; kernels of FlashAttention 3 do not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from time import process_time
from typing import Final

import hlo
import indexing
from benchmarks.tiling_problems import text_of
from indexing.tiling.loops.loop_search import BestLoopTilings
from indexing.tiling.loops.loop_tiling import LoopTiling
from simplifier.unknown import Unknown

PLAUSIBLE: Final = 1.5

GLUON: Final = (
    "https://github.com/triton-lang/triton/blob/70fbe5204c5538631daedc1a71744cf235afad52/"
    "python/tutorials/gluon/05-wgmma.py"  # the fastest of those measured, in each of two kernels
)
CUTLASS: Final = "https://github.com/NVIDIA/cutlass/blob/"
CUTLASS_GEMM: Final = (
    f"{CUTLASS}18422531ddc471e6bc060a690eb22d50f1836b12/examples/48_hopper_warp_specialized_gemm"
)
CUTLASS_CONV: Final = (
    f"{CUTLASS}0e137486498a52954eff239d874ee27ab23358e7/examples/16_ampere_tensorop_conv2dfprop"
)
VLLM: Final = "https://github.com/vllm-project/vllm/blob/"
CONFIGS: Final = "vllm/model_executor/layers/quantization/utils/configs"  # autotuned
VLLM_12288: Final = f"{VLLM}0f17ee061e413bf8ab7927f926f69cdff24dc63e/{CONFIGS}/N=12288,K=7168,…"
VLLM_1536: Final = f"{VLLM}e5fd201ab77b993462f5b1cc3e55c74dc74bed95/{CONFIGS}/N=1536,K=7168,…"
VLLM_A100: Final = f"{VLLM}8a8be3dcc35e02e60c940f7aff3aef8cc7524259/{CONFIGS}/N=1536,K=7168,…"
FLASH: Final = "https://github.com/Dao-AILab/flash-attention/blob/"
FLASH_2: Final = (
    f"{FLASH}01afd16d248c4c7d0f9aed1914084f16c490eaed/csrc/flash_attn/src/"
    "flash_fwd_launch_template.h"
)
FLASH_3: Final = f"{FLASH}07602adc2baa7a3ea037321ef2ca71c83096e5d5/hopper/tile_size.h"  # not causal
JAX: Final = "https://github.com/jax-ml/jax/blob/"
PALLAS: Final = f"{JAX}jax-v0.10.2/jax/experimental/pallas/ops"
PALLAS_GPU: Final = f"{PALLAS}/gpu/attention.py"  # BlockSizes.get_default
PALLAS_GUIDE: Final = f"{JAX}09fd345de9aa11de24ed417542967be16016bb59/docs/pallas/tpu/matmul.md"
PALLAS_TUNED: Final = (
    f"{JAX}aff98e218ded6d6926c7a19b691769134e4f9b8a/jax/experimental/pallas/ops/tpu/"
    "quantized_matmul/tuned_block_sizes.py"  # autotuned
)
MAXTEXT: Final = (
    "https://github.com/AI-Hypercomputer/maxtext/blob/09d2025bc52059162c84f05846b15121b2b48eb0/"
    "src/MaxText/configs/base.yml"  # sa_block_q, sa_block_kv
)
SOFTMAX: Final = (
    "https://github.com/triton-lang/triton/blob/fd237c7cf9a7262f32fedbaa5027ab2736ead134/"
    "python/tutorials/02-fused-softmax.py"  # a row for each iteration
)


@dataclass(frozen=True)
class ExpertTiling:
    """A published tiling.

    Attributes:
        problem: the operation and its sizes; see `tiling_problems.text_of`.
        device: the device that it was published for.
        sizes: the sizes of a tile of the result.
        steps: the steps of the loops.
        launch: stages and warps; None for those of the rules.
        source: where it was published.
    """

    problem: str
    device: str
    sizes: tuple[int, ...]
    steps: dict[str, int]
    launch: tuple[int | None, int | None]
    source: str


def _dots(
    source: str, device: str, problem: str, *tiles: tuple[int, ...]
) -> tuple[ExpertTiling, ...]:
    """Return tilings of dots: for each number of rows the tile, then stages and warps."""
    return tuple(
        [
            ExpertTiling(
                problem.format(rows),
                device,
                (min(bm, rows), bn),
                {"k": bk},
                (launch[0], launch[1]) if launch else (None, None),
                source,
            )
            for rows, bm, bn, bk, *launch in tiles
        ]
    )


def _attention(
    source: str, device: str, heads: int, length: int, *tiles: tuple[int, ...]
) -> tuple[ExpertTiling, ...]:
    """Return tilings of attentions: features, queries, keys, then stages and warps."""
    return tuple(
        [
            ExpertTiling(
                f"attention {heads}x{length}x{features}",
                device,
                (1, queries, features),
                {"k": keys, "c": features},
                (launch[0], launch[1]) if launch else (None, None),
                source,
            )
            for features, queries, keys, *launch in tiles
        ]
    )


def _convolution(sizes: tuple[int, ...], tile: tuple[int, ...]) -> ExpertTiling:
    """Return a tiling of at most 128 pixels and 128 outputs, by steps of one window element."""
    problem = f"convolution {'x'.join(map(str, sizes))}"
    steps = {"w0": 1, "w1": 1, "k": min(64, sizes[-2])}
    return ExpertTiling(problem, "A100", tile, steps, (3, 4), CUTLASS_CONV)


EXPERTS: Final = (
    *_dots(GLUON, "H100", "dot f16 {}x16384x8192", (8192, 128, 128, 64, 2, 4)),
    *_dots(GLUON, "H100", "dot f16 {}x16384x8192", (8192, 64, 256, 128, 1, 4)),
    *_dots(CUTLASS_GEMM, "H100", "dot f32 {}x4096x4096", (5120, 128, 128, 32)),
    *_dots(
        VLLM_12288,
        "H100",
        "dot f8e4m3fn {}x7168x12288",
        (16, 16, 32, 128, 5, 4),
        (64, 64, 128, 128, 5, 4),
        (256, 64, 128, 128, 4, 4),
        (1024, 64, 128, 128, 4, 4),
        (4096, 64, 128, 128, 4, 4),
    ),
    *_dots(
        VLLM_1536,
        "H100",
        "dot f8e4m3fn {}x7168x1536",
        (16, 64, 32, 128, 4, 4),
        (64, 64, 32, 128, 4, 4),
        (256, 64, 64, 128, 4, 4),
        (1024, 64, 64, 128, 3, 4),
        (4096, 64, 128, 128, 3, 4),
    ),
    *_dots(
        VLLM_A100,
        "A100",
        "dot s8 {}x7168x1536",
        (16, 16, 32, 128, 5, 4),
        (64, 16, 64, 128, 5, 4),
        (256, 32, 64, 128, 5, 4),
        (1024, 64, 128, 128, 3, 4),
        (4096, 128, 64, 128, 3, 4),
    ),
    *_attention(FLASH_2, "A100", 64, 4096, (32, 128, 128, 1, 4), (64, 128, 128, 1, 4)),
    *_attention(FLASH_2, "A100", 64, 4096, (96, 128, 64, 1, 4), (128, 128, 64, 1, 4)),
    *_attention(FLASH_2, "A100", 64, 4096, (192, 128, 64, 1, 8), (256, 128, 64, 1, 8)),
    *_attention(FLASH_3, "H100", 64, 4096, (64, 192, 192, 2, 12), (96, 192, 144, 2, 12)),
    *_attention(FLASH_3, "H100", 64, 4096, (128, 128, 176, 2, 8), (192, 128, 112, 2, 8)),
    *_attention(FLASH_3, "H100", 64, 4096, (256, 128, 80, 2, 8)),
    *_attention(PALLAS_GPU, "A100", 32, 2048, (64, 128, 128, 2, 4)),
    _convolution((1, 32, 32, 32, 32), (1, 4, 32, 32)),
    _convolution((1, 224, 224, 32, 32), (1, 1, 128, 32)),
    *_dots(PALLAS_GUIDE, "v5e", "dot bf16 {}x4096x4096", (4096, 512, 1024, 1024)),
    *_dots(PALLAS_GUIDE, "v5e", "dot bf16 {}x8192x8192", (8192, 512, 1024, 1024)),
    *_dots(
        PALLAS_TUNED,
        "v6e",
        "dot s8 {}x4096x4096",
        (128, 128, 512, 4096),
        (512, 512, 1024, 4096),
        (1024, 1024, 512, 4096),
        (2048, 2048, 512, 4096),
    ),
    *_dots(
        PALLAS_TUNED,
        "v6e",
        "dot s8 {}x14336x4096",
        (128, 128, 4096, 896),
        (512, 512, 256, 14336),
        (1024, 1024, 256, 14336),
        (2048, 2048, 4096, 512),
    ),
    *_dots(
        PALLAS_TUNED,
        "v6e",
        "dot s8 {}x4096x28672",
        (128, 128, 28672, 256),
        (512, 512, 2048, 4096),
        (1024, 1024, 2048, 4096),
        (2048, 2048, 1024, 4096),
    ),
    *_attention(MAXTEXT, "v6e", 32, 4096, (128, 512, 512)),
    ExpertTiling("softmax 4096x781", "A100", (1, 781), {}, (None, None), SOFTMAX),
    ExpertTiling("softmax 4096x8192", "A100", (1, 8192), {}, (None, None), SOFTMAX),
)


# ---------------------------------------------------------------- comparison


@dataclass(frozen=True)
class ComparedTiling:
    """An expert's tiling beside the best ones.

    Attributes:
        expert: the tiling.
        violations: the rules of the device that it violates.
        blocks: the number of blocks.
        ratio: its bytes, relative to those of the best tiling.
        best: the best tilings.
        seconds: the processor time of the search.
    """

    expert: ExpertTiling
    violations: tuple[str, ...]
    blocks: int
    ratio: float
    best: BestLoopTilings
    seconds: float

    @property
    def is_plausible(self) -> bool:
        """True if the expert's tiling is legal and moves few more bytes than the best, or fewer."""
        return not self.violations and self.ratio <= PLAUSIBLE

    @property
    def is_near(self) -> bool:
        """True if one of the best has at least half and at most twice each size of the tile."""
        own = self.expert.sizes
        return any(
            all(n <= 2 * each and each <= 2 * n for n, each in zip(own, tiling.sizes, strict=True))
            for tiling in self.best
        )

    def __str__(self) -> str:
        first = self.best[0]
        own, steps = list(self.expert.sizes), list(self.expert.steps.values())
        words = [
            "plausible" if self.is_plausible else "not plausible",
            *(["near one of the best"] if self.is_near else []),
            *self.violations,
        ]
        return (
            f"{self.expert.device} {self.expert.problem}: {own} {steps}, {self.blocks} blocks, "
            f"{self.ratio:.2f} of the bytes of {list(first.sizes)} {list(first.loop_sizes)}, "
            f"{first.blocks} blocks: {'; '.join(words)} ({self.seconds:.1f} s)"
        )


def moved_bytes(tiling: LoopTiling, device: str) -> int:
    """Return the bytes that a device moves: a TPU keeps blocks from step to step."""
    counted = tiling.sequential_bytes() if device.startswith("v") else tiling.bytes
    if isinstance(counted, Unknown):
        raise ValueError(counted.reason)
    return counted


def compare(expert: ExpertTiling, top: int) -> ComparedTiling:
    """Return the comparison of an expert's tiling.

    Raises:
        ValueError: a figure is unknown, or no tiling is legal.
    """
    root = hlo.parse(text_of(expert.problem)).entry.root
    tiling = indexing.tile(root, expert.sizes, loop_sizes=expert.steps)
    start = process_time()
    best = indexing.best_tilings(root, device=expert.device, loops=True, top=top)
    seconds = process_time() - start
    if not isinstance(tiling, LoopTiling) or not isinstance(best, BestLoopTilings) or not best:
        raise ValueError(f"{expert.problem}: {tiling}; {best}")
    violations = tiling.violations(expert.device, *expert.launch)
    if isinstance(violations, Unknown):
        raise ValueError(violations.reason)
    ratio = moved_bytes(tiling, expert.device) / moved_bytes(best[0], expert.device)
    return ComparedTiling(expert, violations, tiling.blocks, ratio, best, seconds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and the sums."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--top", type=int, default=10)
    options = parser.parse_args(arguments)
    compared: list[ComparedTiling] = []
    source = ""
    for expert in EXPERTS:
        if expert.source != source:
            source = expert.source
            print(source)
        compared.append(compare(expert, options.top))
        print(f"  {compared[-1]}", flush=True)
    legal = [each for each in compared if not each.violations]
    counts = (
        ("legal", len(legal)),
        (f"plausible, at most {PLAUSIBLE} of the bytes", sum([c.is_plausible for c in compared])),
        ("legal, at most twice the bytes", sum([c.ratio <= 2 for c in legal])),
        (f"near one of the {options.top} best", sum([c.is_near for c in compared])),
    )
    print(f"{len(compared)} tilings")
    for title, count in counts:
        print(f"  {title}: {count} ({count / len(compared):.0%})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
