"""Implementations of methods of values such as `IndexingMap`, each loaded on its first call.

A value does not import the modules that compute something from it: its methods call functions of
this module by name.  `methods.pyi` lists each name with its module, for this module and for type
checkers.
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
    """The implementation called `name`, as its module has it now."""
    home = HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'indexing.methods' has no attribute {name!r}")
    return getattr(sys.modules.get(home) or import_module(home), name)
