"""Public names that are loaded on first use, without an import before it.

`lazy_loader` reads the names from the stub of a package, when the package is imported.  `hlo` and
`indexing` are imported before the command `hlo-indexing` handles interrupts: they postpone even
that.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # `typing` takes longer to import than this module
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class PublicNames:
    """The names in the stub of a package; `lookup` and `names` become its special functions.

    >>> public = PublicNames("hlo", "hlo/__init__.py")
    >>> public.lookup("parse").__module__, "parse" in public.lookup("__all__")
    ('hlo.formats.parser', True)
    """

    def __init__(self, package: str, file: str) -> None:
        self._package, self._file = package, file
        self._lookup: Callable[[str], Any] | None = None

    def lookup(self, name: str) -> Any:
        """Return a public name, or ``__all__``; the ``__getattr__`` of the package.

        Raises:
            AttributeError: the stub does not have the name.
        """
        if self._lookup is None:
            import lazy_loader  # type: ignore[import-untyped]  # it has no types

            self._lookup, _, names = lazy_loader.attach_stub(self._package, self._file)
            sys.modules[self._package].__dict__["__all__"] = names
        if name == "__all__":
            return sys.modules[self._package].__dict__["__all__"]
        return self._lookup(name)

    def names(self) -> list[str]:
        """The public names; the ``__dir__`` of the package."""
        names: list[str] = self.lookup("__all__")
        return names
