"""Parser of CuTe's notation of layouts: ``Sw<B,M,S> o offset o shape:stride``.

The offset may be missing, several swizzles may follow each other, and a pointer may stand in place
of the offset or before the layout: ``Sw<3,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)``.  With a
pointer, the swizzle permutes the addresses of bytes; the layout that is returned permutes elements,
for memory that is aligned to the period of the swizzle.  The address itself is left out.

Integers that are known at compile time have an underscore: ``(_4,(_2,3))``.  Matrices over F2 that
are no XOR with a shift are written as their columns, ``F2[2,1]``; CuTe has no notation for them.

Source: CUTLASS ``include/cute``, ``print`` of layouts, swizzles and composed layouts;
``pointer_flagged.hpp``, ``as_position_independent_swizzle_layout``, for pointers.
"""

from __future__ import annotations

import re
from typing import Final

from hlo.arguments import checked, wrong_argument
from hlo.text.source import HloError, Source
from indexing.maps.indexing_map import IndexingMap
from indexing.memory.layouts.cute import CuteLayout, IntTuple
from indexing.memory.layouts.swizzle import Swizzle

_TOKEN: Final = re.compile(
    r"\s*(_?-?\d+|Swizzle|Sw|S|F2|_?(?:\w+_)?ptr\[\d{1,4}b\]\((?:unset|0x[0-9a-fA-F]+|nullptr)\)|o"
    r"|[():,<>\[\]]|∘)"
)
_POINTER: Final = re.compile(r"_?(?:\w+_)?ptr\[(\d+)b\]\((\w+)\)")
_SWIZZLES: Final = ("Sw", "S", "Swizzle", "F2")
_MAX_DIGITS: Final = 40
_MAX_NESTING: Final = 50
_HELP: Final = "for example (4,(2,3)):(2,(1,8)), or Sw<2,0,3> o 0 o (4,8):(8,1)"


@checked
def parse_cute(text: str, filename: str = "<layout>") -> CuteLayout:
    """Parse a layout of CuTe, with or without a swizzle and an offset.

    Args:
        filename: the file name in error messages.
    Raises:
        HloError: the text is not a layout, with the location.

    >>> layout = parse_cute("Sw<2,0,3> o 0 o (_4,(_2,_3)):(_2,(_1,_8))")
    >>> print(layout, layout(3, 5))
    Sw<2,0,3> o 0 o (4,(2,3)):(2,(1,8)) 21
    >>> print(parse_cute("Sw<3,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)"))
    Sw<3,3,3> o 0 o (8,64):(64,1)
    """
    return _Parser(Source(text, filename)).layout()


def map_of_cute(layout: str | CuteLayout) -> IndexingMap:
    """Return the map of a layout, or of its text: see `IndexingMap.from_cute`."""
    if isinstance(layout, str):
        layout = parse_cute(layout)
    elif not isinstance(layout, CuteLayout):
        raise wrong_argument("from_cute", "layout", CuteLayout | str, layout)
    return layout.map


class _Parser:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens: list[tuple[str, int, int]] = []
        text, at = source.text, 0
        end = len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                at += len(text[at:]) - len(text[at:].lstrip())
                raise self.error(f"unexpected character {text[at]!r}", at, at + 1)
            at = match.end()
            if at - match.start(1) > _MAX_DIGITS:
                digits = at - match.start(1)
                raise self.error(f"a number of {digits} digits", match.start(1), at)
            self.tokens.append((match[1], match.start(1), at))
        self.tokens.append(("", end, end))
        self.next = 0

    def error(self, message: str, start: int, end: int) -> HloError:
        span = self.source.span(start, max(end, start + 1))
        return HloError(message, span, code="layout-syntax", help=_HELP)

    def take(self, *allowed: str, where: str) -> str:
        """Return the next token if it is one of `allowed`, and advance."""
        token, start, end = self.tokens[self.next]
        if token not in allowed:
            wanted = " or ".join(f"`{text}`" for text in allowed)
            raise self.error(f"expected {wanted} {where}, found {quoted_token(token)}", start, end)
        self.next += 1
        return token

    def integer(self, where: str) -> int:
        token, start, end = self.tokens[self.next]
        if not token.lstrip("_-").isdigit():
            raise self.error(
                f"expected an integer {where}, found {quoted_token(token)}", start, end
            )
        self.next += 1
        return int(token.removeprefix("_"))

    def layout(self) -> CuteLayout:
        swizzle, offset = self.prefix()
        start = self.tokens[self.next][1]
        shape = self.int_tuple("a shape")
        self.take(":", where="after the shape")
        stride = self.int_tuple("a stride")
        token, at, end = self.tokens[self.next]
        if token:
            raise self.error(
                f"expected the end of the layout, found {quoted_token(token)}", at, end
            )
        try:
            return CuteLayout(shape, stride, swizzle, offset)
        except ValueError as error:
            raise self.error(str(error), start, at) from None

    def prefix(self) -> tuple[Swizzle | None, int]:
        """Return the swizzle of elements and the offset before a layout."""
        swizzle, offset = None, 0
        pointer: re.Match[str] | None = None
        while (token := self.tokens[self.next])[0] in _SWIZZLES or _POINTER.match(token[0]):
            if pointer or offset:
                where = "a pointer" if pointer else f"the offset {offset}"
                raise self.error(f"`{token[0]}` after {where} is not supported", *token[1:])
            pointer = _POINTER.match(token[0])
            if pointer:
                self.next += 1
            else:
                inner = self.swizzle()
                swizzle = inner if swizzle is None else inner.then(swizzle)
            if not _POINTER.match(self.tokens[self.next][0]):  # as in Sw<3,4,3>_smem_ptr[16b](..)
                self.take("o", "∘", where="after a pointer" if pointer else "after a swizzle")
            if not pointer and self.is_offset():
                offset = self.integer("as the offset")
                self.take("o", "∘", where="after the offset")
        if swizzle is not None and pointer:
            swizzle = self.of_elements(swizzle, pointer)
        return swizzle, offset

    def of_elements(self, swizzle: Swizzle, pointer: re.Match[str]) -> Swizzle:
        """Return a swizzle of the addresses of bytes as one of the elements of a pointer."""
        bits, address, period = int(pointer[1]), pointer[2], 1 << len(swizzle.columns)
        _, start, end = self.tokens[self.next - 2]
        if bits & (bits - 1) or not bits:
            raise self.error(f"elements of {bits} bits under a swizzle of bytes", start, end)
        if address.startswith("0x") and int(address, 16) % period:
            raise self.error(f"the address is not a multiple of {period} bytes", start, end)
        return _of_elements(swizzle, bits)

    def is_offset(self) -> bool:
        """Return True if a number follows that is an offset, not a shape."""
        number, after = self.tokens[self.next][0], self.tokens[self.next + 1 :]
        return number.lstrip("_-").isdigit() and bool(after) and after[0][0] in ("o", "∘")

    def swizzle(self) -> Swizzle:
        (name, start, _), self.next = self.tokens[self.next], self.next + 1
        opening, closing = "[]" if name == "F2" else "<>"
        self.take(opening, where=f"after `{name}`")
        numbers: list[int] = []
        while not numbers or self.take(",", closing, where="after a number") == ",":
            numbers.append(self.integer(f"in `{name}{opening}…{closing}`"))
        end = self.tokens[self.next - 1][2]
        if name != "F2" and len(numbers) != 3:
            message = f"a swizzle has three numbers, bits, base and shift: got {len(numbers)}"
            raise self.error(message, start, end)
        try:
            return Swizzle(tuple(numbers)) if name == "F2" else Swizzle.xor(*numbers)
        except ValueError as error:
            raise self.error(str(error), start, end) from None

    def int_tuple(self, kind: str, depth: int = 0) -> IntTuple:
        if self.tokens[self.next][0] != "(":
            return self.integer(f"or `(` in {kind}")
        if depth == _MAX_NESTING:
            _, start, end = self.tokens[self.next]
            raise self.error(f"more than {_MAX_NESTING} nested tuples", start, end)
        self.next += 1
        entries: list[IntTuple] = []
        if self.tokens[self.next][0] == ")":
            self.next += 1
            return ()
        while not entries or self.take(",", ")", where=f"after an entry of {kind}") == ",":
            entries.append(self.int_tuple(kind, depth + 1))
        return tuple(entries)


def _of_elements(swizzle: Swizzle, bits: int) -> Swizzle:
    """Return a swizzle of the addresses of bytes as one of elements of `bits` bits."""
    columns, shift = swizzle.columns, (bits // 8).bit_length() - 1
    if bits >= 8:
        return Swizzle(tuple([column >> shift for column in columns[shift:]]))
    shift = (8 // bits).bit_length() - 1
    return Swizzle((*[1 << bit for bit in range(shift)], *[column << shift for column in columns]))


def quoted_token(token: str) -> str:
    """The token in quotes, for a message."""
    return f"`{token}`" if token else "the end of the text"
