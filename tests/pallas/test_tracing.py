"""Traces of functions: calls within other primitives, names, semantics, kinds of blocks."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import indexing
from indexing.pallas import check
from simplifier.unknown import Unknown
from tests.pallas.enumeration import facts
from tests.pallas.kernels import Kernel, Operand, clip, where
from tests.pallas.test_check import answers, check_facts, report_of

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402 after the skip
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

ROWS = jax.ShapeDtypeStruct((32, 128), jnp.float32)


def copy_rows(name: str, rows: int = 8, **options: Any) -> Any:
    """Return a function that copies an array in blocks of rows."""
    spec = pl.BlockSpec((rows, 128), lambda i: (i, 0))

    def function(x: Any) -> Any:
        call = pl.pallas_call(
            lambda *refs: None,
            grid=(-(-x.shape[0] // rows),),
            in_specs=[spec],
            out_specs=spec,
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
            name=name,
            **options,
        )
        return call(x)

    return function


def test_calls_within_other_primitives_are_in_program_order() -> None:
    first, scanned, chosen, other, repeated, custom = (
        copy_rows(name) for name in ("first", "scanned", "chosen", "other", "repeated", "custom")
    )

    with_rule = jax.custom_vjp(custom)
    with_rule.defvjp(lambda x: (custom(x), None), lambda _, g: (copy_rows("backward")(g),))

    def function(x: Any) -> Any:
        x = jax.jit(first)(x)
        x, _ = jax.lax.scan(lambda c, _: (scanned(c), None), x, None, length=3)
        x = jax.lax.cond(x[0, 0] > 0, chosen, other, x)
        x = jax.lax.while_loop(lambda c: c[0, 0] < 1, repeated, x)
        return with_rule(x)

    report = check(jax.jit(function), ROWS)
    names = [call.name for call in report]
    assert names[:2] == ["first", "scanned"]
    assert set(names[2:4]) == {"chosen", "other"}  # by the number of the branch
    assert names[4:] == ["repeated", "custom"]
    assert len(report) == 6
    gradient = check(jax.grad(lambda x: with_rule(x).sum()), ROWS)
    assert [call.name for call in gradient] == ["custom", "backward"]


def test_a_vmapped_dimension_is_parallel() -> None:
    x = jax.ShapeDtypeStruct((3, 32, 128), jnp.float32)
    function = copy_rows(
        "rows", compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",))
    )
    (call,) = check(jax.vmap(function), x).calls
    assert (call.grid, call.semantics) == ((3, 4), ("parallel", "arbitrary"))
    assert call.faults == ()


def test_semantics_are_words_or_members() -> None:
    members = (pltpu.PARALLEL, pltpu.ARBITRARY)
    for words in (members, ("parallel", "arbitrary")):
        kernel = Kernel(
            "sum",
            (2, 3),
            (Operand((16, 384), (8, 128), lambda i, k: (i, k)),),
            (Operand((8, 128), (8, 128), lambda i, k: (0, 0)),),
            words,
        )
        (output,) = report_of(kernel).outputs
        assert output.race is True
        assert output.race_at == ((0, 0), (1, 0), (0, 0))


def test_a_program_on_a_gpu_has_no_order_and_no_pipeline() -> None:
    kernel = Kernel(
        "sum",
        (4,),
        (Operand((32, 128), (8, 128), lambda i: (i, 0)),),
        (Operand((8, 128), (8, 128), lambda i: (0, 0)),),
        target="gpu",
    )
    report = report_of(kernel)
    (output,) = report.outputs
    assert (report.target, report.semantics) == ("gpu", ("parallel",))
    assert (output.race, output.race_at) == ("may", ((0,), (1,), (0, 0)))
    assert "only if the kernel writes" in " ".join(output.notes)
    assert (report.bytes, report.vmem_bytes, output.bytes) == (None, None, None)


def test_blocks_outside_of_the_pipeline_are_not_copied() -> None:
    whole = Operand((32, 128), (32, 128), lambda i: (0, 0), space="any")
    kernel = Kernel("any", (4,), (whole,), (whole,), aliases=((0, 0),))
    report = report_of(kernel)
    assert (report.bytes, report.vmem_bytes) == (0, 0)
    assert report.outputs[0].hazard == "may"  # the body may read what an earlier step has written
    scalars = Operand((32, 128), (8, 128), lambda i: (i, 0), "int32", space="smem")
    report = report_of(Kernel("smem", (4,), (scalars,), (scalars,)))
    assert (report.bytes, report.vmem_bytes) == (2 * 32 * 128 * 4, 0)


def test_a_revisited_output_may_be_allowed() -> None:
    kernel = Kernel(
        "k_outermost",
        (5, 3),
        (Operand((24, 640), (8, 128), lambda k, i: (i, k)),),
        (Operand((24, 128), (8, 128), lambda k, i: (i, 0), may_revisit=True),),
    )
    report = report_of(kernel)
    assert (report.outputs[0].visits, report.faults) == ("apart", ())


def test_a_block_of_a_variable_size_is_unknown() -> None:
    def function(x: Any) -> Any:
        spec = pl.BlockSpec((pl.BoundedSlice(8), 128), lambda i: (pl.ds(i * 8, 8), 0))
        call = pl.pallas_call(
            lambda *refs: None, grid=(4,), in_specs=[spec], out_specs=spec, out_shape=x
        )
        return call(x)

    (call,) = check(function, ROWS).calls
    for operand in call.operands:
        assert isinstance(operand.map, Unknown)
        assert operand.bounds == "may"
        assert "BoundedSlice" in operand.notes[0]
    assert (call.outputs[0].covered, call.outputs[0].race) == ("may", "may")


def test_an_index_map_without_a_formula_is_unknown() -> None:
    def loop(i: Any) -> Any:
        return jax.lax.fori_loop(0, i, lambda k, total: total + k, 0), 0

    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))

    def function(x: Any) -> Any:
        call = pl.pallas_call(
            lambda *refs: None,
            grid=(4,),
            in_specs=[pl.BlockSpec((8, 128), loop)],
            out_specs=spec,
            out_shape=x,
        )
        return call(x)

    (call,) = check(function, ROWS).calls
    source, output = call.operands
    assert (source.bounds, call.bytes) == ("may", None)
    assert "`while` in the index map" in source.notes[0] or "`scan`" in source.notes[0]
    assert (output.bounds, output.visits) == ("inside", "once")


INDEX_MAPS = {
    "floor division": lambda i, j: ((i - 2) // 3 + 1, 0),
    "remainder": lambda i, j: ((i - j - 1) % 4, 0),
    "truncated": lambda i, j: (where(i > j, i - j, j - i), 0),
    "clipped": lambda i, j: (clip(2 * i - j, 0, 4), 0),
    "product": lambda i, j: (i * j, 0),
    "triangle": lambda i, j: (i * (i + 1) // 2 + j % (i + 1), 0),
    "swizzle": lambda i, j: (i ^ (j & 3), 0),
    "interleaved bits": lambda i, j: ((i & 1) | ((j & 1) << 1) | (i >> 1 << 2), 0),
    "Gray code": lambda i, j: (j ^ (j >> 1), 0),
}


@pytest.mark.parametrize("index_map", INDEX_MAPS.values(), ids=INDEX_MAPS)
def test_index_maps_of_many_functions(index_map: Any) -> None:
    kernel = Kernel(
        "mapped",
        (5, 6),
        (Operand((320, 128), (8, 128), index_map),),
        (Operand((320, 128), (8, 128), index_map),),
        ("arbitrary", "parallel"),
    )
    check_facts(kernel, report_of(kernel))


def test_index_maps_of_lax() -> None:
    """Truncating division, bits, conditionals and nested functions, against integers."""

    def index_map(i: Any, j: Any) -> Any:
        half = jax.lax.div(i - 3, jnp.int32(2)) + 1
        bits = jnp.bitwise_and(j, 1) + (i >> 1) + jnp.abs(i - j) + jnp.sign(j - i)
        chosen = jax.lax.cond(i > 1, lambda: j, lambda: jnp.int32(0))
        return jnp.maximum(half, bits), chosen

    def function(x: Any) -> Any:
        spec = pl.BlockSpec((8, 128), index_map)
        call = pl.pallas_call(
            lambda *refs: None, grid=(4, 3), in_specs=[spec], out_specs=spec, out_shape=x
        )
        return call(x)

    (call,) = check(function, jax.ShapeDtypeStruct((64, 384), jnp.float32)).calls
    start = call.operands[0].start
    assert isinstance(start, indexing.IndexingMap)
    for i in range(4):
        for j in range(3):
            half = int((i - 3) / 2) + 1
            bits = (j & 1) + (i >> 1) + abs(i - j) + ((j > i) - (j < i))
            assert start.evaluate((i, j)) == (8 * max(half, bits), 128 * (j if i > 1 else 0))


def test_a_grid_without_steps() -> None:
    kernel = Kernel(
        "empty",
        (0,),
        (Operand((32, 128), (8, 128), lambda i: (i, 0)),),
        (Operand((32, 128), (8, 128), lambda i: (i, 0)),),
    )
    report = report_of(kernel)
    given, expected = answers(report), facts(kernel)
    assert {key: given[key] for key in expected} == expected
    assert report.outputs[0].hole == (0, 0)


REFUSED = [
    ((8, 128), (32, 256), False),
    ((8, 100), (32, 256), True),
    ((8, 256), (32, 256), False),
    ((12, 128), (32, 256), True),
    ((32, 128), (32, 256), False),
    ((None, 8, 128), (4, 32, 256), False),
    ((8, None, 128), (32, 4, 256), True),
    ((256,), (1000,), False),
    ((64,), (1000,), True),
    ((1000,), (1000,), False),
    ((3072,), (10_000,), False),
]


@pytest.mark.parametrize(("block", "shape", "is_refused"), REFUSED, ids=str)
def test_blocks_that_mosaic_refuses(
    block: tuple[Any, ...], shape: tuple[int, ...], is_refused: bool
) -> None:
    """The rules are those of Mosaic's lowering, which is asked here."""
    zeros = (0,) * len(shape)
    operand = Operand(shape, block, lambda i: zeros)
    report = report_of(Kernel("sizes", (2,), (operand,), (operand,)))
    assert bool(report.operands[0].refused) == is_refused
    assert bool(report.warnings) == is_refused
    function, avals = Kernel("sizes", (2,), (operand,), (operand,)).function()
    traced = jax.jit(function).trace(*avals)
    if len(shape) == 1:
        return  # JAX asks the device about tiles
    if is_refused:
        with pytest.raises(ValueError, match="Pallas TPU lowering currently requires"):
            traced.lower(lowering_platforms=("tpu",))
    else:
        traced.lower(lowering_platforms=("tpu",))


def test_without_jax_the_error_has_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ImportError, match=r"pallas\.check requires jax.*hlo-indexing\[xla\]"):
        check(lambda x: x)


def test_ranges_of_unknown_names_are_errors() -> None:
    with pytest.raises(ValueError, match="no Pallas call has a scalar operand or a size called"):
        check(copy_rows("rows"), ROWS, ranges={"s": (0, 9)})
    with pytest.raises(ValueError, match="which has no values"):
        check(copy_rows("rows"), ROWS, ranges={"s": (9, 0)})
    with pytest.raises(ValueError, match="unknown TPU"):
        check(copy_rows("rows"), ROWS, chip="v1")
