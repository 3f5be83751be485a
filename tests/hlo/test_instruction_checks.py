"""Binding: typed attributes, checks of constraints, inference and comparison of shapes."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

import pytest

import hlo
import indexing.ops  # noqa: F401 - registers the ops
from hlo.modules.instruction_checks import agrees, check_instruction
from hlo.shapes.shape import parse_shape

SCALARS = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"


def entry(*lines: str, before: str = "") -> hlo.Module:
    body = "\n".join(f"  {line}" for line in lines)
    return hlo.parse(f"{SCALARS}{before}ENTRY e {{\n{body}\n}}", filename="bad.hlo")


def test_an_error_has_rule_values_location_and_repair() -> None:
    text = (
        "HloModule fusion\nENTRY e {\n  p = f32[2,3,4] parameter(0)\n"
        "  ROOT t = f32[4,2,3] transpose(p), dimensions={2,0,0}\n}\n"
    )
    (error,) = hlo.verify(hlo.parse(text, filename="fusion.hlo"))
    assert str(error) == (
        "error[op-constraint]: transpose C2: "
        "dimensions must be a permutation of the operand's dimensions\n"
        " --> fusion.hlo:4:48\n"
        "  |\n"
        "4 |   ROOT t = f32[4,2,3] transpose(p), dimensions={2,0,0}\n"
        "  |                                                ^^^^^^^ 0 appears twice, 1 is missing\n"
        "  = note: operand `p` is f32[2,3,4], declared at fusion.hlo:3:3\n"
        "  = help: list every operand dimension once, for example dimensions={2,0,1}"
    )


P = "p = f32[2,3] parameter(0)"
T = "t = (f32[2,3], f32[2,3]) tuple(p, p)"
Z = "z = f32[] constant(0)"

# fmt: off
ERRORS = [
    # lines                                                             code         message
    ([P, "ROOT r = f32[2,3] add(p)"],                                   "operands",  "add takes 2 operands, but 1 is given"),
    ([P, "ROOT r = f32[2,3] negate(p, p)"],                             "operands",  "negate takes 1 operand, but 2 are given"),
    ([P, "ROOT r = f32[2] reduce(p), dimensions={1}, to_apply=add"],    "operands",  "reduce takes at least 2 operands, but 1 is given"),
    ([P, T, "ROOT r = f32[2,3] negate(t)"],                             "operands",  "negate takes arrays, but operand 0 has shape (f32[2,3], f32[2,3])"),
    ([P, "ROOT r = f32[2] negate(p)"],                                  "shape",     "`r` is declared f32[2], but its inferred shape is f32[2,3]"),
    ([P, "ROOT r = s32[2,3] negate(p)"],                                "shape",     "`r` is declared s32[2,3], but its inferred shape is f32[2,3]"),
    ([P, "ROOT r = (f32[2,3]) tuple(p, p)"],                            "shape",     "`r` is declared (f32[2,3]), but its inferred shape is (f32[2,3], f32[2,3])"),
    ([P, "ROOT r = f32[3,2] transpose(p)"],                             "attribute", "`dimensions` of transpose is missing: expected a list of integers"),
    ([P, "ROOT r = f32[3,2] transpose(p), dimensions=1"],               "attribute", "`dimensions` of transpose must be a list of integers"),
    ([P, "ROOT r = f32[3,2] transpose(p), dimensions={1,0}, dimension={1}"], "attribute", "transpose has no attribute `dimension`"),
    ([P, "ROOT r = f32[] call(p, p), to_apply=add"],                    "operands",  "operand 0 is f32[2,3], but parameter 0 of `add` is f32[]"),
    ([P, Z, "ROOT r = f32[] call(z), to_apply=add"],                    "operands",  "`add` has 2 parameters, but 1 operand is given"),
    ([P, Z, "ROOT r = f32[2] call(z, z), to_apply=add"],                "shape",     "`r` is declared f32[2], but its inferred shape is f32[]"),
]
# fmt: on


@pytest.mark.parametrize("lines, code, message", ERRORS)
def test_an_invalid_instruction_has_one_error(lines: list[str], code: str, message: str) -> None:
    (error,) = hlo.verify(entry(*lines))
    assert (error.code, error.message) == (code, message)
    assert error.span.line == len(lines) + 2


def test_unknown_attributes_are_reported_by_verify_only() -> None:
    root = entry(P, "ROOT r = f32[3,2] transpose(p), dimensions={1,0}, dimenions={1}").entry.root
    assert check_instruction(root) is None
    (error,) = hlo.verify(root.module)
    assert error.help == "did you mean `dimensions`?"


# fmt: off
MISSPELT = [
    # instruction                                                            name                   suggestion
    ("f32[3,2] transpose(p), dimension={1,0}",                               "dimension",           "dimensions"),
    ("f32[3,2] transpose(p), metadata={}, dims={1,0}",                       "dims",                "dimensions"),
    ("s32[3,3] iota(), iota_dim=1",                                          "iota_dim",            "iota_dimension"),
    ("f32[1,3] slice(p), slices={[0:1], [0:3]}",                             "slices",              "slice"),
    ("f32[2,2] dot(p, p), lhs_contracting_dim={1}, rhs_contracting_dim={1}", "lhs_contracting_dim", "lhs_contracting_dims"),
    ("f32[2,3] reduce-window(p, z), windows={size=1x1}, to_apply=add",       "windows",             "window"),
    ("f32[2,3] all-reduce(p), replica-groups={{0,1}}, to_apply=add",         "replica-groups",      "replica_groups"),
    ("f32[2,3] triangular-solve(s, p), left_sid=false",                      "left_sid",            "left_side"),
]
# fmt: on


@pytest.mark.parametrize("line, name, suggestion", MISSPELT, ids=lambda text: text[:30])
def test_a_misspelt_attribute_is_an_error_even_where_it_has_a_default(
    line: str, name: str, suggestion: str
) -> None:
    square = "s = f32[2,2] parameter(1)"
    root = entry(P, Z, square, f"ROOT r = {line}").entry.root
    error = check_instruction(root)
    assert error is not None
    assert error.message.endswith(f"has no attribute `{name}`")
    assert error.help == f"did you mean `{suggestion}`?"
    assert error.span == root.attributes[name].span
    errors = hlo.verify(root.module)
    assert [each.span for each in errors].count(error.span) == 1


def test_a_second_callee_is_an_error() -> None:
    """The op would take the first computation for its own."""
    module = hlo.parse("""
        f { p = f32[3] parameter(0)  ROOT n = f32[3] negate(p) }
        g { p = f32[3] parameter(0)  ROOT r = f32[3] reverse(p), dimensions={0} }
        ENTRY e { p = f32[3] parameter(0)
          ROOT r = f32[3] fusion(p), kind=kLoop, to_apply=f, calls=g }""")
    error = check_instruction(module.entry.root)
    assert error is not None
    assert error.message == "fusion has no attribute `to_apply`"
    assert error.help == "it names its computations in calls"


def test_an_unknown_attribute_unlike_those_of_the_op_is_no_misspelling() -> None:
    """A newer XLA may define it."""
    root = entry(P, Z, "ROOT r = f32[2] reduce(p, z), dimensions={1}, to_apply=add, order=1").entry
    assert check_instruction(root.root) is None


@pytest.mark.parametrize(
    "line",
    [
        'ROOT r = f32[2,3] negate(p), metadata={op_name="a"}, backend_config={"x":1}',
        'ROOT r = f32[2,3] copy(p), sharding={replicated}, frontend_attributes={k="v"}',
        "ROOT r = f32[<=2,3] negate(p)",
        "ROOT r = bf16[2,3] negate(p)",
        "ROOT r = f32[2,3]{0,1} negate(p)",
        "ROOT r = f32[9] no-such-opcode(p), what={ever}",
    ],
)
def test_valid_instructions_have_no_errors(line: str) -> None:
    assert hlo.verify(entry(P, line)) == []


@pytest.mark.parametrize("line", ["ROOT r = f32[?,3] negate(q)", "ROOT r = f32[9,3] add(q, q)"])
def test_unknown_sizes_violate_no_constraint(line: str) -> None:
    assert hlo.verify(entry("q = f32[?,3] parameter(0)", line)) == []


# fmt: off
INFERRED = [
    # instruction                                                               shape
    ("add(p, p)",                                                               "f32[2,3]"),
    ("compare(p, p), direction=LT",                                             "pred[2,3]"),
    ("transpose(p), dimensions={1,0}",                                          "f32[3,2]"),
    ("reduce(p, z), dimensions={1}, to_apply=add",                              "f32[2]"),
    ("dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={1}",           "f32[2,2]"),
    ("pad(p, z), padding=1_0x0_0_2",                                            "f32[3,7]"),
    ("tuple(p, z)",                                                             "(f32[2,3], f32[])"),
    ("call(z, z), to_apply=add",                                                "f32[]"),
    ("abs(c)",                                                                  "f32[4]"),
    ("copy(p)",                                                                 "f32[2,3]"),
    ("map(z, z), to_apply=add",                                                 "f32[]"),
    ("map(p, p), dimensions={0,1}, to_apply=less",                              "pred[2,3]"),
    ("conditional(n, p, p), branch_computations={row, row}",                    "(f32[3])"),
    ("conditional(b, p, p), true_computation=row, false_computation=row",       "(f32[3])"),
    ("scan(p, z), dimensions={1}, num_carries=1, to_apply=step",                "(f32[2,3], pred[2,3,4], f32[])"),
]
BODIES = """
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = compare(a, b), direction=LT }
row { a = f32[2,3] parameter(0) t = f32[3] constant({1,2,3}) ROOT r = tuple(t) }
step {
  a = f32[2] parameter(0) s = f32[] parameter(1)
  w = f32[2,4] broadcast(a), dimensions={0} y = compare(w, w), direction=EQ ROOT r = tuple(a, y, s)
}
"""
# fmt: on


@pytest.mark.parametrize("line, shape", INFERRED)
def test_a_missing_shape_is_inferred(line: str, shape: str) -> None:
    more = ["c = c64[4] parameter(1)", "n = s32[] parameter(2)", "b = pred[] parameter(3)"]
    module = entry(P, Z, *more, f"ROOT r = {line}", before=BODIES)
    assert module.entry.root.shape == parse_shape(shape)
    assert hlo.infer_shapes(module).entry.root.declared_shape == parse_shape(shape)
    assert hlo.verify(module) == []


@pytest.mark.parametrize(
    "line, message",
    [
        ("broadcast(p), dimensions={0,1}", "the shape of `r` cannot be inferred from its operands"),
        ("map(p, p)", "the shape of `r` cannot be inferred from its operands"),
        ("conditional(p, p)", "the shape of `r` cannot be inferred from its operands"),
        ("scan(p), dimensions={0}", "the shape of `r` cannot be inferred from its operands"),
        ("mystery(p)", "the shape of `r` is missing, and opcode mystery is not registered"),
        ("transpose(p), dimensions={0,0}", "transpose C2"),
    ],
)
def test_a_shape_that_cannot_be_inferred_is_an_error(line: str, message: str) -> None:
    with pytest.raises(hlo.HloError, match=message):
        entry(P, f"ROOT r = {line}").entry.root.shape  # noqa: B018 - access infers it


def test_an_error_is_reported_once_and_not_for_every_user() -> None:
    module = entry(P, "q = transpose(p), dimensions={0,0}", "ROOT r = f32[2] negate(q)")
    (error,) = hlo.verify(module)
    assert error.label == "0 appears twice, 1 is missing"


def test_an_error_that_follows_from_a_wrong_declared_shape_is_omitted() -> None:
    body = [P, "q = f32[3,2] negate(p)", "c = f32[2,3] copy(q)", "ROOT r = (f32[2,3]) tuple(q)"]
    (error,) = hlo.verify(entry(*body))
    assert error.message == "`q` is declared f32[3,2], but its inferred shape is f32[2,3]"
    first, second = hlo.verify(entry(*body[:2], "ROOT r = f32[9] copy(q)"))
    assert first.message == error.message
    assert second.message == "`r` is declared f32[9], but its inferred shape is f32[2,3]"


def test_an_error_of_a_tuple_names_the_element() -> None:
    (error,) = hlo.verify(entry(P, Z, "ROOT r = (f32[2,3], f32[3]) tuple(p, z)"))
    assert error.message == "element 1 of `r` is declared f32[3], but operand 1 is f32[]"
    assert error.notes == ("operand `z` is f32[], declared at bad.hlo:4:3",)
    assert error.help == "write f32[] as element 1, or change operand `z`"


def test_the_repair_of_a_missing_list_is_a_sample_of_the_op() -> None:
    (error,) = hlo.verify(entry(P, "ROOT r = f32[3,2] transpose(p)"))
    assert error.help == "add it, as in f32[4,2,3] transpose(f32[2,3,4] p), dimensions={2,0,1}"
    (error,) = hlo.verify(entry(P, Z, "ROOT r = f32[2] reduce(p, z), dimensions={1}"))
    assert error.help == "add to_apply=NAME with the name of a computation"


# fmt: off
AGREES = [
    ("f32[2,3]",    "f32[2,3]{0,1}",   True),
    ("bf16[2]",     "f32[2]",          True),   # precision may be mixed
    ("s32[2]",      "s64[2]",          False),
    ("f32[<=4]",    "f32[4]",          True),
    ("f32[?,3]",    "f32[2,3]",        True),
    ("f32[?,3]",    "f32[2,4]",        False),
    ("f32[2]",      "f32[2,1]",        False),
    ("(f32[], s8[])", "(f32[], s8[])", True),
    ("(f32[])",     "f32[]",           False),
    ("token[]",     "token[]",         True),
]
# fmt: on


@pytest.mark.parametrize("declared, inferred, result", AGREES)
def test_declared_and_inferred_shapes_agree(declared: str, inferred: str, result: bool) -> None:
    assert agrees(parse_shape(declared), parse_shape(inferred)) is result


def test_equal_ops_are_one_object() -> None:
    module = entry(P, *(f"t{k} = f32[3,2] transpose(p), dimensions={{1,0}}" for k in range(3)))
    ops = [i.op for i in module.entry.instructions if i.opcode == "transpose"]
    assert ops[0] is ops[1] is ops[2]


def test_a_shape_that_cannot_be_inferred_after_a_wrong_one_is_one_more_error() -> None:
    """Its op cannot be read, so no shape corrects it for its users."""
    module = hlo.parse("""ENTRY e {
      p = f32[2] parameter(0)
      n = f32[3] negate(p)
      b = bitcast(n)
      ROOT m = f32[3] negate(b)
    }""")
    errors = [(error.span.line, error.message) for error in hlo.verify(module)]
    assert [line for line, _ in errors] == [3, 4]
    assert "cannot be inferred" in errors[1][1]
