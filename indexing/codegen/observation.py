"""Reads of exact maps through a fusion that no poke shows.

A mask, a product with zero or a minimum may make an element irrelevant that some path of a fusion
reads.  The map is exact all the same: exactness through a fusion holds for each path.  The pokes of
this module look for such reads.  They change many elements in one execution if these belong to
different elements of the output; reads that no output showed are poked again, with other operands
and other values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import isfinite
from typing import Any, Final, NamedTuple

import numpy as np

from hlo.modules.module import Computation, Instruction
from hlo.shapes.literal import read_literal
from hlo.shapes.shape import Shape
from hlo.text.source import HloError
from indexing.codegen.differences import ElementIndex
from indexing.codegen.graph import Array
from indexing.codegen.influence import Influence
from indexing.maps.indexing_map import IndexingMap
from simplifier.atoms import point_count

MAX_READS: Final = 48
"""Limit on the reads of one map that are poked: all of them, or else a sample."""

MAX_RUNS: Final = 2000
"""Limit on the executions for one exact map."""

MAX_CONSTANTS: Final = 8
"""Limit on the constants of a program whose neighbours are poked as values."""

SCALES: Final = (1, 1, 1000)
"""Factors of random operands in the pokes of many elements."""

FURTHER_FILLS: Final = 6
"""Number of fillings with small indices, and of those with one value for each operand."""

MAX_GROUPS: Final = 12
"""Limit on the groups of reads that are poked in a filling, except for the first two."""


class Point(NamedTuple):
    """Values of the dimensions and of the range variables of a map."""

    at: ElementIndex
    inside: tuple[int, ...]


class Unobserved(NamedTuple):
    """Reads of one map that no poke showed.

    Attributes:
        missing, tried: their number, and that of all reads that were poked.
        unreached: the number of reads that need values of masks or indices that were not drawn.
        executions: the number of executions that looked for reads of the map.
        at, element: the output element and the operand element of one of them, for which all values
            were tried; None if the budget ended before.
    """

    missing: int
    tried: int
    executions: int
    unreached: int = 0
    at: ElementIndex | None = None
    element: ElementIndex | None = None


@dataclass(slots=True)
class _Group:
    """Reads that are poked in one execution.

    Attributes:
        elements: the element of the operand that each point of the map reads.
        covered: all elements that the output elements of these points read.
    """

    elements: dict[Point, ElementIndex] = field(default_factory=dict)
    covered: set[ElementIndex] = field(default_factory=set)

    def admits(self, element: ElementIndex, related: set[ElementIndex]) -> bool:
        """Return True if a change of each output element would have one cause only.

        Args:
            element: the element of another read.
            related: all elements that its output element reads.
        """
        changed = set(self.elements.values())
        return (element in changed or element not in self.covered) and related & changed <= {
            element
        }


@dataclass(slots=True)
class Observation:
    """Pokes of the elements of one operand that exact maps read.

    Attributes:
        trial: varies the operands.
        image: the element that a map relates to a point; None outside of its domain.
        array: the operand.
        output: the number of the output.
        maps: all maps from the output to the operand.
        earlier_runs: the executions for earlier maps.
    """

    trial: Influence
    image: Callable[[IndexingMap, ElementIndex, Sequence[int]], ElementIndex | None]
    array: Array
    output: int
    maps: Sequence[IndexingMap]
    earlier_runs: int = field(default=0, init=False)

    def unobserved_reads(self, exact: IndexingMap) -> Unobserved:
        """Return the reads of an exact map that no poke showed."""
        self.earlier_runs = self.trial.runs
        pending = dict.fromkeys(self._points(exact))
        elements: dict[Point, ElementIndex] = {}
        with self.trial.restore_after():
            for number, _ in enumerate(self._fillings()):
                groups = self._groups(exact, pending)
                for group in groups:
                    elements.update(group.elements)
                for group in groups[: MAX_GROUPS if number > 1 else None]:
                    for point in self._shown_reads(group):
                        del pending[point]
            self._aim(exact, pending, elements)
        missing = [point for point in pending if point in elements]
        unreached = sum([may_read(exact, p) for p in pending if p not in elements])
        for number, point in enumerate(missing):
            left = Unobserved(len(missing) - number, len(elements), self._runs, unreached)
            if self._is_over:
                return left
            element = elements[point]
            if not self.trial.is_seen(
                self.array, self.output, exact, point.at, element, point.inside
            ):
                left = left._replace(executions=self._runs)
                return left if self._is_over else left._replace(at=point.at, element=element)
        return Unobserved(0, len(elements), self._runs, unreached)

    def _aim(
        self, exact: IndexingMap, points: Iterable[Point], elements: dict[Point, ElementIndex]
    ) -> None:
        """Add the elements of points that the map reads for some integers."""
        for point in [point for point in points if point not in elements]:
            if self.trial.aims(exact, *point):
                element = self.image(exact, *point)
                if element is not None:
                    elements[point] = element

    @property
    def _runs(self) -> int:
        return self.trial.runs - self.earlier_runs

    @property
    def _is_over(self) -> bool:
        return self._runs >= MAX_RUNS

    def _points(self, exact: IndexingMap) -> Iterator[Point]:
        """Yield all points of a small box, else its corners and random points."""
        variables = (*exact.dims, *exact.ranges)
        every: Iterable[tuple[int, ...]]
        if not is_sampled(exact):
            every = product(*[range(v.lower, v.upper + 1) for v in variables])
        else:
            integers = self.trial.random.integers
            corners = [tuple([v.lower for v in variables]), tuple([v.upper for v in variables])]
            every = corners + [
                tuple([int(integers(v.lower, v.upper + 1)) for v in variables])
                for _ in range(MAX_READS - len(corners))
            ]
        rank = len(exact.dims)
        for values in every:
            yield Point(values[:rank], values[rank:])

    def _fillings(self) -> Iterator[None]:
        """Leave the operands as they are, then fill them with random numbers."""
        yield
        for scale in SCALES:
            self.trial.draw_all(scale)
            yield
        for _ in range(FURTHER_FILLS):
            self.trial.draw_indices()
            yield
            self.trial.draw_constants()
            yield
            if self.trial.borders:
                self.trial.draw_borders()
                yield

    def _groups(self, exact: IndexingMap, points: Iterable[Point]) -> list[_Group]:
        """Divide the points at which the map reads an element into groups."""
        groups: list[_Group] = []
        alone: list[_Group] = []
        related: dict[ElementIndex, set[ElementIndex] | None] = {}
        for point in points:
            element = self.image(exact, *point)
            if element is None:
                continue
            if point.at not in related:
                related[point.at] = self._related_elements(point.at)
            others = related[point.at]
            if others is None:
                alone.append(_Group({point: element}))
                continue
            group = next((each for each in groups if each.admits(element, others)), None)
            if group is None:
                groups.append(group := _Group())
            group.elements[point] = element
            group.covered |= others
        return groups + alone

    def _related_elements(self, at: ElementIndex) -> set[ElementIndex] | None:
        """Return the elements that an output element reads by all maps; None if it is unknown."""
        related: set[ElementIndex] = set()
        for indexing_map in self.maps:
            images = self.trial.images(indexing_map, at)
            if images is None:
                return None
            related |= images
        return related

    def _shown_reads(self, group: _Group) -> set[Point]:
        """Return the points whose output elements change with the elements of the group."""
        shown: set[Point] = set()
        before = None if self._is_over else self.trial.result(self.output)
        if before is None:
            return shown
        elements = list(dict.fromkeys(group.elements.values()))
        old = [self.array[j].copy() for j in elements]
        for value in self.trial.plain_candidates(self.array):
            if self._is_over or len(shown) == len(group.elements):
                break
            for j in elements:
                self.array[j] = value
            after = self.trial.result(self.output)
            for j, previous in zip(elements, old, strict=True):
                self.array[j] = previous
            if after is not None and after.shape == before.shape:
                with np.errstate(all="ignore"):
                    same = (before == after) | ((before != before) & (after != after))
                shown.update(point for point in group.elements if not same[point.at])
        return shown


def is_sampled(m: IndexingMap) -> bool:
    """Return True if only a sample of the points of a map is poked."""
    return point_count((*m.dims, *m.ranges)) > MAX_READS


def may_read(m: IndexingMap, point: Point) -> bool:
    """Return False if a map reads nothing at a point, whatever the runtime values are.

    >>> from indexing.maps import parse_map
    >>> m = parse_map("(d0)[s0] -> (s0), domain: d0 in [0, 7], s0 in [0, 7], d0 - s0 in [0, 7]")
    >>> may_read(m, Point((3,), (2,))), may_read(m, Point((3,), (4,)))
    (True, False)
    """
    values = zip((*m.dims, *m.ranges), (*point.at, *point.inside), strict=True)
    _, constraints = m.substituted(dict(values))
    every = [(*c.expr.bounds, c.lower, c.upper) for c in constraints]
    return all(low <= upper and lower <= high for low, high, lower, upper in every)


def values_near_constants(computations: Iterable[Computation]) -> tuple[float, ...]:
    """Return the scalar constants of computations, and the numbers next to them.

    A comparison with a constant changes at such values only.

    >>> import hlo
    >>> text = "p = s32[] parameter(0)  c = s32[] constant(50)  ROOT r = s32[] add(p, c)"
    >>> values_near_constants([hlo.parse(f"ENTRY e {{ {text} }}").entry])
    (49, 50, 51)
    """
    constants: dict[float, None] = {}
    for inner in [inner for computation in computations for inner in computation]:
        value = _scalar(inner)
        if value is not None:
            constants[value] = None
        if len(constants) == MAX_CONSTANTS:
            break
    return tuple(dict.fromkeys([value + step for value in constants for step in (-1, 0, 1)]))


def _scalar(instruction: Instruction) -> float | None:
    """Return the value of a finite real constant scalar, else None."""
    shape = instruction.shape
    if instruction.opcode != "constant" or not isinstance(shape, Shape) or shape.dims:
        return None
    assert instruction.literal is not None
    try:
        value: Any = np.asarray(read_literal(instruction.literal.span, shape)).item()
    except HloError:  # its value is elided
        return None
    return value if isinstance(value, int | float) and isfinite(value) else None
