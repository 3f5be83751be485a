"""Checks maps against kernels: by running loop nests, and by perturbing operands.

For one instruction with random operands:

* *numpy* and *loops*: each output by its loop nest, in both forms, equals the result of the kernel
  (for a fusion, of the interpreter);
* *poke*, a perturbation test: changing one element of an operand changes only outputs that depend
  on it by the maps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.shape import ELEMENT_TYPES, Shape, dtype, leaves
from hlo.text.source import HloError
from indexing.codegen.build import loop_nest
from indexing.codegen.differences import first_difference
from indexing.codegen.graph import Array
from indexing.codegen.lowering import TYPE_NAMES
from indexing.dataflow.queries import output_to_input
from indexing.execution.interpreter import PlanStep, computed, handler_of
from indexing.execution.machine import Machine
from indexing.execution.values import assembled, flattened, random_array
from indexing.maps.answers import Answer, Path, Unknown
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.base import MappedOp, RoutingOp
from indexing.ops.structured_ops import InlineOp

Index: TypeAlias = tuple[int, ...]
Status: TypeAlias = Literal["ok", "wrong", "skipped"]

MAX_ITERATIONS: Final = 20_000
"""Limit on the iterations of the innermost Python loops."""

MAX_POKED: Final = 1 << 16
"""Limit on the elements of operands and results of a kernel that is poked."""

POKES: Final = 6
"""How many elements of each operand are changed, one after the other."""

MAX_LISTED: Final = 1 << 12
"""Limit on the values of range variables that are enumerated."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check of one output."""

    check: str
    status: Status
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The findings about one instruction."""

    instruction: Instruction
    findings: tuple[Finding, ...] = field(default_factory=tuple)

    @property
    def status(self) -> Status:
        """The worst of the findings; skipped if nothing could be checked."""
        statuses = [finding.status for finding in self.findings]
        if "wrong" in statuses:
            return "wrong"
        return "ok" if "ok" in statuses else "skipped"

    @property
    def checks(self) -> str:
        """The checks that passed, each once."""
        return ", ".join(dict.fromkeys([f.check for f in self.findings if f.status == "ok"]))


def is_checked(instruction: Instruction) -> bool:
    """Whether there is anything to check: no parameter, constant or routing of values."""
    if isinstance(instruction.op, RoutingOp):
        return False
    return instruction.opcode not in ("parameter", "constant")


def validated(instruction: Instruction, seed: int, most: int) -> Report:
    """Check one instruction.

    Args:
        seed: of the operands.
        most: elements of the largest array; beyond, the instruction is skipped.
    """
    size = max([prod(s.dims) for s in arrays_of(instruction)], default=0)
    reason = ""
    if not isinstance(instruction.op, MappedOp | InlineOp):
        reason = f"{instruction.opcode} has no kernel"
        if instruction.called_computations:
            reason += "; what it calls is checked where it stands"
    elif size > most:
        reason = f"an array has {size} elements, more than {most}"
    if reason:
        return Report(instruction, (Finding("all", "skipped", (reason,)),))
    try:
        case = _Case(instruction, seed)
    except (HloError, MemoryError) as error:
        reason = getattr(error, "message", str(error))
        return Report(instruction, (Finding("all", "skipped", (reason,)),))
    findings: list[Finding] = []
    for number in range(len(case.results)):
        findings += case.nests(number)
        findings += case.poked(number)
    return Report(instruction, tuple(findings))


def arrays_of(instruction: Instruction) -> Iterator[Shape]:
    """The array shapes of results, operands, and the instructions inside a fusion."""
    shapes = [instruction.shape, *[operand.shape for operand in instruction.operands]]
    if isinstance(instruction.op, InlineOp):
        shapes += [inner.shape for inner in instruction.called_computations[0]]
    for shape in shapes:
        for _, leaf in leaves(shape):
            if isinstance(leaf, Shape):
                yield leaf


class _Case:
    """An instruction with random operands, and its results for them."""

    def __init__(self, instruction: Instruction, seed: int) -> None:
        self.instruction = instruction
        self.random = np.random.default_rng(seed)
        self.operands = [
            [random_values(leaf, self.random) for _, leaf in leaves(operand.shape)
             if isinstance(leaf, Shape)]
            for operand in instruction.operands
        ]  # fmt: skip
        self.flat = [array for arrays in self.operands for array in arrays]
        self.results = self.run()

    def run(self) -> tuple[Array, ...]:
        """By the kernel."""
        values: list[Any] = [
            assembled(operand.shape, iter(arrays))
            for operand, arrays in zip(self.instruction.operands, self.operands, strict=True)
        ]
        handler = handler_of(self.instruction)
        step = PlanStep(self.instruction, handler, tuple(range(len(values))), ())
        with np.errstate(all="ignore"):
            found = flattened(computed(Machine(), step, values))
        return tuple([array.copy() for array in found])  # it may be a view of an operand

    # ------------------------------------------------------------ loop nests

    def nests(self, number: int) -> Iterator[Finding]:
        """One output by its loop nest."""
        nest = loop_nest(self.instruction, number)
        if isinstance(nest, Unknown):
            yield Finding("nest", "skipped", (nest.reason,))
            return
        yield self._compared("numpy", number, nest.vectorized().run(*self.flat))
        if nest.iterations > MAX_ITERATIONS:
            reason = f"they take {nest.iterations} turns, more than {MAX_ITERATIONS}"
            yield Finding("loops", "skipped", (reason,))
        else:
            yield self._compared("loops", number, nest.run(*self.flat))

    def _compared(self, check: str, number: int, found: Array) -> Finding:
        wanted = self.results[number]
        at = first_difference(found, wanted)
        if at is None:
            return Finding(check, "ok")
        place = f"output {number} at {list(at)}" if len(self.results) > 1 else f"{list(at)}"
        details = [f"{place}: the maps give {found[at]}, the kernel gives {wanted[at]}"]
        details += self._sides(number, at)
        return Finding(check, "wrong", tuple(details))

    def _sides(self, number: int, at: Index) -> Iterator[str]:
        """What maps and kernel read for one element of an output."""
        answer = output_to_input(self.instruction, number)
        for k, operand in enumerate(self.instruction.operands):
            said = [f"{list(j)}" for j in self._said(answer, k, at)]
            yield f"  the maps read {operand.name} at {_listed(said)}"
        if sum(array.size for array in self.flat) > MAX_POKED // 16:
            return
        for k, operand in enumerate(self.instruction.operands):
            seen = [f"{list(j)}" for j in self._read_by_kernel(k, number, at)]
            yield f"  the kernel reads {operand.name} at {_listed(seen)}"

    def _said(self, answer: Answer, operand: int, at: Index) -> Iterator[Index]:
        """The elements of an operand that the element `at` needs by the maps."""
        seen: set[Index] = set()
        for found in answer.maps[operand]:
            for j in sorted(self._images(found, at) or ()):
                if j not in seen:
                    seen.add(j)
                    yield j

    def _read_by_kernel(self, operand: int, number: int, at: Index) -> Iterator[Index]:
        """Which elements of an operand move the element `at` when they are changed."""
        for array in self.operands[operand]:
            for j in np.ndindex(*array.shape):
                moved = self._moved(array, j, number)
                if moved is not None and moved[at]:
                    yield j

    def _moved(self, array: Array, j: Index, number: int) -> Array | None:
        """Which elements of an output move when one element is changed; None: it cannot be."""
        old = array[j].copy()
        shape = Shape(TYPE_NAMES[array.dtype], ())
        for _ in range(8):
            array[j] = random_values(shape, self.random)
            if array[j] != old:
                break
        else:
            array[j] = old
            return None
        try:
            after = self.run()[number]
        finally:
            array[j] = old
        before = self.results[number]
        if after.shape != before.shape:
            return None  # a dynamic size changed: the arrays cannot be compared
        both_nan = (before != before) & (after != after)
        return np.asarray(~((before == after) | both_nan))

    # ------------------------------------------------------------ poking

    def poked(self, number: int) -> Iterator[Finding]:
        """Change elements of the operands: only what needs them by the maps may move."""
        size = sum(array.size for array in (*self.flat, *self.results))
        if size > MAX_POKED:
            reason = f"operands and results have {size} elements, more than {MAX_POKED}"
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
            paths = [path for path, leaf in leaves(operand.shape) if isinstance(leaf, Shape)]
            for path, array in zip(paths, self.operands[k], strict=True):
                counts = self._poke(answer, k, path, array, number)
                if isinstance(counts, Finding):
                    yield counts
                    return
                is_checked = is_checked or counts[True] > 0 or not counts[None]
                if counts[None]:
                    reason = f"what the maps read of {operand.name} is not listed here"
                    skipped.append(f"{reason}, for {counts[None]} of the elements that moved")
        if is_checked:
            yield Finding("poke", "ok")
        if skipped:
            yield Finding("poke", "skipped", tuple(skipped))

    def _poke(
        self, answer: Answer, operand: int, path: Path, array: Array, number: int
    ) -> Finding | Counter[bool | None]:
        """Change elements of an array.

        Returns:
            A result that moved though no map leads from it to the change; or how many moved by the
            maps (`True`), and for how many that could not be determined (`None`).
        """
        counts: Counter[bool | None] = Counter()
        pairs = zip(answer.maps[operand], answer.paths[operand], strict=True)
        maps = [found for found, at in pairs if at == path]
        for _ in range(min(POKES, array.size)):
            j = tuple([int(self.random.integers(n)) for n in array.shape])
            moved = self._moved(array, j, number)
            for i in () if moved is None else np.argwhere(moved)[:64]:
                at = tuple(map(int, i))
                images = [self._images(found, at) for found in maps]
                is_read = any(image is not None and j in image for image in images)
                if not is_read and None not in images:
                    return self._missed(operand, at, j, images)
                counts[is_read or None] += 1
        return counts

    def _missed(
        self, operand: int, at: Index, j: Index, images: Sequence[set[Index] | None]
    ) -> Finding:
        """The kernel reads an element that no map leads to."""
        name = self.instruction.operands[operand].name
        listed = [str(list(each)) for image in images for each in sorted(image or ())]
        details = f"{list(at)}: the kernel reads {name} at {list(j)}"
        return Finding("poke", "wrong", (details, f"  the maps read {name} at {_listed(listed)}"))

    def _images(self, found: IndexingMap, at: Index) -> set[Index] | None:
        """The elements that a map relates to one element; None if they cannot be enumerated."""
        count = prod(v.upper - v.lower + 1 for v in found.ranges)
        if count > MAX_LISTED:
            return None
        related: set[Index] = set()
        for inside in product(*[range(v.lower, v.upper + 1) for v in found.ranges]):
            point = dict(zip((*found.dims, *found.ranges), (*at, *inside), strict=True))
            values = []
            for rt in found.runtime:
                value = self._runtime(rt, point)
                if value is None:
                    return None
                values.append(value)
            results = found.evaluate(at, inside, values)
            if results is not None:
                related.add(results)
        return related

    def _runtime(self, rt: RuntimeVariable, point: Mapping[Any, int]) -> int | None:
        """The value of a runtime variable that is an element of an operand."""
        if rt.calls or rt.source not in self.instruction.operands:
            return None
        number = self.instruction.operands.index(rt.source)
        if len(self.operands[number]) != 1 or not isinstance(
            self.instruction.operands[number].shape, Shape
        ):
            return None
        if any(v not in point for e in rt.index for v in e.variables()):
            return None
        value = int(self.operands[number][0][tuple([e.value(dict(point)) for e in rt.index])])
        return value if rt.clamp is None else min(max(value, rt.clamp[0]), rt.clamp[1])


def _listed(items: Sequence[str]) -> str:
    """A few of the items.

    >>> _listed([]), _listed(["[0]", "[1]"])
    ('no element', '[0] [1]')
    """
    if not items:
        return "no element"
    return " ".join(items[:8]) + (f" and {len(items) - 8} more" if len(items) > 8 else "")


def random_values(shape: Shape, random: np.random.Generator) -> Array:
    """Random values that show which element is read: as `random_array`, with negative integers."""
    kind, element = dtype(shape.element_type), ELEMENT_TYPES[shape.element_type]
    if element.kind not in ("integral", "unsigned"):
        return random_array(shape, random)
    low = 0 if element.kind == "unsigned" else -2
    high = min(10, 1 << (element.bits - (element.kind == "integral")))
    return np.asarray(random.integers(max(low, -high), high, shape.dims)).astype(kind)
