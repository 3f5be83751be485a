"""Attribute kinds: what the text of an attribute's value means, and how it is written back.

A `Kind` reads a value and prints it; an error points at the very characters that are wrong:

>>> slices.parse("{[0:2], [1:9:3]}")
(Slice(start=0, limit=2, stride=1), Slice(start=1, limit=9, stride=3))
>>> slices.print(_)
'{[0:2], [1:9:3]}'
>>> try:
...     int_list.parse("{2,zero,0}")
... except HloError as error:
...     print(error)
error[attribute]: the value is not a list of integers
 --> <attribute>:1:4
  |
1 | {2,zero,0}
  |    ^^^^ expected an integer

Source: XLA's HLO parser and printer (``xla/hlo/parser/hlo_parser.cc``, ``ParseAttributeHelper``;
``xla/hlo/ir/hlo_instructions.cc``, ``PrintExtraAttributesImpl``) for the forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, Generic, TypeVar

from hlo.shapes.shape import ELEMENT_TYPES, AnyShape, read_shape
from hlo.text import lexer
from hlo.text.lexer import NAME, balanced, here, skip
from hlo.text.source import HloError, Source, Span

T = TypeVar("T")
N = TypeVar("N", bound="float | tuple[Any, ...]")

_INTEGER: Final = re.compile(r"-?\d++", re.ASCII)
_NUMBER: Final = re.compile(r"[-+]?(?:\d++(?:\.\d*+)?|inf|nan)(?:[eE][-+]?\d++)?", re.ASCII)
_NAME: Final = re.compile(NAME, re.ASCII)
_STRING: Final = re.compile(r'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_REFERENCE: Final = re.compile(rf"%?({NAME})", re.ASCII)
_NAMES: Final = re.compile(rf"\{{\s*(?:%?{NAME}\s*[,}}]|\}})", re.ASCII)  # in braces, and no body
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


class Cursor:
    """Reads the text in a span from left to right, skipping white space and comments."""

    __slots__ = ("end", "owner", "position", "source")

    def __init__(self, span: Span, owner: str) -> None:
        self.source, self.position, self.end = span.source, span.start, span.end
        self.owner = owner  # what the text ought to be, for messages

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The word at the cursor if `pattern` matches it; moves past it."""
        found = pattern.match(self.source.text, self._start(), self.end)
        if found:
            self.position = found.end()
        return found

    def accepts(self, token: str) -> bool:
        """Whether `token` stands at the cursor; moves past it."""
        start = self._start()
        if not self.source.text.startswith(token, start, self.end):
            return False
        self.position = start + len(token)
        return True

    def need(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """The word at the cursor; an error unless `pattern` matches it."""
        found = self.take(pattern)
        if found is None:
            raise self.fault(f"expected {what}")
        return found

    def expect(self, token: str) -> None:
        """Moves past `token`; an error if something else stands at the cursor."""
        if not self.accepts(token):
            raise self.fault(f"expected `{token}`")

    def integer(self) -> int:
        """The integer at the cursor; an error if it has more than 64 bits."""
        found = self.need(_INTEGER, "an integer")
        return lexer.integer(found[0], self.source.span(*found.span()))

    def group(self) -> str:
        """The balanced text in brackets at the cursor."""
        start = self._start()
        self.position = balanced(self.source, start)
        return self.source.text[start : self.position]

    def rest(self) -> str:
        """Everything up to the end."""
        start, self.position = self._start(), self.end
        return self.source.text[start : self.end].rstrip()

    @property
    def at_end(self) -> bool:
        """Nothing but white space is left."""
        return self._start() >= self.end

    def fault(self, label: str, span: Span | None = None, help: str = "") -> HloError:  # noqa: A002
        """The error for what stands at the cursor, or in `span`."""
        return HloError(self.owner, span or self._here(), "attribute", label, help=help)

    def _start(self) -> int:
        return skip(self.source.text, self.position)

    def _here(self) -> Span:
        if self.at_end:
            return self.source.span(max(self.end - 1, 0), self.end)
        return here(self.source, self.position)


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A kind of attribute value.

    Attributes:
        name: what a value is called in messages, such as "a list of integers".
        example: the text of a value.
        read: takes a value at a cursor.
        print: the text of a value.
        limits: what else is demanded of a value, by the name of the demand: ``at least`` and
            ``at most`` of a number or of the length of a list, ``one of`` some words or classes.
    """

    name: str
    example: str
    read: Callable[[Cursor], T]
    print: Callable[[T], str]
    limits: tuple[tuple[str, Any], ...] = ()

    def parse(self, text: str | Span, owner: str = "the value") -> T:
        """The value that `text` says, all of it; `owner` is what messages call it.

        >>> boolean.parse("true")
        True

        Raises:
            HloError: it is not a value of this kind.
        """
        span = text if isinstance(text, Span) else Source(text, "<attribute>").span(0, len(text))
        cursor = Cursor(span, f"{owner} is not {self.name}")
        value = self.read(cursor)
        if not cursor.at_end:
            raise cursor.fault("expected nothing more")
        return value


def list_of(item: Kind[T], name: str, example: str, separator: str = ",") -> Kind[tuple[T, ...]]:
    """The kind of ``{item, item, ..}``.

    >>> list_of(boolean, "a list of booleans", "{true,false}").parse("{true, false}")
    (True, False)
    """

    def read(cursor: Cursor) -> tuple[T, ...]:
        cursor.expect("{")
        items: list[T] = []
        while not cursor.accepts("}"):
            if items and not cursor.accepts(","):
                raise cursor.fault("expected `,` or `}`")
            items.append(item.read(cursor))
        return tuple(items)

    def text(values: tuple[T, ...]) -> str:
        return f"{{{separator.join(map(item.print, values))}}}"

    return Kind(name, example, read, text)


def enum(*choices: str) -> Kind[str]:
    """The kind whose values are just these words.

    >>> enum("EQ", "NE").parse("NE")
    'NE'
    """

    def read(cursor: Cursor) -> str:
        found = cursor.need(_NAME, f"one of {', '.join(choices)}")
        if found[0] not in choices:
            near = get_close_matches(found[0].upper(), choices, 1) or choices
            span = cursor.source.span(*found.span())
            raise cursor.fault(f"`{found[0]}` is none of them", span, help=f"for example {near[0]}")
        return found[0]

    limits = (("one of", choices),)
    return Kind(f"one of {', '.join(choices)}", choices[0], read, str, limits)


def at_least(kind: Kind[N], least: int, most: int | None = None) -> Kind[N]:
    """The numbers of a kind from `least` on, up to `most`; for lists that is their length.

    >>> at_least(integer, 2).parse("7")
    7
    >>> try:
    ...     at_least(int_list, 1).parse("{}", "`dimensions`")
    ... except HloError as error:
    ...     print(error.message, "|", error.label)
    `dimensions` is not a list of integers, at least 1 of them | there are 0
    """

    def read(cursor: Cursor) -> N:
        start = cursor.position
        value = kind.read(cursor)
        amount = len(value) if isinstance(value, tuple) else value
        if least <= amount and (most is None or amount <= most):
            return value
        label = f"there are {amount}" if isinstance(value, tuple) else f"it is {amount}"
        raise cursor.fault(label, cursor.source.span(start, cursor.position))

    bounds = f"at least {least}" if most is None else f"{least} to {most}"
    is_list = kind.example.startswith("{")
    name = f"{kind.name}, {bounds} of them" if is_list else f"{kind.name}, {bounds}"
    upper = () if most is None else (("at most", most),)
    example = kind.example if is_list else str(least)
    return Kind(name, example, read, kind.print, (*kind.limits, ("at least", least), *upper))


def element_type(*classes: str) -> Kind[str]:
    """The kind of an element type: any, or one of these classes and types.

    >>> element_type("floating", "s8").parse("bf16")
    'bf16'

    Source of the classes: `hlo.ops.operand_types`.
    """
    from hlo.ops.operand_types import is_in_class

    wanted = " or ".join(classes) or "any"

    def read(cursor: Cursor) -> str:
        found = cursor.need(_NAME, "an element type such as f32")
        known = found[0] in ELEMENT_TYPES
        if known and (not classes or any(is_in_class(found[0], name) for name in classes)):
            return found[0]
        label = f"`{found[0]}` is not {wanted}" if known else f"`{found[0]}` is no element type"
        raise cursor.fault(label, cursor.source.span(*found.span()))

    name = "an element type" + (f", {wanted}" if classes else "")
    example = next(t for t in ELEMENT_TYPES if any(is_in_class(t, c) for c in classes or ["any"]))
    return Kind(name, example, read, str, (("one of", classes),) if classes else ())


# ---------------------------------------------------------------- values of several numbers


@dataclass(frozen=True, slots=True)
class Slice:
    """``[start:limit:stride]``: elements start, start + stride, .. below limit."""

    start: int
    limit: int
    stride: int = 1

    @property
    def count(self) -> int:
        """How many elements are taken.

        >>> Slice(1, 10, 3).count
        3
        """
        return len(range(self.start, self.limit, self.stride))

    def __str__(self) -> str:
        stride = f":{self.stride}" if self.stride != 1 else ""
        return f"[{self.start}:{self.limit}{stride}]"


@dataclass(frozen=True, slots=True)
class Padding:
    """``low_high_interior``: elements added before, after and between; fewer than none removes."""

    low: int = 0
    high: int = 0
    interior: int = 0

    @property
    def step(self) -> int:
        """Distance in the result of elements that are neighbours in the operand."""
        return self.interior + 1

    def padded(self, size: int) -> int:
        """The size of a dimension that had `size` elements; negative if too many are removed.

        >>> Padding(-1, 3, 2).padded(5)
        15
        """
        return self.low + dilated(size, self.step) + self.high

    def __str__(self) -> str:
        return f"{self.low}_{self.high}" + (f"_{self.interior}" if self.interior else "")


@dataclass(frozen=True, slots=True)
class WindowDimension:
    """One dimension of a window that slides over an array.

    Attributes:
        size: elements that the window takes.
        stride: distance of two neighbouring positions of the window.
        low, high: padding before and after the (dilated) array; negative ones remove elements.
        base_dilation: distance of neighbouring array elements; ``lhs_dilate`` in text.
        window_dilation: distance of neighbouring window elements; ``rhs_dilate`` in text.
        is_reversed: the window's elements are taken in reverse order.
    """

    size: int
    stride: int = 1
    low: int = 0
    high: int = 0
    base_dilation: int = 1
    window_dilation: int = 1
    is_reversed: bool = False

    def positions(self, base: int) -> int:
        """How many positions the window has over `base` elements.

        >>> WindowDimension(size=3, stride=2, low=1, high=2, base_dilation=2).positions(6)
        6
        """
        padded = self.low + dilated(base, self.base_dilation) + self.high
        window = dilated(self.size, self.window_dilation)
        return 0 if window > padded or padded <= 0 else (padded - window) // self.stride + 1


def dilated(size: int, step: int) -> int:
    """Extent of `size` elements that lie `step` apart: ``(size − 1)·step + 1``, or 0 for none."""
    return (size - 1) * step + 1 if size > 0 else 0


_X: Final = re.compile("x")
_UNDERSCORE: Final = re.compile("_")


def _crossed(cursor: Cursor, read: Callable[[Cursor], T]) -> tuple[T, ...]:
    """Items separated by ``x``."""
    items = [read(cursor)]
    while cursor.take(_X):
        items.append(read(cursor))
    return tuple(items)


def _slice(cursor: Cursor) -> Slice:
    cursor.expect("[")
    start = cursor.integer()
    cursor.expect(":")
    limit = cursor.integer()
    stride = cursor.integer() if cursor.accepts(":") else 1
    cursor.expect("]")
    return Slice(start, limit, stride)


def _padding(cursor: Cursor) -> Padding:
    edges = _edges(cursor)
    return Padding(edges.low, edges.high, cursor.integer() if cursor.take(_UNDERSCORE) else 0)


def _flag(cursor: Cursor) -> bool:
    return cursor.integer() != 0


def _edges(cursor: Cursor) -> Padding:
    low = cursor.integer()
    cursor.need(_UNDERSCORE, "`_`")
    return Padding(low, cursor.integer())


_WINDOW_FIELDS: Final[dict[str, Callable[[Cursor], object]]] = {
    "size": Cursor.integer,
    "stride": Cursor.integer,
    "pad": _edges,
    "lhs_dilate": Cursor.integer,
    "rhs_dilate": Cursor.integer,
    "rhs_reversal": _flag,
}
_PARAMETERS: Final = {
    "size": "size",
    "stride": "stride",
    "lhs_dilate": "base_dilation",
    "rhs_dilate": "window_dilation",
    "rhs_reversal": "is_reversed",
}


def _window(cursor: Cursor) -> tuple[WindowDimension, ...]:
    cursor.expect("{")
    start = cursor.position
    dimensions: list[dict[str, object]] = []
    seen: set[str] = set()
    while not cursor.accepts("}"):
        word = cursor.need(_NAME, "a window field such as size=3x3")
        span, name = cursor.source.span(*word.span()), word[0]
        if name not in _WINDOW_FIELDS:
            near = get_close_matches(name, _WINDOW_FIELDS, 1) or list(_WINDOW_FIELDS)
            raise cursor.fault("unknown window field", span, help=f"did you mean `{near[0]}`?")
        if name in seen:
            raise cursor.fault("given twice", span)
        seen.add(name)
        cursor.expect("=")
        values = _crossed(cursor, _WINDOW_FIELDS[name])
        if not dimensions:
            dimensions = [{} for _ in values]
        if len(values) != len(dimensions):
            label = f"{len(values)} values, but the window has {len(dimensions)} dimensions"
            raise cursor.fault(label, cursor.source.span(span.start, cursor.position))
        for dimension, value in zip(dimensions, values, strict=True):
            if isinstance(value, Padding):
                dimension |= {"low": value.low, "high": value.high}
            else:
                dimension[_PARAMETERS[name]] = value
    if dimensions and "size" not in seen:
        raise cursor.fault("the size is missing", cursor.source.span(start, cursor.position - 1))
    return tuple(
        WindowDimension(**fields)  # type: ignore[arg-type]  # _WINDOW_FIELDS keeps types right
        for fields in dimensions
    )


def _window_text(window: tuple[WindowDimension, ...]) -> str:
    def field(name: str, values: list[object], omitted: object) -> str:
        if all(value == omitted for value in values):
            return ""
        return f"{name}={'x'.join(map(str, values))}"

    fields = [
        field("size", [w.size for w in window], None),
        field("stride", [w.stride for w in window], 1),
        field("pad", [f"{w.low}_{w.high}" for w in window], "0_0"),
        field("lhs_dilate", [w.base_dilation for w in window], 1),
        field("rhs_dilate", [w.window_dilation for w in window], 1),
        field("rhs_reversal", [int(w.is_reversed) for w in window], 0),
    ]
    return f"{{{' '.join(filter(None, fields))}}}"


# ---------------------------------------------------------------- simple values


def _string(cursor: Cursor) -> str:
    found = cursor.need(_STRING, "a string in double quotes")
    return _ESCAPE.sub(r"\1", found[1])


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
    return cursor.need(_NAME, "a word")[0]


integer: Final = Kind("an integer", "0", Cursor.integer, str)
boolean: Final = Kind("true or false", "true", _boolean, lambda value: str(value).lower())
number: Final = Kind("a number", "1e-3", _number, repr)
string: Final = Kind("a string", '"text"', _string, _string_text)
word: Final = Kind("a word", "highest", _word, str)
raw: Final = Kind("a text", "{..}", Cursor.rest, str)
"""Any text, kept as it is: the kind of an attribute that the analysis has no use for."""
int_list: Final = list_of(integer, "a list of integers", "{1,0}")
word_list: Final = list_of(word, "a list of words", "{highest,default}")
slices: Final = list_of(
    Kind("a slice", "[0:8:2]", _slice, str), "a list of slices", "{[0:8:2]}", ", "
)
padding_config: Final = Kind(
    "a padding low_high_interior for each dimension",
    "1_4_1x-2_8",
    lambda cursor: () if cursor.at_end else _crossed(cursor, _padding),
    lambda value: "x".join(map(str, value)),
)
window: Final = Kind("a window", "{size=1x3 stride=2x1 pad=0_0x-1_2}", _window, _window_text)
shape: Final = Kind("a shape", "f32[2,3]", _shape, str)
computation: Final = Kind("a computation", "add", _computation, str)
"""A called computation: its name, or its body where the text has it in place. The computation
itself hangs on the instruction (`called_computations`), so that an op is a value of its own."""
computation_list: Final = list_of(computation, "a list of computations", "{one, two}", ", ")
