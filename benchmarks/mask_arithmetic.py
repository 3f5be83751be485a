"""JAX programs in which predicates of indices, and integer arithmetic, choose between values."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.mask_programs import program


def number(n: int, kind: Any = jnp.int32) -> Any:
    return lax.iota(kind, n)


# ---------------------------------------------------------------- predicates of indices


@program("where", "f32[4,5]", "f32[4,5]")
def where_right(x: Any, y: Any) -> Any:
    return jnp.where(jnp.arange(5) > 2, x, y)


@program("where", "f32[9]", "f32[9]")
def where_parity(x: Any, y: Any) -> Any:
    return jnp.where(number(9) % 2 == 0, x, y)


@program("where", "f32[10]", "f32[10]")
def where_blocks(x: Any, y: Any) -> Any:
    return jnp.where(number(10) // 3 == 1, x, y)


@program("where", "f32[9]", "f32[9]")
def where_truncated(x: Any, y: Any) -> Any:
    """Division of negative numbers rounds to zero."""
    return jnp.where(lax.div(number(9) - 4, 3) == 0, x, y)


@program("where", "f32[9]", "f32[9]")
def where_remainder(x: Any, y: Any) -> Any:
    """The remainder has the sign of the dividend."""
    return jnp.where(lax.rem(number(9) - 4, 3) < 0, x, y)


@program("where", "f32[9]", "f32[9]")
def where_wraps(x: Any, y: Any) -> Any:
    i = number(9, jnp.uint8)
    return jnp.where(i + jnp.uint8(250) < i, x, y)


@program("where", "f32[9]", "f32[9]")
def where_signed_wraps(x: Any, y: Any) -> Any:
    return jnp.where(number(9, jnp.int8) * jnp.int8(31) > 0, x, y)


@program("where", "f32[9]", "f32[9]")
def where_unsigned(x: Any, y: Any) -> Any:
    """Differences of unsigned numbers are never negative."""
    return jnp.where(number(9, jnp.uint32) - jnp.uint32(4) < 3, x, y)


@program("where", "f32[8]", "f32[8]")
def where_rounded(x: Any, y: Any) -> Any:
    return jnp.where(number(8, jnp.float32) * 0.1 < 0.3, x, y)


@program("where", "f32[8]", "f32[8]")
def where_shifted(x: Any, y: Any) -> Any:
    return jnp.where((jnp.uint32(0b10110) >> number(8, jnp.uint32)) & 1 == 1, x, y)


@program("where", "f32[8]", "f32[8]")
def where_far_shifts(x: Any, y: Any) -> Any:
    return jnp.where(lax.shift_left(jnp.int32(1), number(8) * 6) == 0, x, y)


@program("where", "f32[6]", "f32[6]")
def where_nan(x: Any, y: Any) -> Any:
    constants = jnp.array([1.0, np.nan, 3.0, np.nan, 5.0, 6.0])
    return jnp.where(constants == constants, x, y)


@program("where", "f32[9]")
def where_not_equal(x: Any) -> Any:
    i = number(9)
    return jnp.where((i != 4) & (i <= 7), x, 0.0)


@program("where", "f32[9]", "f32[9]")
def where_exclusive(x: Any, y: Any) -> Any:
    i = number(9)
    return jnp.where((i > 2) ^ (i > 5), x, y)


@program("where", "f32[9]", "f32[9]")
def where_neither(x: Any, y: Any) -> Any:
    i = number(9)
    return jnp.where(~((i < 2) | (i > 6)), x, y)


@program("where", "f32[4,4]", "f32[4,4]")
def where_quadrants(x: Any, y: Any) -> Any:
    i, j = number(4)[:, None], number(4)[None, :]
    return jnp.where((i < 2) == (j < 2), x, y)


@program("where", "f32[9]", "f32[9]", "f32[9]")
def where_nested(x: Any, y: Any, z: Any) -> Any:
    i = number(9)
    return jnp.where(i < 3, x, jnp.where(i < 6, y, z))


@program("where", "f32[9]", "f32[9]")
def where_of_where(x: Any, y: Any) -> Any:
    i = number(9)
    return jnp.where(jnp.where(i % 3 == 0, i > 4, i < 5), x, y)


@program("where", "f32[3,4]", "f32[3,4]")
def where_constants(x: Any, y: Any) -> Any:
    mask = np.array([[1, 0, 0, 1], [0, 0, 1, 1], [1, 1, 1, 0]], bool)
    return jnp.where(jnp.asarray(mask), x, y)


@program("where", "f32[3,4]", "f32[3,4]")
def where_transposed(x: Any, y: Any) -> Any:
    mask = (number(12) > 6).reshape(4, 3).T
    return jnp.where(mask, x, y)


@program("where", "f32[4,6]")
def relu_of_a_masked_row(x: Any) -> Any:
    return jax.nn.relu(jnp.where(number(6) > 3, x, -1.0)).sum(axis=1)


@program("where", "f32[5]", "s32[]", near=5)
def where_before(x: Any, n: Any) -> Any:
    return jnp.where(number(5) < n, x, 0.0)


@program("where", "f32[7]", "s32[]", "s32[]", near=7)
def where_between(x: Any, low: Any, high: Any) -> Any:
    i = number(7)
    return jnp.where((i >= low) & (i < high), x, 0.0)


@program("where", "f32[3,5]", "s32[3]", near=5)
def where_rows_end(x: Any, ends: Any) -> Any:
    return jnp.where(number(5)[None] < ends[:, None], x, 0.0).max(axis=1)


@program("where", "f32[6]", "f32[6]", "pred[6]", runtime=["mask"])
def where_runtime_mask(x: Any, y: Any, mask: Any) -> Any:
    return jnp.where(mask, x, y)


@program("where", "f32[6]", "f32[6]", "pred[]", runtime=["flag"], bound=[{"flag": 0}, {"flag": 1}])
def where_runtime_flag(x: Any, y: Any, flag: Any) -> Any:
    return jnp.where(flag, x, y)


@program("where", "f32[8]", "u8[]", near=8)
def where_bytes(x: Any, n: Any) -> Any:
    return jnp.where(number(8, jnp.uint8) < n, x, 0.0)


@program("where", "f32[6]", "s32[]", near=6)
def where_offset(x: Any, n: Any) -> Any:
    """The sum of the index and `n` may wrap around."""
    return jnp.where(number(6) + n > 3, x, 0.0)


@program("where", "f32[6]", "f32[6]", "s32[]", near=6)
def where_modulo(x: Any, y: Any, n: Any) -> Any:
    return jnp.where(number(6) == n % 6, x, y)


# ---------------------------------------------------------------- triangles and bands


@program("triangle", "f32[4,5]")
def lower(x: Any) -> Any:
    return jnp.tril(x)


@program("triangle", "f32[5,4]")
def upper(x: Any) -> Any:
    return jnp.triu(x, -1)


@program("triangle", "f32[5,5]")
def band(x: Any) -> Any:
    return jnp.tril(jnp.triu(x, -1), 1)


@program("triangle", "f32[4,4]", "f32[4,3]")
def triangle_times(x: Any, y: Any) -> Any:
    """Zeros of a triangle are multiplied with `y`: all of it is needed."""
    return jnp.tril(x) @ y


@program("triangle", "f32[4,4]")
def eye_product(x: Any) -> Any:
    return jnp.eye(4) * x


@program("triangle", "f32[4,4]")
def trace_of(x: Any) -> Any:
    return jnp.trace(x)


@program("triangle", "s32[4,4]", data=["x"])
def integer_triangle(x: Any) -> Any:
    return jnp.tril(jnp.ones((4, 4), jnp.int32)) * x


@program("triangle", "f32[4]")
def diagonal_matrix(x: Any) -> Any:
    return jnp.diag(x)


@program("triangle", "f32[4,4]")
def symmetric(x: Any) -> Any:
    return jnp.tril(x) + jnp.tril(x, -1).T


# ---------------------------------------------------------------- products with zeros


@program("product", "s32[6]", data=["x"])
def integers_times_mask(x: Any) -> Any:
    return x * jnp.array([1, 0, 1, 0, 1, 0], jnp.int32)


@program("product", "f32[6]")
def floats_times_mask(x: Any) -> Any:
    return x * jnp.array([1.0, 0.0, 1.0, 0.0, 1.0, 0.0])


@program("product", "f32[6]")
def zero_times(x: Any) -> Any:
    return 0 * x


@program("product", "s32[6]", data=["x"])
def integer_zero_times(x: Any) -> Any:
    return 0 * x + 1


@program("product", "f32[6]")
def times_predicate(x: Any) -> Any:
    return x * (number(6) < 3)


@program("product", "s32[6]", data=["x"])
def integers_times_predicate(x: Any) -> Any:
    return x * (number(6) < 3).astype(jnp.int32)


@program("product", "s32[6]", data=["x"])
def masked_bits(x: Any) -> Any:
    return x & jnp.where(number(6) % 3 == 0, 0, -1)


@program("product", "pred[6]", "pred[6]")
def masked_predicates(p: Any, q: Any) -> Any:
    i = number(6)
    return (p & (i < 2)) | (q & (i >= 4))


@program("product", "s32[6]", "pred[6]", data=["x"], runtime=["mask"])
def integers_times_runtime_mask(x: Any, mask: Any) -> Any:
    return x * mask


@program("product", "f32[6]", "f32[]")
def dropout_of_constants(x: Any, scale: Any) -> Any:
    keep = jnp.asarray(np.array([1, 1, 0, 1, 0, 0], bool))
    return jnp.where(keep, x * scale, 0.0)


# ---------------------------------------------------------------- minima, maxima, clamps


@program("clamp", "f32[8]")
def clamped_indices(x: Any) -> Any:
    return x[jnp.clip(number(8) - 2, 0, 4)]


@program("clamp", "f32[8]")
def least_indices(x: Any) -> Any:
    return x[jnp.minimum(number(8), 7 - number(8))]


@program("clamp", "f32[8]", "f32[8]")
def where_greatest(x: Any, y: Any) -> Any:
    return jnp.where(jnp.maximum(number(8), 3) < 5, x, y)


@program("clamp", "f32[6]")
def clamped_floats(x: Any) -> Any:
    return jnp.clip(x, -1.0, 1.0)


@program("clamp", "f32[3,4]")
def edge_padding(x: Any) -> Any:
    return jnp.pad(x, 1, mode="edge")


@program("clamp", "f32[5]")
def reflected(x: Any) -> Any:
    return jnp.pad(x, 2, mode="reflect")


@program("clamp", "f32[5]")
def wrapped(x: Any) -> Any:
    return jnp.pad(x, 2, mode="wrap")


# ---------------------------------------------------------------- branches


@program("branch", "f32[5]", "f32[5]")
def cond_of_constants(x: Any, y: Any) -> Any:
    return lax.cond(jnp.int32(3) > 5, lambda: x, lambda: y[::-1])


@program("branch", "f32[5]", "f32[5]", "s32[]", near=5)
def cond_at_runtime(x: Any, y: Any, n: Any) -> Any:
    return lax.cond(n > 2, lambda: x, lambda: y[::-1])


@program("branch", "f32[5]", "f32[5]", "f32[5]", "s32[]", near=3)
def switch_at_runtime(x: Any, y: Any, z: Any, n: Any) -> Any:
    return lax.switch(n, [lambda: x, lambda: y[::-1], lambda: z * 2])


@program("branch", "f32[5]", "f32[5]", "f32[5]")
def switch_of_constants(x: Any, y: Any, z: Any) -> Any:
    return lax.switch(jnp.int32(7), [lambda: x, lambda: y[::-1], lambda: z * 2])


@program("branch", "f32[6]", "f32[6]", "s32[6]", near=3)
def select_cases(x: Any, y: Any, which: Any) -> Any:
    return lax.select_n(jnp.clip(which, 0, 2), x, y, x[::-1])


@program("branch", "f32[4,3]")
def mapped_where(x: Any) -> Any:
    return lax.map(lambda row: jnp.where(number(3) < 2, row, 0.0), x)


@program("branch", "f32[4,3]")
def mapped_rows(x: Any) -> Any:
    return lax.map(lambda k: jnp.where(number(3) <= k, x[k], 0.0), jnp.arange(4))
