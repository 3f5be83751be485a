"""Each op inside a fusion, between random producers and consumers.

Index operands are computed values, reads are composed with reshapes and slices, guards are nested,
and reductions are read at composed indices.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
import indexing
from hlo.modules.module import Computation
from hlo.shapes.shape import Shape
from indexing.codegen.nest import LoopNest
from indexing.execution import evaluate, flattened
from indexing.ops.samples import COMPUTATIONS, operands
from tests.codegen.comparison import agree
from tests.codegen.test_nests_agree import WITHOUT_NEST
from tests.ops.samples import Array, Sample, parse_sample
from tests.ops.test_random_ops import STRATEGIES
from tests.oracles import fuzz

Draw = Any
MAX_ELEMENTS = 400  # of all arrays: each example also runs Python loops
PRODUCERS = ["copy", "reshape", "transpose", "slice", "reverse", "select", "concatenate"]
CONSUMERS = ["copy", "reshape", "pad", "broadcast", "reverse", "add", "concatenate"]
# Element types that are excluded from arithmetic.
PLAIN = ("pred", "token")


def text_of(shape: Shape, dims: tuple[int, ...]) -> str:
    return f"{shape.element_type}[{','.join(map(str, dims))}]"


def producer(draw: Draw, number: int, name: str, shape: Shape) -> tuple[list[str], Shape]:
    """Return lines that compute operand `name` from parameter `number`, and its shape."""
    dims, rank = shape.dims, shape.rank
    opcode = draw(st.sampled_from(PRODUCERS))
    source, result = f"x{number}", str(shape)
    every = ",".join(map(str, range(rank)))
    given = dims
    if opcode == "reshape":
        given = (prod(dims),)
        line = f"{name} = {result} reshape({source})"
    elif opcode == "transpose" and rank > 1:
        order = draw(st.permutations(range(rank)))
        line = f"{name} = {result} transpose({source}), dimensions={{{','.join(map(str, order))}}}"
        sizes = dict(zip(order, dims, strict=True))
        given = tuple([sizes[k] for k in range(rank)])
    elif opcode == "slice" and rank:
        given = tuple([n + 2 for n in dims])
        cuts = ", ".join(f"[1:{n + 1}]" for n in dims)
        line = f"{name} = {result} slice({source}), slice={{{cuts}}}"
    elif opcode == "reverse" and rank:
        line = f"{name} = {result} reverse({source}), dimensions={{{every}}}"
    elif opcode == "select" and shape.element_type not in PLAIN:
        flag = text_of(Shape("pred", dims), dims)
        line = (
            f"c{number} = {flag} compare({source}, {source}), direction=EQ "
            f"{name} = {result} select(c{number}, {source}, {source})"
        )
    elif opcode == "concatenate" and rank and dims[0] > 1:
        cut = draw(st.integers(1, dims[0] - 1))
        rest = ", ".join(["", *[f"[0:{n}]" for n in dims[1:]]])
        parts = [(0, cut), (cut, dims[0])]
        lines = [
            f"{name}_{a} = {text_of(shape, (b - a, *dims[1:]))} slice({source}), "
            f"slice={{[{a}:{b}]{rest}}}"
            for a, b in parts
        ]
        names = ", ".join(f"{name}_{a}" for a, _ in parts)
        line = " ".join([*lines, f"{name} = {result} concatenate({names}), dimensions={{0}}"])
    else:
        line = f"{name} = {result} copy({source})"
    wide = Shape(shape.element_type, given)
    return [f"{source} = {text_of(shape, given)} parameter({number})", line], wide


def consumer(draw: Draw, shape: Shape) -> str:
    """Return the root of the fusion, which reads the array `out`."""
    dims, kind = shape.dims, shape.element_type
    opcode = draw(st.sampled_from(CONSUMERS))
    every = ",".join(map(str, range(shape.rank)))
    own = text_of(shape, dims)
    if opcode == "reshape":
        return f"ROOT end = {kind}[{prod(dims)}] reshape(out)"
    if opcode == "pad" and shape.rank and kind not in PLAIN:
        wide = text_of(shape, tuple([n + 3 for n in dims]))
        edges = "x".join(["1_2"] * shape.rank)
        return f"edge = {kind}[] constant(1) ROOT end = {wide} pad(out, edge), padding={edges}"
    if opcode == "broadcast":
        return f"ROOT end = {text_of(shape, (*dims, 2))} broadcast(out), dimensions={{{every}}}"
    if opcode == "reverse" and shape.rank:
        return f"ROOT end = {own} reverse(out), dimensions={{0}}"
    if opcode == "add" and kind not in PLAIN:
        return f"ROOT end = {own} add(out, out)"
    if opcode == "concatenate" and shape.rank:
        wide = text_of(shape, (dims[0] * 2, *dims[1:]))
        back = f"back = {own} reverse(out), dimensions={{0}}"
        return f"{back} ROOT end = {wide} concatenate(out, back), dimensions={{0}}"
    return f"ROOT end = {own} copy(out)"


def wrap(draw: Draw, sample: Sample) -> tuple[Computation, list[Shape]] | None:
    """Return the sample between producers and a consumer; None if its shapes do not allow them."""
    shape = sample.instruction.shape
    shapes = sample.shapes
    if not isinstance(shape, Shape) or not all(isinstance(s, Shape) for s in shapes):
        return None
    if any(shape.dynamic):
        return None
    lines: list[str] = []
    wide: list[Shape] = []
    for number, ((_, name), own) in enumerate(zip(operands(sample.text), shapes, strict=True)):
        assert isinstance(own, Shape)
        more, given = producer(draw, number, name, own)
        lines += more
        wide.append(given)
    lines += [f"out = {sample.text}", consumer(draw, shape)]
    module = hlo.parse(f"{COMPUTATIONS}\nENTRY e {{ {' '.join(lines)} }}")
    return module.entry, wide


def check(computation: Computation, inputs: list[Array], tile: int) -> None:
    """Check that all forms of the nest of a computation agree with the interpreter."""
    nest = indexing.loop_nest(computation)
    if not isinstance(nest, LoopNest):
        return
    (expected,) = flattened(evaluate(computation, *inputs)[computation.root])
    program = nest.vectorized()
    agree(program.run(*inputs), expected, program.source)
    agree(nest.run(*inputs), expected, nest.source)
    tiled = program.run(*inputs, tile=(tile,) * expected.ndim)
    agree(tiled, expected, program.tile_source)


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name not in WITHOUT_NEST])
def test_an_op_inside_a_fusion_agrees_with_the_interpreter(name: str) -> None:
    @fuzz(15)
    @given(STRATEGIES[name], st.integers(0, 1 << 30), st.integers(1, 4), st.data())
    def check_one(text: str, seed: int, tile: int, data: Any) -> None:
        sample = parse_sample(text)
        case = wrap(data.draw, sample)
        if case is None:
            return
        computation, shapes = case
        arrays = [i.shape for i in computation if isinstance(i.shape, Shape)]
        if sum(prod(shape.dims) for shape in arrays) > MAX_ELEMENTS:
            return
        random = np.random.default_rng(seed)
        inputs = []
        for operand, given_shape in enumerate(shapes):
            own = sample.values(random, operand).ravel()
            count = prod(given_shape.dims)
            filler = own if own.size else np.zeros(1, own.dtype)
            inputs.append(np.resize(filler, count).reshape(given_shape.dims))
        check(computation, inputs, tile)

    check_one()
