"""Modules that XLA compiles for a target, in a process of its own, and the cache of them.

XLA:TPU (package libtpu) and XLA:GPU (a plugin of jax) compile without their devices.

Source: JAX ``jax.experimental.topologies``; XLA ``xla/xla.proto``, ``DebugOptions``, for the flags.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.machinery import ModuleSpec
from math import prod
from pathlib import Path
from typing import Final

from hlo.arguments import checked
from hlo.formats.dump_names import DumpName
from hlo.text.names import did_you_mean, similar
from indexing.frontends.named_functions import digest_of
from indexing.frontends.request import CompilationRequest, CompilationResult
from indexing.frontends.targets import Target
from indexing.frontends.user_cache import cache_folder, remove_oldest
from indexing.frontends.worker import package_path, run_worker

DUMP: Final = "dump"
"""The subfolder of an answer with the dumps of XLA."""

TIMEOUT: Final = 600.0
"""The default limit on the seconds of one compilation."""

CACHE_BYTES: Final = 2 << 30
"""The answers that were used last stay in the cache, up to this size."""

STAGES: Final = ("lowered", "optimized", "passes", "kernels")
"""The stages of a compilation; another text names a pass."""

_DECIDES: Final = re.compile(r"(?:JAX(?!_PLATFORMS)|XLA|LIBTPU|TPU|PYTHONPATH)(?:_|$)")
"""Names of variables of the environment that are part of a question."""

_FORMAT: Final = 1  # of the cached answers
_DUMPED: Final = "--xla_dump_to={} --xla_dump_hlo_as_text --xla_dump_large_constants"
_FLAGS: Final = {
    "lowered": "",
    "optimized": "",
    "passes": f"{_DUMPED} --xla_dump_hlo_pass_re=.*",
    "kernels": f"{_DUMPED} --xla_dump_emitter_re=.*",
    "all": f"{_DUMPED} --xla_dump_hlo_pass_re=.* --xla_dump_emitter_re=.*",
}
_PACKAGES: Final = {
    "tpu": ("libtpu", "hlo-indexing[tpu]", "213 MB, Linux on x86-64"),
    "cuda": ("jax_plugins.xla_cuda12", "hlo-indexing[cuda]", "223 MB, Linux"),
    "rocm": ("jax_plugins.xla_rocm7", "jax-rocm7-plugin", "Linux on x86-64"),
}
_VERSIONS: Final = ("hlo-indexing", "jax", "jaxlib", "libtpu", "jax-cuda12-pjrt", "jax-rocm7-pjrt")


class CompilationError(RuntimeError):
    """XLA, JAX or the program failed; the message has their report.

    >>> CompilationError("the compilation was stopped after 600 s")
    CompilationError('the compilation was stopped after 600 s')
    """

    @checked
    def __init__(self, message: str) -> None:
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Compiled:
    """The answer to a request, in a folder of the cache or a temporary one.

    Attributes:
        folder: has the module, and the subfolder `DUMP` if XLA dumped anything.
        name: the name of the function.
        note: what a reader of the module must know; "" for nothing.
    """

    folder: Path
    name: str
    note: str = ""

    @property
    def path(self) -> Path:
        """The file of the module."""
        safe = "".join(c if c.isalnum() or c in "_-." else "_" for c in self.name)
        return self.folder / f"{safe or 'module'}.hlo"

    @property
    def dump(self) -> Path:
        """The folder of the dumps of XLA."""
        return self.folder / DUMP

    def of_stage(self, stage: str) -> Path:
        """Return the file or folder of a stage that was asked for.

        Raises:
            ValueError: the stage is the name of no pass that changed the module.
        """
        if stage in ("lowered", "optimized"):
            return self.path
        return self.dump if stage in STAGES else self._after_pass(stage)

    def _after_pass(self, name: str) -> Path:
        """Return the dump of the module after the last run of a pass that changed it.

        Raises:
            ValueError: no such pass changed the module; the message names those that did.
        """
        dumps: list[tuple[str, int, str, Path]] = []
        for path in self.dump.iterdir():
            dump = DumpName.of(path.name)
            if dump is not None and dump.stage == "passes":
                dumps.append((dump.module, dump.number, dump.pass_name, path))
        pattern = re.compile(rf"module_\d+\.jit_{re.escape(self.name)}(?:\.cl_\d+)?")
        own = [each for each in dumps if pattern.fullmatch(each[0])] or dumps
        chosen = [each for each in own if each[2] == name]
        if not chosen:
            known = {each[2] for each in own}
            question = did_you_mean(similar(name, [*STAGES, *known]))
            passes = ", ".join(sorted(known))
            raise ValueError(
                f"{name!r} is not a stage ({', '.join(STAGES)}), nor a pass that changed the "
                "module: " + (question or f"those are {passes}")
            )
        return max(chosen)[3]


def compile_for(
    request: CompilationRequest, *, timeout: float = TIMEOUT, uses_cache: bool = True
) -> Compiled:
    """Return what JAX and XLA make of a program.

    Args:
        request: the program; its stage is one of `STAGES`, the name of a pass, or ``all`` for the
            dumps of passes and kernels.
        timeout: limit on the seconds of the compilation.
        uses_cache: take an equal answer from the cache, and store a new one there; without it, the
            answer is in a temporary folder.
    Raises:
        ImportError: the compiler for the target is not installed.
        CompilationError: the program, JAX or XLA failed, or the time is over.
        OSError: the cache cannot be written.
    """
    target = Target.parse(request.target) if request.target else None
    if target == Target("cpu") and request.lowering is not None:
        target = replace(target, count=prod(request.lowering.devices))
        request = replace(request, target=str(target))
    if request.stage not in _FLAGS:  # the name of a pass
        request = replace(request, stage="passes")
    if target is not None and request.stage != "lowered":
        _check_installed(target)
    key = _key(request)
    place = cache_folder("jax") / key[:12]
    if uses_cache and (cached := _read_cache(place, key)) is not None:
        return cached
    if uses_cache:
        place.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="new-", dir=place.parent if uses_cache else None))
    try:
        compiled = _compile(request, target, folder, timeout, key)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if not uses_cache:
        return compiled
    shutil.rmtree(place, ignore_errors=True)
    os.replace(folder, place)
    remove_oldest(place.parent, CACHE_BYTES)
    return Compiled(place, compiled.name, compiled.note)


def _check_installed(target: Target) -> None:
    if target.platform == "cpu":
        return
    package, extra, size = _PACKAGES[target.platform]
    if _spec(package) is None:
        message = (
            f"compiling for {target} requires {package}, which is not installed: "
            f"pip install '{extra}' ({size}; Python 3.11 or later, jax 0.10 or later). "
            'stage="lowered" needs only jax'
        )
        raise ImportError(message, name=package)


def _spec(package: str) -> ModuleSpec | None:
    """Return where a package is, without loading it; None if it is not installed."""
    try:
        return importlib.util.find_spec(package)
    except ModuleNotFoundError:  # nor is the one around it
        return None


def _key(request: CompilationRequest) -> str:
    """Return a digest of what decides the answer, but for source files."""
    lowering = request.lowering
    parts = [
        str(_FORMAT),
        *_versions(),
        *(f"{name}={os.environ[name]}" for name in sorted(os.environ) if _DECIDES.match(name)),
        *(request.function and (os.getcwd(), request.function, request.shapes)),
        *((lowering.name, repr(lowering.paths)) if lowering else ()),
        request.target,
        request.stage,
        *(f"{place} {number} {layout}" for place, number, layout in request.layouts),
    ]
    digest = hashlib.sha256(json.dumps(parts).encode())
    if lowering is not None:
        digest.update(lowering.bytecode)
    return digest.hexdigest()


def _versions() -> Iterator[str]:
    yield sys.version
    for package in _VERSIONS:
        try:
            yield importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            yield ""


def _read_cache(place: Path, key: str) -> Compiled | None:
    """Return an answer of the cache, unless a source file has changed since."""
    try:
        entry = json.loads((place / "entry.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if entry["key"] != key or any(
        digest_of(file) != digest for file, digest in entry["sources"].items()
    ):
        return None
    os.utime(place)
    return Compiled(place, entry["name"], entry["note"])


def _compile(
    request: CompilationRequest, target: Target | None, folder: Path, timeout: float, key: str
) -> Compiled:
    flags, note = _FLAGS[request.stage].format(folder / DUMP), ""
    if target is not None and target.platform in ("cuda", "rocm"):
        flags += " --xla_gpu_autotune_level=0"  # it measures on the GPU
        flags += "".join(f" --xla_gpu_cuda_data_dir={each}" for each in _compiler_of_cuda())
    stage = "lowered" if request.stage == "lowered" else "optimized"
    request = replace(request, stage=stage)
    end = time.monotonic() + timeout
    try:
        result = _run(request, folder, flags, timeout)
    except CompilationError:
        if target is None or target.platform != "cuda" or stage == "lowered":
            raise
        # without measurements, XLA finds no tiles for some small products of Triton
        shutil.rmtree(folder / DUMP, ignore_errors=True)
        flags += " --xla_gpu_enable_triton_gemm=false"
        note = "compiled with --xla_gpu_enable_triton_gemm=false: without it, XLA failed"
        result = _run(request, folder, flags, end - time.monotonic())
    compiled = Compiled(folder, result.name, note)
    compiled.path.write_text(result.text, encoding="utf-8")
    entry = {"key": key, "name": result.name, "note": note, "sources": result.sources}
    (folder / "entry.json").write_text(json.dumps(entry), encoding="utf-8")
    return compiled


def _compiler_of_cuda() -> Sequence[str]:
    """Return the folder of the ptxas of the extra: XLA prefers another, which may be too new."""
    spec = _spec("nvidia.cuda_nvcc")
    return [] if spec is None else list(spec.submodule_search_locations or ())


def environment(flags: str) -> dict[str, str]:
    """Return the environment of a process that compiles, with further flags of XLA."""
    return {
        **os.environ,
        "PYTHONPATH": package_path(),
        "JAX_PLATFORMS": "cpu",
        "TPU_SKIP_MDS_QUERY": "1",  # of the metadata of a machine with TPUs
        "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "1"),
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip(),
    }


def _run(
    request: CompilationRequest, folder: Path, flags: str, timeout: float
) -> CompilationResult:
    """Answer a request in a process of its own."""
    request.save(folder)
    try:
        end = run_worker("indexing.frontends.xla_process", folder, environment(flags), timeout)
    except subprocess.TimeoutExpired:
        raise CompilationError(f"the compilation was stopped after {timeout:.0f} s") from None
    result = CompilationResult.take(folder)
    if result is None:
        raise CompilationError(f"the process that compiles ended {end}")
    if result.error:
        raise CompilationError(result.error)
    return result
