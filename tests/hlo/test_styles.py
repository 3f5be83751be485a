"""One module in each print style of XLA: the same program, up to the omitted parts."""
# ruff: noqa: E501 - a row of a table is a line

from pathlib import Path
from typing import Any

import pytest

import hlo
import indexing.ops  # noqa: F401 - registers the ops that infer missing shapes
from hlo.modules.compare import Facet

DEFAULT = """HloModule m, is_scheduled=true, entry_computation_layout={(f32[2,3]{1,0})->f32[2]{0}}

FileNames
1 "a.py"

%plus (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y), metadata={op_name="plus" stack_frame_id=1}
}

ENTRY %main (p: f32[2,3]) -> f32[2] {
  %p = f32[2,3]{1,0} parameter(0)
  %zero = f32[] constant(0)
  %table = f32[2,3]{1,0} constant({ { 1, 2, 3 }, { 4, 5, 6 } })
  %scaled = f32[2,3]{1,0} multiply(%p, %table), control-predecessors={%zero}, backend_config={"threads":"4"}
  ROOT %total = f32[2]{0} reduce(%scaled, %zero), dimensions={1}, to_apply=%plus, metadata={op_name="sum"}
}
"""
CANONICAL = """HloModule m, is_scheduled=true, entry_computation_layout={(f32[2,3]{1,0})->f32[2]{0}}

ENTRY main {
  tmp_0 = f32[2,3]{1,0} parameter(0)
  tmp_1 = f32[2,3]{1,0} constant({...})
  tmp_2 = f32[] constant(0)
  tmp_3 = f32[2,3]{1,0} multiply(f32[2,3]{1,0} tmp_0, f32[2,3]{1,0} tmp_1), control-predecessors={tmp_2}
  ROOT tmp_4 = f32[2]{0} reduce(f32[2,3]{1,0} tmp_3, f32[] tmp_2), dimensions={1}, to_apply=
  {
    tmp_0 = f32[] parameter(0)
    tmp_1 = f32[] parameter(1)
    ROOT tmp_2 = f32[] add(f32[] tmp_0, f32[] tmp_1)
  }
}
"""

# fmt: off
STYLES: list[tuple[str, str, tuple[Facet, ...]]] = [
    # style                        text                                                                       same up to
    ("default",                    DEFAULT,                                                                   ()),
    ("no percent",                 DEFAULT.replace("%", ""),                                                  ()),
    ("no program shape",           DEFAULT.replace("(x: f32[], y: f32[]) -> f32[] ", ""),                     ()),
    ("operand shapes",             DEFAULT.replace("(%x, %y)", "(f32[] %x, f32[] %y)"),                       ()),
    ("operands on few lines",      DEFAULT.replace("(%p, %table)", "(%p, /*index=1*/\n    %table)"),          ()),
    ("no layouts",                 DEFAULT.replace("{1,0}", "").replace("{0}", ""),                           ("layouts",)),
    ("no metadata",                DEFAULT.replace(', metadata={op_name="sum"}', "").replace(', metadata={op_name="plus" stack_frame_id=1}', ""), ("metadata",)),
    ("no tables",                  DEFAULT.replace('FileNames\n1 "a.py"\n', ""),                              ("metadata",)),
    ("no backend config",          DEFAULT.replace(', backend_config={"threads":"4"}', ""),                   ("backend_config",)),
    ("no control dependencies",    DEFAULT.replace(", control-predecessors={%zero}", ""),                     ("control-predecessors",)),
    ("no large constants",         DEFAULT.replace("{ { 1, 2, 3 }, { 4, 5, 6 } }", "{...}"),                  ("literals",)),
    ("other names",                DEFAULT.replace("plus", "tmp_1").replace('"tmp_1"', '"plus"').replace("%sum", "%tmp_2"), ("names",)),
    ("canonical",                  CANONICAL,                                                                 ("backend_config", "literals", "metadata", "names", "order")),
]
DIFFERENT = [
    # change of the default          difference
    (("HloModule m", "HloModule n"), "the modules are named m and n"),
    (("is_scheduled=true, ", ""),    "only one header has is_scheduled"),
    (("->f32[2]{0}}", "->f32[3]{0}}"), "the headers have different values of entry_computation_layout"),
    (("add(", "multiply("),          "`plus` and `plus` have different opcodes"),
    (("(%x, %y)", "(%y, %x)"),       "instruction 2 of `plus`: the operands differ"),
    (("ROOT %sum", "%sum"),          None),
    (("ROOT %x", "%x"),              None),
    (("constant(0)", "constant(1)"), "instruction 1 of `main`: the literals are 0 and 1"),
    (("dimensions={1}", "dimensions={0}"), "instruction 4 of `main`: dimensions is {1} and {0}"),
    (("{%zero}", "{%table}"),        "instruction 3 of `main`: the control predecessors differ"),
    (("%p = f32[2,3]{1,0}", "%p = f32[2,4]{1,0}"), "instruction 0 of `main`: the shapes are f32[2,3] and f32[2,4]"),
]
INCOMPLETE = [
    # omitted part            text                                                                      message                                                    help
    ("names (fingerprint)",   DEFAULT.replace("HloModule m,", "HloModule ,"),                           "expected a name after HloModule, found `,`",                         "print the module with names"),
    ("operand names",         DEFAULT.replace("(%x, %y)", "(, )"),                                      "expected the name of an operand, found `,`",                         "print the module with operand names"),
    ("operand names",         DEFAULT.replace("(%x, %y)", "(f32[], f32[])"),                            "expected the name of an operand, found `,`",                         "print the module with operand names"),
    ("some operands",         DEFAULT.replace("(%x, %y)", "(%x, ...(+1))"),                             "expected the name of an operand, found `...`",                         "print the module with all operands"),
    ("extra attributes",      DEFAULT.replace(", dimensions={1}, to_apply=%plus", ""),                  "`dimensions` of reduce is missing: expected a list of integers",   "add it, as in f32[3] reduce("),
    ("result shapes",         DEFAULT.replace("%p = f32[2,3]{1,0}", "%p ="),                            "the shape of `p` cannot be inferred from its operands",      "write the result shape before parameter"),
]
# fmt: on


@pytest.mark.parametrize("style, text, up_to", STYLES)
def test_every_style_parses_to_the_same_program(
    style: str, text: str, up_to: tuple[Facet, ...]
) -> None:
    module = hlo.parse(text)
    assert hlo.difference(hlo.parse(DEFAULT), module, up_to=up_to) is None, style
    for facet in up_to:
        rest = [other for other in up_to if other != facet]
        assert hlo.difference(hlo.parse(DEFAULT), module, up_to=rest), f"{facet} is not needed"
    assert hlo.parse(str(module)) == module


@pytest.mark.parametrize("change, message", DIFFERENT)
def test_difference_describes_the_first_difference(
    change: tuple[str, str], message: str | None
) -> None:
    changed = hlo.parse(DEFAULT.replace(*change))
    assert hlo.difference(hlo.parse(DEFAULT), changed, up_to=["layouts"]) == message


@pytest.mark.parametrize("part, text, message, hint", INCOMPLETE)
def test_an_omitted_part_that_is_required_is_an_error(
    part: str, text: str, message: str, hint: str
) -> None:
    """The parser reports missing names; `hlo.verify` reports missing attributes and shapes."""
    try:
        errors = hlo.verify(hlo.parse(text))
    except hlo.HloError as error:
        errors = [error]
    assert errors, part
    assert errors[0].message == message
    assert hint in errors[0].help


@pytest.mark.parametrize(
    "option, value, up_to",
    [
        ("print_percent", False, ()),
        ("print_program_shape", False, ()),
        ("print_operand_shape", True, ()),
        ("print_large_constants", True, ("literals",)),
        ("print_ids", True, ()),
        ("canonicalize_computations", True, ()),
        ("print_control_dependencies", False, ("control-predecessors",)),
        ("print_metadata", False, ("metadata",)),
        ("print_backend_config", False, ("backend_config",)),
        ("include_layout_in_shapes", False, ("layouts",)),
        ("canonicalize_instruction_names", True, ("names",)),
    ],
)
def test_an_example_printed_by_xla_is_the_same_program(
    option: str, value: bool, up_to: tuple[Facet, ...], root: Path
) -> None:
    xla: Any = pytest.importorskip("jaxlib._hlo", reason="needs jaxlib, to print in this style")
    text = (root / "examples" / "gpt2_tiny.opt.hlo").read_text()
    module = xla.hlo_module_from_text(text)
    options = xla.HloPrintOptions()
    setattr(options, option, value)
    default, styled = hlo.parse(module.to_string()), hlo.parse(module.to_string(options))
    assert hlo.difference(default, styled, up_to=up_to) is None
