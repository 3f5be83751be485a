"""Parser of one module: its header, its tables, and its computations."""

from __future__ import annotations

import re
from types import MappingProxyType

from hlo.formats.faults import (
    no_computation,
    no_module_name,
    no_text,
    second_entry,
    wrong_result_shape,
)
from hlo.formats.outline import BodyPlace, ModuleOutline, OutlinedBody, WrongOutline
from hlo.formats.scan import BodyScanner
from hlo.modules.header import check as check_header
from hlo.modules.module import Computation, Module
from hlo.shapes.shape import AnyShape, read_shape
from hlo.text.lexer import (
    END,
    NAME,
    SPACE,
    STRING,
    end_of_bracket,
    integer,
    skip,
    syntax_error,
    token,
    token_span,
)
from hlo.text.names import ByName
from hlo.text.source import Source
from hlo.text.syntax import AttributeText

_HEADER = token(rf"HloModule\b(?>{SPACE}(?!ENTRY\b)%?({NAME}):?+)?+")
_TABLE = token(r"(FileNames|FunctionNames|FileLocations|StackFrames)\b(?!\s*[({=])")
_LINE = token(rf"(\d++){SPACE}(?:({STRING})|(?=\{{))")
_COMPUTATION = token(rf"(?>(ENTRY\b{SPACE}))?+%?({NAME}){SPACE}(?=[({{])")
_ARROW = token("->")
_BODY = token(r"\{")


class ModuleReader(BodyScanner):
    """Parser of one module.

    Args:
        lazy: leave the instructions of regular bodies for later, except those of ENTRY.
        outline: that of the text, if it is known; then the instructions of all regular bodies are
            left for later, and `module` raises `WrongOutline` if it is that of another text.
    """

    def __init__(self, source: Source, lazy: bool, outline: ModuleOutline | None = None) -> None:
        super().__init__(source, outline is not None)
        self.is_lazy = lazy
        self.known_outline = outline
        self.places: list[BodyPlace] = []  # of the computations so far

    def module(self) -> Module:
        result, position = self.result, 0
        if header := _HEADER.match(self.text):
            if not header[1]:
                raise no_module_name(self.source, header.end())
            result.name = header[1]
            result.attributes, _, position = self.attributes(header.end(), None)
            if self.known_outline is None:  # else it has been checked
                check_header(result.attributes)
        result.tables, position = self.tables(position)
        if header or _COMPUTATION.match(self.text, position):
            if self.known_outline is None:
                result.entry = self.all_computations(position)
            else:
                result.entry = self.outlined_computations(position, self.known_outline)
        else:
            result.entry = self.bare_instructions(position)
        result.name = result.name or f"module_{result.entry.name}"
        result.computations = MappingProxyType(ByName("computation", self.computations))
        return result

    def tables(self, position: int) -> tuple[dict[str, dict[int, AttributeText]], int]:
        tables: dict[str, dict[int, AttributeText]] = {}
        while table := _TABLE.match(self.text, position):
            lines = tables[table[1]] = {}
            position = table.end()
            while line := _LINE.match(self.text, position):
                start = line.start(2) if line[2] else line.end()
                position = line.end() if line[2] else end_of_bracket(self.source, start)
                number = integer(line[1], self.source.span(*line.span(1)))
                lines[number] = self.attribute_text(start, position)
        return tables, position

    def all_computations(self, position: int) -> Computation:
        entry: Computation | None = None
        while not END.match(self.text, position):
            head = _COMPUTATION.match(self.text, position)
            if not head:
                raise no_computation(self.source, position)
            if entry and head[1]:
                raise second_entry(self.source.span(*head.span(2)), entry)
            computation, position = self.computation(head)
            if head[1]:
                entry = computation
        if not self.computations:
            raise no_computation(self.source, position)
        return entry or list(self.computations.values())[-1]

    def outlined_computations(self, position: int, outline: ModuleOutline) -> Computation:
        """Read the computations of a text that was parsed before, and return the entry.

        Raises:
            WrongOutline: the outline is that of another text.
        """
        entry: Computation | None = None
        for body in outline.bodies:
            head = _COMPUTATION.match(self.text, position)
            if head is None:
                raise WrongOutline
            if body.start:
                computation, position = self.outlined(head, body, outline)
            else:
                computation, position = self.computation(head)
            if head[1]:
                entry = computation
        if not self.computations or not END.match(self.text, position):
            raise WrongOutline
        return entry or list(self.computations.values())[-1]

    def outlined(
        self, head: re.Match[str], body: OutlinedBody, outline: ModuleOutline
    ) -> tuple[Computation, int]:
        start, end, count, text = body.start, body.end, len(body.codes), self.text
        if not head.end() < start < end <= len(text) or text[start - 1] + text[end - 1] != "{}":
            raise WrongOutline
        computation = self.new_computation(head[2], head.start(2))
        self.defer(computation, (start, end), count, body.names, lambda: outline.opcodes_of(body))
        computation.attributes, _, position = self.attributes(end, None)
        return computation, position

    def computation(self, head: re.Match[str]) -> tuple[Computation, int]:
        computation = self.new_computation(head[2], head.start(2))
        position, result_shape, result_at = head.end(), None, 0
        if self.text.startswith("(", position):
            position = end_of_bracket(self.source, position)
            arrow = _ARROW.match(self.text, position)
            if not arrow:
                raise syntax_error("`->` and the shape of the result", self.source, position)
            result_at = arrow.end()
            result_shape, position = read_shape(self.source, result_at)
        body = _BODY.match(self.text, position)
        if not body:
            raise syntax_error("`{` and the instructions of the computation", self.source, position)
        # most questions need the entry computation
        scanned = self.scan_body(body.end()) if self.is_lazy and not head[1] else None
        if scanned and (result_shape is None or scanned.result.compatible(result_shape)):
            opcodes, place = scanned.opcodes, (body.end(), scanned.end)
            names = "\n".join(scanned.names)
            self.defer(computation, place, len(opcodes), names, lambda: opcodes)
            position = scanned.end
        else:
            end = self.regular(computation, body.end())
            position = self.instructions(computation, body.end()) if end is None else end
            self.check_result(computation, result_shape, result_at)
            place = (0, 0) if end is None else (body.end(), end)
        self.places.append(BodyPlace(computation, *place))
        computation.attributes, _, position = self.attributes(position, None)
        return computation, position

    def bare_instructions(self, position: int) -> Computation:
        if END.match(self.text, position):
            raise no_text(self.source)
        entry = self.new_computation("entry", skip(self.text, position))
        self.instructions(entry, position, is_bare=True)
        return entry

    def check_result(self, computation: Computation, shape: AnyShape | None, position: int) -> None:
        declared = computation.root.declared_shape
        if shape is not None and declared is not None and not declared.compatible(shape):
            raise wrong_result_shape(computation, shape, token_span(self.source, position))
