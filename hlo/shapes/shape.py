"""Shapes: element types, array shapes, tuples, tokens and buffers, and their text.

>>> shape = parse_shape("f32[2,3]{0,1}")
>>> shape.element_type, shape.dims, shape.size, str(shape.layout)
('f32', (2, 3), 6, '{0,1}')
>>> print(parse_shape("(f32[2], /*index=1*/s32[])"))
(f32[2], s32[])

Source: XLA ``docs/shapes.md``; the syntax is that of XLA's HLO parser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias

from hlo.arguments import checked, checked_constructor
from hlo.html import Preformatted
from hlo.shapes.array_shape import UNBOUNDED as UNBOUNDED
from hlo.shapes.array_shape import Shape as Shape
from hlo.shapes.element_type import ELEMENT_TYPES as ELEMENT_TYPES
from hlo.shapes.element_type import NAMES_OF_DTYPES
from hlo.shapes.element_type import ElementType as ElementType
from hlo.shapes.element_type import dtype as dtype
from hlo.shapes.layout import Layout as Layout
from hlo.shapes.layout import read_layout
from hlo.text.lexer import COMMENT, END, MAX_NESTING, SPACE, integer, syntax_error, token, too_deep
from hlo.text.names import did_you_mean, nearest
from hlo.text.source import HloError, Source


@checked_constructor
@dataclass(frozen=True, slots=True, eq=False)
class TupleShape(Preformatted):
    """The shape of a tuple, such as the result of an instruction with several results.

    Source: XLA ``xla/shape.h``.

    >>> print(TupleShape((Shape("f32", (2,)), Shape("s32", ()))))
    (f32[2], s32[])
    """

    elements: tuple[AnyShape, ...]
    _hash: int = field(init=False, repr=False)
    _depth: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "elements", tuple(self.elements))
        inner = [shape._depth for shape in self.elements if isinstance(shape, TupleShape)]
        object.__setattr__(self, "_depth", 1 + max(inner, default=0))
        if self._depth > MAX_NESTING:  # its text would not parse
            raise ValueError(f"tuples are nested more than {MAX_NESTING} deep")
        object.__setattr__(self, "_hash", hash(self.elements))

    def compatible(self, other: object) -> bool:
        """Return True if the elements are compatible (`Shape.compatible`); layouts are ignored.

        >>> column, row = Shape("f32", (2, 3), Layout((0, 1))), Shape("f32", (2, 3), Layout((1, 0)))
        >>> TupleShape((column,)).compatible(TupleShape((row,))), TupleShape((row,)).compatible(row)
        (True, False)
        """
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


@checked_constructor
@dataclass(frozen=True, slots=True)
class OpaqueShape(Preformatted):
    """The shape of a value without elements: ``token[]`` or ``opaque[]``.

    Source: XLA ``xla/xla_data.proto``, ``PrimitiveType``.

    >>> print(OpaqueShape("token"))
    token[]
    """

    kind: str

    def compatible(self, other: object) -> bool:
        """Return True if the kinds are equal.

        >>> OpaqueShape("token").compatible(OpaqueShape("opaque"))
        False
        """
        return self == other

    def __str__(self) -> str:
        return f"{self.kind}[]"


@checked_constructor
@dataclass(frozen=True, slots=True)
class BufferShape(Preformatted):
    """The shape of a buffer: ``b(f32[2,3]{1,0})``.

    Source: StableHLO ``rfcs/20250729-buffer.md``, for the buffer types of HLO.

    >>> print(BufferShape(Shape("f32", (2, 3))))
    b(f32[2,3])
    """

    element: AnyShape

    def compatible(self, other: object) -> bool:
        """Return True if the elements are compatible (`Shape.compatible`); layouts are ignored.

        >>> row = Shape("f32", (2, 3))
        >>> BufferShape(row).compatible(BufferShape(row)), BufferShape(row).compatible(row)
        (True, False)
        """
        return isinstance(other, BufferShape) and self.element.compatible(other.element)

    def __str__(self) -> str:
        return f"b({self.element})"


AnyShape: TypeAlias = Shape | TupleShape | OpaqueShape | BufferShape

# names of element types in NumPy, C and MLIR
_OTHER_NAMES = {
    **NAMES_OF_DTYPES,
    **{name.replace("s", "i"): name for name in ELEMENT_TYPES if name[0] == "s"},
    "half": "f16",
    "float": "f32",
    "double": "f64",
    "int": "s32",
    "i1": "pred",
}
_OPAQUE = {kind: OpaqueShape(kind) for kind in ("token", "opaque")}


def leaves(shape: AnyShape) -> tuple[tuple[tuple[int, ...], Shape | OpaqueShape], ...]:
    """Return the leaves of a shape in order, each with its path; that of an array is ``()``.

    >>> [(path, str(leaf)) for path, leaf in leaves(parse_shape("(f32[2], (s32[], token[]))"))]
    [((0,), 'f32[2]'), ((1, 0), 's32[]'), ((1, 1), 'token[]')]
    """
    match shape:
        case TupleShape():
            return _tuple_leaves(shape)
        case BufferShape(element):
            return leaves(element)
        case _:
            return (((), shape),)


@lru_cache(maxsize=1 << 8)
def _tuple_leaves(
    shape: TupleShape,
) -> tuple[tuple[tuple[int, ...], Shape | OpaqueShape], ...]:
    inner = ((i, leaf) for i, element in enumerate(shape.elements) for leaf in leaves(element))
    return tuple(((i, *path), leaf) for i, (path, leaf) in inner)


def leaf_number(shape: AnyShape, path: tuple[int, ...]) -> int:
    """Return the position of the leaf at `path` among the leaves of a shape.

    >>> leaf_number(parse_shape("(f32[2], (s32[], token[]))"), (1, 1))
    2
    """
    return _leaf_numbers(shape)[path] if isinstance(shape, TupleShape) else 0


def layouts_text(shape: AnyShape, *, has_tiles: bool = True) -> str:
    """Return the layout of each array of a shape, row-major by default, without memory spaces.

    >>> layouts_text(parse_shape("(f32[2,3]{0,1:T(8,128)S(1)}, token[], f32[5])"))
    '{0,1:T(8,128)} {0}'
    """
    layouts = [leaf.layout_or_default for _, leaf in leaves(shape) if isinstance(leaf, Shape)]
    plain = [replace(each, memory_space=0) for each in layouts]
    return " ".join([str(each if has_tiles else replace(each, tiles=())) for each in plain])


def unbounded_leaf(*shapes: AnyShape) -> Shape | None:
    """Return the first array in `shapes` with a dimension of unknown size, or None.

    >>> print(unbounded_leaf(parse_shape("f32[<=2]"), parse_shape("(f32[2], s32[?])")))
    s32[?]
    """
    for shape in shapes:
        for _, leaf in leaves(shape):
            if isinstance(leaf, Shape) and UNBOUNDED in leaf.dims:
                return leaf
    return None


def leaf_shape(shape: AnyShape, path: tuple[int, ...]) -> Shape | OpaqueShape:
    """Return the leaf at `path` of a shape.

    >>> print(leaf_shape(parse_shape("(f32[2], (s32[], token[]))"), (1, 0)))
    s32[]
    """
    return leaves(shape)[leaf_number(shape, path)][1]


@lru_cache(maxsize=1 << 7)
def _leaf_numbers(shape: TupleShape) -> dict[tuple[int, ...], int]:
    return {path: number for number, (path, _) in enumerate(leaves(shape))}


@lru_cache(maxsize=1 << 11)
def first_equal_leaves(shape: AnyShape) -> tuple[int, ...]:
    """Return for each leaf the position of the first leaf with the same shape.

    >>> first_equal_leaves(parse_shape("(f32[2], s32[], f32[2])"))
    (0, 1, 0)
    """
    first: dict[AnyShape, int] = {}
    return tuple([first.setdefault(leaf, k) for k, (_, leaf) in enumerate(leaves(shape))])


# ---------------------------------------------------------------- reading

_SIZE = rf"{SPACE}(?:(?><={SPACE})?+\d++|(?><={SPACE})?+\?){SPACE}"
_DIMS = rf"(?:{_SIZE}(?>,{_SIZE})*+|{SPACE})"
_LAYOUT = r"\{[^{}]*+(?>\{[^{}]*+\}[^{}]*+)*+\}"  # a nested physical shape may have its own layout
_ARRAY = token(
    rf"([a-z]\w*+{SPACE}\[{_DIMS}\](?>{SPACE}(?=\{{{SPACE}[\d:}}])(?:{_LAYOUT}|(\{{)))?+)"
)
_BEGINNING = token(rf"[a-z]\w*+{SPACE}\[(?>({_SIZE}(?>,(?>{_SIZE})?+)*+))?+")
_OPEN = token(r"(b?+)\(")
_NEXT = token(r"([,)])")
_TYPE = re.compile(r"\w+", re.ASCII)
_ONE_SIZE = re.compile(rf"{COMMENT}|(?>(<=))?+{SPACE}(\d++|\?)")


@checked
def parse_shape(text: str) -> AnyShape:
    """Parse the text of a shape.

    >>> parse_shape("bf16[8,<=128]").dynamic
    (False, True)

    Raises:
        HloError: the text is not a shape, or the shape is invalid.

    Source: XLA ``docs/shapes.md`` and ``xla/hlo/parser/hlo_parser.cc``, ``ParseShape``.
    """
    source = Source(text, "<shape>")
    shape, end = read_shape(source, 0)
    if not END.match(text, end):
        raise syntax_error("the end of the shape", source, end)
    return shape


def find_shape(source: Source, position: int) -> tuple[AnyShape | None, int]:
    """Read a shape as `read_shape`; return None and `position` if no shape begins there."""
    if array := _ARRAY.match(source.text, position):
        return _array_of_match(source, array), array.end()
    if opened := _OPEN.match(source.text, position):
        return _read_elements(source, opened, 1)
    return None, position


def read_shape(source: Source, position: int, depth: int = 0) -> tuple[AnyShape, int]:
    """Read the shape at `position`, nested in `depth` others; return it and the position after it.

    Shapes of arrays are memoised by text.

    Raises:
        HloError: the text is not a shape, or the shape is invalid.
    """
    if array := _ARRAY.match(source.text, position):
        return _array_of_match(source, array), array.end()
    if opened := _OPEN.match(source.text, position):
        return _read_elements(source, opened, depth + 1)
    raise no_shape("a shape such as f32[2,3]", source, position)


def _read_elements(source: Source, opened: re.Match[str], depth: int) -> tuple[AnyShape, int]:
    """Read the tuple or the buffer that begins with `opened`."""
    position, is_buffer = opened.end(), bool(opened[1])
    if depth > MAX_NESTING:
        raise too_deep(source, position - 1)
    mark = _NEXT.match(source.text, position)
    if mark and mark[1] == ")" and not is_buffer:
        return TupleShape(()), mark.end()
    elements: list[AnyShape] = []
    while True:
        start = position
        element, position = read_shape(source, position, depth)
        elements.append(element)
        if is_buffer and not isinstance(element, Shape):
            message = f"a buffer contains an array, not {element}"
            raise HloError(message, source.span(start, position), "shape")
        mark = _NEXT.match(source.text, position)
        if not mark or (is_buffer and mark[1] == ","):
            wanted = "`)` after the shape of a buffer" if is_buffer else "`,` or `)` in a tuple"
            raise syntax_error(wanted, source, position)
        position = mark.end()
        if mark[1] == ")":
            return BufferShape(element) if is_buffer else TupleShape(tuple(elements)), position


def no_shape(wanted: str, source: Source, position: int) -> HloError:
    """Return the error "expected `wanted`", or that of an incomplete array at `position`."""
    if not (beginning := _BEGINNING.match(source.text, position)):
        return syntax_error(wanted, source, position)
    message = "a size, or `]` after the last one"
    return syntax_error(message if beginning[1] else "a size or `]`", source, beginning.end())


def _array_of_match(source: Source, match: re.Match[str]) -> Shape | OpaqueShape:
    """Return the array of a match of `_ARRAY`; errors point into `source`."""
    if match[2]:
        read_layout(source, match.start(2))  # raises the error of an invalid layout
    try:
        return _array(match[1])
    except HloError as error:
        layout = match.start(1) + match[1].index("]") + 1
        if not END.match(match[1], match[1].index("]") + 1):
            read_layout(source, layout)  # raises an error whose notes refer to `source`
        raise error.moved(source, match.start(1)) from None


@lru_cache(maxsize=1 << 11)
def _array(text: str) -> Shape | OpaqueShape:
    """Parse a text that `_ARRAY` accepts."""
    source = Source(text)
    name, rest = text[: text.index("[")], text.index("]") + 1
    name = _TYPE.findall(name)[0]
    sizes = [s for s in _ONE_SIZE.finditer(text, text.index("[") + 1, rest - 1) if s[2]]
    if name in _OPAQUE:
        if sizes:
            span = source.span(0, rest)
            raise HloError(f"{name} has no dimensions", span, "shape", help=f"write {name}[]")
        return _OPAQUE[name]
    if name not in ELEMENT_TYPES:
        same = did_you_mean([_OTHER_NAMES[name]]) if name in _OTHER_NAMES else ""
        hint = same or nearest(name, ELEMENT_TYPES)
        span = source.span(0, len(name))
        raise HloError(f"unknown element type `{name}`", span, "shape", help=hint)
    dims = tuple(
        UNBOUNDED if size[2] == "?" else integer(size[2], source.span(*size.span(2)))
        for size in sizes
    )
    layout = read_layout(source, rest)[0] if not END.match(text, rest) else None
    try:
        return Shape(name, dims, layout, tuple(bool(size[1]) for size in sizes))
    except ValueError as error:
        raise HloError(str(error), source.span(0, len(text)), "shape") from None
