"""Select-and-scatter: select one element per window position and scatter a value to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from hlo.modules.module import Computation, Instruction
from hlo.ops.attributes import WindowDimension, computation, dilated_size, window
from hlo.ops.op import (
    HOLDS,
    Fault,
    Shape,
    Signature,
    attribute,
    constraint,
    count_fault,
    op,
    signature,
)
from hlo.ops.unify import PartialShape, may_be_same_dims, same_but_precision, with_rank
from hlo.shapes.shape import ELEMENT_TYPES, UNBOUNDED, AnyShape
from indexing.maps.indexing_map import Grade, IndexingMap, dims, ranges
from indexing.ops.base import Array, OperandMaps, TernaryOp
from indexing.ops.control import callees
from indexing.ops.element import (
    NO_DECLARED_WORK,
    ElementRule,
    OpaqueRule,
    ReductionRule,
    Work,
    bounded_count,
    element_count,
)
from indexing.ops.elementwise import Compare
from indexing.ops.inverse import inverses
from indexing.ops.needed_operands import (
    NeededOperands,
    ParametersRead,
    needed_by_reduction,
)
from indexing.ops.reduce_window import positions, window_fault
from indexing.ops.reductions import reduce_at
from indexing.ops.sliding import overlaps
from indexing.ops.windows import are_shared, position_of, window_applications, window_map
from simplifier.constraints import Constraint
from simplifier.unknown import Unknown

Index = tuple[int, ...]


@op(
    "select-and-scatter",
    samples=[
        "f32[4,6] select-and-scatter(f32[4,6] p, f32[2,2] q, f32[] z), "
        "window={size=2x3 stride=2x3}, select=greater_or_equal, scatter=add",
        "f32[5,3] select-and-scatter(f32[5,3] p, f32[3,2] q, f32[] z), "
        "window={size=3x2 stride=2x1 pad=1_1x0_0}, select=greater_or_equal, scatter=add",
        "f32[4] select-and-scatter(f32[4] p, f32[2] q, f32[] z), "
        "window={size=1 stride=2}, select=greater_or_equal, scatter=add",
        "f32[5] select-and-scatter(f32[5] p, f32[4] q, f32[] z), "
        "window={size=2 stride=2 pad=1_0 lhs_dilate=2 rhs_dilate=2}, select=greater_or_equal, "
        "scatter=add",
        "f32[] select-and-scatter(f32[] p, f32[] q, f32[] z), window={}, "
        "select=greater_or_equal, scatter=add",
        "f32[0] select-and-scatter(f32[0] p, f32[1] q, f32[] z), window={size=2 pad=1_1}, "
        "select=greater_or_equal, scatter=add",
    ],
)
class SelectAndScatter(TernaryOp):
    """``out[j] = reduce(scatter, init, source[i])`` over the window positions i that selected j.

    A position compares the operand's elements under its window in order. If ``select(selected,
    next)`` is false, the next element replaces the selected one. Padding is never selected.

    Every window that contains an element may select it, depending on all elements of the window.
    If `select` compares by order, each of these elements decides for some values: a larger element
    takes the window from the one that was largest. The maps to the source, and to the operand if no
    element is alone in all of its windows, are then exact, else "may".

    Source: XLA ``docs/operation_semantics.md``, "SelectAndScatter".
    """

    accumulates: ClassVar[bool] = True
    depends_on_order: ClassVar[bool] = True
    is_splittable: ClassVar[bool] = True
    obstacle: ClassVar[str] = "the elements that the windows select depend on their values"
    rule: ClassVar[ElementRule] = OpaqueRule("reads depend on element values")
    window: tuple[WindowDimension, ...] = attribute(window, default=())
    select: str = attribute(computation)
    scatter: str = attribute(computation)

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        first, second = [with_rank(operand, len(self.window)) for operand in operands[:2]]
        return [first, second, with_rank(operands[2], 0)]

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        return operands[0]

    @signature("select")
    def selects(self, first: Shape, second: Shape, third: Shape) -> Signature:
        return Signature((first.with_dims(()),) * 2, Shape("pred", ()))

    @signature("scatter")
    def scatters(self, first: Shape, second: Shape, third: Shape) -> Signature:
        return Signature.reducer(totals=[second], values=[second])

    @constraint("C1", "window must have one entry for each dimension of the operand")
    def fits(self, first: Shape, second: Shape, third: Shape) -> Fault:
        return count_fault(self.window, first.rank, "operand dimension", "window")

    @constraint("C2", "window sizes, strides and dilations must be positive")
    def is_window(self, first: Shape, second: Shape, third: Shape) -> Fault:
        return window_fault(self.window)

    @constraint("C3", "the source must have one element for each window position")
    def has_source(self, first: Shape, second: Shape, third: Shape) -> Fault:
        counts = [count.size for count in positions(self.window, first)]
        if may_be_same_dims(second.dims, counts):
            return HOLDS
        label = f"the source is {second.with_layout(None)}, the window has {counts} positions"
        return Fault(label, 1)

    @constraint(
        "C4",
        "the init value must be a scalar, and all element types must be equal but for precision",
    )
    def has_init(self, first: Shape, second: Shape, third: Shape) -> Fault:
        if third.rank:
            return Fault(f"the init value is {third.with_layout(None)}", 2)
        for number, shape in ((1, second), (2, third)):
            if not same_but_precision(shape.element_type, first.element_type):
                label = f"operand {number} is {shape.with_layout(None)}, operand 0 is"
                return Fault(f"{label} {first.with_layout(None)}", number)
        return HOLDS

    def infer_shape(self, first: Shape, second: Shape, third: Shape) -> Shape:
        return first

    def output_to_input(
        self, out: Shape, first: Shape, second: Shape, third: Shape
    ) -> tuple[OperandMaps, OperandMaps, OperandMaps]:
        j, s = dims(out), ranges(*[w.size for w in self.window])
        positions = map(position_of, self.window, j, s, second.dims)
        source = window_map(j, s, positions, "may" if self._selects else "exact")
        return self._neighbours(first, second), source, IndexingMap.of(j, [])

    def input_to_output(
        self, out: Shape, first: Shape, second: Shape, third: Shape
    ) -> tuple[OperandMaps, OperandMaps, OperandMaps]:
        neighbours, *others = self.output_to_input(out, first, second, third)
        source, init = (inverses(m, s) for m, s in zip(others, (second, third), strict=True))
        return neighbours, source, init

    @property
    def _selects(self) -> bool:
        """True if a window has more than one element."""
        return any(w.size > 1 for w in self.window)

    def _neighbours(self, first: Shape, second: Shape) -> OperandMaps:
        """The map from an element to all elements that share a window with it; its own inverse."""
        if not self._selects:
            return ()
        j = dims(first)
        both = ranges(*[w.size for w in self.window] * 2)
        results, constraints = [], []
        for k, (w, n, count) in enumerate(zip(self.window, first.dims, second.dims, strict=True)):
            s, t = both[k], both[first.rank + k]
            constraints += position_of(w, j[k], s, count)[1]
            place = j[k] * w.base_dilation + (t - s) * w.window_dilation
            results.append(place // w.base_dilation)
            constraints.append(Constraint(place, 0, dilated_size(n, w.base_dilation) - 1))
            if w.base_dilation > 1:
                constraints.append(Constraint(place % w.base_dilation, 0, 0))
        return IndexingMap.of(j, results, ranges=both, constraints=constraints, grade="may")

    def needed_operands(
        self, instruction: Instruction, output_id: int, parameters_read: ParametersRead
    ) -> NeededOperands:
        """Return what `scatter` reads, and the operand if the selection depends on its values.

        The operand is needed also if `scatter` ignores the source: the selections decide how often
        `scatter` is applied to an element.
        """
        select, scatter = callees(instruction, "select", "scatter")
        rule = ReductionRule(inits=(2,), values=(1,), uses_computation=True)
        needed = needed_by_reduction(rule, output_id, partial(parameters_read, scatter))
        if not parameters_read(select, 0):
            return needed
        grades: dict[int, Grade] = {0: "may", **needed.grades}
        certain: set[int] = set()
        operand = instruction.operands[0].shape
        if grades.get(1) == "exact" and not needed.only_last and _is_order(select, operand):
            certain.add(1)
            if self._decide(operand):
                certain.add(0)
        return replace(needed, grades=grades, certain=frozenset(certain))

    def _decide(self, operand: AnyShape) -> bool:
        """Return True if each element that a window covers shares a window with another one."""
        if not isinstance(operand, Shape) or UNBOUNDED in operand.dims:
            return False
        return are_shared(self.window, operand.dims)

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        return self._work(operands, applied, repeats=False)

    def loop_work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        return self._work(operands, applied, repeats=True)

    def _work(
        self, operands: tuple[AnyShape, ...], applied: tuple[Work, ...], repeats: bool
    ) -> Work | Unknown:
        select, scatter = applied
        array = operands[0]
        if not isinstance(array, Shape):
            return NO_DECLARED_WORK
        selections = window_applications(self.window, array.dims, repeats)
        return select.times(selections).plus(scatter.times(element_count(operands[1])))

    def applications(self, out: AnyShape, operands: tuple[AnyShape, ...]) -> int:
        return bounded_count(operands[1])

    def kernel(
        self,
        first: Array,
        second: Array,
        third: Array,
        *,
        select: Callable[..., Any],
        scatter: Callable[..., Any],
    ) -> Array:
        out = np.full(first.size, third, first.dtype)
        places = np.arange(first.size).reshape(first.shape)
        selected, values = np.full(second.shape, -1), np.zeros(second.shape, first.dtype)
        for _, i, j in overlaps(self.window, first.shape):
            stays = (selected[i] >= 0) & np.asarray(select(values[i], first[j]), bool)
            selected[i] = np.where(stays, selected[i], places[j])
            values[i] = np.where(stays, values[i], first[j])
        chosen = selected >= 0
        reduce_at(scatter, [out], selected[chosen], [second[chosen]])
        return out.reshape(first.shape)


def _is_order(select: Computation, operand: AnyShape) -> bool:
    """Return True for a comparison by order of elements that take three values or more.

    Of two values, the first element with the larger one is selected: others after it never are.
    """
    op = select.root.op
    if not isinstance(op, Compare) or op.direction in ("EQ", "NE"):
        return False
    if {*select.root.operands} != {*select.parameters}:
        return False
    if not isinstance(operand, Shape):
        return False
    element = ELEMENT_TYPES[operand.element_type]
    return element.kind != "pred" and element.bits > 1
