"""The cache of outlines: a module that was read once is not scanned again.

The name of a file is a digest of the text of its module, so a changed text has another file.  A
file is JSON after a line with a digest of that JSON and of the parser.  A file that is damaged, of
another parser or of another user is replaced.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

import hlo
from hlo.formats.outline import ModuleOutline
from indexing.frontends.user_cache import cache_folder, read_entry, write_entry

MAX_BYTES: Final = 256 << 20
"""The outlines that were used last stay in the cache, up to this size."""

MIN_CHARACTERS: Final = 1 << 17
"""The size of a text from which its outline is stored: shorter ones are scanned in 5 ms."""


class OutlineCache:
    """The outlines in the cache of the user."""

    def __init__(self) -> None:
        self._last = ("", Path())  # a text and its file

    def find(self, text: str) -> ModuleOutline | None:
        """Return the outline of a text; None if the cache does not have it."""
        data = read_entry(self._file(text)) if _is_cached(text) else None
        if data is None:
            return None
        line, _, stored = data.partition(b"\n")
        if line != _first_line(stored):
            return None
        with suppress(ValueError):
            return ModuleOutline.of_json(stored.decode())
        return None

    def keep(self, text: str, outline: ModuleOutline) -> None:
        """Store the outline of a text, if the cache can be written."""
        if not (_is_cached(text) and outline.bodies):
            return
        stored = outline.json().encode()
        with suppress(OSError):
            write_entry(self._file(text), _first_line(stored) + b"\n" + stored, MAX_BYTES)

    def _file(self, text: str) -> Path:
        if self._last[0] is not text:
            digest = sha256(text.encode()).hexdigest()
            self._last = text, cache_folder("outlines") / f"{digest}.json"
        return self._last[1]


def _is_cached(text: str) -> bool:
    return len(text) >= MIN_CHARACTERS and _parser_digest() != b""


def _first_line(stored: bytes) -> bytes:
    digest = sha256(_parser_digest())
    digest.update(stored)
    return digest.hexdigest().encode()


@cache
def _parser_digest() -> bytes:
    """Return a digest of the sources of the parser; ``b""`` if they are not files.

    A version would not do: in a checkout, sources change within one.
    """
    digest = sha256()
    sources = [source for folder in hlo.__path__ for source in Path(folder).glob("*/*.py")]
    for source in sorted(sources):
        digest.update(source.read_bytes())
    return digest.digest() if sources else b""
