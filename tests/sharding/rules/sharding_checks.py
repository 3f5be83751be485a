"""Brute-force checks of sharding rules: the elements that are read, and partial results.

`broken_factors` returns, for each factor of a rule that does not hold, the element that breaks it.
It uses no digit arithmetic of `indexing.sharding`: a factor of size s, split into n, puts the index
x of a dimension into the shard ``x floordiv stride mod s floordiv (s / n)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from hlo.shapes.shape import Shape, dtype, leaves
from indexing import output_to_input
from indexing.dataflow.queries import element_reads
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.element import CopyRule, OpaqueRule, ReductionRule, element_of
from indexing.ops.functions import neutral
from indexing.sharding import ShardingRule
from tests.ops.samples import FUNCTIONS, Sample

Array: TypeAlias = Any
UFUNCS = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}


def broken_factors(sample: Sample, rule: ShardingRule) -> dict[int, str]:
    """Return for each factor that does not hold the element that breaks it."""
    broken: dict[int, str] = {}
    for number, factor in enumerate(rule.factors):
        for n in [n for n in range(2, factor.size + 1) if factor.size % n == 0]:
            split = Split(sample, rule, number, n)
            reason = None
            if factor.kind == "pass_through":
                reason = next(split.foreign_reads(), None)
            elif factor.kind == "reduction":
                reason = next(split.foreign_indices(), None) or split.wrong_total()
            if factor.kind in ("pass_through", "reduction"):
                reason = reason or next(split.uneven_sizes(), None)
            if reason:
                broken.setdefault(number, f"{n} shards: {reason}")
    return broken


class Split:
    """A factor of a rule, split into `n`."""

    def __init__(self, sample: Sample, rule: ShardingRule, number: int, n: int) -> None:
        self.sample, self.rule, self.number, self.n = sample, rule, number, n
        self.factor = rule.factors[number]
        instruction = sample.instruction
        self.operands = [leaf for o in instruction.operands for _, leaf in leaves(o.shape)]
        self.outputs = [leaf for _, leaf in leaves(instruction.shape)]

    def shard(self, dims: Sequence[Sequence[int]], shape: Any, index: Any) -> Array:
        """Return the shards of the elements at `index`; None if the array is not split."""
        for k, numbers in enumerate(dims):
            if self.number in numbers:
                sizes = [self.rule.factors[f].size for f in numbers]
                if prod(sizes) != shape.dims[k]:
                    return index[k] // -(-shape.dims[k] // self.n)
                stride = prod(sizes[numbers.index(self.number) + 1 :])
                size = self.factor.size
                return np.asarray(index[k]) // stride % size // (size // self.n)
        return None

    def uneven_sizes(self) -> Iterator[str]:
        """Yield dimensions that are not the product of their factors."""
        for what, arrays, shapes in (
            ("operand", self.rule.operands, self.operands),
            ("result", self.rule.results, self.outputs),
        ):
            for array, dim in self.rule.dims_of(self.number, arrays):
                size = prod(self.rule.factors[f].size for f in arrays[array][dim])
                shape = shapes[array]
                if isinstance(shape, Shape) and size != shape.dims[dim]:
                    yield f"dimension {dim} of {what} {array} has size {shape.dims[dim]}"

    def foreign_reads(self) -> Iterator[str]:
        """Yield elements of the result that need an element of another shard."""
        for r, out in enumerate(self.outputs):
            if not isinstance(out, Shape):
                continue
            answer = output_to_input(self.sample.instruction, r)
            for k, maps in enumerate(answer.maps):
                for m in maps:
                    yield from self._foreign(r, out, k, m)
            split = [f for f in self.rule.results[r] if self.number in f]
            operands = [dims for dims in self.rule.operands if any(self.number in f for f in dims)]
            rule = element_of(self.sample.instruction, r)
            if split and not operands:
                yield from self._moving_reads(r, answer.maps)
            if split and not operands and isinstance(rule, OpaqueRule):
                yield from self._unequal_elements(r)
            if split and not operands and isinstance(rule, CopyRule) and rule.parts > 1:
                yield from self._unequal_elements(r)

    def _foreign(self, r: int, out: Shape, k: int, m: IndexingMap) -> Iterator[str]:
        shape = self.operands[k]
        points = grid(m)
        at = [points[v] for v in m.dims]
        read = [np.broadcast_to(e.value(points), inside(m, points).shape) for e in m.results]
        there = self.shard(self.rule.operands[k], shape, read)
        if there is None:
            return
        here = self.shard(self.rule.results[r], out, at)
        is_foreign = inside(m, points) & (True if here is None else here != there)
        for place in np.argwhere(is_foreign)[:1]:
            element = [int(x[tuple(place)]) for x in at]
            other = [int(x[tuple(place)]) for x in read]
            shard = "on all devices" if here is None else f"in shard {here[tuple(place)]}"
            yield (
                f"element {element} of result {r} {shard} reads element {other} of operand {k} "
                f"in shard {there[tuple(place)]}"
            )

    def _moving_reads(self, r: int, maps: Sequence[Sequence[IndexingMap]]) -> Iterator[str]:
        """Yield elements at the same place in two shards that need other elements of an operand.

        No operand is split then: each device executes the same program on the same operands.
        """
        out = self.outputs[r]
        assert isinstance(out, Shape)
        if 0 in out.dims:
            return
        shards = self.shard(self.rule.results[r], out, np.indices(out.dims))
        first, second = [np.argwhere(shards == p)[0] for p in (0, 1)]
        for k, m in [(k, m) for k, each in enumerate(maps) for m in each]:
            reads = []
            for element in (first, second):
                points = grid(m)
                at = np.logical_and.reduce(
                    [points[v] == x for v, x in zip(m.dims, element, strict=True)]
                )
                chosen = inside(m, points) & at
                shape = chosen.shape
                index = [np.broadcast_to(e.value(points), shape)[chosen] for e in m.results]
                reads.append(sorted({tuple(map(int, each)) for each in zip(*index, strict=True)}))
            if reads[0] != reads[1] and all(reads):
                yield (
                    f"element {first.tolist()} of result {r} in shard 0 reads element "
                    f"{list(reads[0][0])} of operand {k}, element {second.tolist()} in shard 1 "
                    f"reads {list(reads[1][0])}"
                )

    def _unequal_elements(self, r: int) -> Iterator[str]:
        """Yield elements at the same place in two shards, and their values by execution."""
        inputs = self.sample.inputs(np.random.default_rng(0))
        values = self.sample.run(inputs)[r]
        if not values.size:
            return
        shards = self.shard(self.rule.results[r], self.outputs[r], np.indices(values.shape))
        first, second = [np.argwhere(shards == p)[0].tolist() for p in (0, 1)]
        one, other = values[tuple(first)], values[tuple(second)]
        if one != other:
            yield (
                f"elements {first} and {second} of result {r}, first of shards 0 and 1, read the "
                f"same elements and are {one} and {other}"
            )

    def foreign_indices(self) -> Iterator[str]:
        """Yield elements of values whose runtime indices are in another shard."""
        for r in range(len(self.outputs)):
            answer = element_reads(self.sample.instruction, r)
            for k, maps in enumerate(answer.maps):
                for m in maps:
                    points = grid(m)
                    here = self.shard(
                        self.rule.operands[k],
                        self.operands[k],
                        [
                            np.broadcast_to(e.value(points), inside(m, points).shape)
                            for e in m.results
                        ],
                    )
                    for rt in m.runtime:
                        source = answer.operands.index(rt.source)
                        index = [e.value(points) for e in rt.index]
                        there = self.shard(self.rule.operands[source], self.operands[source], index)
                        if here is None and there is not None:
                            yield f"operand {k} is not split, its indices in operand {source} are"
                        if here is not None and there is not None:
                            if np.any(inside(m, points) & (here != there)):
                                yield f"indices of operand {k} are in other shards"

    def wrong_total(self) -> str | None:
        """Return an element of the result that is not the combination of partial results."""
        rule = element_of(self.sample.instruction)
        random = np.random.default_rng(self.n)
        inputs = [
            _integers(random, shape, k in self.sample.index_operands)
            for k, shape in enumerate(self.operands)
        ]
        whole = self.sample.run(inputs)
        name = self.factor.reduction
        if not name:
            return self._wrong_parts(inputs, whole)
        ufunc = UFUNCS[name]
        values: Sequence[int] = range(len(inputs))
        if isinstance(rule, ReductionRule | CopyRule):
            values = rule.values if isinstance(rule, ReductionRule) else rule.operands
        inits = rule.inits if isinstance(rule, ReductionRule) else ()
        fill = 0 if isinstance(rule, ReductionRule) and rule.is_product else None
        partial = []
        for p in range(self.n):
            masked = list(inputs)
            for k in values:
                index = np.indices(inputs[k].shape)
                shard = self.shard(self.rule.operands[k], self.operands[k], index)
                if shard is not None:
                    none = neutral(ufunc, inputs[k].dtype) if fill is None else fill
                    masked[k] = np.where(shard == p, inputs[k], none).astype(inputs[k].dtype)
            for k in inits if p else ():
                masked[k] = np.full_like(inputs[k], neutral(ufunc, inputs[k].dtype))
            partial.append(self.sample.run(masked))
        for r, expected in enumerate(whole):
            total = partial[0][r]
            for part in partial[1:]:
                total = ufunc(total, part[r])
            for place in np.argwhere(~np.isclose(total.astype(expected.dtype), expected))[:1]:
                one, other = expected[tuple(place)], total[tuple(place)]
                return (
                    f"element {place.tolist()} of result {r} is {one}, {other} from partial results"
                )
        return None

    def _wrong_parts(self, inputs: list[Array], whole: Sequence[Array]) -> str | None:
        """Combine partial results of a variadic reduction by its computation."""
        op, function = self.sample.op, FUNCTIONS[self.sample.op.to_apply]
        half = len(inputs) // 2
        (axis,) = [d for d, f in enumerate(self.rule.operands[0]) if self.number in f]
        parts = [np.split(array, self.n, axis) for array in inputs[:half]]
        zeros = [np.zeros_like(init) for init in inputs[half:]]
        totals = op.kernel(*[part[0] for part in parts], *inputs[half:], to_apply=function)
        for p in range(1, self.n):
            more = op.kernel(*[part[p] for part in parts], *zeros, to_apply=function)
            totals = function(*totals, *more)
        for r, (total, expected) in enumerate(zip(totals, whole, strict=True)):
            for place in np.argwhere(total != expected)[:1]:
                one, other = expected[tuple(place)], total[tuple(place)]
                return (
                    f"element {place.tolist()} of result {r} is {one}, {other} from partial results"
                )
        return None


def _integers(random: np.random.Generator, shape: Any, is_index: bool) -> Array:
    """Return random indices, or other values without zeros, which would hide a missing term."""
    low, high = (0, 7) if is_index else (1, 6)
    if shape.element_type == "pred":
        low, high = 0, 2
    return random.integers(low, high, shape.dims).astype(dtype(shape.element_type))


def grid(m: IndexingMap) -> dict[Any, Array]:
    """Return for each variable of a map its value at each point of the box."""
    variables = [*m.dims, *m.ranges, *[rt.variable for rt in m.runtime]]
    values = np.meshgrid(*[np.arange(v.lower, v.upper + 1) for v in variables], indexing="ij")
    return dict(zip(variables, values, strict=True))


def inside(m: IndexingMap, points: dict[Any, Array]) -> Array:
    """Return an array that is True at the points of the domain."""
    shape = np.broadcast_shapes(*[values.shape for values in points.values()])
    result = np.ones(shape, bool)
    for c in m.constraints:
        value = c.expr.value(points)
        result &= (c.lower <= value) & (value <= c.upper)
    return result
