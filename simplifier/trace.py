"""Record the laws that are applied while expressions and constraints are simplified.

Recording costs nothing until `record_laws` is entered.  Results of `memoised` functions are
discarded then, so that their laws are applied, and recorded, again.  A record holds the laws of its
thread; it lacks those of expressions that another thread simplifies at the same time.

>>> from simplifier.linear import variable
>>> d0, d1 = variable("d0", 0, 9), variable("d1", 0, 7)
>>> with record_laws() as applied:
...     rows = (d0 * 8 + d1) // 4
>>> print(*applied, sep="\\n")
factor out multiples: (d0 * 8 + d1) floordiv 4 = d0 * 2 + d1 floordiv 4
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from threading import get_ident
from typing import Final, Literal, NamedTuple, ParamSpec, TypeAlias, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

Sign: TypeAlias = Literal["=", "<=>", "=>", ":=", "in"]


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """A law of simplification.

    Attributes:
        name: imperative phrase that `simplifier.trace` and ``--explain`` print.
        formula: the law.
        condition: side condition under which the formula holds.
        reason: proof idea, valid for negative numbers too.
        applied_in: dotted names of the functions that apply the law.
        sign: how the two sides of an application relate: equal values, equivalent or implied
            constraints, a variable replaced, or bounds of a value.
        observed: for a law that trace does not report, how its effect is observed.
    """

    name: str
    formula: str
    condition: str
    reason: str
    applied_in: tuple[str, ...]
    sign: Sign = "="
    observed: str = ""

    def __str__(self) -> str:
        return self.name


class Applied(NamedTuple):
    """One application of a law: its two sides as texts, related by ``law.sign``."""

    law: Law
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.law}: {self.before} {self.law.sign} {self.after}"


class Record:
    """The laws that one thread applies while a `record_laws` block is active."""

    __slots__ = ("applied", "thread")

    def __init__(self) -> None:
        self.thread = get_ident()
        self.applied: list[Applied] = []


records: Final[list[Record]] = []
"""Active records of all threads; empty unless a `record_laws` block is active."""

_CLEAR: Final[list[Callable[[], None]]] = []


def clear_when_recording(clear: Callable[[], None]) -> None:
    """Call `clear`, which empties a memo, whenever a record starts."""
    _CLEAR.append(clear)


def memoised(size: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Memoise a function that applies laws, for its `size` last arguments.

    The memo is emptied whenever a record starts, so a call needs no check for records.
    """

    def memoise(function: Callable[P, R]) -> Callable[P, R]:
        memo = lru_cache(size)(function)
        clear_when_recording(memo.cache_clear)
        return memo  # type: ignore[return-value]  # its stub takes any hashable arguments

    return memoise


@contextmanager
def record_laws() -> Iterator[list[Applied]]:
    """The laws that are applied in the block, in order, each application once."""
    for clear in _CLEAR:
        clear()
    active = Record()
    records.append(active)
    try:
        yield active.applied
    finally:
        records.remove(active)


def record(law: Law, before: object, after: object) -> None:
    """Record that `law` turned `before` into `after`, unless their texts are equal."""
    applied = Applied(law, str(before), str(after))
    if applied.before == applied.after:
        return
    for active in list(records):
        if active.thread == get_ident() and applied not in active.applied:
            active.applied.append(applied)


def operand_text(expr: object) -> str:
    """The text of `expr` as the operand of floordiv, mod or ``*``."""
    text = str(expr)
    return f"({text})" if " " in text or text.startswith("-") else text


def record_all(law: Law, before: Iterable[object], after: object) -> None:
    """Record that `law` turned the conjunction of `before` into `after`."""
    record(law, " and ".join(map(str, before)), after)
