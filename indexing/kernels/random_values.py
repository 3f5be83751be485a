"""Formulas evaluated at points, on elements drawn at random: a difference refutes equality."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from hlo.shapes.element_type import ELEMENT_TYPES, dtype, range_of
from indexing.equivalence.values.folds.folds import open_fold
from indexing.equivalence.values.laws.algebra import FormulaAlgebra, entries
from indexing.equivalence.values.terms.functions import evaluate, function_of
from indexing.equivalence.values.terms.terms import Formula
from indexing.kernels.domains import Guards
from indexing.ops.integer_rules import wrap_integer
from simplifier.atoms import Variable, variables_in
from simplifier.linear import Expr

MAX_FOLDED: Final = 1 << 12
"""Limit on the values of one reduction that are evaluated."""
TRIALS: Final = 4
POINTS: Final = 40
"""The draws of elements, and the points of each, at which two formulas are compared."""
MAX_STEPS: Final = 1 << 12
"""Limit on the values that are evaluated for one draw."""

At = Mapping[Variable, int]


class NoValue(Exception):
    """A formula has a part that is not evaluated."""


class Evaluator:
    """Values of formulas, for elements of the operands that a seed draws."""

    def __init__(self, algebra: FormulaAlgebra, seed: int) -> None:
        self.algebra, self.table, self.seed = algebra, algebra.table, seed
        self._elements: dict[tuple[Any, tuple[int, ...]], Any] = {}
        self._values: dict[tuple[int, tuple[tuple[str, int], ...]], Any] = {}
        self._steps = 0

    def value(self, term: Formula, at: At) -> Any:
        """Return the value of a formula at a point, a scalar of NumPy.

        Raises:
            NoValue: a part of the formula is not evaluated.
        """
        if term.kind == "constant":
            return term.value
        key = term.number, tuple(sorted([(v.name, at[v]) for v in term.free if v in at]))
        if key not in self._values:
            self._steps += 1
            if self._steps > MAX_STEPS:
                raise NoValue(f"budget: more than {MAX_STEPS} values")
            self._values[key] = self._value(term, at)
        return self._values[key]

    def _value(self, term: Formula, at: At) -> Any:
        match term.kind:
            case "index":
                return np.asarray(wrap_integer(self.index(term.index[0], at), term.type),
                                  dtype(term.type))[()]  # fmt: skip
            case "choose":
                number = self.index(term.index[0], at)
                pairs = zip(term.head, term.arguments, strict=True)
                chosen = next((t for bound, t in pairs if number <= bound), term.arguments[-1])
                return self.value(chosen, at)
            case "apply":
                return self._function(term, [self.value(t, at) for t in term.arguments])
            case "read":
                return self._read(term, tuple([self.index(e, at) for e in term.index]))
        raise NoValue(term.kind)

    def index(self, expr: Expr, at: At) -> int:
        """Return the value of an index at a point."""
        values = dict(at)
        for v in variables_in([expr]):
            if v in self.table.runtime:
                number = int(self.value(self.table.runtime[v], at))
                values[v] = min(max(number, v.lower), v.upper)
        return expr.value(values)

    def _function(self, term: Formula, values: Sequence[Any]) -> Any:
        opcode, attributes = term.head
        if opcode in ("sum", "product"):
            return _of_ring(opcode, attributes, values, term.type)
        if opcode == "bitcast-convert":
            return np.asarray(values[0]).view(dtype(term.type))[()]
        if len(values) > 2 and opcode in ("and", "or", "xor", "add", "multiply"):
            raise NoValue(opcode)
        function = self.algebra.functions.get((opcode, attributes, term.type))
        function = function or function_of(opcode, attributes, term.type)
        if function is None:
            raise NoValue(opcode)
        with np.errstate(all="ignore"):
            return evaluate(function, values, term.type)

    def _read(self, term: Formula, index: tuple[int, ...]) -> Any:
        array = term.array
        assert array is not None
        if any(not 0 <= i < n for i, n in zip(index, array.dims, strict=True)):
            raise NoValue("an element out of bounds")
        if array.kind == "symbol":
            return self._element(array, index)
        if array.kind == "table":
            return entries(array)[index]
        if array.kind == "fold":
            return self._fold(array, index)
        raise NoValue(array.kind)

    def _element(self, array: Formula, index: tuple[int, ...]) -> Any:
        key = array.head, index
        if key not in self._elements:
            words = [self.seed, *[ord(c) for c in repr(array.head)], *index]
            self._elements[key] = _draw(np.random.default_rng(words), array.type)
        return self._elements[key]

    def _fold(self, array: Formula, index: tuple[int, ...]) -> Any:
        fold = open_fold(array, array.arguments, array.index)
        if not fold.combiner or math.prod(v.upper - v.lower + 1 for v in fold.ranges) > MAX_FOLDED:
            raise NoValue("a reduction")
        dims = [Variable(f"d{k}", 0, n - 1) for k, n in enumerate(array.dims)]
        outer = dict(zip(dims, index, strict=True))
        function = function_of(fold.combiner, (), fold.element_type)
        if function is None:
            raise NoValue(fold.combiner)
        total = self.value(fold.inits[0], outer)
        for point in _box(fold.ranges):
            at = {**outer, **point}
            if all(c.lower <= self.index(c.expr, at) <= c.upper for c in fold.guards):
                total = evaluate(function, [total, self.value(fold.values[0], at)],
                                 fold.element_type)  # fmt: skip
        return total


def _box(variables: Sequence[Variable]) -> Iterator[dict[Variable, int]]:
    for values in product(*[range(v.lower, v.upper + 1) for v in variables]):
        yield dict(zip(variables, values, strict=True))


def _of_ring(opcode: str, attributes: Any, values: Sequence[Any], element_type: str) -> Any:
    numbers = [int(value) for value in values]
    if opcode == "product":
        total = math.prod(numbers)
    else:
        (_, factors), (_, constant) = attributes
        total = constant + sum(f * x for f, x in zip(factors, numbers, strict=True))
    return np.asarray(wrap_integer(total, element_type), dtype(element_type))[()]


def _draw(generator: np.random.Generator, element_type: str) -> Any:
    """Return a random element; integers are small half of the time."""
    kind = ELEMENT_TYPES[element_type].kind
    limits = range_of(element_type)
    if limits is not None:
        low, high = limits
        if generator.integers(2) and high > 1:
            low, high = max(low, -9), min(high, 99)
        value: Any = int(generator.integers(low, high, endpoint=True, dtype=np.int64)) if (
            high < 1 << 63) else int(generator.integers(low, 1 << 62))  # fmt: skip
    elif kind == "complex":
        value = complex(*generator.uniform(-2, 2, 2))
    else:
        value = generator.uniform(-2, 2)
    return np.asarray(value).astype(dtype(element_type))[()]


def differing_point(
    algebra: FormulaAlgebra, before: Formula, after: Formula, guards: Guards
) -> dict[str, int] | None:
    """Return a point at which two formulas have different values for some elements."""
    variables = _free(algebra, [before, after], guards)
    generator = np.random.default_rng(7)
    draws = [Evaluator(algebra, seed) for seed in range(TRIALS)]
    for number in range(POINTS):
        point = _point(variables, generator, number)
        try:
            if any(_is_apart(draw, before, after, guards, point) for draw in draws):
                return {v.name: x for v, x in point.items()}
        except NoValue:
            return None
    return None


def _free(
    algebra: FormulaAlgebra, terms: Sequence[Formula], guards: Guards
) -> list[Variable]:  # fmt: skip
    runtime = algebra.table.runtime
    variables = {v for term in terms for v in term.free}
    pending = list(variables_in([c.expr for c in guards]))
    for v in pending:
        variables |= runtime[v].free if v in runtime else {v}
    return sorted(variables, key=lambda v: v.name)


def _point(
    variables: Sequence[Variable], generator: np.random.Generator, number: int
) -> dict[Variable, int]:
    if number < 2:
        return {v: v.bounds[number] for v in variables}
    return {v: int(generator.integers(v.lower, v.upper, endpoint=True)) for v in variables}


def _is_apart(draw: Evaluator, before: Formula, after: Formula, guards: Guards, at: At) -> bool:
    if not all(c.lower <= draw.index(c.expr, at) <= c.upper for c in guards):
        return False
    one, other = draw.value(before, at), draw.value(after, at)
    if before.type != after.type:
        return False
    kind = ELEMENT_TYPES[before.type].kind
    if kind not in ("floating", "complex"):
        return bool(one != other)
    wide = complex if kind == "complex" else float
    x, y = wide(one), wide(other)
    if not (np.isfinite(x) and np.isfinite(y)):
        return bool(x == x and y == y and x != y)
    tolerance = 0.05 if ELEMENT_TYPES[before.type].bits < 32 else 1e-3
    return abs(x - y) > tolerance * (abs(x) + abs(y)) + tolerance * 1e-3
