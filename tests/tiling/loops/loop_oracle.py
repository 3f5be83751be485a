"""Enumeration of tilings with loops: sets of elements, block by block and step by step.

A `Problem` states in plain Python which elements each point of each phase reads.  Nothing here is
computed from maps: the formulas are those of the operations, written by hand for each family.

`enumerate_steps` visits every block, every phase in order, and every step of its loops.  An array's
elements of one step are a set; several accesses of one array are united.  A step whose set equals
that of the step before loads nothing.  A set that is the same in all steps of a phase stays until
the last phase that reads the array, and its elements are free for later phases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

Point: TypeAlias = Mapping[str, int]
Element: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class HandArray:
    """An array of a problem: its sizes, and the bytes of one element."""

    dims: tuple[int, ...]
    width: int


@dataclass(frozen=True)
class HandRead:
    """One access: the element that a point reads; `None` over padding.

    Attributes:
        array: the name of the array.
        variables: the dimensions and loops on which the element depends.
        element: the element at a point.
        free: further variables, which take all values in one step, with their sizes.
    """

    array: str
    variables: str
    element: Callable[..., Element | None]
    free: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class HandPhase:
    """A loop nest that runs through before the next phase begins, the outermost loop first."""

    loops: tuple[str, ...]
    reads: tuple[HandRead, ...]


@dataclass(frozen=True)
class Problem:
    """A problem: its HLO, its parallel dimensions and loops by name, and its phases.

    Attributes:
        text: the module; the entry's root, or a fusion that is its root, is tiled.
        dims: the parallel dimensions, in the order of the result's.
        loops: the loops by name.
        arrays: the arrays by name.
        phases: the phases in order.
        width: the bytes of one element of the result.
        masks: True if masks leave out elements.
    """

    text: str
    dims: dict[str, int]
    loops: dict[str, int]
    arrays: dict[str, HandArray]
    phases: tuple[HandPhase, ...]
    width: int
    masks: bool = field(default=False)


@dataclass(frozen=True)
class Enumerated:
    """The figures of one tiling, counted."""

    bytes: int
    resident: int
    blocks: int
    steps: int
    compulsory: int


def _pieces(size: int, step: int) -> list[range]:
    return [range(k, min(k + step, size)) for k in range(0, size, step)]


def step_sets(
    problem: Problem, phase: HandPhase, block: Mapping[str, range], steps: Mapping[str, int]
) -> Iterator[dict[str, frozenset[Element]]]:
    """Yield for each step of a phase the elements of each array that it reads."""
    each = [_pieces(problem.loops[loop], steps[loop]) for loop in phase.loops]
    for parts in product(*each):
        here = dict(block) | dict(zip(phase.loops, parts, strict=True))
        sets: dict[str, set[Element]] = {}
        for read in phase.reads:
            free = dict(read.free)
            ranges = [here.get(v) or range(free[v]) for v in read.variables.split()]
            reached = {read.element(*point) for point in product(*ranges)}
            sets.setdefault(read.array, set()).update(e for e in reached if e is not None)
        yield {array: frozenset(elements) for array, elements in sets.items()}


def blocks_of(problem: Problem, sizes: Sequence[int]) -> Iterator[dict[str, range]]:
    """Yield the blocks in row-major order."""
    each = [_pieces(n, size) for n, size in zip(problem.dims.values(), sizes, strict=True)]
    for parts in product(*each):
        yield dict(zip(problem.dims, parts, strict=True))


def enumerate_steps(problem: Problem, sizes: Sequence[int], steps: Mapping[str, int]) -> Enumerated:
    """Return the figures of a tiling, block by block and step by step."""
    loaded = resident = blocks = most_steps = 0
    touched: dict[str, set[Element]] = {}
    last = {read.array: k for k, phase in enumerate(problem.phases) for read in phase.reads}
    width = {name: array.width for name, array in problem.arrays.items()}
    for block in blocks_of(problem, sizes):
        blocks += 1
        held: dict[str, frozenset[Element]] = {}
        taken = 0
        for number, phase in enumerate(problem.phases):
            sets = list(step_sets(problem, phase, block, steps))
            taken += len(sets)
            constant = {
                array: elements
                for array, elements in sets[0].items()
                if all(step[array] == elements for step in sets)
            }
            for array in sets[0]:
                before: frozenset[Element] | None = None
                for step in sets:
                    if step[array] != before:
                        fresh = step[array] - held.get(array, frozenset())
                        loaded += len(fresh) * width[array]
                        touched.setdefault(array, set()).update(fresh)
                    before = step[array]
            for step in sets:
                now = {a: s for a, s in held.items() if last[a] >= number}
                for array, elements in step.items():
                    now[array] = now.get(array, frozenset()) | elements
                resident = max(resident, sum(len(s) * width[a] for a, s in now.items()))
            for array, elements in constant.items():
                held[array] = held.get(array, frozenset()) | elements
        most_steps = max(most_steps, taken)
    stored = problem.width
    for n in problem.dims.values():
        stored *= n
    compulsory = sum(len(s) * width[a] for a, s in touched.items()) + stored
    return Enumerated(loaded + stored, resident, blocks, most_steps, compulsory)


def wave_loads(
    problem: Problem, sizes: Sequence[int], steps: Mapping[str, int], order: list[int], wave: int
) -> int:
    """Return the bytes with waves of `wave` blocks in lockstep, which share each step's loads.

    For problems of one phase.  Nothing survives between waves.
    """
    (phase,) = problem.phases
    blocks = list(blocks_of(problem, sizes))
    total = problem.width
    for n in problem.dims.values():
        total *= n
    for start in range(0, len(order), wave):
        own = [
            list(step_sets(problem, phase, blocks[b], steps)) for b in order[start : start + wave]
        ]
        for array in own[0][0]:
            for number in range(len(own[0])):
                fresh: set[Element] = set()
                for each in own:
                    if number == 0 or each[number][array] != each[number - 1][array]:
                        fresh |= each[number][array]
                total += len(fresh) * problem.arrays[array].width
    return total


def sequential_loads(
    problem: Problem, sizes: Sequence[int], steps: Mapping[str, int], order: Sequence[int]
) -> int:
    """Return the bytes of one core that runs the blocks in sequence, and keeps the last tiles.

    For problems in which each array is read in one phase.

    Args:
        order: the dimensions of the result, the outermost first.
    """
    total = problem.width
    for n in problem.dims.values():
        total *= n
    names = list(problem.dims)
    blocks = sorted(
        blocks_of(problem, sizes), key=lambda block: [block[names[k]].start for k in order]
    )
    last: dict[str, frozenset[Element]] = {}
    for block in blocks:
        for phase in problem.phases:
            for step in step_sets(problem, phase, block, steps):
                for array, elements in step.items():
                    if last.get(array) != elements:
                        total += len(elements) * problem.arrays[array].width
                    last[array] = elements
    return total
