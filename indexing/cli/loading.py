"""Modules of a file that this process reads, or whose contents another process has sent."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from hlo.text.source import HloError
from indexing.cli.reporter import limit_of, load_modules, outlines

if TYPE_CHECKING:
    from hlo.modules.module import Module

Stored: TypeAlias = bytes | Path | HloError | OSError
"""The contents of a file as they are stored, the place of the file, or the error of reading it."""


def read(file: str, max_bytes: int | None) -> Stored:
    """Return the contents of a file, for `load` in a process that cannot read it.

    Args:
        file: the name of the file.
        max_bytes: the limit on its size; None stands for the default.
    """
    try:
        return _contents(file, file, max_bytes)
    except (OSError, HloError) as error:
        return error


def _contents(path: str, name: str, max_bytes: int | None) -> bytes:
    from hlo.formats.reading import read_stored

    return bytes(read_stored(path, name, limit_of(max_bytes)))


def load(
    file: str, max_bytes: int | None, stored: Stored | None, lazy: bool, uses_cache: bool = False
) -> list[Module]:
    """Load the modules of a file, or of its contents.

    Args:
        file: the name of the file, also in errors.
        max_bytes: as `read`.
        stored: its contents or place; None if `file` is its place.
        lazy: only some instructions are needed; see `hlo.load_all`.
        uses_cache: take the outlines of the modules from the user's cache, and store them.
    Raises:
        HloError: the file is not valid HLO, or too large.
        OSError: the file cannot be read.

    >>> load("m.hlo", None, b"HloModule m ENTRY e { p = f32[] parameter(0) }", True)[0].filename
    'm.hlo'
    """
    if stored is None:
        return load_modules(file, max_bytes, lazy, uses_cache)
    if isinstance(stored, Path):
        stored = _contents(str(stored), file, max_bytes)
    if not isinstance(stored, bytes):
        raise stored
    from hlo.formats.files import text_of
    from hlo.formats.parser import parse_outlined

    text = text_of(stored, file, limit_of(max_bytes))
    return parse_outlined(text, file, lazy, outlines(uses_cache))


def load_lazily(
    file: str, max_bytes: int | None, stored: Stored | None, uses_cache: bool
) -> list[Module]:
    """Load the modules lazily, unless the last call had the same file and it is unchanged.

    Raises:
        HloError: as `load`.
        OSError: as `load`.
    """
    place = stored if isinstance(stored, Path) else file
    version = None if isinstance(stored, bytes) else _version(place)
    return _load_version(file, version, max_bytes, stored, uses_cache)


def load_only(file: str, max_bytes: int | None, uses_cache: bool) -> Module:
    """Return the only module of a file that the command has read, in a worker process.

    Raises:
        HloError: as `load`.
        OSError: as `load`.
    """
    import_module("indexing.ops")  # registers the ops
    (module,) = load_lazily(file, max_bytes, None, uses_cache)
    return module


@lru_cache(maxsize=1)
def _load_version(
    file: str,
    version: tuple[int, int] | None,
    max_bytes: int | None,
    stored: Stored | None,
    uses_cache: bool,
) -> list[Module]:
    return load(file, max_bytes, stored, True, uses_cache)


def _version(file: str | Path) -> tuple[int, int] | None:
    """Return the time and size of a file: workers of a cluster survive its changes."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
