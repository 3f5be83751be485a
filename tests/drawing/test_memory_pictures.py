"""Pictures of memory: rows, cells and the line of the peak are those of the profile."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo
import indexing
from indexing.drawing.figures import CellGrid
from indexing.drawing.memory_pictures import memory_figure
from indexing.drawing.svg_text import svg_text
from indexing.memory.buffers.profile import MemoryProfile
from tests.drawing.pictures import texts

DATA = Path(__file__).parents[1] / "memory" / "data" / "buffers"


def profile_of(name: str) -> MemoryProfile:
    profile = indexing.memory_profile(hlo.load(DATA / f"{name}.hlo"))
    assert isinstance(profile, MemoryProfile)
    return profile


def grids(profile: MemoryProfile, at_peak: bool, top: int | None = None) -> list[CellGrid]:
    panels = memory_figure(profile, top, at_peak).panels
    return [panel for panel in panels if isinstance(panel, CellGrid)]


@pytest.mark.parametrize("name", ["tpu_scan_rnn", "tpu_kv_cache_decode", "gpu_scan_rnn"])
def test_a_line_marks_the_step_of_the_peak(name: str) -> None:
    profile = profile_of(name)
    width = -(-len(profile.steps) // 48)
    for panel, peak in zip(grids(profile, False), profile.peaks.values(), strict=True):
        (mark,) = panel.marks
        assert mark.column * width <= peak.step < (mark.column + 1) * width
        assert mark.label == f"peak, step {peak.step}"
        assert mark.label in texts(svg_text([memory_figure(profile)]))


@pytest.mark.parametrize("name", ["tpu_scan_rnn", "tpu_kv_cache_decode", "gpu_scan_rnn"])
def test_the_picture_of_the_peak_has_what_is_alive_there(name: str) -> None:
    profile = profile_of(name)
    for panel, peak in zip(grids(profile, True, 99), profile.peaks.values(), strict=True):
        alive = profile.alive(peak.step, peak.space)
        names = [label.rsplit("  ", 1)[0] for label in panel.row_labels]
        assert sorted(names) == sorted(buffer.name for buffer in alive)
        column = panel.marks[0].column
        assert {c.row for c in panel.cells if c.column == column} == set(range(len(alive)))


def test_each_row_has_its_name() -> None:
    profile = profile_of("tpu_scan_rnn")
    shown = texts(svg_text([memory_figure(profile)])).splitlines()
    for panel in grids(profile, False):
        assert set(panel.row_labels) <= set(shown)


def test_profiles_are_plotted_at_their_peak() -> None:
    profile = profile_of("gpu_scan_rnn")
    whole, peak = profile.plot(limit=99).svg, profile.plot(limit=99, at_peak=True).svg
    assert "buffers are alive" in whole
    assert "buffers of the peak are alive" in peak
    assert len(peak) < len(whole)
