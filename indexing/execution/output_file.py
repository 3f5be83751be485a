"""The file that results are written to: a regular file, replaced atomically, or a stream."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from hlo.formats.reading import special_file

STDOUT: Final = frozenset({"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"})


def is_stdout(path: str) -> bool:
    """Return True if `path` is ``-`` or a name of standard output, such as ``/dev/stdout``.

    >>> is_stdout("-"), is_stdout("out.npz")
    (True, False)
    """
    return path in STDOUT


def check_writable(path: str) -> None:
    """Check that results can be written to `path`, without changing anything.

    Raises:
        OSError: `path` is no regular file, the file is read-only,
            its folder does not exist, or it is standard output and standard output is closed.
    """
    if is_stdout(path):
        _stdout()
    else:
        _target(path)


@contextmanager
def replace_file(path: str) -> Iterator[BinaryIO]:
    """Open a file for writing whose contents replace those of `path` when the block ends.

    A symbolic link stays; the file that it points to is replaced or created.  The new file has the
    permissions of the old one, and its owner and group if this process may set them.  If the block
    raises an exception, `path` is unchanged.  Standard output is written directly.

    Raises:
        OSError: as `check_writable`, or writing fails.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replace_file(f"{folder}/out") as file:
    ...         _ = file.write(b"new")
    ...     print(os.listdir(folder), Path(folder, "out").read_bytes())
    ['out'] b'new'
    """
    if is_stdout(path):
        _stdout().flush()
        with io.BufferedWriter(_Appended()) as stream:
            yield stream
        _stdout().flush()
        return
    target = _target(path)
    old = target.stat() if target.exists() else None
    temporary = target.with_name(f".hlo-indexing-{os.urandom(8).hex()}.part")
    mode = 0o666 if old is None else 0o600  # while it is written; `open` applies the umask
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            if old is not None:
                _copy_permissions(old, temporary)
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


@contextmanager
def continue_file(path: str, size: int) -> Iterator[BinaryIO]:
    """Open a regular file for writing after its first `size` bytes; the rest is cut off.

    Raises:
        OSError: as `check_writable`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "out").write_bytes(b"one two")
    ...     with continue_file(f"{folder}/out", 4) as file:
    ...         _ = file.write(b"three")
    ...     Path(folder, "out").read_bytes()
    b'one three'
    """
    descriptor = os.open(_target(path), os.O_RDWR | os.O_CREAT, 0o666)
    with open(descriptor, "r+b") as file:
        file.truncate(size)
        file.seek(size)
        yield file


class _Appended(io.RawIOBase):
    """A stream without seeking, which corrupts files opened by ``>>``."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return _stdout().write(data)


def _stdout() -> BinaryIO:
    """Return the binary stream of standard output."""
    if sys.stdout is None:  # closed by the shell: `>&-`
        raise OSError(errno.EBADF, "standard output is closed")
    if sys.stdout.isatty():
        raise OSError(errno.EINVAL, "standard output is a terminal, and the results are binary")
    return sys.stdout.buffer


def _target(path: str) -> Path:
    """Return the regular file that `path` names, or the path at which one will be created."""
    if path.endswith("/"):
        raise IsADirectoryError(errno.EISDIR, "the path names a directory, not a file")
    target = Path(os.path.realpath(path))
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        if not target.parent.is_dir():
            reason = f"the folder {target.parent} does not exist"
            raise FileNotFoundError(errno.ENOENT, reason) from None
        return target
    if kind := special_file(mode):
        raise OSError(errno.EINVAL, f"{kind}, expected a regular file, or - for standard output")
    if not (target.exists() and os.path.samefile(path, target)):  # such as /dev/fd/3
        raise OSError(errno.EINVAL, "cannot replace a file that has no path")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only")
    return target


def _copy_permissions(old: os.stat_result, path: Path) -> None:
    """Give a file the permissions of `old`, and its owner and group where permitted."""
    new = path.stat()
    owners = ((old.st_uid, -1), (-1, old.st_gid)) if hasattr(os, "chown") else ()
    for owner, group in owners:
        if (owner, group) not in ((new.st_uid, -1), (-1, new.st_gid)):
            with suppress(PermissionError):  # only root may give files away
                os.chown(path, owner, group)
    path.chmod(stat.S_IMODE(old.st_mode))
