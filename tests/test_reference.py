"""Every public function and class shows how it is used: `help` and the site print the example."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import hlo
import indexing
import simplifier
from docs.pages.reference import OWN_OPS, ROOMS

PACKAGES = (hlo, simplifier, indexing)
BASES_OF_OPS = "indexing.ops.base"
"""Users inherit from its classes: the page about ops of their own shows how."""


def modules() -> Iterator[str]:
    """Yield the packages, and their modules that have ``__all__``."""
    for package in PACKAGES:
        folder = Path(package.__path__[0])
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder.parent).with_suffix("").parts
            if parts[-1] == "__init__":
                yield ".".join(parts[:-1])
            elif "\n__all__ = " in path.read_text(encoding="utf-8"):
                yield ".".join(parts)


def public_values() -> dict[str, Any]:
    """Return the functions and classes that ``__all__`` of a module names, each of them once."""
    values: dict[int, tuple[str, Any]] = {}
    named = [(m, name) for m in modules() for name in getattr(import_module(m), "__all__", ())]
    own_ops = [(m, name) for m, names in OWN_OPS.items() if m != BASES_OF_OPS for name in names]
    ours = {package.__name__ for package in PACKAGES}
    for module, name in [*named, *own_ops]:
        value = getattr(import_module(module), name)
        is_defined = inspect.isclass(value) or inspect.isroutine(value)
        if is_defined and value.__module__.partition(".")[0] in ours:
            values.setdefault(id(value), (f"{module}.{name}", value))
    return dict(sorted(values.values()))


def test_each_docstring_has_an_example() -> None:
    """Doctests execute the examples."""
    values = public_values()
    assert len(values) > 250
    assert not [name for name, value in values.items() if ">>>" not in (value.__doc__ or "")]


def test_the_help_of_indexing_names_its_rooms() -> None:
    """Each is reachable after ``import indexing`` alone."""
    program = "import indexing, re\n" + (
        "for name in re.findall(r'`indexing[.]([a-z]+)`', indexing.__doc__): "
        "print(getattr(indexing, name).__name__)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    rooms = {*ROOMS, "indexing.execution"} - {"indexing", "hlo", "simplifier"}
    assert {*printed} == rooms
