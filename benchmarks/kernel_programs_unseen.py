"""Programs that no rule of `indexing.kernels` was written for: their kernels are held out."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.kernel_programs import registering

PROGRAMS: dict[str, tuple[Any, Any]] = {}
"""The functions with the types of their arguments, by name."""


program = registering(PROGRAMS)


@program("f32[13,5,91]")
def softmax_mid(x: Any) -> Any:
    return jax.nn.softmax(x, 1)


@program("bf16[6,1021]")
def softmax_wide_bf16(x: Any) -> Any:
    return jax.nn.softmax(x.astype(jnp.float32), -1).astype(jnp.bfloat16)


@program("f32[4,60,60]", "pred[4,60]")
def softmax_masked(x: Any, m: Any) -> Any:
    return jax.nn.softmax(jnp.where(m[:, None, :], x, -1e30), -1)


@program("f32[50,96]")
def logsoftmax(x: Any) -> Any:
    return jax.nn.log_softmax(x, -1)


@program("f32[7,130,24]", "f32[24]", "f32[24]")
def layernorm_small(x: Any, g: Any, b: Any) -> Any:
    mu = x.mean(-1, keepdims=True)
    v = x.var(-1, keepdims=True)
    return (x - mu) / jnp.sqrt(v + 1e-06) * g + b


@program("f32[8,6,6,32]", "f32[32]", "f32[32]")
def groupnorm(x: Any, g: Any, b: Any) -> Any:
    y = x.reshape(8, 36, 4, 8)
    mu = y.mean((1, 3), keepdims=True)
    v = y.var((1, 3), keepdims=True)
    return ((y - mu) * lax.rsqrt(v + 1e-05)).reshape(x.shape) * g + b


@program("f32[16,8,8,12]")
def batchnorm_stats(x: Any) -> Any:
    return (x.mean((0, 1, 2)), (x * x).mean((0, 1, 2)))


@program("f32[97]", "f32[61]")
def outer_where(a: Any, b: Any) -> Any:
    return jnp.where(a[:, None] > b[None], a[:, None] * b[None], 0.0)


@program("f32[11,22,33]")
def transpose_102(x: Any) -> Any:
    return jnp.transpose(x, (1, 0, 2))


@program("bf16[130,67]")
def transpose_bf16_add(x: Any) -> Any:
    return x.T + x.T * x.T


@program("f32[2,3,5,7,11]")
def transpose_5d(x: Any) -> Any:
    return jnp.transpose(x, (4, 2, 0, 3, 1))


@program("s32[9,4]", "s32[9,4]")
def concat_interleave(a: Any, b: Any) -> Any:
    return jnp.stack([a, b], -1).reshape(9, 8)


@program("f32[3,50]", "f32[3,20]", "f32[3,1]")
def concat_then_reduce(a: Any, b: Any, c: Any) -> Any:
    return jnp.concatenate([a, b, c], 1).sum(1)


@program("f32[10,20,30]", "s32[]")
def dus_middle(x: Any, i: Any) -> Any:
    return lax.dynamic_update_slice(x, jnp.ones((10, 1, 30)), (0, i, 0)) * 1.0 + x


@program("f32[5,64]", "f32[5,64]", "s32[]")
def ring_buffer(b: Any, x: Any, i: Any) -> Any:
    return b.at[i % 5].set(x.sum(0))


@program("f32[40,41,42]")
def reduce_01(x: Any) -> Any:
    return x.sum((0, 1))


@program("f32[40,41,42]")
def reduce_02_prod(x: Any) -> Any:
    return jnp.prod(x * 0.01 + 1, (0, 2))


@program("f32[3,70000]")
def reduce_long(x: Any) -> Any:
    return x.sum(1)


@program("s32[500,3]")
def reduce_max_cols_i32(x: Any) -> Any:
    return x.max(0)


@program("pred[64,100]")
def reduce_all_pred(x: Any) -> Any:
    return (x.all(0), x.sum(1))


@program("f32[33,77]")
def argmax_last(x: Any) -> Any:
    return jnp.argmax(x, 1)


@program("f32[30,8]", "s32[4,5]")
def embed(x: Any, i: Any) -> Any:
    return x[i]


@program("f32[12,13,14]", "s32[6]")
def take_axis1(x: Any, i: Any) -> Any:
    return jnp.take(x, i, axis=1, mode="fill", fill_value=0)


@program("f32[20,20]", "s32[7,2]")
def gather_points(x: Any, i: Any) -> Any:
    return x[i[:, 0], i[:, 1]] ** 2


@program("f32[9,9]", "s32[5]", "s32[5]", "f32[5]")
def scatter_points_add(x: Any, i: Any, j: Any, u: Any) -> Any:
    return x.at[i, j].add(u)


@program("s32[50,6]", "s32[8]", "s32[8,6]")
def scatter_min_i32(x: Any, i: Any, u: Any) -> Any:
    return x.at[i].min(u)


@program("f32[25,4]", "s32[10]", "f32[10,4]")
def scatter_mul(x: Any, i: Any, u: Any) -> Any:
    return x.at[i].mul(u)


@program("bf16[60,3]", "s32[10]", "bf16[10,3]")
def scatter_add_bf16(x: Any, i: Any, u: Any) -> Any:
    return x.at[i].add(u)


@program("f32[40]", "s32[12]")
def scatter_fused_updates(x: Any, i: Any) -> Any:
    return x.at[i].add(jnp.sin(jnp.arange(12.0)) * 2)


@program("f32[16,16]", "s32[4]", "f32[4,3,16]")
def scatter_windows(x: Any, i: Any, u: Any) -> Any:
    d = lax.ScatterDimensionNumbers((1, 2), (), (0,))
    return lax.scatter_add(x, i[:, None], u, d)


@program("f32[200]", "pred[200]")
def cumsum_mask(x: Any, m: Any) -> Any:
    return jnp.cumsum(jnp.where(m, x, 0))


@program("s32[4,33]")
def cumprod_i32(x: Any) -> Any:
    return jnp.cumprod(x, 1)


@program("f32[8,9]")
def cumlogsumexp(x: Any) -> Any:
    return lax.cumlogsumexp(x, 1)


@program("bf16[6,7]")
def pad_edges(x: Any) -> Any:
    return jnp.pad(x, ((2, 3), (1, 4)), constant_values=1)


@program("f32[6,7]")
def pad_reflect(x: Any) -> Any:
    return jnp.pad(x, ((2, 2), (3, 3)), mode="reflect")


@program("f32[2,12,12,6]", "f32[3,3,1,6]")
def depthwise(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=6
    )


@program("f32[2,9,9,3]", "f32[3,3,3,5]", "f32[5]", "f32[2,9,9,5]")
def conv_residual(x: Any, w: Any, b: Any, r: Any) -> Any:
    y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jnp.tanh(y + b) + r


@program("f32[1,20,20,2]")
def sumpool_dilated(x: Any) -> Any:
    return lax.reduce_window(
        x, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "VALID", window_dilation=(1, 3, 2, 1)
    )


@program("u8[31]", "u8[31]")
def u8_math(a: Any, b: Any) -> Any:
    return a // (b | 1) + a % (b | 1)


@program("s16[45]")
def i16_to_bf16(a: Any) -> Any:
    return a.astype(jnp.bfloat16) * 0.5


@program("f32[45]")
def f32_to_u8(a: Any) -> Any:
    return (a.astype(jnp.uint8), a.astype(jnp.int32))


@program("f16[17,19]")
def f16_chain(x: Any) -> Any:
    return jnp.exp(-jnp.abs(x)) + jnp.floor(x)


@program("f32[24,31]")
def causal_block(x: Any) -> Any:
    i = jnp.arange(24)[:, None]
    j = jnp.arange(31)[None]
    return jnp.where((i >= j) & (j % 3 != 0), x, jnp.where(i == j + 1, 1.0, -1.0))


@program("f32[12,40]", "f32[40,28]", "f32[12,28]")
def gemm_bias_relu(x: Any, w: Any, b: Any) -> Any:
    return jax.nn.relu(x @ w * 0.5 + b)


@program("f32[3,17,9]", "f32[3,9,21]")
def batched_gemm(a: Any, b: Any) -> Any:
    return jnp.einsum("bij,bjk->bik", a, b)


@program("f32[2,2,33,8]", "f32[2,2,33,8]", "f32[2,2,33,8]", "pred[2,33]")
def attention_mask(q: Any, k: Any, v: Any, m: Any) -> Any:
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k)
    s = jnp.where(m[:, None, None, :], s, -1000000000.0)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s, -1), v)


@program("f32[14,15]")
def normalize_l2(x: Any) -> Any:
    return x / jnp.maximum(jnp.linalg.norm(x, axis=0, keepdims=True), 1e-06)


@program("f32[128]")
def bitcast_bits(x: Any) -> Any:
    return lax.bitcast_convert_type(x, jnp.uint32) >> 16


@program("f32[10,12]", "s32[]", "s32[]")
def roll_dynamic(x: Any, a: Any, b: Any) -> Any:
    return jnp.roll(x, (a, b), (0, 1))


@program("f32[36,36]")
def blocks(x: Any) -> Any:
    return x.reshape(4, 9, 6, 6).transpose(0, 2, 1, 3).sum(3)
