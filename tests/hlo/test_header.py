"""The header of a module: its values, and invalid values."""
# ruff: noqa: E501 - a row of a table is a line

from typing import Any

import pytest

import hlo
from hlo.modules.header import Alias, Donor, EntryLayout
from hlo.shapes.shape import parse_shape

ENTRY = "ENTRY e { p = f32[2] parameter(0) }"
F32 = parse_shape("f32[2]{0}")

# fmt: off
VALUES = [
    # key                                            text                                           value
    ("is_scheduled",                                 "true",                                        True),
    ("alias_passthrough_params",                     "false",                                       False),
    ("num_partitions",                               "8",                                           8),
    ("replica_count",                                "-1",                                          -1),
    ("allow_spmd_sharding_propagation_to_output",    "true",                                        (True,)),
    ("allow_spmd_sharding_propagation_to_output",    "{true, false}",                               (True, False)),
    ("entry_computation_layout",                     "{(f32[2]{0}, /*index=1*/f32[2]{0})->f32[2]{0}}", EntryLayout((F32, F32), F32)),
    ("entry_computation_layout",                     "{()->()}",                                    EntryLayout((), parse_shape("()"))),
    ("input_output_alias",                           "{ }",                                         ()),
    ("input_output_alias",                           "{ {}: (0, {}), {1, 0}: (2, {3}, must-alias) }",
                                                     (Alias((), 0, ()), Alias((1, 0), 2, (3,), "must-alias"))),
    ("buffer_donor",                                 "{ (0, {}), (1, {2}) }",                       (Donor(0, ()), Donor(1, (2,)))),
    ("frontend_attributes",                          "{a={b = 1}}",                                 "{a={b=1}}"),
    ("of_another_version",                           "{ 1, x }",                                    "{1,x}"),
]
WRONG = [
    # key and text                                   column  label
    ("is_scheduled=yes",                             27,     "expected true or false"),
    ("num_partitions=two",                           29,     "expected an integer"),
    ("num_partitions=" + "1" * 5000,                 29,     "5000 digits"),
    ("buffer_donor={ (0, {a}) }",                    34,     "expected an integer"),
    ("buffer_donor={ 0 }",                           29,     "expected `(`"),
    ("input_output_alias={ {0}: (0, {0}): {1} }",    48,     "expected `,` or `}`"),
    ("input_output_alias={ {0}: (0, {0}, so) }",     49,     "`so` is not one of them"),
    ("entry_computation_layout={f32[2]->f32[2]}",    40,     "expected the shapes of the parameters in parentheses"),
]
# fmt: on


@pytest.mark.parametrize("key, text, value", VALUES)
def test_header_values_are_typed(key: str, text: str, value: Any) -> None:
    module = hlo.parse(f"HloModule m, {key}={text}\n{ENTRY}")
    assert module.header(key) == value
    assert module.header("nothing") is None
    assert module.header("nothing", default=1) == 1
    assert hlo.parse(str(module)).header(key) == value


@pytest.mark.parametrize("text, column, label", WRONG)
def test_an_invalid_value_is_an_error_with_its_location(text: str, column: int, label: str) -> None:
    with pytest.raises(hlo.HloError) as caught:
        hlo.parse(f"HloModule m, {text}\n{ENTRY}")
    error = caught.value
    assert (error.span.line, error.span.column, error.label) == (1, column, label)
    assert text.partition("=")[0] in error.message or error.code == "number"


# fmt: off
CONTRADICTIONS = [
    # entry_computation_layout                     message
    ("{(f32[2]{0})->f32[3]{0}}",                   "the result is f32[3]{0} in entry_computation_layout, but f32[2] in the entry"),
    ("{(f32[3])->f32[2]}",                         "parameter 0 is f32[3] in entry_computation_layout, but f32[2] in the entry"),
    ("{(f16[2])->f32[2]}",                         "parameter 0 is f16[2] in entry_computation_layout, but f32[2] in the entry"),
    ("{()->f32[2]}",                               "the number of parameters in entry_computation_layout is 0, but `e` has 1"),
    ("{(f32[2])->(f32[2])}",                       "the result is (f32[2]) in entry_computation_layout, but f32[2] in the entry"),
    ("{(f32[2]{0:T(8)})->f32[2]{0:S(1)}}",         ""),  # layouts may differ
    ("{(f32[<=2])->f32[?]}",                       ""),
]
# fmt: on


@pytest.mark.parametrize("layout, message", CONTRADICTIONS)
def test_an_entry_layout_that_contradicts_the_entry_is_an_error(layout: str, message: str) -> None:
    module = hlo.parse(
        f"HloModule m, entry_computation_layout={layout}\n"
        "ENTRY e { p = f32[2] parameter(0)  ROOT n = f32[2] negate(p) }"
    )
    errors = hlo.verify(module)
    assert [error.message for error in errors] == ([message] if message else [])
    assert all(error.span.text == layout for error in errors)
