"""Pictures of traffic: the bytes of instructions as bars, and their rooflines."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

from indexing.devices.gpus import Gpu
from indexing.drawing.drawing import Backend, as_drawing
from indexing.drawing.figures import (
    BarChart,
    BarPart,
    DrawnBar,
    DrawnPanel,
    Figure,
    Roofline,
    RooflinePoint,
)
from indexing.drawing.style import Theme
from indexing.memory.movement.amounts import TotalBounds
from indexing.memory.movement.memory_spaces import SpaceTraffic
from indexing.memory.movement.roofline import Peak, peak_rates
from indexing.memory.movement.traffic_values import InstructionTraffic, Traffic
from simplifier.unknown import Unknown

_READ: Final = 1
_WRITTEN: Final = 2
_PADDING: Final = 7


def plot_traffic(
    traffic: Traffic,
    peak: Peak | str | None,
    device: str | Gpu | None,
    top: int,
    backend: Backend,
    theme: Theme,
) -> Any:
    """Return a picture of traffic; see `Traffic.plot`."""
    return as_drawing(traffic_figure(traffic, peak, device, top), backend, theme)


def traffic_figure(
    traffic: Traffic, peak: Peak | str | None = None, device: str | Gpu | None = None, top: int = 12
) -> Figure:
    """Return the bars of the instructions that move the most bytes, and their roofline.

    Raises:
        ValueError: `top` is less than 1, the rates are both given, or those of the device are not
            known.
    """
    if top < 1:
        raise ValueError(f"`top` is at least 1, got {top}")
    if peak is not None and device is not None:
        raise ValueError("`peak` and `device` are both given: pass one of them")
    rates = peak_rates(peak)
    if device is not None:
        rates = Peak.of(device)
    ranked = traffic.ranked
    known = [each for each in ranked if not isinstance(each.bytes, Unknown)]
    panels: list[DrawnPanel] = [_bars(known, top)]
    notes = []
    if rates is not None:
        if rates.bytes is None or rates.flops is None:
            notes.append("no roofline: it needs the rates of bytes and of operations")
        else:
            panels.append(_roofline(known, top, rates.bytes, rates.flops, device))
    unknown = [each for each in ranked if isinstance(each.bytes, Unknown)]
    notes += [f"`{_label(each)}`: unknown: {each.bytes}" for each in unknown[:top]]
    if len(unknown) > top:
        notes.append(f"{len(unknown) - top:,} more instructions with unknown bytes")
    name = getattr(traffic.target, "name", "")
    title = f"bytes of {name}: {_total_text(traffic.total.bytes)}"
    return Figure(title, tuple(panels), tuple(notes))


def _total_text(total: TotalBounds) -> str:
    lower = bytes_text(total.lower)
    if total.number is not None:
        return lower
    return f"at least {lower}" if total.upper is None else f"{lower} to {bytes_text(total.upper)}"


def _bars(known: list[InstructionTraffic], top: int) -> BarChart:
    total = sum(_bytes_moved(each) for each in known)
    bars = [_bar(each, total) for each in known[:top]]
    notes = ["bytes of all executions, each element once in an execution"]
    if any(each.executions.number is None for each in known[:top]):
        notes.append("each: bytes of one execution, whose number is not known")
    shown = [_traffic_of_all_spaces(each) for each in known[:top]]
    if any(moved.stored.grade == "may" for moved in shown):
        notes.append("<=: upper bounds, from `may` maps")
    if len(known) > top:
        rest = sum(_bytes_moved(each) for each in known[top:])
        notes.append(f"{len(known) - top:,} more instructions move {bytes_text(rest)}")
    legend = [(_READ, "read"), (_WRITTEN, "written")]
    if any(moved.padding.number for moved in shown):
        legend.append((_PADDING, "padding"))
    return BarChart("bytes by instruction", "bytes", tuple(bars), tuple(legend), tuple(notes))


def _bar(each: InstructionTraffic, total: int) -> DrawnBar:
    times, moved = each.executions.number, _traffic_of_all_spaces(each)
    factor = 1 if times is None else times
    share = f", {100 * _bytes_moved(each) / total:.0f} %" if total else ""
    figures = [(moved.read, _READ, "read"), (moved.written, _WRITTEN, "written")]
    if moved.padding.number:
        figures.append((moved.padding, _PADDING, "of padding"))
    parts = tuple(
        [
            BarPart(
                amount.number * factor,
                shade,
                f"{_label(each)}: {amount._replace(number=amount.number * factor)} bytes {verb}",
            )
            for amount, shade, verb in figures
        ]
    )
    bound = "<= " if moved.stored.grade == "may" else ""
    text = f"{bound}{bytes_text(_bytes_moved(each))}{' each' if times is None else share}"
    return DrawnBar(_label(each), parts, text)


def _bytes_moved(each: InstructionTraffic) -> int:
    """The stored bytes of all executions; of one if their number is not known."""
    times = each.executions.number
    return _traffic_of_all_spaces(each).stored.number * (1 if times is None else times)


def _traffic_of_all_spaces(each: InstructionTraffic) -> SpaceTraffic:
    """The traffic with all memory spaces of an instruction whose bytes are known."""
    moved = each.all_spaces
    assert not isinstance(moved, Unknown)
    return moved


def _label(each: InstructionTraffic) -> str:
    computation = each.instruction.computation
    name = each.instruction.name
    return name if computation is computation.module.entry else f"{computation.name}/{name}"


def _roofline(
    known: list[InstructionTraffic], top: int, bytes_rate: int, flops_rate: int, device: Any
) -> Roofline:
    points = []
    notes = ["points: the highest rate at the arithmetic intensity of the instruction"]
    for each in known[:top]:
        intensity = each.intensity
        if isinstance(intensity, Unknown) or intensity is None:
            notes.append(f"`{_label(each)}`: unknown operations or no bytes")
        elif not intensity:
            notes.append(f"`{_label(each)}`: no operations")
        else:
            rate = min(float(intensity) * bytes_rate, float(flops_rate))
            limit = "memory" if intensity * bytes_rate < flops_rate else "compute"
            text = f"{float(intensity):.4g} flops/byte, limited by {limit}"
            title = f"{_label(each)}: {text}"
            points.append(RooflinePoint(f"{_label(each)}: {text}", float(intensity), rate, title))
    name = getattr(device, "name", device)
    title = "roofline" + (f" of {name}, float32 without matrix units" if name else "")
    return Roofline(title, "roofline", bytes_rate, flops_rate, tuple(points), tuple(notes))


def bytes_text(count: int) -> str:
    """Return a number of bytes with a unit.

    >>> bytes_text(512), bytes_text(1536), bytes_text(3 << 30)
    ('512 B', '1.5 KiB', '3 GiB')
    """
    value = Fraction(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{float(value):.4g} {unit}"
        value /= 1024
    return f"{float(value):.4g} TiB"
