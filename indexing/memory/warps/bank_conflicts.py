"""Bank conflicts: how often shared memory serves the lanes of a warp one after another.

Shared memory has banks; consecutive words are in consecutive banks.  A warp accesses shared memory
in phases, as many lanes at a time as the banks serve: 32 lanes with up to 4 bytes each, 16 lanes
with 8 bytes, 8 lanes with 16 bytes.  A phase takes one wavefront for each distinct word in its
busiest bank; lanes with the same word share it.

A column of a row-major tile of 32 x 32 floats is in one bank; a padded row, or a swizzle, moves
each of its elements to another bank:

>>> from indexing.maps.indexing_map import IndexingMap
>>> column = IndexingMap.over((32, 1), lambda d: [d[0], d[1]])
>>> for layout in "(32,32):(32,1)", "(32,32):(33,1)", "Sw<5,0,5> o 0 o (32,32):(32,1)":
...     print(bank_conflicts(column, layout))
32 wavefronts in 1 phase: 31 in excess
1 wavefront in 1 phase: 0 in excess
1 wavefront in 1 phase: 0 in excess

Source: NVIDIA "CUDA C++ Programming Guide", "Shared Memory" of each compute capability; NVIDIA
"CUDA C++ Best Practices Guide", "Shared Memory and Memory Banks".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from hlo.arguments import checked
from indexing.devices.gpus import Gpu, gpu
from indexing.maps.indexing_map import IndexingMap
from indexing.memory.layouts.cute import CuteLayout
from indexing.memory.layouts.swizzle import Swizzle
from indexing.memory.layouts.text import parse_cute
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_ACCESSES: Final = 1 << 20
"""Budget: the elements that all lanes access."""
_INACTIVE: Final = -1


class BusiestBank(NamedTuple):
    """A bank with the most distinct words in one phase.

    Attributes:
        access: the number of the access: elements of the vector, then loops.
        warp, phase: the warp, and its phase.
        bank: the bank.
        words: the distinct words, in units of the width of a bank.
    """

    access: int
    warp: int
    phase: int
    bank: int
    words: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BankConflicts:
    """The wavefronts with which shared memory serves all warps.

    Attributes:
        wavefronts: the number of wavefronts.
        phases: the number of phases with an active lane, the least possible number of wavefronts.
        histogram: the number of phases by their wavefronts.
        worst: a busiest bank; `None` if no lane is active.

    >>> import indexing
    >>> column = indexing.parse_map("(d0, d1) -> (d0, d1), domain: d0 in [0, 31], d1 in [0, 0]")
    >>> conflicts = indexing.bank_conflicts(column, "(32,32):(32,1)")  # all lanes in one bank
    >>> conflicts.wavefronts, conflicts.phases, conflicts.excess, conflicts.worst.bank
    (32, 1, 31, 0)
    """

    wavefronts: int
    phases: int
    histogram: Mapping[int, int]
    worst: BusiestBank | None

    @property
    def excess(self) -> int:
        """Wavefronts that conflicts cost."""
        return self.wavefronts - self.phases

    def __str__(self) -> str:
        wavefronts = f"{self.wavefronts} wavefront{'s' * (self.wavefronts != 1)}"
        phases = f"{self.phases} phase{'s' * (self.phases != 1)}"
        return f"{wavefronts} in {phases}: {self.excess} in excess"


@checked
def bank_conflicts(
    thread_map: IndexingMap,
    layout: str | IndexingMap | CuteLayout,
    device: str | Gpu = "A100",
    element_bits: int = 32,
    access_bytes: int = 4,
    *,
    swizzle: Swizzle | None = None,
) -> BankConflicts | Unknown:
    """Count the wavefronts of the accesses of warps to a tile in shared memory.

    Args:
        thread_map: the map from the lane, and the element of its vector, to the row and column of
            the tile.  More than one warp of lanes are several warps.  Range variables are loops.
        layout: the position of each element of the tile, in elements: a map, or a layout of CuTe,
            such as ``(32,32):(33,1)`` with a padded row.
        device: a GPU, or the name of a model in `indexing.devices.gpus.GPUS`.
        element_bits: the bits of an element.
        access_bytes: the bytes that a lane accesses at once: 1, 2, 4, 8 or 16.  Longer vectors are
            several accesses.
        swizzle: applied to the positions; a matrix over F2.
    Returns:
        The counts, by enumeration.  `Unknown` if positions depend on runtime variables, the
        elements of an access are not adjacent and aligned, or the budget is exceeded.
    Raises:
        ValueError: the number of elements or bytes does not fit; a lane accesses an element outside
            of the layout; an unknown GPU.
        HloError: the text of the layout is invalid.
    Source: NVIDIA "CUDA C++ Programming Guide", "Compute Capabilities", "Shared Memory".

    >>> rows = IndexingMap.over((32, 4), lambda d: [d[0], d[1]])
    >>> print(bank_conflicts(rows, "(32,32):(32,1)", access_bytes=16))
    32 wavefronts in 4 phases: 28 in excess
    >>> print(bank_conflicts(rows, "(32,32):(36,1)", access_bytes=16))
    4 wavefronts in 4 phases: 0 in excess
    """
    model = gpu(device)
    positions = tile_positions(thread_map, layout, element_bits, access_bytes)
    if isinstance(positions, Unknown):
        return positions
    if swizzle is not None:
        positions = swizzle_positions(positions, swizzle)
    bits = first_bits(positions, element_bits, access_bytes)
    if isinstance(bits, Unknown):
        return bits
    return _count_conflicts(bits // 8, access_bytes, model)


def tile_positions(
    thread_map: IndexingMap,
    layout: str | IndexingMap | CuteLayout,
    element_bits: int,
    access_bytes: int,
) -> NDArray[np.int64] | Unknown:
    """Return the positions by access, lane and element of the access; -1 for inactive lanes.

    Raises:
        ValueError: the number of elements or bytes does not fit.
    """
    width = _width(thread_map, element_bits, access_bytes)
    spans = [v.size for v in (*thread_map.dims, *thread_map.ranges)]
    elements = spans[1] if len(thread_map.dims) == 2 else 1
    affine, swizzle = _affine(layout)
    if len(affine.results) != 1 or affine.ranges:
        raise ValueError(f"a layout has one result, the position, and no range variables: {affine}")
    places = thread_map.then(affine)
    if places.runtime:
        names = ", ".join(rt.name for rt in places.runtime)
        return Unknown(f"positions depend on the runtime variables {names}")
    if prod(spans) > MAX_ACCESSES:
        return Unknown(f"{prod(spans):,} elements, more than the budget of {MAX_ACCESSES:,}")
    values = [np.arange(v.lower, v.upper + 1) for v in (*thread_map.dims, *thread_map.ranges)]
    grid = np.meshgrid(*values, indexing="ij")
    count = len(thread_map.dims)
    loops: dict[str, Any] = {v.name: x for v, x in zip(places.ranges, grid[count:], strict=True)}
    results = places(*grid[:count], **loops)
    assert results is not None, "arrays give arrays"
    active = np.ma.asarray(results[0])
    _check_reaches(thread_map, active, grid, affine)
    if active.count() and active.min() < 0:
        return Unknown(f"the layout has the negative position {active.min()}")
    positions: NDArray[np.int64] = np.ma.filled(active, _INACTIVE)
    apart = positions.reshape(spans[0], elements // width, width, prod(spans[count:]))
    by_access = apart.transpose(3, 1, 0, 2).reshape(-1, spans[0], width)
    return by_access if swizzle is None else swizzle_positions(by_access, swizzle)


def _check_reaches(
    thread_map: IndexingMap,
    positions: np.ma.MaskedArray[Any, Any],
    grid: Sequence[NDArray[np.int64]],
    layout: IndexingMap,
) -> None:
    """Raise an error for a lane that accesses an element without a position in the layout."""
    count = len(thread_map.dims)
    loops: dict[str, Any] = {
        v.name: x for v, x in zip(thread_map.ranges, grid[count:], strict=True)
    }
    elements = thread_map(*grid[:count], **loops)
    assert elements is not None, "arrays give arrays"
    missing = np.ma.getmaskarray(positions) & ~np.ma.getmaskarray(elements[0])
    if missing.any():
        at = tuple(np.argwhere(missing)[0])
        element = [int(x[at]) for x in elements]
        sizes = [v.upper + 1 for v in layout.dims]
        raise ValueError(
            f"lane {grid[0][at]} accesses element {element}, but the layout has {sizes} elements"
        )


def _width(thread_map: IndexingMap, element_bits: int, access_bytes: int) -> int:
    """Return the number of elements of one access."""
    if access_bytes not in (1, 2, 4, 8, 16) or element_bits < 1:
        raise ValueError(
            f"access_bytes={access_bytes}, element_bits={element_bits}: expected 1, 2, 4, 8 or 16 "
            "bytes, and at least 1 bit"
        )
    if access_bytes * 8 % element_bits:
        raise ValueError(f"{access_bytes} bytes are no whole number of {element_bits} bits")
    width = access_bytes * 8 // element_bits
    if not 1 <= len(thread_map.dims) <= 2:
        raise ValueError(
            f"the thread map needs the dimensions (lane, element of the vector), not "
            f"({', '.join(v.name for v in thread_map.dims)})"
        )
    vector = thread_map.dims[1:]
    elements = vector[0].size if vector else 1
    if elements % width:
        raise ValueError(
            f"a vector of {elements} elements is no whole number of accesses of {width} elements: "
            f"{access_bytes} bytes with {element_bits} bits each"
        )
    return width


def _affine(layout: str | IndexingMap | CuteLayout) -> tuple[IndexingMap, Swizzle | None]:
    """Return the affine part of a layout, and its swizzle."""
    if isinstance(layout, str):
        layout = parse_cute(layout)
    if isinstance(layout, IndexingMap):
        return layout, None
    return CuteLayout(layout.shape, layout.stride, None, layout.offset).map, layout.swizzle


def swizzle_positions(positions: NDArray[np.int64], swizzle: Swizzle) -> NDArray[np.int64]:
    """Return the images of active positions."""
    images: NDArray[np.int64] = np.where(
        positions == _INACTIVE, _INACTIVE, swizzle(np.maximum(positions, 0))
    )
    return images


def first_bits(
    positions: NDArray[np.int64], element_bits: int, access_bytes: int
) -> NDArray[np.int64] | Unknown:
    """Return the bit address of each access by access and lane; -8 for inactive lanes.

    `Unknown` if elements are not adjacent and aligned.
    """
    first = positions[..., :1]
    active = positions != _INACTIVE
    together = np.where(active.any(axis=-1, keepdims=True), first, _INACTIVE)
    wanted = np.where(together == _INACTIVE, _INACTIVE, together + np.arange(positions.shape[-1]))
    bits = first[..., 0] * element_bits
    wrong = (positions != wanted).any(axis=-1) | ((bits % (8 * access_bytes) != 0) & active[..., 0])
    if wrong.any():
        access, lane = (int(i) for i in np.argwhere(wrong)[0])
        elements = positions[access, lane].tolist()
        return Unknown(
            f"lane {lane} accesses elements {elements}: not adjacent and aligned to "
            f"{access_bytes} bytes"
        )
    return np.where(active[..., 0], bits, -8)


def wavefronts_of(
    first_bytes: NDArray[np.int64], access_bytes: int, device: Gpu
) -> NDArray[np.int64]:
    """Return the distinct words by access, warp, phase and bank."""
    words = _words(first_bytes, access_bytes, device)
    flat = np.sort(words.reshape(-1, words.shape[-1]), axis=1)
    is_new = flat != np.roll(flat, 1, axis=1)
    is_new[:, 0] = True
    is_new &= flat >= 0
    rows = np.broadcast_to(np.arange(len(flat))[:, np.newaxis], flat.shape)
    counts = np.bincount(
        (rows * device.banks + flat % device.banks)[is_new], minlength=len(flat) * device.banks
    )
    return counts.reshape(*words.shape[:-1], device.banks)


def _words(first_bytes: NDArray[np.int64], access_bytes: int, device: Gpu) -> NDArray[np.int64]:
    """Return the words by access, warp and phase; negative numbers for inactive lanes."""
    warp = device.threads_per_warp
    lanes_at_once = min(
        warp, device.banks * device.bank_bytes // max(access_bytes, device.bank_bytes)
    )
    accesses, lanes = first_bytes.shape
    padding = -lanes % warp
    padded = np.pad(first_bytes, ((0, 0), (0, padding)), constant_values=-1)
    first = np.floor_divide(padded, device.bank_bytes)
    each = np.arange(max(1, access_bytes // device.bank_bytes))
    words = np.where(first[..., np.newaxis] < 0, _INACTIVE, first[..., np.newaxis] + each)
    return words.reshape(accesses, -1, warp // lanes_at_once, lanes_at_once * len(each))


def _count_conflicts(
    first_bytes: NDArray[np.int64], access_bytes: int, device: Gpu
) -> BankConflicts:
    by_bank = wavefronts_of(first_bytes, access_bytes, device)
    degrees = by_bank.max(axis=-1)
    histogram = Counter(degrees[degrees > 0].tolist())
    worst = None
    if histogram:
        access, warp, phase, bank = (
            int(i) for i in np.unravel_index(by_bank.argmax(), by_bank.shape)
        )
        words = np.unique(_words(first_bytes, access_bytes, device)[access, warp, phase])
        in_bank = words[(words >= 0) & (words % device.banks == bank)]
        worst = BusiestBank(access, warp, phase, bank, tuple(in_bank.tolist()))
    return BankConflicts(
        int(degrees.sum()), sum(histogram.values()), dict(sorted(histogram.items())), worst
    )
