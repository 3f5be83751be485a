"""Entries of ``backend_config``, in JSON or as an MLIR dictionary.

>>> source = Source('{axis = 1 : i64, sizes = array<i64: 2, 3>, mode = "fast"}', "m.hlo")
>>> where = source.span(0, len(source.text))
>>> read_entry(where, "axis", integer, "`axis`"), read_entry(where, "sizes", int_list, "`sizes`")
(1, (2, 3))
>>> json = Source('{"axis": 1, "sizes": ["2", "3"], "inner": {"mode": "fast"}}', "m.hlo")
>>> where = json.span(0, len(json.text))
>>> read_entry(where, "sizes", int_list, "it"), read_entry(where, "inner.mode", word, "it")
((2, 3), 'fast')
>>> find_entry(where, "axes") is None
True

Source: XLA ``xla/hlo/parser/hlo_parser.cc``, ``kBracedBackendConfig``. The target defines the
content: JSON, or the MLIR attribute dictionary of a typed FFI call.  JSON of protocol buffers has
integers of 64 bits as strings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    """Return the span of an entry's value, or None; dots in the name denote nested entries."""
    if config.text[:1] == '"':  # the configuration as one string
        text = re.sub(r"\\(.)", r"\1", config.text[1:-1])
        config = Source(text, config.source.filename).span(0, len(text))
    entry: Span | None = config
    for key in name.split("."):
        entry = _inside(entry, key) if entry else None
    return entry


def read_entry(config: Span, name: str, kind: Kind[T], owner: str) -> T:
    """Return the value of an existing entry.

    Raises:
        HloError: the text is not a value of this kind.
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


def config_text(entries: Mapping[str, str]) -> str:
    """Return a configuration as text, from the text of each value; dots denote nested entries.

    >>> config_text({"axis": "1", "inner.mode": "fast", "inner.sizes": "{2,3}"})
    '{axis = 1, inner = {mode = fast, sizes = {2,3}}}'
    """
    nested: dict[str, dict[str, str]] = {}
    for name, text in entries.items():
        key, _, inner = name.partition(".")
        nested.setdefault(key, {})[inner] = text
    parts = [
        f"{key} = {inner[''] if '' in inner else config_text(inner)}"
        for key, inner in nested.items()
    ]
    return f"{{{', '.join(parts)}}}"


def _inside(config: Span, name: str) -> Span | None:
    """Return the span of the value of one key in ``{..}``."""
    text, end = config.source.text, config.end
    position = config.start + 1
    while key := _KEY.match(text, position, end):
        stop = _after(text, key.end(), end)
        if key[1] == name:
            return config.source.span(key.end(), stop)
        position = stop + 1
    return None


def _after(text: str, position: int, end: int) -> int:
    """Return the end of the value that begins at `position`: the next comma or closing bracket."""
    depth = 0
    while position < end:
        character = text[position]
        if depth == 0 and character in ",]})":
            break
        depth += (character in _OPEN) - (character in _CLOSE)
        plain = _PLAIN.match(text, position, end)
        position = plain.end() if plain else position + 1
    return position


def _plain(text: str, kind: Kind[Any]) -> str:
    """Convert a value to HLO syntax of equal length: without a type, and with lists in braces."""
    text = _TYPE.sub(lambda match: " " * len(match[0]), text)
    bare = text.rstrip()
    if dense := _DENSE.match(bare):
        return " " * (dense.end() - 1) + "{" + bare[dense.end() : -1] + "}"
    if bare[:1] == "[":
        return "{" + (bare[1:-1].replace('"', " ") if kind is int_list else bare[1:-1]) + "}"
    if bare[:1] == '"' and kind is not string:
        return " " + bare[1:-1] + " "
    return text
