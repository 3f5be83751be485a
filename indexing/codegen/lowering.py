"""Lowering of an array element at an index to a node over reads of operand elements.

Indices and guards come from the op's maps (`indexing.output_to_input`), the scalar function from
the op's per-element rule (`indexing.ops.element`).  Reads are hash-consed in the `Scope` of the
stage; staging later inlines some of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from hlo.modules.module import Computation, Instruction
from hlo.shapes.literal import read_literal
from hlo.text.source import HloError
from indexing.codegen.element_types import TYPE_NAMES, converted, require_equal_types, wide_total
from indexing.codegen.graph import (
    Apply,
    Array,
    BufferRead,
    Case,
    Choose,
    Guards,
    Index,
    IndexValue,
    Node,
    Reduction,
    Runtime,
    Scalar,
    ScatterReduction,
    dtype_of,
)
from indexing.codegen.induction import integer_value
from indexing.codegen.partition import check_partition
from indexing.codegen.program_arrays import NoLoopNest, ProgramArray
from indexing.codegen.reads import Scope
from indexing.dataflow.queries import element_reads, element_writes
from indexing.maps.answers import Answer, Unknown
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
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
from indexing.ops.functions import ADD, MULTIPLY, ScalarFunction, cast
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.interval import contains
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution
from simplifier.unknown import first_unknown

# ---------------------------------------------------------------- rules


@dataclass(frozen=True, slots=True)
class KnownRule:
    """The array is an induction variable with this value."""

    value: Expr


Rule: TypeAlias = ElementRule | KnownRule


def rule_of(array: ProgramArray) -> Rule:
    """Return the per-element rule of an array.

    Raises:
        NoLoopNest: the rule is opaque.
    """
    if array.known is not None:
        return KnownRule(array.known)
    instruction = array.instruction
    rule = element_of(instruction, array.leaf)
    if isinstance(rule, OpaqueRule):
        reason = f"no loop nest for {instruction.opcode} `{instruction.name}`: {rule.reason}"
        raise NoLoopNest(Unknown(reason, instruction))
    return rule


def literal(array: ProgramArray) -> Array:
    """Return the value of a constant.

    Raises:
        NoLoopNest: the constant is elided (``{...}``).
    """
    instruction = array.instruction
    assert instruction.literal is not None
    try:
        value = read_literal(instruction.literal.span, instruction.shape)
    except HloError as error:
        if error.code != "elided":
            raise
        reason = f"the values of constant `{instruction.name}` are elided"
        raise NoLoopNest(Unknown(reason, instruction)) from error
    for step in array.ref.path:
        value = value[step]
    return np.asarray(value)


class Lowering:
    """Lowers the elements of one stage.

    Args:
        scope: the loops and reads of the stage.
        function: converts a computation of scalars to a function.
    """

    def __init__(self, scope: Scope, function: Callable[[Computation], ScalarFunction]) -> None:
        self.scope, self.function = scope, function

    def element(self, array: ProgramArray, rule: Rule, index: Index) -> Node:
        """Return the element of `array` at an index as a node."""
        match rule:
            case KnownRule(value):
                return self._index_value(value, array.dtype)
            case ConstantRule():
                return Scalar(literal(array))
            case IotaRule(dimension):
                return self._index_value(index[dimension], array.dtype)
            case ElementwiseRule(reads_nothing=True):
                return Scalar(np.zeros((), array.dtype))
            case ElementwiseRule():
                return self._computed(array, rule, index)
            case CopyRule():
                return self._copied(array, rule, index)
            case _:
                raise AssertionError("a reduction is lowered by `Lowering.reduction`")

    def _index_value(self, expr: Expr, kind: np.dtype[np.generic]) -> IndexValue:
        return IndexValue(expr, kind, self.scope.mentioned([expr]))

    def _computed(self, array: ProgramArray, rule: ElementwiseRule, index: Index) -> Node:
        answer = _maps_of(array)
        arguments = tuple(
            [self._single_read(array, answer, k, index) for k in range(len(answer.maps))]
        )
        function = rule.function
        if function is None:
            function = self.function(array.instruction.called_computations[0])
        kind = array.dtype
        if rule.function:  # narrow integers and mixed precision need a conversion
            kind = rule.function.result_dtype(*map(dtype_of, arguments))
        return converted(Apply(function, arguments, array.name, kind), array)

    def _single_read(
        self, array: ProgramArray, answer: Answer, number: int, index: Index
    ) -> BufferRead:
        """Return the only element of an operand that the element at an index reads."""
        (indexing_map,) = answer.maps[number]
        at, _, _ = self._access(array, indexing_map, index)
        return self.scope.read(array.operand(number), at)

    # ------------------------------------------------------------ copies

    def _copied(self, array: ProgramArray, rule: CopyRule, index: Index) -> Node:
        answer = _maps_of(array)
        if rule.joins_parts:
            return self._joined(array, rule, answer, index)
        if rule.function is None:
            require_equal_types(array, [array.operand(number) for number in rule.operands])
        maps = [
            (number, indexing_map)
            for number in rule.operands
            for indexing_map in answer.maps[number]
        ]
        cases, otherwise = self._cases(array, maps, index)
        rest: Guards = ()
        if otherwise is None and rule.has_padding:
            # The bits of padding are read as those of an operand element.
            otherwise = Scalar(np.zeros((), array.operand(rule.operands[0]).dtype))
        elif otherwise is None:
            check_partition(array, [indexing_map for _, indexing_map in maps])
            last = cases.pop()
            otherwise, rest = last.value, last.guards
        node: Node = otherwise
        if cases:
            node = Choose(tuple(cases), otherwise, array.name, rest)
        if rule.function is None:
            return converted(node, array)
        parts = (self._part_number(array, rule, index),) if rule.parts > 1 else ()
        return Apply(rule.function, (node, *parts), array.name, array.dtype)

    def _cases(
        self, array: ProgramArray, maps: list[tuple[int, IndexingMap]], index: Index
    ) -> tuple[list[Case], Node | None]:
        """Return a case for each map, and the element if no case applies."""
        cases: list[Case] = []
        otherwise: Node | None = None
        for number, indexing_map in maps:
            if indexing_map.ranges:
                reason = f"an element of `{array.instruction.name}` copies several elements"
                raise NoLoopNest(Unknown(reason, array.instruction))
            at, guards, runtime = self._access(array, indexing_map, index)
            if any(guard.is_false for guard in guards):
                continue
            read = self.scope.read(array.operand(number), at)
            if indexing_map.grade == "may":
                otherwise = read
            else:
                cases.append(Case(guards, read, runtime))
        certain = next((k for k, case in enumerate(cases) if not case.guards), None)
        return (cases, otherwise) if certain is None else (cases[:certain], cases[certain].value)

    def _joined(self, array: ProgramArray, rule: CopyRule, answer: Answer, index: Index) -> Node:
        """Return an element that joins the bits of all elements along the range variable."""
        (operand,) = rule.operands
        (indexing_map,) = answer.maps[operand]
        (s,) = indexing_map.ranges
        at, guards, _ = self._access(array, indexing_map, index)
        assert not guards
        assert rule.function is not None
        swaps = [Substitution({s: as_expr(number)}) for number in range(s.upper + 1)]
        parts = tuple([self.scope.read(array.operand(operand), map(swap, at)) for swap in swaps])
        return Apply(rule.function, parts, array.name, array.dtype)

    def _part_number(self, array: ProgramArray, rule: CopyRule, index: Index) -> Node:
        """Return the number of an element's part in a wider element, by its memory position."""
        position = as_expr(0)
        for k in array.shape.layout_or_default.minor_to_major[::-1]:
            position = position * array.dims[k] + index[k]
        return self._index_value(position % rule.parts, np.dtype(np.int64))

    # ------------------------------------------------------------ accesses

    def _access(
        self,
        array: ProgramArray,
        indexing_map: IndexingMap,
        index: Index,
        *,
        sizes: tuple[int, ...] | None = None,
        is_reduced: bool = False,
    ) -> tuple[Index, Guards, tuple[Runtime, ...]]:
        """Apply a map to an index of `array`, or of an array of these sizes.

        Returns:
            The results, the guards under which the map applies, and the guards' runtime variables.
        """
        sizes = array.dims if sizes is None else sizes
        bounds = [(0, size - 1) for size in sizes]
        if (
            indexing_map.is_identity
            and not is_reduced
            and [v.bounds for v in indexing_map.dims] == bounds
        ):
            return index, (), ()
        values = dict(zip(indexing_map.dims, index, strict=True))
        conditions = self._bind_runtime(array, indexing_map, values)
        swap = Substitution(values)
        for v, at, full in zip(indexing_map.dims, index, bounds, strict=True):
            if v.bounds != full:
                conditions.append(Constraint(at, *v.bounds))
        for c in indexing_map.constraints:
            if not c.is_true:
                conditions.append(Constraint(swap(c.expr), c.lower, c.upper))
        guards = tuple([c for c in conditions if not c.is_true])
        return (
            tuple(map(swap, indexing_map.results)),
            guards,
            self.scope.mentioned([c.expr for c in guards]),
        )

    def _bind_runtime(
        self, array: ProgramArray, indexing_map: IndexingMap, values: dict[Variable, Expr]
    ) -> list[Constraint]:
        """Add the runtime variables of a map to `values`; return constraints on their bounds."""
        conditions = []
        for rt in indexing_map.runtime:
            if rt.is_fixed:
                continue
            value = self._runtime(array, rt, values)
            values[rt.variable] = value
            if not contains(rt.variable.bounds, value.bounds):
                conditions.append(Constraint(value, *rt.variable.bounds))
        return conditions

    def _runtime(
        self, array: ProgramArray, rt: RuntimeVariable, values: dict[Variable, Expr]
    ) -> Expr:
        """Return the value of a runtime variable: an expression of iterations, or a variable."""
        assert rt.clamp is not None
        assert isinstance(rt.source, Instruction)
        number = array.instruction.operands.index(rt.source)
        index = tuple(map(Substitution(values), rt.index))
        value = integer_value(array.operand(number), index)
        if value is not None and contains(rt.clamp, value.bounds):
            return value
        return self.scope.variable(array.operand(number), index, rt.clamp).as_expr()

    def place_of_update(self, array: ProgramArray, index: Index) -> Index:
        """Return where a dynamic-update-slice at known starts stores an element of its update."""
        (indexing_map,) = element_writes(array.instruction, 1).maps[array.leaf]
        sizes = array.operand(1).dims
        at, guards, _ = self._access(array, indexing_map, index, sizes=sizes)
        assert not guards
        assert not self.scope.runtime
        return at

    # ------------------------------------------------------------ reductions

    def reduction(self, array: ProgramArray, rule: ReductionRule, index: Index) -> Reduction:
        """Return the reduction that computes the element of `array` at an index."""
        answer = _maps_of(array, exact=True)
        if rule.uses_computation:
            for init, value in zip(rule.inits, rule.values, strict=True):
                require_equal_types(array, [array.operand(init), array.operand(value)])
            require_equal_types(array, [array, array.operand(rule.inits[array.leaf])])
        inits: tuple[Node, ...] = tuple(
            [self._single_read(array, answer, k, index) for k in rule.inits]
        )
        values: list[Node] = []
        ranges: tuple[Variable, ...] = ()
        guards: dict[Constraint, None] = {}
        runtime: dict[Runtime, None] = {}
        for number in rule.values:
            if not answer.maps[number]:  # no element is reduced
                return self._typed(array, rule, Reduction(ADD, inits, ()))
            (indexing_map,) = answer.maps[number]
            assert not ranges or ranges == indexing_map.ranges, "operands are reduced in step"
            ranges = indexing_map.ranges
            at, conditions, used = self._access(array, indexing_map, index, is_reduced=True)
            values.append(self.scope.read(array.operand(number), at))
            guards.update(dict.fromkeys(conditions))
            runtime.update(dict.fromkeys(used))
        scatter = self._scatter(array, rule) if rule.is_scatter else None
        reduction = Reduction(ADD, inits, tuple(values), ranges, tuple(guards), tuple(runtime))
        return self._typed(array, rule, replace(reduction, scatter=scatter))

    def _typed(self, array: ProgramArray, rule: ReductionRule, reduction: Reduction) -> Reduction:
        """Add the function to a reduction, and convert it to the type of its totals."""
        if rule.uses_computation:
            function = self.function(array.instruction.called_computations[0])
            reduction = replace(reduction, function=function)
        wide = rule.accumulator_dtype or wide_total(array, reduction)
        if wide is None:
            return reduction

        def widened(node: Node) -> Node:
            to_wide = cast(wide, TYPE_NAMES.get(wide, wide.name))
            return node if dtype_of(node) == wide else Apply(to_wide, (node,), array.name, wide)

        inits = [widened(init) for init in reduction.inits] or [Scalar(np.zeros((), wide))]
        values = [widened(value) for value in reduction.values]
        if rule.is_product and values:
            values = [Apply(MULTIPLY, tuple(values), array.name, wide)]
        finish = None if array.dtype == wide else cast(array.dtype, array.shape.element_type)
        reduction = replace(reduction, inits=tuple(inits), values=tuple(values), finish=finish)
        return replace(reduction, is_product=rule.is_product and bool(values))

    def _scatter(self, array: ProgramArray, rule: ReductionRule) -> ScatterReduction:
        """Return the scatter form of a reduction: the maps from values to elements."""
        answer = element_writes(array.instruction, rule.values[0])
        (indexing_map,) = answer.maps[array.leaf]
        fresh = {v: v.renamed(v.name.replace("d", "u")) for v in indexing_map.dims}
        index = tuple([fresh[v].as_expr() for v in indexing_map.dims])
        values = [self.scope.read(array.operand(number), index) for number in rule.values]
        sizes = array.operand(rule.values[0]).dims
        at, guards, _ = self._access(array, indexing_map, index, sizes=sizes)
        runtime = self.scope.mentioned([*at, *[guard.expr for guard in guards]])
        deciding = {v for rt in indexing_map.runtime for e in rt.index for v in e.variables()}
        order = sorted(indexing_map.dims, key=lambda v: v not in deciding)
        return ScatterReduction(
            tuple([fresh[v] for v in order]), tuple(values), at, guards, runtime
        )


def _maps_of(array: ProgramArray, exact: bool = False) -> Answer:
    """Return the maps to the operands, unsimplified: range variables are matched by name.

    Raises:
        NoLoopNest: a map is unknown.
    """
    answer = element_reads(array.instruction, array.leaf, exact=exact)
    unknown = first_unknown(*answer.unknown)
    if unknown is not None:
        raise NoLoopNest(unknown)
    return answer
