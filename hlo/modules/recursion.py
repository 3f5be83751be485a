"""Recursion over nested calls without Python's limit on the depth of its own calls.

Modules may nest computations thousands deep. Analyses of computations use `bottom_up`; algorithms
that need the result of an inner call halfway are generators, run by `run_recursive`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable
from functools import partial
from typing import Any, TypeAlias, TypeVar

from hlo.modules.module import Computation, Module

Result = TypeVar("Result")
Recursive: TypeAlias = "Generator[Recursive[Any], Any, Result]"
"""A generator that yields inner generators, receives their results, and returns its own."""


def run_recursive(outermost: Recursive[Result]) -> Result:
    """Run a generator that yields a generator for each inner call, and return its result.

    >>> def depth(n):
    ...     return 0 if n == 0 else 1 + (yield depth(n - 1))
    >>> run_recursive(depth(100_000))
    100000
    """
    callers: list[Recursive[Any]] = []
    running: Recursive[Any] = outermost
    value: Any = None
    while True:
        try:
            called = running.send(value)
        except StopIteration as end:
            value = end.value
            if not callers:
                break
            running = callers.pop()
        else:
            callers.append(running)
            running, value = called, None
    result: Result = value
    return result


def callees_in(computation: Computation) -> Iterable[Computation]:
    """Yield the computations that the instructions of a computation call."""
    return (called for i in computation.instructions for called in i.called_computations)


def bottom_up(
    computation: Computation,
    key: Hashable,
    make: Callable[[Computation], Result],
    called: Callable[[Computation], Iterable[Computation]] = callees_in,
) -> Result:
    """Return ``make(computation)``, memoised in the module; callees are made before callers.

    `make` may therefore call `bottom_up` for callees: their results are memoised already.

    Args:
        key: identifies `make`.
        called: returns the computations whose results `make` needs.
    """
    known = computation.module.memo_by_computation.setdefault(key, {})
    pending = [computation] if computation not in known else []
    reached = dict.fromkeys(pending)
    while pending:
        fresh = [c for c in called(pending.pop()) if c not in reached and c not in known]
        reached.update(dict.fromkeys(fresh))
        pending.extend(dict.fromkeys(fresh))
    if reached:
        position = positions(computation.module)
        for each in sorted(reached, key=lambda c: position[c.name]):
            each.memoised(key, partial(make, each))
    result: Result = known[computation]
    return result


def positions(module: Module) -> dict[str, int]:
    """Return the position of each computation in its module, by name: callees before callers."""
    return module.memoised(
        positions, lambda: {name: k for k, name in enumerate(module.computations)}
    )
