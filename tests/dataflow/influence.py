"""Influence by execution: the elements of the parameters that change elements of the results.

`Pokes` executes a program, changes one element of one parameter, and executes it again: elements of
the results that differ depend on that element.  `read` is the relation of maps as a mask, with the
values that runtime variables have in the same execution.  Both are independent of the analysis of
loops, and `read` evaluates expressions on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlo import Computation, Instruction, Shape
from hlo.shapes.shape import dtype, leaves
from indexing import IndexingMap, RuntimeVariable
from indexing.maps.answers import Answer
from indexing.maps.arrays import ArrayRef
from simplifier.atoms import Floor, Variable
from simplifier.linear import Expr
from simplifier.semiaffine import SemiAffine
from tests.dataflow.programs import Run, execute_program

Array: TypeAlias = NDArray[Any]
Mask: TypeAlias = NDArray[np.bool_]
Points: TypeAlias = Mapping[Variable, Array]
Pair: TypeAlias = tuple[int, int]
"""Number of an output, and number of a parameter."""

MAX_POINTS: Final = 1 << 22
"""Limit on the points of one map."""
LARGEST: Final = 60
"""Largest magnitude of a variable: a trip count that only the program knows has 2^62 values, but in
a small program, larger ones are alike."""
MAX_ITERATIONS: Final = 50
LARGE: Final = 100.0


# ---------------------------------------------------------------- programs


def array_shapes(main: Computation) -> tuple[list[Shape], list[Shape]]:
    """Return the shapes of the outputs and of the parameters, which must be arrays."""
    outputs = [shape for _, shape in leaves(main.root.shape)]
    parameters = [parameter.shape for parameter in main.parameters]
    arrays = [each for each in (*outputs, *parameters) if isinstance(each, Shape)]
    assert len(arrays) == len(outputs) + len(parameters)
    return arrays[: len(outputs)], arrays[len(outputs) :]


def draw(shape: Shape, random: np.random.Generator) -> Array:
    """Return random values: integers from -2 to 8, which are indices and bounds of loops, too."""
    kind = dtype(shape.element_type)
    if kind.kind == "f":
        return np.asarray(random.standard_normal(shape.dims)).astype(kind)
    if kind.kind == "b":
        return np.asarray(random.integers(0, 2, shape.dims)).astype(kind)
    low = 0 if kind.kind == "u" else -2
    return np.asarray(random.integers(low, 9, shape.dims)).astype(kind)


def different(a: Array, b: Array) -> Mask:
    """Return the mask of different elements; all NaN are equal."""
    return np.asarray((a != b) & ~((a != a) & (b != b)))


@dataclass
class Pokes:
    """Executions of a program for random arguments, and for arguments with one changed element.

    Attributes:
        main: the program; its parameters and results are arrays.
        arguments: the values of the parameters.
        results: those of the program, None if it does not terminate.
        execute: executes the program.
        seen: the elements of each output that an element of a parameter has changed, as a mask
            ``[element of the output, element of the parameter]``.
    """

    main: Computation
    random: np.random.Generator
    execute: Callable[[Sequence[Array]], Sequence[Array] | None]
    arguments: list[Array] = field(init=False)
    results: Sequence[Array] | None = field(init=False)
    seen: dict[Pair, Mask] = field(init=False)

    def __post_init__(self) -> None:
        outputs, parameters = array_shapes(self.main)
        self.arguments = [draw(shape, self.random) for shape in parameters]
        self.results = self.execute(self.arguments)
        self.seen = {
            (o, p): np.zeros((output.size, parameter.size), bool)
            for o, output in enumerate(outputs)
            for p, parameter in enumerate(parameters)
        }

    @classmethod
    def of(cls, main: Computation, seed: int) -> Pokes:
        """Return executions on NumPy."""

        def execute(arguments: Sequence[Array]) -> Sequence[Array] | None:
            return execute_program(main, *arguments, max_iterations=MAX_ITERATIONS)

        return cls(main, np.random.default_rng(seed), execute)

    def places(self) -> list[tuple[int, int]]:
        """Return the number of a parameter and of its element for each element."""
        return [(p, k) for p, array in enumerate(self.arguments) for k in range(array.size)]

    def poke(self, parameter: int, element: int, values: int = 2) -> None:
        """Change one element to several values, one after the other."""
        if self.results is None:
            return
        array = self.arguments[parameter]
        for value in self._values(array.ravel()[element], values):
            changed = array.copy()
            changed.reshape(-1)[element] = value
            given = [*self.arguments]
            given[parameter] = changed
            results = self.execute(given)
            for output, after in enumerate(results or ()):
                moved = different(np.asarray(self.results[output]), np.asarray(after))
                self.seen[output, parameter][:, element] |= moved.ravel()

    def poke_some(self, count: int) -> None:
        """Change `count` random elements; all elements if there are fewer."""
        places = self.places()
        self.random.shuffle(places)
        for parameter, element in places[:count]:
            self.poke(parameter, element)

    def _values(self, old: Any, count: int) -> list[Any]:
        """Return other values of an element: random ones, NaN and large ones of floats."""
        kind = old.dtype
        if kind.kind == "b":
            return [not old]
        if kind.kind == "f":
            normal = self.random.standard_normal(count).tolist()
            return [normal[0], np.nan, -LARGE, LARGE, *normal[1:]][:count]
        low = 0 if kind.kind == "u" else -2
        others = [value for value in range(low, 9) if value != old]
        return list(self.random.permutation(others)[:count])


# ---------------------------------------------------------------- maps


def read(
    answer: Answer, parameter: int, grades: Iterable[str] = ("exact", "may"), at: Run | None = None
) -> Mask:
    """Return the pairs that the maps of some grades relate, as a mask like `Pokes.seen`.

    Runtime variables have their values in a run, inside of loops those of the iteration in which
    they are read.  Without a run, a `may` map relates what it relates for any value, and an exact
    map relates nothing: it may relate other elements for other values.
    """
    outputs, parameters = array_shapes(answer.instruction.computation)
    spaces = outputs[answer.domain_id].dims, parameters[parameter].dims
    mask = np.zeros((prod(spaces[0]), prod(spaces[1])), bool)
    if answer.unknown[parameter] is not None and "may" in grades:
        mask[:] = True
    for each in answer.maps[parameter]:
        if each.grade in grades:
            mask |= mask_of(each, spaces, at, widened="may" in grades)
    return mask


def mask_of(
    read_map: IndexingMap,
    spaces: tuple[tuple[int, ...], tuple[int, ...]],
    at: Run | None,
    widened: bool,
) -> Mask:
    """Return the pairs that a map relates, as a mask; see `read`.

    Args:
        spaces: the sizes of the two arrays.
        widened: relate what is related for any value of unknown runtime variables, not nothing.
    """
    mask = np.zeros((prod(spaces[0]), prod(spaces[1])), bool)
    fixed = [rt for rt in read_map.runtime if at is not None and has_value(rt, at)]
    free = [rt.variable for rt in read_map.runtime if rt not in fixed]
    if free and not widened:
        return mask
    variables = [*read_map.dims, *read_map.ranges, *free]
    lowest = [max(v.lower, -LARGEST) for v in variables]
    highest = [min(v.upper, LARGEST) for v in variables]
    sizes = [max(0, b - a + 1) for a, b in zip(lowest, highest, strict=True)]
    assert prod(sizes) <= MAX_POINTS, read_map
    if not prod(sizes):
        return mask
    grid = np.indices(sizes).reshape(len(sizes), prod(sizes))
    points = {v: column + low for v, column, low in zip(variables, grid, lowest, strict=True)}
    inside = np.ones(prod(sizes), bool)
    for rt, value, is_valid in runtime_values(fixed, points, at):
        points[rt.variable] = np.where(is_valid, value, rt.variable.lower)
        inside &= is_valid & (rt.variable.lower <= value) & (value <= rt.variable.upper)
    for constraint in read_map.constraints:
        value = value_at(constraint.expr, points)
        inside &= (constraint.lower <= value) & (value <= constraint.upper)
    rows = [points[v] for v in read_map.dims]
    columns = [value_at(result, points) for result in read_map.results]
    flat = [
        _flat(indices, extents, inside)
        for indices, extents in zip((rows, columns), spaces, strict=True)
    ]
    mask[flat[0], flat[1]] = True
    return mask


def _flat(indices: Sequence[Any], extents: tuple[int, ...], inside: Mask) -> Array:
    """Return the positions of the elements at these indices, in row-major order."""
    position = np.zeros(inside.size, int)
    for index, size in zip(indices, extents, strict=True):
        column = np.broadcast_to(index, inside.shape)
        assert np.all(~inside | ((column >= 0) & (column < size))), "an index is out of bounds"
        position = position * size + column
    return np.asarray(position[inside])


def value_at(expr: Expr, points: Points) -> Any:
    """Return the values of an expression at many points."""
    total: Any = expr.constant
    for atom, coefficient in expr.parts.items():
        if isinstance(atom, Variable):
            value: Any = points[atom]
        elif isinstance(atom, Floor):
            value = np.floor_divide(value_at(atom.numerator, points), atom.divisor)
        else:
            assert isinstance(atom, SemiAffine)
            values = [value_at(operand, points) for operand in atom.operands]
            value = _COMBINED[atom.operator](*values)
        total = total + coefficient * value
    return total


def _product(*factors: Any) -> Any:
    result: Any = 1
    for factor in factors:
        result = result * factor
    return result


def _extreme(choose: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def combine(first: Any, *others: Any) -> Any:
        for other in others:
            first = choose(first, other)
        return first

    return combine


_COMBINED: Final[Mapping[str, Callable[..., Any]]] = {
    "*": _product,
    "floordiv": np.floor_divide,
    "min": _extreme(np.minimum),
    "max": _extreme(np.maximum),
}


# ---------------------------------------------------------------- runtime variables


def has_value(runtime: RuntimeVariable, at: Run) -> bool:
    """Return True if the source is an instruction; in iterations without a value, nothing is read.

    A source that is never executed has no value, either.
    """
    return isinstance(runtime.source, Instruction)


def runtime_values(
    waiting: Sequence[RuntimeVariable], points: dict[Variable, Array], at: Run | None
) -> Iterator[tuple[RuntimeVariable, Array, Mask]]:
    """Yield the values of runtime variables at many points, and where their index is in bounds.

    A variable may be the index of another one; `points` must get each value before the next.
    """
    left = list(waiting)
    while left:
        ready = next(
            rt for rt in left if all(v in points for expr in rt.index for v in expr.variables())
        )
        left.remove(ready)
        assert at is not None
        yield (ready, *_values_of(ready, points, at))


def _values_of(runtime: RuntimeVariable, points: Points, at: Run) -> tuple[Array, Mask]:
    count = len(next(iter(points.values()))) if points else 1
    columns = [np.broadcast_to(value_at(expr, points), count) for expr in runtime.index]
    loops = len(runtime.iterations)
    values, is_valid = np.zeros(count, int), np.zeros(count, bool)
    assert isinstance(runtime.array, ArrayRef)
    for iterations, value in at.history.get(
        (runtime.array.calls, runtime.array.instruction), {}
    ).items():
        leaf = value
        for number in runtime.array.path:
            leaf = leaf[number]
        array = np.asarray(leaf)
        here = np.ones(count, bool)
        for column, number in zip(columns[:loops], iterations, strict=True):
            here &= column == number
        index = []
        for column, size in zip(columns[loops:], array.shape, strict=True):
            here &= (column >= 0) & (column < size)
            index.append(np.clip(column, 0, max(size - 1, 0)))
        if here.any():
            values = np.where(here, np.asarray(array[tuple(index)], int), values)
            is_valid |= here
    if runtime.clamp is not None:
        values = np.clip(values, *runtime.clamp)
    return values, is_valid
