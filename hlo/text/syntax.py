"""Attribute values as text with a source location.

The parser is independent of ops and does not interpret ``dimensions={1,0}``. It keeps the value as
an `AttributeText`: the text and its span, which later errors refer to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from hlo.text.lexer import COMMENT, PLAIN, SPACE, STRING, end_of_bracket, syntax_error
from hlo.text.source import Source, Span

CALLEE_ATTRIBUTES: Final = frozenset(
    {
        "body",
        "branch_computations",
        "called_computations",
        "calls",
        "condition",
        "false_computation",
        "scatter",
        "select",
        "to_apply",
        "true_computation",
    }
)
"""Attributes whose values are names or bodies of computations, for every op."""

_NOT_NORMAL = re.compile(r"[/%\s]")  # text without these characters is in normal form
_MULTILINE = re.compile(r"/[/*]|\n")  # comments and line breaks are not printed
_BLANK = re.compile(rf"({STRING})|(?>{COMMENT}|\s)++", re.DOTALL)
_REDUNDANT = re.compile(
    rf"({STRING})|%(?=[A-Za-z_])|(?<=[\[\](){{}},:=]) | (?=[\[\](){{}},:=])", re.DOTALL
)


class AttributeText:
    """The text of a value and its source location.

    Equality ignores white space, comments and ``%`` before names.

    >>> source = Source("dimensions={1, /*second*/ 0}")
    >>> value = AttributeText("{1, /*second*/ 0}", source, 11, 28)
    >>> value.normal, value == AttributeText("{1,0}", source, 0, 5), value.span.place()
    ('{1,0}', True, '<string>:1:12')
    """

    __slots__ = ("end", "source", "start", "text")

    def __init__(self, text: str, source: Source, start: int, end: int) -> None:
        self.text = text
        self.source = source
        self.start = start
        self.end = end

    @classmethod
    def of(cls, text: str) -> AttributeText:
        """Return the value of a text without a file.

        >>> AttributeText.of("{1,0}").span.place()
        '<string>:1:1'
        """
        return cls(text, Source(text), 0, len(text))

    @property
    def span(self) -> Span:
        """Source location of the value."""
        return Span(self.source, self.start, self.end)

    @property
    def line(self) -> str:
        """The text on one line: white space and comments become one blank."""
        return _BLANK.sub(lambda match: match[1] or " ", self.text).strip()

    @property
    def printed(self) -> str:
        """The original text, or `line` if the text has comments or line breaks."""
        return self.line if _MULTILINE.search(self.text) else self.text

    @property
    def normal(self) -> str:
        """The text without comments, ``%`` before names, and redundant white space."""
        if not _NOT_NORMAL.search(self.text):
            return self.text
        return _REDUNDANT.sub(lambda match: match[1] or "", self.line)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AttributeText):
            return NotImplemented
        return self.text == other.text or self.normal == other.normal

    def __hash__(self) -> int:
        return hash(self.normal)

    def __repr__(self) -> str:
        return f"AttributeText({self.text!r})"

    def __str__(self) -> str:
        return self.text


def attributes_text(attributes: Mapping[str, AttributeText]) -> str:
    """Return the text of attributes after an instruction, a computation or a module's name.

    >>> attributes_text({"kind": AttributeText.of("kLoop"), "calls": AttributeText.of("add")})
    ', kind=kLoop, calls=add'
    """
    return "".join([f", {name}={value.printed}" for name, value in attributes.items()])


# values with white space inside: a mesh and its axes, ``mesh['x'=8] {'x'}``, with a comma in
# ``mesh['x'=2], device_ids=(1,0) {'x'}``; a shape and a literal
_CONTINUATION = rf"(?>{SPACE}(?=[{{(\d\-]|(?:true|false|inf|nan)\b)|,{SPACE}device_ids=(?=\())?+"
_WORD = rf"[^\s,{{}}()\[\]\"'/]++|/(?![/*])|{STRING}|\({PLAIN}\)"
_VALUE = re.compile(
    rf"(?>{_WORD}|(?:\{{{PLAIN}\}}|\[{PLAIN}\]){_CONTINUATION})++", re.ASCII | re.DOTALL
)
_MORE = re.compile(_CONTINUATION, re.ASCII)


def read_value(source: Source, position: int) -> int:
    """Return the position after the value that begins at `position`.

    A value is a sequence of words, strings and balanced brackets, in general without white space
    between them.

    >>> source = Source("{{0,1},{2,3}}, kind=kLoop")
    >>> source.text[: read_value(source, 0)]
    '{{0,1},{2,3}}'
    """
    end = position
    while True:
        if value := _VALUE.match(source.text, end):
            end = value.end()
        if source.text[end : end + 1] not in ("{", "[", "("):
            break
        more = _MORE.match(source.text, end_of_bracket(source, end))
        assert more is not None  # _MORE matches the empty text
        end = more.end()
    if end == position:
        raise syntax_error("a value", source, position)
    return end
