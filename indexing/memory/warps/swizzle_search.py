"""Search for swizzles without bank conflicts.

The swizzles of a family are enumerated, those that change fewest bits first.  The first that
reaches the lower bound, one wavefront for each phase, is a minimum; otherwise, the enumeration of
all of them proves it for the family.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from hlo.arguments import checked
from indexing.devices.gpus import Gpu, gpu
from indexing.maps.indexing_map import IndexingMap
from indexing.memory.layouts.cute import CuteLayout
from indexing.memory.layouts.swizzle import Swizzle
from indexing.memory.warps.bank_conflicts import (
    first_bits,
    swizzle_positions,
    tile_positions,
    wavefronts_of,
)
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from numpy.typing import NDArray

SwizzleFamily: TypeAlias = Literal["xor", "bits"]
"""Swizzles to search: CuTe's ``Sw<B,M,S>``, or any sum of each bit of the bank and a higher bit."""

MAX_SWIZZLES: Final = 1 << 17
"""Budget: the swizzles of a family to try."""


@dataclass(frozen=True, slots=True)
class SwizzleSearch:
    """A swizzle with the fewest wavefronts of a family.

    Attributes:
        swizzle: the swizzle; the identity if nothing is better.
        wavefronts: its wavefronts, for all thread maps together.
        phases: the lower bound, which no layout can beat.
        tried: the number of swizzles that were tried.
        family: their family.
        extent: the number of elements of shared memory that the swizzled tile needs.

    >>> import indexing
    >>> column = indexing.parse_map("(d0, d1) -> (d0, d1), domain: d0 in [0, 31], d1 in [0, 0]")
    >>> search = indexing.find_swizzle([column], "(32,32):(32,1)")
    >>> search.wavefronts, search.phases, search.excess
    (1, 1, 0)
    >>> search.proof
    '1 wavefront is the minimum: one for each phase'
    """

    swizzle: Swizzle
    wavefronts: int
    phases: int
    tried: int
    family: SwizzleFamily
    extent: int

    @property
    def excess(self) -> int:
        """Wavefronts that conflicts cost."""
        return self.wavefronts - self.phases

    @property
    def proof(self) -> str:
        """The reason why no swizzle of the family has fewer wavefronts."""
        if not self.excess:
            verb = "is" if self.wavefronts == 1 else "are"
            return f"{_wavefronts(self.wavefronts)} {verb} the minimum: one for each phase"
        return f"all {self.tried} swizzles of the family {self.family!r} were tried"

    def __str__(self) -> str:
        name = str(self.swizzle) if self.swizzle.columns else "no swizzle"
        return f"{name}: {_wavefronts(self.wavefronts)}; {self.proof}"


def _wavefronts(number: int) -> str:
    return "1 wavefront" if number == 1 else f"{number} wavefronts"


@checked
def find_swizzle(
    thread_maps: Sequence[IndexingMap],
    layout: str | IndexingMap | CuteLayout,
    device: str | Gpu = "A100",
    element_bits: int = 32,
    access_bytes: int = 4,
    *,
    family: SwizzleFamily = "xor",
) -> SwizzleSearch | Unknown:
    """Return a swizzle of a tile with the fewest wavefronts, and the proof that it is one.

    Args:
        thread_maps: the accesses to the tile, each as in `indexing.bank_conflicts`: for example
            the map that writes rows, and the one that reads columns.
        layout: the position of each element of the tile before the swizzle, in elements.
        device, element_bits, access_bytes: see `indexing.bank_conflicts`.
        family: "xor": the swizzles ``Sw<B,M,S>`` of CuTe.  "bits": those that add to each bit of
            the bank at most one higher bit of the position.
    Returns:
        The first minimum in the order of the search; `Unknown` if the conflicts are, or if the
        family exceeds the budget.
    Raises:
        ValueError: no thread map is given; or as `indexing.bank_conflicts`.
    Source: CUTLASS ``include/cute/swizzle.hpp``; Triton, "Linear Layouts".

    >>> row = IndexingMap.over((32, 1), lambda d: [d[1], d[0]])
    >>> column = IndexingMap.over((32, 1), lambda d: [d[0], d[1]])
    >>> print(find_swizzle([row, column], "(32,32):(32,1)"))
    Sw<5,0,5>: 2 wavefronts; 2 wavefronts are the minimum: one for each phase
    """
    if not thread_maps:
        raise ValueError("`thread_maps` is empty: expected the accesses to the tile")
    model = gpu(device)
    positions: list[NDArray[np.int64]] = []
    for each in thread_maps:
        own = tile_positions(each, layout, element_bits, access_bytes)
        if isinstance(own, Unknown):
            return own
        positions.append(own)
    tiles = _SharedTiles(tuple(positions), element_bits, access_bytes, model)
    if tiles.wavefronts(Swizzle(())) is None:
        return Unknown(
            "the elements of an access are not adjacent and aligned: `bank_conflicts` names them"
        )
    space = _Space(
        vector=(access_bytes * 8 // element_bits).bit_length() - 1,
        bank=(max(1, model.banks * model.bank_bytes * 8 // element_bits) - 1).bit_length(),
        top=(tiles.extent(Swizzle(())) - 1).bit_length(),
    )
    if space.size(family) > MAX_SWIZZLES:
        return Unknown(
            f"the family {family!r} has {space.size(family):,} swizzles of {space.top} bits, more "
            f"than the budget of {MAX_SWIZZLES:,}"
        )
    best, tried = tiles.minimum(space.swizzles(family))
    return SwizzleSearch(best[1], best[0], tiles.phases, tried, family, tiles.extent(best[1]))


@dataclass(frozen=True, slots=True)
class _SharedTiles:
    """The positions that several thread maps access."""

    positions: tuple[NDArray[np.int64], ...]
    element_bits: int
    access_bytes: int
    device: Gpu

    def wavefronts(self, swizzle: Swizzle) -> int | None:
        """Return the wavefronts; `None` if elements of an access are apart."""
        total = 0
        for each in self.positions:
            by_bank = self._by_bank(swizzle_positions(each, swizzle))
            if by_bank is None:
                return None
            total += int(by_bank.max(axis=-1).sum())
        return total

    @property
    def phases(self) -> int:
        """The number of phases with an active lane."""
        banks = [self._by_bank(each) for each in self.positions]
        return sum([int((each.max(axis=-1) > 0).sum()) for each in banks if each is not None])

    def extent(self, swizzle: Swizzle) -> int:
        """Return the number of elements that the swizzled tile needs."""
        return 1 + max(
            int(swizzle_positions(each, swizzle).max(initial=0)) for each in self.positions
        )

    def minimum(self, swizzles: Iterable[Swizzle]) -> tuple[tuple[int, Swizzle], int]:
        """Return the fewest wavefronts with their swizzle, and the number of swizzles tried."""
        best: tuple[int, Swizzle] | None = None
        phases, tried = self.phases, 0
        for swizzle in swizzles:
            tried += 1
            wavefronts = self.wavefronts(swizzle)
            if wavefronts is not None and (best is None or wavefronts < best[0]):
                best = wavefronts, swizzle
                if wavefronts == phases:
                    break
        assert best is not None, "the identity is in each family"
        return best, tried

    def _by_bank(self, positions: NDArray[np.int64]) -> NDArray[np.int64] | None:
        first = first_bits(positions, self.element_bits, self.access_bytes)
        if isinstance(first, Unknown):
            return None
        return wavefronts_of(first // 8, self.access_bytes, self.device)


@dataclass(frozen=True, slots=True)
class _Space:
    """The bits of positions: those of a vector, of the bank and its bytes, and all."""

    vector: int
    bank: int
    top: int

    @property
    def targets(self) -> range:
        """The bits that choose a bank: those above a vector, below a row of all banks."""
        return range(self.vector, max(self.vector, min(self.bank, self.top)))

    def size(self, family: SwizzleFamily) -> int:
        """Number of swizzles of a family."""
        if family == "xor":
            return self.top**3
        return prod([self.top - bit for bit in self.targets])

    def swizzles(self, family: SwizzleFamily) -> Iterator[Swizzle]:
        """Yield the swizzles of a family, those that change fewest bits first."""
        yield Swizzle(())
        if family == "xor":
            for bits, base in product(range(1, self.top + 1), range(self.vector, self.top)):
                for shift in range(bits, self.top - base - bits + 1):
                    yield Swizzle.xor(bits, base, shift)
        else:
            yield from self._sums()

    def _sums(self) -> Iterator[Swizzle]:
        for number in range(1, len(self.targets) + 1):
            for changed in combinations(self.targets, number):
                for sources in product(*[range(bit + 1, self.top) for bit in changed]):
                    columns = [1 << i for i in range(self.top)]
                    for bit, source in zip(changed, sources, strict=True):
                        columns[source] |= 1 << bit
                    yield Swizzle(tuple(columns))
