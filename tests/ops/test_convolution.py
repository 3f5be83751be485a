"""Random convolutions: the maps match the accesses of the kernel, and are inverse to each other."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hlo.ops.attributes import WindowDimension
from tests.ops.test_ops import check_random
from tests.oracles import fuzz

Draw = Any
SMALL = st.integers(1, 2)


def crossed(values: list[Any]) -> str:
    return "x".join(map(str, values))


def array(sizes: list[int]) -> str:
    return f"f32[{','.join(map(str, sizes))}]"


@st.composite
def convolutions(draw: Draw, max_rank: int = 2) -> str:
    """Random labels, strides, dilations, paddings (also negative), reversal, and groups."""
    rank = draw(st.integers(0, max_rank))
    window = [
        WindowDimension(
            size=draw(st.integers(1, 3)),
            stride=draw(st.integers(1, 3)),
            low=draw(st.integers(-2, 3)),
            high=draw(st.integers(-2, 3)),
            base_dilation=draw(st.integers(1, 3)),
            window_dilation=draw(st.integers(1, 3)),
            is_reversed=draw(st.booleans()),
        )
        for _ in range(rank)
    ]
    spatial = [draw(st.integers(0, 4)) for _ in window]
    groups, inputs, outputs, batch = draw(st.tuples(st.integers(1, 3), SMALL, SMALL, SMALL))
    by_batch = draw(st.booleans())
    digits = [str(k) for k in range(rank)]
    lhs, rhs, out = (draw(st.permutations([*letters, *digits])) for letters in ("bf", "io", "bf"))
    features = outputs * groups
    sizes = {
        "lhs": {"b": batch * (groups if by_batch else 1), "f": inputs * (groups, 1)[by_batch]},
        "rhs": {"i": inputs, "o": features},
        "out": {"b": batch, "f": features},
    }
    for k, (w, n) in enumerate(zip(window, spatial, strict=True)):
        sizes["lhs"][str(k)], sizes["rhs"][str(k)] = n, w.size
        sizes["out"][str(k)] = w.positions(n)
    shapes = [
        array([sizes[name][letter] for letter in letters])
        for name, letters in (("out", out), ("lhs", lhs), ("rhs", rhs))
    ]
    fields: dict[str, list[Any]] = {
        "size": [w.size for w in window],
        "stride": [w.stride for w in window],
        "pad": [f"{w.low}_{w.high}" for w in window],
        "lhs_dilate": [w.base_dilation for w in window],
        "rhs_dilate": [w.window_dilation for w in window],
        "rhs_reversal": [int(w.is_reversed) for w in window],
    }
    text = " ".join(f"{name}={crossed(values)}" for name, values in fields.items() if values)
    labels = "{}_{}->{}".format(*map("".join, (lhs, rhs, out)))
    kind = "batch" if by_batch else "feature"
    return (
        f"{shapes[0]} convolution({shapes[1]} p, {shapes[2]} q), window={{{text}}}, "
        f"dim_labels={labels}, {kind}_group_count={groups}"
    )


@fuzz(60)
@given(convolutions(), st.integers(0, 1 << 30))
def test_maps_of_random_convolutions_match_their_kernels(text: str, seed: int) -> None:
    check_random(text, seed)
