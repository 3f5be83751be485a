"""Scan: run a computation on each slice of arrays, with carries from one slice to the next.

Source: XLA ``xla/service/scan_expander.cc``, which expands a scan to a while loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, TypeAlias

import numpy as np

from hlo.modules.instruction_checks import agrees
from hlo.modules.module import Instruction
from hlo.ops.attributes import boolean, computation, int_list, integer
from hlo.ops.op import HOLDS, Fault, Shape, attribute, constraint, declared, op
from hlo.ops.protocols import InstructionLike
from hlo.ops.unify import may_be
from hlo.shapes.shape import AnyShape, TupleShape, dtype, leaf_shape, leaves, unbounded_leaf
from indexing.maps.answers import Path, Unknown
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.map_set import MapSet
from indexing.maps.reasons import Reason
from indexing.ops.access_edge import AccessEdge
from indexing.ops.base import Array, every_element
from indexing.ops.element import ElementRule, OpaqueRule, bounded_count
from indexing.ops.structured_ops import StructuredOp, Summaries
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr
from simplifier.unknown import first_unknown

StepRange: TypeAlias = Literal["same step", "earlier steps", "same or earlier"]
"""The steps whose slices of an array are read."""
_SEVERAL_STEPS: Final = "the reads of several steps have no closed form"


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

    The operands are the inputs followed by the initial carries. The results are the outputs
    followed by the final carries.

    A step that reads a carry depends on the inputs of all earlier steps. If `to_apply` is
    elementwise, the maps between slices are as well; otherwise a slice may need all elements of
    another slice.
    """

    accumulates: ClassVar[bool] = True
    rule: ClassVar[ElementRule] = OpaqueRule("it calls computations on whole arrays")
    min_operands: ClassVar[int] = 1
    shape: AnyShape = declared(any_shape=True)
    dimensions: tuple[int, ...] = attribute(int_list)
    num_carries: int = attribute(integer)
    is_reverse: bool = attribute(boolean, default=False)
    is_associative: bool | None = attribute(boolean, default=None)
    to_apply: str = attribute(computation)

    def steps(self, operand: AnyShape) -> int:
        """Return the number of steps over this first input."""
        return operand.dims[self.dimensions[0]] if isinstance(operand, Shape) else 0

    # ------------------------------------------------------------ rules

    @classmethod
    def default_shape(cls, instruction: InstructionLike) -> AnyShape | None:
        """Results of a step; outputs also have the scanned dimension, with the size of operand 0.

        None if the attributes or the shapes do not determine the results.
        """
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

    @constraint("C1", "the operands must be arrays, the result an array or a tuple of arrays")
    def has_arrays(self, *operands: AnyShape) -> Fault:
        for number, operand in enumerate(operands):
            if not isinstance(operand, Shape):
                return Fault(f"operand {number} is {operand}", number)
        results = self.shape.elements if isinstance(self.shape, TupleShape) else (self.shape,)
        if all(isinstance(result, Shape) for result in results):
            return HOLDS
        return Fault(f"the result is {self.shape}")

    @constraint("C2", "at least one operand must be an input; each carry must have a result")
    def has_inputs(self, *operands: Shape) -> Fault:
        if not 0 <= self.num_carries < len(operands):
            return Fault(f"{self.num_carries} carries, {len(operands)} operands", "num_carries")
        count = len(leaves(self.shape))
        if self.num_carries > count:
            return Fault(f"{self.num_carries} carries, {count} results", "num_carries")
        return HOLDS

    @constraint("C3", "inputs and outputs must have the same size along the one dimension")
    def has_dimension(self, *operands: Shape) -> Fault:
        if len(self.dimensions) != 1:
            return Fault(f"{len(self.dimensions)} dimensions, expected 1", "dimensions")
        axis, inputs = self.dimensions[0], operands[: len(operands) - self.num_carries]
        for kind, shapes in ("operand", inputs), ("result", self._outputs()):
            for number, shape in enumerate(shapes):
                if not isinstance(shape, Shape) or not 0 <= axis < shape.rank:
                    return Fault(f"{kind} {number} is {shape}", "dimensions")
                if not may_be(shape.dims[axis], operands[0].dims[axis]):
                    sizes = f"{shape.dims[axis]}, operand 0 has {operands[0].dims[axis]}"
                    return Fault(f"{kind} {number} has size {sizes}", "dimensions")
        return HOLDS

    @constraint("C4", "the initial and the final value of a carry must have the same shape")
    def keeps_carries(self, *operands: Shape) -> Fault:
        results = [shape for _, shape in leaves(self.shape)][len(self._outputs()) :]
        for number, result in enumerate(results, len(operands) - self.num_carries):
            if not agrees(result, operands[number]):
                return Fault(f"initial {operands[number]}, final {result}", number)
        return HOLDS

    def _outputs(self) -> list[AnyShape]:
        """Shapes of the results that are not carries."""
        shapes: list[AnyShape] = [shape for _, shape in leaves(self.shape)]
        return shapes[: len(shapes) - self.num_carries]

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return self.shape

    # ------------------------------------------------------------ maps

    def edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        operands = [operand.shape for operand in instruction.operands]
        if unbounded := unbounded_leaf(self.shape, *operands):
            reason = f"{unbounded} has a dimension of unknown size"
        else:
            reason = self.mismatch(instruction)
        if reason:
            reason = f"scan `{instruction.name}`: {reason}"
            for number in range(len(instruction.operands)):
                yield AccessEdge(number, (), output, (), Unknown(reason, instruction))
            return
        leaf = _Leaf(self, instruction, output, summaries)
        for number in range(len(instruction.operands)):
            maps = leaf.maps(number)
            if maps.maps or maps.unknown is not None:
                yield AccessEdge(number, (), output, tuple(maps.maps), maps.unknown, maps.reasons)

    def mismatch(self, instruction: Instruction) -> str:
        """Reason why the called computation is not a step of this scan; empty if it is."""
        (body,) = instruction.called_computations
        operands: list[AnyShape] = [operand.shape for operand in instruction.operands]
        inputs = len(operands) - self.num_carries
        arguments = [self.slice_of(s) if n < inputs else s for n, s in enumerate(operands)]
        values: list[AnyShape] = [self.slice_of(shape) for shape in self._outputs()]
        values += [shape for _, shape in leaves(self.shape)][len(values) :]
        parameters = [parameter.shape for parameter in body.parameters]
        results = [shape for _, shape in leaves(body.root.shape)]
        for kind, step, called in (
            ("parameters", arguments, parameters),
            ("results", values, results),
        ):
            if len(step) != len(called) or not all(map(agrees, step, called)):
                expected, actual = TupleShape(tuple(step)), TupleShape(tuple(called))
                return f"the {kind} of `{body.name}` are {actual}, expected {expected}"
        return ""

    def slice_of(self, shape: AnyShape) -> Shape:
        """Shape of the slice of an input or output that one step reads or writes."""
        sizes = list(_array(shape).dims)
        del sizes[self.dimensions[0]]
        return _array(shape).with_dims(sizes)

    def applications(self, out: AnyShape, operands: tuple[AnyShape, ...]) -> int:
        return min(bounded_count(operands[0]), 1)  # it is a loop

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
    """Reads of an operand: in the same step, in earlier steps, and of the carries in between."""

    same_step: MapSet | None
    earlier_steps: list[MapSet]
    carries: list[MapSet]

    @property
    def parts(self) -> list[MapSet]:
        same_step = [self.same_step] if self.same_step else []
        return [*self.carries, *self.earlier_steps, *same_step]


@dataclass(frozen=True, slots=True)
class _Leaf:
    """Dependencies between one leaf of a scan's result and its operands."""

    op: Scan
    instruction: Instruction
    path: Path
    summaries: Summaries

    def maps(self, number: int) -> MapSet:
        """The maps between operand `number` and the leaf."""
        if not self._leaf.size or not self._operand(number).size:
            return MapSet()
        if not self._count:  # no iteration
            is_first = number >= self._inputs and self.path == self._carry_path(number)
            return MapSet({IndexingMap.identity(self._leaf): None} if is_first else {})
        carried = self._carried_reads()
        chain = self._chain(number, carried)
        maps = MapSet()
        maps.add_unknown(first_unknown(*[part.unknown for part in chain.parts]))
        maps.add_reasons([reason for part in chain.parts for reason in part.reasons])
        of_step = chain.same_step.maps if chain.same_step else ()
        for inner, steps in self._slice_maps(number, chain, carried):
            maps.add(self._lift_map(inner, number, steps))
            if inner.grade == "may" and inner not in of_step:
                maps.add_reasons([Reason(_SEVERAL_STEPS, self.instruction)])
        return maps

    def _chain(self, number: int, carried: Mapping[int, Mapping[int, MapSet]]) -> _Chain:
        """Reads of operand `number` in one step and in the earlier steps."""
        direct = self._reads(self.path)
        same_step = direct.get(number)
        earlier_steps = [reads[number] for reads in carried.values() if number in reads]
        carries = [reads[n] for reads in (direct, *carried.values()) for n in reads if n in carried]
        return _Chain(same_step, earlier_steps, carries)

    def _slice_maps(
        self, number: int, chain: _Chain, carried: Mapping[int, Mapping[int, MapSet]]
    ) -> Iterator[tuple[IndexingMap, StepRange]]:
        """The maps between slices of the operand and of the leaf."""
        same_step, earlier_steps = chain.same_step, chain.earlier_steps
        is_same = all(map(_is_identity, [*chain.carries, *earlier_steps]))
        across = self._slices(number, is_same, carried)
        if number >= self._inputs:
            if same_step or earlier_steps:
                yield across, "same step"
        elif same_step and earlier_steps and is_same and _is_identity(same_step):
            yield across, "same or earlier"
        else:
            for inner in same_step.maps if same_step else ():
                slices = self._slices(number, False, carried) if inner.runtime else inner
                yield slices, "same step"
            if earlier_steps and self._count > 1:
                yield across, "earlier steps"

    # ------------------------------------------------------------ what a step reads

    def _reads(self, path: Path) -> dict[int, MapSet]:
        """Maps of a leaf of a step's result, by the number of the operand that it depends on."""
        body = self.instruction.called_computations[0]  # may return (x) where the scan returns x
        step, _ = leaves(body.root.shape)[self._paths.index(path)]
        return {number: maps for (number, _), maps in self.summaries.of(body, step).items()}

    def _carried_reads(self) -> dict[int, dict[int, MapSet]]:
        """The carries that the leaf depends on, over any number of steps, and their own reads."""
        carries: dict[int, dict[int, MapSet]] = {}
        pending = [self._reads(self.path)]
        while pending:
            for number in pending.pop():
                if number >= self._inputs and number not in carries:
                    carries[number] = self._reads(self._carry_path(number))
                    pending.append(carries[number])
        return carries

    def _slices(
        self, number: int, is_same: bool, carried: Mapping[int, Mapping[int, MapSet]]
    ) -> IndexingMap:
        """The map between a slice of the operand and a slice of the leaf of different steps."""
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

    def _lift_map(self, inner: IndexingMap, number: int, steps: StepRange) -> IndexingMap:
        """Return the map between arrays for the map `inner` between their slices."""
        axis, last, backward = self.op.dimensions[0], self._count - 1, self.summaries.backward
        is_input, is_output = number < self._inputs, self._is_output
        is_start_sliced, is_end_sliced = (
            (is_output, is_input) if backward else (is_input, is_output)
        )
        final = as_expr(0 if self.op.is_reverse else last)  # the step of the final carries
        i = dims(self._leaf if backward else self._operand(number))
        own = list(i)
        here = final if backward else None  # the step of the start, if any
        there = None if backward else final  # the step of the end
        if is_start_sliced:
            here = own.pop(axis).as_expr()
        results, constraints = inner.substituted(
            {old: new.as_expr() for old, new in zip(inner.dims, own, strict=True)}
        )
        free = []
        if is_end_sliced:
            step = Variable(f"s{len(inner.ranges)}", 0, last)
            free = [step] if steps != "same step" or here is None else []
            there = step.as_expr() if free or here is None else here
            results.insert(axis, there)
        if here is not None and there is not None:
            constraints.append(self._gap(here, there, steps))
        ranges = (*inner.ranges, *free)
        return IndexingMap.of(i, results, ranges=ranges, constraints=constraints, grade=inner.grade)

    def _gap(self, here: Expr, there: Expr, steps: StepRange) -> Constraint:
        """Constraint on the number of steps from the end to the start."""
        is_after = self.summaries.backward != self.op.is_reverse
        last = self._count - 1
        low, high = {
            "same step": (0, 0),
            "earlier steps": (1, last),
            "same or earlier": (0, last),
        }[steps]
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
        """Number of steps."""
        return self._operand(0).dims[self.op.dimensions[0]]

    @property
    def _leaf(self) -> Shape:
        return _array(leaf_shape(self.op.shape, self.path))

    def _operand(self, number: int) -> Shape:
        return _array(self.instruction.operands[number].shape)

    def _carry_path(self, number: int) -> Path:
        """Path of a carry in the result of the scan."""
        return self._paths[number - len(self.instruction.operands)]


def _array(shape: AnyShape) -> Shape:
    assert isinstance(shape, Shape)  # C1 and C3 hold
    return shape


def _is_identity(maps: MapSet) -> bool:
    """Return True if each element is related only to itself."""
    return [index_map.is_identity for index_map in maps.maps] == [True]
