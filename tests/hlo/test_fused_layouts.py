"""Layouts of elementwise ops in fusions, as in openxla/xla#48241."""

from __future__ import annotations

import pytest

import hlo
import indexing.ops  # noqa: F401 - registers the ops that `hlo.verify` checks

TEXT = """HloModule m
f {{
  p = f32[4,8]{{1,0}} parameter(0)
  c = f32[4,8]{copied} copy(p)
  b = bf16[4,8]{{0,1}} copy(p)
  ROOT n = f32[4,8]{{0,1}} {op}
}}
ENTRY e {{
  x = f32[4,8]{{1,0}} parameter(0)
  ROOT r = f32[4,8]{{0,1}} {call}
}}"""
FUSED = "fusion(x), kind=kLoop, calls=f"


@pytest.mark.parametrize(
    ("copied", "op", "call", "count"),
    [
        ("{0,1}", "negate(c)", FUSED, 0),
        ("{1,0}", "negate(c)", FUSED, 1),
        ("{1,0}", "add(c, p)", FUSED, 2),
        ("{1,0}", "copy(c)", FUSED, 0),
        ("", "negate(c)", FUSED, 0),
        ("{1,0}", "negate(c)", "call(x), to_apply=f", 0),
    ],
)
def test_elementwise_ops_of_fusions_keep_the_layout(
    copied: str, op: str, call: str, count: int
) -> None:
    errors = hlo.verify(hlo.parse(TEXT.format(copied=copied, op=op, call=call)))
    assert [error.code for error in errors] == ["layout"] * count
    for error in errors:
        assert "`n` has the layout {0,1}, but its operand" in error.message
        assert error.span.line == 6
