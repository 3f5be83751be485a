"""The element of an op, with its maps, computes what the kernel computes: over all samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from hlo.ops.op import OPS
from indexing import IndexingMap
from indexing.dataflow.runtime import value
from indexing.maps.arrays import ArrayRef
from indexing.ops import element as rules
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
def test_elements_and_maps_compute_what_the_kernel_computes(text: str) -> None:
    check_element(parse_sample(text), np.random.default_rng(11))


def check_element(sample: Sample, random: np.random.Generator) -> None:
    """Each element of each result, computed from the maps and the element."""
    inputs = sample.inputs(random)
    for number, result in enumerate(sample.run(inputs)):
        element = element_of(sample.instruction, number)
        if isinstance(element, OpaqueRule):
            assert element.reason
            continue
        with np.errstate(all="ignore"):
            for index in np.ndindex(*result.shape):
                computed = _Elements(sample, inputs, number).at(element, index)
                _check_same(computed, result[index])


def _check_same(computed: Any, wanted: Any) -> None:
    if np.dtype(wanted.dtype).kind in "biu":
        assert computed == wanted
    else:
        close = np.isclose(np.complex128(computed), np.complex128(wanted), 1e-2, equal_nan=True)
        assert close, f"{computed}, not {wanted}"


class _Elements:
    """One result of a sample, element by element."""

    def __init__(self, sample: Sample, inputs: Sequence[Array], output: int) -> None:
        out, shapes = sample.instruction.shape, sample.shapes
        reads = sample.op.reads(out, shapes, output, exact=True)
        self.maps = [maps if isinstance(maps, tuple) else () for maps in reads]
        self.sample, self.inputs, self.output = sample, inputs, output

    def at(self, element: ElementRule, index: Index) -> Any:
        match element:
            case ConstantRule():
                return self.sample.op.kernel()[index]
            case IotaRule(dimension):
                return index[dimension]
            case ElementwiseRule():
                function = element.function.call if element.function else self.applied
                found = [self.read(k, index) for k in range(len(self.inputs))]
                if element.reads_nothing:
                    assert found == [[]]
                    found = [[array.dtype.type(0)] for array in self.inputs]
                return function(*[each for (each,) in found])
            case CopyRule():
                return self.copied(element, index)
            case ReductionRule(is_product=True):
                return self.summed(element, index)
            case ReductionRule():
                return self.folded(element, index)
        raise AssertionError(element)

    @property
    def applied(self) -> Callable[..., Any]:
        return FUNCTIONS[self.sample.op.to_apply]

    def read(self, operand: int, index: Index) -> list[Any]:
        """The elements of an operand that maps lead to, in the order of their range variables."""
        return [each for m in self.maps[operand] for each in self.through(m, operand, index)]

    def through(self, m: IndexingMap, operand: int, index: Index) -> Iterator[Any]:
        for _, place in self.places(m, index):
            yield self.inputs[operand][place]

    def places(self, m: IndexingMap, index: Index) -> Iterator[tuple[Index, Index]]:
        """The values of the range variables, and the index that the map then gives."""
        for values in product(*[range(s.lower, s.upper + 1) for s in m.ranges]):
            point = dict(zip((*m.dims, *m.ranges), (*index, *values), strict=True))
            runtime = []
            for rt in m.runtime:
                assert isinstance(rt.source, int)
                assert rt.clamp
                start = self.inputs[rt.source][tuple([e.value(point) for e in rt.index])]
                runtime.append(min(max(int(start), rt.clamp[0]), rt.clamp[1]))
            found = m.evaluate(index, values, runtime)
            if found is not None:
                yield values, found

    def copied(self, element: CopyRule, index: Index) -> Any:
        found = [each for k in element.operands for each in self.read(k, index)]
        if not found and element.has_padding:
            return 0
        if not element.joins:
            assert len(found) == 1
        if element.parts > 1:
            part = self.position(index) % element.parts
            found = [np.asarray(found[0])[None], np.asarray([part])]
        elif element.function:
            found = [np.asarray(each)[None] for each in found]
        return element.function.call(*found)[0] if element.function else found[0]

    def position(self, index: Index) -> int:
        """The element's place in memory."""
        shape, found = self.sample.outputs[self.output], 0
        for k in reversed(shape.layout_or_default.minor_to_major):
            found = found * shape.dims[k] + index[k]
        return found

    def summed(self, element: ReductionRule, index: Index) -> Any:
        left, right = [
            {at: place for m in self.maps[k] for at, place in self.places(m, index)}
            for k in element.values
        ]
        total: Any = 0
        for values in left.keys() & right.keys():
            total += self.wide(element, 0, left[values]) * self.wide(element, 1, right[values])
        return np.asarray(total).astype(element.wide)

    def wide(self, element: ReductionRule, operand: int, place: Index) -> Any:
        return self.inputs[operand][place].astype(element.wide)

    def folded(self, element: ReductionRule, index: Index) -> Any:
        inits = [self.read(k, index) for k in element.inits]
        totals = [init[0] for init in inits]
        for row in zip(*[self.read(k, index) for k in element.values], strict=True):
            found = self.applied(*totals, *row)
            totals = list(found) if isinstance(found, tuple) else [found]
        return totals[self.output]


@pytest.mark.parametrize("opcode", ["constant", "iota"])
def test_folded_values_are_those_of_the_kernel(opcode: str) -> None:
    folds = 0
    for text in OPS[opcode].samples:
        sample = parse_sample(text)
        (result,) = sample.run([])
        pieces = value(ArrayRef(sample.instruction)) or ()
        for index in np.ndindex(*result.shape if pieces else (0,)):
            at = [piece.evaluate(index) for piece in pieces]
            assert [int(v) for found in at if found for v in found] == [int(result[index])]
            folds += 1
    assert folds


@pytest.mark.parametrize("old, new", rules.OLD_NAMES.items())
def test_a_deprecated_name_of_a_rule_warns_and_gives_the_rule(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"use indexing.ops.element.{new}"):
        assert getattr(rules, old) is getattr(rules, new)
