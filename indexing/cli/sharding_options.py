"""Options for meshes and shardings, as values that know their place in the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from indexing.cli.parsed_text import ParsedText

if TYPE_CHECKING:
    from hlo.shardings.mesh import Mesh
    from hlo.shardings.sharding import Sharding
    from hlo.text.source import HloError


class MeshText(ParsedText):
    """The axes of a mesh.

    >>> MeshText().convert("x=4,y=2", None, None).axes
    (('x', 4), ('y', 2))
    """

    name = "mesh"

    def parse(self, text: str) -> Mesh:
        from hlo.shardings.mesh import Mesh
        from hlo.text.source import HloError

        try:
            return Mesh.parse(text)
        except HloError as error:
            raise ValueError(_line(error, text)) from None


class SpecText(ParsedText):
    """The name of a parameter, and the axes that split each of its dimensions.

    >>> SpecText().convert("p0=x,_", None, None)
    ('p0', 'x,_')
    """

    name = "spec"

    def parse(self, text: str) -> tuple[str, str]:
        name, equals, spec = text.partition("=")
        if not (equals and name.strip()):
            raise ValueError(f"expected NAME=SPEC such as p0=x,_ got {text!r}")
        return name.strip().removeprefix("%"), spec


def _line(error: HloError, text: str) -> str:
    """Return an error in a value of an option on one line, with its column."""
    repair = f"; {error.help}" if error.help else ""
    return f"{error.label} (column {error.span.column} of `{text}`){repair}"


def parsed_spec(option: str, text: str, mesh: Mesh) -> Sharding:
    """Return the sharding of a spec; a usage error if it does not fit the mesh.

    Args:
        option: the option and what precedes the spec, such as ``--spec p0=``.
    """
    from hlo.shardings.short_notation import parse_spec
    from hlo.text.source import HloError

    try:
        return parse_spec(text, mesh)
    except HloError as error:
        raise click.BadParameter(_line(error, text), param_hint=f"{option}{text}") from None


def parsed_specs(specs: tuple[tuple[str, str], ...], mesh: Mesh) -> dict[str, Sharding]:
    """Return the shardings of parameters by name; a usage error if a name is given twice."""
    shardings: dict[str, Sharding] = {}
    for name, text in specs:
        if name in shardings:
            raise click.UsageError(f"--spec {name}=... is given twice")
        shardings[name] = parsed_spec(f"--spec {name}=", text, mesh)
    return shardings


def parsed_out_specs(specs: tuple[str, ...], mesh: Mesh) -> list[Sharding | None] | None:
    """Return the shardings of the arrays of the result, None for one that is free."""
    if not specs:
        return None
    return [None if text == "any" else parsed_spec("--out-spec ", text, mesh) for text in specs]
