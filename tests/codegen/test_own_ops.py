"""User-defined ops as loop nests: those of `docs/adding_an_op.md`, and one more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hlo
import indexing
from hlo.ops.op import OPS, Shape, op
from indexing.codegen.nest import LoopNest
from indexing.codegen.validation import validate_instruction
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.base import Array, BinaryOp
from indexing.ops.element import ElementRule, ElementwiseRule
from indexing.ops.functions import ScalarFunction
from tests.codegen.test_nests_agree import check
from tests.ops.samples import Sample
from tests.ops.test_extension import made as made
from tests.ops.test_extension import samples as samples


@pytest.fixture
def mean(made: dict[str, Any]) -> Iterator[None]:
    """Register one more op than those of the page."""
    registered = dict(OPS)

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

        def element(self, out: Shape, *operands: Shape) -> ElementRule:
            return ElementwiseRule(ScalarFunction("acme-mean-of", "call", self.kernel))

        def kernel(self, left: Array, right: Array) -> Array:
            return np.asarray((left + right) * left.dtype.type(0.5))

    yield
    OPS.clear()
    OPS.update(registered)


MODULE = """
fused {
  p = f32[3,5] parameter(0)
  r = f32[3,5] acme-roll(p), dimension=1, shift=2
  m = f32[3,5] acme-mean-of(p, r)
  ROOT t = f32[5,3] transpose(m), dimensions={1,0}
}
ENTRY main { q = f32[3,5] parameter(0)  ROOT f = f32[5,3] fusion(q), kind=kLoop, calls=fused }"""


@pytest.mark.usefixtures("made")
def test_the_samples_of_the_page_run_and_are_validated(samples: list[Sample]) -> None:
    for sample in samples:
        check(sample, sample.inputs(np.random.default_rng(4)), tile=2)
        report = validate_instruction(sample.instruction, seed=1, max_elements=1000)
        assert report.status == "ok", report
        assert report.checks == "numpy, loops, poke"


@pytest.mark.usefixtures("mean")
def test_user_defined_ops_are_fused() -> None:
    root = hlo.parse(MODULE).entry.root
    nest = indexing.loop_nest(root)
    assert isinstance(nest, LoopNest)
    given = np.arange(15, dtype=np.float32).reshape(3, 5)
    expected = ((given + np.roll(given, 2, 1)) / 2).T
    assert np.array_equal(nest.run(given), expected)
    assert np.array_equal(nest.vectorized().run(given), expected)
    assert np.array_equal(nest.run(given, tile=(2, 2)), expected)
    assert "acme_mean_of(p[d1, d0], p[d1, (d0 - 2) % 5])" in nest.source


@pytest.mark.usefixtures("mean")
@pytest.mark.parametrize("name", ["fused/m", "main/f"])
def test_user_defined_ops_are_validated(name: str) -> None:
    computation, _, instruction = name.partition("/")
    module = hlo.parse(MODULE)
    report = validate_instruction(
        module.computations[computation][instruction], seed=1, max_elements=1000
    )
    assert report.status == "ok"
    assert report.checks == "numpy, loops, poke"
