"""The HLO modules in a folder of dumps, and the files in it that are no modules.

A folder is a corpus of files ``.hlo``, ``.mlir`` and ``.pb``, or dumps of XLA
(`hlo.formats.dump_names`), whose modules lie between reports, LLVM IR and object files.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from hlo.formats.dump_names import DumpName, Stage, is_of_dump

_HEAD_BYTES: Final = 1 << 16  # of a text that is searched for a module
_MODULE: Final = re.compile(
    rb"^\s*(?:HloModule\b|ENTRY\b|%?[\w.-]+(?:[ \t]+\([^\n]*->[^\n]*)?[ \t]+\{[ \t]*$)",
    re.MULTILINE,
)
_STABLEHLO: Final = re.compile(rb"\b(?:stablehlo|mhlo|chlo|vhlo)\.")
_PACKED: Final = (".gz", ".xz")


@dataclass(frozen=True, slots=True)
class ModuleFiles:
    """The files of a folder that a question is asked about.

    Attributes:
        folder: the folder, as it was named.
        files: the paths of modules, in natural order: ``m2.hlo`` before ``m10.hlo``.
        stages: the number of dumps of each stage among `files`.
        unselected: the number of modules that the stage or the patterns exclude.
        skipped: the number of other files, by kind.
    """

    folder: str
    files: tuple[str, ...]
    stages: Counter[str]
    unselected: int
    skipped: Counter[str]


def module_files(
    folder: str, stage: Stage | None = None, patterns: Sequence[str] = ()
) -> ModuleFiles:
    """List the modules in a folder and its subfolders.

    Hidden files and folders are left out.  Symbolic links are followed, each folder once.

    Args:
        folder: the path of a folder.
        stage: only XLA's dumps of this stage; None for all files.
        patterns: globs, one of which a file matches: by its name, or, if the glob has a ``/``, by
            its path in the folder.
    Raises:
        OSError: the folder, or one in it, cannot be read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("m10.hlo", "m2.hlo", "m2.ll"):
    ...         open(os.path.join(folder, name), "w").close()
    ...     listed = module_files(folder)
    ...     print([os.path.basename(file) for file in listed.files], listed.skipped)
    ['m2.hlo', 'm10.hlo'] Counter({'.ll': 1})
    """
    paths = sorted(_files_below(folder), key=_natural)
    names = set(paths)
    files: list[str] = []
    stages, skipped, unselected = Counter[str](), Counter[str](), 0
    for path in paths:
        kind = _other_kind(path, names)
        dump = DumpName.of(_unpacked(os.path.basename(path)))
        if kind is not None:
            skipped[kind] += 1
        elif (stage is not None and (dump is None or dump.stage != stage)) or not _matches(
            os.path.relpath(path, folder), patterns
        ):
            unselected += 1
        else:
            files.append(path)
            if dump is not None:
                stages[dump.stage] += 1
    return ModuleFiles(folder, tuple(files), stages, unselected, skipped)


def _files_below(folder: str) -> Iterator[str]:
    """Yield the paths of all files, and of each folder once, though links may form a cycle."""

    def fails(error: OSError) -> None:
        raise error

    visited = set()
    for parent, folders, names in os.walk(folder, onerror=fails, followlinks=True):
        status = os.stat(parent)
        if (status.st_dev, status.st_ino) in visited:
            folders.clear()
            continue
        visited.add((status.st_dev, status.st_ino))
        folders[:] = sorted((each for each in folders if not each.startswith(".")), key=_natural)
        yield from (os.path.join(parent, name) for name in names if not name.startswith("."))


def _natural(path: str) -> tuple[tuple[tuple[int, int, str], ...], ...]:
    """Return a key that orders numbers in names by value."""
    return tuple(
        tuple((0, int(word), word) if word.isdecimal() else (1, 0, word) for word in words)
        for words in (re.findall(r"\d+|\D+", part) for part in path.split(os.sep))
    )


def _matches(path: str, patterns: Sequence[str]) -> bool:
    """Return True if a path in the folder matches one of the patterns, or there are none."""
    name = os.path.basename(path)
    places = [(path if "/" in pattern else name, pattern) for pattern in patterns]
    return not places or any(fnmatchcase(text, pattern) for text, pattern in places)


def _unpacked(name: str) -> str:
    return name.removesuffix(".gz").removesuffix(".xz")


def _other_kind(path: str, paths: set[str]) -> str | None:
    """Return the kind of a file that is no module, or None for a module."""
    name = _unpacked(os.path.basename(path))
    stem, suffix = os.path.splitext(name)
    if not os.path.isfile(path):
        return "broken links or special files"
    if suffix == ".pb" and f"{path.removesuffix('.pb').removesuffix('.hlo')}.txt" in paths:
        return ".pb with the same module as .txt"
    if suffix == ".hlo" or DumpName.of(name) is not None:
        return None
    if suffix == ".pb":
        return ".pb without a module" if is_of_dump(name) and not stem.endswith(".hlo") else None
    if suffix in (".txt", ".mlir"):
        pattern = _MODULE if suffix == ".txt" else _STABLEHLO
        is_module = path.endswith(_PACKED) or pattern.search(_head(path))
        return None if is_module else f"{suffix} without a module"
    return suffix or "without a suffix"


def _head(path: str) -> bytes:
    """Return the first bytes of a file; if it cannot be read, those of a module."""
    try:
        with open(path, "rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:  # reported where the module is loaded
        return b"HloModule stablehlo."
