"""Random linear layouts."""

from __future__ import annotations

from hypothesis import strategies as st

from indexing.memory import LinearLayout


@st.composite
def linear_layouts(draw: st.DrawFn) -> LinearLayout:
    """Draw bases of up to three inputs and two outputs."""
    count = draw(st.integers(1, 2))
    sizes = [1 << draw(st.integers(0, 4)) for _ in range(count)]
    image = st.tuples(*[st.integers(0, size - 1) for size in sizes])
    names = ["register", "lane", "warp"][: draw(st.integers(1, 3))]
    bases = {name: draw(st.lists(image, max_size=3)) for name in names}
    return LinearLayout.from_bases(bases, {f"dim{k}": size for k, size in enumerate(sizes)})
