"""The history of the speed: a page that is up to date, and regressions that are found."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path

import pytest

import benchmarks.__main__ as figures
from benchmarks import history
from benchmarks.history import Measurement, page, picture, regressions, releases

RATIOS: Mapping[str, Mapping[str, tuple[str, float]]] = {
    "interpreted": {"parse": ("jaxlib", 2.0), "maps": ("jaxlib", 7.0)},
    "compiled": {"parse": ("jaxlib", 1.0)},
}
OLD = Measurement("0.3.0", "2026-11-30: Python 3.13, 3 cores", RATIOS)


def measurement_of(build: str, what: str, peer: str, ratio: float) -> Measurement:
    ratios = {each: dict(rows) for each, rows in RATIOS.items()}
    ratios[build][what] = peer, ratio
    return Measurement("", "", ratios)


def test_the_page_and_its_picture_are_up_to_date() -> None:
    """To repair: `make docs`."""
    assert history.PAGE.read_text(encoding="utf-8") == page(releases())
    assert history.PICTURE.read_text(encoding="utf-8") == picture(releases())


def test_each_release_has_its_conditions_and_peers() -> None:
    for each in releases():
        assert each.conditions.startswith("20")
        assert "cores" in each.conditions
        for rows in each.ratios.values():
            assert all(peer and ratio > 0 for peer, ratio in rows.values())


# fmt: off
CASES = [
    # build         what     peer       ratio   is a regression
    ("interpreted", "parse", "jaxlib",  2.0,    False),
    ("interpreted", "parse", "jaxlib",  2.29,   False),
    ("interpreted", "parse", "jaxlib",  2.31,   True),
    ("interpreted", "maps",  "jaxlib",  8.1,    True),
    ("interpreted", "maps",  "jaxlib",  0.5,    False),
    ("interpreted", "maps",  "another", 9.0,    False),  # another peer
    ("interpreted", "other", "jaxlib",  9.0,    False),  # not measured before
    ("compiled",    "parse", "jaxlib",  1.2,    True),
    ("compiled",    "maps",  "jaxlib",  9.0,    False),  # not measured before
]
# fmt: on


@pytest.mark.parametrize(("build", "what", "peer", "ratio", "is_slower"), CASES)
def test_a_ratio_above_the_last_release_is_a_regression(
    build: str, what: str, peer: str, ratio: float, is_slower: bool
) -> None:
    faults = list(regressions(OLD, measurement_of(build, what, peer, ratio)))
    assert len(faults) == is_slower
    assert all(f"{what}, {build}: " in fault for fault in faults)


@pytest.mark.parametrize(("ratio", "status"), [(1.0, 0), (99.0, 1)])
def test_figures_fail_on_a_regression(
    ratio: float,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    last = releases()[-1]
    ratios = {
        build: {what: (peer, ratio * value) for what, (peer, value) in rows.items()}
        for build, rows in last.ratios.items()
    }
    monkeypatch.setattr(history, "LAST", tmp_path / "build" / "ratios.json")

    def write(*_: object) -> bool:
        history.store("today", ratios)
        return True

    monkeypatch.setattr(figures, "write", write)
    monkeypatch.setattr("sys.argv", ["benchmarks", "benchmarks.speed"])
    assert figures.main() == status
    assert capsys.readouterr().err.count("% slower") == status * sum(map(len, ratios.values()))


def test_a_release_is_added_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RELEASES", "PAGE", "PICTURE", "LAST"):
        monkeypatch.setattr(history, name, tmp_path / name)
    history.RELEASES.write_text("[]")
    for ratio in (3.0, 4.0):
        history.store("2026-11-30", measurement_of("compiled", "parse", "jaxlib", ratio).ratios)
        assert history.main(["--release", "0.3.0"]) == 0
    (added,) = releases()
    assert added.release == "0.3.0"
    assert list(added.ratios["compiled"]["parse"]) == ["jaxlib", 4.0]
    assert "| parse | jaxlib | 4 |" in history.PAGE.read_text()
    assert ElementTree.parse(history.PICTURE).getroot().tag.endswith("svg")
