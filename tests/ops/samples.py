"""The samples of all ops as modules, with inputs, and what their kernels and maps relate.

`poked` finds out what a kernel really reads: one input element is changed, and the output elements
that move are those that need it. `related` is the same relation as a map tells it.
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
from hlo.ops.op import OPS
from hlo.shapes.shape import AnyShape, Shape, dtype, leaves
from indexing import IndexingMap
from indexing.ops.base import MappedOp, NullaryOp
from indexing.ops.samples import instruction_of, operands_end
from tests.checks import checks

Array: TypeAlias = NDArray[Any]
Index: TypeAlias = tuple[int, ...]
Pair: TypeAlias = tuple[Index, Index]  # output element, input element


def add_both(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    """Every result needs every argument."""
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
batch-norm-grad batch-norm-inference batch-norm-training cholesky convolution dot fft ragged-dot
reduce reduce-window rng scaled-dot scatter select-and-scatter triangular-solve
"""
INDEX_VALUES = range(-2, 7)  # of start indices: too small ones and too large ones as well
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
        """Operands that say where others are read; their own values do not go into the result."""
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
        found = self.op.compute(inputs, self.shapes, **called)
        return found if isinstance(found, tuple) else (found,)

    def inputs(self, random: np.random.Generator) -> list[Array]:
        """Random values; those of integers are beyond what is a legal index too."""
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
        """Sums of infinities would hide what is read."""
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
    """The module of one sample: its operands become parameters."""
    return Sample(text, instruction_of(text))


# ---------------------------------------------------------------- one test case an op


@cache
def samples_of(opcode: str) -> tuple[Sample, ...]:
    """All samples of an op, parsed once for all tests."""
    return tuple([parse_sample(text) for text in OPS[opcode].samples])


ALL = [opcode for opcode, cls in OPS.items() if cls.samples]
MAPPED = [opcode for opcode in ALL if issubclass(OPS[opcode], MappedOp)]
MAPPED = [opcode for opcode in MAPPED if not issubclass(OPS[opcode], NullaryOp)]

Face: TypeAlias = Callable[[Sample], None]


class Faces:
    """Checks of single samples, run by one test case an op.

    A failure names the samples and the functions that failed.
    """

    def __init__(self) -> None:
        self._faces: list[tuple[Collection[str], Face]] = []

    def of(self, opcodes: Collection[str]) -> Callable[[Face], Face]:
        """A decorator: the function checks each sample of these ops."""

        def add(face: Face) -> Face:
            self._faces.append((opcodes, face))
            return face

        return add

    @property
    def opcodes(self) -> list[str]:
        """The ops that any face checks."""
        return list(dict.fromkeys(opcode for opcodes, _ in self._faces for opcode in opcodes))

    def check(self, opcode: str) -> None:
        """Run every face on every sample of an op."""
        with checks() as check:
            for sample in samples_of(opcode):
                for opcodes, face in self._faces:
                    if opcode in opcodes:
                        with check(f"{face.__name__}: {sample.text}"):
                            face(sample)


# ---------------------------------------------------------------- relations


def poked(
    sample: Sample, inputs: list[Array], operand: int, random: np.random.Generator
) -> list[set[Pair]]:
    """For each output, the pairs in which a change of the operand's element moved the output's."""
    before = sample.run(inputs)
    shape = sample.shapes[operand]
    assert isinstance(shape, Shape)
    others = [sample.values(random, operand)]
    if operand in sample.index_operands:  # that an index is exactly this one would be rare
        low = 0 if shape.element_type[0] == "u" else INDEX_VALUES[0]
        others = [np.full(shape.dims, n) for n in range(low, INDEX_VALUES[-1] + 1)]
    found: list[set[Pair]] = [set() for _ in before]
    for place, other in product(np.ndindex(*shape.dims), others):
        changed = [array.copy() for array in inputs]
        changed[operand][place] = other[place]
        for pairs, old, new in zip(found, before, sample.run(changed), strict=True):
            moved = ~((old == new) | ((old != old) & (new != new)))
            pairs.update((tuple(map(int, i)), place) for i in np.argwhere(moved))
    return found


def related(found: IndexingMap, inputs: Sequence[Array]) -> set[Pair]:
    """All pairs ``(point, results)`` of a map, its runtime variables read from the inputs."""
    pairs: set[Pair] = set()
    count = len(found.dims)
    for values in product(*[range(v.lower, v.upper + 1) for v in (*found.dims, *found.ranges)]):
        point = dict(zip((*found.dims, *found.ranges), values, strict=True))
        runtime = []
        for variable in found.runtime:
            assert isinstance(variable.source, int)
            assert variable.clamp is not None
            place = tuple([expr.value(point) for expr in variable.index])
            low, high = variable.clamp
            runtime.append(min(max(int(inputs[variable.source][place]), low), high))
        results = found.evaluate(values[:count], values[count:], runtime)
        if results is not None:
            pairs.add((values[:count], results))
    return pairs


def check_fault(text: str, rule: str, at: str | None, label: str) -> None:
    """An instruction breaks just this rule; the error points at `at`, or at all of it."""
    (error,) = hlo.verify(parse_sample(text).instruction.module)
    assert error.code == "op-constraint"
    assert f" {rule} does not hold: " in error.message
    assert (error.span.text, error.label) == (at or f"out = {text}", label)
