"""Attribute kinds: parsing, printing, and errors at the invalid characters."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

from typing import Any

import pytest

from hlo.ops import attributes as a
from hlo.ops.attributes import Kind, Padding, SliceDimension, WindowDimension
from hlo.text.source import HloError

# fmt: off
ROWS: list[tuple[Kind[Any], str, Any, str]] = [
    # kind             text                          value                                printed
    (a.integer,        "-7",                         -7,                                  "-7"),
    (a.integer,        " /* c */ 12 ",               12,                                  "12"),
    (a.boolean,        "true",                       True,                                "true"),
    (a.boolean,        "false",                      False,                               "false"),
    (a.number,         "1e-3",                       0.001,                               "0.001"),
    (a.string,         r'"a \"b\" {"',               'a "b" {',                           r'"a \"b\" {"'),
    (a.word,           "dot_bf16_bf16_f32",          "dot_bf16_bf16_f32",                 "dot_bf16_bf16_f32"),
    (a.int_list,       "{}",                         (),                                  "{}"),
    (a.int_list,       "{ 2, 0,1 }",                 (2, 0, 1),                           "{2,0,1}"),
    (a.int_list,       "{1,\n /*i=1*/ -1}",          (1, -1),                             "{1,-1}"),
    (a.word_list,      "{highest,default}",          ("highest", "default"),              "{highest,default}"),
    (a.slices,         "{[0:2], [1:9:3]}",           (SliceDimension(0, 2), SliceDimension(1, 9, 3)), "{[0:2], [1:9:3]}"),
    (a.slices,         "{[0:2:1]}",                  (SliceDimension(0, 2),),    "{[0:2]}"),
    (a.padding_config, "1_4_1x-2_8",                 (Padding(1, 4, 1), Padding(-2, 8)),  "1_4_1x-2_8"),
    (a.padding_config, "0_-1",                       (Padding(0, -1),),                   "0_-1"),
    (a.padding_config, "",                           (),                                  ""),
    (a.window,         "{}",                         (),                                  "{}"),
    (a.window,         "{size=3}",                   (WindowDimension(3),),               "{size=3}"),
    (a.window,         "{size=3x2 stride=2x1 pad=1_2x-2_0 lhs_dilate=2x1 rhs_dilate=1x3 rhs_reversal=0x1}",
     (WindowDimension(3, 2, 1, 2, 2, 1), WindowDimension(2, 1, -2, 0, 1, 3, True)),
     "{size=3x2 stride=2x1 pad=1_2x-2_0 lhs_dilate=2x1 rhs_dilate=1x3 rhs_reversal=0x1}"),
    (a.computation,    "%add.1",                     "add.1",                             "add.1"),
    (a.computation,    "{ ROOT r = f32[] c() }",     "{ ROOT r = f32[] c() }",            "{ ROOT r = f32[] c() }"),
    (a.computation_list, "{%f, g}",                  ("f", "g"),                          "{f, g}"),
    (a.enum("EQ", "NE"), "NE",                       "NE",                                "NE"),
    (a.at_least(a.integer, 2), "2",                  2,                                   "2"),
    (a.at_least(a.integer, -1, 1), "-1",             -1,                                  "-1"),
    (a.at_least(a.int_list, 2), "{1,2}",             (1, 2),                              "{1,2}"),
    (a.element_type(), "pred",                       "pred",                              "pred"),
    (a.element_type("floating", "s8"), "s8",         "s8",                                "s8"),
    (a.raw,            "{ {0}: (1, {}) } ",          "{ {0}: (1, {}) }",                  "{ {0}: (1, {}) }"),
]

FAULTS: list[tuple[Kind[Any], str, str, str]] = [
    # kind             text                          points at      label
    (a.integer,        "x",                          "x",           "expected an integer"),
    (a.integer,        "1 2",                        "2",           "expected the end of the value"),
    (a.integer,        "9" * 5000,                   "9" * 5000,    "5000 digits"),
    (a.boolean,        "maybe",                      "maybe",       "expected true or false"),
    (a.int_list,       "{2,zero}",                   "zero",        "expected an integer"),
    (a.int_list,       "{2 0}",                      "0",           "expected `,` or `}`"),
    (a.int_list,       "{2,}",                       "}",           "expected an integer"),
    (a.int_list,       "2,0",                        "2",           "expected `{`"),
    (a.slices,         "{[0-2]}",                    "-2",          "expected `:`"),
    (a.padding_config, "1_2x3",                      "3",           "expected low_high, such as 2_0"),
    (a.window,         "{size=3 stide=2}",           "stide",       "unknown window field"),
    (a.window,         "{size=3 size=2}",            "size",        "duplicate window field `size`"),
    (a.window,         "{size=3x2 stride=2}",        "stride=2",    "`stride` has 1 value, `size` has 2"),
    (a.window,         "{stride=2}",                 "stride=2",    "`size` is missing"),
    (a.at_least(a.integer, 2), "1",                  "1",           "the value is 1"),
    (a.at_least(a.number, 0, 1), "1.5",              "1.5",         "the value is 1.5"),
    (a.at_least(a.int_list, 2), "{3}",               "{3}",         "the list has 1"),
    (a.at_least(a.int_list, 0, 1), "{3,4}",          "{3,4}",       "the list has 2"),
    (a.element_type("floating"), "s8",               "s8",          "`s8` is not floating"),
    (a.element_type(), "float",                      "float",       "`float` is not an element type"),
    (a.enum("EQ", "NE"), "eq",                       "eq",          "`eq` is not one of them"),
    (a.string,         "'x'",                        "'",           "expected a string in double quotes"),
]
# fmt: on


@pytest.mark.parametrize("kind, text, value, printed", ROWS)
def test_a_value_is_parsed_and_printed(
    kind: Kind[Any], text: str, value: Any, printed: str
) -> None:
    assert kind.parse(text) == value
    assert kind.print(value) == printed
    assert kind.parse(printed) == value


@pytest.mark.parametrize("kind, text, at, label", FAULTS)
def test_an_error_points_at_the_invalid_characters(
    kind: Kind[Any], text: str, at: str, label: str
) -> None:
    with pytest.raises(HloError) as caught:
        kind.parse(text, "`x` of some op")
    assert (caught.value.span.text, caught.value.label) == (at, label)


def test_every_kind_parses_its_example() -> None:
    kinds = [value for value in vars(a).values() if isinstance(value, Kind)]
    assert len(kinds) >= 14
    for kind in kinds:
        kind.parse(kind.example)


@pytest.mark.parametrize(
    "cut",
    [SliceDimension(0, 0), SliceDimension(0, 7), SliceDimension(1, 8, 3), SliceDimension(2, 8, 3)],
)
def test_a_slice_counts_its_elements(cut: SliceDimension) -> None:
    assert cut.count == len(range(9)[cut.start : cut.limit : cut.stride])


@pytest.mark.parametrize("size", [0, 1, 2, 7])
@pytest.mark.parametrize("window", [WindowDimension(3, 2, 1, 2, 2), WindowDimension(1, 3, -1, -1)])
def test_window_positions_are_inside_the_padded_array(window: WindowDimension, size: int) -> None:
    padded = window.low + a.dilated_size(size, window.base_dilation) + window.high
    extent = a.dilated_size(window.size, window.window_dilation)
    starts = [s for s in range(0, max(padded, 0), window.stride) if s + extent <= padded]
    assert window.positions(size) == len(starts)
