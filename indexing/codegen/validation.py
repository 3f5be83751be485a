"""Validation of maps against kernels: execute loop nests, and perturb operands.

The checks of one instruction, on random operands:

* *numpy* and *loops*: both forms of the loop nest of each output compute the result of the kernel
  (for a fusion, of the interpreter);
* *poke*, a perturbation test: changing one element of an operand changes only outputs that depend
  on it by the maps; conversely, some change of an element that an exact map reads changes the
  output.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from hlo.text.source import HloError
from indexing.codegen.build import loop_nest
from indexing.codegen.differences import ElementIndex, first_difference
from indexing.codegen.element_types import TYPE_NAMES
from indexing.codegen.graph import Array
from indexing.codegen.images import images
from indexing.codegen.influence import Influence, may_hide_changes, may_hide_elements
from indexing.codegen.random_operands import given_operands, random_operands, random_values
from indexing.codegen.validation_limits import (
    MAX_OPERATIONS,
    MAX_POKED,
    POKES,
    array_shapes,
    why_not_executed,
    why_not_poked,
)
from indexing.dataflow.queries import output_to_input
from indexing.dataflow.soundness import require_sound
from indexing.execution.interpreter import PlanStep, execute_step, handler_of
from indexing.execution.machine import Machine, RunOptions
from indexing.execution.values import assembled, flattened
from indexing.maps.answers import Answer, Path, Unknown
from indexing.maps.arrays import array_leaves
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.base import MappedOp, RoutingOp

Status: TypeAlias = Literal["ok", "wrong", "skipped"]

MAX_ITERATIONS: Final = 20_000
"""Limit on the iterations of the innermost Python loops."""

_OPTIONS: Final = RunOptions(max_operations=MAX_OPERATIONS)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check of one output.

    Attributes:
        check: the name of the check: ``numpy``, ``loops``, ``poke``, ..
        status: ``ok``, ``wrong`` or ``skipped``.
        details: for ``wrong``, the location and both values; for ``skipped``, the reasons.
    """

    check: str
    status: Status
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of all checks of one instruction."""

    instruction: Instruction
    findings: tuple[Finding, ...] = field(default_factory=tuple)

    @property
    def status(self) -> Status:
        """``wrong`` if a check failed, ``ok`` if at least one passed, otherwise ``skipped``."""
        statuses = [finding.status for finding in self.findings]
        if "wrong" in statuses:
            return "wrong"
        return "ok" if "ok" in statuses else "skipped"

    @property
    def checks(self) -> str:
        """The names of the checks that passed, without duplicates."""
        return ", ".join(dict.fromkeys([f.check for f in self.findings if f.status == "ok"]))


def is_checked(instruction: Instruction) -> bool:
    """Return True unless the instruction is a parameter, a constant, or only routes values."""
    if isinstance(instruction.op, RoutingOp):
        return False
    return instruction.opcode not in ("parameter", "constant")


def validated(instruction: Instruction, seed: int, max_elements: int) -> Report:
    """Run all checks of one instruction.

    Args:
        instruction: the instruction.
        seed: seed of the random operands.
        max_elements: skip the instruction if an array has more elements.
    Raises:
        HloError: the instruction is invalid.
    """
    require_sound([instruction])
    if reason := why_not_executed(instruction, max_elements):
        return Report(instruction, (Finding("all", "skipped", (reason,)),))
    try:
        given = given_operands(instruction)
        if isinstance(given, Unknown):
            return Report(instruction, (Finding("all", "skipped", (given.reason,)),))
        case = _Case(instruction, seed, given)
    except (HloError, MemoryError) as error:
        reason = getattr(error, "message", str(error))
        return Report(instruction, (Finding("all", "skipped", (reason,)),))
    findings: list[Finding] = []
    for number in case.results:
        findings += case.nests(number)
        findings += case.perturbation(number)
        findings += case.influence(number)
    return Report(instruction, tuple(findings))


class _Case:
    """An instruction with random operands, but for those that are `given`, and its results."""

    def __init__(
        self, instruction: Instruction, seed: int, given: Mapping[tuple[int, Path], Array]
    ) -> None:
        self.instruction, self.given = instruction, given
        self.random = np.random.default_rng(seed)
        self.operands = random_operands(instruction, given, self.random)
        self.flat = [array for arrays in self.operands for array in arrays]
        self.results = self.run()

    def run(self) -> dict[int, Array]:
        """Execute the kernel; return the arrays of the result by output number."""
        values: list[Any] = [
            assembled(operand.shape, iter(arrays))
            for operand, arrays in zip(self.instruction.operands, self.operands, strict=True)
        ]
        handler = handler_of(self.instruction)
        step = PlanStep(self.instruction, handler, tuple(range(len(values))), ())
        with np.errstate(all="ignore"):
            results = flattened(execute_step(Machine(_OPTIONS), step, values))
        numbers = [number for number, _, _ in array_leaves(self.instruction.shape)]
        # a result may be a view of an operand
        return {number: each.copy() for number, each in zip(numbers, results, strict=True)}

    # ------------------------------------------------------------ loop nests

    def nests(self, number: int) -> Iterator[Finding]:
        """Check one output through its loop nest."""
        nest = loop_nest(self.instruction, number)
        if isinstance(nest, Unknown):
            yield Finding("nest", "skipped", (nest.reason,))
            return
        yield self._compared("numpy", number, nest.vectorized().run(*self.flat))
        if nest.iterations > MAX_ITERATIONS:
            reason = f"{nest.iterations} iterations, more than {MAX_ITERATIONS}"
            yield Finding("loops", "skipped", (reason,))
        else:
            yield self._compared("loops", number, nest.run(*self.flat))

    def _compared(self, check: str, number: int, actual: Array) -> Finding:
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
            yield f"  the maps read {operand.name} at {_listed(mapped)}"
        if sum(array.size for array in self.flat) > MAX_POKED // 16:
            return
        for k, operand in enumerate(self.instruction.operands):
            observed = [f"{list(j)}" for j in self._read_by_kernel(k, number, at)]
            yield f"  the kernel reads {operand.name} at {_listed(observed)}"

    def _read_by_maps(
        self, answer: Answer, operand: int, at: ElementIndex
    ) -> Iterator[ElementIndex]:
        """Yield the elements of an operand that the output element `at` depends on by the maps."""
        seen: set[ElementIndex] = set()
        for indexing_map in answer.maps[operand]:
            for j in sorted(self._images(indexing_map, at) or ()):
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
        results = self._attempt()
        array[j] = old
        before = self.results[number]
        if results is None or results[number].shape != before.shape:
            return None  # a dynamic size changed
        after = results[number]
        both_nan = (before != before) & (after != after)
        return np.asarray(~((before == after) | both_nan))

    # ------------------------------------------------------------ perturbation test

    def perturbation(self, number: int) -> Iterator[Finding]:
        """Perturb operand elements: only elements that depend on them by the maps may change."""
        if reason := why_not_poked(self.instruction, self._size, len(self.flat)):
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
        maps = self._maps_to(answer, operand, path)
        for _ in range(min(POKES, array.size)):
            j = tuple([int(self.random.integers(n)) for n in array.shape])
            changed = self._perturb(array, j, number)
            for i in () if changed is None else np.argwhere(changed)[:64]:
                at = tuple(map(int, i))
                images = [self._images(indexing_map, at) for indexing_map in maps]
                is_read = any(image is not None and j in image for image in images)
                if not is_read and None not in images:
                    return self._missing_read(operand, at, j, images)
                counts[is_read or None] += 1
        return counts

    def _maps_to(self, answer: Answer, operand: int, path: Path) -> list[IndexingMap]:
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

        The maps of fusions are not tested: a mask or a product with zero may hide an element.  Nor
        are those of dynamic shapes: the size of an array may exclude an element.
        """
        is_dynamic = any(shape.is_dynamic for shape in array_shapes(self.instruction))
        if is_dynamic or not isinstance(self.instruction.op, MappedOp):
            return
        if why_not_poked(self.instruction, self._size, len(self.flat)):
            return
        is_hidden = may_hide_elements(self.instruction) or may_hide_changes(
            self.flat, self.results.values()
        )
        status: Status = "skipped" if is_hidden else "wrong"
        trial = Influence(self.flat, self._attempt, self._images, self._draw, self.random)
        maps_by_operand = output_to_input(self.instruction, number).maps
        for operand, arrays, maps in zip(
            self.instruction.operands, self.operands, maps_by_operand, strict=True
        ):
            exact = [m for m in maps if m.grade == "exact"]
            pairs = (trial.unseen_read(arrays[0], number, m) for m in exact)
            pair = next((pair for pair in pairs if pair is not None), None)
            if pair is not None:
                at, j = map(list, pair)
                reads = f"{at}: an exact map reads {operand.name} at {j}"
                yield Finding("poke", status, (f"{reads}, but no change there has an effect",))

    @property
    def _size(self) -> int:
        return sum(array.size for array in (*self.flat, *self.results.values()))

    def _attempt(self) -> dict[int, Array] | None:
        try:
            return self.run()
        except HloError:
            return None

    def _draw(self, array: Array) -> None:
        array[...] = random_values(Shape(TYPE_NAMES[array.dtype], array.shape), self.random)

    def _missing_read(
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
        return Finding("poke", "wrong", (details, f"  the maps read {name} at {_listed(listed)}"))

    def _images(self, indexing_map: IndexingMap, at: ElementIndex) -> set[ElementIndex] | None:
        return images(self.instruction, self.operands, indexing_map, at)


def _listed(items: Sequence[str]) -> str:
    """Join at most eight items, with the number of the others.

    >>> _listed([]), _listed(["[0]", "[1]"])
    ('no element', '[0] [1]')
    """
    if not items:
        return "no element"
    return " ".join(items[:8]) + (f" and {len(items) - 8} more" if len(items) > 8 else "")
