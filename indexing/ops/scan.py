"""Scan: a computation runs over the slices of arrays, and carries values from one to the next.

Source: XLA ``xla/service/scan_expander.cc``, which says it as a while loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from hlo.modules.bind import agrees
from hlo.modules.module import Computation, Instruction
from hlo.ops.attributes import boolean, computation, int_list, integer
from hlo.ops.op import HOLDS, Fault, Shape, attribute, constraint, declared, op
from hlo.ops.protocols import InstructionLike
from hlo.ops.unify import may_be
from hlo.shapes.shape import UNBOUNDED, AnyShape, TupleShape, dtype, leaves
from indexing.maps.answers import Path, Unknown
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.map_set import MapSet
from indexing.ops.access_edge import AccessEdge
from indexing.ops.base import Array, every_element
from indexing.ops.element import ElementRule, OpaqueRule
from indexing.ops.structured_ops import StructuredOp, Summaries
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr
from simplifier.unknown import first_unknown

When: TypeAlias = Literal["now", "before", "until now"]
"""Which slices of an array are read: the one at hand, those before it, or both."""


@op(
    "scan",
    samples=[
        "(f32[5], f32[]) scan(f32[5] p, f32[] z), dimensions={0}, num_carries=1, "
        "to_apply=add_twice",
        "(f32[5], f32[]) scan(f32[5] p, f32[] z), dimensions={0}, num_carries=1, "
        "is_reverse=true, is_associative=true, to_apply=add_twice",
        "(f32[0], f32[]) scan(f32[0] p, f32[] z), dimensions={0}, num_carries=1, "
        "to_apply=add_twice",
    ],
)
class Scan(StructuredOp):
    """``(out[t], .., carry, ..) = to_apply(input[t], .., carry, ..)`` for each t along a dimension.

    Operands are the inputs and then the first values of the carries; results are the outputs and
    then the last values of the carries.

    What a step reads of the carries, it reads of all inputs of the steps before. Where `to_apply`
    goes element by element, these maps do as well; else a slice may need all of another.
    """

    rule: ClassVar[ElementRule] = OpaqueRule("it runs a computation on whole values")
    min_operands: ClassVar[int] = 1
    shape: AnyShape = declared(any_shape=True)
    dimensions: tuple[int, ...] = attribute(int_list)
    num_carries: int = attribute(integer)
    is_reverse: bool = attribute(boolean, default=False)
    is_associative: bool | None = attribute(boolean, default=None)
    to_apply: str = attribute(computation)

    # ------------------------------------------------------------ rules

    @classmethod
    def default_shape(cls, instruction: InstructionLike) -> AnyShape | None:
        """The results of a step; the outputs have the size of operand 0 along the dimension."""
        given = instruction.attributes
        if not instruction.called_computations or not {"dimensions", "num_carries"} <= set(given):
            return None
        axes = int_list.parse(given["dimensions"].span, "`dimensions` of scan")
        carries = integer.parse(given["num_carries"].span, "`num_carries` of scan")
        step, first = instruction.called_computations[0].root.shape, instruction.operands[0].shape
        if len(axes) != 1 or not isinstance(first, Shape) or not 0 <= axes[0] < first.rank:
            return None
        results = list(step.elements) if isinstance(step, TupleShape) else [step]
        for number, shape in enumerate(results[: len(results) - carries]):
            if not isinstance(shape, Shape):
                return None
            before, after = shape.dims[: axes[0]], shape.dims[axes[0] :]
            results[number] = shape.with_dims((*before, first.dims[axes[0]], *after))
        return TupleShape(tuple(results)) if isinstance(step, TupleShape) else results[0]

    @constraint("C1", "the operands are arrays")
    def has_arrays(self, *operands: AnyShape) -> Fault:
        for number, operand in enumerate(operands):
            if not isinstance(operand, Shape):
                return Fault(f"operand {number} is {operand}", number)
        return HOLDS

    @constraint("C2", "one operand or more is no carry, and one result or none for each carry")
    def has_inputs(self, *operands: Shape) -> Fault:
        if not 0 <= self.num_carries < len(operands):
            return Fault(f"there are {len(operands)} operands", "num_carries")
        count = len(leaves(self.shape))
        if self.num_carries > count:
            return Fault(f"there are {count} results", "num_carries")
        return HOLDS

    @constraint("C3", "inputs and outputs have the same size along the one dimension")
    def has_dimension(self, *operands: Shape) -> Fault:
        if len(self.dimensions) != 1:
            return Fault(f"{len(self.dimensions)} dimensions are given", "dimensions")
        axis, inputs = self.dimensions[0], operands[: len(operands) - self.num_carries]
        for what, shapes in ("operand", inputs), ("result", self._outputs()):
            for number, shape in enumerate(shapes):
                if not isinstance(shape, Shape) or not 0 <= axis < shape.rank:
                    return Fault(f"{what} {number} is {shape}", "dimensions")
                if not may_be(shape.dims[axis], operands[0].dims[axis]):
                    sizes = f"{shape.dims[axis]}, that of operand 0 is {operands[0].dims[axis]}"
                    return Fault(f"the size of {what} {number} is {sizes}", "dimensions")
        return HOLDS

    @constraint("C4", "the last value of a carry has the shape of the first one")
    def keeps_carries(self, *operands: Shape) -> Fault:
        results = [shape for _, shape in leaves(self.shape)][len(self._outputs()) :]
        for number, result in enumerate(results, len(operands) - self.num_carries):
            if not agrees(result, operands[number]):
                return Fault(f"{operands[number]} becomes {result}", number)
        return HOLDS

    def _outputs(self) -> list[AnyShape]:
        """The shapes of the results that are no carries."""
        found: list[AnyShape] = [shape for _, shape in leaves(self.shape)]
        return found[: len(found) - self.num_carries]

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return self.shape

    # ------------------------------------------------------------ maps

    def edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        body = instruction.called_computations[0]
        if reason := self._misfit(instruction, body):
            for number in range(len(instruction.operands)):
                yield AccessEdge(number, (), output, (), Unknown(reason, instruction))
            return
        leaf = _Leaf(self, instruction, output, summaries)
        for number in range(len(instruction.operands)):
            found = leaf.maps(number)
            if found.maps or found.unknown is not None:
                yield AccessEdge(number, (), output, tuple(found.maps), found.unknown)

    def _misfit(self, instruction: Instruction, body: Computation) -> str:
        """How the computation's parameters or results are not those of one step."""
        operands: list[AnyShape] = [operand.shape for operand in instruction.operands]
        if any(UNBOUNDED in _array(s).dims for _, s in leaves(TupleShape((self.shape, *operands)))):
            return f"scan `{instruction.name}`: a dimension has an unknown size"
        inputs = len(operands) - self.num_carries
        taken = [self.slice_of(s) if n < inputs else s for n, s in enumerate(operands)]
        given: list[AnyShape] = [self.slice_of(shape) for shape in self._outputs()]
        given += [shape for _, shape in leaves(self.shape)][len(given) :]
        called = [parameter.shape for parameter in body.parameters]
        results = [shape for _, shape in leaves(body.root.shape)]
        for ours, theirs in (taken, called), (given, results):
            if len(ours) != len(theirs) or not all(map(agrees, ours, theirs)):
                shapes = f"{TupleShape(tuple(ours))}, not {TupleShape(tuple(theirs))}"
                return f"scan `{instruction.name}`: a step of `{body.name}` has {shapes}"
        return ""

    def slice_of(self, shape: AnyShape) -> Shape:
        """The shape of what one step has of an input or output."""
        sizes = list(_array(shape).dims)
        del sizes[self.dimensions[0]]
        return _array(shape).with_dims(sizes)

    def kernel(self, *operands: Array, to_apply: Callable[..., Any]) -> Any:
        axis, split = self.dimensions[0], len(operands) - self.num_carries
        inputs, carries = operands[:split], list(operands[split:])
        outputs = [
            np.empty(shape.dims, dtype(shape.element_type))
            for shape in map(_array, self._outputs())
        ]
        order = range(operands[0].shape[axis])
        for t in reversed(order) if self.is_reverse else order:
            step = to_apply(*[array.take(t, axis) for array in inputs], *carries)
            results = list(step) if isinstance(step, tuple) else [step]
            for array, value in zip(outputs, results, strict=False):
                np.moveaxis(array, axis, 0)[t] = value
            carries = results[len(outputs) :]
        arrays = [*outputs, *map(np.asarray, carries)]
        return tuple(arrays) if isinstance(self.shape, TupleShape) else arrays[0]


@dataclass(frozen=True, slots=True)
class _Chain:
    """What is read of an operand: in the step at hand, in steps before, and of carries between."""

    now: MapSet | None
    before: list[MapSet]
    passed: list[MapSet]

    @property
    def parts(self) -> list[MapSet]:
        return [*self.passed, *self.before, *([self.now] if self.now else [])]


@dataclass(frozen=True, slots=True)
class _Leaf:
    """What one leaf of a scan's result has to do with its operands."""

    op: Scan
    instruction: Instruction
    path: Path
    summaries: Summaries

    def maps(self, number: int) -> MapSet:
        """The maps between operand `number` and the leaf."""
        if not self._leaf.size or not self._operand(number).size:
            return MapSet()
        if not self._count:  # no step is made
            is_first = number >= self._inputs and self.path == self._carry_path(number)
            return MapSet({IndexingMap.identity(self._leaf): None} if is_first else {})
        carried = self._carried()
        chain = self._chain(number, carried)
        found = MapSet()
        found.note(first_unknown(*[part.unknown for part in chain.parts]))
        for inner, when in self._slice_maps(number, chain, carried):
            found.add(self._lifted(inner, number, when))
        return found

    def _chain(self, number: int, carried: Mapping[int, Mapping[int, MapSet]]) -> _Chain:
        """How one step, and the steps before it, read operand `number`."""
        direct = self._reads(self.path)
        now = direct.get(number)
        before = [reads[number] for reads in carried.values() if number in reads]
        passed = [reads[n] for reads in (direct, *carried.values()) for n in reads if n in carried]
        return _Chain(now, before, passed)

    def _slice_maps(
        self, number: int, chain: _Chain, carried: Mapping[int, Mapping[int, MapSet]]
    ) -> Iterator[tuple[IndexingMap, When]]:
        """The maps between slices of the operand and of the leaf."""
        now, before = chain.now, chain.before
        is_same = all(map(_is_identity, [*chain.passed, *before]))
        apart = self._slices(number, is_same, carried)
        if number >= self._inputs:
            if now or before:
                yield apart, "now"
        elif now and before and is_same and _is_identity(now):
            yield apart, "until now"
        else:
            for inner in now.maps if now else ():
                yield self._slices(number, False, carried) if inner.runtime else inner, "now"
            if before and self._count > 1:
                yield apart, "before"

    # ------------------------------------------------------------ what a step reads

    def _reads(self, path: Path) -> dict[int, MapSet]:
        """The operands that a leaf of a step's result depends on, by their numbers."""
        body = self.instruction.called_computations[0]
        numbers = {parameter: n for n, parameter in enumerate(body.parameters)}
        return {
            numbers[array.instruction]: maps
            for array, maps in self.summaries.of(body, path).items()
        }

    def _carried(self) -> dict[int, dict[int, MapSet]]:
        """The carries that the leaf depends on, over any number of steps, and what they read."""
        found: dict[int, dict[int, MapSet]] = {}
        pending = [self._reads(self.path)]
        while pending:
            for number in pending.pop():
                if number >= self._inputs and number not in found:
                    found[number] = self._reads(self._carry_path(number))
                    pending.append(found[number])
        return found

    def _slices(
        self, number: int, is_same: bool, carried: Mapping[int, Mapping[int, MapSet]]
    ) -> IndexingMap:
        """The map between a slice of the operand and one of the leaf, some steps apart."""
        operand, leaf = self._operand(number), self._leaf
        if number < self._inputs:
            operand = self.op.slice_of(operand)
        if self._is_output:
            leaf = self.op.slice_of(leaf)
        start, end = (leaf, operand) if self.summaries.backward else (operand, leaf)
        if not is_same:
            return every_element(start, end).with_grade("may")
        is_certain = len(carried) == 1 and all(n in reads for n, reads in carried.items())
        return IndexingMap.identity(start).with_grade("exact" if is_certain else "may")

    # ------------------------------------------------------------ from slices to arrays

    def _lifted(self, inner: IndexingMap, number: int, when: When) -> IndexingMap:
        """A map between slices as one between the arrays that they are slices of."""
        axis, last, backward = self.op.dimensions[0], self._count - 1, self.summaries.backward
        is_input, is_output = number < self._inputs, self._is_output
        is_start_sliced, is_end_sliced = (
            (is_output, is_input) if backward else (is_input, is_output)
        )
        final = as_expr(0 if self.op.is_reverse else last)  # the step that carries come out of
        i = dims(self._leaf if backward else self._operand(number))
        own = list(i)
        here = final if backward else None  # the step of the start, if it has one
        there = None if backward else final  # the step of the end
        if is_start_sliced:
            here = own.pop(axis).as_expr()
        results, constraints = inner.substituted(
            {old: new.as_expr() for old, new in zip(inner.dims, own, strict=True)}
        )
        free = []
        if is_end_sliced:
            step = Variable(f"s{len(inner.ranges)}", 0, last)
            free = [step] if when != "now" or here is None else []
            there = step.as_expr() if free or here is None else here
            results.insert(axis, there)
        if here is not None and there is not None:
            constraints.append(self._gap(here, there, when))
        ranges = (*inner.ranges, *free)
        return IndexingMap.of(i, results, ranges=ranges, constraints=constraints, grade=inner.grade)

    def _gap(self, here: Expr, there: Expr, when: When) -> Constraint:
        """How many steps the start is after the end."""
        is_after = self.summaries.backward != self.op.is_reverse
        last = self._count - 1
        low, high = {"now": (0, 0), "before": (1, last), "until now": (0, last)}[when]
        return Constraint(here - there if is_after else there - here, low, high)

    # ------------------------------------------------------------ shapes

    @property
    def _inputs(self) -> int:
        return len(self.instruction.operands) - self.op.num_carries

    @property
    def _paths(self) -> list[Path]:
        return [path for path, _ in leaves(self.op.shape)]

    @property
    def _is_output(self) -> bool:
        return self._paths.index(self.path) < len(self._paths) - self.op.num_carries

    @property
    def _count(self) -> int:
        """How many steps are made."""
        return self._operand(0).dims[self.op.dimensions[0]]

    @property
    def _leaf(self) -> Shape:
        return _array(dict(leaves(self.op.shape))[self.path])

    def _operand(self, number: int) -> Shape:
        return _array(self.instruction.operands[number].shape)

    def _carry_path(self, number: int) -> Path:
        """Where the last value of a carry is in the result, and each new one in that of a step."""
        return self._paths[number - len(self.instruction.operands)]


def _array(shape: AnyShape) -> Shape:
    assert isinstance(shape, Shape)  # C1 and C3 hold
    return shape


def _is_identity(maps: MapSet) -> bool:
    """An element is related to itself alone."""
    return [found.is_identity for found in maps.maps] == [True]
