"""Tables of integers: the maps that describe them give each element once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from indexing.dataflow.tables import MAX_PIECES, table_maps

SMALL = arrays.array_shapes(min_dims=0, max_dims=3, max_side=6)


def check(table: NDArray[np.int64] | NDArray[np.object_]) -> int | None:
    """Check the maps of a table at each index; return their number."""
    maps = table_maps(table)
    if maps is None:
        return None
    for index in np.ndindex(*table.shape):
        values = [value for m in maps if (value := m.evaluate(index)) is not None]
        assert values == [(int(table[index]),)], (table, index)
    return len(maps)


@given(arrays.arrays(np.int64, SMALL, elements=st.integers(0, 1)))
def test_tables_of_predicates(table: NDArray[np.int64]) -> None:
    check(table)


@given(arrays.arrays(np.int64, SMALL, elements=st.integers(-3, 9)))
def test_tables_of_integers(table: NDArray[np.int64]) -> None:
    check(table)


LIMITS = st.sampled_from([-(1 << 63), (1 << 63) - 1, (1 << 64) - 1, -1, 0, 5])


@given(arrays.arrays(object, SMALL, elements=LIMITS))
def test_tables_of_the_limits_of_wide_types(table: NDArray[np.object_]) -> None:
    check(table)


@given(SMALL.filter(len), st.permutations([0, 1, 2]), st.integers(1, 3), st.integers(0, 5))
def test_permuted_tables(sizes: tuple[int, ...], order: list[int], step: int, shift: int) -> None:
    axes = [k for k in order if k < len(sizes)]
    table = np.arange(np.prod(sizes)).reshape(sizes).transpose(axes)[::step]
    check(np.roll(table, shift, axis=0))
    check(table.reshape(-1))


@pytest.mark.parametrize(
    ("table", "pieces"),
    [
        (np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1).reshape(-1), 1),
        (np.tile([0, 1, 2], 5), 1),
        (np.repeat([4, 3, 2], 5), 1),
        (np.tri(9, dtype=np.int64), 3),
        (np.kron(np.eye(3, dtype=np.int64), np.ones((4, 4), np.int64)), 7),
        (np.triu(np.tri(12, 12, 2, dtype=np.int64), -3), 7),
    ],
)
def test_patterns_need_few_maps(table: NDArray[np.int64], pieces: int) -> None:
    assert check(table) == pieces


def test_a_table_without_pattern_is_not_described() -> None:
    rng = np.random.default_rng(0)
    assert table_maps(rng.permutation(4 * MAX_PIECES)) is None
    assert table_maps(rng.integers(0, 2, (40, 40))) is None
