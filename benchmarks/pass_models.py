"""JAX programs for `pass_dumps`: parts of models, cumulative ops, segments, sorts and loops."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.pass_programs import program

# ---------------------------------------------------------------- models


def _rms(x: Any, gain: Any) -> Any:
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gain


def _rope(x: Any, start: Any) -> Any:
    half = x.shape[-1] // 2
    angle = (start + jnp.arange(x.shape[0]))[:, None] / 1e4 ** (jnp.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    cos, sin = jnp.cos(angle)[:, None], jnp.sin(angle)[:, None]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def _block(x: Any, layer: Any) -> Any:
    gain, qkv, out, up, down = layer
    q, k, v = jnp.split((_rms(x, gain) @ qkv).reshape(x.shape[0], 3, 2, 4), 3, axis=1)
    q, k, v = _rope(q[:, 0], 0), _rope(k[:, 0], 0), v[:, 0]
    scores = jnp.einsum("qhd,khd->hqk", q, k) * 0.5
    mask = jnp.arange(x.shape[0])[:, None] >= jnp.arange(x.shape[0])[None]
    weights = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf))
    x = x + jnp.einsum("hqk,khd->qhd", weights, v).reshape(x.shape) @ out
    return x + jax.nn.gelu(_rms(x, gain) @ up) @ down


@program(
    "s32[7]", "f32[11,8]", "f32[3,8]", "f32[3,8,24]", "f32[3,8,8]", "f32[3,8,10]", "f32[3,10,8]"
)
def gpt_forward(tokens: Any, table: Any, *layers: Any) -> Any:
    x, _ = lax.scan(lambda x, layer: (_block(x, layer), None), table[tokens], layers)
    return x @ table.T


@program(
    "s32[6]", "f32[11,8]", "f32[2,8]", "f32[2,8,24]", "f32[2,8,8]", "f32[2,8,10]", "f32[2,10,8]"
)
def gpt_grad(tokens: Any, table: Any, *layers: Any) -> Any:
    def loss(table: Any, layers: Any) -> Any:
        x, _ = lax.scan(
            lambda x, layer: (jax.checkpoint(_block)(x, layer), None), table[tokens[:-1]], layers
        )
        logits = jax.nn.log_softmax(x @ table.T)
        return -jnp.take_along_axis(logits, tokens[1:, None], 1).mean()

    return jax.value_and_grad(loss)(table, layers)


@program("f32[2,9,3,4]", "f32[2,9,3,4]", "f32[2,1,3,4]", "f32[2,1,3,4]", "f32[2,1,3,4]", "s32[]")
def kv_cache(keys: Any, values: Any, q: Any, k: Any, v: Any, at: Any) -> Any:
    keys = lax.dynamic_update_slice(keys, k, (0, at, 0, 0))
    values = lax.dynamic_update_slice(values, v, (0, at, 0, 0))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, keys)
    scores = jnp.where(jnp.arange(9) <= at, scores, -1e30)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), values), keys, values


@program("f32[6,11]", "s32[6]", "f32[6]")
def cross_entropy_grad(logits: Any, labels: Any, weights: Any) -> Any:
    def loss(z: Any) -> Any:
        nll = jax.nn.logsumexp(z, -1) - jnp.take_along_axis(z, labels[:, None], -1)[:, 0]
        return (nll * weights).sum() / weights.sum()

    return jax.value_and_grad(loss)(logits)


@program("f32[5,7]", "f32[5,7]", "f32[5,7]", "f32[5,7]", "s32[]")
def adam_step(p: Any, g: Any, m: Any, v: Any, count: Any) -> Any:
    g = g * jnp.minimum(1.0, 1.0 / (jnp.sqrt((g * g).sum()) + 1e-6))
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    t = count + 1
    rate = 1e-3 * jnp.where(t < 100, t / 100, 0.5 * (1 + jnp.cos(np.pi * t / 1000)))
    step = (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return p - rate * (step + 0.01 * p), m, v, t


@program("f32[4,3]", "f32[4,3]", "f32[3]", "f32[3]")
def sgd_momentum(w: Any, m: Any, b: Any, n: Any) -> Any:
    return jax.tree.map(lambda p, v: (p - 0.1 * (0.9 * v + p), 0.9 * v + p), (w, b), (m, n))


@program("f32[2,5,6,8]", "f32[8]", "f32[8]")
def group_norm_grad(x: Any, gain: Any, bias: Any) -> Any:
    def norm(x: Any, gain: Any, bias: Any) -> Any:
        y = x.reshape(2, 5, 6, 4, 2)
        mean = y.mean((1, 2, 4), keepdims=True)
        var = ((y - mean) ** 2).mean((1, 2, 4), keepdims=True)
        return (((y - mean) * lax.rsqrt(var + 1e-5)).reshape(x.shape) * gain + bias).sum() ** 2

    return jax.grad(norm, argnums=(0, 1, 2))(x, gain, bias)


@program("f32[2,8,8,3]", "f32[3,3,3,4]", "f32[4]", "f32[64,5]", "s32[2]")
def conv_pool_grad(x: Any, w: Any, b: Any, dense: Any, labels: Any) -> Any:
    def loss(w: Any, b: Any, dense: Any) -> Any:
        y = jax.nn.relu(
            lax.conv_general_dilated(
                x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            + b
        )
        y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        logits = y.reshape(2, -1) @ dense
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()

    return jax.grad(loss, argnums=(0, 1, 2))(w, b, dense)


@program("f32[2,9,9,2]", "f32[2,3,3,2]")
def avg_pool_grad(x: Any, target: Any) -> Any:
    def loss(x: Any) -> Any:
        y = lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 3, 3, 1), "SAME") / 9.0
        return ((y - target) ** 2).sum()

    return jax.grad(loss)(x)


@program("f32[13,4]", "s32[3,5]", "f32[3,5,4]")
def embedding_grad(table: Any, tokens: Any, upstream: Any) -> Any:
    return jax.grad(lambda t: (t[tokens] * upstream).sum())(table)


@program("u32[2]", "f32[3,17]")
def top_k_sampling(key: Any, logits: Any) -> Any:
    best, at = lax.top_k(logits / 0.8, 5)
    chosen = jax.random.categorical(jax.random.wrap_key_data(key), best)
    return jnp.take_along_axis(at, chosen[:, None], 1)


@program("f32[4,7]")
def top_p(logits: Any) -> Any:
    order = jnp.argsort(-logits, -1)
    probs = jnp.take_along_axis(jax.nn.softmax(logits), order, -1)
    kept = jnp.cumsum(probs, -1) - probs < 0.9
    back = jnp.argsort(order, -1)
    return jnp.where(jnp.take_along_axis(kept, back, -1), logits, -jnp.inf)


@program("f32[3,7,5]", "f32[5,4]", "f32[3,4]", "f32[3,7]")
def gru_masked(xs: Any, w: Any, h: Any, mask: Any) -> Any:
    def step(h: Any, at: Any) -> Any:
        x, m = at
        z = jax.nn.sigmoid(x @ w + h)
        new = (1 - z) * h + z * jnp.tanh(x @ w)
        return m[:, None] * new + (1 - m[:, None]) * h, new

    return lax.scan(step, h, (xs.transpose(1, 0, 2), mask.T), reverse=True)


@program("f32[9,3]", "f32[9,3]")
def linear_recurrence(a: Any, b: Any) -> Any:
    return lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (a, b))


@program("f32[5,3]", "f32[5,3]", "f32[]")
def contrastive(x: Any, y: Any, t: Any) -> Any:
    def loss(x: Any, y: Any) -> Any:
        x = x / jnp.linalg.norm(x, axis=1, keepdims=True)
        y = y / jnp.linalg.norm(y, axis=1, keepdims=True)
        s = x @ y.T * jnp.exp(t)
        return -(jnp.diag(jax.nn.log_softmax(s)) + jnp.diag(jax.nn.log_softmax(s, 0))).mean()

    return jax.value_and_grad(loss, argnums=(0, 1))(x, y)


# ---------------------------------------------------------------- scans, sorts, segments


@program("f32[3,11]")
def running(x: Any) -> Any:
    return jnp.cumsum(x, 1), lax.cummin(x, 1), lax.cumprod(x, 1, reverse=True), lax.cumsum(x, 0)


@program("f32[3,20]", "f32[3,20]")
def running_grad(x: Any, g: Any) -> Any:
    return jax.grad(lambda x: (jnp.cumsum(x, 1) * g).sum() + lax.cumlogsumexp(x, 1).sum())(x)


@program("s32[40,2]")
def integer_cumsum(x: Any) -> Any:
    return jnp.cumsum(x, 0), lax.cummax(x, 0)


@program("f32[12,3]", "s32[12]")
def segment_mean(x: Any, ids: Any) -> Any:
    total = jax.ops.segment_sum(x, ids, 5)
    count = jax.ops.segment_sum(jnp.ones(12), ids, 5)
    return total / jnp.maximum(count, 1)[:, None], jax.ops.segment_min(x, ids, 5)


@program("f32[9]", "f32[4]")
def searched(edges: Any, x: Any) -> Any:
    edges = jnp.sort(edges)
    return (
        jnp.searchsorted(edges, x),
        jnp.digitize(x, edges),
        jnp.searchsorted(edges, x, "right", method="sort"),
    )


@program("f32[8]", "f32[8]", "f32[5]")
def interpolated(xp: Any, fp: Any, x: Any) -> Any:
    return jnp.interp(x, xp, fp), jax.scipy.ndimage.map_coordinates(fp, [x], order=1)


@program("s32[9]", "f32[9]", "f32[9]")
def sorted_by_keys(a: Any, b: Any, c: Any) -> Any:
    return lax.sort((a, b, c), num_keys=2), jnp.lexsort((b, a)), jnp.median(c), jnp.quantile(c, 0.3)


@program("s32[20]", "f32[20]")
def histograms(x: Any, w: Any) -> Any:
    return jnp.bincount(x, w, length=6), jnp.unique_counts(x, size=5), jnp.nonzero(x > 2, size=7)[0]


@program("f32[6,7]", "s32[3]", "s32[3]")
def vmapped_moves(x: Any, i: Any, j: Any) -> Any:
    cut = jax.vmap(lambda i, j: lax.dynamic_slice(x, (i, j), (2, 3)))(i, j)
    picked = jax.vmap(lambda i, j: x[i, j])(i, j)
    put = jax.vmap(lambda i, c: lax.dynamic_update_slice(x, c, (i, 0)))(i, cut)
    return cut, picked, put, jax.vmap(lambda i, row: row.at[i].add(1.0))(i, x[:3])


@program("f32[5,6]", "s32[4,2]", "f32[4]")
def gather_modes(x: Any, at: Any, u: Any) -> Any:
    filled = x.at[at[:, 0]].get(mode="fill", fill_value=0.0)
    dropped = x.at[at[:, 0], at[:, 1]].add(u, mode="drop")
    clipped = x.at[at[:, 0], at[:, 1]].multiply(u, mode="clip")
    return filled, dropped, clipped, jnp.take_along_axis(x[:, :2], at, 0)


# ---------------------------------------------------------------- loops


@program("f32[5]", "f32[]")
def newton(x: Any, tolerance: Any) -> Any:
    def cond(state: Any) -> Any:
        return (state[0] < 20) & (jnp.abs(state[2]).max() > tolerance)

    def body(state: Any) -> Any:
        i, y, _ = state
        step = (y * y - x) / (2 * y)
        return i + 1, y - step, step

    return lax.while_loop(cond, body, (0, jnp.ones(5), x))


@program("f32[6,6]", "f32[6]")
def conjugate_gradient(a: Any, b: Any) -> Any:
    return jax.scipy.sparse.linalg.cg(lambda x: a.T @ (a @ x) + x, b, maxiter=5)[0]


@program("f32[8]", "s32[]")
def bounded_loop(x: Any, n: Any) -> Any:
    return lax.fori_loop(0, n, lambda i, x: x.at[i % 8].mul(2.0) + x[::-1], x)


@program("f32[4,3]", "f32[3]")
def nested_scans(x: Any, h: Any) -> Any:
    def outer(h: Any, row: Any) -> Any:
        inner, _ = lax.scan(lambda c, e: (jnp.sin(c) * e, None), h, row)
        return inner + h, inner

    return lax.scan(outer, h, x)


@program("s32[]", "f32[6]")
def collatz(n: Any, x: Any) -> Any:
    steps = lax.while_loop(
        lambda s: s[0] > 1,
        lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1),
        (n, 0),
    )
    return steps[1], lax.switch(steps[1] % 3, [jnp.sin, jnp.cos, lambda x: -x], x)
