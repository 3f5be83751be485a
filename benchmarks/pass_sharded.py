"""JAX programs on eight devices, for the passes that partition and lower collectives."""

from __future__ import annotations

from typing import Any, Final

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from benchmarks.pass_programs import argument, attention

DEVICES: Final = 8


def sharded_programs() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Return the functions and the types of their arguments, which have shardings."""
    mesh = jax.make_mesh((4, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

    def sharding(*axes: Any) -> NamedSharding:
        return NamedSharding(mesh, PartitionSpec(*axes))

    def argument_type(text: str, *axes: Any) -> jax.ShapeDtypeStruct:
        each = argument(text)
        return jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=sharding(*axes))

    def constrain(x: Any, *axes: Any) -> Any:
        return lax.with_sharding_constraint(x, sharding(*axes))

    def mlp(x: Any, w: Any, v: Any) -> Any:
        return constrain(jax.nn.relu(x @ w), "a", "b") @ v

    def dp_train(x: Any, w: Any) -> Any:
        return w - 0.1 * jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).mean())(w)

    def reshard(x: Any) -> Any:
        return constrain(constrain(x * 2.0, "a", None).T, "b", "a") + 1.0

    def map_shards(x: Any) -> Any:
        def local(x: Any) -> Any:
            moved = lax.ppermute(x, "a", [(i, (i + 1) % 4) for i in range(4)])
            return lax.psum(x * moved, "a"), lax.all_gather(x, "b"), lax.all_to_all(x, "a", 1, 0)

        spec = PartitionSpec("a", "b")
        specs = PartitionSpec(None, "b"), PartitionSpec("a", None, "b"), spec
        return jax.shard_map(local, mesh=mesh, in_specs=spec, out_specs=specs, check_vma=False)(x)

    def halo(x: Any, y: Any) -> Any:
        rolled = jnp.roll(x, 1, axis=0)
        return (
            *(rolled, jnp.concatenate([x, y]), jnp.cumsum(x, 0)),
            *(jnp.pad(x, ((1, 2), (0, 0))), jnp.sort(y, 0)),
        )

    def halo_conv(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))

    def bf16_reduce(x: Any, w: Any) -> Any:
        return constrain(x @ w, None, None)

    q = "f32[8,2,6,4]"
    return {
        "sharded_mlp": (
            mlp,
            (
                argument_type("f32[8,6]", "a"),
                argument_type("f32[6,10]", None, "b"),
                argument_type("f32[10,4]", "b"),
            ),
        ),
        "sharded_dp_train": (
            dp_train,
            (argument_type("f32[16,6]", ("a", "b")), argument_type("f32[6,5]")),
        ),
        "sharded_reshard": (reshard, (argument_type("f32[8,12]", "b", None),)),
        "sharded_shard_map": (map_shards, (argument_type("f32[16,8]", "a", "b"),)),
        "sharded_attention": (attention, (argument_type(q, "a", "b"),) * 3),
        "sharded_halo": (halo, (argument_type("f32[16,3]", "a"), argument_type("f32[8,3]", "a"))),
        "sharded_halo_conv": (
            halo_conv,
            (argument_type("f32[2,16,3]", None, "a"), argument_type("f32[3,3,5]")),
        ),
        "sharded_bf16_reduce": (
            bf16_reduce,
            (argument_type("bf16[6,8]", None, "a"), argument_type("bf16[8,5]", "a")),
        ),
    }
