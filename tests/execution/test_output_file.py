"""``run --output``: links stay, only regular files are replaced, and failures leave no trace."""

from __future__ import annotations

import io
import os
import signal
import socket
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from indexing import cli
from indexing.execution import archive
from indexing.execution.output_file import replace_file

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "indexing.cli")
NEGATE = "ENTRY e { c = s32[3] constant({1,2,3})  ROOT n = s32[3] negate(c) }"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the working directory; the module is beside it."""
    (tmp_path / "m.hlo").write_text(NEGATE)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path / "work"


def run(output: str) -> int:
    return cli.run(["run", "../m.hlo", "--output", output])


def is_written(path: str | Path) -> bool:
    return bool(np.array_equal(np.load(path)["out0"], [-1, -2, -3]))


def test_a_link_stays_and_the_file_that_it_points_to_is_replaced(folder: Path) -> None:
    target = folder / "far" / "out.npz"
    target.parent.mkdir()
    target.write_text("old")
    (folder / "middle").symlink_to(target)
    (folder / "link").symlink_to("middle")
    assert run("link") == 0
    assert (folder / "link").is_symlink()
    assert (folder / "middle").is_symlink()
    assert is_written(target)
    assert [path.name for path in target.parent.iterdir()] == ["out.npz"]


def test_a_dangling_link_stays_and_its_file_is_created(folder: Path) -> None:
    (folder / "link").symlink_to("new.npz")
    assert run("link") == 0
    assert (folder / "link").is_symlink()
    assert is_written("new.npz")


def make_socket(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)


SPECIAL: dict[str, tuple[Callable[[str], object], str]] = {
    "fifo": (os.mkfifo, "a FIFO"),
    "folder": (os.mkdir, "a directory"),
    "socket": (make_socket, "a socket"),
    "link-to-device": (lambda path: os.symlink(os.devnull, path), "a device"),
    "loop": (lambda path: os.symlink(path, path), "Too many levels of symbolic links"),
    "folder-less/out.npz": (lambda path: None, "does not exist"),
    "new/": (lambda path: None, "a directory"),
}


def states(folder: Path) -> dict[str, tuple[int, ...]]:
    """The attributes of each file that a write would change; reading a link may change others."""
    links = ((path.name, path.lstat()) for path in folder.iterdir())
    return {n: (s.st_ino, s.st_mode, s.st_size, s.st_mtime_ns) for n, s in links}


@pytest.mark.parametrize("name", SPECIAL)
def test_only_regular_files_are_replaced_and_nothing_is_computed_before(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make, kind = SPECIAL[name]
    make(name)
    before = states(folder)
    monkeypatch.setattr("indexing.execution.run", None)  # would fail
    assert run(name) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error[io]: {name}: ")
    assert kind in error
    assert states(folder) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make devices")
def test_root_does_not_replace_a_device(folder: Path) -> None:
    try:
        os.mknod("null", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("the container forbids devices")
    assert run("null") == 1
    assert stat.S_ISCHR((folder / "null").lstat().st_mode)


def test_a_read_only_file_is_not_replaced(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "out.npz").write_text("old")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    assert run("out.npz") == 1
    assert capsys.readouterr().err == "error[io]: out.npz: the file is read-only\n"
    assert (folder / "out.npz").read_text() == "old"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o666])
def test_the_permissions_of_an_old_file_are_kept(mode: int, folder: Path) -> None:
    old = folder / "out.npz"
    old.write_text("old")
    old.chmod(mode)
    if os.geteuid() == 0:
        os.chown(old, 1234, 2345)
    owner = old.stat().st_uid, old.stat().st_gid
    assert run("out.npz") == 0
    assert stat.S_IMODE(old.stat().st_mode) == mode
    assert (old.stat().st_uid, old.stat().st_gid) == owner
    assert is_written(old)


def test_a_private_file_is_private_while_it_is_written(folder: Path) -> None:
    (folder / "out").touch(0o600)
    with replace_file("out"):
        (temporary,) = folder.glob(".hlo*")
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600


def test_a_new_file_has_the_permissions_of_the_umask(folder: Path) -> None:
    before = os.umask(0o027)
    try:
        assert run("out.npz") == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "out.npz").stat().st_mode) == 0o640


def test_a_name_of_maximal_length_can_be_written() -> None:
    name = "n" * 251 + ".npz"
    assert run(name) == 0
    assert is_written(name)


@pytest.mark.parametrize("option", ["--output", "--inputs"])
def test_an_empty_path_is_a_usage_error(
    option: str, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert cli.run(["run", "../m.hlo", option, ""]) == 2
    name = {"--output": "`--output` / `-o`", "--inputs": "`--inputs`"}[option]
    assert f"invalid value for {name}: expected the path of a file" in capsys.readouterr().err
    assert not list(folder.iterdir())


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1"])
def test_standard_output_gets_the_arrays_and_standard_error_the_summary(name: str) -> None:
    done = subprocess.run([*COMMAND, "run", "../m.hlo", "--output", name], capture_output=True)
    assert done.returncode == 0
    assert np.load(io.BytesIO(done.stdout))["out0"].tolist() == [-1, -2, -3]
    assert done.stderr == f"../m.hlo: 1 array in {name}\n".encode()


def test_standard_output_may_be_a_file_that_is_appended_to(folder: Path) -> None:
    log = folder / "log"
    log.write_text("head")
    with log.open("ab") as file:
        subprocess.run([*COMMAND, "run", "../m.hlo", "--output", "-"], stdout=file, check=True)
    assert log.read_bytes().startswith(b"headPK")
    with zipfile.ZipFile(log) as archive_:
        assert archive_.namelist() == ["out0.npy"]
        assert archive_.testzip() is None


def test_a_terminal_does_not_get_the_arrays(capsys: pytest.CaptureFixture[str]) -> None:
    parent, terminal = os.openpty()
    done = subprocess.run(
        [*COMMAND, "run", "../m.hlo", "--output", "-"], stdout=terminal, stderr=subprocess.PIPE
    )
    os.close(terminal)
    os.close(parent)
    assert done.returncode == 1
    assert b"error[io]: -: standard output is a terminal" in done.stderr


def test_a_failed_write_leaves_only_the_old_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = folder / "out.npz"
    target.write_text("old")

    def fail(*_: object, **__: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="no room"):
        archive.write(str(target), {"out0": np.ones(1)})
    assert target.read_text() == "old"
    assert list(folder.iterdir()) == [target]


WAITS = """\
import signal, numpy
from indexing import cli
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
def savez(file, **_):
    file.write(b"part")
    file.flush()
    print("writing", flush=True)
    signal.pause()
numpy.savez = savez
cli.main(["run", "../m.hlo", "--output", "out.npz"])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_writing_leaves_only_the_old_file(
    number: signal.Signals, folder: Path
) -> None:
    (folder / "out.npz").write_text("old")
    with subprocess.Popen(
        [sys.executable, "-c", WAITS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        assert len(list(folder.iterdir())) == 2
        process.send_signal(number)
        _, errors = process.communicate()
    assert process.returncode == 128 + number
    assert errors == ("interrupted\n" if number == signal.SIGINT else "")
    assert [path.name for path in folder.iterdir()] == ["out.npz"]
    assert (folder / "out.npz").read_text() == "old"
