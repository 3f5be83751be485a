"""Tiles execute: those of real fusions, and of whole programs as functions of their parameters."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
import indexing
from hlo import Computation, Instruction, Shape
from hlo.shapes.shape import leaves
from indexing import Tiling, Unknown
from indexing.execution import random_inputs, run
from indexing.tiling.sets.tiling import Target
from tests.dataflow.test_random_programs import Program, programs
from tests.oracles import fuzz
from tests.tiling.sets.poison import Array, check_tiles, few_tiles, sources_of
from tests.tiling.sets.tiling_oracle import check_tiling

PROGRAMS = sorted((Path(__file__).parent.parent.parent / "execution" / "data").glob("*.hlo"))
MAX_ELEMENTS = 1 << 14
MAX_FUSIONS = 3
MAX_OUTPUTS = 2


def size_of(computation: Computation) -> int:
    shapes = [leaf for i in computation for _, leaf in leaves(i.shape)]
    return sum([shape.size for shape in shapes if isinstance(shape, Shape)])


def named_values(tiling: Tiling, arrays: list[Array]) -> dict[str, Array]:
    """The values of runtime variables, by the name of the operand that is their source."""
    named, number = {}, 0
    for operand in tiling.answer.operands:
        if isinstance(operand.shape, Shape):
            named[operand.name] = arrays[number]
        number += len(leaves(operand.shape))
    return {name: named[name] for name in sources_of(tiling) if name in named}


def tilings(target: Instruction, to: Target, random: np.random.Generator) -> Iterator[Tiling]:
    """Yield tilings of the first outputs, by random sizes."""
    for output, (_, shape) in enumerate(leaves(target.shape)[:MAX_OUTPUTS]):
        if isinstance(shape, Shape):
            sizes = few_tiles(random, shape.dims, 32)
            tiling = indexing.tile(target, sizes, to=to, output_id=output)
            assert isinstance(tiling, Tiling), tiling
            yield tiling


def check_target(
    target: Instruction, computation: Computation, to: Target, random: np.random.Generator
) -> None:
    """Check some tiles of `target`, which `computation` computes from its parameters."""
    inputs, fresh = [random_inputs(computation, int(random.integers(1 << 30))) for _ in range(2)]
    others: list[list[Array | None]] = [[*fresh], [None] * len(inputs)]
    if any(i.opcode == "set-dimension-size" for i in computation):
        del others[1]  # poison is no size
    for tiling in tilings(target, to, random):
        tiles = random.permutation(list(tiling.tiles()))[:3].tolist()
        nest = indexing.loop_nest(computation, tiling.answer.domain_id)
        program = None if isinstance(nest, Unknown) else nest.vectorized()
        values = named_values(tiling, inputs)
        run_all = partial(run, computation)
        with np.errstate(all="ignore"):
            check_tiles(tiling, run_all, inputs, others, values, tiles, program)


def test_tiles_of_fusions_use_nothing_outside_of_their_regions(example: Path) -> None:
    module = hlo.load(example)
    random = np.random.default_rng([*example.name.encode()])
    fusions = [i for i in module.instructions if i.opcode == "fusion"]
    small = [i for i in fusions if size_of(i.called_computations[0]) <= MAX_ELEMENTS]
    for k in random.permutation(len(small))[:MAX_FUSIONS].tolist():
        check_target(small[k], small[k].called_computations[0], "operands", random)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_tiles_of_programs_use_nothing_outside_of_their_regions(path: Path) -> None:
    entry = hlo.load(path).entry
    check_target(entry.root, entry, "parameters", np.random.default_rng([*path.name.encode()]))


@fuzz(30)
@given(programs(), st.integers(0, 1 << 30))
def test_tiles_of_random_fusions_execute_and_agree_with_brute_force(
    program: Program, seed: int
) -> None:
    module = program.module()
    fusion, fused = module.entry.root, module.computations["fused"]
    check_target(fusion, fused, "operands", np.random.default_rng(seed))
    for tiling in tilings(fusion, "operands", np.random.default_rng(seed)):
        check_tiling(tiling, seed)
