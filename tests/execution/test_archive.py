"""Archives that are corrupt, or whose headers claim more than they hold, are errors."""
# ruff: noqa: E501 - a row of a table is a line

from __future__ import annotations

import io
import os
import random
import struct
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import hlo
from indexing import cli
from indexing.execution import ExecutionError, archive

INVALID = r"not an \.npz file of arrays: "
PROGRAM = "ENTRY e { p = f32[5,7] parameter(0)  ROOT n = f32[5,7] negate(p) }"
ENTRY = hlo.parse(PROGRAM).entry
ARRAY = np.arange(35, dtype=np.float32).reshape(5, 7)


def npy(header: str, data: bytes = b"") -> bytes:
    """An .npy file with this header."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def describe(shape: str, element_type: str = "'<f4'") -> str:
    return f"{{'descr': {element_type}, 'fortran_order': False, 'shape': {shape}}}"


def zip_member(member: bytes, method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as file:
        file.writestr("in0.npy", member)
    return stream.getvalue()


def read(path: Path, content: bytes, max_bytes: int = 1 << 20) -> archive.RunInputs:
    path.write_bytes(content)
    return archive.read(str(path), ENTRY, 1, 0, max_bytes)


GOOD = npy(describe("(5, 7)"), ARRAY.tobytes())

# fmt: off
INCONSISTENT = [
    # header                                              message
    (describe("(1000000, 1000000)"),                     "claims 4000000000000 bytes, the file holds 140"),
    (describe("(5, 8)"),                                 "claims 160 bytes, the file holds 140"),
    (describe("(-5, -7)"),                               "claims 140 bytes, the file holds 140"),
    (describe("(5, 7)", "'<f8'"),                        "claims 280 bytes, the file holds 140"),
    (describe("(9223372036854775807, 9223372036854775807)", "'S0'"), "claims 0 bytes, the file holds 140"),
    (describe("(5, 7)", "'O'"),                          "in0 has dtype object, expected float32"),
    (describe("(5, 7)", "'no type'"),                    INVALID),
    (describe("(5, 7)", "((((" * 40),                    INVALID),
    (describe("((5, 7)"),                                INVALID),
    ("-" * 9000 + "1",                                    INVALID),
    ("(" * 9000,                                          INVALID),
    ("[]",                                                INVALID),
    ("",                                                  INVALID),
]
# fmt: on


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("header, message", INCONSISTENT, ids=lambda text: text[:40])
def test_a_header_that_contradicts_the_contents_is_an_error(
    header: str, message: str, method: int, tmp_path: Path
) -> None:
    content = zip_member(npy(header, ARRAY.tobytes()), method)
    tracemalloc.start()
    try:
        with pytest.raises(ExecutionError, match=message) as caught:
            read(tmp_path / "in.npz", content)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert len(caught.value.message) < 20_000


def test_a_single_array_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match=INVALID):
        read(tmp_path / "in.npz", npy(describe("(1000000000000,)")))


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    bomb = zip_member(npy(describe("(16777216,)", "'|u1'"), bytes(1 << 24)), zipfile.ZIP_DEFLATED)
    assert len(bomb) < 1 << 15
    tracemalloc.start()
    try:
        with pytest.raises(ExecutionError, match=r"exceed the limit of 1\.0 MiB") as caught:
            read(tmp_path / "in.npz", bomb)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert caught.value.code == "size"


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_member_that_claims_to_be_larger_than_it_is_is_an_error(
    method: int, tmp_path: Path
) -> None:
    """The size in the directory of the archive, and that in the header of the array, agree."""
    member = npy(describe("(1000, 1000)"), ARRAY.tobytes())
    content = zip_member(member, method)
    claimed = struct.pack("<L", len(member) - ARRAY.nbytes + 4_000_000)
    assert content.count(struct.pack("<L", len(member))) >= 2
    content = content.replace(struct.pack("<L", len(member)), claimed)
    with pytest.raises(ExecutionError, match=INVALID):
        read(tmp_path / "in.npz", content, 1 << 30)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_every_mutant_of_an_archive_is_read_or_is_an_error(method: int, tmp_path: Path) -> None:
    good, draw, errors = zip_member(GOOD, method), random.Random(14), 0
    assert np.array_equal(read(tmp_path / "in.npz", good).inputs[0], ARRAY)
    for _ in range(600):
        mutant = bytearray(good)
        for _ in range(draw.randint(1, 3)):
            mutant[draw.randrange(len(mutant))] = draw.randrange(256)
        del mutant[draw.choice([len(mutant), draw.randrange(len(mutant))]) :]
        try:
            read(tmp_path / "in.npz", bytes(mutant))
        except (ExecutionError, OSError):
            errors += 1
    assert errors > 300


def test_every_mutant_of_a_header_is_read_or_is_an_error(tmp_path: Path) -> None:
    draw, letters = random.Random(15), "(){}[],:'\"\\-0123456789<fiVO|L\n \x00é#"
    for _ in range(600):
        header = list(describe("(5, 7)"))
        for _ in range(draw.randint(1, 3)):
            header[draw.randrange(len(header))] = draw.choice(letters)
        content = zip_member(npy("".join(header), ARRAY.tobytes()))
        with suppress(ExecutionError):  # any other exception fails the test
            assert read(tmp_path / "in.npz", content).inputs[0].nbytes == ARRAY.nbytes


def test_a_special_file_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text(PROGRAM)
    os.mkfifo("fifo.npz")
    for path, kind in (("fifo.npz", "a FIFO"), ("/dev/zero", "a device"), (".", "a directory")):
        assert cli.run(["run", "m.hlo", "--inputs", path]) == 1
        assert capsys.readouterr().err == f"error[io]: {path}: {kind}, expected an .npz file\n"


def test_the_option_limits_the_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text(PROGRAM)
    np.savez("in.npz", in0=ARRAY)
    arguments = ["run", "m.hlo", "--inputs", "in.npz", "--max-input-size"]
    assert cli.run([*arguments, "1K"]) == 0
    assert cli.run([*arguments, "200"]) == 1
    assert "in.npz: the arrays exceed the limit of 200 bytes" in capsys.readouterr().err
