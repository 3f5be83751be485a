"""`Unknown`: the answer to a question that could not be decided, with the reason.

>>> Unknown("beyond the budget of 10 isl operations")
Unknown(reason='beyond the budget of 10 isl operations', instruction=None)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

Answer = TypeVar("Answer")


class UndecidedError(RuntimeError):
    """Code used an `Unknown` where an answer was needed, for example as a condition."""


class Named(Protocol):
    """An instruction, or anything else that has a name."""

    @property
    def name(self) -> str:
        """Its name."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """An answer that is not known.

    It is neither true nor false: its truth value raises `UndecidedError`.

    Attributes:
        reason: the obstacle, in a sentence.
        instruction: the instruction that is the obstacle; `None` where there is none.
    """

    reason: str
    instruction: Named | None = None

    def __str__(self) -> str:
        return self.reason

    def __bool__(self) -> bool:
        raise UndecidedError(
            f"{self.reason}; this is neither true nor false: test `isinstance(answer, Unknown)` "
            "first, or compare with `is True`"
        )


def known(answer: Answer | Unknown) -> Answer:
    """`answer`, which must be known.

    Raises:
        UndecidedError: it is not.

    >>> known(3)
    3
    """
    if isinstance(answer, Unknown):
        raise UndecidedError(answer.reason)
    return answer


def first_unknown(*reasons: Unknown | None) -> Unknown | None:
    """The first reason that is there; `None` without one."""
    return next((reason for reason in reasons if reason is not None), None)


def about(answer: Answer | Unknown, *question: object) -> Answer | Unknown:
    """`answer`; where it is unknown, with the question in front of the reason.

    >>> print(about(Unknown("beyond the budget"), "the number of", "points"))
    the number of points: beyond the budget
    """
    if isinstance(answer, Unknown):
        return Unknown(f"{' '.join(map(str, question))}: {answer.reason}", answer.instruction)
    return answer
