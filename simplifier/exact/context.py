"""Questions to isl, each within a budget of isl's own operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final, TypeVar

import islpy as isl

from simplifier.unknown import Unknown

Answer = TypeVar("Answer")

BUDGET: Final = 2_000_000
"""Operations of isl for one question: a fraction of a second."""


_queries: Final = Counter[str]()


def query_count(kind: str | None = None) -> int:
    """How many questions were asked in this process so far, or those of one kind.

    A kind is "tight_bounds", what simplifying asks, of isl or of all points, or "other".
    """
    return _queries.total() if kind is None else _queries[kind]


def note_query(kind: str) -> None:
    """Counts a question."""
    _queries[kind] += 1


class NotAffineError(ValueError):
    """A product or a quotient of variables, of which isl knows nothing."""


class NothingLeftError(RuntimeError):
    """isl gave nothing back, without saying so: it has no operations left."""


def to_int(value: isl.Val) -> int:
    """A whole number of isl's, which it needs operations to tell."""
    try:
        return int(value.to_python())
    except TypeError:  # of no text
        raise NothingLeftError from None


def within_budget(
    compute: Callable[[Any], Answer], budget: int, kind: str = "other"
) -> Answer | Unknown:
    """The answer to `question` in a context of its own, within `budget` operations of isl.

    A text that isl has no budget left to read is a syntax error, says isl.
    """
    note_query(kind)
    ctx = isl.Context()
    ctx.set_max_operations(budget)
    try:
        return compute(ctx)
    except NotAffineError as error:
        return Unknown(str(error))
    except NothingLeftError:
        return Unknown(f"beyond the budget of {budget} isl operations")
    except isl.Error as error:
        if not any(word in str(error) for word in ("operations", "quota", "syntax error")):
            raise
        return Unknown(f"beyond the budget of {budget} isl operations")
