"""Answers as tables: their text, as the command ``maps`` prints it, and their data frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hlo.shapes.shape import AnyShape, TupleShape, leaves
from indexing.views.map_answers import operand_rows
from indexing.views.map_tables import MapRow, MapTable, map_line, shape_text, text_lines

if TYPE_CHECKING:
    from hlo.modules.module import Instruction
    from indexing.maps.answers import Answer


def tables_of(answer: Answer) -> Iterator[MapTable]:
    """Yield the table of an answer; from an operand, a table for each output."""
    instruction = answer.instruction
    shapes: list[AnyShape] = [shape for _, shape in leaves(instruction.shape)]
    shapes = shapes or [instruction.shape]
    if answer.direction != "input-to-output":
        numbers = _numbers(answer)
        rows = [
            row
            for k, operand in enumerate(answer.operands)
            for row in operand_rows(numbers[k], operand, answer, k)
            or [_unread_row(answer, k, numbers[k])]
        ]
        outputs: Sequence[tuple[int, list[MapRow]]] = [(answer.domain_id, rows)]
    else:
        number = answer.domain_id
        operand = instruction.operands[number]
        outputs = [
            (
                k,
                operand_rows(number, operand, answer, k)
                or [MapRow(number, operand.name, operand.shape)],
            )
            for k in range(len(answer.operands))
        ]
    for output, listed in outputs:
        yield MapTable(
            file=instruction.module.filename,
            computation=instruction.computation.name,
            instruction=instruction.name,
            opcode=instruction.opcode,
            direction=answer.direction,
            output=output,
            outputs=len(shapes),
            shape=shapes[min(output, len(shapes) - 1)],
            rows=tuple(listed),
        )


def _unread_row(answer: Answer, k: int, number: int) -> MapRow:
    """Return the row of an operand, or of an output of a root, without maps."""
    operand = answer.operands[k]
    path, shape = None, operand.shape
    if answer.direction == "output-to-root" and isinstance(shape, TupleShape):
        path, shape = leaves(shape)[k]
    return MapRow(number, operand.name, shape, path)


def _numbers(answer: Answer) -> list[int]:
    """The number of each operand, or of each parameter."""
    if answer.operands == answer.instruction.operands:
        return list(range(len(answer.operands)))
    parameters: dict[Instruction, int] = {
        p: k for k, p in enumerate(answer.instruction.computation.parameters)
    }
    return [parameters.get(operand, k) for k, operand in enumerate(answer.operands)]


def answer_text(answer: Answer) -> str:
    """Return the text that ``hlo-indexing maps`` prints for an answer, one record a line."""
    return "\n".join([line for table in tables_of(answer) for line in text_lines(table)])


COLUMNS = (
    "output",
    "operand",
    "name",
    "shape",
    "path",
    "map",
    "grade",
    "unknown",
    "reasons",
    "control",
)
"""The columns of data frames."""


def records_of(answer: Answer) -> Iterator[dict[str, Any]]:
    """Yield a record with `COLUMNS` for each map, each unknown operand and each unread operand."""
    for table in tables_of(answer):
        for row in table.rows:
            values = (
                table.output,
                row.operand,
                row.name,
                shape_text(row.shape),
                row.path,
                None if row.map is None else map_line(row.map),
                None if row.unknown is not None else "exact" if row.map is None else row.map.grade,
                row.unknown,
                "; ".join(map(str, row.reasons)) or None,
                row.control,
            )
            yield dict(zip(COLUMNS, values, strict=True))


def data_frame(answer: Answer) -> Any:
    """Return an answer as a data frame of pandas; see `Answer.to_dataframe`."""
    try:
        import pandas
    except ImportError as error:
        message = "to_dataframe needs the package pandas: write pip install pandas"
        raise ImportError(message, name="pandas") from error
    return pandas.DataFrame(records_of(answer), columns=list(COLUMNS))
