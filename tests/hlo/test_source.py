"""Spans in sources, and errors that show them."""

import pickle

import pytest

from hlo.text.source import WIDTH, HloError, Source

TEXT = "first\n  second\tline\r\n\nlast"

# fmt: off
PLACES = [
    # offset  line  column
    (0,       1,    1),
    (5,       1,    6),   # the line break belongs to its line
    (6,       2,    1),
    (8,       2,    3),
    (21,      3,    1),   # an empty line
    (22,      4,    1),
    (26,      4,    5),   # behind the last character
]
# fmt: on


@pytest.mark.parametrize("offset, line, column", PLACES)
def test_lines_and_columns_count_from_one(offset: int, line: int, column: int) -> None:
    span = Source(TEXT, "f.hlo").span(offset)
    assert (span.line, span.column) == (line, column)
    assert span.place() == f"f.hlo:{line}:{column}"


def test_line_text_has_no_line_break() -> None:
    assert Source(TEXT).line_text(2) == "  second\tline"


def test_an_error_can_be_pickled() -> None:
    span = Source("ENTRY e {}", "m.hlo").span(6, 7)
    error = HloError("`e` is wrong", span, "undefined", "this one", ["see above"], "write f")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_an_error_shows_all_its_parts() -> None:
    source = Source("ENTRY e {\n  ROOT t = f32[4] add(p, q)\n}", "fusion.hlo")
    error = HloError(
        "`q` is wrong", source.span(35, 36), "undefined", "this one", ["see above"], "write p"
    )
    assert str(error) == (
        "error[undefined]: `q` is wrong\n"
        " --> fusion.hlo:2:26\n"
        "  |\n"
        "2 |   ROOT t = f32[4] add(p, q)\n"
        "  |                          ^ this one\n"
        "  = note: see above\n"
        "  = help: write p"
    )


def test_the_gutter_is_as_wide_as_the_line_number() -> None:
    source = Source("\n" * 11 + "wrong", "f.hlo")
    assert str(HloError("m", source.span(11, 16), help="h")) == (
        "error[syntax]: m\n  --> f.hlo:12:1\n   |\n12 | wrong\n   | ^^^^^\n   = help: h"
    )


def test_a_long_line_is_clipped_around_the_span() -> None:
    source = Source("a" * 5000 + "!" + "b" * 5000)
    lines = str(HloError("m", source.span(5000))).splitlines()
    shown, carets = lines[3], lines[4]
    assert len(shown) < WIDTH + 10
    assert shown[carets.index("^")] == "!"
    assert lines[1].endswith(":1:5001")


def test_carets_are_aligned_after_tabs_and_control_characters() -> None:
    source = Source("\t\x00\x1b[31m wrong")
    lines = str(HloError("m", source.span(8, 13))).splitlines()
    start = lines[4].index("^")
    assert lines[3][start : start + 5] == "wrong"
    assert all(character.isprintable() for character in lines[3])


def test_a_span_over_lines_is_underlined_to_the_end_of_the_first() -> None:
    source = Source("ab cd\nef")
    assert str(HloError("m", source.span(3, 8))).splitlines()[-1] == "  |    ^^"


def test_a_moved_error_has_the_location_in_the_new_source() -> None:
    inner = HloError("m", Source("xy").span(1, 2), "shape", "l", ["n"], "h")
    outer = Source("ab\nxy", "f.hlo")
    moved = inner.moved(outer, 3)
    assert moved.span.place() == "f.hlo:2:2"
    assert (moved.code, moved.label, moved.notes, moved.help) == ("shape", "l", ("n",), "h")
