"""Explanations of maps: the simplification laws that led to each map (``maps --explain``).

Inside `explained`, composition and simplification bypass the memoised maps and record their steps
with the result.  Laws applied while an op builds its own maps are not recorded: those maps are
built once per process.

>>> from indexing.maps.indexing_map import IndexingMap
>>> double = IndexingMap.over((4,), lambda d: [d[0] * 2])
>>> with explained():
...     composite = composition(double, IndexingMap.over((8,), lambda d: [d[0] // 2]))
...     print(*steps_of(composite), sep="\\n")
fold a constant floor: (d0 * 2) floordiv 2 = d0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from indexing.maps.compose import composed
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.simplify import Rewrite, simplified, traced
from simplifier.trace import Applied, recorded

_KEPT: Final = ContextVar[dict[IndexingMap, tuple[str, ...]] | None]("_KEPT", default=None)


@contextmanager
def explained() -> Iterator[None]:
    """Record steps inside the block; discard them at its end."""
    token = _KEPT.set({})
    try:
        yield
    finally:
        _KEPT.reset(token)


def is_explaining() -> bool:
    """Return True inside a block of `explained`."""
    return _KEPT.get() is not None


def steps_of(indexing_map: IndexingMap) -> tuple[str, ...]:
    """The steps that led to `indexing_map`, one line each; ``()`` outside of `explained`."""
    kept = _KEPT.get()
    return kept.get(indexing_map, ()) if kept else ()


def composition(first: IndexingMap, second: IndexingMap) -> IndexingMap:
    """Return ``first.then(second).simplify()``; record its steps after those of the operands."""
    with recorded() as laws:
        composite = composed(first, second)
    before = (*steps_of(first), *steps_of(second), *map(step_text, laws))
    return _kept(composite, before)


def simplification(indexing_map: IndexingMap) -> IndexingMap:
    """Return ``indexing_map.simplify()``; record its steps."""
    return _kept(indexing_map, steps_of(indexing_map))


def _kept(m: IndexingMap, before: Iterable[str]) -> IndexingMap:
    steps = dict.fromkeys([*before, *map(step_text, traced(m))])
    simple = simplified(m)
    kept = _KEPT.get()
    if kept is not None:
        kept[simple] = tuple(steps)
    return simple


def step_text(step: Rewrite | Applied) -> str:
    """One line with the law and its result; for a law also the two sides it relates."""
    return str(step) if isinstance(step, Applied) else f"{step.law}: {step.after}"
