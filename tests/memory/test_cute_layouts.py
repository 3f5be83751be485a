"""Layouts of CuTe: coordinates, text, swizzles and maps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo import HloError
from indexing import IndexingMap
from indexing.memory import CuteLayout, Swizzle, parse_cute
from simplifier.unknown import Unknown
from tests.memory.cute_layouts import SWIZZLES, coordinates, layouts, offset
from tests.oracles import fuzz

# fmt: off
TEXTS = [
    # text                                      size  cosize  last offset
    ("8:1",                                     8,    8,      7),
    ("(_3,(_2,_4)):(_2,(_1,_6))",               24,   24,     23),
    ("(4,(2,3)):(2,(1,8))",                     24,   24,     23),
    ("Sw<2,0,3> o 0 o (4,(2,3)):(2,(1,8))",     24,   24,     21),
    ("Swizzle<1,0,1>∘5∘2:4",                    2,    5,      9),   # 9 = 0b1001 stays
    ("S<0,4,3> o _7 o (2,2):(-1,2)",            4,    4,      8),
    ("F2[2,1] o 0 o 4:1",                       4,    4,      3),
    ("():()",                                   1,    1,      0),
    ("((2,3)):((3,1))",                         6,    6,      5),
]

ERRORS = [
    # text and message, then the characters of the span
    ("(4,2):(1", "expected `,` or `)` after an entry of a stride, found the end of the text", ""),
    ("(4,2)", "expected `:` after the shape, found the end of the text", ""),
    ("(4,2):4", "shape and stride have different forms: (4,2) and 4", "(4,2):4"),
    ("(4,0):(1,4)", "the sizes of a layout are positive, not (4,0)", "(4,0):(1,4)"),
    ("4:1 x", "unexpected character 'x'", "x"),
    ("4:1 4", "expected the end of the layout, found `4`", "4"),
    ("Sw<2,0> o 0 o 4:1", "a swizzle has three numbers, bits, base and shift: got 2", "Sw<2,0>"),
    ("Sw<3,0,2> o 0 o 4:1",
     "Sw<3,0,2>: the shift 2 is less than the 3 bits, so the "
     "bits read and written overlap", "Sw<3,0,2>"),
    ("Sw<1,0,1> o 0 o 4:-1", "a swizzle needs offsets of at least 0; the lowest is -3", "4:-1"),
    ("F2[1,5] o 0 o 4:1",
     "the matrix of a swizzle is square: with 2 columns, the image 5 is not in [0, 3]", "F2[1,5]"),
    ("(" * 60, "more than 50 nested tuples", "("),
    ("", "expected an integer or `(` in a shape, found the end of the text", ""),
]
# fmt: on


@pytest.mark.parametrize("text, size, cosize, last", TEXTS)
def test_texts_are_layouts(text: str, size: int, cosize: int, last: int) -> None:
    layout = parse_cute(text)
    assert (layout.size, layout.cosize, layout(size - 1)) == (size, cosize, last)
    assert parse_cute(str(layout)) == layout


@pytest.mark.parametrize("text, message, characters", ERRORS)
def test_errors_in_texts_have_a_location(text: str, message: str, characters: str) -> None:
    with pytest.raises(HloError) as error:
        parse_cute(text)
    assert error.value.message == message
    assert error.value.span.text == characters


def test_a_linear_index_is_colexicographic_and_not_row_major() -> None:
    layout = parse_cute("(2,3):(3,1)")  # the row-major matrix of 2 rows and 3 columns
    assert [layout(i) for i in range(6)] == [0, 3, 1, 4, 2, 5]
    assert [layout(i, j) for i in range(2) for j in range(3)] == [0, 1, 2, 3, 4, 5]
    (row_major,) = layout.map(*np.indices((2, 3))) or ()
    assert row_major.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_coordinates_outside_or_of_another_form_are_refused() -> None:
    layout = parse_cute("(4,(2,3)):(2,(1,8))")
    with pytest.raises(IndexError, match=r"the index 6 is outside \[0, 5\]"):
        layout(0, 6)
    with pytest.raises(ValueError, match=r"the coordinate \(0,0,0\) has another form"):
        layout(0, 0, 0)
    with pytest.raises(TypeError, match="`coordinate` must be an integer"):
        layout("0")  # type: ignore[arg-type]


@given(layouts(), SWIZZLES, st.integers(0, 9))
def test_offsets_follow_the_definition(layout: CuteLayout, swizzle: Swizzle, start: int) -> None:
    swizzled = CuteLayout(layout.shape, layout.stride, swizzle, start)
    bits, base, shift = swizzle.parameters or (0, 0, 0)

    def xor(x: int) -> int:
        mask = ((1 << bits) - 1) << base
        return x ^ ((x >> shift) & mask) if shift > 0 else x ^ ((x & mask) << -shift)

    expected = [xor(start + offset(layout, i)) for i in range(layout.size)]
    assert swizzled.offsets().tolist() == expected
    assert [swizzled(i) for i in range(layout.size)] == expected
    assert [swizzled(c) for c in coordinates(layout.shape)] == expected
    assert parse_cute(str(swizzled)) == swizzled


@given(layouts(most=128), SWIZZLES, st.integers(0, 9))
@fuzz(60)
def test_maps_have_the_offsets_of_their_layouts(
    layout: CuteLayout, swizzle: Swizzle, start: int
) -> None:
    swizzled = CuteLayout(layout.shape, layout.stride, swizzle, start)
    m = IndexingMap.from_cute(swizzled)
    sizes = [mode.size for mode in swizzled.modes]
    assert [d.upper + 1 for d in m.dims] == sizes
    points = np.indices(sizes).reshape(len(sizes), -1, order="F")
    (offsets,) = m(*points) or ()
    assert offsets.tolist() == swizzled.offsets().tolist()


# ---------------------------------------------------------------- swizzles


def test_columns_without_effect_are_dropped() -> None:
    assert Swizzle((1, 2, 4)).columns == ()
    assert Swizzle((2, 1, 4)).columns == (2, 1)
    assert Swizzle((1, 3)).columns == (1, 3)
    assert CuteLayout(4, 1, Swizzle((1, 2))).swizzle is None


@pytest.mark.parametrize(
    "columns", [(2, 1), (1, 3, 6), (1, 2, 4, 9, 18), (8, 1, 2, 4), (1, 1), (0,)]
)
def test_matrices_parameters_and_calls_agree(columns: tuple[int, ...]) -> None:
    swizzle = Swizzle(columns)
    assert Swizzle.from_matrix(swizzle.matrix.tolist()) == swizzle
    if swizzle.parameters is not None:
        assert Swizzle.xor(*swizzle.parameters) == swizzle
    addresses = np.arange(1 << len(columns) + 1)
    bits = addresses[:, None] >> np.arange(len(columns)) & 1
    images = (bits @ swizzle.matrix.T % 2) @ (1 << np.arange(len(columns)))
    images += addresses >> len(columns) << len(columns)
    assert swizzle(addresses).tolist() == images.tolist()
    assert [swizzle(int(a)) for a in addresses] == images.tolist()


@given(st.lists(st.integers(0, 31), min_size=5, max_size=5))
def test_an_inverse_exists_exactly_if_images_are_distinct(columns: list[int]) -> None:
    swizzle = Swizzle(tuple(columns))
    images = swizzle(np.arange(32))
    inverse = swizzle.inverse()
    assert isinstance(inverse, Swizzle) == (len(set(images.tolist())) == 32)
    if isinstance(inverse, Unknown):
        address = int(inverse.reason.split()[-3])
        assert address != 0
        assert swizzle(address) == 0
    else:
        assert inverse(images).tolist() == list(range(32))
        assert swizzle.then(inverse) == Swizzle(())


def test_swizzles_of_other_forms_are_refused() -> None:
    with pytest.raises(ValueError, match="must be square"):
        Swizzle.from_matrix([[1, 0]])
    with pytest.raises(ValueError, match="must be 0 and 1"):
        Swizzle.from_matrix([[2]])
    with pytest.raises(ValueError, match="at most 62"):
        Swizzle.xor(1, 60, 4)


def byte_address(word: int, address: int, swizzle: tuple[int, int, int]) -> int:
    """Return the element whose bytes a swizzle of the addresses of bytes moves an element to."""
    bits, base, shift = swizzle
    first = address * word // 8
    moved = first ^ ((first >> shift) & (((1 << bits) - 1) << base))
    return moved * 8 // word


@pytest.mark.parametrize("word", [8, 16, 32, 64, 128])
@pytest.mark.parametrize("form", ["Sw<{}> o smem_ptr[{}b](unset)", "Sw<{}>_smem_ptr[{}b](0x1000)"])
@pytest.mark.parametrize("swizzle", [(3, 4, 3), (2, 4, 3), (1, 4, 3), (2, 5, 2)])
def test_swizzles_of_pointers_move_bytes(word: int, form: str, swizzle: tuple[int, ...]) -> None:
    text = form.format(",".join(map(str, swizzle)), word) + " o (8,64):(64,1)"
    layout = parse_cute(text)
    bits, base, shift = swizzle
    expected = [
        byte_address(word, 64 * i + j, (bits, base, shift)) for j in range(64) for i in range(8)
    ]
    assert [layout(i, j) for j in range(64) for i in range(8)] == expected


def test_elements_of_four_bits_move_with_their_byte() -> None:
    layout = parse_cute("Sw<3,4,3> o smem_ptr[4b](unset) o 4096:1")
    swizzle = Swizzle.xor(3, 4, 3)
    assert [layout(i) for i in range(4096)] == [2 * swizzle(i // 2) + i % 2 for i in range(4096)]


def test_pointers_before_layouts_are_left_out() -> None:
    for pointer in ("gmem_ptr[32b](0x7f00)", "ptr[16b](nullptr)", "smem_ptr[8b](unset)"):
        assert parse_cute(f"{pointer} o (_8,_64):(_64,_1)") == parse_cute("(8,64):(64,1)")


def test_the_offset_may_be_missing_and_swizzles_repeated() -> None:
    assert parse_cute("Sw<2,0,3> o 8:1") == parse_cute("Sw<2,0,3> o 0 o 8:1")
    outer, inner = Swizzle.xor(2, 4, 3), Swizzle.xor(3, 3, 3)
    for text in ("Sw<2,4,3> o Sw<3,3,3> o 1024:1", "Sw<2,4,3> o 0 o Sw<3,3,3> o 0 o 1024:1"):
        layout = parse_cute(text)
        assert [layout(i) for i in range(1024)] == [outer(inner(i)) for i in range(1024)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Sw<1,1,1> o 3 o Sw<1,1,1> o 8:1", "after the offset 3 is not supported"),
        ("Sw<3,4,3> o smem_ptr[6b](unset) o 8:1", "elements of 6 bits"),
        ("Sw<3,4,3> o smem_ptr[16b](0x7f02) o 8:1", "not a multiple of 1024 bytes"),
        ("smem_ptr[16b](unset) o Sw<1,1,1> o 8:1", "after a pointer is not supported"),
    ],
)
def test_what_has_no_layout_of_elements_is_an_error(text: str, message: str) -> None:
    with pytest.raises(HloError, match=message):
        parse_cute(text)
