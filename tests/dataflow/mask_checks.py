"""Programs with masks whose right pairs are formulas, and checks of maps and executions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

import numpy as np
import pytest

import hlo
import indexing
from hlo import Computation, Shape
from hlo.shapes.shape import dtype
from indexing.dataflow.valued_maps import with_values
from indexing.execution import run, xla
from tests.dataflow.influence import Array, different
from tests.dataflow.programs import Run
from tests.oracles import Pair, union

Values = Mapping[str, Any]
Reads = Callable[..., list[tuple[int, ...]]]
"""From the index of an element of the output, to the elements that it needs."""

FLOATS: Final = (0.0, 1.0, -3.5, 1e30, -1e30, np.inf, -np.inf, np.nan)


@dataclass(frozen=True)
class Program:
    """A program and the elements that it needs.

    Attributes:
        text: the module.
        reads: for each parameter, the elements that an element of the output needs; after the
            index, the function gets the values of the runtime parameters by name.
        values: values of the runtime parameters, one set after the other.
        computations: the computations that the entry calls.
    """

    text: str
    reads: Mapping[str, Reads]
    values: Sequence[Values] = ({},)
    computations: str = ""
    entry: Computation = field(init=False)

    def __post_init__(self) -> None:
        text = f"{self.computations}\nENTRY e {{\n{self.text}\n}}"
        object.__setattr__(self, "entry", hlo.parse(text).entry)

    def arguments(self, values: Values, seed: int = 0) -> list[Array]:
        """Return the values of all parameters: those given, and random ones."""
        random = np.random.default_rng(seed)
        result = []
        for each in self.entry.parameters:
            assert isinstance(each.shape, Shape)
            drawn = random.permutation(np.arange(1, 1 + each.shape.size)).reshape(each.shape.dims)
            given = values.get(each.name, drawn)
            result.append(np.asarray(given).astype(dtype(each.shape.element_type)))
        return result

    def pairs(self, parameter: str, values: Values) -> set[Pair]:
        """Return the right pairs of one parameter."""
        shape = self.entry.root.shape
        assert isinstance(shape, Shape)
        every = product(*map(range, shape.dims))
        return {(at, place) for at in every for place in self.reads[parameter](*at, **values)}


def same(*at: int, **_: Any) -> list[tuple[int, ...]]:
    """The element itself."""
    return [at]


def where(condition: Callable[..., Any]) -> Reads:
    """The element itself, where the condition holds."""
    return lambda *at, **values: [at] if condition(*at, **values) else []


def numbers(*values: int) -> str:
    return f"constant({{{','.join(map(str, values))}}})"


def splat(value: int, size: int) -> str:
    return numbers(*[value] * size)


def combiner(name: str, opcode: str) -> str:
    lines = "a = f32[] parameter(0)  b = f32[] parameter(1)"
    return f"{name} {{ {lines}  ROOT c = f32[] {opcode}(a, b) }}"


# ---------------------------------------------------------------- maps


def check_maps(program: Program) -> None:
    """Check that the maps are exact and relate the right pairs."""
    for exact, values in product((False, True), program.values):
        answer = indexing.to_parameters(program.entry.root, exact=exact)
        at = Run(program.entry, *program.arguments(values))
        for number, parameter in enumerate(program.entry.parameters):
            maps = answer.maps[number]
            assert {each.grade for each in maps} <= {"exact"}
            assert at.read(maps) == program.pairs(parameter.name, values), (parameter, values)
            assert answer.unknown[number] is None


def check_given_values(program: Program) -> None:
    """Check that the maps with given values relate the right pairs."""
    for values in program.values:
        answer = indexing.to_parameters(program.entry.root)
        given = with_values(answer, values)
        for maps, parameter in zip(given.maps, program.entry.parameters, strict=True):
            assert not any(each.runtime for each in maps)
            assert union(maps) == program.pairs(parameter.name, values), (parameter, values)


# ---------------------------------------------------------------- executions


def influences(program: Program, values: Values, execute: Callable[..., Any]) -> Iterator[Any]:
    """Yield the name of a parameter and a pair, for each output element that an element changes."""
    for seed in range(2):
        arguments = program.arguments(values, seed)
        (before,) = execute(program.entry, arguments)
        for number, parameter in enumerate(program.entry.parameters):
            for place in np.ndindex(arguments[number].shape):
                for value in others(arguments[number][place]):
                    given = [array.copy() for array in arguments]
                    given[number][place] = value
                    (after,) = execute(program.entry, given)
                    for at in np.argwhere(different(np.asarray(before), np.asarray(after))):
                        yield parameter.name, (tuple(map(int, at)), place)


def others(value: Any) -> Sequence[Any]:
    """Return values to change one to: extreme ones, and neighbours."""
    if value.dtype.kind == "f":
        return FLOATS
    if value.dtype.kind == "b":
        return [not value]
    lowest, highest = np.iinfo(value.dtype).min, np.iinfo(value.dtype).max
    near = [int(value) + step for step in (-9, -2, -1, 1, 2, 9)]
    return [lowest, highest, *[each for each in near if lowest <= each <= highest]]


def on_numpy(entry: Computation, arguments: Sequence[Array]) -> Any:
    with np.errstate(all="ignore"):
        return run(entry, arguments)


def on_xla(entry: Computation, arguments: Sequence[Array]) -> Any:
    return xla.run(entry.module, arguments)


EXECUTIONS: Final = [
    on_numpy,
    pytest.param(
        on_xla,
        marks=pytest.mark.skipif(not xla.is_available(), reason="needs jaxlib (extra xla)"),
    ),
]


def check_executions(program: Program, execute: Callable[..., Any]) -> None:
    """Check that the right pairs are those of executions."""
    seen: dict[str, set[Pair]] = {p.name: set() for p in program.entry.parameters}
    for values in program.values:
        here: dict[str, set[Pair]] = {p.name: set() for p in program.entry.parameters}
        for parameter, pair in influences(program, values, execute):
            here[parameter].add(pair)
        for parameter in here.keys() - values.keys():
            assert here[parameter] == program.pairs(parameter, values), (parameter, values)
        for parameter in values:
            seen[parameter] |= here[parameter]
            assert here[parameter] <= program.pairs(parameter, values)
    for parameter in program.values[0]:
        assert seen[parameter] == program.pairs(parameter, program.values[0])
