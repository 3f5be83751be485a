"""The files in a folder and its subfolders, in natural order, and why one cannot be read."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator

from hlo.formats.reading import special_file


def files_below(folder: str, faults: list[OSError]) -> Iterator[str]:
    """Yield the paths of all files in natural order: ``m2.hlo`` before ``m10.hlo``.

    Hidden files and folders are left out.  Symbolic links are followed, each folder once, though
    links may form a cycle.

    Args:
        folder: the path of a folder.
        faults: the error of each subfolder that cannot be read is appended to it.
    Raises:
        OSError: the folder itself cannot be read.
    """
    with os.scandir(folder):
        pass
    visited, paths = set(), []
    for parent, folders, names in os.walk(folder, onerror=faults.append, followlinks=True):
        status = os.stat(parent)
        if (status.st_dev, status.st_ino) in visited:
            folders.clear()
            continue
        visited.add((status.st_dev, status.st_ino))
        folders[:] = sorted((each for each in folders if not each.startswith(".")), key=_natural)
        paths += [os.path.join(parent, name) for name in names if not name.startswith(".")]
    yield from sorted(paths, key=_natural)


def _natural(path: str) -> tuple[tuple[tuple[int, int, str], ...], ...]:
    """Return a key that orders numbers in names by value."""
    return tuple(
        tuple((0, int(word), word) if word.isdecimal() else (1, 0, word) for word in words)
        for words in (re.findall(r"\d+|\D+", part) for part in path.split(os.sep))
    )


def fault_of(path: str | os.PathLike[str]) -> OSError | None:
    """Return why a file in a folder is not opened: it is missing or no regular file; else None.

    Opening a FIFO or a device could wait forever.

    >>> str(fault_of(os.devnull))
    "[Errno 22] a device, expected a regular file: '/dev/null'"
    """
    try:
        kind = special_file(os.stat(path).st_mode)
    except OSError as error:  # a broken link, a loop of links
        return error
    if kind is None:
        return None
    return OSError(errno.EINVAL, f"{kind}, expected a regular file", os.fspath(path))
