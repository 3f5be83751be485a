"""Implementations of the methods of values such as `IndexingMap`, loaded on their first call.

A value does not import the modules that implement its methods: it calls functions of this module by
name.  `methods.pyi` lists each name with its module, for this module and for type checkers.
"""

import ast
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

HOMES: Final = {
    alias.name: f"indexing.{node.module}"
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text()).body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}
"""The module of each name."""


def __getattr__(name: str) -> Any:
    """Return the current implementation of `name` in its module."""
    home = HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'indexing.methods' has no attribute {name!r}")
    return getattr(sys.modules.get(home) or import_module(home), name)
