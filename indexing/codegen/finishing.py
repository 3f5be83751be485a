"""Plans become frozen elements, folds and stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np

from hlo.modules.module import Computation
from hlo.shapes.shape import dtype
from indexing.codegen.functions import ADD, MULTIPLY, cast, identifier
from indexing.codegen.nest import (
    Apply,
    Buffer,
    Case,
    Choose,
    Element,
    Fold,
    Function,
    Place,
    Placing,
    Read,
    Runtime,
    Scalar,
    Stage,
)
from indexing.codegen.plans import FoldPlan, Key, PlacingPlan, Plan, StagePlan, Wanted
from indexing.codegen.rules import Folds, widened
from indexing.codegen.values import Value
from indexing.ops.numerics import is_integer
from simplifier.atoms import Variable


class Finishing:
    """Makes the elements of a nest from its plans, each once.

    Args:
        plans: how each demanded element is made.
        function: a computation of scalars as a function.
        unread: a buffer for a leaf of a result that nobody reads.
    """

    def __init__(
        self,
        plans: Mapping[Key, Plan],
        function: Callable[[Computation], Function],
        unread: Callable[[Value, int], Buffer],
    ) -> None:
        self.plans, self.function, self.unread = plans, function, unread
        self.elements: dict[Key, Element] = {}
        self.runtimes: dict[tuple[StagePlan, Variable], Runtime] = {}

    def stage(self, stage: StagePlan) -> Stage:
        if isinstance(stage.body, FoldPlan):
            plan = stage.body
            self.make([*plan.inits, *plan.values, *[w.key for w in plan.runtime]])
            if plan.placing is not None:
                wanted = [w.key for w in plan.placing.runtime]
                self.make([*plan.placing.values, *wanted])
            body: Element | Fold = self._finished_fold(stage, stage.body)
            count = max(1, len(stage.body.rule.inits))
            buffers = tuple(
                [stage.buffers.get(k) or self.unread(stage.body.value, k) for k in range(count)]
            )
        else:
            assert stage.body is not None
            self.make([stage.body])
            body = self.elements[stage.body]
            buffers = tuple(stage.buffers.values())
        return Stage(buffers, stage.dims, body)

    def make(self, roots: Iterable[Key]) -> None:
        """The elements that these keys stand for, each after those that it needs."""
        waiting = [(key, False) for key in roots]
        while waiting:
            key, is_ready = waiting.pop()
            if key in self.elements:
                continue
            plan = self.plans[key]
            if is_ready:
                self.elements[key] = self._element(key, plan)
                continue
            waiting.append((key, True))
            needed = [*plan.keys, *[case.key for case in plan.cases]]
            needed += [w.key for case in plan.cases for w in case.runtime]
            needed += [w.key for w in plan.runtime]
            waiting.extend((k, False) for k in needed)

    def _element(self, key: Key, plan: Plan) -> Element:
        name = identifier(key[1].instruction.name)
        kind = dtype(key[1].shape.element_type)
        runtime = self._known(plan.runtime)
        if plan.made is not None:
            if runtime:
                assert isinstance(plan.made, Read | Place)
                return replace(plan.made, runtime=runtime)
            return plan.made
        arguments = tuple([self.elements[k] for k in plan.keys])
        if plan.cases:
            cases = tuple(
                [
                    Case(case.guards, self.elements[case.key], self._known(case.runtime))
                    for case in plan.cases
                ]
            )
            found: Element = Choose(cases, arguments[0], name, plan.rest)
            return Apply(plan.function, (found,), name, kind) if plan.function else found
        if plan.function is None:
            return arguments[0]
        return Apply(plan.function, arguments, name, kind)

    def _known(self, wanted: Iterable[Wanted]) -> tuple[Runtime, ...]:
        return tuple([self._runtime_of(w) for w in wanted])

    def _runtime_of(self, wanted: Wanted) -> Runtime:
        stage = wanted.key[0]
        found = self.runtimes.get((stage, wanted.variable))
        if found is None:
            found = Runtime(wanted.variable, self.elements[wanted.key], wanted.clamp)
            self.runtimes[stage, wanted.variable] = found
        return found

    def _finished_fold(self, stage: StagePlan, plan: FoldPlan) -> Fold:
        rule, value = plan.rule, plan.value
        values = tuple([self.elements[key] for key in plan.values])
        runtime = self._known(plan.runtime)
        if rule.wide is None:
            inits = tuple([self.elements[key] for key in plan.inits])
            assert rule.applied is not None
            function = self.function(rule.applied)
            placing = self._finished_placing(plan.placing) if plan.placing else None
            plain = Fold(
                function, inits, values, plan.ranges, plan.guards, runtime, placing=placing
            )
            return _with_wide_total(plain, value)
        zero = Scalar(np.zeros((), rule.wide))
        name = identifier(value.instruction.name)
        if not values:
            return Fold(ADD, (zero,), (), (), (), (), _rounding(value, rule))
        factors = []
        for element, operand in zip(values, value.operands, strict=False):
            assert isinstance(operand, Value)
            to_wide = widened(rule.wide, operand.shape.element_type)
            factors.append(Apply(to_wide, (element,), name, rule.wide) if to_wide else element)
        product = Apply(MULTIPLY, tuple(factors), name, rule.wide)
        finish = _rounding(value, rule)
        return Fold(ADD, (zero,), (product,), plan.ranges, plan.guards, runtime, finish)

    def _finished_placing(self, plan: PlacingPlan) -> Placing:
        values = tuple([self.elements[key] for key in plan.values])
        return Placing(plan.dims, values, plan.index, plan.guards, self._known(plan.runtime))


def _with_wide_total(fold: Fold, value: Value) -> Fold:
    """Sums and products of numbers of less than 32 bits are kept in f32, as the kernels do it."""
    kind = dtype(value.shape.element_type)
    is_narrow = kind.kind not in "biucO" and kind.itemsize < 4 and not is_integer(np.empty(0, kind))
    if not is_narrow or fold.placing or fold.function.name not in ("+", "*"):
        return fold
    name = identifier(value.instruction.name)
    f32 = np.dtype(np.float32)
    to_wide = cast(f32, "f32")
    inits, values = (
        tuple([Apply(to_wide, (element,), name, f32) for element in part])
        for part in (fold.inits, fold.values)
    )
    narrow = cast(kind, value.shape.element_type)
    return replace(fold, inits=inits, values=values, finish=narrow)


def _rounding(value: Value, rule: Folds) -> Function | None:
    kind = dtype(value.shape.element_type)
    return None if kind == rule.wide else cast(kind, value.shape.element_type)
