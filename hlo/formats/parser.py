"""Parser of HLO text to modules, independent of the registered ops.

A recursive descent without a separate lexer: each terminal is one pattern, matched at a position.
Names are resolved during parsing, since operands and computations are defined before their uses.

The grammar is that of XLA's parser (``xla/hlo/parser/hlo_parser.cc``) with two extensions: several
instructions without an enclosing computation, and attributes in any order and of any name.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType

from hlo.arguments import checked
from hlo.formats.faults import (
    no_computation,
    no_module_name,
    no_text,
    second_entry,
    wrong_result_shape,
)
from hlo.formats.recognition import other_format
from hlo.formats.scan import BodyScanner
from hlo.modules.header import check as check_header
from hlo.modules.module import Computation, Module
from hlo.shapes.shape import AnyShape, read_shape
from hlo.text.lexer import (
    END,
    NAME,
    SPACE,
    STRING,
    balanced,
    expected,
    integer,
    skip,
    token,
    token_span,
)
from hlo.text.names import ByName
from hlo.text.source import HloError, Source
from hlo.text.syntax import AttributeText

_HEADER = token(rf"HloModule\b(?:{SPACE}(?!ENTRY\b)%?({NAME}):?+)?+")
_TABLE = token(r"(FileNames|FunctionNames|FileLocations|StackFrames)\b(?!\s*[({=])")
_LINE = token(rf"(\d++){SPACE}(?:({STRING})|(?=\{{))")
_COMPUTATION = token(rf"(ENTRY\b{SPACE})?+%?({NAME}){SPACE}(?=[({{])")
_ARROW = token("->")
_BODY = token(r"\{")


@checked
def parse(text: str, filename: str = "<string>", *, lazy: bool = False) -> Module:
    """Parse the text of one module.

    Args:
        text: HLO text: a module, computations, or instructions.
        filename: name of the file in errors.
        lazy: check the text of most computations, and make their instructions on first use.
    Raises:
        HloError: a syntax error, an undefined or duplicate name, or a text in another format.

    >>> module = parse("ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }")
    >>> module.entry.root.opcode, [operand.name for operand in module.entry.root.operands]
    ('negate', ['p'])

    A single instruction is a valid text. Its undefined operands become parameters:

    >>> parse("f32[3,2] transpose(f32[2,3] p), dimensions={1,0}").entry.parameters
    (<parameter 'p' of 'entry'>,)

    Source: XLA ``xla/hlo/parser/hlo_parser.cc``.
    """
    source = Source(text, filename)
    try:
        with _collector_paused():
            return _ModuleReader(source, lazy).module()
    except HloError:
        if error := other_format(source):
            raise error from None
        raise


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Disable cyclic garbage collection, which would repeatedly traverse the growing module."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@checked
def parse_all(text: str, filename: str = "<string>", *, lazy: bool = False) -> list[Module]:
    """Parse the modules of a text that separates them by lines ``// -----``; see `parse`.

    Lines in errors and spans count from the beginning of the whole text.

    Raises:
        HloError: as `parse`, for the first invalid module.
    Source: MLIR ``mlir-opt``, option ``-split-input-file``, for the separator.

    >>> [module.name for module in parse_all("HloModule a ENTRY e { p = f32[] parameter(0) }"
    ...     "\\n// -----\\nHloModule b ENTRY e { p = f32[] parameter(0) }")]
    ['a', 'b']
    """
    return [parse(part, filename, lazy=lazy) for part in _parts(text)]


def _parts(text: str) -> Iterator[str]:
    """Yield each part between ``// -----`` lines, padded by line breaks to keep line numbers."""
    lines_before = 0
    for part in re.split(r"^[ \t]*// -----[^\n]*", text, flags=re.MULTILINE):
        if not END.match(part) or part == text:
            yield "\n" * lines_before + part
        lines_before += part.count("\n")


class _ModuleReader(BodyScanner):
    """Parser of one module."""

    def __init__(self, source: Source, lazy: bool) -> None:
        super().__init__(source)
        self.is_lazy = lazy

    def module(self) -> Module:
        result, position = self.result, 0
        if header := _HEADER.match(self.text):
            if not header[1]:
                raise no_module_name(self.source, header.end())
            result.name = header[1]
            result.attributes, _, position = self.attributes(header.end(), None)
            check_header(result.attributes)
        result.tables, position = self.tables(position)
        if header or _COMPUTATION.match(self.text, position):
            result.entry = self.all_computations(position)
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
                position = line.end() if line[2] else balanced(self.source, start)
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

    def computation(self, head: re.Match[str]) -> tuple[Computation, int]:
        computation = self.new_computation(head[2], head.start(2))
        position, result_shape, result_at = head.end(), None, 0
        if self.text.startswith("(", position):
            position = balanced(self.source, position)
            arrow = _ARROW.match(self.text, position)
            if not arrow:
                raise expected("`->` and the shape of the result", self.source, position)
            result_at = arrow.end()
            result_shape, position = read_shape(self.source, result_at)
        body = _BODY.match(self.text, position)
        if not body:
            raise expected("`{` and the instructions of the computation", self.source, position)
        # most questions need the entry computation
        scanned = self.scanned(body.end()) if self.is_lazy and not head[1] else None
        if scanned and (result_shape is None or scanned.result.compatible(result_shape)):
            self.defer(computation, scanned, body.end())
            position = scanned.end
        else:
            position = self.instructions(computation, body.end())
            self.check_result(computation, result_shape, result_at)
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
