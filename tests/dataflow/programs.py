"""Execution of programs with the kernels, and evaluation of maps with runtime values.

The oracle for everything that depends on values: a `Run` has the value of every instruction, also
inside calls and in each iteration of loops.  `Run.read_by` returns the pairs that a map relates in
that run.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np

import hlo
import indexing.ops  # noqa: F401 - registers the ops whose kernels run here
from hlo import Computation, Instruction
from indexing import IndexingMap, RuntimeVariable
from indexing.execution.interpreter import PlanStep, execute_step, handler_of
from indexing.execution.machine import Machine
from indexing.execution.program import run
from indexing.execution.values import ExecutionError
from indexing.ops.base import MappedOp, RoutingOp
from indexing.ops.structured_ops import InlineOp
from tests.oracles import Pair

S32 = hlo.parse_shape("s32[]")
Calls: TypeAlias = tuple[Instruction, ...]
Iterations: TypeAlias = tuple[int, ...]
"""The number of the iteration of each loop around an instruction, outermost first."""


class Run:
    """One run of a computation: the value of each instruction, for each chain of calls to it.

    Attributes:
        values: the last value of each instruction.
        history: the values of each instruction in all iterations.
    """

    def __init__(self, computation: Computation, *arguments: Any) -> None:
        self.values: dict[tuple[Calls, Instruction], Any] = {}
        self.history: dict[tuple[Calls, Instruction], dict[Iterations, Any]] = {}
        self._iterations: Iterations = ()
        self.result = self._run(computation, arguments, ())

    def _run(self, computation: Computation, arguments: Sequence[Any], calls: Calls) -> Any:
        for instruction in computation.instructions:
            operands = [self.values[calls, operand] for operand in instruction.operands]
            value = self._value(instruction, operands, arguments, calls)
            self.values[calls, instruction] = value
            self.history.setdefault((calls, instruction), {})[self._iterations] = value
        return self.values[calls, computation.root]

    def _value(
        self, instruction: Instruction, operands: list[Any], arguments: Sequence[Any], calls: Calls
    ) -> Any:
        op, inside = instruction.op, (*calls, instruction)
        if instruction.opcode == "parameter":
            return arguments[instruction.computation.parameters.index(instruction)]
        if instruction.opcode == "while":
            called = {c.name: c for c in instruction.called_computations}
            (state,) = operands
            texts = {name: text.text.lstrip("%") for name, text in instruction.attributes.items()}
            around = self._iterations
            self._iterations = (*around, 0)
            while self._run(called[texts["condition"]], [state], inside):
                state = self._run(called[texts["body"]], [state], inside)
                self._iterations = (*around, self._iterations[-1] + 1)
            self._iterations = around
            return state
        if instruction.opcode == "conditional":
            branches = instruction.called_computations
            index = int(operands[0]) if instruction.operands[0].shape == S32 else 1 - operands[0]
            taken = index if 0 <= index < len(branches) else len(branches) - 1
            return self._run(branches[taken], [operands[1 + taken]], inside)
        if isinstance(op, InlineOp):
            return self._run(instruction.called_computations[0], operands, inside)
        if isinstance(op, RoutingOp):
            return op.kernel(*operands)
        if not isinstance(op, MappedOp) or instruction.called_computations:  # as that of a reduce
            step = PlanStep(instruction, handler_of(instruction), tuple(range(len(operands))), ())
            return execute_step(Machine(), step, operands)
        return op.compute(operands, tuple([o.shape for o in instruction.operands]))

    def value(self, runtime: RuntimeVariable, point: dict[str, int]) -> int | None:
        """Return the value of a runtime variable, clamped.

        None if its index is out of bounds, or its iteration is not executed.
        """
        assert isinstance(runtime.source, Instruction)
        calls = tuple([call for call in runtime.calls if isinstance(call, Instruction)])
        place = tuple([e.value({v: point[v.name] for v in e.variables()}) for e in runtime.index])
        loops = len(runtime.iterations)
        history, index = self.history[calls, runtime.source], place[loops:]
        if place[:loops] not in history:
            return None
        array = np.asarray(history[place[:loops]])
        if not all(0 <= k < n for k, n in zip(index, array.shape, strict=True)):
            return None
        number = int(array[index])
        if runtime.clamp is None:
            return number
        return min(max(number, int(runtime.clamp[0])), int(runtime.clamp[1]))

    def read_by(self, indexing_map: IndexingMap) -> set[Pair]:
        """Return the pairs that a map relates in this run."""
        pairs: set[Pair] = set()
        free, count = (*indexing_map.dims, *indexing_map.ranges), len(indexing_map.dims)
        for at in product(*[range(v.lower, v.upper + 1) for v in free]):
            values = self.values_at(
                indexing_map, {v.name: x for v, x in zip(free, at, strict=True)}
            )
            runtime = [value or 0 for value in values]
            results = indexing_map.evaluate(at[:count], at[count:], runtime)
            if results is not None:
                assert None not in values, "a point reads a runtime variable out of bounds"
                pairs.add((at[:count], results))
        return pairs

    def values_at(self, indexing_map: IndexingMap, point: dict[str, int]) -> list[int | None]:
        """Return the values of the runtime variables at a point; `None` if out of bounds."""
        values: dict[str, int | None] = {}
        while len(values) < len(indexing_map.runtime):
            bound = {**point, **{name: value or 0 for name, value in values.items()}}
            waiting = [rt for rt in indexing_map.runtime if rt.name not in values]
            ready = [rt for rt in waiting if _names(rt) <= bound.keys()]
            assert ready, "the index of a runtime variable depends on its own value"
            values |= {rt.name: self.value(rt, bound) for rt in ready}
        return [values[rt.name] for rt in indexing_map.runtime]

    def read(self, maps: Sequence[IndexingMap]) -> set[Pair]:
        """Return the pairs that any of the maps relates in this run."""
        return {pair for each in maps for pair in self.read_by(each)}


def _names(runtime: RuntimeVariable) -> set[str]:
    """Return the names of the variables in the index of a runtime variable."""
    return {v.name for expr in runtime.index for v in expr.variables()}


MAX_ITERATIONS: Final = 600
"""Default limit on the iterations of one loop: an 8-bit counter has fewer values."""


def execute_program(
    main: Computation, *arguments: Any, max_iterations: int = MAX_ITERATIONS
) -> tuple[Any, ...] | None:
    """Return the outputs of a program on NumPy, or None if it does not terminate."""
    try:
        with np.errstate(all="ignore"):
            return tuple(run(main, arguments, max_iterations=max_iterations))
    except ExecutionError as error:
        if "does not terminate" in str(error):
            return None
        raise


def entry(body: str, before: str = "") -> Computation:
    """Parse an ENTRY computation with these lines."""
    return hlo.parse(f"{before}\nENTRY main {{\n{body}\n}}").entry
