"""Random programs in which predicates and integers choose between values, or what is read.

    python -m tests.dataflow.random_masks [--count N] [--seed S] [--tight]

prints the seeds of programs whose maps lack a dependency that an execution has; with ``--tight``
also those whose exact maps relate what no execution shows.

A program is generated from its result.  Integers are iotas, constants, runtime scalars and vectors
of several types, and arithmetic on them that may wrap around, truncate and shift too far;
predicates compare them.  Values are selected by predicates, moved, reduced and gathered.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Final, TypeAlias

import numpy as np

import hlo
from hlo import Module
from indexing.ops.unspecified import record_unspecified
from tests.dataflow.influence import Pokes, read
from tests.dataflow.loop_judge import EXACT, answers, miss, run_of

Dims: TypeAlias = tuple[int, ...]

COMBINERS: Final = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
most { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] maximum(a, b) }
"""
INTEGERS: Final = ("s32", "s32", "s32", "u8", "s8", "u32")
DIRECTIONS: Final = ("LT", "LE", "GT", "GE", "EQ", "NE")
ARITHMETIC: Final = (
    *("add", "subtract", "multiply", "divide", "remainder", "minimum", "maximum", "add"),
    *("and", "or", "xor", "shift-left", "shift-right-logical", "shift-right-arithmetic"),
)
MAX_SIZE: Final = 30
VALUES: Final = 4


def shape(kind: str, dims: Dims) -> str:
    return f"{kind}[{','.join(map(str, dims))}]"


def list_numbers(numbers: Sequence[object]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


def literal(numbers: Sequence[object], dims: Dims) -> str:
    """Return the text of a constant."""
    if not dims:
        return str(numbers[0])
    step = len(numbers) // dims[0]
    return list_numbers(
        [literal(numbers[k * step : (k + 1) * step], dims[1:]) for k in range(dims[0])]
    )


class RandomMask:
    """A random program; `text` is its HLO."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.parameters = 0
        dims = self._dims()
        root = self._select(dims, self.random.randint(1, 3))
        self.lines.append(f"ROOT r = {shape('f32', dims)} copy({root})")
        body = "\n  ".join(self.lines)
        self.text = f"{COMBINERS}ENTRY main {{\n  {body}\n}}\n"

    def _dims(self) -> Dims:
        rank = self.random.choice([1, 1, 2])
        return tuple([self.random.randint(2, 8 if rank == 1 else 5) for _ in range(rank)])

    def _line(self, kind: str, dims: Dims, text: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {shape(kind, dims)} {text}")
        return name

    def _parameter(self, kind: str, dims: Dims) -> str:
        self.parameters += 1
        return self._line(kind, dims, f"parameter({self.parameters - 1})")

    def _constant(self, kind: str, dims: Dims, numbers: Sequence[object]) -> str:
        return self._line(kind, dims, f"constant({literal(numbers, dims)})")

    # ------------------------------------------------------------ values

    def _value(self, dims: Dims, depth: int) -> str:
        """Add an array of floats."""
        if depth <= 0 or self.random.random() < 0.15:
            if self.random.random() < 0.2:
                zero = self._constant("f32", (), ["0"])
                return self._line("f32", dims, f"broadcast({zero}), dimensions={{}}")
            return self._parameter("f32", dims)
        makers: list[Callable[[Dims, int], str]] = [
            *(self._select, self._select, self._select, self._reverse, self._transpose),
            *(self._reshape, self._slice, self._pad, self._reduce, self._gather),
            *(self._negate, self._sum, self._clamped_slice, self._join),
        ]
        return self.random.choice(makers)(dims, depth - 1)

    def _select(self, dims: Dims, depth: int) -> str:
        operands = self._predicate(dims, 2), self._value(dims, depth), self._value(dims, depth)
        return self._line("f32", dims, f"select({', '.join(operands)})")

    def _negate(self, dims: Dims, depth: int) -> str:
        return self._line("f32", dims, f"negate({self._value(dims, depth)})")

    def _sum(self, dims: Dims, depth: int) -> str:
        operands = self._value(dims, depth), self._select(dims, depth - 1)
        return self._line("f32", dims, f"add({', '.join(operands)})")

    def _reverse(self, dims: Dims, depth: int) -> str:
        value = self._value(dims, depth)
        dimension = self.random.randrange(len(dims))
        return self._line("f32", dims, f"reverse({value}), dimensions={{{dimension}}}")

    def _transpose(self, dims: Dims, depth: int) -> str:
        value, order = self._value(dims[::-1], depth), range(len(dims))[::-1]
        return self._line("f32", dims, f"transpose({value}), dimensions={list_numbers(order)}")

    def _reshape(self, dims: Dims, depth: int) -> str:
        size = prod(dims)
        factors = [k for k in range(1, size + 1) if size % k == 0]
        first = self.random.choice(factors)
        value = self._value(self.random.choice([(size,), (first, size // first)]), depth)
        return self._line("f32", dims, f"reshape({value})")

    def _slice(self, dims: Dims, depth: int) -> str:
        lows = [self.random.randint(0, 2) for _ in dims]
        steps = [self.random.choice([1, 1, 2]) for _ in dims]
        ends = [a + (n - 1) * s + 1 for a, n, s in zip(lows, dims, steps, strict=True)]
        value = self._value(tuple(ends), depth)
        parts = [f"[{a}:{b}:{s}]" for a, b, s in zip(lows, ends, steps, strict=True)]
        return self._line("f32", dims, f"slice({value}), slice={list_numbers(parts)}")

    def _pad(self, dims: Dims, depth: int) -> str:
        lows = [self.random.randint(0, n - 1) for n in dims]
        value = self._value(tuple([n - a for a, n in zip(lows, dims, strict=True)]), depth)
        zero = self._constant("f32", (), ["0"])
        padding = "x".join([f"{low}_0" for low in lows])
        return self._line("f32", dims, f"pad({value}, {zero}), padding={padding}")

    def _join(self, dims: Dims, depth: int) -> str:
        cut = self.random.randint(1, dims[0] - 1) if dims[0] > 1 else 0
        if not cut:
            return self._value(dims, depth)
        parts = [self._value((size, *dims[1:]), depth) for size in (cut, dims[0] - cut)]
        return self._line("f32", dims, f"concatenate({', '.join(parts)}), dimensions={{0}}")

    def _reduce(self, dims: Dims, depth: int) -> str:
        size = self.random.randint(2, 4)
        if prod(dims) * size > MAX_SIZE:
            return self._value(dims, depth)
        place = self.random.randint(0, len(dims))
        value = self._select((*dims[:place], size, *dims[place:]), depth)
        zero = self._constant("f32", (), ["0"])
        combiner = self.random.choice(["add", "most"])
        attributes = f"dimensions={{{place}}}, to_apply={combiner}"
        return self._line("f32", dims, f"reduce({value}, {zero}), {attributes}")

    def _gather(self, dims: Dims, depth: int) -> str:
        if len(dims) != 1:
            return self._value(dims, depth)
        size = self.random.randint(2, 8)
        indices = self._number("s32", dims, 2)
        value = self._value((size,), depth)
        attributes = (
            "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1"
        )
        return self._line(
            "f32", dims, f"gather({value}, {indices}), {attributes}, slice_sizes={{1}}"
        )

    def _clamped_slice(self, dims: Dims, depth: int) -> str:
        value = self._value(tuple([size + 2 for size in dims]), depth)
        starts = [self._number("s32", (), 2) for _ in dims]
        operands = ", ".join([value, *starts])
        return self._line(
            "f32", dims, f"dynamic-slice({operands}), dynamic_slice_sizes={list_numbers(dims)}"
        )

    # ------------------------------------------------------------ predicates and integers

    def _predicate(self, dims: Dims, depth: int) -> str:
        draw = self.random.random()
        if depth <= 0 or draw < 0.5:
            kind = self.random.choice([*INTEGERS, "f32"])
            sides = self._number(kind, dims, depth), self._number(kind, dims, depth - 1)
            direction = self.random.choice(DIRECTIONS)
            return self._line("pred", dims, f"compare({', '.join(sides)}), direction={direction}")
        if draw < 0.55:
            return self._parameter("pred", dims)
        if draw < 0.6:
            bits = [self.random.choice(["true", "false"]) for _ in range(prod(dims))]
            return self._constant("pred", dims, bits)
        if draw < 0.7:
            return self._line("pred", dims, f"not({self._predicate(dims, depth - 1)})")
        if draw < 0.75:
            number = self._number(self.random.choice(INTEGERS), dims, depth - 1)
            return self._line("pred", dims, f"convert({number})")
        count = 3 if draw > 0.95 else 2
        operands = ", ".join([self._predicate(dims, depth - 1) for _ in range(count)])
        opcode = "select" if count == 3 else self.random.choice(["and", "or", "xor"])
        return self._line("pred", dims, f"{opcode}({operands})")

    def _number(self, kind: str, dims: Dims, depth: int) -> str:
        """Add an array of integers, or of floats that are computed from iotas."""
        if depth <= 0 or self.random.random() < 0.3:
            return self._leaf(kind, dims)
        draw = self.random.random()
        if draw < 0.1 and kind != "f32":
            other = self.random.choice(INTEGERS)
            return self._line(kind, dims, f"convert({self._number(other, dims, depth - 1)})")
        if draw < 0.2:
            chosen = [self._number(kind, dims, depth - 1) for _ in range(2)]
            operands = ", ".join([self._predicate(dims, depth - 1), *chosen])
            return self._line(kind, dims, f"select({operands})")
        if draw < 0.3:
            operands = ", ".join([self._number(kind, dims, depth - 1) for _ in range(3)])
            return self._line(kind, dims, f"clamp({operands})")
        if draw < 0.37 and kind in ("s32", "s8"):
            opcode = self.random.choice(["negate", "abs", "sign", "not"])
            return self._line(kind, dims, f"{opcode}({self._number(kind, dims, depth - 1)})")
        opcode = self.random.choice(ARITHMETIC[:3] if kind == "f32" else ARITHMETIC)
        first = self._number(kind, dims, depth - 1)
        second = (
            self._splat(kind, dims, self.random.randint(1, 4))
            if opcode in ("divide", "remainder")
            else self._number(kind, dims, depth - 1)
        )
        return self._line(kind, dims, f"{opcode}({first}, {second})")

    def _leaf(self, kind: str, dims: Dims) -> str:
        draw = self.random.random()
        if dims and draw < 0.5:
            dimension = self.random.randrange(len(dims))
            return self._line(kind, dims, f"iota(), iota_dimension={dimension}")
        if kind == "f32":
            return self._splat(kind, dims, self.random.choice([0.1, 0.3, 2, 3]))
        low = 0 if kind.startswith("u") else -4
        if draw < 0.65:
            numbers = [self.random.randint(low, 7) for _ in range(prod(dims))]
            return self._constant(kind, dims, numbers)
        if draw < 0.8 or kind == "u32":
            return self._splat(kind, dims, self.random.randint(low, 7))
        kept = [k for k in range(len(dims)) if self.random.random() < 0.3]
        scalar = self._parameter(kind, tuple([dims[k] for k in kept]))
        return self._line(kind, dims, f"broadcast({scalar}), dimensions={list_numbers(kept)}")

    def _splat(self, kind: str, dims: Dims, number: float) -> str:
        constant = self._constant(kind, (), [number])
        return self._line(kind, dims, f"broadcast({constant}), dimensions={{}}")


# ---------------------------------------------------------------- the judge


def program(seed: int) -> tuple[Module, Pokes] | None:
    """Return a random program, executed with each element changed; None if it is not specified."""
    text = RandomMask(seed).text
    module = hlo.parse(text)
    assert not hlo.verify(module), f"{hlo.verify(module)[0]}\n{text}"
    with np.errstate(all="ignore"), record_unspecified() as unspecified:
        pokes = Pokes.of(module.entry, seed)
        for place in pokes.places():
            pokes.poke(*place, values=VALUES)
    return None if unspecified or pokes.results is None else (module, pokes)


def superfluous(module: Module, pokes: Pokes) -> Iterator[str]:
    """Yield each output and parameter of floats whose exact maps relate what is not seen.

    Integers are runtime values, of which each execution shows a part only.
    """
    at = run_of(module, pokes.arguments)
    for answer in answers(module):
        for number, parameter in enumerate(module.entry.parameters):
            extra = read(answer, number, EXACT, at) & ~pokes.seen[answer.domain_id, number]
            if pokes.arguments[number].dtype.kind == "f" and extra.any():
                yield f"output {answer.domain_id} and {parameter.name}: {extra.sum()} pairs"


def main() -> None:
    """Search, and print each program with a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tight", action="store_true")
    given = parser.parse_args()
    executed, wrong, loose = 0, 0, 0
    for seed in range(given.seed, given.seed + given.count):
        made = program(seed)
        if made is None:
            continue
        executed += 1
        lacking = [*miss(*made), *miss(*made, exact=True)]
        extra = list(superfluous(*made))
        wrong, loose = wrong + bool(lacking), loose + bool(extra)
        if lacking or (extra and given.tight):
            print(f"seed {seed}:", *lacking, *extra, made[0], sep="\n", flush=True)
    print(f"{executed} programs, {wrong} with too few elements, {loose} with too many")


if __name__ == "__main__":
    main()
