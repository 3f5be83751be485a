"""Check of computation bodies without making their instructions.

XLA prints an instruction on one line, without comments, nested instructions or shapes of operands.
A body of such lines is *regular*: one pattern per line, and tables of the shapes and attributes
already parsed, prove that `BodyReader.instructions` accepts it. The same pattern and tables make
its instructions on first use. All other bodies, and so all with an error, are parsed at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
_KEYWORDS: Final = frozenset({"true", "false", "inf", "nan"})  # literals, also after a value
_NAME: Final = rf"(?!(?:{'|'.join(sorted(_KEYWORDS))}|ROOT)\b){NAME}"
_QUOTED: Final = r'"(?:[^"\\]++|\\.)*+"'


def _nested(depth: int) -> str:
    """Return a pattern of text whose brackets are nested at most `depth` deep."""
    brackets = ""
    if depth:
        inner = _nested(depth - 1)
        brackets = rf"|\{{{inner}\}}|\[{inner}\]|\({inner}\)"
    return rf"(?:[^\[\](){{}}\"'/]++|{_QUOTED}{brackets})*+"


def _value(depth: int) -> str:
    """Return a pattern of attribute values; `_VALUE` of `hlo.text.syntax` has more."""
    inner = _nested(depth)
    return rf"(?:[^\s,{{}}()\[\]\"'/]++|{_QUOTED}|\{{{inner}\}}|\[{inner}\])++"


_LITERAL: Final = rf"[-\d?][^()\[\]{{}}\"'/\n]*+|\{{{_nested(1)}\}}"
_LINE: Final = re.compile(
    rf"\s*+(ROOT )?+%?({_NAME}) = "
    rf"((?:[a-z]\w*+\[[\d,]*+\](?:\{{[\w,:()]*+\}})?+)|\({_nested(2)}\)) "
    rf"({NAME})\((?:(%?{NAME}(?:, %?{NAME})*+)|({_LITERAL}))?+\)"
    rf"((?:, (?!metadata=|backend_config=){_NAME}={_value(1)})*+)"
    rf"(?:, metadata=(\{{{_nested(0)}\}}))?+(, backend_config=)?+",
    re.ASCII,
)
_CLOSED: Final = re.compile(r"\s*+\}", re.ASCII)
_CONFIG: Final = "backend_config"
_CALLEES: Final = re.compile(rf"%?{_NAME}|\{{%?{_NAME}(?:, ?%?{_NAME})*+\}}", re.ASCII)


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
    """Parser of computations that can leave the instructions of regular bodies for later.

    The tables are of parts of lines that the parser accepts.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.accepted_shapes: dict[str, AnyShape] = {}
        self.accepted_opcodes: dict[str, str] = {}
        self.accepted_attributes = {"": _Attributes()}
        self.forms: dict[tuple[_FormText, Shapes], _LineForm] = {}
        self.last_forms: dict[_FormText, _LineForm] = {}  # of each text, the last one in use

    def scanned(self, position: int) -> ScannedBody | None:
        """Return the body with its first instruction at `position`; None if it is not regular."""
        try:
            return self._scanned(position)
        except HloError:  # raised again when the body is parsed
            return None

    def _scanned(self, position: int) -> ScannedBody | None:
        shapes, known_opcodes = self.accepted_shapes, self.accepted_opcodes
        known_attributes = self.accepted_attributes
        names: dict[str, None] = {}
        opcodes: list[str] = []
        root = ""
        while line := _LINE.match(self.text, position):
            mark, name, shape, opcode, operands, literal, attributes, _, config = line.groups()
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

    def defer(self, computation: Computation, body: ScannedBody, position: int) -> None:
        """Leave the instructions of a computation, the first one at `position`, for later."""
        make = lambda: self._make(computation, position)  # noqa: E731
        computation.defer(DeferredBody(body.names, body.opcodes, make, self.result.lock))
        computation.end = body.end
        self.computations[computation.name] = computation

    def _make(self, computation: Computation, position: int) -> None:
        """Make the instructions of a regular body, the first one at `position`."""
        source, text, forms = self.source, self.text, self.last_forms
        made: dict[str, Instruction] = {}
        root: Instruction | None = None
        while line := _LINE.match(text, position):
            mark, name, shape, opcode, inside, literal, listed, _, config = line.groups()
            position = line.end()
            if config:
                position = read_value(source, position)
                config = text[line.end() : position]
            operands: tuple[Instruction, ...] = ()
            if inside in _KEYWORDS:
                literal = inside
            elif inside:
                operands = tuple([made[each] for each in _names(inside)])
            operand_shapes = tuple([operand.declared_shape for operand in operands])
            key = shape, opcode, literal, listed, config
            form = forms.get(key)
            if form is None or form.operand_shapes != operand_shapes:
                form = self._form(key, operand_shapes)
            made[name] = instruction = Instruction(
                name,
                form.opcode,
                form.shape,
                computation=computation,
                index=len(made),
                start=line.start(2),
                end=position,
                operands=operands,
                form=form,
                attributes=None,
                called_computations=form.called_computations,
            )
            if mark:
                root = instruction
        computation.complete(tuple(made.values()), root or instruction)

    def _form(self, text: _FormText, operand_shapes: Shapes) -> _LineForm:
        """Return the form of the lines with this text, on operands of these shapes."""
        form = self.forms.get((text, operand_shapes))
        if form is None:
            shape, opcode, literal, listed, config = text
            literal, config = self._interned(literal), self._interned(config)
            text = shape, opcode, literal, listed, config
            self.forms[text, operand_shapes] = form = _LineForm(self, text, operand_shapes)
        self.last_forms[text] = form
        return form

    def _interned(self, text: str | None) -> str | None:
        return None if text is None else self.words.setdefault(text, text)

    def _accepts(self, line: re.Match[str], end: int) -> bool:
        """Return True if the parser accepts the literal, shape, opcode and attributes of a line.

        Raises:
            HloError: it does not accept them.
        """
        if line[6] and len(line[6]) > MAX_DIGITS:
            check_numbers(self.source, *line.span(6))
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
            literal = scanner.attribute_text(*line.span(5 if line[6] is None else 6))
        return literal, attributes or _NOTHING


def _fits(name: str, operands: str | None, names: Mapping[str, None]) -> bool:
    """Return True if `name` is not among `names`, and `operands` are, or are one literal."""
    if name in names:
        return False
    if not operands or operands in _KEYWORDS:
        return True
    return names.keys() >= set(_names(operands))


def _names(operands: str) -> list[str]:
    return operands.replace("%", "").split(", ")
