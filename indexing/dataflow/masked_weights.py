"""Weights of a softmax that are 0 where a mask excludes a score, whatever the scores are.

``softmax(where(mask, scores, -inf)) @ v`` multiplies the masked rows of `v` by 0: they are needed
for the value ``0 * inf`` only.  The zero is proved backwards from the product: ``e^x`` is 0 where
`x` is -inf, also after a number is subtracted, and a product or quotient with 0 is 0; or it is NaN,
and the sum of products is NaN for every `v`.

Where the mask has the least finite number of the type instead of -inf, ``e^(x - m)`` is 0 only if
the maximum `m` of the row is that of an element that is not masked: it must be the maximum of the
same scores, and every row must have such an element.  That is proved for masks without runtime
values alone.

Compilers divide a softmax over several fusions, and compute its scores in each of them.  So the
search goes on from the parameter of a computation to the operand of its only call, and scores are
the same if they are computed alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np

from hlo.modules.module import Computation, Instruction
from hlo.shapes.element_type import dtype
from hlo.shapes.shape import ELEMENT_TYPES, Shape
from indexing.dataflow.alike import are_alike, value_source
from indexing.dataflow.constants import literal
from indexing.dataflow.copies import copied_operands
from indexing.dataflow.evaluation import is_fold
from indexing.dataflow.masks import conditions, drop_mask_values, folded_pieces
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.ops import numerics
from indexing.ops.access_edge import AccessEdge
from indexing.ops.base import MappedOp
from indexing.ops.element import (
    CopyRule,
    ElementwiseRule,
    ReductionRule,
    element_of,
)

Parts: TypeAlias = tuple[IndexingMap, ...]
"""Parts of the identity of an array, which may overlap."""

MAX_DEPTH: Final = 100
"""Limit on the steps from a product back to a mask."""
MAX_PARTS: Final = 64
"""Limit on the parts of an array; beyond it, its mask is not used."""


class Masked(NamedTuple):
    """An array of scores, of which a mask replaces some.

    Attributes:
        parts: outside of them, elements are masked.
        is_infinite: masked elements are -inf or NaN; otherwise, they are the least finite number.
    """

    parts: Parts
    is_infinite: bool


def weigh_edges(
    instruction: Instruction, edges: Iterable[AccessEdge], of_runtime: bool
) -> Iterator[AccessEdge]:
    """Yield edges without the reads that masked weights multiply by 0.

    Args:
        of_runtime: follow masks of runtime values, too.
    """
    weighted = weighted_reads(instruction)
    if weighted is not None and not of_runtime and any(part.runtime for part in weighted[1]):
        weighted = None
    for edge in edges:
        if weighted is not None and edge.operand == weighted[0]:
            edge = edge.change_maps(partial(_weigh, weighted[1]))
        yield edge


def _weigh(parts: Parts, m: IndexingMap) -> Iterator[IndexingMap]:
    """Yield a map for each part of the weights that may be other than 0."""
    variables = m.dims, m.ranges
    if m.runtime or any((part.dims, part.ranges) != variables for part in parts):
        yield m
        return
    for part in parts:
        yield replace(part, results=m.results, constraints=(*m.constraints, *part.constraints))


def weighted_reads(instruction: Instruction) -> tuple[int, Parts] | None:
    """Return the operand of a sum of products that is multiplied by masked weights, or None.

    Returns:
        Its number, and the parts of the map of the weights outside of which they are 0 or NaN.
    """
    op, shape = instruction.op, instruction.shape
    if not isinstance(op, MappedOp) or not isinstance(shape, Shape) or not _multiplies(instruction):
        return None
    operand_maps = op.reads(shape, tuple([operand.shape for operand in instruction.operands]))
    for weights, reads in enumerate(operand_maps[:2]):
        if not isinstance(reads, tuple) or len(reads) != 1 or reads[0].runtime:
            continue
        parts = zero_outside(ArrayRef(instruction.operands[weights]))
        if parts is not None and all(_is_named_in(part, instruction.computation) for part in parts):
            return 1 - weights, tuple([reads[0].then(part) for part in parts])
    return None


def _is_named_in(part: IndexingMap, computation: Computation) -> bool:
    """Return True if the runtime values of a mask are those of a computation, not of its caller."""
    arrays = [rt.array for rt in part.runtime if isinstance(rt.array, ArrayRef)]
    return all((*each.calls, each.instruction)[0].computation is computation for each in arrays)


def zero_outside(array: ArrayRef) -> Parts | None:
    """Return parts of an array outside of which each element is 0 or NaN, or None.

    >>> import hlo, indexing
    >>> root = hlo.parse('''ENTRY e {
    ...   x = f32[4] parameter(0)
    ...   i = s32[4] iota(), iota_dimension=0
    ...   n = s32[] constant(2)
    ...   b = s32[4] broadcast(n), dimensions={}
    ...   p = pred[4] compare(i, b), direction=LT
    ...   low = f32[] constant(-inf)
    ...   lows = f32[4] broadcast(low), dimensions={}
    ...   s = f32[4] select(p, x, lows)
    ...   ROOT e = f32[4] exponential(s)
    ... }''').entry.root
    >>> print(*zero_outside(ArrayRef(root)))
    (d0) -> (d0), domain: d0 in [0, 1]
    """
    module = array.instruction.module
    with module.lock:
        parts: Parts | None = module.memoised(
            (zero_outside, array), lambda: _MaskSearch().zero(array, 0)
        )
    return parts if parts is None or len(parts) <= MAX_PARTS else None


class _MaskSearch:
    """A search back from weights, which visits each array once."""

    def __init__(self) -> None:
        self._zero: dict[ArrayRef, Parts | None] = {}

    def zero(self, array: ArrayRef, depth: int) -> Parts | None:
        """Return the parts outside of which the elements of an array are 0 or NaN, or None."""
        if array not in self._zero:
            self._zero[array] = None if depth > MAX_DEPTH else self._zero_of(array, depth + 1)
        return self._zero[array]

    def _zero_of(self, array: ArrayRef, depth: int) -> Parts | None:
        copied = _step(array)
        if copied is not None:
            return _pull_parts(copied, self.zero(copied[0], depth))
        operands = _operands(array)
        match _function(array):
            case np.multiply:
                either = (self.zero(operand, depth) for operand in operands)
                return next((parts for parts in either if parts is not None), None)
            case numerics.divide:
                return self.zero(operands[0], depth)
            case np.exp:
                return self._underflow(operands[0], depth)
            case np.where:
                for kept, fill, parts in _choices(array):
                    if _splat(fill) == 0:
                        return _both(parts, self.zero(kept, depth))
        return self.zero(operands[0], depth) if _is_conversion(array) else None

    def _underflow(self, array: ArrayRef, depth: int) -> Parts | None:
        """Return the parts outside of which ``e^x`` of the elements is 0 or NaN, or None."""
        copied = _step(array)
        if depth > MAX_DEPTH:
            return None
        if copied is not None:
            return _pull_parts(copied, self._underflow(copied[0], depth + 1))
        if _function(array) is np.subtract:
            scores, maximum = _operands(array)
            masked = self._mask_of_scores(scores, depth + 1)
            if masked is None or masked.is_infinite or _is_row_maximum(maximum, scores, masked):
                return masked and masked.parts
            return None
        masked = self._mask_of_scores(array, depth + 1)
        return masked and masked.parts

    def _mask_of_scores(self, array: ArrayRef, depth: int) -> Masked | None:
        """Return the mask of scores, or None."""
        copied = _step(array)
        if depth > MAX_DEPTH:
            return None
        if copied is not None:
            masked = self._mask_of_scores(copied[0], depth + 1)
            parts = masked and _pull_parts(copied, masked.parts)
            return None if masked is None or parts is None else masked._replace(parts=parts)
        if _is_conversion(array):
            return self._mask_of_scores(_operands(array)[0], depth + 1)
        if _function(array) is np.add:
            either = [self._mask_of_scores(operand, depth + 1) for operand in _operands(array)]
            return next((each for each in either if each and each.is_infinite), None)
        return self._mask_of_select(array, depth) if _function(array) is np.where else None

    def _mask_of_select(self, array: ArrayRef, depth: int) -> Masked | None:
        """Return the mask of scores that a select replaces by -inf or the least number, or None."""
        for kept, fill, parts in _choices(array):
            value = _splat(fill)
            if value is not None and value <= _least(array):
                masked = self._mask_of_scores(kept, depth + 1)
                both = _both(parts, masked and masked.parts)
                is_infinite = value == -np.inf and (masked is None or masked.is_infinite)
                return None if both is None else Masked(both, is_infinite)
        return None


# ---------------------------------------------------------------- steps


_Step: TypeAlias = tuple[ArrayRef, IndexingMap | None]
"""The array that another one copies, and the index of the copied element; None for the same."""


def _step(array: ArrayRef) -> _Step | None:
    """Return the array whose elements `array` copies, or None."""
    source = value_source(array)
    if source is not None:
        return source, None
    rule = element_of(array.instruction)
    if not isinstance(rule, CopyRule) or rule.has_padding:
        return None
    copies = copied_operands(array.instruction, rule)
    if len(copies) != 1:
        return None
    ((operand, read),) = copies
    return ArrayRef(operand, (), array.calls), read


def _pull_parts(step: _Step, parts: Parts | None) -> Parts | None:
    """Return the parts of a copy from those of its source."""
    read = step[1]
    if parts is None or read is None:
        return parts
    return tuple([_identity_on(read.then(part)) for part in parts])


def _identity_on(m: IndexingMap) -> IndexingMap:
    return replace(m, results=tuple([d.as_expr() for d in m.dims])).simplify()


def _both(one: Parts | None, other: Parts | None) -> Parts | None:
    """Return the common part; None is the whole array."""
    if one is None or other is None:
        return other if one is None else one
    return tuple([_identity_on(a.then(b)) for a in one for b in other])


def _choices(array: ArrayRef) -> Iterator[tuple[ArrayRef, ArrayRef, Parts]]:
    """Yield each side of a select for which it is known where it is chosen, and the other side."""
    instruction, operands = array.instruction, _operands(array)
    limits = conditions(instruction)
    for side in (1, 2):
        parts = limits.get(side)
        if parts is not None:
            named = tuple([new for part in parts for new in _name_pieces(part, array)])
            yield operands[side], operands[3 - side], named


def _name_pieces(part: IndexingMap, array: ArrayRef) -> Iterator[IndexingMap]:
    """Yield the pieces of a part with mask values that the callers of a computation name."""
    runtime = []
    for rt in part.runtime:
        source = rt.array
        if isinstance(source, ArrayRef):
            source = source._replace(calls=(*array.calls, *source.calls))
        runtime.append(replace(rt, array=source))
    for piece in folded_pieces(replace(part, runtime=tuple(runtime))):
        yield drop_mask_values(piece, array.instruction)


# ---------------------------------------------------------------- facts


def _operands(array: ArrayRef) -> list[ArrayRef]:
    return [ArrayRef(operand, (), array.calls) for operand in array.instruction.operands]


def _function(array: ArrayRef) -> object:
    """Return the function of the elements of a floating-point array; None if it is another rule."""
    rule, shape = element_of(array.instruction), array.array_shape
    if array.path or shape is None or not _is_floating(shape):
        return None
    return rule.function.call if isinstance(rule, ElementwiseRule) and rule.function else None


def _is_floating(shape: Shape) -> bool:
    return ELEMENT_TYPES[shape.element_type].kind == "floating"


def _is_conversion(array: ArrayRef) -> bool:
    """Return True for a conversion between floating-point types."""
    shapes = [each.shape for each in (array.instruction, *array.instruction.operands)]
    is_convert = array.instruction.opcode == "convert"
    return is_convert and all(isinstance(s, Shape) and _is_floating(s) for s in shapes)


def _least(array: ArrayRef) -> float:
    shape = array.array_shape
    assert shape is not None
    info: Any = ml_dtypes.finfo(dtype(shape.element_type))  # type: ignore[no-untyped-call]
    return float(info.min)


def _splat(array: ArrayRef) -> float | None:
    """Return the value of all elements of an array of copies of one constant, or None."""
    for _ in range(MAX_DEPTH):
        copied = _step(array)
        if copied is None:
            break
        array = copied[0]
    table = None if array.path else literal(array)
    if table is None or not table.size or (table != table.flat[0]).any():
        return None
    return float(table.flat[0])


def _is_row_maximum(maximum: ArrayRef, scores: ArrayRef, masked: Masked) -> bool:
    """Return True if an array has maxima of rows, each of which has a score that is not masked."""
    for _ in range(MAX_DEPTH):
        copied = _step(maximum)
        if copied is not None:
            maximum = copied[0]
        elif _function(maximum) is np.maximum:  # with anything else, it is as large
            maximum = _operands(maximum)[0]
        else:
            break
    instruction = maximum.instruction
    if not _is_reduction_by(instruction, "maximum") or len(instruction.operands) != 2:
        return False
    if not are_alike(_operands(maximum)[0], scores):
        return False
    op, shape = instruction.op, instruction.shape
    assert isinstance(op, MappedOp)
    reads = op.reads(shape, tuple([operand.shape for operand in instruction.operands]))[0]
    if not isinstance(reads, tuple) or len(reads) != 1:
        return False
    return _covers_domain(reads[0], [reads[0].then(part) for part in masked.parts])


def _covers_domain(whole: IndexingMap, parts: Sequence[IndexingMap]) -> bool:
    """Return True if each point of the domain of a map is in the domain of one of its parts."""
    from indexing.maps.relation import as_relation  # loads isl
    from simplifier.exact import unions

    if any(part.runtime for part in parts):
        return False
    domain, *domains = [as_relation(m, ()) for m in (whole, *parts)]
    return bool(domains) and unions.only_first([domain], domains) is None


def _is_reduction_by(instruction: Instruction, opcode: str) -> bool:
    """Return True for a reduction by an op of two parameters."""
    rule, called = element_of(instruction), instruction.called_computations
    if not isinstance(rule, ReductionRule) or len(called) != 1 or rule.is_scatter:
        return False
    return called[0].root.opcode == opcode and is_fold(called[0])


def _multiplies(instruction: Instruction) -> bool:
    """Return True for products of two arrays of floating-point numbers that are summed."""
    shape, rule = instruction.shape, element_of(instruction)
    if len(instruction.operands) != 2 or not isinstance(shape, Shape) or not _is_floating(shape):
        return False
    if isinstance(rule, ReductionRule):
        return rule.is_product and not rule.is_windowed
    return _is_summed_product(instruction)


def _is_summed_product(instruction: Instruction) -> bool:
    """Return True for a product that is only summed: the sign of its zeros does not matter."""
    is_product = _function(ArrayRef(instruction)) is np.multiply
    if not is_product or instruction is instruction.computation.root:
        return False
    return all(_is_reduction_by(user, "add") for user in instruction.users)
