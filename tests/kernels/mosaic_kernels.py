"""Kernels of Pallas for TPUs: functions of JAX that are lowered, and that JAX interprets.

Their arrays are small: the last two sizes of a block are those of its array, or multiples of 8 and
128, as Mosaic demands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import pytest

jax: Any = pytest.importorskip("jax")
jnp: Any = pytest.importorskip("jax.numpy")
pl: Any = pytest.importorskip("jax.experimental.pallas")
pltpu: Any = pytest.importorskip("jax.experimental.pallas.tpu")


def _when(condition: Any) -> Callable[[Callable[[], None]], Any]:
    decorate: Callable[[Callable[[], None]], Any] = pl.when(condition)
    return decorate


@dataclass(frozen=True)
class MosaicCase:
    """A kernel with the shapes of its arguments; integers are scalars below `limit`.

    Attributes:
        call: a function that takes ``interpret`` and returns the function of the arrays.
    """

    name: str
    call: Callable[[bool], Callable[..., Any]]
    shapes: tuple[tuple[int, ...], ...]
    scalars: tuple[tuple[int, ...], ...] = ()
    limit: int = 1


def _block(shape: Sequence[Any], index_map: Callable[..., Any], **options: Any) -> Any:

    return pl.BlockSpec(tuple(shape), index_map, **options)


def _array(*dims: int) -> Any:

    return jax.ShapeDtypeStruct(dims, "float32")


def _call(
    body: Callable[..., None],
    grid: Sequence[Any],
    inputs: Sequence[Any],
    outputs: Any,
    shapes: Any,
    *,
    scalars: int = 0,
    scratch: Sequence[Any] = (),
    semantics: tuple[str, ...] | None = None,
    aliases: dict[int, int] | None = None,
) -> Callable[[bool], Callable[..., Any]]:
    """Return a function that makes the call, interpreted or not."""

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=scalars,
        grid=tuple(grid),
        in_specs=list(inputs),
        out_specs=outputs,
        scratch_shapes=list(scratch),
    )
    parameters = pltpu.CompilerParams(dimension_semantics=semantics)

    def call(interpret: bool) -> Callable[..., Any]:
        made: Callable[..., Any] = pl.pallas_call(
            body,
            grid_spec=spec,
            out_shape=shapes,
            input_output_aliases=aliases or {},
            compiler_params=parameters,
            interpret=interpret,
            name=body.__name__,
        )
        return made

    return call


def add(x: Any, y: Any, o: Any) -> None:
    o[...] = x[...] + y[...] * y[...]


def copy(x: Any, o: Any) -> None:
    o[...] = x[...]


def softmax(x: Any, o: Any) -> None:
    e = jnp.exp(x[...] - jnp.max(x[...], axis=-1, keepdims=True))
    o[...] = e / jnp.sum(e, axis=-1, keepdims=True)


def halo(a: Any, b: Any, c: Any, o: Any) -> None:
    o[...] = a[...] + b[...] * 2 + c[...] * 3


def two(x: Any, y: Any, o: Any, p: Any) -> None:
    o[...] = x[...] * 2
    p[...] = y[...] + jnp.sum(x[...])


def first_half(x: Any, o: Any) -> None:
    @_when(pl.program_id(0) < 2)
    def _() -> None:
        o[...] = x[...]

    @_when(pl.program_id(0) >= 2)
    def _() -> None:
        o[...] = jnp.zeros_like(o)


def copy_slices(x: Any, o: Any) -> None:
    o[...] = x[pl.ds(pl.program_id(0) * 2, 2)]


def sum_rows(x: Any, o: Any) -> None:

    def step(k: Any, total: Any) -> Any:
        return total + x[pl.ds(k, 1)][0]

    o[...] = jax.lax.fori_loop(0, 3, step, jnp.zeros((2, 3), jnp.float32))[None]


def whole(x: Any, o: Any) -> None:
    o[...] = x[...] + jnp.sum(x[...])


def matmul(a: Any, b: Any, o: Any, acc: Any, last: int = 2) -> None:
    @_when(pl.program_id(2) == 0)
    def _() -> None:
        acc[...] = jnp.zeros_like(acc)

    acc[...] += jnp.dot(a[...], b[...], preferred_element_type=jnp.float32)

    @_when(pl.program_id(2) == last)
    def _() -> None:
        o[...] = acc[...]


def in_output(x: Any, o: Any) -> None:
    @_when(pl.program_id(1) == 0)
    def _() -> None:
        o[...] = jnp.zeros_like(o)

    o[...] += x[...]


def first_or_more(x: Any, o: Any) -> None:
    k = pl.program_id(1)

    @_when(k == 0)
    def _() -> None:
        o[...] = x[...]

    @_when(k > 0)
    def _() -> None:
        o[...] = jnp.maximum(o[...], x[...])


def prefix(x: Any, o: Any, carry: Any) -> None:
    @_when(pl.program_id(0) == 0)
    def _() -> None:
        carry[...] = jnp.zeros_like(carry)

    carry[...] += x[...]
    o[...] = carry[...]


def inner_prefix(x: Any, o: Any, carry: Any) -> None:
    @_when(pl.program_id(1) == 0)
    def _() -> None:
        carry[...] = x[...]

    @_when(pl.program_id(1) != 0)
    def _() -> None:
        carry[...] = carry[...] * 2 + x[...]

    o[...] = carry[...]


def never_reset(x: Any, o: Any, carry: Any) -> None:
    @_when((pl.program_id(0) == 0) & (pl.program_id(1) == 0))
    def _() -> None:
        carry[...] = jnp.zeros_like(carry)

    carry[...] += x[...]
    o[...] = carry[...]


def half_reset(x: Any, o: Any, carry: Any) -> None:
    """The first row is reset for each i, the other one is kept."""

    @_when(pl.program_id(1) == 0)
    def _() -> None:
        carry[0:1] = jnp.zeros((1, 2, 3), jnp.float32)

    @_when((pl.program_id(0) == 0) & (pl.program_id(1) == 0))
    def _() -> None:
        carry[1:2] = jnp.zeros((1, 2, 3), jnp.float32)

    carry[...] += x[...]
    o[...] = carry[...]


def late_region(x: Any, o: Any, carry: Any) -> None:
    """The step 0 stores one row; later steps load the other one, of the i before."""
    k = pl.program_id(1)

    @_when((pl.program_id(0) == 0) & (k == 0))
    def _() -> None:
        carry[...] = jnp.zeros_like(carry)

    @_when(k == 0)
    def _() -> None:
        carry[0:1] = x[0:1]
        o[...] = carry[0:1] + x[0:1]

    @_when(k > 0)
    def _() -> None:
        o[...] = carry[1:2] + x[0:1]
        carry[1:2] = x[1:2]


def last_row(x: Any, o: Any, carry: Any) -> None:
    """Each step uses what the step before has stored, and nothing older."""

    @_when(pl.program_id(0) == 0)
    def _() -> None:
        carry[...] = jnp.zeros_like(carry)

    o[...] = carry[...] + x[...]
    carry[...] = x[...]


def column_sums(x: Any, o: Any) -> None:
    @_when(pl.program_id(0) == 0)
    def _() -> None:
        o[...] = jnp.zeros_like(o)

    o[...] += jnp.sum(x[...], axis=0, keepdims=True)


def apart(x: Any, o: Any) -> None:
    @_when(pl.program_id(0) == 0)
    def _() -> None:
        o[...] = jnp.zeros_like(o)

    o[...] += x[...]


def pages(s: Any, x: Any, o: Any) -> None:
    o[...] = x[...] * 2


def scatter_rows(s: Any, x: Any, o: Any) -> None:
    o[...] = x[...] + s[0].astype(jnp.float32)


def update(x: Any, y: Any, o: Any) -> None:
    o[...] = x[...] + y[...]


def only_one(x: Any, y: Any, o: Any) -> None:
    o[...] = y[...]


def copy_row(x: Any, o: Any, buffer: Any) -> None:
    pltpu.sync_copy(x.at[pl.ds(2 * pl.program_id(0), 2)], buffer)
    o[...] = buffer[...] * 2


def put_row(x: Any, o: Any, buffer: Any) -> None:
    buffer[...] = x[...] + 1
    pltpu.sync_copy(buffer, o.at[pl.ds(2 * pl.program_id(0), 2)])


def with_previous(x: Any, o: Any, p: Any) -> None:
    """An output that aliases the input is read before it is written."""
    p[...] = o[...] + 1


def elementwise_cases() -> list[MosaicCase]:
    """Kernels without state: each step computes its block."""

    row = _block((2, 2, 3), lambda i: (i, 0, 0))
    return [
        MosaicCase("add", _call(add, (3,), [row, row], row, _array(6, 2, 3)), ((6, 2, 3),) * 2),
        MosaicCase(
            "transpose",
            _call(
                copy,
                (2, 3),
                [_block((1, 1, 2, 3), lambda i, j: (j, i, 0, 0))],
                _block((1, 1, 2, 3), lambda i, j: (i, j, 0, 0)),
                _array(2, 3, 2, 3),
            ),
            ((3, 2, 2, 3),),
        ),
        MosaicCase(
            "reverse",
            _call(copy, (3,), [_block((2, 2, 3), lambda i: (2 - i, 0, 0))], row, _array(6, 2, 3)),
            ((6, 2, 3),),
        ),
        MosaicCase(
            "snake",
            _call(
                copy,
                (2, 3),
                [
                    _block(
                        (1, 1, 2, 3),
                        lambda i, j: (i, jnp.where(i == 0, j, 2 - j), 0, 0),
                    )
                ],
                _block((1, 1, 2, 3), lambda i, j: (i, j, 0, 0)),
                _array(2, 3, 2, 3),
            ),
            ((2, 3, 2, 3),),
        ),
        MosaicCase("softmax", _call(softmax, (3,), [row], row, _array(6, 2, 3)), ((6, 2, 3),)),
        MosaicCase(
            "halo",
            _call(
                halo,
                (5,),
                [
                    _block((1, 2, 3), lambda i: (jnp.maximum(i - 1, 0), 0, 0)),
                    _block((1, 2, 3), lambda i: (i, 0, 0)),
                    _block((1, 2, 3), lambda i: (jnp.minimum(i + 1, 4), 0, 0)),
                ],
                _block((1, 2, 3), lambda i: (i, 0, 0)),
                _array(5, 2, 3),
            ),
            ((5, 2, 3),) * 3,
        ),
        MosaicCase(
            "window",
            _call(
                copy,
                (3,),
                [_block((pl.Element(3), pl.Element(2), pl.Element(3)), lambda i: (2 * i, 0, 0))],
                _block((3, 2, 3), lambda i: (i, 0, 0)),
                _array(9, 2, 3),
            ),
            ((7, 2, 3),),
        ),
        MosaicCase(
            "overhang",
            _call(copy, (3,), [row], row, _array(5, 2, 3)),
            ((5, 2, 3),),
        ),
        MosaicCase(
            "two_results",
            _call(
                two,
                (3,),
                [row, _block((2, 2, 3), lambda i: (0, 0, 0))],
                [row, row],
                [_array(6, 2, 3), _array(6, 2, 3)],
            ),
            ((6, 2, 3), (2, 2, 3)),
        ),
        MosaicCase("guarded", _call(first_half, (3,), [row], row, _array(6, 2, 3)), ((6, 2, 3),)),
        MosaicCase(
            "squeezed",
            _call(
                copy,
                (3, 2),
                [_block((None, None, 2, 3), lambda i, j: (i, j, 0, 0))],
                _block((None, 2, 3), lambda i, j: (2 * i + j, 0, 0)),
                _array(6, 2, 3),
                semantics=("parallel", "parallel"),
            ),
            ((3, 2, 2, 3),),
        ),
        MosaicCase(
            "sliced",
            _call(
                copy_slices,
                (3,),
                [_block((6, 2, 3), lambda i: (0, 0, 0))],
                _block((2, 2, 3), lambda i: (i, 0, 0)),
                _array(6, 2, 3),
            ),
            ((6, 2, 3),),
        ),
        MosaicCase(
            "looped",
            _call(
                sum_rows,
                (2,),
                [_block((3, 2, 3), lambda i: (i, 0, 0))],
                _block((1, 2, 3), lambda i: (i, 0, 0)),
                _array(2, 2, 3),
            ),
            ((6, 2, 3),),
        ),
        MosaicCase("whole", lambda interpret: _gridless(whole, interpret), ((4, 3),)),
    ]


def _gridless(body: Callable[..., None], interpret: bool) -> Callable[..., Any]:

    call: Callable[..., Any] = pl.pallas_call(body, out_shape=_array(4, 3), interpret=interpret)
    return call


def accumulating_cases() -> list[MosaicCase]:
    """Kernels that keep values from one step to others."""

    cube = (2, 2, 3)
    at = _block(cube, lambda i, k: (3 * i + k, 0, 0))
    kept = _block(cube, lambda i, k: (i, 0, 0))
    return [
        MosaicCase(
            "matmul",
            _call(
                matmul,
                (2, 2, 3),
                [
                    _block((None, None, 2, 3), lambda i, j, k: (i, k, 0, 0)),
                    _block((None, None, 3, 4), lambda i, j, k: (k, j, 0, 0)),
                ],
                _block((None, None, 2, 4), lambda i, j, k: (i, j, 0, 0)),
                _array(2, 2, 2, 4),
                scratch=[pltpu.VMEM((2, 4), jnp.float32)],
                semantics=("parallel", "parallel", "arbitrary"),
            ),
            ((2, 3, 2, 3), (3, 2, 3, 4)),
        ),
        MosaicCase(
            "in_output",
            _call(in_output, (2, 3), [at], kept, _array(4, 2, 3)),
            ((12, 2, 3),),
        ),
        MosaicCase(
            "first_or_more",
            _call(first_or_more, (2, 3), [at], kept, _array(4, 2, 3)),
            ((12, 2, 3),),
        ),
        *[
            MosaicCase(
                body.__name__,
                _call(
                    body, (4,), [_block(cube, lambda i: (i, 0, 0))],
                    _block(cube, lambda i: (i, 0, 0)), _array(8, 2, 3),
                    scratch=[pltpu.VMEM(cube, jnp.float32)]
                ),
                ((8, 2, 3),),
            )
            for body in (prefix, last_row)
        ],
        MosaicCase(
            "inner_prefix",
            _call(
                inner_prefix, (2, 3), [at], at, _array(12, 2, 3),
                scratch=[pltpu.VMEM(cube, jnp.float32)]
            ),
            ((12, 2, 3),),
        ),
        *[
            MosaicCase(
                body.__name__,
                _call(
                    body, (3, 2), [_block(cube, lambda i, k: (2 * i + k, 0, 0))],
                    _block((rows, 2, 3), lambda i, k: (2 * i + k, 0, 0)), _array(6 * rows, 2, 3),
                    scratch=[pltpu.VMEM(cube, jnp.float32)]
                ),
                ((12, 2, 3),),
            )
            for body, rows in ((never_reset, 2), (half_reset, 2), (late_region, 1))
        ],
        MosaicCase(
            "column_sums",
            _call(
                column_sums,
                (3,),
                [_block((2, 2, 3), lambda i: (i, 0, 0))],
                _block((1, 2, 3), lambda i: (0, 0, 0)),
                _array(1, 2, 3),
            ),
            ((6, 2, 3),),
        ),
        MosaicCase(
            "apart",
            _call(
                apart, (3, 2), [_block(cube, lambda k, i: (2 * k + i, 0, 0))],
                _block(cube, lambda k, i: (i, 0, 0)), _array(4, 2, 3),
            ),
            ((12, 2, 3),),
        ),
    ]  # fmt: skip


def other_cases() -> list[MosaicCase]:
    """Kernels with scalars, aliases, copies of their own, and dynamic grids."""

    cube = (2, 2, 3)
    row = _block(cube, lambda i: (i, 0, 0))
    scalar_row = _block(cube, lambda i, s: (i, 0, 0))
    hbm = pl.BlockSpec(memory_space=pl.ANY)
    return [
        MosaicCase(
            "pages",
            _call(
                pages,
                (3,),
                [_block(cube, lambda i, s: (s[i], 0, 0))],
                scalar_row,
                _array(6, 2, 3),
                scalars=1,
            ),
            ((8, 2, 3),),
            scalars=((3,),),
            limit=4,
        ),
        MosaicCase(
            "scattered",
            _call(
                scatter_rows,
                (3,),
                [scalar_row],
                _block(cube, lambda i, s: (s[i], 0, 0)),
                _array(8, 2, 3),
                scalars=1,
            ),
            ((6, 2, 3),),
            scalars=((3,),),
            limit=4,
        ),
        MosaicCase(
            "updated_part",
            _call(
                update,
                (2,),
                [_block(cube, lambda i: (i + 1, 0, 0)), row],
                _block(cube, lambda i: (i + 1, 0, 0)),
                _array(8, 2, 3),
                aliases={0: 0},
            ),
            ((8, 2, 3), (4, 2, 3)),
        ),
        MosaicCase(
            "alias_not_read",
            _call(only_one, (2,), [hbm, row], row, _array(8, 2, 3), aliases={0: 0}),
            ((8, 2, 3), (4, 2, 3)),
        ),
        MosaicCase(
            "alias_in_place",
            _call(
                copy,
                (2, 2),
                [_block((1, 1, 2, 3), lambda i, j: (j, i, 0, 0))],
                _block((1, 1, 2, 3), lambda i, j: (i, j, 0, 0)),
                _array(2, 2, 2, 3),
                aliases={0: 0},
            ),
            ((2, 2, 2, 3),),
        ),
        MosaicCase(
            "alias_written",
            _call(only_one, (2,), [hbm, row], row, _array(4, 2, 3), aliases={0: 0}),
            ((4, 2, 3), (4, 2, 3)),
        ),
        MosaicCase(
            "copied",
            _call(
                copy_row, (3,), [hbm], row, _array(6, 2, 3), scratch=[pltpu.VMEM(cube, jnp.float32)]
            ),
            ((6, 2, 3),),
        ),
        MosaicCase(
            "written",
            _call(
                put_row, (3,), [row], hbm, _array(6, 2, 3), scratch=[pltpu.VMEM(cube, jnp.float32)]
            ),
            ((6, 2, 3),),
        ),
        MosaicCase(
            "alias_read",
            _call(
                with_previous, (2,), [row], [row, row],
                [_array(4, 2, 3), _array(4, 2, 3)], aliases={0: 0},
            ),
            ((4, 2, 3),),
        ),
        MosaicCase(
            "dynamic_grid",
            partial(_dynamic, pages),
            ((8, 2, 3),),
            scalars=((3,),),
            limit=4,
        ),
    ]  # fmt: skip


def _dynamic(body: Callable[..., None], interpret: bool) -> Callable[..., Any]:
    """Return a function with a grid whose size it computes."""
    cube = (2, 2, 3)

    def function(s: Any, x: Any) -> Any:
        steps = s.shape[0] + 0 * s[0]
        call = _call(
            body,
            (steps,),
            [_block(cube, lambda i, s: (s[i], 0, 0))],
            _block(cube, lambda i, s: (i, 0, 0)),
            _array(6, 2, 3),
            scalars=1,
        )
        return call(interpret)(s, x)

    return function


def cases() -> list[MosaicCase]:
    """Return all kernels."""
    return [*elementwise_cases(), *accumulating_cases(), *other_cases()]


# ---------------------------------------------------------------- random kernels

Action = tuple[str, str, int]
"""A target with its rows, a condition, and the number of the input that is used."""

CONDITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "always": lambda i, k: True,
    "k == 0": lambda i, k: k == 0,
    "k > 0": lambda i, k: k > 0,
    "i == 0": lambda i, k: i == 0,
    "k == 1": lambda i, k: k == 1,
    "start": lambda i, k: (i == 0) & (k == 0),
    "i >= k": lambda i, k: i >= k,
}
INDICES: list[Callable[[Any, Any], Any]] = [
    lambda i, k: 3 * i + k,
    lambda i, k: i,
    lambda i, k: k,
    lambda i, k: 2 - k,
    lambda i, k: jnp.minimum(i + k, 3),
    lambda i, k: jnp.where(k > i, 0, k),
]


def random_case(seed: int) -> MosaicCase:
    """Return a kernel of random blocks, whose body stores and adds under random conditions."""
    random = Random(seed)
    grid = random.choice([(2, 3), (3, 2), (4, 1)])
    reads = [random.choice(INDICES) for _ in range(2)]
    writes = random.choice(INDICES[:3])
    first = ("s = x", random.choice(["k == 0", "k == 0", *CONDITIONS]), random.randrange(2))
    last = (random.choice(["o = s", "o = s", "o = t", "o += x"]), "always", random.randrange(2))
    actions = [first, *[random_action(random) for _ in range(random.randrange(4))], last]

    def body(x: Any, y: Any, o: Any, s: Any, t: Any) -> None:
        i, k = pl.program_id(0), pl.program_id(1)
        for statement, condition, number in actions:
            run = partial(act, statement, (x, y)[number], o, s, t)
            if condition == "always":
                run()
            else:
                _when(CONDITIONS[condition](i, k))(run)

    blocks = [_block((1, 2, 3), partial(_place, index)) for index in (*reads, writes)]
    scratch = [pltpu.VMEM((1, 2, 3), jnp.float32)] * 2
    body.__name__ = f"random{seed}"
    call = _call(body, grid, blocks[:2], blocks[2], _array(12, 2, 3), scratch=scratch)
    return MosaicCase(body.__name__, call, ((12, 2, 3),) * 2)


def _place(index: Callable[[Any, Any], Any], i: Any, k: Any) -> tuple[Any, int, int]:
    return index(i, k), 0, 0


def random_action(random: Random) -> Action:
    statements = [
        "s = x",
        "s += x",
        "s[0] = x",
        "t = s",
        "o = s",
        "o += x",
        "o = x",
        "o = t",
        "t += x",
    ]
    return random.choice(statements), random.choice(list(CONDITIONS)), random.randrange(2)


def act(statement: str, x: Any, o: Any, s: Any, t: Any) -> None:
    """Execute a statement of a random kernel; what nothing has stored counts as 0."""
    buffers = {"s": s, "t": t, "o": o, "x": x}
    target, operator, source = statement.split()
    value = jnp.nan_to_num(buffers[source][...])
    if target == "s[0]":
        s[:, 0:1] = value[:, 0:1]
    elif operator == "=":
        buffers[target][...] = value
    else:
        buffers[target][...] = jnp.nan_to_num(buffers[target][...]) * 2 + value
