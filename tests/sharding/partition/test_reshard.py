"""Every change of a sharding on small meshes, executed on simulated devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hlo
from hlo.shapes.shape import Shape, dtype
from hlo.shardings.mesh import Axis, Mesh
from hlo.shardings.sharding import Sharding
from indexing.execution import run
from indexing.sharding.partition.moves import cheapest_moves
from indexing.sharding.partition.reshard import reshard
from indexing.sharding.partition.writer import LocalBody, LocalProgram
from indexing.sharding.planning.array_shards import assembled_array
from tests.oracles import sampled
from tests.sharding.partition.partitions import split

X, Y, Z = Axis("x"), Axis("y"), Axis("z")
CUBE = Mesh.of({"x": 2, "y": 2, "z": 2})
GRID = Mesh.of({"x": 2, "y": 3})


def shardings(mesh: Mesh, rank: int, axes: int = 3) -> list[Sharding]:
    """All shardings of arrays of a rank that use at most so many axes."""
    names = [Axis(name) for name in mesh.sizes]
    all_of_them: dict[Sharding, None] = {}
    for count in range(min(axes, len(names)) + 1):
        for order in permutations(names, count):
            for places in product(range(rank), repeat=count):
                dims = tuple(tuple(a for a, p in zip(order, places, strict=True) if p == k)
                             for k in range(rank))  # fmt: skip
                all_of_them[Sharding(mesh, dims)] = None
    return list(all_of_them)


def run_all(
    shape: Shape, pairs: Sequence[tuple[Sharding, Sharding]], shards: Sequence[list[Any]]
) -> list[list[NDArray[Any]]]:
    """Return for each pair the resharded shards, executed in one program of many results."""
    mesh = pairs[0][0].mesh
    program = LocalProgram("m", mesh)
    body, values = LocalBody(program, "e"), []
    for number, (source, target) in enumerate(pairs):
        local = Shape(shape.element_type, source.local_dims(shape.dims))
        value = body.add("parameter", local, literal=str(number))
        values.append(reshard(body, value, shape, source, target))
    body.finish(body.tuple_of(values))
    module = program.module("e")
    assert not list(hlo.verify(module))
    inputs = [[each[device] for each in shards] for device in range(mesh.size)]
    results = run(module, inputs, replicas=mesh.size)
    return [[results[d][k] for d in range(mesh.size)] for k in range(len(pairs))]


def batches(pairs: Sequence[Any], size: int = 200) -> Iterator[Sequence[Any]]:
    for start in range(0, len(pairs), size):
        yield pairs[start : start + size]


def check(shape: Shape, pairs: Sequence[tuple[Sharding, Sharding]]) -> None:
    whole = np.arange(1, shape.size + 1).reshape(shape.dims).astype(dtype(shape.element_type))
    for batch in batches(pairs):
        shards = [split(whole, source, padding=-7) for source, _ in batch]
        for pair, actual in zip(batch, run_all(shape, batch, shards), strict=True):
            assembled = assembled_array(actual, pair[1], shape.dims)
            assert np.array_equal(assembled, whole), (shape, *map(str, pair))


@pytest.mark.parametrize("dims", [(8, 8), (5, 7), (1, 3), (0, 4)])
def test_pairs_of_shardings_of_a_matrix(dims: tuple[int, ...]) -> None:
    every = shardings(CUBE, 2)
    check(Shape("s32", dims), sampled(list(product(every, every))[::7], dims))


@pytest.mark.slow
@pytest.mark.parametrize("dims", [(8, 8), (5, 7), (4, 2)])
def test_every_pair_of_shardings_of_a_matrix(dims: tuple[int, ...]) -> None:
    every = shardings(CUBE, 2)
    check(Shape("s32", dims), list(product(every, every)))


@pytest.mark.parametrize("dims", [(4, 6), (7, 5)])
def test_every_pair_of_shardings_on_a_mesh_of_different_sizes(dims: tuple[int, ...]) -> None:
    every = shardings(GRID, 2)
    check(Shape("f32", dims), sampled(product(every, every), dims))


@pytest.mark.parametrize("dims", [(8, 8, 8), (3, 5, 2)])
def test_pairs_of_shardings_of_an_array_of_rank_3(dims: tuple[int, ...]) -> None:
    every = shardings(CUBE, 3)
    pairs = list(product(every, every))
    check(Shape("s32", dims), sampled(pairs[:: max(1, len(pairs) // 300) | 1], dims))


PARTIAL = [
    (((X, "sum"),), np.add),
    (((X, "max"), (Y, "max")), np.maximum),
    (((Z, "min"),), np.minimum),
]


@pytest.mark.parametrize(("partial", "ufunc"), PARTIAL, ids=["sum", "max", "min"])
@pytest.mark.parametrize("dims", [(8, 4), (3, 5)])
def test_partial_results_are_combined(
    dims: tuple[int, ...], partial: tuple[tuple[Axis, str], ...], ufunc: Any
) -> None:
    shape, axes = Shape("s32", dims), [axis for axis, _ in partial]
    every = shardings(CUBE, 2)
    sources = [s for s in every if not set(axes) & {a for dim in s.dims for a in dim}]
    pairs = list(product(sources, every))[::7]
    rng = np.random.default_rng(3)
    terms = rng.integers(-50, 50, (2 ** len(axes), *dims)).astype(np.int32)
    whole = ufunc.reduce(terms, axis=0)
    for batch in batches(pairs):
        shards = [
            [split(terms[CUBE.number(d, axes)], source, padding=9)[d] for d in range(CUBE.size)]
            for source, _ in batch
        ]
        given = [(Sharding(CUBE, source.dims, partial), target) for source, target in batch]
        for pair, actual in zip(given, run_all(shape, given, shards), strict=True):
            assert np.array_equal(assembled_array(actual, pair[1], dims), whole), [*map(str, pair)]


# fmt: off
CHEAPEST = [
    # from, to, size 8x8 of s32 on x, y, z of 2 each: collectives and bytes that a device sends
    (((X,), ()),      ((), ()),      "all-gather 128"),
    (((), ()),        ((X,), ()),    ""),
    (((X,), ()),      ((X, Y), ()),  ""),
    (((X,), ()),      ((), (X,)),    "all-to-all 64"),
    (((X,), ()),      ((Y,), ()),    "collective-permute 128"),
    (((X, Y), ()),    ((Y, X), ()),  "collective-permute 64"),
    (((X, Y), ()),    ((Y,), ()),    "collective-permute 64 all-gather 64"),
    (((X, Y), ()),    ((X,), (Y,)),  "all-to-all 32"),
    (((X,), (Y,)),    ((Y,), (X,)),  "collective-permute 64"),
    (((X,), (Y,)),    ((), ()),      "all-gather 64 all-gather 128"),
    (((X, Y, Z), ()), ((), ()),      "all-gather 224"),
    (((X,), ()),      ((), (Y,)),    "all-gather 64"),
]
# fmt: on


@pytest.mark.parametrize(("source", "target", "expected"), CHEAPEST)
def test_the_moves_send_the_fewest_bytes(source: Any, target: Any, expected: str) -> None:
    moves = cheapest_moves(Shape("s32", (8, 8)), Sharding(CUBE, source), Sharding(CUBE, target))
    sent = [f"{move.kind} {move.bytes_sent}" for move in moves if move.kind != "slice"]
    assert " ".join(sent) == expected


def test_partial_sums_that_are_split_are_reduce_scattered() -> None:
    source, target = Sharding(CUBE, ((), ()), ((X, "sum"),)), Sharding(CUBE, ((X,), ()))
    moves = cheapest_moves(Shape("s32", (8, 8)), source, target)
    assert [(move.kind, move.bytes_sent) for move in moves] == [("reduce-scatter", 128)]
    with pytest.raises(ValueError, match="cannot make"):
        cheapest_moves(Shape("s32", (8, 8)), target, source)
