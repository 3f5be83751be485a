"""Executions of both programs on the same inputs: the evidence for `Differs`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Final

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, dtype, leaves
from hlo.text.source import HloError
from indexing.codegen.differences import tolerance
from indexing.dataflow.needed import dependencies_of
from indexing.devices.devices import Devices
from indexing.equivalence.draws import Draw
from indexing.equivalence.evidence import Allowed, far_apart
from indexing.equivalence.pairing import Leaf, Pair, Side
from indexing.equivalence.partitioned.pairing import runs_on_devices
from indexing.equivalence.verdicts import ElementIndex
from indexing.execution import xla
from indexing.execution.machine import Machine, RunOptions
from indexing.execution.operations import check_operations
from indexing.execution.program import evaluate, run
from indexing.execution.values import Array, Value, flattened
from indexing.execution.work import check_work
from indexing.maps.answers import Unknown
from indexing.maps.arrays import array_leaves, leaf_at
from indexing.ops.element import declarations_of
from indexing.ops.elementwise import TRANSCENDENTAL
from indexing.ops.unspecified import record_unspecified
from indexing.programs.arrays import is_unique

SEEDS: Final = 4
"""Number of inputs on which programs are executed."""

MANY_SEEDS: Final = 24
"""The same for programs with at most `SMALL_PROGRAM` elements in all arrays."""

SMALL_PROGRAM: Final = 20_000

EDGE_SEEDS: Final = 1
MANY_EDGE_SEEDS: Final = 16
"""Number of inputs with edge values, for large and for small programs."""

_OPTIONS: Final = RunOptions(max_operations=10_000_000_000)

MAX_WORK: Final = 200_000
"""Limit on the instructions that an execution evaluates, loops included."""

MAX_ELEMENTS: Final = 1 << 20
"""Limit on the elements of an array of an executed program."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The arrays of each parameter leaf, in the order of the pair, for each device."""

    devices: tuple[tuple[Array, ...], ...]

    def poke(self, leaf: int, at: ElementIndex, value: Any) -> Inputs:
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


class Unspecified(Unknown):
    """Results that HLO leaves to the implementation, such as an integer divided by zero."""


class Runs:
    """Executions of a pair of programs.

    Args:
        use_xla: execute modules by XLA.
        exact: also compare infinities, NaN and last bits, where both programs determine them.
    """

    def __init__(self, pair: Pair, use_xla: bool = False, exact: bool = False) -> None:
        self.pair, self.use_xla, self.exact = pair, use_xla, exact

    @cached_property
    def obstacle(self) -> Unknown | None:
        """The reason why executions are no evidence, or None."""
        for side in (self.pair.before, self.pair.after):
            for instruction in _executed_instructions(side):
                if is_unique(instruction) or _has_default_generator(instruction):
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
                check_operations(side.computation, _OPTIONS.max_operations)
            except HloError as error:
                return Unknown(f"not executed: {error.message}")
        return None

    @cached_property
    def devices(self) -> int:
        """The number of devices: of both programs, or 1 if both are global programs."""
        sides = self.pair.before, self.pair.after
        modules = [side.computation.module for side in sides]
        if all(side.computation.is_entry for side in sides) and not any(
            map(runs_on_devices, modules)
        ):
            return 1
        return max(Devices.of(module).count for module in modules)

    @cached_property
    def instructions(self) -> list[Instruction]:
        """The instructions that both programs execute, those of called computations included."""
        return [
            i for side in (self.pair.before, self.pair.after) for i in _executed_instructions(side)
        ]

    @cached_property
    def elements(self) -> int:
        """The number of elements of all arrays of both programs."""
        return sum(leaf.size for i in self.instructions for _, _, leaf in array_leaves(i.shape))

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
        return any(declarations_of(i).depends_on_order for i in self.instructions)

    @cached_property
    def has_loops(self) -> bool:
        """True if a program has a loop, whose number of iterations may depend on its inputs."""
        return any(i.opcode == "while" for i in self.instructions)

    @cached_property
    def compares_floats_exactly(self) -> bool:
        """True if exact results are compared, and the programs determine them."""
        return self.exact and not any(map(_has_open_order, self.instructions))

    @cached_property
    def allowed_difference(self) -> Allowed:
        """The difference of numbers that is no evidence."""
        if not self.compares_floats_exactly:
            return Allowed.ACCUMULATED
        functions = TRANSCENDENTAL - {"sqrt"}
        is_approximate = any(i.opcode in functions for i in self.instructions)
        return Allowed.APPROXIMATE if is_approximate else Allowed.NONE

    # ------------------------------------------------------------ inputs

    def inputs(self, seed: int, positive: bool = False) -> Inputs:
        """Draw inputs: normal floats, small and larger integers; of odd seeds, small floats too."""
        whole = seed % 2 == 1 and not self.needs_distinct_values
        return self._draw_inputs(seed, Draw(whole, wide=seed % 3 == 2, positive=positive))

    def edge_inputs(self, seed: int, share: float) -> Inputs:
        """Draw inputs of which a share are edge values, for example the limits of integers."""
        return self._draw_inputs(seed, Draw(edges=share, float_edges=self.compares_floats_exactly))

    def _draw_inputs(self, seed: int, how: Draw) -> Inputs:
        random = np.random.default_rng(seed)
        leaves = [_shape(leaf) for leaf in self.pair.before.inputs]
        return Inputs(
            tuple(
                [tuple([how.array(leaf, random) for leaf in leaves]) for _ in range(self.devices)]
            )
        )

    def outputs(self, side: Side, inputs: Inputs) -> list[list[Array]] | Unknown:
        """Execute one program; return its arrays for each device."""
        given = [_for_side(side, self.pair, arrays) for arrays in inputs.devices]
        is_program = side.computation.is_entry and side.root.is_root
        try:
            with np.errstate(all="ignore"), record_unspecified() as unspecified:
                results = self._results(side, given, is_program)
                if unspecified:
                    return Unspecified(f"not comparable: {', '.join(sorted(unspecified))}")
                if self.use_xla and is_program:
                    module = side.computation.module
                    results = xla.run(module, given if self.devices > 1 else given[0])
        except HloError as error:
            return Unknown(f"not executed: {error.message}")
        except (MemoryError, ImportError, RuntimeError) as error:
            return Unknown(f"not executed: {error}")
        if self.devices > 1:
            return [list(device) for device in results]
        return [list(results)]

    def _results(self, side: Side, given: list[list[Array]], is_program: bool) -> Any:
        if is_program or self.devices > 1:
            arrays: Any = given if self.devices > 1 else given[0]
            limit = _OPTIONS.max_operations
            return run(side.computation, arrays, replicas=self.devices, max_operations=limit)
        value = evaluate(side.computation, *given[0], machine=Machine(_OPTIONS))[side.root]
        return flattened(value)

    def values(self, side: Side, inputs: Inputs) -> dict[Instruction, Value]:
        """Return the value of each instruction in an execution on one device."""
        given = _for_side(side, self.pair, inputs.devices[0])
        try:
            with np.errstate(all="ignore"):
                return evaluate(side.computation, *given, machine=Machine(_OPTIONS))
        except HloError:
            return {}

    # ------------------------------------------------------------ comparison

    def value_gap(self) -> ValueGap | Unknown | None:
        """Return an output element with different values, on one of several inputs."""
        return self._first_gap

    @cached_property
    def _first_gap(self) -> ValueGap | Unknown | None:
        """The answer of `value_gap`; verdicts at level reads and at level values have the same."""
        if self.obstacle is not None:
            return self.obstacle
        gap: ValueGap | Unknown | None = None
        is_compared = False
        for attempts in self._cases():
            for inputs in attempts:
                gap = self.gap_on(inputs)
                if not isinstance(gap, Unspecified):
                    break
            if isinstance(gap, ValueGap):
                return gap
            if isinstance(gap, Unknown) and not isinstance(gap, Unspecified):
                return gap
            is_compared |= gap is None
        return None if is_compared else gap

    def _cases(self) -> Iterator[Iterator[Inputs]]:
        """Yield inputs on which to compare, each with others where HLO leaves results open."""
        is_small = self.elements <= SMALL_PROGRAM
        for seed in range(MANY_SEEDS if is_small else SEEDS):
            yield (self.inputs(seed, positive) for positive in (False, True))
        if not self.has_loops:
            for seed in range(MANY_EDGE_SEEDS if is_small else EDGE_SEEDS):
                yield (self.edge_inputs(seed, share) for share in (0.5, 0.1))

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
                at = far_apart(one, other, self.allowed_difference, self.roundings[output])
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
                value = Draw(wide=seed > 1).array(Shape(shape.element_type, ()), random)
                changed = inputs.poke(leaf, at, value)
                gap = self._change_once(output, element, inputs, changed)
                if gap is not None:
                    return gap
        return None

    def element(self, side: Side, results: list[list[Array]], output: int, at: ElementIndex) -> Any:
        """Return the value of an output element of one program, on the first device."""
        return results[0][output][at]

    def _change_once(
        self, output: int, element: ElementIndex, inputs: Inputs, changed: Inputs
    ) -> ValueGap | Unknown | None:
        moved, values = [], []
        for side in (self.pair.before, self.pair.after):
            results = [self.outputs(side, each) for each in (inputs, changed)]
            for result in results:
                if isinstance(result, Unknown):
                    return result
            one, other = [
                self.element(side, result, output, element)
                for result in results
                if not isinstance(result, Unknown)
            ]
            rounding = self.roundings[output]
            is_far = far_apart(np.asarray(one), np.asarray(other), rounding=rounding) is not None
            is_same = np.asarray(one).tobytes() == np.asarray(other).tobytes()
            moved.append("far" if is_far else "same" if is_same else "near")
            values.append(other)
        if set(moved) == {"far", "same"}:
            return ValueGap(output, element, values[0], values[1], changed)
        return None


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


def _executed_instructions(side: Side) -> Iterator[Instruction]:
    """Yield the instructions that a side executes, and those of called computations."""
    seen = set()
    waiting = [dependencies_of([side.root])]
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
    roundings, rounding = list[float](), cache(_rounding)  # outputs share most instructions
    for number in side.outputs:
        path, root = paths[number], side.root
        while root.opcode == "tuple" and path:
            root, path = root.operands[path[0]], path[1:]
        computed = _executed_instructions(replace(side, root=root))
        roundings.append(max(map(rounding, computed), default=0.0))
    return roundings


def _has_open_order(instruction: Instruction) -> bool:
    """Return True if the result depends on an order that HLO leaves open."""
    declared = declarations_of(instruction)
    return declared.depends_on_order or (declared.accumulates and _rounding(instruction) > 0)


def _rounding(instruction: Instruction) -> float:
    """Return the tolerance of the coarsest floats that an instruction computes."""
    if declarations_of(instruction).is_given:
        return 0.0
    kinds = [leaf.element_type for _, _, leaf in array_leaves(instruction.shape)]
    return max([tolerance(dtype(kind)) for kind in kinds], default=0.0)


def _has_default_generator(instruction: Instruction) -> bool:
    text = instruction.attributes.get("algorithm")
    return instruction.opcode == "rng-bit-generator" and "default" in (text.normal if text else "")
