"""Tokens of MLIR's text.

A type or an attribute with angle brackets, such as ``tensor<4xf32, dense<[0, 1]> : …>``, is one
token of kind ``angled``: brackets in strings and the arrow ``->`` do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

from hlo.text.source import HloError, Source, Span

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r]+|//[^\n]*)
    | (?P<newline>\n)
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<value>%(?:\d+|[A-Za-z$._-][\w$.-]*)(?:\#\d+)?)
    | (?P<symbol>@(?:[A-Za-z_$.][\w$.-]*|"(?:[^"\\\n]|\\.)*"))
    | (?P<angled>[\#!]?[A-Za-z_][\w$.]*<)
    | (?P<alias>[\#!][A-Za-z_][\w$.-]*)
    | (?P<block>\^[\w$.-]+)
    | (?P<number>-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*(?:[eE][-+]?\d+)?)?))
    | (?P<word>[A-Za-z_][\w$.]*)
    | (?P<punct>->|::|[^\w\s])
    """,
    re.VERBOSE,
)
_ANGLE = re.compile(r'"(?:[^"\\\n]|\\.)*"|->|[<>]=|[<>]')


class MlirTokens:
    """A position in the tokens of a part of a source; tokens of spaces are left out.

    Attributes:
        kind: the kind of the current token: ``end`` after the last one.
        text: the characters of the current token.
    """

    def __init__(self, source: Source, start: int = 0, end: int | None = None) -> None:
        self.source = source
        self._end = len(source.text) if end is None else end
        self._tokens = self._lex(start)
        self._position = -1
        self.kind, self.text = "", ""
        self.take()

    def _lex(self, position: int) -> list[tuple[str, int, int]]:
        tokens: list[tuple[str, int, int]] = []
        text, end = self.source.text, self._end
        while position < end:
            matched = _TOKEN.match(text, position, end)
            if matched is None:
                span = self.source.span(position)
                raise HloError(
                    f"{text[position]!r} begins no token of MLIR", span, "mlir-syntax",
                    help="a string ends on its line, a name has letters, digits, `_`, `$`, `.`",
                )  # fmt: skip
            kind = matched.lastgroup or ""
            stop = matched.end()
            if kind == "angled":
                stop = self._closing_angle(position, stop)
            if kind != "space":
                tokens.append((kind, position, stop))
            position = stop
        tokens.append(("end", end, end))
        return tokens

    def _closing_angle(self, start: int, position: int) -> int:
        """Return the offset after the bracket that closes the one before `position`."""
        depth = 1
        while depth:
            matched = _ANGLE.search(self.source.text, position, self._end)
            if matched is None:
                span = self.source.span(start, position)
                raise HloError("`<` is never closed", span, "mlir-syntax", help="add `>`")
            depth += {"<": 1, ">": -1}.get(matched[0], 0)
            position = matched.end()
        return position

    @property
    def start(self) -> int:
        """The offset of the current token."""
        return self._tokens[self._position][1]

    @property
    def last_end(self) -> int:
        """The offset after the previous token."""
        return self._tokens[max(self._position - 1, 0)][2]

    def ahead(self, count: int = 1) -> tuple[str, str]:
        """Return the kind and the text of a later token."""
        at = min(self._position + count, len(self._tokens) - 1)
        kind, start, end = self._tokens[at]
        return kind, self.source.text[start:end]

    def take(self) -> str:
        """Return the text of the current token, and go to the next one."""
        taken = self.text
        if self._position < len(self._tokens) - 1:
            self._position += 1
        self.kind, start, end = self._tokens[self._position]
        self.text = self.source.text[start:end]
        return taken

    def accept(self, text: str) -> bool:
        """Go over the current token if it has this text; return whether it has."""
        if self.text != text or self.kind in ("string", "end"):
            return False
        self.take()
        return True

    def expect(self, text: str, where: str = "") -> None:
        """Go over a token that must have this text."""
        if not self.accept(text):
            self.fail(f"expected `{text}`{where and ' '}{where}, found {self.found()}")

    def items(self, closing: str, item: str = "") -> Iterator[None]:
        """Yield before each item of a list; go over the commas and the closing bracket.

        Args:
            item: the item in messages, such as ``a type``.
        """
        after = f"or `{closing}`" + (f" after {item}" if item else "")
        is_first = True
        while not self.accept(closing):
            if not is_first:
                self.expect(",", after)
            is_first = False
            yield

    def expect_kind(self, kind: str, what: str) -> str:
        """Return the text of the current token, which must be of this kind, and go over it."""
        if self.kind != kind:
            self.fail(f"expected {what}, found {self.found()}")
        return self.take()

    def integer(self, what: str = "an integer") -> int:
        """Return an integer, and go over it."""
        if self.kind != "number" or "." in self.text:
            self.fail(f"expected {what}, found {self.found()}")
        return int(self.take(), 0)

    def skip_newlines(self) -> None:
        """Go to the next token that is not the end of a line."""
        while self.kind == "newline":
            self.take()

    def found(self) -> str:
        """Return words for the current token."""
        if self.kind == "end":
            return "the end of the text"
        return "the end of the line" if self.kind == "newline" else f"`{self.text}`"

    def span(self) -> Span:
        """Return the span of the current token."""
        _, start, end = self._tokens[self._position]
        return self.source.span(start, max(end, start + 1))

    def fail(self, message: str, help: str = "") -> NoReturn:  # noqa: A002 - as in `HloError`
        """Raise an error at the current token."""
        raise HloError(message, self.span(), "mlir-syntax", help=help)
