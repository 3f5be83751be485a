"""The image of one element under a map, with the values of runtime variables from arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Any, Final

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.codegen.differences import ElementIndex
from indexing.codegen.graph import Array
from indexing.dataflow.evaluation import Evaluation
from indexing.maps.arrays import ArrayRef, array_leaves
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.numerics import is_integer, limits
from simplifier.atoms import Variable, point_count

MAX_LISTED: Final = 1 << 12
"""Limit on the values of range variables that are enumerated."""

MIN_VECTORISED: Final = 16
"""The number of values of range variables from which they are enumerated by arrays."""

MAX_AIMED: Final = 2
"""Limit on the integers that are chosen together."""

Operands = Sequence[Sequence[Array]]
"""For each operand of an instruction, the arrays of its leaves."""


class OperandValues:
    """The operands of an instruction, and what they decide inside of it.

    Args:
        instruction: the instruction of the maps.
        operands: the values of its operands, which may change in place; none of an operand whose
            value is not known.
    """

    def __init__(self, instruction: Instruction, operands: Operands) -> None:
        self.instruction, self.operands = instruction, operands
        self._integers: dict[ArrayRef, Array] = {}
        for operand, arrays in zip(instruction.operands, operands, strict=True):
            for (_, path, _), array in zip(array_leaves(operand.shape), arrays, strict=False):
                if is_integer(array) or array.dtype.kind == "b":
                    self._integers.setdefault(ArrayRef(operand, path), array)
        self._evaluated: tuple[Sequence[bytes], Evaluation] | None = None

    @property
    def scalars(self) -> list[Array]:
        """The integer operands that are scalars."""
        return [array for array in self._integers.values() if array.shape == ()]

    def operand(self, rt: RuntimeVariable) -> Array | None:
        """Return the operand that is the source of a runtime value; None if there is none."""
        if rt.calls or rt.source not in self.instruction.operands:
            return None
        number = self.instruction.operands.index(rt.source)
        is_array = isinstance(self.instruction.operands[number].shape, Shape)
        known = self.operands[number]
        return known[0] if is_array and known else None

    def source(self, rt: RuntimeVariable) -> Array | None:
        """Return the source of a runtime value: an operand, or what integer operands decide."""
        own = self.operand(rt)
        if own is not None or not isinstance(rt.array, ArrayRef) or rt.array.loops:
            return own
        key = [array.tobytes() for array in self._integers.values()]
        if self._evaluated is None or self._evaluated[0] != key:
            self._evaluated = key, Evaluation(self._integers)
        return self._evaluated[1].value(rt.array)


def images(
    values: OperandValues, indexing_map: IndexingMap, at: ElementIndex
) -> set[ElementIndex] | None:
    """Enumerate the elements that a map relates to one element; None if that is infeasible.

    Args:
        values: the values of the operands.
        at: the element at which the map starts.
    """
    ranges = indexing_map.ranges
    if point_count(ranges) > MAX_LISTED:
        return None
    if not indexing_map.runtime and point_count(ranges) >= MIN_VECTORISED:
        with suppress(FloatingPointError), np.errstate(divide="raise"):  # 0 divides at some point
            return _listed_images(indexing_map, at)
    sources = [values.source(rt) for rt in indexing_map.runtime]
    related: set[ElementIndex] = set()
    for inside in product(*[range(v.lower, v.upper + 1) for v in ranges]):
        runtime = _runtime_values(sources, indexing_map, (*at, *inside))
        if runtime is None:
            return None
        results = indexing_map.evaluate(at, inside, runtime)
        if results is not None:
            related.add(results)
    return related


def _listed_images(m: IndexingMap, at: ElementIndex) -> set[ElementIndex]:
    """Enumerate the elements that a map without runtime variables relates to one element."""
    if any(not v.lower <= k <= v.upper for v, k in zip(m.dims, at, strict=True)):
        return set()
    places = np.indices([v.size for v in m.ranges]).reshape(len(m.ranges), -1)
    point: dict[Variable, Any] = dict(zip(m.dims, at, strict=True))
    point |= {v: place + v.lower for v, place in zip(m.ranges, places, strict=True)}
    inside = np.ones(places.shape[1], np.bool_)
    for c in m.constraints:
        value = c.expr.value(point)
        inside &= (c.lower <= value) & (value <= c.upper)
    count = int(inside.sum())
    columns = [np.broadcast_to(r.value(point), inside.shape)[inside].tolist() for r in m.results]
    return set(zip(*columns, strict=True)) if columns else {()} if count else set()


def image(
    values: OperandValues, indexing_map: IndexingMap, at: ElementIndex, inside: Sequence[int]
) -> ElementIndex | None:
    """Return the element that a map relates to values of its dimensions and range variables.

    None outside of the domain, and if the operands do not decide a runtime variable.
    """
    sources = [values.source(rt) for rt in indexing_map.runtime]
    runtime = _runtime_values(sources, indexing_map, (*at, *inside))
    return None if runtime is None else indexing_map.evaluate(at, inside, runtime)


def _runtime_values(
    sources: Sequence[Array | None], m: IndexingMap, values: Sequence[int]
) -> list[int] | None:
    """Return the values of the runtime variables of a map; None if one is not known."""
    point = dict(zip((*m.dims, *m.ranges), values, strict=True))
    runtime = []
    for rt, source in zip(m.runtime, sources, strict=True):
        index = _index(rt, point)
        if source is None or index is None:
            return None
        if not all(0 <= k < size for k, size in zip(index, source.shape, strict=True)):
            _require_outside(m, values)
            runtime.append(rt.variable.lower)
            continue
        value = int(source[index])
        runtime.append(value if rt.clamp is None else min(max(value, rt.clamp[0]), rt.clamp[1]))
    return runtime


def _require_outside(m: IndexingMap, values: Sequence[int]) -> None:
    """Check that a point at which a runtime value has no element is outside of the domain.

    Raises:
        IndexError: it is not, for the least values of all runtime variables.
    """
    at, inside = values[: len(m.dims)], values[len(m.dims) :]
    if m.evaluate(at, inside, [rt.variable.lower for rt in m.runtime]) is not None:
        raise IndexError(f"a runtime value is an element outside of its array at {[*values]}")


def _index(rt: RuntimeVariable, point: Mapping[Any, int]) -> ElementIndex | None:
    """Return the index of the element that is a runtime value; None if values decide it."""
    if any(v not in point for e in rt.index for v in e.variables()):
        return None
    return tuple([e.value(dict(point)) for e in rt.index])


def aim(
    operands: OperandValues,
    m: IndexingMap,
    at: ElementIndex,
    inside: Sequence[int],
    values: Sequence[int],
) -> bool:
    """Set integers of the operands so that a map reads a point; return True if that is done.

    Args:
        at, inside: values of the dimensions and of the range variables of the map.
        values: integers to try, besides those near the point.
    """
    point = dict(zip((*m.dims, *m.ranges), (*at, *inside), strict=True))
    targets = _targets(operands, m, point)
    near = [n + step for n in (*at, *inside) for step in (0, -1, 1)]
    chosen = dict.fromkeys([*near, *values])
    before = [int(array[index]) for array, index in targets]
    for given in product(chosen, repeat=len(targets)) if targets else ():
        if _set_elements(targets, given) and image(operands, m, at, inside) is not None:
            return True
    _set_elements(targets, before)
    return False


def _targets(
    operands: OperandValues, m: IndexingMap, point: Mapping[Any, int]
) -> list[tuple[Array, ElementIndex]]:
    """Return the integers of operands that may decide the runtime values of a map at a point.

    They are the runtime values themselves, or the only integer if these are computed from it.
    """
    sources = [(operands.operand(rt), _index(rt, point)) for rt in m.runtime]
    own = [(array, index) for array, index in sources if array is not None and index is not None]
    if len(own) == len(sources):
        inside = all(0 <= k < n for a, index in own for k, n in zip(index, a.shape, strict=True))
        return own if inside and len(own) <= MAX_AIMED else []
    scalars = operands.scalars
    return [(scalars[0], ())] if len(scalars) == 1 else []


def _set_elements(targets: Sequence[tuple[Array, ElementIndex]], values: Sequence[int]) -> bool:
    """Set integers; return False if one does not fit its type, or they are one element."""
    for (array, index), value in zip(targets, values, strict=True):
        least, largest = limits(array.dtype) if is_integer(array) else (0, 0)
        if not least <= value <= largest:
            return False
        array[index] = value
    return [int(array[index]) for array, index in targets] == list(values)
