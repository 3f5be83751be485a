"""A training step of GPT-2 small, the large module of the measurements of speed.

    python -m benchmarks.gpt2 FILE

writes the HLO that XLA compiles it to, on CPU about 5 MB. Needs JAX; no weight is allocated.

Source of the sizes: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019; of
the optimiser: Kingma and Ba, "Adam", 2015.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Final

import jax
import jax.numpy as jnp

LAYERS: Final = 12
HEADS: Final = 12
WIDTH: Final = 768
TOKENS: Final = 50_257
POSITIONS: Final = 1024
BATCH: Final = (2, 128)  # sequences, and tokens of each

Weights = dict[str, Any]


def norm(x: Any, gain: Any, bias: Any) -> Any:
    """Normalise the last dimension of `x`, then scale and shift it."""
    centred = x - x.mean(-1, keepdims=True)
    variance = jnp.square(centred).mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + 1e-5) * gain + bias


def block(x: Any, weights: Weights) -> Any:
    """Return the result of one layer: attention and a feed-forward network, with residuals."""
    batch, length, width = x.shape
    rows = norm(x, weights["gain1"], weights["bias1"]) @ weights["qkv"] + weights["qkv_bias"]
    heads = rows.reshape(batch, length, 3, HEADS, width // HEADS)
    q, k, v = jnp.moveaxis(heads, 2, 0)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(width / HEADS)
    causal = jnp.tril(jnp.ones((length, length), bool))
    attention = jax.nn.softmax(jnp.where(causal, scores, -1e9))
    mixed = jnp.einsum("bhqk,bkhd->bqhd", attention, v).reshape(x.shape)
    x = x + mixed @ weights["out"] + weights["out_bias"]
    hidden = norm(x, weights["gain2"], weights["bias2"]) @ weights["up"] + weights["up_bias"]
    return x + jax.nn.gelu(hidden) @ weights["down"] + weights["down_bias"]


def loss(weights: Weights, ids: Any) -> Any:
    """Return the mean cross entropy of predicting each next token."""
    x = weights["tokens"][ids] + weights["positions"][: ids.shape[1]]
    for layer in weights["layers"]:
        x = block(x, layer)
    logits = norm(x, weights["gain"], weights["bias"]) @ weights["tokens"].T
    predicted = jax.nn.log_softmax(logits[:, :-1])
    return -jnp.take_along_axis(predicted, ids[:, 1:, None], -1).mean()


def step(weights: Weights, first: Weights, second: Weights, ids: Any) -> Any:
    """Return the weights and moments after one step of Adam, and the loss."""
    value, gradient = jax.value_and_grad(loss)(weights, ids)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)
    weights = jax.tree.map(
        lambda w, m, v: w - 1e-4 * m / (jnp.sqrt(v) + 1e-8), weights, first, second
    )
    return weights, first, second, value


def shapes() -> Weights:
    """Return the shapes of all weights."""

    def array(*sizes: int) -> Any:
        return jax.ShapeDtypeStruct(sizes, jnp.float32)

    layer = {
        **{name: array(WIDTH) for name in ("gain1", "bias1", "gain2", "bias2")},
        **{name: array(WIDTH) for name in ("out_bias", "down_bias")},
        "qkv": array(WIDTH, 3 * WIDTH),
        "qkv_bias": array(3 * WIDTH),
        "out": array(WIDTH, WIDTH),
        "up": array(WIDTH, 4 * WIDTH),
        "up_bias": array(4 * WIDTH),
        "down": array(4 * WIDTH, WIDTH),
    }
    return {
        "tokens": array(TOKENS, WIDTH),
        "positions": array(POSITIONS, WIDTH),
        "gain": array(WIDTH),
        "bias": array(WIDTH),
        "layers": [layer] * LAYERS,
    }


def main(arguments: list[str]) -> None:
    """Write the compiled module to the file that is named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpt2", description=__doc__)
    parser.add_argument("file", type=Path)
    file = parser.parse_args(arguments).file
    weights = shapes()
    ids = jax.ShapeDtypeStruct(BATCH, jnp.int32)
    compiled = jax.jit(step).lower(weights, weights, weights, ids).compile()
    file.write_text(compiled.as_text())


if __name__ == "__main__":
    main(sys.argv[1:])
