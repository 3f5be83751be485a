"""HLO modules of JAX functions, through the extra ``[xla]``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Literal

from hlo.arguments import check_argument
from hlo.formats.parser import parse
from hlo.formats.proto import proto_text
from hlo.modules.module import Module
from indexing.frontends.naming import parameter_names, with_parameter_names


def from_jax(
    function: Callable[..., Any],
    /,
    *args: Any,
    stage: Literal["lowered", "optimized"] = "lowered",
    **kwargs: Any,
) -> Module:
    """Return the HLO module of a JAX function; its parameters are the leaves of the arguments.

    Parameters have the names of the arguments, with the keys of pytrees: ``params['wq'][0]`` is
    ``params.wq.0``.  Characters that HLO does not permit become ``_``; names are made unique by a
    suffix such as ``.1``.  Unused arguments are parameters, too.

    Args:
        function: a function that JAX can trace, or the result of ``jax.jit``.  If a jitted function
            does not use an argument, its donations and shardings are ignored.
        args, kwargs: arrays, numbers, ``jax.ShapeDtypeStruct`` and pytrees of them; also the static
            arguments of a jitted function.  Only their types matter: nothing is executed.
        stage: ``lowered``, as JAX passes it to XLA, or ``optimized``, compiled for JAX's default
            device.
    Returns:
        The module with all constants and metadata: ``instruction.source`` is a line of the program.
    Raises:
        ImportError: jax is not installed.
        TypeError: `function` is not callable.
        ValueError: `stage` is neither ``lowered`` nor ``optimized``.
    Source: JAX, "Ahead-of-time lowering and compilation"; ``docs/from_jax.md`` has examples.
    """
    for name, value in (("function", function), ("stage", stage)):
        check_argument(from_jax, name, value)  # a decorator would be in the stack that JAX records
    jax = _jax()
    _hide_this_file()
    jitted = function if hasattr(function, "trace") else jax.jit(function, keep_unused=True)
    traced = jitted.trace(*args, **kwargs)
    paths = list(traced.jaxpr.jaxpr.debug_info.arg_names)
    lowered = traced.lower()
    text = _stage_text(lowered, stage)
    module = parse(text, f"<jax {traced.fun_name}>")
    if len(module.entry.parameters) < len(paths):
        text = _stage_text(_all_arguments(jax, traced), stage)
        for number, path in enumerate(paths):
            text = text.replace(f'op_name="args[{number}]"', f'op_name="{_escape(path)}"')
        module = parse(text, f"<jax {traced.fun_name}>")
    return with_parameter_names(module, _names(module, paths))


def _jax() -> Any:
    try:
        return import_module("jax")
    except ImportError:
        message = (
            "from_jax requires jax, which is not installed: pip install 'hlo-indexing[xla]'. "
            "Without jax here, save jax.jit(f).lower(...).as_text(dialect='hlo') to a file where "
            "jax is installed, and read the file with hlo.load"
        )
        raise ImportError(message, name="jax") from None


@cache
def _hide_this_file() -> None:
    """Leave this file out of the stack frames that JAX records: they are those of the caller."""
    import_module("jax.extend.source_info_util").register_exclusion(__file__)


def _all_arguments(jax: Any, traced: Any) -> Any:
    """Lower a traced function with all of its arguments, used or not."""
    flat = import_module("jax.extend.core").jaxpr_as_fun(traced.jaxpr)

    def function(*args: Any) -> Any:
        return flat(*args)

    function.__name__ = traced.fun_name
    return jax.jit(function, keep_unused=True).lower(*traced.jaxpr.in_avals)


def _stage_text(lowered: Any, stage: str) -> str:
    """Return the HLO of a stage, with all elements of constants."""
    if stage == "lowered":
        module = lowered.compiler_ir("hlo")
    else:
        (module,) = lowered.compile().runtime_executable().hlo_modules()
    return proto_text(module.as_serialized_hlo_module_proto(), "<jax>")


def _names(module: Module, paths: Sequence[str]) -> list[str]:
    """Return the names of the entry's parameters; XLA's for those that are no arguments.

    Tokens and hoisted constants precede the arguments.
    """
    parameters = module.entry.parameters
    if len(parameters) < len(paths):  # one tuple of all arguments
        return [parameter.name for parameter in parameters]
    before = len(parameters) - len(paths)
    return [p.name for p in parameters[:before]] + parameter_names(paths)


def _escape(text: str) -> str:
    """Return the contents of a string of HLO."""
    return "".join(f"\\{c}" if c in "\"'\\" else c for c in text)
