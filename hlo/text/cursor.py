"""The cursor that attribute values are read from.

>>> from hlo.text.source import Source
>>> cursor = Cursor(Source("{1, 2}").span(0, 6), "the value must be a list")
>>> cursor.expect("{")
>>> cursor.integer(), cursor.accepts(","), cursor.integer(), cursor.at_end
(1, True, 2, False)
"""

from __future__ import annotations

import re
from typing import Final

from hlo.text.lexer import end_of_bracket, integer, skip, token_span
from hlo.text.source import HloError, Span

_INTEGER: Final = re.compile(r"-?\d++", re.ASCII)


class Cursor:
    """A position in the text of a span; reading skips white space and comments.

    >>> from hlo.ops.attributes import Cursor
    >>> from hlo.text.source import Source
    >>> cursor = Cursor(Source("7, x").span(0, 4), "the value must be a pair")
    >>> cursor.integer(), cursor.accepts(","), cursor.rest(), cursor.at_end
    (7, True, 'x', True)
    """

    __slots__ = ("end", "owner", "position", "source")

    def __init__(self, span: Span, owner: str) -> None:
        self.source, self.position, self.end = span.source, span.start, span.end
        self.owner = owner  # the message of errors, such as "the value must be an integer"

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match `pattern` at the cursor and advance past the match; return None if it fails.

        >>> from hlo.text.source import Source
        >>> cursor = Cursor(Source("8x4").span(0, 3), "the tile")
        >>> cursor.take(re.compile("[a-z]")), cursor.take(re.compile("[0-9]"))[0], cursor.position
        (None, '8', 1)
        """
        match = pattern.match(self.source.text, self._start(), self.end)
        if match:
            self.position = match.end()
        return match

    def accepts(self, token: str) -> bool:
        """Return True and advance if `token` is at the cursor."""
        start = self._start()
        if not self.source.text.startswith(token, start, self.end):
            return False
        self.position = start + len(token)
        return True

    def need(self, pattern: re.Pattern[str], wanted: str) -> re.Match[str]:
        """Match `pattern` at the cursor, or raise the error "expected `wanted`".

        >>> from hlo.text.source import Source
        >>> cursor = Cursor(Source("8x4").span(0, 3), "the tile is invalid")
        >>> try:
        ...     cursor.need(re.compile("[a-z]"), "a letter")
        ... except HloError as error:
        ...     print(error.message, error.label, sep=": ")
        the tile is invalid: expected a letter
        """
        match = self.take(pattern)
        if match is None:
            raise self.fault(f"expected {wanted}")
        return match

    def expect(self, token: str) -> None:
        """Advance past `token`, or raise an error if the text differs.

        >>> from hlo.text.source import Source
        >>> cursor = Cursor(Source("(8)").span(0, 3), "the tile is invalid")
        >>> cursor.expect("(")
        >>> cursor.position
        1
        """
        if not self.accepts(token):
            raise self.fault(f"expected `{token}`")

    def integer(self) -> int:
        """Read the integer at the cursor, or raise an error if it overflows 64 bits."""
        digits = self.need(_INTEGER, "an integer")
        return integer(digits[0], self.source.span(*digits.span()))

    def group(self) -> str:
        """Read the balanced brackets at the cursor.

        >>> from hlo.text.source import Source
        >>> cursor = Cursor(Source("{{0,1},{2}} rest").span(0, 16), "the groups are invalid")
        >>> cursor.group(), cursor.rest()
        ('{{0,1},{2}}', 'rest')
        """
        start = self._start()
        self.position = end_of_bracket(self.source, start)
        return self.source.text[start : self.position]

    def rest(self) -> str:
        """Read the text up to the end."""
        start, self.position = self._start(), self.end
        return self.source.text[start : self.end].rstrip()

    @property
    def at_end(self) -> bool:
        """True if only white space and comments remain."""
        return self._start() >= self.end

    def fault(self, label: str, span: Span | None = None, help: str = "") -> HloError:  # noqa: A002
        """Return the error for the text at the cursor, or in `span`.

        >>> from hlo.text.source import Source
        >>> cursor = Cursor(Source("-3").span(0, 2), "the size is invalid")
        >>> print(cursor.fault("must be positive", help="write 3"))
        error[attribute]: the size is invalid
         --> <string>:1:1
          |
        1 | -3
          | ^^ must be positive
          = help: write 3
        """
        return HloError(self.owner, span or self._here(), "attribute", label, help=help)

    def _start(self) -> int:
        return skip(self.source.text, self.position)

    def _here(self) -> Span:
        if self.at_end:
            return self.source.span(max(self.end - 1, 0), self.end)
        return token_span(self.source, self.position)
