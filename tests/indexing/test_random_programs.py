"""Random fusions: composed maps against what the kernels read, one input element at a time.

All ops here add up non-negative multiples of their inputs.  So with one element 1 and all others 0,
the result is not 0 exactly where it needs that element.
"""

from dataclasses import dataclass, field
from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import hlo
import indexing
import indexing.ops  # registers the ops whose kernels run here
from hlo.shape import Shape
from indexing.op import MappedOp
from tests.oracles import Pair, fuzz, swapped, union

Array = NDArray[np.int64]
Dims = tuple[int, ...]

MOST_ELEMENTS = 120
TOTAL = "total { a = s64[] parameter(0)  b = s64[] parameter(1)  ROOT s = s64[] add(a, b) }"


@dataclass
class Program:
    """A fused computation in the making; value k is `v<k>` with ``dims[k]``."""

    lines: list[str] = field(default_factory=list)
    dims: list[Dims] = field(default_factory=list)
    parameters: int = 0

    def add(self, dims: Dims, opcode: str, operands: str, attributes: str = "") -> int:
        self.lines.append(f"v{len(self.dims)} = {shape(dims)} {opcode}({operands}){attributes}")
        self.dims.append(dims)
        return len(self.dims) - 1

    def __str__(self) -> str:
        """The module: an ENTRY with this computation fused, and the last value as its result."""
        body = [*self.lines[:-1], f"ROOT {self.lines[-1]}"]
        outside = [f"p{k} = {shape(self.dims[k])} parameter({k})" for k in range(self.parameters)]
        operands = ", ".join(f"p{k}" for k in range(self.parameters))
        outside.append(
            f"ROOT f = {shape(self.dims[-1])} fusion({operands}), kind=kLoop, calls=fused"
        )
        inner, outer = "\n  ".join(body), "\n  ".join(outside)
        return f"{TOTAL}\nfused {{\n  {inner}\n}}\nENTRY main {{\n  {outer}\n}}\n"


def shape(dims: Dims) -> str:
    return f"s64[{','.join(map(str, dims))}]"


def braces(numbers: list[int] | Dims) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


def factorisations(count: int) -> list[Dims]:
    """Shapes of up to three dimensions with `count` elements."""
    pairs = [(a, count // a) for a in range(1, count + 1) if count % a == 0]
    return [
        (count,),
        *pairs,
        *[(a, b, c // b) for a, c in pairs for b in range(1, c + 1) if c % b == 0],
    ]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    program = Program()
    for k in range(draw(st.integers(1, 2))):
        dims = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
        program.add(dims, "parameter", str(k))
        program.parameters += 1
    for _ in range(draw(st.integers(1, 6))):
        extended(program, draw)
    return program


def extended(program: Program, draw: st.DrawFn) -> None:
    """One more instruction; one that would grow too large is a sum instead."""
    count = len(program.dims)
    x = draw(st.integers(max(0, count - 3), count - 1))
    dims, name = program.dims[x], f"v{x}"
    rank = len(dims)
    opcodes = ["reverse", "add", "concatenate", "pad", "broadcast", "transpose", "slice", "reshape"]
    opcode = draw(st.sampled_from([*opcodes, *["reduce"][: rank > 0]]))
    alike = [k for k, other in enumerate(program.dims) if other == dims]
    match opcode:
        case "reverse":
            some = draw(st.lists(st.sampled_from(range(rank)), unique=True)) if rank else []
            program.add(dims, "reverse", name, f", dimensions={braces(some)}")
        case "transpose":
            order = tuple(draw(st.permutations(range(rank))))
            turned = tuple(dims[p] for p in order)
            program.add(turned, "transpose", name, f", dimensions={braces(order)}")
        case "slice":
            cuts = []
            for size in dims:
                start = draw(st.integers(0, size - 1))
                limit = draw(st.integers(start + 1, size))
                cuts.append((start, limit, draw(st.integers(1, 3))))
            cut = tuple(-(-(limit - start) // step) for start, limit, step in cuts)
            text = ", ".join(f"[{a}:{b}:{c}]" for a, b, c in cuts)
            program.add(cut, "slice", name, f", slice={{{text}}}")
        case "reshape":
            program.add(draw(st.sampled_from(factorisations(prod(dims)))), "reshape", name)
        case "reduce":
            some = draw(st.lists(st.sampled_from(range(rank)), unique=True, min_size=1))
            zero = program.add((), "constant", "0")
            kept = tuple(size for k, size in enumerate(dims) if k not in some)
            attributes = f", dimensions={braces(some)}, to_apply=total"
            program.add(kept, "reduce", f"{name}, v{zero}", attributes)
        case "broadcast" if rank < 4 and prod(dims) <= MOST_ELEMENTS // 3:
            at, size = draw(st.integers(0, rank)), draw(st.integers(1, 3))
            places = tuple(k + (k >= at) for k in range(rank))
            wide = (*dims[:at], size, *dims[at:])
            program.add(wide, "broadcast", name, f", dimensions={braces(places)}")
        case "pad" if rank and prod(dims) <= MOST_ELEMENTS // 8:
            pads = [
                (draw(st.integers(-1, 2)), draw(st.integers(-1, 2)), draw(st.integers(0, 2)))
                for _ in dims
            ]
            sizes = tuple(
                n + (n - 1) * inner + low + high
                for n, (low, high, inner) in zip(dims, pads, strict=True)
            )
            if min(sizes) < 1:
                program.add(dims, "add", f"{name}, {name}")
                return
            zero = program.add((), "constant", "0")
            text = "x".join(f"{low}_{high}_{inner}" for low, high, inner in pads)
            program.add(sizes, "pad", f"{name}, v{zero}", f", padding={text}")
        case "concatenate" if rank and prod(dims) <= MOST_ELEMENTS // 2:
            other, at = draw(st.sampled_from(alike)), draw(st.integers(0, rank - 1))
            long = (*dims[:at], 2 * dims[at], *dims[at + 1 :])
            program.add(long, "concatenate", f"{name}, v{other}", f", dimensions={{{at}}}")
        case _:
            program.add(dims, "add", f"{name}, v{draw(st.sampled_from(alike))}")


def run(computation: hlo.Computation, arguments: list[Array]) -> Array:
    """The root's value, by the kernels of its instructions."""
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


def needed(computation: hlo.Computation) -> list[set[Pair]]:
    """For each parameter, the pairs of a result element and an element that it needs."""
    shapes = [p.shape for p in computation.parameters]
    zeros = [np.zeros(s.dims, np.int64) for s in shapes if isinstance(s, Shape)]
    found: list[set[Pair]] = [set() for _ in zeros]
    for number, array in enumerate(zeros):
        for place in np.ndindex(*array.shape):
            array[place] = 1
            for at in np.argwhere(run(computation, zeros)):
                found[number].add((tuple(map(int, at)), place))
            array[place] = 0
    return found


@given(programs())
@fuzz(150)
def test_composed_maps_are_what_the_kernels_read(program: Program) -> None:
    module = hlo.parse(str(program))
    assert not hlo.verify(module)
    root = module.entry.root
    reads = needed(module.computations["fused"])
    answer = indexing.output_to_input(root)
    assert answer.unknown == (None,) * len(reads)
    for number, wanted in enumerate(reads):
        maps = answer.maps[number]
        assert {m.grade for m in maps} <= {"exact"}
        assert union(maps) == wanted
        assert union(m.simplify(certify=True) for m in maps) == wanted
        (written,) = indexing.input_to_output(root, input_id=number).maps
        assert union(written) == swapped(wanted)
        assert len(set(maps)) == len(maps)


@given(programs())
@fuzz(60)
def test_a_fusion_reads_what_its_computation_reads_of_its_parameters(program: Program) -> None:
    module = hlo.parse(str(program))
    outside = indexing.output_to_input(module.entry.root)
    inside = indexing.to_parameters(module.computations["fused"].root)
    assert outside.maps == inside.maps
