"""``hlo-indexing --version``: the version, and whether modules are compiled."""

from __future__ import annotations

import platform
from importlib.machinery import ExtensionFileLoader
from importlib.metadata import version
from importlib.util import find_spec
from typing import Final

COMPILED: Final = (
    "hlo.argument_tests",
    "hlo.text.syntax",
    "hlo.modules.deferred",
    "hlo.modules.forms",
    "hlo.modules.module",
    "hlo.formats.parser_state",
    "hlo.formats.body",
    "hlo.formats.scan",
    "hlo.formats.module_reader",
    "simplifier.interval",
    "simplifier.unique_table",
    "simplifier.unique",
    "simplifier.shared",
    "simplifier.operations",
    "simplifier.linear",
    "simplifier.atoms",
    "simplifier.mods",
    "simplifier.bounds",
    "simplifier.division",
    "simplifier.divmod",
    "simplifier.semiaffine",
    "simplifier.substitute",
    "simplifier.residues",
    "simplifier.constraints",
    "simplifier.conjunction",
    "simplifier.rewrite",
    "simplifier.domain",
    "simplifier.solve",
    "simplifier.samples",
    "simplifier.bounds_queries",
    "simplifier.exact.point_arrays",
    "simplifier.exact.points",
    "simplifier.open_groups",
    "simplifier.refine",
    "indexing.maps.arrays",
    "indexing.maps.explanation",
    "indexing.maps.map_fields",
    "indexing.maps.result_bounds",
    "indexing.maps.compose",
    "indexing.maps.unused",
    "indexing.maps.simplify",
    "indexing.maps.over_approximation",
    "indexing.maps.options",
    "indexing.maps.marked_maps",
    "indexing.maps.map_set",
    "indexing.ops.access_edge",
    "indexing.dataflow.needed",
    "indexing.dataflow.users_first",
    "indexing.dataflow.summaries",
    "indexing.dataflow.shaped_ops",
    "indexing.dataflow.soundness",
    "indexing.dataflow.compositions",
    "indexing.dataflow.answering",
    "indexing.dataflow.walk",
    "indexing.views.map_tables",
    "indexing.views.map_answers",
    "indexing.views.records",
)
"""The modules that `make wheel` compiles; `pyproject.toml` lists their files."""


def build() -> str:
    """Return "compiled" or "interpreted", by the files that Python imports the modules from.

    If only some modules are compiled, return their number.

    >>> from simplifier import linear
    >>> (build() == "interpreted") == linear.__file__.endswith(".py")
    True
    """
    count = sum(_is_compiled(name) for name in COMPILED)
    if count in (0, len(COMPILED)):
        return "compiled" if count else "interpreted"
    return f"{count} of {len(COMPILED)} modules compiled"


def _is_compiled(name: str) -> bool:
    spec = find_spec(name)
    return spec is not None and isinstance(spec.loader, ExtensionFileLoader)


def version_text(program: str) -> str:
    """Return the line that ``--version`` prints."""
    return f"{program} {version(program)} ({build()}; Python {platform.python_version()})"
