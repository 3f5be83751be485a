"""Forms of instructions: the text and the operands' shapes that many instructions share.

XLA prints the same op on arrays of the same shapes again and again: the 65,757 instructions of a
training step of GPT-2 have 3,061 forms.  What follows from the form of an instruction, such as its
op, is computed once for all of them; the location of an attribute, which differs, when it is used.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from hlo import methods
from hlo.shapes.shape import AnyShape
from hlo.text.source import HloError
from hlo.text.syntax import AttributeText

if TYPE_CHECKING:
    from hlo.ops.op import Op

METADATA = "metadata"
"""The attribute that no form has: it differs between instructions, and no op reads it."""

Shapes: TypeAlias = tuple[AnyShape | None, ...]
"""The declared shapes of operands."""

Values: TypeAlias = tuple[AttributeText | None, Mapping[str, AttributeText]]
"""The literal of an instruction and its attributes by name, each with its location."""


class InstructionForm(metaclass=ABCMeta):
    """An instruction besides its name, its metadata, and the identity of its operands.

    A form determines the op, whether an instruction without callees is valid, and its maps. Forms
    are compared by identity: a parser makes equal ones once for each module.

    Attributes:
        opcode: as in the text.
        shape: the declared shape.
        literal: the number of a parameter or the value of a constant; otherwise None.
        attributes: the text of each attribute by name.
        operand_shapes: the declared shape of each operand.
        op: the op of the form, if it has been bound.
        derived: what an analysis memoises for the instructions of the form, or None.
    """

    __slots__ = ("attributes", "derived", "literal", "op", "opcode", "operand_shapes", "shape")

    def __init__(
        self,
        opcode: str,
        shape: AnyShape,
        literal: str | None,
        attributes: Mapping[str, str],
        operand_shapes: Shapes,
    ) -> None:
        self.opcode = opcode
        self.shape = shape
        self.literal = literal
        self.attributes = attributes
        self.operand_shapes = operand_shapes
        self.op: Op | None = None
        self.derived: Any = None

    @abstractmethod
    def values(self, start: int) -> Values:
        """Return the values of the instruction of this form whose name begins at `start`."""


class InstructionText:
    """The literal and the attributes of an instruction; with a form, they are made on first use.

    Threads that use them at the same time may make them twice; the results are equal.

    Attributes:
        form: what the instruction shares with others; None if it was parsed on its own.
        start: the position in the text.
    """

    __slots__ = ("_attributes", "_literal", "form", "start")

    def __init__(
        self,
        start: int,
        form: InstructionForm | None,
        literal: AttributeText | None,
        attributes: Mapping[str, AttributeText] | None,
    ) -> None:
        self.start = start
        self.form = form
        self._literal = literal
        self._attributes = attributes

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the module, and the place in it (`hlo.modules.stored`)."""
        stored: tuple[Any, ...] = methods.stored_instruction(self)
        return stored

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    @property
    def literal(self) -> AttributeText | None:
        """The number of a parameter or the value of a constant, as text; otherwise None.

        >>> import hlo
        >>> c, p = hlo.parse("ENTRY e { c = f32[] constant(0.5)  p = f32[] parameter(0) }").entry
        >>> c.literal.text, p.literal.text
        ('0.5', '0')
        """
        if self._literal is None and self.form is not None and self.form.literal is not None:
            self._literal, self._attributes = self.form.values(self.start)
        return self._literal

    @property
    def attributes(self) -> Mapping[str, AttributeText]:
        """The text of each attribute; the value of a called computation is its name.

        >>> import hlo
        >>> text = "ENTRY e { p = f32[9] parameter(0)  ROOT r = f32[9] reverse(p), dimensions={0} }"
        >>> root = hlo.parse(text).entry.root
        >>> {name: value.text for name, value in root.attributes.items()}
        {'dimensions': '{0}'}
        """
        if self._attributes is None:
            assert self.form is not None
            self._literal, self._attributes = self.form.values(self.start)
        return self._attributes

    @attributes.setter
    def attributes(self, attributes: Mapping[str, AttributeText]) -> None:
        self._literal, self._attributes, self.form = self.literal, attributes, None

    @property
    def values(self) -> Values:
        """The literal and the attributes; with a form, they are not kept if they are not made yet.

        For what is read once, such as an op: few instructions need their attributes again.
        """
        if self._attributes is None:
            assert self.form is not None
            return self.form.values(self.start)
        return self._literal, self._attributes

    @property
    def literal_text(self) -> str | None:
        """The text of the literal, without its location.

        >>> import hlo
        >>> hlo.parse("ENTRY e { ROOT c = f32[2] constant({1, 2}) }").entry.root.literal_text
        '{1, 2}'
        """
        if self.form is not None:
            return self.form.literal
        return None if self._literal is None else self._literal.text

    @property
    def parameter_number(self) -> int | None:
        """The literal as the number of a parameter; None without a literal.

        Raises:
            HloError: the literal is not a number.

        >>> from hlo.formats.parser import parse
        >>> parse("ENTRY e { p = f32[] parameter( 0 ) }").entry["p"].parameter_number
        0
        """
        literal = self.literal_text
        if literal is None:
            return None
        text = literal.strip()
        if not (text.isdecimal() and len(text) < 10):
            message = "a parameter must have a number, for example parameter(0)"
            assert self.literal is not None
            span = self.literal.span
            raise HloError(message, span, "attribute", "not a parameter number")
        return int(text)

    def text_of(self, name: str) -> str | None:
        """Return the text of an attribute without its location; None if there is no attribute.

        >>> import hlo
        >>> text = "ENTRY e { p = f32[9] parameter(0)  ROOT r = f32[9] reverse(p), dimensions={0} }"
        >>> root = hlo.parse(text).entry.root
        >>> root.text_of("dimensions"), root.text_of("slice")
        ('{0}', None)
        """
        if self.form is not None and name != METADATA:
            return self.form.attributes.get(name)
        text = self.attributes.get(name)
        return None if text is None else text.text
