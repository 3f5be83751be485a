"""JAX layers on meshes of 8 to 1,024 devices: data and tensor parallel, sequences, experts.

Meshes are abstract; `indexing.from_jax` compiles for the devices of a target.  Arrays grow with the
number of devices, so that every shard has at least two rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

TARGETS: Final = {
    8: "tpu:v5p:2x2x2",
    64: "tpu:v5p:4x4x4",
    256: "tpu:v5p:4x8x8",
    1024: "tpu:v5p:8x8x16",
}
"""The target with each number of devices."""

FEATURES, HEADS, HEAD_SIZE = 64, 16, 8


class Layers:
    """Layers on a mesh with the axes `data` and `model`.

    Args:
        devices: the number of devices.
    """

    def __init__(self, devices: int) -> None:
        self.model = min(16, max(2, devices // 8))
        self.data = devices // self.model
        self.mesh = AbstractMesh((self.data, self.model), ("data", "model"))

    def sharding(self, *axes: Any) -> NamedSharding:
        """Return the sharding with these axes for each dimension."""
        return NamedSharding(self.mesh, PartitionSpec(*axes))

    def argument_type(self, dims: tuple[int, ...], *axes: Any) -> jax.ShapeDtypeStruct:
        """Return the type of an argument with a sharding."""
        return jax.ShapeDtypeStruct(dims, jnp.float32, sharding=self.sharding(*axes))

    def programs(self) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
        """Return each layer with the types of its arguments."""
        rows, hidden, everywhere = 2 * self.data, 4 * FEATURES, ("data", "model")
        devices = self.data * self.model
        x = self.argument_type((rows, 8, FEATURES), "data")
        return {
            "fsdp": (
                self.fsdp,
                (
                    self.argument_type((2 * devices, 2 * self.model), everywhere),
                    self.argument_type((2 * self.model, rows), "model", "data"),
                    self.argument_type((rows, 2 * self.model), "data", "model"),
                ),
            ),
            "tensor_parallel": (
                self.tensor_parallel,
                (
                    x,
                    self.argument_type((FEATURES,)),
                    self.argument_type((3, FEATURES, HEADS, HEAD_SIZE), None, None, "model"),
                    self.argument_type((HEADS, HEAD_SIZE, FEATURES), "model"),
                    self.argument_type((FEATURES, hidden), None, "model"),
                    self.argument_type((hidden, FEATURES), "model"),
                ),
            ),
            "sequence_parallel": (
                self.sequence_parallel,
                (
                    self.argument_type((rows, 2 * self.model, FEATURES), "data", "model"),
                    self.argument_type((FEATURES,)),
                    self.argument_type((FEATURES, hidden), None, "model"),
                    self.argument_type((hidden, FEATURES), "model"),
                ),
            ),
            "experts": (
                self.experts,
                (
                    self.argument_type((2 * self.data, 2 * self.data, 16), "data"),
                    self.argument_type((2 * self.data, 16, 32), "data", None, "model"),
                    self.argument_type((2 * self.data, 32, 16), "data", "model"),
                ),
            ),
        }

    def fsdp(self, x: Any, w: Any, v: Any) -> Any:
        """Return a training step whose parameters are divided, and gathered for the products."""

        def loss(parameters: Any) -> Any:
            w, v = (lax.with_sharding_constraint(p, self.sharding(None, None)) for p in parameters)
            hidden = lax.with_sharding_constraint(
                jnp.tanh(x @ w), self.sharding(("data", "model"), None)
            )
            return ((hidden @ v) ** 2).sum()

        gradients = jax.grad(loss)((w, v))
        specs = ("model", "data"), ("data", "model")
        return [
            lax.with_sharding_constraint(p - 0.1 * g, self.sharding(*spec))
            for p, g, spec in zip((w, v), gradients, specs, strict=True)
        ]

    def tensor_parallel(self, x: Any, g: Any, qkv: Any, o: Any, w: Any, v: Any) -> Any:
        """Return a transformer block whose heads and hidden features are divided."""
        q, k, u = jnp.einsum("btd,cdhe->cbthe", norm(x, g), qkv)
        scores = jnp.einsum("bthe,bshe->bhts", q, k) / 3.0
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
        x = x + jnp.einsum("bhts,bshe,hed->btd", jax.nn.softmax(scores), u, o)
        y = x + jax.nn.relu(norm(x, g) @ w) @ v
        return lax.with_sharding_constraint(y, self.sharding("data", None, None))

    def sequence_parallel(self, x: Any, g: Any, w: Any, v: Any) -> Any:
        """Return a block whose norms are divided along the sequence, products along features."""
        whole = lax.with_sharding_constraint(norm(x, g), self.sharding("data", None, None))
        hidden = lax.with_sharding_constraint(
            jax.nn.relu(whole @ w), self.sharding("data", None, "model")
        )
        return lax.with_sharding_constraint(x + hidden @ v, self.sharding("data", "model", None))

    def experts(self, x: Any, w: Any, v: Any) -> Any:
        """Return a layer of experts, to which tokens move, and from which they return."""
        moved = lax.with_sharding_constraint(x, self.sharding(None, "data", None))
        h = jnp.einsum("etd,edf->etf", moved.transpose(1, 0, 2), w)
        h = jax.nn.relu(h)
        y = jnp.einsum("etf,efd->etd", h, v).transpose(1, 0, 2)
        return lax.with_sharding_constraint(y, self.sharding("data", None, None))


def norm(x: Any, g: Any) -> Any:
    """Return the layer norm along the last dimension."""
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * g


def mesh_programs(devices: int) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return the layers on a number of devices, with the types of their arguments."""
    return Layers(devices).programs()
