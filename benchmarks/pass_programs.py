"""JAX programs whose compilation runs most of XLA:CPU's passes; `pass_dumps` compiles them.

Sizes are small and differ from each other, so that a wrong dimension shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
"""The functions of one device and the types of their arguments, by name."""

_TYPES: Final = {
    "f32": jnp.float32,
    "bf16": jnp.bfloat16,
    "s32": jnp.int32,
    "s8": jnp.int8,
    "u32": jnp.uint32,
    "pred": jnp.bool_,
    "c64": jnp.complex64,
    "f16": jnp.float16,
    "f8e4m3fn": jnp.float8_e4m3fn,
}


def program(*arguments: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a program; a text such as ``f32[3,4]`` is the type of an argument."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = function, tuple([argument(each) for each in arguments])
        return function

    return register


def argument(text: str) -> jax.ShapeDtypeStruct:
    """Return the type ``f32[3,4]``."""
    kind, sizes = text.rstrip("]").split("[")
    return jax.ShapeDtypeStruct([int(n) for n in sizes.split(",") if n], _TYPES[kind])


# ---------------------------------------------------------------- networks


@program("f32[2,3,7,4]", "f32[2,3,7,4]", "f32[2,3,7,4]")
@program("f32[2,3,7,4]", "f32[2,3,7,4]", "f32[2,3,7,4]")
def attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), v)


def _layernorm(x: Any, gain: Any, bias: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * gain + bias


@program("f32[6,10]", "f32[10]", "f32[10]")
def layernorm(x: Any, gain: Any, bias: Any) -> Any:
    return jax.value_and_grad(lambda *a: (_layernorm(*a) ** 2).sum(), argnums=(0, 1, 2))(
        x, gain, bias
    )


@program("f32[5,8]", "f32[8,12]", "f32[12]", "f32[12,3]", "f32[5,3]")
def mlp_train(x: Any, w1: Any, b1: Any, w2: Any, y: Any) -> Any:
    def loss(w1: Any, b1: Any, w2: Any) -> Any:
        return ((jax.nn.gelu(x @ w1 + b1) @ w2 - y) ** 2).mean()

    value, gradients = jax.value_and_grad(loss, argnums=(0, 1, 2))(w1, b1, w2)
    return value, [w - 0.1 * g for w, g in zip((w1, b1, w2), gradients, strict=True)]


def _conv(x: Any, w: Any, stride: int = 1, **options: Any) -> Any:
    dims = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, w, (stride, stride), "SAME", dimension_numbers=dims, **options
    )


@program("f32[2,9,8,3]", "f32[3,3,3,5]", "f32[2,5,4]")
def convnet_train(x: Any, w: Any, target: Any) -> Any:
    def loss(w: Any) -> Any:
        y = jax.nn.relu(_conv(x, w, 2))
        return ((y.mean(3) - target[:, :, :4]) ** 2).sum()

    return jax.grad(loss)(w)


@program("f32[2,8,9,3]")
def pooling(x: Any) -> Any:
    def pool(x: Any) -> Any:
        y = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        return (y * 0.5).sum() + lax.reduce_window(
            x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
        ).sum()

    return pool(x), jax.grad(pool)(x)


@program("f32[7,2,3]", "f32[3,5]", "f32[5,5]")
def rnn_scan(xs: Any, wx: Any, wh: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = jnp.tanh(x @ wx + h @ wh)
        return h, h

    return lax.scan(step, jnp.zeros((2, 5)), xs)


@program("f32[6,2,3]", "f32[8,16]", "f32[16]")
def lstm_grad(xs: Any, w: Any, b: Any) -> Any:
    def loss(w: Any, b: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            h, c = carry
            i, f, g, o = jnp.split(jnp.concatenate([x, h, h[:, :1]], 1) @ w + b, 4, axis=1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        (h, _), _ = lax.scan(step, (jnp.zeros((2, 4)), jnp.zeros((2, 4))), xs)
        return (h**2).sum()

    return jax.grad(loss, argnums=(0, 1))(w, b)


@program("bf16[4,6]", "bf16[6,10]", "bf16[10,3]")
def bf16_mlp(x: Any, w1: Any, w2: Any) -> Any:
    return jax.nn.silu(x @ w1) @ w2, jnp.exp(x).sum(1)


@program("f32[5,4,6,3]", "f32[3]", "f32[3]")
def batchnorm(x: Any, gain: Any, bias: Any) -> Any:
    mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) / jnp.sqrt(var + 1e-3) * gain + bias, mean * 0.9, var * 0.9


@program("f32[5,6,3]", "f32[3]")
def batchnorm_grad(x: Any, gain: Any) -> Any:
    return jax.grad(lambda x, g: ((x - x.mean((0, 1))) / x.std((0, 1)) * g).max(), (0, 1))(x, gain)


@program("f32[4,7,9]", "pred[4,7,9]")
def masked_softmax(x: Any, mask: Any) -> Any:
    return jax.nn.softmax(x, axis=1, where=mask), jax.nn.log_softmax(x)


@program("f32[11,4]", "s32[3,5]", "f32[5,4]")
def embed(table: Any, tokens: Any, positions: Any) -> Any:
    def embed_value(table: Any) -> Any:
        return (table[tokens] + positions) @ table.T

    return embed_value(table), jax.grad(lambda t: embed_value(t).sum())(table)


@program("f32[6,4]", "f32[4,3]", "f32[3,4,5]")
def moe(x: Any, router: Any, experts: Any) -> Any:
    gate, chosen = lax.top_k(jax.nn.softmax(x @ router), 2)
    hot = jax.nn.one_hot(chosen, 3)
    return jnp.einsum("tk,tke,td,edf->tf", gate, hot, x, experts)


# ---------------------------------------------------------------- loops and conditionals


@program("f32[9,4]", "s32[]")
def fori_dus(x: Any, start: Any) -> Any:
    def body(i: Any, x: Any) -> Any:
        row = lax.dynamic_slice(x, (i, 0), (1, 4)) * 2.0
        return lax.dynamic_update_slice(x, row, (start + i, 0))

    return lax.fori_loop(0, 5, body, x)


@program("s32[]", "f32[4]", "f32[4]")
def cond_switch(which: Any, x: Any, y: Any) -> Any:
    z = lax.switch(which, [lambda a, b: a + b, lambda a, b: a * b, lambda a, b: b[::-1]], x, y)
    return lax.cond(which > 1, lambda a: a.sum(), lambda a: a.max(), z), z


@program("f32[8]", "f32[8]", "f32[8,8]")
def while_invariant(x: Any, y: Any, w: Any) -> Any:
    def body(state: Any) -> Any:
        i, x = state
        return i + 1, jnp.tanh(x @ (w * 2.0 + 1.0)) + jnp.exp(y)

    return lax.while_loop(lambda state: state[0] < 6, body, (0, x))[1]


@program("f32[6,3]", "f32[3]")
def unrolled(xs: Any, h: Any) -> Any:
    return lax.scan(lambda h, x: (h * 0.5 + x, h.sum()), h, xs, unroll=3)


@program("f32[7]", "f32[7]")
def dead_loops(x: Any, y: Any) -> Any:
    once = lax.fori_loop(0, 1, lambda i, a: a * 3.0 + i, x)
    never = lax.fori_loop(3, 3, lambda i, a: a * 5.0, y)
    state = lax.fori_loop(0, 4, lambda i, s: (s[0] + 1.0, s[1], s[2] * s[1]), (x, y, y))
    return once, never, state[0]


@program("f32[5,6]")
def map_sort(x: Any) -> Any:
    return lax.map(lambda row: jnp.sort(row)[1:4] * 2.0, x)


@program("pred[4]", "f32[4,3]", "f32[4,3]")
def vmap_cond(p: Any, x: Any, y: Any) -> Any:
    return jax.vmap(lambda p, x, y: lax.cond(p, lambda: x + y, lambda: x * y))(p, x, y)


@program("f32[5,4]")
def remat_custom(x: Any) -> Any:
    f = jax.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * jnp.cos(x) * 2.0,))
    return jax.grad(lambda x: jax.checkpoint(lambda x: f(jnp.exp(f(x))))(x).sum())(x)


# ---------------------------------------------------------------- gathers, scatters, sorts


@program("f32[9,4]", "s32[5]", "f32[5,4]")
def gather_scatter(x: Any, i: Any, updates: Any) -> Any:
    return x[i] * 2.0, x.at[i].add(updates), x.at[i, 1].set(0.0)


@program("f32[8,9]", "s32[5,2]", "f32[5]")
def scatter_nd(x: Any, at: Any, updates: Any) -> Any:
    return x.at[at[:, 0], at[:, 1]].max(updates), x[at[:, 0], at[:, 1]]


@program("f32[10,3]", "s32[10]")
def segment(x: Any, ids: Any) -> Any:
    return jax.ops.segment_sum(x, ids, 4), jax.ops.segment_max(x, ids, 4)


@program("f32[4,9]")
def sort_topk(x: Any) -> Any:
    return jnp.sort(x), jnp.argsort(x, axis=0), *lax.top_k(x, 3), jnp.argmax(x, 1)


@program("s32[6]", "f32[6,5]")
def onehot(labels: Any, logits: Any) -> Any:
    loss = lambda z: -(jax.nn.one_hot(labels, 5) * jax.nn.log_softmax(z)).sum()  # noqa: E731
    return jax.value_and_grad(loss)(logits)


@program("f32[9,8]", "s32[]", "s32[]", "f32[2,3]")
def dyn_slices(x: Any, i: Any, j: Any, update: Any) -> Any:
    inner = lax.dynamic_slice(lax.dynamic_slice(x, (i, j), (6, 5)), (j, i), (2, 3))
    return inner, lax.dynamic_update_slice(x, update * inner, (j, 0)), x[3]


@program("f32[3,9]", "s32[3]")
def vmapped_dyn(x: Any, starts: Any) -> Any:
    cut = jax.vmap(lambda row, i: lax.dynamic_slice(row, (i,), (4,)))(x, starts)
    return cut, jax.vmap(lambda r, c, i: lax.dynamic_update_slice(r, c * 2, (i,)))(x, cut, starts)


# ---------------------------------------------------------------- movement


@program("f32[4,6,5]", "f32[4,6,5]")
def moves(x: Any, y: Any) -> Any:
    z = jnp.concatenate([x.transpose(2, 0, 1), y.transpose(2, 0, 1)[:, 1:3]], 1)
    rolled = jnp.roll(x, 2, axis=1)[:, ::-1]
    return jnp.pad(z, ((1, 2), (0, 0), (3, 0))), jnp.tile(rolled, (1, 2, 1)), jnp.stack([x, y], 2)


@program("f32[12,5]", "f32[60]")
def reshapes(x: Any, y: Any) -> Any:
    a = x.reshape(3, 4, 5).transpose(1, 0, 2).reshape(60)
    return (a + y).reshape(6, 10).T, (jnp.exp(a.reshape(4, 15)) * 2).reshape(2, 30), x.ravel()[7:31]


@program("f32[15,13]")
def strided(x: Any) -> Any:
    y = x[1:14:3, ::-2]
    return y, lax.pad(y, 0.5, ((1, -1, 2), (-2, 3, 0))), x[::4].sum(0)


@program("f32[4,5]")
def resize_flip(x: Any) -> Any:
    return (
        jax.image.resize(x, (8, 10), "linear"),
        jnp.flip(x),
        jax.image.resize(x, (8, 7), "nearest"),
    )


# ---------------------------------------------------------------- folds


@program("f32[6,7,8]")
def reductions(x: Any) -> Any:
    return x.sum(), x.mean((0, 2)), x.min(1), jnp.prod(x, 0), x.std(2), (x > 0).any(1), x.argmin(2)


@program("f32[1200]", "f32[3,7,300]")
def big_reduce(x: Any, y: Any) -> Any:
    return x.sum(), y.max(), (y * 2.0).sum((0, 2)), jnp.transpose(y, (2, 0, 1)).sum((1, 2))


@program("f32[5,40]")
def cumulative(x: Any) -> Any:
    return (
        jnp.cumsum(x, 1),
        lax.cummax(x, 0, reverse=True),
        jnp.cumprod(x, 0),
        lax.cumlogsumexp(x, 1),
    )


@program("f32[1500]")
def big_cumsum(x: Any) -> Any:
    return jnp.cumsum(x)


@program("f32[13,11]")
def windows(x: Any) -> Any:
    size, step = (3, 2), (2, 3)
    summed = lax.reduce_window(x, 0.0, lax.add, size, step, ((1, 0), (0, 2)), (1, 1), (2, 3))
    return summed, lax.reduce_window(x, jnp.inf, lax.min, (5, 1), (1, 1), "SAME")


@program("f32[3,4,5]", "f32[5,4,6]", "f32[4,4]", "f32[7]", "f32[5]")
def einsums(a: Any, b: Any, c: Any, v: Any, u: Any) -> Any:
    one = jnp.einsum("ijk,kjl->il", a, b)
    batch = jnp.einsum("ijk,kjl->jil", a, b)
    return one, batch, jnp.einsum("ij,ji->i", c, c), jnp.outer(v, u), a @ u, jnp.vdot(u, u)


@program("s8[5,7]", "s8[7,3]", "u32[5]", "f32[5]")
def mixed_int8(a: Any, b: Any, u: Any, x: Any) -> Any:
    y = lax.dot(a, b, preferred_element_type=jnp.int32)
    return (
        y,
        y.astype(jnp.float32) * 0.125,
        (u >> 3) * 7,
        x.astype(jnp.bfloat16).astype(jnp.float32),
    )


@program("f32[3,16,5]", "f32[3,5,6]", "f32[16,5,6]")
def convs1d(x: Any, w: Any, _: Any) -> Any:
    dims = ("NWC", "WIO", "NWC")
    same = lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=dims)
    dilated = lax.conv_general_dilated(x, w, (2,), ((4, 0),), (1,), (2,), dims)
    return same, dilated, lax.conv_transpose(x, w, (2,), "SAME", dimension_numbers=dims)


@program("f32[2,6,7,4]", "f32[3,3,2,6]", "f32[3,3,1,8]")
def grouped_conv(x: Any, w: Any, depthwise: Any) -> Any:
    return _conv(x, w, feature_group_count=2), _conv(x, depthwise, feature_group_count=4)


@program("f32[16]", "f32[3,9]", "f32[4]")
def fft_conv(x: Any, y: Any, w: Any) -> Any:
    return jnp.fft.irfft(jnp.fft.rfft(x) * 2.0), jnp.fft.fft(y).real, jnp.convolve(x, w, "same")
