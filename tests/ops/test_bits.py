"""Bitcasts of all pairs of element widths, against Python integers and against recorded XLA."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import ml_dtypes  # noqa: F401 - registers the types with NumPy
import numpy as np
import pytest

import hlo
import indexing
from hlo import Instruction
from hlo.shapes.shape import ELEMENT_TYPES, Shape, dtype
from indexing import Unknown
from indexing.codegen.nest import LoopNest
from indexing.execution import run
from tests.ops.samples import Array, Pair, parse_sample
from tests.oracles import relation

# Each width, and each kind of type below 32 bits.
TYPES = [
    *("s1", "u2", "s4", "f4e2m1fn", "pred", "u8", "f8e4m3fn", "s16", "bf16"),
    *("f32", "s64", "c64", "c128"),
]

# Elements as unsigned integers: of the operand, and of the result of XLA on CPU (jaxlib 0.10.2).
# fmt: off
XLA = [
    ("s8[3] bitcast-convert(s4[3,2] p)",       [3, 2, 2, 1, 1, 0],        [35, 18, 1]),
    ("u4[3] bitcast-convert(s2[3,2] p)",       [3, 2, 2, 1, 1, 0],        [11, 6, 1]),
    ("f4e2m1fn[3] bitcast-convert(u2[3,2] p)", [3, 2, 2, 1, 1, 0],        [11, 6, 1]),
    ("bf16[1] bitcast-convert(s4[1,4] p)",     [13, 10, 8, 4],            [18605]),
    ("f16[1] bitcast-convert(f4e2m1fn[1,4] p)", [13, 10, 8, 4],           [18605]),
    ("f8e5m2[3] bitcast-convert(s4[3,2] p)",   [13, 10, 8, 4, 4, 0],      [173, 72, 4]),
    ("u2[2,4] bitcast-convert(s8[2] p)",       [217, 163],                [1, 2, 1, 3, 3, 0, 2, 2]),
    ("s4[3,2] bitcast-convert(f8e4m3fn[3] p)", [217, 163, 130],           [9, 13, 3, 10, 2, 8]),
    ("f4e2m1fn[2,4] bitcast-convert(f16[2] p)", [41945, 17794],         [9, 13, 3, 10, 2, 8, 5, 4]),
    ("s2[3,2] bitcast-convert(f4e2m1fn[3] p)", [13, 10, 8],               [1, 3, 2, 2, 0, 2]),
    ("u4[3] bitcast-convert(f4e2m1fn[3] p)",   [13, 10, 8],               [13, 10, 8]),
]
LAYOUTS = [
    "s8[3]{0} bitcast(s4[3,2]{1,0:E(4)} p)",
    "s8[3,5]{0,1} bitcast(u4[3,2,5]{1,0,2:E(4)} p)",
    "u2[5,3,4]{1,2,0:E(2)} bitcast(s8[3,5]{0,1} p)",
    "s4[3,2]{0,1:E(4)} bitcast(u4[2,3]{1,0:E(4)} p)",
    "s1[2,3,16]{2,0,1:E(1)} bitcast(f16[3,2] p)",
    "f4e2m1fn[7,2]{1,0} bitcast(s8[7] p)",
    "u2[2,3]{1,0:E(2)} bitcast(f4e2m1fn[3]{0:E(4)} p)",      # 12 bits: no whole bytes
    "c64[5]{0} bitcast(f32[2,5]{0,1} p)",
    "s4[5]{0} bitcast(s8[5] p)",                             # a byte for each element
    "u8[5]{0} bitcast(s4[5] p)",
]
# fmt: on


def bits_in_memory(shape: Shape) -> int:
    """The bits of an element that the oracle compares: packed, unless a byte holds each element."""
    return ELEMENT_TYPES[shape.element_type].bits


def from_integers(shape: Shape, elements: Sequence[int]) -> Array:
    """The array with these bits in each element, in row-major order."""
    kind = dtype(shape.element_type)
    stored = b"".join(element.to_bytes(kind.itemsize, "little") for element in elements)
    return np.frombuffer(stored, kind).reshape(shape.dims)


def integers(array: Array, bits: int) -> list[int]:
    """The lowest `bits` of each element, in row-major order."""
    stored, size = np.ascontiguousarray(array).tobytes(), array.itemsize
    every = [int.from_bytes(stored[k : k + size], "little") for k in range(0, len(stored), size)]
    return [element & ((1 << bits) - 1) for element in every]


def in_memory(shape: Shape) -> list[tuple[int, ...]]:
    """The indices of a shape in memory order."""
    order = shape.layout_or_default.minor_to_major[::-1]
    places = product(*[range(shape.dims[k]) for k in order])
    return [tuple([place[order.index(k)] for k in range(shape.rank)]) for place in places]


def oracle(out: Shape, operand: Shape, elements: Sequence[int]) -> tuple[list[int], set[Pair]]:
    """The elements of the result, and which pairs of elements share bits, by one large integer."""
    ours, theirs = bits_in_memory(operand), bits_in_memory(out)
    if operand.size == out.size:  # a byte for each element: the result has its lowest bits
        ours = theirs = max(ours, theirs)
    value_of = dict(zip(np.ndindex(*operand.dims), elements, strict=True))
    memory = sum(value_of[at] << (k * ours) for k, at in enumerate(in_memory(operand)))
    results = {
        at: memory >> (k * theirs) & ((1 << theirs) - 1) for k, at in enumerate(in_memory(out))
    }
    pairs = {
        (at, source)
        for k, at in enumerate(in_memory(out))
        for n, source in enumerate(in_memory(operand))
        if k * theirs < (n + 1) * ours and n * ours < (k + 1) * theirs
    }
    keep = (1 << bits_in_memory(out)) - 1
    return [results[at] & keep for at in np.ndindex(*out.dims)], pairs


def random_elements(operand: Shape, random: np.random.Generator, step: int) -> list[int]:
    """Random bits; with `step`, only at multiples of it in memory, so that bytes are 0 or 1."""
    width = bits_in_memory(operand)
    allowed = [
        sum(1 << j for j in range(width) if (k * width + j) % step == 0)
        for k in range(operand.size)
    ]
    return [int.from_bytes(random.bytes(16), "little") & mask for mask in allowed]


def check_executions(instruction: Instruction, operand: Array, expected: list[int]) -> None:
    """Check the kernel, the loops and the NumPy program, whole and in tiles."""
    out = instruction.shape
    assert isinstance(out, Shape)
    bits = bits_in_memory(out)
    (by_kernel,) = run(instruction.computation.module, [operand])
    nest = indexing.loop_nest(instruction)
    assert isinstance(nest, LoopNest), nest
    program: Any = nest.vectorized()
    results = {
        "kernel": by_kernel,
        "loops": nest.run(operand),
        "program": program.run(operand),
        "tiles": program.run(operand, tile=(2,) * len(out.dims)),
    }
    for name, result in results.items():
        assert (result.shape, result.dtype) == (out.dims, dtype(out.element_type)), name
        assert integers(result, bits) == expected, name


def check_bits(text: str, random: np.random.Generator) -> None:
    instruction = parse_sample(text).instruction
    out, operand = instruction.shape, instruction.operands[0].shape
    assert isinstance(out, Shape)
    assert isinstance(operand, Shape)
    is_pred = "pred" in (out.element_type, operand.element_type)
    elements = random_elements(operand, random, step=8 if is_pred else 1)
    expected, pairs = oracle(out, operand, elements)
    check_executions(instruction, from_integers(operand, elements), expected)
    (forward,) = indexing.output_to_input(instruction).maps[0]
    (backward,) = indexing.input_to_output(instruction).maps[0]
    assert relation(forward) == pairs
    assert relation(backward) == {(b, a) for a, b in pairs}
    assert forward.grade == backward.grade == "exact"


def convert(source: str, target: str, opcode: str) -> str:
    """A bitcast of 3 x 2 elements of the wider type."""
    ours, theirs = ELEMENT_TYPES[source].bits, ELEMENT_TYPES[target].bits
    split, parts = max(1, ours // theirs), max(1, theirs // ours)
    sizes = ["3,2" + (f",{n}" if n > 1 else "") for n in (split, parts)]
    return f"{target}[{sizes[0]}] {opcode}({source}[{sizes[1]}] p)"


@pytest.mark.parametrize("opcode", ["bitcast-convert", "bitcast"])
@pytest.mark.parametrize("source", TYPES)
def test_all_widths_agree_with_integers(source: str, opcode: str) -> None:
    random = np.random.default_rng(7)
    for target in TYPES:
        check_bits(convert(source, target, opcode), random)


@pytest.mark.parametrize("text", LAYOUTS)
def test_layouts_decide_which_bits_an_element_has(text: str) -> None:
    check_bits(text, np.random.default_rng(11))


@pytest.mark.parametrize(("text", "elements", "expected"), XLA)
def test_results_equal_those_of_xla(text: str, elements: list[int], expected: list[int]) -> None:
    instruction = parse_sample(text).instruction
    operand = instruction.operands[0].shape
    assert isinstance(operand, Shape)
    check_executions(instruction, from_integers(operand, elements), expected)


def test_a_fused_bitcast_reads_the_elements_below_a_byte() -> None:
    module = hlo.parse(
        """
HloModule m

ENTRY e {
  p = s4[3,2] parameter(0)
  n = s4[3,2] negate(p)
  b = s8[3] bitcast-convert(n)
  ROOT r = s2[3,4] bitcast-convert(b)
}
"""
    )
    nest = indexing.loop_nest(module.entry)
    assert not isinstance(nest, Unknown)
    operand = np.array([[1, 2], [3, -8], [-4, 7]], dtype("s4"))
    expected = [3, 3, 2, 3, 1, 3, 0, 2, 0, 1, 1, 2]
    for result in (*run(module, [operand]), nest.run(operand), nest.vectorized().run(operand)):
        assert integers(result, 2) == expected
