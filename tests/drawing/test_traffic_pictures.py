"""Pictures of traffic: bars and points are the figures of `indexing.traffic`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import hlo
import indexing
from indexing.devices.gpus import GPUS
from indexing.drawing.figures import BarChart
from indexing.drawing.traffic_pictures import traffic_figure
from indexing.memory.movement.roofline import PEAKS, Peak
from tests.drawing.pictures import cells, draw, texts

EXAMPLES = Path(__file__).parents[2] / "examples"
DOT = hlo.parse(
    """HloModule m
ENTRY e { p = f32[64,32] parameter(0)  q = f32[32,16] parameter(1)
  n = f32[64,32] negate(p)  c = f32[64,32] copy(n)
  ROOT d = f32[64,16] dot(c, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
)


def bars(svg: str) -> list[tuple[str, int]]:
    """Return label and length of each part of a bar."""
    return [(label, int(value)) for label, value in draw(svg, "bytes")]


def test_bars_are_bytes_read_and_written() -> None:
    svg = indexing.traffic(DOT).plot().svg
    matrix, small = 64 * 32 * 4, 32 * 16 * 4
    assert bars(svg) == [
        *[("n", matrix), ("n", matrix), ("c", matrix), ("c", matrix)],
        *[("d", matrix + small), ("d", 64 * 16 * 4)],
    ]
    shares = texts(svg)
    assert "16 KiB, 35 %" in shares


def test_loops_count_with_their_executions() -> None:
    traffic = indexing.traffic(hlo.load(EXAMPLES / "rnn.pre.hlo"))
    shown: dict[str, int] = {}
    for label, value in bars(traffic.plot(top=1000).svg):
        shown[label] = shown.get(label, 0) + value
    assert any("/" in label for label in shown)
    total = traffic.total.bytes
    assert sum(shown.values()) == total.upper != total.lower  # bars of `may` reads are bounds


def test_a_roofline_of_a_device() -> None:
    svg = indexing.traffic(DOT).plot(device="A100").svg
    shown = cells(svg, "roofline")
    flops, moved = 2 * 64 * 32 * 16, (64 * 32 + 32 * 16 + 64 * 16) * 4
    assert shown["d: 4.571 flops/byte, limited by memory"] == f"{flops / moved:.6g}"
    assert "19.49 T flop/s" in texts(svg)
    assert "`c`: no operations" in texts(svg)
    fast = indexing.traffic(DOT).plot(peak="100TB/s,1TF/s").svg
    assert "limited by compute" in texts(fast)
    assert not cells(indexing.traffic(DOT).plot(peak="1TB/s").svg, "roofline")


@pytest.mark.parametrize("name", PEAKS)
def test_peak_rates_of_devices(name: str) -> None:
    assert Peak.of(name) == Peak.of(GPUS[name]) == PEAKS[name]
    ridge = Fraction(PEAKS[name].flops or 0, PEAKS[name].bytes or 1)
    assert 5 < ridge < 60


def test_wrong_rates_are_refused() -> None:
    traffic = indexing.traffic(DOT)
    with pytest.raises(ValueError, match="the peak rates of MI300 are not known"):
        traffic.plot(device="MI300")
    with pytest.raises(ValueError, match="`peak` and `device` are both given"):
        traffic.plot("1TB/s,1TF/s", device="A100")
    with pytest.raises(ValueError, match="`top` is at least 1"):
        traffic.plot(top=0)


def test_the_largest_instructions_are_drawn() -> None:
    traffic = indexing.traffic(hlo.load(EXAMPLES / "gpt2_tiny.opt.hlo"))
    svg = traffic.plot(top=3).svg
    assert [label for label, _ in bars(svg)][::2] == [
        each.instruction.name for each in traffic.ranked[:3]
    ]
    assert f"{len(traffic.instructions) - 3:,} more instructions move" in texts(svg)


def test_both_backends_draw_the_same_bars() -> None:
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    traffic = indexing.traffic(DOT)
    axes = traffic.plot(backend="matplotlib").axes[0]
    assert [patch.get_width() for patch in axes.patches] == [n for _, n in bars(traffic.plot().svg)]


def test_bars_of_tiled_arrays_show_padding() -> None:
    module = hlo.parse("""ENTRY e { p = f32[64,10]{1,0:T(8,128)} parameter(0)
      ROOT n = f32[64,10]{1,0:T(8,128)} negate(p) }""")
    (chart,) = traffic_figure(indexing.traffic(module)).panels
    assert isinstance(chart, BarChart)
    (bar,) = chart.bars
    assert [part.value for part in bar.parts] == [2560, 2560, 2 * (32768 - 2560)]
    assert [text for _, text in chart.legend] == ["read", "written", "padding"]
    assert bar.text == "64 KiB, 100 %"
