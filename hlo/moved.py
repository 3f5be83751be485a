"""Old module names: an import of one gives the module under its new name, with a warning.

Each package declares its table with `declare`.  An old name imports as long as it is in a table, so
that files of users keep working; the warning names what to write instead.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

_NEW_NAMES: Final[dict[str, str]] = {}


def declare(moved: Mapping[str, str]) -> None:
    """Make old dotted names import the modules that have the new ones.

    >>> declare({"hlo.old_source": "hlo.text.source"})
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     from hlo.old_source import Source
    >>> print(Source.__module__, caught[0].message)
    hlo.text.source hlo.old_source has moved: import hlo.text.source
    """
    _NEW_NAMES.update(moved)
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        sys.meta_path.append(_Moved())


class _Moved(MetaPathFinder, Loader):
    """Finds modules by the old names, where nothing else does."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in _NEW_NAMES else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        new = _NEW_NAMES[spec.name]
        warnings.warn(f"{spec.name} has moved: import {new}", DeprecationWarning, stacklevel=2)
        return import_module(new)

    def exec_module(self, module: ModuleType) -> None:
        """The module was executed under its new name."""
