"""Shapes and layouts: every printed form, and invalid forms."""
# ruff: noqa: E501 - a row of a table is a line

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo.shapes.layout import COMBINE, Layout
from hlo.shapes.shape import (
    ELEMENT_TYPES,
    UNBOUNDED,
    AnyShape,
    BufferShape,
    OpaqueShape,
    Shape,
    TupleShape,
    dtype,
    leaves,
    parse_shape,
)
from hlo.text.source import HloError

F32 = Shape("f32", (2, 3))

# fmt: off
FORMS = [
    # text                                     shape
    ("f32[]",                                  Shape("f32", ())),
    ("f32[2,3]",                               F32),
    ("f32[2,3]{0,1}",                          Shape("f32", (2, 3), Layout((0, 1)))),
    ("f32[]{:T(256)}",                         Shape("f32", (), Layout((), tiles=((256,),)))),
    ("f32[2,3]{1,0:T(8,128)(2,1)}",            Shape("f32", (2, 3), Layout((1, 0), ((8, 128), (2, 1))))),
    ("f32[2,3]{1,0:T(*,8)}",                   Shape("f32", (2, 3), Layout((1, 0), ((COMBINE, 8),)))),
    ("f32[2,3]{1,0:D(D,C+~)}",                 Shape("f32", (2, 3), Layout((1, 0), dim_level_types=("D", "C+~")))),
    ("f32[2,3]{1,0:L(512)}",                   Shape("f32", (2, 3), Layout((1, 0), tail_padding=512))),
    ("f32[2,3]{1,0:#(u32)*(u64)}",             Shape("f32", (2, 3), Layout((1, 0), index_type="u32", pointer_type="u64"))),
    ("s4[2,3]{1,0:E(4)S(5)}",                  Shape("s4", (2, 3), Layout((1, 0), element_bits=4, memory_space=5))),
    ("f32[2,300]{1,0:SC(1:200)(0:1)}",         Shape("f32", (2, 300), Layout((1, 0), splits=((1, (200,)), (0, (1,)))))),
    ("f32[9]{0:D(C)P((s32[9]{0},f32[9]{0}))M(8)}", Shape("f32", (9,), Layout((0,), dim_level_types=("C",), physical_shape="(s32[9]{0},f32[9]{0})", metadata_prefix_bytes=8))),
    ("f32[<=2,3]",                             Shape("f32", (2, 3), dynamic=(True, False))),
    ("f32[?,<=3]",                             Shape("f32", (UNBOUNDED, 3), dynamic=(True, True))),
    ("pred[0]",                                Shape("pred", (0,))),
    ("()",                                     TupleShape(())),
    ("((), ())",                               TupleShape((TupleShape(()), TupleShape(())))),
    ("(f32[2,3], (token[]))",                  TupleShape((F32, TupleShape((OpaqueShape("token"),))))),
    ("opaque[]",                               OpaqueShape("opaque")),
    ("b(f32[2,3])",                            BufferShape(F32)),
    ("(b(f32[2,3]), u32[])",                   TupleShape((BufferShape(F32), Shape("u32", ())))),
]
LOOSE = [
    # text                                                        the same, as printed
    (" f32[ 2 , /* rows */ 3 ] { 0 , 1 } ",                       "f32[2,3]{0,1}"),
    ("(f32[2], /*index=1*/s32[], // to the end\n pred[])",        "(f32[2], s32[], pred[])"),
    ("f32[2,3]{1,0:S(5)T(8,128)}",                                "f32[2,3]{1,0:T(8,128)S(5)}"),
    ("f32[<=?]",                                                  "f32[?]"),
    ("f32[2,3]{1/*a*/,/*2*/0:T(8/*b*/,128/*64*/)D(D/*C*/,D)}",    "f32[2,3]{1,0:D(D,D)T(8,128)}"),
]
WRONG = [
    # text                          column  code       message
    ("",                            1,      "syntax",  "expected a shape such as f32[2,3], found the end of the text"),
    ("2",                           1,      "syntax",  "expected a shape such as f32[2,3], found `2`"),
    ("f33[2]",                      1,      "shape",   "unknown element type `f33`"),
    ("f32[2",                       6,      "syntax",  "expected a size, or `]` after the last one, found the end of the text"),
    ("f32[2,-3]",                   7,      "syntax",  "expected a size, or `]` after the last one, found `-3`"),
    ("f32[2] x",                    8,      "syntax",  "expected the end of the shape, found `x`"),
    ("f32[4294967296,4294967296]",  1,      "shape",   "the number of elements overflows 64 bits"),
    ("f32[2," + "7" * 5000 + "]",   7,      "number",  "integer overflows 64 bits"),
    ("f32[2,3]{1,1}",               9,      "layout",  "minor_to_major {1,1} is not a permutation of 0..1"),
    ("f32[2,3]{0}",                 1,      "shape",   "the layout has rank 1, but the array has rank 2"),
    ("f32[]{}",                     6,      "layout",  "a scalar must not have a layout"),
    ("f32[2]{0",                    9,      "syntax",  "expected `,` or `}` in a layout such as {1,0}, found the end of the text"),
    ("f32[2]{0:Q(1)}",              10,     "syntax",  "expected a layout suffix such as T(8,128) or `}`, found `Q`"),
    ("f32[2]{0:T(x)}",              12,     "syntax",  "expected tile sizes such as 8,128, found `x`"),
    ("f32[2]{0:S(1)S(2)}",          14,     "syntax",  "duplicate layout suffix S(..)"),
    ("token[3]",                    1,      "shape",   "token has no dimensions"),
    ("(f32[2]",                     8,      "syntax",  "expected `,` or `)` in a tuple, found the end of the text"),
    ("(f32[2] s32[])",              9,      "syntax",  "expected `,` or `)` in a tuple, found `s32`"),
    ("b(f32[2], f32[2])",           9,      "syntax",  "expected `)` after the shape of a buffer, found `,`"),
    ("(b((f32[2], s32[])))",        4,      "shape",   "a buffer contains an array, not (f32[2], s32[])"),
    ("b(token[])",                  3,      "shape",   "a buffer contains an array, not token[]"),
    ("f32[2] /* open",              8,      "syntax",  "unterminated comment: `/*` without `*/`"),
    ("(" * 10000,                   101,    "nesting", "brackets are nested more than 100 deep"),
]
COMPATIBLE = [
    # first               second               compatible
    ("f32[2,3]{0,1}",     "f32[2,3]{1,0}",     True),
    ("f32[2,3]",          "f32[<=2,3]",        True),
    ("f32[?,3]",          "f32[7,3]",          True),
    ("f32[2,3]",          "f32[3,2]",          False),
    ("f32[2,3]",          "f32[2,3,1]",        False),
    ("f32[2,3]",          "bf16[2,3]",         False),
    ("(f32[2]{0})",       "(f32[2])",          True),
    ("(f32[2])",          "(f32[2], f32[2])",  False),
    ("(f32[2])",          "f32[2]",            False),
    ("token[]",           "token[]",           True),
    ("token[]",           "opaque[]",          False),
    ("b(f32[2]{0})",      "b(f32[2])",         True),
    ("b(f32[2])",         "f32[2]",            False),
]
# fmt: on


@pytest.mark.parametrize("text, shape", FORMS)
def test_a_shape_is_parsed_and_printed(text: str, shape: AnyShape) -> None:
    assert parse_shape(text) == shape
    assert str(shape) == text


@pytest.mark.parametrize("text, printed", LOOSE)
def test_white_space_comments_and_order_of_suffixes_are_ignored(text: str, printed: str) -> None:
    assert str(parse_shape(text)) == printed


@pytest.mark.parametrize("text, column, code, message", WRONG)
def test_an_invalid_shape_is_an_error(text: str, column: int, code: str, message: str) -> None:
    with pytest.raises(HloError) as caught:
        parse_shape(text)
    error = caught.value
    assert (error.message, error.code, error.span.column) == (message, code, column)


@pytest.mark.parametrize("first, second, compatible", COMPATIBLE)
def test_compatible_shapes_have_equal_types_and_dimensions(
    first: str, second: str, compatible: bool
) -> None:
    assert parse_shape(first).compatible(parse_shape(second)) is compatible
    assert parse_shape(second).compatible(parse_shape(first)) is compatible


@pytest.mark.parametrize(
    "arguments, fault",
    [
        (("f33", (2,)), "not an element type"),
        (("f32", (-2,)), "negative"),
        (("f32", (2, 3), Layout((0,))), "the layout has rank 1"),
        (("f32", (2, 3), None, (True,)), "1 dynamic flags"),
        (("f32", (2**32, 2**31)), "64 bits"),
    ],
)
def test_an_invalid_shape_cannot_be_constructed(
    arguments: tuple[str, tuple[int, ...]], fault: str
) -> None:
    with pytest.raises(ValueError, match=fault):
        Shape(*arguments)


def test_equal_texts_give_one_object() -> None:
    assert parse_shape("f32[7,11]{1,0}") is parse_shape("f32[7,11]{1,0}")


def test_size_counts_elements_and_requires_bounds() -> None:
    assert (F32.size, Shape("f32", ()).size, Shape("f32", (5, 0)).size) == (6, 1, 0)
    with pytest.raises(ValueError, match="unbounded"):
        _ = Shape("f32", (UNBOUNDED,)).size


def test_leaves_have_paths() -> None:
    shape = parse_shape("(f32[2], (s32[], (), b(u8[3])), token[])")
    paths = [path for path, _ in leaves(shape)]
    assert paths == [(0,), (1, 0), (1, 2), (2,)]
    assert leaves(F32) == (((), F32),)


@pytest.mark.parametrize("name", ELEMENT_TYPES)
def test_every_element_type_has_a_numpy_type(name: str) -> None:
    element_type = ELEMENT_TYPES[name]
    width = max(8, element_type.bits)  # NumPy keeps small types in a byte each
    assert dtype(name).itemsize * 8 == width


SIZES = st.one_of(st.integers(0, 40), st.just(UNBOUNDED))


@st.composite
def layouts(draw: st.DrawFn, rank: int) -> Layout:
    """Draw a layout of rank `rank` with any of the suffixes."""
    numbers = st.integers(1, 300)
    tile = st.lists(st.one_of(numbers, st.just(COMBINE)), min_size=1, max_size=3).map(tuple)
    types = st.sampled_from(["", "u32", "s16"])
    levels = st.sampled_from(["D", "C", "S+", "H~", "C+~"])
    level_types = tuple(draw(st.lists(levels, max_size=rank)))
    forms = ["", "f32[3]{0:S(1)}", "(s32[2]{0}, f32[])"]
    physical = st.sampled_from(forms if level_types else forms[:1])
    splits = st.tuples(numbers, st.lists(numbers, min_size=1, max_size=2).map(tuple))
    return Layout(
        minor_to_major=tuple(draw(st.permutations(range(rank)))),
        tiles=tuple(draw(st.lists(tile, max_size=2))),
        dim_level_types=level_types,
        tail_padding=draw(numbers),
        index_type=draw(types),
        pointer_type=draw(types),
        element_bits=draw(st.integers(0, 32)),
        memory_space=draw(st.integers(0, 9)),
        splits=tuple(draw(st.lists(splits, max_size=2))),
        physical_shape=draw(physical),
        metadata_prefix_bytes=draw(st.integers(0, 64)),
    )


@st.composite
def arrays(draw: st.DrawFn) -> Shape:
    """Draw an array of rank 0 to 4, of any type, with or without a layout."""
    dims = tuple(draw(st.lists(SIZES, max_size=4)))
    dynamic = tuple(draw(st.booleans()) for _ in dims)
    layout = draw(st.one_of(st.none(), layouts(len(dims))))
    return Shape(draw(st.sampled_from(list(ELEMENT_TYPES))), dims, layout, dynamic)


shapes = st.recursive(
    st.one_of(arrays(), st.sampled_from([OpaqueShape("token"), OpaqueShape("opaque")])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda elements: TupleShape(tuple(elements))),
        arrays().map(BufferShape),
    ),
    max_leaves=12,
)


@given(shapes)
def test_a_printed_shape_parses_to_itself(shape: AnyShape) -> None:
    again = parse_shape(str(shape))
    assert again == shape
    assert hash(again) == hash(shape)
    assert again.compatible(shape)
