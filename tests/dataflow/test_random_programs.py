"""Random fusions: composed maps against the dependencies of the kernels, element by element.

All ops add non-negative multiples of their inputs.  If one input element is 1 and all others are 0,
the non-zero elements of the result are those that depend on it.
"""

from collections import Counter
from math import prod
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import hlo
import indexing
import indexing.ops  # registers the ops whose kernels run here
from hlo import Builder
from hlo.formats.builder import BuilderValue
from hlo.ops.attributes import Padding, SliceDimension
from hlo.shapes.shape import Shape
from indexing.maps.coalescing import FEW
from indexing.ops.base import MappedOp
from tests.oracles import Pair, fuzz, invert_pairs, union

Array = NDArray[np.int64]
Dims = tuple[int, ...]

MAX_ELEMENTS = 120


class Program:
    """A module under construction: an ENTRY with one fusion, and the values inside the fusion."""

    def __init__(self) -> None:
        self.main = Builder("random")
        self.total = self.main.computation("total")
        self.total.op("add", self.total.parameter("s64[]"), self.total.parameter("s64[]"))
        self.fused = self.main.computation("fused")
        self.values: list[BuilderValue] = []

    def add(self, opcode: str, *operands: BuilderValue, **attributes: Any) -> None:
        self.values.append(self.fused.op(opcode, *operands, **attributes))

    def zero(self) -> BuilderValue:
        return self.fused.constant("s64[]", 0)

    def module(self) -> hlo.Module:
        """Build the module; the last value is the result of the fusion."""
        self.fused.root(self.values[-1])
        inputs = [self.main.parameter(p) for p in self.shapes]
        return self.main.build(self.main.fusion(self.fused, *inputs))

    @property
    def shapes(self) -> list[str]:
        """Shapes of the parameters."""
        return [str(v.shape) for v in self.values if v.name.startswith("parameter")]

    def __repr__(self) -> str:
        return str(self.fused._computation_text())


def sizes_of(value: BuilderValue) -> Dims:
    assert isinstance(value.shape, Shape)
    return value.shape.dims


def shape(dims: Dims) -> str:
    return f"s64[{','.join(map(str, dims))}]"


def factorisations(count: int) -> list[Dims]:
    """Return shapes with up to three dimensions and `count` elements."""
    pairs = [(a, count // a) for a in range(1, count + 1) if count % a == 0]
    return [
        (count,),
        *pairs,
        *[(a, b, c // b) for a, c in pairs for b in range(1, c + 1) if c % b == 0],
    ]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    program = Program()
    for _ in range(draw(st.integers(1, 2))):
        dims = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
        program.values.append(program.fused.parameter(shape(dims)))
    for _ in range(draw(st.integers(1, 6))):
        extend(program, draw)
    return program


def cut(size: int, draw: st.DrawFn) -> SliceDimension:
    start = draw(st.integers(0, size - 1))
    return SliceDimension(start, draw(st.integers(start + 1, size)), draw(st.integers(1, 3)))


def add_broadcast(program: Program, x: BuilderValue, draw: st.DrawFn) -> None:
    """Add a broadcast to one more dimension."""
    dims = sizes_of(x)
    at, size = draw(st.integers(0, len(dims))), draw(st.integers(1, 3))
    kept = tuple(k + (k >= at) for k in range(len(dims)))
    program.add("broadcast", x, shape=shape((*dims[:at], size, *dims[at:])), dimensions=kept)


def add_pad(program: Program, x: BuilderValue, draw: st.DrawFn) -> None:
    """Add a pad, or a sum if the pad would have no elements."""
    ends, dims = st.integers(-1, 2), sizes_of(x)
    pads = [Padding(draw(ends), draw(ends), draw(st.integers(0, 2))) for _ in dims]
    sizes = [
        n + (n - 1) * pad.interior + pad.low + pad.high for n, pad in zip(dims, pads, strict=True)
    ]
    if min(sizes) < 1:
        program.add("add", x, x)
    else:
        program.add("pad", x, program.zero(), padding=tuple(pads))


def extend(program: Program, draw: st.DrawFn) -> None:
    """Add a random instruction, or a sum if its result would be too large."""
    x = draw(st.sampled_from(program.values[-3:]))
    dims = sizes_of(x)
    rank = len(dims)
    opcodes = ["reverse", "add", "concatenate", "pad", "broadcast", "transpose", "slice", "reshape"]
    opcode = draw(st.sampled_from([*opcodes, *["reduce"][: rank > 0]]))
    same_shape = [other for other in program.values if sizes_of(other) == dims]
    match opcode:
        case "reverse":
            some = draw(st.lists(st.sampled_from(range(rank)), unique=True)) if rank else []
            program.add("reverse", x, dimensions=tuple(some))
        case "transpose":
            program.add("transpose", x, dimensions=tuple(draw(st.permutations(range(rank)))))
        case "slice":
            program.add("slice", x, slice=tuple([cut(size, draw) for size in dims]))
        case "reshape":
            other = draw(st.sampled_from(factorisations(prod(dims))))
            program.add("reshape", x, shape=shape(other))
        case "reduce":
            some = draw(st.lists(st.sampled_from(range(rank)), unique=True, min_size=1))
            program.add("reduce", x, program.zero(), dimensions=tuple(some), to_apply=program.total)
        case "broadcast" if rank < 4 and prod(dims) <= MAX_ELEMENTS // 3:
            add_broadcast(program, x, draw)
        case "pad" if rank and prod(dims) <= MAX_ELEMENTS // 8:
            add_pad(program, x, draw)
        case "concatenate" if rank and prod(dims) <= MAX_ELEMENTS // 2:
            at = draw(st.integers(0, rank - 1))
            program.add("concatenate", x, draw(st.sampled_from(same_shape)), dimensions=(at,))
        case _:
            program.add("add", x, draw(st.sampled_from(same_shape)))


def run(computation: hlo.Computation, arguments: list[Array]) -> Array:
    """Evaluate the root with the kernels of the instructions."""
    values: dict[hlo.Instruction, Array] = {}
    for instruction in computation.instructions:
        if instruction.opcode == "parameter":
            values[instruction] = arguments[computation.parameters.index(instruction)]
            continue
        op = instruction.op
        assert isinstance(op, MappedOp)
        shapes = tuple([o.shape for o in instruction.operands])
        operands = [values[o] for o in instruction.operands]
        values[instruction] = op.compute(operands, shapes, np.add)
    return values[computation.root]


def find_needed(computation: hlo.Computation) -> list[set[Pair]]:
    """Return the dependencies of the result on each parameter, as pairs of elements."""
    shapes = [p.shape for p in computation.parameters]
    zeros = [np.zeros(s.dims, np.int64) for s in shapes if isinstance(s, Shape)]
    pairs: list[set[Pair]] = [set() for _ in zeros]
    for number, array in enumerate(zeros):
        for element in np.ndindex(*array.shape):
            array[element] = 1
            for at in np.argwhere(run(computation, zeros)):
                pairs[number].add((tuple(map(int, at)), element))
            array[element] = 0
    return pairs


@given(programs())
@fuzz(150)
def test_composed_maps_have_the_dependencies_of_the_kernels(program: Program) -> None:
    module = program.module()
    assert not hlo.verify(module)
    root = module.entry.root
    reads = find_needed(module.computations["fused"])
    answer = indexing.output_to_input(root)
    assert answer.unknown == (None,) * len(reads)
    for number, expected in enumerate(reads):
        maps = answer.maps[number]
        assert {m.grade for m in maps} <= {"exact"}
        assert union(maps) == expected
        assert union(m.simplify(certify=True) for m in maps) == expected
        (written,) = indexing.input_to_output(root, input_id=number).maps
        assert union(written) == invert_pairs(expected)
        assert len(set(maps)) == len(maps)


@given(programs())
@fuzz(60)
def test_maps_of_a_fusion_are_those_of_its_computation(program: Program) -> None:
    module = program.module()
    outside = indexing.output_to_input(module.entry.root)
    inside = indexing.to_parameters(module.computations["fused"].root)
    # The maps of one operand are a union: their order depends on the walk, and only the maps of
    # parameters are coalesced.
    for many, few in zip(outside.maps, inside.maps, strict=True):
        if Counter(many) != Counter(few):
            assert FEW * len(few) <= len(many)
            assert union(many) == union(few)
