"""JAX programs of attention with masks."""

from __future__ import annotations

from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.mask_programs import Tiles, program

QKV: Final = ("f32[6,2]", "f32[6,2]", "f32[6,2]")
BY_ROWS: Final = Tiles(0, 0)
LENGTHS: Final = ({"lengths": [3, 1]}, {"lengths": [2, 9]})
"""No row of scores is masked completely: of only -inf, the weights are NaN."""
POSITIONS: Final = ({"pos": 0}, {"pos": 3})
MASKS: Final = ({"valid": [1, 0, 1, 1, 0]}, {"valid": [0, 0, 1, 0, 0]})
LEAST: Final = np.finfo(np.float32).min


def attend(q: Any, k: Any, v: Any, mask: Any, fill: Any = -jnp.inf) -> Any:
    scores = jnp.where(mask, q @ k.T, fill)
    return jax.nn.softmax(scores, axis=-1) @ v


def rows(n: int, m: int) -> tuple[Any, Any]:
    """Return the numbers of queries and of keys of an array of scores."""
    return lax.broadcasted_iota(jnp.int32, (n, m), 0), lax.broadcasted_iota(jnp.int32, (n, m), 1)


# ---------------------------------------------------------------- causal


@program("causal", *QKV, tiles=BY_ROWS)
def causal_tril(q: Any, k: Any, v: Any) -> Any:
    return attend(q, k, v, jnp.tril(jnp.ones((6, 6), bool)))


@program("causal", *QKV, tiles=BY_ROWS)
def causal_iota(q: Any, k: Any, v: Any) -> Any:
    i, j = rows(6, 6)
    return attend(q, k, v, j <= i)


@program("causal", *QKV, tiles=BY_ROWS)
def causal_least(q: Any, k: Any, v: Any) -> Any:
    return attend(q, k, v, jnp.tril(jnp.ones((6, 6), bool)), LEAST)


@program("causal", *QKV, tiles=BY_ROWS)
def causal_large_negative(q: Any, k: Any, v: Any) -> Any:
    i, j = rows(6, 6)
    return attend(q, k, v, i >= j, -1e9)


@program("causal", *QKV)
def causal_additive(q: Any, k: Any, v: Any) -> Any:
    i, j = rows(6, 6)
    return jax.nn.softmax(q @ k.T + jnp.where(i >= j, 0.0, -1e9), axis=-1) @ v


@program("causal", *QKV, tiles=BY_ROWS)
def causal_arange(q: Any, k: Any, v: Any) -> Any:
    places = jnp.arange(6)
    return attend(q, k, v, places[:, None] >= places[None, :])


@program("causal", "f32[2,2,4,2]", "f32[2,2,4,2]", "f32[2,2,4,2]", tiles=Tiles(2, 2, 1))
def causal_batch_heads(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(2.0)
    scores = jnp.where(jnp.tril(jnp.ones((4, 4), bool))[None, None], scores, -jnp.inf)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), v)


@program("causal", "f32[4,6]", "f32[6,6]", tiles=Tiles(0, 0, 1, "x"))
def causal_self(x: Any, w: Any) -> Any:
    q, k, _ = jnp.split(x @ w, 3, axis=-1)
    i, j = rows(4, 4)
    return jnp.where(j <= i, q @ k.T, -jnp.inf)


@program("causal", *QKV, tiles=BY_ROWS)
def causal_not_future(q: Any, k: Any, v: Any) -> Any:
    i, j = rows(6, 6)
    return attend(q, k, v, ~(j > i))


@program("causal", *QKV, tiles=BY_ROWS)
def causal_weights(q: Any, k: Any, v: Any) -> Any:
    mask = jnp.tril(jnp.ones((6, 6), bool))
    weights = jax.nn.softmax(jnp.where(mask, q @ k.T, -jnp.inf), axis=-1)
    return jnp.where(mask, weights, 0.0).sum(axis=1)


@program("causal", *QKV, tiles=BY_ROWS)
def causal_alibi(q: Any, k: Any, v: Any) -> Any:
    i, j = rows(6, 6)
    scores = q @ k.T - 0.5 * (i - j).astype(jnp.float32)
    return jax.nn.softmax(jnp.where(j <= i, scores, -jnp.inf), axis=-1) @ v


@program("causal", *QKV, tiles=BY_ROWS)
def causal_two_steps(q: Any, k: Any, v: Any) -> Any:
    return attend(q, k, v, jnp.triu(jnp.ones((6, 6)), 1) == 0)


# ---------------------------------------------------------------- windows, prefixes, blocks


@program("window", *QKV, tiles=BY_ROWS)
def sliding_window(q: Any, k: Any, v: Any) -> Any:
    i, j = rows(6, 6)
    return attend(q, k, v, (j <= i) & (i - j < 3))


@program("window", *QKV, tiles=BY_ROWS)
def band_window(q: Any, k: Any, v: Any) -> Any:
    ones = jnp.ones((6, 6), bool)
    return attend(q, k, v, jnp.tril(ones, 1) & jnp.triu(ones, -1), LEAST)


@program("window", *QKV, tiles=BY_ROWS)
def window_of_distances(q: Any, k: Any, v: Any) -> Any:
    i, j = rows(6, 6)
    return attend(q, k, v, jnp.abs(i - j) <= 1)


@program("window", *QKV, tiles=BY_ROWS)
def prefix_lm(q: Any, k: Any, v: Any) -> Any:
    i, j = rows(6, 6)
    return attend(q, k, v, (j <= i) | (j < 2))


@program("window", *QKV, tiles=BY_ROWS)
def chunked(q: Any, k: Any, v: Any) -> Any:
    i, j = rows(6, 6)
    return attend(q, k, v, i // 2 == j // 2)


@program("window", *QKV, tiles=BY_ROWS)
def chunked_causal(q: Any, k: Any, v: Any) -> Any:
    i, j = rows(6, 6)
    return attend(q, k, v, (i // 3 == j // 3) & (j <= i))


@program("window", *QKV, tiles=Tiles(0, 0, 1))
def dilated(q: Any, k: Any, v: Any) -> Any:
    i, j = rows(6, 6)
    return attend(q, k, v, (i - j) % 2 == 0)


@program("window", *QKV, tiles=BY_ROWS)
def block_sparse(q: Any, k: Any, v: Any) -> Any:
    blocks = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0]], bool)
    return attend(q, k, v, jnp.asarray(np.kron(blocks, np.ones((2, 2), bool))))


@program("window", *QKV, tiles=BY_ROWS)
def block_sparse_repeated(q: Any, k: Any, v: Any) -> Any:
    blocks = jnp.array([[True, False, False], [True, True, False], [False, True, True]])
    return attend(q, k, v, jnp.repeat(jnp.repeat(blocks, 2, axis=0), 2, axis=1))


@program("window", *QKV, tiles=BY_ROWS)
def sinks_and_window(q: Any, k: Any, v: Any) -> Any:
    i, j = rows(6, 6)
    return attend(q, k, v, (j <= i) & ((i - j < 2) | (j < 1)))


@program("window", "f32[6,2]", "f32[6,2]", "f32[6,2]", tiles=BY_ROWS)
def local_blocks(q: Any, k: Any, v: Any) -> Any:
    """Attention within blocks, by reshapes."""
    parts = [each.reshape(3, 2, 2) for each in (q, k, v)]
    scores = jnp.einsum("bqd,bkd->bqk", parts[0], parts[1])
    return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores, -1), parts[2]).reshape(6, 2)


# ---------------------------------------------------------------- runtime values


@program("padding", "f32[2,3,2]", "f32[2,4,2]", "f32[2,4,2]", "s32[2]", near=4, bound=LENGTHS)
def padding_by_lengths(q: Any, k: Any, v: Any, lengths: Any) -> Any:
    mask = jnp.arange(4)[None, :] < lengths[:, None]
    scores = jnp.where(mask[:, None, :], jnp.einsum("bqd,bkd->bqk", q, k), -jnp.inf)
    return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores, -1), v)


@program(
    "padding", "f32[2,4,2]", "f32[2,4,2]", "f32[2,4,2]", "s32[2]", near=4, tiles=Tiles(1, 1, 1)
)
def causal_with_lengths(q: Any, k: Any, v: Any, lengths: Any) -> Any:
    mask = (jnp.arange(4)[None, :] < lengths[:, None])[:, None, :]
    mask = mask & jnp.tril(jnp.ones((4, 4), bool))[None]
    scores = jnp.where(mask, jnp.einsum("bqd,bkd->bqk", q, k), LEAST)
    return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores, -1), v)


@program("padding", *QKV, "s32[6]", near=3)
def segment_ids(q: Any, k: Any, v: Any, segments: Any) -> Any:
    return attend(q, k, v, segments[:, None] == segments[None, :])


@program("padding", *QKV, "s32[6]", near=3, tiles=BY_ROWS)
def causal_segments(q: Any, k: Any, v: Any, segments: Any) -> Any:
    i, j = rows(6, 6)
    return attend(q, k, v, (segments[:, None] == segments[None, :]) & (j <= i))


@program(
    "padding",
    "f32[3,2]",
    "f32[5,2]",
    "f32[5,2]",
    "s32[]",
    near=5,
    bound=[{"length": n} for n in (1, 3, 9)],
)
def cross_attention(q: Any, k: Any, v: Any, length: Any) -> Any:
    return attend(q, k, v, (jnp.arange(5) < length)[None, :])


@program("padding", "f32[3,2]", "f32[5,2]", "f32[5,2]", "pred[5]", runtime=["valid"], bound=MASKS)
def cross_attention_mask(q: Any, k: Any, v: Any, valid: Any) -> Any:
    return attend(q, k, v, valid[None, :])


@program("padding", "f32[6,3]", "s32[6]", near=3)
def masked_mean(x: Any, segments: Any) -> Any:
    return jnp.where((segments == 1)[:, None], x, 0.0).sum(axis=0)


@program("padding", "f32[2,2]", "f32[6,2]", "f32[6,2]", "s32[]", near=4, bound=POSITIONS)
def decode_in_window(q: Any, k: Any, v: Any, pos: Any) -> Any:
    """Two queries, at `pos` and `pos + 1`, see the last three keys."""
    i, j = pos + jnp.arange(2)[:, None], jnp.arange(6)[None, :]
    return attend(q, k, v, (j <= i) & (j > i - 3))


# ---------------------------------------------------------------- variants


@program("causal", "f32[4,4,2]", "f32[2,4,2]", "f32[2,4,2]", tiles=Tiles(1, 1, 1))
def causal_grouped_queries(q: Any, k: Any, v: Any) -> Any:
    """Two heads of queries share each head of keys."""
    keys, values = jnp.repeat(k, 2, axis=0), jnp.repeat(v, 2, axis=0)
    scores = jnp.einsum("hqd,hkd->hqk", q, keys)
    scores = jnp.where(jnp.tril(jnp.ones((4, 4), bool)), scores, LEAST)
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores, axis=-1), values)


@program("causal", *QKV, tiles=BY_ROWS)
def causal_linear(q: Any, k: Any, v: Any) -> Any:
    """Linear attention: zero scores times infinite values are needed, so all of `v` is."""
    i, j = rows(6, 6)
    return jnp.where(j <= i, q @ k.T, 0.0) @ v


@program("causal", *QKV, tiles=Tiles(0, 0, 2, "v"))
def causal_selected_values(q: Any, k: Any, v: Any) -> Any:
    """The products with values are selected, too: later values are not needed."""
    i, j = rows(6, 6)
    weights = jax.nn.softmax(jnp.where(j <= i, q @ k.T, -jnp.inf), axis=-1)
    products = jnp.where((j <= i)[..., None], weights[..., None] * v[None], 0.0)
    return products.sum(axis=1)


@program("causal", *QKV, tiles=BY_ROWS)
def causal_in_blocks(q: Any, k: Any, v: Any) -> Any:
    """A loop over blocks of keys, as flash attention without its rescaling."""

    def step(block: Any, total: Any) -> Any:
        keys = lax.dynamic_slice(k, (2 * block, 0), (2, 2))
        places = 2 * block + jnp.arange(2)
        mask = places[None, :] <= jnp.arange(6)[:, None]
        return jnp.maximum(total, jnp.where(mask, q @ keys.T, -jnp.inf).max(axis=1))

    return lax.fori_loop(0, 3, step, jnp.full(6, -jnp.inf))


@program("causal", "f32[4,2]", "f32[4,2]", "f32[4,2]")
def causal_gradient(q: Any, k: Any, v: Any) -> Any:
    def loss(k: Any) -> Any:
        return attend(q, k, v, jnp.tril(jnp.ones((4, 4), bool))).sum()

    return jax.grad(loss)(k)


@program("causal", "f32[4,2]", "f32[4,2]", tiles=Tiles(0, 0, 1))
def causal_scores_in_rows(q: Any, k: Any) -> Any:
    """A map over queries."""

    def row(number: Any) -> Any:
        return jnp.where(jnp.arange(4) <= number, k @ q[number], -jnp.inf)

    return lax.map(row, jnp.arange(4))


@program("window", *QKV, tiles=BY_ROWS)
def strided_and_local(q: Any, k: Any, v: Any) -> Any:
    """As the sparse transformer: the last two keys, and each third key before."""
    i, j = rows(6, 6)
    return attend(q, k, v, (j <= i) & ((i - j < 2) | (j % 3 == 2)))


@program("window", *QKV, tiles=BY_ROWS)
def bidirectional_prefix(q: Any, k: Any, v: Any) -> Any:
    """The first four tokens see each other, the others are causal."""
    i, j = rows(6, 6)
    return attend(q, k, v, ((i < 4) & (j < 4)) | (j <= i), LEAST)


@program("window", *QKV, tiles=BY_ROWS)
def anti_causal(q: Any, k: Any, v: Any) -> Any:
    i, j = rows(6, 6)
    return attend(jnp.flip(q, 0), jnp.flip(k, 0), v, j >= i)
