"""Tiles execute: programs compute the tiles of tilings, from the regions of the tilings alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import hlo
import indexing
from indexing import Tiling, Unknown
from indexing.codegen.nest import LoopNest
from tests.checks import checks
from tests.ops.samples import MAPPED, Sample, samples_of
from tests.oracles import sampled
from tests.tiling.sets import poison
from tests.tiling.sets.poison import (
    Array,
    Mask,
    check_input_tiles,
    check_tiles,
    few_tiles,
    masks_of,
    sources_of,
)

ROWS = """
add { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT s = s32[] add(a, b) }
ENTRY e {
  p = s32[7,5] parameter(0)
  zero = s32[] constant(0)
  sums = s32[7] reduce(p, zero), dimensions={1}, to_apply=add
  rows = s32[5,7] broadcast(sums), dimensions={1}
  t = s32[5,7] transpose(p), dimensions={1,0}
  ROOT q = s32[5,7] subtract(rows, t)
}"""


def nest_of(text: str) -> LoopNest:
    nest = indexing.loop_nest(hlo.parse(text).entry)
    assert isinstance(nest, LoopNest), nest
    return nest


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (5, 7), (100, 4)])
def test_programs_execute_the_tiles_of_the_tiling(sizes: tuple[int, ...]) -> None:
    nest = nest_of(ROWS)
    tiling = nest.tiling(sizes)
    assert isinstance(tiling, Tiling)
    p = np.random.default_rng(0).integers(-9, 9, (7, 5), np.int32)
    program, result = nest.vectorized(), nest.run(p)
    tiles = list(program.tiles(sizes, p))
    assert [box for box, _ in tiles] == [tiling.slices(*index) for index in tiling.tiles()]
    for index, (box, block) in zip(tiling.tiles(), tiles, strict=True):
        assert np.array_equal(block, result[box])
        assert np.array_equal(program.tile(sizes, index, p), block)


@pytest.mark.parametrize("sizes", [(2,), (2, 0), (-3, 1)])
def test_analyses_and_programs_refuse_the_same_sizes(sizes: tuple[int, ...]) -> None:
    nest, p = nest_of(ROWS), np.zeros((7, 5), np.int32)
    program = nest.vectorized()
    calls: list[Callable[[], object]] = [
        lambda: nest.tiling(sizes),
        lambda: nest.run(p, tile=sizes),
        lambda: next(program.tiles(sizes, p)),
        lambda: program.tile(sizes, (0, 0), p),
        lambda: program.tile_bytes(sizes),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"one size for each of the 2|sizes are at least 1"):
            call()


def test_a_tile_outside_of_the_grid_is_refused() -> None:
    program, p = nest_of(ROWS).vectorized(), np.zeros((7, 5), np.int32)
    with pytest.raises(IndexError, match=r"tid_1 = 3 is outside \[0, 2\]"):
        program.tile((5, 3), (0, 3), p)
    with pytest.raises(ValueError, match=r"one index for each of the 2 dimensions"):
        program.tile((5, 3), (0,), p)


def test_a_result_without_elements_has_no_tiles() -> None:
    nest = nest_of("ENTRY e { p = s32[0,3] parameter(0)  ROOT n = s32[0,3] negate(p) }")
    p, out = np.zeros((0, 3), np.int32), np.empty((0, 3), np.int32)
    assert nest.vectorized().run(p, out=out) is out
    assert list(nest.vectorized().tiles((2, 2), p)) == []


# ---------------------------------------------------------------- poisoned operands


def poisons(sample: Sample, random: np.random.Generator) -> list[list[Array | None]]:
    return [[None] * len(sample.shapes), [*sample.inputs(random)]]


def check_sample(sample: Sample, random: np.random.Generator) -> None:
    """Check random tiles of each output, and of one operand."""
    inputs, others = sample.inputs(random), poisons(sample, random)
    named = dict(zip([o.name for o in sample.instruction.operands], inputs, strict=True))
    for output, shape in enumerate(sample.outputs):
        nest = indexing.loop_nest(sample.instruction, output)
        program = None if isinstance(nest, Unknown) else nest.vectorized()
        for exact in (False, True):
            sizes = few_tiles(random, shape.dims, 4)
            tiling = indexing.tile(sample.instruction, sizes, output_id=output, exact=exact)
            assert isinstance(tiling, Tiling), tiling
            if exact and sample.instruction.opcode == "convolution":
                others = others[1:]  # exact maps omit factors of padding, but zero times NaN is NaN
            values = {name: named[name] for name in sources_of(tiling)}
            check_tiles(tiling, sample.run, inputs, others, values, program=program)
            if not any(m.grade == "may" for maps in tiling.answer.maps for m in maps):
                break
    operand = int(random.integers(len(inputs)))
    sizes = few_tiles(random, sample.arrays[operand].dims, 3)
    tiling = indexing.tile(
        sample.instruction, sizes, direction="input-to-output", operand_id=operand
    )
    assert isinstance(tiling, Tiling), tiling
    check_input_tiles(tiling, sample.run, inputs, others)


def seeded_generator(sample: Sample) -> np.random.Generator:
    return np.random.default_rng([*sample.text.encode()])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("opcode", MAPPED)
def test_tiles_of_all_ops_use_nothing_outside_of_their_regions(opcode: str) -> None:
    with checks() as check:
        for sample in sampled(samples_of(opcode), opcode):
            if len(sample.arrays) == len(sample.shapes):
                with check(sample.text):
                    check_sample(sample, seeded_generator(sample))


@pytest.mark.parametrize("opcode", ["add", "concatenate", "dot", "reduce", "reverse", "transpose"])
def test_poison_detects_a_missed_element(opcode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first element of each region is omitted."""
    sample = samples_of(opcode)[0]
    sizes, random = [2] * sample.outputs[0].rank, seeded_generator(sample)
    tiling = indexing.tile(sample.instruction, sizes)
    assert isinstance(tiling, Tiling)
    inputs = sample.inputs(random)
    for operand in range(len(inputs)):

        def omitting(arrays: Sequence[Array], regions: Any, operand: int = operand) -> list[Mask]:
            masks = masks_of(arrays, regions)
            masks[operand].flat[masks[operand].argmax()] = False
            return masks

        monkeypatch.setattr(poison, "masks_of", omitting)
        with pytest.raises(AssertionError, match="needs more than"):
            check_tiles(tiling, sample.run, inputs, poisons(sample, random))
