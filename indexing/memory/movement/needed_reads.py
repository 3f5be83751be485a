"""The elements of operands that a result needs, besides those that its loop loads.

A loop loads what every value that it computes reads.  If a mask hides some of these values, the
result needs fewer elements: those that maps with masks read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaf_shape, leaves, unbounded_leaf
from indexing.dataflow.masks import has_masks
from indexing.dataflow.queries import output_to_input
from indexing.dataflow.valued_maps import with_values
from indexing.maps.answers import Answer
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.memory.movement.amounts import Amount, bytes_of
from indexing.memory.movement.point_counts import Counter, Maps
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

OperandArray: TypeAlias = "tuple[int, ArrayRef]"


@dataclass(frozen=True, slots=True)
class NeededReads:
    """The reads of the operands of one instruction by maps with masks.

    Attributes:
        maps: those of each array of the operands, by operand number; without unknown accesses, and
            empty if no mask hides a value.
    """

    maps: Mapping[OperandArray, Maps]

    def elements(self, operand: OperandArray, loaded: Amount, counter: Counter) -> Amount:
        """Return the number of distinct elements that are needed, at most those that are loaded."""
        maps = self.maps.get(operand)
        _, array = operand
        shape = leaf_shape(array.instruction.shape, array.path)
        if maps is None or not isinstance(shape, Shape) or unbounded_leaf(shape):
            return loaded
        needed = counter.results(maps, shape)
        return needed if needed.number <= loaded.number else loaded


def needed_reads(
    instruction: Instruction, values: Mapping[str, ArrayLike] = MappingProxyType({})
) -> NeededReads:
    """Return the reads of the operands that the results of an instruction need.

    Args:
        values: of integer parameters of its computation, by name.
    Raises:
        HloError: the instruction, or one of a computation it calls, is invalid.

    >>> import hlo
    >>> root = hlo.parse('''
    ... fused { x = f32[8] parameter(0)  i = s32[8] iota(), iota_dimension=0  c = s32[] constant(3)
    ...   b = s32[8] broadcast(c), dimensions={}  p = pred[8] compare(i, b), direction=LT
    ...   z = f32[] constant(0)  w = f32[8] broadcast(z), dimensions={}
    ...   ROOT r = f32[8] select(p, x, w) }
    ... ENTRY e { x = f32[8] parameter(0)
    ...   ROOT f = f32[8] fusion(x), kind=kLoop, calls=fused }''').entry.root
    >>> reads = needed_reads(root)
    >>> print(reads.elements((0, ArrayRef(root.operands[0])), Amount(8), Counter()))
    3
    """
    if not has_masks(instruction):
        return NeededReads({})
    maps: dict[OperandArray, dict[IndexingMap, None]] = {}
    unknown: set[int] = set()
    for number, _ in enumerate(leaves(instruction.shape)):
        answer = output_to_input(instruction, number)
        if values:
            answer = with_values(answer, values)
        for k, operand in enumerate(instruction.operands):
            if answer.unknown[k] is not None:
                unknown.add(k)
            for path, _ in leaves(operand.shape):
                maps.setdefault((k, ArrayRef(operand, path)), {})
            for path, m in zip(answer.paths[k], answer.maps[k], strict=True):
                maps[k, ArrayRef(operand, path)][m] = None
    known = {key: tuple(each) for key, each in maps.items() if key[0] not in unknown}
    return NeededReads(known)


def needed_bytes(
    instruction: Instruction, output_id: int, loaded: Answer, counter: Counter
) -> list[tuple[Amount, Amount] | Unknown]:
    """Return the bytes of distinct elements of each operand that one output loads, and needs.

    Args:
        loaded: the exact maps without masks.
    """
    needed = loaded
    if has_masks(instruction):
        needed = output_to_input(instruction, output_id, exact=True)
    counts: list[tuple[Amount, Amount] | Unknown] = []
    for k in range(len(loaded.operands)):
        most, least = _distinct_bytes(loaded, k, counter), _distinct_bytes(needed, k, counter)
        if isinstance(most, Unknown):
            counts.append(most)
        elif isinstance(least, Unknown) or least.number > most.number:
            counts.append((most, most))
        else:
            counts.append((most, least))
    return counts


def _distinct_bytes(answer: Answer, operand: int, counter: Counter) -> Amount | Unknown:
    unknown = answer.unknown[operand]
    if unknown is not None:
        return unknown
    total = Amount(0)
    for path, leaf in leaves(answer.operands[operand].shape):
        every = zip(answer.paths[operand], answer.maps[operand], strict=True)
        maps = [m for at, m in every if at == path]
        if maps and (not isinstance(leaf, Shape) or unbounded_leaf(leaf)):
            return Unknown(f"`{answer.operands[operand].name}` has no known number of elements")
        if isinstance(leaf, Shape) and maps:
            total = total.plus(bytes_of(counter.results(maps, leaf), leaf))
    return total
