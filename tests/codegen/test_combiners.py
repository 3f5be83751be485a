"""Loops, NumPy programs and kernels agree whatever function a reduction or a scatter applies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hlo
import indexing
from hlo import Module, Shape
from hlo.modules.checks import verify
from hlo.ops.op import OPS
from hlo.shapes.shape import ELEMENT_TYPES, dtype
from indexing.codegen.nest import LoopNest
from indexing.execution import run
from indexing.ops.elementwise import BinaryElementwise
from tests.codegen.comparison import agree

ROOTS = {
    "reduce": "T[4] reduce(x, z), dimensions={1}, to_apply=f",
    "reduce-window": "T[4,4] reduce-window(x, z), window={size=1x3}, to_apply=f",
    "scatter": "T[4,6] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={}, "
    "scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=f",
}
TYPES = ("s32", "u8", "f32", "pred")
OF_OTHER_TYPES = {"complex", "stochastic-convert"}  # their results are of no operand's type
UNARY = {"abs", "negate", "not", "sign"}


def formulas() -> Iterator[str]:
    """Yield an instruction of each elementwise op of one or two operands of the type T."""
    for opcode, op in OPS.items():
        if opcode == "compare":
            yield from [
                f"compare(a, b), direction={d}" for d in ("EQ", "NE", "GE", "GT", "LE", "LT")
            ]
        elif issubclass(op, BinaryElementwise) and opcode not in OF_OTHER_TYPES:
            yield f"{opcode}(a, b)"
            yield f"{opcode}(b, a)"
        elif opcode in UNARY:
            yield f"{opcode}(a)"
            yield f"{opcode}(b)"


def module(formula: str, root: str, element_type: str) -> str:
    return f"""HloModule m

f {{
  a = {element_type}[] parameter(0)
  b = {element_type}[] parameter(1)
  ROOT c = {element_type}[] {formula}
}}

ENTRY e {{
  x = {element_type}[4,6] parameter(0)
  u = {element_type}[3,2,3] parameter(1)
  i = s32[3,2] constant({{{{0,1}},{{1,1}},{{2,4}}}})
  z = {element_type}[] parameter(2)
  ROOT r = {ROOTS[root].replace("T[", element_type + "[")}
}}
"""


def arrays(parsed: Module) -> list[Any]:
    random = np.random.default_rng(7)
    shapes = [p.shape for p in parsed.entry.parameters]
    return [
        random.integers(0, 2 if shape.element_type == "pred" else 9, shape.dims).astype(
            dtype(shape.element_type)
        )
        for shape in shapes
        if isinstance(shape, Shape)
    ]


@pytest.mark.parametrize("formula", formulas())
@pytest.mark.parametrize("root", ROOTS)
def test_nests_apply_any_function_of_two_elements(formula: str, root: str) -> None:
    checked = False
    for element_type in TYPES:
        parsed = hlo.parse(module(formula, root, element_type))
        if verify(parsed):
            continue
        checked = True
        nest = indexing.loop_nest(parsed.entry)
        assert isinstance(nest, LoopNest), nest
        inputs = arrays(parsed)
        (expected,) = run(parsed, inputs)
        agree(nest.run(*inputs), expected, nest.source)
        agree(nest.vectorized().run(*inputs), expected, nest.vectorized().source)
    assert checked


@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
@pytest.mark.parametrize("kind", [t for t, e in ELEMENT_TYPES.items() if e.kind == "floating"])
def test_padding_of_windows_is_neutral_in_every_type(kind: str, opcode: str) -> None:
    parsed = hlo.parse(f"""
        f {{ a = {kind}[] parameter(0) b = {kind}[] parameter(1) ROOT c = {kind}[] {opcode}(a, b) }}
        ENTRY e {{ x = {kind}[3] parameter(0) z = {kind}[] parameter(1)
          ROOT r = {kind}[3] reduce-window(x, z), window={{size=3 pad=1_1}}, to_apply=f }}""")
    given = [np.array([2, 1, 4]).astype(dtype(kind)), np.ones((), dtype(kind))]
    nest = indexing.loop_nest(parsed.entry.root)
    assert isinstance(nest, LoopNest)
    expected = [2, 4, 4] if opcode == "maximum" else [1, 1, 1]
    for computed in (nest.run(*given), nest.vectorized().run(*given), *run(parsed, given)):
        assert np.asarray(computed).astype(np.float64).tolist() == expected
