"""`Transactions`: the bytes, sectors and lines that all warps move with one load or store.

All lanes of a warp access memory at the same time.  The hardware moves each aligned segment of
memory that a lane touches once: sectors between the caches, lines in the cache.  The counts are
exact: warps in the same class (`indexing.memory.warps.warp_classes`) are counted together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from indexing.devices.gpus import Gpu
from indexing.memory.warps.warp_classes import MAX_POINTS, WarpAccesses, WarpClass, warp_classes
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEGMENTS: Final = (32, 64, 128)
"""The sizes in bytes of the segments that are always counted."""
_POINTS_AT_ONCE: Final = 1 << 18
_INACTIVE: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class WorstWarp:
    """A warp that moves the most sectors with one load or store.

    Attributes:
        where: its block, warp and loop iterations, by the names of the variables.
        sectors: the number of sectors.
        addresses: for each lane, the address of its first byte from the start of the array, or
            `None` for an inactive lane.
    """

    where: Mapping[str, int]
    sectors: int
    addresses: tuple[int | None, ...]

    def __str__(self) -> str:
        place = ", ".join(f"{name} {value}" for name, value in self.where.items())
        sectors = "1 sector" if self.sectors == 1 else f"{self.sectors} sectors"
        return sectors + (f" at {place}" if place else "")


@dataclass(frozen=True, slots=True)
class Transactions:
    """Bytes, sectors and lines that all warps move, with one load or store or with several.

    Attributes:
        warps: how often a warp with an active lane executes the instruction.
        bytes_requested: the bytes that the active lanes request; several lanes may request the same
            bytes.
        bytes_used: the distinct bytes that each warp requests, added over all warps.
        ideal_sectors: the fewest sectors that have room for these bytes, added over all warps.
        segments: the number of aligned segments touched, by their size in bytes, added over all
            warps.
        sector_bytes, line_bytes: the sizes of a sector and of a line.
        histogram: the number of warps by the number of sectors that they touch.
        worst: a warp that touches the most sectors; `None` if no lane is active.
    """

    warps: int
    bytes_requested: int
    bytes_used: int
    ideal_sectors: int
    segments: Mapping[int, int]
    sector_bytes: int
    line_bytes: int
    histogram: Mapping[int, int]
    worst: WorstWarp | None

    @property
    def sectors(self) -> int:
        """Number of sectors touched."""
        return self.segments[self.sector_bytes]

    @property
    def lines(self) -> int:
        """Number of lines touched."""
        return self.segments[self.line_bytes]

    @property
    def bytes_transferred(self) -> int:
        """Bytes of the sectors touched."""
        return self.sectors * self.sector_bytes

    @property
    def ratio(self) -> float:
        """Bytes transferred for each distinct byte that a warp requests; 1 is the optimum."""
        return self.bytes_transferred / self.bytes_used if self.bytes_used else 1.0


def total(parts: Sequence[Transactions], device: Gpu) -> Transactions:
    """Return the sums over several loads or stores; the worst warp is the worst of all."""
    histogram, segments = Counter[int](), Counter[int](dict.fromkeys(segment_sizes(device), 0))
    for part in parts:
        histogram.update(part.histogram)
        segments.update(part.segments)
    worst = [part.worst for part in parts if part.worst is not None]
    return Transactions(
        sum([part.warps for part in parts]),
        sum([part.bytes_requested for part in parts]),
        sum([part.bytes_used for part in parts]),
        sum([part.ideal_sectors for part in parts]),
        dict(segments),
        device.sector_bytes,
        device.line_bytes,
        dict(sorted(histogram.items())),
        max(worst, key=lambda warp: warp.sectors, default=None),
    )


def segment_sizes(device: Gpu) -> tuple[int, ...]:
    """Return the sizes in bytes of the segments to count."""
    return tuple(sorted({*SEGMENTS, device.sector_bytes, device.line_bytes}))


def transactions(
    accesses: WarpAccesses,
    *,
    element_bits: int,
    elements: int,
    device: Gpu,
    offset: int = 0,
    budget: int = MAX_POINTS,
) -> Transactions | Unknown:
    """Return what all warps move with one load or store.

    Args:
        accesses: the position of the first element that each lane of each warp accesses.
        element_bits: the bits of one element, a power of two.  Elements of fewer than 8 bits share
            bytes, and a lane requests the whole byte.
        elements: the number of adjacent elements that a lane accesses; positions are multiples.
        device: the sizes of sectors and lines.
        offset: the address of position 0, in bytes from a line.
        budget: the number of points to enumerate.
    Returns:
        The counts; `Unknown` beyond the budget.
    """
    sizes = segment_sizes(device)
    if element_bits & (element_bits - 1) or element_bits > 8 * device.vector_bytes:
        return Unknown(f"elements of {element_bits} bits have no load or store of their own")
    modulus = sizes[-1] * 8 // element_bits
    classes = warp_classes(accesses, modulus, budget)
    if isinstance(classes, Unknown):
        return classes
    counter = _Counter(sizes, element_bits, elements, device, offset)
    for each in classes:
        counter.add(each)
    return counter.transactions()


class _Counter:
    """Counts of segments, added class by class."""

    def __init__(
        self, sizes: Sequence[int], element_bits: int, elements: int, device: Gpu, offset: int
    ) -> None:
        self.bits, self.device, self.offset = element_bits, device, offset
        self.lane_bytes = -(-element_bits * elements // 8)
        self.segments = dict.fromkeys(sizes, 0)
        self.histogram = Counter[int]()
        self.warps = self.requested = self.used = self.ideal = 0
        self.worst: tuple[int, WarpClass, int, int] | None = None

    def add(self, each: WarpClass) -> None:
        """Add the warps of a class."""
        lanes = np.where(each.active, each.positions, _INACTIVE)
        lanes.sort(axis=1)
        is_active = lanes != _INACTIVE
        lanes[~is_active] = 0
        offsets = list(each.alignments)
        at_once = max(1, _POINTS_AT_ONCE // lanes.size)
        for start in range(0, len(offsets), at_once):
            self._add(each, lanes, is_active, offsets[start : start + at_once])

    def _add(
        self,
        each: WarpClass,
        lanes: NDArray[np.int64],
        is_active: NDArray[np.bool_],
        offsets: Sequence[int],
    ) -> None:
        """Add the warps of a class at some offsets; `lanes` are its positions, sorted."""
        warps = [each.alignments[offset].warps for offset in offsets]
        rows, pairs = is_active.any(axis=1), is_active[:, 1:]
        first = lanes + np.array(offsets, dtype=np.int64)[:, np.newaxis, np.newaxis]
        byte = first * self.bits // 8 + self.offset
        distinct = _changes(byte if self.bits < 8 else first, pairs) + rows
        self.warps += int(rows.sum()) * sum(warps)
        self.requested += int(is_active.sum()) * self.lane_bytes * sum(warps)
        self.used += _weighted_sum(distinct, warps) * self.lane_bytes
        self.ideal += _weighted_sum(
            -(-distinct * self.lane_bytes // self.device.sector_bytes), warps
        )
        for size in self.segments:
            touched = _changes(byte // size, pairs) + rows
            self.segments[size] += _weighted_sum(touched, warps)
            if size == self.device.sector_bytes:
                self._tally(touched, each, offsets)

    def _tally(self, touched: NDArray[np.int64], each: WarpClass, offsets: Sequence[int]) -> None:
        """Add the sectors of each row of a class at some offsets to the histogram."""
        for own, offset in zip(touched, offsets, strict=True):
            for sectors, count in enumerate(np.bincount(own).tolist()):
                if sectors and count:
                    self.histogram[sectors] += count * each.alignments[offset].warps
        most = int(touched.max())
        if most and (self.worst is None or most > self.worst[0]):
            number, row = divmod(int(touched.argmax()), touched.shape[1])
            self.worst = most, each, row, offsets[number]

    def transactions(self) -> Transactions:
        """Return the counts."""
        return Transactions(
            self.warps,
            self.requested,
            self.used,
            self.ideal,
            self.segments,
            self.device.sector_bytes,
            self.device.line_bytes,
            dict(sorted(self.histogram.items())),
            self._worst_warp(),
        )

    def _worst_warp(self) -> WorstWarp | None:
        if self.worst is None:
            return None
        sectors, each, row, offset = self.worst
        where, positions = each.warp_at(row, offset)
        return WorstWarp(where, sectors, tuple(self._addresses(positions, each.active[row])))

    def _addresses(
        self, positions: NDArray[np.int64], active: NDArray[np.bool_]
    ) -> Iterator[int | None]:
        for position, is_active in zip(positions.tolist(), active.tolist(), strict=True):
            yield position * self.bits // 8 + self.offset if is_active else None


def _changes(numbers: NDArray[np.int64], pairs: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how often neighbours along the last axis differ, where both lanes are active."""
    changes: NDArray[np.int64] = np.count_nonzero(
        (numbers[..., 1:] != numbers[..., :-1]) & pairs, axis=-1
    )
    return changes


def _weighted_sum(counts: NDArray[np.int64], weights: Sequence[int]) -> int:
    """Return the sum of the counts at each offset, times the warps at the offset."""
    totals = counts.sum(axis=1).tolist()
    return sum([count * weight for count, weight in zip(totals, weights, strict=True)])
