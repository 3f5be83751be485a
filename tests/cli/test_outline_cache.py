"""The cache of outlines: equal answers with and without it, and files that cannot be used."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import pytest

from indexing.frontends import outlines, user_cache
from indexing.frontends.outlines import OutlineCache
from tests.cli.running import Run, runner

EXAMPLES: Final = Path(__file__).parent.parent.parent / "examples"
MODULE: Final = """HloModule m
ENTRY e {
  p = f32[7,3]{1,0} parameter(0)
  ROOT t = f32[3,7]{1,0} transpose(p), dimensions={1,0}
}
"""
QUESTION: Final = "maps m.hlo -i t"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cache, for texts of any size; the current one has ``m.hlo``."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(outlines, "MIN_CHARACTERS", 0)
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text(MODULE)
    return user_cache.cache_folder("outlines")


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys)


def entries_in(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were parsed without an outline."""
    kept: list[str] = []
    keep = OutlineCache.keep

    def count(self: OutlineCache, text: str, outline: Any) -> None:
        kept.append(text)
        keep(self, text, outline)

    monkeypatch.setattr(OutlineCache, "keep", count)
    return kept


@pytest.mark.parametrize(
    "line",
    [
        *("ls FILE", "ls FILE -i '*fusion*'", "ls FILE -i none", "maps FILE --all"),
        *("maps FILE --all --jobs 2", "maps FILE --to parameters", "maps FILE --opcode fusion"),
        *("maps FILE --reads '/./' --limit 3 --format json", "summary FILE", "bytes FILE"),
        *("memory FILE", "access FILE", "source FILE", "check FILE", "tile FILE --sizes 1"),
        *("report FILE -o -", "diff FILE FILE", "shard FILE --rule", "validate FILE --no-xla"),
        *("run FILE --random", "triage FILE"),
    ],
)
def test_answers_do_not_depend_on_the_cache(
    run: Run, folder: Path, scans: list[str], line: str
) -> None:
    for name in ("layernorm.opt.hlo", "rnn.pre.hlo"):
        asked = line.replace("FILE", str(EXAMPLES / name))
        without = run(f"{asked} --no-cache")
        assert entries_in(folder) == []
        first, second = run(asked), run(asked)
        assert first == without
        assert second == without
        for file in entries_in(folder):
            file.unlink()


@pytest.mark.parametrize("line", [QUESTION, "ls m.hlo", "maps m.hlo --all", "report m.hlo -o -"])
def test_a_module_is_scanned_once(run: Run, folder: Path, scans: list[str], line: str) -> None:
    for _ in range(3):
        assert run(line)[0] == 0
    assert scans == [MODULE]
    assert len(entries_in(folder)) == 1


def test_a_changed_file_has_another_answer(run: Run) -> None:
    before = run(QUESTION)
    status = Path("m.hlo").stat()
    Path("m.hlo").write_text(MODULE.replace("{1,0}\n}", "{0,1}\n}").replace("f32[3,7]", "f32[7,3]"))
    os.utime("m.hlo", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert Path("m.hlo").stat().st_size == status.st_size
    assert run(QUESTION)[1] == before[1].replace("f32[3,7]", "f32[7,3]").replace(
        "(d1, d0), domain: d0 in [0, 2], d1 in [0, 6]",
        "(d0, d1), domain: d0 in [0, 6], d1 in [0, 2]",
    )


def test_the_name_in_errors_is_that_of_the_file(run: Run) -> None:
    Path("m.hlo").write_text(MODULE.replace("dimensions={1,0}", "dimensions={1,1}"))
    Path("copy.hlo").write_text(Path("m.hlo").read_text())
    for file in ("m.hlo", "copy.hlo", "m.hlo"):
        status, _, err = run(f"maps {file} -i t")
        assert status == 1
        assert f" --> {file}:4:" in err


def test_errors_elsewhere_are_reported_each_time(run: Run, scans: list[str]) -> None:
    other = "HloModule m\nc { a = f32[2] parameter(0) ROOT n = f32[3] negate(a) }\n"
    Path("m.hlo").write_text(other + MODULE.partition("\n")[2])
    line = "check m.hlo"
    without = run(f"{line} --no-cache")
    assert without[0] == 1
    assert [run(line), run(line)] == [without, without]
    assert len(scans) == 1


def test_invalid_text_is_not_stored(run: Run, folder: Path) -> None:
    Path("m.hlo").write_text(MODULE.replace("transpose(p)", "transpose(q)"))
    assert run(QUESTION) == run(QUESTION)
    assert entries_in(folder) == []


def damage(data: bytes, kind: str) -> bytes:
    line, _, text = data.partition(b"\n")
    match kind:
        case "empty":
            return b""
        case "truncated":
            return data[:-9]
        case "other bytes":
            return b"\x80\x04\x95pickle\xff"
        case "other text":
            return line + b"\n" + text.replace(b"transpose", b"bitcast\\n1")
        case "other parser":
            return b"0" * len(line) + b"\n" + text
    raise AssertionError(kind)


@pytest.mark.parametrize(
    "kind", ["empty", "truncated", "other bytes", "other text", "other parser"]
)
def test_a_damaged_file_is_replaced(run: Run, folder: Path, kind: str) -> None:
    answer = run(QUESTION)
    (file,) = entries_in(folder)
    data = file.read_bytes()
    file.write_bytes(damage(data, kind))
    assert run(QUESTION) == answer
    assert [(each, each.read_bytes()) for each in entries_in(folder)] == [(file, data)]


def test_a_changed_parser_reads_the_text_again(
    run: Run, folder: Path, scans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(QUESTION)
    monkeypatch.setattr(outlines, "_parser_digest", lambda: b"another")
    run(QUESTION)
    assert len(scans) == 2
    assert len(entries_in(folder)) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no owners of this kind")
def test_a_file_of_another_user_is_not_read(
    run: Run, scans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(QUESTION)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    run(QUESTION)
    assert len(scans) == 2


def no_space(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("function", ["replace", "fdopen", "mkdir"])
def test_a_full_disk_changes_no_answer(
    run: Run, folder: Path, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = run(f"{QUESTION} --no-cache")
    monkeypatch.setattr(os, function, no_space)
    assert run(QUESTION) == answer
    assert entries_in(folder) == []


@pytest.mark.parametrize("place", ["/dev/null/cache", "m.hlo"])
def test_a_folder_that_cannot_be_made_changes_no_answer(
    run: Run, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = run(f"{QUESTION} --no-cache")
    monkeypatch.setenv("XDG_CACHE_HOME", os.path.abspath(place))
    assert run(QUESTION) == answer


def read_only(*_: object, **__: object) -> None:
    raise OSError(errno.EROFS, "Read-only file system")


def test_a_read_only_folder_is_read(
    run: Run, folder: Path, scans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = run(QUESTION)
    monkeypatch.setattr(os, "utime", read_only)
    monkeypatch.setattr("tempfile.mkstemp", read_only)
    assert run(QUESTION) == answer
    assert len(scans) == 1
    Path("m.hlo").write_text(MODULE.replace("7", "5"))
    assert run(QUESTION)[0] == 0
    assert len(entries_in(folder)) == 1


def test_the_folder_is_private(run: Run, folder: Path) -> None:
    run(QUESTION)
    assert folder.stat().st_mode & 0o077 == 0


def write(place: str, byte: int) -> None:
    for _ in range(50):
        user_cache.write_entry(Path(place), bytes([byte]) * 100_000, 1 << 20)


def test_processes_that_write_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    place = tmp_path / "cache" / "file"
    write(str(place), 3)
    processes = [
        get_context("spawn").Process(target=write, args=(str(place), byte)) for byte in (1, 2)
    ]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes):
        data = user_cache.read_entry(place)
        assert data is not None
        assert len(data) == 100_000
        assert len(set(data)) == 1
    assert [process.exitcode for process in processes] == [0, 0]
    assert list(place.parent.iterdir()) == [place]


def test_the_oldest_entries_are_removed(tmp_path: Path) -> None:
    for age, name in enumerate(["new", "folder", "used", "old", "oldest"]):
        entry = tmp_path / name
        if name == "folder":
            entry.mkdir()
            (entry / "file").write_bytes(bytes(100))
        else:
            entry.write_bytes(bytes(100))
        os.utime(entry, (1000 - age, 1000 - age))
    assert user_cache.read_entry(tmp_path / "used") == bytes(100)
    user_cache.remove_oldest(tmp_path, 350)
    assert {each.name for each in tmp_path.iterdir()} == {"used", "new", "folder"}
    user_cache.remove_oldest(tmp_path, 200)
    assert {each.name for each in tmp_path.iterdir()} == {"used", "new"}


def test_an_entry_that_another_process_removes_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(bytes(100))
    listed: Callable[[Path], Any] = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda path: iter([*listed(path), path / "gone"]))
    user_cache.remove_oldest(tmp_path, 100)
    monkeypatch.undo()
    assert len(list(tmp_path.iterdir())) == 1


def test_the_place_follows_the_environment(tmp_path: Path) -> None:
    code = "from indexing.frontends.user_cache import cache_folder as f; print(f('outlines'))"
    for variables, place in [
        ({"XDG_CACHE_HOME": str(tmp_path / "a")}, tmp_path / "a"),
        ({"HOME": str(tmp_path), "XDG_CACHE_HOME": ""}, tmp_path / ".cache"),
    ]:
        if sys.platform != "linux":
            pytest.skip("other systems have other places: platformdirs knows them")
        environment = {**os.environ, **variables}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True
        )
        assert done.stdout.strip() == str(place / "hlo-indexing" / "outlines")
