"""Kernels of sort and topk: order, ties and NaN."""

from __future__ import annotations

import numpy as np

from tests.ops.samples import parse_sample

NAN, INF = np.nan, np.inf


def test_values_are_sorted_by_key_and_ties_keep_their_order() -> None:
    text = (
        "(s32[2,4], f32[2,4]) sort(s32[2,4] p, f32[2,4] q), dimensions={1}, is_stable=true, "
        "to_apply=first_less_than"
    )
    keys = np.array([[3, 1, 3, 1], [0, -5, 7, 0]], np.int32)
    values = np.arange(8, dtype=np.float32).reshape(2, 4)
    sorted_keys, sorted_values = parse_sample(text).run([keys, values])
    assert sorted_keys.tolist() == [[1, 1, 3, 3], [-5, 0, 0, 7]]
    assert sorted_values.tolist() == [[1, 3, 0, 2], [5, 4, 7, 6]]


def test_the_largest_elements_are_first_and_nan_is_the_largest() -> None:
    text = "(f32[5], s32[5]) topk(f32[5] p), k=5, largest=true"
    values, places = parse_sample(text).run([np.array([1, NAN, -INF, 1, 2], np.float32)])
    assert places.tolist() == [1, 4, 0, 3, 2]
    np.testing.assert_array_equal(values, np.array([NAN, 2, 1, 1, -INF], np.float32))


def test_the_smallest_elements_are_first_if_largest_is_false() -> None:
    text = "(s16[2,2], s32[2,2]) topk(s16[2,3] p), k=2, largest=false"
    values, places = parse_sample(text).run([np.array([[5, -3, 5], [0, 0, -1]], np.int16)])
    assert values.tolist() == [[-3, 5], [-1, 0]]
    assert places.tolist() == [[1, 0], [2, 0]]
