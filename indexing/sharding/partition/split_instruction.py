"""`SplitInstruction`: an instruction, the splits of its factors, and its local operands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, TupleShape
from hlo.shardings.mesh import Mesh
from hlo.shardings.sharding import Sharding
from hlo.text.syntax import AttributeText, attributes_text
from indexing.maps.arrays import array_leaves
from indexing.sharding.partition.moves import Axes
from indexing.sharding.partition.writer import LocalBody, LocalValue
from indexing.sharding.rules.sharding_rules import Factors, ShardingRule

_DROPPED: Final = frozenset(
    [
        *("control-predecessors", "frontend_attributes", "indices_are_sorted", "origin"),
        *("sharding", "statistics", "unique_indices"),  # shards of indices may be neither
    ]
)


@dataclass(slots=True)
class SplitInstruction:
    """An instruction to be executed on shards.

    Attributes:
        instruction: the instruction of the global program.
        rule: its sharding rule.
        axes: the axes that split each factor.
        operands: the arrays of the operands on one device, in the shardings `needed`.
        needed: the sharding of each of them.
        results: the sharding of each array that the local instruction returns.
    """

    instruction: Instruction
    rule: ShardingRule
    axes: tuple[Axes, ...]
    operands: list[LocalValue]
    needed: list[Sharding]
    results: list[Sharding]

    @property
    def reduced(self) -> Iterator[tuple[int, Axes]]:
        """The reduction factors that are split, with their axes."""
        for number, axes in enumerate(self.axes):
            if axes and self.rule.factors[number].kind == "reduction":
                yield number, axes

    def is_reduced(self, operand: int, dim: int) -> bool:
        """Return True if a reduction factor of an operand's dimension is split."""
        numbers = self.rule.operands[operand][dim]
        return any(number in numbers for number, _ in self.reduced)

    def operand_shape(self, number: int) -> Shape:
        """Return the global shape of an operand that is an array."""
        shape = self.instruction.operands[number].shape
        assert isinstance(shape, Shape)
        return shape

    @property
    def result_shapes(self) -> list[Shape]:
        """The shapes of the arrays of the result on one device."""
        shapes = array_shapes(self.instruction)
        return [local_shape(shape, s) for shape, s in zip(shapes, self.results, strict=True)]

    def attributes(self, **changed: str) -> str:
        """Return the text of the attributes, some of them changed."""
        kept = {k: v for k, v in self.instruction.attributes.items() if k not in _DROPPED}
        kept |= {name: AttributeText.of(text) for name, text in changed.items()}
        return attributes_text(kept).removeprefix(", ")


def add_local(body: LocalBody, split: SplitInstruction, **changed: str) -> list[LocalValue]:
    """Add an instruction of the same opcode on shards and return the arrays of its result.

    Args:
        changed: the attributes that are adapted to shards.
    """
    instruction = split.instruction
    text, shapes, name = split.attributes(**changed), split.result_shapes, instruction.name
    if isinstance(instruction.shape, Shape):
        return [body.add(instruction.opcode, shapes[0], split.operands, text, name=name)]
    made = TupleShape(tuple(shapes))
    whole = body.add(instruction.opcode, made, split.operands, text, name=name)
    return [
        body.add("get-tuple-element", shape, (whole,), f"index={number}")
        for number, shape in enumerate(shapes)
    ]


@lru_cache(maxsize=1 << 11)
def sharding_of(dims: Factors, axes: tuple[Axes, ...], mesh: Mesh) -> Sharding:
    """Return the sharding of an array whose factors are split along these axes."""
    split = [tuple(axis for number in numbers for axis in axes[number]) for numbers in dims]
    return Sharding(mesh, tuple(split))


def array_shapes(instruction: Instruction) -> list[Shape]:
    """Return the shapes of the arrays of an instruction's result."""
    return [shape for _, _, shape in array_leaves(instruction.shape)]


def local_shape(shape: Shape, sharding: Sharding) -> Shape:
    """Return the shape of a shard, without layout."""
    return Shape(shape.element_type, sharding.local_dims(shape.dims))
