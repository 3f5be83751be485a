"""Blocks of keys against XLA:CPU: a tile depends on the blocks that it reads, and on no other."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import indexing
from indexing import TiledBlocks

jax = pytest.importorskip("jax", reason="needs jax, to lower and to execute an attention")
jnp = jax.numpy

QUERIES, KEYS, FEATURES = 12, 20, 3
TILE, BLOCK = 4, 5

MASKS = {
    "causal": lambda i, j, n: j <= i,
    "sliding window": lambda i, j, n: (j <= i) & (i - j < 3),
    "prefix": lambda i, j, n: (j <= i) | (j < 7),
    "cache": lambda i, j, n: j <= i + n,
    "padding": lambda i, j, n: (j < n) & (j <= i + 4),
}


def attention(mask: Any) -> Any:
    def function(q: Any, k: Any, v: Any, n: Any) -> Any:
        i, j = jnp.arange(QUERIES)[:, None], jnp.arange(KEYS)[None, :]
        scores = jnp.where(mask(i, j, n), q @ k.T, -1e9)
        return jax.nn.softmax(scores, axis=-1) @ v

    return function


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("stage", ["lowered", "optimized"])
def test_a_tile_depends_on_the_blocks_that_it_reads(name: str, stage: Any) -> None:
    function = attention(MASKS[name])
    random = np.random.default_rng(7)
    sizes = [(n, FEATURES) for n in (QUERIES, KEYS, KEYS)]
    q, k, v = [random.normal(size=size).astype(np.float32) for size in sizes]
    module = indexing.from_jax(function, q, k, v, np.int32(0), stage=stage)
    tiling = indexing.tile(module.entry.root, (TILE, FEATURES), to="parameters")
    assert isinstance(tiling, indexing.Tiling)
    blocks = tiling.blocks("k", BLOCK, dimension=0)
    assert isinstance(blocks, TiledBlocks)
    execute = jax.jit(function)
    values = [-2, 0, 3, 9] if blocks.runtime else [0]
    for n, block in product(values, range(blocks.count)):
        before = np.asarray(execute(q, k, v, np.int32(n)))
        changed = k.copy()
        changed[block * BLOCK : (block + 1) * BLOCK] *= -3
        poisoned = k.copy()
        poisoned[block * BLOCK : (block + 1) * BLOCK] = np.nan
        for index in tiling.tiles():
            state = blocks.at(*index, **{"n": n} if blocks.runtime else {})[block]
            part = tiling.slices(*index)
            for keys in (changed, poisoned):
                after = np.asarray(execute(q, keys, v, np.int32(n)))
                is_same = before[part].tobytes() == after[part].tobytes()
                assert is_same == (state == "skipped"), (n, index, block)
