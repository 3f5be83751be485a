"""The tiled array of the command ``tile``: one output or operand of an instruction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from hlo.shapes.shape import AnyShape, leaves
from indexing.dataflow.queries import input_to_output, output_to_input, to_parameters
from indexing.maps.options import OptionChoices
from indexing.memory.executions import Executions, executions
from indexing.tiling.sets.tiling import Target, TileDirection, Tiling, tiling_of
from indexing.views.map_answers import is_decided_by, parameter_number, with_given_values
from indexing.views.map_query import GivenValues
from indexing.views.map_tables import Paint, output_shape, path_text, plain, shape_text
from indexing.views.records import SCHEMA_VERSION, instruction_record, shape_record
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from hlo.modules.module import Instruction
    from indexing.maps.answers import Answer
    from indexing.maps.arrays import Path
    from indexing.maps.indexing_map import IndexingMap


class ArrayLabel(NamedTuple):
    """An array that a tile reads, or that reads a tile: its role, number, name, leaf and shape.

    Attributes:
        assumptions: those that the maps to the array need.
    """

    role: str
    number: int
    name: str
    path: Path | None
    shape: AnyShape
    assumptions: tuple[str, ...] = ()

    def text(self, paint: Paint = plain) -> str:
        """Return the label as text."""
        name = f"{paint(self.name, 'name')}{path_text(self.path)}"
        return f"{self.role} {self.number} {name} {shape_text(self.shape)}"

    def record(self) -> dict[str, Any]:
        """Return the label as fields of a JSON record."""
        return {
            "role": self.role,
            "operand": self.number,
            "operand_name": self.name,
            "operand_shape": shape_record(self.shape),
            "path": self.path or (),
            **({"assumptions": self.assumptions} if self.assumptions else {}),
        }


@dataclass(frozen=True, slots=True)
class TileSubject:
    """The array that is tiled, and the arrays whose elements are asked for.

    Attributes:
        instruction: the instruction.
        to: "operands" or "parameters".
        direction: "input-to-output" for the tiles of an operand.
        output: the number of the tiled output.
        operand: the number of the tiled operand, for "input-to-output".
        exact: use exact maps, in pieces.
        values: values of integer or boolean parameters, by name.
        assume: names of assumptions; see `indexing.maps.assumptions`.
    """

    instruction: Instruction
    to: Target = "operands"
    direction: TileDirection = "output-to-input"
    output: int = 0
    operand: int = 0
    exact: bool = False
    values: GivenValues = ()
    assume: tuple[str, ...] = ()

    @property
    def is_forward(self) -> bool:
        """True for tiles of an operand, and the outputs that read them."""
        return self.direction == "input-to-output"

    @property
    def shape(self) -> AnyShape:
        """The shape of the tiled array."""
        if self.is_forward:
            return self.instruction.operands[self.operand].shape
        return self._output_shape

    @property
    def _output_shape(self) -> AnyShape:
        return output_shape(self.instruction, self.output)

    def tiling(self, sizes: tuple[int, ...]) -> Tiling | Unknown:
        """Return the tiles of these sizes."""
        return tiling_of(self.answer(), sizes, self.to)

    def answer(self, *, masks: bool = True) -> Answer:
        """Return the maps of the tiled array.

        Args:
            masks: leave out what masks hide; see `tile`.
        """
        maps = self._answer_without_values(masks)
        return with_given_values(maps, self.values)

    @property
    def uses_values(self) -> bool:
        """True if the values decide a runtime value of the maps."""
        return bool(self.values) and is_decided_by(
            self.values, self._answer_without_values(masks=True)
        )

    @property
    def uses_assumptions(self) -> bool:
        """True if the maps of an array need the assumptions."""
        return bool(self.assume) and any(
            m.assumptions for maps in self._answer_without_values(masks=True).maps for m in maps
        )

    def _answer_without_values(self, masks: bool) -> Answer:
        options: OptionChoices = {"exact": self.exact, "masks": masks, "assume": self.assume}
        if self.is_forward:
            return input_to_output(self.instruction, self.operand, **options)
        maps_of = to_parameters if self.to == "parameters" else output_to_input
        return maps_of(self.instruction, self.output, **options)

    @property
    def executions(self) -> Executions:
        """Bounds of the executions of the instruction; the tiles are those of one execution."""
        counts = executions(self.instruction.module)
        return counts.get(self.instruction.computation, Executions(0, None))

    def label(
        self,
        instruction: Instruction,
        number: int,
        path: Path = (),
        maps: Iterable[IndexingMap] = (),
    ) -> ArrayLabel:
        """Return the label of one array of the answer.

        Args:
            number: the position of `instruction` in the answer.
            maps: the maps to the array.
        """
        role, shape = "operand", dict(leaves(instruction.shape)).get(path, instruction.shape)
        if self.is_forward:
            outputs, role = leaves(instruction.shape), "output"
            path, shape = outputs[number] if outputs else ((), instruction.shape)
        elif self.to == "parameters":
            own, role = parameter_number(instruction), "parameter"
            number = number if own is None else own
        needed = dict.fromkeys(name for m in maps for name in m.assumptions)
        return ArrayLabel(role, number, instruction.name, path or None, shape, tuple(needed))

    def head(self) -> Iterator[tuple[str, str]]:
        """Yield the words of the heading, each with its style."""
        instruction = self.instruction
        yield f"{instruction.module.filename}:", ""
        yield f"{instruction.computation.name}:", ""
        yield instruction.name, "name"
        yield f"= {shape_text(self._output_shape)} {instruction.opcode},", ""
        yield f"{self.direction},", ""
        if self.is_forward:
            operand = instruction.operands[self.operand]
            yield f"operand {self.operand} {operand.name} {shape_text(operand.shape)},", ""
        elif len(leaves(instruction.shape)) > 1:
            yield f"output {self.output},", ""
        if instruction.computation in executions(instruction.module):
            clause = self.executions.clause
            yield from [(f"{clause},", "")] if clause else []

    def record(self, result: str) -> dict[str, Any]:
        """Return the fields of all JSON records about the tiled array.

        Args:
            result: the kind of the record.
        """
        return {
            **instruction_record(self.instruction),
            "direction": self.direction,
            "to": self.to,
            "output": None if self.is_forward else self.output,
            "tiled_operand": self.operand if self.is_forward else None,
            "shape": shape_record(self.shape),
            "executions": list(self.executions),
            "result": result,
            "schema_version": SCHEMA_VERSION,
        }
