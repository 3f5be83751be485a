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
PARTICIPLES = {
    *("begun", "bound", "broken", "built", "chosen", "drawn", "found", "given", "grown", "held"),
    *("hidden", "kept", "known", "laid", "left", "lost", "made", "met", "seen", "sent", "shown"),
    *("taken", "told", "written"),
}
NO_PARTICIPLES = {"embed", "exceed", "feed", "infeed", "need", "outfeed", "pred", "proceed", "seed"}
LINKS = {
    *("again", "apart", "at", "by", "for", "from", "in", "into", "of", "on", "once", "out", "over"),
    *("through", "to", "together", "up", "with"),
}
NAMED_BY_PARTICIPLES = {
    "checked": "a decorator, which describes a function",
    "configured": "describes a field of a class",
    "declared": "describes a field of a class",
    "flattened": "a public name",
    "grouped": "a public name",
    "grouped_through": "a public name",
    "memoised": "a decorator, which describes a function",
    "sampled": "describes a table of cases",
}
NAMING = {"cache", "checked", "contextmanager", "lru_cache", "overload", "staticmethod"}
"""Decorators after which the name of a function is that of a call."""
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


def is_bare_participle(name: str) -> bool:
    """Return True for names such as `_merged` or `taken_from`."""
    first, *more = name.strip("_").split("_")
    return is_participle(first) and all(is_participle(word) or word in LINKS for word in more)


def is_participle(word: str) -> bool:
    return (word.endswith("ed") and word not in NO_PARTICIPLES) or word in PARTICIPLES


def is_registered(function: ast.FunctionDef) -> bool:
    """Return True if a decorator makes the name data, such as that of a fixture or a program."""
    decorators = [ast.unparse(each).partition("(")[0] for each in function.decorator_list]
    return any(each.rpartition(".")[2] not in NAMING for each in decorators)


def test_a_function_is_named_after_its_action_or_its_result() -> None:
    """Not tested: public methods, which read as ``variable.renamed("i")``."""
    bare, methods = [], set[ast.AST]()
    for path, node in all_nodes(*PACKAGES, "tests", "benchmarks", "docs"):
        if isinstance(node, ast.ClassDef):
            methods |= {each for each in node.body if is_public(each)}
        if isinstance(node, ast.FunctionDef) and is_bare_participle(node.name):
            if node.name not in NAMED_BY_PARTICIPLES and not is_registered(node):
                bare.append((path, node))
    assert not [f"{path}:{node.lineno}: {node.name}" for path, node in bare if node not in methods]


def test_a_text_and_a_name_say_of_what_they_are() -> None:
    empty = [
        f"{path}:{node.lineno}: {node.name}"
        for path, node in all_nodes(*PACKAGES, "tests", "benchmarks")
        if isinstance(node, ast.FunctionDef) and node.name in ("_text", "_name")
    ]
    assert not empty


def is_public(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
