"""The layout algebra: rows with CuTe's results, laws on all coordinates, and `tensor-layouts`.

Every random result is evaluated on all coordinates, so that a refusal is compared with a result of
`tensor-layouts` by meaning: where only this project refuses, the other result must break the law.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
import tensor_layouts
from hypothesis import example, given
from hypothesis import strategies as st

from indexing.memory import CuteLayout, Swizzle, parse_cute
from simplifier.unknown import Unknown
from tests.memory.cute_layouts import SWIZZLES, layouts, offset
from tests.oracles import fuzz

# fmt: off
COMPOSITIONS = [
    # outer                         inner               result
    ("(6,2):(8,2)",                 "(4,3):(3,1)",      "((2,2),3):((24,2),8)"),
    ("20:2",                        "(5,4):(4,1)",      "(5,4):(8,2)"),
    ("(10,2):(16,4)",               "(5,4):(1,5)",      "(5,(2,2)):(16,(80,4))"),
    ("(3,6,2,8):(7,3,2,1)",         "16:9",             "(2,2,4):(9,2,1)"),
    ("(4,2,8):(3,12,97)",           "3:3",              "3:9"),         # after coalescing
    ("(4,3):(1,10)",                "5:0",              "5:0"),
    ("Sw<2,0,3> o 1 o (8,4):(4,1)", "(4,4):(8,1)",      "Sw<2,0,3> o 1 o (4,4):(1,4)"),
    ("(4,4):(1,100)",               "(2,2):(1,2)",      "(2,2):(1,2)"),  # the sum 3 does not carry
    ("(4,4):(1,100)",               "((2,2),2):((1,2),4)", "((2,2),2):((1,2),100)"),
    ("4:2",                         "8:1",              "8:2"),         # beyond the size
]

REFUSALS = [
    ("(4,6):(1,8)", "composition", "4:3",
     "the stride 3 neither divides the size 4 nor is a multiple of it"),
    ("(4,6):(1,8)", "composition", "6:1",
     "the size 6 is not a multiple of 4, the number of steps of 1 in the mode 4:1"),
    ("(4,4):(1,100)", "composition", "(3,3):(1,1)",
     "coordinates of (3,3):(1,1) add up to 4 and carry into the next mode at 4"),
    ("(4,4):(1,100)", "composition", "2:-1",
     "the stride -1 of 2 is negative"),
    ("(4,4):(1,100)", "composition", "Sw<1,0,1> o 0 o 4:1",
     "has a swizzle"),
    ("(4,4):(1,100)", "composition", "Sw<0,4,3> o 3 o 4:1",
     "has an offset of 3"),
    ("8:1", "logical_divide", "(2,2):(1,3)",
     "the tiles miss elements, because the stride 3 is not a multiple of 2"),
    ("8:1", "logical_divide", "(2,2):(1,1)",
     "two coordinates may have one offset, because the stride 1 of 2:1 is less than 2"),
    ("(4,6):(1,8)", "logical_divide", "6:1",
     "the size 6 is not a multiple of 4"),
    ("(2,2):(1,1)", "logical_product", "2:1",
     "two coordinates may have one offset"),
    ("2:-1", "logical_product", "2:1",
     "the stride -1 of 2 is negative"),
]
# fmt: on


@pytest.mark.parametrize("outer, inner, expected", COMPOSITIONS)
def test_compositions(outer: str, inner: str, expected: str) -> None:
    assert str(parse_cute(outer).composition(parse_cute(inner))) == expected


def test_cute_composes_where_coordinates_carry() -> None:
    outer, inner = parse_cute("(4,4):(1,100)"), parse_cute("(3,3):(1,1)")
    wrong = of_tensor_layouts(lambda: tensor_layouts.compose(theirs(outer), theirs(inner)))
    assert wrong is not None
    assert (wrong[8], outer(inner(8))) == (4, 100)


@pytest.mark.parametrize("layout, operation, tiler, reason", REFUSALS)
def test_refusals_name_the_obstacle(layout: str, operation: str, tiler: str, reason: str) -> None:
    answer = getattr(parse_cute(layout), operation)(parse_cute(tiler))
    assert isinstance(answer, Unknown)
    assert reason in answer.reason
    assert layout in answer.reason


def test_results_of_the_documentation_of_cute() -> None:
    assert str(parse_cute("(2,(1,6)):(1,(6,2))").coalesce()) == "12:1"
    assert str(parse_cute("4:1").complement(24)) == "6:4"
    assert str(parse_cute("6:4").complement(24)) == "4:1"
    assert str(parse_cute("(4,6):(1,4)").complement(24)) == "1:0"
    assert str(parse_cute("4:2").complement(24)) == "(2,3):(1,8)"
    assert str(parse_cute("(2,4):(1,6)").complement(24)) == "3:2"
    assert str(parse_cute("(2,2):(1,6)").complement(24)) == "(3,2):(2,12)"
    matrix = parse_cute("(9,(4,8)):(59,(13,1))")
    divided = matrix.logical_divide([CuteLayout(3, 3), CuteLayout((2, 4), (1, 8))])
    assert str(divided) == "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))"
    copies = parse_cute("(2,5):(5,1)").logical_product([CuteLayout(3, 5), CuteLayout(4, 6)])
    assert str(copies) == "((2,3),(5,4)):((5,10),(1,30))"


def test_tilers_by_mode_and_sizes() -> None:
    layout = parse_cute("(12,(4,8)):(59,(13,1))")
    by_layouts = layout.composition([CuteLayout(3, 4), CuteLayout(8, 2)])
    assert str(by_layouts) == "(3,(2,4)):(236,(26,1))"
    assert str(layout.composition([3, 8])) == "(3,(4,2)):(59,(13,1))"
    assert str(layout.composition((3,))) == "(3,(4,8)):(59,(13,1))"
    assert isinstance(layout.composition([3, 8, 1]), Unknown)
    with pytest.raises(ValueError, match="the size in `tiler` must be positive, not 0"):
        layout.logical_divide(0)
    with pytest.raises(ValueError, match="at least 1 offset, not 0"):
        layout.complement(0)


# ---------------------------------------------------------------- laws


@given(layouts(), layouts(most=256))
@example(CuteLayout((6, 8), (5, 1)), CuteLayout((2, 2), (5, 1)))
@example(CuteLayout((6, 8), (5, 1)), CuteLayout((2, 4, 2, 6), (5, 12, 1, 12)))
@example(CuteLayout((4, 3, 5), (7, 1, 100)), CuteLayout((2, 3, 2), (2, 4, 1)))
def test_a_composition_applies_the_outer_layout(outer: CuteLayout, inner: CuteLayout) -> None:
    places = [offset(outer.coalesce(), place) for place in inner.offsets().tolist()]
    other = of_tensor_layouts(lambda: tensor_layouts.compose(theirs(outer), theirs(inner)))
    composed = outer.composition(inner)
    if isinstance(composed, Unknown):
        assert other != places
    else:
        assert composed.offsets().tolist() == places
        if isinstance(inner.shape, tuple):
            assert [mode.size for mode in composed.modes] == [mode.size for mode in inner.modes]


@given(layouts(), st.integers(1, 99))
def test_a_complement_adds_distinct_offsets(layout: CuteLayout, cotarget: int) -> None:
    other = of_tensor_layouts(lambda: tensor_layouts.complement(theirs(layout), cotarget))
    result = layout.complement(cotarget)
    own = {*layout.offsets().tolist()}
    if isinstance(result, Unknown):
        # as in CuTe: a mode starts before the end of another one; `tensor-layouts` checks less
        modes = sorted((d, s) for s, d in layout.leaves if d and s > 1)
        assert any(stride < d * s for (d, s), (stride, _) in pairwise(modes))
        return
    added = result.offsets().tolist()
    assert added == other
    assert added == sorted(added)
    assert len({x + y for x in own for y in added[:256]}) == len(own) * len(added[:256])


@given(layouts())
def test_coalescing_keeps_all_offsets(layout: CuteLayout) -> None:
    assert layout.coalesce().offsets().tolist() == layout.offsets().tolist()
    assert ours(tensor_layouts.coalesce(theirs(layout))) == layout.coalesce()


@given(layouts())
def test_inverses_undo_the_layout(layout: CuteLayout) -> None:
    places = layout.offsets().tolist()
    right = layout.right_inverse()
    assert isinstance(right, CuteLayout)
    assert [offset(layout, i) for i in right.offsets().tolist()] == list(range(right.size))
    assert right.size >= tensor_layouts.size(tensor_layouts.right_inverse(theirs(layout)))
    left = layout.left_inverse()
    other = ours(tensor_layouts.left_inverse(theirs(layout)))
    if isinstance(left, Unknown):
        assert [offset(other, place) for place in places] != list(range(layout.size))
    else:
        assert [offset(left, place) for place in places] == list(range(layout.size))
        assert left.offsets().tolist() == other.offsets().tolist()


@given(layouts(), layouts(most=64))
def test_a_division_visits_every_element_once(layout: CuteLayout, tiler: CuteLayout) -> None:
    divided = layout.logical_divide(tiler)
    other = of_tensor_layouts(lambda: tensor_layouts.logical_divide(theirs(layout), theirs(tiler)))
    if isinstance(divided, Unknown):
        return
    assert other in (None, divided.offsets().tolist())
    tile, _ = divided.modes
    composed = layout.composition(tiler)
    assert isinstance(composed, CuteLayout)
    assert tile.offsets().tolist() == composed.offsets().tolist()
    if layout.size > 1 and len({*tiler.offsets().tolist()}) == tiler.size:
        distinct = CuteLayout(layout.size, 1).logical_divide(tiler)
        assert isinstance(distinct, CuteLayout)
        assert {*range(layout.size)} <= {*distinct.offsets().tolist()}
        assert len({*distinct.offsets().tolist()}) == distinct.size


@given(layouts(most=64), layouts(most=64))
def test_a_product_repeats_the_layout(layout: CuteLayout, tiler: CuteLayout) -> None:
    product = layout.logical_product(tiler)
    other = of_tensor_layouts(lambda: tensor_layouts.logical_product(theirs(layout), theirs(tiler)))
    if isinstance(product, Unknown):
        return
    assert other in (None, product.offsets().tolist())
    block, copies = product.modes
    assert block == layout
    assert copies.size == tiler.size


@given(layouts(most=128), layouts(most=64), SWIZZLES)
@fuzz(50)
def test_swizzles_stay_outside(layout: CuteLayout, tiler: CuteLayout, swizzle: Swizzle) -> None:
    swizzled = CuteLayout(layout.shape, layout.stride, swizzle)
    if swizzled.swizzle is None:
        return
    foreign = tensor_layouts.compose(
        tensor_layouts.Swizzle(*(swizzle.parameters or ())), theirs(layout)
    )
    assert [foreign(i) for i in range(layout.size)] == swizzled.offsets().tolist()
    for name in ("composition", "logical_divide", "logical_product"):
        result = getattr(swizzled, name)(tiler)
        affine = getattr(layout, name)(tiler)
        if isinstance(affine, Unknown):
            assert isinstance(result, Unknown)
        else:
            assert result.offsets().tolist() == swizzle(affine.offsets()).tolist()
            other = {"composition": "compose"}.get(name, name)
            call = getattr(tensor_layouts, other)
            offsets = of_tensor_layouts(partial(call, foreign, theirs(tiler)))
            assert offsets in (None, result.offsets().tolist())
    for refused in (swizzled.complement(9), swizzled.right_inverse(), swizzled.left_inverse()):
        assert isinstance(refused, Unknown)
        assert "has a swizzle" in refused.reason


# ---------------------------------------------------------------- tensor-layouts


def theirs(layout: CuteLayout) -> Any:
    return tensor_layouts.Layout(layout.shape, layout.stride)


def ours(layout: Any) -> CuteLayout:
    return CuteLayout(layout.shape, layout.stride)


def of_tensor_layouts(operation: Callable[[], Any]) -> list[int] | None:
    """Return the offsets of a result of `tensor-layouts`; `None` if it refuses."""
    try:
        result = operation()
    except tensor_layouts.LayoutError:
        return None
    return [result(i) for i in range(tensor_layouts.size(result))]
