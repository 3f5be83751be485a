"""JAX programs with loops, and the HLO files of them that the tests and `loop_maps` read.

    python -m benchmarks.jax_loops [NAME...]

writes ``tests/dataflow/data/loops/jax/NAME.lowered.hlo`` and ``NAME.optimized.hlo``, without
metadata; of the backend configurations, those of loops are kept.  The programs are written as users
write them: recurrent networks and their gradients, decoding with a cache, updates in place, dynamic
programming, solvers.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from indexing import from_jax

FOLDER: Final = Path(__file__).parent.parent / "tests" / "dataflow" / "data" / "loops" / "jax"
STAGES: Final = ("lowered", "optimized")
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
_TYPES: Final = {"f32": np.float32, "s32": np.int32, "pred": np.bool_}
_METADATA: Final = re.compile(r", metadata=\{[^{}]*\}")
_CONFIG: Final = re.compile(r", backend_config=.*")  # the last attribute
_TABLES: Final = re.compile(
    r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n(.+\n)*\n?", re.M
)


def program(*arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a program; a text such as ``f32[3,4]`` is the type of an argument."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = function, jax.tree.map(_argument, arguments)
        return function

    return register


def _argument(text: str) -> Any:
    kind, sizes = text.rstrip("]").split("[")
    dims = tuple([int(size) for size in sizes.split(",") if size])
    return jax.ShapeDtypeStruct(dims, _TYPES[kind])


# ---------------------------------------------------------------- recurrences


@program("f32[7]")
def cumsum(xs: Any) -> Any:
    def step(total: Any, x: Any) -> Any:
        return total + x, total + x

    return lax.scan(step, 0.0, xs)[1]


@program("f32[6,3]")
def reverse_cumsum(xs: Any) -> Any:
    def step(total: Any, x: Any) -> Any:
        return total + x, total + x

    return lax.scan(step, jnp.zeros(3), xs, reverse=True)


@program("f32[7,2]", "f32[7,2]", "f32[2]")
def linear_recurrence(a: Any, b: Any, start: Any) -> Any:
    def step(h: Any, ab: Any) -> Any:
        h = ab[0] * h + ab[1]
        return h, h

    return lax.scan(step, start, (a, b))


@program("f32[6,2]", "f32[]")
def exponential_moving_average(xs: Any, alpha: Any) -> Any:
    def step(mean: Any, x: Any) -> Any:
        mean = alpha * mean + (1 - alpha) * x
        return mean, mean

    return lax.scan(step, xs[0], xs)[1]


@program("f32[8]")
def running_maximum(xs: Any) -> Any:
    def step(best: Any, x: Any) -> Any:
        best = jnp.maximum(best, x)
        return best, best

    return lax.scan(step, -jnp.inf, xs)


def _rnn(w: Any, u: Any, b: Any, xs: Any, reverse: bool = False) -> Any:
    def cell(h: Any, x: Any) -> Any:
        h = jnp.tanh(x @ w + h @ u + b)
        return h, h

    return lax.scan(cell, jnp.zeros(len(b)), xs, reverse=reverse)[1]


@program("f32[3,2]", "f32[2,2]", "f32[2]", "f32[4,3]")
def rnn(w: Any, u: Any, b: Any, xs: Any) -> Any:
    return _rnn(w, u, b, xs)


@program("f32[3,2]", "f32[2,2]", "f32[2]", "f32[4,3]")
def rnn_gradient(w: Any, u: Any, b: Any, xs: Any) -> Any:
    return jax.grad(lambda *given: (_rnn(*given) ** 2).sum(), argnums=(0, 1, 2, 3))(w, u, b, xs)


@program("f32[3,2]", "f32[2,2]", "f32[2]", "f32[4,3]")
def bidirectional_rnn(w: Any, u: Any, b: Any, xs: Any) -> Any:
    return jnp.concatenate([_rnn(w, u, b, xs), _rnn(w, u, b, xs, reverse=True)], axis=1)


def _lstm(w: Any, u: Any, b: Any, xs: Any) -> Any:
    def cell(carry: Any, x: Any) -> Any:
        h, c = carry
        i, f, g, o = jnp.split(x @ w + h @ u + b, 4)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros(len(b) // 4)
    return lax.scan(cell, (zero, zero), xs)


@program("f32[2,8]", "f32[2,8]", "f32[8]", "f32[4,2]")
def lstm(w: Any, u: Any, b: Any, xs: Any) -> Any:
    return _lstm(w, u, b, xs)


@program("f32[2,8]", "f32[2,8]", "f32[8]", "f32[3,2]")
def lstm_gradient(w: Any, u: Any, b: Any, xs: Any) -> Any:
    return jax.grad(lambda *given: _lstm(*given)[1].sum(), argnums=(0, 1, 2, 3))(w, u, b, xs)


@program({"z": "f32[4,2]", "r": "f32[4,2]", "n": "f32[4,2]"}, "f32[2]", "f32[4,2]")
def gru(weights: Any, start: Any, xs: Any) -> Any:
    def cell(h: Any, x: Any) -> Any:
        both = jnp.concatenate([x, h])
        z, r = (jax.nn.sigmoid(both @ weights[name]) for name in "zr")
        n = jnp.tanh(jnp.concatenate([x, r * h]) @ weights["n"])
        h = (1 - z) * n + z * h
        return h, h

    return lax.scan(cell, start, xs)[1]


@program("f32[5,1]", "f32[2]", "f32[2,2]")
def kalman_filter(observed: Any, mean: Any, covariance: Any) -> Any:
    motion = jnp.array([[1.0, 0.1], [0.0, 1.0]])
    sensor = jnp.array([[1.0, 0.0]])

    def step(state: Any, z: Any) -> Any:
        mean, covariance = state
        mean = motion @ mean
        covariance = motion @ covariance @ motion.T + 0.01 * jnp.eye(2)
        gain = covariance @ sensor.T / (sensor @ covariance @ sensor.T + 0.1)
        mean = mean + gain @ (z - sensor @ mean)
        covariance = (jnp.eye(2) - gain @ sensor) @ covariance
        return (mean, covariance), mean

    return lax.scan(step, (mean, covariance), observed)


@program("f32[3]", "f32[]")
def runge_kutta(start: Any, dt: Any) -> Any:
    def slope(y: Any) -> Any:
        a, b, c = y
        return jnp.array([10 * (b - a), a * (28 - c) - b, a * b - c * 8 / 3])

    def step(y: Any, _: Any) -> Any:
        k1 = slope(y)
        k2 = slope(y + dt / 2 * k1)
        k3 = slope(y + dt / 2 * k2)
        k4 = slope(y + dt * k3)
        y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y, y

    return lax.scan(step, start, None, length=4)[1]


@program({"sum": "f32[3]", "count": "s32[]"}, ("f32[5,3]", "f32[5]"))
def dictionary_carry(state: Any, xs: Any) -> Any:
    def step(state: Any, row: Any) -> Any:
        x, scale = row
        new = {"sum": state["sum"] + x * scale, "count": state["count"] + 1}
        return new, {"mean": new["sum"] / new["count"], "scale": scale}

    return lax.scan(step, state, xs)


@program("f32[6,2]", "pred[6]")
def scan_with_condition(xs: Any, flags: Any) -> Any:
    def step(total: Any, row: Any) -> Any:
        x, flag = row
        total = lax.cond(flag, lambda t: t + x, lambda t: t[::-1], total)
        return total, total

    return lax.scan(step, jnp.zeros(2), (xs, flags))[1]


# ---------------------------------------------------------------- rows, windows and delays


@program("f32[5,4]", "f32[4]")
def map_rows(x: Any, scale: Any) -> Any:
    return lax.map(lambda row: jax.nn.softmax(row) * scale, x)


@program("f32[14]")
def sliding_windows(x: Any) -> Any:
    return lax.map(lambda i: lax.dynamic_slice(x, (2 * i,), (4,)).sum(), jnp.arange(6))


@program("f32[6]", "f32[3]")
def delay_line(xs: Any, buffer: Any) -> Any:
    def step(buffer: Any, x: Any) -> Any:
        return jnp.concatenate([x[None], buffer[:-1]]), buffer[-1]

    return lax.scan(step, buffer, xs)


@program("f32[6]", "f32[4]", "f32[4]")
def fir_filter(xs: Any, taps: Any, history: Any) -> Any:
    def step(history: Any, x: Any) -> Any:
        history = jnp.roll(history, 1).at[0].set(x)
        return history, taps @ history

    return lax.scan(step, history, xs)[1]


@program("f32[5]", "f32[5,5]")
def rotating_buffer(buffer: Any, xs: Any) -> Any:
    return lax.fori_loop(0, 5, lambda i, b: jnp.roll(b, 2) + xs[i], buffer)


@program("f32[4]", "f32[6]")
def ring_buffer(buffer: Any, xs: Any) -> Any:
    return lax.fori_loop(0, 6, lambda i, b: b.at[i % 4].set(xs[i]), buffer)


@program("f32[6]", "f32[6]")
def ping_pong(a: Any, b: Any) -> Any:
    def step(_: Any, pair: Any) -> Any:
        a, b = pair
        return b, a.at[1:-1].set(0.5 * (b[2:] + b[:-2]))

    return lax.fori_loop(0, 4, step, (a, b))


@program("f32[9]")
def heat_equation(u: Any) -> Any:
    def step(u: Any, _: Any) -> Any:
        return u.at[1:-1].add(0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])), None

    return lax.scan(step, u, None, length=3)[0]


# ---------------------------------------------------------------- updates in place


@program("f32[8]", "f32[6]")
def update_elements(x: Any, y: Any) -> Any:
    return lax.fori_loop(0, 6, lambda i, x: x.at[i].set(jnp.sin(y[i])), x)


@program("f32[12]", "f32[5]")
def strided_updates(x: Any, y: Any) -> Any:
    return lax.fori_loop(0, 5, lambda i, x: x.at[2 * i + 1].add(y[4 - i]), x)


@program("f32[7]", "f32[7]")
def prefix_in_place(x: Any, y: Any) -> Any:
    return lax.fori_loop(1, 7, lambda i, x: x.at[i].set(x[i - 1] + y[i]), x)


@program("f32[5,3]", "f32[5]")
def update_rows(x: Any, y: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        return x.at[4 - i].set(x[4 - i] * y[i])

    return lax.fori_loop(0, 5, step, x)


@program("f32[9]", "s32[6]")
def table_lookup(table: Any, rows: Any) -> Any:
    return lax.fori_loop(0, 6, lambda i, out: out.at[i].set(table[rows[i]]), jnp.zeros(6))


@program("f32[7,2]", "s32[7]", "s32[]")
def linked_rows(values: Any, following: Any, first: Any) -> Any:
    def step(at: Any, _: Any) -> Any:
        return following[at], values[at]

    return lax.scan(step, first, None, length=5)


@program("f32[5]", "f32[5,5]", "s32[]")
def greedy_states(scores: Any, transitions: Any, state: Any) -> Any:
    def step(i: Any, carry: Any) -> Any:
        state, total, path = carry
        best = jnp.argmax(scores + transitions[state])
        return best, total + transitions[state, best], path.at[i].set(state)

    return lax.fori_loop(0, 4, step, (state, 0.0, jnp.zeros(4, jnp.int32)))


@program("f32[6]", "f32[6]", "s32[]")
def bound_argument(x: Any, y: Any, n: Any) -> Any:
    return lax.fori_loop(0, n, lambda i, x: x.at[i].set(2 * y[i]), x)


@program("f32[4]", "f32[4]")
def no_iteration(x: Any, y: Any) -> Any:
    return lax.fori_loop(3, 3, lambda i, x: jnp.roll(x, 1) + y[i], x)


@program("f32[4]", "f32[4]")
def one_iteration(x: Any, y: Any) -> Any:
    return lax.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, s[1][::-1] + y), (0, x))


@program("f32[4,4]", "f32[4]")
def forward_substitution(lower: Any, b: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        return x.at[i].set((b[i] - lower[i] @ x) / lower[i, i])

    return lax.fori_loop(0, 4, step, jnp.zeros(4))


@program("f32[4,4]", "f32[4]")
def lower_triangular_product(lower: Any, x: Any) -> Any:
    def row(i: Any, y: Any) -> Any:
        return lax.fori_loop(0, i + 1, lambda j, y: y.at[i].add(lower[i, j] * x[j]), y)

    return lax.fori_loop(0, 4, row, jnp.zeros(4))


@program("f32[4,5]")
def path_costs(cost: Any) -> Any:
    def row(i: Any, table: Any) -> Any:
        def cell(j: Any, table: Any) -> Any:
            best = jnp.minimum(table[i - 1, j], table[i, j - 1])
            return table.at[i, j].set(best + cost[i, j])

        return lax.fori_loop(1, 5, cell, table)

    return lax.fori_loop(1, 4, row, cost)


@program("s32[4]", "s32[5]")
def edit_distance(a: Any, b: Any) -> Any:
    def row(above: Any, symbol: Any) -> Any:
        def cell(left: Any, column: Any) -> Any:
            diagonal, up, other = column
            best = jnp.minimum(jnp.minimum(up, left) + 1, diagonal + (symbol != other))
            return best, best

        first = above[0] + 1
        _, rest = lax.scan(cell, first, (above[:-1], above[1:], b))
        return jnp.concatenate([first[None], rest]), None

    return lax.scan(row, jnp.arange(6), a)[0]


# ---------------------------------------------------------------- matrices, decoding, search


@program("f32[3,3]", "f32[3,3]")
def matrix_power(a: Any, start: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, m: m @ a, start)


@program("f32[3,6]", "f32[6,4]")
def blockwise_product(a: Any, b: Any) -> Any:
    def step(k: Any, total: Any) -> Any:
        left = lax.dynamic_slice(a, (0, 2 * k), (3, 2))
        return total + left @ lax.dynamic_slice(b, (2 * k, 0), (2, 4))

    return lax.fori_loop(0, 3, step, jnp.zeros((3, 4)))


@program("f32[2,3]", "f32[6,3]", "f32[6,3]")
def blockwise_attention(q: Any, k: Any, v: Any) -> Any:
    def step(carry: Any, block: Any) -> Any:
        total, weight, top = carry
        keys, values = block
        scores = q @ keys.T
        new = jnp.maximum(top, scores.max(1))
        p, scale = jnp.exp(scores - new[:, None]), jnp.exp(top - new)
        return (total * scale[:, None] + p @ values, weight * scale + p.sum(1), new), None

    start = jnp.zeros((2, 3)), jnp.zeros(2), jnp.full(2, -jnp.inf)
    (total, weight, _), _ = lax.scan(step, start, (k.reshape(3, 2, 3), v.reshape(3, 2, 3)))
    return total / weight[:, None]


@program("f32[3,2,2]", "f32[2]")
def nested_scan(weights: Any, start: Any) -> Any:
    def outer(h: Any, w: Any) -> Any:
        def inner(h: Any, row: Any) -> Any:
            h = h + row * h.sum()
            return h, h[0]

        return lax.scan(inner, h, w)

    return lax.scan(outer, start, weights)


def _decode(params: Any, tokens: Any, cache: Any, start: Any) -> Any:
    def step(carry: Any, token: Any) -> Any:
        cache, position = carry
        q, k, v = (token @ params[name] for name in "qkv")
        keys = lax.dynamic_update_slice(cache["k"], k[None], (position, 0))
        values = lax.dynamic_update_slice(cache["v"], v[None], (position, 0))
        scores = jnp.where(jnp.arange(len(keys)) <= position, keys @ q, -jnp.inf)
        return ({"k": keys, "v": values}, position + 1), jax.nn.softmax(scores) @ values

    return lax.scan(step, (cache, start), tokens)


_CACHE: Final = {"k": "f32[6,2]", "v": "f32[6,2]"}
_WEIGHTS: Final = {"q": "f32[3,2]", "k": "f32[3,2]", "v": "f32[3,2]"}


@program(_WEIGHTS, "f32[4,3]", _CACHE)
def cached_decoding(params: Any, tokens: Any, cache: Any) -> Any:
    return _decode(params, tokens, cache, 1)


@program(_WEIGHTS, "f32[3,3]", _CACHE, "s32[]")
def decoding_at_position(params: Any, tokens: Any, cache: Any, position: Any) -> Any:
    return _decode(params, tokens, cache, position)


@program("f32[3,4]")
def beam_search(logits: Any) -> Any:
    def step(beams: Any, row: Any) -> Any:
        scores, tokens, position = beams
        best, flat = lax.top_k((scores[:, None] + row).ravel(), 2)
        tokens = tokens[flat // 4].at[:, position].set(flat % 4)
        return (best, tokens, position + 1), None

    start = jnp.array([0.0, -jnp.inf]), jnp.zeros((2, 3), jnp.int32), 0
    return lax.scan(step, start, logits)[0][:2]


@program("f32[6]")
def largest_three(x: Any) -> Any:
    def step(i: Any, state: Any) -> Any:
        left, values, places = state
        at = jnp.argmax(left)
        return left.at[at].set(-jnp.inf), values.at[i].set(left[at]), places.at[i].set(at)

    start = x, jnp.zeros(3), jnp.zeros(3, jnp.int32)
    return lax.fori_loop(0, 3, step, start)[1:]


@program("f32[3]", "f32[3]")
def newton(x: Any, target: Any) -> Any:
    def too_far(state: Any) -> Any:
        x, count = state
        return (jnp.abs(x * x - target) > 1e-4).any() & (count < 8)

    def step(state: Any) -> Any:
        x, count = state
        return x - (x * x - target) / (2 * x), count + 1

    return lax.while_loop(too_far, step, (x, 0))


# ---------------------------------------------------------------- files


def text(function: Callable[..., Any], arguments: Sequence[Any], stage: str) -> str:
    """Return the HLO text of a program without metadata and most backend configurations."""
    module = from_jax(function, *arguments, stage=stage)
    lines = _METADATA.sub("", _TABLES.sub("", str(module))).splitlines()
    kept = [line if " while(" in line else _CONFIG.sub("", line) for line in lines]
    return "\n".join(kept) + "\n"


def main(names: list[str]) -> None:
    """Write the files of some programs, by default of all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or PROGRAMS:
        for stage in STAGES:
            (FOLDER / f"{name}.{stage}.hlo").write_text(text(*PROGRAMS[name], stage))


if __name__ == "__main__":
    main(sys.argv[1:])
