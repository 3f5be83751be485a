"""Functions of JAX, that are inputs of the command: ``jax:examples/layers.py:mlp``."""

import jax
import jax.numpy as jnp


def mlp(x, w):
    """Return a layer with a rectifier."""
    return jax.nn.relu(x @ w)


def attention(q, k, v):
    """Return causal attention of one head: query i sees the keys up to i."""
    scores = q @ k.T / jnp.sqrt(q.shape[-1])
    mask = jnp.tril(jnp.ones(scores.shape, bool))
    return jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), -1) @ v


def look_up(table, tokens):
    """Return the rows of a table of embeddings."""
    return table[tokens]
