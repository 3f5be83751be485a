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
from indexing.cli.reporter import Reporter, reporter_of
from indexing.frontends.function_names import FORM, PREFIX, is_function, split_name

if TYPE_CHECKING:
    from indexing.frontends.compilation import Compiled
    from indexing.frontends.request import CompilationRequest

STAGE_OF_DUMP: Final[Mapping[str, str]] = dict(
    zip(DUMP_STAGES, ("lowered", "passes", "optimized"), strict=True)
)
"""The stage of a function for that of XLA's dumps of it."""

_FOLDERS: Final = ("passes", "kernels")  # stages that are folders
_KEY: Final = "jax"  # of the options in the context of a command
_REQUESTS: Final = "jax requests"  # by the file of the answer, there
_OPTION: Final = "function_"  # begins their names
_HELP: Final = {
    "shapes": f"The arguments of a function {PREFIX}...: shapes such as 'bf16[8,128],s32[]', or a "
    "list of JSON with pytrees of shapes",
    "target": f"What to compile a function {PREFIX}... for, without the device: tpu:v5e:2x2, "
    "gpu:H100, gpu:H100:8 or cpu",
    "stage": f"The module of a function {PREFIX}...: lowered, optimized, or after a pass; by "
    "default optimized for a target, else lowered",
    "no-cache": f"Scan files, and lower and compile functions {PREFIX}..., again",
}


@dataclass(frozen=True, slots=True)
class FunctionInput:
    """A function as an input names it.

    Attributes:
        text: the whole name.
        function: ``jax:PLACE:FUNCTION``.
        stage: the stage that the name has; "" for that of the command.
        target: the target that the name or the command has; "" for none.

    >>> source = FunctionInput.parse("jax:m.py:f@optimized", {"target": "tpu:v5e:2x2"})
    >>> source.function, source.stage, source.target
    ('jax:m.py:f', 'optimized', 'tpu:v5e:2x2')
    """

    text: str
    function: str
    stage: str
    target: str

    @classmethod
    def parse(cls, text: str, given: Mapping[str, Any]) -> FunctionInput:
        """Return the parts of a name: ``@`` separates a stage and a target from the function.

        Args:
            given: the options of the command.
        """
        function, *rest = text.split("@")
        stage, target = "", given.get("target") or ""
        for each in rest:
            if each.partition(":")[0] in ("tpu", "gpu", "cpu"):
                target = each
            else:
                stage = each
        return cls(text, function, stage, target)


def function_options(command: click.Command) -> list[click.Parameter]:
    """Return the options for functions of JAX; none for a command without inputs."""
    if not _input_names(command):
        return []
    own = {name for parameter in command.params for name in parameter.opts}
    options = [
        click.Option(
            [f"--{name}", _OPTION + name.replace("-", "_")],
            metavar=None if name == "no-cache" else name.upper(),
            is_flag=name == "no-cache",
            expose_value=False,
            callback=_keep,
            help=help_,
        )
        for name, help_ in _HELP.items()
    ]
    return [option for option in options if own.isdisjoint(option.opts)]


def _keep(context: click.Context, parameter: click.Parameter, value: object) -> None:
    assert parameter.name is not None
    context.meta.setdefault(_KEY, {})[parameter.name.removeprefix(_OPTION)] = value


def _given_options(context: click.Context) -> Mapping[str, Any]:
    """Return the options for functions, by their names without the dashes."""
    given: Mapping[str, Any] = context.meta.get(_KEY, {})
    return given


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

    def resolve(**arguments: Any) -> Any:
        context = click.get_current_context()
        reporter_of(context).uses_cache = not is_fresh(context)
        _check_options(context, [arguments[name] for name in names])
        for name, kind in names.items():
            value = arguments[name]
            if isinstance(value, tuple):
                arguments[name] = tuple(_resolve_input(context, each, kind) for each in value)
            else:
                arguments[name] = _resolve_input(context, value, kind)
        return callback(**arguments)

    return resolve


def _check_options(context: click.Context, inputs: Sequence[str | Sequence[str]]) -> None:
    """Refuse options for functions of JAX where no input is one."""
    every = [name for each in inputs for name in ([each] if isinstance(each, str) else each)]
    given = [
        name for name, value in _given_options(context).items() if value and name != "no_cache"
    ]
    if given and not any(map(is_function, every)):
        option = given[0].replace("_", "-")
        raise click.UsageError(f"--{option} is for inputs that are functions of JAX: {FORM}")


def _resolve_input(context: click.Context, name: str, kind: InputPath) -> str:
    """Return the file or folder of an input."""
    if not is_function(name) or not kind.stage:
        return name
    source = named_function(context, name)
    stage = _stage(context, source, kind)
    dumped = "all" if kind.stage == "passes" else stage  # kernels are the step after the last pass
    answer = compile_input(context, source, dumped)
    try:
        file = str(answer.of_stage(stage))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if stage == "optimized":
        context.meta.setdefault(_REQUESTS, {})[file] = _request(context, source, stage)
    return file


def compiled_files(context: click.Context) -> Mapping[str, CompilationRequest]:
    """Return the files of the functions that were compiled for the command, with their requests."""
    requests: Mapping[str, CompilationRequest] = context.meta.get(_REQUESTS, {})
    return requests


def is_fresh(context: click.Context) -> bool:
    """Return True if functions are to be compiled again."""
    return bool(_given_options(context).get("no_cache"))


def named_function(context: click.Context, name: str) -> FunctionInput:
    """Return the function that an input names, with the target of the command."""
    return FunctionInput.parse(name, _given_options(context))


def _stage(context: click.Context, source: FunctionInput, kind: InputPath) -> str:
    """Return the stage of an input of a command.

    Raises:
        click.UsageError: the command does not read what the stage is.
    """
    if kind.stage in _FOLDERS:
        if source.stage not in ("", kind.stage):
            reads = f"this command reads the dumps of all {kind.stage}"
            raise click.UsageError(f"{source.text!r}: {reads}")
        return kind.stage
    asked: str = _given_options(context).get("stage") or context.params.get("stage") or "all"
    if asked == "all":
        asked = "optimized" if source.target else "lowered"
    stage = source.stage or STAGE_OF_DUMP.get(asked, asked)
    reads_folders = "stage" in context.params  # those of dumps
    if stage == "kernels" or (stage == "passes" and not reads_folders):
        raise click.UsageError(
            f"the stage {stage!r} is a folder, and this command reads a module: "
            f"hlo-indexing dump {source.function} --stage {stage} -o FOLDER writes it"
        )
    return stage


def compile_input(context: click.Context, source: FunctionInput, stage: str) -> Compiled:
    """Return what JAX and XLA make of a function; report errors.

    Raises:
        click.UsageError: the function, its shapes or its target are not understood.
        click.exceptions.Exit: an error was reported.
    """
    from indexing.frontends.compilation import CompilationError, compile_for

    request = _request(context, source, stage)
    _check_question(source, request.shapes)
    reporter = reporter_of(context)
    try:
        answer = compile_for(request, uses_cache=not is_fresh(context))
    except (CompilationError, ImportError) as error:
        _report(reporter, source.text, str(error), has_shapes=bool(request.shapes))
        raise click.exceptions.Exit(1) from None
    if is_fresh(context):
        context.call_on_close(partial(shutil.rmtree, answer.folder, ignore_errors=True))
    if answer.note:
        reporter.note(f"note: {source.text}: {answer.note}")
    return answer


def _request(context: click.Context, source: FunctionInput, stage: str) -> CompilationRequest:
    from indexing.frontends.request import CompilationRequest

    target = source.target or ("" if stage == "lowered" else "cpu")
    return CompilationRequest(
        source.function, _given_options(context).get("shapes") or "", None, target, stage
    )


def _check_question(source: FunctionInput, shapes: str) -> None:
    """Raise `click.UsageError` if a function, its shapes or its target is not understood."""
    from indexing.frontends.named_functions import shape_trees
    from indexing.frontends.targets import Target

    try:
        split_name(source.function)
        shape_trees(shapes)
        if source.target:
            Target.parse(source.target)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _report(reporter: Reporter, name: str, message: str, has_shapes: bool) -> None:
    first, *rest = message.splitlines()
    if "required positional argument" in first or "missing a required" in first:
        first = first.partition("; pass its arguments")[0].replace("from_jax: ", "")
        missing = "the missing arguments" if has_shapes else "the arguments"
        rest.append(f"= help: give {missing} with --shapes 'f32[8,64],...', one shape for each")
    if "RESOURCE_EXHAUSTED" in first:
        rest.append("= help: `memory` with --stage lowered lists the arrays before compilation")
    reporter.error(f"error[jax]: {name}: {first}", *[f"  {line}" for line in rest])
