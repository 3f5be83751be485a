"""Kernels as plain data: what the enumeration reads, and the ``pallas_call`` that JAX traces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

IndexMap = Callable[..., Sequence[Any]]


def where(condition: Any, first: Any, second: Any) -> Any:
    """Select as ``jnp.where`` in a trace, and as Python for integers."""
    if isinstance(condition, bool | np.bool_):
        return first if condition else second
    import jax.numpy as jnp

    return jnp.where(condition, first, second)


def clip(value: Any, low: Any, high: Any) -> Any:
    if all(isinstance(n, int | np.integer) for n in (value, low, high)):
        return min(max(value, low), high)
    import jax.numpy as jnp

    return jnp.clip(value, low, high)


def minimum(a: Any, b: Any) -> Any:
    if isinstance(a, int | np.integer) and isinstance(b, int | np.integer):
        return min(a, b)
    import jax.numpy as jnp

    return jnp.minimum(a, b)


@dataclass(frozen=True)
class Operand:
    """An array with blocks: a block size is an integer, None, or ``(size, low, high)``.

    The last form is an ``Element`` dimension with its padding.
    """

    shape: tuple[int, ...]
    block: tuple[Any, ...]
    index_map: IndexMap
    dtype: str = "float32"
    space: str = ""
    buffers: int | None = None
    may_revisit: bool = False


@dataclass(frozen=True)
class Kernel:
    """A kernel: `aliases` are pairs of the numbers of an input and of an output.

    The target is "tpu", "gpu" (Triton) or "mosaic_gpu".
    """

    name: str
    grid: tuple[int, ...]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    semantics: tuple[str, ...] | None = None
    aliases: tuple[tuple[int, int], ...] = ()
    scalars: tuple[tuple[int, ...], ...] = ()
    scratch: tuple[tuple[tuple[int, ...], str], ...] = ()
    target: str = "tpu"
    expect: dict[str, Any] = field(default_factory=dict)

    def function(self, body: Any = None) -> tuple[Callable[..., Any], list[Any]]:
        """Return a function of JAX that calls the kernel, and its abstract arguments."""
        import jax
        import jax.numpy as jnp

        avals = [jax.ShapeDtypeStruct(shape, jnp.int32) for shape in self.scalars]
        avals += [jax.ShapeDtypeStruct(o.shape, o.dtype) for o in self.inputs]
        return self.call(body), avals

    def call(self, body: Any = None, **options: Any) -> Callable[..., Any]:
        import jax
        from jax.experimental import pallas as pl
        from jax.experimental.pallas import tpu as pltpu

        grid_spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=len(self.scalars),
            grid=self.grid,
            in_specs=[_spec(o) for o in self.inputs],
            out_specs=[_spec(o) for o in self.outputs],
            scratch_shapes=[pltpu.VMEM(shape, dtype) for shape, dtype in self.scratch],
        )
        parameters: Any = None
        if self.target == "gpu":
            from jax.experimental.pallas import triton

            parameters = triton.CompilerParams(num_warps=4)
        elif self.target == "mosaic_gpu":
            from jax.experimental.pallas import mosaic_gpu

            parameters = mosaic_gpu.CompilerParams()
        elif self.semantics is not None:
            parameters = pltpu.CompilerParams(dimension_semantics=self.semantics)
        skipped = len(self.scalars)
        call: Callable[..., Any] = pl.pallas_call(
            body or (lambda *refs: None),
            grid_spec=grid_spec,
            out_shape=[jax.ShapeDtypeStruct(o.shape, o.dtype) for o in self.outputs],
            input_output_aliases={i + skipped: o for i, o in self.aliases},
            compiler_params=parameters,
            name=self.name,
            **options,
        )
        return call


def _spec(operand: Operand) -> Any:
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    if operand.space == "any":
        return pl.BlockSpec(memory_space=pl.ANY)
    options: dict[str, Any] = {}
    if operand.space == "smem":
        options["memory_space"] = pltpu.SMEM
    if operand.may_revisit:
        options["pipeline_mode"] = pl.Buffered(1, revisit=pl.RevisitMode.ANY)
    elif operand.buffers is not None:
        options["pipeline_mode"] = pl.Buffered(operand.buffers)
    dimensions = [_dimension(pl, each) for each in operand.block]
    return pl.BlockSpec(tuple(dimensions), operand.index_map, **options)


def _dimension(pl: Any, each: Any) -> Any:
    if isinstance(each, tuple):
        size, *padding = each
        return pl.Element(size, tuple(padding)) if padding else pl.Element(size)
    return each
