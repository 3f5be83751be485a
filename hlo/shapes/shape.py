"""Shapes: element types, array shapes, tuples, tokens and buffers, and their text.

>>> shape = parse_shape("f32[2,3]{0,1}")
>>> shape.element_type, shape.dims, shape.size, str(shape.layout)
('f32', (2, 3), 6, '{0,1}')
>>> print(parse_shape("(f32[2], /*index=1*/s32[])"))
(f32[2], s32[])

Source: XLA ``docs/shapes.md``; the forms are those that XLA's HLO parser accepts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from typing import TypeAlias

from hlo.shapes.array_shape import UNBOUNDED as UNBOUNDED
from hlo.shapes.array_shape import Shape as Shape
from hlo.shapes.element_type import ELEMENT_TYPES as ELEMENT_TYPES
from hlo.shapes.element_type import ElementType as ElementType
from hlo.shapes.element_type import dtype as dtype
from hlo.shapes.layout import Layout as Layout
from hlo.shapes.layout import read_layout
from hlo.text.lexer import COMMENT, END, MAX_NESTING, SPACE, expected, integer, too_deep, word
from hlo.text.source import HloError, Source


@dataclass(frozen=True, slots=True, eq=False)
class TupleShape:
    """Several values in one: the shape of an instruction with many results."""

    elements: tuple[AnyShape, ...]
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "elements", tuple(self.elements))
        object.__setattr__(self, "_hash", hash(self.elements))

    def compatible(self, other: AnyShape) -> bool:
        """Says that both hold the same elements, whatever their layouts."""
        if not isinstance(other, TupleShape) or len(self.elements) != len(other.elements):
            return False
        return all(a.compatible(b) for a, b in zip(self.elements, other.elements, strict=True))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TupleShape):
            return NotImplemented
        return self is other or self.elements == other.elements

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.elements))})"


@dataclass(frozen=True, slots=True)
class OpaqueShape:
    """A value without elements: ``token[]`` or ``opaque[]``."""

    kind: str

    def compatible(self, other: AnyShape) -> bool:
        """Says that both are of one kind."""
        return self == other

    def __str__(self) -> str:
        return f"{self.kind}[]"


@dataclass(frozen=True, slots=True)
class BufferShape:
    """A piece of memory that holds an array: ``b(f32[2,3]{1,0})``."""

    element: AnyShape

    def compatible(self, other: AnyShape) -> bool:
        """Says that both hold the same elements, whatever their layouts."""
        return isinstance(other, BufferShape) and self.element.compatible(other.element)

    def __str__(self) -> str:
        return f"b({self.element})"


AnyShape: TypeAlias = Shape | TupleShape | OpaqueShape | BufferShape

_OPAQUE = {kind: OpaqueShape(kind) for kind in ("token", "opaque")}


def leaves(shape: AnyShape) -> tuple[tuple[tuple[int, ...], Shape | OpaqueShape], ...]:
    """The values in a shape in order, each with its path; an array is its own one leaf, with the
    path ``()``.

    >>> [(path, str(leaf)) for path, leaf in leaves(parse_shape("(f32[2], (s32[], token[]))"))]
    [((0,), 'f32[2]'), ((1, 0), 's32[]'), ((1, 1), 'token[]')]
    """
    match shape:
        case TupleShape(elements):
            inner = ((i, leaf) for i, element in enumerate(elements) for leaf in leaves(element))
            return tuple(((i, *path), leaf) for i, (path, leaf) in inner)
        case BufferShape(element):
            return leaves(element)
        case _:
            return (((), shape),)


# ---------------------------------------------------------------- reading

_SIZE = rf"{SPACE}(?:(?:<={SPACE})?+\d++|(?:<={SPACE})?+\?){SPACE}"
_DIMS = rf"(?:{_SIZE}(?:,{_SIZE})*+|{SPACE})"
_LAYOUT = (
    r"\{[^{}]*+(?:\{[^{}]*+\}[^{}]*+)*+\}"  # a physical shape in it may have a layout of its own
)
_ARRAY = word(
    rf"([a-z]\w*+{SPACE}\[{_DIMS}\](?:{SPACE}(?=\{{{SPACE}[\d:}}])(?:{_LAYOUT}|(\{{)))?+)"
)
_BEGINNING = word(rf"[a-z]\w*+{SPACE}\[({_SIZE}(?:,(?:{_SIZE})?+)*+)?+")
_OPEN = word(r"(b?+)\(")
_NEXT = word(r"([,)])")
_TYPE = re.compile(r"\w+", re.ASCII)
_ONE_SIZE = re.compile(rf"{COMMENT}|(<=)?+{SPACE}(\d++|\?)")


def parse_shape(text: str) -> AnyShape:
    """The shape that `text` says, and nothing but that.

    >>> parse_shape("bf16[8,<=128]").dynamic
    (False, True)

    Raises:
        HloError: it is not a shape, or an impossible one.
    """
    source = Source(text, "<shape>")
    shape, end = read_shape(source, 0)
    if not END.match(text, end):
        raise expected("the end of the shape", source, end)
    return shape


def find_shape(source: Source, position: int) -> tuple[AnyShape | None, int]:
    """What `read_shape` gives, or None and `position` when no shape begins there."""
    if array := _ARRAY.match(source.text, position):
        return _known(source, array), array.end()
    if opened := _OPEN.match(source.text, position):
        return _read_elements(source, opened, 1)
    return None, position


def read_shape(source: Source, position: int, depth: int = 0) -> tuple[AnyShape, int]:
    """Read the shape at `position`, within `depth` others; return it and the position after it.

    Equal texts of arrays give one object, so that a file costs no more than the different shapes in
    it.

    Raises:
        HloError: there is no shape, or an impossible one.
    """
    if array := _ARRAY.match(source.text, position):
        return _known(source, array), array.end()
    if opened := _OPEN.match(source.text, position):
        return _read_elements(source, opened, depth + 1)
    raise no_shape("a shape such as f32[2,3]", source, position)


def _read_elements(source: Source, opened: re.Match[str], depth: int) -> tuple[AnyShape, int]:
    """The tuple or the buffer that `opened` begins."""
    position, is_buffer = opened.end(), bool(opened[1])
    if depth > MAX_NESTING:
        raise too_deep(source, position - 1)
    mark = _NEXT.match(source.text, position)
    if mark and mark[1] == ")" and not is_buffer:
        return TupleShape(()), mark.end()
    elements: list[AnyShape] = []
    while True:
        element, position = read_shape(source, position, depth)
        elements.append(element)
        mark = _NEXT.match(source.text, position)
        if not mark or (is_buffer and mark[1] == ","):
            wanted = "`)` after the shape of a buffer" if is_buffer else "`,` or `)` in a tuple"
            raise expected(wanted, source, position)
        position = mark.end()
        if mark[1] == ")":
            return BufferShape(element) if is_buffer else TupleShape(tuple(elements)), position


def no_shape(what: str, source: Source, position: int) -> HloError:
    """The error for text that is not `what`, or what an array that begins there lacks."""
    if not (found := _BEGINNING.match(source.text, position)):
        return expected(what, source, position)
    message = "a size, or `]` after the last one"
    return expected(message if found[1] else "a size or `]`", source, found.end())


def _known(source: Source, found: re.Match[str]) -> Shape | OpaqueShape:
    """The array that a match of `_ARRAY` says; its errors point into `source`."""
    if found[2]:
        read_layout(source, found.start(2))  # which says what is wrong
    try:
        return _array(found[1])
    except HloError as error:
        raise error.moved(source, found.start(1)) from None


@lru_cache(maxsize=1 << 16)
def _array(text: str) -> Shape | OpaqueShape:
    """The array that `text` says, a text that `_ARRAY` accepts."""
    source = Source(text)
    name, rest = text[: text.index("[")], text.index("]") + 1
    name = _TYPE.findall(name)[0]
    sizes = [s for s in _ONE_SIZE.finditer(text, text.index("[") + 1, rest - 1) if s[2]]
    if name in _OPAQUE:
        if sizes:
            span = source.span(0, rest)
            raise HloError(f"{name} has no dimensions", span, "shape", f"write {name}[]")
        return _OPAQUE[name]
    if name not in ELEMENT_TYPES:
        close = get_close_matches(name, ELEMENT_TYPES, 1)
        hint = f"do you mean {close[0]}?" if close else ""
        span = source.span(0, len(name))
        raise HloError(f"{name} is no element type", span, "shape", "not known", help=hint)
    dims = tuple(
        UNBOUNDED if size[2] == "?" else integer(size[2], source.span(*size.span(2)))
        for size in sizes
    )
    layout = read_layout(source, rest)[0] if not END.match(text, rest) else None
    try:
        return Shape(name, dims, layout, tuple(bool(size[1]) for size in sizes))
    except ValueError as error:
        raise HloError(str(error), source.span(0, len(text)), "shape") from None
