"""Vectorised kernels against reference loops over single elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import hlo
from hlo.ops.attributes import WindowDimension
from indexing.execution import run
from indexing.ops import reductions, sliding, sort
from tests.execution.arrays import s32
from tests.oracles import fuzz

Array: TypeAlias = NDArray[Any]

SMALL = st.integers(-5, 5)


def window_dimensions() -> st.SearchStrategy[WindowDimension]:
    return st.builds(
        WindowDimension,
        size=st.integers(1, 4),
        stride=st.integers(1, 3),
        low=st.integers(-3, 3),
        high=st.integers(-3, 3),
        base_dilation=st.integers(1, 3),
        window_dilation=st.integers(1, 3),
    )


def element_at(w: WindowDimension, position: int, element: int, size: int) -> int | None:
    """Return the element under a window's element, from the dilated and padded row."""
    row: list[int | None] = []
    for k in range(size):
        row += [k, *[None] * (w.base_dilation - 1 if k < size - 1 else 0)]
    padding: list[int | None] = [None]
    row = padding * w.low + row if w.low > 0 else row[-w.low :]
    row = row + padding * w.high if w.high >= 0 else row[: w.high or None]
    return row[position * w.stride + element * w.window_dilation]


@fuzz(300)
@given(window_dimensions(), st.integers(0, 7))
def test_overlap_pairs_positions_with_the_elements_under_the_window(
    w: WindowDimension, size: int
) -> None:
    for element in range(w.size):
        expected = {
            (i, at)
            for i in range(w.positions(size))
            if (at := element_at(w, i, element, size)) is not None
        }
        overlap = sliding.overlap([w], [element], [size])
        if overlap is None:
            assert not expected
            continue
        (positions,), (elements,) = overlap
        pairs = list(zip(range(w.positions(size))[positions], range(size)[elements], strict=True))
        assert set(pairs) == expected
        assert len(pairs) == len(expected)


def total_of(values: list[int], ufunc: Callable[..., Any], init: int) -> int:
    total = init
    for value in values:
        total = int(ufunc(total, value))
    return total


@fuzz(200)
@given(
    st.lists(window_dimensions(), min_size=1, max_size=2),
    st.integers(0, 5),
    st.integers(1, 5),
    st.sampled_from([np.add, np.multiply, np.maximum, np.minimum, np.bitwise_xor]),
    SMALL,
    st.randoms(use_true_random=False),
)
def test_window_totals_reduce_the_elements_under_the_window(
    window: list[WindowDimension], rows: int, columns: int, ufunc: np.ufunc, init: int, random: Any
) -> None:
    sizes = (rows, columns)[: len(window)]
    values = [random.randint(-3, 3) for _ in range(int(np.prod(sizes)))]
    array = np.array(values, np.int64).reshape(sizes)
    actual = sliding.window_totals(ufunc, np.array(init), array, window)
    counts = [w.positions(n) for w, n in zip(window, sizes, strict=True)]
    assert actual.shape == tuple(counts)
    for i in product(*map(range, counts)):
        under = []
        for s in product(*[range(w.size) for w in window]):
            each = zip(window, i, s, sizes, strict=True)
            at = tuple([element_at(w, p, e, n) for w, p, e, n in each])
            if None not in at:
                under.append(int(array[at]))
        assert actual[i] == total_of(under, ufunc, init)


@fuzz(200)
@given(
    st.lists(window_dimensions(), min_size=0, max_size=2),
    st.integers(1, 4),
    st.integers(1, 4),
    st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(1, 2), st.integers(1, 3)),
    st.randoms(use_true_random=False),
)
def test_correlation_sums_products(
    window: list[WindowDimension],
    rows: int,
    columns: int,
    counts: tuple[int, int, int, int],
    random: Any,
) -> None:
    groups, batch, inputs, outputs = counts
    sizes = (rows, columns)[: len(window)]
    draw = np.random.default_rng(random.randint(0, 9999))
    array = draw.integers(-4, 5, (groups, batch, *sizes, inputs))
    taps = draw.integers(-4, 5, (groups, *[w.size for w in window], inputs, outputs))
    if draw.integers(2):  # holes and padding are no products with them
        array, taps = array.astype(float), np.where(taps == 4, np.nan, taps)
    actual = sliding.cross_correlation(array, taps, window)
    for index in np.ndindex(*actual.shape):
        g, b, *i, o = index
        total = 0
        for s in product(*[range(w.size) for w in window]):
            each = zip(window, i, s, sizes, strict=True)
            at = tuple([element_at(w, p, e, n) for w, p, e, n in each])
            if None not in at:
                total += sum(array[(g, b, *at, k)] * taps[(g, *s, k, o)] for k in range(inputs))
        assert np.array_equal(actual[index], total, equal_nan=True)


# ---------------------------------------------------------------- sorting


@fuzz(150)
@given(st.lists(st.tuples(SMALL, SMALL), max_size=20), st.booleans(), st.booleans())
def test_a_sort_is_stable_for_any_comparator(
    pairs: list[tuple[int, int]], is_descending: bool, by_both: bool
) -> None:
    def before(a: Any, b: Any, c: Any, d: Any) -> Any:
        left, right = (a * 10 + c, b * 10 + d) if by_both else (a, b)
        return left > right if is_descending else left < right

    def compare(one: tuple[int, int], other: tuple[int, int]) -> int:
        if before(one[0], other[0], one[1], other[1]):
            return -1
        return 1 if before(other[0], one[0], other[1], one[1]) else 0

    columns = [np.array([pair[k] for pair in pairs], np.int64) for k in (0, 1)]
    order = sort.merge_sorted(columns, before)
    by_pair: Any = cmp_to_key(compare)
    expected = sorted(range(len(pairs)), key=lambda k: by_pair(pairs[k]))
    assert order.tolist() == expected


def test_columns_are_sorted_independently() -> None:
    array = np.random.default_rng(7).integers(0, 9, (13, 5))
    order = sort.merge_sorted([array], np.less)
    np.testing.assert_array_equal(order, np.argsort(array, 0, kind="stable"))


# ---------------------------------------------------------------- reductions


PRIME = 1_000_003


@pytest.mark.parametrize("count", [0, 1, 2, 63, 64, 65, 66, 127, 130])
def test_reducing_rows_in_pairs_preserves_their_order(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Concatenation of decimal digits modulo a prime: associative, but not commutative."""
    digits = np.random.default_rng(count).integers(0, 10, count)
    monkeypatch.setattr(reductions, "MAX_SEQUENTIAL", 64)

    def to_apply(a: Array, s: Array, b: Array, t: Array) -> Any:
        return (a * t + b) % PRIME, s * t % PRIME

    actual = reductions.reduce_rows(
        to_apply, [np.array(7), np.array(10)], [digits, np.full(count, 10)]
    )
    assert int(actual[0]) == int("7" + "".join(map(str, digits))) % PRIME
    assert int(actual[1]) == pow(10, count + 1, PRIME)


@fuzz(100)
@given(
    st.lists(st.tuples(st.integers(0, 3), SMALL), max_size=12),
    st.sampled_from([np.add, np.subtract, "second"]),
)
def test_reduce_at_applies_updates_in_order(updates: list[tuple[int, int]], how: Any) -> None:
    to_apply: Any = how
    if how == "second":

        def to_apply(old: Any, new: Any) -> Any:
            return new

        to_apply.returns_second = True
    expected = [10, 20, 30, 40]
    for position, value in updates:
        expected[position] = int(to_apply(expected[position], value))
    out = np.array([10, 20, 30, 40])
    positions = np.array([position for position, _ in updates], np.int64)
    values = np.array([value for _, value in updates], np.int64)
    reductions.reduce_at(to_apply, [out], positions, [values])
    assert out.tolist() == expected


def test_reduce_at_updates_several_arrays_together() -> None:
    def swap(a: Array, b: Array, x: Array, y: Array) -> Any:
        return b + x, a + y

    out = [np.array([1, 2]), np.array([10, 20])]
    reductions.reduce_at(
        swap, out, np.array([0, 0, 1]), [np.array([100, 200, 300]), np.array([5, 6, 7])]
    )
    assert [array.tolist() for array in out] == [[206, 320], [116, 9]]


# ---------------------------------------------------------------- gather and scatter

SUBTRACT = "sub { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] subtract(a, b) }"


def test_overlapping_windows_are_scattered_in_order() -> None:
    """The update computation does not commute; one window is out of bounds and is skipped."""
    text = f"""{SUBTRACT} ENTRY e {{
      x = s32[6] parameter(0)  i = s32[4,1] parameter(1)  u = s32[4,3] parameter(2)
      ROOT r = s32[6] scatter(x, i, u), update_window_dims={{1}}, inserted_window_dims={{}},
        scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=sub }}"""
    x = np.arange(10, 16, dtype=np.int32)
    starts = s32([[0], [1], [4], [3]])
    updates = np.arange(12, dtype=np.int32).reshape(4, 3)
    expected = x.copy()
    for (start,), values in zip(starts, updates, strict=True):
        if start + 3 <= 6:
            for k, value in enumerate(values):
                expected[start + k] -= value
    (actual,) = run(hlo.parse(text), [x, starts, updates])
    np.testing.assert_array_equal(actual, expected)


def gather(x: Array, starts: Array, sizes: Sequence[int]) -> Array:
    """Return slices at clamped start indices, one for each vector of the last dimension."""
    out = np.empty((*starts.shape[:-1], *sizes), x.dtype)
    for index in np.ndindex(*starts.shape[:-1]):
        at = [
            min(max(int(s), 0), n - w)
            for s, n, w in zip(starts[index], x.shape, sizes, strict=True)
        ]
        out[index] = x[tuple([slice(a, a + w) for a, w in zip(at, sizes, strict=True)])]
    return out


@pytest.mark.parametrize("kind", ["s32", "u8", "s64"])
def test_a_gather_returns_a_batch_of_clamped_slices(kind: str) -> None:
    text = f"""ENTRY e {{ x = f32[7,5] parameter(0)  i = {kind}[2,3,2] parameter(1)
      ROOT r = f32[2,3,4,2] gather(x, i), offset_dims={{2,3}}, collapsed_slice_dims={{}},
        start_index_map={{0,1}}, index_vector_dim=2, slice_sizes={{4,2}} }}"""
    random = np.random.default_rng(3)
    dtype = {"s32": np.int32, "u8": np.uint8, "s64": np.int64}[kind]
    starts = random.integers(0 if kind == "u8" else -3, 9, (2, 3, 2)).astype(dtype)
    x = random.standard_normal((7, 5)).astype(np.float32)
    (actual,) = run(hlo.parse(text), [x, starts])
    np.testing.assert_array_equal(actual, gather(x, starts, (4, 2)))


# ---------------------------------------------------------------- comparators

TIES = """l = pred[] compare(a, b), direction=LT  g = pred[] compare(b, a), direction=LT
  t = pred[] compare(l, g), direction=EQ  s = pred[] compare(c, d), direction=LT"""

SORTS = [
    # a comparator of (a, c) and (b, d), True if it compares keys
    ("ROOT r = pred[] compare(a, b), direction=LT", True),
    ("ROOT r = pred[] compare(a, b), direction=GT", True),
    ("ROOT r = pred[] compare(b, a), direction=GT", True),
    ("ROOT r = pred[] compare(d, c), direction=LT", True),
    ("x = s32[] negate(a) y = s32[] negate(b) ROOT r = pred[] compare(x, y), direction=LT", True),
    ("x = s32[] negate(a) y = s32[] abs(b) ROOT r = pred[] compare(x, y), direction=LT", False),
    ("x = s32[] add(a, c) y = s32[] add(b, d) ROOT r = pred[] compare(x, y), direction=LT", False),
    ("ROOT r = pred[] compare(a, d), direction=LT", False),
    ("k = s32[] constant(2) l = s32[] constant(3) x = s32[] remainder(a, k) "
     "y = s32[] remainder(b, k) ROOT r = pred[] compare(x, y), direction=LT", True),
    ("k = s32[] constant(2) l = s32[] constant(3) x = s32[] remainder(a, k) "
     "y = s32[] remainder(b, l) ROOT r = pred[] compare(x, y), direction=LT", False),
    (f"{TIES} ROOT r = pred[] select(t, s, l)", True),
    (f"{TIES.replace('compare(b, a), direction=LT', 'compare(a, b), direction=GT')} "
     "ROOT r = pred[] select(t, s, l)", True),
    (f"{TIES.replace('(l, g)', '(g, l)').replace('LT', 'GT')} "
     "ROOT r = pred[] select(t, s, l)", True),
    (f"{TIES.replace('compare(c, d)', 'compare(d, c)')} ROOT r = pred[] select(t, s, l)", True),
    (f"{TIES.replace('compare(b, a)', 'compare(a, b)')} ROOT r = pred[] select(t, s, l)", False),
    (f"{TIES} ROOT r = pred[] select(t, l, s)", False),
    (f"{TIES} ROOT r = pred[] select(s, t, l)", False),
]  # fmt: skip


@pytest.mark.parametrize(("body", "compares_keys"), SORTS)
def test_sorting_by_keys_agrees_with_comparing_pairs(body: str, compares_keys: bool) -> None:
    from indexing.execution.interpreter import Function
    from indexing.execution.machine import Machine

    module = hlo.parse(f"""f {{ a = s32[] parameter(0) b = s32[] parameter(1)
      c = s32[] parameter(2) d = s32[] parameter(3) {body} }}
      ENTRY e {{ p = s32[30,2] parameter(0) q = s32[30,2] parameter(1)
        ROOT r = (s32[30,2], s32[30,2]) sort(p, q), dimensions={{0}}, to_apply=f }}""")
    function = Function(Machine(), module.computations["f"])
    assert (function.sort_key is not None) is compares_keys
    if not compares_keys and "add(" not in body:
        return  # the comparator is not an order
    random = np.random.default_rng(2)
    arrays = [random.integers(-4, 5, (30, 2)).astype(np.int32) for _ in range(2)]
    order = sort.merge_sorted(arrays, function)
    for actual, array in zip(run(module, arrays), arrays, strict=True):
        np.testing.assert_array_equal(actual, np.take_along_axis(array, order, 0))


@pytest.mark.parametrize(
    ("kind", "order", "compares_keys"),
    [("s32", "", True), ("f32", "", False), ("f32", ", type=TOTALORDER", True)],
)
def test_ties_of_numbers_that_may_be_nan_are_compared_in_pairs(
    kind: str, order: str, compares_keys: bool
) -> None:
    """The comparison of a NaN is false both ways, so its ties are no order of all elements."""
    from indexing.execution.interpreter import Function
    from indexing.execution.machine import Machine

    body = TIES.replace("(a, b), direction=LT", f"(a, b), direction=LT{order}")
    body = body.replace("(b, a), direction=LT", f"(b, a), direction=LT{order}")
    module = hlo.parse(f"""ENTRY f {{ a = {kind}[] parameter(0)  b = {kind}[] parameter(1)
      c = s32[] parameter(2)  d = s32[] parameter(3)
      {body}  ROOT r = pred[] select(t, s, l) }}""")
    function = Function(Machine(), module.entry)
    assert (function.sort_key is not None) is compares_keys
