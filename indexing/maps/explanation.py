"""Explanations of maps: the simplification laws that led to each map (``maps --explain``).

Inside `explain_steps`, composition and simplification bypass the memoised maps and record their
steps with the result.  Laws applied while an op builds its own maps are not recorded: those maps
are built once per process.

>>> from indexing.maps.indexing_map import IndexingMap
>>> double = IndexingMap.over((4,), lambda d: [d[0] * 2])
>>> with explain_steps():
...     composite = composition(double, IndexingMap.over((8,), lambda d: [d[0] // 2]))
...     print(*steps_of(composite), sep="\\n")
fold a constant floor: (d0 * 2) floordiv 2 = d0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from indexing.maps.compose import compose
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.simplify import Rewrite, simplify_map, trace_steps
from simplifier.trace import Applied, record_laws

_KEPT: Final = ContextVar[dict[IndexingMap, tuple[str, ...]] | None]("_KEPT", default=None)


@contextmanager
def explain_steps() -> Iterator[None]:
    """Record steps inside the block; discard them at its end."""
    token = _KEPT.set({})
    try:
        yield
    finally:
        _KEPT.reset(token)


def is_explaining() -> bool:
    """Return True inside a block of `explain_steps`."""
    return _KEPT.get() is not None


def steps_of(indexing_map: IndexingMap) -> tuple[str, ...]:
    """The steps that led to `indexing_map`, one line each; ``()`` outside of `explain_steps`."""
    kept = _KEPT.get()
    return kept.get(indexing_map, ()) if kept else ()


def composition(first: IndexingMap, second: IndexingMap) -> IndexingMap:
    """Return ``first.then(second).simplify()``; record its steps after those of the operands."""
    with record_laws() as laws:
        composite = compose(first, second)
    before = (*steps_of(first), *steps_of(second), *map(step_text, laws))
    return _keep_steps(composite, before)


def simplification(indexing_map: IndexingMap) -> IndexingMap:
    """Return ``indexing_map.simplify()``; record its steps."""
    return _keep_steps(indexing_map, steps_of(indexing_map))


def _keep_steps(m: IndexingMap, before: Iterable[str]) -> IndexingMap:
    steps = dict.fromkeys([*before, *map(step_text, trace_steps(m))])
    simple = simplify_map(m)
    kept = _KEPT.get()
    if kept is not None:
        kept[simple] = tuple(steps)
    return simple


def step_text(step: Rewrite | Applied) -> str:
    """One line with the law and its result; for a law also the two sides it relates."""
    return str(step) if isinstance(step, Applied) else f"{step.law}: {step.after}"
