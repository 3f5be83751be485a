"""Invalid HLO text: each raises an `HloError` with its location, never another exception."""
# ruff: noqa: E501 - a row of a table is a line

from pathlib import Path

import pytest

import hlo

DIGITS = "9" * 5000


def lines(*inside: str) -> str:
    """An entry whose second and further lines are `inside`."""
    return "\n".join(["ENTRY e {", *inside, "}"])


PARAMETER = "  p = f32[2] parameter(0)"

# fmt: off
BAD = [
    # text                                                          line column code       message
    ("",                                                            1, 1,   "syntax",    "expected HLO text, found an empty text"),
    (" \n// only a comment\n",                                      3, 1,   "syntax",    "expected HLO text, found only white space and comments"),
    ("import sys\n",                                                1, 1,   "syntax",    "expected `HloModule NAME`, a computation such as ENTRY main { ... }, or an instruction, found `import`"),
    ("HloModule m\n",                                               2, 1,   "syntax",    "expected a computation such as ENTRY main { ... }, found the end of the text"),
    ("HloModule\nENTRY e { p = f32[] parameter(0) }",               2, 1,   "syntax",    "expected a name after HloModule, found `ENTRY`"),
    ("ENTRY e {\n}\n",                                              2, 1,   "syntax",    "a computation must have at least one instruction"),
    ("ENTRY e (p: f32[2]) {\n}",                                    1, 21,  "syntax",    "expected `->` and the shape of the result, found `{`"),
    ("ENTRY e (p: f32[2]) -> f32[2]\n",                             2, 1,   "syntax",    "expected `{` and the instructions of the computation, found the end of the text"),

    # truncated and unbalanced
    (f"ENTRY e {{\n{PARAMETER}\n",                                  3, 1,   "syntax",    "expected an instruction such as `name = f32[2] add(a, b)`, or `}`, found the end of the text"),
    (f"ENTRY e {{\n{PARAMETER}\n  n = f32[2] negate(p",             3, 22,  "syntax",    "expected `,` or `)` after an operand, found the end of the text"),
    (f"ENTRY e {{\n{PARAMETER}, sharding={{rep",                    2, 37,  "syntax",    "unclosed `{`: expected `}` before the end of the text"),
    (lines(f"{PARAMETER}, sharding={{{{replicated}}"),              3, 2,   "syntax",    "expected an instruction such as `name = f32[2] add(a, b)`, or `}`, found the end of the text"),
    (lines(f"{PARAMETER}, sharding={{(replicated}}"),               2, 49,  "syntax",    "expected `)`, found `}`"),
    (lines(PARAMETER, "}"),                                         4, 1,   "syntax",    "expected a computation such as ENTRY main { ... }, found `}`"),
    (lines(f'{PARAMETER}, metadata={{op_name="x}}'),                2, 46,  "syntax",    "unterminated string"),
    (lines(f"{PARAMETER} /* x"),                                    2, 27,  "syntax",    "unterminated comment: `/*` without `*/`"),
    (lines("  p = f32[2,3 parameter(0)"),                           2, 15,  "syntax",    "expected a size, or `]` after the last one, found `parameter`"),
    (lines("  p = f32[2]{0 parameter(0)"),                          2, 16,  "syntax",    "expected `,` or `}` in a layout such as {1,0}, found `parameter`"),

    (lines(f"{PARAMETER}, sharding={{replicated", "  q = f32[] negate(p)"), 2, 37, "syntax",  "unclosed `{`: expected `}` before the next instruction"),
    ("\ufeffHloModule m\n",                                         1, 1,   "encoding",  "unexpected byte order mark"),

    # instructions
    (lines(f"{PARAMETER};"),                                        2, 26,  "syntax",    "expected an instruction such as `name = f32[2] add(a, b)`, or `}`, found `;`"),
    (lines(f"{PARAMETER},"),                                        2, 26,  "syntax",    "expected an attribute such as dimensions={0} after `,`"),
    (lines(f"{PARAMETER}, -2_4"),                                   2, 28,  "syntax",    "expected the name of an attribute, found `-2_4`"),
    (f"ENTRY e {{\n{PARAMETER}, dimensi",                            2, 35,  "syntax",    "expected `=` after `dimensi`, found the end of the text"),
    (lines("  c = f32[] constant(zero)"),                           2, 22,  "literal",   "expected an f32 value, found `zero`"),
    (lines(f"{PARAMETER}, a="),                                     3, 1,   "syntax",    "expected a value, found `}`"),
    (lines(PARAMETER, "  n = f32[2]"),                              4, 1,   "syntax",    "expected an opcode and operands such as add(a, b), found `}`"),
    (lines(PARAMETER, "  n = negate"),                              3, 7,   "syntax",    "expected a shape such as f32[2,3], found `negate`"),
    (lines(PARAMETER, "  n = f32[2] add(p p)"),                     3, 20,  "syntax",    "expected `,` or `)` after an operand, found `p`"),
    (lines(PARAMETER, "  n = f32[2] add(, )"),                      3, 18,  "syntax",    "expected the name of an operand, found `,`"),
    (lines(PARAMETER, "  n = f32[2] add(f32[2 p)"),                 3, 24,  "syntax",    "expected a size, or `]` after the last one, found `p`"),
    (lines(PARAMETER, "  n = f32[2] call(p), calls={%f %g}"),       3, 31,  "undefined", "computation `f` is not defined"),

    # shapes
    (lines("  p = f33[2,3]{1,0} parameter(0)"),                     2, 7,   "shape",     "unknown element type `f33`"),
    (lines("  p = f32[2,-3] parameter(0)"),                         2, 13,  "syntax",    "expected a size, or `]` after the last one, found `-3`"),
    (lines("  p = f32[2,3]{1,1} parameter(0)"),                     2, 15,  "layout",    "minor_to_major {1,1} is not a permutation of 0..1"),
    (lines("  p = f32[2,3]{0} parameter(0)"),                       2, 7,   "shape",     "the layout has rank 1, but the array has rank 2"),
    (lines("  p = f32[4294967296,4294967296] parameter(0)"),        2, 7,   "shape",     "the number of elements overflows 64 bits"),
    (lines(f"  p = f32[{DIGITS}] parameter(0)"),                    2, 11,  "number",    "integer overflows 64 bits"),
    (lines(f"  p = f32[2]{{0:S({DIGITS})}} parameter(0)"),          2, 18,  "number",    "integer overflows 64 bits"),
    (lines(PARAMETER, "  n = f32[2] negate(f32[3] p)"),             3, 28,  "shape",     "operand `p` is written as f32[3], but declared f32[2]"),
    ("ENTRY e () -> f32[3] {\n p = f32[2] parameter(0)\n}",         1, 15,  "shape",     "`e` is declared to return f32[3], but its root is f32[2]"),

    # names
    (lines("  param = f32[] parameter(0)", "  n = f32[] abs(parm)"), 3, 17, "undefined", "operand `parm` is not defined"),
    (lines("  n = f32[2] negate(p)", PARAMETER),                    2, 21,  "undefined", "operand `p` is used before its definition"),
    (lines("  n = f32[2] negate(n)"),                               2, 21,  "undefined", "operand `n` is used before its definition"),
    (lines(f"{PARAMETER}, control-predecessors={{%q}}"),            2, 51,  "undefined", "operand `q` is not defined"),
    (lines(PARAMETER, PARAMETER),                                   3, 3,   "duplicate", "duplicate instruction `p`"),
    (lines(f"{PARAMETER}, a=1, a=2"),                               2, 33,  "duplicate", "duplicate attribute `a`"),
    (lines(" ROOT p = f32[] parameter(0)", " ROOT q = f32[] parameter(1)"), 3, 2, "duplicate", "a computation must have one ROOT"),
    ("e { p = f32[] parameter(0) }\nENTRY e { p = f32[] parameter(0) }", 2, 7, "duplicate", "duplicate computation `e`"),
    ("ENTRY e { p = f32[] parameter(0) }\nENTRY f { p = f32[] parameter(0) }", 2, 7, "duplicate", "a module must have one ENTRY"),
    (lines(PARAMETER, "  n = f32[2] call(p), to_apply=%g"),         3, 33,  "undefined", "computation `g` is not defined"),
    (lines(PARAMETER, "  n = f32[2] call(p), to_apply=e"),          3, 32,  "undefined", "computation `e` calls itself"),
    ("ROOT a = f32[2] add(p, q)",                                   1, 21,  "undefined", "operand `p` is not defined"),
    ("HloModule a e { p = f32[] parameter(0) }\nHloModule b",       2, 1,   "syntax",    "expected the end of the module, found `HloModule`"),

    # nesting
    ("(" * 10_000,                                                  1, 101, "nesting",   "brackets are nested more than 100 deep"),
    (lines("p = " + "(" * 10_000 + ")" * 10_000 + " parameter(0)"), 2, 105, "nesting",   "brackets are nested more than 100 deep"),
    (lines("p = f32[] add(" + "(" * 10_000),                        2, 115, "nesting",   "brackets are nested more than 100 deep"),
    (lines("p = f32[] constant(" + "{" * 10_000),                   2, 119, "nesting",   "brackets are nested more than 100 deep"),
    (lines("p = f32[] constant(1), a=" + "[" * 10_000),             2, 126, "nesting",   "brackets are nested more than 100 deep"),
    ("e (" + "(" * 10_000,                                          1, 103, "nesting",   "brackets are nested more than 100 deep"),
    (lines("p = f32[] " + "abs(" * 10_000),                         2, 175, "nesting",   "instructions are nested more than 40 deep"),
    (lines("p = f32[] x(), calls={" + "p = f32[] x(), calls={" * 10_000), 2, 902, "nesting", "instructions are nested more than 40 deep"),
]
HELPED = [
    # text                                                          note or help
    (lines("  param = f32[] parameter(0)", "  n = f32[] abs(parm)"), "  = help: did you mean `param`?"),
    (lines("  n = f32[2] negate(p)", PARAMETER),                    "  = note: `p` is defined at bad.hlo:3:3; operands must precede their users"),
    (lines(PARAMETER, "  n = f32[2] call(p), to_apply=e"),          "  = note: `e` is defined at bad.hlo:1:7; calls cannot be recursive"),
    (lines(PARAMETER, PARAMETER),                                   "  = note: `p` is first defined at bad.hlo:2:3"),
    (lines(f"{PARAMETER}, sharding={{(replicated}}"),               "  = note: `(` is opened at bad.hlo:2:38"),
    (lines("  p = f33[2,3]{1,0} parameter(0)"),                     "  = help: did you mean `f32`?"),
    (lines("  p = bool[2] parameter(0)"),                           "  = help: did you mean `pred`?"),
    (lines("  p = f32[2]{0:T(8,} parameter(0)"),                    "  = note: `(` is opened at bad.hlo:2:17"),
    (lines(f"{PARAMETER}, a=1, a=2"),                               "  = note: `a` is first given at bad.hlo:2:28"),
    ("ROOT a = f32[2] add(p, q)",                                   "  = help: write a shape to make the operand a parameter: f32[2] p"),
    ("HloModule a e { p = f32[] parameter(0) }\nHloModule b",       "  = help: separate modules by lines `// -----`: hlo.parse_all, hlo.load_all and hlo-indexing read all"),
]
# fmt: on


@pytest.mark.parametrize("text, line, column, code, message", BAD)
def test_invalid_text_raises_an_error_with_its_location(
    text: str, line: int, column: int, code: str, message: str
) -> None:
    with pytest.raises(hlo.HloError) as caught:
        hlo.parse(text, "bad.hlo")
    error = caught.value
    assert error.message == message
    assert (error.span.line, error.span.column, error.code) == (line, column, code)
    shown = str(error).splitlines()
    assert shown[0] == f"error[{code}]: {message}"
    assert shown[1].strip() == f"--> bad.hlo:{line}:{column}"
    assert "^" in shown[4]


@pytest.mark.parametrize("text, hint", HELPED)
def test_errors_have_notes_and_help(text: str, hint: str) -> None:
    with pytest.raises(hlo.HloError) as caught:
        hlo.parse(text, "bad.hlo")
    assert hint in str(caught.value).splitlines()


def test_recursive_calls_are_rejected() -> None:
    text = (
        "f {\n  p = f32[] parameter(0)\n  ROOT c = f32[] call(p), to_apply=g\n}\n"
        "g {\n  p = f32[] parameter(0)\n  ROOT c = f32[] call(p), to_apply=f\n}\n"
    )
    message = "computation `g` is used before its definition"
    with pytest.raises(hlo.HloError, match=message) as caught:
        hlo.parse(text, "f.hlo")
    assert caught.value.span.place() == "f.hlo:3:36"
    assert "`g` is defined at f.hlo:5:1" in caught.value.notes[0]


def test_an_error_in_a_later_module_has_its_location_in_the_whole_text() -> None:
    text = "ENTRY e { p = f32[] parameter(0) }\n// -----\nENTRY e { p = f32[] negate(q) }\n"
    with pytest.raises(hlo.HloError) as caught:
        hlo.parse_all(text, "two.hlo")
    assert caught.value.span.place() == "two.hlo:3:28"


@pytest.mark.parametrize("next_line", ["ENTRY e {", "%g (q: f32[2]) -> f32[2] {", "g {"])
def test_an_unclosed_computation_is_named(next_line: str) -> None:
    text = f"f {{\n  p = f32[2] parameter(0)\n  ROOT n = f32[2] negate(p)\n\n{next_line}"
    with pytest.raises(hlo.HloError) as caught:
        hlo.parse(f"{text}\n  q = f32[2] parameter(0)\n}}", "m.hlo")
    assert caught.value.span.place() == "m.hlo:5:1"
    assert caught.value.notes == ("the body of `f` at m.hlo:1:1 is not closed before it",)


def test_a_text_that_is_cut_off_says_so() -> None:
    text = "ENTRY e {\n  p = f32[2] parameter(0)\n  ROOT n = f32[2] negate(p), metadata={op_na"
    for end in (len(text), len(text) - 14, 11):
        with pytest.raises(hlo.HloError) as caught:
            hlo.parse(text[:end])
        assert "may be cut off" in caught.value.help, text[:end]


def test_every_part_of_a_module_is_said_to_be_cut_off() -> None:
    text = (
        "HloModule m, entry_computation_layout={(f32[2]{0})->f32[2]{0}}\n\n"
        'FileNames\n1 "a.py"\n\nENTRY e {\n  p = f32[2] parameter(0)\n'
        '  ROOT n = f32[2]{0} negate(p), metadata={op_name="jit(f)/neg"}\n}\n'
    )
    module_end = text.rindex("}")
    for end in range(len("HloModule m"), module_end):
        with pytest.raises(hlo.HloError) as caught:
            hlo.parse(text[:end])
        assert "cut off" in caught.value.help or text[end - 1] == "}", text[:end]


def test_an_error_before_the_end_is_not_said_to_be_cut_off() -> None:
    for text in (
        "ENTRY e {\n  p = f32[2] bitc\n  ROOT n = f32[2] negate(p)",
        "ENTRY e { p = f32[2] bitc }",
        "f32[3,2] transpos",
    ):
        with pytest.raises(hlo.HloError) as caught:
            hlo.parse(text)
        assert "cut off" not in caught.value.help, text


def test_brackets_that_are_open_at_the_end_are_named() -> None:
    text = "ENTRY e {\n  p = f32[2,3] parameter(0)\n  ROOT n = f32[3,2] transpose(p), dimensions={1,0\n}\n"
    with pytest.raises(hlo.HloError) as caught:
        hlo.parse(text, "m.hlo")
    assert caught.value.notes == (
        "the value of `dimensions`, opened at m.hlo:3:46, ends on a later line",
        "the body of `e`, opened at m.hlo:1:7, has no `}`",
    )
    assert text.splitlines()[2][46 - 1] == "{"


def test_an_image_is_no_module_under_any_name(tmp_path: Path) -> None:
    for name in ("a.png", "a.hlo", "a.pb"):
        file = tmp_path / name
        file.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
        with pytest.raises(hlo.HloError, match="the file is an image, not HLO text"):
            hlo.load(file)


def test_an_index_that_is_no_name_says_what_to_write() -> None:
    entry = hlo.parse("ENTRY e { ROOT p = f32[2] parameter(0) }").entry
    with pytest.raises(TypeError, match=r"expected the name of an instruction, got 0: instr"):
        entry[0]  # type: ignore[index]  # the fault
