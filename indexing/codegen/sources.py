"""Sources of nests: their functions have names, bodies are defined first, and all is executed."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from indexing.codegen.graph import Apply, Composed, Fold, Nest, Node, in_order, with_cases
from indexing.codegen.text import Lines, Names, identifier
from indexing.ops import numerics
from indexing.ops.functions import ScalarFunction


class SourceBuilder:
    """The lines of a program, its names, and what they are when it runs.

    Functions of NumPy and of `numerics` keep the names by which they are documented; of two others
    with the same name, one gets a number.

    Args:
        functions: those that the program calls.
        taken: names that it may not give to anything else.
        helpers: further functions that its lines call, by name.
        wrap: makes a function of arrays what the program calls.
    """

    def __init__(
        self,
        functions: Iterable[ScalarFunction],
        taken: Iterable[str],
        helpers: dict[str, Any],
        wrap: Callable[[Any], Any] = lambda function: function,
    ) -> None:
        libraries = {"np": np, "ml_dtypes": ml_dtypes, "numerics": _Wrapped(numerics, wrap)}
        self.text, self.names = Lines(), Names([*libraries, *helpers, *taken])
        self.functions = list(functions)
        self._known: dict[str, Any] = libraries | helpers
        self._called: dict[ScalarFunction, str] = {}
        calls: dict[tuple[str, object], str] = {}
        for function in self.functions:
            if function.style != "call" or "." in function.name:
                self._called[function] = function.name
                continue
            key = identifier(function.name), _identity(function.call)
            if key not in calls:
                calls[key] = self.names.new(key[0])
                self._known[calls[key]] = wrap(function.call)
            self._called[function] = calls[key]

    def call(self, function: ScalarFunction, *arguments: str) -> str:
        """A function of arguments; each argument is a name, a subscript or a call."""
        name = self._called[function]
        match function.style:
            case "infix":
                return f" {name} ".join(arguments)
            case "prefix":
                return f"{name}{arguments[0]}"
            case "call":
                return f"{name}({', '.join(arguments)})"

    def name(self, function: ScalarFunction) -> str:
        """The name of a function."""
        return self._called[function]

    def composed(self) -> Iterator[Composed]:
        """The functions that the source has to define, each after those that it calls."""
        return (function for function in self.functions if isinstance(function, Composed))

    def executed(self, name: str, title: str) -> tuple[str, Any]:
        """The source, and the function `name` that it defines; tracebacks show the source."""
        source, filename = str(self.text), f"<{title} {name}>"
        lines = source.splitlines(keepends=True)
        linecache.cache[filename] = (len(source), None, lines, filename)
        exec(compile(source, filename, "exec"), self._known)
        return source, self._known[name]


def functions_of(nest: Nest) -> list[ScalarFunction]:
    """Every function that a nest applies, each once, after those of its body."""
    seen: dict[ScalarFunction, None] = {}
    for stage in nest.stages:
        if isinstance(stage.body, Fold):
            _note(stage.body.function, seen)
            if stage.body.finish:
                _note(stage.body.finish, seen)
        for function in functions_in(stage.nodes()):
            _note(function, seen)
    return list(seen)


def _note(function: ScalarFunction, seen: dict[ScalarFunction, None]) -> None:
    if isinstance(function, Composed) and function not in seen:
        for inner in functions_in(in_order(function.body.results, with_cases)):
            _note(inner, seen)
    seen.setdefault(function)


def functions_in(nodes: Iterable[Node]) -> Iterator[ScalarFunction]:
    """The functions that nodes apply."""
    return (node.function for node in nodes if isinstance(node, Apply))


def _identity(call: Any) -> object:
    """The same for two bound methods of equal ops."""
    owner = getattr(call, "__self__", None)
    return (type(owner), owner) if owner is not None else id(call)


class _Wrapped:
    """A module whose functions are wrapped."""

    def __init__(self, module: Any, wrap: Callable[[Any], Any]) -> None:
        self._module, self._wrap = module, wrap

    def __getattr__(self, name: str) -> Any:
        return self._wrap(getattr(self._module, name))
