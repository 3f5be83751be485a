"""``backend_config``: the entries that it holds, whichever of the usual forms it has.

>>> source = Source('{axis = 1 : i64, sizes = array<i64: 2, 3>, mode = "fast"}', "m.hlo")
>>> where = source.span(0, len(source.text))
>>> read_entry(where, "axis", integer, "`axis`"), read_entry(where, "sizes", int_list, "`sizes`")
(1, (2, 3))
>>> json = Source('{"axis": 1, "sizes": [2, 3], "inner": {"mode": "fast"}}', "m.hlo")
>>> where = json.span(0, len(json.text))
>>> read_entry(where, "sizes", int_list, "it"), read_entry(where, "inner.mode", word, "it")
((2, 3), 'fast')
>>> find_entry(where, "axes") is None
True

Source: XLA ``xla/hlo/parser/hlo_parser.cc``, ``kBracedBackendConfig``; what is inside is up to the
target: JSON, or the dictionary of attributes of MLIR that typed FFI calls carry.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeVar

from hlo.ops.attributes import Kind, int_list, integer, string, word
from hlo.text.source import HloError, Source, Span

T = TypeVar("T")

_KEY: Final = re.compile(r'\s*"?([\w\-]+)"?\s*[:=]\s*')
_PLAIN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[^"\[\]{}()<>,]+', re.DOTALL)
_TYPE: Final = re.compile(r"\s*:\s*[a-z]\w*\s*$")
_DENSE: Final = re.compile(r"array<\w+:?")
_OPEN, _CLOSE = "[{(<", "]})>"
_EXAMPLES = (int_list, integer, string, word)  # of the doctest above


def find_entry(config: Span, name: str) -> Span | None:
    """Where the value of an entry stands; dots in the name lead into nested entries."""
    if config.text[:1] == '"':  # the whole of it as a string
        text = re.sub(r"\\(.)", r"\1", config.text[1:-1])
        config = Source(text, config.source.filename).span(0, len(text))
    found: Span | None = config
    for step in name.split("."):
        found = _inside(found, step) if found else None
    return found


def read_entry(config: Span, name: str, kind: Kind[T], owner: str) -> T:
    """The value of an entry, which is there.

    Raises:
        HloError: it is no value of this kind.
    """
    span = find_entry(config, name)
    assert span is not None
    text = _plain(span.text, kind)
    try:
        return kind.parse(Source(text, span.source.filename).span(0, len(text.rstrip())), owner)
    except HloError as error:
        if span.source is config.source:
            raise error.moved(span.source, span.start) from None
        raise HloError(error.message, config, error.code, error.label, (), error.help) from None


def _inside(config: Span, name: str) -> Span | None:
    """The entry of one name in ``{..}``."""
    text, end = config.source.text, config.end
    position = config.start + 1
    while key := _KEY.match(text, position, end):
        stop = _after(text, key.end(), end)
        if key[1] == name:
            return config.source.span(key.end(), stop)
        position = stop + 1
    return None


def _after(text: str, position: int, end: int) -> int:
    """Where the value that begins at `position` ends: at a comma or bracket that is not its own."""
    depth = 0
    while position < end:
        character = text[position]
        if depth == 0 and character in ",]})":
            break
        depth += (character in _OPEN) - (character in _CLOSE)
        found = _PLAIN.match(text, position, end)
        position = found.end() if found else position + 1
    return position


def _plain(text: str, kind: Kind[Any]) -> str:
    """A value in the form of HLO attributes, as long as it was: without a type, lists in braces."""
    text = _TYPE.sub(lambda found: " " * len(found[0]), text)
    bare = text.rstrip()
    if dense := _DENSE.match(bare):
        return " " * (dense.end() - 1) + "{" + bare[dense.end() : -1] + "}"
    if bare[:1] == "[":
        return "{" + bare[1:-1] + "}"
    if bare[:1] == '"' and kind is not string:
        return " " + bare[1:-1] + " "
    return text
