"""Combinators for kinds of attribute values.

>>> list_of(enum("EQ", "NE"), "a list of directions", "{EQ}").parse("{EQ, NE}")
('EQ', 'NE')
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from hlo.text.cursor import Cursor
from hlo.text.lexer import NAME
from hlo.text.names import nearest
from hlo.text.source import Source, Span

T = TypeVar("T")
N = TypeVar("N", bound="float | tuple[Any, ...]")

WORD: Final = re.compile(NAME, re.ASCII)


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

    >>> from hlo.ops.attributes import int_list
    >>> int_list.name, int_list.parse("{2,0,1}"), int_list.print((2, 0, 1))
    ('a list of integers', (2, 0, 1), '{2,0,1}')
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


def at_least(kind: Kind[N], minimum: int, maximum: int | None = None) -> Kind[N]:
    """Return `kind` with bounds on the value, or on the length of a list.

    Args:
        kind: the kind of a number or of a list.
        minimum: the smallest value or length.
        maximum: the largest value or length; None for no limit.

    >>> from hlo.text.source import HloError
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
