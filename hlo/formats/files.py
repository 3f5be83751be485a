"""Loading of files: HLO text, protobufs or StableHLO, plain or compressed, or standard input."""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from io import BytesIO
from typing import Final

from hlo.arguments import checked
from hlo.formats.outline import OutlineStore
from hlo.formats.parser import parse, parse_all, parse_outlined
from hlo.formats.proto import proto_text
from hlo.formats.reading import MAX_BYTES, STDIN, read_bytes, unpack, unpacked_name
from hlo.formats.recognition import BYTECODE, STABLEHLO, binary_format
from hlo.formats.stablehlo import stablehlo_text
from hlo.modules.module import Module
from hlo.text.source import HloError, Source


@checked
def load(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> Module:
    """Load the module in a file; ``-`` is standard input.

    The contents decide, not the name: HLO text, a serialized HloModuleProto or HloProto as written
    by ``--xla_dump_to``, or StableHLO with a function ``main``, as text or bytecode, each plain or
    compressed by gzip or xz. jaxlib converts protocol buffers and StableHLO to HLO text.

    Args:
        path: a regular file, a FIFO that a process writes to, or ``-``.
        max_bytes: limit on the size of the file after decompression; 1 GiB by default.
            An archive may have up to 200 times its stored size, if it exceeds 1/16 of the limit.
    Raises:
        HloError: the file is not valid HLO or exceeds the limit, or it is a protocol buffer or
            StableHLO and jaxlib is not installed.
        OSError: the file cannot be read, or it is a directory, a device or a socket.
    Source: XLA ``xla/service/hlo.proto`` for protocol buffers.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".hlo") as file:
    ...     _ = file.write("HloModule m ENTRY e { p = f32[] parameter(0) }")
    ...     file.flush()
    ...     print(load(file.name).name)
    m
    """
    return parse(read_text(path, max_bytes), _filename(path), lazy=True)


@checked
def load_all(
    path: str | os.PathLike[str], max_bytes: int = MAX_BYTES, *, lazy: bool = True
) -> list[Module]:
    """Load the modules of a file that separates them by lines ``// -----``.

    Args:
        path: as `load`.
        max_bytes: as `load`.
        lazy: as `hlo.parse`; without it, loading is slower, and reading all instructions faster.

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
    return parse_all(read_text(path, max_bytes), _filename(path), lazy=lazy)


def load_outlined(
    path: str | os.PathLike[str], max_bytes: int, lazy: bool, outlines: OutlineStore | None
) -> list[Module]:
    """Load the modules of a file as `load_all` does, with a store of outlines.

    Raises:
        HloError: as `load`.
        OSError: the file cannot be read.
    """
    return parse_outlined(read_text(path, max_bytes), _filename(path), lazy, outlines)


def read_text(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> str:
    """Return the HLO text of a file, decompressed; jaxlib converts other formats.

    Raises:
        HloError: the file is corrupt, too large or not UTF-8, or jaxlib is missing.
        OSError: the file cannot be read.
    """
    name = _filename(path)
    return _module_text(read_bytes(os.fspath(path), name, max_bytes), name)


def text_of(contents: bytes | bytearray, name: str, max_bytes: int = MAX_BYTES) -> str:
    """Return the HLO text of the stored contents of a file, as `read_text` of the file.

    Args:
        contents: the bytes of the file, which may be compressed.
        name: the name of the file.
        max_bytes: limit on the size after decompression.
    Raises:
        HloError: as `read_text`.

    >>> text_of(b"HloModule m", "m.hlo")
    'HloModule m'
    """
    return _module_text(unpack(BytesIO(contents), name, max_bytes), name)


def _module_text(data: bytearray, name: str) -> str:
    """Return the HLO text of a module in any format; the name of a file decides only in doubt."""
    suffix = os.path.splitext(unpacked_name(name))[1]
    is_hlo = _HLO.match(data) is not None
    if data.startswith(BYTECODE):
        return stablehlo_text(bytes(data), name)
    if suffix == ".pb" and not is_hlo and binary_format(data) is None:
        return proto_text(bytes(data), name)
    if _PROTO.match(data):
        try:
            return proto_text(bytes(data), name)
        except HloError as error:
            if error.code == "jaxlib":
                raise  # another error: the file is not text, either
    text = decode(data, name)
    is_mlir = suffix == ".mlir" or STABLEHLO.place(text) is not None
    return stablehlo_text(text, name) if is_mlir and not is_hlo else text


_HLO: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:HloModule|ENTRY)\b")
_PROTO: Final = re.compile(rb"\n(?=[^\0-\x08\x0b\x0e-\x1f]{0,255}[\0-\x08\x0b\x0e-\x1f])")


def decode(data: bytes | bytearray, name: str) -> str:
    """Decode `data` as UTF-8 without its byte order mark.

    Raises:
        HloError: `data` is not UTF-8, or has NUL bytes; `name` is its file.

    >>> decode(b"\\xef\\xbb\\xbfHloModule m", "m.hlo")
    'HloModule m'
    """
    zero = data.find(b"\0")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = error.start if zero < 0 else min(zero, error.start)
    else:
        if zero < 0:
            return text.removeprefix("\ufeff")
        place = zero
    before = data[:place].removeprefix(BOM_UTF8).decode("utf-8", errors="replace")
    source = Source(before + data[place : place + 80].decode("latin-1"), name)
    label = f"byte 0x{data[place]:02x}"
    reason = "invalid UTF-8" if data[place] else "NUL"
    message = f"the file is not text: {reason} at byte {place}"
    repair = _repair(data)
    if form := binary_format(data):
        message, repair = f"the file is {form.name}, not HLO text", form.repair
    raise HloError(message, source.span(len(before)), "encoding", label, help=repair)


def _repair(data: bytes | bytearray) -> str:
    """Return the repair of a file that is not UTF-8, by its probable format."""
    if data[:4] in (BOM_UTF32_LE, BOM_UTF32_BE):
        return "the file is UTF-32: convert it to UTF-8"
    if data[:2] in (BOM_UTF16_LE, BOM_UTF16_BE):
        return "the file is UTF-16: convert it to UTF-8"
    start = data[:4096]
    unprintable = sum((byte < 32 and byte not in b"\t\n\r\f") or byte > 126 for byte in start)
    if unprintable > len(start) // 20:
        return "pass HLO text, a protocol buffer of HLO or StableHLO"
    return "remove or re-encode the byte"


def _filename(path: str | os.PathLike[str]) -> str:
    return "<stdin>" if os.fspath(path) in STDIN else os.fspath(path)
