"""Counted loops: induction variables and trip counts of ``while`` instructions.

Source: XLA ``xla/service/while_loop_analysis.cc``; M. Wolfe, "Beyond induction variables", 1992.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hlo.arguments import checked
from hlo.modules.module import Instruction
from hlo.shapes.shape import ELEMENT_TYPES, leaves
from indexing.dataflow.evaluation import executed_iterations
from indexing.dataflow.loops.call_stacks import Calls, only_calls
from indexing.dataflow.loops.conditions import Bound, Conditions, Continuation, Progress
from indexing.dataflow.loops.exits import ENDLESS, Exit, counted_exit
from indexing.dataflow.loops.facts import InductionVariable, LoopFacts, TripCount, variables_in
from indexing.dataflow.loops.printed_facts import PrintedFacts, printed_facts
from indexing.dataflow.loops.scalars import LoopScalars, is_invariant, scalar_of
from indexing.dataflow.soundness import require_sound
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.control import While, callees
from simplifier.atoms import Variable
from simplifier.interval import Interval, add, scale
from simplifier.linear import constant

MAX_DEPTH: Final = 32
"""Limit on the nested calls and loops through which the bounds of an outer loop are used."""


@checked
def trip_count(
    instruction: Instruction, calls: tuple[Instruction, ...] | None = None
) -> TripCount | Unknown:
    """Return the number of iterations of a loop, its bounds, or the reason why it is unknown.

    A loop with a data-dependent exit has no trip count, unless another comparison bounds it.  No
    count is derived if a counter may wrap around.  XLA's ``known_trip_count`` is used where it
    agrees with condition and body; a contradiction is an `Unknown` with both figures.

    Args:
        instruction: a ``while``.
        calls: the call stack of its computation, outermost first: calls, fusions and enclosing
            loops.  By default, they are followed as long as a computation has a single caller.
            With ``()``, the parameters of its computation may have any value.
    Raises:
        HloError: the loop, or an instruction of a computation it calls, is invalid.
        ValueError: the instruction is not a ``while``.
    Source: XLA ``xla/service/while_loop_analysis.h``, ``ComputeWhileLoopTripCount``.

    >>> import hlo
    >>> module = hlo.parse('''
    ... less { s = (s32[], s32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
    ...   n = s32[] get-tuple-element(s), index=1  ROOT r = pred[] compare(i, n), direction=LT }
    ... next { s = (s32[], s32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
    ...   n = s32[] get-tuple-element(s), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
    ...   ROOT t = (s32[], s32[]) tuple(j, n) }
    ... ENTRY e { n = s32[] parameter(0)  zero = s32[] constant(0)  ten = s32[] constant(10)
    ...   a = (s32[], s32[]) tuple(zero, ten)  b = (s32[], s32[]) tuple(zero, n)
    ...   fixed = (s32[], s32[]) while(a), condition=less, body=next
    ...   ROOT open = (s32[], s32[]) while(b), condition=less, body=next }''')
    >>> print(trip_count(module.entry["fixed"]))
    10
    >>> count = trip_count(module.entry["open"])
    >>> print(count, [rt.source for rt in count.runtime])
    max(rt0, 0) in [0, 2147483647] [<parameter 'n' of 'e'>]
    """
    return loop_facts(instruction, calls).trip_count


@checked
def induction_variables(
    instruction: Instruction, calls: tuple[Instruction, ...] | None = None
) -> tuple[InductionVariable, ...]:
    """Return the carried integers of a loop that change by the same step in each iteration.

    Leaves that the body forwards unchanged are loop-invariant, and not listed.

    Args:
        instruction, calls: as in `trip_count`.
    Raises:
        HloError: the loop, or an instruction of a computation it calls, is invalid.
        ValueError: the instruction is not a ``while``.
    Source: M. Wolfe, "Beyond induction variables", PLDI 1992.

    >>> import hlo
    >>> loop = hlo.parse('''
    ... more { s = (u8[], f32[]) parameter(0)  i = u8[] get-tuple-element(s), index=0
    ...   n = u8[] constant(3)  ROOT r = pred[] compare(n, i), direction=LT }
    ... next { s = (u8[], f32[]) parameter(0)  i = u8[] get-tuple-element(s), index=0
    ...   x = f32[] get-tuple-element(s), index=1  y = f32[] negate(x)
    ...   c = u8[] constant(254)  j = u8[] add(i, c)  ROOT t = (u8[], f32[]) tuple(j, y) }
    ... ENTRY e { x = f32[] parameter(0)  n = u8[] constant(20)  s = (u8[], f32[]) tuple(n, x)
    ...   ROOT w = (u8[], f32[]) while(s), condition=more, body=next }''').entry.root
    >>> (down,) = induction_variables(loop)
    >>> print(down, "|", down.at(4), "|", trip_count(loop))
    element {0}: from 20 by -2 while GT 3 | 12 | 9
    """
    return loop_facts(instruction, calls).variables


@checked
def loop_facts(instruction: Instruction, calls: tuple[Instruction, ...] | None = None) -> LoopFacts:
    """Return the invariants, the induction variables and the trip count of a loop.

    Args:
        instruction, calls: as in `trip_count`.
    Raises:
        HloError: the loop, or an instruction of a computation it calls, is invalid.
        ValueError: the instruction is not a ``while``.

    >>> import hlo
    >>> loop = hlo.parse('''
    ... body { t = (s32[]) parameter(0)  i = s32[] get-tuple-element(t), index=0
    ...   two = s32[] constant(2)  n = s32[] add(i, two)  ROOT r = (s32[]) tuple(n) }
    ... running { t = (s32[]) parameter(0)  i = s32[] get-tuple-element(t), index=0
    ...   ten = s32[] constant(10)  ROOT less = pred[] compare(i, ten), direction=LT }
    ... ENTRY e { z = s32[] constant(0)  t = (s32[]) tuple(z)
    ...   ROOT w = (s32[]) while(t), condition=running, body=body }''').entry.root
    >>> print(loop_facts(loop).trip_count)
    5
    """
    if not isinstance(instruction.op, While):
        raise ValueError(f"`{instruction.name}` is a {instruction.opcode}, not a while")
    require_sound([instruction, *(calls or ())])
    if calls is None:
        calls = only_calls(instruction.computation)
    return _memoised_facts(instruction, calls)


def _memoised_facts(loop: Instruction, calls: Calls) -> LoopFacts:
    key = loop_facts, loop, calls
    return loop.module.memoised(key, lambda: _facts(loop, calls))


def bounds_outside(facts: LoopFacts, array: ArrayRef) -> Interval | None:
    """Return bounds of an integer scalar of the computation of a loop; None for other arrays.

    Args:
        array: its call stack starts at the computation of the loop.
    """
    scalars = LoopScalars(facts.loop, facts.calls, _carried_bounds, signed=True)
    value = scalars.sum_of(array._replace(calls=(*facts.calls, *array.calls)))
    return value.expr.bounds if value is not None and value.is_exact else None


def invariant_leaf(facts: LoopFacts, rt: RuntimeVariable) -> tuple[Path, int, int] | None:
    """Return a loop-invariant leaf with the value ``sign · rt + offset``, or None.

    Args:
        rt: a scalar of an outer computation.
    Returns:
        The leaf, the sign 1 or −1, and the offset.
    """
    scalars = LoopScalars(facts.loop, facts.calls, _carried_bounds, signed=True)
    for path in facts.invariants:
        scalar = scalar_of(ArrayRef(facts.loop.operands[0], path, facts.calls))
        if scalar is None:
            continue
        array, element = scalars.source(scalar)
        if array == rt.array and tuple(map(constant, element)) == rt.index:
            return path, 1, 0
        value = scalars.sum_at(scalar)
        if len(value.expr.terms) != 1 or not value.is_exact:
            continue
        ((variable, sign),) = value.expr.terms
        source = scalars.runtime.get(variable) if isinstance(variable, Variable) else None
        if source and abs(sign) == 1 and (source.array, source.index) == (rt.array, rt.index):
            return path, sign, value.expr.constant
    return None


# ---------------------------------------------------------------- implementation


def _facts(loop: Instruction, calls: Calls) -> LoopFacts:
    printed = printed_facts(loop)
    results = [_Analysis(loop, calls, printed, signed).facts() for signed in (True, False)]
    return next((each for each in results if isinstance(each.trip_count, TripCount)), results[0])


def _carried_bounds(array: ArrayRef) -> Interval | None:
    """Return the bounds of an induction variable inside of its loop; None for other arrays."""
    instruction, path, calls = array
    if not calls or len(calls) > MAX_DEPTH or instruction.opcode != "parameter":
        return None
    loop = calls[-1]
    if not isinstance(loop.op, While):
        return None
    facts = _memoised_facts(loop, calls[:-1])
    variable, count = facts.variable(path), facts.trip_count
    if variable is None or variable.wraps or isinstance(count, Unknown):
        return None
    _, body = callees(loop, "condition", "body")
    is_body = instruction.computation is body
    last = max(0, count.upper - is_body)
    if not variable.step.is_constant:
        return None
    return add(variable.start.bounds, scale((0, last), variable.step.constant))


class _Analysis:
    """The analysis of one loop, with constants of unsigned sums reduced in one way."""

    def __init__(
        self, loop: Instruction, calls: Calls, printed: PrintedFacts, signed: bool
    ) -> None:
        self.loop, self.calls, self.printed = loop, calls, printed
        self.scalars = LoopScalars(loop, calls, _carried_bounds, signed)
        self.paths = [path for path, _ in leaves(loop.shape)]
        self.invariants = tuple([path for path in self.paths if is_invariant(loop, path)])
        self.progress = dict(self._progress())
        self.conditions = Conditions(self.scalars, self.progress)

    def facts(self) -> LoopFacts:
        """Return the facts; the trip count is unknown if the text contradicts them."""
        continuation = self.conditions.continuation()
        count = self._trip_count(continuation)
        variables = tuple(self._variables(count, continuation))
        facts = LoopFacts(self.loop, self.calls, self.invariants, variables, count)
        fault = self._contradiction(facts)
        if fault is None:
            return facts
        unknown = Unknown(fault, self.loop)
        variables = tuple(self._variables(unknown, continuation))
        return LoopFacts(self.loop, self.calls, self.invariants, variables, unknown)

    def _progress(self) -> Iterator[tuple[Variable, Progress]]:
        """Yield the progress of each carried integer that changes by a loop-invariant step."""
        scalars, (operand,) = self.scalars, self.loop.operands
        for path in self.paths:
            if path in self.invariants:
                continue
            current = scalars.sum_of(ArrayRef(scalars.body.parameters[0], path, scalars.inside))
            start = scalars.sum_of(ArrayRef(operand, path, self.calls))
            if current is None or start is None or current.element_type == "pred":
                continue
            following = scalars.sum_of(ArrayRef(scalars.body.root, path, scalars.inside))
            assert following is not None  # of the same shape
            step = following.expr - current.expr
            variable = current.expr.as_variable
            if variable is None or scalars.varies(step):
                continue
            conditions = following.conditions
            if following.element_type != current.element_type:
                conditions = (*conditions, following.own_condition)
            yield variable, Progress(start.expr, step, conditions, current.own_condition)

    def _trip_count(self, continuation: Continuation | str) -> TripCount | Unknown:
        """Return the derived trip count, or the one of the text if it is more precise."""
        printed = self.printed.trip_count
        if isinstance(continuation, str):
            executed = executed_iterations(self.loop, self.calls)
            if executed is not None:
                return self._as_printed(TripCount.known(executed))
            if printed is None or printed < 0 or ENDLESS in continuation:
                text = "" if printed is None else f", but known_trip_count is {printed}"
                return Unknown(f"{continuation}{text}", self.loop)
            return TripCount.known(printed, "known_trip_count")
        lower, upper = continuation.bounds
        runtime = variables_in([continuation.iterations], self.scalars.runtime)
        obstacle = continuation.obstacle
        count = TripCount(lower, upper, continuation.iterations, runtime, obstacle=obstacle)
        if lower == upper:
            count = TripCount.known(lower)
        return self._as_printed(count)

    def _as_printed(self, count: TripCount) -> TripCount | Unknown:
        """Return a derived trip count, or the one of the text if it is more precise."""
        printed = self.printed.trip_count
        if printed is None or count.number == printed:
            return count
        if count.lower <= printed <= count.upper:
            return TripCount.known(printed, "known_trip_count")
        derived = f"condition and body give {count}"
        return Unknown(f"known_trip_count is {printed}, but {derived}", self.loop)

    def _variables(
        self, count: TripCount | Unknown, continuation: Continuation | str
    ) -> Iterator[InductionVariable]:
        exits = [] if isinstance(continuation, str) else list(continuation.exits)
        if isinstance(count, TripCount):
            exits.append(counted_exit(count.iterations, (count.lower, count.upper)))
        elif not isinstance(continuation, str):  # the text contradicts the derived count
            exits = []
        limits = {} if isinstance(continuation, str) else dict(continuation.limits)
        for variable, change in self.progress.items():
            if not change.conditions or self.conditions.hold(change.conditions, exits):
                yield self._variable(variable, change, limits.get(variable), exits)

    def _variable(
        self, variable: Variable, change: Progress, limit: Bound | None, exits: list[Exit]
    ) -> InductionVariable:
        source = self.scalars.runtime[variable].array
        assert isinstance(source, ArrayRef)
        assert source.array_shape is not None
        value = None if limit is None else limit.value
        return InductionVariable(
            source.path,
            source.array_shape.element_type,
            change.start,
            change.step,
            not self.conditions.hold([change.own], exits),
            "" if limit is None else limit.direction,
            value,
            variables_in([change.start, change.step, value], self.scalars.runtime),
        )

    def _contradiction(self, facts: LoopFacts) -> str | None:
        """Return the difference of the induction variable in the text from the derived one."""
        index, init, step = self.printed.tuple_index, self.printed.init, self.printed.step
        if index is None or (init is None and step is None):
            return None
        path, variable = (index,), facts.variable((index,))
        texts = f"known_init_step has init {init} and step {step} for carried element {{{index}}}"
        if path in self.invariants and step:
            return f"{texts}, but the body forwards the element unchanged"
        if variable is None:
            return None if path in self.paths else f"{texts}, which does not exist"
        bits = ELEMENT_TYPES[variable.element_type].bits
        for given, derived in ((init, variable.start), (step, variable.step)):
            if given is not None and derived.is_constant:
                if (given - derived.constant) % (1 << bits):
                    return f"{texts}, but it starts at {variable.start} with step {variable.step}"
        return None
