"""The HLO modules in a folder of dumps, and the files in it that are no modules.

A folder is a corpus of files ``.hlo``, ``.mlir`` and ``.pb``, or dumps of XLA
(`hlo.formats.dump_names`), whose modules lie between reports, LLVM IR and object files.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from hlo.formats.dump_names import DumpName, Stage, is_of_dump
from hlo.formats.folders import fault_of, files_below
from hlo.formats.reading import PACKED, unpacked_name

_HEAD_BYTES: Final = 1 << 16  # of a text that is searched for a module
_MODULE: Final = re.compile(
    rb"^\s*(?:HloModule\b|ENTRY\b|%?[\w.-]+(?:[ \t]+\([^\n]*->[^\n]*)?[ \t]+\{[ \t]*$)",
    re.MULTILINE,
)
_STABLEHLO: Final = re.compile(rb"\b(?:stablehlo|mhlo|chlo|vhlo)\.")


@dataclass(frozen=True, slots=True)
class ModuleFiles:
    """The files of a folder that a question is asked about.

    Attributes:
        folder: the folder, as it was named.
        files: the paths of the selected modules, in natural order: ``m2.hlo`` before ``m10.hlo``.
        stages: the number of dumps of each stage among `files`.
        unselected: the paths of the modules that the stage or the patterns exclude.
        skipped: the number of other files, by kind.
        faults: why selected modules and subfolders are not read: each error has its `filename`.
    """

    folder: str
    files: tuple[str, ...]
    stages: Counter[str]
    unselected: tuple[str, ...]
    skipped: Counter[str]
    faults: tuple[OSError, ...]


def module_files(
    folder: str, stage: Stage | None = None, patterns: Sequence[str] = ()
) -> ModuleFiles:
    """List the modules in a folder and its subfolders.

    `hlo.formats.folders.files_below` describes hidden files and links.

    Args:
        folder: the path of a folder.
        stage: only XLA's dumps of this stage; None for all files.
        patterns: globs, one of which a file matches: by its name, or, if the glob has a ``/``, by
            its path in the folder.
    Raises:
        OSError: the folder cannot be read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("m10.hlo", "m2.hlo", "m2.ll"):
    ...         open(os.path.join(folder, name), "w").close()
    ...     listed = module_files(folder)
    ...     print([os.path.basename(file) for file in listed.files], listed.skipped)
    ['m2.hlo', 'm10.hlo'] Counter({'.ll': 1})
    """
    faults: list[OSError] = []
    paths = list(files_below(folder, faults))
    names = set(paths)
    files: list[str] = []
    unselected: list[str] = []
    stages, skipped = Counter[str](), Counter[str]()
    for path in paths:
        fault = fault_of(path)
        kind = _other_kind(path, names, is_regular=fault is None)
        dump = DumpName.of(unpacked_name(os.path.basename(path)))
        if kind is not None:
            skipped[kind] += 1
        elif (stage is not None and (dump is None or dump.stage != stage)) or not _matches(
            os.path.relpath(path, folder), patterns
        ):
            unselected.append(path)
        elif fault is not None:
            faults.append(fault)
        else:
            files.append(path)
            if dump is not None:
                stages[dump.stage] += 1
    return ModuleFiles(folder, tuple(files), stages, tuple(unselected), skipped, tuple(faults))


def _matches(path: str, patterns: Sequence[str]) -> bool:
    """Return True if a path in the folder matches one of the patterns, or there are none."""
    name = os.path.basename(path)
    places = [(path if "/" in pattern else name, pattern) for pattern in patterns]
    return not places or any(fnmatchcase(text, pattern) for text, pattern in places)


def _other_kind(path: str, paths: set[str], is_regular: bool) -> str | None:
    """Return the kind of a file that is no module, or None for a module, by its name if unread."""
    name = unpacked_name(os.path.basename(path))
    stem, suffix = os.path.splitext(name)
    if suffix == ".pb" and f"{path.removesuffix('.pb').removesuffix('.hlo')}.txt" in paths:
        return ".pb with the same module as .txt"
    if suffix == ".hlo" or DumpName.of(name) is not None:
        return None
    if suffix == ".pb":
        return ".pb without a module" if is_of_dump(name) and not stem.endswith(".hlo") else None
    if suffix in (".txt", ".mlir"):
        pattern = _MODULE if suffix == ".txt" else _STABLEHLO
        is_unread = not is_regular or path.endswith(PACKED)
        is_module = is_unread or pattern.search(_head(path))
        return None if is_module else f"{suffix} without a module"
    if not is_regular:
        return "broken links or special files"
    return suffix or "without a suffix"


def _head(path: str) -> bytes:
    """Return the first bytes of a file; if it cannot be read, those of a module."""
    try:
        with open(path, "rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:  # reported where the module is loaded
        return b"HloModule stablehlo."
