"""The samples of all ops as modules, with inputs, and what their kernels and maps relate.

`poked` finds out what a kernel really reads: one input element is changed, and the output elements
that move are those that need it. `related` is the same relation as a map tells it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import hlo
import indexing.ops  # noqa: F401 - registers the ops
from hlo import Instruction
from hlo.attributes import computation
from hlo.op import OPS
from hlo.shape import AnyShape, Shape, dtype, leaves
from indexing import IndexingMap
from indexing.op import MappedOp, NullaryOp

Array: TypeAlias = NDArray[Any]
Index: TypeAlias = tuple[int, ...]
Pair: TypeAlias = tuple[Index, Index]  # output element, input element

COMPUTATIONS = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
maximum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
add_both {
  a = f32[] parameter(0) b = s32[] parameter(1) c = f32[] parameter(2) d = s32[] parameter(3)
  i = s32[] convert(a) j = s32[] convert(c)
  e = s32[] add(b, d) f = s32[] add(i, j) g = s32[] add(e, f)
  x = f32[] convert(b) y = f32[] convert(d)
  k = f32[] add(a, c) l = f32[] add(x, y) m = f32[] add(k, l)
  ROOT r = (f32[], s32[]) tuple(m, g)
}
less_than {
  a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT
}
greater_or_equal {
  a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE
}
first_less_than {
  a = s32[] parameter(0) b = s32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT
}
add_twice {
  a = f32[] parameter(0) b = f32[] parameter(1) s = f32[] add(a, b)
  ROOT r = (f32[], f32[]) tuple(s, s)
}
negate { a = f32[2,3] parameter(0) ROOT r = f32[2,3] negate(a) }
less_than_five {
  p = (s32[], f32[2,3]) parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] constant(5)
  ROOT r = pred[] compare(i, n), direction=LT
}
next_trip {
  p = (s32[], f32[2,3]) parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] constant(1)
  a = f32[2,3] get-tuple-element(p), index=1 j = s32[] add(i, n) b = f32[2,3] negate(a)
  ROOT r = (s32[], f32[2,3]) tuple(j, b)
}
"""
# operands that can be nothing but the result of a certain op
PRODUCERS = {
    ("async-update", "s"): "async-start(started), calls=negate",
    ("async-done", "s"): "async-start(started), calls=negate",
}


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
        return self.text[: _operands_end(self.text) + 1]

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
    opcode = text[: _operands_start(text)].rpartition(" ")[2]
    lines = []
    for number, (shape, name) in enumerate(_operands(text)):
        producer = PRODUCERS.get((opcode, name))
        if producer:
            lines.append(f"started = f32[2,3] parameter({number})")
        lines.append(f"{name} = {shape} {producer or f'parameter({number})'}")
    body = "\n".join(f"  {line}" for line in [*lines, f"ROOT out = {text}"])
    return Sample(text, hlo.parse(f"{COMPUTATIONS}\nENTRY e {{\n{body}\n}}").entry.root)


def _operands_end(text: str) -> int:
    """Where the parenthesis after the opcode is closed."""
    depth, start = 0, _operands_start(text)
    for k in range(start, len(text)):
        depth += (text[k] == "(") - (text[k] == ")")
        if depth == 0:
            return k
    raise ValueError(f"no operands in {text}")


def _operands_start(text: str) -> int:
    """Where the parenthesis after the opcode is opened."""
    found = re.search(r" [a-z][a-z0-9-]*\(", text)
    assert found, text
    return found.end() - 1


def _operands(text: str) -> Iterator[tuple[str, str]]:
    """Shape and name of each operand; none where something else is in the parentheses."""
    depth, item = 0, ""
    for character in text[_operands_start(text) + 1 : _operands_end(text)] + ",":
        if character == "," and depth == 0:
            shape, _, name = item.strip().rpartition(" ")
            if shape and name[0].isalpha():
                yield shape, name
            item = ""
            continue
        depth += (character in "([{") - (character in ")]}")
        item += character


ALL = [text for cls in OPS.values() for text in cls.samples]
MAPPED = [
    text
    for cls in OPS.values()
    if issubclass(cls, MappedOp) and not issubclass(cls, NullaryOp)
    for text in cls.samples
]


def samples_of(*opcodes: str) -> list[str]:
    """All samples of these ops."""
    return [text for opcode in opcodes for text in OPS[opcode].samples]


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
