"""Tilings of instructions: brute force enumerates the elements that each tile needs."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest

import hlo
import indexing
from indexing import Region, TiledOperand, Tiling, Unknown
from indexing.maps.regions.boxes import Box

Elements = set[tuple[int, ...]]


def tiling_of(text: str, sizes: tuple[int, ...], **options: Any) -> Tiling:
    """The tiling of the root of a module with these instructions."""
    tiling = indexing.tile(hlo.parse(f"ENTRY e {{\n{text}\n}}").entry.root, sizes, **options)
    assert isinstance(tiling, Tiling), tiling
    return tiling


def tiles_of(tiling: Tiling) -> list[tuple[int, ...]]:
    return list(product(*map(range, tiling.grid)))


def needed(tiling: Tiling, operand: TiledOperand, index: tuple[int, ...]) -> Elements:
    """The elements that a tile needs, from the values of the maps at each point."""
    points = set(product(*[range(s.start, s.stop) for s in tiling.slices(*index)]))
    elements: Elements = set()
    for m in operand.maps:
        inner = (*m.ranges, *[rt.variable for rt in m.runtime])
        values = list(product(*[range(v.lower, v.upper + 1) for v in inner]))
        for point in points:
            for each in values:
                ranges, runtime = each[: len(m.ranges)], each[len(m.ranges) :]
                result = m.evaluate(point, ranges, runtime)
                if result is not None:
                    elements.add(result)
    return elements


def as_box(elements: Elements) -> Box | None:
    """The elements as one strided box; `None` if they are empty or no box."""
    sides = [sorted(set(side)) for side in zip(*elements, strict=True)]
    strides = [side[1] - side[0] if len(side) > 1 else 1 for side in sides]
    if not elements or any(
        side != list(range(side[0], side[-1] + 1, s))
        for side, s in zip(sides, strides, strict=True)
    ):
        return None
    box = Box(tuple([s[0] for s in sides]), tuple(map(len, sides)), tuple(strides))
    return box if box.count() == len(elements) else None


def hull(elements: Elements) -> int:
    """The number of elements of the smallest strided box."""
    count = 1
    for side in zip(*elements, strict=True):
        values = set(side)
        spans = [
            (max(values) - min(values)) // s + 1
            for s in range(1, max(values) + 2)
            if all((v - min(values)) % s == 0 for v in values)
        ]
        count *= min(spans)
    return count


def check(tiling: Tiling) -> None:
    """Compare all attributes of a tiling without runtime variables with brute force."""
    for operand in tiling.operands:
        sets = {index: needed(tiling, operand, index) for index in tiles_of(tiling)}
        for index, elements in sets.items():
            region = tiling.at(*index)[operand.number]
            assert isinstance(region, Region)
            assert {tuple(row) for row in region.elements().tolist()} == elements
        if operand.grade == "exact":
            check_kind(operand, sets)
            check_counts(tiling, operand, sets)


def check_kind(operand: TiledOperand, sets: dict[tuple[int, ...], Elements]) -> None:
    boxes = {index: as_box(elements) for index, elements in sets.items()}
    is_box = all(boxes[index] is not None for index, elements in sets.items() if elements)
    assert (operand.kind == "box") == is_box, (operand, boxes)
    assert bool(operand.reason) != is_box
    if not is_box or operand.offsets is None:
        return
    assert operand.sizes is not None
    assert operand.strides is not None
    for index, box in boxes.items():
        point = {v: index[int(v.name[4:])] for v in operand.grid.tile_index}
        sizes = tuple([size.value(point) for size in operand.sizes])
        if box is None:
            assert 0 in sizes
            continue
        offsets = tuple([offset.value(point) for offset in operand.offsets])
        strides = tuple([stride.value(point) for stride in operand.strides])
        assert Box(offsets, sizes, strides) == box, (operand, index)


def check_counts(
    tiling: Tiling, operand: TiledOperand, sets: dict[tuple[int, ...], Elements]
) -> None:
    total = sum(map(len, sets.values()))
    touched = len(Elements().union(*sets.values()))
    bits = operand.shape.element_bits
    assert operand.bytes == -(-total * bits // 8)
    assert operand.bytes_touched == -(-touched * bits // 8)
    assert operand.tile_bytes == -(-max(map(len, sets.values()), default=0) * bits // 8)
    if touched:
        assert operand.reuse * touched == total
        assert operand.overfetch * total == sum([hull(e) for e in sets.values() if e])
    for k, count in enumerate(tiling.grid):
        shared = [0]
        for index, elements in sets.items():
            if index[k] + 1 < count:
                shared.append(len(elements & sets[*index[:k], index[k] + 1, *index[k + 1 :]]))
        assert operand.halo[k] == max(shared), (operand, k)


# fmt: off
CASES = [
    # instructions                                                             sizes     kinds
    ("p = f32[9] parameter(0)  q = f32[7] parameter(1)\n"
     "ROOT c = f32[16] concatenate(p, q), dimensions={0}",                     (4,),     "box box"),
    ("p = f32[9] parameter(0)\n"
     "ROOT c = f32[18] concatenate(p, p), dimensions={0}",                     (4,), "box box"),
    ("p = f32[12] parameter(0)  ROOT r = f32[3,4] reshape(p)",                 (2, 2),   "boxes"),
    ("p = f32[3,4] parameter(0)  ROOT r = f32[12] reshape(p)",                 (5,),     "boxes"),
    ("p = f32[3,4] parameter(0)  ROOT r = f32[12] reshape(p)",                 (4,),     "box"),
    ("p = f32[7,5] parameter(0)  ROOT r = f32[5,7] transpose(p), dimensions={1,0}", (2, 3), "box"),
    ("p = f32[7,5] parameter(0)  ROOT r = f32[7,5] reverse(p), dimensions={1}", (2, 3),  "box"),
    ("p = f32[7,5] parameter(0)  ROOT r = f32[3,2] slice(p), slice={[1:7:2],[0:5:3]}", (2, 1),
     "box"),
    ("p = f32[7] parameter(0)  v = f32[] parameter(1)\n"
     "ROOT r = f32[14] pad(p, v), padding=-1_2_1",   (4,), "box bounding"),
    ("p = f32[7,5] parameter(0)  q = f32[5,4] parameter(1)\n"
     "ROOT r = f32[7,4] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}", (3, 2),
     "box box"),
    ("p = f32[1,8,1] parameter(0)  k = f32[3,1,1] parameter(1)\n"
     "ROOT r = f32[1,8,1] convolution(p, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f",
     (1, 3, 1), "box bounding"),
    ("p = f32[1,9,1] parameter(0)  k = f32[3,1,1] parameter(1)\n"
     "ROOT r = f32[1,4,1] convolution(p, k), window={size=3 stride=2}, dim_labels=b0f_0io->b0f",
     (1, 3, 1), "box box"),
]
# fmt: on


@pytest.mark.parametrize(("text", "sizes", "kinds"), CASES)
def test_a_tiling_agrees_with_brute_force(text: str, sizes: tuple[int, ...], kinds: str) -> None:
    tiling = tiling_of(text, sizes)
    assert [operand.kind for operand in tiling.operands] == kinds.split(), tiling
    check(tiling)


def test_tiles_of_an_operand_finish_outputs_that_read_nothing_else() -> None:
    text = (
        "p = f32[1,9,1] parameter(0)  k = f32[3,1,1] parameter(1)\n"
        "ROOT r = f32[1,4,1] convolution(p, k), window={size=3 stride=2}, dim_labels=b0f_0io->b0f"
    )
    tiling = tiling_of(text, (1, 4, 1), direction="input-to-output")
    check(tiling)
    reads: Counter[tuple[int, ...]] = Counter()
    sets = {index: needed(tiling, tiling.operands[0], index) for index in tiles_of(tiling)}
    for elements in sets.values():
        reads.update(elements)
    for index, elements in sets.items():
        (finished,) = tiling.finished(*index)
        assert isinstance(finished, Region)
        own = {tuple(row) for row in finished.elements().tolist()}
        assert own == {e for e in elements if reads[e] == 1}


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((2,), "one size for each of the 2 dimensions"),
        ((2, 0), "at least 1, got 0 for dimension 1"),
        ((-3, 1), "at least 1, got -3 for dimension 0"),
    ],
)
def test_wrong_sizes_are_refused(sizes: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiling_of("p = f32[7,5] parameter(0)  ROOT r = f32[7,5] negate(p)", sizes)


def test_sizes_beyond_the_dimension_mean_the_whole_dimension() -> None:
    tiling = tiling_of("p = f32[7,5] parameter(0)  ROOT r = f32[7,5] negate(p)", (100, 5))
    assert (tiling.grid, tiling.divides, tiling.edge_tiles) == ((1, 1), (False, True), 1)
    check(tiling)


def test_an_instruction_without_maps_is_unknown() -> None:
    text = "p = f32[7] parameter(0)  ROOT r = f32[7] no-such-op(p)"
    answer = indexing.tile(hlo.parse(f"ENTRY e {{\n{text}\n}}").entry.root, (2,))
    assert isinstance(answer, Unknown)
    assert "no-such-op" in answer.reason
