"""Pass dumps of XLA: the modules of a folder after each pass, in order.

``--xla_dump_to=FOLDER --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.*`` leaves a file after each
pass that changed the module (`hlo.formats.dump_names`).  ``--xla_dump_large_constants`` is needed
for arrays of more than ten numbers, which are elided otherwise.  Passes may run without a dump
before a file ``after_pipeline-start``: those from the pass that the previous file names as its
next.  Dumps may be compressed, or protocol buffers (``--xla_dump_hlo_as_proto``).

Source: XLA ``xla/service/dump.cc`` and ``xla/hlo/pass/hlo_pass_pipeline.cc``.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from hlo.formats.dump_names import DumpName
from hlo.formats.folders import files_below
from hlo.formats.reading import unpacked_name


@dataclass(frozen=True, slots=True)
class Dump:
    """A module as a pass left it.

    Attributes:
        path: the file.
        module: the module's number and name, ``module_0007.jit_f``.
        number: the position among the dumps of the module; -1 before the first pass.
        pipeline: the pipeline of the pass; "" before the first pass.
        pass_name: the pass; "" before the first one.
        following: the next pass of the pipeline; "" if the file does not name one.

    >>> name = "module_0007.jit_f.0012.simplification.after_algsimp.before_dce.txt"
    >>> dump = Dump.of(Path(name))
    >>> dump.module, dump.number, dump.pipeline, dump.pass_name
    ('module_0007.jit_f', 12, 'simplification', 'algsimp')
    >>> Dump.of(Path("module_0007.jit_f.cpu_after_optimizations.txt")) is None
    True
    """

    path: Path
    module: str
    number: int = -1
    pipeline: str = ""
    pass_name: str = ""
    following: str = ""

    @classmethod
    def of(cls, path: Path) -> Dump | None:
        """Return the dump in a file, or None for a compiled module or another file."""
        name = DumpName.of(unpacked_name(path.name))
        if name is None or name.stage == "after_optimizations":
            return None
        return cls(path, name.module, name.number, name.pipeline, name.pass_name, name.following)


@dataclass(frozen=True, slots=True)
class ModuleDumps:
    """The dumps of one module, in order of time.

    Attributes:
        name: the name of the module, with the subfolder of its dumps.
        dumps: the dumps.
        first: the position of the first dump that is compared with the dump before it.
    """

    name: str
    dumps: tuple[Dump, ...]
    first: int = 1

    @property
    def missing(self) -> tuple[tuple[int, int], ...]:
        """The first and the last number of each run of files that are missing."""
        return missing_between(self.dumps)

    def parts(self, count: int) -> Iterator[ModuleDumps]:
        """Yield the dumps with at most `count` shares of the pairs, for worker processes."""
        size = max(1, -(-(len(self.dumps) - 1) // count))
        for first in range(1, len(self.dumps), size):
            yield ModuleDumps(self.name, self.dumps[: first + size], first)

    @property
    def pairs(self) -> Iterator[tuple[Dump, Dump]]:
        """The neighbouring dumps."""
        return pairwise(self.dumps)


def missing_between(dumps: Sequence[Dump]) -> tuple[tuple[int, int], ...]:
    """Return the first and the last number of each run of files that are missing between dumps."""
    numbers = [dump.number for dump in dumps]
    return tuple([(a + 1, b - 1) for a, b in pairwise(numbers) if b > a + 1])


def numbers_text(first: int, last: int) -> str:
    """Return the numbers of a run of dumps as in their names.

    >>> numbers_text(3, 3), numbers_text(3, 12)
    ('0003', '0003 to 0012')
    """
    return f"{first:04} to {last:04}" if first < last else f"{first:04}"


def dump_files(
    directory: str | os.PathLike[str], faults: list[OSError] | None = None
) -> tuple[Path, ...]:
    """Return the modules, of any stage, among the dumps of a folder and its subfolders.

    Args:
        directory: the folder; `hlo.formats.folders.files_below` describes hidden files and links.
        faults: the error of each subfolder that cannot be read is appended to it.
    Raises:
        OSError: the folder cannot be read, or without `faults` a subfolder.
    """
    if not os.path.isdir(directory):
        raise NotADirectoryError(errno.ENOTDIR, "no such folder", os.fspath(directory))
    unread: list[OSError] = []
    paths = map(Path, files_below(os.fspath(directory), unread))
    named = tuple([path for path in paths if DumpName.of(unpacked_name(path.name)) is not None])
    if unread and faults is None:
        raise unread[0]
    if faults is not None:
        faults += unread
    return named


def modules_in(
    directory: str | os.PathLike[str], paths: Sequence[Path] | None = None
) -> tuple[ModuleDumps, ...]:
    """Return the modules of a folder and its subfolders, by name.

    Args:
        directory: the folder.
        paths: its files, if they are known, by `dump_files`.
    Raises:
        FileNotFoundError: the folder has no two dumps of one module.
        OSError: as `dump_files`.
    """
    folder = Path(directory)
    by_module: dict[tuple[Path, str], list[Dump]] = {}
    for path in _one_for_each_name(dump_files(folder) if paths is None else paths):
        dump = Dump.of(path)
        if dump is not None:
            by_module.setdefault((path.parent, dump.module), []).append(dump)
    modules = []
    for (parent, name), dumps in sorted(by_module.items()):
        if len(dumps) > 1:
            prefix = "" if parent == folder else f"{parent.relative_to(folder).as_posix()}/"
            ordered = sorted(dumps, key=lambda dump: (dump.number, dump.path.name))
            modules.append(ModuleDumps(f"{prefix}{name}", tuple(ordered)))
    if not modules:
        single = next((dumps[0].path.name for dumps in by_module.values()), None)
        fault = "no dumps of passes" if single is None else f"no dump to compare {single} with"
        repair = (
            "compile with XLA_FLAGS='--xla_dump_to=DUMPDIR --xla_dump_hlo_as_text "
            "--xla_dump_hlo_pass_re=.* --xla_dump_large_constants'"
        )
        raise FileNotFoundError(errno.ENOENT, f"{fault}; {repair}", str(folder))
    return tuple(modules)


def _one_for_each_name(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield each dump once: as text if it is a protocol buffer as well, and not compressed."""
    chosen: dict[Path, Path] = {}
    for path in sorted(paths, key=lambda path: (".hlo.pb" in path.name, len(path.name))):
        name = unpacked_name(path.name).removesuffix(".txt").removesuffix(".hlo.pb")
        chosen.setdefault(path.with_name(name), path)
    yield from chosen.values()
