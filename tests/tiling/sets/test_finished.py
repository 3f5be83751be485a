"""Outputs that a tile of an operand finishes, compared with executions of changed operands.

An element of the operand is read by the outputs that change if it changes.  No map is involved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from random import Random
from typing import TypeAlias

import numpy as np
import pytest

import hlo
import indexing
from hlo.modules.module import Instruction, Module
from hlo.shapes.shape import Shape
from indexing import Region, Tiling, Unknown
from indexing.execution.program import run
from indexing.maps.regions.boxes import Box
from tests.oracles import scale
from tests.tiling.sets.poison import Array

Elements: TypeAlias = set[tuple[int, ...]]
Readers: TypeAlias = dict[tuple[int, ...], Elements]

ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"


# ---------------------------------------------------------------- programs


def convolution(random: Random) -> str:
    size, filters = random.randint(2, 6), random.randint(1, 4)
    low, high = random.randint(0, 2), random.randint(0, 2)
    stride, hole = random.randint(1, 2), random.randint(1, 2)
    padded = (size - 1) * hole + 1 + low + high
    count = (padded - filters) // stride + 1 if padded >= filters else 0
    return (
        f"ENTRY e {{ p = f32[1,1,{size}] parameter(0)  w = f32[1,1,{filters}] parameter(1)\n"
        f"ROOT r = f32[1,1,{count}] convolution(p, w), window={{size={filters} stride={stride} "
        f"pad={low}_{high} lhs_dilate={hole}}}, dim_labels=bf0_oi0->bf0 }}"
    )


def update(random: Random) -> str:
    size = random.randint(2, 8)
    part = random.randint(1, size)
    return (
        f"ENTRY e {{ p = f32[{size}] parameter(0)  u = f32[{part}] parameter(1)\n"
        f"i = s32[] parameter(2)\nROOT r = f32[{size}] dynamic-update-slice(p, u, i) }}"
    )


def updates_of_rows(random: Random) -> str:
    rows, columns = random.randint(2, 4), random.randint(1, 3)
    part = random.randint(1, rows)
    return (
        f"f {{ p = f32[{rows},{columns}] parameter(0)  u = f32[{part},{columns}] parameter(1)\n"
        f"i = s32[] parameter(2)  z = s32[] constant({random.randint(0, 1)})\n"
        f"n = f32[{part},{columns}] negate(u)\n"
        f"d = f32[{rows},{columns}] dynamic-update-slice(p, n, i, z)\n"
        f"ROOT t = f32[{columns},{rows}] transpose(d), dimensions={{1,0}} }}\n"
        f"ENTRY e {{ p = f32[{rows},{columns}] parameter(0)\n"
        f"u = f32[{part},{columns}] parameter(1)  i = s32[] parameter(2)\n"
        f"ROOT r = f32[{columns},{rows}] fusion(p, u, i), kind=kLoop, calls=f }}"
    )


def update_at_a_constant(random: Random) -> str:
    size = random.randint(2, 8)
    part, start = random.randint(1, size), random.randint(0, size)
    return (
        f"f {{ p = f32[{size}] parameter(0)  u = f32[{part}] parameter(1)\n"
        f"i = s32[] constant({start})\n"
        f"ROOT d = f32[{size}] dynamic-update-slice(p, u, i) }}\n"
        f"ENTRY e {{ p = f32[{size}] parameter(0)  u = f32[{part}] parameter(1)\n"
        f"ROOT r = f32[{size}] fusion(p, u), kind=kLoop, calls=f }}"
    )


def window(random: Random) -> str:
    size = random.randint(2, 8)
    part = random.randint(1, size)
    return (
        f"ENTRY e {{ p = f32[{size}] parameter(0)  i = s32[] parameter(1)\n"
        f"ROOT r = f32[{part}] dynamic-slice(p, i), dynamic_slice_sizes={{{part}}} }}"
    )


def window_twice(random: Random) -> str:
    size = random.randint(2, 8)
    part = random.randint(1, size)
    return (
        f"f {{ p = f32[{size}] parameter(0)  i = s32[] parameter(1)\n"
        f"a = f32[{part}] dynamic-slice(p, i), dynamic_slice_sizes={{{part}}}\n"
        f"b = f32[{part}] slice(p), slice={{[{size - part}:{size}]}}\n"
        f"ROOT s = f32[{part}] add(a, b) }}\n"
        f"ENTRY e {{ p = f32[{size}] parameter(0)  i = s32[] parameter(1)\n"
        f"ROOT r = f32[{part}] fusion(p, i), kind=kLoop, calls=f }}"
    )


def rows_gathered(random: Random) -> str:
    size, count, part = random.randint(2, 6), random.randint(1, 4), random.randint(1, 2)
    return (
        f"ENTRY e {{ p = f32[{size}] parameter(0)  i = s32[{count},1] parameter(1)\n"
        f"ROOT r = f32[{count},{part}] gather(p, i), offset_dims={{1}}, collapsed_slice_dims={{}}, "
        f"start_index_map={{0}}, index_vector_dim=1, slice_sizes={{{part}}} }}"
    )


def elements_scattered(random: Random) -> str:
    size, count = random.randint(2, 6), random.randint(1, 4)
    return ADD + (
        f"ENTRY e {{ p = f32[{size}] parameter(0)  i = s32[{count},1] parameter(1)\n"
        f"u = f32[{count}] parameter(2)\n"
        f"ROOT r = f32[{size}] scatter(p, i, u), update_window_dims={{}}, "
        "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
        "to_apply=add }"
    )


def window_sums(random: Random) -> str:
    size, part = random.randint(2, 7), random.randint(1, 4)
    low, high, stride = random.randint(0, 3), random.randint(0, 3), random.randint(1, 3)
    count = (size + low + high - part) // stride + 1 if size + low + high >= part else 0
    return ADD + (
        f"ENTRY e {{ p = f32[{size}] parameter(0)  z = f32[] constant(0)\n"
        f"ROOT r = f32[{count}] reduce-window(p, z), window={{size={part} stride={stride} "
        f"pad={low}_{high}}}, to_apply=add }}"
    )


PROGRAMS: list[Callable[[Random], str]] = [
    *(convolution, update, updates_of_rows, update_at_a_constant, window, window_twice),
    *(rows_gathered, elements_scattered, window_sums),
]


# ---------------------------------------------------------------- the oracle


def is_float(operand: Instruction) -> bool:
    return isinstance(operand.shape, Shape) and operand.shape.element_type == "f32"


def inputs_of(module: Module, random: np.random.Generator) -> list[Array]:
    inputs: list[Array] = []
    for parameter in module.entry.parameters:
        assert isinstance(parameter.shape, Shape)
        dims = parameter.shape.dims
        if is_float(parameter):
            inputs.append(random.uniform(1, 2, dims).astype(np.float32))
        else:
            inputs.append(random.integers(-1, 7, dims, np.int32))
    return inputs


def readers_of(module: Module, inputs: list[Array], number: int) -> Readers:
    """Return the outputs that change with each element of an input."""
    (expected,) = run(module, inputs)
    readers: Readers = {}
    for element in np.ndindex(inputs[number].shape):
        changed = [array.copy() for array in inputs]
        # times the zeros of a convolution's padding, NaN is NaN
        is_convolution = module.entry.root.opcode == "convolution"
        changed[number][element] += np.nan if is_convolution else 1
        (result,) = run(module, changed)
        readers[element] = {tuple(map(int, row)) for row in np.argwhere(result != expected)}
    return readers


def elements_of(region: object) -> Elements:
    assert isinstance(region, Region), region
    rows = region.elements()
    assert not isinstance(rows, Unknown)
    return {tuple(row) for row in rows.tolist()}


def check(region: object, expected: Elements, side: str) -> None:
    """An exact region has the elements; others are on the side that they state."""
    assert isinstance(region, Region), region
    elements = elements_of(region)
    if region.grade == "exact":
        assert elements == expected, region
        return
    assert region.side == side, region
    assert elements >= expected if side == "over" else elements <= expected, region


def tilings(root: Instruction, number: int, random: Random) -> Iterator[Tiling]:
    shape = root.operands[number].shape
    assert isinstance(shape, Shape)
    sizes = [random.randint(1, n) for n in shape.dims]
    for exact in (False, True):
        tiling = indexing.tile(
            root, sizes, direction="input-to-output", operand_id=number, exact=exact
        )
        assert isinstance(tiling, Tiling), tiling
        yield tiling


def named_values(root: Instruction, inputs: list[Array], tiling: Tiling) -> dict[str, Array]:
    """Return the values of the sources of runtime variables."""
    answer = indexing.input_to_output(root, tiling.answer.domain_id, exact=True)
    maps = [m for each in (answer, tiling.answer) for own in each.maps for m in own]
    sources = {str(rt.source_name) for m in maps for rt in m.runtime}
    named = zip([o.name for o in root.operands], inputs, strict=False)
    return {name: value for name, value in named if name in sources}


def values_of(tiling: Tiling, values: dict[str, Array]) -> dict[str, Array]:
    """Return the values that the maps of a tiling have."""
    maps = [m for own in tiling.answer.maps for m in own]
    names = {str(rt.source_name) for m in maps for rt in m.runtime}
    return {name: value for name, value in values.items() if name in names}


def check_program(text: str, seed: int) -> int:
    """Check the tiles of all operands; return the number of exact regions with elements."""
    random = Random(seed)
    module = hlo.parse(text)
    root = module.entry.root
    inputs = inputs_of(module, np.random.default_rng(seed))
    count = 0
    for number in range(len(inputs)):
        if not is_float(root.operands[number]):
            continue
        readers = readers_of(module, inputs, number)
        for tiling in tilings(root, number, random):
            values = named_values(root, inputs, tiling)
            for index in tiling.tiles():
                own = set(product(*[range(s.start, s.stop) for s in tiling.slices(*index)]))
                needing = Elements().union(*[readers[e] for e in own])
                others = Elements().union(*[readers[e] for e in set(readers) - own])
                for given in ({}, values):
                    (region,) = tiling.at(*index, **values_of(tiling, given))
                    check(region, needing, "over")
                    (finished,) = tiling.finished(*index, **given)
                    check(finished, needing - others, "under")
                    assert isinstance(finished, Region)
                    count += finished.grade == "exact" and bool(finished)
    return count


@pytest.mark.parametrize("program", PROGRAMS)
def test_finished_outputs_read_no_other_tile(program: Callable[[Random], str]) -> None:
    random = Random(program.__name__)
    counts = [check_program(program(random), seed) for seed in range(scale(20))]
    assert any(counts), "no tile finishes anything for certain"


# ---------------------------------------------------------------- single cases

CASES = [
    # the output at 0 is over padding for the first two filters; of f64, no products with padding
    (
        "ENTRY e { p = f64[1,1,3] parameter(0)  w = f64[1,1,3] parameter(1)\n"
        "ROOT r = f64[1,1,3] convolution(p, w), window={size=3 pad=2_0}, "
        "dim_labels=bf0_oi0->bf0 }",
        1,
        (1, 1, 1),
        (0, 0, 2),
        "[0, 0, 0]",
    ),
]


@pytest.mark.parametrize(("text", "number", "sizes", "index", "expected"), CASES)
def test_tilings_by_over_approximations_finish_exact_regions(
    text: str, number: int, sizes: tuple[int, ...], index: tuple[int, ...], expected: str
) -> None:
    root = hlo.parse(text).entry.root
    tiling = indexing.tile(root, sizes, direction="input-to-output", operand_id=number)
    assert isinstance(tiling, Tiling)
    assert any(m.grade == "may" for m in tiling.answer.maps[0])
    (finished,) = tiling.finished(*index)
    assert isinstance(finished, Region)
    assert (str(finished), finished.grade) == (expected, "exact")


def test_regions_of_unknown_starts_state_their_side() -> None:
    root = hlo.parse("""ENTRY e { p = f32[6] parameter(0)  u = f32[2] parameter(1)
      i = s32[] parameter(2)  ROOT r = f32[6] dynamic-update-slice(p, u, i) }""").entry.root
    tiling = indexing.tile(root, (1,), direction="input-to-output", operand_id=1)
    assert isinstance(tiling, Tiling)
    (finished,), (read,) = tiling.finished(0), tiling.at(0)
    assert isinstance(finished, Region)
    assert isinstance(read, Region)
    assert (finished.grade, finished.side) == ("may", "under")
    assert str(finished).startswith("at least ")
    assert "side='under'" in repr(finished)
    assert (read.grade, read.side) == ("may", "over")


def test_range_variables_do_not_restrict_what_else_is_read() -> None:
    root = hlo.parse(CASES[0][0]).entry.root
    tiling = indexing.tile(root, (1, 1, 1), direction="input-to-output", operand_id=0)
    assert isinstance(tiling, Tiling)
    with pytest.raises(TypeError, match="s0 is a range variable"):
        tiling.finished(0, 0, 0, s0=1)


def test_regions_of_two_sides_are_not_united() -> None:
    box = Region.of_boxes([Box((0,), (2,), (1,))], rank=1)
    over = Region(1, box.pieces, "may")
    under = Region(1, box.pieces, "may", side="under")
    assert ((under | box).side, (under & under).side, (over | box).side) == (
        "under",
        "under",
        "over",
    )
    for unite in (Region.union, Region.intersection):
        with pytest.raises(ValueError, match="expected equal sides"):
            unite(over, under)
