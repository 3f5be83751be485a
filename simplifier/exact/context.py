"""isl queries, each with a budget of isl operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final, TypeVar

import islpy as isl

from simplifier.unknown import Unknown

T = TypeVar("T")

BUDGET: Final = 2_000_000
"""isl operations for one query: a fraction of a second."""

_queries: Final = Counter[str]()


def query_count(kind: str | None = None) -> int:
    """Number of queries of this process so far, or of those of one kind.

    A kind is "tight_bounds" (from `simplify`, answered by isl or by enumeration) or "other".
    """
    return _queries.total() if kind is None else _queries[kind]


def count_query(kind: str) -> None:
    """Count a query."""
    _queries[kind] += 1


class NotAffineError(ValueError):
    """A product or quotient of variables, which isl cannot represent."""


class BudgetExhaustedError(ValueError):
    """isl returned nothing, because its budget is exhausted; or the expressions exceed a budget."""


def to_int(value: isl.Val) -> int:
    """The integer of an isl value; its conversion needs isl operations.

    Raises:
        BudgetExhaustedError: no operations are left.
    """
    try:
        return int(value.to_python())
    except TypeError:  # isl returned no text
        raise BudgetExhaustedError from None


def within_budget(compute: Callable[[Any], T], budget: int, kind: str = "other") -> T | Unknown:
    """Return ``compute(context)`` with a new isl context; `Unknown` beyond `budget` operations.

    isl reports a text that it has no budget left to read as a syntax error.
    """
    count_query(kind)
    ctx = isl.Context()
    ctx.set_max_operations(budget)
    try:
        return compute(ctx)
    except NotAffineError as error:
        return Unknown(str(error))
    except BudgetExhaustedError as error:
        return Unknown(str(error) or f"beyond the budget of {budget} isl operations")
    except isl.Error as error:
        if not any(word in str(error) for word in ("operations", "quota", "syntax error")):
            raise
        return Unknown(f"beyond the budget of {budget} isl operations")
