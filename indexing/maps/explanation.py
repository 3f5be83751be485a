"""Why maps look as they do: the laws that led to each, for those who ask before they are made.

While `explained` runs, maps are composed and simplified step by step, whatever is remembered of
them, and the steps are kept with the result.  Laws that ops apply to their own maps are not among
them: those maps are made once a process.

>>> from indexing.maps.indexing_map import IndexingMap
>>> double = IndexingMap.over((4,), lambda d: [d[0] * 2])
>>> with explained():
...     whole = composition(double, IndexingMap.over((8,), lambda d: [d[0] // 2]))
...     print(*steps_of(whole), sep="\\n")
law 2 (the rest stays inside one multiple): (d0 * 2) floordiv 2 = d0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from indexing.maps.compose import composed
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.simplify import Rewrite, simplified, traced
from simplifier.trace import Applied, recorded

_KEPT: Final[list[dict[IndexingMap, tuple[str, ...]]]] = []


@contextmanager
def explained() -> Iterator[None]:
    """Steps are kept inside; they are forgotten at the end."""
    _KEPT.append({})
    try:
        yield
    finally:
        _KEPT.pop()


def is_explaining() -> bool:
    """Steps are kept now."""
    return bool(_KEPT)


def steps_of(found: IndexingMap) -> tuple[str, ...]:
    """The steps that led to `found`, one a line; none where none are kept."""
    return _KEPT[-1].get(found, ()) if _KEPT else ()


def composition(first: IndexingMap, second: IndexingMap) -> IndexingMap:
    """``first.then(second)`` in its simplest form; its steps are kept with those of the two."""
    with recorded() as laws:
        whole = composed(first, second)
    before = (*steps_of(first), *steps_of(second), *map(step_text, laws))
    return _kept(whole, before)


def simplification(found: IndexingMap) -> IndexingMap:
    """``found.simplify()``; its steps are kept."""
    return _kept(found, steps_of(found))


def _kept(found: IndexingMap, before: Iterable[str]) -> IndexingMap:
    steps = dict.fromkeys([*before, *map(step_text, traced(found))])
    simple = simplified(found)
    if _KEPT:
        _KEPT[-1][simple] = tuple(steps)
    return simple


def step_text(step: Rewrite | Applied) -> str:
    """One line: which law, and what it made; of an expression also what it was."""
    before = f"{step.before} = " if isinstance(step, Applied) else ""
    return f"{step.law}: {before}{step.after}"
