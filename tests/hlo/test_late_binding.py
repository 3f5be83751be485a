"""Asynchronous steps that bind operands or results late, and starts whose results are bundles.

Source of the forms: XLA ``docs/async_ops.md``, "Late Binding".
"""
# ruff: noqa: E501 - a row of a table is a line

from __future__ import annotations

import numpy as np
import pytest

import hlo
import indexing
from hlo import Instruction, Module
from indexing.execution import run

NEGATE = "f { p = f32[8] parameter(0) ROOT n = f32[8] negate(p) }\n"
ADD = "f { p = f32[8] parameter(0) q = f32[8] parameter(1) ROOT n = f32[8] add(p, q) }\n"
SUM = "f { p = f32[] parameter(0) q = f32[] parameter(1) ROOT n = f32[] add(p, q) }\n"
LATE = "operands or results that are bound late are not analysed"
BUNDLE = "an all-reduce-start whose result is (operands, result, ..) is not analysed"
ONE = "((f32[8]), f32[8], s32[])"
TWO = "((f32[8], f32[8]), f32[8], s32[])"
NONE = "((f32[8]), (), s32[])"

# fmt: off
FORMS = [
    # computation  lines of the entry                                                            reason
    (ADD,    f"s = {NONE} call-start(x), to_apply=f  u = {TWO} call-update(s, y)  ROOT d = f32[8] call-done(u)",     LATE),
    (ADD,    f"s = {ONE} async-start(x), calls=f  u = {TWO} async-update(s, y)  ROOT d = f32[8] async-done(u)",      LATE),
    (ADD,    f"s = ((), (), s32[]) async-start(), calls=f  t = {ONE} async-update(s, x)  u = {TWO} async-update(t, y)  ROOT d = f32[8] async-done(u)", LATE),
    (NEGATE, f"s = {NONE} async-start(x), calls=f  u = {ONE} async-update(s, y)  ROOT d = f32[8] async-done(u)",     LATE),
    (NEGATE, f"s = {NONE} async-start(x), calls=f  u = {NONE} async-update(s)  ROOT d = f32[8] async-done(u)",       LATE),
    (NEGATE, f"s = {NONE} call-start(x), to_apply=f  ROOT d = f32[8] call-done(s)",                                  LATE),
    ("",     f"s = {NONE} negate-start(x)  ROOT d = f32[8] negate-done(s)",                                          LATE),
    ("",     f's = {NONE} custom-call-start(x), custom_call_target="t"  ROOT d = f32[8] custom-call-done(s)',        LATE),
    (SUM,    f"s = {ONE} all-reduce-start(x), to_apply=f  ROOT d = f32[8] all-reduce-done(s)",                       BUNDLE),
    (SUM,    "s = (f32[8], f32[8], s32[]) all-reduce-start(x), to_apply=f  ROOT d = f32[8] all-reduce-done(s)",      BUNDLE),
    (SUM,    "s = ((f32[8], f32[8]), (f32[8], f32[8]), s32[]) all-reduce-start(x, y), to_apply=f  ROOT d = (f32[8], f32[8]) all-reduce-done(s)", BUNDLE),
]
REJECTED = [
    (ADD,    f"s = {ONE} async-start(x), calls=f  u = {ONE} async-update(s, y)",       "async-update must have the shape of its operand, ((f32[8]), f32[8], s32[])"),
    (ADD,    f"s = {ONE} async-start(x), calls=f  u = {TWO} async-update(s, z)",       "async-update must have the shape of its operand, ((f32[8]), f32[8], s32[])"),
    (ADD,    f"s = {ONE} async-start(x), calls=f  u = {TWO} async-update(s)",          "async-update must have the shape of its operand, ((f32[8]), f32[8], s32[])"),
    (NEGATE, f"s = {NONE} async-start(x), calls=f  ROOT d = f32[8] async-done(s, y)",  "async-done must have one operand, an async-start or async-update"),
    ("",     f"s = {NONE} negate-start(x)  ROOT d = f32[4] negate-done(s)",            "`negate` is declared f32[4], but its inferred shape is f32[8]"),
]
# fmt: on


def module(before: str, lines: str) -> Module:
    parameters = "x = f32[8] parameter(0)  y = f32[8] parameter(1)  z = f32[4] parameter(2)"
    return hlo.parse(f"{before}ENTRY e {{ {parameters}  {lines} }}")


def reasons(root: Instruction) -> set[str]:
    unknown = indexing.to_parameters(root).unknown
    return {each.reason.partition(": ")[2] for each in unknown if each is not None}


@pytest.mark.parametrize("before, lines, reason", FORMS)
def test_other_forms_of_starts_are_valid_and_unknown(before: str, lines: str, reason: str) -> None:
    parsed = module(before, lines)
    assert hlo.verify(parsed) == []
    assert hlo.parse(str(parsed)) == parsed
    root = parsed.entry.root
    assert reasons(root) == {reason}
    forward = indexing.input_to_output(parsed.entry["s"], 0) if parsed.entry["s"].operands else None
    assert forward is None or all(not maps for maps in forward.maps)
    indexing.traffic(parsed)
    inputs = [np.zeros(n, np.float32) for n in (8, 8, 4)]
    with pytest.raises(hlo.HloError, match=r"bound late|\(operands, result, \.\.\)|unknown target"):
        run(parsed, inputs)


@pytest.mark.parametrize("before, lines, message", REJECTED)
def test_steps_that_bind_other_shapes_are_rejected(before: str, lines: str, message: str) -> None:
    with pytest.raises(hlo.HloError) as caught:
        raise hlo.verify(module(before, lines))[0]
    assert caught.value.message == message


@pytest.mark.parametrize("before, lines, reason", FORMS)
def test_programs_that_start_different_computations_are_not_proved_equal(
    before: str, lines: str, reason: str
) -> None:
    first = module(before, lines)
    for old, new in (("negate", "exponential"), (" add(", " multiply("), ('"t"', '"u"')):
        text = (before + lines).replace(old, new)
        if text != before + lines:
            split = len(before.replace(old, new))
            second = module(text[:split], text[split:])
            verdict = indexing.equivalent(first, second)
            assert not isinstance(verdict, indexing.Proved)


# fmt: off
STARTS = [
    # lines of the entry                                                                                                   the elements that are read by each of the result
    ("s = ((f32[8]), f32[16], s32[]) all-gather-start(x), dimensions={0}  ROOT d = f32[16] all-gather-done(s)",            [*range(8), *range(8)]),
    ("s = (f32[8], f32[16], s32[]) all-gather-start(x), dimensions={0}  ROOT d = f32[16] all-gather-done(s)",              [*range(8), *range(8)]),
    (f"s = {ONE} collective-permute-start(x), source_target_pairs={{{{0,1}}}}  ROOT d = f32[8] collective-permute-done(s)", [*range(8)]),
]
# fmt: on


@pytest.mark.parametrize("lines, read", STARTS)
def test_the_operands_of_a_collective_start_may_be_in_a_tuple(lines: str, read: list[int]) -> None:
    parsed = module("", lines)
    assert hlo.verify(parsed) == []
    (index_map,) = indexing.to_parameters(parsed.entry.root).maps[0]
    assert [index_map(k) for k in range(len(read))] == [(k,) for k in read]
