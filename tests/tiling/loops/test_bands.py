"""Elements within a band of two indices: counts, boxes, loads, beside listed points."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest

from indexing.maps.indexing_map import Constraint, IndexingMap
from indexing.tiling.loops.axes import Axes, StepAxis
from indexing.tiling.loops.bands import BandedUnion
from indexing.tiling.loops.set_tables import PlacedRead, SetTable, place_read
from indexing.tiling.loops.step_sets import JoinedSets, PointUnion, ProductUnion
from simplifier.atoms import Variable
from simplifier.linear import as_expr


def read_of(rng: np.random.Generator) -> tuple[PlacedRead, tuple[int, ...], Axes]:
    """Return a read within a random band, the sizes of its array, and random steps."""
    sizes = [int(n) for n in rng.integers(2, 12, 3)]
    dims = [Variable(f"d{k}", 0, n - 1) for k, n in enumerate(sizes)]
    results, shape = [as_expr(dims[0])], [sizes[0]]
    for d, n in zip(dims[1:], sizes[1:], strict=True):
        sign, gap = int(rng.choice((-1, 1))), int(rng.integers(0, 3))
        results.append(d * sign + (gap if sign > 0 else n - 1 + gap))
        shape.append(n + 2 * gap)
    sign, factor = int(rng.choice((-1, 1))), int(rng.choice((-1, 1)))
    low, high = sorted(int(n) for n in rng.integers(-12, 14, 2))
    constraints = [Constraint((dims[1] + dims[2] * sign) * factor, low, high)]
    if rng.random() < 0.3:
        constraints.append(Constraint(dims[1] * -1, -int(rng.integers(0, 12)), 0))
    if rng.random() < 0.3:
        constraints.append(Constraint(dims[2] + dims[1] * sign, low, high + 2))
    order = rng.permutation(3)
    m = IndexingMap.of(dims, [results[k] for k in order], constraints=constraints)
    axes = {k: StepAxis(n, int(rng.integers(1, n + 1))) for k, n in enumerate(sizes)}
    return place_read(m, {}), tuple([shape[k] for k in order]), axes


@pytest.mark.parametrize("seed", range(150))
def test_bands_have_the_elements_of_their_points(seed: int) -> None:
    rng = np.random.default_rng(seed)
    read, dims, axes = read_of(rng)
    table = SetTable(dims)
    sets, points = table.union([read], axes), table.listed([read], axes)
    assert isinstance(points, PointUnion)
    assert isinstance(sets, BandedUnion)
    joint = sorted({*sets.axes, *points.axes})
    for own, other in ((sets.count(), points.count()), (sets.boxes(), points.boxes())):
        assert np.all(own.along(joint) == other.along(joint))
    if len(points.pairs):
        assert sets.extents == points.extents
    assert sets.largest() == points.largest()
    assert sets.are_boxes == points.are_boxes
    for along in ((), (2,), (1, 2), (2, 1)):
        assert sets.loaded(along) == points.loaded(along), along


def test_counts_of_a_causal_mask_are_those_of_loops() -> None:
    rows, columns = Variable("d0", 0, 9), Variable("d1", 0, 9)
    m = IndexingMap.of(
        [rows, columns], [rows, columns], constraints=[Constraint(rows - columns, 0, 9)]
    )
    axes = {0: StepAxis(10, 4), 1: StepAxis(10, 3)}
    sets = SetTable((10, 10)).union([place_read(m, {})], axes)
    assert isinstance(sets, BandedUnion)
    expected = np.zeros((3, 4), int)
    for i, j in product(range(10), repeat=2):
        expected[i // 4, j // 3] += i >= j
    assert sets.count().values.tolist() == expected.tolist()


# fmt: off
NO_BANDS = [
    # results, constraint: other sets are listed
    (lambda i, j: (i, j),         lambda i, j: i * 2 - j),           # a steeper diagonal
    (lambda i, j: (i * 2, j),     lambda i, j: i - j),               # a gap between indices
    (lambda i, j: (i + j, j),     lambda i, j: i - j),               # results that share an index
    (lambda i, j: (i, j),         lambda i, j: i // 2 - j),
]
# fmt: on


@pytest.mark.parametrize("results, constraint", NO_BANDS)
def test_near_misses_are_listed(results, constraint) -> None:  # type: ignore[no-untyped-def]
    i, j = Variable("d0", 0, 5), Variable("d1", 0, 5)
    exprs = [as_expr(e) for e in results(as_expr(i), as_expr(j))]
    m = IndexingMap.of(
        [i, j], exprs, constraints=[Constraint(as_expr(constraint(as_expr(i), as_expr(j))), 0, 3)]
    )
    dims = tuple([int(e.bounds[1]) + 1 for e in exprs])
    axes = {0: StepAxis(6, 2), 1: StepAxis(6, 3)}
    sets = SetTable(dims).union([place_read(m, {})], axes)
    assert isinstance(sets, JoinedSets)
    assert [type(part) for _, part in sets.parts] == [PointUnion, ProductUnion]
    seen = {k: set() for k in product(range(3), range(2))}  # type: ignore[var-annotated]
    low, high = 0, 3
    for a, b in product(range(6), repeat=2):
        point = {i: a, j: b}
        if low <= m.constraints[0].expr.value(point) <= high:
            seen[a // 2, b // 3].add(tuple([int(e.value(point)) for e in exprs]))
    assert sets.count().values.sum() == sum(map(len, seen.values()))
    assert prod(sets.shape) == len(seen)


@pytest.mark.parametrize("seed", range(60))
def test_parts_without_common_variables_have_the_elements_of_their_points(seed: int) -> None:
    """Two reads share a part with gaps between its elements, and differ in another dimension."""
    rng = np.random.default_rng(seed)
    a, b, c = [int(n) for n in rng.integers(2, 7, 3)]
    d0, d1, d2 = [Variable(f"d{k}", 0, n - 1) for k, n in enumerate((a, b, c))]
    shared = d0 * (b + int(rng.integers(0, 2))) + d1 * int(rng.integers(1, 3))
    shift = int(rng.integers(0, 3))
    reads = [IndexingMap.of([d0, d1, d2], [shared, d2])]
    if rng.random() < 0.7:
        kept = [Constraint(as_expr(d2), int(rng.integers(0, c)), c)]
        reads.append(IndexingMap.of([d0, d1, d2], [shared, d2 + shift], constraints=kept))
    dims = int(shared.bounds[1]) + 1, c + shift
    axes = {k: StepAxis(n, int(rng.integers(1, n + 1))) for k, n in enumerate((a, b, c))}
    table, placed = SetTable(dims), [place_read(read, {}) for read in reads]
    sets, points = table.union(placed, axes), table.listed(placed, axes)
    assert isinstance(points, PointUnion)
    assert isinstance(sets, JoinedSets | ProductUnion)
    assert np.all(sets.count().along([0, 1, 2]) == points.count().along([0, 1, 2]))
    assert sets.largest() == points.largest()
    if isinstance(sets, JoinedSets):  # boxes of products may have strides
        assert np.all(sets.boxes().along([0, 1, 2]) == points.boxes().along([0, 1, 2]))
        assert sets.extents == points.extents
    for along in ((), (2,), (1, 2), (2, 0)):
        assert sets.loaded(along) == points.loaded(along), along
