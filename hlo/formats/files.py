"""Loading of HLO files: text or protocol buffers, plain or compressed, or standard input."""

from __future__ import annotations

import gzip
import lzma
import os
import sys
import zlib
from pathlib import Path

from hlo.formats.parser import parse, parse_all
from hlo.formats.proto import proto_text
from hlo.modules.module import Module
from hlo.text.source import HloError, Source

STDIN = "-"


def load(path: str | os.PathLike[str]) -> Module:
    """Load the module in a file; ``-`` is standard input.

    ``.gz`` and ``.xz`` files are decompressed. A ``.pb`` file is a serialized HloModuleProto, or an
    HloProto as written by ``--xla_dump_to``; jaxlib converts it to text.

    Raises:
        HloError: the file is not valid HLO, or it is a protocol buffer and jaxlib is not installed.
        OSError: the file cannot be read.
    Source: XLA ``xla/service/hlo.proto`` for protocol buffers.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".hlo") as file:
    ...     _ = file.write("HloModule m ENTRY e { p = f32[] parameter(0) }")
    ...     file.flush()
    ...     print(load(file.name).name)
    m
    """
    return parse(read_text(path), _filename(path))


def load_all(path: str | os.PathLike[str]) -> list[Module]:
    """Load the modules of a file that separates them by lines ``// -----``.

    Raises:
        HloError: as `load`.
        OSError: the file cannot be read.
    Source: MLIR ``mlir-opt``, option ``-split-input-file``, for the separator.

    >>> import tempfile
    >>> one = "HloModule m ENTRY e { p = f32[] parameter(0) }"
    >>> with tempfile.NamedTemporaryFile("w", suffix=".hlo") as file:
    ...     _ = file.write(f"{one}\\n// -----\\n{one}")
    ...     file.flush()
    ...     print(len(load_all(file.name)))
    2
    """
    return parse_all(read_text(path), _filename(path))


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file, decompressed; for a protocol buffer, the text that jaxlib prints.

    Raises:
        HloError: the file is corrupt or not UTF-8, or jaxlib is missing.
        OSError: the file cannot be read.
    """
    name = _filename(path)
    data = sys.stdin.buffer.read() if os.fspath(path) == STDIN else Path(path).read_bytes()
    try:
        if name.endswith(".gz"):
            data = gzip.decompress(data)
        elif name.endswith(".xz"):
            data = lzma.decompress(data)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        span = Source("", name).span(0)
        raise HloError(f"corrupt compressed file: {error}", span, "encoding") from None
    is_proto = name.removesuffix(".gz").removesuffix(".xz").endswith(".pb")
    return proto_text(data, name) if is_proto else _decode(data, name)


def _decode(data: bytes, name: str) -> str:
    """Decode `data` as UTF-8 and reject NUL bytes."""
    zero = data.find(b"\0")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = error.start if zero < 0 else min(zero, error.start)
    else:
        if zero < 0:
            return text
        place = zero
    before = data[:place].decode("utf-8", errors="replace")
    source = Source(before + data[place : place + 80].decode("latin-1"), name)
    label = f"byte 0x{data[place]:02x}"
    reason = "invalid UTF-8" if data[place] else "NUL"
    message = f"the file is not text: {reason} at byte {place}"
    raise HloError(message, source.span(len(before)), "encoding", label, help=_repair(data))


def _repair(data: bytes) -> str:
    """Return the repair of a file that is not UTF-8, by its probable format."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "the file is UTF-16: convert it to UTF-8"
    start = data[:4096]
    unprintable = sum((byte < 32 and byte not in b"\t\n\r\f") or byte > 126 for byte in start)
    if unprintable > len(start) // 20:
        return "name the file *.pb to read it as a protocol buffer"
    return "remove or re-encode the byte"


def _filename(path: str | os.PathLike[str]) -> str:
    return "<stdin>" if os.fspath(path) == STDIN else os.fspath(path)
