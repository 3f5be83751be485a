"""JAX programs for the partitioner: training steps, layers, indexing, resharding, sorts, windows.

The mesh has 4 x 2 devices, along the axes `a` and `b`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from benchmarks.pass_programs import argument


@cache
def mesh() -> Any:
    """Return the mesh."""
    return jax.make_mesh((4, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)


def sharding(*axes: Any) -> NamedSharding:
    """Return the sharding with these axes for each dimension."""
    return NamedSharding(mesh(), PartitionSpec(*axes))


def argument_type(text: str, *axes: Any) -> jax.ShapeDtypeStruct:
    """Return the type of an argument with a sharding."""
    each = argument(text)
    return jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=sharding(*axes))


def constrain(x: Any, *axes: Any) -> Any:
    """Return an array with a sharding."""
    return lax.with_sharding_constraint(x, sharding(*axes))


def norm(x: Any, g: Any) -> Any:
    """Return the layer norm along the last dimension."""
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * g


def block(x: Any, g: Any, qkv: Any, o: Any, w: Any, v: Any) -> Any:
    """Return a transformer block, whose heads and hidden features are divided."""
    q, k, u = jnp.einsum("btd,cdhe->cbthe", norm(x, g), qkv)
    scores = jnp.einsum("bthe,bshe->bhts", q, k) / 2.0
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    x = x + jnp.einsum("bhts,bshe,hed->btd", jax.nn.softmax(scores), u, o)
    return x + jax.nn.gelu(norm(x, g) @ w) @ v


def fsdp(x: Any, w: Any, v: Any) -> Any:
    """Return a training step with divided parameters, gathered for the products."""

    def loss(parameters: Any) -> Any:
        w, v = (constrain(each, None, None) for each in parameters)
        return (constrain(jnp.tanh(x @ w) @ v, ("a", "b"), None) ** 2).mean()

    gradients = jax.grad(loss)((w, v))
    pairs = zip((w, v), gradients, strict=True)
    return [constrain(each - 0.1 * g, ("a", "b"), None) for each, g in pairs]


def adam(x: Any, w: Any, m: Any, n: Any) -> Any:
    """Return a step of Adam."""
    g = jax.grad(lambda w: ((jax.nn.relu(x @ w) - 1.0) ** 2).mean())(w)
    m, n = 0.9 * m + 0.1 * g, 0.99 * n + 0.01 * g * g
    return w - 0.01 * m / (jnp.sqrt(n) + 1e-8), m, n


def uneven(x: Any, w: Any) -> Any:
    """Return arrays that the shards do not divide."""
    y = constrain(jnp.tanh(x), "a", "b") @ w
    return y, constrain(x.sum(0), "b"), constrain(x[::-1], "a", None)


def uneven_inner(x: Any, w: Any) -> Any:
    """Return a product along a dimension that the shards do not divide."""
    return constrain(x * 1.0, None, "a") @ constrain(w * 1.0, "a", None)


def softmax(x: Any) -> Any:
    """Return reductions along divided dimensions."""
    return jax.nn.softmax(constrain(x, "a", "b"), axis=-1), jax.nn.logsumexp(x, axis=0)


def batch_norm(x: Any, g: Any) -> Any:
    """Return a batch normalisation over a divided batch."""
    mean, var = x.mean((0, 1)), x.var((0, 1))
    return (x - mean) / jnp.sqrt(var + 1e-3) * g, mean, var


def pool(x: Any) -> Any:
    """Return windows over a divided image."""
    return (
        lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME"),
    )


def reshape(x: Any) -> Any:
    """Return reshapes of divided dimensions."""
    return (
        constrain(x.reshape(4, 6, 8), "a", None, "b"),
        constrain(x.reshape(-1), ("a", "b")),
        constrain(x.reshape(24, 2, 4).transpose(1, 0, 2).reshape(48, 4), "a"),
    )


def update(x: Any, y: Any, i: Any) -> Any:
    """Return slices at a runtime index of a divided dimension."""
    return lax.dynamic_update_slice(x, y, (i, 0)), lax.dynamic_slice(x, (i, 0), (3, 8))


def layers(x: Any, w: Any) -> Any:
    """Return a loop over layers."""
    return lax.scan(lambda x, w: (constrain(jnp.tanh(x @ w), "a", "b"), None), x, w)[0]


def experts(x: Any, w: Any, v: Any) -> Any:
    """Return a layer of experts, to which tokens move."""
    moved = constrain(x, None, "a", None)
    h = jnp.einsum("etd,edf->etf", moved.transpose(1, 0, 2), w)
    h = constrain(jax.nn.relu(h), "a")
    return constrain(jnp.einsum("etf,efd->etd", h, v).transpose(1, 0, 2), "a", None, None)


def order(x: Any) -> Any:
    """Return sorts and prefix sums along divided dimensions."""
    return jnp.sort(x, -1), jnp.argmax(x, 0), lax.top_k(x, 3)[0], jnp.cumsum(x, 1)


def batch_order(x: Any) -> Any:
    """Return sorts of the rows of a divided batch."""
    return jnp.sort(x, -1), lax.top_k(x, 3), jnp.argsort(x, -1)


def stride(x: Any) -> Any:
    """Return slices and shifts of a divided dimension."""
    swapped = jnp.concatenate([x[8:], x[:8]])
    return x[1::2], x[2:13], swapped, jnp.pad(x, ((3, 0), (0, 1))), jnp.roll(x, 5, 0), x[::-1]


def conv_grad(x: Any, w: Any) -> Any:
    """Return the gradient of a strided convolution of a divided image."""

    def f(w: Any) -> Any:
        names = ("NWC", "WIO", "NWC")
        return (lax.conv_general_dilated(x, w, (2,), "SAME", dimension_numbers=names) ** 2).sum()

    return jax.grad(f)(w)


def embedding(t: Any, i: Any) -> Any:
    """Return rows of a divided table."""
    return t[i]


def lookup_grad(t: Any, i: Any, y: Any) -> Any:
    """Return a divided table with added rows."""
    return t.at[i].add(y)


def partitioned_programs() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Return the functions and the types of their arguments, which have shardings."""
    both = ("a", "b")
    block_types = (
        *(
            argument_type("f32[4,6,8]", "b"),
            argument_type("f32[8]"),
            argument_type("f32[3,8,4,4]", None, None, "a"),
        ),
        *(
            argument_type("f32[4,4,8]", "a"),
            argument_type("f32[8,16]", None, "a"),
            argument_type("f32[16,8]", "a"),
        ),
    )
    weights = argument_type("f32[6,8]", None, "b")
    programs: dict[Any, tuple[Any, ...]] = {
        block: block_types,
        fsdp: (
            argument_type("f32[16,8]", both),
            argument_type("f32[8,24]", both),
            argument_type("f32[24,5]", both),
        ),
        adam: (argument_type("f32[16,6]", both), weights, weights, weights),
        uneven: (argument_type("f32[12,6]", "a"), argument_type("f32[6,10]", "b")),
        uneven_inner: (argument_type("f32[4,10]"), argument_type("f32[10,6]")),
        softmax: (argument_type("f32[8,6]", "a", "b"),),
        batch_norm: (argument_type("f32[8,6,3]", both), argument_type("f32[3]")),
        pool: (argument_type("f32[2,8,8,3]", None, "a", "b"),),
        reshape: (argument_type("f32[24,8]", "a", "b"),),
        update: (
            argument_type("f32[16,8]", "a", "b"),
            argument_type("f32[3,8]"),
            argument_type("s32[]"),
        ),
        layers: (argument_type("f32[8,6]", "a", "b"), argument_type("f32[3,6,6]", None, "b")),
        experts: (
            argument_type("f32[8,4,6]", "a"),
            argument_type("f32[4,6,10]", "a"),
            argument_type("f32[4,10,6]", "a"),
        ),
        order: (argument_type("f32[8,6]", "a", "b"),),
        batch_order: (argument_type("f32[8,6]", "a", None),),
        stride: (argument_type("f32[16,3]", "a"),),
        conv_grad: (argument_type("f32[4,16,3]", "b", "a"), argument_type("f32[3,3,5]")),
        embedding: (argument_type("f32[16,6]", "a", "b"), argument_type("s32[5]")),
        lookup_grad: (
            argument_type("f32[16,6]", *both),
            argument_type("s32[8]", "a"),
            argument_type("f32[8,6]", "a"),
        ),
    }
    return {f"sharded_{f.__name__}": (f, types) for f, types in programs.items()}
