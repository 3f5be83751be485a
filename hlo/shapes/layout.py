"""Layouts: how the elements of an array lie in memory, with every suffix that XLA prints.

``{1,0:T(8,128)(2,1)S(1)}`` is the minor-to-major order of the dimensions, then tiles and other
suffixes. Source: XLA ``docs/shapes.md`` and ``docs/tiled_layout.md`` for the meaning,
``xla/layout.cc`` for the suffixes and their order.

Sizes and layout decide where each element of an array lies: `hlo.shapes.memory`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hlo.shapes.element_type import ELEMENT_TYPES
from hlo.text.lexer import SPACE, balanced, expected, integer, skip, word
from hlo.text.source import HloError, Source

COMBINE = -1  # a tile dimension `*`: this dimension is folded into the next more minor one


@dataclass(frozen=True, slots=True)
class Layout:
    """The order of an array's dimensions in memory, and how they are tiled and placed.

    Attributes:
        minor_to_major: dimensions, the fastest varying first; empty for scalars.
        dim_level_types: ``D(..)``, how each dimension is stored: D, C, S or H, with ``+`` (not
            unique) and ``~`` (not ordered).
        tiles: ``T(..)``, each a tuple of sizes, applied one after another; `COMBINE` where ``*`` is
            printed.
        tail_padding: ``L(..)``, elements that the total is padded to a multiple of.
        index_type, pointer_type: ``#(..)`` and ``*(..)``, element types of sparse indices and
            pointers.
        element_bits: ``E(..)``, bits that one element takes; 0 means as many as its type has.
        memory_space: ``S(..)``; 0 is the default memory.
        splits: ``SC(..)``, pairs of a dimension and the indices it is split at.
        physical_shape: ``P(..)``, the text of the shape that really lies in memory.
        metadata_prefix_bytes: ``M(..)``, bytes before the data that hold dynamic sizes.
        padded_dimensions: for each dimension the size that memory has room for, before tiles; empty
            where that is the size of the array. Text has no form for it.
        padding_value: what lies where no data lies, if that is known. Text has no form for it.

    Dimensions may be counted from the end: -1 is the last one.

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
            return f"minor_to_major {order} is not a permutation of 0..{rank - 1}"
        if self.tail_padding < 1:
            return f"tail padding is to a multiple of {self.tail_padding}, which is not positive"
        if self.physical_shape and not self.dim_level_types:
            return "a physical shape P(..) is only for sparse arrays, which have D(..)"
        if self.padded_dimensions and len(self.padded_dimensions) != rank:
            return f"{len(self.padded_dimensions)} padded dimensions are given for {rank}"
        return ""

    @classmethod
    def row_major(cls, rank: int) -> Layout:
        """The layout of an array whose last dimension varies fastest: XLA's default.

        >>> print(Layout.row_major(3))
        {2,1,0}
        """
        return cls(tuple(range(rank))[::-1])

    @classmethod
    def column_major(cls, rank: int) -> Layout:
        """The layout of an array whose first dimension varies fastest.

        >>> print(Layout.column_major(3))
        {0,1,2}
        """
        return cls(tuple(range(rank)))

    @property
    def major_to_minor(self) -> tuple[int, ...]:
        """Dimensions, the slowest varying first."""
        return self.minor_to_major[::-1]

    @property
    def rank(self) -> int:
        """How many dimensions it orders."""
        return len(self.minor_to_major)

    @property
    def is_plain(self) -> bool:
        """Says that there is nothing but an order of dimensions: no tiles or other suffix."""
        return self == Layout(self.minor_to_major)

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

_ORDER = word(rf"\{{{SPACE}((?:\d+(?:{SPACE},{SPACE}\d+)*)?){SPACE}(:|\}})")
_SUFFIX = word(r"(SC|[DTL#*ESPM])" + SPACE + r"(?=\()")
_INTEGERS = re.compile(rf"{SPACE}\d+{SPACE}(?:,{SPACE}\d+{SPACE})*", re.ASCII)
_TILE = re.compile(rf"{SPACE}(?:(?:\d+|\*){SPACE}(?:,{SPACE}(?:\d+|\*){SPACE})*)?", re.ASCII)
_SPLIT = re.compile(rf"{SPACE}\d+{SPACE}:{SPACE}\d+{SPACE}(?:,{SPACE}\d+{SPACE})*", re.ASCII)
_NUMBER = re.compile(rf"{SPACE}\d+{SPACE}", re.ASCII)
_TYPE = re.compile(rf"{SPACE}[a-z]\w*{SPACE}", re.ASCII)
_LEVELS = re.compile(rf"{SPACE}[DCSH][+~]*{SPACE}(?:,{SPACE}[DCSH][+~]*{SPACE})*", re.ASCII)
_ANYTHING = re.compile(r".*", re.DOTALL)
_PIECE = re.compile(r"\d+|\*|[A-Za-z]\w*[+~]*")

# suffix -> (field, pattern of what is in its parentheses, what to call that)
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
    """The layout in braces at `position`, and the position after it.

    >>> layout, end = read_layout(Source("{0,1:E(4)} p"), 0)
    >>> layout.minor_to_major, layout.element_bits, end
    ((0, 1), 4, 10)

    Raises:
        HloError: it is no layout, or no permutation.
    """
    start = skip(source.text, position)
    found = _ORDER.match(source.text, position)
    if not found:
        raise expected("a layout such as {1,0}", source, position)
    if not found[1] and found[2] == "}":
        span = source.span(start, found.end())
        raise HloError("the layout of a scalar is not written", span, "layout", "leave it out")
    order = source.span(*found.span(1))
    fields: dict[str, object] = {
        "minor_to_major": tuple(integer(digits, order) for digits in _PIECE.findall(found[1]))
    }
    cursor = found.end()
    if found[2] == ":":
        cursor = _read_suffixes(source, cursor, fields)
    try:
        return Layout(**fields), cursor  # type: ignore[arg-type]  # _SUFFIXES keeps types right
    except ValueError as error:
        raise HloError(str(error), source.span(start, cursor), "layout") from None


def _read_suffixes(source: Source, position: int, fields: dict[str, object]) -> int:
    """Put the suffixes from `position` on into `fields`; gives the position after ``}``."""
    while found := _SUFFIX.match(source.text, position):
        name, pattern, what = _SUFFIXES[found[1]]
        if name in fields:
            span = source.span(*found.span(1))
            raise HloError(f"the layout says {found[1]}(..) twice", span, label="the second one")
        position = found.end()
        groups = []
        while source.text.startswith("(", position):
            end = balanced(source, position)
            groups.append(_read_group(source, position + 1, end - 1, pattern, what))
            position = end
        fields[name] = _value(found[1], groups)
    close = skip(source.text, position)
    if not source.text.startswith("}", close):
        raise expected("a layout suffix such as T(8,128) or `}`", source, position)
    return close + 1


def _read_group(
    source: Source, start: int, end: int, pattern: re.Pattern[str], what: str
) -> tuple[int | str, ...]:
    """What stands between one pair of parentheses of a suffix, as its pieces."""
    if not pattern.fullmatch(source.text, start, end):
        raise expected(what, source, start)
    if pattern is _ANYTHING:
        return (source.text[start:end].strip(),)
    span = source.span(start, end)
    if pattern is _TYPE and span.text.strip() not in ELEMENT_TYPES:
        raise HloError(f"{span.text.strip()} is no element type", span, "layout", "not known")
    pieces = _PIECE.findall(source.text, start, end)
    return tuple(
        COMBINE if piece == "*" else integer(piece, span) if piece.isdigit() else piece
        for piece in pieces
    )


def _value(suffix: str, groups: list[tuple[int | str, ...]]) -> object:
    """The value of a field from the groups in parentheses that follow its suffix."""
    if suffix == "T":
        return tuple(groups)
    if suffix == "SC":
        return tuple((group[0], group[1:]) for group in groups)
    return groups[0] if suffix == "D" else groups[0][0]
