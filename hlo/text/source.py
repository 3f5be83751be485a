"""Text with a name, places in it, and errors that point at them: the only module that draws carets.

A `Span` is a half-open range of characters in a `Source`. An `HloError` says what is wrong and
where:

>>> source = Source("x = f32[2] add(p)", "sum.hlo")
>>> print(HloError("`p` is not defined", source.span(15, 16), label="no instruction of this name"))
error[syntax]: `p` is not defined
 --> sum.hlo:1:16
  |
1 | x = f32[2] add(p)
  |                ^ no instruction of this name
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 160  # characters of a source line that an error shows; longer lines are cut around the span


class Source:
    """A text and the name of the file it came from. Compared by identity."""

    __slots__ = ("_line_starts", "filename", "text")

    def __init__(self, text: str, filename: str = "<string>") -> None:
        self.text = text
        self.filename = filename
        self._line_starts: list[int] | None = None  # made when the first place is asked for

    def __repr__(self) -> str:
        return f"Source({self.filename!r}, {len(self.text)} characters)"

    def span(self, start: int, end: int | None = None) -> Span:
        """From `start` up to and without `end`; one character long when `end` is missing."""
        return Span(self, start, start + 1 if end is None else end)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of the character at `offset`, both counted from 1.

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
        """The text of line number `line` (from 1), without its line break."""
        start = self._line_start(line)
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else len(self.text)].rstrip("\r")

    def _line_start(self, line: int) -> int:
        self.position(0)
        assert self._line_starts is not None
        return self._line_starts[line - 1]


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a source: the characters from `start` up to and without `end`."""

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
        """File, line and column as one word that editors understand.

        >>> Source("a\\nbc", "m.hlo").span(3).place()
        'm.hlo:2:2'
        """
        line, column = self.source.position(self.start)
        return f"{self.source.filename}:{line}:{column}"


class HloError(Exception):
    """Something is wrong in the input: what, where, what was expected, and what to write instead.

    Attributes:
        message: what is wrong, in one line.
        span: the characters that are wrong.
        code: the kind of error, a stable word such as ``syntax``.
        label: what is wrong with just these characters; shown beside the carets.
        notes: related facts, such as the place of a declaration.
        help: what to write instead; may be empty.
    """

    def __init__(
        self,
        message: str,
        span: Span,
        code: str = "syntax",
        label: str = "",
        notes: Sequence[str] = (),
        help: str = "",  # noqa: A002 - the word that users read in the message
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.code = code
        self.label = label
        self.notes = tuple(notes)
        self.help = help

    def moved(self, source: Source, offset: int) -> HloError:
        """The same error in a text that holds this one's text at `offset`.

        Values are read once for each text and remembered; this gives their errors the right place.
        """
        span = source.span(self.span.start + offset, self.span.end + offset)
        return HloError(self.message, span, self.code, self.label, self.notes, self.help)

    def __str__(self) -> str:
        gutter = " " * len(str(self.span.line))
        return "\n".join(
            [
                f"error[{self.code}]: {self.message}",
                *_excerpt(self.span, self.label),
                *(f"{gutter} = note: {note}" for note in self.notes),
                *([f"{gutter} = help: {self.help}"] if self.help else []),
            ]
        )


def _excerpt(span: Span, label: str) -> list[str]:
    """The place, the line and the carets of an error message."""
    line, column = span.source.position(span.start)
    text = span.source.line_text(line)
    first = min(column - 1, len(text))
    length = max(1, min(span.end - span.start, len(text) - first))
    text, first = _clip(text, first, length)
    length = max(1, min(length, len(text) - first))
    gutter = " " * len(str(line))
    carets = " " * first + "^" * length + (f" {label}" if label else "")
    return [
        f"{gutter}--> {span.place()}",
        f"{gutter} |",
        f"{line} | {_printable(text)}",
        f"{gutter} | {carets}",
    ]


def _clip(text: str, first: int, length: int) -> tuple[str, int]:
    """About `WIDTH` characters of `text` around the span, and where the span begins there."""
    if len(text) <= WIDTH:
        return text, first
    start = max(0, min(first - WIDTH // 4, len(text) - WIDTH))
    end = min(len(text), start + WIDTH)
    before, after = ("…" if start else ""), ("…" if end < len(text) else "")
    return before + text[start:end] + after, first - start + len(before)


def _printable(text: str) -> str:
    """`text` with tabs and control characters replaced, one for one: carets stay in place."""
    return "".join(c if c.isprintable() else " " if c == "\t" else "\ufffd" for c in text)
