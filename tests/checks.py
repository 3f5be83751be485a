"""Several checks in one test case; the case fails with the names of all checks that fail.

A test case costs pytest about a millisecond, more than most checks of one sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager


@contextmanager
def checks() -> Iterator[Callable[[str], AbstractContextManager[None]]]:
    """Collect the errors of several checks and raise them together.

    >>> with checks() as check:
    ...     for number in range(3):
    ...         with check(f"number {number}"):
    ...             assert number == 1
    Traceback (most recent call last):
    ExceptionGroup: 2 checks fail: number 0; number 2 (2 sub-exceptions)
    """
    failures: dict[str, Exception] = {}

    @contextmanager
    def check(name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            error.add_note(f"in the check of {name}")
            failures[name] = error

    yield check
    if failures:
        names = "; ".join(failures)
        raise ExceptionGroup(f"{len(failures)} checks fail: {names}", [*failures.values()])
