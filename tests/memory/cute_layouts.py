"""Random layouts of CuTe, and their offsets by definition."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from hypothesis import strategies as st

from indexing.memory import CuteLayout, Swizzle
from indexing.memory.layouts.cute import IntTuple

SIZES = st.sampled_from([1, 2, 2, 3, 4, 4, 5, 6, 8])
STRIDES = st.sampled_from([0, 1, 1, 2, 2, 3, 4, 4, 5, 6, 8, 12, 16, 24, 32])


@st.composite
def shapes(draw: st.DrawFn, depth: int = 2) -> IntTuple:
    """Draw a size, or a nested tuple of sizes."""
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(SIZES)
    return tuple(draw(st.lists(shapes(depth - 1), min_size=1, max_size=3)))


@st.composite
def layouts(draw: st.DrawFn, most: int = 512) -> CuteLayout:
    """Draw an affine layout: random strides, or those of a permuted compact layout."""
    layout = CuteLayout(shape := draw(shapes()), _like(shape, iter([0] * 99)))
    sizes = [leaf.size for leaf in layout.leaves]
    if draw(st.booleans()):
        strides = [draw(STRIDES) for _ in sizes]
    else:
        extent, strides = draw(st.sampled_from([1, 1, 2, 3])), [0] * len(sizes)
        for k in draw(st.permutations(range(len(sizes)))):
            strides[k] = extent
            extent *= sizes[k] * draw(st.sampled_from([1, 1, 1, 2, 3]))
    layout = CuteLayout(shape, _like(shape, iter(strides)))
    return layout if layout.size <= most else CuteLayout(4, 1)


SWIZZLES = st.builds(
    lambda bits, base, gap, sign: Swizzle.xor(bits, base, sign * (bits + gap)),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 2),
    st.sampled_from([1, -1]),
)


def offset(layout: CuteLayout, index: int) -> int:
    """Return the affine offset of a colexicographic index; the last mode has no upper limit."""
    total = 0
    leaves = layout.leaves
    for k, (size, stride) in enumerate(leaves):
        digit = index if k == len(leaves) - 1 else index % size
        index //= size
        total += digit * stride
    return total


def coordinates(shape: IntTuple) -> Iterator[IntTuple]:
    """Yield all coordinates of a shape in colexicographic order."""
    if isinstance(shape, int):
        yield from range(shape)
    else:
        for reverse in product(*[list(coordinates(size)) for size in reversed(shape)]):
            yield reverse[::-1]


def _like(shape: IntTuple, strides: Iterator[int]) -> IntTuple:
    if isinstance(shape, int):
        return next(strides)
    return tuple([_like(size, strides) for size in shape])
