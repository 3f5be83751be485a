"""The builder: shape inference, immediate errors, and text that parses to an equal module."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlo
import indexing
from hlo.formats.builder import Builder, BuilderValue

ROOT = Path(__file__).parents[2]


def vector(build: Builder) -> BuilderValue:
    return build.parameter("f32[2,3]", name="p")


# fmt: off
OPS = [
    # opcode        attributes                                                         text
    ("negate",      {},                                                                "%negate = f32[2,3] negate(%p)"),
    ("transpose",   {"dimensions": (1, 0)},                                            "%transpose = f32[3,2] transpose(%p), dimensions={1,0}"),
    ("transpose",   {"dimensions": [1, 0], "name": "t"},                               "%t = f32[3,2] transpose(%p), dimensions={1,0}"),
    ("transpose",   {"dimensions": "{1,0}"},                                           "%transpose = f32[3,2] transpose(%p), dimensions={1,0}"),
    ("reshape",     {"shape": "f32[6]"},                                               "%reshape = f32[6] reshape(%p)"),
    ("broadcast",   {"shape": "f32[2,5,3]", "dimensions": (0, 2)},                     "%broadcast = f32[2,5,3] broadcast(%p), dimensions={0,2}"),
    ("copy",        {"shape": "f32[2,3]{0,1}", "metadata": '{op_name="c"}'},           '%copy = f32[2,3]{0,1} copy(%p), metadata={op_name="c"}'),
    ("slice",       {"slice": "{[0:1], [0:3:2]}"},                                     "%slice = f32[1,2] slice(%p), slice={[0:1], [0:3:2]}"),
    ("custom-call", {"shape": "f32[]", "custom_call_target": "x"},                     '%custom-call = f32[] custom-call(%p), custom_call_target="x"'),
    ("sine-ish",    {"shape": "f32[9]", "how": "{much}"},                              "%sine-ish = f32[9] sine-ish(%p), how={much}"),
]
# fmt: on


@pytest.mark.parametrize("opcode, attributes, text", OPS)
def test_an_op_is_built_by_its_opcode(opcode: str, attributes: dict[str, Any], text: str) -> None:
    build = Builder()
    build.op(opcode, vector(build), **attributes)
    module = build.build()
    assert str(module.entry.root) == text
    assert hlo.verify(module) == []
    assert hlo.parse(str(module)) == module


# fmt: off
CONSTANTS = [
    ("f32[]", 1.5, "1.5"), ("s32[3]", [1, 2, 3], "{1, 2, 3}"), ("pred[2]", np.array([True, False]), "{true, false}"),
    ("f32[2]", [float("inf"), float("nan")], "{inf, nan}"), ("c64[]", 1 - 2j, "(1.0, -2.0)"), ("s8[1,2]", "{{7,8}}", "{{7,8}}"),
]
# fmt: on


@pytest.mark.parametrize("shape, value, text", CONSTANTS)
def test_constants_print_as_literals(shape: str, value: Any, text: str) -> None:
    build = Builder()
    build.constant(shape, value)
    module = build.build()
    assert module.entry.root.literal is not None
    assert module.entry.root.literal.text == text
    assert hlo.verify(module) == []


def everything() -> Builder:
    """A module with a call, a fusion in it, a reduction, a tuple and an async pair."""
    build = Builder("all")
    add = build.computation("add")
    add.op("add", add.parameter("f32[]"), add.parameter("f32[]"))
    fused = build.computation("fused")
    p = fused.parameter("f32[2,3]")
    fused.op("reduce", p, fused.constant("f32[]", 0), dimensions=(1,), to_apply=add)
    outer = build.computation("outer")
    outer.fusion(fused, outer.op("negate", outer.parameter("f32[2,3]")))
    build.computation("unused").parameter("f32[]")
    q = vector(build)
    called = build.call(outer, q)
    both = build.tuple(called, q)
    started = build.op("async-start", q, shape="((f32[2,3]), f32[2], s32[])", calls=outer)
    done = build.op("async-done", started)
    build.root(build.op("add", build.element(both, 0), done, name="total"))
    build.op("negate", q, name="late")
    return build


def test_callees_precede_their_callers() -> None:
    module = everything().build()
    assert list(module.computations) == ["add", "fused", "outer", "main"]
    assert (module.entry.root.name, str(module.entry.root.shape)) == ("total", "f32[2]")
    assert hlo.verify(module) == []
    assert hlo.parse(str(module)) == module
    assert [u is None for u in indexing.output_to_input(module.entry.root).unknown] == [True, True]


def test_names_are_made_unique() -> None:
    build = Builder()
    p = vector(build)
    names = [
        build.op("negate", p).name,
        build.op("negate", p).name,
        build.op("abs", p, name="p").name,
    ]
    assert names == ["negate", "negate.1", "p.1"]


def test_a_violated_constraint_raises_immediately() -> None:
    build = Builder()
    with pytest.raises(hlo.HloError) as caught:
        build.op("transpose", vector(build), dimensions=(1, 1))
    assert str(caught.value).startswith("error[op-constraint]: transpose C2")
    assert caught.value.span.text == "{1,1}"
    assert caught.value.notes[0].startswith("operand `p` is f32[2,3]")


@pytest.mark.parametrize(
    "opcode, attributes, message",
    [
        ("transpos", {}, "'transpos' is not registered; did you mean `transpose`?"),
        ("zzz", {}, "'zzz' is not registered; an unregistered opcode needs `shape=`"),
        (
            "transpose",
            {"dimension": (0,)},
            "transpose has no attribute `dimension`: did you mean `dimensions`?",
        ),
    ],
)
def test_an_unknown_op_or_attribute_is_an_error(
    opcode: str, attributes: dict[str, Any], message: str
) -> None:
    build = Builder()
    with pytest.raises(ValueError, match=r"is not registered|has no attribute") as caught:
        build.op(opcode, vector(build), **attributes)
    assert message in str(caught.value)


def test_an_operand_of_another_computation_is_an_error() -> None:
    build = Builder()
    inner = build.computation("inner")
    with pytest.raises(ValueError, match="`p` belongs to computation `main`, not to `inner`"):
        inner.op("negate", vector(build))


def test_an_empty_computation_is_an_error() -> None:
    with pytest.raises(ValueError, match="computation `main` has no instructions"):
        Builder().build()


def test_importing_indexing_registers_the_ops() -> None:
    script = "import hlo, indexing\nm = hlo.parse('e { p = f32[2] parameter(0) ROOT n = f32[3] negate(p) }')\nprint(len(hlo.verify(m)))"
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "1"


def test_an_error_without_ops_names_the_import() -> None:
    script = "import hlo\nb = hlo.Builder()\nb.op('negate', b.parameter('f32[]'))"
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "`import indexing` registers the ops of HLO" in run.stderr
