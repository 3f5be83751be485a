"""Files of HLO: text or protocol buffers, plain, compressed, or standard input."""

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
    """The module in a file; ``.gz`` and ``.xz`` are unpacked, ``-`` is standard input.

    ``.pb`` is a serialized HloModuleProto, or an HloProto as ``--xla_dump_to`` writes it; jaxlib
    makes text of it.

    Raises:
        HloError: the file is not text, or no HLO, or a protocol buffer without jaxlib to read it.
        OSError: the file cannot be read.
    """
    return parse(read_text(path), _filename(path))


def load_all(path: str | os.PathLike[str]) -> list[Module]:
    """The modules in a file that splits them with lines ``// -----``."""
    return parse_all(read_text(path), _filename(path))


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a file, unpacked if need be; what jaxlib prints for a protocol buffer.

    Raises:
        HloError: the file is damaged or is not text, or jaxlib is missing.
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
        raise HloError(f"the compressed file is damaged: {error}", span, "encoding") from None
    is_proto = name.removesuffix(".gz").removesuffix(".xz").endswith(".pb")
    return proto_text(data, name) if is_proto else _decode(data, name)


def _decode(data: bytes, name: str) -> str:
    """`data` as UTF-8 without zero bytes, which no text holds."""
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
    message = f"the file is not text: byte {place} is no UTF-8"
    hint = "a protocol buffer is read when the name of its file ends in .pb"
    raise HloError(message, source.span(len(before)), "encoding", label, help=hint)


def _filename(path: str | os.PathLike[str]) -> str:
    return "<stdin>" if os.fspath(path) == STDIN else os.fspath(path)
