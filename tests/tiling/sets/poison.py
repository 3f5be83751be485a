"""Execution of single tiles on poisoned operands: elements outside of regions have other values.

If a region lacked an element that a tile needs, the tile of the poisoned operands would differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlo.shapes.shape import leaves
from indexing import Region, Tiling, Unknown
from indexing.codegen.numpy.program import Vectorized
from indexing.maps.regions.answers import OperandRegion
from indexing.ops.numerics import is_integer, limits

Array: TypeAlias = NDArray[Any]
Mask: TypeAlias = NDArray[np.bool_]
Run: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]
Others: TypeAlias = Sequence[Sequence[Array | None]]
"""Replacements of all operands; `None` for `poison_of`."""


def poison_of(kind: np.dtype[Any]) -> Array:
    """Return NaN, or the largest number of an integer type."""
    if is_integer(np.zeros(0, kind)):
        return np.asarray(limits(kind)[1]).astype(kind)
    with np.errstate(all="ignore"):
        return np.asarray(np.nan).astype(kind)


def mask_of(array: Array, region: Region | Unknown) -> Mask:
    """Return the mask of the elements of a region; all elements if they are unknown."""
    elements = region if isinstance(region, Unknown) else region.elements()
    if isinstance(elements, Unknown):
        return np.ones(array.shape, bool)
    mask = np.zeros(array.shape, bool)
    if len(elements):
        mask[tuple(elements.T)] = True
    return mask


def poison(array: Array, mask: Mask, other: Array | None) -> Array:
    """Return a copy with other values where the mask is False: those of `other`, or poison."""
    if other is None:
        other = ~array if array.dtype.kind == "b" else poison_of(array.dtype)
    copy = array.copy()
    copy[~mask] = np.broadcast_to(other, array.shape)[~mask]
    return copy


def different(a: Array, b: Array) -> Mask:
    """Return the mask of different elements; all NaN are equal."""
    if a.dtype.kind == "V":  # a type that NumPy lacks
        a, b = a.astype(np.float64), b.astype(np.float64)
    return np.asarray((a != b) & ~((a != a) & (b != b)))


def masks_of(arrays: Sequence[Array], regions: Iterable[OperandRegion]) -> list[Mask]:
    """Return a mask for each leaf of the operands."""
    masks: list[Mask] = []
    for region in regions:
        for leaf in region if isinstance(region, tuple) else (region,):
            masks.append(mask_of(arrays[len(masks)], leaf))
    assert len(masks) == len(arrays)
    return masks


def with_all_leaves(tiling: Tiling, regions: Iterable[OperandRegion]) -> Iterator[OperandRegion]:
    """Yield the regions; an unknown one of a tuple for each of its leaves."""
    for operand, region in zip(tiling.answer.operands, regions, strict=True):
        count = len(leaves(operand.shape)) if isinstance(region, Unknown) else 1
        yield from [region] * count


def few_tiles(random: np.random.Generator, dims: Sequence[int], most: int) -> list[int]:
    """Random tile sizes, of at most `most` tiles."""
    sizes = [int(random.integers(1, n + 2)) for n in dims]
    while prod([-(-n // size) for n, size in zip(dims, sizes, strict=True)]) > most:
        sizes = [2 * size for size in sizes]
    return sizes


def sources_of(tiling: Tiling) -> set[str]:
    """Return the names of the arrays whose values are runtime variables of the maps."""
    maps = [m for own in tiling.answer.maps for m in own]
    return {str(rt.source_name) for m in maps for rt in m.runtime if rt.source is not None}


def check_tiles(
    tiling: Tiling,
    run: Run,
    inputs: Sequence[Array],
    others: Others,
    values: Mapping[str, Array] | None = None,
    tiles: Iterable[tuple[int, ...]] | None = None,
    program: Vectorized | None = None,
) -> None:
    """Check that each tile has the same elements if all others of the operands are replaced.

    Args:
        tiling: the tiles of an output.
        run: computes all outputs from the leaves of the operands.
        inputs: the leaves of the operands.
        others: the replacements.
        values: values of runtime variables, by the name of their source.
        tiles: the indices of the tiles that are checked, by default all.
        program: computes single tiles from the operands, too.
    """
    output = tiling.answer.domain_id
    expected = run(inputs)[output]
    for index in tiling.tiles() if tiles is None else tiles:
        box = tiling.slices(*index)
        regions = tiling.at(*index, **(values or {}))
        masks = masks_of(inputs, with_all_leaves(tiling, regions))
        message = f"tile {list(index)} of {tiling!r} needs more than {regions}"
        if values:  # without values, the regions cover all values
            wide = masks_of(inputs, with_all_leaves(tiling, tiling.at(*index)))
            assert all(np.all(a >= b) for a, b in zip(wide, masks, strict=True)), message
        for replaced in others:
            given = [poison(*row) for row in zip(inputs, masks, replaced, strict=True)]
            assert not different(run(given)[output][box], expected[box]).any(), message
            if program is not None:
                blocks = [program.tile(tiling.sizes, index, *each) for each in (inputs, given)]
                assert not different(*blocks).any(), f"{message}\n{program.tile_source}"


def check_input_tiles(tiling: Tiling, run: Run, inputs: Sequence[Array], others: Others) -> None:
    """Check the outputs that a tile of an operand changes, and those that it finishes.

    If a tile is replaced, only outputs of its regions may differ.  If the rest of the operand is
    replaced, no finished output may differ.

    Args:
        tiling: the tiles of an operand that is an array, as all operands of the instruction.
        run: computes all outputs from the operands.
    """
    operand = tiling.answer.domain_id
    expected = run(inputs)
    for index in tiling.tiles():
        tile = np.zeros(inputs[operand].shape, bool)
        tile[tiling.slices(*index)] = True
        changed = masks_of(expected, tiling.at(*index))
        finished = masks_of(expected, tiling.finished(*index))
        for replaced in others:
            for mask, fixed in ((~tile, [~each for each in changed]), (tile, finished)):
                given = list(inputs)
                given[operand] = poison(inputs[operand], mask, replaced[operand])
                for new, old, own in zip(run(given), expected, fixed, strict=True):
                    assert not (different(new, old) & own).any(), (index, tiling)
