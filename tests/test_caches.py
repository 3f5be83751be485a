"""Caches of the process are small, so that long sessions need constant memory.

`tests.growth.test_session` measures it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAX_ENTRIES = 1 << 12
"""More than the distinct ops and shapes of a module with 20,000 instructions."""

UNBOUNDED = {
    "hlo/ops/op.py: known_attributes",  # by class of ops
    "hlo/modules/bind.py: _sources",  # by class of ops
    "indexing/ops/base.py: _computations",  # by class of ops
    "indexing/views/report_page/page_html.py: _asset",  # by file of the package
}
MEMOISING = {"lru_cache", "trace.memoised", "memoised_maps"}
OF_INSTANCES = {"indexing/sharding/planning/costs.py"}  # discarded with them


SOURCES = [
    path for room in ("hlo", "indexing", "simplifier") for path in (ROOT / room).rglob("*.py")
]


def caches() -> Iterator[tuple[str, int | None]]:
    """Yield the place and the size of each cache of the process; None without a limit.

    The cache of a function without arguments has one entry; that of a function inside of another
    one ends with its call.
    """
    for path in SOURCES:
        text, place = path.read_text("utf-8"), path.relative_to(ROOT).as_posix()
        if not any(word in text for word in ("cache", "memoised", "Memo[")):
            continue
        tree = ast.parse(text)
        inner = {
            each
            for outer in ast.walk(tree)
            if isinstance(outer, ast.FunctionDef)
            for each in ast.walk(outer)
            if each is not outer
        }
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef() if node in inner:
                    continue
                case ast.FunctionDef(args=ast.arguments(args=[_, *_]), decorator_list=decorators):
                    names = {each.id for each in decorators if isinstance(each, ast.Name)}
                    if names & {"cache", "lru_cache"}:
                        yield f"{place}: {node.name}", None
                case ast.Call(args=[size]) | ast.Call(keywords=[ast.keyword(value=size)]):
                    name, number = ast.unparse(node.func), ast.unparse(size)
                    is_cache = name in MEMOISING or name.startswith("Memo[")
                    if is_cache and number != "size":
                        yield place, eval(number)


def test_caches_are_small() -> None:
    sizes = dict(caches())
    assert len(sizes) > 30
    assert {place for place, size in caches() if size is None} == UNBOUNDED
    large = {place for place, size in caches() if size is not None and size > MAX_ENTRIES}
    assert large == OF_INSTANCES
