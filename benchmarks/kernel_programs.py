"""Programs whose kernels showed which rules of `indexing.kernels` were missing.

Norms, transposes of odd sizes, reductions along each axis, updates, scatters, windows and masks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from indexing.frontends.named_functions import arguments

PROGRAMS: dict[str, tuple[Any, Any]] = {}
"""The functions with the types of their arguments, by name."""


def registering(table: dict[str, tuple[Any, Any]]) -> Callable[..., Callable[[Any], Any]]:
    """Return a decorator that adds a program to a table, with the types of its arguments.

    A text such as ``f32[3,4]`` is the type of an argument.
    """

    def program(*types: str) -> Callable[[Any], Any]:
        def register(function: Any) -> Any:
            table[function.__name__] = function, arguments(",".join(types))
            return function

        return register

    return program


program = registering(PROGRAMS)


@program("f32[37,211]")
def softmax_last(x: Any) -> Any:
    return jax.nn.softmax(x, -1)


@program("f32[129,48]")
def softmax_first(x: Any) -> Any:
    return jax.nn.softmax(x, 0)


@program("bf16[8,77,77]")
def softmax_causal_bf16(x: Any) -> Any:
    m = jnp.tril(jnp.ones((77, 77), bool))
    return jax.nn.softmax(jnp.where(m, x, -1000000000.0), -1)


@program("f32[33,384]", "f32[384]", "f32[384]")
def layernorm_b(x: Any, g: Any, b: Any) -> Any:
    mu = x.mean(-1, keepdims=True)
    v = ((x - mu) ** 2).mean(-1, keepdims=True)
    return (x - mu) * lax.rsqrt(v + 1e-05) * g + b


@program("bf16[5,19,200]", "bf16[200]")
def rmsnorm_bf16(x: Any, g: Any) -> Any:
    y = x.astype(jnp.float32)
    return (y * lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-06)).astype(jnp.bfloat16) * g


@program("f32[37,53]")
def transpose_odd(x: Any) -> Any:
    return x.T + 1.0


@program("f16[7,33,65]")
def transpose_021_f16(x: Any) -> Any:
    return jnp.swapaxes(x, 1, 2) * 2


@program("f32[9,40,31]")
def transpose_210(x: Any) -> Any:
    return jnp.transpose(x, (2, 1, 0))


@program("s8[65,129]")
def transpose_i8(x: Any) -> Any:
    return x.T


@program("bf16[4,6,10,12]")
def transpose_0213_bf16(x: Any) -> Any:
    return jnp.transpose(x, (0, 2, 1, 3))


@program("f32[5,7]", "f32[5,11]", "f32[5,2]")
def concat_cols(a: Any, b: Any, c: Any) -> Any:
    return jnp.concatenate([a, b * 2, jnp.exp(c)], 1)


@program("bf16[13,8]", "bf16[3,8]")
def concat_rows_bf16(a: Any, b: Any) -> Any:
    return jnp.concatenate([a, b], 0)


@program("f32[64,33]", "f32[3,7]", "s32[]", "s32[]")
def dus_2d(x: Any, u: Any, i: Any, j: Any) -> Any:
    return lax.dynamic_update_slice(x, jnp.sin(u), (i, j))


@program("bf16[4,128,16]", "bf16[4,1,16]", "s32[]")
def kv_cache(c: Any, u: Any, i: Any) -> Any:
    return lax.dynamic_update_slice(c, u, (0, i, 0))


@program("f32[31,37,41]")
def reduce_axis0(x: Any) -> Any:
    return x.sum(0)


@program("f32[31,37,41]")
def reduce_axis1_max(x: Any) -> Any:
    return x.max(1)


@program("bf16[31,37,41]")
def reduce_axis2_bf16(x: Any) -> Any:
    return x.sum(2)


@program("s32[31,37,41]")
def reduce_all_min_i32(x: Any) -> Any:
    return x.min()


@program("pred[31,1000]")
def reduce_any(x: Any) -> Any:
    return x.any(1)


@program("f32[300,200]")
def reduce_argmin_ax0(x: Any) -> Any:
    return jnp.argmin(x, 0)


@program("f32[100,16]", "s32[23]")
def gather_take(x: Any, i: Any) -> Any:
    return jnp.take(x, i, axis=0, mode="clip") * 3


@program("f32[50,60]", "s32[9]", "s32[9]")
def gather_nd(x: Any, i: Any, j: Any) -> Any:
    return x[i, j]


@program("bf16[20,30]", "s32[20]")
def take_along(x: Any, i: Any) -> Any:
    return jnp.take_along_axis(x, i[:, None], axis=1)


@program("f32[77,8]", "s32[20]", "f32[20,8]")
def scatter_add_rows(x: Any, i: Any, u: Any) -> Any:
    return x.at[i].add(u)


@program("s32[77]", "s32[20]", "s32[20]")
def scatter_max_i32(x: Any, i: Any, u: Any) -> Any:
    return x.at[i].max(u)


@program("f32[40,5]", "s32[6]", "f32[6,5]")
def scatter_set_unique(x: Any, i: Any, u: Any) -> Any:
    return x.at[i].set(u, unique_indices=True, mode="drop")


@program("f32[3,97]")
def cumsum_last(x: Any) -> Any:
    return jnp.cumsum(x, -1)


@program("f32[64,7]")
def cummax_first(x: Any) -> Any:
    return lax.cummax(x, 0)


@program("f32[11,13]")
def pad_interior(x: Any) -> Any:
    return lax.pad(x, 0.5, ((1, 2, 1), (0, 3, 2)))


@program("s8[17,5]")
def pad_neg_i8(x: Any) -> Any:
    return lax.pad(x, jnp.int8(3), ((-2, 3, 0), (1, -1, 0)))


@program("f32[2,16,16,8]", "f32[3,3,8,12]", "f32[12]")
def conv_relu(x: Any, w: Any, b: Any) -> Any:
    y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jax.nn.relu(y + b)


@program("f32[2,20,20,3]", "f32[5,5,3,4]", "f32[4]")
def conv_stride_gelu(x: Any, w: Any, b: Any) -> Any:
    y = lax.conv_general_dilated(x, w, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jax.nn.gelu(y + b)


@program("f32[1,15,15,4]")
def avgpool(x: Any) -> Any:
    return lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "VALID") / 9


@program("f32[1,16,16,4]")
def maxpool_same(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


@program("pred[23,29]", "f32[23,29]", "f32[23,29]")
def select_mask(m: Any, a: Any, b: Any) -> Any:
    return jnp.where(m, a, b) * jnp.where(~m, 1.0, 2.0)


@program("pred[19,23]", "pred[19,23]")
def pred_logic(a: Any, b: Any) -> Any:
    return a & ~b | a ^ b


@program("s8[101]", "s8[101]")
def int8_math(a: Any, b: Any) -> Any:
    return (a.astype(jnp.int32) * b.astype(jnp.int32) // 3).astype(jnp.int8)


@program("s8[64,48]", "f32[48]")
def dequant(x: Any, s: Any) -> Any:
    return x.astype(jnp.float32) * s


@program("f32[64,48]")
def quant(x: Any) -> Any:
    s = jnp.max(jnp.abs(x), 1, keepdims=True) / 127
    return (jnp.clip(jnp.round(x / s), -127, 127).astype(jnp.int8), s)


@program("f32[2,30,4,16]", "f32[30,8]", "f32[30,8]")
def rope(x: Any, c: Any, s: Any) -> Any:
    a, b = (x[..., :8], x[..., 8:])
    c = c[None, :, None]
    s = s[None, :, None]
    return jnp.concatenate([a * c - b * s, b * c + a * s], -1)


@program("f32[16,50]", "s32[16]")
def cross_entropy(logits: Any, y: Any) -> Any:
    z = jax.nn.log_softmax(logits, -1)
    return -jnp.take_along_axis(z, y[:, None], 1).mean()


@program("f32[24,24]")
def tril_flip(x: Any) -> Any:
    return jnp.tril(x)[::-1] + jnp.triu(x, 2)


@program("f32[12,34]", "f32[34,20]", "f32[20]")
def mlp(x: Any, w: Any, b: Any) -> Any:
    return jax.nn.silu(x @ w + b)


@program("f32[2,3,40,16]", "f32[2,3,40,16]", "f32[2,3,40,16]")
def attention(q: Any, k: Any, v: Any) -> Any:
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 4
    m = jnp.tril(jnp.ones((40, 40), bool))
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.where(m, s, -jnp.inf), -1), v)


@program("c64[6,10]", "c64[6,10]")
def complex_mul(a: Any, b: Any) -> Any:
    return a * b + jnp.conj(a)


@program("f32[1000]")
def sort1(x: Any) -> Any:
    return jnp.sort(x)


@program("f32[8,20]")
def onehot_iota(x: Any) -> Any:
    return x + jax.nn.one_hot(jnp.arange(8) * 3 % 20, 20)


@program("f32[3,5,7]")
def roll_stack(x: Any) -> Any:
    return jnp.stack([jnp.roll(x, 2, 1), x[:, ::-1]], 2)


@program("f32[64,96]", "f32[64,96]")
def reduce_multi_out(a: Any, b: Any) -> Any:
    return ((a * b).sum(1), a.max(1), jnp.exp(a))


@program("f32[2000,3]")
def std_cols(x: Any) -> Any:
    return x.std(0)


@program("u32[256]")
def bits(x: Any) -> Any:
    return x << 3 ^ x >> 5 ^ (x.astype(jnp.int32) >> 2).astype(jnp.uint32)


@program("f32[10,6]", "f32[10,6]")
def scan_like(x: Any, y: Any) -> Any:
    def f(c: Any, a: Any) -> Any:
        c = jnp.tanh(c + a[0] * a[1])
        return (c, c)

    return lax.scan(f, jnp.zeros(6), (x, y))[1]


@program("f32[5,8,9]", "f32[5,8,9]")
def identical(a: Any, b: Any) -> Any:
    return (jnp.sin(a.T), jnp.sin(b.T))


@program("f32[31,33]", "f32[31,33]")
def identical_loops(a: Any, b: Any) -> Any:
    def f(x: Any) -> Any:
        return lax.optimization_barrier(jnp.tanh(x) * 3 + jnp.cos(x))

    return (f(a).sum(0), f(b).sum(1))


@program("f32[40,64]")
def logsumexp(x: Any) -> Any:
    return jax.nn.logsumexp(x, 0)


@program("f32[7,50]")
def topk(x: Any) -> Any:
    return lax.top_k(x, 3)


@program("f32[9,11]", "s32[]")
def dynslice(x: Any, i: Any) -> Any:
    return lax.dynamic_slice(x, (i, 2), (4, 5)) * 2


@program("f32[300]", "s32[300]")
def segment_sum(x: Any, i: Any) -> Any:
    return jax.ops.segment_sum(x, i, 17)


@program("f32[6,48]", "f32[6,48]")
def adam(p: Any, g: Any) -> Any:
    m = 0.1 * g
    v = 0.001 * g * g
    return (p - 0.001 * m / (jnp.sqrt(v) + 1e-08), m, v)
