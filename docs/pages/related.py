"""Classes of attributes, arguments and results: what the annotations of public names lead to."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, get_args

PACKAGES: Final = ("hlo", "indexing", "simplifier")
_NAME: Final = re.compile(r"[A-Za-z_][\w.]*")
_STRING: Final = re.compile(r"(['\"]).*?\1")


def related_pages(public: Iterable[Any]) -> list[type]:
    """Return the classes that annotations of `public` values name, and theirs in turn.

    >>> import indexing
    >>> [cls.__name__ for cls in related_pages([indexing.ShardingRule])]
    ['Factor']
    """
    seen: dict[Any, None] = dict.fromkeys(filter(_is_hashable, public))
    given = set(seen)
    queue = list(seen)
    for value in queue:
        for module, annotation in _annotations(value):
            for name in _NAME.findall(_STRING.sub("", annotation)):
                for cls in _classes(resolve(module, name)):
                    if _is_ours(cls) and cls not in seen:
                        seen[cls] = None
                        queue.append(cls)
    return sorted((v for v in seen if v not in given), key=lambda v: (v.__module__, v.__name__))


def resolve(module: str, name: str) -> Any:
    """Return the value that a name of an annotation denotes in a module, or None.

    Names that are imported for type checkers only are found in the text of the module.
    """
    first, *rest = name.split(".")
    try:
        value = getattr(import_module(module), first, None)
        if value is None:
            home, original = _imports(module)[first]
            value = getattr(import_module(home), original)
        for part in rest:
            value = getattr(value, part)
    except (AttributeError, ImportError, KeyError):
        return None
    return value


@cache
def _imports(module: str) -> dict[str, tuple[str, str]]:
    """Return the module and the name of each name that a module imports from another."""
    file = sys.modules[module].__file__
    if file is None or not file.endswith(".py"):  # compiled
        return {}
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def _classes(value: Any) -> Iterator[Any]:
    """Yield a class, or those of which an alias such as a union consists."""
    arguments = get_args(value)
    if not arguments:
        yield value
    for argument in arguments:
        yield from _classes(argument)


def _is_hashable(value: Any) -> bool:
    return type(value).__hash__ is not None


def _is_ours(value: Any) -> bool:
    if not inspect.isclass(value) or value.__name__.startswith("_"):
        return False
    return value.__module__.partition(".")[0] in PACKAGES


def _annotations(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the module and the text of each annotation of a function, or of a class's members."""
    if not inspect.isclass(value):
        if inspect.isroutine(value):
            yield from _of_function(value)
        return
    for cls in value.__mro__:
        if cls.__module__.partition(".")[0] not in PACKAGES:
            continue
        own = inspect.get_annotations(cls)
        yield from ((cls.__module__, str(a)) for n, a in own.items() if not n.startswith("_"))
        for name, member in cls.__dict__.items():
            if not name.startswith("_") or name == "__init__":
                function = getattr(member, "fget", None) or getattr(member, "__func__", member)
                yield from _of_function(function)


def _of_function(function: Any) -> Iterator[tuple[str, str]]:
    inner = inspect.unwrap(function) if callable(function) else function
    if inspect.isfunction(inner):
        yield from ((inner.__module__, str(a)) for a in inner.__annotations__.values())
