"""Conditions whose type includes `Unknown`, which is neither true nor false.

``python -m tests.unknown_conditions`` takes mypy's inferred types of the packages and lists every
such condition: ``if``, ``while``, ``not``, ``and``, ``or``, ``assert``, conditional expressions,
guards, comprehensions, and the arguments of `bool`, `any`, `all`, `filter` and their relatives.
Write ``is not None`` or ``isinstance(answer, Unknown)`` there instead. A value of type `object`,
`Any` or of a type variable is not checked.

mypy alone does not report these: it accepts a truth value that never returns in unions.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from mypy import build
from mypy.main import process_options
from mypy.maptype import map_instance_to_supertype
from mypy.modulefinder import BuildSource
from mypy.nodes import (
    AssertStmt,
    CallExpr,
    ConditionalExpr,
    DictionaryComprehension,
    Expression,
    GeneratorExpr,
    IfStmt,
    ListComprehension,
    ListExpr,
    MatchStmt,
    MypyFile,
    NameExpr,
    Node,
    OpExpr,
    RefExpr,
    SetComprehension,
    SetExpr,
    TupleExpr,
    UnaryExpr,
    WhileStmt,
)
from mypy.options import Options
from mypy.types import FunctionLike, Instance, TupleType, Type, UnionType, get_proper_type

UNKNOWN = "simplifier.unknown.Unknown"
PACKAGES = ["hlo", "simplifier", "indexing"]
CACHE = Path(".mypy_cache/unknown_conditions")

_Types = dict[Expression, Type]


def conditions_on_unknown(sources: list[BuildSource], options: Options) -> Iterator[str]:
    """Yield ``path:line`` of the conditions on `Unknown` in sources that mypy checks anew."""
    options.export_types = options.preserve_asts = True
    result = build.build(sources, options)
    for source in sources:
        file = result.files.get(source.module)
        nodes = _nodes(file) if file is not None else ()
        for line in sorted({line for node in nodes for line in _lines(node, result.types)}):
            yield f"{source.path}:{line}"


def _nodes(file: MypyFile) -> Iterator[Node]:
    """The nodes of a file; mypy's visitors are compiled, so none can be derived here."""
    pending: list[object] = [file]
    while pending:
        node = pending.pop()
        if isinstance(node, (list, tuple)):
            pending.extend(node)
        elif isinstance(node, Node):
            yield node
            named: tuple[str, ...] = getattr(node, "__match_args__", ())
            pending.extend(getattr(node, name, None) for name in {*named, *_PARTS} - _REFERENCES)


_PARTS = {"items", "rvalue"}
"""Attributes with parts of a node that ``__match_args__`` misses in some classes."""

_REFERENCES = {"node", "info", "var", "variable"}
"""Attributes with declarations elsewhere."""


def _lines(node: Node, types: _Types) -> Iterator[int]:
    """The lines of the conditions of a node whose types include `Unknown`."""
    for test in _tested_expressions(node):
        if may_be_unknown(types.get(test)):
            yield test.line
    if isinstance(node, CallExpr) and isinstance(node.callee, RefExpr):
        if any(map(may_be_unknown, _tested_by_call(node, node.callee.fullname, types))):
            yield node.line


def _tested_expressions(node: Node) -> Sequence[Expression]:
    """The expressions whose truth a node tests."""
    match node:
        case IfStmt():
            return node.expr
        case WhileStmt() | AssertStmt() | UnaryExpr(op="not"):
            return [node.expr]
        case ConditionalExpr():
            return [node.cond]
        case OpExpr(op="and" | "or"):
            return [node.left]
        case MatchStmt():
            return [guard for guard in node.guards if guard is not None]
        case GeneratorExpr() | DictionaryComprehension():
            return [*chain.from_iterable(node.condlists)]
    return ()


def _tested_by_call(call: CallExpr, function: str, types: _Types) -> Iterable[Type | None]:
    """The types of the values whose truth a function tests."""
    match function.replace("_operator.", "operator."), call.args:
        case "builtins.bool" | "operator.truth" | "operator.not_", [tested]:
            return [types.get(tested)]
        case "builtins.any" | "builtins.all", [items]:
            return _item_types(items, types)
        case "builtins.map", [NameExpr(name="bool"), items]:
            return _item_types(items, types)
        case name, [NameExpr(name="None" | "bool"), items] if name in _FILTERS:
            return _item_types(items, types)
        case name, [test, _] if name in _FILTERS:
            return _returned_types(types.get(test))
    return ()


_FILTERS = {
    "builtins.filter",
    "itertools.filterfalse",
    "itertools.takewhile",
    "itertools.dropwhile",
}


def _item_types(items: Expression, types: _Types) -> Iterable[Type | None]:
    """The types of the items of an iterable; that of the iterable itself may have `object`."""
    match items:
        case GeneratorExpr():
            return [types.get(items.left_expr)]
        case ListComprehension() | SetComprehension():
            return [types.get(items.generator.left_expr)]
        case ListExpr() | SetExpr() | TupleExpr():
            return map(types.get, items.items)
        case CallExpr(callee=RefExpr(fullname="builtins.map"), args=[function, *_]):
            return _returned_types(types.get(function))
    return _declared_items(types.get(items))


def _declared_items(of: Type | None) -> Iterable[Type]:
    proper = get_proper_type(of)
    if isinstance(proper, UnionType):
        return chain.from_iterable(map(_declared_items, proper.items))
    if isinstance(proper, TupleType):
        return proper.items
    if isinstance(proper, Instance):
        for base in proper.type.mro:
            if base.fullname == "typing.Iterable":
                return map_instance_to_supertype(proper, base).args
    return ()


def _returned_types(function: Type | None) -> list[Type]:
    """The types that a function may return."""
    proper = get_proper_type(function)
    return [item.ret_type for item in proper.items] if isinstance(proper, FunctionLike) else []


def may_be_unknown(of: Type | None) -> bool:
    """Return True if a value of a type may have the truth value of `Unknown`, an error."""
    proper = get_proper_type(of)
    if isinstance(proper, UnionType):
        return any(map(may_be_unknown, proper.items))
    truth = proper.type.get_method("__bool__") if isinstance(proper, Instance) else None
    return truth is not None and truth.info.fullname == UNKNOWN


def main() -> int:
    """Print the conditions in the packages; the exit status is 1 if there are any.

    mypy skips modules that did not change since the last run without findings.
    """
    program = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    passed = CACHE / "passed"
    if not passed.exists() or passed.read_text() != program:
        shutil.rmtree(CACHE, ignore_errors=True)
    passed.unlink(missing_ok=True)
    sources, options = process_options(PACKAGES)
    options.cache_dir = str(CACHE)
    places = list(conditions_on_unknown(sources, options))
    for place in places:
        sys.stderr.write(f"{place}: an Unknown is neither true nor false\n")
    if not places:
        passed.write_text(program)
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main())
