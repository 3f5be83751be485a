"""Names and docstrings keep to the rules of CONTRIBUTING: one meaning a name, plain openings."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("hlo", "simplifier", "indexing")
SHARED_NAMES = {"Gather"}  # the op, and the public form of one with an axis
EMPTY_NAMES = {"found", "thing", "stuff"}  # a binding is named after its value
OPENINGS = ("What ", "Whether ", "Says ", "Tells ", "Who ", "How many ", "How often ")


@cache
def nodes(folder: str) -> list[tuple[Path, ast.AST]]:
    """Every node of the modules of a folder."""
    modules = sorted((ROOT / folder).rglob("*.py"))
    trees = [(path.relative_to(ROOT), ast.parse(path.read_text())) for path in modules]
    return [(path, node) for path, tree in trees for node in ast.walk(tree)]


def all_nodes(*folders: str) -> Iterator[tuple[Path, ast.AST]]:
    """Every node of the modules of these folders."""
    return chain.from_iterable(map(nodes, folders))


def test_a_class_name_has_one_meaning() -> None:
    classes: dict[str, list[Path]] = defaultdict(list)
    for path, node in all_nodes(*PACKAGES):
        if isinstance(node, ast.ClassDef):
            classes[node.name].append(path)
    shared = {name: paths for name, paths in classes.items() if len(paths) > 1}
    assert shared.keys() == SHARED_NAMES, shared


def test_a_binding_is_named_after_its_value() -> None:
    empty = []
    for path, node in all_nodes(*PACKAGES, "tests", "benchmarks"):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name in EMPTY_NAMES:
                empty.append(f"{path}:{node.lineno}: {name}")
    assert not empty


def test_a_docstring_opens_with_a_verb_or_a_noun() -> None:
    riddles = []
    for path, node in all_nodes(*PACKAGES, "tests", "benchmarks"):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node) or ""
            if text.startswith(OPENINGS):
                riddles.append(f"{path}: {text.splitlines()[0]}")
    assert not riddles
