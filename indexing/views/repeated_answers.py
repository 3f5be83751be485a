"""Answers that differ in names only, printed from the text of the first.

XLA prints the same op on arrays of the same shapes again and again: the 65,757 instructions of a
training step of GPT-2 have 3,061 forms.  The text of an answer that follows from the form of its
instruction is made once for the form, with places for the names.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from json.encoder import encode_basestring_ascii
from typing import Final

from hlo.memo import Memo
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.dataflow.answering import is_shared
from indexing.dataflow.queries import walk_of
from indexing.dataflow.walk import Walk
from indexing.ops.structured_ops import parameter_numbers
from indexing.views.formats import lines
from indexing.views.map_query import Query
from indexing.views.map_tables import MapTable

FORMATS: Final = ("text", "json")
"""The formats whose lines have the name of the instruction."""

_MARK: Final = "@"  # in no other part of a line: shapes, opcodes and maps do not have it


@dataclass(frozen=True, slots=True, eq=False)
class RepeatedAnswer:
    """The answer for the instructions of one form.

    Attributes:
        text: its lines, with ``%s`` for each name.
        names: the names in it: 0 is the file, 1 the computation, 2 the instruction, and 3 + k is
            operand k.
        grades: the grade of each map.
    """

    text: str
    names: tuple[int, ...]
    grades: tuple[str, ...]


class RepeatedAnswers:
    """The answers to one query, by the form of the instruction."""

    def __init__(self, query: Query, notation: str) -> None:
        self._walk = walk_of(**query.options)
        self._notation = notation
        self._is_json = notation == "json"
        self._known = Memo[Hashable, RepeatedAnswer](1 << 12)

    @staticmethod
    def can_answer(query: Query, notation: str) -> bool:
        """Return True if the answers to a query depend on nothing but the instruction."""
        return notation in FORMATS and query == Query(exact=query.exact, simplify=query.simplify)

    def find(self, instruction: Instruction) -> RepeatedAnswer | None:
        """Return the answer for the form of an instruction, if it is known."""
        return self._known.get(self._key(instruction))

    def _key(self, instruction: Instruction) -> Hashable:
        form = instruction.form
        return (form, _parameters(instruction)) if self._is_json else form

    def text(self, answer: RepeatedAnswer, instruction: Instruction) -> str:
        """Return the lines of the answer for an instruction."""
        computation = instruction.computation
        names = [computation.module.filename, computation.name, instruction.name]
        names += [operand.name for operand in instruction.operands]
        if self._is_json:
            names = [encode_basestring_ascii(name)[1:-1] for name in names]
        return answer.text % tuple([names[k] for k in answer.names])

    def learn(self, instruction: Instruction, table: MapTable) -> None:
        """Keep the answer for an instruction if all others of its form have the same."""
        if is_of_form(self._walk, instruction) and (answer := self._answer(table)) is not None:
            self._known.keep(self._key(instruction), answer)

    def _answer(self, table: MapTable) -> RepeatedAnswer | None:
        """Return the answer of a table; None if its names cannot be told from the rest."""
        marked = replace(
            table,
            file=_mark(0),
            computation=_mark(1),
            instruction=_mark(2),
            rows=tuple([replace(row, name=_mark(3 + row.operand)) for row in table.rows]),
        )
        printed = list(lines([marked], self._notation))
        parts = "\n".join(printed).split(_MARK)
        names = tuple(map(int, parts[1::2])) if all(map(str.isdecimal, parts[1::2])) else ()
        heads = len(printed) if self._is_json else 1  # the lines that have all of the first names
        if len(names) != 3 * heads + len(table.rows):
            return None
        text = "%s".join([part.replace("%", "%%") for part in parts[::2]])
        grades = tuple([row.map.grade for row in table.rows if row.map is not None])
        return RepeatedAnswer(text, names, grades)


def is_of_form(walk: Walk, instruction: Instruction) -> bool:
    """Return True if the maps to the operands are known to be those of all others of the form."""
    form = instruction.form
    if form is None or not isinstance(form.shape, Shape) or None in form.operand_shapes:
        return False
    return not instruction.called_computations and is_shared(walk, instruction)


def _mark(number: int) -> str:
    return f"{_MARK}{number}{_MARK}"


def _parameters(instruction: Instruction) -> tuple[int | None, ...]:
    """Return the number of each operand that is a parameter, which JSON has."""
    operands = instruction.operands
    if not any(operand.opcode == "parameter" for operand in operands):
        return ()
    numbers = parameter_numbers(instruction.computation)
    return tuple([numbers.get(operand) for operand in operands])
