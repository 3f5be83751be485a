"""Generated source code: names of called functions, definitions in order, execution."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any, Final
from weakref import finalize

from indexing.codegen.graph import (
    Apply,
    ComputationFunction,
    Node,
    Reduction,
    topological_order,
    with_cases,
)
from indexing.codegen.stages import Nest, Repeat, all_loops, all_stages
from indexing.codegen.text import HELPERS, LIBRARIES, RESERVED, Lines, Names, identifier, index_text
from indexing.ops import numerics
from indexing.ops.functions import ScalarFunction


class SourceBuilder:
    """Collects the lines of a program, allocates names, and executes the result.

    Functions of NumPy and of `numerics` keep their qualified names.  Other functions with equal
    names are numbered.

    Args:
        functions: the functions that the program calls.
        taken: reserved names.
        wrap: adapts a function of arrays to the arguments that the program passes.
    """

    def __init__(
        self,
        functions: Iterable[ScalarFunction],
        taken: Iterable[str],
        wrap: Callable[[Any], Any] = lambda function: function,
    ) -> None:
        self.text, self.functions = Lines(), list(functions)
        self.names = Names([*RESERVED, *taken, *_parameters(self.functions)])
        self._globals: dict[str, Any] = LIBRARIES | HELPERS
        self._globals["numerics"] = _Wrapped(numerics, wrap)
        self._called: dict[ScalarFunction, str] = {}
        calls: dict[tuple[str, object], str] = {}
        for function in self.functions:
            if function.style != "call" or "." in function.name:
                self._called[function] = function.name
                continue
            key = identifier(function.name), _identity(function.call)
            if key not in calls:
                calls[key] = self.names.new(key[0])
                self._globals[calls[key]] = wrap(function.call)
            self._called[function] = calls[key]

    def call(self, function: ScalarFunction, *arguments: str) -> str:
        """Return the application of a function; each argument is a name, a subscript or a call."""
        name = self._called[function]
        match function.style:
            case "infix":
                return f" {name} ".join(arguments)
            case "prefix":
                return f"{name}{arguments[0]}"
            case "call":
                return f"{name}({', '.join(arguments)})"

    def function_name(self, function: ScalarFunction) -> str:
        """Return the name of a function in the program."""
        return self._called[function]

    def callee(self, function: ScalarFunction) -> str:
        """Return a combiner as an argument of a call: its name, or a function of its operator."""
        if function.style == "call":
            return self._called[function]
        return f"lambda total, value: {self.call(function, 'total', 'value')}"

    def defined_functions(self) -> Iterator[ComputationFunction]:
        """Yield the functions that the program must define, callees first."""
        return (
            function for function in self.functions if isinstance(function, ComputationFunction)
        )

    @contextmanager
    def open_repeat(self, loop: Repeat) -> Iterator[None]:
        """Open a loop over stages; the context writes the stages of one iteration.

        The runtime variables of the number of iterations are assigned before.
        """
        with ExitStack() as stack:
            if loop.count.expr.is_constant:
                stack.enter_context(self.text.loops([loop.variable]))
            else:
                name, count = loop.variable.name, index_text(loop.count.expr)
                stack.enter_context(self.text.indent_below(f"for {name} in range({count}):"))
            self.text.repeats += 1
            yield
            self.text.repeats -= 1
            moved = [each for each in loop.carried if not each.is_in_place]
            if moved:
                targets = ", ".join([each.buffer.name for each in moved])
                values = ", ".join([each.following.name for each in moved])
                self.text.add(f"{targets} = {values}")
            elif not loop.stages:
                self.text.add("pass")

    def execute(self, name: str, title: str) -> tuple[str, Any]:
        """Execute the source; return it with the function `function_name` that it defines."""
        source = str(self.text)
        return source, function_from(source, name, f"{title} {name}", self._globals)


_NUMBERS: Final = count(1)


def function_from(source: str, name: str, title: str, scope: dict[str, Any]) -> Any:
    """Execute `source` in `scope`; return the function `function_name` that it defines.

    Tracebacks show the generated lines.  The lines are discarded with the function.

    >>> import linecache
    >>> known = set(linecache.cache)
    >>> double = function_from("def double(x): return 2 * x", "double", "example", {})
    >>> (filename,) = linecache.cache.keys() - known
    >>> double(3), linecache.getline(filename, 1)
    (6, 'def double(x): return 2 * x')
    """
    filename = f"<{title} {next(_NUMBERS)}>"  # functions may have equal names
    exec(compile(source, filename, "exec"), scope)
    function = scope[name]
    lines = source.splitlines(keepends=True)
    linecache.cache[filename] = (len(source), None, lines, filename)
    finalize(function, linecache.cache.pop, filename, None).atexit = False
    return function


def functions_of(nest: Nest) -> list[ScalarFunction]:
    """Return the functions that a nest applies, each once, callees first."""
    seen: dict[ScalarFunction, None] = {}
    for stage in all_stages(nest.stages):
        if isinstance(stage.body, Reduction):
            _note(stage.body.function, seen)
            if stage.body.finish:
                _note(stage.body.finish, seen)
        for function in functions_in(stage.nodes()):
            _note(function, seen)
    counts = [loop.count for loop in all_loops(nest.stages)]
    for function in functions_in(topological_order(counts, with_cases)):
        _note(function, seen)
    return list(seen)


def _note(function: ScalarFunction, seen: dict[ScalarFunction, None]) -> None:
    if isinstance(function, ComputationFunction) and function not in seen:
        for inner in functions_in(topological_order(function.body.results, with_cases)):
            _note(inner, seen)
    seen.setdefault(function)


def functions_in(nodes: Iterable[Node]) -> Iterator[ScalarFunction]:
    """Yield the functions that nodes apply."""
    return (node.function for node in nodes if isinstance(node, Apply))


def _parameters(functions: Iterable[ScalarFunction]) -> Iterator[str]:
    """Yield the names of the parameters of functions: within them, they hide global names."""
    for function in functions:
        if isinstance(function, ComputationFunction):
            yield from [parameter.name for parameter in function.body.parameters]


def _identity(call: Any) -> object:
    """Return a key that is equal for bound methods of equal ops."""
    owner = getattr(call, "__self__", None)
    return (type(owner), owner) if owner is not None else id(call)


class _Wrapped:
    """A proxy of a module with wrapped functions."""

    def __init__(self, module: Any, wrap: Callable[[Any], Any]) -> None:
        self._module, self._wrap = module, wrap

    def __getattr__(self, name: str) -> Any:
        return self._wrap(getattr(self._module, name))
