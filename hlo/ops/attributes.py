"""Kinds of attribute values: parsing from text and printing.

A `Kind` parses a value and prints it. An error points at the invalid characters:

>>> slices.parse("{[0:2], [1:9:3]}")
(SliceDimension(start=0, limit=2, stride=1), SliceDimension(start=1, limit=9, stride=3))
>>> slices.print(_)
'{[0:2], [1:9:3]}'
>>> from hlo.text.source import HloError
>>> try:
...     int_list.parse("{2,zero,0}")
... except HloError as error:
...     print(error)
error[attribute]: the value must be a list of integers
 --> <attribute>:1:4
  |
1 | {2,zero,0}
  |    ^^^^ expected an integer

Source: XLA's HLO parser and printer (``xla/hlo/parser/hlo_parser.cc``, ``ParseAttributeHelper``;
``xla/hlo/ir/hlo_instructions.cc``, ``PrintExtraAttributesImpl``) for the forms.
"""

from __future__ import annotations

import re
from typing import Final

from hlo.ops.kinds import WORD, Kind, at_least, enum, list_of
from hlo.ops.operand_types import is_in_class
from hlo.ops.windows import (
    Padding,
    SliceDimension,
    WindowDimension,
    dilated_size,
    padding_config,
    slices,
    window,
)
from hlo.shapes.shape import ELEMENT_TYPES, AnyShape, read_shape
from hlo.text.cursor import Cursor
from hlo.text.lexer import NAME, skip, unescape

_NUMBER: Final = re.compile(r"[-+]?(?:\d++(?:\.\d*+)?|inf|nan)(?:[eE][-+]?\d++)?", re.ASCII)
_STRING: Final = re.compile(r'"((?>[^"\\]++|\\.)*+)"', re.DOTALL)
_REFERENCE: Final = re.compile(rf"%?({NAME})", re.ASCII)
_NAMES: Final = re.compile(rf"\{{\s*(?:%?{NAME}\s*[,}}]|\}})", re.ASCII)  # a list, not a body


def element_type(*classes: str) -> Kind[str]:
    """Return the kind of an element type: of one of the given classes and types, or any.

    >>> element_type("floating", "s8").parse("bf16")
    'bf16'

    Source of the classes: `hlo.ops.operand_types`.
    """
    wanted = " or ".join(classes) or "any"

    def read(cursor: Cursor) -> str:
        token = cursor.need(WORD, "an element type such as f32")
        word, is_type = token[0], token[0] in ELEMENT_TYPES
        if is_type and (not classes or any(is_in_class(word, name) for name in classes)):
            return word
        label = f"`{word}` is not {wanted if is_type else 'an element type'}"
        raise cursor.fault(label, cursor.source.span(*token.span()))

    name = "an element type" + (f", {wanted}" if classes else "")
    example = next(t for t in ELEMENT_TYPES if any(is_in_class(t, c) for c in classes or ["any"]))
    return Kind(name, example, read, str, (("one of", classes),) if classes else ())


def _string(cursor: Cursor) -> str:
    quoted = cursor.need(_STRING, "a string in double quotes")
    return unescape(quoted[1])


def _string_text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _boolean(cursor: Cursor) -> bool:
    if cursor.accepts("true"):
        return True
    if cursor.accepts("false"):
        return False
    raise cursor.fault("expected true or false")


def _shape(cursor: Cursor) -> AnyShape:
    shape, cursor.position = read_shape(cursor.source, cursor.position)
    return shape


def _computation(cursor: Cursor) -> str:
    start = skip(cursor.source.text, cursor.position)
    if cursor.source.text.startswith("{", start) and not _NAMES.match(cursor.source.text, start):
        return cursor.group()
    return cursor.need(_REFERENCE, "the name of a computation")[1]


def _number(cursor: Cursor) -> float:
    return float(cursor.need(_NUMBER, "a number")[0])


def _word(cursor: Cursor) -> str:
    return cursor.need(WORD, "an identifier")[0]


integer: Final = Kind("an integer", "0", Cursor.integer, str)
boolean: Final = Kind("true or false", "true", _boolean, lambda value: str(value).lower())
number: Final = Kind("a number", "1e-3", _number, repr)
string: Final = Kind("a string", '"text"', _string, _string_text)
word: Final = Kind("an identifier", "highest", _word, str)
raw: Final = Kind("a string", "{..}", Cursor.rest, str)
"""Uninterpreted text: the kind of an attribute that no analysis uses."""
int_list: Final = list_of(integer, "a list of integers", "{1,0}")
word_list: Final = list_of(word, "a list of identifiers", "{highest,default}")
shape: Final = Kind("a shape", "f32[2,3]", _shape, str)
computation: Final = Kind("a computation", "add", _computation, str)
"""A called computation: its name or its inline body. The computation itself belongs to the
instruction (`called_computations`), since an op refers to no instruction."""
computation_list: Final = list_of(computation, "a list of computations", "{one, two}", ", ")

__all__ = [
    "Cursor",
    "Kind",
    "Padding",
    "SliceDimension",
    "WindowDimension",
    "at_least",
    "boolean",
    "computation",
    "computation_list",
    "dilated_size",
    "element_type",
    "enum",
    "int_list",
    "integer",
    "list_of",
    "number",
    "padding_config",
    "raw",
    "shape",
    "slices",
    "string",
    "window",
    "word",
    "word_list",
]
