"""Constraints of ops and their faults, and checks that several ops share.

>>> bool(HOLDS), bool(Fault("0 appears twice", at="dimensions"))
(False, True)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, TypeVar

from hlo.shapes.shape import Shape

Method = TypeVar("Method", bound=Callable[..., Any])

MARK: Final = "__constraint__"
"""The attribute of a method that stores its constraint."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A violation of a constraint; falsy (`HOLDS`) if the constraint holds.

    Attributes:
        label: both values that violate the constraint, shown beside the carets.
        at: the name of the invalid attribute, the number of the operand, or None for the
            instruction.
        help: the repair.

    >>> from hlo.ops.rules import HOLDS, Fault
    >>> fault = Fault("axis 3, rank 2", at="axis", help="axis must be less than the rank")
    >>> bool(fault), bool(HOLDS)
    (True, False)
    """

    label: str
    at: str | int | None = None
    help: str = ""

    def __bool__(self) -> bool:
        return bool(self.label)


HOLDS: Final = Fault("")


@dataclass(frozen=True, slots=True)
class OpConstraint:
    """A constraint of an op: its label, its sentence and the name of the method that checks it.

    >>> import indexing  # registers the ops
    >>> from hlo.ops.op import find_op
    >>> for rule in find_op("reverse").constraints:
    ...     print(rule.label, rule.sentence)
    C1 dimensions must be distinct dimensions of the operand
    """

    label: str
    sentence: str
    method: str


def constraint(label: str, sentence: str) -> Callable[[Method], Method]:
    """Mark a method ``(self, *operand shapes) -> Fault`` as the check of a constraint.

    Args:
        label: such as ``C1``, unique in the op.
        sentence: the rule, shown in errors, such as "dimension must be less than the rank".

    >>> import indexing  # registers the ops
    >>> from hlo.ops.op import find_op
    >>> [rule.label for rule in find_op("transpose").constraints]
    ['C2']
    """

    def mark(method: Method) -> Method:
        setattr(method, MARK, OpConstraint(label, sentence, method.__name__))
        return method

    return mark


def permutation_fault(values: Sequence[int], size: int, at: str = "dimensions") -> Fault:
    """Return the fault of `values` that are not a permutation of ``range(size)``.

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


def mismatch_fault(
    shapes: Sequence[Shape], key: Callable[[Shape], object] = attrgetter("dims")
) -> Fault:
    """Return the fault of the first operand whose `key`, by default its dimensions, is not the
    key of operand 0.

    >>> from hlo.shapes.shape import parse_shape
    >>> mismatch_fault([parse_shape("f32[2,3]"), parse_shape("s32[3,2]")]).label
    'operand 1 is s32[3,2], operand 0 is f32[2,3]'
    """
    for number, shape in enumerate(shapes):
        if key(shape) != key(shapes[0]):
            label = f"operand {number} is {shape.with_layout(None)}, operand 0 is"
            return Fault(f"{label} {shapes[0].with_layout(None)}", number)
    return HOLDS


def dimensions_fault(values: Sequence[int], rank: int, at: str = "dimensions") -> Fault:
    """Return the fault of `values` that are not distinct dimensions of an array of this rank.

    >>> dimensions_fault((1, 3, 1), 2).label
    '1 appears twice, 3 is not in [0, 1]'
    """
    label = ", ".join([*_repeats(values), *_outside(values, rank)])
    return Fault(label, at, _names(rank)) if label else HOLDS


def disjoint_fault(rank: int, **lists: Sequence[int]) -> Fault:
    """Return the fault of attributes that do not list distinct dimensions of an array.

    The fault is in the last attribute that has one.

    >>> fault = disjoint_fault(2, lhs_batch_dims=(0,), lhs_contracting_dims=(0,))
    >>> fault.at, fault.label
    ('lhs_contracting_dims', '0 is also in `lhs_batch_dims`')
    """
    for at, values in reversed(lists.items()):
        others = {value: name for name in lists if name != at for value in lists[name]}
        shared = [f"{v} is also in `{others[v]}`" for v in dict.fromkeys(values) if v in others]
        if label := ", ".join([*_repeats(values), *_outside(values, rank), *shared]):
            return Fault(label, at, _names(rank))
    return HOLDS


def _names(rank: int) -> str:
    return f"name dimensions below {rank}, each at most once"


def count_fault(values: Sequence[object], wanted: int, noun: str, at: str) -> Fault:
    """Return the fault of `values` whose length is not `wanted`, the number of `noun`.

    >>> count_fault((1, 0), 3, "operand dimension", "dimensions").label
    '2 values, expected 3: one for each operand dimension'
    """
    if len(values) == wanted:
        return HOLDS
    count = f"{len(values)} value{'s' * (len(values) != 1)}"
    return Fault(f"{count}, expected {wanted}: one for each {noun}", at)


def _repeats(values: Sequence[int]) -> list[str]:
    times = {2: "twice", 3: "three times"}
    return [
        f"{value} appears {times.get(n, f'{n} times')}"
        for value, n in Counter(values).items()
        if n > 1
    ]


def _outside(values: Sequence[int], size: int) -> list[str]:
    bad = dict.fromkeys(v for v in values if not 0 <= v < size)
    limits = f"is not in [0, {size - 1}]" if size else "is not a dimension: the rank is 0"
    return [f"{v} {limits}" for v in bad]


def _missing(values: Sequence[int]) -> list[str]:
    if not values:
        return []
    return [f"{', '.join(map(str, values))} {'is' if len(values) == 1 else 'are'} missing"]
