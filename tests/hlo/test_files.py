"""Files: plain, compressed, standard input, and those that are no text."""
# ruff: noqa: E501 - a row of a table is a line

import gzip
import io
import lzma
import sys
from pathlib import Path

import pytest

import hlo

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
    ],
)
def test_a_file_is_read_by_what_it_is_called(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    module = hlo.load(path)
    assert module == hlo.parse(TEXT)
    assert module.filename == str(path)
    assert hlo.load_all(str(path)) == [module]


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(UTF8)))
    assert hlo.load("-").filename == "<stdin>"


# fmt: off
NO_TEXT = [
    # name      bytes                              line column  message
    ("m.hlo",   b"\x0a\x12\x08\xffproto",          2, 3,        "the file is not text: byte 3 is no UTF-8"),
    ("m.hlo",   b"ENTRY e {\n\x00}",               2, 1,        "the file is not text: byte 10 is no UTF-8"),
    ("m.hlo",   "größe \x00".encode(),             1, 7,        "the file is not text: byte 8 is no UTF-8"),
    ("m.gz",    b"plain",                          1, 1,        "the compressed file is damaged: Not a gzipped file (b'pl')"),
    ("m.xz",    b"plain",                          1, 1,        "the compressed file is damaged: Input format not supported by decoder"),
    ("m.gz",    gzip.compress(UTF8, mtime=0)[:-9],          1, 1,        "the compressed file is damaged: Compressed file ended before the end-of-stream marker was reached"),
    ("m.xz",    lzma.compress(UTF8)[:-9],          1, 1,        "the compressed file is damaged: Compressed data ended before the end-of-stream marker was reached"),
    ("m.hlo",   b"",                               1, 1,        "expected HLO text, but there is none"),
]
# fmt: on


@pytest.mark.parametrize("name, data, line, column, message", NO_TEXT)
def test_a_file_that_is_no_text_is_refused(
    tmp_path: Path, name: str, data: bytes, line: int, column: int, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(hlo.HloError) as caught:
        hlo.load(path)
    assert caught.value.message == message
    assert caught.value.span.place() == f"{path}:{line}:{column}"
    assert str(caught.value)


def test_a_missing_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        hlo.load(tmp_path / "missing.hlo")
