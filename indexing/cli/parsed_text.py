"""`ParsedText`: the base of the types of options whose values are parsed from text."""

from __future__ import annotations

from typing import Any

import click


class ParsedText(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """A value that is parsed from a text; `parse` raises `ValueError` for another text."""

    def parse(self, text: str) -> Any:
        """Return the value.

        Raises:
            ValueError: the text has no value; the message has what is expected.
        """
        raise NotImplementedError

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except ValueError as error:
            self.fail(str(error), param, context)
