"""Deprecated names of modules and of public names: each still works, with a `DeprecationWarning`.

`declare` makes old module names importable; `with_old_names` makes old names attributes of a
module; `with_old_keywords` accepts old names of keyword arguments, and `with_old_fields` those of a
dataclass.  The warning gives the new name.

`hlo` and `indexing` import this module, which imports nothing before it is used.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # `typing` takes longer to import than this module
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

_NEW_NAMES: dict[str, str] = {}


def declare(moved: Mapping[str, str]) -> None:
    """Make old dotted names import the modules that have the new ones.

    >>> declare({"hlo.old_source": "hlo.text.source"})
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     from hlo.old_source import Source
    >>> print(Source.__module__, caught[0].message)
    hlo.text.source hlo.old_source has moved: import hlo.text.source
    """
    _NEW_NAMES.update(moved)
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        sys.meta_path.append(_Moved())


def with_old_names(
    module: str, names: Mapping[str, str], lookup: Callable[[str], Any]
) -> Callable[[str], Any]:
    """Return a module's ``__getattr__``: `lookup`, which also accepts deprecated names.

    Args:
        module: the module's dotted name, for the warning.
        names: the new name of each deprecated one.
        lookup: the module's ``__getattr__`` for the new names.

    >>> lookup = with_old_names("shop", {"pear": "apple"}, {"apple": 3}.__getitem__)
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     print(lookup("apple"), lookup("pear"), caught[0].message)
    3 3 shop.pear is deprecated: use shop.apple
    """

    def look_up(name: str) -> Any:
        new = names.get(name)
        if new is None:
            return lookup(name)
        import warnings

        message = f"{module}.{name} is deprecated: use {module}.{new}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return lookup(new)

    return look_up


def with_old_keywords(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that accepts deprecated names of keyword arguments.

    Args:
        names: the new name of each deprecated one.

    >>> @with_old_keywords(size="length")
    ... def line(length: int) -> str:
    ...     return "-" * length
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     print(line(size=3), caught[0].message)
    --- line(size=..) is deprecated: use length=..
    """

    import warnings
    from functools import wraps

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for old in names.keys() & kwargs.keys():
                message = f"{_name(function)}({old}=..) is deprecated: use {names[old]}=.."
                warnings.warn(message, DeprecationWarning, stacklevel=2)
                kwargs[names[old]] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate


def with_old_fields(**names: str) -> Callable[[type[R]], type[R]]:
    """Return a class decorator that accepts deprecated keyword arguments of the constructor.

    Args:
        names: the new name of each deprecated one.

    >>> @with_old_fields(size="length")
    ... class Line:
    ...     def __init__(self, length: int) -> None:
    ...         self.length = length
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     print(Line(size=3).length, caught[0].message)
    3 Line(size=..) is deprecated: use length=..
    """

    def decorate(cls: type[R]) -> type[R]:
        cls.__init__ = with_old_keywords(**names)(cls.__init__)  # type: ignore[method-assign]  # decorated
        return cls

    return decorate


def _name(function: Callable[..., Any]) -> str:
    """Return the name of a function, or of the class whose constructor it is."""
    return function.__qualname__.removesuffix(".__init__").rpartition(".")[2]


class _Moved:
    """Import finder and loader of modules by their old names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        from importlib.machinery import ModuleSpec

        return ModuleSpec(fullname, self) if fullname in _NEW_NAMES else None  # type: ignore[arg-type]  # a loader by its methods

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        import warnings
        from importlib import import_module

        new = _NEW_NAMES[spec.name]
        warnings.warn(f"{spec.name} has moved: import {new}", DeprecationWarning, stacklevel=2)
        return import_module(new)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module is executed under its new name."""
