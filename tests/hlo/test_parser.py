"""The parser: every form that XLA prints or accepts."""
# ruff: noqa: E501 - a row of a table is a line

import pytest

import hlo
from hlo.modules.module import Instruction

ADDITION = """
HloModule sums, is_scheduled=true, entry_computation_layout={(f32[4]{0}, /*index=1*/f32[])->f32[4]{0}}

%plus (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(f32[] %x, f32[] %y), metadata={op_name="a\\"}b" source_line=3}
}

ENTRY %main (p: f32[4], z: f32[]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %z = f32[] parameter(1)
  ROOT %scan = f32[4]{0} reduce-window(f32[4]{0} %p, f32[] %z), window={size=4 pad=3_0}, to_apply=%plus
}
"""


def entry(text: str) -> hlo.Computation:
    return hlo.parse(text).entry


def body(*lines: str) -> dict[str, Instruction]:
    """Return the instructions of an entry with the text `lines`, by name."""
    text = "\n".join(["ENTRY e {", *lines, "}"])
    return {instruction.name: instruction for instruction in entry(text).instructions}


def names(instructions: tuple[Instruction, ...]) -> list[str]:
    return [instruction.name for instruction in instructions]


def test_names_are_resolved_to_objects() -> None:
    module = hlo.parse(ADDITION, "sums.hlo")
    assert (module.name, module.filename) == ("sums", "sums.hlo")
    assert list(module.computations) == ["plus", "main"]
    scan = module.entry.root
    assert (scan.name, scan.opcode, str(scan.shape)) == ("scan", "reduce-window", "f32[4]{0}")
    assert names(scan.operands) == ["p", "z"]
    assert scan.called_computations == (module.computations["plus"],)
    assert scan.computation is module.entry
    assert scan.module is module
    assert scan.is_root
    assert not scan.operands[0].is_root
    assert [i.index for i in module.entry.instructions] == [0, 1, 2]


def test_attributes_are_text_with_a_location() -> None:
    module = hlo.parse(ADDITION, "sums.hlo")
    assert module.attributes["is_scheduled"].text == "true"
    assert module.attributes["entry_computation_layout"].normal == "{(f32[4]{0},f32[])->f32[4]{0}}"
    metadata = module.computations["plus"].root.attributes["metadata"]
    assert metadata.text == '{op_name="a\\"}b" source_line=3}'
    assert metadata.span.place() == "sums.hlo:7:55"
    assert metadata.span.text == metadata.text
    assert module.entry.root.span.text.startswith("scan = f32[4]{0} reduce-window(")
    assert module.entry.root.span.text.endswith("to_apply=%plus")


def test_users_are_listed_once_in_text_order() -> None:
    instructions = body(
        "p = f32[2] parameter(0)",
        "a = f32[2] add(p, p)",
        "ROOT b = f32[2] subtract(p, a)",
    )
    assert names(instructions["p"].users) == ["a", "b"]
    assert names(instructions["b"].users) == []
    assert names(instructions["a"].operands) == ["p", "p"]


def test_parameters_are_in_the_order_of_their_numbers() -> None:
    computation = entry("ENTRY e { b = f32[3] parameter(1) a = f32[2] parameter(0) }")
    assert names(computation.parameters) == ["a", "b"]
    with pytest.raises(hlo.HloError, match="a parameter must have a number"):
        _ = entry("ENTRY e { a = f32[2] parameter(-1) }").parameters


# ---------------------------------------------------------------- modules

# fmt: off
MODULES = [
    # text                                                                 entry     computations
    ("HloModule m ENTRY e { p = f32[] parameter(0) }",                     "e",      ["e"]),
    ("HloModule m: ENTRY e { p = f32[] parameter(0) }",                    "e",      ["e"]),
    ("ENTRY e { p = f32[] parameter(0) }",                                 "e",      ["e"]),
    ("e { p = f32[] parameter(0) }",                                       "e",      ["e"]),
    ("f { p = f32[] parameter(0) } g { p = f32[] parameter(0) }",          "g",      ["f", "g"]),
    ("ENTRY f { p = f32[] parameter(0) } g { p = f32[] parameter(0) }",    "f",      ["f", "g"]),
    ("%ENTRY.1 { p = f32[] parameter(0) }",                                "ENTRY.1", ["ENTRY.1"]),
    ("ENTRY e (p: f32[]) -> f32[] { p = f32[] parameter(0) }",             "e",      ["e"]),
    ("ENTRY e(p:(f32[],(s32[])))->(f32[],(s32[])) { p = (f32[], (s32[])) parameter(0) }", "e", ["e"]),
    ('e { p = f32[] parameter(0) }, execution_thread="host"',              "e",      ["e"]),
    ("// RUN: x\r// CHECK: {\r\ne {\rp = f32[] parameter(0)\r}// end",     "e",      ["e"]),
    ("/* a\n{ */ e {/**/p/**/=/**/f32[/**/]/**/parameter/**/(0)/**/}",     "e",      ["e"]),
    ("p = f32[] parameter(0)",                                             "entry",  ["entry"]),
    ("p = f32[] parameter(0) ROOT n = f32[] negate(p)",                    "entry",  ["entry"]),
]
ROOTS = [
    # body                                                                  root
    ("a = f32[] parameter(0) b = f32[] negate(a)",                          "b"),
    ("ROOT a = f32[] parameter(0) b = f32[] negate(a)",                     "a"),
    ("a = f32[] parameter(0) ROOT b = f32[] negate(a) c = f32[] negate(b)", "b"),
    ("ROOT ROOT.1 = f32[] parameter(0)",                                    "ROOT.1"),
    ("a = f32[] parameter(0) add = f32[] add(a, a)",                        "add"),
]
# fmt: on


@pytest.mark.parametrize("text, name, computations", MODULES)
def test_a_module_has_several_forms(text: str, name: str, computations: list[str]) -> None:
    module = hlo.parse(text)
    assert module.entry.name == name
    assert list(module.computations) == computations
    assert hlo.parse(str(module)) == module


@pytest.mark.parametrize("text, root", ROOTS)
def test_the_root_is_marked_or_last(text: str, root: str) -> None:
    assert entry(f"ENTRY e {{ {text} }}").root.name == root


def test_tables_are_kept_by_number() -> None:
    module = hlo.parse(
        'HloModule m\n\nFileNames\n1 "a.py"\n2 "b.py"\n\nFunctionNames\n1 "<module>"\n\n'
        "FileLocations\n1 {file_name_id=1 line=3}\n\nStackFrames\n1 {file_location_id=1}\n"
        "2 {file_location_id=1 parent_frame_id=1}\n\nENTRY e { p = f32[] parameter(0) }"
    )
    assert list(module.tables) == ["FileNames", "FunctionNames", "FileLocations", "StackFrames"]
    assert module.tables["FileNames"][2].text == '"b.py"'
    assert module.tables["StackFrames"][2].text == "{file_location_id=1 parent_frame_id=1}"
    assert hlo.parse(str(module)) == module


def test_several_modules_in_one_text_keep_their_locations() -> None:
    text = (
        "// RUN: a\n// -----\nHloModule a ENTRY e { p = f32[] parameter(0) }\n"
        "  // ----- second\nHloModule b\nENTRY e { q = f32[] parameter(0) }\n// -----\n"
    )
    first, second = hlo.parse_all(text, "two.hlo")
    assert (first.name, second.name) == ("a", "b")
    assert first.entry.root.span.place() == "two.hlo:3:23"
    assert second.entry.root.span.place() == "two.hlo:6:11"


def test_one_computation_may_use_names_of_another() -> None:
    module = hlo.parse("f { p = f32[] parameter(0) } ENTRY e { p = f32[2] parameter(0) }")
    assert [str(c.root.shape) for c in module.computations.values()] == ["f32[]", "f32[2]"]


# ---------------------------------------------------------------- instructions

# fmt: off
OPERANDS = [
    # the operands of n in the text                        their names
    ("()",                                                 []),
    ("( )",                                                []),
    ("(a)",                                                ["a"]),
    ("(%a, b)",                                            ["a", "b"]),
    ("(a,b,)",                                             ["a", "b"]),
    ("(f32[2]{0} %a, f32[2] b)",                           ["a", "b"]),
    ("((f32[2]{0:T(256)}, /*index=1*/(s32[])) %t, a)",     ["t", "a"]),
    ("(/*index=0*/a, // first\n b)",                       ["a", "b"]),
    ("(%true, %inf.1)",                                    ["true", "inf.1"]),
    ("(f32[2] negate(a), b)",                              ["negate.anon", "b"]),
    ("(a, f32[2] reverse(b), dimensions={0})",             ["a", "reverse.anon"]),
    ("(add(a, negate(b)))",                                ["add.anon"]),
]
LITERALS = [
    # text in parentheses: not a list of operands
    "0", "-1", "1e-3", "-inf", "inf", "nan", "-nan", "nan(0x1234)", "true", "false", "{}", "{...}", "(1, -2)",
    "{ { 1, 2 }, { 3, 4 } }", "{/*i0=0*/ 1}", "(1, {2, 3})", "((true), 2)", "{(1, 2), (-inf, nan)}", "...",
]
# fmt: on


@pytest.mark.parametrize("text, operands", OPERANDS)
def test_operands_have_several_forms(text: str, operands: list[str]) -> None:
    instructions = body(
        "a = f32[2]{0} parameter(0)",
        "b = f32[2]{0} parameter(1)",
        "t = (f32[2], (s32[])) parameter(2)",
        "%true = pred[] parameter(3)",
        "inf.1 = f32[] parameter(4)",
        f"ROOT n = f32[2] anything{text}",
    )
    assert names(instructions["n"].operands) == operands
    assert instructions["n"].literal is None


@pytest.mark.parametrize("text", LITERALS)
def test_a_literal_is_not_an_operand(text: str) -> None:
    instruction = body("a = f32[] parameter(0)", f"ROOT c = f32[] anything( {text} ), b=1")["c"]
    assert instruction.literal is not None
    assert instruction.literal.text.strip() == text
    assert instruction.operands == ()
    assert instruction.attributes["b"].text == "1"


def test_operands_of_a_single_instruction_become_parameters() -> None:
    computation = entry("f32[4] fused(f32[2] b, s32[] a, f32[2] b, u8[3]), k={1}")
    assert [str(i) for i in computation.instructions] == [
        "%b = f32[2] parameter(0)",
        "%a = s32[] parameter(1)",
        "%parameter = u8[3] parameter(2)",
        "%fused = f32[4] fused(%b, %a, %b, %parameter), k={1}",
    ]
    assert computation.root.name == "fused"


def test_an_unnamed_instruction_gets_a_unique_name() -> None:
    computation = entry(
        "ENTRY e { p = f32[] parameter(0) negate = f32[] add(f32[] negate(p), f32[] negate(p))"
        " negate.anon = f32[] negate(negate)"
        " ROOT x = f32[] subtract(negate.anon, f32[] negate(negate)) }"
    )
    assert [str(i) for i in computation.instructions[1:]] == [
        "%negate.anon.1 = f32[] negate(%p)",
        "%negate.anon.2 = f32[] negate(%p)",
        "%negate = f32[] add(%negate.anon.1, %negate.anon.2)",
        "%negate.anon = f32[] negate(%negate)",
        "%negate.anon.3 = f32[] negate(%negate)",
        "%x = f32[] subtract(%negate.anon, %negate.anon.3)",
    ]


def test_unknown_opcodes_and_attributes_are_preserved() -> None:
    text = "x = (u7x, f32[]) parameter(0)"
    with pytest.raises(hlo.HloError):
        body(text)
    instruction = body("x = f32[] what.is-this_1(0), zorp={a=[1,(2)] b='}'}, y=-1_2x3, z=a->b")["x"]
    assert instruction.opcode == "what.is-this_1"
    assert {name: value.text for name, value in instruction.attributes.items()} == {
        "zorp": "{a=[1,(2)] b='}'}",
        "y": "-1_2x3",
        "z": "a->b",
    }


# fmt: off
VALUES = [
    "1", "-1", "0x1", "1.5e-3", "true", "kLoop", '"a, b"', '"\\"}{"', "{}", "{1,0}", "{ {0}, {1} }", "{[0:2], [1:9:3]}",
    "1_4_1x-2_8", "{size=1x3 stride=2x1 pad=0_0x-1_2}", "01fb_o01i->f01b", "b?f_io?->bf", "[2,4]<=[8]",
    "[2,2]<=[2,2]T(1,0)", "mesh['x'=8] {'x'}", "mesh['x'=8]{'x'}", "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
    '{"a":{"b":["}"]}}', "{uplo = 76 : ui8}", "{mesh = #sdy.mesh<[\"x\"=8]>}", "{{}: (0, {}), {1}: (0, {1}, may-alias)}",
    "{(f32[2]{0:T(8,128)}, /*index=5*/())->f32[]}", "s32[2]{0} {1, 2}", "f32[] 0.1", "pred[] true", "c64[] (1, 2)",
    "a/b", "{// no }\n1}", "{http://x}\n}", "f32[2,3]{1,0}", "(f32[2], s32[])", "{{{{{{1}}}}}}",
]
# fmt: on


@pytest.mark.parametrize("value", VALUES)
def test_a_value_ends_at_the_next_attribute(value: str) -> None:
    instructions = body(
        "a = f32[] parameter(0)",
        f"b = f32[] anything(a), first={value}, second=2",
        f"c = f32[] anything(a), last={value}",
        "ROOT d = f32[] anything(c)",
    )
    assert instructions["b"].attributes["first"].text == value
    assert instructions["b"].attributes["second"].text == "2"
    assert instructions["c"].attributes["last"].text == value


# fmt: off
EQUAL = [
    # one value                 another                   same
    ("{1,0}",                   "{ 1, /*x*/ 0 }",         True),
    ("{%a, %b}",                "{a,b}",                  True),
    ("{a b}",                   "{a   b}",                True),
    ("{a b}",                   "{ab}",                   False),
    ('"a  b"',                  '"a b"',                  False),
    ('"/* x */"',               '""',                     False),
    ('"50%x"',                  '"50x"',                  False),
    ("mesh['x'=8] {'x'}",       "mesh['x'=8]{'x'}",       True),
    ("{1,0}",                   "{0,1}",                  False),
]
# fmt: on


@pytest.mark.parametrize("first, second, same", EQUAL)
def test_values_are_equal_up_to_white_space(first: str, second: str, same: bool) -> None:
    instructions = body(
        f"a = f32[] parameter(0), v={first}",
        f"b = f32[] parameter(1), v={second}",
    )
    one, other = instructions["a"].attributes["v"], instructions["b"].attributes["v"]
    assert (one == other) is same
    assert (hash(one) == hash(other)) is same


# ---------------------------------------------------------------- calls

CALLEES = """
f { p = f32[] parameter(0) }
g { p = f32[] parameter(0) }
"""

# fmt: off
CALLS = [
    # attribute                                     names of the callees       value by name
    ("to_apply=f",                                  ["f"],                        "f"),
    ("to_apply=%f",                                 ["f"],                        "f"),
    ("calls=%f, x=1",                               ["f"],                        "f"),
    ("branch_computations={%f, g}",                 ["f", "g"],                   "{f,g}"),
    ("called_computations={}",                      [],                           "{}"),
    ("condition=f, body=g",                         ["f", "g"],                   "f"),
    ("true_computation=f, false_computation=g",     ["f", "g"],                   "f"),
    ("select=f, scatter=g",                         ["f", "g"],                   "f"),
    ("to_apply={ ROOT p = f32[] parameter(0) }",    ["c.to_apply"],               "c.to_apply"),
    ("calls={p = f32[] parameter(0)}, x=1",         ["c.calls"],                  "c.calls"),
    ("branch_computations={{ q = f32[] parameter(0) }, f}", ["c.branch_computations.0", "f"], "{c.branch_computations.0,f}"),
    ("select=3",                                    [],                           "3"),
]
# fmt: on


@pytest.mark.parametrize("attribute, called, value", CALLS)
def test_computations_are_called_by_name_or_body(
    attribute: str, called: list[str], value: str
) -> None:
    text = f"{CALLEES}\nENTRY e {{ p = f32[] parameter(0) ROOT c = f32[] any(p), {attribute} }}"
    module = hlo.parse(text)
    root = module.entry.root
    assert [computation.name for computation in root.called_computations] == called
    assert next(iter(root.attributes.values())).text == value
    assert all(module.computations[c.name] is c for c in root.called_computations)
    assert hlo.parse(str(module)) == module


def test_nested_bodies_precede_their_callers() -> None:
    module = hlo.parse(
        "ENTRY e { p = f32[] parameter(0)\n"
        "  ROOT a = f32[] call(p), to_apply={ p = f32[] parameter(0)\n"
        "    ROOT b = f32[] call(p), to_apply={ ROOT q = f32[] parameter(0) } } }"
    )
    assert list(module.computations) == ["b.to_apply", "a.to_apply", "e"]
    assert hlo.parse(str(module)) == module


def test_a_missing_shape_of_an_unknown_op_is_an_error_on_access() -> None:
    root = entry("ENTRY e { p = f32[] parameter(0) ROOT x = no-such-op(p) }").root
    assert root.declared_shape is None
    with pytest.raises(hlo.HloError, match="shape"):
        _ = root.shape


def test_a_long_chain_of_missing_shapes_is_inferred_without_recursion() -> None:
    lines = [f"x{i + 1} = no-such-op(x{i})" for i in range(5000)]
    root = entry("ENTRY e { x0 = f32[] parameter(0) " + " ".join(lines) + " }").root
    with pytest.raises(hlo.HloError, match="shape"):
        _ = root.shape


@pytest.mark.parametrize("name", ["n", "e/n"])
def test_an_item_of_a_module_is_an_error_whose_repair_runs(name: str) -> None:
    module = hlo.parse("ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }")
    with pytest.raises(TypeError, match="a module has no items") as caught:
        module[name]
    repair = str(caught.value).partition("write ")[2].partition(" for ")[0]
    assert eval(repair, {"module": module}) is module.entry.root
