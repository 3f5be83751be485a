"""HLO text to modules: the grammar, which knows no op.

A recursive descent without a token list: each point of the grammar is one pattern, matched at a
    cursor, and every
method takes a position and gives the one after what it has read. Names are resolved while reading,
since operands and computations are defined before they are used. What the text says is law; what it
means is for others to find.

The forms are those that XLA's parser (``xla/hlo/parser/hlo_parser.cc``) accepts, and a few more:
several instructions without a computation around them, attributes in any order and of any name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from hlo.faults import (
    duplicate,
    free_name,
    no_computation,
    no_instruction,
    no_instructions,
    no_opcode,
    no_operand,
    no_text,
    second_entry,
    second_root,
    undefined_computation,
    undefined_operand,
    wrong_operand_shape,
    wrong_result_shape,
)
from hlo.lexer import (
    COMMENT,
    END,
    NAME,
    SPACE,
    STRING,
    balanced,
    expected,
    here,
    integer,
    skip,
    word,
)
from hlo.module import Computation, Instruction, Module
from hlo.shape import AnyShape, find_shape, read_shape
from hlo.source import HloError, Source
from hlo.syntax import AttributeText, read_value

MAX_DEPTH = 40  # instructions in bodies or operands of instructions: the one place where we recurse

# the attributes whose values are names or bodies of computations, whatever the op
CALLING = frozenset(
    {
        "body",
        "branch_computations",
        "called_computations",
        "calls",
        "condition",
        "false_computation",
        "scatter",
        "select",
        "to_apply",
        "true_computation",
    }
)

_HEADER = word(rf"HloModule\b(?:{SPACE}(?!ENTRY\b)%?({NAME}):?+)?+")
_TABLE = word(r"(FileNames|FunctionNames|FileLocations|StackFrames)\b(?!\s*[({=])")
_LINE = word(rf"(\d++){SPACE}(?:({STRING})|(?=\{{))")
_COMPUTATION = word(rf"(ENTRY\b{SPACE})?+%?({NAME}){SPACE}(?=[({{])")
_ARROW = word("->")
_BODY = word(r"\{")
_HEAD = word(rf"(?:(\}})|(ROOT\b{SPACE})?+(?:%?({NAME}){SPACE}={SPACE})?+)")
_OPCODE = word(rf"({NAME}){SPACE}\(")
_LITERAL = re.compile(  # numbers, braces and words that are no names, in parentheses or not
    rf"{SPACE}(?:[(),]{SPACE})*+(?:[-\d{{?]|\.\.\.|(?:true|false|inf|nan)\b(?![\w.\-]))"
    rf"|{SPACE}\({SPACE}\){SPACE}\)",
    re.ASCII,
)
_OPERAND = word(rf"(?:%?({NAME}){SPACE}(?=[,()]))?+(,{SPACE}\)|[,)]|)")
_ATTRIBUTE = word(rf",{SPACE}([A-Za-z_][\w.\-]*+){SPACE}={SPACE}")
_CALLEE = word(rf"(?:%?({NAME})|\{{)")
_INLINE = word(rf"\{{{SPACE}(?:ROOT\b|%?{NAME}{SPACE}=)")
_NAMES = re.compile(rf"{COMMENT}|%?({NAME})", re.ASCII)
_NEXT_CALLEE = word(r"([,}])")

_NOTHING: Mapping[str, AttributeText] = MappingProxyType({})


def parse(text: str, filename: str = "<string>") -> Module:
    """The module that `text` says.

    >>> module = parse("ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }")
    >>> module.entry.root.opcode, [operand.name for operand in module.entry.root.operands]
    ('negate', ['p'])

    A single instruction will do; what it reads and nobody defines becomes a parameter:

    >>> parse("f32[3,2] transpose(f32[2,3] p), dimensions={1,0}").entry.parameters
    (<parameter 'p' of 'entry'>,)

    Raises:
        HloError: the text is no HLO, or a name in it stands for nothing.
    """
    return Parser(Source(text, filename)).module()


def parse_all(text: str, filename: str = "<string>") -> list[Module]:
    """The modules of a text that splits them with lines ``// -----``.

    Places in errors and spans count from the beginning of the whole text.

    >>> [module.name for module in parse_all("HloModule a ENTRY e { p = f32[] parameter(0) }"
    ...     "\\n// -----\\nHloModule b ENTRY e { p = f32[] parameter(0) }")]
    ['a', 'b']
    """
    return [parse(part, filename) for part in _parts(text)]


def _parts(text: str) -> Iterator[str]:
    """Each part between ``// -----`` lines, behind as many empty lines as come before it."""
    lines_before = 0
    for part in re.split(r"^[ \t]*// -----[^\n]*", text, flags=re.MULTILINE):
        if not END.match(part) or part == text:
            yield "\n" * lines_before + part
        lines_before += part.count("\n")


class Parser:
    """Reads one module. `names` of instructions live as long as their computation."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.computations: dict[str, Computation] = {}
        self.words: dict[str, str] = {}  # one object for equal attribute names, values and opcodes
        self.result = Module("", source)
        self.depth = 0
        self.open_names: dict[str, Instruction] | None = (
            None  # undefined operands here are parameters
        )

    # ------------------------------------------------------------ module

    def module(self) -> Module:
        result, position = self.result, 0
        if header := _HEADER.match(self.text):
            if not header[1]:
                raise expected("a name after HloModule", self.source, header.end())
            result.name = header[1]
            result.attributes, _, position = self.attributes(header.end(), None)
        result.tables, position = self.tables(position)
        if header or _COMPUTATION.match(self.text, position):
            result.entry = self.all_computations(position)
        else:
            result.entry = self.bare_instructions(position)
        result.name = result.name or f"module_{result.entry.name}"
        result.computations = MappingProxyType(self.computations)
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
                lines[number] = self.piece(start, position)
        return tables, position

    def all_computations(self, position: int) -> Computation:
        entry: Computation | None = None
        while not END.match(self.text, position):
            found = _COMPUTATION.match(self.text, position)
            if not found:
                raise no_computation(self.source, position)
            if entry and found[1]:
                raise second_entry(self.source.span(*found.span(2)), entry)
            computation, position = self.computation(found)
            if found[1]:
                entry = computation
        if not self.computations:
            raise no_computation(self.source, position)
        return entry or list(self.computations.values())[-1]

    def computation(self, found: re.Match[str]) -> tuple[Computation, int]:
        computation = self.new_computation(found[2], found.start(2))
        position, result_shape, result_at = found.end(), None, 0
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

    def new_computation(self, name: str, start: int) -> Computation:
        if first := self.computations.get(name):
            span = self.source.span(start, start + len(name))
            raise duplicate("computation", span, first.span)
        return Computation(name, self.result, start)

    # ------------------------------------------------------------ instructions

    def instructions(self, computation: Computation, position: int, is_bare: bool = False) -> int:
        """Read up to and with the closing brace, or up to the end of bare instructions."""
        names: dict[str, Instruction] = {}
        if is_bare:
            self.open_names = names
        root: Instruction | None = None
        while True:
            head = _HEAD.match(self.text, position)
            assert head is not None  # it matches the empty text too
            position = head.end()
            if head[1] or (is_bare and END.match(self.text, position)):
                break
            if not head[3] and not is_bare:
                raise no_instruction(self.source, position)
            shape, position = find_shape(self.source, position)
            instruction, position = self.instruction(computation, names, head, shape, position)
            if head[2]:
                if root is not None:
                    raise second_root(self.source.span(*head.span(2)), root)
                root = instruction
        if not names:
            raise no_instructions(self.source, position - 1)
        computation.instructions = tuple(names.values())
        computation.root = root or computation.instructions[-1]
        computation.end = position
        self.computations[computation.name] = computation
        return position

    def instruction(
        self,
        computation: Computation,
        names: dict[str, Instruction],
        head: re.Match[str] | None,
        shape: AnyShape | None,
        position: int,
    ) -> tuple[Instruction, int]:
        """What follows the result shape: opcode, operands or a literal, attributes."""
        found = _OPCODE.match(self.text, position)
        if not found:
            raise no_opcode(self.source, position, shape is not None)
        opcode = self.words.setdefault(found[1], found[1])
        if head and head[3]:
            name, start = head[3], head.start(3)
            if name in names:
                raise duplicate("instruction", self.source.span(*head.span(3)), names[name].span)
        else:
            name, start = free_name(opcode, names), found.start(1)
        position = found.end()
        operands: tuple[Instruction, ...] = ()
        literal = None
        if _LITERAL.match(self.text, position):
            end = balanced(self.source, position - 1)
            literal = self.piece(position, end - 1)
            position = end
        else:
            operands, position = self.operands(computation, names, position)
        attributes, called, position = self.attributes(position, name)
        if "control-predecessors" in attributes:
            self.check_names(attributes["control-predecessors"], names)
        result = Instruction(
            name=name,
            opcode=opcode,
            shape=shape,
            operands=operands,
            literal=literal,
            attributes=attributes,
            called_computations=called,
            computation=computation,
            index=len(names),
            start=start,
            end=position,
        )
        names[name] = result
        return result, position

    def operands(
        self, computation: Computation, names: dict[str, Instruction], position: int
    ) -> tuple[tuple[Instruction, ...], int]:
        """Read up to and with the closing parenthesis."""
        operands: list[Instruction] = []
        while True:
            found = _OPERAND.match(self.text, position)
            assert found is not None  # it matches the empty text too
            shape = None
            if not found[1] and not found[2]:
                shape, position = find_shape(self.source, position)
                found = _OPERAND.match(self.text, position)
                assert found is not None
            name, mark = found.groups()
            operand = names.get(name)
            if not mark and name:
                operand, position = self.nested(computation, names, shape, found.start(1))
                found = _OPERAND.match(self.text, position)
                assert found is not None
                mark = "" if found[1] else found[2]
            elif mark == ")" and not (name or operands or shape):
                return (), found.end()
            elif mark and operand is None:
                operand = self.missing(computation, names, name, shape, found)
            if not mark or operand is None:
                raise no_operand(self.source, position, operand is not None)
            if shape is not None and shape is not operand.declared_shape:
                self.check_operand(operand, shape, found)
            operands.append(operand)
            position = found.end()
            if mark != ",":
                return tuple(operands), position

    def nested(
        self,
        computation: Computation,
        names: dict[str, Instruction],
        shape: AnyShape | None,
        position: int,
    ) -> tuple[Instruction, int]:
        """An instruction that is written where it is read: ``add(f32[] negate(x), y)``."""
        self.deeper(position)
        result = self.instruction(computation, names, None, shape, position)
        self.depth -= 1
        return result

    def missing(
        self,
        computation: Computation,
        names: dict[str, Instruction],
        name: str | None,
        shape: AnyShape | None,
        found: re.Match[str],
    ) -> Instruction:
        """The parameter that an operand without a definition stands for, where that is allowed."""
        if names is not self.open_names or shape is None:
            if name is None:
                raise expected("the name of an operand", self.source, found.start(2))
            span = self.source.span(*found.span(1))
            raise undefined_operand(name, span, names, names is self.open_names)
        number = sum(known.opcode == "parameter" for known in names.values())
        start, end = found.span(1) if name else found.span(2)
        name = name or free_name("parameter", names)
        names[name] = Instruction(
            name=name,
            opcode="parameter",
            shape=shape,
            operands=(),
            literal=AttributeText(str(number), self.source, start, end),
            attributes=_NOTHING,
            called_computations=(),
            computation=computation,
            index=len(names),
            start=start,
            end=end,
        )
        return names[name]

    # ------------------------------------------------------------ attributes

    def attributes(
        self, position: int, owner: str | None
    ) -> tuple[Mapping[str, AttributeText], tuple[Computation, ...], int]:
        """Every ``, name=value`` from `position` on, and the computations that they call.

        `owner` is the instruction that they belong to; it gives its name to a body that stands in
        an attribute.
        """
        attributes: dict[str, AttributeText] = {}
        called: tuple[Computation, ...] = ()
        while found := _ATTRIBUTE.match(self.text, position):
            name = self.words.setdefault(found[1], found[1])
            start = found.end()
            if name in attributes:
                span = self.source.span(*found.span(1))
                raise duplicate("attribute", span, attributes[name].span)
            if owner and name in CALLING and (callees := self.callees(start, f"{owner}.{name}")):
                value, computations, position = callees
                called += computations
                attributes[name] = AttributeText(value, self.source, start, position)
            else:
                position = read_value(self.source, start)
                attributes[name] = self.piece(start, position)
        return attributes or _NOTHING, called, position

    def callees(self, position: int, name: str) -> tuple[str, tuple[Computation, ...], int] | None:
        """Text by name, computations, and position after a value; None where it calls nothing."""
        found = _CALLEE.match(self.text, position)
        if not found:
            return None
        if found[1] or _INLINE.match(self.text, position):
            callee, end = self.callee(found, name)
            return callee.name, (callee,), end
        callees: list[Computation] = []
        position = found.end()
        while True:
            if callee_found := _CALLEE.match(self.text, position):
                callee, position = self.callee(callee_found, f"{name}.{len(callees)}")
                callees.append(callee)
            following = _NEXT_CALLEE.match(self.text, position)
            if not following or (following[1] == "," and not callee_found):
                raise expected("the name of a computation", self.source, position)
            position = following.end()
            if following[1] == "}":
                return f"{{{','.join(c.name for c in callees)}}}", tuple(callees), position

    def callee(self, found: re.Match[str], name: str) -> tuple[Computation, int]:
        """The computation of this name, or the one whose body stands here and that gets `name`."""
        if not found[1]:
            self.deeper(found.end() - 1)
            computation = self.new_computation(free_name(name, self.computations), found.end() - 1)
            end = self.instructions(computation, found.end())
            self.depth -= 1
            return computation, end
        callee = self.computations.get(found[1])
        if callee is None:
            span = self.source.span(*found.span(1))
            raise undefined_computation(found[1], span, self.computations)
        return callee, found.end()

    # ------------------------------------------------------------ small things

    def piece(self, start: int, end: int) -> AttributeText:
        text = self.text[start:end]
        return AttributeText(self.words.setdefault(text, text), self.source, start, end)

    def deeper(self, position: int) -> None:
        """Go into an instruction within an instruction; a ``depth -= 1`` leads out."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            message = f"instructions are nested more than {MAX_DEPTH} deep"
            raise HloError(message, self.source.span(position), "nesting", "one too many")

    def check_names(self, value: AttributeText, names: Mapping[str, Instruction]) -> None:
        for found in _NAMES.finditer(self.text, value.start, value.end):
            if found[1] and found[1] not in names:
                raise undefined_operand(found[1], self.source.span(*found.span(1)), names, False)

    def check_operand(self, operand: Instruction, shape: AnyShape, found: re.Match[str]) -> None:
        declared = operand.declared_shape
        if declared is not None and not declared.compatible(shape):
            raise wrong_operand_shape(operand, shape, self.source.span(*found.span(1)))

    def check_result(self, computation: Computation, shape: AnyShape | None, position: int) -> None:
        declared = computation.root.declared_shape
        if shape is not None and declared is not None and not declared.compatible(shape):
            raise wrong_result_shape(computation, shape, here(self.source, position))
