"""Combinators for kinds of attribute values, and the cursor that they read from.

>>> list_of(enum("EQ", "NE"), "a list of directions", "{EQ}").parse("{EQ, NE}")
('EQ', 'NE')
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from hlo.moved import with_old_keywords
from hlo.text import lexer
from hlo.text.lexer import NAME, balanced, skip, token_span
from hlo.text.names import nearest
from hlo.text.source import HloError, Source, Span

T = TypeVar("T")
N = TypeVar("N", bound="float | tuple[Any, ...]")

WORD: Final = re.compile(NAME, re.ASCII)
_INTEGER: Final = re.compile(r"-?\d++", re.ASCII)


class Cursor:
    """A position in the text of a span; reading skips white space and comments."""

    __slots__ = ("end", "owner", "position", "source")

    def __init__(self, span: Span, owner: str) -> None:
        self.source, self.position, self.end = span.source, span.start, span.end
        self.owner = owner  # the message of errors, such as "the value must be an integer"

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match `pattern` at the cursor and advance past the match; return None if it fails."""
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
        """Match `pattern` at the cursor, or raise the error "expected `wanted`"."""
        match = self.take(pattern)
        if match is None:
            raise self.fault(f"expected {wanted}")
        return match

    def expect(self, token: str) -> None:
        """Advance past `token`, or raise an error if the text differs."""
        if not self.accepts(token):
            raise self.fault(f"expected `{token}`")

    def integer(self) -> int:
        """Read the integer at the cursor, or raise an error if it overflows 64 bits."""
        digits = self.need(_INTEGER, "an integer")
        return lexer.integer(digits[0], self.source.span(*digits.span()))

    def group(self) -> str:
        """Read the balanced brackets at the cursor."""
        start = self._start()
        self.position = balanced(self.source, start)
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
        """Return the error for the text at the cursor, or in `span`."""
        return HloError(self.owner, span or self._here(), "attribute", label, help=help)

    def _start(self) -> int:
        return skip(self.source.text, self.position)

    def _here(self) -> Span:
        if self.at_end:
            return self.source.span(max(self.end - 1, 0), self.end)
        return token_span(self.source, self.position)


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A kind of attribute value.

    Attributes:
        name: the description of a value in errors, such as "a list of integers".
        example: the text of a value.
        read: parses a value at a cursor.
        print: returns the text of a value.
        limits: constraints on a value by name: ``at least`` and ``at most`` for a number or the
            length of a list, ``one of`` for the permitted words or classes.
        form: the syntax of a value in errors, if `name` does not describe it.
    """

    name: str
    example: str
    read: Callable[[Cursor], T]
    print: Callable[[T], str]
    limits: tuple[tuple[str, Any], ...] = ()
    form: str = ""

    def parse(self, text: str | Span, owner: str = "the value") -> T:
        """Parse the whole of `text` as one value; `owner` names the value in errors.

        >>> enum("EQ", "NE").parse("EQ")
        'EQ'

        Raises:
            HloError: the text is not a value of this kind.
        """
        span = text if isinstance(text, Span) else Source(text, "<attribute>").span(0, len(text))
        cursor = Cursor(span, f"{owner} must be {self.form or self.name}")
        value = self.read(cursor)
        if not cursor.at_end:
            raise cursor.fault("expected the end of the value")
        return value


def list_of(
    item: Kind[T], name: str, example: str, separator: str = ",", form: str = ""
) -> Kind[tuple[T, ...]]:
    """Return the kind of a list ``{item, item, ..}``.

    >>> list_of(enum("EQ", "NE"), "a list of directions", "{EQ}").parse("{ NE }")
    ('NE',)
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

    return Kind(name, example, read, text, form=form)


def enum(*choices: str) -> Kind[str]:
    """Return the kind whose values are the given words.

    >>> enum("EQ", "NE").parse("NE")
    'NE'
    """

    words = [choice for choice in choices if choice]  # "" is the default of an omitted attribute

    def read(cursor: Cursor) -> str:
        word = cursor.need(WORD, f"one of {', '.join(words)}")
        if word[0] not in choices:
            span = cursor.source.span(*word.span())
            hint = nearest(word[0], words)
            raise cursor.fault(f"`{word[0]}` is not one of them", span, help=hint)
        return word[0]

    limits = (("one of", choices),)
    return Kind(f"one of {', '.join(words)}", words[0], read, str, limits)


@with_old_keywords(least="minimum", most="maximum")
def at_least(kind: Kind[N], minimum: int, maximum: int | None = None) -> Kind[N]:
    """Return `kind` with bounds on the value, or on the length of a list.

    Args:
        kind: the kind of a number or of a list.
        minimum: the smallest value or length.
        maximum: the largest value or length; None for no limit.

    >>> integer = Kind("an integer", "0", Cursor.integer, str)
    >>> at_least(integer, 2).parse("7")
    7
    >>> try:
    ...     at_least(list_of(integer, "a list of integers", "{0}"), 1).parse("{}", "`dimensions`")
    ... except HloError as error:
    ...     print(error.message, "|", error.label)
    `dimensions` must be a list of integers, at least 1 of them | the list has 0
    """

    def read(cursor: Cursor) -> N:
        start = cursor.position
        value = kind.read(cursor)
        amount = len(value) if isinstance(value, tuple) else value
        if minimum <= amount and (maximum is None or amount <= maximum):
            return value
        label = f"the list has {amount}" if isinstance(value, tuple) else f"the value is {amount}"
        raise cursor.fault(label, cursor.source.span(start, cursor.position))

    bounds = f"at least {minimum}" if maximum is None else f"{minimum} to {maximum}"
    is_list = kind.example.startswith("{")
    name = f"{kind.name}, {bounds} of them" if is_list else f"{kind.name}, {bounds}"
    upper = () if maximum is None else (("at most", maximum),)
    example = kind.example if is_list else str(minimum)
    limits = (*kind.limits, ("at least", minimum), *upper)
    return Kind(name, example, read, kind.print, limits)
