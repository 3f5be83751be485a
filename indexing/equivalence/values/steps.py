"""One op: the formula of an element of its result, from the formulas of its operands' elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import ELEMENT_TYPES, Shape
from indexing.codegen.element_types import TYPE_NAMES
from indexing.equivalence.values.algebra import FormulaAlgebra
from indexing.equivalence.values.fold_ranges import Fold
from indexing.equivalence.values.folds import folded
from indexing.equivalence.values.functions import Attributes, is_float
from indexing.equivalence.values.numbering import attributes_of
from indexing.equivalence.values.terms import Formula
from indexing.maps.answers import Answer
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.element import CopyRule, ElementwiseRule, ReductionRule
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.interval import contains
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution

FLOAT_COMBINERS: Final = ("add", "multiply", "maximum", "minimum")

Guards: TypeAlias = tuple[Constraint, ...]


def own_index(shape: Shape) -> tuple[Expr, ...]:
    """Return the index of an element: ``d0, d1, …``, and 0 in dimensions of size 1."""
    return tuple([v.as_expr() if v.upper else as_expr(0) for v in dims(shape)])


@dataclass(frozen=True, slots=True)
class Step:
    """One op with its operands.

    Attributes:
        leaf: the number of the result, of this shape.
        answer: the maps to the operands.
        operand: returns the formula of an element of an operand.
        function: returns the results of a computation over symbols for its arguments.
        combiner: returns the opcode of a computation that applies one op to both parameters.
        applied: returns the result of a computation of scalars, applied to terms.
    """

    algebra: FormulaAlgebra
    instruction: Instruction
    leaf: int
    shape: Shape
    answer: Answer
    operand: Callable[[int, Sequence[Expr]], Formula]
    function: Callable[[Computation], tuple[Formula, ...]]
    combiner: Callable[[Computation], str]
    applied: Callable[[Computation, Sequence[Formula]], Formula | None]

    def computed(self, rule: ElementwiseRule) -> Formula | None:
        """Return the formula of an elementwise op."""
        arguments = []
        for number in range(len(self.answer.maps)):
            maps = self._maps(number)
            if len(maps) != 1 or maps[0].ranges:
                return None
            arguments.append(self._single(number))
        if rule.function is None:
            return self.applied(self.instruction.called_computations[0], arguments)
        opcode, attributes = self.instruction.opcode, attributes_of(self.instruction)
        element_type = self.shape.element_type
        self.algebra.functions[opcode, attributes, element_type] = rule.function
        return self.algebra.apply(opcode, attributes, element_type, arguments)

    def _maps(self, number: int) -> Sequence[IndexingMap]:
        return self.answer.maps[number]

    def _single(self, number: int) -> Formula:
        """Return the only element of an operand that the element reads."""
        at, _ = self.access(self._maps(number)[0])
        return self.operand(number, at)

    # ------------------------------------------------------------ copies

    def copied(self, rule: CopyRule) -> Formula | None:
        """Return the formula of an op that copies one element, which its index selects."""
        if rule.joins_parts or rule.has_padding or rule.parts > 1:
            return None
        if any(m.ranges for number in rule.operands for m in self._maps(number)):
            return None
        cases, otherwise = self._cases(rule)
        if otherwise is None:
            if not cases:
                return None
            guards, otherwise = cases.pop()
            if guards and not (cases and self._is_partition(rule)):
                return None
        if any(term.type != otherwise.type for _, term in cases):
            return None
        for guards, term in reversed(cases):
            otherwise = self.algebra.where(guards, term, otherwise)
        return self._reinterpreted(rule, otherwise)

    def _cases(self, rule: CopyRule) -> tuple[list[tuple[Guards, Formula]], Formula | None]:
        """Return the element for each map with its guards, and the element if none applies."""
        cases: list[tuple[Guards, Formula]] = []
        otherwise: Formula | None = None
        for number in rule.operands:
            for indexing_map in self._maps(number):
                at, guards = self.access(indexing_map)
                if any(guard.is_false for guard in guards):
                    continue
                term = self.operand(number, at)
                if indexing_map.grade == "may":
                    otherwise = term
                else:
                    cases.append((guards, term))
        return cases, otherwise

    def _reinterpreted(self, rule: CopyRule, otherwise: Formula) -> Formula | None:
        """Return a copied element with the type of the result; None if the widths differ."""
        element_type = self.shape.element_type
        if rule.function is None:
            return otherwise if otherwise.type == element_type else None
        widths = ELEMENT_TYPES[otherwise.type].bits, ELEMENT_TYPES[element_type].bits
        if widths[0] != widths[1]:
            return None
        key = "bitcast-convert", (), element_type
        self.algebra.functions[key] = rule.function
        return self.algebra.apply(*key, [otherwise])

    def _is_partition(self, rule: CopyRule) -> bool:
        """Return True if the domains of the maps are boxes that cover the result once."""
        total = 0
        for number in rule.operands:
            for indexing_map in self._maps(number):
                if any(not c.is_true for c in indexing_map.constraints) or indexing_map.runtime:
                    return False
                total += int(np.prod([v.upper - v.lower + 1 for v in indexing_map.dims]))
        return total == self.shape.size

    # ------------------------------------------------------------ accesses

    def access(self, indexing_map: IndexingMap) -> tuple[tuple[Expr, ...], tuple[Constraint, ...]]:
        """Return the index of the element that a map leads to, and the conditions for it."""
        values = dict(zip(indexing_map.dims, own_index(self.shape), strict=True))
        values |= {v: as_expr(v.lower) for v in indexing_map.ranges if v.lower == v.upper}
        conditions: list[Constraint] = []
        for rt in indexing_map.runtime:
            if not rt.is_fixed:
                value = self._runtime(rt, values)
                values[rt.variable] = value
                if not contains(rt.variable.bounds, value.bounds):
                    conditions.append(Constraint(value, *rt.variable.bounds))
        swap = Substitution(values)
        for v in indexing_map.dims:
            if not contains(v.bounds, values[v].bounds):
                conditions.append(Constraint(values[v], *v.bounds))
        conditions += [c.with_expr(swap(c.expr)) for c in indexing_map.constraints]
        return tuple(map(swap, indexing_map.results)), tuple(
            [c for c in conditions if not c.is_true]
        )

    def _runtime(self, rt: RuntimeVariable, values: dict[Variable, Expr]) -> Expr:
        assert rt.clamp is not None
        assert isinstance(rt.source, Instruction)
        number = self.instruction.operands.index(rt.source)
        term = self.operand(number, tuple(map(Substitution(values), rt.index)))
        return self.algebra.index_of(term, rt.clamp)

    # ------------------------------------------------------------ reductions

    def reduced(self, rule: ReductionRule) -> Formula | None:
        """Return the formula of a reduction."""
        inits = tuple([self._single(number) for number in rule.inits])
        values: list[Formula] = []
        ranges: tuple[Variable, ...] = ()
        guards: dict[Constraint, None] = {}
        for number in rule.values:
            maps = self._maps(number)
            if not maps:
                return inits[self.leaf] if inits else self._zero()
            if len(maps) > 1 or (ranges and ranges != maps[0].ranges):
                return None
            (indexing_map,) = maps
            if indexing_map.grade == "may":
                return None
            ranges = indexing_map.ranges
            at, conditions = self.access(indexing_map)
            values.append(self.operand(number, at))
            guards.update(dict.fromkeys(conditions))
        ranges = tuple([v for v in ranges if v.lower < v.upper])
        return self._fold(rule, inits, tuple(values), ranges, tuple(guards))

    def _zero(self) -> Formula:
        return self.algebra.table.constant(0, self.shape.element_type)

    def _fold(
        self, rule: ReductionRule, inits: tuple[Formula, ...], values: tuple[Formula, ...],
        ranges: tuple[Variable, ...], guards: tuple[Constraint, ...],
    ) -> Formula | None:  # fmt: skip
        element_type = self.shape.element_type
        combiner = "add"
        functions: tuple[Formula, ...] = ()
        if rule.uses_computation:
            combiner, functions = self._combiner(len(values))
        if not combiner and any(t.type != values[k].type for k, t in enumerate(inits)):
            return None
        total = self._total_type(rule, combiner)
        if total != element_type or rule.is_product:
            values = tuple([self._converted(term, total) for term in values])
            inits = tuple([self._converted(term, total) for term in inits])
        if rule.is_product:
            values = (self.algebra.apply("multiply", (), total, values),)
        inits = inits or (self.algebra.table.constant(0, total),)
        if combiner and {values[0].type, inits[0].type} != {total}:
            return None
        fold = Fold(combiner, functions, self.leaf if not combiner else 0, total, inits, values,
                    ranges, guards)  # fmt: skip
        return self._converted(folded(self.algebra, fold), element_type)

    def _combiner(self, count: int) -> tuple[str, tuple[Formula, ...]]:
        """Return the known combiner of a reduction, or the results of any other one."""
        called = self.instruction.called_computations[0]
        combiner = self.combiner(called) if count == 1 else ""
        return combiner, () if combiner else self.function(called)

    def _total_type(self, rule: ReductionRule, combiner: str) -> str:
        """Return the type in which values are combined.

        Narrow floats are summed in f32.  Their extrema are the same in f32, too.
        """
        if rule.accumulator_dtype is not None:
            return TYPE_NAMES.get(rule.accumulator_dtype, self.shape.element_type)
        element_type = self.shape.element_type
        is_narrow = is_float(element_type) and ELEMENT_TYPES[element_type].bits < 32
        if is_narrow and combiner in FLOAT_COMBINERS and not rule.is_scatter:
            return "f32"
        return element_type

    def _converted(self, term: Formula, element_type: str) -> Formula:
        if term.type == element_type:
            return term
        attributes: Attributes = ()
        return self.algebra.apply("convert", attributes, element_type, [term])
