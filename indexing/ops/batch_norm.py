"""Batch normalization: training, inference and gradient, as what they are composed of.

Each feature (an index along feature_index) has its own mean, variance, scale and offset: vectors
with one element for each feature. A sum over a feature reads all elements that have it.

Source: XLA ``docs/operation_semantics.md``, "BatchNormTraining", "BatchNormInference" and
"BatchNormGrad".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from hlo.ops.attributes import integer, number
from hlo.ops.op import HOLDS, Fault, Shape, attribute, constraint, op
from hlo.ops.unify import PartialShape, array, dims_of, same_shape, same_sizes, with_rank
from hlo.shapes.shape import TupleShape
from indexing.maps.indexing_map import Grade, IndexingMap, dims, ranges
from indexing.ops.base import Array, Entry, VariadicOp
from indexing.ops.element import ElementRule, ElementwiseRule
from indexing.ops.functions import ScalarFunction
from simplifier.atoms import Variable


class BatchNorm(VariadicOp):
    """An op on an array and on vectors with one element for each of its features."""

    __slots__ = ()
    arrays: ClassVar[tuple[int, ...]] = (0,)
    """The operands that have the sizes of the first one; the others are vectors."""

    epsilon: float
    feature_index: int

    def unified(self, *operands: PartialShape) -> Sequence[PartialShape]:
        """Arrays have one shape, and vectors the size of its feature dimension."""
        same = dict(zip(self.arrays, same_shape(*[operands[k] for k in self.arrays]), strict=True))
        found = [same[k] if k in same else with_rank(s, 1) for k, s in enumerate(operands)]
        places = [(k, self.feature_index if k in same else 0) for k in range(len(found))]
        return same_sizes(found, places)

    @constraint("C1", "feature_index is a dimension of operand 0")
    def has_feature(self, *operands: Shape) -> Fault:
        if 0 <= self.feature_index < operands[0].rank:
            return HOLDS
        return Fault(f"operand 0 has {operands[0].rank} dimensions", "feature_index")

    @constraint("C2", "the other arrays have the sizes of operand 0, vectors one for each feature")
    def fits(self, *operands: Shape) -> Fault:
        array, vector = operands[0].dims, (operands[0].dims[self.feature_index],)
        for place, operand in enumerate(operands):
            if operand.dims != (array if place in self.arrays else vector):
                return Fault(f"operand {place} is {operand.with_layout(None)}", place)
        return HOLDS

    def _normal_shape(self, *operands: Shape) -> TupleShape:
        """The shape of an array and of two vectors."""
        vector = array(operands[0].element_type, [dims_of(operands[0])[self.feature_index]])
        return TupleShape((operands[0], vector, vector))

    def _mates(self, array: Shape) -> IndexingMap:
        """From an element to all that have its feature; its own inverse."""
        d = dims(array)
        return self._everywhere(array, d, d[self.feature_index])

    def _feature(self, array: Shape) -> IndexingMap:
        """From an element to its feature."""
        return IndexingMap.over(array, lambda d: [d[self.feature_index]])

    def _members(self, array: Shape) -> IndexingMap:
        """From a feature to the elements that have it."""
        d = dims([array.dims[self.feature_index]])
        return self._everywhere(array, d, d[0])

    def _everywhere(self, array: Shape, d: tuple[Variable, ...], feature: Variable) -> IndexingMap:
        sizes = [n for k, n in enumerate(array.dims) if k != self.feature_index]
        s = ranges(*sizes)
        index = [*s[: self.feature_index], feature, *s[self.feature_index :]]
        return IndexingMap.of(d, index, ranges=s)

    def _vectors(self, rank: int, *vectors: Array) -> list[Array]:
        """Vectors as arrays of this rank, to be broadcast."""
        sizes = [-1 if k == self.feature_index else 1 for k in range(rank)]
        return [vector.reshape(sizes) for vector in vectors]

    def _sum(self, array: Array) -> Array:
        """The sums over each feature."""
        others = tuple([k for k in range(array.ndim) if k != self.feature_index])
        return np.asarray(array.sum(others, dtype=array.dtype))


@op(
    "batch-norm-training",
    samples=[
        "(f32[3,2], f32[2], f32[2]) batch-norm-training(f32[3,2] p, f32[2] q, f32[2] r), "
        "epsilon=0.5, feature_index=1",
        "(f64[1,2,3], f64[2], f64[2]) batch-norm-training(f64[1,2,3] p, f64[2] q, f64[2] r), "
        "epsilon=1, feature_index=1",
        "(f32[3,1], f32[3], f32[3]) batch-norm-training(f32[3,1] p, f32[3] q, f32[3] r), "
        "epsilon=0.25, feature_index=0",
        "(f32[0,2], f32[2], f32[2]) batch-norm-training(f32[0,2] p, f32[2] q, f32[2] r), "
        "epsilon=0.25, feature_index=1",
    ],
)
class BatchNormTraining(BatchNorm):
    """``(scale · (operand − mean) / √(variance + epsilon) + offset, mean, variance)``.

    Mean and variance are those of the operand itself. A single element is its own mean, so that the
    normalized value does not depend on it.
    """

    map_options: ClassVar[tuple[str, ...]] = ("output_id",)
    min_operands: ClassVar[int] = 3
    max_operands: ClassVar[int | None] = 3
    epsilon: float = attribute(number)
    feature_index: int = attribute(integer)

    def infer_shape(self, *operands: Shape) -> TupleShape:
        return self._normal_shape(*operands)

    def output_to_input(self, out: Shape, *operands: Shape, output_id: int = 0) -> list[Entry]:
        array = operands[0]
        grade = self._grade(array, output_id)
        if output_id:
            return [self._members(array).with_grade(grade), (), ()]
        feature = self._feature(array)
        return [self._mates(array).with_grade(grade), feature.with_grade(grade), feature]

    def _grade(self, array: Shape, output_id: int) -> Grade:
        """A single element decides nothing but the mean."""
        return "exact" if output_id == 1 or array.size > array.dims[self.feature_index] else "may"

    def kernel(self, *operands: Array) -> tuple[Array, ...]:
        array, scale, offset = operands
        count = array.dtype.type(array.size // max(1, scale.size))
        with np.errstate(invalid="ignore"):
            mean = self._sum(array) / count
            centred = array - self._vectors(array.ndim, mean)[0]
            variance = self._sum(centred * centred) / count
        spread = self._vectors(array.ndim, variance, scale, offset)
        found = _normal(self.epsilon, centred, *spread)
        return found, mean, variance


@op(
    "batch-norm-inference",
    samples=[
        "f32[2,3] batch-norm-inference(f32[2,3] p, f32[3] q, f32[3] r, f32[3] s, f32[3] t), "
        "epsilon=0.5, feature_index=1",
        "f64[2] batch-norm-inference(f64[2] p, f64[2] q, f64[2] r, f64[2] s, f64[2] t), "
        "epsilon=0.5, feature_index=0",
    ],
)
class BatchNormInference(BatchNorm):
    """``scale · (operand − mean) / √(variance + epsilon) + offset``.

    The operands are the array, scale, offset, mean and variance.
    """

    min_operands: ClassVar[int] = 5
    max_operands: ClassVar[int | None] = 5
    epsilon: float = attribute(number)
    feature_index: int = attribute(integer)

    def infer_shape(self, *operands: Shape) -> Shape:
        return operands[0]

    def output_to_input(self, out: Shape, *operands: Shape) -> list[Entry]:
        return [IndexingMap.identity(out), *[self._feature(out)] * 4]

    def element(self, out: Shape, *operands: Shape) -> ElementRule:
        def normalised(x: Array, scale: Array, offset: Array, mean: Array, spread: Array) -> Array:
            return _normal(self.epsilon, x - mean, spread, scale, offset)

        return ElementwiseRule(ScalarFunction("normalised", "call", normalised))

    def kernel(self, *operands: Array) -> Array:
        array, *vectors = operands
        scale, offset, mean, variance = self._vectors(array.ndim, *vectors)
        return _normal(self.epsilon, array - mean, variance, scale, offset)


def _normal(epsilon: float, centred: Array, variance: Array, scale: Array, offset: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(
            centred * (scale / np.sqrt(variance + centred.dtype.type(epsilon))) + offset
        )


@op(
    "batch-norm-grad",
    samples=[
        "(f32[3,2], f32[2], f32[2]) batch-norm-grad(f32[3,2] p, f32[2] q, f32[2] r, f32[2] s, "
        "f32[3,2] t), epsilon=0.5, feature_index=1",
        "(f64[2,1,3], f64[2], f64[2]) batch-norm-grad(f64[2,1,3] p, f64[2] q, f64[2] r, f64[2] s, "
        "f64[2,1,3] t), epsilon=0.5, feature_index=0",
    ],
)
class BatchNormGrad(BatchNorm):
    """The gradients of `BatchNormTraining`'s array with respect to its operands.

    The operands are the array x, scale, mean, variance, and the gradient g of the normalized array.
    With ``c = x − mean`` and ``r = 1 / √(variance + epsilon)``, sums over all N elements of a
    feature: ``(scale · r · (N·g − Σg − c · r² · Σ(g·c)) / N,  r · Σ(g·c),  Σg)``.
    """

    map_options: ClassVar[tuple[str, ...]] = ("output_id",)
    min_operands: ClassVar[int] = 5
    max_operands: ClassVar[int | None] = 5
    arrays: ClassVar[tuple[int, ...]] = (0, 4)
    epsilon: float = attribute(number)
    feature_index: int = attribute(integer)

    def infer_shape(self, *operands: Shape) -> TupleShape:
        return self._normal_shape(*operands)

    def output_to_input(self, out: Shape, *operands: Shape, output_id: int = 0) -> list[Entry]:
        array = operands[0]
        if output_id == 0:
            mates, feature = self._mates(array), self._feature(array)
            return [mates, feature, feature, feature, mates]
        return self._of_vector(self._members(array), out, output_id)

    def _of_vector(self, to_array: IndexingMap, out: Shape, output_id: int) -> list[Entry]:
        """The maps between a vector that is a gradient and the operands."""
        same = IndexingMap.identity(out)
        if output_id == 1:
            return [to_array, (), same, same, to_array]
        return [(), (), (), (), to_array]

    def kernel(self, *operands: Array) -> tuple[Array, ...]:
        array, scale, mean, variance, gradient = operands
        count = array.dtype.type(array.size // max(1, scale.size))
        centred = array - self._vectors(array.ndim, mean)[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            root = 1 / np.sqrt(variance + array.dtype.type(self.epsilon))
            products, total = self._sum(gradient * centred), self._sum(gradient)
            factor, sums, slope = self._vectors(
                array.ndim, scale * root / count, total, root * root * products
            )
            found = factor * (count * gradient - sums - centred * slope)
        return found, root * products, total
