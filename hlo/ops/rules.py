"""The rules of ops and how they fail: a `OpConstraint`, its `Fault`, and faults of many ops.

>>> bool(HOLDS), bool(Fault("0 appears twice", at="dimensions"))
(False, True)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, TypeVar

from hlo.shapes.shape import Shape

Method = TypeVar("Method", bound=Callable[..., Any])

MARK: Final = "__constraint__"
"""The attribute of a method that holds the rule it checks."""


@dataclass(frozen=True, slots=True)
class Fault:
    """How a constraint fails; falsy (`HOLDS`) when it does not.

    Attributes:
        label: what is wrong, shown beside the carets.
        at: the attribute that is wrong, the number of the operand, or None for the instruction.
        help: what to write instead.
    """

    label: str
    at: str | int | None = None
    help: str = ""

    def __bool__(self) -> bool:
        return bool(self.label)


HOLDS: Final = Fault("")


@dataclass(frozen=True, slots=True)
class OpConstraint:
    """A labelled rule of an op, and the method that checks it."""

    label: str
    sentence: str
    method: str


def constraint(label: str, sentence: str) -> Callable[[Method], Method]:
    """Marks a method ``(self, *operand shapes) -> Fault`` as the check of a rule."""

    def mark(method: Method) -> Method:
        setattr(method, MARK, OpConstraint(label, sentence, method.__name__))
        return method

    return mark


def permutation_fault(values: Sequence[int], size: int, at: str = "dimensions") -> Fault:
    """The fault of `values` not being a permutation of ``range(size)``.

    >>> permutation_fault((2, 0, 0), 3).label
    '0 appears twice, 1 is missing'
    """
    if sorted(values) == list(range(size)):
        return HOLDS
    missing = [i for i in range(size) if i not in values]
    spare, seen, fixed = list(missing), set[int](), list[int]()
    for value in values:
        good = 0 <= value < size and value not in seen
        fixed.append(value if good or not spare else spare.pop(0))
        seen.add(value)
    fixed = [*dict.fromkeys(v for v in fixed if 0 <= v < size), *spare]
    example = ",".join(map(str, fixed))
    label = ", ".join([*_repeats(values), *_outside(values, size), *_missing(missing)])
    return Fault(label, at, f"list every operand dimension once, for example {at}={{{example}}}")


def alike_fault(
    shapes: Sequence[Shape], what: Callable[[Shape], object] = attrgetter("dims")
) -> Fault:
    """The fault of an operand that is not like operand 0: its dimensions, or `what` is asked of it.

    >>> from hlo.shapes.shape import parse_shape
    >>> alike_fault([parse_shape("f32[2,3]"), parse_shape("s32[3,2]")]).label
    'operand 1 is s32[3,2], operand 0 is f32[2,3]'
    """
    for number, shape in enumerate(shapes):
        if what(shape) != what(shapes[0]):
            label = f"operand {number} is {shape.with_layout(None)}, operand 0 is"
            return Fault(f"{label} {shapes[0].with_layout(None)}", number)
    return HOLDS


def dimensions_fault(values: Sequence[int], rank: int, at: str = "dimensions") -> Fault:
    """The fault of `values` not being different dimensions of an array of this rank.

    >>> dimensions_fault((1, 3, 1), 2).label
    '1 appears twice, 3 is not below 2'
    """
    label = ", ".join([*_repeats(values), *_outside(values, rank)])
    return Fault(label, at, f"name dimensions below {rank}, each at most once") if label else HOLDS


def count_fault(values: Sequence[object], wanted: int, what: str, at: str) -> Fault:
    """The fault of not having one of `values` for each of `wanted` things called `what`.

    >>> count_fault((1, 0), 3, "operand dimension", "dimensions").label
    '2 instead of 3: one for each operand dimension'
    """
    if len(values) == wanted:
        return HOLDS
    return Fault(f"{len(values)} instead of {wanted}: one for each {what}", at)


def _repeats(values: Sequence[int]) -> list[str]:
    times = {2: "twice", 3: "three times"}
    repeated = {value: n for value in values if (n := list(values).count(value)) > 1}
    return [f"{value} appears {times.get(n, f'{n} times')}" for value, n in repeated.items()]


def _outside(values: Sequence[int], size: int) -> list[str]:
    bad = dict.fromkeys(v for v in values if not 0 <= v < size)
    return [f"{v} is negative" if v < 0 else f"{v} is not below {size}" for v in bad]


def _missing(values: Sequence[int]) -> list[str]:
    if not values:
        return []
    return [f"{', '.join(map(str, values))} {'is' if len(values) == 1 else 'are'} missing"]
