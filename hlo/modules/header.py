"""The header of a module: ``HloModule name, key=value, ..``.

The parser checks the values of XLA's keys; unknown keys are kept as text. `Module.header` returns
the values:

>>> from hlo.formats.parser import parse
>>> module = parse('''HloModule m, input_output_alias={ {1}: (0, {}, may-alias) }, num_partitions=4
... ENTRY e { p = f32[2] parameter(0) }''')
>>> module.header("num_partitions"), module.header("input_output_alias")
(4, (Alias(output=(1,), parameter=0, index=(), kind='may-alias'),))

Source: XLA ``xla/hlo/parser/hlo_parser.cc``, ``ParseHloModule`` and the functions it calls.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hlo.arguments import checked
from hlo.ops.attributes import Kind, boolean, enum, int_list, integer, list_of, shape
from hlo.shapes.shape import AnyShape, TupleShape, read_shape
from hlo.text.cursor import Cursor
from hlo.text.syntax import AttributeText

ALIAS_KINDS: Final = ("may-alias", "must-alias")


@dataclass(frozen=True, slots=True)
class EntryLayout:
    """Shapes with layouts of the entry's parameters and result: ``{(f32[2]{0})->f32[2]{0}}``."""

    parameters: tuple[AnyShape, ...]
    result: AnyShape


@dataclass(frozen=True, slots=True)
class Alias:
    """A result that may, or must, share the buffer of a parameter.

    Attributes:
        output: path of the result in the tuple of results.
        parameter, index: number of the parameter, and a path in its tuple.
        kind: one of `ALIAS_KINDS`.
    """

    output: tuple[int, ...]
    parameter: int
    index: tuple[int, ...]
    kind: str = "may-alias"


@dataclass(frozen=True, slots=True)
class Donor:
    """A parameter, or an element of its tuple, whose buffer the program may reuse."""

    parameter: int
    index: tuple[int, ...]


def _entry_layout(cursor: Cursor) -> EntryLayout:
    cursor.expect("{")
    start = cursor.position
    taken, cursor.position = read_shape(cursor.source, start)
    if not isinstance(taken, TupleShape):
        span = cursor.source.span(start, cursor.position)
        raise cursor.fault("expected the shapes of the parameters in parentheses", span)
    cursor.expect("->")
    result = shape.read(cursor)
    cursor.expect("}")
    return EntryLayout(taken.elements, result)


_alias_kind: Final = enum(*ALIAS_KINDS)


def _alias(cursor: Cursor) -> Alias:
    output = int_list.read(cursor)
    cursor.expect(":")
    cursor.expect("(")
    parameter = cursor.integer()
    cursor.expect(",")
    index = int_list.read(cursor)
    kind = _alias_kind.read(cursor) if cursor.accepts(",") else ALIAS_KINDS[0]
    cursor.expect(")")
    return Alias(output, parameter, index, kind)


def _donor(cursor: Cursor) -> Donor:
    cursor.expect("(")
    parameter = cursor.integer()
    cursor.expect(",")
    index = int_list.read(cursor)
    cursor.expect(")")
    return Donor(parameter, index)


def _alias_text(value: Alias) -> str:
    index = int_list.print(value.index)
    return f"{int_list.print(value.output)}: ({value.parameter}, {index}, {value.kind})"


def _entry_layout_text(value: EntryLayout) -> str:
    return f"{{({', '.join(map(str, value.parameters))})->{value.result}}}"


def _flags(cursor: Cursor) -> tuple[bool, ...]:
    """Read one flag for all values, or a list of flags."""
    one = cursor.take(_FLAG)
    return (one[0] == "true",) if one else _flag_list.read(cursor)


_FLAG: Final = re.compile(r"(?:true|false)\b")
_flag_list: Final = list_of(boolean, "a list of booleans", "{true,false}")
_flags_kind: Final = Kind("true, false, or a list of them", "{true,false}", _flags, str)

HEADER_KINDS: Final[Mapping[str, Kind[Any]]] = {
    "alias_passthrough_params": boolean,
    "allow_spmd_sharding_propagation_to_output": _flags_kind,
    "allow_spmd_sharding_propagation_to_parameters": _flags_kind,
    "buffer_donor": list_of(
        Kind("a part of a parameter", "(0, {})", _donor, str),
        "a list of parameters or their parts",
        "{ (0, {}), (1, {2}) }",
    ),
    "entry_computation_layout": Kind(
        "the shapes of parameters and result",
        "{(f32[2]{0})->f32[2]{0}}",
        _entry_layout,
        _entry_layout_text,
    ),
    "input_output_alias": list_of(
        Kind("an alias", "{0}: (0, {}, may-alias)", _alias, _alias_text),
        "a list of aliases, output: (parameter, index, kind)",
        "{ {0}: (0, {}, may-alias) }",
    ),
    "is_scheduled": boolean,
    "num_partitions": integer,
    "replica_count": integer,
}
"""The kind of value of each header key that XLA defines."""


def value_of(name: str, text: AttributeText) -> Any:
    """Return the value of a header key; for an unknown key, the text.

    Raises:
        HloError: the text is not a value of the key.
    """
    kind = HEADER_KINDS.get(name)
    return kind.parse(text.span, f"`{name}` of the module") if kind else text.normal


def check(attributes: Mapping[str, AttributeText]) -> None:
    """Check the values of all known keys.

    Raises:
        HloError: the first invalid value.
    """
    for name, text in attributes.items():
        if name in HEADER_KINDS:
            value_of(name, text)


class ModuleHeader:
    """The method of `Module` that reads its header.

    Attributes:
        attributes: the text of the header entries by key.
    """

    __slots__ = ()
    attributes: Mapping[str, AttributeText]

    @checked
    def header(self, name: str, default: Any = None) -> Any:
        """Return the value of a header key (`hlo.modules.header`), or `default` if it is absent.

        >>> from hlo.formats.parser import parse
        >>> module = parse("HloModule m, is_scheduled=true ENTRY e { p = f32[] parameter(0) }")
        >>> module.header("is_scheduled")
        True
        """
        text = self.attributes.get(name)
        return default if text is None else value_of(name, text)
