"""Brute force for tilings: the elements that each tile needs, from the maps at each point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from random import Random

from hlo.shapes.shape import leaf_number
from indexing import IndexingMap, Region, RuntimeVariable, TiledOperand, Tiling, Unknown, tile
from indexing.maps.regions.answers import OperandRegion
from indexing.maps.regions.boxes import Box
from indexing.tiling.sets.tile_regions import regions_of_tiles
from simplifier import Variable

Elements = set[tuple[int, ...]]
Sets = dict[tuple[int, ...], Elements]


class RuntimeValues:
    """Pseudorandom values of all elements that runtime variables refer to."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def value(self, rt: RuntimeVariable, at: Mapping[Variable, int]) -> int:
        """The value of a runtime variable, clamped."""
        index = [expr.value(at) for expr in rt.index]
        name = (str(rt.source_name), None if rt.array is None else rt.array.path, index)
        random = Random(f"{self._seed} {name if rt.array is not None else rt.name}")
        low, high = rt.clamp or rt.variable.bounds
        raw = random.randint(low - 2, high + 2) if rt.clamp else random.randint(low, high)
        return int(min(max(raw, low), high))


def relation(m: IndexingMap, values: RuntimeValues) -> dict[tuple[int, ...], Elements]:
    """The results of a map for each point."""
    results: dict[tuple[int, ...], Elements] = {}
    variables = (*m.dims, *m.ranges)
    for numbers in product(*[range(v.lower, v.upper + 1) for v in variables]):
        at = dict(zip(variables, numbers, strict=True))
        runtime = [values.value(rt, at) for rt in m.runtime]
        point = numbers[: len(m.dims)]
        result = m.evaluate(point, numbers[len(m.dims) :], runtime)
        if result is not None:
            results.setdefault(point, set()).add(result)
    return results


def sets_of(tiling: Tiling, operand: TiledOperand, values: RuntimeValues) -> Sets:
    """The elements of an operand that each tile needs."""
    relations = [relation(m, values) for m in operand.maps]
    sets: Sets = {}
    for index in product(*map(range, tiling.grid)):
        points = list(product(*[range(s.start, s.stop) for s in tiling.slices(*index)]))
        sets[index] = Elements().union(*[r.get(p, set()) for r in relations for p in points])
    return sets


def as_box(elements: Elements) -> Box | None:
    """The elements as one strided box; `None` if they are empty or no box."""
    sides = [sorted(set(side)) for side in zip(*elements, strict=True)]
    strides = [side[1] - side[0] if len(side) > 1 else 1 for side in sides]
    if not elements:
        return None
    for side, stride in zip(sides, strides, strict=True):
        if side != list(range(side[0], side[-1] + 1, stride)):
            return None
    box = Box(tuple([s[0] for s in sides]), tuple(map(len, sides)), tuple(strides))
    return box if box.count() == len(elements) else None


def hull(elements: Elements) -> int:
    """The number of elements of the smallest strided box."""
    count = 1
    for side in zip(*elements, strict=True):
        low, high = min(side), max(side)
        strides = [s for s in range(1, high - low + 2) if all((v - low) % s == 0 for v in side)]
        count *= (high - low) // max(strides) + 1 if high > low else 1
    return count


def check_tiling(tiling: Tiling, seed: int) -> None:
    """Compare a tiling with brute force, for one choice of runtime values."""
    values = RuntimeValues(seed)
    for operand in tiling.operands:
        if operand.unknown is not None:
            assert operand.kind == "unknown"
            continue
        sets = sets_of(tiling, operand, values)
        check_regions(tiling, operand, sets)
        check_kind(operand, sets, values)
        check_pieces(operand, sets, values)
        check_counts(tiling, operand, sets)


def region_of(regions: Sequence[OperandRegion], operand: TiledOperand) -> Region:
    """The region of one leaf."""
    answer = regions[operand.number]
    if isinstance(answer, tuple):
        answer = answer[leaf_number(operand.instruction.shape, operand.path)]
    assert isinstance(answer, Region), answer
    check_words(answer)
    return answer


def check_words(region: Region) -> None:
    """The text names each runtime value once: a union is over values, an intersection for all."""
    names = [rt.name for rt in region.runtime]
    values = [(rt.array or rt.name, rt.index, rt.clamp) for rt in region.runtime]
    assert len(set(names)) == len(set(values)) == len(values), region
    words = " over " if region.side == "over" else " for all "
    _, *rest = str(region).split(words)
    shown = rest[-1].split(", rt") if rest else []
    assert [part.removeprefix("rt").split(" in ")[0] for part in shown] == [
        name.removeprefix("rt") for name in names
    ], region


def check_regions(tiling: Tiling, operand: TiledOperand, sets: Sets) -> None:
    """`at` and `regions_of_tiles` give the elements; those for all runtime values."""
    together = zip(sets.items(), regions_of_tiles(tiling), strict=True)
    for (index, elements), regions in together:
        for each in (regions, tiling.at(*index)):
            region = region_of(each, operand)
            rows = region.elements()
            assert not isinstance(rows, Unknown)
            reached = {tuple(row) for row in rows.tolist()}
            assert reached >= elements, (operand, index)
            if not any(m.runtime for m in operand.maps):
                assert reached == elements, (operand, index)


def check_kind(operand: TiledOperand, sets: Sets, values: RuntimeValues) -> None:
    """Boxes are boxes, and others are none; formulas have their values."""
    boxes = {index: as_box(elements) for index, elements in sets.items()}
    is_box = all(boxes[index] is not None for index, elements in sets.items() if elements)
    kind = operand.kind
    assert bool(operand.reason) == (kind != "box")
    if kind == "box":
        assert is_box, (operand, sets)
    elif operand.grade == "exact" and not operand.runtime:
        assert not is_box, (operand, sets)
    if operand.offsets is None or operand.sizes is None or operand.strides is None:
        return
    for index, elements in sets.items():
        at = {v: index[int(v.name[4:])] for v in operand.grid.tile_index}
        exprs = (*operand.offsets, *operand.sizes)
        used = {v for expr in exprs for v in expr.variables()}
        at |= {rt.variable: values.value(rt, at) for rt in operand.runtime if rt.variable in used}
        lines = [
            [e.value(at) for e in line]
            for line in zip(operand.offsets, operand.sizes, operand.strides, strict=True)
        ]
        box = boxes[index]
        for k, (offset, size, stride) in enumerate(lines):
            side = {element[k] for element in elements}
            assert side <= {offset + stride * i for i in range(size)}, (operand, index)
            if kind == "box" and box is not None:
                assert (offset, size) == (box.offsets[k], box.sizes[k]), (operand, index)
                assert size == 1 or stride == box.strides[k], (operand, index)
        if kind == "box" and lines and not elements:
            assert any(size == 0 for _, size, _ in lines), (operand, index)


def check_pieces(operand: TiledOperand, sets: Sets, values: RuntimeValues) -> None:
    """The pieces are disjoint boxes, and their union is what the tile needs."""
    for index, elements in sets.items() if operand.pieces is not None else ():
        at = {v: index[int(v.name[4:])] for v in operand.grid.tile_index}
        at |= {rt.variable: values.value(rt, at) for rt in operand.runtime}
        listed: list[tuple[int, ...]] = []
        for piece in operand.pieces or ():
            sides = [[e.value(at) for e in side[:3]] for side in piece]
            lines = [[offset + stride * i for i in range(size)] for offset, size, stride in sides]
            listed += product(*lines)
        if operand.shape.rank:
            assert len(listed) == len(elements), (operand, index)
            assert set(listed) == elements, (operand, index)


def check_counts(tiling: Tiling, operand: TiledOperand, sets: Sets) -> None:
    """Bytes, reuse, overfetch and halo; upper bounds for over-approximations."""
    total = sum(map(len, sets.values()))
    touched = len(Elements().union(*sets.values()))
    bits = operand.shape.element_bits
    counts = [
        (operand.bytes, total),
        (operand.bytes_touched, touched),
        (operand.tile_bytes, max(map(len, sets.values()), default=0)),
    ]
    for k, (own, expected) in enumerate(counts):
        assert not isinstance(own, Unknown), (own, operand)
        number = -(-expected * bits // 8)
        grade = operand.touched_grade if k == 1 else operand.grade
        is_equal = grade == "exact" and not (k == 2 and operand.runtime)
        assert own == number if is_equal else own >= number, (operand, k, own, number)
    is_exact = operand.grade == operand.touched_grade == "exact"
    assert isinstance(operand.reuse, Unknown) != is_exact
    if operand.grade == "may" or not touched:
        return
    if not isinstance(operand.reuse, Unknown):
        assert operand.reuse * touched == total
    if not isinstance(operand.overfetch, Unknown):
        assert operand.overfetch * total == sum([hull(e) for e in sets.values() if e])
    for k, count in enumerate(tiling.grid):
        shared = [0]
        for index, elements in sets.items():
            if index[k] + 1 < count:
                shared.append(len(elements & sets[*index[:k], index[k] + 1, *index[k + 1 :]]))
        halo = operand.halo[k]
        if isinstance(halo, Unknown):
            assert operand.runtime, halo
        else:
            own = halo >= max(shared) if operand.runtime else halo == max(shared)
            assert own, (operand, k, halo, shared)


def check_finished(tiling: Tiling, seed: int) -> None:
    """Finished outputs read the tile, and no other element of the operand, by exact maps."""
    values = RuntimeValues(seed)
    by_pieces = tile(
        tiling.instruction,
        tiling.sizes,
        direction="input-to-output",
        operand_id=tiling.answer.domain_id,
        exact=True,
    )
    assert isinstance(by_pieces, Tiling)
    for operand in by_pieces.operands:
        if operand.unknown is not None:
            continue
        sets = sets_of(by_pieces, operand, values)
        reads = Counter([element for elements in sets.values() for element in elements])
        for index, elements in sets.items():
            region = tiling.finished(*index)[operand.number]
            assert isinstance(region, Region)
            check_words(region)
            rows = region.elements()
            assert not isinstance(rows, Unknown)
            finished = {tuple(row) for row in rows.tolist()}
            expected = {element for element in elements if reads[element] == 1}
            if region.grade == "exact":
                assert finished == expected
            else:
                assert region.side == "under"
                assert finished <= expected
