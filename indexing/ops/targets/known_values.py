"""`KnownValues`: custom calls whose values are computed here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from hlo.modules.bind import read_as
from hlo.modules.module import Instruction
from hlo.ops.op import declared
from hlo.ops.protocols import InstructionLike
from hlo.shapes.shape import UNBOUNDED, AnyShape, Shape, TupleShape, dtype
from hlo.text.source import HloError
from indexing.ops.base import Array, Entries, MappedOp, Path, VariadicOp
from indexing.ops.targets.definition import Definition


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownValues(VariadicOp):
    """A call whose first results are computed here; the others are its workspace.

    What a call leaves in the memory is undefined, so the memory reads nothing. A call that breaks a
    rule of its target (`why_not`) is a call of any code.
    """

    accumulates: ClassVar[bool] = True
    map_options: ClassVar[tuple[str, ...]] = ("exact", "output_id")
    kernel_takes_shapes: ClassVar[bool] = True
    shape: AnyShape = declared(any_shape=True)  # noqa: RUF009 - a field specifier

    @classmethod
    def why_unsupported(cls, instruction: InstructionLike) -> str:
        shapes = [operand.declared_shape for operand in instruction.operands]
        arrays = [s for s in shapes if isinstance(s, Shape) and UNBOUNDED not in s.dims]
        if len(arrays) < max(1, len(shapes)):
            return f"the operands of a call of {cls.target} must be arrays of known sizes"
        try:
            op = read_as(cls, cast("Instruction", instruction), instruction.declared_shape)
            reason = op.why_no_value() or op.why_not(*arrays)
        except HloError as error:
            reason = error.message
        return f"it is not a call of {cls.target} that is understood: {reason}" if reason else ""

    @property
    def results(self) -> tuple[AnyShape, ...]:
        """The shapes of all results."""
        return self.shape.elements if isinstance(self.shape, TupleShape) else (self.shape,)

    @property
    def value(self) -> Shape:
        """The shape of the first result."""
        first = self.results[0]
        assert isinstance(first, Shape)  # `why_no_value`
        return first

    @property
    def value_count(self) -> int:
        """The number of results that are values."""
        return 1

    def why_no_value(self) -> str:
        """Return why the results are not values, and memory; "" if they are."""
        values, memory = self.results[: self.value_count], self.results[self.value_count :]
        if len(values) < self.value_count:
            return f"the result is {self.shape}, expected {self.value_count} values"
        for shape in values:
            if not isinstance(shape, Shape) or UNBOUNDED in shape.dims:
                return f"a result is {shape}, not an array of known sizes"
        if len(memory) <= 1 and all(isinstance(m, Shape) and m.rank == 1 for m in memory):
            return ""
        return f"the result is {self.shape}, expected {self.value_count} values and memory"

    @abstractmethod
    def why_not(self, *operands: Shape) -> str:
        """Return the rule of the target that the call breaks; "" if it breaks none."""

    @abstractmethod
    def value_maps(self, out: Shape, *operands: Shape, exact: bool, output_id: int) -> Entries:
        """For each operand, the map from one of the values, as `output_to_input`."""

    @abstractmethod
    def values(self, arrays: Sequence[Array], operands: Sequence[Shape]) -> tuple[Array, ...]:
        """The values, for operands of these shapes."""

    def definition(self, instruction: Instruction) -> Definition | None:
        """Return the values by ops of HLO, for a call; None if they are not defined so."""
        return None

    @classmethod
    def is_value(cls, instruction: Instruction, path: Path) -> bool:
        op = instruction.op
        return not path or not isinstance(op, KnownValues) or path[0] < op.value_count

    def infer_shape(self, *operands: Shape) -> AnyShape:
        return self.shape

    def output_to_input(
        self, out: Shape, *operands: Shape, exact: bool = False, output_id: int = 0
    ) -> Entries:
        if output_id < self.value_count:
            return self.value_maps(out, *operands, exact=exact, output_id=output_id)
        return ((),) * len(operands)

    def kernel(self, *arrays: Array, operands: Sequence[Shape]) -> Any:
        memory = [
            np.zeros(shape.dims, dtype(shape.element_type))
            for shape in self.results[self.value_count :]
            if isinstance(shape, Shape)
        ]
        values = (*self.values(arrays, operands), *memory)
        return values if isinstance(self.shape, TupleShape) else values[0]


def why_no_op(op: MappedOp, value: Shape, *operands: Shape) -> str:
    """Return why operands and a value do not have the shapes of an op; "" if they have."""
    if broken := op.first_fault(operands):
        rule, fault = broken
        return f"{op.opcode} {rule.label}: {rule.sentence}: {fault.label}"
    inferred = op.infer_shape(*operands)
    if inferred.dims == value.dims:
        return ""
    return f"the value of {op.opcode} must be {inferred}, not {value.with_layout(None)}"
