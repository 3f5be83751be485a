"""Ops that are defined by other ops: top-k by a sort, batch normalisation by its formula."""

from __future__ import annotations

from typing import Any, Final

from indexing.equivalence.values.folds.fold_ranges import Fold
from indexing.equivalence.values.folds.folds import fold_formula
from indexing.equivalence.values.formulas.applications import Bodies, Frame, element_at
from indexing.equivalence.values.formulas.element_algebra import own_index
from indexing.equivalence.values.formulas.numbering import NumberedArray, attributes_of
from indexing.equivalence.values.formulas.sorts import stable_sort
from indexing.equivalence.values.terms.terms import Formula
from indexing.maps.indexing_map import dims
from indexing.ops.custom_call import target_of
from simplifier.atoms import Variable
from simplifier.linear import Expr

TOP_K: Final = "TopK = slice(sort(x))"
BATCH_NORM: Final = "batch-norm = (x - mean) * rsqrt(variance + epsilon) * scale + offset"


def defined_formula(bodies: Bodies, array: NumberedArray, frame: Frame) -> Formula | None:
    """Return the formula of an op that is defined by other ops; None for other ops."""
    instruction = array.instruction
    assert instruction is not None
    if instruction.opcode == "get-dimension-size":
        sizes: Any = attributes_of(instruction)[0][1]
        operand = array.operands[0][()].shape
        assert operand is not None
        return bodies.table.constant(operand.dims[sizes[0]], "s32")
    if not bodies.expands:
        return None
    if instruction.opcode == "topk" or target_of(instruction) == "TopK":
        return _largest(bodies, array, frame)
    if instruction.opcode in ("batch-norm-training", "batch-norm-inference"):
        return _normalised_element(bodies, array, frame)
    return None


def _largest(bodies: Bodies, array: NumberedArray, frame: Frame) -> Formula | None:
    """Return an element of a top-k as one of a stable sort along the last dimension."""
    instruction, shape, table = array.instruction, array.shape, bodies.table
    (values,) = array.operands[0].values()
    assert instruction is not None
    assert shape is not None
    if values.shape is None or len(array.operands) > 1 or len(array.path) != 1:
        return None
    last = len(shape.dims) - 1
    kind = values.shape.element_type
    places = table.index(dims(values.shape)[last].as_expr(), "s32")
    if instruction.called_computations:
        order = bodies.function(instruction.called_computations[0])
        bodies.trusted[TOP_K] += 1
    elif dict(attributes_of(instruction)).get("largest", True):
        left, right = (
            table.read(table.array("symbol", ("argument", k, ()), kind, ()), ()) for k in (0, 1)
        )
        attributes = ("direction", "GT"), ("type", "TOTALORDER")
        order = (bodies.algebra.apply("compare", attributes, "pred", [left, right]),)
    else:
        return None
    operands = [bodies.body(values, frame), places]
    return stable_sort(bodies, array, operands, order[0], last, array.path[0])


def _normalised_element(bodies: Bodies, array: NumberedArray, frame: Frame) -> Formula | None:
    """Return an element of a batch normalisation, or of its mean or variance.

    Source: XLA ``xla/service/batchnorm_expander.cc``.
    """
    instruction, shape, algebra = array.instruction, array.shape, bodies.algebra
    assert instruction is not None
    assert shape is not None
    leaves = [next(iter(tree.values())) for tree in array.operands]
    whole = leaves[0].shape
    if whole is None or whole.element_type not in ("f32", "f64"):
        return None
    attributes: dict[str, Any] = dict(attributes_of(instruction))
    feature, kind = attributes["feature_index"], whole.element_type
    of_feature = array.leaf > 0
    at = own_index(shape)[0 if of_feature else feature]

    def op(opcode: str, *arguments: Formula) -> Formula:
        return algebra.apply(opcode, (), kind, arguments)

    def per_feature(leaf: NumberedArray) -> Formula:
        assert leaf.shape is not None
        return element_at(bodies, leaf, frame, [at])

    if instruction.opcode == "batch-norm-training":
        x = _ranged_element(bodies, leaves[0], frame, feature, at)
        mean = _mean(bodies, leaves[0], feature, x)
        variance = op("subtract", _mean(bodies, leaves[0], feature, op("multiply", x, x)),
                      op("multiply", mean, mean))  # fmt: skip
    else:
        mean, variance = per_feature(leaves[3]), per_feature(leaves[4])
    bodies.trusted[BATCH_NORM] += 1
    if of_feature:
        return (mean, variance)[array.leaf - 1]
    epsilon = bodies.table.constant(attributes["epsilon"], kind)
    scale, offset = per_feature(leaves[1]), per_feature(leaves[2])
    factor = op("rsqrt", op("add", variance, epsilon))
    x = bodies.body(leaves[0], frame)
    if instruction.opcode == "batch-norm-inference":
        factor = op("multiply", factor, scale)
        shift = op("subtract", offset, op("multiply", mean, factor))
        return op("add", op("multiply", x, factor), shift)
    normal = op("multiply", op("subtract", x, mean), factor)
    return op("add", op("multiply", normal, scale), offset)


def _ranges(array: NumberedArray, feature: int) -> list[Variable]:
    assert array.shape is not None
    return [Variable(f"s{k}", 0, size - 1)
            for k, size in enumerate(array.shape.dims) if k != feature and size > 1]  # fmt: skip


def _ranged_element(
    bodies: Bodies, array: NumberedArray, frame: Frame, feature: int, at: Expr
) -> Formula:
    """Return an element over range variables in all dimensions but the feature."""
    assert array.shape is not None
    by_name = {v.name: v.as_expr() for v in _ranges(array, feature)}
    index = [at if k == feature else by_name.get(f"s{k}", e)
             for k, e in enumerate(own_index(array.shape))]  # fmt: skip
    return element_at(bodies, array, frame, index)


def _mean(bodies: Bodies, array: NumberedArray, feature: int, value: Formula) -> Formula:
    """Return the mean of values over range variables."""
    assert array.shape is not None
    kind = array.shape.element_type
    zero = bodies.table.constant(0, kind)
    ranges = tuple(_ranges(array, feature))
    total = fold_formula(bodies.algebra, Fold("add", (), 0, kind, (zero,), (value,), ranges))
    count = bodies.table.constant(array.shape.size // array.shape.dims[feature], kind)
    return bodies.algebra.apply("divide", (), kind, [total, count])
