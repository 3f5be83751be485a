"""Source texts, spans in them, and errors with carets.

A `Span` is a half-open range of characters in a `Source`. An `HloError` is a message with a span:

>>> source = Source("x = f32[2] add(p)", "sum.hlo")
>>> print(HloError("`p` is not defined", source.span(15, 16), label="no instruction of this name"))
error[syntax]: `p` is not defined
 --> sum.hlo:1:16
  |
1 | x = f32[2] add(p)
  |                ^ no instruction of this name
"""

from __future__ import annotations

import re
import textwrap
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

# C0 and C1 controls, separators of lines, and controls of the writing direction
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
WIDTH = 160  # maximum characters of a source line in an error; longer lines are clipped


def printable(text: str) -> str:
    r"""Return `text` as one line that cannot control a terminal: control characters are escaped.

    Names in HLO text and names of files may hold any character.

    >>> print(printable("red \x1b[31m, next\nline, \u202eerised"))
    red \x1b[31m, next\nline, \u202eerised
    """
    if text.isprintable():
        return text
    return _CONTROLS.sub(lambda control: repr(control[0])[1:-1], text)


class Source:
    """A text and the name of its file. Sources are compared by identity.

    >>> Source("ENTRY e { p = f32[] parameter(0) }", "m.hlo").span(10, 11)
    Span(source=Source('m.hlo', 34 characters), start=10, end=11)
    """

    __slots__ = ("_line_starts", "filename", "text")

    def __init__(self, text: str, filename: str = "<string>") -> None:
        self.text = text
        self.filename = filename
        self._line_starts: list[int] | None = None  # computed on first use

    def __reduce__(self) -> tuple[type[Source], tuple[str, str]]:
        """Pickle without the starts of the lines."""
        return Source, (self.text, self.filename)

    def __copy__(self) -> Source:
        return self

    def __deepcopy__(self, memo: object) -> Source:
        return self

    def __repr__(self) -> str:
        return f"Source({self.filename!r}, {len(self.text)} characters)"

    @property
    def digest(self) -> str:
        """The SHA-256 of the text, in hexadecimal digits.

        >>> Source("a", "one.hlo").digest == Source("a", "two.hlo").digest  # same text
        True
        """
        from hashlib import sha256  # loads OpenSSL, which most commands do not need

        return sha256(self.text.encode()).hexdigest()

    def span(self, start: int, end: int | None = None) -> Span:
        """Return the span of the offsets ``[start, end)``; one character long without `end`."""
        return Span(self, start, start + 1 if end is None else end)

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of the character at `offset`, both counted from 1.

        >>> Source("ab\\ncd").position(4)
        (2, 2)
        """
        if self._line_starts is None:
            starts = [0]
            for line in self.text.split("\n")[:-1]:
                starts.append(starts[-1] + len(line) + 1)
            self._line_starts = starts
        number = bisect_right(self._line_starts, offset)
        return number, offset - self._line_starts[number - 1] + 1

    def line_text(self, line: int) -> str:
        """Return the text of line number `line` (from 1), without its line break.

        >>> Source("a\\nbc\\n").line_text(2)
        'bc'
        """
        start = self._line_start(line)
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else len(self.text)].rstrip("\r")

    def _line_start(self, line: int) -> int:
        self.position(0)
        assert self._line_starts is not None
        return self._line_starts[line - 1]


@dataclass(frozen=True, slots=True)
class Span:
    """The characters ``[start, end)`` of a source.

    >>> span = Source("p = f32[2] parameter(0)", "m.hlo").span(4, 10)
    >>> span.text, span.line, span.column, span.place()
    ('f32[2]', 1, 5, 'm.hlo:1:5')
    """

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        """Line number, from 1."""
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        """Column in characters, from 1."""
        return self.source.position(self.start)[1]

    @property
    def text(self) -> str:
        """The characters in the span."""
        return self.source.text[self.start : self.end]

    def place(self) -> str:
        """Return ``file:line:column`` of the first character.

        >>> Source("a\\nbc", "m.hlo").span(3).place()
        'm.hlo:2:2'
        """
        line, column = self.source.position(self.start)
        return f"{self.source.filename}:{line}:{column}"


class HloError(Exception):
    """An error in the input, with its source location.

    Attributes:
        message: the error in one line.
        span: the invalid characters.
        code: the kind of the error, a stable word such as ``syntax`` or ``op-constraint``.
        label: a remark about the characters of the span, shown beside the carets.
        notes: related facts, such as the location of a declaration.
        help: the repair; may be empty.

    >>> from hlo.formats.parser import parse
    >>> try:
    ...     parse("ENTRY e { ROOT n = f32[] negate(p) }", "m.hlo")
    ... except HloError as error:
    ...     print(error.code, error.span.place(), error.message, sep=" | ")
    undefined | m.hlo:1:33 | operand `p` is not defined
    """

    def __init__(
        self,
        message: str,
        span: Span,
        code: str = "syntax",
        label: str = "",
        notes: Sequence[str] = (),
        help: str = "",  # noqa: A002 - as in the printed error
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.code = code
        self.label = label
        self.notes = tuple(notes)
        self.help = help

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle all attributes: an exception pickles only its message."""
        repair = self.help
        return type(self), (self.message, self.span, self.code, self.label, self.notes, repair)

    def moved(self, source: Source, offset: int) -> HloError:
        """Return this error relocated to `source`, which contains this source's text at `offset`.

        Parsed values are memoised by text; relocation gives their errors the actual location.

        >>> error = HloError("unknown element type", Source("f23[2]").span(0, 3))
        >>> error.moved(Source("p = f23[2] parameter(0)", "m.hlo"), 4).span.place()
        'm.hlo:1:5'
        """
        span = source.span(self.span.start + offset, self.span.end + offset)
        return HloError(self.message, span, self.code, self.label, self.notes, self.help)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, width: int | None = None) -> list[str]:
        """Return the lines of the error.

        Args:
            width: the number of columns for the source line, and for the carets with their remark;
                by default, a source line has at most `WIDTH` characters.

        >>> span = Source("p = f23[2] parameter(0)", "m.hlo").span(4, 7)
        >>> HloError("unknown element type", span, help="write f32").lines()[::5]
        ['error[syntax]: unknown element type', ' = help: write f32']
        """
        gutter = " " * len(str(self.span.line))
        return [
            f"error[{self.code}]: {printable(self.message)}",
            *_excerpt(self.span, printable(self.label), width),
            *(f"{gutter} = note: {printable(note)}" for note in self.notes),
            *([f"{gutter} = help: {printable(self.help)}"] if self.help else []),
        ]


def _excerpt(span: Span, label: str, width: int | None) -> list[str]:
    """Return the location, the source line and the carets of an error."""
    line, column = span.source.position(span.start)
    text = span.source.line_text(line)
    if not (span.source.text or label):
        return [f" --> {printable(span.place())}"]
    first = min(column - 1, len(text))
    length = max(1, min(span.end - span.start, len(text) - first))
    gutter = " " * len(str(line))
    room = None if width is None else max(width - len(gutter) - 3, _MIN_ROOM)
    text, first = _clip(text, first, length, WIDTH if room is None else room - 2)
    length = max(1, min(length, len(text) - first))
    carets = " " * first + "^" * length
    remarks = [f"{carets} {label}" if label else carets]
    if room is not None and len(remarks[0]) > room:
        start = max(0, min(first, room - _MIN_ROOM))
        below = textwrap.wrap(label, room - start, break_long_words=False)
        remarks = [carets, *(" " * start + part for part in below)]
    return [
        f"{gutter}--> {printable(span.place())}",
        f"{gutter} |",
        f"{line} | {_one_column_each(text)}",
        *(f"{gutter} | {remark}" for remark in remarks),
    ]


_MIN_ROOM = 30  # smallest width of a remark below its carets, and of a source line


def _clip(text: str, first: int, length: int, width: int) -> tuple[str, int]:
    """Return about `width` characters of `text` around the span, and the span's first offset."""
    if len(text) <= width:
        return text, first
    start = max(0, min(first - width // 4, len(text) - width))
    end = min(len(text), start + width)
    before, after = ("…" if start else ""), ("…" if end < len(text) else "")
    return before + text[start:end] + after, first - start + len(before)


def _one_column_each(text: str) -> str:
    """Replace each tab and control character by one character, to keep the carets aligned."""
    return "".join(c if c.isprintable() else " " if c == "\t" else "\ufffd" for c in text)
