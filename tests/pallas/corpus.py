"""Kernels of many kinds as plain data, right and wrong: matrices, attention, reductions, scans.

`enumeration` finds their facts by the functions below, which Python calls at each step of a grid.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.pallas.kernels import Kernel, Operand, clip, minimum, where

O = Operand  # noqa: E741 one letter, since each line has several
P, A = ("parallel",), ("arbitrary",)  # semantics of the dimensions of grids
PP, PA, AP, AA = P + P, P + A, A + P, A + A
PPP, PPA, PAA, AAA, PPPA = P + PP, PP + A, P + AA, A + AA, P + PP + A
F16 = "float16"


def cdiv(a: int, b: int) -> int:
    return -(-a // b)


def first(i: Any, j: Any, k: Any = 0) -> Any:
    return (i, 0)


# ---------------------------------------------------------------- products of matrices

MATRICES = [
    Kernel("matmul", (4, 3, 5),
           (O((512, 640), (128, 128), lambda i, j, k: (i, k)),
            O((640, 384), (128, 128), lambda i, j, k: (k, j))),
           (O((512, 384), (128, 128), lambda i, j, k: (i, j)),), PPA,
           scratch=(((128, 128), "float32"),)),
    Kernel("matmul_ragged", (3, 2, 4),
           (O((300, 500), (128, 128), lambda i, j, k: (i, k), "bfloat16"),
            O((500, 200), (128, 128), lambda i, j, k: (k, j), "bfloat16")),
           (O((300, 200), (128, 128), lambda i, j, k: (i, j)),), PPA),
    Kernel("matmul_transposed", (2, 3, 4),
           (O((512, 256), (128, 128), lambda i, j, k: (k, i)),
            O((384, 512), (128, 128), lambda i, j, k: (j, k))),
           (O((256, 384), (128, 128), lambda i, j, k: (i, j)),), PPA),
    Kernel("matmul_k_outermost", (4, 2, 2),
           (O((256, 512), (128, 128), lambda k, i, j: (i, k)),
            O((512, 256), (128, 128), lambda k, i, j: (k, j))),
           (O((256, 256), (128, 128), lambda k, i, j: (i, j)),), AAA),
    Kernel("matmul_k_parallel", (2, 2, 3),
           (O((256, 384), (128, 128), lambda i, j, k: (i, k)),
            O((384, 256), (128, 128), lambda i, j, k: (k, j))),
           (O((256, 256), (128, 128), lambda i, j, k: (i, j)),), PPP),
    Kernel("matmul_grouped_programs", (12, 2),
           (O((512, 256), (128, 128), lambda t, k: (t // 6 * 2 + t % 2, k)),
            O((256, 384), (128, 128), lambda t, k: (k, t % 6 // 2))),
           (O((512, 384), (128, 128), lambda t, k: (t // 6 * 2 + t % 2, t % 6 // 2)),), PA),
    Kernel("matmul_batched", (3, 2, 2, 2),
           (O((3, 256, 256), (None, 128, 128), lambda b, i, j, k: (b, i, k)),
            O((3, 256, 256), (None, 128, 128), lambda b, i, j, k: (b, k, j))),
           (O((3, 256, 256), (None, 128, 128), lambda b, i, j, k: (b, i, j)),), PPPA),
    Kernel("matmul_shared_weights", (3, 2, 2),
           (O((3, 256, 256), (None, 128, 256), lambda b, i, j: (b, i, 0)),
            O((256, 256), (256, 128), lambda b, i, j: (0, j))),
           (O((3, 256, 256), (None, 128, 128), lambda b, i, j: (b, i, j)),), PPP),
    Kernel("matmul_split_k", (2, 2, 3),
           (O((128, 768), (128, 128), lambda s, j, k: (0, s * 3 + k)),
            O((768, 256), (128, 128), lambda s, j, k: (s * 3 + k, j))),
           (O((2, 128, 256), (None, 128, 128), lambda s, j, k: (s, 0, j)),), PPA),
    Kernel("matmul_bias", (2, 2, 2),
           (O((256, 256), (128, 128), lambda i, j, k: (i, k), "int8"),
            O((256, 256), (128, 128), lambda i, j, k: (k, j), "int8"),
            O((1, 256), (1, 128), lambda i, j, k: (0, j), "int32")),
           (O((256, 256), (128, 128), lambda i, j, k: (i, j), "int32"),), PPA),
    Kernel("matvec_wide", (2, 8), (O((16, 1024), (8, 128), lambda i, k: (i, k)),
           O((1, 1024), (1, 128), lambda i, k: (0, k))),
           (O((16, 1), (8, 1), first),), PA),
    Kernel("outer_product", (3, 4), (O((24, 1), (8, 1), first),
           O((1, 512), (1, 128), lambda i, j: (0, j))),
           (O((24, 512), (8, 128), lambda i, j: (i, j)),), PP),
    Kernel("triangular_product", (4, 4),
           (O((512, 512), (128, 128), lambda i, k: (i, minimum(k, i))),
            O((512, 128), (128, 128), lambda i, k: (minimum(k, i), 0))),
           (O((512, 128), (128, 128), first),), PA),
]  # fmt: skip

# ---------------------------------------------------------------- attention

Q = (2, 4, 384, 128)
ATTENTION = [
    Kernel("flash", (2, 4, 3, 3),
           (O(Q, (1, 1, 128, 128), lambda b, h, q, k: (b, h, q, 0)),
            O(Q, (1, 1, 128, 128), lambda b, h, q, k: (b, h, k, 0)),
            O(Q, (1, 1, 128, 128), lambda b, h, q, k: (b, h, k, 0))),
           (O(Q, (1, 1, 128, 128), lambda b, h, q, k: (b, h, q, 0)),), PPPA,
           scratch=(((128, 128), "float32"), ((128, 128), "float32"))),
    Kernel("flash_causal", (2, 4, 3, 3),
           (O(Q, (1, 1, 128, 128), lambda b, h, q, k: (b, h, q, 0)),
            O(Q, (1, 1, 128, 128), lambda b, h, q, k: (b, h, where(k <= q, k, 0), 0))),
           (O(Q, (1, 1, 128, 128), lambda b, h, q, k: (b, h, q, 0)),), PPPA),
    Kernel("flash_grouped_heads", (1, 8, 2, 3),
           (O((1, 8, 256, 64), (1, 1, 128, 64), lambda b, h, q, k: (b, h, q, 0), "bfloat16"),
            O((1, 2, 384, 64), (1, 1, 128, 64), lambda b, h, q, k: (b, h // 4, k, 0), "bfloat16")),
           (O((1, 8, 256, 64), (1, 1, 128, 64), lambda b, h, q, k: (b, h, q, 0), "bfloat16"),),
           PPPA),
    Kernel("flash_k_before_q", (2, 3, 3),
           (O((2, 384, 128), (1, 128, 128), lambda b, k, q: (b, q, 0)),
            O((2, 384, 128), (1, 128, 128), lambda b, k, q: (b, k, 0))),
           (O((2, 384, 128), (1, 128, 128), lambda b, k, q: (b, q, 0)),), PAA),
    Kernel("flash_short_keys", (2, 4),
           (O((256, 128), (128, 128), first),
            O((384, 128), (128, 128), lambda q, k: (k, 0))),
           (O((256, 128), (128, 128), first),), PA),
    Kernel("flash_window", (4, 3),
           (O((512, 128), (128, 128), first),
            O((512, 128), (128, 128), lambda q, w: (clip(q + w - 1, 0, 3), 0))),
           (O((512, 128), (128, 128), first),), PA),
    Kernel("flash_window_unclipped", (4, 3),
           (O((512, 128), (128, 128), first),
            O((512, 128), (128, 128), lambda q, w: (q + w - 1, 0))),
           (O((512, 128), (128, 128), first),), PA),
    Kernel("flash_backward_keys", (2, 3, 3),
           (O((2, 384, 128), (None, 128, 128), lambda h, k, q: (h, q, 0)),
            O((2, 384, 128), (None, 128, 128), lambda h, k, q: (h, k, 0))),
           (O((2, 384, 128), (None, 128, 128), lambda h, k, q: (h, k, 0)),
            O((2, 384, 128), (None, 128, 128), lambda h, k, q: (h, k, 0))), PPA),
    Kernel("ring_step", (4, 2),
           (O((512, 128), (128, 128), lambda i, j: ((i + j) % 4, 0)),),
           (O((512, 128), (128, 128), first),), PA),
    Kernel("attention_bias", (2, 2, 2),
           (O((2, 256, 256), (None, 128, 128), lambda h, q, k: (h, q, k)),
            O((1, 256), (1, 128), lambda h, q, k: (0, k), "int32")),
           (O((2, 256, 128), (None, 128, 128), lambda h, q, k: (h, q, 0)),), PPA),
    Kernel("decode", (3, 5),
           (O((3, 8, 128), (None, 8, 128), lambda b, k: (b, 0, 0)),
            O((3, 1280, 128), (None, 256, 128), lambda b, k: (b, k, 0), "bfloat16")),
           (O((3, 8, 128), (None, 8, 128), lambda b, k: (b, 0, 0)),
            O((3, 8, 1), (None, 8, 1), lambda b, k: (b, 0, 0))), PA),
]  # fmt: skip

# ---------------------------------------------------------------- reductions and scans

REDUCTIONS = [
    Kernel("sum_rows", (3, 4), (O((24, 512), (8, 128), lambda i, k: (i, k)),),
           (O((24, 128), (8, 128), first),), PA),
    Kernel("sum_all", (6,), (O((48, 128), (8, 128), lambda i: (i, 0)),),
           (O((8, 128), (8, 128), lambda i: (0, 0)),), A),
    Kernel("sum_all_parallel", (6,), (O((48, 128), (8, 128), lambda i: (i, 0)),),
           (O((8, 128), (8, 128), lambda i: (0, 0)),), P),
    Kernel("sum_pairs", (6,), (O((48, 128), (8, 128), lambda i: (i, 0)),),
           (O((24, 128), (8, 128), lambda i: (i // 2, 0)),), A),
    Kernel("sum_columns_apart", (2, 4), (O((16, 512), (8, 128), lambda i, j: (i, j)),),
           (O((1, 512), (1, 128), lambda i, j: (0, j)),), AA),
    Kernel("one_row_of_blocks", (1, 4), (O((8, 512), (8, 128), lambda i, j: (i, j)),),
           (O((1, 512), (1, 128), lambda i, j: (0, j)),), AP),
    Kernel("softmax", (5,), (O((37, 300), (8, 300), lambda i: (i, 0)),),
           (O((37, 300), (8, 300), lambda i: (i, 0)),), P),
    Kernel("layer_norm", (4,),
           (O((32, 256), (8, 256), lambda i: (i, 0), "bfloat16"),
            O((1, 256), (1, 256), lambda i: (0, 0)), O((1, 256), (1, 256), lambda i: (0, 0))),
           (O((32, 256), (8, 256), lambda i: (i, 0), "bfloat16"),
            O((32, 1), (8, 1), lambda i: (i, 0))), P),
    Kernel("scan_forward", (5,), (O((40, 128), (8, 128), lambda t: (t, 0)),),
           (O((40, 128), (8, 128), lambda t: (t, 0)),), A,
           scratch=(((1, 128), "float32"),)),
    Kernel("scan_backward", (5,), (O((40, 128), (8, 128), lambda t: (4 - t, 0)),),
           (O((40, 128), (8, 128), lambda t: (4 - t, 0)),), A),
    Kernel("scan_backward_off_by_one", (5,), (O((40, 128), (8, 128), lambda t: (5 - t, 0)),),
           (O((40, 128), (8, 128), lambda t: (5 - t, 0)),), A),
    Kernel("snake", (3, 4),
           (O((24, 512), (8, 128), lambda i, k: (i, where(i % 2 == 0, k, 3 - k))),),
           (O((24, 128), (8, 128), first),), AA),
    Kernel("carry_between_chunks", (2, 6),
           (O((2, 48, 128), (None, 8, 128), lambda b, t: (b, t, 0)),
            O((2, 1, 128), (None, 1, 128), lambda b, t: (b, 0, 0))),
           (O((2, 48, 128), (None, 8, 128), lambda b, t: (b, t, 0)),
            O((2, 1, 128), (None, 1, 128), lambda b, t: (b, 0, 0))), PA),
    Kernel("histogram_in_smem", (4,), (O((32, 128), (8, 128), lambda i: (i, 0), "int32"),),
           (O((1, 16), (1, 16), lambda i: (0, 0), "int32", "smem"),), A),
]  # fmt: skip

# ---------------------------------------------------------------- windows, pieces, layouts

WINDOWS = [
    Kernel("halo", (4,), (O((64, 128), ((18, 1, 1), (128,)), lambda i: (16 * i, 0)),),
           (O((64, 128), (16, 128), lambda i: (i, 0)),), P),
    Kernel("halo_without_padding", (4,), (O((64, 128), ((18,), (128,)), lambda i: (16 * i, 0)),),
           (O((64, 128), (16, 128), lambda i: (i, 0)),), P),
    Kernel("overlapping_writes", (4,), (O((32, 128), (8, 128), lambda i: (i, 0)),),
           (O((35, 128), ((11,), (128,)), lambda i: (8 * i, 0)),), A),
    Kernel("overlapping_writes_parallel", (4,), (O((32, 128), (8, 128), lambda i: (i, 0)),),
           (O((35, 128), ((11,), (128,)), lambda i: (8 * i, 0)),), P),
    Kernel("convolution", (2, 3, 3),
           (O((2, 18, 128), (None, (8,), (128,)), lambda b, i, d: (b, 4 * i + d, 0)),
            O((3, 128), (1, 128), lambda b, i, d: (d, 0))),
           (O((2, 12, 128), (None, 4, 128), lambda b, i, d: (b, i, 0)),), PPA),
    Kernel("diagonal", (4, 4), (O((32, 512), (8, 128), lambda i, j: (i, (i + j) % 4)),),
           (O((32, 512), (8, 128), lambda i, j: (i, (i + j) % 4)),), PA),
    Kernel("anti_diagonal_sum", (3, 3), (O((24, 384), (8, 128), lambda i, j: (i, j)),),
           (O((40, 128), (8, 128), lambda i, j: (i + j, 0)),), PA),
    Kernel("transpose", (3, 2), (O((384, 256), (128, 128), lambda i, j: (i, j)),),
           (O((256, 384), (128, 128), lambda i, j: (j, i)),), PP),
    Kernel("every_second_block", (4,), (O((64, 128), (8, 128), lambda i: (2 * i, 0)),),
           (O((64, 128), (8, 128), lambda i: (2 * i, 0)),), P),
    Kernel("too_few_steps", (37 // 8,), (O((37, 128), (8, 128), lambda i: (i, 0)),),
           (O((37, 128), (8, 128), lambda i: (i, 0)),), P),
    Kernel("elements_for_blocks", (4,), (O((32, 128), (8, 128), lambda i: (8 * i, 0)),),
           (O((32, 128), (8, 128), lambda i: (i, 0)),), P),
    Kernel("upper_triangle", (6,), (O((32, 512), (8, 128), lambda t: (t * (t + 1) // 12, t % 4)),),
           (O((48, 128), (8, 128), lambda t: (t, 0)),), A),
    Kernel("rotated", (5,), (O((40, 128), (8, 128), lambda i: ((i + 4) % 5, 0)),),
           (O((40, 128), (8, 128), lambda i: (i, 0)),), A),
    Kernel("interleaved", (2, 4), (O((64, 128), (8, 128), lambda p, i: (2 * i + p, 0)),),
           (O((64, 128), (8, 128), lambda p, i: (4 * p + i, 0)),), PP),
    Kernel("vector", (3,), (O((3000,), (1024,), lambda i: (i,)),),
           (O((3000,), (1024,), lambda i: (i,)),), P),
    Kernel("bits", (2,), (O((64, 256), (32, 256), lambda i: (i, 0), "bool"),),
           (O((64, 256), (32, 256), lambda i: (i, 0), "int8"),), P),
    Kernel("without_grid", (), (O((24, 128), (24, 128), lambda: (0, 0)),),
           (O((24, 128), (24, 128), lambda: (0, 0)),)),
    Kernel("three_buffers", (4,), (O((32, 128), (8, 128), lambda i: (i, 0), buffers=3),),
           (O((32, 128), (8, 128), lambda i: (i, 0)),), A),
    Kernel("revisit_allowed", (3, 2), (O((16, 384), (8, 128), lambda k, i: (i, k)),),
           (O((16, 128), (8, 128), lambda k, i: (i, 0), may_revisit=True),), AA),
    Kernel("in_hbm", (3,), (O((24, 128), (24, 128), lambda i: (0, 0), space="any"),
           O((24, 128), (8, 128), lambda i: (i, 0))),
           (O((24, 128), (8, 128), lambda i: (i, 0)),), A),
]  # fmt: skip

# ---------------------------------------------------------------- aliases

ALIASES = [
    Kernel("add_in_place", (3, 2), (O((24, 256), (8, 128), lambda i, j: (i, j)),
           O((1, 256), (1, 128), lambda i, j: (0, j))),
           (O((24, 256), (8, 128), lambda i, j: (i, j)),), PP, aliases=((0, 0),)),
    Kernel("transpose_in_place", (3, 3), (O((384, 384), (128, 128), lambda i, j: (j, i)),),
           (O((384, 384), (128, 128), lambda i, j: (i, j)),), aliases=((0, 0),)),
    Kernel("shift_down_in_place", (4,), (O((32, 128), (8, 128), lambda i: (clip(i - 1, 0, 3), 0)),),
           (O((32, 128), (8, 128), lambda i: (i, 0)),), A, aliases=((0, 0),)),
    Kernel("shift_up_in_place", (4,), (O((32, 128), (8, 128), lambda i: (clip(i + 1, 0, 3), 0)),),
           (O((32, 128), (8, 128), lambda i: (i, 0)),), A, aliases=((0, 0),)),
    Kernel("shift_up_in_parallel", (4,),
           (O((32, 128), (8, 128), lambda i: (clip(i + 1, 0, 3), 0)),),
           (O((32, 128), (8, 128), lambda i: (i, 0)),), P, aliases=((0, 0),)),
    Kernel("reverse_in_place", (4,), (O((32, 128), (8, 128), lambda i: (3 - i, 0)),),
           (O((32, 128), (8, 128), lambda i: (i, 0)),), A, aliases=((0, 0),)),
    Kernel("cache_update", (2,), (O((64, 128), (8, 128), lambda i: (i + 3, 0)),
           O((16, 128), (8, 128), lambda i: (i, 0))),
           (O((64, 128), (8, 128), lambda i: (i + 3, 0)),), A, aliases=((0, 0),)),
    Kernel("stencil_in_place", (4,), (O((32, 128), ((10, 1, 1), (128,)), lambda i: (8 * i, 0)),),
           (O((32, 128), (8, 128), lambda i: (i, 0)),), A, aliases=((0, 0),)),
]  # fmt: skip

# ---------------------------------------------------------------- GPU

GPU = [
    replace(MATRICES[0], name="gpu_matmul", semantics=None, scratch=(), grid=(4, 3, 1),
            target="gpu"),
    Kernel("gpu_softmax", (37,), (O((37, 300), (None, 300), lambda i: (i, 0)),),
           (O((37, 300), (None, 300), lambda i: (i, 0)),), target="gpu"),
    Kernel("gpu_split_sum", (4, 2), (O((32, 256), (8, 128), lambda i, j: (i, j)),),
           (O((32, 128), (8, 128), lambda i, j: (i, 0)),), target="gpu"),
    Kernel("gpu_attention", (3, 2, 4),
           (O((2, 384, 4, 64), (None, 128, None, 64), lambda q, b, h: (b, q, h, 0), F16),
            O((2, 384, 4, 64), (None, 384, None, 64), lambda q, b, h: (b, 0, h, 0), F16)),
           (O((2, 384, 4, 64), (None, 128, None, 64), lambda q, b, h: (b, q, h, 0), F16),),
           target="gpu"),
    Kernel("mosaic_gpu_copy", (4, 2), (O((256, 256), (64, 128), lambda i, j: (i, j), F16),),
           (O((256, 256), (64, 128), lambda i, j: (i, j), F16),), target="mosaic_gpu"),
    Kernel("mosaic_gpu_rows", (4,), (O((256, 64), (64, 64), lambda i: (i + 1, 0), F16),),
           (O((256, 64), (64, 64), lambda i: (i, 0), F16),), target="mosaic_gpu"),
]  # fmt: skip

STATIC = [*MATRICES, *ATTENTION, *REDUCTIONS, *WINDOWS, *ALIASES, *GPU]

# ---------------------------------------------------------------- scalar prefetch

SCALAR_VALUES = 0, 3
"""The least and the greatest value of the scalars of `SCALARS`."""

SCALARS = [
    Kernel("pages", (2, 2), (O((64, 128), (8, 128), lambda i, j, s: (2 * s[i] + j, 0)),),
           (O((32, 128), (8, 128), lambda i, j, s: (2 * i + j, 0)),), PA, scalars=((2,),)),
    Kernel("pages_too_few", (2, 2), (O((40, 128), (8, 128), lambda i, j, s: (2 * s[i] + j, 0)),),
           (O((32, 128), (8, 128), lambda i, j, s: (2 * i + j, 0)),), PA, scalars=((2,),)),
    Kernel("paged_attention", (2, 2),
           (O((2, 8, 128), (None, 8, 128), lambda b, p, table: (b, 0, 0)),
            O((4, 16, 128), (None, 16, 128), lambda b, p, table: (table[b, p], 0, 0))),
           (O((2, 8, 128), (None, 8, 128), lambda b, p, table: (b, 0, 0)),), PA, scalars=((2, 2),)),
    Kernel("paged_by_length", (2, 3),
           (O((2, 32, 128), (None, 8, 128), lambda b, p, s: (b, minimum(p, s[b]), 0)),),
           (O((2, 8, 128), (None, 8, 128), lambda b, p, s: (b, 0, 0)),), PA, scalars=((2,),)),
    Kernel("paged_by_length_minus_one", (2, 3),
           (O((2, 24, 128), (None, 8, 128), lambda b, p, s: (b, minimum(p, s[b] - 1), 0)),),
           (O((2, 8, 128), (None, 8, 128), lambda b, p, s: (b, 0, 0)),), PA, scalars=((2,),)),
    Kernel("experts", (3, 2),
           (O((24, 128), (8, 128), lambda i, j, e: (i, 0)),
            O((4, 128, 256), (None, 128, 128), lambda i, j, e: (e[i], 0, j))),
           (O((24, 256), (8, 128), lambda i, j, e: (i, j)),), PP, scalars=((3,),)),
    Kernel("experts_one_missing", (3, 2),
           (O((24, 128), (8, 128), lambda i, j, e: (i, 0)),
            O((3, 128, 256), (None, 128, 128), lambda i, j, e: (e[i], 0, j))),
           (O((24, 256), (8, 128), lambda i, j, e: (i, j)),), PP, scalars=((3,),)),
    Kernel("gather_rows", (3,), (O((4, 1, 128), (None, 1, 128), lambda i, s: (s[i], 0, 0)),),
           (O((3, 1, 128), (None, 1, 128), lambda i, s: (i, 0, 0)),), A, scalars=((3,),)),
    Kernel("scatter_rows", (3,), (O((3, 1, 128), (None, 1, 128), lambda i, s: (i, 0, 0)),),
           (O((4, 1, 128), (None, 1, 128), lambda i, s: (s[i], 0, 0)),), P, scalars=((3,),)),
    Kernel("clamped", (4,), (O((16, 128), (8, 128), lambda i, s: (clip(s[i // 2] + i, 0, 1), 0)),),
           (O((32, 128), (8, 128), lambda i, s: (i, 0)),), P, scalars=((2,),)),
    Kernel("indirect", (3,), (O((32, 128), (8, 128), lambda i, s, t: (s[t[i]], 0)),),
           (O((24, 128), (8, 128), lambda i, s, t: (i, 0)),), P, scalars=((4,), (3,))),
    Kernel("offset", (3,), (O((48, 128), (8, 128), lambda i, s: (i + s[0], 0)),),
           (O((24, 128), (8, 128), lambda i, s: (i, 0)),), A, scalars=((1,),)),
    Kernel("cache_at_position", (2,), (O((48, 128), (8, 128), lambda i, s: (i + s[0], 0)),
           O((16, 128), (8, 128), lambda i, s: (i, 0))),
           (O((48, 128), (8, 128), lambda i, s: (i + s[0], 0)),), A,
           aliases=((0, 0),), scalars=((1,),)),
    Kernel("skipped_blocks", (2, 3),
           (O((16, 384), (8, 128), lambda i, k, s: (i, where(s[i] > k, k, 0))),),
           (O((16, 128), (8, 128), lambda i, k, s: (i, 0)),), PA, scalars=((2,),)),
    Kernel("element_offset", (2,), (O((19, 128), ((8,), (128,)), lambda i, s: (8 * i + s[0], 0)),),
           (O((16, 128), (8, 128), lambda i, s: (i, 0)),), P, scalars=((1,),)),
]  # fmt: skip
