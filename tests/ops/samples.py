"""Samples of all ops as modules with inputs, and the dependencies of their kernels and maps.

`poke` is a perturbation test: it changes one input element, and the output elements that change
depend on it. `related_pairs` gives the dependencies according to a map.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import hlo
import indexing.ops  # noqa: F401 - registers the ops
from hlo import Instruction
from hlo.ops.attributes import computation
from hlo.ops.op import OPS, OPS_BY_TARGET
from hlo.shapes.shape import AnyShape, Shape, dtype, leaves
from indexing import IndexingMap
from indexing.ops.base import MappedOp, NullaryOp
from indexing.ops.convolution import Convolution
from indexing.ops.numerics import has_nan
from indexing.ops.samples import instruction_of, operands_end
from indexing.ops.targets.cudnn import CudnnConvBiasActivation, CudnnConvForward
from tests.checks import checks

Array: TypeAlias = NDArray[Any]
Index: TypeAlias = tuple[int, ...]
Pair: TypeAlias = tuple[Index, Index]  # output element, input element


def add_both(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    """A function whose results both depend on all arguments."""
    return a + c + np.float32(b) + np.float32(d), b + d + np.int32(a) + np.int32(c)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "maximum": np.maximum,
    "add_both": add_both,
    "less_than": np.less,
    "greater_or_equal": np.greater_equal,
    "first_less_than": lambda a, b, c, d: a < b,
}

ARITHMETIC = """
batch-norm-grad batch-norm-inference batch-norm-training cholesky convolution custom-call dot fft
ragged-dot reduce reduce-window rng scaled-dot scatter select-and-scatter triangular-solve
"""
INDEX_VALUES = range(-2, 7)  # of start indices, in and out of bounds
CONVOLUTIONS = Convolution, CudnnConvForward, CudnnConvBiasActivation
_SPECIAL = [0.0, 0.5, -0.3, 1.0, 1.1, -2.5, 3.14159, 7.75, -40.7, np.inf, -np.inf, np.nan]
_PLAIN = [1.0, 2.0, -3.0, 5.0, 11.0, -17.0, 33.0, 64.0, 127.0]


@dataclass(frozen=True)
class Sample:
    """One sample of an op, as an instruction of a module whose parameters are its operands."""

    text: str
    instruction: Instruction

    @property
    def op(self) -> Any:
        return self.instruction.op

    @property
    def shapes(self) -> tuple[AnyShape, ...]:
        return tuple([operand.shape for operand in self.instruction.operands])

    @property
    def outputs(self) -> list[Shape]:
        return [leaf for _, leaf in leaves(self.instruction.shape) if isinstance(leaf, Shape)]

    @property
    def arrays(self) -> list[Shape]:
        return [shape for shape in self.shapes if isinstance(shape, Shape)]

    @property
    def head(self) -> str:
        """The text without attributes."""
        return self.text[: operands_end(self.text) + 1]

    @property
    def index_operands(self) -> frozenset[int]:
        """Operands with indices, whose values are not copied into the result."""
        first = {"dynamic-slice": 1, "dynamic-update-slice": 2, "gather": 1}
        opcode = self.instruction.opcode
        if opcode == "scatter":
            return frozenset({len(self.shapes) // 2})
        return frozenset(range(first.get(opcode, len(self.shapes)), len(self.shapes)))

    def run(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The kernel's results."""
        called = {
            name: FUNCTIONS.get(getattr(self.op, name))
            for name, field in self.op.fields.items()
            if field.kind is computation
        }
        results = self.op.compute(inputs, self.shapes, **called)
        return results if isinstance(results, tuple) else (results,)

    def inputs(self, random: np.random.Generator) -> list[Array]:
        """Random values of all operands; indices may be out of bounds."""
        return [self.values(random, number) for number in range(len(self.shapes))]

    def values(self, random: np.random.Generator, operand: int) -> Array:
        """Random values of one operand."""
        shape = self.shapes[operand]
        assert isinstance(shape, Shape)
        if operand in self.index_operands:
            low = 0 if shape.element_type[0] == "u" else INDEX_VALUES[0]
            values = random.integers(low, INDEX_VALUES[-1] + 1, shape.dims)
            return np.asarray(values).astype(dtype(shape.element_type))
        return _values(random, shape, self.is_arithmetic)

    @property
    def is_arithmetic(self) -> bool:
        """True if the inputs must be finite: infinities in sums would hide dependencies."""
        return self.instruction.opcode in ARITHMETIC.split()


def _values(random: np.random.Generator, shape: Shape, plain: bool) -> Array:
    kind = dtype(shape.element_type)
    match shape.element_type[0]:
        case "p":
            values: Array = random.integers(0, 2, shape.dims)
        case "s" | "u":
            bits = 8 * kind.itemsize - (shape.element_type[0] == "s")
            small = [0, 1, 2, 3, 4, 5, 7, 9]
            low = [-1, -2, -5] if shape.element_type[0] == "s" else []
            large = [] if plain else [1 << (bits - 1), (1 << bits) - 1, (1 << bits) // 3]
            values = random.choice(np.array([*small, *low, *large], object), shape.dims)
        case "c":
            values = random.choice(_PLAIN, shape.dims) + 1j * random.choice(_PLAIN, shape.dims)
        case _:
            values = random.choice(_PLAIN if plain else _SPECIAL, shape.dims)
    return np.asarray(values).astype(kind)


def parse_sample(text: str) -> Sample:
    """Parse a sample to a module with the operands as parameters."""
    return Sample(text, instruction_of(text))


# ---------------------------------------------------------------- one test case per op


CLASSES = {**OPS, **OPS_BY_TARGET}
"""Every op by its opcode or its target."""


@cache
def samples_of(name: str) -> tuple[Sample, ...]:
    """All samples of an op, parsed once for all tests."""
    return tuple([parse_sample(text) for text in CLASSES[name].samples])


ALL = [opcode for opcode, cls in OPS.items() if cls.samples]
MAPPED = [opcode for opcode in ALL if issubclass(OPS[opcode], MappedOp)]
MAPPED = [opcode for opcode in MAPPED if not issubclass(OPS[opcode], NullaryOp)]
TARGETS = list(OPS_BY_TARGET)
MAPPED_TARGETS = [target for target in TARGETS if issubclass(OPS_BY_TARGET[target], MappedOp)]

SampleCheck: TypeAlias = Callable[[Sample], None]


class SampleChecks:
    """Checks of single samples, run by one test case per op.

    A failure names the samples and the functions that failed.
    """

    def __init__(self) -> None:
        self._checks: list[tuple[Collection[str], SampleCheck]] = []

    def of(self, opcodes: Collection[str]) -> Callable[[SampleCheck], SampleCheck]:
        """Return a decorator that registers a check for each sample of these ops."""

        def add(check: SampleCheck) -> SampleCheck:
            self._checks.append((opcodes, check))
            return check

        return add

    @property
    def opcodes(self) -> list[str]:
        """The ops with at least one check."""
        return list(dict.fromkeys(opcode for opcodes, _ in self._checks for opcode in opcodes))

    def check(self, opcode: str, samples: Sequence[Sample] | None = None) -> None:
        """Run all checks on every sample of an op, or on `samples`."""
        with checks() as check:
            for sample in samples_of(opcode) if samples is None else samples:
                for opcodes, sample_check in self._checks:
                    if opcode in opcodes:
                        with check(f"{sample_check.__name__}: {sample.text}"):
                            sample_check(sample)


# ---------------------------------------------------------------- relations


def poke(
    sample: Sample, inputs: list[Array], operand: int, random: np.random.Generator
) -> list[set[Pair]]:
    """For each output, pairs of a changed output element and the perturbed operand element."""
    before = sample.run(inputs)
    shape = sample.shapes[operand]
    assert isinstance(shape, Shape)
    others = [sample.values(random, operand)]
    if operand in sample.index_operands:  # a random index would seldom be significant
        low = 0 if shape.element_type[0] == "u" else INDEX_VALUES[0]
        others = [np.full(shape.dims, n) for n in range(low, INDEX_VALUES[-1] + 1)]
    if isinstance(sample.op, CONVOLUTIONS) and has_nan(inputs[operand].dtype):
        others.append(np.full(shape.dims, np.nan))  # times the zeros of padding, it is NaN
    dependencies: list[set[Pair]] = [set() for _ in before]
    for index, other in product(np.ndindex(*shape.dims), others):
        perturbed = [array.copy() for array in inputs]
        perturbed[operand][index] = other[index]
        for pairs, old, new in zip(dependencies, before, sample.run(perturbed), strict=True):
            changed = ~((old == new) | ((old != old) & (new != new)))
            pairs.update((tuple(map(int, i)), index) for i in np.argwhere(changed))
    return dependencies


def related_pairs(index_map: IndexingMap, inputs: Sequence[Array]) -> set[Pair]:
    """All pairs ``(point, results)`` of a map; runtime variables are read from the inputs."""
    pairs: set[Pair] = set()
    count = len(index_map.dims)
    variables = (*index_map.dims, *index_map.ranges)
    for values in product(*[range(v.lower, v.upper + 1) for v in variables]):
        point = dict(zip(variables, values, strict=True))
        runtime = []
        for variable in index_map.runtime:
            assert isinstance(variable.source, int)
            assert variable.clamp is not None
            index = tuple([expr.value(point) for expr in variable.index])
            low, high = variable.clamp
            runtime.append(min(max(int(inputs[variable.source][index]), low), high))
        results = index_map.evaluate(values[:count], values[count:], runtime)
        if results is not None:
            pairs.add((values[:count], results))
    return pairs


def check_fault(text: str, rule: str, at: str | None, label: str) -> None:
    """Assert that an instruction violates only `rule`, at the text `at` (None: all of it)."""
    (error,) = hlo.verify(parse_sample(text).instruction.module)
    assert error.code == "op-constraint"
    assert f" {rule}: " in error.message
    assert (error.span.text, error.label) == (at or f"out = {text}", label)
