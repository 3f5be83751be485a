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

    >>> from simplifier import Variable
    >>> from simplifier.exact import is_empty, query_count
    >>> before = query_count("other")
    >>> is_empty([Variable("i", 0, 9)], [])
    False
    >>> query_count("other") - before
    1
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
    """The integer of an isl value.

    Raises:
        BudgetExhaustedError: isl has no operations left to write a large number.
        ValueError: the value is no integer.
    """
    if not value.is_int():
        raise ValueError(f"expected an integer, got {value}")
    return numerator(value)


def numerator(value: isl.Val) -> int:
    """The numerator of an isl value, a rational number.

    Raises:
        BudgetExhaustedError: isl has no operations left to write a large number.
    """
    number = int(value.get_num_si())
    if number or value.is_zero():
        return number
    text = value.to_str()  # a number that exceeds a machine word is 0 above
    if text is None:
        raise BudgetExhaustedError
    return int(text.partition("/")[0])


def within_budget(compute: Callable[[Any], T], budget: int, kind: str = "other") -> T | Unknown:
    """Return ``compute(context)`` with an isl context; `Unknown` beyond `budget` operations.

    The answer does not depend on earlier queries: a query that needs about the whole budget in a
    used context is computed again in a new one.
    """
    count_query(kind)
    try:
        context = _idle.pop()
    except IndexError:
        context = isl.Context()
    margin = MAX_BLOCKS + budget // MAX_SHARE
    try:
        answer = _compute_within(compute, context, budget + margin)
        if _has_left(context, budget - margin):
            return answer
        return _compute_within(compute, isl.Context(), budget)
    except _Exhausted:
        return Unknown(f"beyond the budget of {budget} isl operations")
    finally:
        _idle.append(context)


MAX_BLOCKS: Final = 20
"""Maximum number of freed blocks of numbers that a context keeps.

An operation of isl is an allocation, and matrices and vectors take freed blocks first.  So a query
counts other operations in a used context than in a new one: fewer, or more if small blocks leave no
place for large ones.
"""
MAX_SHARE: Final = 8
"""The difference is less than these blocks and one in so many operations.

Of 513 queries, none counted 6 % fewer operations, or 1 % more.
"""

_idle: Final[list[isl.Context]] = []
"""Contexts that no query uses: islpy 2026.2 frees no context, and keeps 5 kB of each or more."""


class _Exhausted(Exception):
    """isl has no operations left."""


def _has_left(context: isl.Context, budget: int) -> bool:
    """Return True if the operations since the context was reset are fewer than `budget`."""
    context.set_max_operations(max(1, budget))
    try:
        isl.Val.zero(context)
    except isl.Error:
        return False
    return True


def _compute_within(compute: Callable[[Any], T], context: isl.Context, budget: int) -> T | Unknown:
    """Return ``compute(context)``; `Unknown` if isl cannot represent the query.

    isl reports a text that it has no budget left to read as a syntax error, and some functions
    ignore an exhausted budget: ``isl_set_count_val`` returns 0.  One more operation detects it.

    Raises:
        _Exhausted: the budget does not suffice.
    """
    context.reset_operations()
    context.set_max_operations(budget)
    try:
        answer = compute(context)
        isl.Val.zero(context)
        return answer
    except NotAffineError as error:
        return Unknown(str(error))
    except BudgetExhaustedError as error:
        if str(error):  # a budget of our own
            return Unknown(str(error))
        raise _Exhausted from None
    except isl.Error as error:
        if not any(word in str(error) for word in ("operations", "quota", "syntax error")):
            raise
        raise _Exhausted from None
