"""The condition that tile sizes violate, its source, and the nearest legal sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from indexing.tiling.sizes.size_constraints import (
    Conjunction,
    SizeCondition,
    SizeConstraints,
    holds,
)
from indexing.tiling.sizes.size_words import failure_text
from indexing.tiling.sizes.tile_sizes import SizeSource, size_point
from simplifier import Variable

MAX_TRIES: Final = 20_000
"""Maximum number of conditions to evaluate for one nearest legal size."""


class NearestSizes(NamedTuple):
    """The nearest legal sizes of one dimension; the other sizes do not change.

    `smaller` or `larger` is `None` if there is none, or none within `MAX_TRIES` evaluations.
    """

    name: str
    smaller: int | None
    larger: int | None

    def __str__(self) -> str:
        return " and ".join([str(size) for size in self[1:] if size is not None])


@dataclass(frozen=True)
class Violation:
    """The first condition that fails for tile sizes; of a disjunction, the one nearest to holding.

    Attributes:
        condition: the condition; `None` if no sizes satisfy the constraints.
        point: the size of each variable of the constraints, at most the size of the dimension.
        nearest: legal sizes of each dimension in the condition.
        only_this: the other constraints fail for all sizes of these dimensions, so `nearest` has
            sizes for which the violated part of the constraints holds.
    """

    condition: SizeCondition | None
    point: Mapping[Variable, int]
    nearest: tuple[NearestSizes, ...] = ()
    only_this: bool = False

    @property
    def value(self) -> int | None:
        """The value of the expression: for ``a mod b in [0, 0]``, the remainder."""
        return None if self.condition is None else self.condition.expr.value(self.point)

    @property
    def sources(self) -> tuple[SizeSource, ...]:
        """The instructions, and expressions of their maps, that impose the condition."""
        return self.condition.sources if self.condition else ()

    @property
    def instruction(self) -> str:
        """The name of the first instruction that imposes the condition; empty if unknown."""
        return self.sources[0].instruction if self.sources else ""

    @property
    def reason(self) -> str:
        """The reason of the condition, in words; may be empty."""
        return self.condition.reason if self.condition else ""

    def __str__(self) -> str:
        if self.condition is None:
            return "no tile sizes satisfy the constraints"
        causes = [text for text in (self.reason, *map(str, self.sources[:1])) if text]
        cause = f" ({'; '.join(causes)})" if causes else ""
        text = failure_text(self.condition, self.point) + cause
        sizes = [each for each in self.nearest if str(each)]
        if not sizes:
            return text
        legal = (
            "sizes nearby that satisfy this condition" if self.only_this else "legal sizes nearby"
        )
        if len(self.nearest) == 1:
            return f"{text}; {legal}: {sizes[0]}"
        return f"{text}; {legal}: {', or '.join(f'{each.name} = {each}' for each in sizes)}"


def size_violation(tree: SizeConstraints, sizes: Sequence[int]) -> Violation | None:
    """Return the violation of `tree` by `sizes`, or `None` if they satisfy it.

    >>> from indexing.tiling.sizes.size_constraints import condition
    >>> from simplifier import variable
    >>> even = condition(variable("ts_0", 1, 8) % 2, 0, 0)
    >>> size_violation(even, [4]), size_violation(even, [5]).nearest
    (None, (NearestSizes(name='ts_0', smaller=4, larger=6),))
    """
    point = size_point(tree.variables, sizes)
    if holds(tree, point):
        return None
    _, condition = _failure(tree, point, {})
    if condition is None:
        return Violation(None, point)
    nearest = _nearest(tree, condition.variables, point)
    if any(map(str, nearest)):
        return Violation(condition, point, nearest)
    parts = tree.parts if isinstance(tree, Conjunction) else (tree,)
    violated = next(part for part in parts if not holds(part, point))
    return Violation(condition, point, _nearest(violated, condition.variables, point), True)


class _Distance(NamedTuple):
    """How far a constraint is from holding: the failing conditions, then the value's distance."""

    conditions: int
    value: float


def _failure(
    tree: SizeConstraints,
    point: Mapping[Variable, int],
    known: dict[int, tuple[_Distance, SizeCondition | None]],
) -> tuple[_Distance, SizeCondition | None]:
    """Return the distance of `tree` from holding, and the condition that fails, if any."""
    if isinstance(tree, SizeCondition):
        value, (lower, upper) = tree.expr.value(point), tree.ends
        distance = max(lower - value, value - upper, 0)
        return _Distance(int(distance > 0), distance), tree if distance else None
    if id(tree) not in known:
        parts = [_failure(part, point, known) for part in tree.parts]
        if isinstance(tree, Conjunction):
            first = next((failure for failure in parts if failure[1]), (_Distance(0, 0), None))
            known[id(tree)] = (
                _Distance(sum(d.conditions for d, _ in parts), first[0].value),
                first[1],
            )
        else:
            known[id(tree)] = min(parts, key=lambda part: part[0], default=(_Distance(1, 0), None))
    return known[id(tree)]


def _nearest(
    tree: SizeConstraints, variables: Iterable[Variable], point: Mapping[Variable, int]
) -> tuple[NearestSizes, ...]:
    """Return the nearest sizes of each variable for which `tree` holds."""
    nearest: list[NearestSizes] = []
    for variable in variables:
        alone = tree.bind({other: size for other, size in point.items() if other != variable})
        tries = max(MAX_TRIES // condition_count(alone), 1)
        size = point[variable]
        below = range(size - 1, max(variable.lower, size - tries) - 1, -1)
        above = range(size + 1, min(variable.upper, size + tries) + 1)
        smaller, larger = (
            next((at for at in sizes if holds(alone, {variable: at})), None)
            for sizes in (below, above)
        )
        nearest.append(NearestSizes(variable.name, smaller, larger))
    return tuple(nearest)


def condition_count(tree: SizeConstraints) -> int:
    """Return the number of distinct conditions of `tree`, at least 1.

    >>> from indexing.tiling.sizes.size_constraints import condition
    >>> from simplifier import variable
    >>> ts_0 = variable("ts_0", 1, 8)
    >>> condition_count(condition(ts_0 % 2, 0, 0) | condition(ts_0 % 3, 0, 0))
    2
    """
    seen: set[int] = set()
    pending, count = [tree], 0
    while pending:
        part = pending.pop()
        if id(part) not in seen:
            seen.add(id(part))
            count += isinstance(part, SizeCondition)
            pending.extend(part.parts)
    return max(count, 1)
