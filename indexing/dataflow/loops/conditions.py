"""The condition of a loop as comparisons of affine sequences, and the exit that follows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from hlo.modules.recursion import Recursive, run_recursive
from hlo.shapes.shape import Shape
from indexing.dataflow.constants import is_integral
from indexing.dataflow.loops.exits import (
    AT_ONCE,
    ENDLESS,
    MAYBE_ENDLESS,
    AffineSequence,
    Exit,
    counted_exit,
    exit_of,
)
from indexing.dataflow.loops.scalars import InRange, LoopScalars, ScalarRef, WrappedSum
from indexing.dataflow.scalars import scalar_value
from indexing.maps.arrays import ArrayRef, Path
from indexing.ops.elementwise import Compare
from simplifier.atoms import Variable
from simplifier.interval import Interval
from simplifier.linear import Expr, as_expr, constant
from simplifier.semiaffine import maximum, minimum

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
        obstacle: why a part of the condition, which may end the loop earlier, has no exit.
        premises: the conditions under which the comparisons are those of unbounded integers; they
            hold until the first exit.
        stays_false: True if the condition stays false if iterations were executed after it is.
    """

    iterations: Expr | None
    bounds: Interval
    exits: tuple[Exit, ...] = ()
    limits: tuple[tuple[Variable, Bound], ...] = ()
    obstacle: str = ""
    premises: tuple[InRange, ...] = ()
    stays_false: bool = False


NEVER: Final = Continuation(constant(0), (0, 0), stays_false=True)


class Conditions:
    """The conditions of a loop, given the progress of its carried scalars."""

    def __init__(self, scalars: LoopScalars, progress: Mapping[Variable, Progress]) -> None:
        self.scalars, self.progress = scalars, progress
        self._flags: set[Path] = set()

    def continuation(self) -> Continuation | str:
        """Return for how many iterations the loop's condition is true, or a reason."""
        root = ArrayRef(self.scalars.condition.root, (), self.scalars.inside)
        return run_recursive(self._of(ScalarRef(root, ()), negated=False))

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
                return f"{self._carried_name(atom)}, whose step is known only at run time"
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
            return f"{ENDLESS}: the condition is constant" if known != negated else NEVER
        if instruction is self.scalars.body.parameters[0] and calls == self.scalars.inside:
            flag: Continuation | str = yield self._flag(scalar, negated)
            return flag
        shapes = [operand.shape for operand in instruction.operands]
        if instruction.opcode in ("and", "or", "not") and not scalar.array.path:
            element = scalar.element
            parts = [ScalarRef(ArrayRef(each, (), calls), element) for each in instruction.operands]
            if instruction.opcode == "not":
                inner: Continuation | str = yield self._of(parts[0], not negated)
                return inner
            first = yield self._of(parts[0], negated)
            second = yield self._of(parts[1], negated)
            if (instruction.opcode == "and") != negated:
                return _both(first, second)
            return self._either(instruction.name, first, second)
        if isinstance(instruction.op, Compare) and all(isinstance(s, Shape) for s in shapes):
            direction = instruction.op.direction
            return self._compare_scalar(scalar, _NEGATED[direction] if negated else direction)
        root = self._describe_array(scalar.array)
        return f"{_DATA}: {root} is not an affine comparison of integers"

    def _compare_scalar(self, scalar: ScalarRef, direction: str) -> Continuation | str:
        instruction, _, calls = scalar.array
        arrays = [ArrayRef(operand, (), calls) for operand in instruction.operands]
        others = [array.array_shape for array in arrays if not is_integral(array)]
        if others:
            kind = "other" if others[0] is None else others[0].element_type
            return f"{_DATA}: `{instruction.name}` compares {kind} values"
        sums = [self.scalars.sum_at(ScalarRef(array, scalar.element)) for array in arrays]
        left, right = [self.sequence(each.expr) for each in sums]
        if isinstance(left, str) or isinstance(right, str):
            obstacle = left if isinstance(left, str) else right
            return f"{_DATA}: `{instruction.name}` reads {obstacle}"
        return self._exit(instruction.name, direction, sums, left, right)

    def _exit(
        self,
        name: str,
        direction: str,
        sums: Sequence[WrappedSum],
        left: AffineSequence,
        right: AffineSequence,
    ) -> Continuation | str:
        """Return the exit of a comparison of two sums, whose values are affine sequences."""
        leaves, premises = exit_of(left, right, direction), list(self._premises(sums))
        if isinstance(leaves, str):
            is_fixed = not left.step and not right.step and self.hold(premises, [AT_ONCE])
            return leaves if is_fixed else leaves.replace(ENDLESS, MAYBE_ENDLESS)
        for condition in premises:
            if not self.hold([condition], [leaves]):
                return self._wrapping(name, condition)
        bound = self._bound_of_variable(sums[0].expr - sums[1].expr, direction)
        stays = direction not in ("EQ", "NE") and leaves.difference.step >= 0
        return Continuation(
            leaves.iterations,
            leaves.bounds,
            (leaves,),
            bound,
            premises=tuple(premises),
            stays_false=stays,
        )

    def _either(
        self, name: str, first: Continuation | str, second: Continuation | str
    ) -> Continuation | str:
        """Return for how many iterations at least one of two conditions is true."""
        for each in (first, second):
            if isinstance(each, str):
                return each
        assert isinstance(first, Continuation)
        assert isinstance(second, Continuation)
        if not first.stays_false or not second.stays_false or first.obstacle or second.obstacle:
            return f"{_DATA}: `{name}` (or) has a part that may become true again"
        bounds = max(first.bounds[0], second.bounds[0]), max(first.bounds[1], second.bounds[1])
        counts = [c for c in (first.iterations, second.iterations) if c is not None]
        iterations = maximum(*counts) if len(counts) == 2 else None
        premises = first.premises + second.premises
        for condition in premises:
            for part in (first, second):
                if not self.hold([condition], part.exits):
                    return self._wrapping(name, condition)
        return Continuation(
            iterations,
            bounds,
            (counted_exit(iterations, bounds),),
            premises=premises,
            stays_false=True,
        )

    def _flag(self, scalar: ScalarRef, negated: bool) -> Recursive[Continuation | str]:
        """Return for how many iterations a carried boolean, which the body computes, is true.

        It is true at first, and then as often as what the body computes.
        """
        path, scalars = scalar.array.path, self.scalars
        if path in self._flags:
            return f"{_DATA}: {self._describe_array(scalar.array)}"
        self._flags.add(path)
        after: Continuation | str = yield self._of(
            scalar._replace(array=ArrayRef(scalars.body.root, path, scalars.inside)), negated
        )
        self._flags.discard(path)
        start = scalar_value(ArrayRef(scalars.loop.operands[0], path, scalars.calls))
        if start is not None and bool(start) == negated:
            return NEVER
        is_first = start is not None
        if isinstance(after, str):
            return after if is_first else after.replace(ENDLESS, MAYBE_ENDLESS)
        bounds = after.bounds[0] + 1 if is_first else 0, after.bounds[1] + 1
        count = after.iterations
        iterations = count + 1 if is_first and count is not None else None
        name = self._describe_array(scalar.array)
        obstacle = after.obstacle or ("" if is_first else f"{_DATA}: {name} before the loop")
        exits = (counted_exit(iterations, bounds),)
        return Continuation(iterations, bounds, exits, obstacle=obstacle)

    def _premises(self, sums: Iterable[WrappedSum]) -> Iterator[InRange]:
        """Yield the conditions under which sums are the values that are compared."""
        for value in sums:
            yield value.own_condition
            yield from value.conditions
            for variable in value.expr.variables():
                if variable in self.progress:
                    yield self.progress[variable].own
                    yield from self.progress[variable].conditions

    def _bound_of_variable(
        self, difference: Expr, direction: str
    ) -> tuple[tuple[Variable, Bound], ...]:
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
        name = self._carried_name(variables[0]) if variables else str(condition.expr)
        return f"{name} may wrap around, beyond [{low}, {high}], before `{compare}` ends the loop"

    def _obstacle(self, variable: Variable) -> str:
        if variable in self.scalars.carried:
            return f"{self._carried_name(variable)}, whose step is not loop-invariant"
        array = self.scalars.runtime[variable].array
        assert isinstance(array, ArrayRef)
        return self._describe_array(array)

    def _carried_name(self, variable: Variable) -> str:
        path = ", ".join(map(str, self.scalars.carried.get(variable, ())))
        return f"carried element {{{path}}}"

    def _describe_array(self, array: ArrayRef) -> str:
        instruction, path, calls = array
        if instruction is self.scalars.body.parameters[0] and calls == self.scalars.inside:
            return f"carried element {{{', '.join(map(str, path))}}}"
        return f"`{instruction.name}` ({instruction.opcode})"


def _at_most(counted: Continuation, obstacle: str) -> Continuation:
    """Return a continuation that another condition, which has no exit, may end earlier."""
    if counted.bounds == (0, 0):
        return counted
    return replace(counted, iterations=None, bounds=(0, counted.bounds[1]), obstacle=obstacle)


def _both(first: Continuation | str, second: Continuation | str) -> Continuation | str:
    """Return for how many iterations two conditions are both true."""
    if isinstance(first, str) and isinstance(second, str):
        return second if ENDLESS in first else first
    if isinstance(first, str):
        assert isinstance(second, Continuation)
        return _at_most(second, first)
    if isinstance(second, str):
        return _at_most(first, second)
    counts = first.iterations, second.iterations
    known = counts[0] is not None and counts[1] is not None
    bounds = min(first.bounds[0], second.bounds[0]), min(first.bounds[1], second.bounds[1])
    iterations = minimum(*[c for c in counts if c is not None]) if known else None
    exits, limits = first.exits + second.exits, first.limits + second.limits
    return Continuation(
        iterations,
        bounds,
        exits,
        limits,
        first.obstacle or second.obstacle,
        first.premises + second.premises,
        first.stays_false and second.stays_false,
    )
