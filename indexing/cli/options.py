"""Options of several commands, and deprecated spellings, which ``--help`` hides."""

from __future__ import annotations

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
