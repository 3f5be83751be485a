"""Custom calls at the borders of manual regions (JAX's ``shard_map``).

Outside of a region arrays are global; inside, each device has its parts of them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, Final

from hlo.modules.module import Instruction
from hlo.modules.shardings import border_shardings, stated_sharding
from hlo.ops.op import custom_call
from hlo.ops.protocols import InstructionLike
from hlo.shapes.shape import Shape, TupleShape, leaf_shape
from hlo.shardings.sharding import Sharding
from hlo.text.source import HloError
from indexing.maps.answers import Path
from indexing.maps.indexing_map import Grade, IndexingMap, dims, ranges
from indexing.ops.base import Maps
from indexing.ops.collective_bases import OwnAttributes
from indexing.ops.custom_call import (
    FULL_TO_SHARD,
    SHARD_TO_FULL,
    TO_GLOBAL,
    TO_LOCAL,
    CustomCall,
    attribute_text,
    target_of,
)
from indexing.ops.targets.known_reads import KnownReads

DISTRIBUTION: Final = ("sharding", "frontend_attributes")
"""Attributes that state the distribution of arrays."""


def border_sharding(call: Instruction, number: int) -> Sharding | None:
    """Return the sharding of an array at the border of a region; None if it is not stated."""
    target = target_of(call)
    if target in (TO_LOCAL, TO_GLOBAL):
        key = "xla.sdy.in_shardings" if target == TO_LOCAL else "xla.sdy.out_shardings"
        try:
            shardings = border_shardings(call, key)
        except HloError:
            return None
        return shardings[number] if len(shardings) == len(call.operands) else None
    stated = stated_sharding(call.operands[0] if target == FULL_TO_SHARD else call)
    return stated if isinstance(stated, Sharding) else None


class Border(KnownReads):
    """A call whose result number k is operand number k, of which each device has a part.

    An element has its index along dimensions of one size on both sides.  Along the others, it is
    one of the elements of a device's part, all of one size: index ``i`` of the array is index ``i
    mod n`` of a part, whatever the device is.  Where an index in the array depends on the device,
    the map is `may`, and so it is without a sharding that divides the array into such parts.
    """

    __slots__ = ()
    obstacle: ClassVar[str] = "the part of an array that a device has depends on the device"
    gathers: ClassVar[bool] = False

    def value_attributes(self, instruction: InstructionLike) -> dict[str, Hashable]:
        """Add the distribution, which the attributes of the call and of its operands state."""
        values = CustomCall.value_attributes(self, instruction)
        for number, each in enumerate((instruction, *instruction.operands)):
            values |= {f"{name} {number}": attribute_text(each, name) for name in DISTRIBUTION}
        return values

    def has_side_effect(self, instruction: InstructionLike) -> bool:
        return False

    def of_one_array(
        self, instruction: Instruction, output: Path
    ) -> tuple[str, OwnAttributes, int] | None:
        """Return the call of one array that a leaf is: the numbers of the shards of all devices."""
        number = output[0] if output else 0
        sharding = border_sharding(instruction, number)
        if sharding is None or sharding.manual or sharding.partial or len(output) > 1:
            return None
        places: tuple[Hashable, ...] = ()
        if any(sharding.dims):
            rank = range(len(sharding.dims))
            devices = sorted(sharding.mesh.devices)
            places = tuple([(n, *[sharding.number(n, k) for k in rank]) for n in devices])
        side = "leaves" if self.gathers else "enters"
        return instruction.opcode, (("border", (side, places)),), number

    def maps(self, instruction: Instruction, output: Path, operand: int) -> Maps | None:
        shape, array = instruction.shape, instruction.operands[operand].shape
        results = len(shape.elements) if isinstance(shape, TupleShape) else 1
        if results != len(instruction.operands) or len(output) > 1:
            return None
        if operand != (output[0] if output else 0):
            return ()
        out = leaf_shape(shape, output)
        if not isinstance(out, Shape) or not isinstance(array, Shape) or out.rank != array.rank:
            return None
        return (self._map(instruction, operand, out, array),)

    def _map(self, instruction: Instruction, operand: int, out: Shape, array: Shape) -> IndexingMap:
        """Return the map between two forms of one array."""
        whole, part = (out, array) if self.gathers else (array, out)
        if not _is_divided(border_sharding(instruction, operand), whole, part):
            return self._any_part(out, array)
        d, s = dims(out), ranges(*[n // m for n, m in zip(whole.dims, part.dims, strict=True)])
        sizes = part.dims
        if self.gathers:
            return IndexingMap.of(d, [i % n for i, n in zip(d, sizes, strict=True)])
        place = [i + k * n for i, k, n in zip(d, s, sizes, strict=True)]
        is_whole = whole.dims == part.dims
        return IndexingMap.of(d, place, ranges=s, grade="exact" if is_whole else "may")

    def _any_part(self, out: Shape, array: Shape) -> IndexingMap:
        """The map between two forms of one array, of which any part is in any place."""
        d, s = dims(out), ranges(*array.dims)
        is_split = [n != m for n, m in zip(out.dims, array.dims, strict=True)]
        place = [s[k] if split else d[k] for k, split in enumerate(is_split)]
        grade: Grade = "may" if any(is_split) or self.gathers else "exact"
        read = [s[k] for k, split in enumerate(is_split) if split]
        return IndexingMap.of(d, place, ranges=read, grade=grade)


def _is_divided(sharding: Sharding | None, whole: Shape, part: Shape) -> bool:
    """Return True if a sharding divides an array into parts of one size, without padding."""
    if sharding is None or sharding.manual or sharding.partial or not part.size:
        return False
    sizes = list(zip(whole.dims, part.dims, strict=True))
    counts = [sharding.shards(k) for k in range(len(sharding.dims))]
    return len(counts) == len(sizes) and all(
        count * m == n for count, (n, m) in zip(counts, sizes, strict=True)
    )


@custom_call(
    TO_LOCAL,
    samples=[
        f'(f32[2,3], s32[5]) custom-call(f32[4,3] p, s32[5] q), custom_call_target="{TO_LOCAL}"'
    ],
)
class GlobalToLocal(Border):
    """The shards of global arrays on one device.

    Source: Shardy ``docs/sharding_representation.md``.
    """


@custom_call(
    TO_GLOBAL,
    samples=[
        f'(f32[4,3], s32[5]) custom-call(f32[2,3] p, s32[5] q), custom_call_target="{TO_GLOBAL}"'
    ],
)
class LocalToGlobal(Border):
    """Global arrays, assembled from the shards of all devices.

    Source: Shardy ``docs/sharding_representation.md``.
    """

    gathers: ClassVar[bool] = True


@custom_call(
    FULL_TO_SHARD,
    samples=[f'f32[2,3] custom-call(f32[4,3] p), custom_call_target="{FULL_TO_SHARD}"'],
)
class FullToShard(Border):
    """The shard of a global array on one device.

    Source: XLA ``xla/service/spmd/custom_call_handler.cc``.
    """


@custom_call(
    SHARD_TO_FULL,
    samples=[f'f32[4,3] custom-call(f32[2,3] p), custom_call_target="{SHARD_TO_FULL}"'],
)
class ShardToFull(Border):
    """A global array, assembled from the shards of all devices.

    Source: XLA ``xla/service/spmd/custom_call_handler.cc``.
    """

    gathers: ClassVar[bool] = True
