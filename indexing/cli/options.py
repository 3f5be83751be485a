"""Options of several commands: shared texts, and deprecated spellings, which ``--help`` hides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

VERIFY_HELP = "Prove with isl that each simplified map equals the original"
EXPLAIN_HELP = "List the simplification laws applied to each map"

F = TypeVar("F", bound=Callable[..., Any])


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
