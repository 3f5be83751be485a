"""Parser of computation bodies: instructions, their operands and their attributes.

Each method takes a position in the text and returns the position after the construct it parses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from hlo.formats.asynchronous import SUFFIXES, ParsedInstruction, resolve_short_form
from hlo.formats.faults import (
    duplicate,
    duplicate_attribute,
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
from hlo.modules.module import NO_ATTRIBUTES, Computation, Instruction
from hlo.shapes.shape import AnyShape, TupleShape, find_shape
from hlo.text.lexer import (
    COMMENT,
    END,
    MAX_DIGITS,
    NAME,
    SPACE,
    check_numbers,
    end_of_bracket,
    syntax_error,
    token,
)
from hlo.text.source import HloError, Source
from hlo.text.syntax import CALLEE_ATTRIBUTES, AttributeText, read_value

MAX_DEPTH = 40  # instructions nested in bodies or operands; the limit bounds the recursion

_HEAD = token(rf"(?:(\}})|(?>(ROOT\b{SPACE}))?+(?>%?({NAME}){SPACE}={SPACE})?+)")
_OPCODE = token(rf"({NAME}){SPACE}\(")
_LITERAL = re.compile(  # numbers, braces and keywords, in parentheses or not
    rf"{SPACE}(?>[(),]{SPACE})*+(?:[-\d{{?]|\.\.\.|(?:true|false|inf|nan)\b(?![\w.\-]))"
    rf"|{SPACE}\({SPACE}\){SPACE}\)",
    re.ASCII,
)
_OPERAND = token(rf"(?>%?({NAME}){SPACE}(?=[,()]))?+(,{SPACE}\)|[,)]|)")
_ELEMENT = token(rf"%?({NAME})((?:#\d+)+){SPACE}(,{SPACE}\)|[,)]|)")
_DIGITS = re.compile(r"\d++", re.ASCII)
_ATTRIBUTE = token(rf",{SPACE}([A-Za-z_][\w.\-]*+){SPACE}={SPACE}")
_CALLEE = token(rf"(?:%?({NAME})|\{{)")
_INLINE = token(rf"\{{{SPACE}(?:ROOT\b|%?{NAME}{SPACE}=)")
_NAMES = re.compile(rf"{COMMENT}|%?({NAME})", re.ASCII)
_NEXT_CALLEE = token(r"([,}])")

_NOTHING: Mapping[str, AttributeText] = MappingProxyType({})


class BodyReader(ParserState):
    """Parser of computations, each of which may call those before it.

    `names` maps names to the parsed instructions of one computation. The key of an unnamed
    instruction is ``(number)``; it gets a name at the end of the computation.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.words: dict[str, str] = {}  # interned opcodes, attribute names and values
        self.depth = 0
        # names of bare instructions, whose undefined operands become parameters
        self.open_names: dict[str, Instruction] | None = None

    # ------------------------------------------------------------ instructions

    def instructions(self, computation: Computation, position: int, is_bare: bool = False) -> int:
        """Parse instructions up to the closing brace, or up to the end of the text if bare."""
        names: dict[str, Instruction] = {}
        if is_bare:
            self.open_names = names
        root: Instruction | None = None
        while True:
            head = _HEAD.match(self.text, position)
            assert head is not None  # _HEAD matches the empty text
            position = head.end()
            if head[1] or (is_bare and END.match(self.text, position)):
                break
            if not head[3] and not is_bare:
                last = next(reversed(names.values()), None)
                raise no_instruction(self.source, position, last, computation)
            shape, position = find_shape(self.source, position)
            instruction, position = self.instruction(computation, names, head, shape, position)
            if head[2]:
                if root is not None:
                    raise second_root(self.source.span(*head.span(2)), root)
                root = instruction
        if not names:
            raise no_instructions(self.source, position - 1)
        _give_names(names)
        instructions = tuple(names.values())
        computation.complete(instructions, root or instructions[-1])
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
        """Parse the rest of an instruction after its shape: opcode, operands and attributes."""
        opcode_match = _OPCODE.match(self.text, position)
        if not opcode_match:
            raise no_opcode(self.source, position, shape is not None)
        opcode = self.words.setdefault(opcode_match[1], opcode_match[1])
        if head and head[3]:
            name, start = head[3], head.start(3)
            if name in names:
                raise duplicate("instruction", self.source.span(*head.span(3)), names[name].span)
        else:
            name, start = "", opcode_match.start(1)
        position = opcode_match.end()
        operands: tuple[Instruction, ...] = ()
        literal = None
        if _LITERAL.match(self.text, position):
            end = end_of_bracket(self.source, position - 1)
            literal = self.attribute_text(position, end - 1)
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
                self.source.span(*opcode_match.span(1)), opcode, shape, operands, attributes, called
            )
            parsed = resolve_short_form(parsed, self)
            opcode, attributes, called = parsed.opcode, parsed.attributes, parsed.called
        result = Instruction(
            name=name or (f"{opcode}.anon" if head is None else opcode),
            opcode=opcode,
            shape=shape,
            operands=operands,
            values=(literal, attributes),
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
        """Parse operands up to the closing parenthesis."""
        operands: list[Instruction] = []
        while True:
            match = _OPERAND.match(self.text, position)
            assert match is not None  # _OPERAND matches the empty text
            name, mark = match.groups()
            operand = names.get(name)
            if mark and operand is not None:  # the usual case
                position = match.end()
            elif mark == ")" and not (name or operands):
                return (), match.end()
            else:
                operand, mark, position = self.operand(computation, names, match)
            operands.append(operand)
            if mark != ",":
                return tuple(operands), position

    def operand(
        self, computation: Computation, names: dict[str, Instruction], match: re.Match[str]
    ) -> tuple[Instruction, str, int]:
        """Parse an operand with a shape, an element, a nested instruction or an undefined name.

        Return the operand, the comma or parenthesis after it, and the position behind that.
        """
        shape, position = None, match.start()
        element = _ELEMENT.match(self.text, position)
        if not element and not match[1] and not match[2]:
            shape, position = find_shape(self.source, position)
            match = self.operand_name(position)
            element = _ELEMENT.match(self.text, position)
        name, mark = match.groups()
        operand = names.get(name)
        if element:
            operand, mark, match = self.element(computation, names, element), element[3], element
            position = element.end(2)
        elif not mark and name:
            operand, position = self.nested_instruction(computation, names, shape, match.start(1))
            match = self.operand_name(position)
            mark = "" if match[1] else match[2]
        elif mark and operand is None:
            operand = self.implicit_parameter(computation, names, name, shape, match)
        if not mark or operand is None:
            raise no_operand(self.source, position, operand is not None)
        if shape is not None and shape is not operand.declared_shape:
            self.check_operand(operand, shape, match)
        return operand, mark, match.end()

    def element(
        self, computation: Computation, names: dict[str, Instruction], match: re.Match[str]
    ) -> Instruction:
        """Return the get-tuple-element for an operand such as ``%p0#1#0``."""
        name = match[1]
        if name not in names:
            raise undefined_operand(name, self.source.span(*match.span(1)), names, False)
        value = names[name]
        for index in _DIGITS.finditer(self.text, *match.span(2)):
            name = f"{name}_{index[0]}"
            key = f"({value.name}#{index[0]})"
            if key not in names:
                names[key] = Instruction(
                    name=name,
                    opcode="get-tuple-element",
                    shape=_element_shape(value.declared_shape, int(index[0])),
                    operands=(value,),
                    values=(None, {"index": self.attribute_text(*index.span())}),
                    computation=computation,
                    index=len(names),
                    start=match.start(1),
                    end=index.end(),
                )
            value = names[key]
        return value

    def operand_name(self, position: int) -> re.Match[str]:
        """Match an optional name at `position` and the comma or parenthesis after it."""
        match = _OPERAND.match(self.text, position)
        assert match is not None  # _OPERAND matches the empty text
        return match

    def nested_instruction(
        self,
        computation: Computation,
        names: dict[str, Instruction],
        shape: AnyShape | None,
        position: int,
    ) -> tuple[Instruction, int]:
        """Parse an instruction in place of an operand: ``add(f32[] negate(x), y)``."""
        self.deeper(position)
        result = self.instruction(computation, names, None, shape, position)
        self.depth -= 1
        return result

    def implicit_parameter(
        self,
        computation: Computation,
        names: dict[str, Instruction],
        name: str | None,
        shape: AnyShape | None,
        match: re.Match[str],
    ) -> Instruction:
        """Return a new parameter for an undefined operand of bare instructions; otherwise raise."""
        if names is not self.open_names or shape is None:
            if name is None:
                raise no_operand_name(self.source, match.start(2))
            span = self.source.span(*match.span(1))
            raise undefined_operand(name, span, names, names is self.open_names)
        number = sum(known.opcode == "parameter" for known in names.values())
        start, end = match.span(1) if name else match.span(2)
        result = Instruction(
            name=name or "parameter",
            opcode="parameter",
            shape=shape,
            values=(AttributeText.of(str(number)), NO_ATTRIBUTES),
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
        """Parse each ``, name=value`` from `position` on, and the computations that they call.

        `owner` is the name of the instruction, and the prefix of the name of an inline body.
        """
        attributes: dict[str, AttributeText] = {}
        called: tuple[Computation, ...] = ()
        while match := _ATTRIBUTE.match(self.text, position):
            name = self.words.setdefault(match[1], match[1])
            start = match.end()
            if name in attributes:
                span = self.source.span(*match.span(1))
                raise duplicate_attribute(span, attributes[name].span)
            if (
                owner
                and name in CALLEE_ATTRIBUTES
                and (callees := self.callees(start, f"{owner}.{name}"))
            ):
                value, computations, position = callees
                called += computations
                attributes[name] = AttributeText(value, self.source, start, position)
            else:
                position = read_value(self.source, start)
                attributes[name] = self.attribute_text(start, position)
        return attributes or _NOTHING, called, position

    def callees(self, position: int, name: str) -> tuple[str, tuple[Computation, ...], int] | None:
        """Parse called computations; return their text by name, themselves and the end position.

        Return None if the value is not the name, the body or a list of computations.
        """
        first = _CALLEE.match(self.text, position)
        if not first:
            return None
        if first[1] or _INLINE.match(self.text, position):
            callee, end = self.callee(first, name)
            return callee.name, (callee,), end
        callees: list[Computation] = []
        position = first.end()
        while True:
            if match := _CALLEE.match(self.text, position):
                callee, position = self.callee(match, f"{name}.{len(callees)}")
                callees.append(callee)
            following = _NEXT_CALLEE.match(self.text, position)
            if not following or (following[1] == "," and not match):
                raise syntax_error("the name of a computation", self.source, position)
            position = following.end()
            if following[1] == "}":
                return f"{{{','.join(c.name for c in callees)}}}", tuple(callees), position

    def callee(self, match: re.Match[str], name: str) -> tuple[Computation, int]:
        """Resolve the name of a computation, or parse an inline body as a computation `name`."""
        if not match[1]:
            self.deeper(match.end() - 1)
            computation = Computation(self.fresh_name(name), self.result, match.end() - 1)
            end = self.instructions(computation, match.end())
            self.depth -= 1
            return computation, end
        callee = self.computations.get(match[1])
        if callee is None or callee.name in self.made_names:
            span = self.source.span(*match.span(1))
            raise undefined_computation(match[1], span, self.computations)
        return callee, match.end()

    # ------------------------------------------------------------ helpers

    def attribute_text(self, start: int, end: int) -> AttributeText:
        text = self.text[start:end]
        return AttributeText(self.words.setdefault(text, text), self.source, start, end)

    def deeper(self, position: int) -> None:
        """Increment the nesting depth; the caller decrements it after the nested instruction."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            message = f"instructions are nested more than {MAX_DEPTH} deep"
            raise HloError(message, self.source.span(position), "nesting", f"depth {self.depth}")

    def check_names(self, value: AttributeText, names: Mapping[str, Instruction]) -> None:
        for match in _NAMES.finditer(self.text, value.start, value.end):
            if match[1] and match[1] not in names:
                raise undefined_operand(match[1], self.source.span(*match.span(1)), names, False)

    def check_operand(self, operand: Instruction, shape: AnyShape, match: re.Match[str]) -> None:
        declared = operand.declared_shape
        if declared is not None and not declared.compatible(shape):
            raise wrong_operand_shape(operand, shape, self.source.span(*match.span(1)))


def _element_shape(shape: AnyShape | None, number: int) -> AnyShape | None:
    """Return the shape of an element of a tuple; None if it is unknown or missing."""
    if isinstance(shape, TupleShape) and number < len(shape.elements):
        return shape.elements[number]
    return None


def _no_name(names: Mapping[str, Instruction]) -> str:
    return f"({len(names)})"


def _give_names(names: Mapping[str, Instruction]) -> None:
    """Give each unnamed instruction a unique name."""
    unnamed = [instruction for key, instruction in names.items() if key[0] == "("]
    taken = set(names)
    for instruction in unnamed:
        instruction.name = free_name(instruction.name, taken)
        taken.add(instruction.name)
