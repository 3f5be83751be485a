"""Functions of JAX with Pallas calls, as inputs of ``hlo-indexing pallas``."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def accumulate(x_ref, v_ref, out_ref):
    """Add the products of one block to the output, which the first block sets to 0."""

    @pl.when(pl.program_id(1) == 0)
    def _():
        out_ref[...] = jnp.zeros_like(out_ref)

    out_ref[...] += jnp.sum(x_ref[...] * v_ref[...], axis=1, keepdims=True)


def matvec(x, v):
    """Return a matrix times a row, in blocks: the reduction is the inner dimension."""
    rows, columns = x.shape
    return pl.pallas_call(
        accumulate,
        grid=(rows // 8, columns // 128),
        in_specs=[
            pl.BlockSpec((8, 128), lambda i, k: (i, k)),
            pl.BlockSpec((1, 128), lambda i, k: (0, k)),
        ],
        out_specs=pl.BlockSpec((8, 1), lambda i, k: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((rows, 1), x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
        name="matvec",
    )(x, v)


def matvec_k_outermost(x, v):
    """The same with the reduction as the outer dimension, which loses values."""
    rows, columns = x.shape
    return pl.pallas_call(
        accumulate,
        grid=(columns // 128, rows // 8),
        in_specs=[
            pl.BlockSpec((8, 128), lambda k, i: (i, k)),
            pl.BlockSpec((1, 128), lambda k, i: (0, k)),
        ],
        out_specs=pl.BlockSpec((8, 1), lambda k, i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((rows, 1), x.dtype),
        name="matvec_k_outermost",
    )(x, v)


def copy(s_ref, x_ref, out_ref):
    """Copy one block; the scalars are in the index map alone."""
    out_ref[...] = x_ref[...]


def pages(s, x):
    """Return pages of 16 rows, in the order of a table of page numbers."""
    return pl.pallas_call(
        copy,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(s.shape[0], 2),
            in_specs=[pl.BlockSpec((8, 128), lambda i, j, s: (2 * s[i] + j, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, j, s: (2 * i + j, 0)),
        ),
        out_shape=jax.ShapeDtypeStruct((16 * s.shape[0], x.shape[1]), x.dtype),
        name="pages",
    )(s, x)


def double(x_ref, out_ref):
    """Double one block."""
    out_ref[...] = 2 * x_ref[...]


def scale(x):
    """Return twice an array, in blocks of 8 rows; rows beyond the last whole block are missed."""
    return pl.pallas_call(
        double,
        grid=(x.shape[0] // 8,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        name="scale",
    )(x)
