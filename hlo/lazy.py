"""Implementations of methods, loaded on their first call.

A value does not import the modules that implement its methods: it calls functions of `hlo.methods`
or `indexing.methods` by name.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any


def homes_of(package: str, file: str) -> Mapping[str, str]:
    """Return the module of each name that the stub file of the module in `file` imports."""
    return {
        alias.name: f"{package}.{node.module}"
        for node in ast.parse(Path(file).with_suffix(".pyi").read_text("utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def loader(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of `module`, which imports a name from its home and keeps it."""

    def load(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        implementation = getattr(import_module(home), name)
        setattr(sys.modules[module], name, implementation)  # the next access does not load
        return implementation

    return load
