"""What is in computations: instructions, their operands and their attributes.

The grammar inside braces, for `hlo.formats.parser`: each method takes a position in the
text and gives the one after what it has read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from hlo.formats.asynchronous import SUFFIXES, ParsedInstruction, resolved
from hlo.formats.faults import (
    duplicate,
    no_instruction,
    no_instructions,
    no_opcode,
    no_operand,
    no_operand_name,
    second_root,
    undefined_computation,
    undefined_operand,
    wrong_operand_shape,
)
from hlo.formats.parser_state import ParserState, free_name
from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import AnyShape, find_shape
from hlo.text.lexer import (
    COMMENT,
    END,
    MAX_DIGITS,
    NAME,
    SPACE,
    balanced,
    check_numbers,
    expected,
    word,
)
from hlo.text.source import HloError, Source
from hlo.text.syntax import CALLING, AttributeText, read_value

MAX_DEPTH = 40  # instructions in bodies or operands of instructions: the one place where we recurse

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


class BodyReader(ParserState):
    """Reads computations, of which each may call those read before it.

    `names` holds the instructions of one computation so far, by name; those that the text gives no
    name are in it under a key that is no name, and get one in the end.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.words: dict[str, str] = {}  # one object for equal attribute names, values and opcodes
        self.depth = 0
        # among these names, undefined operands are parameters
        self.open_names: dict[str, Instruction] | None = None

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
        _give_names(names)
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
            name, start = "", found.start(1)
        position = found.end()
        operands: tuple[Instruction, ...] = ()
        literal = None
        if _LITERAL.match(self.text, position):
            end = balanced(self.source, position - 1)
            literal = self.piece(position, end - 1)
            if end - position > MAX_DIGITS:
                check_numbers(self.source, position, end - 1)
            position = end
        else:
            operands, position = self.operands(computation, names, position)
        attributes, called, position = self.attributes(position, name or opcode)
        if "control-predecessors" in attributes:
            self.check_names(attributes["control-predecessors"], names)
        if opcode.endswith(SUFFIXES):
            parsed = ParsedInstruction(
                self.source.span(*found.span(1)), opcode, shape, operands, attributes, called
            )
            parsed = resolved(parsed, self)
            opcode, attributes, called = parsed.opcode, parsed.attributes, parsed.called
        result = Instruction(
            name=name or (f"{opcode}.anon" if head is None else opcode),
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
        names[name or _no_name(names)] = result
        return result, position

    def operands(
        self, computation: Computation, names: dict[str, Instruction], position: int
    ) -> tuple[tuple[Instruction, ...], int]:
        """Read up to and with the closing parenthesis."""
        operands: list[Instruction] = []
        while True:
            found = _OPERAND.match(self.text, position)
            assert found is not None  # it matches the empty text too
            name, mark = found.groups()
            operand = names.get(name)
            if mark and operand is not None:  # nearly always
                position = found.end()
            elif mark == ")" and not (name or operands):
                return (), found.end()
            else:
                operand, mark, position = self.operand(computation, names, found)
            operands.append(operand)
            if mark != ",":
                return tuple(operands), position

    def operand(
        self, computation: Computation, names: dict[str, Instruction], found: re.Match[str]
    ) -> tuple[Instruction, str, int]:
        """An operand that is more than a known name, and the mark after it.

        It has a shape, is an instruction of its own, or is not defined.
        """
        shape, position = None, found.start()
        if not found[1] and not found[2]:
            shape, position = find_shape(self.source, position)
            found = self.operand_name(position)
        name, mark = found.groups()
        operand = names.get(name)
        if not mark and name:
            operand, position = self.nested(computation, names, shape, found.start(1))
            found = self.operand_name(position)
            mark = "" if found[1] else found[2]
        elif mark and operand is None:
            operand = self.missing(computation, names, name, shape, found)
        if not mark or operand is None:
            raise no_operand(self.source, position, operand is not None)
        if shape is not None and shape is not operand.declared_shape:
            self.check_operand(operand, shape, found)
        return operand, mark, found.end()

    def operand_name(self, position: int) -> re.Match[str]:
        """The name at `position`, if one stands there, and the mark after it."""
        found = _OPERAND.match(self.text, position)
        assert found is not None  # it matches the empty text too
        return found

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
                raise no_operand_name(self.source, found.start(2))
            span = self.source.span(*found.span(1))
            raise undefined_operand(name, span, names, names is self.open_names)
        number = sum(known.opcode == "parameter" for known in names.values())
        start, end = found.span(1) if name else found.span(2)
        result = Instruction(
            name=name or "parameter",
            opcode="parameter",
            shape=shape,
            literal=AttributeText.of(str(number)),
            computation=computation,
            index=len(names),
            start=start,
            end=end,
        )
        names[name or _no_name(names)] = result
        return result

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


def _no_name(names: Mapping[str, Instruction]) -> str:
    return f"({len(names)})"


def _give_names(names: Mapping[str, Instruction]) -> None:
    """Give each instruction that the text leaves without a name one that no other has."""
    unnamed = [instruction for key, instruction in names.items() if key[0] == "("]
    taken = set(names)
    for instruction in unnamed:
        instruction.name = free_name(instruction.name, taken)
        taken.add(instruction.name)
