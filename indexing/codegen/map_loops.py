"""Loop nests that visit the pairs of a map, as Python and C source."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Final

from hlo.arguments import brief_text, checked
from indexing.codegen.sources import function_from
from indexing.codegen.text import Lines, Names, index_text, tuple_text
from indexing.maps.displayed import Displayed
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.printing import require_exact_text
from indexing.maps.regions.selection import rename_variables
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact import number_type
from simplifier.linear import Expr
from simplifier.semiaffine import divisors_with_zero

MAX_NESTED: Final = 16
"""Maximum number of nested Python loops; CPython 3.11 compiles at most 20 nested blocks."""

_C_KEYWORDS: Final = """
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while
"""
_C_NAMES: Final = (
    "main",
    "min",
    "max",
    "floordiv",
    "mod",
    "point",
    "element",
    "data",
    "f",
    "int64_t",
)
_C_WORDS: Final = frozenset([*_C_KEYWORDS.split(), *_C_NAMES])
_TEXT_WORDS: Final = frozenset({*keyword.kwlist, "mod", "floordiv", "min", "max"})
"""Words of the text of expressions, which `index_text` and Python's parser read."""

_PYTHON_WORDS: Final = _TEXT_WORDS | {"range", "product"}

_C_HELPERS: Final = {
    "floordiv": """\
static int64_t floordiv(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
""",
    "mod": """\
static int64_t mod(int64_t a, int64_t b) {
    return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
}
""",
    "min": """\
static int64_t min(int64_t a, int64_t b) {
    return a < b ? a : b;
}
""",
    "max": """\
static int64_t max(int64_t a, int64_t b) {
    return a < b ? b : a;
}
""",
}


@dataclass(frozen=True, repr=False)
class MapLoopNest(Displayed):
    """The loops over the domain of a map, which visit its pairs in lexicographic order.

    Attributes:
        map: the map.
        source: the Python source: a generator function with a parameter for each runtime variable.

    >>> from indexing import IndexingMap
    >>> nest = IndexingMap.over((2,), lambda d, s: [d[0] * 2 + s[0]], ranges=(2,)).loop_nest()
    >>> print(nest)
    def pairs():
        for d0 in range(2):
            for s0 in range(2):
                yield (d0,), (d0 * 2 + s0,)
    >>> list(nest())
    [((0,), (0,)), ((0,), (1,)), ((1,), (2,)), ((1,), (3,))]
    """

    map: IndexingMap
    source: str

    @cached_property
    def _function(self) -> Callable[..., Iterator[tuple[tuple[int, ...], tuple[int, ...]]]]:
        pairs: Callable[..., Iterator[tuple[tuple[int, ...], tuple[int, ...]]]]
        pairs = function_from(self.source, "pairs", "loops of a map", {})
        return pairs

    def __call__(self, *runtime: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Yield the pairs of a point and an element, once for each value of range variables.

        Args:
            runtime: the values of the runtime variables.
        """
        return self._function(*runtime)

    def __str__(self) -> str:
        return self.source.rstrip()

    def __repr__(self) -> str:
        return f"<loops of {brief_text(str(self.map))}>"


def loop_nest_of_map(m: IndexingMap) -> MapLoopNest:
    """Return the loops over the domain of a map; see `IndexingMap.loop_nest`."""
    return MapLoopNest(m, to_python(m))


@checked
def to_python(m: IndexingMap, name: str = "pairs") -> str:
    """Return the source of a generator function that yields the pairs of a map.

    See `IndexingMap.to_python`.

    Raises:
        ValueError: `name` is not an identifier.
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"`name` must be an identifier of Python, got {name!r}")
    require_exact_text(m)
    m = _with_identifiers(m, {name, *_PYTHON_WORDS})
    lines = Lines()
    loops = (*m.dims, *m.ranges)
    if len(loops) > MAX_NESTED:
        lines.add("from itertools import product")
        lines.add("")
    with lines.indent_below(f"def {name}({', '.join([rt.name for rt in m.runtime])}):"):
        guards = _guards(m, merged=len(loops) > MAX_NESTED)
        result = f"{tuple_text([d.name for d in m.dims])}, {tuple_text(_python(m.results))}"
        with ExitStack() as stack:
            _python_loops(lines, stack, loops, guards)
            lines.add(f"yield {result}")
    return f"{lines}\n"


def _python_loops(
    lines: Lines, stack: ExitStack, loops: tuple[Variable, ...], guards: list[list[_Guard]]
) -> None:
    if guards[0]:
        stack.enter_context(lines.indent_below(f"if {_python_guards(guards[0])}:"))
    if len(loops) > MAX_NESTED:
        ranges = ", ".join([_python_range(v) for v in loops])
        names = ", ".join([v.name for v in loops])
        stack.enter_context(lines.indent_below(f"for {names} in product({ranges}):"))
        if guards[-1]:
            stack.enter_context(lines.indent_below(f"if {_python_guards(guards[-1])}:"))
        return
    for v, own in zip(loops, guards[1:], strict=True):
        stack.enter_context(lines.indent_below(f"for {v.name} in {_python_range(v)}:"))
        if own:
            stack.enter_context(lines.indent_below(f"if {_python_guards(own)}:"))


def _python_range(v: Variable) -> str:
    return f"range({f'{v.lower}, ' if v.lower else ''}{v.upper + 1})"


def _python(exprs: Iterable[Expr]) -> list[str]:
    return list(map(index_text, exprs))


def _python_text(expr: Expr | str) -> str:
    return expr if isinstance(expr, str) else index_text(expr)


def _python_guards(guards: Iterable[_Guard]) -> str:
    return " and ".join([guard.text(_python_text(guard.expr), " <= ") for guard in guards])


# ---------------------------------------------------------------- C


@checked
def to_c(m: IndexingMap, name: str = "visit") -> str:
    """Return the source of a C function that calls a function for each pair of a map.

    See `IndexingMap.to_c`.

    Raises:
        ValueError: `name` is not an identifier of C, or numbers may exceed 64 bits.
    """
    if not (name.isidentifier() and name.isascii()) or name in _C_WORDS:
        raise ValueError(
            f"`name` must be an identifier of C that the function does not use itself, got {name!r}"
        )
    require_exact_text(m)
    exprs = (*m.results, *[c.expr for c in m.constraints], *[v.as_expr() for v in m.variables])
    if all(expr.is_affine for expr in exprs) and number_type(exprs) is object:
        raise ValueError(f"numbers of the map exceed 64 bits: {m}")
    m = _with_identifiers(m, {name, *_C_WORDS, *_TEXT_WORDS})
    lines = _CLines()
    runtime = "".join([f"int64_t {rt.name}, " for rt in m.runtime])
    callback = "void (*f)(const int64_t *point, const int64_t *element, void *data)"
    with lines.block(f"void {name}({runtime}{callback}, void *data)"), ExitStack() as stack:
        first, *guards = _guards(m)
        if first:
            stack.enter_context(lines.block(f"if ({_c_guards(first)})"))
        for v, own in zip((*m.dims, *m.ranges), guards, strict=True):
            head = f"for (int64_t {v.name} = {v.lower}; {v.name} <= {v.upper}; ++{v.name})"
            stack.enter_context(lines.block(head))
            if own:
                stack.enter_context(lines.block(f"if ({_c_guards(own)})"))
        lines.add(_c_array("point", [d.name for d in m.dims]))
        lines.add(_c_array("element", [_c(expr) for expr in m.results]))
        lines.add("f(point, element, data);")
    return _with_helpers(str(lines))


def _with_helpers(function: str) -> str:
    """The source with the functions that the body of `function` calls."""
    body = function.partition("\n")[2]
    helpers = [text for word, text in _C_HELPERS.items() if f"{word}(" in body]
    return "\n".join(["#include <stdint.h>\n", *helpers, f"{function}\n"])


class _CLines(Lines):
    """Lines with blocks in braces."""

    def block(self, head: str) -> Any:
        """Append `head` and the braces around the lines added in the context."""
        stack = ExitStack()
        stack.callback(lambda: self.add("}"))
        stack.enter_context(self.indent_below(f"{head} {{"))
        return stack


def _c_array(name: str, values: list[str]) -> str:
    return f"const int64_t {name}[{max(1, len(values))}] = {{{', '.join(values) or '0'}}};"


def _c_guards(guards: Iterable[_Guard]) -> str:
    return " && ".join([guard.text(_c(guard.expr), " && ") for guard in guards])


def _c(expr: Expr | str) -> str:
    """The expression in C; the text of expressions is Python's, so Python's parser reads it."""
    return _c_of(ast.parse(_python_text(expr), mode="eval").body)


def _c_of(node: ast.expr) -> str:
    match node:
        case ast.Name(name):
            return name
        case ast.Constant(int(value)):
            return f"INT64_C({value})" if abs(value) >= 1 << 31 else str(value)
        case ast.UnaryOp(ast.USub(), operand):
            return f"-{_c_factor(operand)}"
        case ast.BinOp(left, ast.FloorDiv(), right):
            return f"floordiv({_c_of(left)}, {_c_of(right)})"
        case ast.BinOp(left, ast.Mod(), right):
            return f"mod({_c_of(left)}, {_c_of(right)})"
        case ast.BinOp(left, ast.Mult(), right):
            return f"{_c_factor(left)} * {_c_factor(right)}"
        case ast.BinOp(left, ast.Add(), right):
            return f"{_c_of(left)} + {_c_of(right)}"
        case ast.BinOp(left, ast.Sub(), right):
            return f"{_c_of(left)} - {_c_factor(right)}"
        case ast.Call(ast.Name(function), arguments):
            return reduce(lambda a, b: f"{function}({a}, {b})", map(_c_of, arguments))
    raise AssertionError(f"no index expression: {ast.dump(node)}")


def _c_factor(node: ast.expr) -> str:
    """The expression in parentheses if it is a sum, or the negative of one."""
    is_sum = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)
    return f"({_c_of(node)})" if is_sum or isinstance(node, ast.UnaryOp) else _c_of(node)


# ---------------------------------------------------------------- guards and names


@dataclass(frozen=True)
class _Guard:
    """The condition ``lower <= expr <= upper``, or ``expr != 0`` for a divisor.

    The expression is a name for a runtime variable: the expression of a single value is a constant.
    """

    expr: Expr | str
    lower: int | None
    upper: int | None
    is_divisor: bool = False

    def text(self, code: str, join: str) -> str:
        """The condition; `join` is between the sides of an interval: " <= " or a conjunction."""
        if self.is_divisor:
            return f"{code} != 0"
        if self.lower == self.upper:
            return f"{code} == {self.lower}"
        if self.upper is None:
            return f"{code} >= {self.lower}"
        if self.lower is None:
            return f"{code} <= {self.upper}"
        if join == " <= ":
            return f"{self.lower} <= {code} <= {self.upper}"
        return f"{code} >= {self.lower} && {code} <= {self.upper}"


def _guards(m: IndexingMap, merged: bool = False) -> list[list[_Guard]]:
    """The conditions before the loops, and in each loop, as soon as all variables have values.

    With `merged`, all conditions that need a loop variable are in the last loop.
    """
    loops = (*m.dims, *m.ranges)
    depth = {v: k + 1 for k, v in enumerate(loops)}
    guards: list[list[_Guard]] = [[] for _ in range(len(loops) + 1)]
    exprs = (*m.results, *[c.expr for c in m.constraints])
    own = [_Guard(divisor, None, None, is_divisor=True) for divisor in divisors_with_zero(exprs)]
    own += [_Guard(rt.name, *rt.variable.bounds) for rt in m.runtime]
    own += [guard for c in m.constraints if (guard := _needed_guard(c)) is not None]
    for guard in own:
        used = () if isinstance(guard.expr, str) else guard.expr.variables()
        place = max((depth.get(v, 0) for v in used), default=0)
        guards[-1 if merged and place else place].append(guard)
    return guards


def _needed_guard(c: Constraint) -> _Guard | None:
    """The sides of a constraint that the bounds of its variables do not imply."""
    low, high = c.expr.bounds
    lower = c.lower if low < c.lower or c.lower == c.upper else None
    upper = c.upper if high > c.upper or c.lower == c.upper else None
    return None if lower is upper is None else _Guard(c.expr, lower, upper)


def _with_identifiers(m: IndexingMap, taken: Iterable[str]) -> IndexingMap:
    """The map with names that are identifiers, and none of `taken`."""
    names = Names(taken)
    new: dict[Variable, str] = {}
    for v in m.variables:
        stem = "".join([c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in v.name])
        new[v] = names.new(stem if stem[:1].isalpha() or stem[:1] == "_" else f"_{stem}")
    return rename_variables(m, new)
