"""The kernels in a folder of dumps, with the instruction that each computes.

``--xla_dump_to=FOLDER --xla_dump_hlo_as_text --xla_dump_emitter_re=.*`` leaves, beside each module,
the MLIR of its kernels: ``MODULE.KERNEL.mlir-passes.log`` with the text before each pass,
``MODULE.KERNEL-pre-optimization.mlir``, or ``MODULE.FUSION.before_validation.ttir.txt``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hlo.arguments import checked
from hlo.formats.dump_names import DumpName
from hlo.formats.files import load
from hlo.formats.folders import files_below
from hlo.formats.reading import MAX_BYTES, read_stored
from hlo.modules.module import Instruction, Module
from hlo.text.source import Source
from indexing.kernels.kernel import Kernel
from indexing.kernels.run import Launch
from indexing.kernels.sections import KernelStage, stages
from indexing.kernels.sharing import sharing_fusions

_KERNEL: Final = re.compile(
    r"(?P<module>module_\d+\..+?)\.(?:__compute_module_)?(?P<kernel>[^.].*?)(?:_kernel_module)?"
    r"(?P<kind>\.mlir-passes\.log|-pre-optimization\.mlir|\.before_validation\.ttir\.txt)"
)
_THUNK: Final = re.compile(
    r"^ *(?P<number>\d+): k\w+ .*?\] (?P<name>\S+) grid: \[(?P<grid>[\d, ]+)\]"
    r" threads: \[(?P<threads>[\d, ]+)\]\s+shared_memory: (?P<bytes>\d+) bytes",
    re.MULTILINE,
)
_THUNKS: Final = ".thunk_sequence.txt"
_ORDER: Final = (".mlir-passes.log", "-pre-optimization.mlir", ".before_validation.ttir.txt")


@dataclass(frozen=True, slots=True)
class _ModuleFiles:
    """The files of one module: its path, its text, its kernels by file, and the launches."""

    module: str
    text: str
    kernels: tuple[str, ...]
    thunks: str


@checked
def kernels_of(dump: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> tuple[Kernel, ...]:
    """Return the kernels in a folder of dumps and its subfolders, in order of the files.

    A kernel has the instruction of the module that it computes: the one of its name, or None if
    the folder has no such module or instruction.  Its text is read when it is first needed.

    Args:
        max_bytes: the limit on the size of a file.
    Raises:
        OSError: the folder cannot be read.
        HloError: a module of the folder is invalid, or a file exceeds the limit.

    >>> for kernel in kernels_of("examples/kernels/softmax"):
    ...     print(kernel.name, kernel.kind, kernel.grid, kernel.threads)
    input_reduce_fusion reduction (6, 1, 1) (256, 1, 1)
    input_reduce_fusion_1 reduction (6, 1, 1) (256, 1, 1)
    loop_divide_fusion loop (188, 1, 1) (128, 1, 1)
    """
    return tuple([k for _, own in module_kernels(dump, max_bytes=max_bytes) for k in own])


def module_kernels(
    dump: str | os.PathLike[str], only: str = "", *, max_bytes: int = MAX_BYTES
) -> Iterator[tuple[str, tuple[Kernel, ...]]]:
    """Yield the path of each module without what follows its name, with its kernels.

    Args:
        only: the path of the only module to read, such as ``dumps/module_0007.jit_f``; "" for all.
        max_bytes: the limit on the size of a file.
    Raises:
        OSError, HloError: as `kernels_of`.
    """
    for files in _modules(os.fspath(dump)):
        if only not in ("", files.module):
            continue
        module = load(files.text, max_bytes) if files.text else None
        fusions = _instructions(module)
        launches = thunk_launches(_read_dump(files.thunks, max_bytes)) if files.thunks else {}
        own = [_kernel(path, fusions, launches, max_bytes) for path in files.kernels]
        yield files.module, tuple(_with_thunks(own, module, files.thunks, max_bytes))


def _with_thunks(
    kernels: Sequence[Kernel], module: Module | None, thunks: str, max_bytes: int
) -> list[Kernel]:
    """Return the kernels of a module with the other fusions that run them."""
    owners = {kernel.name: kernel.fusion for kernel in kernels if kernel.fusion is not None}
    if module is None or not owners:
        return list(kernels)
    path = thunks.removesuffix(_THUNKS) + ".thunk_metadata.txt"
    metadata = _read_dump(path, max_bytes) if thunks and os.path.exists(path) else ""
    text = _read_dump(thunks, max_bytes) if thunks else ""
    numbered = {int(m["number"]): m["name"] for m in _THUNK.finditer(text)}
    sharing = sharing_fusions(module, owners, numbered, metadata)
    return [replace(kernel, shared_by=sharing.get(kernel.name, ())) for kernel in kernels]


def has_kernels(folder: str | os.PathLike[str]) -> bool:
    """Return True if a folder, or a folder in it, has a dump of a kernel."""
    return next(_modules(os.fspath(folder)), None) is not None


def kernels_beside(file: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> tuple[
    Kernel, ...
]:  # fmt: skip
    """Return the kernels that XLA dumped beside a compiled module; () without any.

    Raises:
        OSError, HloError: as `kernels_of`.
    """
    place, name = os.path.split(os.path.abspath(os.fspath(file)))
    dump = DumpName.of(name) if os.path.isfile(file) else None
    if dump is None or dump.stage != "after_optimizations":
        return ()
    only = os.path.join(place, dump.module)
    return tuple([k for _, own in module_kernels(place, only, max_bytes=max_bytes) for k in own])


def _modules(folder: str) -> Iterator[_ModuleFiles]:
    """Yield the modules that have kernels, one file a kernel."""
    faults: list[OSError] = []
    paths = list(files_below(folder, faults))
    if faults and not paths:
        raise faults[0]
    texts: dict[tuple[str, str], str] = {}
    thunks: dict[tuple[str, str], str] = {}
    for path in paths:
        place, name = os.path.split(path)
        dump = DumpName.of(name)
        if dump is not None and dump.stage == "after_optimizations" and name.endswith(".txt"):
            texts[place, dump.module] = path
        elif name.endswith(_THUNKS):
            thunks[place, name.removesuffix(_THUNKS)] = path
    by_module: dict[tuple[str, str], dict[str, str]] = {}
    for path in paths:
        place, name = os.path.split(path)
        matched = _KERNEL.fullmatch(name)
        if matched is None:
            continue
        module, kernel = _split(place, name, matched, texts)
        known = by_module.setdefault((place, module), {})
        if kernel not in known or _rank(path) < _rank(known[kernel]):
            known[kernel] = path
    for key, files in by_module.items():
        yield _ModuleFiles(
            os.path.join(*key), texts.get(key, ""), tuple(files.values()), thunks.get(key, "")
        )


def _split(
    place: str, name: str, matched: re.Match[str], texts: dict[tuple[str, str], str]
) -> tuple[str, str]:
    """Return the module and the kernel of a file; names of modules may have dots."""
    rest = name.removesuffix(matched["kind"])
    longest = max(
        [m for p, m in texts if p == place and rest.startswith(f"{m}.")], key=len, default=""
    )
    module = longest or matched["module"]
    return module, rest[len(module) + 1 :]


def _rank(path: str) -> int:
    return next(k for k, suffix in enumerate(_ORDER) if path.endswith(suffix))


def thunk_launches(text: str) -> dict[str, Launch]:
    """Return the launches of a thunk sequence by the kernel's name.

    >>> text = "001: kCustomKernel [source] dot_1 grid: [8, 1, 1] threads: [64, 1, 1] "
    >>> thunk_launches(text + " shared_memory: 768 bytes")["dot_1"].shared_bytes
    768
    """
    return {
        match["name"]: Launch(
            _sizes(match["grid"]), _sizes(match["threads"]), int(match["bytes"])
        )
        for match in _THUNK.finditer(text)
    }  # fmt: skip


def _sizes(text: str) -> tuple[int, ...]:
    return tuple([int(size) for size in text.split(",")])


def _read_dump(path: str, max_bytes: int) -> str:
    return read_stored(path, path, max_bytes).decode("utf-8", "replace")


def _kernel(
    path: str, fusions: dict[str, Instruction], launches: dict[str, Launch], max_bytes: int
) -> Kernel:
    source = Source(_read_dump(path, max_bytes), path)
    logged = tuple(stages(source))
    name = _entry_name(logged[0]) or os.path.basename(path)
    return Kernel(name, fusions.get(name), logged, launches.get(name), path)


_ENTRY: Final = re.compile(
    r"(?:xtile\.entry_func|func\.func) (?:private )?@(?P<name>\"[^\"]+\"|[\w$.-]+)"
)


def _entry_name(stage: KernelStage) -> str:
    """Return the name of the entry of a kernel, from its text; "" if it marks none."""
    for line in stage.text.splitlines():
        matched = _ENTRY.search(line)
        if matched is not None and ("xla.entry" in line or "xtile.entry_func" in line):
            return matched["name"].strip('"')
    return ""


def _instructions(module: Module | None) -> dict[str, Instruction]:
    """Return the first instruction of each name that a kernel may have."""
    table: dict[str, Instruction] = {}
    for computation in () if module is None else module.computations.values():
        for each in computation:
            table.setdefault(each.name, each)
            table.setdefault(re.sub(r"[.-]", "_", each.name), each)
    return table
