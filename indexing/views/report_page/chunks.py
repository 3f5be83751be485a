"""Compressed JSON in HTML: a browser decompresses a chunk when it is needed."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from gzip import compress
from typing import Any, Final

CHUNK_CHARACTERS: Final = 1 << 18
"""Number of characters of JSON after which a chunk ends."""


_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))


def pack_text(text: str) -> str:
    """Return text as gzip in base64, whose characters need no escapes in HTML.

    >>> from base64 import b64decode
    >>> from gzip import decompress
    >>> decompress(b64decode(pack_text("</script>"))).decode()
    '</script>'
    """
    return b64encode(compress(text.encode(), 6, mtime=0)).decode()


def json_text(value: Any) -> str:
    """Return a value as JSON without spaces; lone surrogates of a text are escaped."""
    return _ENCODER.encode(value)


def chunks(values: Iterable[Any]) -> list[tuple[int, str]]:
    """Return the number of the first value of each chunk, and the packed JSON array of its values.

    A thread compresses them while further values are computed.

    >>> [first for first, _ in chunks(["x" * 100_000] * 7)]
    [0, 3, 6]
    """
    with ThreadPoolExecutor(max_workers=1) as pool:  # zlib releases the interpreter's lock
        packed = [(first, pool.submit(pack_text, text)) for first, text in _join_chunks(values)]
        return [(first, each.result()) for first, each in packed]


def _join_chunks(values: Iterable[Any]) -> Iterator[tuple[int, str]]:
    """Yield the number of the first value of each chunk, and the JSON array of its values."""
    first, parts, size = 0, list[str](), 0
    for number, value in enumerate(values):
        text = json_text(value)
        parts.append(text)
        size += len(text)
        if size >= CHUNK_CHARACTERS:
            yield first, f"[{','.join(parts)}]"
            first, parts, size = number + 1, [], 0
    if parts:
        yield first, f"[{','.join(parts)}]"
