"""The condition of a loop as comparisons of affine sequences, and the exit that follows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from hlo.modules.recursion import Recursive, unrolled
from hlo.shapes.shape import Shape
from indexing.dataflow.constants import is_integral
from indexing.dataflow.loops.exits import (
    AT_ONCE,
    ENDLESS,
    MAYBE_ENDLESS,
    AffineSequence,
    Exit,
    exit_of,
)
from indexing.dataflow.loops.scalars import InRange, LoopScalars, ScalarRef, WrappedSum
from indexing.dataflow.scalars import scalar_value
from indexing.maps.arrays import ArrayRef
from indexing.ops.elementwise import Compare
from simplifier.atoms import Variable
from simplifier.interval import Interval
from simplifier.linear import Expr, as_expr, constant
from simplifier.semiaffine import minimum

_NEGATED: Final = {"LT": "GE", "GE": "LT", "LE": "GT", "GT": "LE", "EQ": "NE", "NE": "EQ"}
_MIRRORED: Final = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}
_DATA: Final = "the loop's exit depends on data"


class Progress(NamedTuple):
    """The change of a carried scalar in each iteration.

    Attributes:
        start, step: loop-invariant expressions.
        conditions: the change is `step` as long as these conditions hold.
        own: the condition that the value does not wrap around.
    """

    start: Expr
    step: Expr
    conditions: tuple[InRange, ...]
    own: InRange


class Bound(NamedTuple):
    """The loop continues while ``variable direction value``."""

    direction: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Continuation:
    """The number of iterations for which a condition is true.

    Attributes:
        iterations: as a formula; None if only its bounds are known.
        bounds: inclusive bounds of the number.
        exits: the exits of its comparisons; none of them is before the loop's.
        limits: the bound of each carried variable that is compared with one.
    """

    iterations: Expr | None
    bounds: Interval
    exits: tuple[Exit, ...] = ()
    limits: tuple[tuple[Variable, Bound], ...] = ()


class Conditions:
    """The conditions of a loop, given the progress of its carried scalars."""

    def __init__(self, scalars: LoopScalars, progress: Mapping[Variable, Progress]) -> None:
        self.scalars, self.progress = scalars, progress

    def continuation(self) -> Continuation | str:
        """Return for how many iterations the loop's condition is true, or a reason."""
        root = ArrayRef(self.scalars.condition.root, (), self.scalars.inside)
        return unrolled(self._of(ScalarRef(root, ()), negated=False))

    def sequence(self, expr: Expr) -> AffineSequence | str:
        """Return the values of an expression in each iteration, or a reason."""
        first, step = constant(expr.constant), 0
        for atom, coefficient in expr.terms:
            assert isinstance(atom, Variable)  # sums have no other atoms
            if not self.scalars.varies(as_expr(atom)):
                first += as_expr(atom) * coefficient
                continue
            change = self.progress.get(atom)
            if change is None:
                return self._obstacle(atom)
            if not change.step.is_constant:
                return f"the step of {self._name(atom)} is known only at run time"
            first += change.start * coefficient
            step += change.step.constant * coefficient
        return AffineSequence(first, step)

    def hold(self, conditions: Iterable[InRange], exits: Iterable[Exit]) -> bool:
        """Return True if conditions are proved to hold until one of the exits."""
        sequences = [(self.sequence(expr), limits) for expr, limits in conditions]
        return any(
            all(
                isinstance(values, AffineSequence) and each.stays_within(values, limits)
                for values, limits in sequences
            )
            for each in exits
        )

    # ------------------------------------------------------------ implementation

    def _of(self, scalar: ScalarRef, negated: bool) -> Recursive[Continuation | str]:
        scalar = self.scalars.source(scalar)
        instruction, _, calls = scalar.array
        known = scalar_value(scalar.array)
        if known is not None:
            never = Continuation(constant(0), (0, 0))
            return f"{ENDLESS}: the condition is constant" if known != negated else never
        shapes = [operand.shape for operand in instruction.operands]
        if instruction.opcode in ("and", "or", "not") and not scalar.array.path:
            element = scalar.element
            parts = [ScalarRef(ArrayRef(each, (), calls), element) for each in instruction.operands]
            if instruction.opcode == "not":
                inner: Continuation | str = yield self._of(parts[0], not negated)
                return inner
            if (instruction.opcode == "and") != negated:
                first = yield self._of(parts[0], negated)
                return _both(first, (yield self._of(parts[1], negated)))
        if isinstance(instruction.op, Compare) and all(isinstance(s, Shape) for s in shapes):
            direction = instruction.op.direction
            return self._compared(scalar, _NEGATED[direction] if negated else direction)
        return f"{_DATA}: {self._described(scalar.array)}"

    def _compared(self, scalar: ScalarRef, direction: str) -> Continuation | str:
        instruction, _, calls = scalar.array
        arrays = [ArrayRef(operand, (), calls) for operand in instruction.operands]
        for array in arrays:
            if not is_integral(array):
                shape = array.array_shape
                kind = "other values" if shape is None else f"{shape.element_type} values"
                return f"{_DATA}: `{instruction.name}` compares {kind}"
        sums = [self.scalars.sum_at(ScalarRef(array, scalar.element)) for array in arrays]
        left, right = [self.sequence(each.expr) for each in sums]
        if isinstance(left, str):
            return left
        if isinstance(right, str):
            return right
        leaves, premises = exit_of(left, right, direction), list(self._premises(sums))
        if isinstance(leaves, str):
            is_fixed = not left.step and not right.step and self.hold(premises, [AT_ONCE])
            return leaves if is_fixed else leaves.replace(ENDLESS, MAYBE_ENDLESS)
        for condition in premises:
            if not self.hold([condition], [leaves]):
                return self._wrapping(instruction.name, condition)
        bound = self._bound(sums[0].expr - sums[1].expr, direction)
        return Continuation(leaves.iterations, leaves.bounds, (leaves,), bound)

    def _premises(self, sums: Iterable[WrappedSum]) -> Iterator[InRange]:
        """Yield the conditions under which sums are the values that are compared."""
        for value in sums:
            yield value.own_condition
            yield from value.conditions
            for variable in value.expr.variables():
                if variable in self.progress:
                    yield self.progress[variable].own
                    yield from self.progress[variable].conditions

    def _bound(self, difference: Expr, direction: str) -> tuple[tuple[Variable, Bound], ...]:
        """Return the bound of the only carried variable of ``difference direction 0``."""
        carried = [(v, c) for v, c in difference.terms if v in self.progress]
        if len(carried) != 1 or abs(carried[0][1]) != 1:
            return ()
        ((variable, sign),) = carried
        assert isinstance(variable, Variable)
        rest = difference - as_expr(variable) * sign
        return ((variable, Bound(direction if sign > 0 else _MIRRORED[direction], rest * -sign)),)

    def _wrapping(self, compare: str, condition: InRange) -> str:
        low, high = condition.limits
        variables = [v for v in condition.expr.variables() if v in self.progress]
        name = self._name(variables[0]) if variables else str(condition.expr)
        return f"{name} may wrap around, beyond [{low}, {high}], before `{compare}` ends the loop"

    def _obstacle(self, variable: Variable) -> str:
        if variable in self.scalars.carried:
            return f"{_DATA}: the step of {self._name(variable)} is not loop-invariant"
        array = self.scalars.runtime[variable].array
        assert isinstance(array, ArrayRef)
        return f"{_DATA}: {self._described(array)}"

    def _name(self, variable: Variable) -> str:
        path = ", ".join(map(str, self.scalars.carried.get(variable, ())))
        return f"carried element {{{path}}}"

    def _described(self, array: ArrayRef) -> str:
        instruction, path, calls = array
        if instruction is self.scalars.body.parameters[0] and calls == self.scalars.inside:
            return f"the condition reads carried element {{{', '.join(map(str, path))}}}"
        return f"`{instruction.name}` ({instruction.opcode}) is no affine comparison of integers"


def _both(first: Continuation | str, second: Continuation | str) -> Continuation | str:
    """Return for how many iterations two conditions are both true."""
    if isinstance(first, str) and isinstance(second, str):
        return second if ENDLESS in first else first
    if isinstance(first, str) or isinstance(second, str):
        counted = second if isinstance(first, str) else first
        assert isinstance(counted, Continuation)
        if counted.bounds == (0, 0):
            return counted
        return Continuation(None, (0, counted.bounds[1]), counted.exits, counted.limits)
    counts = first.iterations, second.iterations
    known = counts[0] is not None and counts[1] is not None
    bounds = min(first.bounds[0], second.bounds[0]), min(first.bounds[1], second.bounds[1])
    iterations = minimum(*[c for c in counts if c is not None]) if known else None
    exits, limits = first.exits + second.exits, first.limits + second.limits
    return Continuation(iterations, bounds, exits, limits)
