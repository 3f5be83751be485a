"""Folders of modules: the files that are modules, their order, and the kinds of the others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hlo.formats.dump_names import DumpName
from indexing.frontends.dump_folders import module_files

TEXT = "HloModule m\nENTRY e { ROOT p = f32[3] parameter(0) }\n"
DUMP = "module_0012.jit_f"
MODULES = {
    f"{DUMP}.before_optimizations.txt": "before_optimizations",
    f"{DUMP}.0000.simplification.after_pipeline-start.before_algsimp.txt": "passes",
    f"{DUMP}.0011.a.b.after_all-reduce.txt": "passes",
    f"{DUMP}.cpu_after_optimizations.txt": "after_optimizations",
    "1700000000000001.module_0007.pjit__f.7.sm_9.0_gpu_after_optimizations.txt": (
        "after_optimizations"
    ),
}
OTHERS = {
    f"{DUMP}.cpu_after_optimizations-buffer-assignment.txt": "BufferAssignment:\n",
    f"{DUMP}.cpu_after_optimizations-live-range.txt": "HloLiveRange (max 9):\n    a_.1{}:0-9\n",
    f"{DUMP}.cpu_after_optimizations-memory-usage-report.txt": "Total bytes used: 3\n",
    f"{DUMP}.debug_options": "xla_dump_to: x\n",
    f"{DUMP}.f_kernel.ir-no-opt.ll": "; ModuleID = 'm'\n",
    f"{DUMP}.obj-file.f.o": "\x7fELF",
    f"{DUMP}.fusion.mlir": "func.func @main() { llvm.return }\n",
    "README": "the module is HloModule m\n",
}


@pytest.mark.parametrize("name, stage", MODULES.items())
def test_the_stage_of_a_dump_is_in_its_name(name: str, stage: str) -> None:
    for each in (name, name.removesuffix(".txt") + ".hlo.pb"):
        dump = DumpName.of(each)
        assert dump is not None
        assert dump.stage == stage
        assert dump.module in ("module_0012.jit_f", "module_0007.pjit__f")


@pytest.mark.parametrize("name", [*OTHERS, "m.txt", "before_optimizations.txt"])
def test_other_names_are_no_dumps_of_modules(name: str) -> None:
    assert DumpName.of(name) is None


def fill(folder: Path) -> Path:
    for name in MODULES:
        (folder / name).write_text(TEXT)
    for name, text in OTHERS.items():
        (folder / name).write_text(text)
    return folder


def test_reports_and_code_of_a_dump_are_skipped_and_counted(tmp_path: Path) -> None:
    listed = module_files(str(fill(tmp_path)))
    assert sorted(map(os.path.basename, listed.files)) == sorted(MODULES)
    assert listed.stages == {"passes": 2, "before_optimizations": 1, "after_optimizations": 2}
    assert listed.skipped.total() == len(OTHERS)
    assert (listed.skipped[".txt without a module"], listed.skipped["without a suffix"]) == (3, 1)


@pytest.mark.parametrize("stage", ["before_optimizations", "passes", "after_optimizations"])
def test_a_stage_selects_dumps(stage: str, tmp_path: Path) -> None:
    (fill(tmp_path) / "other.hlo").write_text(TEXT)
    listed = module_files(str(tmp_path), stage)  # type: ignore[arg-type]
    names = {os.path.basename(file) for file in listed.files}
    assert names == {name for name, each in MODULES.items() if each == stage}
    assert len(listed.unselected) == len(MODULES) + 1 - len(names)


def test_the_order_is_natural_and_subfolders_are_included(tmp_path: Path) -> None:
    names = [
        "a2/m.hlo",
        "a10/m1.txt",
        "a10/m02.mlir",
        "m1.hlo",
        "m9.hlo.gz",
        "m10.txt.xz",
        "m11.pb",
    ]
    for name in reversed(names):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(TEXT + "stablehlo.add")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "m.hlo").touch()
    (tmp_path / ".m.hlo").touch()
    listed = module_files(str(tmp_path))
    assert [os.path.relpath(file, tmp_path) for file in listed.files] == names
    assert not listed.skipped


# fmt: off
TEXTS = [
    # the beginning of a .txt file                        it is a module
    ("HloModule m\n",                                     True),
    ("\n// a comment\n\n  HloModule m, is_scheduled\n",   True),
    ("ENTRY %e (p: f32[3]) -> f32[3] {\n",                True),
    ("e {\n  p = f32[3] parameter(0)\n",                  True),
    ("%e (p: f32[3]) -> f32[3] {\n",                      True),
    ("the HloModule of a test\n",                         False),
    ("    args_0_.1{}:0-9\n",                             False),
    ("{\"a\": 1}\n",                                      False),
    ("",                                                  False),
]
# fmt: on


@pytest.mark.parametrize("text, is_module", TEXTS)
def test_a_text_is_recognised_by_its_beginning(text: str, is_module: bool, tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text(text)
    assert bool(module_files(str(tmp_path)).files) == is_module


def test_a_protobuf_of_the_same_module_is_skipped(tmp_path: Path) -> None:
    for name in (f"{DUMP}.before_optimizations.hlo.pb", f"{DUMP}.before_optimizations.txt", "m.pb"):
        (tmp_path / name).write_text(TEXT)
    listed = module_files(str(tmp_path))
    assert [os.path.basename(file) for file in listed.files] == [
        "m.pb",
        f"{DUMP}.before_optimizations.txt",
    ]
    assert listed.skipped == {".pb with the same module as .txt": 1}


def test_links_are_followed_once_and_cycles_end(tmp_path: Path) -> None:
    inside = tmp_path / "corpus" / "inside"
    inside.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "m.hlo").write_text(TEXT)
    (inside / "up").symlink_to(tmp_path / "corpus")
    (inside / "out").symlink_to(tmp_path / "elsewhere")
    (inside / "again").symlink_to(tmp_path / "elsewhere")
    (inside / "linked.hlo").symlink_to(tmp_path / "elsewhere" / "m.hlo")
    (inside / "nowhere").symlink_to("missing")
    listed = module_files(str(tmp_path / "corpus"))
    names = [os.path.relpath(file, inside) for file in listed.files]
    assert names == ["again/m.hlo", "linked.hlo"]
    assert (listed.skipped, listed.faults) == ({"broken links or special files": 1}, ())


# fmt: off
UNREAD = [
    # name               why a module is not read
    ("broken.hlo",       "No such file or directory"),
    ("loop.hlo.gz",      "Too many levels of symbolic links"),
    ("pipe.txt",         "a FIFO, expected a regular file"),
    (f"{DUMP}.before_optimizations.txt", "a FIFO, expected a regular file"),
    ("device.mlir",      "a device, expected a regular file"),
]
# fmt: on


def test_modules_that_are_no_regular_files_are_faults_and_never_opened(tmp_path: Path) -> None:
    """A FIFO with a silent writer would be read forever."""
    for name, reason in UNREAD:
        if "FIFO" in reason:
            os.mkfifo(tmp_path / name)
    (tmp_path / "broken.hlo").symlink_to("missing")
    (tmp_path / "loop.hlo.gz").symlink_to("loop.hlo.gz")
    (tmp_path / "device.mlir").symlink_to("/dev/zero")
    writers = [os.open(path, os.O_RDWR) for path in tmp_path.iterdir() if path.is_fifo()]
    listed = module_files(str(tmp_path))
    faults = {os.path.basename(each.filename): each.strerror for each in listed.faults}
    assert (listed.files, faults, bool(listed.skipped)) == ((), dict(UNREAD), False)
    assert len(module_files(str(tmp_path), patterns=["*.gz"]).faults) == 1
    for writer in writers:
        os.close(writer)


def test_patterns_match_names_or_paths(tmp_path: Path) -> None:
    for name in ("a/m.hlo", "b/m.hlo", "b/n.hlo"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(TEXT)

    def select(*patterns: str) -> list[str]:
        files = module_files(str(tmp_path), patterns=patterns).files
        return [os.path.relpath(file, tmp_path) for file in files]

    assert select("m*") == ["a/m.hlo", "b/m.hlo"]
    assert select("b/*") == ["b/m.hlo", "b/n.hlo"]
    assert select("a/*", "n.hlo") == ["a/m.hlo", "b/n.hlo"]


def test_a_folder_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="missing"):
        module_files(str(tmp_path / "missing"))
