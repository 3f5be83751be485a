"""`Unknown`: the answer to an undecided query, with the reason.

>>> Unknown("beyond the budget of 10 isl operations")
Unknown(reason='beyond the budget of 10 isl operations', instruction=None)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")


class UndecidedError(RuntimeError):
    """An `Unknown` was used where an answer is required, for example as a condition.

    >>> try:
    ...     bool(Unknown("`topk` has no per-element rule"))
    ... except UndecidedError as error:
    ...     print(str(error).partition(";")[0])
    `topk` has no per-element rule
    """


class Named(Protocol):
    """An instruction, or another object with a name."""

    @property
    def name(self) -> str:
        """The name of the object."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The answer to an undecided query.

    It is neither true nor false: its truth value raises `UndecidedError`.

    Attributes:
        reason: the obstacle.
        instruction: the instruction with the obstacle, or `None`.

    >>> answer = Unknown("beyond the budget of 10 isl operations")
    >>> print(answer, "|", answer is True)
    beyond the budget of 10 isl operations | False
    """

    reason: str
    instruction: Named | None = None

    def __str__(self) -> str:
        return self.reason

    def __bool__(self) -> bool:
        raise UndecidedError(
            f"{self.reason}; an Unknown is neither true nor false: test `isinstance(answer, "
            "Unknown)` first, or compare with `is True`"
        )


def require_known(answer: T | Unknown) -> T:
    """Return `answer` if it is known.

    Raises:
        UndecidedError: `answer` is an `Unknown`.

    >>> require_known(3)
    3
    """
    if isinstance(answer, Unknown):
        raise UndecidedError(answer.reason)
    return answer


def first_unknown(*reasons: Unknown | None) -> Unknown | None:
    """Return the first of `reasons` that is not `None`, if any."""
    return next((reason for reason in reasons if reason is not None), None)


def with_query(answer: T | Unknown, *query: object) -> T | Unknown:
    """Return `answer`; prefix the reason of an `Unknown` with the query.

    >>> print(with_query(Unknown("beyond the budget"), "cannot count", "points"))
    cannot count points: beyond the budget
    """
    if isinstance(answer, Unknown):
        return Unknown(f"{' '.join(map(str, query))}: {answer.reason}", answer.instruction)
    return answer
