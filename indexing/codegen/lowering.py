"""Lowering of an array element at an index to a node over reads of operand elements.

Indices and guards come from the op's maps (`indexing.output_to_input`), the scalar function from
the op's per-element rule (`indexing.ops.element`).  Reads are hash-consed in the `Scope` of the
stage; staging later inlines some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from hlo.modules.module import Computation
from hlo.shapes.mixed_radix import number_of
from indexing.codegen.element_types import TYPE_NAMES, convert_node, require_equal_types, wide_total
from indexing.codegen.graph import (
    Apply,
    Array,
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
from indexing.codegen.program_arrays import NoLoopNest, ProgramArray
from indexing.codegen.reads import Scope
from indexing.dataflow.queries import element_writes
from indexing.maps.answers import Unknown
from indexing.ops.element import (
    CopyRule,
    ElementRule,
    ElementwiseRule,
    OpaqueRule,
    ReductionRule,
    element_of,
)
from indexing.ops.functions import ADD, MULTIPLY, ScalarFunction, cast
from indexing.programs.element import ElementAlgebra, access, element, literal_of
from simplifier.atoms import Variable
from simplifier.interval import Interval, contains
from simplifier.linear import Expr, as_expr


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
    value = literal_of(array.instruction, array.ref.path)
    if isinstance(value, Unknown):
        raise NoLoopNest(value)
    return value


class Lowering:
    """The algebra of nodes: the element of an array at an index, in one stage.

    Args:
        scope: the loops and reads of the stage.
        function: converts a computation of scalars to a function.
    """

    keeps_unit_ranges: Final = True

    def __init__(
        self,
        scope: Scope,
        function: Callable[[Computation], ScalarFunction],
        array: ProgramArray,
        index: Index,
    ) -> None:
        self.scope, self.function, self.array, self.index = scope, function, array, index

    def body(self, rule: Rule) -> Node | Reduction:
        """Return the element as a node, or as a reduction.

        Raises:
            NoLoopNest: the element is unknown.
        """
        if isinstance(rule, KnownRule):
            return self.iota(rule.value)
        algebra: ElementAlgebra[Node, Reduction] = self
        value: Node | Reduction | Unknown = element(self.array, rule, self.index, algebra)
        if isinstance(value, Unknown):
            raise NoLoopNest(value)
        return value

    def node(self, rule: Rule) -> Node:
        """Return the element as a node; reductions have stages of their own."""
        body = self.body(rule)
        assert not isinstance(body, Reduction)
        return body

    # ------------------------------------------------------------ values

    def constant(self) -> Node:
        """Return the value of a scalar constant."""
        return Scalar(literal(self.array))

    def iota(self, value: Expr) -> IndexValue:
        """Return the value of an index, of the type of the array."""
        return self._index_value(value, self.array.dtype)

    def zero(self) -> Node:
        """Return 0, of the type of the array."""
        return Scalar(np.zeros((), self.array.dtype))

    def padding(self, operand: int) -> Node:
        """Return 0, of the type of an operand."""
        return Scalar(np.zeros((), self.array.operand(operand).dtype))

    def read(self, operand: int, index: Index) -> Node:
        """Return the read of an element of an operand."""
        return self.scope.read(self.array.operand(operand), index)

    def runtime(self, operand: int, index: Index, clamp: Interval) -> Expr:
        """Return an integer as an expression of iterations, or as a runtime variable."""
        source = self.array.operand(operand)
        value = integer_value(source, index)
        if value is not None and contains(clamp, value.bounds):
            return value
        return self.scope.variable(source, index, clamp).as_expr()

    def apply(self, rule: ElementwiseRule, arguments: Sequence[Node]) -> Node:
        """Return a function of arguments, converted to the type of the array."""
        array, function = self.array, rule.function
        if function is None:
            function = self.function(array.instruction.called_computations[0])
        kind = array.dtype
        if rule.function:  # narrow integers and mixed precision need a conversion
            kind = rule.function.result_dtype(*map(dtype_of, arguments))
        return convert_node(Apply(function, tuple(arguments), array.name, kind), array)

    def choose(
        self,
        rule: CopyRule,
        cases: Sequence[tuple[Guards, Node]],
        otherwise: Node,
        rest: Guards,
    ) -> Node:
        """Return a choice among copied elements, after the function of the rule."""
        array = self.array
        if rule.function is None:
            require_equal_types(array, [array.operand(number) for number in rule.operands])
        node = otherwise
        if cases:
            made = [
                Case(guards, value, self._runtime_variables_in(guards)) for guards, value in cases
            ]
            node = Choose(tuple(made), otherwise, array.name, rest)
        if rule.function is None:
            return convert_node(node, array)
        parts = (self._part_number(rule),) if rule.parts > 1 else ()
        return Apply(rule.function, (node, *parts), array.name, array.dtype)

    def join(self, rule: CopyRule, parts: Sequence[Node]) -> Node:
        """Return a function of the elements whose bits are joined."""
        assert rule.function is not None
        return Apply(rule.function, tuple(parts), self.array.name, self.array.dtype)

    def _part_number(self, rule: CopyRule) -> Node:
        """Return the number of an element's part in a wider element, by its memory position."""
        order = self.array.shape.layout_or_default.minor_to_major[::-1]
        digits, sizes = [self.index[k] for k in order], [self.array.dims[k] for k in order]
        position = as_expr(number_of(digits, sizes))
        return self._index_value(position % rule.parts, np.dtype(np.int64))

    def _index_value(self, expr: Expr, kind: np.dtype[np.generic]) -> IndexValue:
        return IndexValue(expr, kind, self.scope.runtime_variables_in([expr]))

    def _runtime_variables_in(self, guards: Guards) -> tuple[Runtime, ...]:
        return self.scope.runtime_variables_in([guard.expr for guard in guards])

    def place_of_update(self) -> Index:
        """Return where a dynamic-update-slice at known starts stores an element of its update."""
        instruction, sizes = self.array.instruction, self.array.operand(1).dims
        (indexing_map,) = element_writes(instruction, 1).maps[self.array.leaf]
        at, guards = access(instruction, indexing_map, self.index, sizes, self)
        assert not guards
        assert not self.scope.runtime
        return at

    # ------------------------------------------------------------ reductions

    def reduce(
        self,
        rule: ReductionRule,
        inits: tuple[Node, ...],
        values: tuple[Node, ...],
        ranges: tuple[Variable, ...],
        guards: Guards,
    ) -> Reduction:
        """Return the reduction of values, which stores its result or scatters them."""
        array = self.array
        if rule.uses_computation:
            for init, value in zip(rule.inits, rule.values, strict=True):
                require_equal_types(array, [array.operand(init), array.operand(value)])
            require_equal_types(array, [array, array.operand(rule.inits[array.leaf])])
        reduction = Reduction(
            ADD, inits, values, ranges, guards, self._runtime_variables_in(guards)
        )
        if rule.is_scatter and values:
            reduction = replace(reduction, scatter=self._scatter(rule))
        return self._typed_reduction(rule, reduction)

    def _typed_reduction(self, rule: ReductionRule, reduction: Reduction) -> Reduction:
        """Add the function to a reduction, and convert it to the type of its totals."""
        array = self.array
        if rule.uses_computation:
            function = self.function(array.instruction.called_computations[0])
            reduction = replace(reduction, function=function)
        wide = rule.accumulator_dtype or wide_total(array, reduction)
        if wide is None:
            return reduction

        def widen(node: Node) -> Node:
            to_wide = cast(wide, TYPE_NAMES.get(wide, wide.name))
            return node if dtype_of(node) == wide else Apply(to_wide, (node,), array.name, wide)

        inits = [widen(init) for init in reduction.inits] or [Scalar(np.zeros((), wide))]
        values = [widen(value) for value in reduction.values]
        if rule.is_product and values:
            values = [Apply(MULTIPLY, tuple(values), array.name, wide)]
        finish = None if array.dtype == wide else cast(array.dtype, array.shape.element_type)
        reduction = replace(reduction, inits=tuple(inits), values=tuple(values), finish=finish)
        return replace(reduction, is_product=rule.is_product and bool(values))

    def _scatter(self, rule: ReductionRule) -> ScatterReduction:
        """Return the scatter form of a reduction: the maps from values to elements."""
        array = self.array
        answer = element_writes(array.instruction, rule.values[0])
        (indexing_map,) = answer.maps[array.leaf]
        fresh = {v: v.renamed(v.name.replace("d", "u")) for v in indexing_map.dims}
        index = tuple([fresh[v].as_expr() for v in indexing_map.dims])
        values = [self.scope.read(array.operand(number), index) for number in rule.values]
        sizes = array.operand(rule.values[0]).dims
        at, guards = access(array.instruction, indexing_map, index, sizes, self)
        runtime = self.scope.runtime_variables_in([*at, *[guard.expr for guard in guards]])
        deciding = {v for rt in indexing_map.runtime for e in rt.index for v in e.variables()}
        order = sorted(indexing_map.dims, key=lambda v: v not in deciding)
        return ScatterReduction(
            tuple([fresh[v] for v in order]), tuple(values), at, guards, runtime
        )
