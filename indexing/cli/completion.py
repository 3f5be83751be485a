"""Completion at the shell: files."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem


class FilePath(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """The path of a file, or ``-``; it is checked where it is opened."""

    name = "file"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[Any]]:
        return [CompletionItem(incomplete, type="file")]
