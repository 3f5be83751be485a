"""The words of HLO text: one compiled pattern per word, matched at a cursor.

Every pattern first eats the white space and the comments before its word, so that a parser never
handles them. Names, numbers and comments follow XLA's lexer (``xla/hlo/parser/hlo_lexer.cc``): a
name is a letter or ``_``, then letters, digits, ``_``, ``.`` and ``-``.
"""

from __future__ import annotations

import re

from hlo.text.source import HloError, Source, Span

MAX_NESTING = 100  # brackets within brackets; deeper text is refused rather than met with recursion
MAX_DIGITS = 19  # of a number of 64 bits

COMMENT = r"/\*(?:[^*]|\*(?!/))*+\*/|//[^\r\n]*+"
SPACE = rf"(?:\s++|{COMMENT})*+"
NAME = r"[A-Za-z_][\w.\-]*+"


def word(pattern: str) -> re.Pattern[str]:
    """`pattern`, compiled, after any white space and comments.

    >>> word(NAME).match("  /* a name */ add.1 = ").group().split()[-1]
    'add.1'
    """
    return re.compile(SPACE + pattern, re.ASCII)


SKIP = word("")
END = word(r"\Z")
COMMA = word(",")


def skip(text: str, position: int) -> int:
    """The first position at or after `position` that is neither white space nor in a comment."""
    found = SKIP.match(text, position)
    assert found is not None  # it matches the empty text too
    return found.end()


def here(source: Source, position: int) -> Span:
    """The word at `position` (white space skipped), or one character where no word is."""
    start = skip(source.text, position)
    found = _SHOWN.match(source.text, start)
    return source.span(start, found.end() if found else start + 1)


def expected(what: str, source: Source, position: int, help: str = "") -> HloError:  # noqa: A002
    """The error that says what should stand at `position` and shows what does."""
    span = here(source, position)
    if span.start >= len(source.text):
        return HloError(f"expected {what}, but the text ends", span, label="ends here", help=help)
    if source.text.startswith("/*", span.start):
        return HloError("a comment `/*` is not closed", span, label="no `*/` follows")
    return HloError(f"expected {what}", span, help=help)


def integer(digits: str, span: Span) -> int:
    """The value of a number of at most 64 bits.

    Raises:
        HloError: it has more digits than any number of 64 bits.
    """
    if len(digits) > MAX_DIGITS + 1:
        label = f"{len(digits)} digits"
        raise HloError("the number does not fit into 64 bits", span, "number", label)
    return int(digits)


# an integer that may have more than 64 bits; a number with a point or an exponent has no limit
_LONG = re.compile(rf"(?<![\w.])\d{{{MAX_DIGITS},}}+(?![.eE])", re.ASCII)


def check_numbers(source: Source, start: int, end: int) -> None:
    """Refuse integers that no type of 64 bits can hold.

    >>> check_numbers(Source("{18446744073709551615, -9223372036854775808}"), 0, 44)

    Raises:
        HloError: there is one between `start` and `end`.
    """
    for found in _LONG.finditer(source.text, start, end):
        span = source.span(*found.span())
        is_negative = source.text.startswith("-", max(found.start() - 1, start))
        if integer(found[0], span) > (2**63 if is_negative else 2**64 - 1):
            label = f"not in [{-(2**63)}, {2**64 - 1}]"
            raise HloError("the number does not fit into 64 bits", span, "number", label)


_SHOWN = re.compile(rf"%?{NAME}|-?\d++")


# ---------------------------------------------------------------- balanced text

STRING = r'"(?:[^"\\]++|\\.)*+"' + r"|'(?:[^'\\\n]++|\\.)*+'"
# text without a bracket, strings, comments, and brackets with no further bracket inside
PLAIN = rf'(?:[^\[\](){{}}"\'/]++|{STRING}|{COMMENT}|/(?![/*]))*+'
_CHUNK = re.compile(rf"(?:{PLAIN}(?:\[{PLAIN}\]|\({PLAIN}\)|\{{{PLAIN}\}})?+)*+", re.DOTALL)
_CLOSING = {"{": "}", "[": "]", "(": ")"}


def balanced(source: Source, position: int) -> int:
    """Where the bracket at `position` is closed: the position after its partner.

    Brackets in strings and comments do not count.

    >>> balanced(Source('{a, "}", {2}} tail'), 0)
    13
    """
    text = source.text
    opened = [position]
    cursor = position + 1
    while opened:
        found = _CHUNK.match(text, cursor)
        assert found is not None  # it matches the empty text too
        cursor = found.end()
        character = text[cursor : cursor + 1]
        if character in _CLOSING and character:
            opened.append(cursor)
            if len(opened) > MAX_NESTING:
                raise too_deep(source, cursor)
        elif character and character == _CLOSING[text[opened[-1]]]:
            opened.pop()
        else:
            raise _unbalanced(source, opened[-1], cursor)
        cursor += 1
    return cursor


def too_deep(source: Source, position: int) -> HloError:
    """The error for brackets within more than `MAX_NESTING` others."""
    message = f"brackets are nested more than {MAX_NESTING} deep"
    return HloError(message, source.span(position), "nesting", "one bracket too many")


def _unbalanced(source: Source, opened: int, position: int) -> HloError:
    """The error for the bracket at `opened` when what stands at `position` is not its partner."""
    bracket = source.text[opened]
    wanted = _CLOSING[bracket]
    note = f"`{bracket}` is opened at {source.span(opened).place()}"
    found = source.text[position : position + 1]
    if not found:
        message = f"`{bracket}` is not closed before the text ends"
        return HloError(message, source.span(opened), label=f"no `{wanted}` follows")
    span = source.span(position)
    if found in "\"'":
        return HloError("a string is not closed", span, label="no closing quote", notes=[note])
    if found == "/":
        return HloError("a comment `/*` is not closed", span, label="no `*/` follows")
    return HloError(f"expected `{wanted}`", span, notes=[note])
