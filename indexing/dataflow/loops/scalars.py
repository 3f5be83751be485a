"""Integer scalars of a loop as affine expressions over carried scalars and loop-invariant values.

Addition, subtraction, multiplication by a constant and narrowing are exact modulo ``2^bits``, so a
sum is reduced once: an unsigned ``i + 4294967295`` is ``i − 1``.  Where the exact value matters (in
a comparison, or where a type is widened), the sum must be proved to be within its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from hlo.modules.module import Instruction
from hlo.modules.recursion import Recursive, run_recursive
from hlo.shapes.element_type import range_of
from hlo.shapes.shape import ELEMENT_TYPES
from indexing.dataflow.constants import element_at, is_integral
from indexing.dataflow.conversions import integer_rule, is_reinterpreted
from indexing.dataflow.copies import MAX_TRACED, origin_of_copy
from indexing.dataflow.runtime import copied_elements
from indexing.dataflow.soundness import fault_of
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.control import While, callees
from indexing.ops.element import ElementwiseRule, element_of
from indexing.ops.integer_rules import MODULAR, wrap_integer
from simplifier.atoms import Variable
from simplifier.interval import Interval, contains, join
from simplifier.linear import Expr, as_expr, constant

CarriedBounds: TypeAlias = Callable[[ArrayRef], Interval | None]
"""The bounds of a scalar that an enclosing loop carries, or None."""


class ScalarRef(NamedTuple):
    """One element of an array of integers or booleans.

    Attributes:
        element: its index in the array.
    """

    array: ArrayRef
    element: tuple[int, ...]

    @property
    def element_type(self) -> str:
        """The element type of the array."""
        shape = self.array.array_shape
        assert shape is not None
        return shape.element_type

    @property
    def limits(self) -> Interval:
        """The bounds of the values of the element type."""
        limits = range_of(self.element_type)
        assert limits is not None
        return limits


class InRange(NamedTuple):
    """The condition that the values of `expr` are within `limits`."""

    expr: Expr
    limits: Interval


@dataclass(frozen=True, slots=True)
class WrappedSum:
    """An affine expression, wrapped to an integer type.

    Attributes:
        expr: over carried and loop-invariant scalars, reduced modulo ``2^bits``.
        element_type: the type of the value.
        conditions: the conditions under which the value is the wrapped expression.
    """

    expr: Expr
    element_type: str
    conditions: tuple[InRange, ...] = ()

    @property
    def own_condition(self) -> InRange:
        """The condition under which the expression does not wrap around."""
        limits = range_of(self.element_type)
        assert limits is not None
        return InRange(self.expr, limits)

    @property
    def is_exact(self) -> bool:
        """True if the value is the expression, for all values of its variables."""
        conditions = (self.own_condition, *self.conditions)
        return all(contains(limits, expr.bounds) for expr, limits in conditions)


def scalar_of(array: ArrayRef) -> ScalarRef | None:
    """Return the element of an array of one integer or boolean; None for other arrays."""
    shape = array.array_shape
    if shape is None or not is_integral(array) or shape.size != 1:
        return None
    return ScalarRef(array, (0,) * shape.rank)


def is_invariant(loop: Instruction, path: Path) -> bool:
    """Return True if the body of a loop forwards a carried leaf unchanged."""
    _, body = callees(loop, "condition", "body")
    return origin_of_copy(ArrayRef(body.root, path)) == ArrayRef(body.parameters[0], path)


class LoopScalars:
    """The scalars of one loop as affine expressions.

    Args:
        loop: a ``while``.
        calls: the call stack of its computation, outermost first.
        carried_bounds: the bounds of scalars that enclosing loops carry.
        signed: reduce the constants of unsigned sums to the signed range, so that an added
            ``2^bits − 1`` is a step of −1.

    Attributes:
        runtime: the scalars that the expressions mention, by variable.
        carried: the leaf of each variable that the body changes.
    """

    def __init__(
        self,
        loop: Instruction,
        calls: tuple[Instruction, ...],
        carried_bounds: CarriedBounds,
        signed: bool,
    ) -> None:
        self.loop, self.calls, self.signed = loop, calls, signed
        self.inside = (*calls, loop)
        self.condition, self.body = callees(loop, "condition", "body")
        self.runtime: dict[Variable, RuntimeVariable] = {}
        self.carried: dict[Variable, Path] = {}
        self._varying: set[Variable] = set()
        self._carried_bounds = carried_bounds
        self._sums: dict[ScalarRef, WrappedSum] = {}

    def sum_of(self, array: ArrayRef) -> WrappedSum | None:
        """Return the value of a scalar; None if the array is not one integer or boolean."""
        scalar = scalar_of(array)
        return None if scalar is None else self.sum_at(scalar)

    def sum_at(self, scalar: ScalarRef) -> WrappedSum:
        """Return the value of an element of an array of integers or booleans."""
        return run_recursive(self._sum(scalar))

    def varies(self, expr: Expr) -> bool:
        """Return True if an expression may differ between iterations."""
        return any(variable in self._varying for variable in expr.variables())

    def source(self, scalar: ScalarRef) -> ScalarRef:
        """Return the scalar of which `scalar` is a copy, outside of loops that do not change it.

        The parameter of the condition is that of the body.
        """
        steps = 0
        while steps < MAX_TRACED:
            steps += 1
            for array, index in copied_elements(
                scalar.array, [constant(i) for i in scalar.element]
            ):
                scalar = ScalarRef(array, tuple([i.constant for i in index]))
            outer = self._outside(scalar.array)
            if outer is None:
                break
            scalar = ScalarRef(outer, scalar.element)
        return self._in_body(scalar)

    # ------------------------------------------------------------ implementation

    def _outside(self, array: ArrayRef) -> ArrayRef | None:
        """Return the leaf of a loop's operand that the loop forwards to `array`, or None."""
        instruction, path, calls = array
        if isinstance(instruction.op, While) and not fault_of(instruction):
            outer = ArrayRef(instruction.operands[0], path, calls)
            return outer if is_invariant(instruction, path) else None
        if instruction.opcode == "parameter" and calls and isinstance(calls[-1].op, While):
            outer = ArrayRef(calls[-1].operands[0], path, calls[:-1])
            return outer if is_invariant(calls[-1], path) else None
        return None

    def _in_body(self, scalar: ScalarRef) -> ScalarRef:
        instruction, path, calls = scalar.array
        if instruction is self.condition.parameters[0] and calls == self.inside:
            return ScalarRef(ArrayRef(self.body.parameters[0], path, calls), scalar.element)
        return scalar

    def _sum(self, scalar: ScalarRef) -> Recursive[WrappedSum]:
        scalar = self.source(scalar)
        if scalar not in self._sums:
            if len(self._sums) > MAX_TRACED:
                return self._opaque(scalar, varies=True)
            self._sums[scalar] = yield self._computed_value(scalar)
        return self._sums[scalar]

    def _computed_value(self, scalar: ScalarRef) -> Recursive[WrappedSum]:
        """Return the value of a scalar that is not a copy."""
        known = element_at(scalar.array, [constant(i) for i in scalar.element])
        if known:
            return WrappedSum(known[0].results[0], scalar.element_type)
        operands = list(self._operands(scalar))
        if not operands:
            return self._opaque(scalar, varies=self._is_inside(scalar.array))
        values: list[WrappedSum] = []
        for operand in operands:
            values.append((yield self._sum(operand)))
        result = _affine(scalar, values, self.signed)
        if result is not None and (self.varies(result.expr) or result.is_exact):
            return result
        varies = any(self.varies(value.expr) for value in values)
        cases = _rule_values(scalar, values)
        if len(cases) == 1 and all(isinstance(atom, Variable) for atom in cases[0].parts):
            return WrappedSum(cases[0], scalar.element_type)
        return self._opaque(scalar, varies, _hull(cases))

    def _operands(self, scalar: ScalarRef) -> Iterator[ScalarRef]:
        """Yield the scalars of which `scalar` is a function; none if it is no such function."""
        instruction = scalar.array.instruction
        if fault_of(instruction):
            return
        rule = element_of(instruction)
        if not isinstance(rule, ElementwiseRule):
            if not is_reinterpreted(instruction):
                return
        elif rule.function is None or rule.reads_nothing:
            return
        arrays = [ArrayRef(operand, (), scalar.array.calls) for operand in instruction.operands]
        shapes = [array.array_shape for array in arrays]
        if not all(is_integral(array) for array in arrays):
            return
        for array, shape in zip(arrays, shapes, strict=True):
            yield ScalarRef(array, scalar.element if shape and shape.rank else ())

    def _is_inside(self, array: ArrayRef) -> bool:
        return array.calls[: len(self.inside)] == self.inside

    def _opaque(
        self, scalar: ScalarRef, varies: bool, bounds: Interval | None = None
    ) -> WrappedSum:
        """Return a variable for a scalar."""
        array, index = scalar
        if bounds is None and not self._is_inside(array):
            bounds = self._carried_bounds(array)
        bounds = bounds or scalar.limits
        number = len(self._varying) if varies else len(self.runtime) - len(self._varying)
        variable = Variable(f"{'x' if varies else 'rt'}{number}", *bounds)
        source = tuple([constant(i) for i in index])
        self.runtime[variable] = RuntimeVariable(variable, array, source)
        if varies:
            self._varying.add(variable)
        if array.instruction is self.body.parameters[0] and array.calls == self.inside:
            self.carried[variable] = array.path
        return WrappedSum(as_expr(variable), scalar.element_type)


def _affine(scalar: ScalarRef, values: list[WrappedSum], signed: bool) -> WrappedSum | None:
    """Return the value of an affine function; None for other functions."""
    element_type, rule = scalar.element_type, integer_rule(scalar.array.instruction)
    if rule not in MODULAR or ELEMENT_TYPES[element_type].kind == "pred":
        return None
    cases = rule([value.expr for value in values])
    if cases is None:
        return None
    ((expr, _),) = cases
    conditions = [condition for value in values for condition in value.conditions]
    bits = ELEMENT_TYPES[element_type].bits
    for value in values:
        operand_type = ELEMENT_TYPES[value.element_type]
        if operand_type.bits < bits or operand_type.kind == "pred":  # widened
            conditions.append(value.own_condition)
    return WrappedSum(_reduce_numbers(expr, element_type, signed), element_type, tuple(conditions))


def _reduce_numbers(expr: Expr, element_type: str, signed: bool) -> Expr:
    """Return an expression of small numbers that is equal modulo ``2^bits``."""
    signed_type = f"s{ELEMENT_TYPES[element_type].bits}"
    result = constant(0)
    for atom, coefficient in expr.terms:
        assert isinstance(atom, Variable)  # sums have no other atoms
        result += as_expr(atom) * wrap_integer(coefficient, signed_type)
    own_type = element_type if result.is_constant or not signed else signed_type
    return result + wrap_integer(expr.constant, own_type)


def _rule_values(scalar: ScalarRef, values: list[WrappedSum]) -> list[Expr]:
    """Return the different values of a function of exact values; none if no rule gives them."""
    rule = integer_rule(scalar.array.instruction)
    if rule is None or not all(value.is_exact for value in values):
        return []
    cases = [value for value, _ in rule([value.expr for value in values]) or ()]
    return cases if all(contains(scalar.limits, case.bounds) for case in cases) else []


def _hull(exprs: list[Expr]) -> Interval | None:
    """Return bounds of all expressions; None if there are none."""
    bounds = [expr.bounds for expr in exprs]
    return join(bounds) if bounds else None
