"""Maps of compiled kernels of Mosaic, against JAX's traces and by perturbing their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import hlo
import indexing
from hlo.modules.module import Instruction, Module
from hlo.shapes.shape import Shape, leaves
from indexing.kernels.mosaic import call_maps
from indexing.kernels.mosaic.placed_parts import WHOLE, placed_part
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.targets.tpu import MosaicKernel
from indexing.pallas.report import CallReport
from simplifier.unknown import Unknown
from tests.compiled import interpreted_only
from tests.kernels.mosaic_kernels import MosaicCase, cases, random_case
from tests.oracles import sampled
from tests.pallas.corpus import STATIC
from tests.pallas.ops_kernels import splash
from tests.pallas.random_kernels import random_kernel

jax = pytest.importorskip("jax")
lowering = pytest.importorskip("jax._src.pallas.mosaic.lowering")

MAX_POKES = 72


def lower(function: Any, args: Sequence[Any]) -> Module:
    """Return the module of a function for a TPU, which need not be there."""
    from jax.sharding import AbstractDevice, AbstractMesh, use_abstract_mesh

    mesh = AbstractMesh((), (), abstract_device=AbstractDevice("TPU v5e", 1, "tpu"))
    with use_abstract_mesh(mesh):
        traced = jax.jit(function).trace(*args)
        return hlo.parse(traced.lower(lowering_platforms=("tpu",)).as_text(dialect="hlo"))


def abstract(case: MosaicCase) -> list[Any]:
    scalars = [jax.ShapeDtypeStruct(shape, "int32") for shape in case.scalars]
    return [*scalars, *[jax.ShapeDtypeStruct(shape, "float32") for shape in case.shapes]]


def kernel_of(module: Module) -> Instruction:
    (call,) = [
        each
        for computation in module.computations.values()
        for each in computation.instructions
        if each.opcode == "custom-call"
    ]
    return call


CASES = cases()
COUNTS = {
    "add": (12, 12),
    "transpose": (6, 6),
    "reverse": (12, 12),
    "snake": (6, 6),
    "softmax": (12, 12),
    "halo": (6, 6),
    "window": (18, 18),
    "overhang": (12, 6),
    "two_results": (12, 12),
    "guarded": (12, 0),
    "squeezed": (6, 6),
    "sliced": (12, 12),
    "looped": (18, 18),
    "whole": (12, 12),
    "matmul": (36, 36),
    "in_output": (36, 36),
    "first_or_more": (36, 36),
    "prefix": (12, 48),
    "inner_prefix": (12, 36),
    "never_reset": (24, 72),
    "half_reset": (24, 72),
    "late_region": (18, 54),
    "last_row": (12, 48),
    "column_sums": (36, 36),
    "apart": (72, 72),
    "pages": (12, 12),
    "scattered": (12, 0),
    "updated_part": (0, 0),
    "alias_not_read": (12, 0),
    "alias_in_place": (12, 24),
    "alias_written": (12, 12),
    "copied": (12, 12),
    "written": (12, 12),
    "alias_read": (12, 12),
    "dynamic_grid": (12, 12),
}
"""How many elements of the last array the first and the last element of the result need."""


@cache
def compile_case(case: MosaicCase) -> Instruction:
    return kernel_of(lower(case.call(False), abstract(case)))


# ---------------------------------------------------------------- perturbation


def find_needed(
    maps: Sequence[IndexingMap], element: tuple[int, ...], scalars: dict[str, Any]
) -> set[tuple[int, ...]]:
    """Return what an element needs by the maps, for the values of scalar operands."""
    read: set[tuple[int, ...]] = set()
    for m in maps:
        if not all(v.lower <= n <= v.upper for v, n in zip(m.dims, element, strict=True)):
            continue
        for offsets in product(*[range(v.lower, v.upper + 1) for v in m.ranges]):
            point = dict(zip((*m.dims, *m.ranges), (*element, *offsets), strict=True))
            for rt in m.runtime:
                array = scalars[str(rt.source_name)]
                at = tuple([e.value(point) for e in rt.index])
                inside = all(0 <= n < size for n, size in zip(at, array.shape, strict=True))
                point[rt.variable] = int(array[at]) if inside else rt.variable.upper + 1
            if all(
                rt.variable.lower <= point[rt.variable] <= rt.variable.upper for rt in m.runtime
            ) and all(c.lower <= c.expr.value(point) <= c.upper for c in m.constraints):
                read.add(tuple([e.value(point) for e in m.results]))
    return read


class Perturbation:
    """The values of a kernel that JAX interprets, and what its maps say."""

    def __init__(self, case: MosaicCase, seed: int) -> None:
        self.random = Random(f"{case.name}/{seed}")
        draw = np.random.default_rng(self.random.randrange(1 << 30))
        self.case = case
        # an output block that is visited apart is that of one scalar
        scalars = [
            draw.permutation(case.limit)[: shape[0]].astype("int32") for shape in case.scalars
        ]
        arrays = [draw.standard_normal(shape).astype("float32") for shape in case.shapes]
        self.inputs: list[Any] = [*scalars, *arrays]
        self.run = jax.jit(case.call(True))
        self.instruction = compile_case(case)
        names = [each.name for each in self.instruction.operands]
        self.scalars = dict(zip(names[-len(self.inputs) :], self.inputs, strict=True))
        self.skipped = len(names) - len(self.inputs)
        self.known: dict[tuple[int, int, tuple[int, ...]], set[tuple[int, ...]]] = {}

    def values(self, inputs: Sequence[Any]) -> list[Any]:
        return [np.asarray(each) for each in jax.tree.leaves(self.run(*inputs))]

    def missed(self) -> tuple[int, list[str]]:
        """Return the number of changes, and those that the maps lack."""
        before, count, missed = self.values(self.inputs), 0, []
        for number, array in enumerate(self.inputs):
            places = list(np.ndindex(array.shape))
            for place in self.random.sample(places, min(len(places), MAX_POKES)):
                poked = [each.copy() for each in self.inputs]
                poked[number][place] = self.other(number, poked[number][place], poked[number])
                after = self.values(poked)
                for output, (one, two) in enumerate(zip(before, after, strict=True)):
                    changed = list(
                        zip(
                            *np.nonzero(~((one == two) | (np.isnan(one) & np.isnan(two)))),
                            strict=True,
                        )
                    )
                    for element in self.random.sample(changed, min(len(changed), 8)):
                        count += 1
                        if place not in self.needed(output, number, tuple(map(int, element))):
                            missed.append(
                                f"{self.case.name}: output {output} {element} <- {number} {place}"
                            )
        return count, missed

    def other(self, number: int, value: Any, array: Any) -> Any:
        if number >= len(self.case.scalars):
            return value + 10
        free = [n for n in range(self.case.limit) if n not in array]
        return self.random.choice(free or [value])

    def needed(self, output: int, number: int, element: tuple[int, ...]) -> set[tuple[int, ...]]:
        key = output, number, element
        if key not in self.known:
            maps = self.maps(output)[self.skipped + number]
            assert not isinstance(maps, Unknown)
            self.known[key] = find_needed(maps, element, self.scalars)
        return self.known[key]

    def maps(self, output: int) -> Any:
        return indexing.output_to_input(self.instruction, output).maps


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_changes_is_in_the_maps(case: MosaicCase) -> None:
    count, missed = Perturbation(case, 0).missed()
    assert count
    assert not missed


@pytest.mark.sampled
def test_what_changes_in_random_kernels_is_in_the_maps() -> None:
    total = 0
    for seed in sampled(range(12)):
        count, missed = Perturbation(random_case(seed), seed).missed()
        assert not missed
        total += count
    assert total


@interpreted_only
@pytest.mark.parametrize("name", ["prefix", "matmul", "in_output", "never_reset", "late_region"])
def test_perturbation_finds_values_that_are_carried(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the steps before, the maps of these kernels lack elements."""
    call_maps.kernel_reads.cache_clear()
    monkeypatch.setattr(call_maps, "first_carried", lambda accesses, stored, grid: len(grid))
    (case,) = [each for each in CASES if each.name == name]
    _, missed = Perturbation(case, 0).missed()
    call_maps.kernel_reads.cache_clear()
    assert (not missed) == (name in ("matmul", "in_output"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_maps_are_not_larger_than_what_steps_load(case: MosaicCase) -> None:
    assert counts(case) == COUNTS[case.name]


def counts(case: MosaicCase) -> tuple[int, int]:
    """Return how many elements of the last array the first and the last element need."""
    state = Perturbation(case, 0)
    number = len(state.inputs) - 1
    out = leaves(state.instruction.shape)[0][1]
    assert isinstance(out, Shape)
    last = tuple([size - 1 for size in out.dims])
    first = (0,) * len(last)
    return len(state.needed(0, number, first)), len(state.needed(0, number, last))


# ---------------------------------------------------------------- blocks


def blocks_of(call: Instruction) -> list[IndexingMap | Unknown]:
    """Return the maps from the grid to the blocks of all inputs and outputs of a kernel."""
    assert isinstance(call.op, MosaicKernel)
    every = [each.shape for each in call.operands], [shape for _, shape in leaves(call.shape)]
    operands, outputs = [tuple([s for s in part if isinstance(s, Shape)]) for part in every]
    reads = call_maps.kernel_reads(call.op.body, operands, outputs, frozenset())
    assert not isinstance(reads, Unknown), reads.reason
    placed = [
        placed_part(reads.compiled.call, spec, WHOLE) for spec in reads.compiled.call.operands
    ]
    return [p if isinstance(p, Unknown) else p.elements for p in placed]


def check_blocks(call: Instruction, report: CallReport) -> int:
    """Compare the blocks of a compiled kernel with those of its trace; return how many."""
    traced = [each.map for each in report.operands]
    read = blocks_of(call)
    assert len(read) == len(traced)
    count = 0
    for mine, other in zip(read, traced, strict=True):
        if isinstance(mine, Unknown) or isinstance(other, Unknown):
            assert isinstance(other, Unknown), str(mine)
            continue
        names = [replace(rt, array=None) for rt in other.runtime]
        mine = replace(mine, runtime=tuple([replace(rt, array=None) for rt in mine.runtime]))
        assert mine.is_equal(replace(other, runtime=tuple(names))) is True, (str(mine), str(other))
        count += 1
    return count


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_blocks_are_those_of_the_trace(case: MosaicCase) -> None:
    if case.name == "dynamic_grid":
        pytest.skip("the size of the grid is a variable of one, and the largest size of the other")
    (report,) = indexing.pallas.check(case.call(False), *abstract(case)).calls
    assert check_blocks(compile_case(case), report) == len(report.operands)


@pytest.mark.sampled
def test_blocks_of_many_kernels_are_those_of_the_trace() -> None:
    kernels = [kernel for kernel in STATIC if kernel.target == "tpu"]
    kernels += [random_kernel(seed) for seed in range(60)]
    count = 0
    for kernel in sampled(kernels):
        function, args = kernel.function()
        try:
            module = lower(function, args)
        except (ValueError, NotImplementedError, lowering.LoweringException):
            continue  # a block that Mosaic refuses
        (report,) = indexing.pallas.check(function, *args).calls
        count += check_blocks(kernel_of(module), report)
    assert count


# ---------------------------------------------------------------- kernels of JAX


def attention_cases() -> dict[str, Any]:
    flash = pytest.importorskip("jax.experimental.pallas.ops.tpu.flash_attention")
    sizes = flash.BlockSizes(block_q=128, block_k_major=128, block_k=128, block_b=1)
    options = {"causal": True, "sm_scale": 0.1, "block_sizes": sizes}
    return {"flash": partial(flash.flash_attention, **options), "splash": splash}


@pytest.mark.parametrize("name", ["flash", "splash"])
def test_what_changes_is_in_the_maps_of_attention(name: str) -> None:
    """A row of the result needs no later block of keys and values, by the maps and by values."""
    function = attention_cases()[name]
    draw = np.random.default_rng(0)
    arrays = [draw.standard_normal((1, 1, 256, 128)).astype("float32") * 0.3 for _ in range(3)]
    maps = indexing.to_parameters(lower(function, arrays).entry.root).maps
    places = [(0, 0, 5, 3), (0, 0, 127, 127), (0, 0, 200, 7)]
    assert not is_related(maps[1], (0, 0, 127, 0), (0, 0, 128, 0))
    assert not is_related(maps[2], (0, 0, 0, 1), (0, 0, 255, 1))
    pltpu = pytest.importorskip("jax.experimental.pallas.tpu")
    with pltpu.force_tpu_interpret_mode():
        run = jax.jit(function)
        before = np.asarray(run(*arrays))
        for number, place in product(range(3), places):
            poked = [each.copy() for each in arrays]
            poked[number][place] += 3
            changed = np.argwhere(np.asarray(run(*poked)) != before)
            assert len(changed)
            for element in changed[:: max(1, len(changed) // 4)]:
                assert is_related(maps[number], tuple(map(int, element)), place), (number, place)


def is_related(maps: Any, element: tuple[int, ...], place: tuple[int, ...]) -> bool:
    """Return True if an element needs the element of an operand at a place."""
    rows = [row for m in maps for row in indexing.preimage(m, place)]
    return any(indexing.preimage(row, element) for row in rows)


ROOT = Path(__file__).parents[2]
CAUSAL = (
    "(d0, d1, d2, d3)[s0, s1, s2] -> (0, d1, s0 * 128 + s1, s2), domain: d0 in [0, 0], "
    "d1 in [0, 1], d2 in [0, 511], d3 in [0, 127], s0 in [0, 3], s1 in [0, 127], s2 in [0, 127], "
    "d2 - s0 * 128 in [0, 511]"
)
ROWS = "d0 in [0, 511], d1 in [0, 511], s0 in [0, 255], s1 in [0, 511]"
OPTIMISED: dict[str, dict[int, str | None]] = {
    "examples/targets/flash_attention.tpu_v5e": {0: None, 1: CAUSAL, 2: CAUSAL},
    "tests/kernels/data/mosaic/matmul": {
        0: f"(d0, d1)[s0, s1] -> (s0 + (d0 floordiv 256) * 256, s1), domain: {ROWS}"
    },
    "tests/kernels/data/mosaic/gather_pages": {
        1: "(d0, d1)[s0, s1]{rt0} -> (rt0 * 8 + s0, s1), domain: d0 in [0, 31], d1 in [0, 127], "
        "s0 in [0, 7], s1 in [0, 127], rt0 in [0, 9]"
    },
    "tests/kernels/data/mosaic/update": {
        1: "(d0, d1)[s0, s1] -> (s0 + (d0 floordiv 8) * 8 - 8, s1), domain: d0 in [8, 23], "
        "d1 in [0, 127], s0 in [0, 7], s1 in [0, 127]"
    },
}


@pytest.mark.parametrize("name", OPTIMISED)
def test_maps_of_modules_that_were_compiled_for_a_tpu(name: str) -> None:
    module = hlo.load(ROOT / f"{name}.hlo")
    answer = indexing.to_parameters(module.entry.root)
    assert answer.reasons
    for number, text in OPTIMISED[name].items():
        (read,) = answer.maps[number]
        assert read.grade == "may"
        assert text is None or str(read) == text
