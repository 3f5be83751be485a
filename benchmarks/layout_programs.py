"""Programs whose arguments and results have other layouts than the compiler wants inside.

They transpose weights, split heads, update caches and tables, and walk over stacked arrays.
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


def program(*types: str) -> Callable[[Any], Any]:
    """Register a program; a text such as ``f32[3,4]`` is the type of an argument."""

    def register(function: Any) -> Any:
        PROGRAMS[function.__name__] = function, arguments(",".join(types))
        return function

    return register


@program("bf16[2,256,4,64]", "bf16[2,256,4,64]", "bf16[2,256,4,64]")
def attention_heads(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8.0
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


@program("bf16[4,128,256]", "bf16[256,768]")
def fused_projections(x: Any, w: Any) -> Any:
    q, k, v = jnp.split((x @ w).reshape(4, 128, 3, 4, 64), 3, axis=2)
    scores = jnp.einsum("bqchd,bkchd->bhqk", q, k)
    return jnp.einsum("bhqk,bkchd->bqhd", jax.nn.softmax(scores), v)


@program("f32[128,4,64]", "f32[128,32]")
def rope(x: Any, angles: Any) -> Any:
    even, odd = x[..., ::2], x[..., 1::2]
    c, s = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
    return jnp.stack([even * c - odd * s, even * s + odd * c], -1).reshape(x.shape)


@program("bf16[8,256,4,64]", "bf16[8,1,4,64]", "s32[]")
def write_cache(cache: Any, new: Any, at: Any) -> Any:
    return lax.dynamic_update_slice(cache, new, (0, at, 0, 0))


@program(
    "bf16[8,4,64]",
    "bf16[8,256,4,64]",
    "bf16[8,256,4,64]",
    "bf16[8,1,4,64]",
    "bf16[8,1,4,64]",
    "s32[]",
)
def decode_with_cache(q: Any, k: Any, v: Any, new_k: Any, new_v: Any, at: Any) -> Any:
    k = lax.dynamic_update_slice(k, new_k, (0, at, 0, 0))
    v = lax.dynamic_update_slice(v, new_v, (0, at, 0, 0))
    scores = jnp.einsum("bhd,bkhd->bhk", q, k)
    return jnp.einsum("bhk,bkhd->bhd", jax.nn.softmax(scores), v), k, v


@program("bf16[64,16,4,64]", "s32[8,8]", "bf16[8,4,64]")
def read_pages(pages: Any, table: Any, q: Any) -> Any:
    keys = pages[table].reshape(8, 128, 4, 64)
    return jnp.einsum("bhd,bkhd->bhk", q, keys)


@program("f32[512,384]", "f32[640,384]")
def transposed_weights(x: Any, w: Any) -> Any:
    return x @ w.T


@program("f32[512,384]", "f32[384,640]")
def returned_transposed(x: Any, w: Any) -> Any:
    return x @ w, w.T


@program("f32[512,1000]")
def top_values(x: Any) -> Any:
    return lax.top_k(x, 16)


@program("f32[1000,64]", "s32[256]")
def look_up(table: Any, tokens: Any) -> Any:
    return table[tokens]


@program("f32[1000,64]", "s32[256]", "f32[256,64]")
def update_rows(table: Any, tokens: Any, rows: Any) -> Any:
    return table.at[tokens].add(rows)


@program("f32[1000,64]", "s32[256]")
def train_table(table: Any, tokens: Any) -> Any:
    def loss(given: Any) -> Any:
        return jnp.sum(jnp.tanh(given[tokens]) ** 2)

    return jax.value_and_grad(loss)(table)


@program("f32[8,64]", "f32[12,64,64]")
def stacked_layers(x: Any, ws: Any) -> Any:
    return lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, ws)[0]


@program("f32[16,128,64]", "f32[128,64]")
def scan_of_columns(x: Any, h: Any) -> Any:
    def step(state: Any, each: Any) -> Any:
        state = jnp.cumsum(state + each, axis=1)
        return state, state.T

    return lax.scan(step, h, x)


@program("bf16[256,128]", "bf16[8,128,64]", "s32[8]")
def experts(x: Any, ws: Any, sizes: Any) -> Any:
    return lax.ragged_dot(x, ws, sizes)


@program("bf16[4,28,28,16]", "bf16[3,3,1,16]")
def depthwise(x: Any, k: Any) -> Any:
    return lax.conv_general_dilated(
        *(x, k, (1, 1), "SAME"),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=16,
    )


@program("f32[40,50,60]")
def permuted(x: Any) -> Any:
    return jnp.transpose(x, (2, 0, 1)) * 2.0, jnp.cumsum(x, axis=2)


@program("f32[128,64]")
def factor(a: Any) -> Any:
    return jnp.linalg.qr(a)


@program("f32[1000,64]", "s32[256]")
def rows_and_columns(table: Any, tokens: Any) -> Any:
    return table[tokens], table.T[tokens[:32]], jnp.sort(table, axis=0)


@program("f32[1000,64]", "s32[256]")
def scaled_by_sums(x: Any, tokens: Any) -> Any:
    rows = x[tokens]
    return rows, jnp.sum(x, axis=1), rows * 2.0


@program("f32[1000,64]", "s32[64]", "f32[64]")
def rows_in_a_loop(table: Any, tokens: Any, h: Any) -> Any:
    return lax.scan(lambda state, token: (state + table[token], None), h, tokens)[0]


@program("f32[1000,64]", "s32[32]", "f32[32,64]")
def written_in_a_loop(table: Any, tokens: Any, rows: Any) -> Any:
    def step(state: Any, each: Any) -> Any:
        token, row = each
        return lax.dynamic_update_slice(state, row[None], (token, 0)), state[token]

    return lax.scan(step, table, (tokens, rows))


@program("bf16[256,64]", "bf16[3,8,64,64]", "s32[8]")
def layer_of_experts(x: Any, ws: Any, sizes: Any) -> Any:
    def layer(h: Any, w: Any) -> Any:
        return lax.ragged_dot(h, w, sizes), None

    return lax.scan(layer, x, ws)[0]


@program("f32[64,1000]", "s32[256]")
def transposed_table(table: Any, tokens: Any) -> Any:
    return table.T[tokens]


@program("f32[1000,64]", "s32[256]")
def heads_of_a_table(table: Any, tokens: Any) -> Any:
    return table.reshape(1000, 4, 16).transpose(1, 0, 2)[:, tokens]


@program("f32[256,64]", "f32[64,64]")
def top_rows(x: Any, w: Any) -> Any:
    values, at = lax.top_k(x @ w, 8)
    return values, at, x[at[:, 0]]


@program("f32[8,56,56,3]", "f32[192,256]")
def patches(x: Any, w: Any) -> Any:
    parts = x.reshape(8, 7, 8, 7, 8, 3).transpose(0, 1, 3, 2, 4, 5)
    return parts.reshape(8, 49, 192) @ w


PROGRAMS["written_in_a_loop_donated"] = (
    jax.jit(written_in_a_loop, donate_argnums=0),
    PROGRAMS["written_in_a_loop"][1],
)
PROGRAMS["update_rows_donated"] = jax.jit(update_rows, donate_argnums=0), PROGRAMS["update_rows"][1]
