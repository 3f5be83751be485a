"""Pokes of fusions with masks: integers at the borders of masks, and elements on both sides.

Whether a mask hides an element may depend on integers, such as a position or lengths.  Small random
integers seldom lie at the border of a mask, and a few random elements seldom beside it.  So all
elements that an output element does not read are changed at once, for many such integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Final

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.shape import ELEMENT_TYPES
from indexing.codegen.checked_instruction import CheckedInstruction
from indexing.codegen.differences import ElementIndex
from indexing.codegen.findings import Finding
from indexing.codegen.graph import Array
from indexing.codegen.influence import Influence
from indexing.codegen.observation import values_near_constants
from indexing.codegen.validation_limits import array_shapes, element_operations
from indexing.dataflow.masks import has_masks
from indexing.dataflow.queries import output_to_input
from indexing.maps.arrays import array_leaves
from indexing.maps.indexing_map import IndexingMap

INTEGERS: Final = ("integral", "unsigned")
"""Kinds of element types."""

MASK_FILLS: Final = 24
"""Number of fillings of the operands, if some have integers."""

MASK_POKES: Final = 32
"""Limit on the elements of the result whose reads are compared in a filling."""

MASK_OPERATIONS: Final = 40_000_000
"""Limit on the element operations of one execution for each of them, but for `FEWEST_POKES`."""

INSTRUCTION_OPERATIONS: Final = 100_000
"""What one executed instruction costs besides, in element operations."""

FEWEST_POKES: Final = 4
"""The number of elements whose reads are compared however long an execution takes."""


def border_values(instruction: Instruction) -> tuple[int, ...]:
    """Return integers next to sizes and constants, inside and outside of the index ranges.

    Empty if the instruction has no masks, or no operand has integers.
    """
    operands = [leaf for each in instruction.operands for _, _, leaf in array_leaves(each.shape)]
    has_integers = any(ELEMENT_TYPES[leaf.element_type].kind in INTEGERS for leaf in operands)
    if not has_integers or not has_masks(instruction):
        return ()
    sizes = {n for shape in array_shapes(instruction) for n in shape.dims}
    values = [k for n in sorted(sizes) for k in (n - 1, n, n + 1, n // 2, -n)]
    near = [int(v) for v in values_near_constants(instruction.called_computations)]
    return tuple(dict.fromkeys([0, 1, -1, *values, *near]))


def mask_findings(case: CheckedInstruction, number: int) -> Iterator[Finding]:
    """Yield a finding if an element that no map reads changes an output of a masked fusion.

    Args:
        number: the number of the output.
    """
    if not case.is_static or not has_masks(case.instruction):
        return
    borders = border_values(case.instruction)
    operands = list(case.distinct_operands())
    trial = Influence(
        [array for *_, array in operands],
        case.attempt,
        case.images,
        case.draw,
        case.random,
        borders=borders,
    )
    answer = output_to_input(case.instruction, number)
    with trial.restore_after():
        for fill in range(MASK_FILLS if borders else 1):
            trial.draw_borders(fill)
            for operand, path, array in operands:
                if answer.unknown[operand] is None:
                    maps = case.maps_to(answer, operand, path)
                    fault = _missing_read(case, trial, array, number, maps, operand)
                    if fault is not None:
                        yield fault
                        return


def _missing_read(
    case: CheckedInstruction,
    trial: Influence,
    array: Array,
    number: int,
    maps: Sequence[IndexingMap],
    operand: int,
) -> Finding | None:
    """Change all elements that an output element does not read by the maps, at once."""
    before = trial.result(number)
    if before is None:
        return None
    groups: dict[bytes, list[ElementIndex]] = {}
    for at in _elements(before, _poke_count(case.instruction), trial.random):
        images = [case.images(m, at) for m in maps]
        if None not in images:
            read = np.zeros(array.shape, np.bool_)
            for image in filter(None, images):
                index = np.array(list(image), np.intp).reshape(len(image), array.ndim)
                read[tuple(index.T)] = True
            groups.setdefault(read.tobytes(), []).append(at)
    for key, places in groups.items():
        others = ~np.frombuffer(key, np.bool_).reshape(array.shape)
        changed = _find_change(trial, array, number, before, others, places)
        if changed is not None:
            hidden = [tuple(map(int, j)) for j in np.argwhere(others)]
            alone = (j for j in hidden if _changes(trial, array, number, before, j, changed))
            read_there = {tuple(map(int, j)) for j in np.argwhere(~others)}
            return case.missing_read(operand, changed, next(alone, hidden[0]), [read_there])
    return None


def _poke_count(instruction: Instruction) -> int:
    """Return the limit on the elements of the result whose reads are compared in a filling."""
    executed = sum(map(len, instruction.called_computations))
    operations = element_operations(instruction) + INSTRUCTION_OPERATIONS * executed
    return min(MASK_POKES, max(FEWEST_POKES, MASK_OPERATIONS // max(1, operations)))


def _changes(
    trial: Influence,
    array: Array,
    number: int,
    before: Array,
    element: ElementIndex,
    place: ElementIndex,
) -> bool:
    """Return True if an element of the result changes with one element of an operand."""
    alone = np.zeros(array.shape, np.bool_)
    alone[element] = True
    return _find_change(trial, array, number, before, alone, [place]) is not None


def _elements(array: Array, count: int, random: np.random.Generator) -> Iterator[ElementIndex]:
    """Yield all elements of an array of at most `count`, else so many random ones."""
    if array.size <= count:
        yield from product(*map(range, array.shape))
        return
    for _ in range(count):
        yield tuple([int(random.integers(n)) for n in array.shape])


def _find_change(
    trial: Influence,
    array: Array,
    number: int,
    before: Array,
    elements: Array,
    places: Sequence[ElementIndex],
) -> ElementIndex | None:
    """Return one of some elements of the result that changes with elements of an operand.

    Args:
        elements: the mask of the elements that change.
    """
    if not elements.any():
        return None
    old = array[elements]
    for value in islice(trial.plain_candidates(array), 0, None, 3):
        array[elements] = value
        after = trial.result(number)
        array[elements] = old
        if after is None or after.shape != before.shape:
            continue
        with np.errstate(all="ignore"):
            same = (before == after) | ((before != before) & (after != after))
        if same.all():
            continue
        for at in places:
            if not same[at]:
                return at
    return None
