"""Random convolutions: the maps match the accesses of the kernel, and are inverse to each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
import indexing
from hlo.ops.attributes import WindowDimension
from hlo.shapes.shape import Shape, dtype
from indexing.execution import run, xla
from indexing.ops.windows import element_under, only_element
from simplifier.atoms import Variable
from tests.ops.samples import Pair, parse_sample, related_pairs
from tests.ops.test_ops import check_random
from tests.oracles import fuzz

Draw = Any
SMALL = st.integers(1, 2)


def cross(values: list[Any]) -> str:
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
    text = " ".join(f"{name}={cross(values)}" for name, values in fields.items() if values)
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


WINDOWS = [
    WindowDimension(size, stride, low, high, base_dilation, window_dilation)
    for size in range(1, 5)
    for stride in range(1, 6)
    for base_dilation in range(1, 5)
    for window_dilation in range(1, 4)
    for low, high in ((0, 0), (1, 1), (3, 3), (-1, 2), (2, -1))
]


def elements_at(w: WindowDimension, size: int) -> list[list[int]]:
    """The window elements that are on an array element, for each position."""
    return [
        [s for s in range(w.size) if element_under(w, i, s, size) is not None]
        for i in range(w.positions(size))
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_only_element_of_a_window_is_that_of_an_enumeration(size: int) -> None:
    solved = 0
    for w in WINDOWS:
        each = elements_at(w, size)
        position = Variable("d0", 0, max(0, len(each) - 1))
        only = only_element(w, position, size)
        if any(len(elements) > 1 for elements in each):
            assert only is None, w
        elif only is not None:
            solved += any(each)
            for i, elements in enumerate(each):
                value = only.value({position: i})
                is_read = 0 <= value < w.size and element_under(w, i, value, size) is not None
                assert ([value] if is_read else []) == elements, (w, i)
    assert solved > 100


@pytest.mark.parametrize("count", [2, 3, 4, 8])
@pytest.mark.parametrize("exact", [False, True])
def test_a_batch_dimension_in_a_window_is_one_of_a_dot(count: int, exact: bool) -> None:
    """XLA:TPU writes the batch of a dot as a dimension of the window, in two forms."""
    shapes = f"f32[{count},3,5] {{}}(f32[{count},3,2] p, f32[{count},2,5] q), "
    dot = parse_sample(
        shapes.format("dot") + "lhs_batch_dims={0}, rhs_batch_dims={0}, "
        "lhs_contracting_dims={2}, rhs_contracting_dims={1}"
    ).instruction
    less = count - 1
    for window in (
        f"stride={less} lhs_dilate={count}",
        f"stride={count} pad={less}_{less} lhs_dilate={less} rhs_reversal=1",
    ):
        labels = f"window={{size={count} {window}}}, dim_labels=0bf_0io->0bf"
        convolution = parse_sample(shapes.format("convolution") + labels).instruction
        maps = indexing.output_to_input(convolution, exact=exact).maps
        assert maps == indexing.output_to_input(dot, exact=exact).maps
        for operand in (0, 1):
            maps = indexing.input_to_output(convolution, operand, exact=exact).maps
            assert maps == indexing.input_to_output(dot, operand, exact=exact).maps


# fmt: off
OVER_PADDING = [
    # operands                        window                                    products
    ("f32[1,2,5] f32[2,2,3]",         "size=3 pad=1_1",                         "multiplied"),
    ("bf16[1,2,5] bf16[2,2,3]",       "size=3 pad=2_0",                         "multiplied"),
    ("f16[2,3,9] f16[5,3,4]",         "size=4 stride=3 pad=0_3",                "multiplied"),
    ("f8e4m3fn[1,2,5] f8e4m3fn[2,2,3]", "size=3 pad=1_1",                       "multiplied"),
    ("f32[1,4,5,6] f32[4,2,3,3]",     "size=3x3 stride=2x1 pad=1_1x1_1",        "multiplied"),
    ("f32[1,4,5,6] f32[4,1,3,2]",     "size=3x2 pad=2_2x0_1 rhs_dilate=2x1",    "multiplied"),
    ("f32[1,2,5,6,4] f32[2,2,3,3,3]", "size=3x3x3 pad=1_1x1_1x1_0",             "multiplied"),
    ("f32[1,2,9] f32[2,2,3]",         "size=3 pad=1_-1",                        "multiplied"),
    ("f32[1,2,5] f32[2,2,3]",         "size=3 pad=3_0",                         "multiplied"),
    ("f32[1,2,4] f32[3,2,4]",         "size=4 stride=2 pad=1_0",                "multiplied"),
    ("f32[1,2,3] f32[3,2,3]",         "size=3 stride=2 pad=1_0",                "multiplied"),
    ("f32[2,1,2] f32[2,1,2]",         "size=2 stride=2 pad=0_1 rhs_dilate=2",   "multiplied"),
    ("f32[1,1,4] f32[2,1,3]",         "size=3 stride=2 pad=1_2 lhs_dilate=2",   "multiplied"),
    ("f32[1,1,5] f32[2,1,3]",         "size=3 pad=1_2 lhs_dilate=2 rhs_dilate=2", "multiplied"),
    ("f32[1,1,3,3,3] f32[1,1,2,2,2]", "size=2x2x2 lhs_dilate=2x2x1",            "multiplied"),
    ("f16[1,1,5] f16[1,1,3]",         "size=3 pad=1_1",                         "multiplied"),
    ("f32[1,2,5] f32[2,2,3]",         "size=3 pad=2_2 lhs_dilate=2",            "omitted"),
    ("f32[1,2,3,3] f32[2,2,2,3]",     "size=2x3 pad=1_1x0_0 lhs_dilate=1x2",    "omitted"),
    ("f32[1,1,5] f32[1,1,2]",         "size=2 pad=1_1",                         "omitted"),
    ("f16[1,1,5] f16[1,1,2]",         "size=2 pad=1_1",                         "omitted"),
    ("f32[1,2,4] f32[1,2,3]",         "size=3 stride=2 pad=0_2",                "omitted"),
    ("f64[1,2,5] f64[2,2,3]",         "size=3 pad=1_1",                         "omitted"),
    ("f32[1,2,5] f32[2,2,3]",         "size=3 pad=1_1 rhs_reversal=1",          "omitted"),
    ("f32[1,1,2,2,2,3] f32[2,1,1,1,2,2]", "size=1x1x2x2 pad=0_0x0_0x0_0x1_1",   "omitted"),
    ("f32[1,2,2] f32[2,2,3]",         "size=3 pad=1_1",                         "unknown"),
    ("f32[1,2,1,6] f32[2,2,3,3]",     "size=3x3 pad=1_1x1_1",                   "unknown"),
]
# fmt: on


@pytest.mark.skipif(not xla.is_available(), reason="needs jax, the extra [xla]")
@pytest.mark.parametrize("operands, attributes, products", OVER_PADDING)
def test_kernel_elements_over_padding_are_read_where_xla_multiplies_them(
    operands: str, attributes: str, products: str
) -> None:
    left, right = operands.split()
    spatial = "0123"[: left.count(",") - 1]
    labels = f"bf{spatial}_oi{spatial}->bf{spatial}"
    inputs, per_group = [int(each.split(",")[1]) for each in (left, right)]
    rest = f"window={{{attributes}}}, dim_labels={labels}, "
    rest += f"feature_group_count={inputs // per_group}"
    sample = parse_sample(f"f32[] convolution({left} p, {right} q), {rest}")
    kind = left.partition("[")[0]
    shapes = [shape for shape in sample.shapes if isinstance(shape, Shape)]
    out = Shape(kind, sample.op.infer_shape(*shapes).dims)
    root = hlo.parse(f"""ENTRY e {{ p = {left} parameter(0)  q = {right} parameter(1)
      ROOT r = {out} convolution(p, q), {rest} }}""").entry.root
    assert hlo.verify(root.module) == []
    (read,) = indexing.output_to_input(root).maps[1]
    (exact,) = indexing.output_to_input(root, exact=True).maps[1]
    assert read.grade == ("exact" if products == "multiplied" else "may")
    assert exact.grade == ("may" if products == "unknown" else "exact")
    arrays = [np.ones(shape.dims, dtype(shape.element_type)) for shape in shapes]
    by_kernel: set[Pair] = set()
    by_xla: set[Pair] = set()
    for tap in np.ndindex(*shapes[1].dims):
        kernel = arrays[1].copy()
        kernel[tap] = np.nan
        for pairs, (result,) in (
            (by_kernel, run(root.module, [arrays[0], kernel])),
            (by_xla, xla.run(root.module, [arrays[0], kernel])),
        ):
            is_nan = np.isnan(np.asarray(result).astype(np.float64))
            pairs |= {(tuple(map(int, i)), tap) for i in np.argwhere(is_nan)}
    assert by_kernel | by_xla <= related_pairs(exact, []) <= related_pairs(read, [])
    if products != "unknown":
        assert by_xla == by_kernel == related_pairs(exact, [])
