"""Charts as elements of SVG: bars, and the roofline with logarithmic axes."""

from __future__ import annotations

from math import ceil, floor, log10
from typing import Final

from indexing.drawing.canvas import Canvas
from indexing.drawing.figures import BarChart, Roofline
from indexing.drawing.parts import (
    TITLE_HEIGHT,
    draw_box,
    draw_foot,
    foot_of,
    panel_title,
)
from indexing.drawing.style import Theme, clip_text, text_width

MAX_LABEL: Final = 230
BAR_LENGTH: Final = 380
BAR_STEP: Final = 21
PLOT: Final = (400, 270)
"""Width and height of a roofline."""


class BarDrawing:
    """A bar chart with its measures."""

    def __init__(self, chart: BarChart, theme: Theme) -> None:
        self.chart, self.theme = chart, theme
        self.name = chart.name
        self.labels = [clip_text(bar.label, "axis", MAX_LABEL) for bar in chart.bars]
        self.left = max([text_width(label, "axis") for label in self.labels], default=0) + 8
        texts = max([text_width(bar.text, "note") for bar in chart.bars], default=0)
        self.longest = max([sum(p.value for p in bar.parts) for bar in chart.bars], default=0)
        self.title = panel_title(chart.title, 520)
        content = max(self.left + BAR_LENGTH + texts + 8, text_width(self.title, "panel"))
        self.foot = foot_of(chart.legend, chart.notes, content)
        self.width = max(content, self.foot.width)
        self.bottom = TITLE_HEIGHT + len(chart.bars) * BAR_STEP
        self.height = self.bottom + self.foot.height + 6

    def draw(self, canvas: Canvas) -> None:
        """Draw the chart with its origin at the upper left corner."""
        canvas.text(0, 12, self.title, "panel")
        for k, (bar, label) in enumerate(zip(self.chart.bars, self.labels, strict=True)):
            y = TITLE_HEIGHT + k * BAR_STEP
            canvas.text(self.left - 7, y + 12, label, "axis end")
            x = self.left
            for part in bar.parts:
                width = BAR_LENGTH * part.value / self.longest if self.longest else 0
                box = (x, y + 1, width, BAR_STEP - 5)
                data = (bar.label, part.value)
                draw_box(canvas, box, part.shade, "class", self.theme, part.title, data)
                x += width
            canvas.text(x + 6, y + 12, bar.text, "note")
        axis = self.left - 0.5
        canvas.line((axis, TITLE_HEIGHT - 2), (axis, self.bottom - 1), "line")
        draw_foot(canvas, self.foot, self.bottom, "class", self.theme)


class RooflineDrawing:
    """A roofline with its measures."""

    def __init__(self, roofline: Roofline, theme: Theme) -> None:
        self.roofline, self.theme = roofline, theme
        self.name = roofline.name
        self.left, self.top = 52.0, TITLE_HEIGHT + 16.0
        ridge = roofline.flops_rate / roofline.bytes_rate
        reached = [point.intensity for point in roofline.points if point.intensity > 0]
        self.x_range = _decades([ridge / 10, ridge * 10, *reached])
        rates = [roofline.bytes_rate * 10**end for end in self.x_range]
        lowest = min([rates[0], roofline.flops_rate])
        self.y_range = _decades([lowest, roofline.flops_rate * 1.5])
        self.title = panel_title(roofline.title, 520)
        content = max(self.left + PLOT[0] + 12, text_width(self.title, "panel"))
        self.key = [f"{k + 1}  {point.label}" for k, point in enumerate(roofline.points)]
        self.foot = foot_of((), (*self.key, *roofline.notes), content)
        self.width = max(content, self.foot.width)
        self.bottom = self.top + PLOT[1] + 34
        self.height = self.bottom + self.foot.height + 6

    def draw(self, canvas: Canvas) -> None:
        """Draw the plot with its origin at the upper left corner."""
        roofline = self.roofline
        canvas.text(0, 12, self.title, "panel")
        self._draw_axes(canvas)
        ridge = roofline.flops_rate / roofline.bytes_rate
        start, end = (10.0**power for power in self.x_range)
        corners = [(start, start * roofline.bytes_rate), (ridge, roofline.flops_rate)]
        corners.append((end, roofline.flops_rate))
        canvas.path([self._place(x, y) for x, y in corners], "roof")
        x, y = self._place(end, roofline.flops_rate)
        canvas.text(x - 4, y - 6, f"{rate_text(roofline.flops_rate)} flop/s", "note end")
        x, y = self._place(start, start * roofline.bytes_rate)
        canvas.text(x + 6, y - 50, f"{rate_text(roofline.bytes_rate)}B/s", "note")
        self._draw_points(canvas)
        draw_foot(canvas, self.foot, self.bottom, "class", self.theme)

    def _draw_points(self, canvas: Canvas) -> None:
        """Draw a point for each instruction, and its number below, where there is room."""
        numbers: list[tuple[float, float]] = []
        for point in self.roofline.points:
            x, y = self._place(point.intensity, point.rate)
            below = y + 17
            while any(abs(x - a) < 16 and abs(below - b) < 15 for a, b in numbers):
                below += 15
            numbers.append((x, below))
            canvas.line((x, y), (x, below), "link")
            canvas.circle(x, y, 3.5, point.title, (point.label, f"{point.intensity:.6g}"))
        for k, (x, y) in enumerate(numbers):
            canvas.disc(x, y, 7.2)
            canvas.text(x, y + 3.2, str(k + 1), "mark")

    def _draw_axes(self, canvas: Canvas) -> None:
        """Draw a line and a text for each power of 10."""
        (x0, x1), (y0, y1) = self.x_range, self.y_range
        step = max(1, ceil((x1 - x0) / 8))
        for power in range(x0, x1 + 1):
            x, bottom = self._place(10.0**power, 10.0**y0)
            canvas.line((x, self.top), (x, bottom), "line")
            if (power - x0) % step == 0:
                canvas.text(x, bottom + 14, power_text(power), "axis middle")
        for power in range(y0, y1 + 1):
            x, y = self._place(10.0**x0, 10.0**power)
            canvas.line((x, y), (x + PLOT[0], y), "line")
            canvas.text(x - 5, y + 3.5, rate_text(10.0**power), "axis end")
        canvas.text(
            self.left + PLOT[0] / 2, self.top + PLOT[1] + 29, "flops per byte", "note middle"
        )
        canvas.text(self.left, self.top - 7, "flop/s", "axis middle")

    def _place(self, x: float, y: float) -> tuple[float, float]:
        (x0, x1), (y0, y1) = self.x_range, self.y_range
        across = (log10(x) - x0) / (x1 - x0)
        up = (log10(y) - y0) / (y1 - y0)
        return self.left + across * PLOT[0], self.top + (1 - up) * PLOT[1]


def _decades(values: list[float]) -> tuple[int, int]:
    """Return the powers of 10 around values above 0, at least one apart."""
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return low, max(high, low + 1)


def power_text(power: int) -> str:
    """Return a power of 10 as a number.

    >>> power_text(-2), power_text(3), power_text(5)
    ('0.01', '1,000', '1e5')
    """
    return f"{10.0**power:,.{max(-power, 0)}f}" if -4 < power < 5 else f"1e{power}"


def rate_text(rate: float) -> str:
    """Return a rate with a decimal prefix.

    >>> rate_text(4.8e12), rate_text(1000), rate_text(0.5)
    ('4.8 T', '1 k', '0.5 ')
    """
    for prefix, scale in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate >= scale:
            return f"{rate / scale:.4g} {prefix}"
    return f"{rate:.4g} "
