"""The bytes of an input file: decompressed, up to a limit, from a regular file or a pipe."""

from __future__ import annotations

import errno
import gzip
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final, cast

from hlo.formats.dump_names import DumpName, is_of_dump
from hlo.text.source import HloError, Source

MAX_BYTES: Final = 1 << 30  # default limit on the size of an input after decompression
MAX_RATIO: Final = 200
"""Limit on the size of a large input after decompression, as a multiple of its stored size.

Dumps of repeated layers have up to 60 with xz; an archive that is made to exhaust memory has 1,000.
"""
ANY_RATIO: Final = 16
"""The share of the limit on the size, one part in so many, that may have any ratio."""
PACKED: Final = (".gz", ".xz")
"""Suffixes of compressed files."""
_GZIP: Final = b"\x1f\x8b"
_XZ: Final = b"\xfd7zXZ\0"
STDIN: Final = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})

_CHUNK: Final = 1 << 20
_OPTION: Final = "--max-input-size, or the argument max_bytes of hlo.load"
_SPECIAL_FILES: Final = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def read_bytes(path: str, name: str, max_bytes: int) -> bytearray:
    """Return the contents of a file, decompressed as by `unpack`.

    Args:
        path: a regular file, a FIFO that a process writes to, or a member of `STDIN`.
        name: the name of the file in errors.
        max_bytes: the limit on the size after decompression.
    Raises:
        HloError: the file is corrupt, or its contents exceed the limit.
        OSError: the file cannot be read, or it is a directory, a device or a socket.
    """
    with _open_without_waiting(path, name, max_bytes) as file:
        return unpack(file, name, max_bytes)


def read_stored(path: str, name: str, max_bytes: int) -> bytearray:
    """Return the contents of a file as they are stored, for `unpack` in another process.

    Args:
        path: as `read_bytes`.
        name: the name of the file in errors.
        max_bytes: the limit on the size as it is stored.
    Raises:
        HloError: the file exceeds the limit.
        OSError: the file cannot be read, or it is a directory, a device or a socket.
    """
    with _open_without_waiting(path, name, max_bytes) as file:
        return _read_limited(file, name, max_bytes)


def unpack(stream: BinaryIO, name: str, max_bytes: int) -> bytearray:
    """Return the contents of a stream, decompressed if they are those of an archive.

    Args:
        name: the name of the file in errors; its ending decides nothing.
    Raises:
        HloError: the contents are corrupt, or exceed `max_bytes`.
    """
    stored = _Counted(stream)
    counted = cast(BinaryIO, stored)  # `read` is all that is needed
    try:
        if stored.start.startswith(_GZIP):
            with gzip.GzipFile(fileobj=counted, mode="rb") as file:
                return _read_limited(file, name, max_bytes, stored)
        if stored.start.startswith(_XZ):
            with lzma.LZMAFile(counted) as file:
                return _read_limited(file, name, max_bytes, stored)
    except (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError) as error:
        span = Source("", name).span(0)
        raise HloError(f"corrupt compressed file: {error}", span, "encoding") from None
    return _read_limited(counted, name, max_bytes)


class _Counted:
    """A stream that counts the bytes that are read from it; `start` has the first ones."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.start = self._ahead = stream.read(len(_XZ))
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        data, self._ahead = self._ahead, b""
        if 0 <= size < len(data):
            data, self._ahead = data[:size], data[size:]
        elif size < 0 or not data:
            data += self._stream.read(size)
        self.count += len(data)
        return data


def stdin() -> BinaryIO:
    """Return the binary stream of standard input.

    Raises:
        OSError: standard input is closed.
    """
    if sys.stdin is None:  # closed by the shell: `<&-`
        raise OSError(errno.EBADF, "standard input is closed")
    return sys.stdin.buffer


def special_file(mode: int) -> str | None:
    """Return the kind of a file with this mode, such as "a FIFO"; None for a regular file.

    >>> special_file(os.stat(os.devnull).st_mode)
    'a device'
    """
    if stat.S_ISREG(mode):
        return None
    return _SPECIAL_FILES.get(stat.S_IFMT(mode), "a special file")


def size_text(count: int) -> str:
    """Return a number of bytes with its unit.

    >>> size_text(5 * 2**30)
    '5.0 GiB'
    """
    for unit, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"


def _read_limited(
    stream: BinaryIO | gzip.GzipFile | lzma.LZMAFile,
    name: str,
    limit: int,
    stored: _Counted | None = None,
) -> bytearray:
    """Return the contents of a stream, read in chunks up to the limit, and up to the ratio."""
    dense = max(limit, MAX_BYTES) // ANY_RATIO
    data = bytearray()
    while chunk := stream.read(_CHUNK):
        data += chunk
        if len(data) > limit:
            raise _too_large(name, limit)
        if stored is not None and len(data) > max(dense, MAX_RATIO * stored.count):
            raise _too_dense(name, limit, dense)
    return data


def _too_large(name: str, limit: int) -> HloError:
    after = " after decompression" if name.endswith(PACKED) else ""
    message = f"the input exceeds the limit of {size_text(limit)}{after}"
    hint = f"raise the limit: {_OPTION}"
    return HloError(message, Source("", name).span(0), "size", help=hint)


def _too_dense(name: str, limit: int, dense: int) -> HloError:
    message = (
        f"the input decompresses to more than {size_text(dense)}, and to more than {MAX_RATIO} "
        "times its size"
    )
    hint = (
        f"decompress the file, or raise the limit of {size_text(limit)}, of which 1/{ANY_RATIO} "
        f"may have any ratio: {_OPTION}"
    )
    return HloError(message, Source("", name).span(0), "size", help=hint)


def _inside(directory: str) -> str:
    """Return a suggestion of a module in a directory, such as the dump of a program."""
    modules = sorted(file for file in os.listdir(directory) if _is_module(file))
    optimised = [file for file in modules if "after_optimizations" in file]
    if not modules:
        return ""
    largest = max(
        optimised or modules, key=lambda name: os.stat(os.path.join(directory, name)).st_size
    )
    return f" such as {os.path.join(directory, largest)}"


def _is_module(name: str) -> bool:
    if is_of_dump(name):
        return DumpName.of(name) is not None
    return name.endswith((".hlo", ".txt", ".mlir"))


def unpacked_name(name: str) -> str:
    """Return the name of a file without the suffix of its compression.

    >>> unpacked_name("m.hlo.gz"), unpacked_name("m.hlo")
    ('m.hlo', 'm.hlo')
    """
    return name.removesuffix(".gz").removesuffix(".xz")


@contextmanager
def _open_without_waiting(path: str, name: str, limit: int) -> Iterator[BinaryIO]:
    """Open a file for reading, without waiting for a writer of a FIFO."""
    if path in STDIN:
        yield stdin()
        return
    status = os.stat(path)
    kind = special_file(status.st_mode)
    if kind == "a directory":
        raise IsADirectoryError(errno.EISDIR, f"{kind}, expected a regular file{_inside(path)}")
    if kind not in (None, "a FIFO"):
        raise OSError(errno.EINVAL, f"{kind}, expected a regular file, or - for standard input")
    if status.st_size > limit and not name.endswith(PACKED):
        raise _too_large(name, limit)
    if kind is None:
        with open(path, "rb") as file:
            yield file
        return
    with open(path, "rb", opener=_without_waiting) as file:
        if hasattr(os, "set_blocking"):  # else on Windows, where no path is a FIFO
            os.set_blocking(file.fileno(), True)
        if not file.peek():
            raise OSError(errno.EAGAIN, "a FIFO that no process writes to")
        yield file


def _without_waiting(path: str, flags: int) -> int:
    """Open a file without waiting for a writer of a FIFO."""
    return os.open(path, flags | (os.O_NONBLOCK if hasattr(os, "O_NONBLOCK") else 0))
