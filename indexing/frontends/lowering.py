"""StableHLO of what JAX can trace, lower or export, for any platform and without its devices."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from io import BytesIO
from typing import Any

from hlo.formats.stablehlo import stablehlo_text, with_devices
from hlo.modules.module import Module
from indexing.frontends.naming import named_module


@dataclass(frozen=True, slots=True)
class LoweredFunction:
    """A module as JAX passes it to XLA.

    Attributes:
        name: the name of the function.
        bytecode: the module of StableHLO, as bytecode of MLIR with locations.
        paths: the arguments as JAX writes them, such as ``params['wq'][0]``; empty if the module
            alone knows them.
        is_flat: the module names the arguments ``args[0]``, ``args[1]``, ... in place of `paths`.
        devices: the numbers of replicas and of partitions.
        lowered: the ``jax.stages.Lowered``; None if it is not in this process.
    """

    name: str
    bytecode: bytes
    paths: tuple[str, ...] = ()
    is_flat: bool = False
    devices: tuple[int, int] = (1, 1)
    lowered: Any = None

    @property
    def label(self) -> str:
        """The name of the module where others have a file."""
        return f"<jax {self.name}>"

    def module(self) -> Module:
        """Return the module of HLO."""
        return self.named(with_devices(stablehlo_text(self.bytecode, self.label), *self.devices))

    def named(self, text: str) -> Module:
        """Return the module in a text, before or after optimizations, with names of parameters."""
        return named_module(text, self.paths, self.label, self.is_flat)


def _check_arguments(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Refuse arguments that a function does not take.

    Raises:
        TypeError: an argument is missing, or the function has no such parameter.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a built-in function may have none
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        hint = "pass its arguments, or their shapes: jax.ShapeDtypeStruct((8, 128), 'float32')"
        raise TypeError(f"from_jax: {error}; {hint}") from None


def lower(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], platform: str | None
) -> LoweredFunction:
    """Lower a function, or take what JAX has traced, lowered or exported.

    Args:
        function: a function, jitted or not; a ``jax.stages.Traced`` or ``Lowered``, a
            ``jax.export.Exported`` or a ``ClosedJaxpr``, which have their arguments.
        args, kwargs: the arguments of a function.
        platform: the platform; None for that of JAX's default device.
    Raises:
        ImportError: jax is not installed.
        TypeError: `function` is none of these, or has its arguments already.
        ValueError: the module was lowered for another platform.
    """
    jax = load_jax()
    _hide_this_file()
    exported = import_module("jax.export").Exported
    closed = import_module("jax.extend.core").ClosedJaxpr
    if isinstance(function, exported | closed | jax.stages.Traced | jax.stages.Lowered):
        if args or kwargs:
            raise TypeError(
                f"a {type(function).__name__} has its arguments already: pass no others"
            )
    elif not callable(function):
        raise TypeError(
            f"from_jax: `function` must be a function or what JAX made of one, not {function!r}"
        )
    else:
        _check_arguments(function, args, kwargs)
    if isinstance(function, exported):
        return _of_exported(function, platform)
    if isinstance(function, jax.stages.Lowered):
        module = function.compiler_ir("stablehlo")
        name = module.operation.attributes["sym_name"].value.removeprefix("jit_")
        return LoweredFunction(name, _bytecode(module), (), False, _devices(module), function)
    if isinstance(function, closed):
        flat = import_module("jax.extend.core").jaxpr_as_fun(function)
        traced = jax.jit(flat, keep_unused=True).trace(*function.in_avals)
        return _of_traced(jax, traced, platform, function.jaxpr.debug_info.arg_names)
    if not isinstance(function, jax.stages.Traced):
        jitted = function if hasattr(function, "trace") else jax.jit(function, keep_unused=True)
        function = jitted.trace(*args, **kwargs)
    return _of_traced(jax, function, platform, None)


def _of_exported(exported: Any, platform: str | None) -> LoweredFunction:
    if platform is not None and platform not in exported.platforms:
        known = ", ".join(exported.platforms)
        raise ValueError(f"the function was exported for {known}, not for {platform}")
    context = import_module("jax.interpreters.mlir").make_ir_context()
    read = import_module("jaxlib._jax").mlir.deserialize_portable_artifact  # a versioned dialect
    module = read(bytes(exported.mlir_module_serialized), context)
    return LoweredFunction(exported.fun_name, _bytecode(module), (), False, _devices(module))


def _of_traced(
    jax: Any, traced: Any, platform: str | None, names: Sequence[str] | None
) -> LoweredFunction:
    """Lower a traced function; `names` are those of its arguments, if it does not have them."""
    paths = tuple(names or traced.jaxpr.jaxpr.debug_info.arg_names or ())
    platforms = None if platform is None else (platform,)
    try:
        lowered = traced.lower(lowering_platforms=platforms)
    except ValueError:  # the mesh is abstract: the platform does not follow from it
        platforms = (platform or jax.default_backend(),)
        lowered = traced.lower(lowering_platforms=platforms)
    module = lowered.compiler_ir("stablehlo")
    is_short = len(main_function(module).arguments) < len(paths)
    if is_short:
        lowered = _all_arguments(jax, traced, platforms)
        module = lowered.compiler_ir("stablehlo")
    is_flat = is_short or names is not None
    name, devices = traced.fun_name, _devices(module)
    return LoweredFunction(name, _bytecode(module), paths, is_flat, devices, lowered)


def load_jax(function: str = "from_jax") -> Any:
    """Return the package jax.

    Args:
        function: the function that needs it.
    Raises:
        ImportError: jax is not installed; the message says what to do.
    """
    try:
        return import_module("jax")
    except ImportError:
        repair = "pip install 'hlo-indexing[xla]'"
        message = f"{function} requires jax, which is not installed: {repair}"
        if function == "from_jax":
            message += (
                ". Without jax here, save jax.jit(f).lower(...).as_text(dialect='hlo') to a file "
                "where jax is installed, and read the file with hlo.load"
            )
        raise ImportError(message, name="jax") from None


@cache
def _hide_this_file() -> None:
    """Leave these files out of the stack frames that JAX records: they are those of the caller."""
    exclude: Callable[[str], None] = import_module("jax.extend.source_info_util").register_exclusion
    exclude(__file__)
    exclude(__file__.replace("lowering.py", "jax.py"))


def main_function(module: Any) -> Any:
    """Return the function ``main`` of a module of StableHLO."""
    names = (each.attributes["sym_name"].value for each in module.body.operations)
    return next(f for f, name in zip(module.body.operations, names, strict=True) if name == "main")


def _devices(module: Any) -> tuple[int, int]:
    """Return the numbers of replicas and partitions of a module of StableHLO."""
    attributes = module.operation.attributes
    names = ("mhlo.num_replicas", "mhlo.num_partitions")
    replicas, partitions = (int(attributes[n].value) if n in attributes else 1 for n in names)
    return replicas, partitions


def _bytecode(module: Any) -> bytes:
    stream = BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def _all_arguments(jax: Any, traced: Any, platforms: Any) -> Any:
    """Lower a traced function with all of its arguments, used or not."""
    flat = import_module("jax.extend.core").jaxpr_as_fun(traced.jaxpr)

    def function(*args: Any) -> Any:
        return flat(*args)

    function.__name__ = traced.fun_name
    jitted = jax.jit(function, keep_unused=True)
    return jitted.trace(*traced.jaxpr.in_avals).lower(lowering_platforms=platforms)
