"""Loop nests as Python with explicit loops: what a person reads, and what small cases run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from indexing.codegen.functions import dtype_text, scalar_text
from indexing.codegen.nest import (
    Apply,
    Array,
    Body,
    Choose,
    Element,
    Fold,
    LoopNest,
    Place,
    Read,
    Runtime,
    Scalar,
    Stage,
    everything,
    in_order,
)
from indexing.codegen.text import (
    Lines,
    Names,
    buffers_of,
    call_text,
    executed,
    functions_of,
    index_text,
    named_functions,
    tuple_text,
)
from simplifier.constraints import Constraint

Scope: TypeAlias = dict[int, str]
"""How the elements that are computed already are called."""


@dataclass(frozen=True, slots=True)
class LoopProgram:
    """The source of a nest, and the function that it defines."""

    nest: LoopNest
    source: str
    function: Callable[..., Any]

    def __call__(self, *arrays: Array) -> Array:
        constants = [constant.value for constant in self.nest.constants]
        with np.errstate(all="ignore"):
            return np.asarray(self.function(*arrays, *constants))


@lru_cache(maxsize=64)
def loop_program(nest: LoopNest) -> LoopProgram:
    """A nest as Python with loops."""
    names = Names(["np", "ml_dtypes", "numerics", "clamp", nest.name])
    for buffer in [*buffers_of(nest), *[b for stage in nest.stages for b in stage.buffers]]:
        names.new(buffer.name)
    functions = list(functions_of(nest))
    called, known = named_functions(functions, names, on_scalars)
    known["clamp"] = clamped
    text = Lines()
    for function in functions:
        if function.body is not None:
            _Loops(text, called, names).define(called[id(function)], function.body)
    with text.under(f"def {nest.name}({', '.join(b.name for b in buffers_of(nest))}):"):
        for stage in nest.stages:
            _Loops(text, called, names).stage(stage)
        if not nest.stages:
            text.add(f"out = np.empty({nest.output.dims}, {dtype_text(nest.output.dtype)})")
        text.add("return out")
    source = str(text)
    function = executed(source, nest.name, known, f"<loops of {nest.name}>")
    return LoopProgram(nest, source, function)


def on_scalars(function: Any) -> Any:
    """A function of arrays as one of NumPy's scalars."""
    if not callable(function):
        return function

    def on_numbers(*numbers: Any) -> Any:
        found = function(*map(np.asarray, numbers))
        return tuple([x[()] for x in found]) if isinstance(found, tuple) else found[()]

    return on_numbers


def clamped(value: Any, low: int, high: int) -> int:
    """`value` as an index from `low` to `high`."""
    return min(max(int(value), low), high)


class _Loops:
    """Writes one stage or function."""

    def __init__(self, text: Lines, called: dict[int, str], names: Names) -> None:
        self.text, self.called = text, called
        self.names = names
        self.uses: Counter[int] = Counter()

    def define(self, name: str, body: Body) -> None:
        """A function of scalars."""
        parameters = [parameter.name for parameter in body.parameters]
        with self.text.under(f"def {name}({', '.join(parameters)}):"):
            scope: Scope = {}
            roots: list[Any] = list(body.results)
            for node in in_order(roots):
                if isinstance(node, Read):
                    scope[id(node)] = node.buffer.name
            self.let(body.results, scope)
            results = [self.written(result, scope) for result in body.results]
            self.text.add(f"return {', '.join(results)}")

    # ------------------------------------------------------------ stages

    def stage(self, stage: Stage) -> None:
        """The loops that fill the buffers of a stage."""
        for buffer in stage.buffers:
            self.text.add(
                f"{buffer.name} = np.empty({tuple_text(buffer.dims)}, {dtype_text(buffer.dtype)})"
            )
        for node in everything(stage):
            self.uses.update([id(child) for child in _needed(node)])
        at = ", ".join(d.name if d.lower < d.upper else "0" for d in stage.dims) or "()"
        self._loops(stage, 0, at)

    def _loops(self, stage: Stage, depth: int, at: str) -> None:
        for k, d in enumerate(stage.dims[depth:], depth):
            if d.lower < d.upper:
                with self.text.under(f"for {d.name} in range({d.upper + 1}):"):
                    self._loops(stage, k + 1, at)
                return
        if isinstance(stage.body, Fold):
            self._fold(stage, stage.body, at)
        else:
            self._assign(f"{stage.name}[{at}]", stage.body, {})

    def _assign(self, target: str, element: Element, scope: Scope) -> None:
        """``target = element``."""
        if isinstance(element, Choose):
            self.let_runtime([rt for case in element.cases for rt in case.runtime], scope)
            self._choose(target, element, scope)
        else:
            self.let([element], scope, but=element)
            self.text.add(f"{target} = {self.written(element, scope)}")

    def _choose(self, target: str, element: Choose, scope: Scope) -> None:
        word = "if"
        for case in element.cases:
            with self.text.under(f"{word} {guards_text(case.guards)}:"):
                self._assign(target, case.value, dict(scope))
            word = "elif"
        with self.text.under("else:"):
            self._assign(target, element.otherwise, dict(scope))

    def _fold(self, stage: Stage, fold: Fold, at: str) -> None:
        scope: Scope = {}
        count = len(fold.inits)
        totals = ["total"] if count == 1 else [f"total{k}" for k in range(count)]
        self.let(fold.inits, scope)
        for total, init in zip(totals, fold.inits, strict=True):
            self.text.add(f"{total} = {self.written(init, scope)}")
        if fold.values:
            self._ranges(fold, 0, totals, scope)
        for buffer, total in zip(stage.buffers, totals, strict=True):
            found = f"{self.called[id(fold.finish)]}({total})" if fold.finish else total
            self.text.add(f"{buffer.name}[{at}] = {found}")

    def _ranges(self, fold: Fold, depth: int, totals: list[str], scope: Scope) -> None:
        for k, s in enumerate(fold.ranges[depth:], depth):
            if s.lower != s.upper:
                with self.text.under(f"for {s.name} in range({s.upper + 1}):"):
                    self._ranges(fold, k + 1, totals, scope)
                return
        scope = dict(scope)
        self.let_runtime(fold.runtime, scope)
        if fold.guards:
            with self.text.under(f"if {guards_text(fold.guards)}:"):
                self._step(fold, totals, scope)
        else:
            self._step(fold, totals, scope)

    def _step(self, fold: Fold, totals: list[str], scope: Scope) -> None:
        self.let(fold.values, scope)
        values = [self.written(value, scope) for value in fold.values]
        if fold.function.style == "infix":
            self.text.add(f"{totals[0]} {fold.function.name}= {values[0]}")
        else:
            call = call_text(fold.function, [*totals, *values], self.called[id(fold.function)])
            self.text.add(f"{', '.join(totals)} = {call}")

    # ------------------------------------------------------------ elements

    def let_runtime(self, runtime: Iterable[Runtime], scope: Scope) -> None:
        """Give runtime variables their values."""
        roots: list[Any] = list(runtime)
        self._let(roots, scope, None)

    def let(self, elements: Iterable[Element], scope: Scope, but: Element | None = None) -> None:
        """Compute what these elements need, and those that are worth a name, except `but`."""
        roots: list[Any] = list(elements)
        self._let(roots, scope, but)

    def _let(self, roots: list[Any], scope: Scope, but: Element | None) -> None:
        for node in in_order(roots):
            if id(node) in scope or node is but:
                continue
            match node:
                case Runtime():
                    name = node.variable.name
                    source = self.written(node.value, scope)
                    self.text.add(f"{name} = clamp({source}, {node.clamp[0]}, {node.clamp[1]})")
                    scope[id(node)] = name
                case Choose():
                    name = self.names.new(node.name)
                    self._choose(name, node, scope)
                    scope[id(node)] = name
                case Apply():
                    name = self.names.new(node.name)
                    self.text.add(f"{name} = {self.written(node, scope)}")
                    scope[id(node)] = name
                case Read() if self.uses[id(node)] > 1:
                    name = self.names.new(f"{node.buffer.name}_here")
                    self.text.add(f"{name} = {self.written(node, scope)}")
                    scope[id(node)] = name

    def written(self, element: Element, scope: Scope) -> str:
        """An element as an expression."""
        if id(element) in scope:
            return scope[id(element)]
        match element:
            case Read():
                at = ", ".join(map(index_text, element.index)) or "()"
                return f"{element.buffer.name}[{at}]"
            case Scalar():
                return scalar_text(element.value)
            case Place():
                return _place_text(element)
            case Apply():
                arguments = [self.written(argument, scope) for argument in element.arguments]
                if element.function.name == "np.where":
                    condition, first, second = arguments
                    return f"{first} if {condition} else {second}"
                return call_text(element.function, arguments, self.called[id(element.function)])
            case Choose():
                raise AssertionError("a choice is written as statements")


def _needed(node: Element | Runtime) -> list[Element | Runtime]:
    match node:
        case Apply():
            return list(node.arguments)
        case Choose():
            return [*[case.value for case in node.cases], node.otherwise]
        case Runtime():
            return [node.value]
        case _:
            return []


def _place_text(element: Place) -> str:
    """An index as a value of its type; one that the type may not hold wraps around."""
    name = dtype_text(element.dtype)
    index = index_text(element.expr)
    if element.dtype.kind in "iu" and element.dtype.itemsize >= 4:
        return f"{name}({index})"
    return f"np.int64({index}).astype({name})"


def guards_text(guards: Iterable[Constraint]) -> str:
    """When all guards hold, as a condition.

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
