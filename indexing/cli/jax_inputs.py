"""Inputs of commands that are functions of JAX: ``jax:FILE.py:FUNCTION``, lowered or compiled.

The function is run by JAX in a process of its own; a command reads the file with the module, or the
folder of dumps.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from hlo.formats.dump_names import STAGES as DUMP_STAGES
from indexing.cli.paths import InputPath
from indexing.cli.reporter import Reporter

if TYPE_CHECKING:
    from indexing.frontends.compilation import Compiled

PREFIX: Final = "jax:"
EXAMPLE: Final = "jax:layers.py:attention"
FORM: Final = "jax:FILE.py:FUNCTION or jax:MODULE:FUNCTION"

STAGE_OF_DUMP: Final[Mapping[str, str]] = dict(
    zip(DUMP_STAGES, ("lowered", "passes", "optimized"), strict=True)
)
"""The stage of a function for that of XLA's dumps of it."""

_KEY: Final = "jax"  # of the options in the context of a command


def is_function(name: str) -> bool:
    """Return True if an input is a function of JAX."""
    return name.startswith(PREFIX)


@dataclass(frozen=True, slots=True)
class FunctionInput:
    """A function as an input names it.

    Attributes:
        function: ``jax:PLACE:FUNCTION``.
        stage: the stage; "" for that of the command.
        target: the target; "" for that of the command.

    >>> FunctionInput.parse("jax:m.py:f@optimized@tpu:v5e:2x2")
    FunctionInput(function='jax:m.py:f', stage='optimized', target='tpu:v5e:2x2')
    """

    function: str
    stage: str = ""
    target: str = ""

    @classmethod
    def parse(cls, text: str) -> FunctionInput:
        """Return the parts of an input: ``@`` separates a stage and a target from the function."""
        function, *rest = text.split("@")
        stage = target = ""
        for each in rest:
            if each.partition(":")[0] in ("tpu", "gpu", "cpu"):
                target = each
            else:
                stage = each
        return cls(function, stage, target)


def function_options(command: click.Command) -> list[click.Parameter]:
    """Return the options for functions of JAX; none for a command without inputs."""
    if not _input_names(command):
        return []
    own = {name for parameter in command.params for name in parameter.opts}
    options: list[click.Parameter] = [
        click.Option(
            ["--shapes", "function_shapes"],
            metavar="SHAPES",
            expose_value=False,
            callback=_keep,
            help=f"The arguments of a function {PREFIX}...: shapes such as 'bf16[8,128],s32[]', or "
            "a list of JSON with pytrees of shapes",
        ),
        click.Option(
            ["--target", "function_target"],
            metavar="TARGET",
            expose_value=False,
            callback=_keep,
            help=f"What to compile a function {PREFIX}... for, without the device: tpu:v5e:2x2, "
            "gpu:H100, gpu:H100:8 or cpu",
        ),
        click.Option(
            ["--stage", "function_stage"],
            metavar="STAGE",
            expose_value=False,
            callback=_keep,
            help=f"The module of a function {PREFIX}...: lowered, optimized, or after a pass; by "
            "default optimized for a target, else lowered",
        ),
        click.Option(
            ["--no-cache"],
            is_flag=True,
            expose_value=False,
            callback=_keep,
            help=f"Lower and compile a function {PREFIX}... again",
        ),
    ]
    return [option for option in options if own.isdisjoint(option.opts)]


def _keep(context: click.Context, parameter: click.Parameter, value: object) -> None:
    assert parameter.name is not None
    context.meta.setdefault(_KEY, {})[parameter.name] = value


def _input_names(command: click.Command) -> dict[str, InputPath]:
    """Return the arguments of a command that are inputs, with their types."""
    return {
        parameter.name: parameter.type
        for parameter in command.params
        if isinstance(parameter, click.Argument)
        and isinstance(parameter.type, InputPath)
        and parameter.name is not None
    }


def with_functions(command: click.Command) -> Callable[..., Any] | None:
    """Return the callback of a command, with files in place of functions of JAX."""
    callback, names = command.callback, _input_names(command)
    if callback is None or not names:
        return callback

    def resolved(**arguments: Any) -> Any:
        context = click.get_current_context()
        _check_options(context, [arguments[name] for name in names])
        for name, kind in names.items():
            value = arguments[name]
            if isinstance(value, tuple):
                arguments[name] = tuple(_resolved(context, each, kind) for each in value)
            else:
                arguments[name] = _resolved(context, value, kind)
        return callback(**arguments)

    return resolved


def _check_options(context: click.Context, inputs: Sequence[str | Sequence[str]]) -> None:
    """Refuse options for functions of JAX where no input is one."""
    every = [name for each in inputs for name in ([each] if isinstance(each, str) else each)]
    given = [name for name, value in context.meta.get(_KEY, {}).items() if value]
    if given and not any(map(is_function, every)):
        option = "--" + given[0].removeprefix("function_").replace("_", "-")
        raise click.UsageError(f"{option} is for inputs that are functions of JAX: {FORM}")


def _resolved(context: click.Context, name: str, kind: InputPath) -> str:
    """Return the file or folder of an input."""
    if not is_function(name) or not kind.stage:
        return name
    stage = _stage(context, name, kind)
    answer = compiled(context, name, stage)
    if stage in ("lowered", "optimized"):
        return str(answer.path)
    if stage == "passes":
        return str(answer.dump)
    try:
        return str(answer.after_pass(stage))
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _stage(context: click.Context, name: str, kind: InputPath) -> str:
    """Return the stage of an input of a command.

    Raises:
        click.UsageError: the command does not read what the stage is.
    """
    given: Mapping[str, Any] = context.meta.get(_KEY, {})
    source = FunctionInput.parse(name)
    if kind.stage == "passes":
        if source.stage not in ("", "passes"):
            raise click.UsageError(f"{name!r}: this command reads the dumps of all passes")
        return "passes"
    asked: str = given.get("function_stage") or context.params.get("stage") or "all"
    if asked == "all":
        asked = "optimized" if source.target or given.get("function_target") else "lowered"
    stage = source.stage or STAGE_OF_DUMP.get(asked, asked)
    reads_folders = "stage" in context.params  # those of dumps
    if stage == "kernels" or (stage == "passes" and not reads_folders):
        raise click.UsageError(
            f"the stage {stage!r} is a folder, and this command reads a module: "
            f"hlo-indexing dump {source.function} --stage {stage} -o FOLDER writes it"
        )
    return stage


def compiled(context: click.Context, name: str, stage: str) -> Compiled:
    """Return what JAX and XLA make of the function that an input names; report errors.

    Args:
        name: the input.
        stage: the stage, if the input has none.
    Raises:
        click.UsageError: the input, its shapes or its target are not understood.
        click.exceptions.Exit: an error was reported.
    """
    from indexing.frontends.compilation import STAGES, CompilationError, compile_for
    from indexing.frontends.request import CompilationRequest

    given: Mapping[str, Any] = context.meta.get(_KEY, {})
    source = FunctionInput.parse(name)
    stage, target = source.stage or stage, source.target or given.get("function_target") or ""
    shapes = given.get("function_shapes") or ""
    _check_question(source, shapes, target)
    if not target and stage != "lowered":
        target = "cpu"
    kind = stage if stage in (*STAGES, "all") else "passes"
    request = CompilationRequest(source.function, shapes, None, target, kind)
    reporter = reporter_of(context)
    try:
        answer = compile_for(request, uses_cache=not given.get("no_cache"))
    except (CompilationError, ImportError) as error:
        _report(reporter, name, str(error), has_shapes=bool(shapes))
        raise click.exceptions.Exit(1) from None
    if given.get("no_cache"):
        context.call_on_close(partial(shutil.rmtree, answer.folder, ignore_errors=True))
    if answer.note:
        reporter.note(f"note: {name}: {answer.note}")
    return answer


def _check_question(source: FunctionInput, shapes: str, target: str) -> None:
    """Raise `click.UsageError` if a function, its shapes or its target is not understood."""
    from indexing.frontends.named_functions import shape_trees
    from indexing.frontends.targets import Target

    if source.function.count(":") < 2:
        raise click.UsageError(
            f"{source.function!r} names no function: write {FORM}, such as {EXAMPLE}"
        )
    try:
        shape_trees(shapes)
        if target:
            Target.parse(target)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _report(reporter: Reporter, name: str, message: str, has_shapes: bool) -> None:
    first, *rest = message.splitlines()
    if not has_shapes and "required" in first:
        rest.append("= help: give the arguments with --shapes 'f32[8,64],...'")
    reporter.error(f"error[jax]: {name}: {first}", *[f"  {line}" for line in rest])


def reporter_of(context: click.Context) -> Reporter:
    """Return the reporter of a command."""
    reporter = context.obj
    assert isinstance(reporter, Reporter)
    return reporter
