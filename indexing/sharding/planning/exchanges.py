"""Arrays that are gathered whole, and the least that devices would have to exchange instead.

The least exchange follows from maps: the elements of the operand that the shard of the result on a
device reads, without those that the device holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Final

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves
from hlo.shardings.mesh import Mesh
from hlo.shardings.sharding import Sharding
from hlo.text.source import HloError
from indexing.dataflow.queries import output_to_input
from indexing.maps.regions.boxes import Box
from indexing.maps.regions.region import Region
from indexing.sharding.partition.assignment import Assignment, InstructionAssignment
from indexing.sharding.planning.array_shards import place_of
from indexing.sharding.planning.leaf_classes import is_structural
from indexing.sharding.rules.sharding_rules import ShardingRule
from simplifier.unknown import Unknown

MAX_COMPARED_DEVICES: Final = 64
"""Limit on the devices whose needs are counted."""


@dataclass(frozen=True, slots=True)
class WholeGather:
    """An operand of which each device needs a copy, although it is split.

    Attributes:
        instruction: the instruction that needs it.
        operand: the operand.
        source: the sharding of the operand.
        reason: why the instruction needs all of it.
        least_bytes: the bytes that the device which lacks most elements would have to receive if
            only the elements that its shard of the result reads were sent; or why it is unknown.
    """

    instruction: Instruction
    operand: Instruction
    source: Sharding
    reason: str
    least_bytes: int | Unknown

    def __str__(self) -> str:
        least = (
            f"how much a device must receive is unknown: {self.least_bytes}"
            if isinstance(self.least_bytes, Unknown)
            else f"a device must receive at least {self.least_bytes:,} bytes"
        )
        return (
            f"`{self.instruction.name}` gathers `{self.operand.name}` {self.source} whole: "
            f"{self.reason}; {least}"
        )


def whole_gathers(assignment: Assignment) -> Iterator[WholeGather]:
    """Yield the operands that are gathered whole, in the order of the program."""
    for instruction, own in assignment.instructions.items():
        if is_structural(instruction):
            continue
        arrays = [
            (operand, leaf)
            for operand in instruction.operands
            for leaf in range(len(leaves(operand.shape)))
        ]
        for number, (operand, leaf) in enumerate(arrays):
            source = assignment.instructions[operand].results[leaf]
            dims = own.rule.operands[number]
            kept = [own.factor_axes[factor] for factors in dims for factor in factors]
            if any(source.dims) and not any(kept):
                reason = _reason(own, number, source)
                least = _least_bytes(instruction, own, number, (operand, leaf), source)
                yield WholeGather(instruction, operand, source, reason, least)


def _reason(own: InstructionAssignment, number: int, source: Sharding) -> str:
    """Return why the factors of an operand are not split."""
    reasons = []
    for dim, axes in enumerate(source.dims):
        if not axes:
            continue
        factors = own.rule.operands[number][dim]
        blocked = [f for f in factors if own.rule.factors[f].kind == "need_replication"]
        others = [f for f, names in enumerate(own.factor_axes) if set(names) & set(axes)]
        split = ",".join(map(str, axes))
        if not factors:
            reasons.append(f"dimension {dim} has no factor")
        elif blocked:
            proofs = own.rule.proofs[blocked[0]] if own.rule.proofs else ()
            reasons.append(f"dimension {dim} cannot be split: {'; '.join(proofs)}")
        elif others:
            dimension = _dimension_of(own.rule, others[0])
            reasons.append(f"axis {split} splits {dimension} instead of dimension {dim}")
        else:
            reasons.append(f"a split of dimension {dim} along {split} costs more")
    return ", ".join(reasons)


def _dimension_of(rule: ShardingRule, factor: int) -> str:
    """Return a dimension that a factor splits, as words: of a result, else of an operand."""
    for kind, arrays in (("result", rule.results), ("operand", rule.operands)):
        for number, dim in rule.dims_of(factor, arrays):
            return f"dimension {dim} of {kind} {number}"
    raise AssertionError(f"factor {factor} is in no array")


def _least_bytes(
    instruction: Instruction,
    own: InstructionAssignment,
    number: int,
    operand: tuple[Instruction, int],
    source: Sharding,
) -> int | Unknown:
    path, shape = leaves(operand[0].shape)[operand[1]]
    if not isinstance(shape, Shape) or not shape.size:
        return 0
    devices = source.mesh.devices[:MAX_COMPARED_DEVICES]
    position = _operand_position(instruction, number)
    needed = {device: Region.of_boxes((), shape.rank) for device in devices}
    for output in range(len(own.rule.results)):
        try:
            answer = output_to_input(instruction, output, masks=False)
        except HloError as error:
            return Unknown(error.message, instruction)
        unknown = answer.unknown[position]
        if unknown is not None:
            return unknown
        maps = [
            m for m, each in zip(answer.maps[position], answer.paths[position], strict=True)
            if each == path
        ]  # fmt: skip
        for device, tile in _tiles(instruction, own, output, source.mesh, devices):
            needed[device] |= reduce(or_, [m.at(*tile) for m in maps], needed[device])
    most = 0
    for device in devices:
        count = _lacking(needed[device], source, shape, device)
        if isinstance(count, Unknown):
            return count
        most = max(most, count)
    return -(-most * shape.element_bits // 8)


def _tiles(
    instruction: Instruction,
    own: InstructionAssignment,
    output: int,
    mesh: Mesh,
    devices: Sequence[int],
) -> Iterator[tuple[int, tuple[slice, ...]]]:
    """Yield devices and the elements of a result that each computes, unless there are none."""
    shape = leaves(instruction.shape)[output][1]
    if isinstance(shape, Shape):
        dims = own.rule.results[output]
        axes = [tuple([a for f in factors for a in own.factor_axes[f]]) for factors in dims]
        made = Sharding(mesh, tuple(axes))
        for device in devices:
            tile = place_of(made, shape.dims, device)
            if all(part.start < part.stop for part in tile):
                yield device, tile


def _operand_position(instruction: Instruction, number: int) -> int:
    """Return the operand to which leaf `number` of all operands belongs."""
    sizes = [len(leaves(operand.shape)) for operand in instruction.operands]
    return next(k for k in range(len(sizes)) if number < sum(sizes[: k + 1]))


def _lacking(region: Region, source: Sharding, shape: Shape, device: int) -> int | Unknown:
    """Return the number of elements of a region that a device does not hold."""
    tile = place_of(source, shape.dims, device)
    held = Region.of_boxes((), shape.rank)
    if all(part.start < part.stop for part in tile):
        starts = tuple([part.start for part in tile])
        sizes = tuple([part.stop - part.start for part in tile])
        held = Region.of_boxes([Box(starts, sizes, (1,) * shape.rank)], shape.rank)
    needed, common = region.count(), (region & held).count()
    for count in (needed, common):
        if isinstance(count, Unknown):
            return count
    assert isinstance(needed, int)
    assert isinstance(common, int)
    return needed - common
