"""Random programs for `benchmarks.hunt`, from the generators of the tests.

A program is a loop nest of `RandomLoops`, or a chain of random instructions of the strategies in
`tests.ops`: each one reads the result of the one before, padded, cropped or reshaped to fit.
"""

from __future__ import annotations

import random
from math import prod
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st

import hlo
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves
from indexing.ops.samples import instruction_of
from tests.dataflow.random_loops import RandomLoops
from tests.ops import strategies
from tests.ops.test_convolution import convolutions

CHAINED: Final = (
    *(strategies.pads(), strategies.slices(), strategies.windows(), strategies.reshapes()),
    *(strategies.dots(), strategies.gathers(), strategies.scatters(), strategies.broadcasts()),
    *(strategies.transposes(), strategies.reverses(), strategies.concatenates()),
    *(strategies.reduces(), strategies.selections(), convolutions()),
    *(strategies.dynamic("dynamic-slice"), strategies.dynamic("dynamic-update-slice")),
)
BATCH: Final = 300
"""Number of instructions that are drawn at once."""

MAX_ELEMENTS: Final = 400
MAX_LARGE: Final = 20_000
"""Limit on the elements of arrays, and of those of `enlarge` instructions."""
LENGTHS: Final = (2, 3, 3, 4, 5)

_UNARY: Final = {"f32": ("negate", "abs"), "s32": ("negate", "abs", "not")}
_BINARY: Final = {
    "f32": ("add", "subtract", "multiply", "maximum", "minimum"),
    "s32": (
        *("add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor", "divide"),
        *("remainder", "shift-left", "shift-right-logical", "shift-right-arithmetic"),
    ),
}
_LEAST: Final = {"f32": "-inf", "s32": "-2147483648"}
_INDICES: Final = {"dynamic-slice": 1, "dynamic-update-slice": 2, "gather": 1}


def instructions(seed: int) -> list[Instruction]:
    """Return random valid instructions of one array, whose operands are parameters."""
    texts: list[str] = []

    @with_seed(seed)
    @settings(
        max_examples=BATCH,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(*CHAINED))
    def collect(text: str) -> None:
        texts.append(text)

    collect()
    drawn = []
    for text in dict.fromkeys(texts):
        instruction = instruction_of(text)
        sizes = [leaf.size for leaf in _arrays(instruction)]
        if instruction.opcode in ("gather", "scatter"):
            del sizes[2]  # index vectors may have the width 0
        windows = instruction.attributes.get("slice_sizes")
        is_empty = min(sizes) == 0 or (windows is not None and "0" in windows.line)
        if isinstance(instruction.shape, Shape) and not is_empty and max(sizes) <= MAX_ELEMENTS:
            drawn.append(instruction)
    chance = random.Random(seed)
    larger = [enlarge(each, chance) for each in drawn]
    return drawn + [
        each
        for each in larger
        if each is not None and max(leaf.size for leaf in _arrays(each)) <= MAX_LARGE
    ]


def enlarge(instruction: Instruction, chance: random.Random) -> Instruction | None:
    """Return a window or a convolution of a larger array, which XLA may leave to a library."""
    op, (first, *others) = instruction.op, [operand.shape for operand in instruction.operands]
    if instruction.opcode not in ("reduce-window", "convolution") or op is None:
        return None
    assert isinstance(first, Shape)
    labels = "0" * first.rank
    if instruction.opcode == "convolution":
        labels = instruction.attributes["dim_labels"].line.partition("_")[0]
    sizes = [
        n if label == "f" else n * chance.choice([1, 7, 32])
        for n, label in zip(first.dims, labels, strict=True)
    ]
    larger = first.with_dims(sizes)
    operands = ", ".join(f"{shape} p{k}" for k, shape in enumerate([larger, *others]))
    attributes = "".join(f", {k}={text.line}" for k, text in instruction.attributes.items())
    result = op.infer_shape(larger, *others)
    return instruction_of(f"{result} {instruction.opcode}({operands}){attributes}")


def _arrays(instruction: Instruction) -> list[Shape]:
    shapes = [instruction.shape, *[operand.shape for operand in instruction.operands]]
    return [leaf for shape in shapes for _, leaf in leaves(shape) if isinstance(leaf, Shape)]


def programs(seed: int, count: int) -> list[tuple[str, str]]:
    """Return random programs with their names."""
    chance = random.Random(seed)
    pool = instructions(seed)
    named = []
    for number in range(count):
        name = f"{seed}-{number}"
        if chance.random() < 0.2:
            bound = chance.choice(["constant", "n", "data"])
            named.append((name, str(hlo.parse(RandomLoops(seed * 1000 + number, bound).text))))
        else:
            named.append((name, Chain(chance, pool).text))
    return named


class Chain:
    """A chain of instructions, most of them of two ops; `text` is its HLO."""

    def __init__(self, chance: random.Random, pool: list[Instruction]) -> None:
        self.chance, self.kind = chance, chance.choice(["f32", "s32", "s32"])
        self.lines: list[str] = []
        self.called: dict[str, str] = {}
        self.starts: list[str] = []
        self.parameters = self.count = 0
        self.values: list[tuple[str, tuple[int, ...]]] = []
        theme = chance.sample(sorted({each.opcode for each in pool}), 2)
        themed = [each for each in pool if each.opcode in theme]
        for _ in range(chance.choice(LENGTHS)):
            self._extend(self._choice(themed if chance.random() < 0.8 else pool))
            if chance.random() < 0.3:
                self._elementwise()
        self.lines[-1] = f"ROOT {self.lines[-1]}"
        body = "\n".join(f"  {line}" for line in self.lines)
        self.text = "\n".join(["HloModule hunt", *self.called.values(), f"ENTRY e {{\n{body}\n}}"])

    def _choice(self, pool: list[Instruction]) -> Instruction:
        """Return an instruction, more likely one whose operand has the rank of the last value."""
        if self.values and self.chance.random() < 0.8:
            rank = len(self.values[-1][1])
            same = [i for i in pool if getattr(i.operands[0].shape, "rank", None) == rank]
            pool = same or pool
        return self.chance.choice(pool)

    def _line(self, dims: tuple[int, ...], rest: str, kind: str = "") -> str:
        self.count += 1
        name = f"v{self.count}"
        shape = f"{kind or self.kind}[{','.join(map(str, dims))}]"
        self.lines.append(f"{name} = {shape} {rest}")
        return name

    def _constant(self, text: Any, kind: str = "") -> str:
        return self._line((), f"constant({text})", kind)

    def _parameter(self, dims: tuple[int, ...], kind: str = "") -> str:
        self.parameters += 1
        return self._line(dims, f"parameter({self.parameters - 1})", kind)

    def _extend(self, instruction: Instruction) -> None:
        """Add an instruction that reads the last value, if its operand can be made from it."""
        names = []
        for number, operand in enumerate(instruction.operands):
            assert isinstance(operand.shape, Shape)
            names.append(self._operand(instruction, number, operand.shape))
        attributes = {name: text.line for name, text in instruction.attributes.items()}
        for called in instruction.called_computations:
            self.called[called.name] = str(called).replace("f32", self.kind)
        shape = instruction.shape
        assert isinstance(shape, Shape)
        rest = f"{instruction.opcode}({', '.join(names)})"
        rest += "".join(f", {name}={text}" for name, text in attributes.items())
        self.values.append((self._line(shape.dims, rest), shape.dims))

    def _operand(self, instruction: Instruction, number: int, shape: Shape) -> str:
        opcode = instruction.opcode
        first = _INDICES.get(opcode, len(instruction.operands))
        is_index = number >= first or (opcode == "scatter" and number == 1)
        if is_index and not shape.dims:
            return self._start(shape.element_type)
        if is_index:
            return self._parameter(shape.dims, shape.element_type)
        if not shape.dims and opcode in ("reduce", "reduce-window", "select-and-scatter"):
            is_maximum = "maximum" in [c.name for c in instruction.called_computations]
            return self._constant(_LEAST[self.kind] if is_maximum else 0)
        if self.values and (number == 0 or self.chance.random() < 0.3):
            return self._fit(*self.values[-1], shape.dims)
        if not shape.dims and self.chance.random() < 0.5:
            return self._constant(self.chance.randint(-2, 3))
        return self._parameter(shape.dims)

    def _fit(self, name: str, dims: tuple[int, ...], wanted: tuple[int, ...]) -> str:
        """Return a value of other sizes: padded, cropped, or flattened in between."""
        if dims == wanted:
            return name
        if len(dims) != len(wanted) or prod(dims) == prod(wanted):
            if prod(dims) == prod(wanted):
                return self._line(wanted, f"reshape({name})")
            flat = self._line((prod(dims),), f"reshape({name})")
            return self._line(wanted, f"reshape({self._pad(flat, (prod(dims),), (prod(wanted),))})")
        glue = self.chance.random()
        if glue < 0.4 and all(size >= n for size, n in zip(dims, wanted, strict=True)):
            starts = "".join([f", {self._start('s32')}" for _ in dims])
            sizes = ",".join(map(str, wanted))
            return self._line(
                wanted, f"dynamic-slice({name}{starts}), dynamic_slice_sizes={{{sizes}}}"
            )
        if glue < 0.4 and all(size <= n for size, n in zip(dims, wanted, strict=True)):
            base = self._parameter(wanted)
            starts = "".join([f", {self._start('s32')}" for _ in dims])
            return self._line(wanted, f"dynamic-update-slice({base}, {name}{starts})")
        return self._pad(name, dims, wanted)

    def _start(self, kind: str) -> str:
        """Return a start index: a constant or a parameter, perhaps an earlier one."""
        choice = self.chance.random()
        if self.starts and choice < 0.3:
            return self.chance.choice(self.starts)
        if choice < 0.5:
            start = self._constant(self.chance.randint(-2, 6), kind)
        else:
            start = self._parameter((), kind)
        if kind == "s32":
            self.starts.append(start)
        return start

    def _pad(self, name: str, dims: tuple[int, ...], wanted: tuple[int, ...]) -> str:
        edges = []
        for size, target in zip(dims, wanted, strict=True):
            interior = self.chance.choice([0, 0, 1])
            low = self.chance.randint(-2, 2)
            high = target - low - size - max(size - 1, 0) * interior
            edges.append(f"{low}_{high}_{interior}")
        zero = self._constant(self.chance.choice([0, 0, 1]))
        return self._line(wanted, f"pad({name}, {zero}), padding={'x'.join(edges)}")

    def _elementwise(self) -> None:
        name, dims = self.values[-1]
        if self.chance.random() < 0.3:
            opcode = self.chance.choice(_UNARY[self.kind])
            self.values.append((self._line(dims, f"{opcode}({name})"), dims))
            return
        opcode = self.chance.choice(_BINARY[self.kind])
        same = [other for other, sizes in self.values if sizes == dims]
        if opcode in ("divide", "remainder") or opcode.startswith("shift") or not same:
            number = self._constant(self.chance.choice([1, 2, 3, 4, 7, -1, -3, 31]))
            other = self._line(dims, f"broadcast({number}), dimensions={{}}") if dims else number
        else:
            other = self.chance.choice(same)
        operands = [name, other] if self.chance.random() < 0.7 else [other, name]
        if opcode in ("divide", "remainder"):
            operands = [name, other]
        self.values.append((self._line(dims, f"{opcode}({', '.join(operands)})"), dims))
