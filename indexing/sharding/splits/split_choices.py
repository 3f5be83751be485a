"""The splits of a subject's inputs that go with a split of one of its results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import gcd, prod
from typing import Final, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.dataflow.constants import literal
from indexing.dataflow.needed import dependencies_of
from indexing.dataflow.queries import grouped, output_to_input
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef, array_leaves
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.base import MappedOp
from indexing.ops.element import ConstantRule, CopyRule, IotaRule, OpaqueRule, element_of
from indexing.ops.random_numbers import RngBitGenerator
from indexing.ops.structured_ops import InlineOp
from indexing.sharding.splits.containment import (
    NO_HALO,
    Contained,
    Containment,
    SplitDimension,
    containment_of_all,
    differs_between_shards,
)
from indexing.sharding.splits.states import BROADCAST, ArrayState, split
from indexing.sharding.splits.subjects import Subject

MAX_CHOICES: Final = 64
"""Limit on the choices of splits that go with one split of a result."""


_InputOption: TypeAlias = tuple[int, ArrayState, tuple[int, int], int]
"""The number of an input, its state and halo, and the number of shards; 0 for any number."""


@dataclass(frozen=True, slots=True)
class SplitChoice:
    """States of the inputs with which devices compute their shards of one result.

    Attributes:
        states: the states of the inputs that have a part in the result, by number.
        halos: the halos of split inputs, by number.
        shards: the numbers of shards for which the choice holds are the divisors of this one.
    """

    states: dict[int, ArrayState]
    halos: dict[int, tuple[int, int]]
    shards: int


class SplitChoices:
    """Decides about splits of a subject, for a number of shards.

    Attributes:
        subject: the subject.
        shards: the number of shards; None for every number that divides the sizes.
    """

    def __init__(self, subject: Subject, shards: int | None) -> None:
        self.subject, self.shards = subject, shards
        self._verdicts: dict[tuple[int, int | None, int, int, int], Containment] = {}

    def decide(
        self, result: int, dimension: int | None, source: int, source_dimension: int, shards: int
    ) -> Containment:
        """Decide whether shards of an input contain what shards of a result need.

        Args:
            result, source: the numbers of the result and of the input.
            dimension: the dimension of the result that is split; None if it is not split.
            shards: the number of shards.
        """
        arrays = (
            (self.subject.results[result].shape, dimension),
            (self.subject.inputs[source].shape, source_dimension),
        )
        for shape, number in arrays:
            if number is not None and shape.dynamic and shape.dynamic[number]:
                return Unknown(f"dimension {number} of {shape} has a dynamic size")
        key = result, dimension, source, source_dimension, shards
        if key not in self._verdicts:
            sizes = self.subject.results[result].shape.dims
            split_result = (
                None if dimension is None else SplitDimension.of(sizes, dimension, shards)
            )
            of = self.subject.inputs[source].shape.dims
            split_source = SplitDimension.of(of, source_dimension, shards)
            self._verdicts[key] = containment_of_all(
                self.subject, result, source, split_result, split_source, shards
            )
        return self._verdicts[key]

    def choices(self, result: int, dimension: int) -> Iterator[SplitChoice]:
        """Yield the states of the inputs for a split of a result, split where possible."""
        size = self.subject.results[result].shape.dims[dimension]
        if size < 2:
            return
        options = self._options(result, dimension, self.shards or size)
        for chosen in product(*options):
            common = self.shards or gcd(size, *[count for _, _, _, count in chosen])
            if common > 1:
                yield SplitChoice(
                    {source: state for source, state, _, _ in chosen},
                    {source: halo for source, _, halo, _ in chosen if halo != NO_HALO},
                    common,
                )

    def _options(self, result: int, dimension: int, shards: int) -> list[list[_InputOption]]:
        """Return the states of each input that a result reads."""
        options: list[list[_InputOption]] = []
        for source in range(len(self.subject.inputs)):
            accesses = self.subject.accesses(result, source)
            if accesses.maps or accesses.unknown is not None:
                valid = list(self._splits(result, dimension, source, shards))
                options.append(valid or [(source, BROADCAST, NO_HALO, 0)])
        is_many = prod(map(len, options)) > MAX_CHOICES
        return [valid[:1] for valid in options] if is_many else options

    def _splits(
        self, result: int, dimension: int, source: int, shards: int
    ) -> Iterator[_InputOption]:
        """Yield the valid splits of an input; those with halos if there are no others."""
        with_halo: list[_InputOption] = []
        for number, size in enumerate(self.subject.inputs[source].shape.dims):
            count = shards if self.shards else gcd(shards, size)
            if size < 2 or count < 2:
                continue
            verdict = self.decide(result, dimension, source, number, count)
            if isinstance(verdict, Contained):
                choice = source, split(number), verdict.halo, count
                if verdict.halo == NO_HALO:
                    yield choice
                    with_halo = []
                    shards = count if not self.shards else shards
                elif self._is_halo_of_every_divisor(
                    result, dimension, source, number, count, verdict.halo
                ):
                    with_halo.append(choice)
        yield from with_halo

    def _is_halo_of_every_divisor(
        self,
        result: int,
        dimension: int,
        source: int,
        number: int,
        shards: int,
        halo: tuple[int, int],
    ) -> bool:
        if self.shards:
            return True
        smaller = [n for n in range(2, shards) if shards % n == 0]
        verdicts = [self.decide(result, dimension, source, number, n) for n in smaller]
        return all(isinstance(v, Contained) and v.halo == halo for v in verdicts)

    # ------------------------------------------------------------ the number of the shard

    def needs_place(self, result: int, dimension: int, choice: SplitChoice) -> bool:
        """Return False if the shards are proved to execute the same function of their shards."""
        subject, shards = self.subject, choice.shards
        split_result = SplitDimension.of(subject.results[result].shape.dims, dimension, shards)
        splits = {
            source: SplitDimension.of(subject.inputs[source].shape.dims, state.dimension, shards)
            for source, state in choice.states.items()
            if state.dimension is not None
        }
        arrays: dict[ArrayRef, SplitDimension] = {}
        for source in choice.states:
            array = subject.inputs[source]
            ref = ArrayRef(subject.sources[array.position], array.path)
            if source in splits and arrays.setdefault(ref, splits[source]) != splits[source]:
                return True
        for source in choice.states:
            for m in subject.accesses(result, source).maps:
                of_source = splits.get(source)
                if differs_between_shards(m, split_result, shards, of_source, arrays):
                    return True
        return self._reads_places(result, split_result, shards)

    def _reads_places(self, result: int, split_result: SplitDimension, shards: int) -> bool:
        """Return False if values of no iota, constant or generator depend on the shard."""
        if not self._index_dependent:
            return False
        root = self.subject.root
        if root in self._index_dependent:
            return split_result.number in _placed_dimensions(root)
        outer = root.called_computations[0] if isinstance(root.op, InlineOp) else root.computation
        start = outer.root if isinstance(root.op, InlineOp) else root
        needed = set(dependencies_of([start]))
        reached = grouped(root, self.subject.results[result].number, masks=False)
        for instruction in self._index_dependent:
            maps = reached.get(instruction)
            if instruction.computation is outer and instruction not in needed:
                continue
            if not maps:
                return True
            for m in maps:
                exprs = [m.results[k] for k in _placed_dimensions(instruction)]
                part = IndexingMap.of(m.dims, exprs, ranges=m.ranges, runtime=m.runtime)
                if differs_between_shards(part, split_result, shards, None, {}):
                    return True
        return False

    @cached_property
    def _index_dependent(self) -> list[Instruction]:
        """The executed instructions whose elements depend on their index."""
        return [each for each in self.subject.executed_instructions() if _placed_dimensions(each)]


def _placed_dimensions(instruction: Instruction) -> tuple[int, ...]:
    """The dimensions along which elements depend on their index, not on operands alone."""
    if isinstance(instruction.op, RngBitGenerator):
        return tuple(range(max(len(shape.dims) for _, _, shape in array_leaves(instruction.shape))))
    match element_of(instruction), instruction.shape:
        case IotaRule(dimension), _:
            return (dimension,)
        case ConstantRule(), Shape() as shape if shape.rank:
            values = literal(ArrayRef(instruction))
            is_splat = values is not None and values.size and (values == values.flat[0]).all()
            return () if is_splat else tuple(range(shape.rank))
        case OpaqueRule(), _ if isinstance(instruction.op, MappedOp) and instruction.operands:
            return _unkept_dimensions(instruction, is_sliced=instruction.op.computes_slices)
        case CopyRule(parts=parts), _ if parts > 1:  # the index has the number of the part
            return _unkept_dimensions(instruction, is_sliced=True)
    return ()


def _unkept_dimensions(instruction: Instruction, *, is_sliced: bool) -> tuple[int, ...]:
    """The dimensions along which an op may compute elements in another way at each index.

    Args:
        is_sliced: it computes slices alike along dimensions that it keeps.
    """
    every: set[int] = set()
    for number, _, shape in array_leaves(instruction.shape):
        dims = set(range(shape.rank))
        if is_sliced:
            answer = output_to_input(instruction, number, masks=False)
            for m in [m for maps in answer.maps for m in maps]:
                dims -= {k for k in dims if any(r == m.dims[k].as_expr() for r in m.results)}
        every |= dims
    return tuple(sorted(every))
