"""Tokens of HLO text: one compiled pattern per token, matched at a position.

Every pattern first skips white space and comments. Names, numbers and comments follow XLA's lexer
(``xla/hlo/parser/hlo_lexer.cc``): a name is a letter or ``_``, then letters, digits, ``_``, ``.``
and ``-``.
"""

from __future__ import annotations

import re
from typing import Final

from hlo.text.source import HloError, Source, Span

MAX_NESTING = 100  # nested brackets; the limit bounds the recursion of parsers
MAX_DIGITS = 19  # digits that always fit into 64 bits

# The body of a possessive repeat is one character or an atomic group, `(?>ab)*+`: until Python
# 3.11.4, the repeat includes what another body consumed before it failed (CPython's gh-106052).
COMMENT = r"/\*[^*]*+(?>\*(?!/)[^*]*+)*+\*/|//[^\r\n]*+"
SPACE = rf"\s*+(?>(?:{COMMENT})\s*+)*+"
NAME = r"[A-Za-z_][\w.\-]*+"


def token(pattern: str) -> re.Pattern[str]:
    """Compile `pattern`, preceded by any white space and comments.

    >>> token(NAME).match("  /* a name */ add.1 = ").group().split()[-1]
    'add.1'
    """
    return re.compile(SPACE + pattern, re.ASCII)


SKIP = token("")
END = token(r"\Z")
COMMA = token(",")


def skip(text: str, position: int) -> int:
    """Return the first position from `position` on that is not white space or in a comment."""
    skipped = SKIP.match(text, position)
    assert skipped is not None  # SKIP matches the empty text
    return skipped.end()


TRUNCATED: Final = "the text may be cut off: compare its end with the original"


def token_span(source: Source, position: int) -> Span:
    """Return the span of the name or number at `position`, after white space, or one character."""
    start = skip(source.text, position)
    match = _TOKEN.match(source.text, start)
    return source.span(start, match.end() if match else start + 1)


def syntax_error(
    wanted: str,
    source: Source,
    position: int,
    help: str = "",  # noqa: A002 - the word of `HloError`
) -> HloError:
    """Return the syntax error "expected `wanted`" at `position`."""
    span = token_span(source, position)
    if span.start >= len(source.text):
        message = f"expected {wanted}, found the end of the text"
        return HloError(message, span, label="ends here", help=help or TRUNCATED)
    if source.text.startswith("/*", span.start):
        return _open_comment(span)
    return HloError(f"expected {wanted}, found {_word_at(span)}", span, help=help)


def _word_at(span: Span) -> str:
    """Return the word or the character at a span for a message."""
    word = _WORD.match(span.source.text, span.start)
    text = word[0] if word else span.text
    return f"`{text if len(text) <= 40 else f'{text[:37]}...'}`"


def _open_comment(span: Span) -> HloError:
    return HloError("unterminated comment: `/*` without `*/`", span)


def integer(digits: str, span: Span) -> int:
    """Return the value of a decimal number.

    Raises:
        HloError: the number has more digits than any 64-bit number.
    """
    if len(digits) > MAX_DIGITS + 1:
        label = f"{len(digits)} digits"
        raise HloError("integer overflows 64 bits", span, "number", label)
    return int(digits)


# integers of 64 bits or more; numbers with a point or an exponent are excluded
_LONG = re.compile(rf"(?<![\w.])\d{{{MAX_DIGITS},}}+(?![.eE])", re.ASCII)


def check_numbers(source: Source, start: int, end: int) -> None:
    """Reject integers outside ``[-2^63, 2^64 - 1]``.

    >>> check_numbers(Source("{18446744073709551615, -9223372036854775808}"), 0, 44)

    Raises:
        HloError: such an integer occurs between `start` and `end`.
    """
    for digits in _LONG.finditer(source.text, start, end):
        span = source.span(*digits.span())
        is_negative = source.text.startswith("-", max(digits.start() - 1, start))
        if integer(digits[0], span) > (2**63 if is_negative else 2**64 - 1):
            label = f"not in [{-(2**63)}, {2**64 - 1}]"
            raise HloError("integer overflows 64 bits", span, "number", label)


_TOKEN = re.compile(rf"%?{NAME}|-?\d++")
_WORD = re.compile(r"[^\s,;:=\"'()\[\]{}]++")


# ---------------------------------------------------------------- balanced text

STRING = r'"(?>[^"\\]++|\\.)*+"' + r"|'(?>[^'\\\n]++|\\.)*+'"
# text without brackets outside strings and comments
PLAIN = rf'(?>[^\[\](){{}}"\'/]++|{STRING}|{COMMENT}|/(?![/*]))*+'
_CHUNK = re.compile(rf"(?>{PLAIN}(?>\[{PLAIN}\]|\({PLAIN}\)|\{{{PLAIN}\}})?+)*+", re.DOTALL)
_CLOSING = {"{": "}", "[": "]", "(": ")"}


def unescape(text: str) -> str:
    r"""Return the characters that the contents of a string stand for.

    XLA escapes quotes, control characters, and each byte of other characters than ASCII's.

    >>> unescape(r"f\303\266 \"a\\b\"\n") == 'fö "a\\b"\n'
    True
    """
    if "\\" not in text:
        return text
    data = _ESCAPE.sub(_character, text.encode(errors="surrogatepass"))
    return data.decode(errors="backslashreplace")


def _character(escape: re.Match[bytes]) -> bytes:
    octal, hexadecimal, letter = escape.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    return bytes([int(octal, 8) & 255 if octal else int(hexadecimal, 16)])


# `absl::CEscape` in XLA
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def end_of_bracket(source: Source, position: int) -> int:
    """Return the position after the partner of the bracket at `position`.

    Brackets in strings and comments are ignored.

    >>> end_of_bracket(Source('{a, "}", {2}} tail'), 0)
    13
    """
    text = source.text
    opened = [position]
    cursor = position + 1
    while opened:
        chunk = _CHUNK.match(text, cursor)
        assert chunk is not None  # _CHUNK matches the empty text
        cursor = chunk.end()
        character = text[cursor : cursor + 1]
        if character in _CLOSING and character:
            opened.append(cursor)
            if len(opened) > MAX_NESTING:
                raise too_deep(source, cursor)
        elif character and character == _CLOSING[text[opened[-1]]]:
            opened.pop()
        else:
            raise _unbalanced_error(source, opened[-1], cursor)
        cursor += 1
    return cursor


def too_deep(source: Source, position: int) -> HloError:
    """Return the error for brackets nested more than `MAX_NESTING` deep."""
    message = f"brackets are nested more than {MAX_NESTING} deep"
    return HloError(message, source.span(position), "nesting", f"depth {MAX_NESTING + 1}")


def _unbalanced_error(source: Source, opened: int, position: int) -> HloError:
    """Return the error for the bracket at `opened` if `position` has no matching bracket."""
    bracket = source.text[opened]
    wanted = _CLOSING[bracket]
    note = f"`{bracket}` is opened at {source.span(opened).place()}"
    character = source.text[position : position + 1]
    if not character:
        message = f"unclosed `{bracket}`: expected `{wanted}` before the end of the text"
        return HloError(message, source.span(opened), label="opened here", help=TRUNCATED)
    span = source.span(position)
    if character in "\"'":
        message = "unterminated string"
        return HloError(message, span, label="no closing quote", notes=[note])
    if character == "/":
        return _open_comment(span)
    return HloError(f"expected `{wanted}`, found `{character}`", span, notes=[note])
