"""Options of several commands."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from indexing.cli.completion import complete_instructions, complete_operands
from indexing.cli.integers import IntegerRange
from indexing.cli.parsed_text import ParsedText
from indexing.cli.paths import InputPath

if TYPE_CHECKING:
    pass

F = TypeVar("F", bound=Callable[..., Any])


def with_options(command: F, options: Sequence[Callable[[F], F]]) -> F:
    """Return `command` with options, which ``--help`` lists in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def gather_options(argument: str, load: Callable[[], type[Any]]) -> Callable[[F], F]:
    """Give a command one argument in place of the arguments named as the fields of a dataclass.

    Args:
        load: returns the dataclass, when the command runs: completion does not load it.
    """

    def decorate(command: F) -> F:
        @wraps(command)
        def with_one(**options: Any) -> None:
            kind = load()
            value = kind(**{each.name: options.pop(each.name) for each in fields(kind)})
            command(**{argument: value}, **options)

        return cast(F, with_one)

    return decorate


files_argument = click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=InputPath()
)

verify_option = click.option(
    "--verify", is_flag=True, help="Prove with isl that each simplified map equals the original"
)


def format_option(formats: click.Choice[str]) -> Callable[[F], F]:
    """The option ``--format``, whose value is the argument `notation`."""
    return click.option(
        "--format",
        "notation",
        default="text",
        show_default=True,
        type=formats,
        callback=_note_format,
        help="Choose the output format",
    )


def _note_format(context: click.Context, _: click.Parameter, notation: str) -> str:
    """Return the format; only text is wrapped on terminals."""
    if context.obj is not None:
        context.obj.wraps = notation == "text"
    return notation


def limit_option(description: str, default: int | None = None) -> Callable[[F], F]:
    """The option ``--limit``, the most rows that are printed; `description` is its help."""
    return click.option(
        "--limit",
        metavar="N",
        type=IntegerRange(min=1),
        default=default,
        show_default=default is not None,
        help=description,
    )


jobs_option = click.option(
    "--jobs",
    "-j",
    metavar="N",
    type=IntegerRange(min=1),
    default=1,
    help="Use N worker processes; the output does not change",
)

level_option = click.option(
    "--level",
    type=click.Choice(["reads", "counts", "values", "numbers"]),
    default="values",
    show_default=True,
    help="Choose what is compared",
)

exact_arithmetic_option = click.option(
    "--exact-arithmetic",
    is_flag=True,
    help="Reject laws that hold only for real numbers, such as x / c = x * (1 / c)",
)

source_option = click.option(
    "--source",
    "with_source",
    is_flag=True,
    help="Print the source of each instruction: file, line, column and op_name of its metadata; "
    "`maps` lists also all lines behind it, those of fused instructions and, with --to parameters, "
    "of everything that it depends on",
)


before_option = click.option(
    "--before",
    metavar="MODULE",
    type=InputPath(),
    help="Add the lines of the instructions of MODULE, from before the passes, that became these: "
    "those with equal values, which are proved, and those with the same op_name",
)


def output_option(description: str) -> Callable[[F], F]:
    """The option ``--output``, the number of one output, 0 by default."""
    return click.option(
        "--output",
        metavar="N",
        type=IntegerRange(min=0),
        default=0,
        show_default=True,
        help=description,
    )


def seed_option(description: str) -> Callable[[F], F]:
    """The option ``--seed``; `description` is its help."""
    return click.option(
        "--seed",
        metavar="N",
        type=IntegerRange(min=0),
        default=0,
        show_default=True,
        help=description,
    )


MAX_DIGITS = 18
"""Limit on the digits of a number in an option."""


class ByteSize(ParsedText):
    """A number of bytes, such as ``512MiB``.

    >>> ByteSize().convert("3KiB", None, None)
    3072
    """

    name = "size"

    def parse(self, text: str) -> int:
        size = rf"(\d{{1,{MAX_DIGITS}}}) ?(?:([KMGT])(?:iB)?|B)?"
        written = re.fullmatch(size, text, re.ASCII)
        if written is None:
            raise ValueError(f"expected a size such as 512MiB, got {text!r}")
        return int(written[1]) << 10 * " KMGT".index(written[2] or " ")


class PatternText(ParsedText):
    """A name, a glob, or a regular expression between slashes."""

    name = "pattern"

    def parse(self, text: str) -> str:
        from hlo.modules.patterns import Pattern

        return Pattern(text).text


class OperandName(PatternText):
    """The number of an operand, or a pattern of its name.

    >>> OperandName().convert("2", None, None), OperandName().convert("%wk", None, None)
    (2, 'wk')
    """

    def parse(self, text: str) -> int | str:  # type: ignore[override]  # numbers as well
        if re.fullmatch(r"-?\d+", text, re.ASCII):
            if text.startswith("-") or len(text) > MAX_DIGITS:
                raise ValueError(f"expected a number of at least 0 or a name, got {text}")
            return int(text)
        if not text:
            raise ValueError("expected a number or a name, got an empty text")
        return super().parse(text.removeprefix("%"))


class PointText(ParsedText):
    """An index, a slice or ``...`` for each dimension.

    >>> PointText().convert("1, 0:32,:,...", None, None)
    (1, slice(0, 32, None), slice(None, None, None), Ellipsis)
    """

    name = "point"

    def parse(self, text: str) -> tuple[Any, ...]:
        inside = text.strip().removeprefix("[").removesuffix("]").strip()
        words = [word.strip() for word in inside.split(",")] if inside else []
        if words.count("...") > 1:
            raise ValueError(f"`...` may occur once, got {text!r}")
        return tuple(map(_point_index, words))


def _point_index(word: str) -> Any:
    """Return an index, a slice or ``...``."""
    number = rf"\d{{1,{MAX_DIGITS}}}"
    if word == "...":
        return ...
    if re.fullmatch(number, word, re.ASCII):
        return int(word)
    part = re.fullmatch(rf"({number})?:({number})?(?::({number})?)?", word, re.ASCII)
    bounds = [int(bound) if bound else None for bound in part.groups()] if part else []
    if not bounds:
        hint = "; indices do not count from the end" if word.startswith("-") else ""
        raise ValueError(f"expected indices such as 1,0:32,:,... got {word!r}{hint}")
    start, stop, step = bounds
    if step == 0 or (stop is not None and stop <= (start or 0)):
        reason = "its step is 0" if step == 0 else "it is empty"
        raise ValueError(f"{word!r} selects nothing: {reason}")
    return slice(start, stop, step)


class GivenValueText(ParsedText):
    """The name of a parameter, and its value: an integer, several, JSON, or a file of NumPy.

    >>> GivenValueText().convert("pos=5", None, None), GivenValueText().convert("n=3,5", None, None)
    (('pos', 5), ('n', (3, 5)))
    """

    name = "value"

    def parse(self, text: str) -> tuple[str, Any]:
        name, equals, value = text.partition("=")
        name = name.strip().removeprefix("%")
        expected = "expected NAME=VALUE such as pos=5, lengths=3,5 or 'table=[[0,1],[2,3]]'"
        if not (name and equals):
            raise ValueError(f"{expected}, got {text!r}")
        if value.startswith("@"):
            return name, _integers_in(value[1:])
        try:
            read = json.loads(f"[{value}]")
        except (ValueError, RecursionError):
            read = []
        given = read[0] if len(read) == 1 else read
        if read == [] or not _is_of_integers(given):
            raise ValueError(f"{expected}: integers, got {text!r}")
        return name, _as_tuple(given)


values_option = click.option(
    "--set",
    "values",
    metavar="NAME=VALUE",
    multiple=True,
    type=GivenValueText(),
    callback=lambda context, parameter, values: tuple(dict(values).items()),
    help="Answer for this value of a parameter of integers or booleans: one, such as pos=5, "
    "several, such as lengths=3,5 or mask=true,false, JSON, or lengths=@FILE.npy; may be repeated",
)


def assume_option(command: F) -> F:
    """The option ``--assume``, whose value is the argument `assume`: distinct names."""
    from indexing.maps.assumptions import ASSUMPTIONS

    return click.option(
        "--assume",
        multiple=True,
        type=click.Choice(list(ASSUMPTIONS)),
        callback=lambda context, parameter, names: tuple(dict.fromkeys(names)),
        help="Leave out what is not needed under an assumption: `masked-softmax`, that "
        f"{ASSUMPTIONS['masked-softmax']}",
    )(command)


def _is_of_integers(value: Any) -> bool:
    """Return True for an integer, ``true`` or ``false``, or a list of them or of such lists."""
    if isinstance(value, list):
        sizes = {len(each) if isinstance(each, list) else -1 for each in value}
        return len(sizes) == 1 and all(map(_is_of_integers, value))
    return isinstance(value, int) and abs(value) < 1 << 64


def _integers_in(path: str) -> Any:
    """Return the array of a file that NumPy wrote, as tuples.

    Raises:
        ValueError: the file cannot be read, or has no integers or booleans.
    """
    import numpy as np

    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ValueError(f"{path}: {reason}; expected a file of numpy.save") from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biu":
        given = getattr(array, "dtype", "several arrays")
        raise ValueError(f"{path} has {given}, expected one array of integers or booleans")
    return _as_tuple(array.tolist())


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else int(value)


instruction_option = click.option(
    "--instruction",
    "-i",
    "names",
    metavar="NAME",
    multiple=True,
    type=PatternText(),
    shell_complete=complete_instructions,
    help="Select this instruction, NAME or COMPUTATION/NAME, a glob such as 'conv*', or a /regex/; "
    "may be repeated",
)


def target_option(description: str) -> Callable[[F], F]:
    """The option ``--to``, whose value is the argument `target`; `description` is its help."""
    return click.option(
        "--to",
        "target",
        default="operands",
        show_default=True,
        type=click.Choice(["operands", "parameters"]),
        help=description,
    )


def operand_option(description: str) -> Callable[[F], F]:
    """The option ``--operand``; `description` is its help."""
    return click.option(
        "--operand",
        metavar="N|NAME",
        type=OperandName(),
        shell_complete=complete_operands,
        help=description,
    )


def exact_option(description: str) -> Callable[[F], F]:
    """The option ``--exact``; `description` is its help."""
    return click.option("--exact", is_flag=True, help=description)


def _limit_input(context: click.Context, parameter: click.Parameter, value: int | None) -> None:
    if value is not None:
        context.obj.max_bytes = value


max_input_size_option = click.option(
    "--max-input-size",
    metavar="SIZE",
    type=ByteSize(),
    expose_value=False,
    callback=_limit_input,
    help="Reject inputs larger than SIZE after decompression, such as 512MiB; by default, 1GiB",
)
