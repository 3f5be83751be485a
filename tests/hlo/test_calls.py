"""Called computations that contradict the signatures of ops."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

import pytest

import hlo
import indexing.ops  # noqa: F401 - registers the ops

COMPUTATIONS = """
one { a = f32[] parameter(0) ROOT r = f32[] negate(a) }
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
add16 { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT r = bf16[] add(a, b) }
ints { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }
row { a = f32[3] parameter(0) ROOT r = f32[3] negate(a) }
yes { a = f32[3] parameter(0) ROOT r = pred[] constant(true) }
"""
OPERANDS = """p = f32[3] parameter(0)
z = f32[] parameter(1)
i = s32[1] parameter(2)
b = pred[] parameter(3)
n = s32[] parameter(4)
u = f32[1] parameter(5)"""
SCATTER = "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"

# fmt: off
ROWS = [
    # instruction                                                        at       message; empty if valid
    ("f32[] reduce(p, z), dimensions={0}, to_apply=add",                 "",      ""),
    ("f32[] reduce(p, z), dimensions={0}, to_apply=add16",               "",      ""),
    ("f32[] reduce(p, z), dimensions={0}, to_apply=one",                 "one",   "`one` has 1 parameter, but reduce passes 2 arguments to its `to_apply`"),
    ("f32[] reduce(p, z), dimensions={0}, to_apply=ints",                "ints",  "parameter 0 of `ints` is s32[], but reduce passes f32[] to its `to_apply`"),
    ("f32[] reduce(p, z), dimensions={0}, to_apply=less",                "less",  "`less` returns pred[], but reduce requires f32[] of its `to_apply`"),
    ("f32[2] reduce-window(p, z), window={size=2}, to_apply=less",       "less",  "`less` returns pred[], but reduce-window requires f32[] of its `to_apply`"),
    ("f32[3] while(p), condition=yes, body=row",                         "",      ""),
    ("f32[3] while(p), condition=row, body=row",                         "row",   "`row` returns f32[3], but while requires pred[] of its `condition`"),
    ("f32[3] while(p), condition=yes, body=yes",                         "yes",   "`yes` returns pred[], but while requires f32[3] of its `body`"),
    ("f32[3] while(p), body=add, condition=yes",                         "add",   "`add` has 2 parameters, but while passes 1 argument to its `body`"),
    ("f32[3] conditional(n, p, p), branch_computations={row, row}",      "",      ""),
    ("f32[3] conditional(n, p, p), branch_computations={row, yes}",      "{row, yes}", "`yes` returns pred[], but conditional requires f32[3] of its branch 1"),
    ("f32[3] conditional(n, p, p), branch_computations={row}",           "{row}", "conditional calls 2 computations, but 1 is given"),
    ("f32[3] conditional(b, p, z), true_computation=row, false_computation=row", "row", "parameter 0 of `row` is f32[3], but conditional passes f32[] to its `false_computation`"),
    ("f32[3] sort(p), dimensions={0}, to_apply=less",                    "",      ""),
    ("f32[3] sort(p), dimensions={0}, to_apply=add",                     "add",   "`add` returns f32[], but sort requires pred[] of its `to_apply`"),
    ("f32[3] map(p, p), dimensions={0}, to_apply=add",                   "",      ""),
    ("f32[3] map(p, p), dimensions={0}, to_apply=one",                   "one",   "`one` has 1 parameter, but map passes 2 arguments to its `to_apply`"),
    (f"f32[3] scatter(p, i, u), {SCATTER}, to_apply=add",                 "",      ""),
    (f"f32[3] scatter(p, i, u), {SCATTER}, to_apply=less",                "less",  "`less` returns pred[], but scatter requires f32[] of its `to_apply`"),
    ("f32[3] select-and-scatter(p, p, z), window={size=1}, select=add, scatter=add", "add", "`add` returns f32[], but select-and-scatter requires pred[] of its `select`"),
    ("f32[3] select-and-scatter(p, p, z), window={size=1}, select=less, scatter=less", "less", "`less` returns pred[], but select-and-scatter requires f32[] of its `scatter`"),
]
# fmt: on


@pytest.mark.parametrize("text, at, message", ROWS)
def test_called_computations_match_their_signatures(text: str, at: str, message: str) -> None:
    module = hlo.parse(f"{COMPUTATIONS}ENTRY e {{\n{OPERANDS}\nROOT out = {text}\n}}")
    errors = hlo.verify(module)
    assert [error.message for error in errors] == ([message] if message else [])
    for error in errors:
        assert (error.code, error.span.text) == ("signature", at)
        assert error.span.line == module.entry.root.span.line


def test_verify_returns_all_errors_of_a_module() -> None:
    text = f"""{COMPUTATIONS}
ENTRY e {{
  p = f32[3] parameter(0)
  a = f32[3] transpose(p), dimensions={{1}}
  b = f32[4] negate(p)
  c = f32[3] add(p)
  d = f32[3] while(p), condition=row, body=yes
  ROOT e = f32[3] negate(p), colour={{red}}
}}"""
    errors = [(error.code, error.span.line) for error in hlo.verify(hlo.parse(text))]
    codes = ["op-constraint", "shape", "operands", "signature", "signature", "attribute"]
    assert errors == list(zip(codes, [12, 13, 14, 15, 15, 16], strict=True))
