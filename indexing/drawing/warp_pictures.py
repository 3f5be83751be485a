"""Pictures of warps: from lanes to the sectors of memory, and to the banks of shared memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from hlo.arguments import checked
from indexing.devices.gpus import Gpu, gpu
from indexing.drawing.drawing import Backend, as_drawing
from indexing.drawing.figures import (
    BarChart,
    BarPart,
    CellGrid,
    DrawnBar,
    DrawnCell,
    DrawnLink,
    DrawnPanel,
    Figure,
    LinkDiagram,
    class_shade,
    heat_shades,
)
from indexing.drawing.style import Theme
from indexing.maps.indexing_map import IndexingMap
from indexing.memory.layouts.cute import CuteLayout
from indexing.memory.layouts.swizzle import Swizzle
from indexing.memory.warps.access import Accesses, MemoryAccess, MemoryInstruction
from indexing.memory.warps.bank_conflicts import (
    bank_conflicts,
    first_bits,
    swizzle_positions,
    tile_positions,
    wavefronts_of,
)
from simplifier.unknown import Unknown

MAX_LOADS: Final = 4
"""Number of arrays of one picture; further ones are counted."""
MAX_BARS: Final = 12
MAX_PHASES: Final = 32
_CONFLICT: Final = 4
"""The shade of banks with several words."""


# ---------------------------------------------------------------- global memory


def plot_accesses(accesses: Accesses, backend: Backend, theme: Theme) -> Any:
    """Return a picture of loads and of the store; see `Accesses.plot`."""
    return as_drawing(accesses_figure(accesses), backend, theme)


def accesses_figure(accesses: Accesses, title: str = "") -> Figure:
    """Return the lanes of a worst warp of each load and of the store, and its sectors."""
    every = [(f"load of operand {number}", each) for number, each in enumerate(accesses.loads)]
    stored = accesses.store
    name = ""
    if isinstance(stored, MemoryAccess) and stored.array is not None:
        name = f" of {stored.array.instruction.name}"
    return arrays_figure([*every, ("store", stored)], title or f"memory accesses{name}")


def arrays_figure(every: Sequence[tuple[str, MemoryAccess | Unknown]], title: str) -> Figure:
    """Return the lanes of a worst warp of each access, by its role, and its sectors."""
    panels: list[DrawnPanel] = []
    notes: list[str] = []
    for role, access in every:
        if isinstance(access, Unknown):
            notes.append(f"{role}: unknown: {access.reason}")
        elif len(panels) >= 2 * MAX_LOADS and role.startswith("load"):
            notes.append(f"{role}: not drawn: a picture has {MAX_LOADS} loads")
        else:
            panels += _access_panels(access, role)
    return Figure(title, tuple(panels), tuple(notes))


def plot_access(access: MemoryAccess, backend: Backend, theme: Theme) -> Any:
    """Return a picture of one load or store; see `MemoryAccess.plot`."""
    role = "array" if access.array is None else access.array.instruction.name
    title = f"memory access of {role}"
    return as_drawing(Figure(title, tuple(_access_panels(access, role))), backend, theme)


def _access_panels(access: MemoryAccess, role: str) -> Iterator[DrawnPanel]:
    name = role if access.array is None else access.array.instruction.name
    worst = next((each for each in access.instructions if _is_worst(each, access)), None)
    if worst is not None:
        yield _lanes(access, worst, f"{role}, {name}" if role != name else name, name)
    yield _histogram(access, name)


def _is_worst(instruction: MemoryInstruction, access: MemoryAccess) -> bool:
    own, worst = instruction.transactions.worst, access.worst
    return own is not None and worst is not None and own.sectors == worst.sectors


def _ratio_text(access: MemoryAccess) -> str:
    """The ratio; a ratio of upper bounds is none."""
    return f"{access.ratio:.3g}" if access.grade == "exact" else "?"


def _lanes(
    access: MemoryAccess, instruction: MemoryInstruction, title: str, name: str
) -> LinkDiagram:
    """The lanes of a worst warp, and the sectors that they touch."""
    worst = instruction.transactions.worst
    assert worst is not None
    size, width = access.device.sector_bytes, instruction.bytes_per_lane
    line = access.device.line_bytes
    touched: dict[int, list[int]] = {}
    for lane, address in enumerate(worst.addresses):
        for sector in range(0) if address is None else _sectors(address, width, size):
            touched.setdefault(sector, []).append(lane)
    sectors = sorted(touched)
    above = tuple(
        [
            DrawnCell(
                *(0, lane, f"lane {lane}", "inactive" if at is None else at),
                *(int(at is not None), str(lane)),
            )
            for lane, at in enumerate(worst.addresses)
        ]
    )
    below = tuple(
        [
            DrawnCell(
                *(1, k, f"sector {sector * size}", len(touched[sector])),
                *(class_shade(sector * size // line), str(sector * size)),
                f"bytes {sector * size} to {sector * size + size - 1}, line "
                f"{sector * size // line}: lanes {', '.join(map(str, touched[sector]))}",
            )
            for k, sector in enumerate(sectors)
        ]
    )
    links = []
    for k, sector in enumerate(sectors):
        for lane in touched[sector]:
            address = worst.addresses[lane]
            assert address is not None
            middle = (max(address, sector * size) + min(address + width, (sector + 1) * size)) / 2
            links.append(DrawnLink(lane, k, (middle - sector * size) / size))
    coalesced = "coalesced" if access.coalesced else "not coalesced"
    ratio = _ratio_text(access)
    bound = "at most " if access.grade == "may" else ""
    return LinkDiagram(
        f"{title}: {worst}",
        name,
        above,
        below,
        ("lane", f"sectors of {size} bytes"),
        tuple(links),
        gaps=tuple([k for k in range(1, len(sectors)) if sectors[k] > sectors[k - 1] + 1]),
        notes=(
            "a warp with the most sectors; texts of sectors: address of the first byte; colours: "
            f"lines of {line} bytes",
            f"all warps: {bound}{access.sectors:,} sectors; bytes transferred / bytes used = "
            f"{ratio}; {coalesced} by XLA's rule",
        ),
    )


def _sectors(address: int, width: int, size: int) -> range:
    """Return the numbers of the sectors that some bytes touch."""
    return range(address // size, (address + width - 1) // size + 1)


def _histogram(access: MemoryAccess, name: str) -> BarChart:
    """The number of warps by the number of sectors that they touch."""
    listed = sorted(access.histogram.items(), reverse=True)
    bars = [
        DrawnBar(
            f"{sectors} sector{'s' * (sectors != 1)}",
            (BarPart(warps, 1, f"{warps:,} warps touch {sectors} sectors"),),
            f"{warps:,}",
        )
        for sectors, warps in listed[:MAX_BARS]
    ]
    left_out = f"the {MAX_BARS} largest of {len(listed)} numbers of sectors"
    notes = (left_out,) if len(listed) > MAX_BARS else ()
    return BarChart(
        "warps by sectors of one instruction", f"{name} warps", tuple(bars), notes=notes
    )


# ---------------------------------------------------------------- shared memory


@checked
def plot_banks(
    thread_map: IndexingMap,
    layout: str | IndexingMap | CuteLayout,
    device: str | Gpu = "A100",
    element_bits: int = 32,
    access_bytes: int = 4,
    *,
    swizzle: Swizzle | None = None,
    backend: Backend = "svg",
    theme: Theme = "auto",
) -> Any:
    """Return a picture of the bank conflicts of warps in shared memory.

    Cells are the distinct words in each bank, in each phase; the largest number of a row is its
    number of wavefronts.  Arrows lead from the lanes of a worst phase to their banks.

    Args:
        thread_map, layout, device, element_bits, access_bytes, swizzle: as in `bank_conflicts`.
        backend, theme: as in `Answer.plot`.
    Returns:
        A `Drawing`; a note has the reason if the conflicts are unknown.
    Raises:
        HloError, ValueError: as `bank_conflicts`.
        ImportError: matplotlib is not installed.

    >>> column = IndexingMap.over((32, 1), lambda d: [d[0], d[1]])
    >>> plot_banks(column, "(32,32):(32,1)")
    <drawing of 'banks: 32 wavefronts in 1 phase: 31 in excess'>
    """
    model = gpu(device)
    counted = bank_conflicts(thread_map, layout, model, element_bits, access_bytes, swizzle=swizzle)
    positions = tile_positions(thread_map, layout, element_bits, access_bytes)
    if not isinstance(positions, Unknown) and swizzle is not None:
        positions = swizzle_positions(positions, swizzle)
    bits = positions
    if not isinstance(positions, Unknown):
        bits = first_bits(positions, element_bits, access_bytes)
    if isinstance(counted, Unknown) or isinstance(bits, Unknown):
        return as_drawing(Figure("banks", (), (f"unknown: {counted}",)), backend, theme)
    by_bank = wavefronts_of(bits // 8, access_bytes, model)
    panels: list[DrawnPanel] = [_bank_grid(by_bank, model)]
    if counted.worst is not None:
        place = (counted.worst.access, counted.worst.warp, counted.worst.phase)
        panels.insert(0, _bank_links(bits // 8, access_bytes, place, by_bank, model))
    return as_drawing(Figure(f"banks: {counted}", tuple(panels)), backend, theme)


def _bank_grid(by_bank: Any, model: Gpu) -> CellGrid:
    """The distinct words by phase and bank."""
    places = [place for place in np.ndindex(*by_bank.shape[:-1]) if by_bank[place].max() > 0]
    shown = places[:MAX_PHASES]
    shades, legend = heat_shades([int(v) for place in shown for v in by_bank[place]])
    cells = []
    for row, place in enumerate(shown):
        for bank, words in enumerate(by_bank[place].tolist()):
            index = ",".join(map(str, (*place, bank)))
            title = "access {}, warp {}, phase {}".format(*place)
            text = f"{title}, bank {bank}: {words} distinct words"
            label = str(words) if words else ""
            cells.append(DrawnCell(row, bank, index, words, shades[words], label, text))
    notes = ["rows: access, warp, phase; the largest number of a row is its wavefronts"]
    if len(places) > len(shown):
        notes.append(f"cut to the first {len(shown)} of {len(places):,} phases")
    *others, (last, text) = legend or ((0, "0"),)
    return CellGrid(
        "distinct words in each bank",
        "banks",
        len(shown),
        model.banks,
        tuple(cells),
        legend=(*others, (last, f"{text} word{'s' * (text != '1')}")),
        row_labels=tuple([",".join(map(str, place)) for place in shown]),
        column_labels=tuple(map(str, range(model.banks))),
        axes=("phase", "bank"),
        notes=tuple(notes),
    )


def _bank_links(
    first_bytes: Any, access_bytes: int, place: tuple[int, int, int], by_bank: Any, model: Gpu
) -> LinkDiagram:
    """The lanes of one phase, and their banks."""
    access, warp, phase = place
    lanes_at_once = model.threads_per_warp // by_bank.shape[2]
    start = warp * model.threads_per_warp + phase * lanes_at_once
    lanes = range(start, min(start + lanes_at_once, first_bytes.shape[1]))
    words = [_words(int(first_bytes[access, lane]), access_bytes, model) for lane in lanes]
    used = Counter(word % model.banks for word in {word for own in words for word in own})
    above = [
        _lane_cell(k, lane, own) for k, (lane, own) in enumerate(zip(lanes, words, strict=True))
    ]
    below = [_bank_cell(bank, used[bank]) for bank in range(model.banks)]
    links = [DrawnLink(k, word % model.banks) for k, own in enumerate(words) for word in own]
    legend = [(0, "no word"), (1, "one word"), (_CONFLICT, "several words: a conflict")]
    present = {cell.shade for cell in below}
    return LinkDiagram(
        f"a worst phase: access {access}, warp {warp}, phase {phase}",
        "worst phase",
        tuple(above),
        tuple(below),
        ("lane", "bank"),
        tuple(links),
        tuple([entry for entry in legend if entry[0] in present]),
    )


def _words(first_byte: int, access_bytes: int, model: Gpu) -> range:
    """Return the words that a lane accesses; none for an inactive lane."""
    first = first_byte // model.bank_bytes
    count = max(1, access_bytes // model.bank_bytes) if first_byte >= 0 else 0
    return range(first, first + count)


def _lane_cell(column: int, lane: int, words: range) -> DrawnCell:
    text = ", ".join(map(str, words))
    value = " ".join(map(str, words)) or "inactive"
    title = f"lane {lane}: words {text or 'none'}"
    return DrawnCell(0, column, f"lane {lane}", value, int(bool(words)), str(lane), title)


def _bank_cell(bank: int, words: int) -> DrawnCell:
    shade = _CONFLICT if words > 1 else words
    title = f"bank {bank}: {words} distinct words"
    return DrawnCell(1, bank, f"bank {bank}", words, shade, str(bank), title)
