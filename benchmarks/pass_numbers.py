"""JAX programs for `pass_dumps`: scalar laws, random numbers, narrow types and decompositions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.pass_programs import program

# ---------------------------------------------------------------- scalar laws


@program("f32[7]", "f32[7]", "f32[]")
def scalar_laws(x: Any, y: Any, s: Any) -> Any:
    return (
        *(x / 3.0, x / 4.0, (x * 2.0) * 3.0, (x + 1.0) + 2.0, x - 1.0, x * 1.0, x + 0.0),
        *(jnp.log(jnp.exp(x)), jnp.exp(x) * jnp.exp(y), jnp.exp(x) / jnp.exp(y), x**2, x**0.5),
        *(
            x**-1.0,
            x / s,
            x / jnp.sqrt(y),
            jnp.sqrt(x * x),
            lax.neg(lax.neg(x)),
            jnp.abs(jnp.abs(x)),
        ),
        *((x / y) / s, x / (y / s), jnp.clip(x, -1.0, 1.0), jnp.where(x > 0, x, x) * x, x % 2.0),
    )


@program("s32[7]", "s32[7]", "u32[7]")
def int_laws(x: Any, y: Any, u: Any) -> Any:
    return (
        *((x + 3) + 4, (x * 3) * 5, x * 0, x - x, x * 8, x // 4, x % 8, u // 16, u % 32, x - 5),
        *(~(~x), x & x, x | 0, x ^ x, (u << 2) >> 2, jnp.minimum(jnp.maximum(x, 2), 9), -(x - y)),
        *((x > y) == True, jnp.where(x > 3, 1, 0), (x + y) - y, u + jnp.uint32(7) + jnp.uint32(9)),  # noqa: E712
    )


@program("c64[5]", "f32[5]")
def complexes(z: Any, x: Any) -> Any:
    w = lax.complex(x, x * 2)
    return z * w, (z * jnp.conj(z)).real, jnp.abs(z + w), jnp.exp(1j * x), z.imag


@program("f32[5]", "s32[5]", "f16[6]")
def bits(x: Any, y: Any, h: Any) -> Any:
    turned = lax.bitcast_convert_type(x, jnp.int32) ^ y
    return lax.bitcast_convert_type(turned, jnp.float32), h * 2 + 1, lax.nextafter(x, x + 1)


@program("f32[6]", "f32[6]")
def total_order(x: Any, y: Any) -> Any:
    order = jnp.argsort(x, stable=True)
    return jnp.sort(jnp.stack([x, y]), 0), y[order], jnp.unique(x, size=4)


@program("u32[2]", "f32[8,5]")
def dropout_rng(key: Any, x: Any) -> Any:
    keep = jax.random.bernoulli(jax.random.wrap_key_data(key), 0.7, x.shape)
    return jnp.where(keep, x / 0.7, 0.0)


@program("u32[4]")
def rng_bits(state: Any) -> Any:
    return lax.rng_bit_generator(state, (6,), np.uint32)


@program("f32[4,4]", "f32[4,3]", "f32[5,3]")
def linalg(a: Any, b: Any, tall: Any) -> Any:
    spd = a @ a.T + 4.0 * jnp.eye(4)
    return jnp.linalg.cholesky(spd), jnp.linalg.solve(spd, b), jnp.linalg.svd(tall)[1]


@program("f32[4,4]", "f32[5,3]")
def qr_eigh(a: Any, b: Any) -> Any:
    return jnp.linalg.qr(b), jnp.linalg.eigh(a + a.T), jnp.linalg.det(a)


@program("f32[6,5]", "f32[6,5]")
def nested_calls(x: Any, y: Any) -> Any:
    f = jax.jit(lambda a, b: (a * 2.0 + b, a.T @ b))
    a, m = f(x, y)
    b, n = f(y, a)
    return a + b, m - n, f(x, y)[0]


@program("f32[9]", "f32[9]")
def repeated(x: Any, y: Any) -> Any:
    z = jnp.exp(x) + jnp.exp(x)
    return z * (y + 2.0) + z * (y + 2.0), lax.optimization_barrier(z) - jnp.exp(x)


@program("f32[10]", "s32[]", "s32[]")
def nested_starts(x: Any, i: Any, j: Any) -> Any:
    return lax.dynamic_slice(lax.dynamic_slice(x, (j,), (6,)), (i,), (3,))


# ---------------------------------------------------------------- numbers


@program("u32[2]")
def randoms(key: Any) -> Any:
    keys = jax.random.split(jax.random.wrap_key_data(key), 4)
    return (
        jax.random.normal(keys[0], (5,)),
        jax.random.permutation(keys[1], 6),
        jax.random.randint(keys[2], (3,), 0, 10),
        jax.random.uniform(keys[3], (2, 3), minval=-1.0),
    )


@program("u32[2]", "f32[6,5]")
def dropout_grad(key: Any, x: Any) -> Any:
    keep = jax.random.bernoulli(jax.random.wrap_key_data(key), 0.9, x.shape)
    return jax.value_and_grad(lambda x: (jnp.where(keep, jnp.tanh(x) / 0.9, 0.0) ** 2).sum())(x)


@program("u32[4]", "f32[3,4]")
def philox_noise(state: Any, x: Any) -> Any:
    new, bits = lax.rng_bit_generator(state, (3, 4), np.uint32)
    return new, x + (bits >> 9).astype(jnp.float32) * 2.0**-23


@program("bf16[4,8]", "f8e4m3fn[8,6]", "f32[6]")
def fp8_matmul(x: Any, w: Any, scale: Any) -> Any:
    y = lax.dot(x, w.astype(jnp.bfloat16), preferred_element_type=jnp.float32)
    q = jnp.clip(y * scale, -448.0, 448.0).astype(jnp.float8_e4m3fn)
    return y, q.astype(jnp.bfloat16)


@program("f32[4,8]", "s8[8,6]", "f32[6]")
def int8_quantised(x: Any, w: Any, scale: Any) -> Any:
    top = jnp.abs(x).max(1, keepdims=True) / 127.0
    q = jnp.clip(jnp.round(x / top), -127, 127).astype(jnp.int8)
    y = lax.dot(q, w, preferred_element_type=jnp.int32)
    return y.astype(jnp.float32) * top * scale


@program("bf16[5,6]", "bf16[6,4]", "bf16[4]")
def bf16_grad(x: Any, w: Any, b: Any) -> Any:
    def loss(w: Any, b: Any) -> Any:
        return (jax.nn.softmax(x @ w + b).astype(jnp.float32) ** 2).mean()

    return jax.value_and_grad(loss, argnums=(0, 1))(w, b)


@program("u32[7]", "s32[7]", "f32[7]")
def bit_tricks(u: Any, s: Any, x: Any) -> Any:
    count = lax.population_count(u) + lax.clz(u)
    swapped = (u >> 24) | ((u >> 8) & 0xFF00) | ((u << 8) & 0xFF0000) | (u << 24)
    packed = lax.bitcast_convert_type(lax.bitcast_convert_type(u, jnp.uint8)[:, ::-1], jnp.uint32)
    magic = 0x5F3759DF - (lax.bitcast_convert_type(x, jnp.int32) >> 1)
    gray = s ^ (s >> 1)
    return (
        count,
        swapped,
        packed,
        lax.bitcast_convert_type(magic, jnp.float32),
        gray,
        u * 9 % 5,
        s // 3,
    )


@program("c64[3,4]", "c64[4,3]")
def complex_grad(a: Any, b: Any) -> Any:
    return jax.grad(lambda a: jnp.abs(a @ b).sum())(a), jnp.angle(a), jnp.exp(a) * jnp.conj(a)


@program("f32[4,6,8]", "f32[3,16]")
def spectral(x: Any, y: Any) -> Any:
    power = jnp.abs(jnp.fft.rfft2(x)) ** 2
    return power, jnp.fft.fftshift(jnp.fft.ifft(y).real, 1), jnp.fft.irfft(jnp.fft.rfft(y) * 0.5)


# ---------------------------------------------------------------- decompositions


@program("f32[2,4,4]", "f32[2,4,2]")
def batched_solve(a: Any, b: Any) -> Any:
    spd = a @ a.mT + 5.0 * jnp.eye(4)
    x = jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(spd), True), b)
    return x, jax.scipy.linalg.solve_triangular(spd, b, lower=True), jnp.linalg.slogdet(spd)


@program("f32[3,3]", "f32[4,3]", "f32[4]")
def decompositions(a: Any, tall: Any, b: Any) -> Any:
    w, v = jnp.linalg.eigh(a + a.T)
    return w, jnp.abs(v), jnp.linalg.qr(tall)[1], jnp.linalg.lstsq(tall, b)[0], jnp.linalg.inv(a)


@program("f32[4,4]", "f32[4]")
def gaussian_likelihood_grad(a: Any, x: Any) -> Any:
    def loss(a: Any) -> Any:
        low = jnp.linalg.cholesky(a @ a.T + jnp.eye(4))
        z = jax.scipy.linalg.solve_triangular(low, x, lower=True)
        return 0.5 * (z @ z) + jnp.log(jnp.diag(low)).sum()

    return jax.value_and_grad(loss)(a)


@program("f32[5,4]", "f32[6,4]")
def kernel_matrix(x: Any, y: Any) -> Any:
    square = (x**2).sum(1)[:, None] - 2 * x @ y.T + (y**2).sum(1)
    return jnp.exp(-square / (2 * 0.7**2)), jnp.sqrt(jnp.maximum(square, 0)), jnp.kron(x[:2], y[:2])


@program("f32[7,9]")
def image_moves(x: Any) -> Any:
    padded = jnp.pad(x, 2, mode="reflect")
    patches = lax.conv_general_dilated_patches(x[None, None], (3, 3), (2, 2), "VALID")
    return (
        jnp.rot90(padded),
        patches,
        jnp.pad(x, 1, mode="edge"),
        jnp.diff(x, axis=1),
        jnp.roll(x, (1, 2), (0, 1)),
    )


@program("f32[3,5]", "f32[3,5]")
def masked_statistics(x: Any, y: Any) -> Any:
    ok = ~jnp.isnan(x)
    mean = jnp.where(ok, x, 0).sum(1) / ok.sum(1)
    corr = jnp.corrcoef(x, y)
    return (
        mean,
        jnp.nanmax(x, 1),
        corr,
        jnp.histogram(x, 4, (-1.0, 1.0))[0],
        jax.nn.logsumexp(x, 0, b=y),
    )


@program("f32[6,2]", "s32[8,2]", "f32[2,3]")
def graph_layer(nodes: Any, edges: Any, w: Any) -> Any:
    def layer(nodes: Any, w: Any) -> Any:
        messages = jax.nn.relu(nodes[edges[:, 0]] @ w)
        return jnp.zeros((6, 3)).at[edges[:, 1]].add(messages)

    return jax.value_and_grad(lambda n, w: (layer(n, w) ** 2).sum(), argnums=(0, 1))(nodes, w)
