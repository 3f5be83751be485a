"""Triangular systems by cuBLAS against the op of HLO; both are executed by the interpreter."""

from __future__ import annotations

from itertools import product
from typing import Any, Final

import numpy as np
import pytest

import hlo
from indexing import equivalent
from indexing.equivalence import Differs, Proved
from indexing.execution import run

LEFT, RIGHT = "f32[3,3]", {True: "f32[3,2]", False: "f32[2,3]"}
HEAD: Final = "ENTRY e {{ a = {left} parameter(0)  b = {right} parameter(1)  "
OP: Final = HEAD + (
    "ROOT x = {right} triangular-solve(a, b), left_side={side}, lower={lower}, "
    "unit_diagonal={unit}, transpose_a={transpose} }}"
)
CALL: Final = HEAD + (
    "c = ({right}, s8[0]) custom-call(a, b), "
    'custom_call_target="__cublas$triangularSolve", backend_config={{"left_side":{side},'
    '"lower":{lower},"unit_diagonal":{unit},"transpose_a":"{transpose}"}}  '
    "ROOT x = {right} get-tuple-element(c), index=0 }}"
)
KINDS: Final = list(product((True, False), (True, False), (True, False),
                            ("NO_TRANSPOSE", "TRANSPOSE")))  # fmt: skip


def text(template: str, side: bool, lower: bool, unit: bool, transpose: str) -> str:
    flags = {"side": side, "lower": lower, "unit": unit}
    words = {name: str(value).lower() for name, value in flags.items()}
    return template.format(left=LEFT, right=RIGHT[side], transpose=transpose, **words)


def result(module: str) -> Any:
    chance = np.random.default_rng(3)
    parsed = hlo.parse(module)
    shapes: list[Any] = [p.shape for p in parsed.entry.parameters]
    given = [chance.uniform(1, 2, shape.dims).astype(np.float32) for shape in shapes]
    (value,) = run(parsed, given)
    return np.asarray(value)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_call_is_the_op(kind: tuple[bool, bool, bool, str]) -> None:
    op, call = text(OP, *kind), text(CALL, *kind)
    np.testing.assert_array_equal(result(op), result(call))
    for before, after in ((op, call), (call, op)):
        verdict = equivalent(hlo.parse(before), hlo.parse(after))
        assert isinstance(verdict, Proved), verdict
        assert not verdict.laws


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("changed", range(1, 4))
def test_a_call_with_another_attribute_differs(
    kind: tuple[bool, bool, bool, str], changed: int
) -> None:
    other = list[Any](kind)
    other[changed] = not kind[changed] if changed < 3 else "NO_TRANSPOSE"
    other[changed] = "TRANSPOSE" if other[changed] == kind[changed] else other[changed]
    op, call = text(OP, *kind), text(CALL, *other)
    assert not np.array_equal(result(op), result(call))
    verdict = equivalent(hlo.parse(op), hlo.parse(call))
    assert isinstance(verdict, Differs), verdict


def test_a_call_of_other_matrices_differs() -> None:
    kind = True, True, False, "NO_TRANSPOSE"
    op, call = text(OP, *kind), text(CALL, *kind)
    flipped = call.replace("(a, b)", "(t, b)").replace(
        "c = (", "t = f32[3,3] transpose(a), dimensions={1,0}  c = ("
    )
    assert not np.array_equal(result(op), result(flipped))
    assert isinstance(equivalent(hlo.parse(op), hlo.parse(flipped)), Differs)
    default = op.replace("unit_diagonal=false, ", "")
    assert isinstance(equivalent(hlo.parse(default), hlo.parse(call)), Proved)
