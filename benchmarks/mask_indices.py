"""JAX programs that read and write at constant and at runtime indices."""

from __future__ import annotations

from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.mask_programs import Tiles, program

PERMUTATION: Final = np.array([3, 0, 5, 1, 4, 2])


# ---------------------------------------------------------------- caches


@program("cache", "f32[6,2]", "f32[1,2]", "s32[]", near=6)
def cache_update(cache: Any, new: Any, pos: Any) -> Any:
    return lax.dynamic_update_slice(cache, new, (pos, 0))


@program("cache", "f32[6,2]", "f32[2]", "s32[]", near=6)
def cache_set(cache: Any, new: Any, pos: Any) -> Any:
    return cache.at[pos].set(new)


@program("cache", "f32[2]", "f32[6,2]", "f32[6,2]", "s32[]", near=6, bound=[{"pos": 0}, {"pos": 4}])
def cache_attend(q: Any, k: Any, v: Any, pos: Any) -> Any:
    scores = jnp.where(jnp.arange(6) <= pos, k @ q, -jnp.inf)
    return jax.nn.softmax(scores) @ v


@program("cache", "f32[2]", "f32[6,2]", "f32[1,2]", "s32[]", near=6, bound=[{"pos": 0}, {"pos": 4}])
def cache_update_and_attend(q: Any, k: Any, new: Any, pos: Any) -> Any:
    keys = lax.dynamic_update_slice(k, new, (pos, 0))
    scores = jnp.where(jnp.arange(6) <= pos, keys @ q, -jnp.inf)
    return keys, jax.nn.softmax(scores)


@program("cache", "f32[6,2]", "s32[]", near=6)
def cache_masked_sum(cache: Any, pos: Any) -> Any:
    return jnp.where((jnp.arange(6) <= pos)[:, None], cache, 0.0).sum(axis=0)


@program("cache", "f32[2,5]", "f32[2]", "s32[2]", near=5)
def cache_batch_positions(cache: Any, new: Any, pos: Any) -> Any:
    return jax.vmap(lambda c, n, p: lax.dynamic_update_slice(c, n[None], (p,)))(cache, new, pos)


@program("cache", "f32[2,5]", "f32[2]", "s32[2]", near=5)
def cache_where_update(cache: Any, new: Any, pos: Any) -> Any:
    return jnp.where(jnp.arange(5)[None] == pos[:, None], new[:, None], cache)


@program("cache", "f32[5,2]", "f32[1,2]", "s32[]", near=5)
def cache_ring(cache: Any, new: Any, pos: Any) -> Any:
    return lax.dynamic_update_slice(cache, new, (pos % 5, 0))


@program("cache", "f32[3,2]", "f32[6,2]", "s32[]", near=4, tiles=Tiles(0, 0, 1))
def cache_prefill(q: Any, k: Any, pos: Any) -> Any:
    """Queries at pos, pos + 1 and pos + 2 see the keys up to theirs."""
    places = pos + jnp.arange(3)
    return jnp.where(jnp.arange(6)[None, :] <= places[:, None], q @ k.T, -1e9)


@program("cache", "f32[6]", "s32[]", near=6)
def cache_constant_start(cache: Any, pos: Any) -> Any:
    return lax.dynamic_update_slice(cache, jnp.zeros(2), (2,)) + lax.dynamic_slice(
        cache, (pos,), (1,)
    )


# ---------------------------------------------------------------- slices at runtime


@program("slice", "f32[7,2]", "s32[]", near=7)
def slice_at(x: Any, pos: Any) -> Any:
    return lax.dynamic_slice(x, (pos, 0), (3, 2))


@program("slice", "f32[7]", "s32[]", near=7)
def slice_after(x: Any, pos: Any) -> Any:
    return lax.dynamic_slice(x, (pos + 2,), (2,))


@program("slice", "f32[7]", "s32[]", near=7)
def index_at(x: Any, pos: Any) -> Any:
    return x[pos]


@program("slice", "f32[4,5]", "s32[]", "s32[]", near=5, bound=[{"i": 1, "j": -1}, {"i": 9, "j": 3}])
def index_two(x: Any, i: Any, j: Any) -> Any:
    return x[i, j]


@program("slice", "f32[3,6]", "s32[3]", near=6)
def slices_of_rows(x: Any, starts: Any) -> Any:
    return jax.vmap(lambda row, start: lax.dynamic_slice(row, (start,), (2,)))(x, starts)


@program("slice", "f32[8]", "s32[]", near=8)
def rolled_by(x: Any, pos: Any) -> Any:
    return jnp.roll(x, pos)


@program("slice", "f32[8]", "s32[]", near=8)
def slice_clamped(x: Any, pos: Any) -> Any:
    return lax.dynamic_slice(x, (jnp.clip(pos, 1, 4),), (2,))


@program("slice", "f32[8]", "s32[]", near=8)
def slice_at_least_of(x: Any, pos: Any) -> Any:
    return lax.dynamic_slice(x, (jnp.minimum(jnp.maximum(pos, 2), 5),), (1,))


@program("slice", "f32[8]", "s32[]", near=4)
def slice_of_block(x: Any, pos: Any) -> Any:
    return lax.dynamic_slice(x, (2 * pos,), (2,))


@program("slice", "f32[6,2]", "s32[]", near=6)
def masked_slice(x: Any, pos: Any) -> Any:
    """A slice of which the rows before `pos` are masked, too."""
    part = lax.dynamic_slice(x, (1, 0), (4, 2))
    return jnp.where((jnp.arange(4) < pos)[:, None], part, 0.0)


# ---------------------------------------------------------------- gathers at runtime


@program("gather", "f32[6,2]", "s32[4]", near=6)
def take_rows(x: Any, ids: Any) -> Any:
    return jnp.take(x, ids, axis=0)


@program("gather", "f32[6,2]", "s32[4]", near=6)
def take_clipped(x: Any, ids: Any) -> Any:
    return jnp.take(x, ids, axis=0, mode="clip")


@program("gather", "f32[6,2]", "s32[4]", near=6)
def embedding(table: Any, ids: Any) -> Any:
    return table[ids]


@program("gather", "f32[3,5]", "s32[3]", near=5)
def pick_logits(logits: Any, labels: Any) -> Any:
    return jnp.take_along_axis(logits, labels[:, None], axis=1)


@program("gather", "f32[6,2]", "s32[3]", near=6)
def one_hot_of_floats(table: Any, ids: Any) -> Any:
    """Zero times infinity: all rows are needed."""
    return jax.nn.one_hot(ids, 6) @ table


@program("gather", "s32[6]", "s32[3]", near=6, data=["table"])
def one_hot_of_integers(table: Any, ids: Any) -> Any:
    return (jax.nn.one_hot(ids, 6, dtype=jnp.int32) * table[None]).sum(axis=1)


@program("gather", "f32[6]", "f32[3]", "s32[3]", near=6)
def scatter_set(x: Any, updates: Any, ids: Any) -> Any:
    return x.at[ids].set(updates, mode="clip")


@program("gather", "f32[6]", "s32[3]", near=6)
def gather_of_masked(x: Any, ids: Any) -> Any:
    """Only the even elements are read."""
    return jnp.where(jnp.arange(6) % 2 == 0, x, 0.0)[ids]


# ---------------------------------------------------------------- constant indices


@program("constant", "f32[6,2]")
def take_constants(x: Any) -> Any:
    return jnp.take(x, jnp.array([5, 1, 3, 1]), axis=0)


@program("constant", "f32[6,2]")
def permuted(x: Any) -> Any:
    return x[PERMUTATION]


@program("constant", "f32[3,6]")
def permuted_columns(x: Any) -> Any:
    return x[:, jnp.asarray(PERMUTATION)]


@program("constant", "f32[9]")
def every_second(x: Any) -> Any:
    return x[::2] + x[jnp.array([0, 2, 4, 6, 8])]


@program("constant", "f32[8]")
def indices_by_iota(x: Any) -> Any:
    return x[(jnp.arange(6) * 3) % 8]


@program("constant", "f32[8]")
def indices_by_division(x: Any) -> Any:
    return x[jnp.arange(8) // 2 * 2]


@program("constant", "f32[8]")
def negative_indices(x: Any) -> Any:
    return x[jnp.array([-1, -3, 2])]


@program("constant", "f32[8]", "f32[3]")
def set_at_constants(x: Any, u: Any) -> Any:
    return x.at[jnp.array([1, 6, 3])].set(u)


@program("constant", "f32[8]", "f32[3]")
def add_at_constants(x: Any, u: Any) -> Any:
    return x.at[np.array([1, 6, 1])].add(u)


@program("constant", "f32[8]")
def zeros_at_constants(x: Any) -> Any:
    return x.at[jnp.array([0, 5])].set(0.0)


@program("constant", "f32[6,3]", "f32[2,3]")
def set_slice(x: Any, u: Any) -> Any:
    return x.at[2:4].set(u)


@program("constant", "f32[8]")
def rolled(x: Any) -> Any:
    return jnp.roll(x, 3)


@program("constant", "f32[4,6]")
def rolled_columns(x: Any) -> Any:
    return jnp.roll(x, -2, axis=1)


@program("constant", "f32[4,2,3]")
def pixel_shuffle(x: Any) -> Any:
    return x.reshape(2, 2, 2, 3).transpose(2, 0, 3, 1).reshape(4, 6)


@program("constant", "f32[5]", "f32[5]")
def interleaved(x: Any, y: Any) -> Any:
    return jnp.stack([x, y], axis=1).reshape(10)


@program("constant", "f32[5]", "f32[5]")
def interleaved_by_indices(x: Any, y: Any) -> Any:
    return jnp.zeros(10).at[0::2].set(x).at[1::2].set(y)


@program("constant", "f32[6]")
def sorted_indices(x: Any) -> Any:
    """The indices are those that sort constants."""
    return x[jnp.argsort(jnp.array([3, 1, 2, 0, 9, 7]))]


@program("constant", "f32[4,4]")
def diagonal(x: Any) -> Any:
    return jnp.diagonal(x)


@program("constant", "f32[4,4]")
def upper_triangle(x: Any) -> Any:
    return x[jnp.triu_indices(4, 1)]


@program("constant", "f32[3,4]", "s32[]", near=3)
def constant_row_of_slice(x: Any, pos: Any) -> Any:
    return lax.dynamic_slice(x, (pos, jnp.int32(1)), (1, 2))


@program("constant", "f32[7]")
def clamped_slice(x: Any) -> Any:
    return lax.dynamic_slice(x, (jnp.int32(6),), (3,))


@program("constant", "f32[12]")
def bit_reversed(x: Any) -> Any:
    i = jnp.arange(8)
    return x[((i & 1) << 2) | (i & 2) | (i >> 2)]


@program("constant", "f32[9]", "f32[5]")
def set_every_second(x: Any, u: Any) -> Any:
    return x.at[::2].set(u)


@program("constant", "f32[6]")
def repeated(x: Any) -> Any:
    return jnp.repeat(x, jnp.array([2, 0, 1, 3, 0, 2]), total_repeat_length=8)


@program("constant", "f32[6]")
def filled_outside(x: Any) -> Any:
    """Out of range, the result is NaN."""
    return jnp.take(x, jnp.array([0, 7, 2, -1, -9]), mode="fill")


@program("constant", "f32[8]")
def where_nonzero(x: Any) -> Any:
    return x[jnp.nonzero(jnp.array([0, 1, 1, 0, 0, 1, 0, 1]), size=4)[0]]


@program("constant", "f32[4,4]")
def anti_diagonal(x: Any) -> Any:
    i = jnp.arange(4)
    return x[i, 3 - i]


@program("constant", "f32[3,4]", "f32[4]")
def set_row(x: Any, u: Any) -> Any:
    return x.at[1].set(u)


@program("constant", "f32[12]")
def blocks_swapped(x: Any) -> Any:
    i = jnp.arange(12)
    return x[(i // 4) * 4 + (i % 4 + 2) % 4]


@program("gather", "f32[4,3]", "s32[2]", near=4)
def rows_after(x: Any, ids: Any) -> Any:
    return x[ids % 4]


@program("gather", "f32[3,4]", "s32[3]", "s32[3]", near=4)
def points(x: Any, rows: Any, columns: Any) -> Any:
    return x[rows, columns]
