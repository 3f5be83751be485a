"""The element rule and the maps of an op compute the kernel's results for all samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from hlo.ops.op import OPS
from indexing import IndexingMap
from indexing.dataflow.values import value_maps
from indexing.maps.arrays import ArrayRef
from indexing.ops.base import MappedOp
from indexing.ops.element import (
    ConstantRule,
    CopyRule,
    ElementRule,
    ElementwiseRule,
    IotaRule,
    OpaqueRule,
    ReductionRule,
    element_of,
)
from tests.ops.samples import FUNCTIONS, Array, Index, Sample, parse_sample

NO_KERNEL = ("parameter", "rng-get-and-update-state")
TEXTS = [
    text
    for cls in OPS.values()
    if issubclass(cls, MappedOp) and cls.opcode not in NO_KERNEL
    for text in cls.samples
]


@pytest.mark.parametrize("text", TEXTS)
def test_rules_and_maps_compute_the_results_of_the_kernel(text: str) -> None:
    check_element(parse_sample(text), np.random.default_rng(11))


def check_element(sample: Sample, random: np.random.Generator) -> None:
    """Compare each element of each result with the value from the maps and the element rule."""
    inputs = sample.inputs(random)
    for number, result in enumerate(sample.run(inputs)):
        rule = element_of(sample.instruction, number)
        if isinstance(rule, OpaqueRule):
            assert rule.reason
            continue
        with np.errstate(all="ignore"):
            for index in np.ndindex(*result.shape):
                computed = _Elements(sample, inputs, number).at(rule, index)
                _check_same(computed, result[index])


def _check_same(computed: Any, expected: Any) -> None:
    if np.dtype(expected.dtype).kind in "biu":
        assert computed == expected
    else:
        close = np.isclose(np.complex128(computed), np.complex128(expected), 1e-2, equal_nan=True)
        assert close, f"{computed}, not {expected}"


class _Elements:
    """Evaluation of one result of a sample, element by element."""

    def __init__(self, sample: Sample, inputs: Sequence[Array], output: int) -> None:
        out, shapes = sample.instruction.shape, sample.shapes
        reads = sample.op.reads(out, shapes, output, exact=True)
        self.maps = [maps if isinstance(maps, tuple) else () for maps in reads]
        self.sample, self.inputs, self.output = sample, inputs, output

    def at(self, rule: ElementRule, index: Index) -> Any:
        match rule:
            case ConstantRule():
                return self.sample.op.kernel()[index]
            case IotaRule(dimension):
                return index[dimension]
            case ElementwiseRule():
                function = rule.function.call if rule.function else self.applied
                values = [self.read(k, index) for k in range(len(self.inputs))]
                if rule.reads_nothing:
                    assert values == [[]]
                    values = [[array.dtype.type(0)] for array in self.inputs]
                return function(*[each for (each,) in values])
            case CopyRule():
                return self.copy(rule, index)
            case ReductionRule(is_product=True):
                return self.summed(rule, index)
            case ReductionRule():
                return self.reduced(rule, index)
        raise AssertionError(rule)

    @property
    def applied(self) -> Callable[..., Any]:
        return FUNCTIONS[self.sample.op.to_apply]

    def read(self, operand: int, index: Index) -> list[Any]:
        """The operand elements that the maps lead to, in the order of the range variables."""
        return [each for m in self.maps[operand] for each in self.through(m, operand, index)]

    def through(self, m: IndexingMap, operand: int, index: Index) -> Iterator[Any]:
        for _, read in self.indices(m, index):
            yield self.inputs[operand][read]

    def indices(self, m: IndexingMap, index: Index) -> Iterator[tuple[Index, Index]]:
        """The values of the range variables, with the index that the map evaluates to."""
        for values in product(*[range(s.lower, s.upper + 1) for s in m.ranges]):
            point = dict(zip((*m.dims, *m.ranges), (*index, *values), strict=True))
            runtime = []
            for rt in m.runtime:
                assert isinstance(rt.source, int)
                assert rt.clamp
                start = self.inputs[rt.source][tuple([e.value(point) for e in rt.index])]
                runtime.append(min(max(int(start), rt.clamp[0]), rt.clamp[1]))
            read = m.evaluate(index, values, runtime)
            if read is not None:
                yield values, read

    def copy(self, rule: CopyRule, index: Index) -> Any:
        values = [each for k in rule.operands for each in self.read(k, index)]
        if not values and rule.has_padding:
            return 0
        if not rule.joins_parts:
            assert len(values) == 1
        if rule.parts > 1:
            part = self.position(index) % rule.parts
            values = [np.asarray(values[0])[None], np.asarray([part])]
        elif rule.function:
            values = [np.asarray(each)[None] for each in values]
        return rule.function.call(*values)[0] if rule.function else values[0]

    def position(self, index: Index) -> int:
        """The element's position in memory."""
        shape, position = self.sample.outputs[self.output], 0
        for k in reversed(shape.layout_or_default.minor_to_major):
            position = position * shape.dims[k] + index[k]
        return position

    def summed(self, rule: ReductionRule, index: Index) -> Any:
        left, right = [
            {values: read for m in self.maps[k] for values, read in self.indices(m, index)}
            for k in rule.values
        ]
        total: Any = 0
        for values in left.keys() & right.keys():
            total += self.accumulate(rule, 0, left[values]) * self.accumulate(
                rule, 1, right[values]
            )
        return np.asarray(total).astype(rule.accumulator_dtype)

    def accumulate(self, rule: ReductionRule, operand: int, index: Index) -> Any:
        return self.inputs[operand][index].astype(rule.accumulator_dtype)

    def reduced(self, rule: ReductionRule, index: Index) -> Any:
        inits = [self.read(k, index) for k in rule.inits]
        totals = [init[0] for init in inits]
        for row in zip(*[self.read(k, index) for k in rule.values], strict=True):
            results = self.applied(*totals, *row)
            totals = list(results) if isinstance(results, tuple) else [results]
        return totals[self.output]


@pytest.mark.parametrize("opcode", ["constant", "iota"])
def test_constant_formulas_have_the_values_of_the_kernel(opcode: str) -> None:
    folds = 0
    for text in OPS[opcode].samples:
        sample = parse_sample(text)
        (result,) = sample.run([])
        pieces = value_maps(ArrayRef(sample.instruction)) or ()
        for index in np.ndindex(*result.shape if pieces else (0,)):
            values = [piece.evaluate(index) for piece in pieces]
            assert [int(v) for piece in values if piece for v in piece] == [int(result[index])]
            folds += 1
    assert folds
