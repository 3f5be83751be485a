"""One instruction with random operands: its loop nests compared, and its operands perturbed.

`indexing.codegen.validation` explains the checks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any, Final

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from hlo.text.source import HloError
from indexing.codegen import images
from indexing.codegen.build import loop_nest
from indexing.codegen.differences import ElementIndex, first_difference
from indexing.codegen.element_types import TYPE_NAMES
from indexing.codegen.findings import Finding, Outcome, claim_text
from indexing.codegen.graph import Array
from indexing.codegen.hidden_effects import (
    hides_parameters,
    may_hide_changes,
    may_hide_elements,
)
from indexing.codegen.influence import Influence
from indexing.codegen.map_forms import form_faults
from indexing.codegen.random_operands import random_operands, random_values
from indexing.codegen.validation_limits import (
    MAX_OPERATIONS,
    MAX_POKED,
    POKES,
    array_shapes,
    result_leaves,
    why_not_poked,
)
from indexing.dataflow.queries import output_to_input
from indexing.execution.interpreter import PlanStep, execute_step, handler_of
from indexing.execution.machine import Machine, RunOptions
from indexing.execution.values import assemble, flattened
from indexing.maps.answers import Answer, Path, Unknown
from indexing.maps.arrays import array_leaves, leaf_name
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.base import MappedOp

MAX_ITERATIONS: Final = 20_000
"""Limit on the iterations of the innermost Python loops."""

_OPTIONS: Final = RunOptions(max_operations=MAX_OPERATIONS)


class CheckedInstruction:
    """An instruction with random operands, but for those that are `given`, and its results."""

    def __init__(
        self, instruction: Instruction, seed: int, given: Mapping[tuple[int, Path], Array]
    ) -> None:
        self.instruction, self.given = instruction, given
        self.random = np.random.default_rng(seed)
        self.operands = random_operands(instruction, given, self.random)
        self._values = images.OperandValues(instruction, self.operands)
        self.flat = [array for arrays in self.operands for array in arrays]
        self.results = self.run()

    def run(self) -> dict[int, Array]:
        """Execute the kernel; return the arrays of the result that have values, by number."""
        values: list[Any] = [
            assemble(operand.shape, iter(arrays))
            for operand, arrays in zip(self.instruction.operands, self.operands, strict=True)
        ]
        handler = handler_of(self.instruction)
        step = PlanStep(self.instruction, handler, tuple(range(len(values))), ())
        with np.errstate(all="ignore"):
            results = flattened(execute_step(Machine(_OPTIONS), step, values))
        numbers = [number for number, _, _ in array_leaves(self.instruction.shape)]
        by_number = dict(zip(numbers, results, strict=True))
        # a result may be a view of an operand
        return {number: by_number[number].copy() for number, _ in result_leaves(self.instruction)}

    def forms(self, number: int) -> Iterator[Finding]:
        """Yield a finding if maps do not fit the shapes of the output and the operands."""
        faults = tuple(form_faults(output_to_input(self.instruction, number)))
        if faults:
            yield Finding("maps", "wrong", faults)

    # ------------------------------------------------------------ loop nests

    def nests(self, number: int) -> Iterator[Finding]:
        """Check one output through its loop nest."""
        nest = loop_nest(self.instruction, number)
        if isinstance(nest, Unknown):
            yield Finding("nest", "skipped", (nest.reason,))
            return
        yield self._compare_output("numpy", number, nest.vectorized().run(*self.flat))
        if nest.iterations > MAX_ITERATIONS:
            reason = f"{nest.iterations} iterations, more than {MAX_ITERATIONS}"
            yield Finding("loops", "skipped", (reason,))
        else:
            yield self._compare_output("loops", number, nest.run(*self.flat))

    def _compare_output(self, check: str, number: int, actual: Array) -> Finding:
        expected = self.results[number]
        at = first_difference(actual, expected)
        if at is None:
            return Finding(check, "ok")
        if actual.shape != expected.shape or actual.dtype != expected.dtype:
            kinds = [f"{each.dtype}{list(each.shape)}" for each in (actual, expected)]
            difference = f"output {number}: {kinds[0]} by the maps, {kinds[1]} by the kernel"
            return Finding(check, "wrong", (difference,))
        place = f"output {number} at {list(at)}" if len(self.results) > 1 else f"{list(at)}"
        details = [f"{place}: {actual[at]} by the maps, {expected[at]} by the kernel"]
        details += self._both_reads(number, at)
        return Finding(check, "wrong", tuple(details))

    def _both_reads(self, number: int, at: ElementIndex) -> Iterator[str]:
        """List the elements that maps and kernel read for one element of an output."""
        answer = output_to_input(self.instruction, number)
        for k, operand in enumerate(self.instruction.operands):
            mapped = [f"{list(j)}" for j in self._read_by_maps(answer, k, at)]
            yield f"  the maps read {operand.name} at {_list_some(mapped)}"
        if sum(array.size for array in self.flat) > MAX_POKED // 16:
            return
        for k, operand in enumerate(self.instruction.operands):
            observed = [f"{list(j)}" for j in self._read_by_kernel(k, number, at)]
            yield f"  the kernel reads {operand.name} at {_list_some(observed)}"

    def _read_by_maps(
        self, answer: Answer, operand: int, at: ElementIndex
    ) -> Iterator[ElementIndex]:
        """Yield the elements of an operand that the output element `at` depends on by the maps."""
        seen: set[ElementIndex] = set()
        for indexing_map in answer.maps[operand]:
            for j in sorted(self.images(indexing_map, at) or ()):
                if j not in seen:
                    seen.add(j)
                    yield j

    def _read_by_kernel(
        self, operand: int, number: int, at: ElementIndex
    ) -> Iterator[ElementIndex]:
        """Yield the elements of an operand whose perturbation changes the output element `at`."""
        for array in self.operands[operand]:
            for j in np.ndindex(*array.shape):
                changed = self._perturb(array, j, number)
                if changed is not None and changed[at]:
                    yield j

    def _perturb(self, array: Array, j: ElementIndex, number: int) -> Array | None:
        """Change one operand element; return the mask of output elements that change.

        None if no other value was drawn, if the kernel rejects it, or if the shape of the output
        changes.
        """
        old = array[j].copy()
        shape = Shape(TYPE_NAMES[array.dtype], ())
        for _ in range(8):
            array[j] = random_values(shape, self.random)
            if array[j] != old:
                break
        else:
            array[j] = old
            return None
        results = self.attempt()
        array[j] = old
        return self._changed_elements(results, number)

    def _changed_elements(self, results: Mapping[int, Array] | None, number: int) -> Array | None:
        """Return the mask of output elements that differ from those of `results`.

        None if the kernel rejected the operands, or if a dynamic size changed.
        """
        before = self.results[number]
        if results is None or results[number].shape != before.shape:
            return None
        after = results[number]
        both_nan = (before != before) & (after != after)
        return np.asarray(~((before == after) | both_nan))

    # ------------------------------------------------------------ perturbation test

    def perturbation(self, number: int) -> Iterator[Finding]:
        """Perturb operand elements: only elements that depend on them by the maps may change."""
        if reason := self._why_not_poked():
            yield Finding("poke", "skipped", (reason,))
            return
        answer = output_to_input(self.instruction, number)
        skipped: list[str] = []
        is_checked = False
        for k, operand in enumerate(self.instruction.operands):
            unknown = answer.unknown[k]
            if unknown is not None:
                skipped.append(unknown.reason)
                continue
            paths = [path for _, path, _ in array_leaves(operand.shape)]
            for path, array in zip(paths, self.operands[k], strict=True):
                if (k, path) in self.given:
                    continue
                counts = self._poke(answer, k, path, array, number)
                if isinstance(counts, Finding):
                    yield counts
                    return
                is_checked = is_checked or counts[True] > 0 or not counts[None]
                if counts[None]:
                    reason = f"cannot enumerate the elements of {operand.name} that the maps read"
                    skipped.append(f"{reason}, for {counts[None]} changed elements")
        if is_checked:
            yield Finding("poke", "ok")
        if skipped:
            yield Finding("poke", "skipped", tuple(skipped))

    def _poke(
        self, answer: Answer, operand: int, path: Path, array: Array, number: int
    ) -> Finding | Counter[bool | None]:
        """Perturb elements of one operand array.

        Returns:
            The finding of an output element that changed although no map reads the perturbed
            element; otherwise the number of changed elements that the maps explain (`True`), and
            of those whose reads cannot be enumerated (`None`).
        """
        counts: Counter[bool | None] = Counter()
        maps = self.maps_to(answer, operand, path)
        unread = self._unread(maps, array, number)
        if unread is not None:
            name = self.array_name(operand, path)
            details = f"{list(unread)}: the kernel reads {name}, but no map reads it there"
            return Finding("poke", "wrong", (details,))
        for _ in range(min(POKES, array.size)):
            j = tuple([int(self.random.integers(n)) for n in array.shape])
            changed = self._perturb(array, j, number)
            for i in () if changed is None else np.argwhere(changed)[:64]:
                at = tuple(map(int, i))
                images = [self.images(indexing_map, at) for indexing_map in maps]
                is_read = any(image is not None and j in image for image in images)
                if not is_read and None not in images:
                    return self.missing_read(operand, at, j, images)
                counts[is_read or None] += 1
        return counts

    def _unread(
        self, maps: Sequence[IndexingMap], array: Array, number: int
    ) -> ElementIndex | None:
        """Return an output element that depends on an operand array from which no map reads it.

        All elements of the operand change at once.
        """
        old = array.copy()
        self.draw(array)
        results = self.attempt()
        array[...] = old
        changed = self._changed_elements(results, number)
        if changed is None:
            return None
        indices = np.argwhere(changed)
        for i in dict.fromkeys([tuple(map(int, i)) for i in (*indices[:64], *indices[-64:])]):
            images = [self.images(indexing_map, i) for indexing_map in maps]
            if not any(image is None or image for image in images):
                return i
        return None

    def maps_to(self, answer: Answer, operand: int, path: Path) -> list[IndexingMap]:
        """Return the maps to one array of an operand, and of the same instruction elsewhere."""
        operands = self.instruction.operands
        same = [k for k, each in enumerate(operands) if each is operands[operand]]
        return [
            indexing_map
            for k in same
            for indexing_map, at in zip(answer.maps[k], answer.paths[k], strict=True)
            if at == path
        ]

    def influence(self, number: int) -> Iterator[Finding]:
        """Yield a finding for each operand with an exact map to an element without influence.

        For the maps of fusions see `observation`.  Those of dynamic shapes are not tested: the size
        of an array may exclude an element.
        """
        if not self.is_static or not isinstance(self.instruction.op, MappedOp):
            return
        is_hidden = may_hide_elements(self.instruction) or may_hide_changes(
            self.flat, self.results.values()
        )
        status: Outcome
        apart = self._with_operands_apart()
        trial = Influence(apart.flat, apart.attempt, apart.images, apart.draw, apart.random)
        maps_by_operand = output_to_input(self.instruction, number).maps
        for operand, arrays, maps in zip(
            self.instruction.operands, apart.operands, maps_by_operand, strict=True
        ):
            exact = [m for m in maps if m.grade == "exact"]
            pairs = (trial.unseen_read(arrays[0], number, m) for m in exact)
            pair = next((pair for pair in pairs if pair is not None), None)
            if pair is not None:
                called = self.instruction.called_computations
                may_hide = is_hidden or any(map(hides_parameters, called)) or not trial.is_number
                status = "skipped" if may_hide else "wrong"
                claim = claim_text(pair[0], operand.name, pair[1])
                yield Finding("poke", status, (f"{claim}, but {trial.no_effect}",))

    def _with_operands_apart(self) -> CheckedInstruction:
        """Return a copy with an array of its own for each operand.

        Each map to an operand is exact by itself: ``xor(x, x)`` reads x twice, although no value of
        x has an effect.
        """
        apart = copy(self)
        apart.operands = [[array.copy() for array in arrays] for arrays in self.operands]
        apart.flat = [array for arrays in apart.operands for array in arrays]
        apart._values = images.OperandValues(self.instruction, apart.operands)
        return apart

    def distinct_operands(self) -> Iterator[tuple[int, Path, Array]]:
        """Yield number, path and array of each operand array that is not given, once."""
        operands = self.instruction.operands
        for k, operand in enumerate(operands):
            if operands.index(operand) == k:
                for path, array in zip(self._paths(k), self.operands[k], strict=True):
                    if (k, path) not in self.given:
                        yield k, path, array

    def _paths(self, operand: int) -> list[Path]:
        return [path for _, path, _ in array_leaves(self.instruction.operands[operand].shape)]

    def array_name(self, operand: int, path: Path) -> str:
        """Return the name of an operand array: ``p``, ``p{1}``."""
        return leaf_name(self.instruction.operands[operand].name, path)

    @property
    def is_static(self) -> bool:
        """True if all arrays are small enough to poke, and none has a dynamic size."""
        is_dynamic = any(shape.is_dynamic for shape in array_shapes(self.instruction))
        return not is_dynamic and not self._why_not_poked()

    def _why_not_poked(self) -> str:
        """Return the reason why operands are not perturbed; empty if they are."""
        size = sum(array.size for array in (*self.flat, *self.results.values()))
        return why_not_poked(self.instruction, size, len(self.flat))

    def attempt(self) -> dict[int, Array] | None:
        """Execute the kernel; None if it rejects the operands."""
        try:
            return self.run()
        except HloError:
            return None

    def draw(self, array: Array) -> None:
        """Fill an array with random values."""
        array[...] = random_values(Shape(TYPE_NAMES[array.dtype], array.shape), self.random)

    def missing_read(
        self,
        operand: int,
        at: ElementIndex,
        j: ElementIndex,
        images: Sequence[set[ElementIndex] | None],
    ) -> Finding:
        """Return the finding that the kernel reads an element that no map reads."""
        name = self.instruction.operands[operand].name
        listed = [str(list(each)) for image in images for each in sorted(image or ())]
        details = f"{list(at)}: the kernel reads {name} at {list(j)}"
        return Finding(
            "poke", "wrong", (details, f"  the maps read {name} at {_list_some(listed)}")
        )

    def images(self, indexing_map: IndexingMap, at: ElementIndex) -> set[ElementIndex] | None:
        """Return the elements that a map relates to one element, for the present operands."""
        return images.images(self._values, indexing_map, at)

    def aim(
        self,
        indexing_map: IndexingMap,
        at: ElementIndex,
        inside: Sequence[int],
        values: Sequence[int],
    ) -> bool:
        """Set mask values so that a map reads a point; return True if that is done."""
        return images.aim(self._values, indexing_map, at, inside, values)

    def image(
        self, indexing_map: IndexingMap, at: ElementIndex, inside: Sequence[int]
    ) -> ElementIndex | None:
        """Return the element that a map relates to a point, for the present operands."""
        return images.image(self._values, indexing_map, at, inside)


def _list_some(items: Sequence[str]) -> str:
    """Join at most eight items, with the number of the others.

    >>> _list_some([]), _list_some(["[0]", "[1]"])
    ('no element', '[0] [1]')
    """
    if not items:
        return "no element"
    return " ".join(items[:8]) + (f" and {len(items) - 8} more" if len(items) > 8 else "")
