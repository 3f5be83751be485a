"""Batch normalization: training, inference and gradient.

Each feature (an index along feature_index) has its own mean, variance, scale and offset, stored in
vectors with one element for each feature. A sum over a feature reads all elements of the feature.

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
from hlo.shapes.shape import AnyShape, TupleShape
from indexing.maps.indexing_map import Grade, IndexingMap, dims, ranges
from indexing.ops.base import Array, OperandMaps, VariadicOp
from indexing.ops.element import ElementRule, ElementwiseRule, Work
from indexing.ops.functions import ScalarFunction
from simplifier.atoms import Variable
from simplifier.unknown import Unknown


class BatchNorm(VariadicOp):
    """An op on an array and on vectors with one element for each feature of the array."""

    __slots__ = ()
    accumulates: ClassVar[bool] = True
    arrays: ClassVar[tuple[int, ...]] = (0,)
    """Operands with the dimensions of operand 0; all other operands are vectors."""
    types: ClassVar[tuple[str, ...]] = ("T: floating", "..")

    epsilon: float
    feature_index: int

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        """Arrays have one shape; vectors have the size of the feature dimension."""
        arrays = same_shape(*[operands[k] for k in self.arrays])
        same = dict(zip(self.arrays, arrays, strict=True))
        shapes = [same[k] if k in same else with_rank(s, 1) for k, s in enumerate(operands)]
        feature_dims = [(k, self.feature_index if k in same else 0) for k in range(len(shapes))]
        return same_sizes(shapes, feature_dims)

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        return Unknown("the number of operations depends on the expansion, XLA counts none")

    @constraint("C1", "feature_index must be a dimension of operand 0")
    def has_feature(self, *operands: Shape) -> Fault:
        if 0 <= self.feature_index < operands[0].rank:
            return HOLDS
        return Fault(f"operand 0 has rank {operands[0].rank}", "feature_index")

    @constraint(
        "C2", "arrays must be shaped like operand 0, vectors must have an element per feature"
    )
    def fits(self, *operands: Shape) -> Fault:
        array, vector = operands[0].dims, (operands[0].dims[self.feature_index],)
        for n, operand in enumerate(operands):
            expected = array if n in self.arrays else vector
            if operand.dims != expected:
                dims = ",".join(map(str, expected))
                shape = operand.with_layout(None)
                return Fault(f"operand {n} is {shape}, expected dimensions [{dims}]", n)
        return HOLDS

    def _result_shape(self, *operands: Shape) -> TupleShape:
        """The shape of an array and two vectors."""
        vector = array(operands[0].element_type, [dims_of(operands[0])[self.feature_index]])
        return TupleShape((operands[0], vector, vector))

    def _element_to_elements(self, array: Shape) -> IndexingMap:
        """From an element to all elements of the same feature; this map is its own inverse."""
        d = dims(array)
        return self._to_elements(array, d, d[self.feature_index])

    def _element_to_feature(self, array: Shape) -> IndexingMap:
        """From an element to its feature."""
        return IndexingMap.over(array, lambda d: [d[self.feature_index]])

    def _feature_to_elements(self, array: Shape) -> IndexingMap:
        """From a feature to its elements."""
        d = dims([array.dims[self.feature_index]])
        return self._to_elements(array, d, d[0])

    def _to_elements(self, array: Shape, d: tuple[Variable, ...], feature: Variable) -> IndexingMap:
        sizes = [n for k, n in enumerate(array.dims) if k != self.feature_index]
        s = ranges(*sizes)
        index = [*s[: self.feature_index], feature, *s[self.feature_index :]]
        return IndexingMap.of(d, index, ranges=s)

    def _vectors(self, rank: int, *vectors: Array) -> list[Array]:
        """Vectors as arrays of this rank that broadcast along the other dimensions."""
        sizes = [-1 if k == self.feature_index else 1 for k in range(rank)]
        return [vector.reshape(sizes) for vector in vectors]

    def _sum(self, array: Array) -> Array:
        """The sum over each feature."""
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

    Mean and variance are computed from the operand. If a feature has a single element, the element
    is its own mean, and the normalized value does not depend on the element.
    """

    is_splittable: ClassVar[bool] = True
    computes_slices: ClassVar[bool] = True
    obstacle: ClassVar[str] = (
        "the only element of a feature is its own mean: the normalized value does not depend on it"
    )
    map_options: ClassVar[tuple[str, ...]] = ("output_id",)
    min_operands: ClassVar[int] = 3
    max_operands: ClassVar[int | None] = 3
    epsilon: float = attribute(number)
    feature_index: int = attribute(integer)

    def infer_shape(self, *operands: Shape) -> TupleShape:
        return self._result_shape(*operands)

    def output_to_input(
        self, out: Shape, *operands: Shape, output_id: int = 0
    ) -> list[OperandMaps]:
        array = operands[0]
        grade = self._grade(array, output_id)
        if output_id:
            return [self._feature_to_elements(array).with_grade(grade), (), ()]
        elements, feature = self._element_to_elements(array), self._element_to_feature(array)
        return [elements.with_grade(grade), feature.with_grade(grade), feature]

    def _grade(self, array: Shape, output_id: int) -> Grade:
        """The only element of a feature affects the mean, but no other output."""
        return "exact" if output_id == 1 or array.size > array.dims[self.feature_index] else "may"

    def kernel(self, *operands: Array) -> tuple[Array, ...]:
        array, scale, offset = operands
        count = array.dtype.type(array.size // max(1, scale.size))
        with np.errstate(invalid="ignore"):
            mean = self._sum(array) / count
            centred = array - self._vectors(array.ndim, mean)[0]
            variance = self._sum(centred * centred) / count
        vectors = self._vectors(array.ndim, variance, scale, offset)
        return _normalise(self.epsilon, centred, *vectors), mean, variance


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

    is_splittable: ClassVar[bool] = True
    computes_slices: ClassVar[bool] = True
    min_operands: ClassVar[int] = 5
    max_operands: ClassVar[int | None] = 5
    epsilon: float = attribute(number)
    feature_index: int = attribute(integer)

    def infer_shape(self, *operands: Shape) -> Shape:
        return operands[0]

    def output_to_input(self, out: Shape, *operands: Shape) -> list[OperandMaps]:
        return [IndexingMap.identity(out), *[self._element_to_feature(out)] * 4]

    def element(self, out: Shape, *operands: Shape) -> ElementRule:
        def normalise(x: Array, scale: Array, offset: Array, mean: Array, var: Array) -> Array:
            return _normalise(self.epsilon, x - mean, var, scale, offset)

        return ElementwiseRule(ScalarFunction("normalised", "call", normalise))

    def kernel(self, *operands: Array) -> Array:
        array, *vectors = operands
        scale, offset, mean, variance = self._vectors(array.ndim, *vectors)
        return _normalise(self.epsilon, array - mean, variance, scale, offset)


def _normalise(
    epsilon: float, centred: Array, variance: Array, scale: Array, offset: Array
) -> Array:
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
    """The gradients with respect to the three operands of `BatchNormTraining`.

    The operands are the array x, scale, mean, variance, and the gradient g of the normalized array.
    With ``c = x − mean``, ``r = 1 / √(variance + epsilon)``, and sums over the N elements of a
    feature, the results are
    ``(scale · r · (N·g − Σg − c · r² · Σ(g·c)) / N,  r · Σ(g·c),  Σg)``.
    """

    is_splittable: ClassVar[bool] = True
    computes_slices: ClassVar[bool] = True
    map_options: ClassVar[tuple[str, ...]] = ("output_id",)
    min_operands: ClassVar[int] = 5
    max_operands: ClassVar[int | None] = 5
    arrays: ClassVar[tuple[int, ...]] = (0, 4)
    epsilon: float = attribute(number)
    feature_index: int = attribute(integer)

    def infer_shape(self, *operands: Shape) -> TupleShape:
        return self._result_shape(*operands)

    def output_to_input(
        self, out: Shape, *operands: Shape, output_id: int = 0
    ) -> list[OperandMaps]:
        array = operands[0]
        if output_id == 0:
            elements, feature = self._element_to_elements(array), self._element_to_feature(array)
            return [elements, feature, feature, feature, elements]
        return self._vector_reads(self._feature_to_elements(array), out, output_id)

    def _vector_reads(self, to_array: IndexingMap, out: Shape, output_id: int) -> list[OperandMaps]:
        """The maps from the gradient of the scale (output 1) or of the offset to the operands."""
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
            array_gradient = factor * (count * gradient - sums - centred * slope)
        return array_gradient, root * products, total
