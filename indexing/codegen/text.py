"""Generated Python text: lines, names, indices, numbers and types."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from indexing.codegen.numpy import helpers
from indexing.ops import numerics
from simplifier.atoms import Variable
from simplifier.linear import Expr

MAX_LOOPS: Final = 9
"""Maximum number of nested loops in one group: Python compiles at most 20 nested blocks, and a
reduction has two groups."""

MAX_REPEATED: Final = 8
"""Maximum number of nested loops over stages: each group in them has fewer loops."""

_LOOP_VARIABLE: Final = re.compile(r"(d|s|u|i|rt|i_[dsu])\d+[a-h]?_*|total\d*")
LIBRARIES: Final[dict[str, Any]] = {"np": np, "ml_dtypes": ml_dtypes, "numerics": numerics}
"""The modules that generated code uses, by name."""

HELPERS: Final[dict[str, Any]] = {
    "clamp": numerics.clamp,
    "contract": helpers.contract,
    "put": helpers.put,
    "window": helpers.window,
}
"""The functions of this project that generated code calls, by name."""

BUILTINS: Final = ("abs", "complex", "float", "int", "len", "max", "min", "range", "slice")
"""The functions of Python that generated code may call."""

RESERVED: Final = frozenset(
    [*LIBRARIES, *HELPERS, *BUILTINS, *keyword.kwlist, *keyword.softkwlist, "out"]
)
"""Names that no array or computation has in generated code."""

_DUNDER: Final = re.compile(r"__\w*__")  # the namespace of a module uses some of them


def identifier(name: str) -> str:
    """Convert `name` to a Python identifier that is neither reserved nor a loop variable.

    >>> identifier("fusion.3"), identifier("lambda"), identifier("0x"), identifier("d0")
    ('fusion_3', 'lambda_', '_0x', '_d0')
    """
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    if _LOOP_VARIABLE.fullmatch(word):
        return f"_{word}"
    if word in RESERVED or _DUNDER.fullmatch(word):
        return f"{word}_"
    return f"_{word}" if word[:1].isdigit() or not word else word


def dtype_text(dtype: np.dtype[Any]) -> str:
    """Return the qualified name of a type: ``np.float32``, ``ml_dtypes.bfloat16``."""
    if dtype.kind == "b":
        return "np.bool_"
    return f"{'ml_dtypes' if hasattr(ml_dtypes, dtype.name) else 'np'}.{dtype.name}"


def scalar_text(value: NDArray[Any]) -> str:
    """Return a scalar as a Python expression.

    >>> scalar_text(np.asarray(0.5, np.float32)), scalar_text(np.asarray(-np.inf, np.float16))
    ('np.float32(0.5)', 'np.float16(-np.inf)')
    """
    if value.dtype.kind == "b":
        return f"np.{bool(value)}_"
    number = value.item()
    if isinstance(number, complex):
        text = f"complex({_float_text(number.real)}, {_float_text(number.imag)})"
    elif value.dtype.kind in "iu" or numerics.is_integer(value):
        text = str(int(number))
    else:
        text = _float_text(float(number))
    return f"{dtype_text(value.dtype)}({text})"


def _float_text(number: float) -> str:
    if number != number:
        return "np.nan" if not np.signbit(number) else "-np.nan"
    if number in (np.inf, -np.inf):
        return "np.inf" if number > 0 else "-np.inf"
    return repr(number)


class Lines:
    """A builder of indented lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.repeats = 0  # the loops over stages around the next line
        self._depth = 0

    def add(self, line: str) -> None:
        """Append a line."""
        self.lines.append("    " * self._depth + line)

    @contextmanager
    def indent_below(self, line: str) -> Iterator[None]:
        """Append `line`, which ends with a colon, and indent the lines added in the context."""
        self.add(line)
        self._depth += 1
        yield
        self._depth -= 1

    @contextmanager
    def loops(self, variables: Iterable[Variable]) -> Iterator[None]:
        """Open loops over variables, outermost first; skip variables with a single value.

        More than `MAX_LOOPS` loops become one loop over all indices, in the same order; within
        loops over stages, fewer do.
        """
        varying = [v for v in variables if v.lower < v.upper]
        sizes = [str(v.upper + 1) for v in varying]
        headers = [f"for {v.name} in range({n}):" for v, n in zip(varying, sizes, strict=True)]
        if len(varying) > MAX_LOOPS - (self.repeats + 1) // 2:
            names = ", ".join(v.name for v in varying)
            headers = [f"for {names} in np.ndindex({', '.join(sizes)}):"]
        with ExitStack() as stack:
            for header in headers:
                stack.enter_context(self.indent_below(header))
            yield

    def delete(self, names: set[str]) -> None:
        """Insert ``del`` after the last use of each of `names`, except after the last line.

        A use inside a loop extends to the end of the loop.
        """
        last: dict[str, int] = {}
        for k in range(len(self.lines) - 1, -1, -1):
            for name in _NAME.findall(self.lines[k]):
                if name in names and name not in last:
                    last[name] = _end_of_block(self.lines, k, "    " * self._depth)
        dead: dict[int, list[str]] = {}
        for name, k in last.items():
            dead.setdefault(k, []).append(name)
        for k in sorted(dead, reverse=True):
            if k < len(self.lines) - 1:
                self.lines.insert(k + 1, f"{'    ' * self._depth}del {', '.join(sorted(dead[k]))}")

    def __str__(self) -> str:
        return "\n".join(self.lines)


def _end_of_block(lines: list[str], k: int, margin: str) -> int:
    """Return the last line of the block around line `k`; `k` if it is no deeper than `margin`."""
    while (
        k + 1 < len(lines)
        and lines[k].startswith(margin + " ")
        and lines[k + 1].startswith(margin + " ")
    ):
        k += 1
    return k


_NAME = re.compile(r"[A-Za-z_]\w*")


class Names:
    """A generator of unique names: ``x``, ``x_2``, …

    >>> names = Names(["x"])
    >>> names.new("x"), names.new("x"), names.new("y")
    ('x_2', 'x_3', 'y')
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = dict.fromkeys(taken, 1)

    def new(self, stem: str) -> str:
        """Return `stem`, with a number if it is taken."""
        name = stem
        while name in self._taken:
            self._taken[stem] += 1
            name = f"{stem}_{self._taken[stem]}"
        self._taken[name] = 1
        return name


def index_text(expr: Expr) -> str:
    """Return an index as a Python expression.

    >>> from simplifier.atoms import Variable
    >>> print(index_text(Variable("d0", 0, 31) // 8 + Variable("d1", 0, 31) % 4))
    d0 // 8 + d1 % 4
    """
    return str(expr).replace(" floordiv ", " // ").replace(" mod ", " % ")


def tuple_text(items: Sequence[object]) -> str:
    """Return a Python tuple of expressions.

    >>> tuple_text([1]), tuple_text([])
    ('(1,)', '()')
    """
    inside = ", ".join(map(str, items))
    return f"({inside},)" if len(items) == 1 else f"({inside})"
