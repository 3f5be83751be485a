"""Files: plain, compressed, standard input, protocol buffers, and invalid files."""
# ruff: noqa: E501 - a row of a table is a line

import gzip
import io
import lzma
import os
import socket
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import hlo
from hlo.formats import reading
from hlo.formats.files import text_of
from hlo.formats.parser import parse_all

TEXT = 'ENTRY e { p = f32[] parameter(0), metadata={op_name="größe"} }\n'
UTF8 = TEXT.encode()


@pytest.mark.parametrize(
    "name, data",
    [
        ("m.hlo", UTF8),
        ("m.txt", UTF8),
        ("m", UTF8),
        ("m.hlo.gz", gzip.compress(UTF8, mtime=0)),
        ("m.hlo.xz", lzma.compress(UTF8)),
        ("m.hlo", gzip.compress(UTF8, mtime=0)),
        ("m", lzma.compress(UTF8)),
        ("m.xz", gzip.compress(UTF8, mtime=0)),
        ("m.gz", lzma.compress(UTF8)),
        ("m.hlo.gz", UTF8),
        ("m.xz", UTF8),
        ("m.mlir", UTF8),
        ("m.pb", UTF8),
    ],
)
def test_the_contents_of_a_file_decide(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    module = hlo.load(path)
    assert module == hlo.parse(TEXT)
    assert module.filename == str(path)
    assert hlo.load_all(str(path)) == [module]
    assert text_of(reading.read_stored(str(path), name, len(data)), name, len(UTF8)) == TEXT


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(UTF8)))
    assert hlo.load("-").filename == "<stdin>"


# fmt: off
INVALID = [
    # name      bytes                              line column  message
    ("m.hlo",   b"\x0a\x12\x08\xffproto",          2, 3,        "the file is not text: invalid UTF-8 at byte 3"),
    ("m.hlo",   b"ENTRY e {\n\x00}",               2, 1,        "the file is not text: NUL at byte 10"),
    ("m.hlo",   "größe \x00".encode(),             1, 7,        "the file is not text: NUL at byte 8"),
    ("m.gz",    gzip.compress(UTF8, mtime=0)[:-9],          1, 1,        "corrupt compressed file: Compressed file ended before the end-of-stream marker was reached"),
    ("m.xz",    lzma.compress(UTF8)[:-9],          1, 1,        "corrupt compressed file: Compressed file ended before the end-of-stream marker was reached"),
    ("m.hlo",   b"",                               1, 1,        "expected HLO text, found an empty text"),
]
# fmt: on


@pytest.mark.parametrize("name, data, line, column, message", INVALID)
def test_an_invalid_file_is_an_error(
    tmp_path: Path, name: str, data: bytes, line: int, column: int, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(hlo.HloError) as caught:
        hlo.load(path)
    assert caught.value.message == message
    assert caught.value.span.place() == f"{path}:{line}:{column}"
    assert str(caught.value)
    with pytest.raises(hlo.HloError) as of_contents:
        parse_all(text_of(data, str(path)), str(path))
    assert str(of_contents.value) == str(caught.value)


def test_a_missing_file_raises_oserror(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        hlo.load(tmp_path / "missing.hlo")


# ---------------------------------------------------------------- protocol buffers


def serialize(text: str) -> bytes:
    xla: Any = pytest.importorskip("jaxlib._hlo", reason="needs jaxlib, to make a protocol buffer")
    data: bytes = xla.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    return data


def in_hlo_proto(data: bytes) -> bytes:
    """Return an HloProto with the module as its first field: tag, varint length, bytes."""
    length, digits = len(data), bytearray()
    while length >= 128:
        digits.append(length % 128 + 128)
        length //= 128
    return b"\x0a" + bytes([*digits, length]) + data


SMALL = "HloModule m\n\nENTRY e {\n  p = f32[] parameter(0)\n  ROOT n = f32[] negate(p)\n}\n"
LARGE = "ENTRY e { ROOT c = f32[16] constant({" + ", ".join("7" * 16) + "}) }"


@pytest.mark.parametrize("name", ["m.pb", "m.hlo.pb", "m.pb.gz", "m.pb.xz"])
@pytest.mark.parametrize("wrap", [bytes, in_hlo_proto])
def test_a_protocol_buffer_loads_as_a_module(
    tmp_path: Path, name: str, wrap: Callable[[bytes], bytes]
) -> None:
    data = wrap(serialize(SMALL))
    packers: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "xz": lzma.compress}
    path = tmp_path / name
    path.write_bytes(packers.get(name[-2:], bytes)(data))
    module = hlo.load(path)
    assert (module.name, module.filename) == ("m", str(path))
    assert [i.opcode for i in module.entry.instructions] == ["parameter", "negate"]
    assert hlo.load_all(path) == [module]


def test_a_protocol_buffer_keeps_its_constants(tmp_path: Path) -> None:
    path = tmp_path / "m.pb"
    path.write_bytes(serialize(LARGE))
    literal = hlo.load(path).entry.root.literal
    assert literal is not None
    assert literal.text.count("7") == 16


@pytest.mark.parametrize("data", [b"", b"no module", b"\x0a", b"\x0a\x05hello"])
def test_an_invalid_protocol_buffer_is_an_error(tmp_path: Path, data: bytes) -> None:
    pytest.importorskip("jaxlib._hlo", reason="needs jaxlib, to read a protocol buffer")
    path = tmp_path / "m.pb"
    path.write_bytes(data)
    with pytest.raises(hlo.HloError, match="the file is not a serialized HLO module") as caught:
        hlo.load(path)
    assert caught.value.code == "encoding"


def test_an_error_without_jaxlib_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jaxlib", None)
    path = tmp_path / "m.pb"
    path.write_bytes(b"anything")
    with pytest.raises(hlo.HloError, match="jaxlib, which is not installed") as caught:
        hlo.load(path)
    assert caught.value.span.place() == f"{path}:1:1"
    assert "pip install 'hlo-indexing[xla]'" in caught.value.help


@pytest.mark.parametrize(
    "data, repair",
    [
        (b"HloModule m\n ENTRY e { p.\xff = f32[] parameter(0) }", "remove or re-encode the byte"),
        ("HloModule m".encode("utf-16"), "the file is UTF-16: convert it to UTF-8"),
        (bytes(range(256)), "pass HLO text, a protocol buffer of HLO or StableHLO"),
    ],
)
def test_the_repair_of_a_file_that_is_not_text_follows_from_its_bytes(
    tmp_path: Path, data: bytes, repair: str
) -> None:
    path = tmp_path / "m.hlo"
    path.write_bytes(data)
    with pytest.raises(hlo.HloError, match="not text") as caught:
        hlo.load(path)
    assert caught.value.help == repair


# ---------------------------------------------------------------- limits

PACKED = [
    ("m.hlo", bytes),
    ("m.hlo.gz", gzip.compress),
    ("m.hlo.xz", lzma.compress),
]


@pytest.mark.parametrize("name, pack", PACKED)
def test_the_limit_is_on_the_size_after_decompression(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / name
    path.write_bytes(pack(UTF8))
    assert hlo.load(path, max_bytes=len(UTF8)) == hlo.parse(TEXT)
    with pytest.raises(hlo.HloError, match=f"exceeds the limit of {len(UTF8) - 1} bytes") as caught:
        hlo.load_all(path, max_bytes=len(UTF8) - 1)
    assert caught.value.code == "size"
    assert ("after decompression" in caught.value.message) == (pack is not bytes)
    assert "--max-input-size" in caught.value.help


@pytest.mark.parametrize("name, pack", PACKED[1:])
def test_a_bomb_is_not_unpacked(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.write_bytes(pack(bytes(32 << 20)))
    read: list[int] = []
    limited = reading._read_limited

    def count(stream: Any, *arguments: Any) -> bytearray:
        class Counted:
            def read(self, size: int) -> bytes:
                chunk: bytes = stream.read(size)
                read.append(len(chunk))
                return chunk

        return limited(cast(Any, Counted()), *arguments)

    monkeypatch.setattr(reading, "_read_limited", count)
    with pytest.raises(hlo.HloError, match=r"exceeds the limit of 2\.0 MiB"):
        hlo.load(path, max_bytes=2 << 20)
    assert sum(read) <= 3 << 20


@pytest.mark.parametrize("name, pack", PACKED[1:])
def test_an_archive_that_no_compiler_writes_is_unpacked_up_to_a_part_of_the_limit(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond 1/16 of the limit, the stored size bounds what is unpacked, hence memory and time."""
    monkeypatch.setattr(reading, "MAX_BYTES", 16 << 20)
    comment = b"// a comment of the module\n"
    path = tmp_path / name
    path.write_bytes(pack(comment * (32 << 20 >> 4)))
    tracemalloc.start()
    with pytest.raises(
        hlo.HloError, match=r"more than 1\.0 MiB, and to more than 200 times"
    ) as caught:
        hlo.load(path, max_bytes=16 << 20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "--max-input-size" in caught.value.help
    assert "the limit of 16.0 MiB, of which 1/16" in caught.value.help
    assert peak < 20 << 20  # with the 8 MiB of the window of xz
    module = comment * 1000 + UTF8  # a small one may have any ratio
    path.write_bytes(pack(module))
    assert path.stat().st_size * 40 < len(module)
    assert hlo.load(path) == hlo.parse(TEXT)
    text = b"".join([b"// %x\n" % (k * 2654435761 % 2**64) for k in range(200_000)])
    path.write_bytes(pack(text + UTF8))  # beyond 1/16, with the ratio of a module
    assert len(text) > 1 << 20
    assert hlo.load(path) == hlo.parse(TEXT)


def test_standard_input_has_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(UTF8)))
    with pytest.raises(hlo.HloError, match="exceeds the limit of 5 bytes"):
        hlo.load("-", max_bytes=5)


def test_a_file_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.hlo"
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)  # sparse
    monkeypatch.setattr(reading, "_read_limited", None)
    with pytest.raises(hlo.HloError, match=r"exceeds the limit of 1\.0 GiB"):
        hlo.load(path)


def bind_socket(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)


@pytest.mark.parametrize(
    "make, message",
    [
        (os.mkfifo, "a FIFO that no process writes to"),
        (os.mkdir, "a directory, expected a regular file"),
        (bind_socket, "a socket, expected a regular file"),
        (lambda path: os.symlink("/dev/zero", path), "a device, expected a regular file"),
        (lambda path: os.symlink("/dev/null", path), "a device, expected a regular file"),
    ],
)
def test_a_special_file_is_an_error(
    make: Callable[[str], None], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make("m.hlo")
    with pytest.raises(OSError, match=message):
        hlo.load("m.hlo")


def test_a_fifo_is_read_to_its_end(tmp_path: Path) -> None:
    """As from the process substitution ``<(zcat m.hlo.gz)``."""
    path = tmp_path / "m.hlo"
    os.mkfifo(path)
    with subprocess.Popen(["/bin/sh", "-c", f"cat > '{path}'"], stdin=subprocess.PIPE) as writer:
        assert writer.stdin is not None
        reader = os.open(path, os.O_RDONLY)  # returns once the writer has opened the FIFO
        writer.stdin.write(UTF8)
        writer.stdin.close()
        assert hlo.load(path) == hlo.parse(TEXT)
        os.close(reader)


@pytest.mark.parametrize("name, pack", PACKED)
def test_a_byte_order_mark_is_skipped(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / name
    path.write_bytes(pack(b"\xef\xbb\xbf" + UTF8))
    assert hlo.load(path) == hlo.parse(TEXT)
    path.write_bytes(pack(b"\xef\xbb\xbfENTRY e { q }"))
    with pytest.raises(hlo.HloError) as caught:
        hlo.load(path)
    assert (caught.value.span.line, caught.value.span.column) == (1, 11)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-16-le", "utf-32"])
def test_another_encoding_is_named(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "m.hlo"
    path.write_bytes(("\ufeff" * ("-" in encoding[4:]) + TEXT).encode(encoding))
    with pytest.raises(hlo.HloError, match="not text") as caught:
        hlo.load(path)
    assert caught.value.help == f"the file is {encoding[:6].upper()}: convert it to UTF-8"
