"""Sectors of gathers, compared with the enumeration of all values of the index array."""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np
import pytest

import hlo
import indexing
from indexing.devices.gpus import Gpu
from indexing.memory.warps.access import MemoryAccess
from simplifier.unknown import Unknown

SMALL: Final = Gpu("small", 1024, 64, 4, 99, "for tests", 8, 16, 16, vector_bytes=8)
"""Warps of 4 lanes, sectors of 8 bytes."""


def gather(rows: int, columns: int, count: int, order: str = "C") -> hlo.Instruction:
    """A gather of whole rows, an embedding; its result is column-major for the order F."""
    layout = "{1,0}" if order == "C" else "{0,1}"
    return hlo.parse(f"""ENTRY e {{
      p = f32[{rows},{columns}] parameter(0)  i = s32[{count},1] parameter(1)
      ROOT g = f32[{count},{columns}]{layout} gather(p, i), offset_dims={{1}},
        collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1,
        slice_sizes={{1,{columns}}} }}""").entry.root


def require_access(access: MemoryAccess | Unknown) -> MemoryAccess:
    assert isinstance(access, MemoryAccess), access
    return access


def sectors(starts: tuple[int, ...], columns: int, order: str, offset: int) -> int:
    """The sectors that warps of 4 threads touch, a thread for each element of the result."""
    row, column = np.unravel_index(
        np.arange(len(starts) * columns), (len(starts), columns), "C" if order == "C" else "F"
    )
    touched = (np.array(starts)[row] * columns + column) * 4 + offset
    return sum(len(set(touched[k : k + 4] // 8)) for k in range(0, len(touched), 4))


# fmt: off
TABLE: Final = [
    # rows, columns, count, order, offset: columns of 4 bytes; what a row is
    (7, 1, 5, "C", 0),   # half a sector: rows 0, 2, 4, 6 are apart
    (8, 1, 5, "C", 4),   # the same, from the middle of a sector
    (2, 2, 7, "C", 0),   # a sector: a warp reads two rows
    (3, 2, 5, "C", 0),
    (3, 4, 4, "C", 0),   # two sectors: a warp reads one row
    (3, 4, 4, "C", 4),   # three sectors wherever it starts
    (2, 6, 5, "C", 0),   # three sectors: a warp reads parts of two rows
    (3, 6, 5, "C", 0),
    (4, 3, 4, "F", 0),   # one element of a row at a time
    (4, 5, 4, "F", 4),
]
# fmt: on


@pytest.mark.parametrize(("rows", "columns", "count", "order", "offset"), TABLE)
def test_the_fewest_and_the_most_sectors_are_those_of_all_starts(
    rows: int, columns: int, count: int, order: str, offset: int
) -> None:
    instruction = gather(rows, columns, count, order)
    load = require_access(indexing.access(instruction, threads=8, device=SMALL, offset=offset)[0])
    every = [sectors(s, columns, order, offset) for s in product(range(rows), repeat=count)]
    assert (load.best.sectors, load.sectors) == (min(every), max(every))
    assert load.grade == "exact"


# fmt: off
UNKNOWN: Final = [
    # rows, columns, count, reason
    (9, 3, 4, "12 bytes are neither whole sectors of 8 bytes nor a part of one"),
    (6, 1, 5, "selects one of 6 rows: too few to assign each of 4 elements"),
]
# fmt: on


@pytest.mark.parametrize(("rows", "columns", "count", "reason"), UNKNOWN)
def test_other_rows_are_unknown(rows: int, columns: int, count: int, reason: str) -> None:
    access = indexing.access(gather(rows, columns, count), threads=8, device=SMALL)[0]
    assert isinstance(access, Unknown)
    assert reason in access.reason


def test_an_element_has_one_row_in_both_loads_of_a_thread() -> None:
    """Rows of two elements, between sectors: a thread reads a row with two loads."""
    load = require_access(
        indexing.access(gather(4, 2, 5), threads=8, unroll=2, device=SMALL, offset=4)[0]
    )
    every: list[int] = []
    for starts in product(range(4), repeat=5):
        loads = [[(start * 2 + k) * 4 + 4 for start in starts] for k in (0, 1)]
        warps = [addresses[w : w + 4] for addresses in loads for w in (0, 4)]
        every.append(sum(len({address // 8 for address in warp}) for warp in warps))
    assert len(load.instructions) == 2
    assert (load.best.sectors, load.sectors) == (min(every), max(every))


def test_rows_of_whole_lines_are_counted_wherever_they_start() -> None:
    """Each warp reads a part of one row; rows of 768 floats start at lines."""
    rows, indices = indexing.access(gather(50, 768, 16), unroll=4)
    assert (require_access(rows).histogram, require_access(rows).ratio) == ({16: 96}, 1)
    assert [load.bytes_per_lane for load in require_access(rows).instructions] == [16]
    assert require_access(indices).histogram == {1: 96}


def test_several_gathered_starts_are_unknown() -> None:
    elements = hlo.parse("""ENTRY e { p = f32[9,8] parameter(0)  i = s32[16,2] parameter(1)
      ROOT g = f32[16] gather(p, i), offset_dims={}, collapsed_slice_dims={0,1},
        start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1} }""").entry.root
    access = indexing.access(elements)[0]
    assert isinstance(access, Unknown)
    assert "only one gathered start is counted" in access.reason


def test_an_embedding_reads_a_sector_for_each_row_of_a_sector() -> None:
    rows, indices = indexing.access(gather(50257, 8, 1024))
    assert (require_access(rows).best.histogram, require_access(rows).histogram) == (
        {1: 256},
        {4: 256},
    )
    assert require_access(indices).histogram == {1: 256}
