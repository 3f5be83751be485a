"""JAX programs of scans, sums, convolutions and recurrences, with and without masks."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.mask_programs import program


@program("scan", "f32[32]")
def associative_sum(x: Any) -> Any:
    return lax.associative_scan(jnp.add, x)


@program("scan", "f32[33]")
def associative_sum_odd(x: Any) -> Any:
    return lax.associative_scan(jnp.add, x)


@program("scan", "f32[2,20]")
def associative_reversed(x: Any) -> Any:
    return lax.associative_scan(jnp.maximum, x, reverse=True, axis=1)


@program("scan", "f32[3,40]")
def associative_long(x: Any) -> Any:
    return lax.associative_scan(jnp.add, x, reverse=True, axis=1)


@program("scan", "f32[12,2]", "f32[12,2]")
def associative_pairs(a: Any, b: Any) -> Any:
    def combine(left: Any, right: Any) -> Any:
        return left[0] * right[0], left[1] * right[0] + right[1]

    return lax.associative_scan(combine, (a, b))[1]


@program("scan", "f32[12]")
def running_sum(x: Any) -> Any:
    return jnp.cumsum(x)


@program("scan", "f32[3,7]")
def running_sum_reversed(x: Any) -> Any:
    return lax.cumsum(x, axis=1, reverse=True)


@program("scan", "f32[10]")
def running_greatest(x: Any) -> Any:
    return lax.cummax(x)


@program("scan", "f32[9]")
def running_sum_of_masked(x: Any) -> Any:
    return jnp.cumsum(jnp.where(lax.iota(jnp.int32, 9) % 2 == 0, x, 0.0))


@program("scan", "f32[8]")
def shifted_sums(x: Any) -> Any:
    """Sums of shifted copies."""
    for step in (1, 2, 4):
        x = x + jnp.pad(x, (step, 0))[:8]
    return x


@program("scan", "f32[8,2]", "f32[2,2]")
def recurrence(x: Any, w: Any) -> Any:
    def step(state: Any, row: Any) -> Any:
        state = jnp.tanh(state @ w + row)
        return state, state

    return lax.scan(step, jnp.zeros(2), x)[1]


@program("scan", "f32[6,2]", "f32[6,2]", "f32[6,2]")
def selective_scan(x: Any, a: Any, b: Any) -> Any:
    """A state-space block: elements of different channels do not mix."""

    def step(state: Any, rows: Any) -> Any:
        state = rows[1] * state + rows[2] * rows[0]
        return state, state

    return lax.scan(step, jnp.zeros(2), (x, a, b))[1]


@program("scan", "f32[6]", "s32[]", near=6)
def scan_with_length(x: Any, length: Any) -> Any:
    def step(state: Any, pair: Any) -> Any:
        number, value = pair
        state = jnp.where(number < length, state + value, state)
        return state, state

    return lax.scan(step, 0.0, (jnp.arange(6), x))[1]


@program("scan", "f32[6]", "pred[6]", runtime=["reset"])
def scan_with_resets(x: Any, reset: Any) -> Any:
    def step(state: Any, pair: Any) -> Any:
        state = jnp.where(pair[0], 0.0, state) + pair[1]
        return state, state

    return lax.scan(step, 1.0, (reset, x))[1]


@program("scan", "f32[8]")
def loop_of_even_steps(x: Any) -> Any:
    def step(k: Any, total: Any) -> Any:
        return total + jnp.where(k % 2 == 0, x[k], 0.0)

    return lax.fori_loop(0, 8, step, 0.0)


@program("scan", "f32[5,5]")
def loop_below_diagonal(x: Any) -> Any:
    def step(k: Any, total: Any) -> Any:
        return total + jnp.where(jnp.arange(5) < k, x[k], 0.0)

    return lax.fori_loop(0, 5, step, jnp.zeros(5))


# ---------------------------------------------------------------- convolutions


@program("convolution", "f32[1,1,8]", "f32[1,1,3]")
def causal_convolution(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (1,), [(2, 0)])


@program("convolution", "f32[1,1,4,4]", "f32[1,1,3,3]")
def masked_kernel(x: Any, w: Any) -> Any:
    """The weights at and after the centre are masked; zero times infinity: `x` is needed."""
    mask = jnp.arange(9).reshape(1, 1, 3, 3) < 4
    return lax.conv_general_dilated(x, jnp.where(mask, w, 0.0), (1, 1), "SAME")


@program("convolution", "f32[1,1,8]", "f32[1,1,3]")
def convolution_of_masked(x: Any, w: Any) -> Any:
    masked = jnp.where(jnp.arange(8) < 5, x, 0.0)
    return lax.conv_general_dilated(masked, w, (1,), "VALID")


@program("convolution", "f32[1,1,8]", "s32[]", near=8)
def window_sums_with_length(x: Any, length: Any) -> Any:
    masked = jnp.where(jnp.arange(8) < length, x, 0.0)
    return lax.reduce_window(masked, 0.0, lax.add, (1, 1, 2), (1, 1, 2), "VALID")


@program("convolution", "f32[8]")
def dilated_sum(x: Any) -> Any:
    return x[:4] + jnp.where(jnp.arange(4) > 0, x[4:], 0.0)


# ---------------------------------------------------------------- transformers


@program("model", "f32[4,4]", "f32[4]")
def rotary(x: Any, angles: Any) -> Any:
    """Rotate halves, as of rotary embeddings."""
    left, right = x[:, :2], x[:, 2:]
    cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
    return jnp.concatenate([left * cos - right * sin, right * cos + left * sin], axis=1)


@program("model", "f32[4,4]")
def rotary_interleaved(x: Any) -> Any:
    even, odd = x[:, ::2], x[:, 1::2]
    return jnp.stack([-odd, even], axis=-1).reshape(4, 4)


@program("model", "f32[4,4]", "f32[4,4]")
def rotary_causal(q: Any, k: Any) -> Any:
    def rotate(x: Any) -> Any:
        return jnp.concatenate([-x[:, 2:], x[:, :2]], axis=1) + x

    scores = rotate(q) @ rotate(k).T
    return jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((4, 4), bool)), scores, -jnp.inf), axis=-1)


@program("model", "f32[4,2]", "f32[2,2]", "f32[2,2]", "f32[2,2]")
def causal_layer(x: Any, wq: Any, wk: Any, wv: Any) -> Any:
    scores = (x @ wq) @ (x @ wk).T
    weights = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((4, 4), bool)), scores, -jnp.inf))
    return x + weights @ (x @ wv)


@program("model", "f32[4,3]", "s32[4]", near=3)
def masked_loss(logits: Any, labels: Any) -> Any:
    losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)[:, 0]
    return jnp.where(labels >= 0, losses, 0.0)


@program("model", "f32[6,2]", "s32[6]", near=3)
def experts(x: Any, which: Any) -> Any:
    """Each row goes to one of two experts."""
    return jnp.where((which == 0)[:, None], x * 2, jnp.where((which == 1)[:, None], x + 1, 0.0))


@program("model", "f32[2,6]", "f32[2,4]")
def concatenated_masks(x: Any, y: Any) -> Any:
    both = jnp.concatenate([x, y], axis=1)
    return jnp.where(jnp.arange(10) % 5 < 2, both, 0.0)


@program("model", "f32[4,4]")
def top_of_rows(x: Any) -> Any:
    """Sorted constants choose the columns."""
    order = np.array([2, 0, 3])
    return lax.sort(jnp.asarray(order)).astype(jnp.float32)[None] * 0 + x[:, jnp.sort(order)]


@program("model", "f32[2,2,3]", "s32[2]", near=2)
def vmapped_update(x: Any, rows: Any) -> Any:
    return jax.vmap(lambda part, row: part.at[row].set(0.0, mode="drop"))(x, rows)
