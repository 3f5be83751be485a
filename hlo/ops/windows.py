"""Attribute values of one entry for each dimension: slices, paddings and windows.

>>> rows, columns = window.parse("{size=3x2 stride=2x1 pad=1_0x0_0}")
>>> rows.size, rows.positions(6), columns.positions(6)
(3, 3, 5)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from hlo.ops.kinds import WORD, Kind, list_of
from hlo.text.cursor import Cursor
from hlo.text.names import did_you_mean, nearest

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SliceDimension:
    """``[start:limit:stride]``: the indices start, start + stride, .. below limit.

    >>> from hlo.ops.attributes import SliceDimension
    >>> str(SliceDimension(2, 11, 3)), SliceDimension(2, 11, 3).count  # 2, 5, 8
    ('[2:11:3]', 3)
    """

    start: int
    limit: int
    stride: int = 1

    @property
    def count(self) -> int:
        """Number of elements in the slice.

        >>> SliceDimension(1, 10, 3).count
        3
        """
        return len(range(self.start, self.limit, self.stride))

    def __str__(self) -> str:
        stride = f":{self.stride}" if self.stride != 1 else ""
        return f"[{self.start}:{self.limit}{stride}]"


@dataclass(frozen=True, slots=True)
class Padding:
    """``low_high_interior``: elements added before, after and between; negative: removed.

    >>> from hlo.ops.attributes import Padding
    >>> str(Padding(1, -2, 3)), Padding(1, -2, 3).padded_size(4)  # 1 + (4 + 3 * 3) - 2
    ('1_-2_3', 12)
    """

    low: int = 0
    high: int = 0
    interior: int = 0

    @property
    def step(self) -> int:
        """Distance in the result of adjacent operand elements.

        >>> Padding(0, 0, 2).step  # two elements between neighbours
        3
        """
        return self.interior + 1

    def padded_size(self, size: int) -> int:
        """Return the size after padding of a dimension of `size` elements; may be negative.

        >>> Padding(-1, 3, 2).padded_size(5)
        15
        """
        return self.low + dilated_size(size, self.step) + self.high

    def __str__(self) -> str:
        return f"{self.low}_{self.high}" + (f"_{self.interior}" if self.interior else "")


@dataclass(frozen=True, slots=True)
class WindowDimension:
    """One dimension of a window that slides over an array.

    Attributes:
        size: number of window elements.
        stride: distance of two adjacent positions of the window.
        low, high: padding before and after the dilated array; negative padding removes elements.
        base_dilation: distance of adjacent array elements; ``lhs_dilate`` in text.
        window_dilation: distance of adjacent window elements; ``rhs_dilate`` in text.
        is_reversed: True if the window's elements are in reverse order; ``rhs_reversal`` in text.

    >>> from hlo.ops.attributes import WindowDimension
    >>> WindowDimension(size=3, stride=2, low=1, high=1).positions(9)
    5
    >>> WindowDimension(size=3, window_dilation=4).positions(9)  # covers 9 elements
    1
    """

    size: int
    stride: int = 1
    low: int = 0
    high: int = 0
    base_dilation: int = 1
    window_dilation: int = 1
    is_reversed: bool = False

    def positions(self, base: int) -> int:
        """Return the number of window positions over `base` elements.

        >>> WindowDimension(size=3, stride=2, low=1, high=2, base_dilation=2).positions(6)
        6
        """
        padded = self.low + dilated_size(base, self.base_dilation) + self.high
        window = dilated_size(self.size, self.window_dilation)
        return 0 if window > padded or padded <= 0 else (padded - window) // self.stride + 1


def dilated_size(size: int, step: int) -> int:
    """Extent of `size` elements at distance `step`: ``(size − 1)·step + 1``, or 0 if empty.

    >>> from hlo.ops.attributes import dilated_size
    >>> dilated_size(3, 4), dilated_size(1, 4), dilated_size(0, 4)
    (9, 1, 0)
    """
    return (size - 1) * step + 1 if size > 0 else 0


_X: Final = re.compile("x")
_UNDERSCORE: Final = re.compile("_")


def _read_crossed(cursor: Cursor, read: Callable[[Cursor], T]) -> tuple[T, ...]:
    """Read items separated by ``x``."""
    items = [read(cursor)]
    while cursor.take(_X):
        items.append(read(cursor))
    return tuple(items)


def _slice(cursor: Cursor) -> SliceDimension:
    cursor.expect("[")
    start = cursor.integer()
    cursor.expect(":")
    limit = cursor.integer()
    stride = cursor.integer() if cursor.accepts(":") else 1
    cursor.expect("]")
    return SliceDimension(start, limit, stride)


def _padding(cursor: Cursor) -> Padding:
    low, high = _edges(cursor)
    return Padding(low, high, cursor.integer() if cursor.take(_UNDERSCORE) else 0)


def _flag(cursor: Cursor) -> bool:
    return cursor.integer() != 0


def _edges(cursor: Cursor) -> tuple[int, int]:
    low = cursor.integer()
    cursor.need(_UNDERSCORE, "low_high, such as 2_0")
    return low, cursor.integer()


# name in text -> reader of one dimension's value, the fields it sets, and the default text
_FIELDS: Final[dict[str, tuple[Callable[[Cursor], object], tuple[str, ...], str]]] = {
    "size": (Cursor.integer, ("size",), ""),
    "stride": (Cursor.integer, ("stride",), "1"),
    "pad": (_edges, ("low", "high"), "0_0"),
    "lhs_dilate": (Cursor.integer, ("base_dilation",), "1"),
    "rhs_dilate": (Cursor.integer, ("window_dilation",), "1"),
    "rhs_reversal": (_flag, ("is_reversed",), "0"),
}


def _window(cursor: Cursor) -> tuple[WindowDimension, ...]:
    cursor.expect("{")
    start = cursor.position
    dimensions: list[dict[str, object]] = []
    seen: dict[str, None] = {}
    while not cursor.accepts("}"):
        word = cursor.need(WORD, "a window field such as size=3x3")
        span, name = cursor.source.span(*word.span()), word[0]
        if name not in _FIELDS:
            question = nearest(name, _FIELDS) or did_you_mean(list(_FIELDS)[:1])
            raise cursor.fault("unknown window field", span, help=question)
        if name in seen:
            raise cursor.fault(f"duplicate window field `{name}`", span)
        seen[name] = None
        cursor.expect("=")
        read, fields, _ = _FIELDS[name]
        values = _read_crossed(cursor, read)
        dimensions = dimensions or [{} for _ in values]
        if len(values) != len(dimensions):
            first = next(iter(seen))
            label = f"`{name}` has {_count(values)}, `{first}` has {len(dimensions)}"
            raise cursor.fault(label, cursor.source.span(span.start, cursor.position))
        for dimension, value in zip(dimensions, values, strict=True):
            numbers = value if isinstance(value, tuple) else (value,)
            dimension |= zip(fields, numbers, strict=True)
    if dimensions and "size" not in seen:
        raise cursor.fault("`size` is missing", cursor.source.span(start, cursor.position - 1))
    return tuple(
        WindowDimension(**fields)  # type: ignore[arg-type]  # types follow from _FIELDS
        for fields in dimensions
    )


def _count(values: tuple[object, ...]) -> str:
    return f"{len(values)} value{'s' * (len(values) != 1)}"


def _window_text(window: tuple[WindowDimension, ...]) -> str:
    texts = []
    for name, (_, fields, omitted) in _FIELDS.items():
        values = ["_".join([str(int(getattr(w, f))) for f in fields]) for w in window]
        if any(value != omitted for value in values):
            texts.append(f"{name}={'x'.join(values)}")
    return f"{{{' '.join(texts)}}}"


slices: Final = list_of(
    Kind("a slice", "[0:8:2]", _slice, str),
    "a list of slices",
    "{[0:8:2]}",
    ", ",
    "a list of [start:limit] or [start:limit:stride]",
)
padding_config: Final = Kind(
    "a padding low_high_interior for each dimension",
    "1_4_1x-2_8",
    lambda cursor: () if cursor.at_end else _read_crossed(cursor, _padding),
    lambda value: "x".join(map(str, value)),
    form="low_high or low_high_interior for each dimension, separated by x",
)
window: Final = Kind(
    "a window",
    "{size=1x3 stride=2x1 pad=0_0x-1_2}",
    _window,
    _window_text,
    form="of the form {size=1x3 stride=2x1 pad=0_0x1_2}",
)
