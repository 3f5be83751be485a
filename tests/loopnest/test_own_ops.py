"""Ops that are declared outside of this project run as loop nests, by what their classes say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import hlo
import indexing
from hlo.ops.attributes import integer
from hlo.ops.op import OPS, Shape, attribute, op
from indexing.codegen.nest import LoopNest
from indexing.codegen.validation import validated
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.base import Array, BinaryOp, UnaryOp
from indexing.ops.element import Copy, Element, Elementwise
from indexing.ops.functions import ScalarFunction


@pytest.fixture(autouse=True)
def own_ops() -> Iterator[None]:
    """The ops of this file are registered, while its tests run."""
    known = dict(OPS)

    @op("acme-turn", samples=["f32[3,5] acme-turn(f32[3,5] p), dimension=1, shift=2"])
    class Turn(UnaryOp):
        """``out[i] = operand[(i − shift) mod size]`` along one dimension."""

        dimension: int = attribute(integer)
        shift: int = attribute(integer, default=1)

        def infer_shape(self, operand: Shape) -> Shape:
            return operand.with_layout(None)

        def output_to_input(self, out: Shape, operand: Shape) -> IndexingMap:
            return self._moved(out, -self.shift)

        def input_to_output(self, out: Shape, operand: Shape) -> IndexingMap:
            return self._moved(operand, self.shift)

        def _moved(self, shape: Shape, by: int) -> IndexingMap:
            size, k = shape.dims[self.dimension], self.dimension
            return IndexingMap.over(
                shape, lambda i: [(d + by) % size if n == k else d for n, d in enumerate(i)]
            )

        def element(self, out: Shape, *operands: Shape) -> Element:
            return Copy()

        def kernel(self, operand: Array) -> Array:
            return np.roll(operand, self.shift, self.dimension)

    @op("acme-mean-of", samples=["f32[3] acme-mean-of(f32[3] p, f32[3] q)"])
    class Mean(BinaryOp):
        """``out[i] = (left[i] + right[i]) / 2``."""

        def infer_shape(self, left: Shape, right: Shape) -> Shape:
            return left.with_layout(None)

        def output_to_input(
            self, out: Shape, left: Shape, right: Shape
        ) -> tuple[IndexingMap, IndexingMap]:
            return IndexingMap.identity(out), IndexingMap.identity(out)

        def input_to_output(
            self, out: Shape, left: Shape, right: Shape
        ) -> tuple[IndexingMap, IndexingMap]:
            return IndexingMap.identity(out), IndexingMap.identity(out)

        def element(self, out: Shape, *operands: Shape) -> Element:
            return Elementwise(ScalarFunction("acme-mean-of", "call", self.kernel))

        def kernel(self, left: Array, right: Array) -> Array:
            return np.asarray((left + right) * left.dtype.type(0.5))

    yield
    OPS.clear()
    OPS.update(known)


MODULE = """
fused {
  p = f32[3,5] parameter(0)
  r = f32[3,5] acme-turn(p), dimension=1, shift=2
  m = f32[3,5] acme-mean-of(p, r)
  ROOT t = f32[5,3] transpose(m), dimensions={1,0}
}
ENTRY main { q = f32[3,5] parameter(0)  ROOT f = f32[5,3] fusion(q), kind=kLoop, calls=fused }"""


def test_both_printers_know_them() -> None:
    root = hlo.parse(MODULE).entry.root
    nest = indexing.loop_nest(root)
    assert isinstance(nest, LoopNest)
    given = np.arange(15, dtype=np.float32).reshape(3, 5)
    wanted = ((given + np.roll(given, 2, 1)) / 2).T
    assert np.array_equal(nest.run(given), wanted)
    assert np.array_equal(nest.vectorized().run(given), wanted)
    assert np.array_equal(nest.run(given, tile=(2, 2)), wanted)
    assert "acme_mean_of(p[d1, d0], p[d1, (d0 - 2) % 5])" in nest.source


@pytest.mark.parametrize("name", ["fused/r", "fused/m", "main/f"])
def test_they_are_validated(name: str) -> None:
    computation, _, instruction = name.partition("/")
    module = hlo.parse(MODULE)
    report = validated(module.computations[computation][instruction], seed=1, most=1000)
    assert report.verdict == "ok"
    assert report.checks == "numpy, loops, poke"
