"""One iteration of a loop, seen from inside of its body: the integers that it carries as formulas.

The number of the iteration, and loop-invariant scalars that the program does not determine, are
symbols: runtime variables without a source, which have the same value in every map.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from hlo.modules.module import Computation, Instruction
from hlo.shapes.element_type import range_of
from hlo.shapes.shape import Shape
from indexing.dataflow.arguments import makes_decisions
from indexing.dataflow.constants import is_integral
from indexing.dataflow.copies import origin_outside
from indexing.dataflow.evaluation import MOST_ITERATIONS, known_integers
from indexing.dataflow.loops.counted import bounds_outside, invariant_leaf, loop_facts
from indexing.dataflow.loops.facts import InductionVariable, TripCount
from indexing.dataflow.runtime import source_element
from indexing.dataflow.tables import table_maps
from indexing.dataflow.value_pieces import ValueMaps, wrap_value
from indexing.dataflow.values import integers, value_maps
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.control import callees
from indexing.ops.structured_ops import StructuredOp
from simplifier.atoms import Variable
from simplifier.interval import Interval
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution

MAX_ELEMENTS: Final = 1 << 12
"""Limit on the elements, in all iterations, of an array that is described by a table."""
if TYPE_CHECKING:
    from indexing.dataflow.loops.simulation import Known

ENDLESS: Final = 1 << 62
"""The upper bound of the number of iterations of a loop that has none."""
NUMBER: Final = "iteration"
"""The name of the symbol for the number of the iteration, counted from 0."""


class Iteration:
    """The known values of the parameter of a loop's body in one iteration.

    Implements `indexing.dataflow.value_pieces.Surroundings`.

    Attributes:
        loop: the ``while``.
        facts: its invariants, induction variables and trip count.
        most: the maximum number of iterations.
    """

    def __init__(self, loop: Instruction) -> None:
        self.loop, self.facts = loop, loop_facts(loop)
        self.condition, self.body = callees(loop, "condition", "body")
        self.parameter = self.body.parameters[0]
        count = self.facts.trip_count
        self.most = count.upper if isinstance(count, TripCount) else ENDLESS
        self._symbols = {NUMBER: RuntimeVariable(Variable(NUMBER, 0, max(0, self.most - 1)))}
        self._sources: dict[str, RuntimeVariable] = {}
        self._values: dict[Path, ValueMaps | None] = {}

    def symbol(self, name: str) -> RuntimeVariable:
        """Return a symbol of the formulas, with its bounds."""
        return self._symbols[name]

    def source(self, symbol: RuntimeVariable) -> RuntimeVariable | None:
        """Return the scalar outside of the loop that a symbol stands for; None for other values."""
        source = self._sources.get(symbol.name) if symbol.array is None else None
        return None if source is None else replace(source, variable=symbol.variable)

    def value(self, parameter: ArrayRef) -> ValueMaps | None:
        """Return the elements of a carried integer array as formulas, or None."""
        path = parameter.path
        if path not in self._values:
            self._values[path] = self._value(path)
        return self._values[path]

    def table(self, array: ArrayRef) -> ValueMaps | None:
        """Return the elements of an array of the body, as they are in each iteration, or None."""
        shape = array.array_shape
        if shape is None or shape.size * self.most > MAX_ELEMENTS:
            return None
        values = [state.value(array) for state in self._states]
        known = [integers(value) for value in values if value is not None]
        if not known or len(known) < len(values):
            return None
        pieces = table_maps(np.stack(known))
        return None if pieces is None else tuple([self._by_number(each, shape) for each in pieces])

    def may_wrap(self, parameter: ArrayRef) -> bool:
        """Return True for a carried counter that may wrap around before the loop ends."""
        variable = self.facts.variable(parameter.path)
        return variable is not None and variable.wraps

    def outside(self, path: Path) -> ArrayRef:
        """Return the array outside of the loop with the value of a loop-invariant leaf."""
        array = ArrayRef(self.loop.operands[0], path)
        shape = array.array_shape
        index = [as_expr(0)] * (0 if shape is None else shape.rank)
        source, place = source_element(array, index)
        return source if list(place) == index else array

    def outside_formula(
        self, formula: Expr, runtime: Iterable[RuntimeVariable]
    ) -> tuple[Expr, list[RuntimeVariable]] | None:
        """Return a formula of loop-invariant scalars with symbols for them, and the symbols.

        None if a scalar is not in reach of the computation of the loop.
        """
        values: dict[Variable, Expr] = {}
        mentioned = formula.variables()
        for rt in runtime:
            if rt.variable not in mentioned:
                continue
            symbol = self._outer(rt)
            if symbol is None:
                return None
            values[rt.variable] = symbol
        formula = Substitution(values)(formula)
        return formula, self._symbols_in(formula)

    # ------------------------------------------------------------ implementation

    @cached_property
    def _states(self) -> list[Known]:
        """The integers that are known in each iteration, of few iterations."""
        count = self.most if self.most <= MOST_ITERATIONS[0] else 0
        return list(islice(known_integers(self.loop, self.facts.calls), count))

    def _by_number(self, piece: IndexingMap, shape: Shape) -> IndexingMap:
        """Return a map whose first dimension is the number of the iteration."""
        number = self._symbols[NUMBER]
        variables = [number.variable, *dims(shape)]
        pairs = zip(piece.dims, variables, strict=True)
        results, constraints = piece.substituted({d: v.as_expr() for d, v in pairs})
        return IndexingMap.of(dims(shape), results, runtime=[number], constraints=constraints)

    def _value(self, path: Path) -> ValueMaps | None:
        variable = self.facts.variable(path)
        if variable is not None:
            return self._progression(variable)
        if path not in self.facts.invariants:
            return self.table(ArrayRef(self.parameter, path))
        array = ArrayRef(self.loop.operands[0], path)
        called = array._replace(calls=self.facts.calls)
        return value_maps(origin_outside(called)) or self._invariant(array)

    def _progression(self, variable: InductionVariable) -> ValueMaps | None:
        """Return the value of an induction variable: ``start + step · iteration``."""
        start = self.outside_formula(variable.start, variable.runtime)
        if start is None or not variable.step.is_constant:
            return None
        number = self._symbols[NUMBER]
        value = start[0] + number.expr * variable.step.constant
        piece = self._scalar(variable.path, value, [number, *start[1]])
        limits = range_of(variable.element_type)
        if not variable.wraps or limits is None:
            return (piece,)
        return wrap_value(piece, limits, self)

    def _invariant(self, array: ArrayRef) -> ValueMaps | None:
        """Return a symbol for an integer scalar that the program does not determine."""
        shape = array.array_shape
        bounds = bounds_outside(self.facts, array)
        if shape is None or shape.size != 1 or not is_integral(array) or bounds is None:
            return None
        index = tuple([as_expr(0)] * shape.rank)
        symbol = self._outer(RuntimeVariable(Variable("rt", *bounds), array, index), relative=True)
        if symbol is None:
            return None
        return (self._scalar(array.path, symbol, self._symbols_in(symbol)),)

    def _outer(self, rt: RuntimeVariable, relative: bool = False) -> Expr | None:
        """Return a scalar outside of the loop as a formula of a symbol; None if out of reach.

        Args:
            relative: its call stack starts at the computation of the loop.
        """
        array, calls = rt.array, self.facts.calls
        assert isinstance(array, ArrayRef)
        if not relative and array.calls[: len(calls)] == calls:
            array = array._replace(calls=array.calls[len(calls) :])
        elif not relative:
            leaf = invariant_leaf(self.facts, rt)
            if leaf is None:
                return None
            path, sign, offset = leaf
            low, high = sorted([sign * bound + offset for bound in rt.variable.bounds])
            carried = ArrayRef(self.loop.operands[0], path)
            shape = carried.array_shape
            zeros = (as_expr(0),) * (0 if shape is None else shape.rank)
            variable = Variable(rt.name, low, high)
            value = self._outer(RuntimeVariable(variable, carried, zeros), relative=True)
            return None if value is None else (value - offset) * sign
        array, index = source_element(array, rt.index)
        if array.path and self.loop.computation.is_entry:  # an element of a tuple has no name
            return None
        if not all(each.is_constant for each in index):
            return None
        # values beyond narrower bounds exist: the bounds must be kept as a condition
        key = replace(rt, array=array, index=tuple(index), clamp=_limits(array))
        for name, known in self._sources.items():
            if (known.array, known.index) == (key.array, key.index):
                return self._symbols[name].expr
        name = f"invariant{len(self._sources)}"
        variable = rt.variable.renamed(name)
        self._sources[name] = replace(key, variable=variable)
        self._symbols[name] = RuntimeVariable(variable)
        return self._symbols[name].expr

    def _symbols_in(self, value: Expr) -> list[RuntimeVariable]:
        names = {v.name for v in value.variables()} - {NUMBER}
        return [symbol for name, symbol in self._symbols.items() if name in names]

    def _scalar(self, path: Path, value: Expr, runtime: list[RuntimeVariable]) -> IndexingMap:
        shape = ArrayRef(self.loop, path).array_shape
        assert shape is not None
        return IndexingMap.of(dims(shape), [value], runtime=runtime)


@dataclass(frozen=True, slots=True)
class CalledIteration:
    """The known values of the parameters of a called computation in one iteration.

    Implements `indexing.dataflow.value_pieces.Surroundings`.

    Attributes:
        around: what is known in the computation of the call.
        call: the instruction in the body, or in a computation that it calls.
    """

    around: AnyIteration
    call: Instruction

    @property
    def body(self) -> Computation:
        """The called computation."""
        return self.call.called_computations[0]

    def value(self, parameter: ArrayRef) -> ValueMaps | None:
        """Return the elements of an integer argument as formulas, or None."""
        op = self.call.op
        assert isinstance(op, StructuredOp)
        argument = op.argument(self.call, parameter.instruction)
        return (
            None
            if argument is None
            else value_maps(parameter._replace(instruction=argument), self.around)
        )

    def table(self, array: ArrayRef) -> ValueMaps | None:
        """Return the elements of an integer array, as they are in each iteration, or None."""
        return self.around.table(array._replace(calls=(self.call, *array.calls)))

    def symbol(self, name: str) -> RuntimeVariable:
        """Return a symbol of the formulas, with its bounds."""
        return self.around.symbol(name)


AnyIteration: TypeAlias = Iteration | CalledIteration


def in_call(iteration: AnyIteration | None, call: Instruction) -> AnyIteration | None:
    """Return what is known in the computation that an instruction of the body calls."""
    if iteration is None or not makes_decisions(call):
        return iteration
    return CalledIteration(iteration, call)


def _limits(array: ArrayRef) -> Interval | None:
    """Return the bounds of the values of an array of integers."""
    shape = array.array_shape
    return None if shape is None else range_of(shape.element_type)
