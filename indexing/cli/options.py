"""Options of several commands, and deprecated spellings, which ``--help`` hides."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

verify_option = click.option(
    "--verify", is_flag=True, help="Prove with isl that each simplified map equals the original"
)
explain_option = click.option(
    "--explain", is_flag=True, help="List the simplification laws applied to each map"
)


def format_option(formats: click.Choice[str]) -> Callable[[F], F]:
    """The option ``--format``, whose value is the argument `notation`."""
    return click.option(
        "--format",
        "notation",
        default="text",
        show_default=True,
        type=formats,
        help="Choose the output format",
    )


def seed_option(description: str) -> Callable[[F], F]:
    """The option ``--seed``; `description` is its help."""
    return click.option(
        "--seed",
        metavar="N",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help=description,
    )


class ByteSize(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """A number of bytes, such as ``512MiB``.

    >>> ByteSize().convert("3KiB", None, None)
    3072
    """

    name = "size"

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> int:
        written = re.fullmatch(r"(\d+) ?(?:([KMGT])(?:iB)?|B)?", str(value), re.ASCII)
        if written is None:
            self.fail(f"expected a size such as 512MiB, got {value!r}", param, context)
        return int(written[1]) << 10 * " KMGT".index(written[2] or " ")


def _limit_input(context: click.Context, parameter: click.Parameter, value: int | None) -> None:
    if value is not None:
        context.obj.max_bytes = value


max_input_size_option = click.option(
    "--max-input-size",
    metavar="SIZE",
    type=ByteSize(),
    expose_value=False,
    callback=_limit_input,
    help="Reject inputs larger than SIZE after decompression, such as 512MiB; by default, 4GiB",
)


def nonempty(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Reject the empty path, such as that of an unset shell variable."""
    if value == "":
        raise click.BadParameter("expected the path of a file, got an empty text")
    return value


def deprecated_spelling(old: str, new: str, **attributes: Any) -> Callable[[F], F]:
    """Accept the option `old` in place of `new`; if both are given, `new` wins.

    Args:
        old: the deprecated spelling, such as ``--max-trips``.
        new: the spelling of the option that the command declares.
        attributes: further arguments of `click.option`, such as its type.
    """
    name = new.removeprefix("--").replace("-", "_")

    def redirect(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value is None:
            return
        click.echo(f"note: {old} is deprecated: use {new}", err=True)
        context.default_map = {**(context.default_map or {}), name: value}

    return click.option(
        old, hidden=True, is_eager=True, expose_value=False, callback=redirect, **attributes
    )
