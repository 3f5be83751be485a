"""HLO modules of JAX functions, through the extra ``[xla]``."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, overload

from hlo.arguments import check_argument
from hlo.formats.files import load
from hlo.formats.parser import parse
from hlo.formats.proto import module_text
from hlo.modules.module import Module
from indexing.frontends.compilation import TIMEOUT, compile_for
from indexing.frontends.lowering import LoweredFunction, load_jax, lower
from indexing.frontends.naming import named_module
from indexing.frontends.request import CompilationRequest
from indexing.frontends.targets import Target


@overload
def from_jax(
    function: Callable[..., Any],
    /,
    *args: Any,
    stage: Literal["passes", "kernels"],
    target: str | None = None,
    timeout: float = TIMEOUT,
    cache: bool = True,
    **kwargs: Any,
) -> Path: ...


@overload
def from_jax(
    function: Any,
    /,
    *args: Any,
    stage: str | None = None,
    target: str | None = None,
    timeout: float = TIMEOUT,
    cache: bool = True,
    **kwargs: Any,
) -> Module: ...


def from_jax(
    function: Any,
    /,
    *args: Any,
    stage: str | None = None,
    target: str | None = None,
    timeout: float = TIMEOUT,
    cache: bool = True,
    **kwargs: Any,
) -> Module | Path:
    """Return the HLO module of a JAX function; its parameters are the leaves of the arguments.

    Parameters have the names of the arguments, with the keys of pytrees: ``params['wq'][0]`` is
    ``params.wq.0``.  Characters that HLO does not permit become ``_``; names are made unique by a
    suffix such as ``.1``.  Unused arguments are parameters, too.

    Args:
        function: a function that JAX can trace, or the result of ``jax.jit``.  If a jitted function
            does not use an argument, its donations and shardings are ignored.  Also what JAX makes
            of a function and its arguments, then without `args`: a ``Traced``, ``Lowered``,
            ``Compiled``, ``jax.export.Exported`` or ``ClosedJaxpr``.
        args, kwargs: arrays, numbers, ``jax.ShapeDtypeStruct`` and pytrees of them; also the static
            arguments of a jitted function.  Only their types and shardings matter: nothing is
            executed.  A mesh may be abstract: the devices are those of the target, in order.
        stage: ``lowered``, as JAX passes it to XLA, the default without a target; ``optimized``, as
            XLA compiles it, the default for a target and for a compiled function; the name of a
            pass, after its last run that changed the module; ``passes`` or ``kernels``, the folder
            of what XLA dumps after each pass, or of the kernels that it emits.
        target: what to compile for, without the device: ``tpu:v5e:2x2`` (a generation and a
            topology), ``gpu:H100`` or ``gpu:H100:8`` (a model of `indexing.devices.gpus.GPUS`, and
            a number of devices), ``cpu`` or ``cpu:8``; None for JAX's default device, in this
            process, and for ``cpu`` where XLA dumps.  Kernels of a GPU are not tuned: that needs
            the device.
        timeout: limit on the seconds of a compilation for a target.
        cache: keep the answer for a target among the user's caches.  Without it, a folder that is
            the answer is a temporary one, which the caller removes.
    Returns:
        The module with all constants and metadata: ``instruction.source`` is a line of the program;
        a folder for the stages ``passes`` and ``kernels``.
    Raises:
        ImportError: jax, or the compiler for the target, is not installed.
        TypeError: `function` is not callable.
        ValueError: the stage or the target is unknown.
        CompilationError: XLA does not compile the module for the target in time.
    Source: JAX, "Ahead-of-time lowering and compilation"; ``docs/from_jax.md`` has examples.

    >>> import jax.numpy as jnp
    >>> module = from_jax(lambda x: x.T * 2, jnp.ones((2, 3)))
    >>> module.entry.root.shape.dims, [each.name for each in module.entry.parameters]
    ((3, 2), ['x'])
    """
    for name, value in (("stage", stage), ("target", target), ("timeout", timeout)):
        check_argument(from_jax, name, value)  # a decorator would be in the stack that JAX records
    check_argument(from_jax, "cache", cache)
    jax = load_jax()
    is_compiled = isinstance(function, jax.stages.Compiled)
    if stage is None:
        stage = "lowered" if target is None and not is_compiled else "optimized"
    if is_compiled:
        return _of_compiled(function, stage, target)
    if target is None and stage not in ("lowered", "optimized"):
        target = "cpu"
    chosen = None if target is None else Target.parse(target)
    lowering = lower(function, args, kwargs, None if chosen is None else chosen.platform)
    if stage == "lowered":
        return lowering.module()
    if chosen is None:
        return lowering.named(_optimized_text(lowering))
    return _compile_for(chosen, lowering, stage, timeout, cache)


def _compile_for(
    target: Target, lowering: LoweredFunction, stage: str, timeout: float, cache: bool
) -> Module | Path:
    """Return the module or the folder of a stage of the compilation for a target."""
    request = CompilationRequest("", "", replace(lowering, lowered=None), str(target), stage)
    answer = compile_for(request, timeout=timeout, uses_cache=cache)
    place = answer.of_stage(stage)
    if place == answer.dump:
        return place
    if place == answer.path:
        module = parse(place.read_text(encoding="utf-8"), lowering.label)
    else:
        module = load(place)
    if not cache:
        shutil.rmtree(answer.folder)
    return module


def _of_compiled(compiled: Any, stage: str, target: str | None) -> Module:
    """Return the module of a ``jax.stages.Compiled``."""
    if stage != "optimized" or target is not None:
        raise ValueError(
            f"from_jax: a compiled function has only the module of stage 'optimized', for its "
            f"device: got stage {stage!r}, target {target!r}"
        )
    (module,) = compiled.runtime_executable().hlo_modules()
    label = f"<jax {module.name.removeprefix('jit_')}>"
    return named_module(module_text(module), (), label)


def _optimized_text(lowering: LoweredFunction) -> str:
    """Compile for JAX's default device."""
    if lowering.lowered is None:
        raise ValueError("from_jax: to compile an exported function, pass a target")
    (module,) = lowering.lowered.compile().runtime_executable().hlo_modules()
    return module_text(module)
