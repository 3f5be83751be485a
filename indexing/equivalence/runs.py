"""Executions of both programs on the same inputs: the evidence for `Differs`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.shape import ELEMENT_TYPES, Shape, dtype, leaves
from hlo.text.source import HloError
from indexing.codegen.differences import first_difference, tolerance
from indexing.dataflow.needed import needed_by
from indexing.devices.devices import Devices
from indexing.equivalence.pairing import Leaf, Pair, Side
from indexing.equivalence.verdicts import ElementIndex
from indexing.execution import xla
from indexing.execution.machine import Machine
from indexing.execution.program import evaluate, run
from indexing.execution.values import Array, Value, flattened, random_array
from indexing.execution.work import check_work
from indexing.maps.answers import Unknown
from indexing.maps.arrays import array_leaves, leaf_at

SEEDS: Final = 4
"""Number of inputs on which programs are executed."""

MANY_SEEDS: Final = 24
"""The same for programs with at most `SMALL_PROGRAM` elements in all arrays."""

SMALL_PROGRAM: Final = 20_000

MAX_WORK: Final = 200_000
"""Limit on the instructions that an execution evaluates, loops included."""

MAX_ELEMENTS: Final = 1 << 20
"""Limit on the elements of an array of an executed program."""

MARGIN: Final = 8.0
"""Factor on the tolerances for rounding, beyond which values differ."""

_NARROW: Final = tolerance(dtype("f32"))
"""Tolerance of the narrowest floats whose rounding seldom reaches an integer."""

_RANDOM: Final = frozenset(["rng", "rng-get-and-update-state", "infeed", "recv", "outfeed", "send"])
_ORDERED: Final = frozenset(["sort", "scatter", "select-and-scatter", "topk"])


@dataclass(frozen=True, slots=True)
class Inputs:
    """The arrays of each parameter leaf, in the order of the pair, for each device."""

    devices: tuple[tuple[Array, ...], ...]

    def poked(self, leaf: int, at: ElementIndex, value: Any) -> Inputs:
        """Return the inputs with another element of one leaf on every device."""
        changed = []
        for arrays in self.devices:
            array = arrays[leaf].copy()
            array[at] = value
            changed.append((*arrays[:leaf], array, *arrays[leaf + 1 :]))
        return Inputs(tuple(changed))


@dataclass(frozen=True, slots=True)
class ValueGap:
    """An output element whose value differs.

    Attributes:
        output: number of the output leaf.
        element: its index.
        before, after: both values.
        inputs: the inputs of both programs.
        device: the device, for programs on several.
    """

    output: int
    element: ElementIndex
    before: Any
    after: Any
    inputs: Inputs
    device: int = 0


class Runs:
    """Executions of a pair of programs."""

    def __init__(self, pair: Pair, use_xla: bool = False) -> None:
        self.pair, self.use_xla = pair, use_xla

    @cached_property
    def obstacle(self) -> Unknown | None:
        """The reason why executions are no evidence, or None."""
        for side in (self.pair.before, self.pair.after):
            for instruction in _executed(side):
                if instruction.opcode in _RANDOM or _has_default_generator(instruction):
                    return Unknown(
                        f"executions are not comparable: {instruction.opcode} "
                        f"`{instruction.name}` draws random values or communicates",
                        instruction,
                    )
                for _, _, leaf in array_leaves(instruction.shape):
                    if leaf.size > MAX_ELEMENTS:
                        reason = f"`{instruction.name}` has more than {MAX_ELEMENTS} elements"
                        return Unknown(f"not executed: {reason}", instruction)
            try:
                check_work(side.computation, MAX_WORK)
            except HloError as error:
                return Unknown(f"not executed: {error.message}")
        return None

    @cached_property
    def devices(self) -> int:
        """The number of devices: of both programs, or 1."""
        modules = [side.computation.module for side in (self.pair.before, self.pair.after)]
        return max(Devices.of(module).count for module in modules)

    @cached_property
    def elements(self) -> int:
        """The number of elements of all arrays of both programs."""
        sides = self.pair.before, self.pair.after
        shapes = [i.shape for side in sides for i in _executed(side)]
        return sum(leaf.size for shape in shapes for _, _, leaf in array_leaves(shape))

    @cached_property
    def roundings(self) -> list[float]:
        """For each output, the tolerance of the coarsest floats that it is computed from.

        A sum in bf16 differs by the rounding of bf16 if it is accumulated in f32, though the
        output may be of type f32.
        """
        sides = [_roundings(side) for side in (self.pair.before, self.pair.after)]
        return list(map(max, *sides))

    @cached_property
    def needs_distinct_values(self) -> bool:
        """True if the order of equal elements is undefined in one of the programs."""
        sides = self.pair.before, self.pair.after
        return any(i.opcode in _ORDERED for side in sides for i in _executed(side))

    # ------------------------------------------------------------ inputs

    def inputs(self, seed: int) -> Inputs:
        """Draw inputs: normal floats, small and larger integers; of odd seeds, small floats too."""
        random = np.random.default_rng(seed)
        leaves = self.pair.before.inputs
        whole = seed % 2 == 1 and not self.needs_distinct_values
        return Inputs(
            tuple(
                [
                    tuple([draw(_shape(leaf), random, whole, seed % 3 == 2) for leaf in leaves])
                    for _ in range(self.devices)
                ]
            )
        )

    def outputs(self, side: Side, inputs: Inputs) -> list[list[Array]] | Unknown:
        """Execute one program; return its arrays for each device."""
        given = [_for_side(side, self.pair, arrays) for arrays in inputs.devices]
        module = side.computation.module
        is_program = side.computation.is_entry and side.root.is_root
        try:
            with np.errstate(all="ignore"):
                if self.use_xla and is_program:
                    results = xla.run(module, given if self.devices > 1 else given[0])
                elif is_program or self.devices > 1:
                    arrays: Any = given if self.devices > 1 else given[0]
                    results = run(side.computation, arrays, replicas=self.devices)
                else:
                    value = evaluate(side.computation, *given[0], machine=Machine())[side.root]
                    results = flattened(value)
        except HloError as error:
            return Unknown(f"not executed: {error.message}")
        except (MemoryError, ImportError, RuntimeError) as error:
            return Unknown(f"not executed: {error}")
        if self.devices > 1:
            return [list(device) for device in results]
        return [list(results)]

    def values(self, side: Side, inputs: Inputs) -> dict[Instruction, Value]:
        """Return the value of each instruction in an execution on one device."""
        given = _for_side(side, self.pair, inputs.devices[0])
        try:
            with np.errstate(all="ignore"):
                return evaluate(side.computation, *given, machine=Machine())
        except HloError:
            return {}

    # ------------------------------------------------------------ comparison

    def value_gap(self) -> ValueGap | Unknown | None:
        """Return an output element with different values, on one of several inputs."""
        if self.obstacle is not None:
            return self.obstacle
        for seed in range(SEEDS if self.elements > SMALL_PROGRAM else MANY_SEEDS):
            gap = self.gap_on(self.inputs(seed))
            if gap is not None:
                return gap
        return None

    def gap_on(self, inputs: Inputs) -> ValueGap | Unknown | None:
        """Return an output element with different values on these inputs."""
        before, after = (self.outputs(s, inputs) for s in (self.pair.before, self.pair.after))
        for result in (before, after):
            if isinstance(result, Unknown):
                return result
        assert not isinstance(before, Unknown)
        assert not isinstance(after, Unknown)
        for device, arrays in enumerate(zip(before, after, strict=True)):
            for output, (one, other) in enumerate(zip(*arrays, strict=True)):
                at = far_apart(one, other, self.roundings[output])
                if at is not None:
                    return ValueGap(output, at, one[at], other[at], inputs, device)
        return None

    def influence_gap(
        self, output: int, element: ElementIndex, leaf: int, at: ElementIndex
    ) -> ValueGap | Unknown | None:
        """Return the values of an output element that one input element influences in one program.

        The input element is changed; the output element must change in one program, beyond
        rounding, and stay as it is in the other.
        """
        if self.obstacle is not None:
            return self.obstacle
        random = np.random.default_rng(7)
        shape = _shape(self.pair.before.inputs[leaf])
        for seed in range(SEEDS):
            inputs = self.inputs(seed)
            for _ in range(2):
                value = draw(Shape(shape.element_type, ()), random, wide=seed > 1)
                changed = inputs.poked(leaf, at, value)
                gap = self._changed_once(output, element, inputs, changed)
                if gap is not None:
                    return gap
        return None

    def _changed_once(
        self, output: int, element: ElementIndex, inputs: Inputs, changed: Inputs
    ) -> ValueGap | Unknown | None:
        moved, values = [], []
        for side in (self.pair.before, self.pair.after):
            results = [self.outputs(side, each) for each in (inputs, changed)]
            for result in results:
                if isinstance(result, Unknown):
                    return result
            one, other = [
                result[0][output][element] for result in results if not isinstance(result, Unknown)
            ]
            rounding = self.roundings[output]
            is_far = far_apart(np.asarray(one), np.asarray(other), rounding) is not None
            is_same = np.asarray(one).tobytes() == np.asarray(other).tobytes()
            moved.append("far" if is_far else "same" if is_same else "near")
            values.append(other)
        if set(moved) == {"far", "same"}:
            return ValueGap(output, element, values[0], values[1], changed)
        return None


def far_apart(before: Array, after: Array, rounding: float = 0.0) -> ElementIndex | None:
    """Return the first index at which values differ by more than rounding explains, or None.

    Elements that are infinite or no number in one of the arrays are no evidence, unless they are
    the only elements.  Integers that are computed from floats narrower than f32 are no evidence:
    another rounding may have another integer next to it.

    Args:
        rounding: the tolerance of the coarsest floats that the arrays are computed from.
    """
    if before.shape != after.shape or before.dtype != after.dtype:
        return None
    own = tolerance(before.dtype)
    if not own:
        return None if rounding > _NARROW else first_difference(after, before)
    wide: Any = np.complex128 if before.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        one, other = before.astype(wide), after.astype(wide)
    finite = np.isfinite(one) & np.isfinite(other)
    largest = max(np.abs(one[finite]).max(initial=0.0), np.abs(other[finite]).max(initial=0.0))
    allowed = MARGIN * max(own, rounding)
    with np.errstate(all="ignore"):
        gap = np.abs(one - other)
        limit = allowed * np.maximum(np.maximum(np.abs(one), np.abs(other)), largest / 16)
        indices = np.argwhere(finite & (gap > limit))
    return tuple(map(int, indices[0])) if len(indices) else None


def draw(
    shape: Shape, random: np.random.Generator, whole: bool = False, wide: bool = False
) -> Array:
    """Draw an array: normal floats, or whole numbers; integers around the sizes of arrays."""
    element, kind = ELEMENT_TYPES[shape.element_type], dtype(shape.element_type)
    if element.kind in ("integral", "unsigned"):
        high = min(24 if wide else 12, 1 << (element.bits - (element.kind == "integral")))
        low = 0 if element.kind == "unsigned" else max(-3, -high)
        return np.asarray(random.integers(low, high, shape.dims)).astype(kind)
    if whole and element.kind == "floating":
        return np.asarray(random.integers(-4, 5, shape.dims)).astype(kind)
    return random_array(shape, random)


def _shape(leaf: Leaf) -> Shape:
    shape = leaf_at(leaf[0].shape, leaf[1])
    assert isinstance(shape, Shape)
    return shape


def _for_side(side: Side, pair: Pair, arrays: Sequence[Array]) -> list[Array]:
    """Return arrays in the order of the parameter leaves of one program."""
    matched = pair.before.inputs if side is pair.before else pair.after.inputs
    by_leaf = dict(zip(matched, arrays, strict=True))
    parameters = side.computation.parameters
    order = [(p, path) for p in parameters for _, path, _ in array_leaves(p.shape)]
    return [by_leaf[leaf].copy() for leaf in order]


def _executed(side: Side) -> Iterator[Instruction]:
    """Yield the instructions that a side executes, and those of called computations."""
    seen = set()
    waiting = [needed_by([side.root])]
    while waiting:
        for instruction in waiting.pop():
            yield instruction
            for called in instruction.called_computations:
                if called not in seen:
                    seen.add(called)
                    waiting.append(list(called))


def _roundings(side: Side) -> list[float]:
    """Return, for each output, the tolerance of the coarsest floats that are computed for it."""
    paths = [path for path, _ in leaves(side.root.shape)]
    roundings = []
    for number in side.outputs:
        path, root = paths[number], side.root
        while root.opcode == "tuple" and path:
            root, path = root.operands[path[0]], path[1:]
        computed = _executed(replace(side, root=root))
        roundings.append(max(map(_rounding, computed), default=0.0))
    return roundings


def _rounding(instruction: Instruction) -> float:
    """Return the tolerance of the coarsest floats that an instruction computes."""
    if instruction.opcode in ("parameter", "constant"):
        return 0.0
    kinds = [leaf.element_type for _, _, leaf in array_leaves(instruction.shape)]
    return max([tolerance(dtype(kind)) for kind in kinds], default=0.0)


def _has_default_generator(instruction: Instruction) -> bool:
    text = instruction.attributes.get("algorithm")
    return instruction.opcode == "rng-bit-generator" and "default" in (text.normal if text else "")
