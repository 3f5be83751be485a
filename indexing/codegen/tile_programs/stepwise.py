"""Execution of a tiling block by block and step by step, on NumPy.

Each step computes from copies of the arrays that have poison outside of the elements which
`LoopTiling.at` lists for it: a step that needed another element would have a wrong result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlo.shapes.shape import dtype
from indexing.codegen.tile_programs.program import NotEmitted, StepPhase, StepTotal, TileProgram
from indexing.codegen.tile_programs.tile_values import (
    Guards,
    TileApply,
    TileChoice,
    TileFold,
    TileIndex,
    TileLoad,
    TileScalar,
    TileTotal,
    TileValue,
)
from indexing.maps.arrays import ArrayRef
from indexing.maps.regions.region import Region
from indexing.ops import numerics
from indexing.ops.functions import neutral
from simplifier.atoms import Variable
from simplifier.linear import Expr
from simplifier.unknown import Unknown

Array: TypeAlias = NDArray[Any]
Ranges: TypeAlias = Mapping[int, range]


def poison_of(kind: np.dtype[Any]) -> Array:
    """Return NaN, or the largest number of an integer type.

    >>> poison_of(np.dtype(np.float32)), poison_of(np.dtype(np.int8))
    (array(nan, dtype=float32), array(127, dtype=int8))
    """
    if numerics.is_integer(np.zeros(0, kind)) or kind.kind == "b":
        return np.asarray(True if kind.kind == "b" else numerics.limits(kind)[1]).astype(kind)
    with np.errstate(all="ignore"):
        return np.asarray(np.nan).astype(kind)


def run_stepwise(program: TileProgram, arrays: Mapping[ArrayRef, Array]) -> Array:
    """Return the result of a tiling, computed block by block and step by step.

    Args:
        program: the program of the tiling.
        arrays: the value of each array of `TileProgram.arrays`.
    Raises:
        NotEmitted: the elements that a step needs are not known as boxes.
    """
    shape = program.tiling.shape
    out = np.zeros(shape.dims, dtype(shape.element_type))
    run = _BlockRun(program, arrays, out)
    with np.errstate(all="ignore"):
        for index in np.ndindex(*program.tiling.grid):
            run.block(index)
    return out


class _BlockRun:
    def __init__(self, program: TileProgram, arrays: Mapping[ArrayRef, Array], out: Array) -> None:
        self._program, self._arrays, self._out = program, arrays, out
        self._poisoned = {
            array: np.full_like(value, poison_of(value.dtype)) for array, value in arrays.items()
        }
        self._totals: dict[tuple[int, tuple[int, ...]], Array] = {}
        self._previous: dict[int, Array] = {}

    def block(self, index: tuple[int, ...]) -> None:
        """Compute one tile of the result."""
        program, step = self._program, 0
        self._totals = {}
        grid = iter(index)
        tids = [next(grid) for _ in range(program.rank)]
        for phase in program.phases:
            counts = [range(program.axis(axis).count) for axis in phase.loops]
            started: set[tuple[int, tuple[int, ...]]] = set()
            for place in product(*counts):
                ranges = self._ranges(tids, dict(zip(phase.loops, place, strict=True)))
                self._load(index, step)
                self._step(phase, ranges, dict(zip(phase.loops, place, strict=True)), started)
                self._unload(index, step)
                step += 1
            for number, key in started:
                self._finish(program.total(number), key, tids)

    def _ranges(self, tids: Sequence[int], steps: Mapping[int, int]) -> dict[int, range]:
        """Return the elements of each axis in a step."""
        ranges: dict[int, range] = {}
        for number, axis in self._program.axes.items():
            place = steps.get(number, tids[number] if number < self._program.rank else 0)
            low = place * axis.step
            is_whole = number in self._program.serial and number not in steps
            ranges[number] = range(low, min(low + axis.step, axis.size))
            if is_whole:
                ranges[number] = range(axis.size)
        return ranges

    def _regions(self, index: tuple[int, ...], step: int) -> Iterator[tuple[ArrayRef, Any]]:
        tiling = self._program.tiling
        for array, region in zip(tiling.arrays, tiling.at(*index, step=step), strict=True):
            if array in self._arrays:
                for place in _places(region):
                    yield array, place

    def _load(self, index: tuple[int, ...], step: int) -> None:
        for array, place in self._regions(index, step):
            self._poisoned[array][place] = self._arrays[array][place]

    def _unload(self, index: tuple[int, ...], step: int) -> None:
        for array, place in self._regions(index, step):
            self._poisoned[array][place] = poison_of(self._arrays[array].dtype)

    def _step(
        self,
        phase: StepPhase,
        ranges: dict[int, range],
        steps: dict[int, int],
        started: set[tuple[int, tuple[int, ...]]],
    ) -> None:
        values = StepValues(self._program, ranges, self._poisoned, self._total_value(steps))
        for total in phase.totals:
            key = total.number, self._place(total, steps)
            before = self._totals.get(key)
            fold = values.fold(total.fold)
            if before is None:
                before = _first(total.fold, fold)
            started.add(key)
            self._previous[total.number] = before
            factor = None if total.rescale is None else values.along(total.rescale, total.axes)
            scaled = before if factor is None else (before * factor).astype(before.dtype)
            self._totals[key] = total.fold.combine(scaled, fold)
            values.forget(total.number)
        if phase.result is not None:
            box = tuple(
                [slice(r.start, r.stop) for k, r in ranges.items() if k < self._program.rank]
            )
            axes = tuple(range(self._program.rank))
            result = values.along(phase.result, axes)
            self._out[box] = np.broadcast_to(result, self._out[box].shape)

    def _place(self, total: StepTotal, steps: Mapping[int, int]) -> tuple[int, ...]:
        return tuple([steps[a] for a in total.axes if a in self._program.serial and a in steps])

    def _total_value(self, steps: Mapping[int, int]) -> Any:
        def value(total: TileTotal) -> Array:
            if total.state == "previous":
                return _round_array(self._previous[total.number], total.kind)
            key = total.number, self._place(self._program.total(total.number), steps)
            return _round_array(self._totals[key], total.kind)

        return value

    def _finish(self, total: StepTotal, key: tuple[int, ...], tids: Sequence[int]) -> None:
        """TileApply the last factors and the first value of the combination."""
        own = self._totals[total.number, key]
        serial = [a for a in total.axes if a in self._program.serial]
        steps = dict(zip(serial, key, strict=False))
        values = StepValues(self._program, self._ranges(tids, steps), {}, self._total_value(steps))
        for factor, is_divisor in total.factors:
            by = values.along(factor, total.axes)
            own = (own / by if is_divisor else own * by).astype(own.dtype)
        if total.fold.init is not None:
            own = total.fold.combine(values.along(total.fold.init, total.axes), own)
        self._totals[total.number, key] = own


def _first(fold: TileFold, like: Array) -> Array:
    return np.full(like.shape, neutral(fold.combine, like.dtype), like.dtype)


def _round_array(value: Array, kind: str) -> Array:
    return numerics.convert_array(value, dtype(kind))


def _places(region: Region) -> Iterator[tuple[Any, ...]]:
    """Yield indices that together reach all elements of a region."""
    boxes = region.boxes()
    if not isinstance(boxes, Unknown) and boxes is not None:
        for box in boxes:
            yield tuple(
                [
                    slice(offset, offset + (size - 1) * stride + 1, stride)
                    for offset, size, stride in zip(
                        box.offsets, box.sizes, box.strides, strict=True
                    )
                ]
            )
        return
    elements = region.elements()
    if isinstance(elements, Unknown):
        raise NotEmitted(f"the elements of a step are unknown: {elements.reason}")
    if len(elements):
        yield tuple(np.asarray(elements).T)


class StepValues:
    """The values of one step.

    Args:
        program: the program.
        ranges: the elements of each axis.
        arrays: the arrays.
        totals: returns the result of a nest.
    """

    def __init__(
        self,
        program: TileProgram,
        ranges: Ranges,
        arrays: Mapping[ArrayRef, Array],
        totals: Any,
    ) -> None:
        self._program, self._ranges, self._arrays = program, ranges, arrays
        self._totals = totals
        self._known: dict[TileValue, Array] = {}

    def forget(self, number: int) -> None:
        """Forget values: a total has changed."""
        self._known = {}

    def along(self, value: TileValue, axes: Sequence[int]) -> Array:
        """Return a value with one dimension for each of `axes`, of size 1 where it is constant."""
        array = self.value(value)
        return _expand_array(array, value.axes, axes)

    def value(self, value: TileValue) -> Array:
        """Return a value with one dimension for each of its axes."""
        if value not in self._known:
            self._known[value] = self._new(value)
        return self._known[value]

    def _new(self, value: TileValue) -> Array:
        match value:
            case TileLoad():
                return self._load_elements(value)
            case TileScalar():
                return value.value
            case TileIndex():
                numbers = self._numbers(value.expr, value.axes)
                return numerics.convert_array(np.asarray(numbers), dtype(value.kind))
            case TileApply():
                arguments = [self.along(each, value.axes) for each in value.arguments]
                result = np.asarray(value.function.call(*arguments))
                wanted = dtype(value.kind)
                if result.dtype != wanted:
                    result = numerics.convert_array(result, wanted)
                return self._full(result, value.axes)
            case TileChoice():
                chosen = self.along(value.otherwise, value.axes)
                for guards, case in reversed(value.cases):
                    chosen = np.where(
                        self._mask(guards, value.axes), self.along(case, value.axes), chosen
                    )
                return self._full(chosen, value.axes)
            case TileFold():
                total = self.fold(value)
                if value.init is not None:
                    total = value.combine(self.along(value.init, value.axes), total)
                return _round_array(total, value.kind)
            case TileTotal():
                return np.asarray(self._totals(value))

    def _full(self, array: Array, axes: Sequence[int]) -> Array:
        return np.broadcast_to(array, [len(self._ranges[axis]) for axis in axes])

    def _numbers(self, expr: Expr, axes: Sequence[int]) -> Any:
        point: dict[Variable, Any] = {}
        for v in expr.variables():
            number = int(v.name[1:])
            place = axes.index(number)
            sizes = [-1 if k == place else 1 for k in range(len(axes))]
            own = self._ranges[number]
            point[v] = np.arange(own.start, own.stop).reshape(sizes)
        numbers = np.asarray(expr.value(point))
        return np.broadcast_to(numbers, [len(self._ranges[axis]) for axis in axes])

    def _mask(self, guards: Guards, axes: Sequence[int]) -> Array:
        mask = np.ones([len(self._ranges[axis]) for axis in axes], bool)
        for guard in guards:
            numbers = self._numbers(guard.expr, axes)
            mask &= (numbers >= guard.lower) & (numbers <= guard.upper)
        return mask

    def _load_elements(self, load: TileLoad) -> Array:
        """Return elements of an array; those outside of it, which guards hide, are those inside."""
        array = self._arrays[load.array]
        places = []
        for expr, size in zip(load.index, array.shape, strict=True):
            places.append(np.clip(self._numbers(expr, load.axes), 0, max(size - 1, 0)))
        return np.asarray(array[tuple(places)])

    def fold(self, fold: TileFold) -> Array:
        """Return the combination of the terms of one step, in the type of totals."""
        joint = tuple(sorted({*fold.axes, *fold.over}))
        wide = dtype(fold.total_kind)
        terms = [self.along(term, joint).astype(wide) for term in fold.terms]
        value = reduce(np.multiply, terms)
        value = self._full(value, joint)
        mask = self._mask(fold.guards, joint)
        if fold.guards:
            value = np.where(mask, value, neutral(fold.combine, wide))
        places = tuple([joint.index(axis) for axis in fold.over])
        result = fold.combine.reduce(value, axis=places)
        return np.asarray(result).astype(wide)


def _expand_array(array: Array, own: Sequence[int], axes: Sequence[int]) -> Array:
    sizes = iter(array.shape)
    return array.reshape([next(sizes) if axis in own else 1 for axis in axes])
