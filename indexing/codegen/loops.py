"""Printer of loop nests as explicit Python loops, for reading and for small arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import numpy as np

from indexing.codegen.graph import (
    Apply,
    Array,
    BufferRead,
    Choose,
    ComputationFunction,
    IndexValue,
    Node,
    Reduction,
    Runtime,
    Scalar,
    topological_order,
    with_cases,
)
from indexing.codegen.sources import SourceBuilder, functions_of
from indexing.codegen.stages import Nest, Repeat, Stage
from indexing.codegen.text import dtype_text, index_text, scalar_text, tuple_text
from simplifier.constraints import Constraint

MAX_BRANCHES: Final = 200
"""Maximum number of branches of one condition: Python compiles branches recursively."""

NodeNames: TypeAlias = dict[Node, str]
"""The names of nodes that are already computed."""


class LoopProgram:
    """The Python loops of a nest, and the function that they define."""

    def __init__(self, nest: Nest) -> None:
        taken = [nest.name, *[buffer.name for buffer in nest.buffers]]
        source = SourceBuilder(functions_of(nest), taken, on_scalars)
        for function in source.defined_functions():
            _Loops(source).define(function)
        parameters = ", ".join(b.name for b in nest.parameters)
        with source.text.indent_below(f"def {nest.name}({parameters}):"):
            write_stages(source, nest.stages)
            if not nest.stages:
                kind = dtype_text(nest.output.dtype)
                source.text.add(f"out = np.empty({nest.output.dims}, {kind})")
            source.text.add("return out")
        self.nest = nest
        self.source, self._function = source.execute(nest.name, "loops of")

    def run(self, *arrays: Array) -> Array:
        """Execute the loops on these inputs."""
        with np.errstate(all="ignore"):
            return np.asarray(self._function(*self.nest.with_constants(arrays)))


def write_stages(source: SourceBuilder, stages: Iterable[Stage | Repeat]) -> None:
    """Write stages and loops in execution order."""
    for stage in stages:
        if isinstance(stage, Repeat):
            _Loops(source).let(stage.count.runtime, {})
            with source.open_repeat(stage):
                write_stages(source, stage.stages)
        else:
            _Loops(source).stage(stage)


def on_scalars(function: Any) -> Any:
    """Adapt a function of arrays to NumPy scalars; other objects are returned as they are."""
    if not callable(function):
        return function

    def on_numbers(*numbers: Any) -> Any:
        result = function(*map(np.asarray, numbers))
        return tuple([x[()] for x in result]) if isinstance(result, tuple) else result[()]

    return on_numbers


class _Loops:
    """Writes one stage or one scalar function."""

    def __init__(self, source: SourceBuilder) -> None:
        self.source, self.text, self.names = source, source.text, source.names
        self.uses: Counter[Node] = Counter()

    def define(self, function: ComputationFunction) -> None:
        """Write a scalar function."""
        body = function.body
        parameters = ", ".join([parameter.name for parameter in body.parameters])
        with self.text.indent_below(f"def {self.source.function_name(function)}({parameters}):"):
            nodes = topological_order(body.results, with_cases)
            scope: NodeNames = {
                node: node.buffer.name for node in nodes if isinstance(node, BufferRead)
            }
            self.let(body.results, scope)
            results = [self.expression(result, scope) for result in body.results]
            self.text.add(f"return {', '.join(results)}")

    # ------------------------------------------------------------ stages

    def stage(self, stage: Stage) -> None:
        """Write the loops that fill the buffers of a stage."""
        for buffer in stage.buffers if stage.at is None else ():
            self.text.add(
                f"{buffer.name} = np.empty({tuple_text(buffer.dims)}, {dtype_text(buffer.dtype)})"
            )
        for node in stage.nodes():
            self.uses.update(with_cases(node))
        index = stage.at or [d.as_expr() for d in stage.dims]
        at = ", ".join(map(index_text, index)) or "()"
        with self.text.loops(stage.dims):
            if isinstance(stage.body, Reduction):
                self._reduction(stage, stage.body, at)
            else:
                self._assign(f"{stage.name}[{at}]", stage.body, {})

    def _assign(self, target: str, element: Node, scope: NodeNames) -> None:
        """Write ``target = element``."""
        if isinstance(element, Choose):
            self.let([rt for case in element.cases for rt in case.runtime], scope)
            self._choose(target, element, scope)
        else:
            self.let([element], scope, except_for=element)
            self.text.add(f"{target} = {self.expression(element, scope)}")

    def _choose(self, target: str, element: Choose, scope: NodeNames) -> None:
        if len(element.cases) > MAX_BRANCHES:
            self._choose_by_breaks(target, element, scope)
            return
        word = "if"
        for case in element.cases:
            with self.text.indent_below(f"{word} {guards_text(case.guards)}:"):
                self._assign(target, case.value, dict(scope))
            word = "elif"
        with self.text.indent_below("else:"):
            self._assign(target, element.otherwise, dict(scope))

    def _choose_by_breaks(self, target: str, element: Choose, scope: NodeNames) -> None:
        """Write a choice as separate conditions, each of which ends a loop of one iteration."""
        with self.text.indent_below("while True:"):
            for case in element.cases:
                with self.text.indent_below(f"if {guards_text(case.guards)}:"):
                    self._assign(target, case.value, dict(scope))
                    self.text.add("break")
            self._assign(target, element.otherwise, dict(scope))
            self.text.add("break")

    def _reduction(self, stage: Stage, reduction: Reduction, at: str) -> None:
        scope: NodeNames = {}
        count = len(reduction.inits)
        totals = ["total"] if count == 1 else [f"total{k}" for k in range(count)]
        self.let(reduction.inits, scope)
        for total, init in zip(totals, reduction.inits, strict=True):
            self.text.add(f"{total} = {self.expression(init, scope)}")
        if reduction.values:
            with self.text.loops(reduction.ranges):
                self._guarded_step(reduction, totals, dict(scope))
        for buffer, total in zip(stage.buffers, totals, strict=True):
            code = self.source.call(reduction.finish, total) if reduction.finish else total
            self.text.add(f"{buffer.name}[{at}] = {code}")

    def _guarded_step(self, reduction: Reduction, totals: list[str], scope: NodeNames) -> None:
        self.let(reduction.runtime, scope)
        if reduction.guards:
            with self.text.indent_below(f"if {guards_text(reduction.guards)}:"):
                self._step(reduction, totals, scope)
        else:
            self._step(reduction, totals, scope)

    def _step(self, reduction: Reduction, totals: list[str], scope: NodeNames) -> None:
        self.let(reduction.values, scope)
        values = [self.expression(value, scope) for value in reduction.values]
        if reduction.function.is_arithmetic:
            self.text.add(f"{totals[0]} {reduction.function.name}= {values[0]}")
        else:
            call = self.source.call(reduction.function, *totals, *values)
            self.text.add(f"{', '.join(totals)} = {call}")

    # ------------------------------------------------------------ elements

    def let(self, roots: Iterable[Node], scope: NodeNames, except_for: Node | None = None) -> None:
        """Write assignments for nodes below `roots` that need a name, except `except_for`."""
        for node in topological_order(roots):
            if node in scope or node is except_for:
                continue
            match node:
                case Runtime():
                    name, value = node.variable.name, self.expression(node.value, scope)
                    self.text.add(f"{name} = clamp({value}, {node.clamp[0]}, {node.clamp[1]})")
                case Choose():
                    name = self.names.new(node.name)
                    self._choose(name, node, scope)
                case Apply():
                    name = self.names.new(node.name)
                    self.text.add(f"{name} = {self.expression(node, scope)}")
                case BufferRead() if self.uses[node] > 1:
                    name = self.names.new(f"{node.buffer.name}_here")
                    self.text.add(f"{name} = {self.expression(node, scope)}")
                case _:
                    continue
            scope[node] = name

    def expression(self, element: Node, scope: NodeNames) -> str:
        """Return the Python expression of an element."""
        if element in scope:
            return scope[element]
        match element:
            case BufferRead():
                at = ", ".join(map(index_text, element.index)) or "()"
                return f"{element.buffer.name}[{at}]"
            case Scalar():
                return scalar_text(element.value)
            case IndexValue():
                return _index_value_text(element)
            case Apply():
                arguments = [self.expression(argument, scope) for argument in element.arguments]
                if element.function.name == "np.where":
                    condition, first, second = arguments
                    return f"{first} if {condition} else {second}"
                return self.source.call(element.function, *arguments)
            case Choose() | Runtime():
                raise AssertionError("choices and runtime variables are statements")


def _index_value_text(element: IndexValue) -> str:
    """Return an index converted to its type; narrow types wrap around."""
    name = dtype_text(element.dtype)
    index = index_text(element.expr)
    if element.dtype.kind in "iu" and element.dtype.itemsize >= 4:
        return f"{name}({index})"
    return f"np.int64({index}).astype({name})"


def guards_text(guards: Iterable[Constraint]) -> str:
    """Return the conjunction of guards as a Python condition.

    >>> from simplifier.linear import variable
    >>> print(guards_text([Constraint(variable("d0", 0, 9) - 1, 0, 4)]))
    0 <= d0 - 1 <= 4
    """
    return " and ".join(_guard_text(guard) for guard in guards)


def _guard_text(guard: Constraint) -> str:
    index, (low, high) = index_text(guard.expr), guard.expr.bounds
    if guard.lower == guard.upper:
        return f"{index} == {guard.lower}"
    if guard.lower <= low:
        return f"{index} <= {guard.upper}"
    if guard.upper >= high:
        return f"{index} >= {guard.lower}"
    return f"{guard.lower} <= {index} <= {guard.upper}"
