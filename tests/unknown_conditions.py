"""Conditions whose type includes `Unknown`, which is neither true nor false.

``python -m tests.unknown_conditions`` checks the packages with mypy's inferred types and lists
every such condition: ``if``, ``while``, ``not``, ``and``, ``or``, conditional expressions,
comprehensions, ``assert``, and the arguments of ``bool``, ``any``, ``all`` and ``filter``.
Write ``is not None`` or ``isinstance(answer, Unknown)`` there instead.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from mypy import build
from mypy.find_sources import create_source_list
from mypy.modulefinder import BuildSource
from mypy.nodes import Expression, MypyFile, Node
from mypy.options import Options
from mypy.types import Instance, TupleType, Type, UnionType, get_proper_type

UNKNOWN = "simplifier.unknown.Unknown"
PACKAGES = ("hlo", "simplifier", "indexing")

_Span = tuple[int, int, int | None, int | None]


def conditions_on_unknown(sources: list[BuildSource]) -> Iterator[str]:
    """Yield ``path:line`` of every condition in `sources` whose type includes `Unknown`."""
    options = _options()
    options.export_types = options.preserve_asts = True
    options.incremental = False
    options.ignore_missing_imports = True
    result = build.build(sources, options)
    for source in sources:
        file = result.files[source.module]
        types: dict[_Span, list[Type]] = {}
        for expression in _expressions(file):
            if expression in result.types:
                place = expression.line, expression.column
                span = *place, expression.end_line, expression.end_column
                types.setdefault(span, []).append(result.types[expression])
        tree = ast.parse(Path(file.path).read_text())
        tested = {
            node.lineno for node in _tested(tree) if any(map(may_be_unknown, _of(node, types)))
        }
        items = {
            node.lineno
            for node in _iterables(tree)
            for of in _of(node, types)
            if any(map(may_be_unknown, _arguments(of)))
        }
        for line in sorted(tested | items):
            yield f"{file.path}:{line}"


def _expressions(file: MypyFile) -> Iterator[Expression]:
    """The expressions of a file; mypy's visitors are compiled, so none can be derived here."""
    pending: list[object] = list(file.defs)
    seen: set[int] = set()
    while pending:
        node = pending.pop()
        if isinstance(node, (list, tuple)):
            pending.extend(node)
        elif isinstance(node, Node) and id(node) not in seen:
            seen.add(id(node))
            if isinstance(node, Expression):
                yield node
            names = [name for name in dir(node) if name[0] != "_" and name not in _REFERENCES]
            pending.extend(getattr(node, name, None) for name in names)


_REFERENCES = {"node", "info", "definition", "original_def", "type", "var", "mro", "names"}
"""Attributes that lead to other declarations."""


def _of(node: ast.expr, types: dict[_Span, list[Type]]) -> list[Type]:
    span = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
    return types.get(span, [])


def _tested(tree: ast.AST) -> Iterator[ast.expr]:
    """The expressions whose truth is tested."""
    for node in ast.walk(tree):
        match node:
            case ast.If(test=test) | ast.While(test=test) | ast.Assert(test=test):
                yield test
            case ast.IfExp(test=test) | ast.UnaryOp(op=ast.Not(), operand=test):
                yield test
            case ast.BoolOp(values=[*tested, _]):
                yield from tested
            case ast.comprehension(ifs=conditions):
                yield from conditions
            case ast.Call(func=ast.Name(id="bool"), args=[test]):
                yield test
            case ast.Call(func=ast.Name(id="any" | "all"), args=[ast.GeneratorExp(elt=test)]):
                yield test
    yield from _last_of_conditions(tree)


def _last_of_conditions(tree: ast.AST) -> Iterator[ast.expr]:
    """The last operands of the ``and`` and ``or`` whose truth is tested."""
    for node in ast.walk(tree):
        tests = [getattr(node, "test", None), *getattr(node, "ifs", ())]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            tests.append(node.operand)
        for test in tests:
            while isinstance(test, ast.BoolOp):
                test = test.values[-1]
                yield test


def _iterables(tree: ast.AST) -> Iterator[ast.expr]:
    """The iterables whose items are tested."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="any" | "all"), args=[items]):
                yield items
            case ast.Call(func=ast.Name(id="filter"), args=[ast.Constant(value=None), items]):
                yield items


def _arguments(of: Type) -> list[Type]:
    proper = get_proper_type(of)
    if isinstance(proper, TupleType):
        return list(proper.items)
    return list(proper.args) if isinstance(proper, Instance) else []


def may_be_unknown(of: Type) -> bool:
    """Return True if a value of a type may be an `Unknown`."""
    proper = get_proper_type(of)
    if isinstance(proper, UnionType):
        return any(map(may_be_unknown, proper.items))
    return isinstance(proper, Instance) and proper.type.has_base(UNKNOWN)


def _options() -> Options:
    options = Options()
    options.python_version = sys.version_info[:2]
    options.explicit_package_bases = options.namespace_packages = True
    options.mypy_path = [str(Path.cwd())]
    return options


def main() -> int:
    """Print the conditions in the packages; the exit status is 1 if there are any."""
    places = list(conditions_on_unknown(create_source_list([*PACKAGES], _options())))
    for place in places:
        sys.stderr.write(f"{place}: an Unknown is neither true nor false\n")
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main())
