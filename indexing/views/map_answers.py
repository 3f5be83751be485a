"""Tables of the answers to a query, in the order in which `hlo-indexing maps` prints them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from hlo.memo import Memo
from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import AnyShape, TupleShape, leaves
from hlo.text.source import HloError
from indexing.dataflow import answering
from indexing.dataflow.queries import walk_of
from indexing.dataflow.valued_maps import (
    evaluation_of,
    integer_parameters,
    parameter_value,
    with_parameter_names,
    with_values,
)
from indexing.dataflow.walk import Walk
from indexing.maps.answers import Answer, Direction
from indexing.maps.arrays import ArrayRef, leaf_at
from indexing.maps.explanation import steps_of
from indexing.ops.structured_ops import parameter_numbers
from indexing.views.map_query import GivenValues, Query
from indexing.views.map_tables import MapRow, MapTable
from indexing.views.source_lines import lines_before, lines_behind, links_between

if TYPE_CHECKING:
    from indexing.equivalence.linking import How

MAX_SHARED_ROWS: Final = 1 << 14
"""Limit on the operands whose rows the tables of a sweep share."""


def answer(instruction: Instruction, query: Query, file: str) -> Iterator[MapTable]:
    """Yield a table for each requested direction and output of `instruction`."""
    shapes = [leaf for _, leaf in leaves(instruction.shape)]
    outputs = range(len(shapes))
    if query.output_id is not None:
        outputs = range(query.output_id, min(query.output_id + 1, len(shapes)))
    walk = _walk_of(query)
    for direction in query.directions:
        rows_of = _backward_rows if direction == "output-to-input" else _forward_rows
        answered = rows_of(walk, instruction, query, outputs)
        for output, rows in _complete(answered, query):
            yield _table(
                instruction, direction, output, shapes, rows, file, query, answered.is_decided
            )


def _walk_of(query: Query) -> Walk:
    """Return the walk that answers a query; most questions have that of the last one."""
    key = query.exact, query.simplify, query.verify, query.assume
    return _WALKS.get(key) or _WALKS.keep(key, walk_of(**query.options))


_WALKS: Final = Memo[Hashable, Walk](8)


def answers_to_parameters(
    computation: Computation, selected: Collection[Instruction], query: Query, file: str
) -> Iterator[MapTable]:
    """Yield the tables of several instructions of a computation, in one sweep.

    Parameters that are not read are omitted: there may be hundreds for each instruction.
    """
    rows_of = operand_rows if query.explain else shared_rows()
    values = given_values(computation, query.values)
    last, shapes = None, []
    number = {parameter: k for k, parameter in enumerate(computation.parameters)}
    for result in answering.all_to_parameters(walk_of(**query.options), computation):
        if result.instruction in selected and query.output_id in (None, result.domain_id):
            if result.instruction is not last:
                last = result.instruction
                shapes = [leaf for _, leaf in leaves(last.shape)]
            is_decided = is_decided_by(query.values, result)
            if values:
                result = with_values(result, values)
            rows: list[MapRow] = []
            for k, parameter in enumerate(result.operands):
                if query.operand is None or query.reads(number[parameter], parameter):
                    rows += rows_of(number[parameter], parameter, result, k)
            direction, output = result.direction, result.domain_id
            yield _table(last, direction, output, shapes, rows, file, query, is_decided)


class _Answered(NamedTuple):
    """The operands or parameters, and the rows of the maps to them.

    Attributes:
        operands: the operands or parameters.
        rows: for each output, those of each operand.
        is_decided: given values of parameters decide a runtime value of a map.
    """

    operands: Sequence[Instruction]
    rows: Mapping[int, Mapping[int, list[MapRow]]]
    is_decided: bool


def _complete(answered: _Answered, query: Query) -> Iterator[tuple[int, list[MapRow]]]:
    """Yield the rows of each output, with a row for each operand that no output reads.

    An operand read by other outputs only gets no row: a tuple of n elements would take n² lines.
    """
    operands, answers, _ = answered
    requested = query.requested(operands)
    if len(answers) == 1:
        ((output, own),) = answers.items()
        if len(own) == len(requested):  # each operand, in order
            yield output, [row for rows in own.values() for row in rows]
            return
        read: Collection[int] = own
    else:
        read = set().union(*answers.values())
    unread = {}
    if len(read) < len(requested):
        unread = {k: _unread_row(k, operands[k]) for k in requested if k not in read}
    for output, own in answers.items():
        rows = {**unread, **own} if unread else own
        if not rows:
            rows = {k: _unread_row(k, operands[k]) for k in requested}
        yield output, [row for k in sorted(rows) for row in rows[k]]


def _unread_row(number: int, operand: Instruction) -> list[MapRow]:
    return [MapRow(number, operand.name, operand.shape, parameter=parameter_number(operand))]


def _table(
    instruction: Instruction,
    direction: Direction,
    output: int,
    shapes: Sequence[AnyShape],
    rows: Iterable[MapRow],
    file: str,
    query: Query,
    is_decided: bool,
) -> MapTable:
    return MapTable(
        file=file,
        computation=instruction.computation.name,
        instruction=instruction.name,
        opcode=instruction.opcode,
        direction=direction,
        output=output,
        outputs=len(shapes),
        shape=shapes[output],
        rows=tuple(rows),
        source=instruction.source if query.source else None,
        lines=(
            lines_behind(instruction, output, to_parameters=query.to_parameters)
            if query.source
            else {}
        ),
        lines_before=_lines_before(instruction, output, query),
        to_parameters=query.to_parameters and direction == "output-to-input",
        is_decided=is_decided,
    )


def _lines_before(
    instruction: Instruction, output: int, query: Query
) -> Mapping[How, Mapping[str, tuple[int, ...]]] | None:
    if not query.source or query.before is None:
        return None
    links = links_between(query.before, instruction.module)
    return lines_before(instruction, links, output, to_parameters=query.to_parameters)


def _backward_rows(
    walk: Walk, instruction: Instruction, query: Query, outputs: Sequence[int]
) -> _Answered:
    """Return the rows of the maps to the operands or parameters."""
    if query.to_parameters:
        results = answering.outputs_to_parameters(walk, instruction, outputs)
    else:
        results = (answering.to_operands(walk, instruction, output) for output in outputs)
    operands: Sequence[Instruction] = ()
    answers: dict[int, dict[int, list[MapRow]]] = {}
    is_decided = False
    for output, result in zip(outputs, results, strict=True):
        if query.values:
            is_decided |= is_decided_by(query.values, result)
            result = with_given_values(result, query.values)
        operands = result.operands
        answers[output] = rows_by_operand = {}
        for k in query.requested(operands):
            if rows := operand_rows(k, operands[k], result, k):
                rows_by_operand[k] = rows
    return _Answered(operands, answers, is_decided)


def _forward_rows(
    walk: Walk, instruction: Instruction, query: Query, outputs: Sequence[int]
) -> _Answered:
    """Return the rows of the maps from the operands."""
    operands = instruction.operands
    is_decided = False
    answers: dict[int, dict[int, list[MapRow]]] = {output: {} for output in outputs}
    for k in query.requested(operands):
        result = answering.from_operand(walk, instruction, k)
        if query.values:
            is_decided |= is_decided_by(query.values, result)
            result = with_given_values(result, query.values)
        for output in outputs:
            if rows := operand_rows(k, operands[k], result, output):
                answers[output][k] = rows
    return _Answered(operands, answers, is_decided)


def given_values(computation: Computation, values: GivenValues) -> dict[str, np.ndarray[Any, Any]]:
    """Return the values of the integer parameters that a computation has.

    Raises:
        HloError: a value does not fit its parameter.
    """
    given: dict[str, np.ndarray[Any, Any]] = {}
    if values:
        parameters = integer_parameters(computation)
        own = with_parameter_names(computation, {name: name for name, _ in values})
        named = {given: name for name, given in own.items()}
        for written, value in values:
            name = named.get(written, written)
            if (parameter := parameters.get(name)) is not None:
                try:
                    given[name] = parameter_value(parameter, value)
                except ValueError as error:
                    label = f"the value of --set {written} does not fit"
                    raise HloError(str(error), parameter.span, "inputs", label) from error
    return given


def with_given_values(result: Answer, values: GivenValues) -> Answer:
    """Return an answer with values of integer parameters."""
    given = given_values(result.instruction.computation, values)
    return with_values(result, given) if given else result


def is_decided_by(values: GivenValues, result: Answer) -> bool:
    """Return True if values of integer parameters decide a runtime value of the maps."""
    computation = result.instruction.computation
    if not (given := given_values(computation, values)):
        return False
    evaluation = evaluation_of(computation, given)
    sources = {rt.array for maps in result.maps for m in maps for rt in m.runtime}
    return any(
        evaluation.value(array) is not None
        for array in sources
        if isinstance(array, ArrayRef) and not array.loops
    )


def operand_rows(number: int, operand: Instruction, result: Answer, position: int) -> list[MapRow]:
    """Return the rows of `operand`, at `position` of the answer; none if nothing is read."""
    maps, unknown = result.maps[position], result.unknown[position]
    if not maps and unknown is None:
        return []
    name, shape, parameter = operand.name, operand.shape, parameter_number(operand)
    rows = []
    paths, reasons = result.paths[position], result.reasons[position]
    control = result.control[position]
    is_tuple = isinstance(shape, TupleShape)
    for each, path, why, is_control in zip(maps, paths, reasons, control, strict=True):
        leaf, inside = (leaf_at(shape, path), path) if is_tuple else (shape, None)
        steps = steps_of(each)
        row = MapRow(number, name, leaf, inside, each, None, steps, parameter, why, is_control)
        row.assumptions = each.assumptions
        rows.append(row)
    if unknown is not None:
        rows.append(MapRow(number, name, shape, unknown=unknown.reason, parameter=parameter))
    return rows


RowsOf = Callable[[int, Instruction, Answer, int], list[MapRow]]


def shared_rows() -> RowsOf:
    """Return `operand_rows` for the answers of a sweep, in which parameters have few map sets."""
    known: Memo[Hashable, list[MapRow]] = Memo(MAX_SHARED_ROWS)

    def rows_of(number: int, operand: Instruction, result: Answer, position: int) -> list[MapRow]:
        key = (
            *(operand, result.maps[position], result.paths[position], result.unknown[position]),
            *(result.reasons[position], result.control[position]),
        )
        rows = known.get(key)
        if rows is None:
            rows = known.keep(key, operand_rows(number, operand, result, position))
        return rows

    return rows_of


def parameter_number(operand: Instruction) -> int | None:
    """Return the number of a parameter; None for other instructions."""
    if operand.opcode != "parameter":
        return None
    return parameter_numbers(operand.computation).get(operand)
