"""The cache folder of the user: entries that are replaced as a whole, up to a size.

An entry is a file or a folder.  Other processes may write and remove entries at the same time.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def cache_folder(kind: str) -> Path:
    """Return the folder for entries of one kind, in the place of this system for caches.

    On Linux, this is ``hlo-indexing`` in ``$XDG_CACHE_HOME`` or in ``~/.cache``.
    """
    from platformdirs import user_cache_path

    return user_cache_path("hlo-indexing") / kind


def read_entry(path: Path) -> bytes | None:
    """Return the contents of a file in the cache, and mark it as used.

    None if there is no such file, it cannot be read, or another user has written it.
    """
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            is_own = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
            if not (stat.S_ISREG(status.st_mode) and is_own):
                return None
            data = file.read()
    except OSError:
        return None
    with suppress(OSError):  # such as a read-only cache
        os.utime(path)
    return data


def write_entry(path: Path, data: bytes, max_bytes: int) -> None:
    """Replace a file in the cache, and remove the oldest entries beside it.

    A reader sees the old file, the new one, or none.

    Args:
        max_bytes: the limit on the size of all entries in the folder.
    Raises:
        OSError: the cache cannot be written.
    """
    import tempfile

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(prefix="new-", dir=path.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    remove_oldest(path.parent, max_bytes)


def remove_oldest(folder: Path, max_bytes: int) -> None:
    """Remove the entries that were not used for the longest time, beyond a size of all entries."""
    from shutil import rmtree

    entries: list[tuple[int, int, Path]] = []
    for entry in folder.iterdir():
        with suppress(FileNotFoundError):  # another process has removed it
            entries.append((entry.stat().st_mtime_ns, _size(entry), entry))
    total = 0
    for _, size, entry in sorted(entries, reverse=True):
        total += size
        if total > max_bytes:
            if entry.is_dir():
                rmtree(entry, ignore_errors=True)
            else:
                with suppress(OSError):
                    entry.unlink()


def _size(entry: Path) -> int:
    """Return the size of a file, or of all files in a folder."""
    if not entry.is_dir():
        return entry.stat().st_size
    return sum(file.stat().st_size for file in entry.rglob("*") if file.is_file())
