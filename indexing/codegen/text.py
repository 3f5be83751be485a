"""Lines of generated Python, and the parts that both kinds of source have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ml_dtypes
import numpy as np

from indexing.codegen.nest import (
    Apply,
    Body,
    Buffer,
    Fold,
    Function,
    LoopNest,
    everything,
    in_order,
)
from indexing.ops import numerics
from simplifier.linear import Expr


class Lines:
    """Lines of Python, with indentation."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 0

    def add(self, line: str) -> None:
        """One more line."""
        self.lines.append("    " * self._depth + line)

    @contextmanager
    def under(self, line: str) -> Iterator[None]:
        """What is added meanwhile belongs to `line`, which ends with a colon."""
        self.add(line)
        self._depth += 1
        yield
        self._depth -= 1

    def forget(self, names: set[str]) -> None:
        """After the line that needs one of `names` last, give it back; but not in the last line.

        Lines in a loop belong to the line with the loop.
        """
        last: dict[str, int] = {}
        for k in range(len(self.lines) - 1, -1, -1):
            for name in _NAME.findall(self.lines[k]):
                if name in names and name not in last:
                    last[name] = _end_of_block(self.lines, k, "    " * self._depth)
        over: dict[int, list[str]] = {}
        for name, k in last.items():
            if f"out={name})" in self.lines[k]:
                continue  # it has another name now
            over.setdefault(k, []).append(name)
        for k in sorted(over, reverse=True):
            if k < len(self.lines) - 1:
                self.lines.insert(k + 1, f"{'    ' * self._depth}del {', '.join(sorted(over[k]))}")

    def __str__(self) -> str:
        return "\n".join(self.lines)


def _end_of_block(lines: list[str], k: int, margin: str) -> int:
    """The last line of the block that line `k` is in, if it is deeper than `margin`; else `k`."""
    while (
        k + 1 < len(lines)
        and lines[k].startswith(margin + " ")
        and lines[k + 1].startswith(margin + " ")
    ):
        k += 1
    return k


_NAME = re.compile(r"[A-Za-z_]\w*")


class Names:
    """Names that differ from each other: ``x``, ``x_2``, …

    >>> names = Names(["x"])
    >>> names.new("x"), names.new("x"), names.new("y")
    ('x_2', 'x_3', 'y')
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = dict.fromkeys(taken, 1)

    def new(self, stem: str) -> str:
        """`stem`, with a number where it is taken."""
        name = stem
        while name in self._taken:
            self._taken[stem] += 1
            name = f"{stem}_{self._taken[stem]}"
        self._taken[name] = 1
        return name


def index_text(expr: Expr) -> str:
    """An index as Python writes it.

    >>> from simplifier.atoms import Variable
    >>> print(index_text(Variable("d0", 0, 31) // 8 + Variable("d1", 0, 31) % 4))
    d0 // 8 + d1 % 4
    """
    return str(expr).replace(" floordiv ", " // ").replace(" mod ", " % ")


def tuple_text(items: Sequence[object]) -> str:
    """A tuple as Python writes it.

    >>> tuple_text([1]), tuple_text([])
    ('(1,)', '()')
    """
    inside = ", ".join(map(str, items))
    return f"({inside},)" if len(items) == 1 else f"({inside})"


def call_text(function: Function, arguments: Sequence[str], name: str) -> str:
    """A function of arguments; each argument is a name, a subscript or a call."""
    if function.style == "infix":
        return f" {function.name} ".join(arguments)
    if function.style == "prefix":
        return f"{function.name}{arguments[0]}"
    return f"{name}({', '.join(arguments)})"


def functions_of(nest: LoopNest) -> Iterator[Function]:
    """Every function that a nest applies, each once, those of bodies before those with them."""
    seen: dict[int, Function] = {}
    for stage in nest.stages:
        if isinstance(stage.body, Fold):
            _note(stage.body.function, seen)
            if stage.body.finish:
                _note(stage.body.finish, seen)
        for node in everything(stage):
            if isinstance(node, Apply):
                _note(node.function, seen)
    yield from seen.values()


def _note(function: Function, seen: dict[int, Function]) -> None:
    if id(function) in seen:
        return
    if function.body is not None:
        for inner in functions_in(function.body):
            _note(inner, seen)
    seen[id(function)] = function


def functions_in(body: Body) -> Iterator[Function]:
    """The functions that a computation of scalars applies."""
    roots: list[Any] = list(body.results)
    for node in in_order(roots):
        if isinstance(node, Apply):
            yield node.function


def named_functions(
    functions: Iterable[Function], names: Names, wrap: Callable[[Any], Any]
) -> tuple[dict[int, str], dict[str, Any]]:
    """How each function is called in a source, and what these names are when it runs.

    Functions of NumPy and of `numerics` keep the names that a person finds them by; of two others
    with the same name, one gets a number.
    """
    called: dict[int, str] = {}
    known: dict[str, Any] = {
        "np": np,
        "ml_dtypes": ml_dtypes,
        "numerics": _Wrapped(numerics, wrap),
    }
    calls: dict[tuple[str, object], str] = {}
    for function in functions:
        if function.style != "call" or "." in function.name:
            called[id(function)] = function.name
            continue
        key = function.name, _identity(function.call)
        if key not in calls:
            calls[key] = names.new(function.name)
            known[calls[key]] = wrap(function.call)
        called[id(function)] = calls[key]
    return called, known


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


def executed(source: str, name: str, known: dict[str, Any], filename: str) -> Any:
    """The function `name` that a source defines; tracebacks show the source."""
    import linecache

    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), known)
    return known[name]


def buffers_of(nest: LoopNest) -> list[Buffer]:
    """The arrays that a source is given: inputs, then constants."""
    return [*nest.inputs, *nest.constants]
