"""Maps against kernels: what they compute as loop nests, and what a kernel reads when it is poked.

A map that is wrong computes a wrong number.  For one instruction with random operands:

* *numpy* and *loops*: each output by its loop nest, in both forms, is what the kernel gives (for a
  fusion: what the interpreter gives for the computation that it calls);
* *poke*: when one element of an operand is changed, only outputs move that need it by the maps.
"""

from __future__ import annotations

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
from indexing.dataflow.queries import output_to_input
from indexing.execution.interpreter import Step, computed, handler_of
from indexing.execution.machine import Machine
from indexing.execution.values import assembled, flattened
from indexing.maps.answers import Answer, Path, Unknown
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.base import MappedOp, RoutingOp
from indexing.ops.structured_ops import InlineOp

Index: TypeAlias = tuple[int, ...]
Verdict: TypeAlias = Literal["ok", "wrong", "skipped"]

MOST_TURNS: Final = 20_000
"""Loops of Python are run up to so many turns of the innermost one."""

MOST_POKED: Final = 1 << 16
"""Kernels are poked up to so many elements of operands and results."""

POKES: Final = 6
"""So many elements of each operand are changed, one after the other."""

MOST_LISTED: Final = 1 << 12
"""Range variables are tried out up to so many values."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one way of checking one output found."""

    check: str
    verdict: Verdict
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What is found of one instruction."""

    instruction: Instruction
    findings: tuple[Finding, ...] = field(default_factory=tuple)

    @property
    def verdict(self) -> Verdict:
        """The worst of the findings; skipped if nothing could be checked."""
        verdicts = [finding.verdict for finding in self.findings]
        if "wrong" in verdicts:
            return "wrong"
        return "ok" if "ok" in verdicts else "skipped"

    @property
    def checks(self) -> str:
        """The ways that found it right, each once."""
        return ", ".join(dict.fromkeys([f.check for f in self.findings if f.verdict == "ok"]))


def is_checked(instruction: Instruction) -> bool:
    """It is more than a value of the text, or values passed on as they are."""
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
    """The shapes of what it gives and takes, and of what a fusion computes on the way."""
    shapes = [instruction.shape, *[operand.shape for operand in instruction.operands]]
    if isinstance(instruction.op, InlineOp):
        shapes += [inner.shape for inner in instruction.called_computations[0]]
    for shape in shapes:
        for _, leaf in leaves(shape):
            if isinstance(leaf, Shape):
                yield leaf


@dataclass(frozen=True, slots=True)
class _Poked:
    """How many elements moved that the maps said; and of how many that was not found out."""

    decided: int
    undecided: int


class _Case:
    """An instruction with operands, and what it gives for them."""

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
        step = Step(self.instruction, handler, tuple(range(len(values))), ())
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
        turns = nest.iterations
        if turns > MOST_TURNS:
            yield Finding("loops", "skipped", (f"they take {turns} turns, more than {MOST_TURNS}",))
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
        if sum(array.size for array in self.flat) > MOST_POKED // 16:
            return
        for k, operand in enumerate(self.instruction.operands):
            seen = [f"{list(j)}" for j in self._read_by_kernel(k, number, at)]
            yield f"  the kernel reads {operand.name} at {_listed(seen)}"

    def _said(self, answer: Answer, operand: int, at: Index) -> Iterator[Index]:
        """Which elements of an operand the maps say that the element `at` needs."""
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
        shape = Shape(_NAMES[array.dtype], ())
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
            return None  # a size was changed: there is nothing to compare
        both_nan = (before != before) & (after != after)
        return np.asarray(~((before == after) | both_nan))

    # ------------------------------------------------------------ poking

    def poked(self, number: int) -> Iterator[Finding]:
        """Change elements of the operands: only what needs them by the maps may move."""
        size = sum(array.size for array in (*self.flat, *self.results))
        if size > MOST_POKED:
            reason = f"operands and results have {size} elements, more than {MOST_POKED}"
            yield Finding("poke", "skipped", (reason,))
            return
        answer = output_to_input(self.instruction, number)
        unsaid: list[str] = []
        done = 0
        for k, operand in enumerate(self.instruction.operands):
            unknown = answer.unknown[k]
            if unknown is not None:
                unsaid.append(unknown.reason)
                continue
            paths = [path for path, leaf in leaves(operand.shape) if isinstance(leaf, Shape)]
            for path, array in zip(paths, self.operands[k], strict=True):
                found = self._poke(answer, k, path, array, number)
                if isinstance(found, Finding):
                    yield found
                    return
                done += found.decided > 0 or not found.undecided
                if found.undecided:
                    reason = f"what the maps read of {operand.name} is not listed here"
                    unsaid.append(f"{reason}, for {found.undecided} of the elements that moved")
        if done:
            yield Finding("poke", "ok")
        if unsaid:
            yield Finding("poke", "skipped", tuple(unsaid))

    def _poke(
        self, answer: Answer, operand: int, path: Path, array: Array, number: int
    ) -> Finding | _Poked:
        """Change elements of an array: what the maps do not say; or how much they were asked."""
        decided = undecided = 0
        pairs = zip(answer.maps[operand], answer.paths[operand], strict=True)
        maps = [found for found, at in pairs if at == path]
        for _ in range(min(POKES, array.size)):
            j = tuple([int(self.random.integers(n)) for n in array.shape])
            moved = self._moved(array, j, number)
            if moved is None:
                continue
            for i in np.argwhere(moved)[:64]:
                at = tuple(map(int, i))
                images = [self._images(found, at) for found in maps]
                if any(found is not None and j in found for found in images):
                    decided += 1
                    continue
                if any(found is None for found in images):
                    undecided += 1
                    continue
                name = self.instruction.operands[operand].name
                details = [f"{list(at)}: the kernel reads {name} at {list(j)}"]
                said = [str(list(each)) for found in images for each in sorted(found or ())]
                details.append(f"  the maps read {name} at {_listed(said)}")
                return Finding("poke", "wrong", tuple(details))
        return _Poked(decided, undecided)

    def _images(self, found: IndexingMap, at: Index) -> set[Index] | None:
        """What a map relates to one element; None where that is not found out here."""
        count = prod(v.upper - v.lower + 1 for v in found.ranges)
        if count > MOST_LISTED:
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


_NAMES: Final = {dtype(name): name for name in ELEMENT_TYPES if name not in ("token", "opaque")}


def _listed(items: Sequence[str]) -> str:
    """A few of the items.

    >>> _listed([]), _listed(["[0]", "[1]"])
    ('no element', '[0] [1]')
    """
    if not items:
        return "no element"
    return " ".join(items[:8]) + (f" and {len(items) - 8} more" if len(items) > 8 else "")


def random_values(shape: Shape, random: np.random.Generator) -> Array:
    """Values that show what is read: normally distributed numbers, small integers of both signs."""
    kind, element = dtype(shape.element_type), ELEMENT_TYPES[shape.element_type]
    if element.kind == "pred":
        return np.asarray(random.integers(0, 2, shape.dims)).astype(kind)
    if element.kind in ("integral", "unsigned"):
        low = 0 if element.kind == "unsigned" else -2
        high = min(10, 1 << (element.bits - (element.kind == "integral")))
        return np.asarray(random.integers(max(low, -high), high, shape.dims)).astype(kind)
    values = np.asarray(random.standard_normal(shape.dims))
    if element.kind == "complex":
        values = values + 1j * random.standard_normal(shape.dims)
    return np.asarray(values).astype(kind)
