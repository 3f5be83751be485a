"""Every kind of text that XLA's parser rejects: rejected here, reported by `hlo.verify`, or accepted.

The parser is independent of ops, so `hlo.verify` reports violated constraints. `ACCEPTED` lists the
texts without an error, with the reason.
"""
# ruff: noqa: E501 - a row of a table is a line

import pytest

import hlo
import indexing.ops  # noqa: F401 - registers the ops that `hlo.verify` checks
from hlo.ops.op import OPS

START = "((f32[2]), f32[2], u32[])"


def entry(*lines: str) -> str:
    return "\n".join(["ENTRY e {", *lines, "}"])


def constant(shape: str, literal: str) -> str:
    return entry(f"ROOT c = {shape} constant({literal})")


P = "p = f32[2] parameter(0)"

# fmt: off
PARSE = [
    # case                                    text                                                                                  code
    ("5000 digits",                    constant("s32[]", "9" * 5000),                                                        "number"),
    ("a number of 65 bits",                   constant("u64[]", "18446744073709551616"),                                            "number"),
    ("a number of 65 bits, below 0",          constant("{s64[]}"[1:-1], "-9223372036854775809"),                                    "number"),
    ("one such number after others",          constant("f32[3]", "{1, 18446744073709551615, 18446744073709551616}"),                "number"),
    ("a parameter number of 5000 digits",        entry(f"p = f32[] parameter({'1' * 5000})"),                                          "number"),
    ("a layout of a scalar",                  entry("p = f32[]{} parameter(0)"),                                                    "layout"),
    ("an unknown index type",        entry("p = f32[2]{0:#(q)} parameter(0)"),                                             "layout"),
    ("a physical shape of a dense array",     entry("p = f32[2]{0:P(f32[2]{0})} parameter(0)"),                                     "layout"),
    ("an unknown dimension level type",   entry("p = f32[2]{0:D(X)} parameter(0)"),                                             "syntax"),
    ("is_scheduled is not a boolean",       f"HloModule m, is_scheduled=1\n{entry(P)}",                                           "attribute"),
    ("num_partitions is not a number",      f"HloModule m, num_partitions=x\n{entry(P)}",                                         "attribute"),
    ("a flag is not a boolean",             f"HloModule m, allow_spmd_sharding_propagation_to_output={{true,x}}\n{entry(P)}",     "attribute"),
    ("an entry layout without a result",      f"HloModule m, entry_computation_layout={{(f32[2]{{0}})->}}\n{entry(P)}",             "syntax"),
    ("an entry layout without parameters",    f"HloModule m, entry_computation_layout={{f32[2]{{0}}}}\n{entry(P)}",                 "attribute"),
    ("an alias index is not a number",                 f"HloModule m, input_output_alias={{ {{0, a}}: (0, {{}}) }}\n{entry(P)}",             "attribute"),
    ("an alias without its output",           f"HloModule m, input_output_alias={{ (0, {{1}}) }}\n{entry(P)}",                      "attribute"),
    ("an alias with two indices",             f"HloModule m, input_output_alias={{ {{0}}: (0, {{0}}): {{0, 1}} }}\n{entry(P)}",     "attribute"),
    ("an unknown alias kind",       f"HloModule m, input_output_alias={{ {{}}: (0, {{}}, so-alias) }}\n{entry(P)}",       "attribute"),
    ("an alias of a parameter with a name",   f"HloModule m, input_output_alias={{ {{}}: (zero, {{}}) }}\n{entry(P)}",              "attribute"),
    ("a donor index is not a number",                  f"HloModule m, buffer_donor={{ (0, {{0, a}}) }}\n{entry(P)}",                         "attribute"),
    ("a donor with a name",                   f"HloModule m, buffer_donor={{ (zero, {{0}}) }}\n{entry(P)}",                         "attribute"),
    ("an async-start without a tuple shape",       entry(P, "s = f32[2] negate-start(p)"),                                               "async"),
    ("an async-done without a start",             entry(P, "d = f32[2] negate-done(p)"),                                                "async"),
    ("an async-done of another op",           entry(P, f"s = {START} negate-start(p)", "d = f32[2] abs-done(s)"),                   "async"),
    ("an async-done on another thread",       entry(P, f"s = {START} negate-start(p)", 'd = f32[2] negate-done(s), async_execution_thread="t"'), "async"),
]
VERIFY = [
    # case                                    text                                                                                  line column
    ("a duplicate parameter number",              entry(P, "q = f32[2] parameter(0)"),                                                  3, 1),
    ("a missing parameter number",           entry(P, "q = f32[2] parameter(2)"),                                                  3, 1),
    ("a parameter without a number",          entry("p = f32[2] parameter()"),                                                      2, 1),
    ("a tile without elements",               entry("p = f32[2]{0:T(0)} parameter(0)"),                                             2, 1),
    ("a tile that ends in `*`",               entry("p = f32[2,3]{1,0:T(2,*)} parameter(0)"),                                       2, 1),
    ("a split of no dimension",               entry("p = (s32[], f32[2]{0:SC(5:1)}) parameter(0)"),                                 2, 1),
    ("too many braces in a literal",          constant("f32[2]", "{1,{2}}"),                                                        2, 29),
    ("too few braces in a literal",           constant("f32[2,3]", "{1, 2, 3, 4, 5, 6}"),                                           2, 29),
    ("too many values in a literal",          constant("f32[1,2]", "{{1, 2, 3}}"),                                                  2, 37),
    ("a value too large for f16",             constant("f16[]", "-65520"),                                                          2, 25),
    ("a value too large for bf16",            constant("bf16[]", "1e100"),                                                          2, 26),
    ("a value too large for f64",             constant("f64[]", "1.8e308"),                                                         2, 25),
    ("a value too large for u4",              constant("u4[]", "16"),                                                               2, 24),
    ("a value too small for s4",              constant("s4[]", "-9"),                                                               2, 24),
    ("a value too large for u32",             constant("u32[]", "4294967296"),                                                      2, 25),
    ("a part too large for c64",              constant("c64[]", "(1e100, 0)"),                                                      2, 25),
    ("a payload too large for bf16",          constant("bf16[1]", "{nan(0x3ff)}"),                                                  2, 28),
    ("a payload where there is none",         constant("f8e4m3fn[1]", "{nan(0x1)}"),                                                2, 32),
    ("an accuracy that is none",              entry(P, "n = f32[2] exponential(p), result_accuracy={mode=high}"),                   3, 50),
    ("an accuracy without a name",            entry(P, "n = f32[2] exponential(p), result_accuracy={0.5}"),                         3, 45),
    ("an accuracy of another name",           entry(P, "n = f32[2] exponential(p), result_accuracy={foo=10.0}"),                    3, 45),
    ("a missing attribute",                   entry(P, "n = f32[4,2] broadcast(p)"),                                                3, 1),
    ("a list where one is called",            entry("ROOT c = f32[] call(), to_apply={f}").replace("ENTRY", "f { p = f32[] constant(1) }\nENTRY"), 3, 33),
    ("no computation in braces",              entry("ROOT c = f32[] call(), to_apply={ }"),                                 2, 33),
    ("an attribute of another op",            entry(P, "n = f32[2] negate(p), dimensions={0}"),                                     3, 34),
]
OF_OPS = [
    # case                                    opcode         text
    ("dimension labels that repeat",          "convolution", entry("p = f32[1,2,1] parameter(0)", "k = f32[1,1,1] parameter(1)", "c = f32[1,2,1] convolution(p, k), window={size=1}, dim_labels=00_01->10")),
    ("padding of three numbers",              "convolution", entry("p = f32[1,2,1] parameter(0)", "k = f32[1,1,1] parameter(1)", "c = f32[1,4,1] convolution(p, k), window={size=1 pad=1_1_0}, dim_labels=b0f_0io->b0f")),
    ("infeed of an array",                    "infeed",      entry("t = token[] after-all()", "i = pred[] infeed(t)")),
    ("constraints for fewer operands",        "custom-call", entry(P, 'c = f32[2] custom-call(p, p), custom_call_target="x", operand_layout_constraints={f32[2]{0}}')),
    ("constraints of other shapes",           "custom-call", entry(P, 'c = f32[2]{0} custom-call(p), custom_call_target="x", operand_layout_constraints={f32[5]{0}}')),
    ("an unknown API version",                "custom-call", entry(P, 'c = f32[2] custom-call(p), custom_call_target="x", api_version=API_VERSION_OF_MINE')),
    ("a predicate that is no scalar",         "conditional", "f { p = f32[2] parameter(0) }\n" + entry(P, "b = s32[2] parameter(1)", "c = f32[2] conditional(b, p, p), branch_computations={f, f}")),
    ("a predicate that is a float",           "conditional", "f { p = f32[2] parameter(0) }\n" + entry(P, "b = f32[] parameter(1)", "c = f32[2] conditional(b, p, p), branch_computations={f, f}")),
    ("a predicate that has a list",           "conditional", "f { p = f32[2] parameter(0) }\n" + entry(P, "b = pred[] parameter(1)", "c = f32[2] conditional(b, p, p), branch_computations={f, f}")),
    ("a number that has two branches",        "conditional", "f { p = f32[2] parameter(0) }\n" + entry(P, "b = s32[] parameter(1)", "c = f32[2] conditional(b, p, p), true_computation=f, false_computation=f")),
    ("a number without branches",             "conditional", entry(P, "b = s32[] parameter(1)", "c = f32[2] conditional(b, p)")),
    ("an empty list of branches",             "conditional", entry(P, "b = s32[] parameter(1)", "c = f32[2] conditional(b, p), branch_computations={}")),
    ("a predicate that has one branch",       "conditional", "f { p = f32[2] parameter(0) }\n" + entry(P, "b = pred[] parameter(1)", "c = f32[2] conditional(b, p, p), true_computation=f")),
]
ACCEPTED = [
    # text                                                                          reason
    (entry("p = f32[9]{0:D(C)P((s32[9]{0}, f32[9]{0}))} parameter(0)"),             "XLA printed layouts of sparse arrays until 2024"),
    (entry("p = f32[2,2] parameter(0)", "d = f32[2,2] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sparsity=L.1@2:4"), "XLA printed sparse dots until 2025"),
    (f"HloModule m, cross_program_prefetches={{(0,{{}})}}\n{entry(P)}",             "other versions of XLA have other header keys"),
    (entry(P, "n = f32[2] what-is-this(p), of={1}"),                                "other versions of XLA have other ops"),
    (entry(P, "n = f32[2] my-op-start(p)"),                                         "an op of a user may have this suffix"),
    (entry(P, "ROOT n = slice(p), slice={[0:1]}"),                                  "a result shape may be omitted"),
    ("f { p = f32[2] parameter(0) }\n" + entry(P, "n = f32[2] fusion(p), calls=f"), "the kind of a fusion affects compilation, not the result"),
    (entry(P, "i = s32[1] parameter(1)", "n = f32[2] gather(p, i), offset_dims={0}, start_index_map={0}, index_vector_dim=0, slice_sizes={2}"), "an omitted list is empty"),
    (entry(P, 'n = f32[2] custom-call(p), custom_call_target="x", operand_layout_constraints={}'), "an empty list constrains nothing"),
    ("ENTRY e (p f32[2] q) -> f32[2] { ROOT p = f32[2] parameter(0) }",             "parameters in a signature are skipped: the instructions declare them"),
    (entry(P, "ROOT n = f32[2] all-reduce(p), replica_groups={{0,,1}}, to_apply=f").replace("ENTRY", "f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\nENTRY"), "device groups are uninterpreted text during parsing"),
    (entry(P, "s2 = f32[2] negate(p)", "ROOT u8 = f32[2] negate(s2)"),              "a name may look like an element type: the position decides"),
    ("p = f32[2] parameter(0) q = f32[2] negate(p)",                                "several instructions without a computation around them"),
    (entry(P, "ROOT n = negate(p), metadata={op_name=7}"),                          "values are uninterpreted text during parsing"),
]
# fmt: on


@pytest.mark.parametrize("case, text, code", PARSE)
def test_the_parser_rejects_invalid_text(case: str, text: str, code: str) -> None:
    with pytest.raises(hlo.HloError) as caught:
        hlo.parse(text)
    assert caught.value.code == code, case


@pytest.mark.parametrize("case, text, line, column", VERIFY)
def test_verify_reports_an_error_at_its_location(
    case: str, text: str, line: int, column: int
) -> None:
    errors = hlo.verify(hlo.parse(text))
    assert (line, column) in [(e.span.line, e.span.column) for e in errors], case


@pytest.mark.parametrize("case, opcode, text", OF_OPS)
def test_verify_reports_violated_constraints(case: str, opcode: str, text: str) -> None:
    module = hlo.parse(text)
    if opcode not in OPS:
        pytest.skip(f"{opcode} is not registered")
    assert hlo.verify(module), case


@pytest.mark.parametrize("text, why", ACCEPTED)
def test_some_texts_that_xla_rejects_are_accepted(text: str, why: str) -> None:
    module = hlo.parse(text)
    assert hlo.parse(str(module)) == module, why
