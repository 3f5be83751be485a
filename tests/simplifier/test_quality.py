"""Quality of simplification: bounds on divisions from mathematics, not from current results.

Chains of maps come from `benchmarks.problems`.  Every result is checked against NumPy at many
points.  Each test derives the allowed number of floor divisions and mods.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from math import prod
from operator import methodcaller
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.chains import Chain, Step, Tensor, box, position, strides, tiled_shapes
from benchmarks.peers import ORDERS, Isl, holds_at, step_by_step
from benchmarks.problems import NAMED, random_chain, random_launch, random_layout
from indexing import IndexingMap
from simplifier import Expr
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from tests.checks import checks
from tests.oracles import boxes, fuzz, holds, points, sums, tree_expr

RANDOM = {
    "random chains": [random_chain(seed) for seed in range(1000, 1120)],
    "random chains with windows": [random_chain(seed, True) for seed in range(1000, 1040)],
    "random launches": [random_launch(seed) for seed in range(1000, 1040)],
    "random layouts": [random_layout(seed) for seed in range(1000, 1040)],
}

_DIVISION = re.compile(r"\b(?:floordiv|mod)\b")


def divisions(exprs: Iterable[Expr]) -> int:
    """Number of floor divisions and mods in the texts of `exprs`."""
    return sum(len(_DIVISION.findall(str(expr))) for expr in exprs)


def by_family(
    families: Mapping[str, Iterable[Chain]],
) -> Callable[[Callable[[Chain], None]], Callable[[str], None]]:
    """Run one test for each family of problems; a failure names the problems that fail."""

    def decorate(test: Callable[[Chain], None]) -> Callable[[str], None]:
        @pytest.mark.parametrize("family", families)
        def run(family: str) -> None:
            with checks() as check:
                for problem in families[family]:
                    with check(problem.name):
                        test(problem)

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate


def only(
    chosen: Callable[[Chain], object], families: Mapping[str, Iterable[Chain]]
) -> dict[str, list[Chain]]:
    """Problems for which `chosen` is true."""
    chosen_problems = {
        name: [p for p in problems if chosen(p)] for name, problems in families.items()
    }
    return {name: problems for name, problems in chosen_problems.items() if problems}


# ---------------------------------------------------------------- meaning


@by_family({**NAMED, **RANDOM})
def test_every_order_of_composition_has_the_values_that_numpy_computes(problem: Chain) -> None:
    points = problem.points(2000)
    for order, compose in ORDERS.items():
        assert holds_at(compose(problem), problem, points), order


# ---------------------------------------------------------------- no division may remain


def is_known_to_be(m: IndexingMap, problem: Chain) -> bool:
    assert problem.expected
    return list(m.results) == [d.as_expr() for d in problem.expected(m.dims)]


@by_family(only(lambda problem: problem.expected, NAMED))
def test_a_chain_that_restores_the_tensor_is_the_identity(problem: Chain) -> None:
    for order, compose in ORDERS.items():
        assert is_known_to_be(compose(problem), problem), order


def round_trip(seed: int) -> Chain:
    """Reshapes, transposes and reverses, then their inverses in reverse order."""
    random = Random(f"there and back {seed}")
    factors = random.choice([[2, 2, 3, 5], [7, 3, 2], [2] * 6, [5, 7, 11], [4, 9, 25]])
    tensor = Tensor(regroup(random, factors))
    undo: list[Callable[[Tensor], Tensor]] = []
    for _ in range(random.randint(1, 3)):
        shape, dims = tensor.shape, range(len(tensor.shape))
        match random.choice(["reshape", "transpose", "reverse"]):
            case "reshape":
                undo.append(methodcaller("reshape", *shape))
                tensor = tensor.reshape(*regroup(random, factors))
            case "transpose":
                order = random.sample(dims, len(dims))
                back = [order.index(k) for k in dims]
                undo.append(methodcaller("transpose", *back))
                tensor = tensor.transpose(*order)
            case _:
                reversed_dims = [k for k in dims if random.random() < 0.5]
                undo.append(methodcaller("reverse", *reversed_dims))
                tensor = tensor.reverse(*reversed_dims)
    for action in reversed(undo):
        tensor = action(tensor)
    return tensor.chain(f"round trip {seed}", lambda d: [*d])


def regroup(random: Random, factors: list[int]) -> tuple[int, ...]:
    shape = [1] * random.randint(1, 4)
    for factor in factors:
        shape[random.randrange(len(shape))] *= factor
    return tuple(shape)


@by_family({"round trip": [round_trip(seed) for seed in range(150)]})
def test_a_round_trip_is_the_identity(problem: Chain) -> None:
    m = step_by_step(problem)
    dims = [d.as_expr() for d in m.dims]
    assert list(m.results) == dims, problem
    assert not m.constraints


def affine(points: list[np.ndarray], values: np.ndarray) -> bool:
    """Return True if one affine function has these values at all points."""
    rows = np.stack([*points, np.ones_like(points[0])], axis=1)
    best, *_ = np.linalg.lstsq(rows.astype(float), values.astype(float), rcond=None)
    return bool(np.array_equal(rows @ np.round(best).astype(np.int64), values))


MAX_ENUMERATED = 20_000  # points: larger boxes are not enumerated


@by_family(only(lambda p: prod(high + 1 for _, high in p.bounds) <= MAX_ENUMERATED, RANDOM))
def test_a_result_that_is_affine_on_the_domain_has_no_division(problem: Chain) -> None:
    """Enumeration shows which results are affine on the domain."""
    points = problem.points(MAX_ENUMERATED)
    if not points[0].size:
        return
    m = step_by_step(problem)
    for result, values in zip(m.results, problem.values(points), strict=True):
        if affine(points, values):
            assert not divisions([result]), f"{result} is affine in {m}"


@given(st.data(), boxes())
@fuzz(400)
def test_one_constraint_makes_bounds_exact_and_decides_every_result_with_one_value(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    """Floors and sums that have one value on the domain are constants, and dimensions its box."""
    expr, *results = [tree_expr(data.draw(sums(len(box))), box) for _ in range(4)]
    if data.draw(st.booleans()):
        expr %= data.draw(st.integers(2, 8))
    lower, upper = expr.bounds
    start = data.draw(st.integers(lower, upper))
    constraint = Constraint(expr, start, start + data.draw(st.integers(0, 3)))
    large = st.integers(80, 150)  # beyond twice each coefficient: no multiple is factored out
    results += [result // data.draw(large) for result in results]
    m = IndexingMap(box, (), (), tuple(results), (constraint,))
    inside = [point for point in points(box) if holds([constraint], point)]
    if not inside:
        return
    simple = m.simplify()
    assert [d.bounds for d in simple.dims] == [
        (min(values), max(values)) for values in ([p[v] for p in inside] for v in box)
    ]
    for before, now in zip(results, simple.results, strict=True):
        assert (len({before.value(point) for point in inside}) > 1) == bool(now.parts), before


# -------------------------------------------------- no more than the unaligned ends require


def unaligned_ends(new: tuple[int, ...], old: tuple[int, ...]) -> int:
    """Number of ends of `old`'s dimensions that are not ends of a dimension of `new`.

    Dimension k of `old` is ``(p floordiv s) mod n`` of the position p.  If s is a stride of `new`,
    p is a multiple of s and something smaller than s, so that the floordiv leaves no trace; if n·s
    is, the mod drops whole dimensions.  Else each of them takes one division.
    """
    cuts = {*strides(new), prod(new)}
    ends = [(s, s * n) for n, s in zip(old, strides(old), strict=True) if n > 1]
    return sum(end not in cuts for both in ends for end in both)


# fmt: off
CUTS = [
    # index of            read from           divisions
    ((6, 35),             (6, 5, 7),          2),         # d1 floordiv 7, d1 mod 7
    ((6, 5, 7),           (6, 35),            0),
    ((6, 35),             (2, 3, 35),         2),
    ((6, 35),             (2, 15, 7),         4),         # 105 and 7 are no strides of (6, 35)
    ((4, 1, 9),           (2, 2, 3, 3),       4),
    ((210,),              (2, 3, 5, 7),       6),
    ((2, 3, 5, 7),        (210,),             0),
    ((5, 7),              (7, 5),             2),
]
# fmt: on


@pytest.mark.parametrize("new, old, count", CUTS)
def test_the_number_of_unaligned_ends(
    new: tuple[int, ...], old: tuple[int, ...], count: int
) -> None:
    assert unaligned_ends(new, old) == count


def regroupings() -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    random = Random("regroupings")
    pools = [[2, 3, 5, 7], [2, 2, 2, 2, 2], [3, 4, 5], [11, 13, 2], [6, 10, 15]]
    factors = [random.choice(pools) for _ in range(60)]
    return [
        (regroup(random, random.sample(f, len(f))), regroup(random, random.sample(f, len(f))))
        for f in factors
    ]


@pytest.mark.parametrize("new, old", [*[row[:2] for row in CUTS], *regroupings()])
def test_a_reshape_needs_a_division_for_each_unaligned_end(
    new: tuple[int, ...], old: tuple[int, ...]
) -> None:
    for mod_first in (False, True):
        m = step_by_step(Tensor(old).reshape(*new, mod_first=mod_first).chain("reshape"))
        assert divisions(m.results) <= unaligned_ends(new, old), str(m)


@pytest.mark.parametrize("seed", range(30))
def test_a_grid_without_padding_is_a_reshape(seed: int) -> None:
    """(iteration, block, thread, element) in row-major order is an index of the same tensor."""
    random = Random(f"grid {seed}")
    threads, unroll, loops = (
        random.choice([32, 96]),
        random.choice([1, 2, 4]),
        random.choice([1, 2]),
    )
    blocks = random.choice([4, 6, 15])
    factors = [*[2] * 5, threads // 32, unroll, loops, blocks]
    shape = regroup(random, factors)
    m = step_by_step(Tensor(shape).launch(threads, unroll, loops).chain("grid"))
    assert not m.constraints
    assert divisions(m.results) <= unaligned_ends((loops, blocks, threads, unroll), shape)


@pytest.mark.parametrize(
    "shape, tiles",
    [
        ((16, 256), ((8, 128),)),
        ((16, 384), ((8, 128), (2, 1))),
        ((3, 24, 256), ((8, 128), (4, 1))),
        ((16, 16), ((8, 8), (2, 2))),
        ((9, 10), ((3, 5),)),
        ((8, 128), ((8, 128),)),
    ],
)
def test_a_position_in_tiles_takes_one_division_for_each_tiled_dimension(
    shape: tuple[int, ...], tiles: tuple[tuple[int, ...], ...]
) -> None:
    """``(i floordiv t)·a + (i mod t)·b`` is ``(i floordiv t)·(a − t·b) + i·b``."""
    memory = Tensor((prod(tiled_shapes(shape, tiles)[-1]),))
    address = step_by_step(memory.from_memory(shape, *tiles).chain("address"))
    cut = [(size, t) for size, t in zip(shape[::-1], tiles[0][::-1], strict=False) if size > t]
    again = [t for tile in tiles[1:] for t in tile if t > 1]
    assert divisions(address.results) <= len(cut) + len(again), str(address)


# ---------------------------------------------------------------- no more than isl


@by_family(NAMED)
def test_named_problems_keep_no_more_divisions_than_isl_finds(problem: Chain) -> None:
    peer = Isl()
    assert divisions(step_by_step(problem).results) <= peer.nodes(peer.solve(problem))


# ---------------------------------------------------------------- order


@by_family({family: NAMED[family] for family in NAMED if family != "reshapes"})
def test_the_order_of_composition_does_not_change_results(problem: Chain) -> None:
    texts = {order: str(compose(problem).results) for order, compose in ORDERS.items()}
    assert len(set(texts.values())) == 1, texts


def test_the_order_of_composition_seldom_changes_unaligned_reshapes() -> None:
    """At least 95 of 100 results do not change, as `docs/simplifier_quality.md` states."""
    every = [*NAMED["reshapes"], *chain.from_iterable(RANDOM.values())]
    differ = [p.name for p in every if len({f(p).results for f in ORDERS.values()}) > 1]
    assert len(differ) * 20 <= len(every), differ


def test_a_formula_of_the_position_is_the_position() -> None:
    """The oracle agrees with NumPy's reshape, transpose and reverse."""
    data = np.arange(210).reshape(6, 5, 7)
    problem = Tensor((6, 5, 7)).transpose(2, 0, 1).reverse(0).reshape(10, 21).chain("oracle")
    rows, columns = (axis.reshape(10, 21) for axis in np.indices((10, 21)))
    values = problem.values([rows, columns])
    assert np.array_equal(data[tuple(values)], data.transpose(2, 0, 1)[::-1].reshape(10, 21))
    step = Step(box((6, 5, 7)), lambda d, _: [position(d, (6, 5, 7))])
    flat = Chain("flat", (step,)).values(list(np.indices((6, 5, 7))))
    assert np.array_equal(flat[0], data)
