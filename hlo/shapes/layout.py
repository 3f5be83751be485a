"""Layouts: the order of an array's elements in memory, with every suffix that XLA prints.

``{1,0:T(8,128)(2,1)S(1)}`` is the minor-to-major order of the dimensions, then tiles and other
suffixes. Source: XLA ``docs/shapes.md`` and ``docs/tiled_layout.md`` for the meaning,
``xla/layout.cc`` for the suffixes and their order.

`hlo.shapes.memory` computes the positions of elements from sizes and layout.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hlo.arguments import checked, checked_constructor
from hlo.shapes.element_type import ELEMENT_TYPES
from hlo.text.lexer import COMMENT, SPACE, end_of_bracket, integer, skip, syntax_error, token
from hlo.text.source import HloError, Source, Span

COMBINE = -1  # a tile dimension `*`: the dimension is combined with the next more minor one


@checked_constructor
@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of an array: dimension order, tiles, padding and memory space.

    Attributes:
        minor_to_major: dimensions, the fastest varying first; empty for scalars.
        dim_level_types: ``D(..)``, the storage of each dimension: D, C, S or H, with ``+`` (not
            unique) and ``~`` (not ordered).
        tiles: ``T(..)``, each a tuple of sizes, applied one after another; `COMBINE` is printed
            as ``*``.
        tail_padding: ``L(..)``, in elements; the total size is padded to a multiple of it.
        index_type, pointer_type: ``#(..)`` and ``*(..)``, element types of sparse indices and
            pointers.
        element_bits: ``E(..)``, bits of one element; 0 means the bits of its type.
        memory_space: ``S(..)``; 0 is the default memory.
        splits: ``SC(..)``, pairs of a dimension and its split indices.
        physical_shape: ``P(..)``, the text of the physical shape of a sparse array.
        metadata_prefix_bytes: ``M(..)``, bytes before the data that store dynamic sizes.
        padded_dimensions: size of each dimension with padding, before tiles; empty without padding.
            Not part of the text.
        padding_value: the value of padding, if known. Not part of the text.

    Negative dimensions count from the end: -1 is the last.

    Raises:
        ValueError: the order is not a permutation, or the attributes contradict each other.
    Source: XLA ``docs/shapes.md``, ``docs/tiled_layout.md`` and ``xla/layout.h``.

    >>> Layout((-1, -2)) == Layout((1, 0))
    True
    >>> print(Layout((1, 0), tiles=((8, 128), (2, 1)), memory_space=1))
    {1,0:T(8,128)(2,1)S(1)}
    """

    minor_to_major: tuple[int, ...] = ()
    tiles: tuple[tuple[int, ...], ...] = ()
    dim_level_types: tuple[str, ...] = ()
    tail_padding: int = 1
    index_type: str = ""
    pointer_type: str = ""
    element_bits: int = 0
    memory_space: int = 0
    splits: tuple[tuple[int, tuple[int, ...]], ...] = ()
    physical_shape: str = ""
    metadata_prefix_bytes: int = 0
    padded_dimensions: tuple[int, ...] = ()
    padding_value: float | None = None

    def __post_init__(self) -> None:
        given, rank = tuple(self.minor_to_major), len(self.minor_to_major)
        object.__setattr__(self, "minor_to_major", tuple(d + rank if d < 0 else d for d in given))
        if self.splits:
            splits = tuple((d + rank if d < 0 else d, tuple(at)) for d, at in self.splits)
            object.__setattr__(self, "splits", splits)
        if fault := self._fault():
            raise ValueError(fault)

    def _fault(self) -> str:
        order, rank = self.minor_to_major, len(self.minor_to_major)
        if sorted(order) != list(range(rank)):
            text = ",".join(map(str, order))
            return f"minor_to_major {{{text}}} is not a permutation of 0..{rank - 1}"
        if self.tail_padding < 1:
            return f"the tail padding must be positive, but is {self.tail_padding}"
        if self.physical_shape and not self.dim_level_types:
            return "a physical shape P(..) requires dimension level types D(..) of a sparse array"
        if self.padded_dimensions and len(self.padded_dimensions) != rank:
            return f"{len(self.padded_dimensions)} padded dimensions for {rank} dimensions"
        return ""

    @classmethod
    @checked
    def row_major(cls, rank: int) -> Layout:
        """Return the layout of an array whose last dimension varies fastest: XLA's default.

        >>> print(Layout.row_major(3))
        {2,1,0}
        """
        return cls(tuple(range(rank))[::-1])

    @classmethod
    @checked
    def column_major(cls, rank: int) -> Layout:
        """Return the layout of an array whose first dimension varies fastest.

        >>> print(Layout.column_major(3))
        {0,1,2}
        """
        return cls(tuple(range(rank)))

    @property
    def major_to_minor(self) -> tuple[int, ...]:
        """Dimensions, the slowest varying first.

        >>> Layout((1, 2, 0)).major_to_minor
        (0, 2, 1)
        """
        return self.minor_to_major[::-1]

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.minor_to_major)

    @property
    def is_plain(self) -> bool:
        """True if the layout is only an order of dimensions, without tiles or other suffixes.

        >>> Layout((1, 0)).is_plain, Layout((1, 0), tiles=((8, 128),)).is_plain
        (True, False)
        """
        return self == Layout(self.minor_to_major)

    def __repr__(self) -> str:
        return f"<layout {self}>"

    def __str__(self) -> str:
        order = ",".join(map(str, self.minor_to_major))
        suffixes = "".join(self._suffixes())
        return f"{{{order}:{suffixes}}}" if suffixes else f"{{{order}}}"

    def _suffixes(self) -> list[str]:
        tiles = "".join(f"({_tile(tile)})" for tile in self.tiles)
        splits = "".join(f"({d}:{','.join(map(str, at))})" for d, at in self.splits)
        return [
            f"D({','.join(self.dim_level_types)})" if self.dim_level_types else "",
            f"T{tiles}" if tiles else "",
            f"L({self.tail_padding})" if self.tail_padding != 1 else "",
            f"#({self.index_type})" if self.index_type else "",
            f"*({self.pointer_type})" if self.pointer_type else "",
            f"E({self.element_bits})" if self.element_bits else "",
            f"S({self.memory_space})" if self.memory_space else "",
            f"SC{splits}" if splits else "",
            f"P({self.physical_shape})" if self.physical_shape else "",
            f"M({self.metadata_prefix_bytes})" if self.metadata_prefix_bytes else "",
        ]


def _tile(tile: tuple[int, ...]) -> str:
    return ",".join("*" if size == COMBINE else str(size) for size in tile)


# ---------------------------------------------------------------- reading

_OPENED = token(r"\{[\s\d,\-]*")
_ORDER = token(rf"\{{{SPACE}((?:\d+(?:{SPACE},{SPACE}\d+)*)?){SPACE}(:|\}})")
_SUFFIX = token(r"(SC|[DTL#*ESPM])" + SPACE + r"(?=\()")
_INTEGERS = re.compile(rf"{SPACE}\d+{SPACE}(?:,{SPACE}\d+{SPACE})*", re.ASCII)
_TILE = re.compile(rf"{SPACE}(?:(?:\d+|\*){SPACE}(?:,{SPACE}(?:\d+|\*){SPACE})*)?", re.ASCII)
_SPLIT = re.compile(rf"{SPACE}\d+{SPACE}:{SPACE}\d+{SPACE}(?:,{SPACE}\d+{SPACE})*", re.ASCII)
_NUMBER = re.compile(rf"{SPACE}\d+{SPACE}", re.ASCII)
_TYPE = re.compile(rf"{SPACE}[a-z]\w*{SPACE}", re.ASCII)
_LEVELS = re.compile(rf"{SPACE}[DCSH][+~]*{SPACE}(?:,{SPACE}[DCSH][+~]*{SPACE})*", re.ASCII)
_ANYTHING = re.compile(r".*", re.DOTALL)
_PIECE = re.compile(rf"{COMMENT}|(\d+|\*|[A-Za-z]\w*[+~]*)")

# suffix -> (field, pattern of the text in parentheses, description in errors)
_SUFFIXES = {
    "D": ("dim_level_types", _LEVELS, "dimension level types such as D,C"),
    "T": ("tiles", _TILE, "tile sizes such as 8,128"),
    "L": ("tail_padding", _NUMBER, "a number of elements"),
    "#": ("index_type", _TYPE, "an element type such as u32"),
    "*": ("pointer_type", _TYPE, "an element type such as u32"),
    "E": ("element_bits", _NUMBER, "a number of bits"),
    "S": ("memory_space", _NUMBER, "a memory space number"),
    "SC": ("splits", _SPLIT, "a dimension and split indices such as 1:200"),
    "P": ("physical_shape", _ANYTHING, "a shape"),
    "M": ("metadata_prefix_bytes", _NUMBER, "a number of bytes"),
}


def read_layout(source: Source, position: int) -> tuple[Layout, int]:
    """Read the layout in braces at `position`; return it and the position after it.

    >>> layout, end = read_layout(Source("{0,1:E(4)} p"), 0)
    >>> layout.minor_to_major, layout.element_bits, end
    ((0, 1), 4, 10)

    Raises:
        HloError: the text is not a layout, or the layout is invalid.
    """
    start = skip(source.text, position)
    match = _ORDER.match(source.text, position)
    if not match:
        if opened := _OPENED.match(source.text, position):
            raise syntax_error("`,` or `}` in a layout such as {1,0}", source, opened.end())
        raise syntax_error("a layout such as {1,0}", source, position)
    if not match[1] and match[2] == "}":
        span = source.span(start, match.end())
        raise HloError("a scalar must not have a layout", span, "layout", help="omit the layout")
    order = source.span(*match.span(1))
    fields: dict[str, object] = {
        "minor_to_major": tuple(integer(digits, order) for digits in _pieces(order))
    }
    cursor = match.end()
    if match[2] == ":":
        cursor = _read_suffixes(source, cursor, fields)
    try:
        return Layout(**fields), cursor  # type: ignore[arg-type]  # types follow from _SUFFIXES
    except ValueError as error:
        raise HloError(str(error), source.span(start, cursor), "layout") from None


def _read_suffixes(source: Source, position: int, fields: dict[str, object]) -> int:
    """Read the suffixes from `position` on into `fields`; return the position after ``}``."""
    while suffix := _SUFFIX.match(source.text, position):
        name, pattern, wanted = _SUFFIXES[suffix[1]]
        if name in fields:
            span = source.span(*suffix.span(1))
            raise HloError(f"duplicate layout suffix {suffix[1]}(..)", span, label="given again")
        position = suffix.end()
        groups = []
        while source.text.startswith("(", position):
            end = end_of_bracket(source, position)
            groups.append(_read_group(source, position + 1, end - 1, pattern, wanted))
            position = end
        fields[name] = _value(suffix[1], groups)
    close = skip(source.text, position)
    if not source.text.startswith("}", close):
        raise syntax_error("a layout suffix such as T(8,128) or `}`", source, position)
    return close + 1


def _read_group(
    source: Source, start: int, end: int, pattern: re.Pattern[str], wanted: str
) -> tuple[int | str, ...]:
    """Return the items in one pair of parentheses of a suffix."""
    if not pattern.fullmatch(source.text, start, end):
        raise syntax_error(wanted, source, start)
    if pattern is _ANYTHING:
        return (source.text[start:end].strip(),)
    span = source.span(start, end)
    if pattern is _TYPE and span.text.strip() not in ELEMENT_TYPES:
        message = f"unknown element type {span.text.strip()}"
        raise HloError(message, span, "layout")
    return tuple(
        COMBINE if piece == "*" else integer(piece, span) if piece.isdigit() else piece
        for piece in _pieces(span)
    )


def _pieces(span: Span) -> list[str]:
    """Return the numbers and words at a span, without comments."""
    return [piece for piece in _PIECE.findall(span.text) if piece]


def _value(suffix: str, groups: list[tuple[int | str, ...]]) -> object:
    """Return the value of a field from the parenthesised groups of its suffix."""
    if suffix == "T":
        return tuple(groups)
    if suffix == "SC":
        return tuple((group[0], group[1:]) for group in groups)
    return groups[0] if suffix == "D" else groups[0][0]
