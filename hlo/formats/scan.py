"""Parser of the computation bodies that XLA prints: one pattern per line.

XLA prints an instruction on one line, without comments, nested instructions or shapes of operands.
A body of such lines is *regular*: one pattern per line, and tables of the shapes and attributes
already parsed, prove that `BodyReader.instructions` accepts it. The same pattern and tables make
its instructions, at once or on first use. `BodyReader` parses all other bodies, and so all with an
error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from hlo.formats.asynchronous import SUFFIXES
from hlo.formats.body import BodyReader
from hlo.modules.deferred import DeferredBody
from hlo.modules.forms import METADATA, InstructionForm, Shapes, Values
from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import AnyShape, find_shape
from hlo.text.lexer import MAX_DIGITS, NAME, check_numbers
from hlo.text.source import HloError, Source
from hlo.text.syntax import CALLEE_ATTRIBUTES, AttributeText, read_value

_NOTHING: Final[Mapping[str, AttributeText]] = MappingProxyType({})
_KEYWORDS: Final = "false|inf|nan|true"  # literals, also after a value
_NAME: Final = rf"(?!(?:{_KEYWORDS}|ROOT)\b){NAME}"
_QUOTED: Final = r'"(?>[^"\\]++|\\.)*+"'
_INDEX: Final = r"/\*index=\d++\*/"  # XLA numbers every fifth element of a list


def _nested_pattern(depth: int) -> str:
    """Return a pattern of text whose brackets are nested at most `depth` deep."""
    brackets = ""
    if depth:
        inner = _nested_pattern(depth - 1)
        brackets = rf"|\{{{inner}\}}|\[{inner}\]|\({inner}\)"
    plain = r"[^\[\](){}\"'/]*+"
    return rf"{plain}(?>(?:{_QUOTED}|{_INDEX}{brackets}){plain})*+"


def _value(depth: int) -> str:
    """Return a pattern of attribute values; `_VALUE` of `hlo.text.syntax` has more."""
    inner = _nested_pattern(depth)
    return rf"(?>[^\s,{{}}()\[\]\"'/]++|{_QUOTED}|\{{{inner}\}}|\[{inner}\])++"


_LITERAL: Final = rf"(?:{_KEYWORDS})(?=\))|[-\d?][^()\[\]{{}}\"'/\n]*+|\{{{_nested_pattern(1)}\}}"
_LINE: Final = re.compile(
    rf"\s*+(?>(ROOT ))?+%?({_NAME}) = "
    rf"((?:[a-z]\w*+\[[\d,]*+\](?>\{{[\w,:()]*+\}})?+)|\({_nested_pattern(2)}\)) "
    rf"({NAME})\((?>({_LITERAL})|(%?{NAME}(?>, (?>{_INDEX})?+%?{NAME})*+))?+\)"
    rf"((?>, (?!metadata=|backend_config=){_NAME}={_value(2)})*+)"
    rf"(?>, metadata=(\{{{_nested_pattern(0)}\}}))?+(?>(, backend_config=))?+",
    re.ASCII,
)
_BESIDE: Final = re.compile(_INDEX, re.ASCII)
_CLOSED: Final = re.compile(r"\s*+\}", re.ASCII)
_CONFIG: Final = "backend_config"
_WORD_VALUE: Final = re.compile(rf", ({NAME})=([\w.%\-]++)(?=,|$)", re.ASCII)
_CALLEES: Final = re.compile(rf"%?{_NAME}|\{{%?{_NAME}(?>, ?%?{_NAME})*+\}}", re.ASCII)


class ScannedBody(NamedTuple):
    """A regular body.

    Attributes:
        names: the name of each instruction.
        opcodes: the opcode of each instruction.
        result: the shape of the root.
        end: the position after the closing brace.
    """

    names: tuple[str, ...]
    opcodes: tuple[str, ...]
    result: AnyShape
    end: int


class _MadeBody(NamedTuple):
    """The instructions of a body, its root, and the position after the last one."""

    instructions: tuple[Instruction, ...]
    root: Instruction
    end: int


class _Attributes(NamedTuple):
    """Accepted attributes of an instruction, without metadata and ``backend_config``.

    Attributes:
        texts: the name and the value of each, and the start and end of the value in their text.
        called: the computations that they call.
    """

    texts: tuple[tuple[str, str, int, int], ...] = ()
    called: tuple[Computation, ...] = ()


_FormText: TypeAlias = tuple[str, str, str | None, str, str | None]
"""The text of a form: its shape, opcode, literal, attributes and ``backend_config``."""


class BodyScanner(BodyReader):
    """Parser of regular bodies, which can leave their instructions for later.

    The tables are of parts of lines that the parser accepts; `is_accepted` if the text is valid.
    """

    def __init__(self, source: Source, is_accepted: bool) -> None:
        super().__init__(source)
        self.is_accepted = is_accepted
        self.accepted_shapes: dict[str, AnyShape] = {}
        self.accepted_opcodes: dict[str, str] = {}
        self.accepted_attributes = {"": _Attributes()}
        self.last_forms: dict[_FormText, _LineForm] = {}  # of each text, the last one in use
        # others; the shapes of many operands are slow to hash
        self.other_forms: dict[tuple[_FormText, Shapes], _LineForm] = {}

    def scan_body(self, position: int) -> ScannedBody | None:
        """Return the body with its first instruction at `position`; None if it is not regular."""
        try:
            return self._scan_lines(position)
        except HloError:  # raised again when the body is parsed
            return None

    def _scan_lines(self, position: int) -> ScannedBody | None:
        shapes, known_opcodes = self.accepted_shapes, self.accepted_opcodes
        known_attributes = self.accepted_attributes
        names: dict[str, None] = {}
        opcodes: list[str] = []
        root = ""
        while line := _LINE.match(self.text, position):
            mark, name, shape, opcode, literal, operands, attributes, _, config = line.groups()
            position = read_value(self.source, line.end()) if config else line.end()
            if (mark and root) or not _fits(name, operands, names):
                return None
            is_known = (
                shape in shapes and opcode in known_opcodes and attributes in known_attributes
            )
            if (literal or not is_known) and not self._accepts(line, position):
                return None
            names[name] = None
            opcodes.append(known_opcodes[opcode])
            if mark:
                root = shape
        end = _CLOSED.match(self.text, position)
        if not end or not names:
            return None
        result = shapes[root or shape]
        return ScannedBody(tuple(names), tuple(opcodes), result, end.end())

    def defer(
        self,
        computation: Computation,
        place: tuple[int, int],
        count: int,
        names: str,
        read_opcodes: Callable[[], tuple[str, ...]],
    ) -> None:
        """Leave the instructions of a regular body for later.

        `place` is the position of the first one, and that after the closing brace; see also
        `DeferredBody`.
        """
        position, end = place

        def make() -> None:
            made = self._make_body(computation, position)
            assert made is not None  # `scan_body` accepts the body
            assert len(made.instructions) == count
            computation.complete(made.instructions, made.root)

        computation.defer(DeferredBody(count, names, read_opcodes, make, self.result.lock))
        self._finish(computation, end)

    def regular(self, computation: Computation, position: int) -> int | None:
        """Parse instructions up to the closing brace; return None if the body is not regular."""
        try:
            made = self._make_body(computation, position)
        except HloError:  # raised again when the body is parsed
            return None
        closed = None if made is None else _CLOSED.match(self.text, made.end)
        if made is None or closed is None:
            return None
        computation.complete(made.instructions, made.root)
        self._finish(computation, closed.end())
        return closed.end()

    def _finish(self, computation: Computation, end: int) -> None:
        computation.end = end
        self.computations[computation.name] = computation

    def _make_body(self, computation: Computation, position: int) -> _MadeBody | None:
        """Return the instructions of a regular body, the first one at `position`.

        None if the body is not regular.
        """
        source, text, forms = self.source, self.text, self.last_forms
        made: dict[str, Instruction] = {}
        root: Instruction | None = None
        while line := _LINE.match(text, position):
            mark, name, shape, opcode, literal, names, listed, _, config = line.groups()
            position = line.end()
            if name in made or (mark and root):
                return None
            if config:
                position = read_value(source, position)
                config = text[line.end() : position]
            operands = _operands(names, made)
            if operands is None:
                return None
            operand_shapes = tuple([operand.declared_shape for operand in operands])
            key = shape, opcode, literal, listed, config
            form = forms.get(key)
            if form is None or form.operand_shapes != operand_shapes:
                form = self._form(key, operand_shapes, line, position)
                if form is None:
                    return None
            made[name] = last = Instruction(
                name,
                form.opcode,
                form.shape,
                computation=computation,
                index=len(made),
                start=line.start(2),
                end=position,
                operands=operands,
                form=form,
                values=None,
                called_computations=form.called_computations,
            )
            if mark:
                root = last
        return _MadeBody(tuple(made.values()), root or last, position) if made else None

    def _form(
        self, text: _FormText, operand_shapes: Shapes, line: re.Match[str], end: int
    ) -> _LineForm | None:
        """Return the form of `line`, an instruction up to `end`; None if it may be invalid.

        Raises:
            HloError: it does not accept them.
        """
        form = last = self.last_forms.get(text)
        if last is not None:
            self.other_forms[text, last.operand_shapes] = last
            form = self.other_forms.get((text, operand_shapes))
        elif not self._accepts(line, end):
            return None
        if form is None:
            shape, opcode, literal, listed, config = text
            literal, config = self._intern(literal), self._intern(config)
            text = shape, opcode, literal, listed, config
            form = _LineForm(self, text, operand_shapes)
        self.last_forms[text] = form
        return form

    def _intern(self, text: str | None) -> str | None:
        return None if text is None else self.words.setdefault(text, text)

    def _accepts(self, line: re.Match[str], end: int) -> bool:
        """Return True if the parser accepts the literal, shape, opcode and attributes of a line.

        Raises:
            HloError: it does not accept them.
        """
        if line[5] and len(line[5]) > MAX_DIGITS:
            check_numbers(self.source, *line.span(5))
        return (
            (line[3] in self.accepted_shapes or self._accepts_shape(line))
            and (line[4] in self.accepted_opcodes or self._accepts_opcode(line[4]))
            and (line[7] in self.accepted_attributes or self._accepts_attributes(line, end))
        )

    def _accepts_shape(self, line: re.Match[str]) -> bool:
        shape, end = find_shape(self.source, line.start(3))
        if shape is None or end != line.end(3):
            return False
        self.accepted_shapes[line[3]] = shape
        return True

    def _accepts_opcode(self, opcode: str) -> bool:
        if opcode.endswith(SUFFIXES):
            return False
        self.accepted_opcodes[opcode] = self.words.setdefault(opcode, opcode)
        return True

    def _accepts_attributes(self, line: re.Match[str], end: int) -> bool:
        if self.is_accepted and self._reads_words(line[7]):
            return True
        attributes, _, parsed_end = self.attributes(line.start(7), None)
        if end != parsed_end or "control-predecessors" in attributes:
            return False
        first, last = line.span(7)
        texts: list[tuple[str, str, int, int]] = []
        called: tuple[Computation, ...] = ()
        for name, value in attributes.items():
            text = value.text
            if name in CALLEE_ATTRIBUTES:
                names = re.findall(NAME, text, re.ASCII)
                if not _CALLEES.fullmatch(text) or not self.computations.keys() >= set(names):
                    return False
                resolved = self.callees(value.start, name)
                assert resolved is not None
                text, called = resolved[0], called + resolved[1]
            if value.end <= last:  # not metadata, and not backend_config
                texts.append((name, text, value.start - first, value.end - first))
        self.accepted_attributes[line[7]] = _Attributes(tuple(texts), called)
        return True

    def _reads_words(self, listed: str) -> bool:
        """Return True if the values of accepted attributes are words; add them to the table."""
        texts: list[tuple[str, str, int, int]] = []
        called: tuple[Computation, ...] = ()
        position = 0
        while word := _WORD_VALUE.match(listed, position):
            name, text = word.groups()
            if name in CALLEE_ATTRIBUTES:
                callee = self.computations[text.removeprefix("%")]
                text, called = callee.name, (*called, callee)
            texts.append((self.words.setdefault(name, name), text, word.start(2), word.end()))
            position = word.end()
        if position == len(listed):
            self.accepted_attributes[listed] = _Attributes(tuple(texts), called)
        return position == len(listed)


class _LineForm(InstructionForm):
    """The form of lines of regular bodies.

    Attributes:
        called_computations: the computations that the attributes name.
    """

    __slots__ = ("_known", "_scanner", "called_computations")

    def __init__(
        self,
        scanner: BodyScanner,
        text: _FormText,
        operand_shapes: Shapes,
    ) -> None:
        shape, opcode, literal, listed, config = text
        known = scanner.accepted_attributes[listed]
        attributes = {name: value for name, value, _, _ in known.texts}
        if config is not None:
            attributes[_CONFIG] = config
        super().__init__(
            scanner.accepted_opcodes[opcode],
            scanner.accepted_shapes[shape],
            literal,
            attributes,
            operand_shapes,
        )
        self._scanner = scanner
        self._known = known
        self.called_computations = known.called

    def values(self, start: int) -> Values:
        scanner, source = self._scanner, self._scanner.source
        line = _LINE.match(source.text, start)
        assert line is not None  # `BodyScanner` matched it
        origin, end = line.start(7), line.end()
        attributes = {
            name: AttributeText(text, source, origin + first, origin + last)
            for name, text, first, last in self._known.texts
        }
        if line[8]:
            attributes[METADATA] = scanner.attribute_text(*line.span(8))
        if line[9]:
            attributes[_CONFIG] = scanner.attribute_text(end, read_value(source, end))
        literal = None
        if self.literal is not None:
            literal = scanner.attribute_text(*line.span(5))
        return literal, attributes or _NOTHING


def _fits(name: str, operands: str | None, names: Mapping[str, None]) -> bool:
    """Return True if `name` is not among `names`, and all `operands` are."""
    return name not in names and (not operands or names.keys() >= set(_names(operands)))


def _operands(text: str | None, made: Mapping[str, Instruction]) -> tuple[Instruction, ...] | None:
    """The instructions with the names in `text`; None if one of them is not made."""
    if text is None:
        return ()
    try:
        return tuple([made[name] for name in _names(text)])
    except KeyError:
        return None


def _names(operands: str) -> list[str]:
    """The names, without what XLA prints beside them."""
    if "/" in operands:
        operands = _BESIDE.sub("", operands)
    return operands.replace("%", "").split(", ")
