"""Problems for programs of tilings: modules, with sizes and steps that rarely divide."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hlo
import indexing
from hlo.modules.module import Instruction, Module
from indexing import LoopTiling, Unknown
from indexing.codegen.tile_programs.lowering import tile_program
from indexing.execution import evaluate, random_inputs
from indexing.execution.values import flattened
from indexing.maps.arrays import ArrayRef, array_leaves
from indexing.ops.base import MappedOp
from indexing.ops.structured_ops import InlineOp
from indexing.tiling.loops.loop_model import loop_model
from indexing.tiling.loops.loop_names import named_loops
from tests.tiling.loops import hand_problems as hand

Array = NDArray[Any]
ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class TileCase:
    """An instruction, its tiles, the arrays that it reads, and its value.

    Attributes:
        name: the name of the case.
        tiling: the tiling.
        given: the value of each array.
        wanted: the value of the instruction, from the reference kernels.
    """

    name: str
    tiling: LoopTiling
    given: Mapping[ArrayRef, Array]
    wanted: Array

    def arguments(self) -> list[Array]:
        """Return the arrays of the program, in order."""
        return [self.given[array] for array in tile_program(self.tiling).arrays]


def fuse(arguments: str, result: str, body: str) -> str:
    """Return a module whose root is a fusion; see `hand_problems`."""
    return hand._fuse(arguments, result, body)


def masked_attention(queries: int, keys: int, d: int) -> str:
    """Return an attention in which the first keys are hidden from all queries, and some queries
    see no key of the first steps."""
    s = f"f32[{queries},{keys}]"
    return fuse(
        f"q: f32[{queries},{d}]; k: f32[{keys},{d}]; v: f32[{keys},{d}]",
        f"f32[{queries},{d}]",
        f"""x = {s} dot(q, k), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  i = s32[{queries},{keys}] iota(), iota_dimension=0
  j = s32[{queries},{keys}] iota(), iota_dimension=1
  seen = pred[{queries},{keys}] compare(j, i), direction=GE
  low = f32[] constant(-inf)
  lows = {s} broadcast(low), dimensions={{}}
  y = {s} select(seen, x, lows)
  zero = f32[] constant(0)
  top = f32[{queries}] reduce(y, low), dimensions={{1}}, to_apply=max
  tops = {s} broadcast(top), dimensions={{0}}
  z = {s} subtract(y, tops)
  e = {s} exponential(z)
  total = f32[{queries}] reduce(e, zero), dimensions={{1}}, to_apply=add
  totals = {s} broadcast(total), dimensions={{0}}
  p = {s} divide(e, totals)
  ROOT o = f32[{queries},{d}] dot(p, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}""",
    )


def reduction(kind: str, function: str, init: str) -> str:
    """Return a reduction over two dimensions with an initial value that is not neutral."""
    return f"""
f {{ a = {kind}[] parameter(0)  b = {kind}[] parameter(1)  ROOT s = {kind}[] {function}(a, b) }}
ENTRY e {{ x = {kind}[5,4,7] parameter(0)  z = {kind}[] constant({init})
  ROOT r = {kind}[4] reduce(x, z), dimensions={{0,2}}, to_apply=f }}"""


ELEMENTWISE = fuse(
    "x: f32[7,5]; y: bf16[5,7]; w: f32[5]",
    "bf16[5,7]",
    """t = f32[5,7] transpose(x), dimensions={1,0}
  c = f32[5,7] convert(y)
  b = f32[5,7] broadcast(w), dimensions={0}
  m = f32[5,7] multiply(t, b)
  a = f32[5,7] add(m, c)
  h = f32[5,7] logistic(a)
  n = f32[5,7] negate(h)
  i = s32[5,7] iota(), iota_dimension=1
  k = s32[] constant(3)
  ks = s32[5,7] broadcast(k), dimensions={}
  p = pred[5,7] compare(i, ks), direction=LT
  u = f32[5,7] select(p, n, a)
  ROOT o = bf16[5,7] convert(u)""",
)
RESHAPED = fuse(
    "x: f32[6,4]", "f32[2,3,4]", "e = f32[6,4] exponential(x)\nROOT r = f32[2,3,4] reshape(e)"
)
NARROW = fuse(
    "x: bf16[9,6]; y: bf16[9,6]",
    "bf16[9]",
    "m = bf16[9,6] multiply(x, y)\nz = bf16[] constant(0)\n"
    "ROOT r = bf16[9] reduce(m, z), dimensions={1}, to_apply=addb",
).replace("max {", "addb { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT s = bf16[] "
          "add(a, b) }\nmax {", 1)  # fmt: skip

# fmt: off
BLOCKED: dict[str, tuple[str, tuple[int, ...], dict[str, int]]] = {
    # name               module                              tile           steps
    "dot":               (hand.dot(20, 15, 10).text,         (6, 4),        {"k": 3}),
    "dot, one step":     (hand.dot(20, 15, 10).text,         (6, 4),        {}),
    "dot, elements":     (hand.dot(5, 3, 4).text,            (1, 1),        {"k": 1}),
    "dot in f32":        (hand.dot(40, 33, 37, "f32").text,  (16, 32),      {"k": 16}),
    "dot of integers":   (hand.dot(9, 7, 8, "s32").text,     (4, 3),        {"k": 5}),
    "epilogue":          (hand.dot_with_epilogue(20, 15, 10).text, (6, 4),  {"k": 3}),
    "batch":             (hand.batched_dot(3, 7, 5, 6).text, (1, 4, 3),     {"k": 4}),
    "batch of two":      (hand.batched_dot(3, 7, 5, 6).text, (2, 4, 3),     {"k": 4}),
    "two dots":          (hand.two_dots(7, 5, 6).text,       (4, 3),        {"k": 4}),
    "row sums":          (hand.row_sums(7, 9).text,          (4,),          {"k": 4}),
    "row sums, one row": (hand.row_sums(7, 9).text,          (1,),          {"k": 2}),
    "causal sums":       (hand.causal_sums(9).text,          (4,),          {"k": 4}),
    "softmax, online":   (hand.softmax(7, 9).text,           (4, 9),        {"k": 4, "d1": 4}),
    "softmax, resident": (hand.softmax(7, 9).text,           (4, 9),        {}),
    "softmax, columns":  (hand.softmax(7, 9).text,           (4, 4),        {"k": 4}),
    "attention":         (hand.attention(2, 7, 9, 4, True).text, (1, 3, 4), {"k": 4}),
    "attention of two":  (hand.attention(2, 7, 9, 4, True).text, (2, 3, 3), {"k": 4}),
    "masked attention":  (masked_attention(7, 9, 4),         (3, 4),        {"k": 2}),
    "masked, dividing":  (masked_attention(8, 8, 4),         (4, 2),        {"k": 4}),
    "reshaped dot":      (hand.reshaped_dot(5, 6, 3, 4).text, (2, 4),       {"k": 2}),
    "reshaped, rows":    (hand.reshaped_dot(5, 6, 3, 4).text, (2, 4),       {"k": 8}),
    "elementwise":       (ELEMENTWISE,                       (2, 3),        {}),
    "reshape":           (RESHAPED,                          (1, 3, 3),     {}),
    "narrow sums":       (NARROW,                            (4,),          {"k": 4}),
    "sums of integers":  (reduction("s32", "add", "3"),      (3,),          {"k0": 2, "k1": 4}),
    "maxima":            (reduction("f32", "maximum", "0.5"), (3,),         {"k0": 2, "k1": 4}),
    "minima":            (reduction("s32", "minimum", "1"),  (4,),          {"k0": 5, "k1": 3}),
    "products":          (reduction("f32", "multiply", "2"), (1,),          {"k0": 3, "k1": 7}),
    "bits":              (reduction("u32", "xor", "5"),      (3,),          {"k0": 2, "k1": 4}),
}
"""Problems whose steps read blocks of arrays."""

OVERLAPPING: dict[str, tuple[str, tuple[int, ...], dict[str, int]]] = {
    "convolution":       (hand.convolution(1, 6, 2, 3, 3, 1).text, (1, 4, 5, 2),
                          {"w0": 1, "w1": 2, "k": 1}),
    "strided":           (hand.convolution(1, 7, 2, 3, 3, 1, 2).text, (1, 2, 3, 2),
                          {"w0": 2, "k": 2}),
    "pooling":           (hand.pooling(9, 4, 3, 2).text,     (2, 3),        {"w": 2}),
    "stencil":           (hand.stencil(9, 7).text,           (4, 3),        {}),
}
"""Problems whose steps read boxes that overlap."""
# fmt: on

RECOMPUTED = ("softmax, online", "attention", "masked attention")
"""Problems whose statistics may be recomputed, in phases."""


def _order_arrays(module: Module, instruction: Instruction) -> dict[ArrayRef, Array]:
    inputs = iter(random_inputs(module.entry, 1))
    return {
        ArrayRef(parameter, path): next(inputs)
        for parameter in module.entry.parameters
        for _, path, _ in array_leaves(parameter.shape)
    }


@cache
def case_of(
    name: str, online: bool = True, sizes: tuple[int, ...] = (), steps: tuple[Any, ...] = ()
) -> TileCase:
    """Return a problem by its name, possibly with other sizes and steps."""
    text, own, loops = (BLOCKED | OVERLAPPING)[name]
    module = hlo.parse(text)
    root = module.entry.root
    given = _order_arrays(module, root)
    tiling = indexing.tile(
        root, sizes or own, "parameters", loop_sizes=dict(steps) or loops, online=online
    )
    assert isinstance(tiling, LoopTiling)
    (wanted,) = flattened(evaluate(module.entry, *given.values())[root])
    return TileCase(name, tiling, given, wanted)


def redrawn(name: str, seed: int) -> TileCase:
    """Return a problem with random sizes and steps."""
    drawn = random.Random(f"{name} {seed}")
    first = case_of(name).tiling
    sizes = tuple([drawn.randint(max(1, n // 4), n) for n in first.shape.dims])
    steps = {loop.name: drawn.randint(1, loop.size) for loop in first.loops}
    steps = {loop: step for loop, step in steps.items() if not loop.startswith("c")}
    if "d1" in steps:
        sizes = first.sizes
    return case_of(name, drawn.random() < 0.5, sizes, tuple(steps.items()))


FILES = ["attention.opt.hlo", "layernorm.opt.hlo", "attention.pre.hlo"]
"""Files of the examples whose instructions are tiled one by one."""


def file_cases(name: str, most_elements: int = 5000, most_steps: int = 60) -> list[TileCase]:
    """Return a case for each instruction of the entry of a file, with random sizes and steps."""
    module = hlo.load(ROOT / "examples" / name)
    drawn = random.Random(name)
    values = evaluate(module.entry, *random_inputs(module.entry, 2))
    cases: list[TileCase] = []
    for instruction in module.entry.instructions:
        arrays = [shape for _, _, shape in array_leaves(instruction.shape)]
        is_computed = isinstance(instruction.op, MappedOp | InlineOp) and instruction.operands
        if not is_computed or len(arrays) != 1 or not 0 < arrays[0].size <= most_elements:
            continue
        model = loop_model(instruction)
        if isinstance(model, Unknown):
            continue
        sizes = [drawn.randint(max(1, n // 2), n) for n in arrays[0].dims]
        loops = {
            loop.name: drawn.randint(max(1, loop.size // 3), loop.size)
            for loop in named_loops(model)
            if not loop.name.startswith("c")
        }
        tiling = indexing.tile(instruction, sizes, loop_sizes=loops)
        if isinstance(tiling, Unknown) or tiling.blocks * tiling.steps > most_steps:
            continue
        given = {
            ArrayRef(operand, path): np.asarray(array)
            for operand in instruction.operands
            for (_, path, _), array in zip(
                array_leaves(operand.shape), flattened(values[operand]), strict=True
            )
        }
        (wanted,) = flattened(values[instruction])
        cases.append(TileCase(f"{name} {instruction.name}", tiling, given, wanted))
    return cases


def summary(kinds: Sequence[str]) -> dict[str, int]:
    """Count equal words."""
    return {kind: list(kinds).count(kind) for kind in dict.fromkeys(kinds)}
