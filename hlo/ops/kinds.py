"""Kinds of attribute values: how a value is read at a cursor, and how it is written back.

>>> list_of(enum("EQ", "NE"), "a list of directions", "{EQ}").parse("{EQ, NE}")
('EQ', 'NE')
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, Generic, TypeVar

from hlo.moved import with_old_keywords
from hlo.text import lexer
from hlo.text.lexer import NAME, balanced, here, skip
from hlo.text.source import HloError, Source, Span

T = TypeVar("T")
N = TypeVar("N", bound="float | tuple[Any, ...]")

WORD: Final = re.compile(NAME, re.ASCII)
_INTEGER: Final = re.compile(r"-?\d++", re.ASCII)


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

        >>> enum("EQ", "NE").parse("EQ")
        'EQ'

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

    return Kind(name, example, read, text)


def enum(*choices: str) -> Kind[str]:
    """The kind whose values are just these words.

    >>> enum("EQ", "NE").parse("NE")
    'NE'
    """

    def read(cursor: Cursor) -> str:
        found = cursor.need(WORD, f"one of {', '.join(choices)}")
        if found[0] not in choices:
            near = get_close_matches(found[0].upper(), choices, 1) or choices
            span = cursor.source.span(*found.span())
            raise cursor.fault(f"`{found[0]}` is none of them", span, help=f"for example {near[0]}")
        return found[0]

    limits = (("one of", choices),)
    return Kind(f"one of {', '.join(choices)}", choices[0], read, str, limits)


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
    `dimensions` is not a list of integers, at least 1 of them | there are 0
    """

    def read(cursor: Cursor) -> N:
        start = cursor.position
        value = kind.read(cursor)
        amount = len(value) if isinstance(value, tuple) else value
        if minimum <= amount and (maximum is None or amount <= maximum):
            return value
        label = f"there are {amount}" if isinstance(value, tuple) else f"it is {amount}"
        raise cursor.fault(label, cursor.source.span(start, cursor.position))

    bounds = f"at least {minimum}" if maximum is None else f"{minimum} to {maximum}"
    is_list = kind.example.startswith("{")
    name = f"{kind.name}, {bounds} of them" if is_list else f"{kind.name}, {bounds}"
    upper = () if maximum is None else (("at most", maximum),)
    example = kind.example if is_list else str(minimum)
    return Kind(name, example, read, kind.print, (*kind.limits, ("at least", minimum), *upper))
