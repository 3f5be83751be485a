"""The cost of walks, in compositions of maps: a query is not dearer than a sweep of everything."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo
import indexing
from indexing import IndexingMap
from indexing.maps.options import Options

DATA = Path(__file__).parent / "data"
EXAMPLES = Path(__file__).parent.parent.parent / "examples"
MODULES = [*sorted(DATA.glob("*.hlo")), *sorted(EXAMPLES.glob("*.hlo"))]


@pytest.fixture
def composed(monkeypatch: pytest.MonkeyPatch) -> list[IndexingMap]:
    """The maps that are composed while a test runs."""
    maps: list[IndexingMap] = []
    compose = Options.composed

    def counted(self: Options, first: IndexingMap, second: IndexingMap) -> IndexingMap:
        maps.append(first)
        return compose(self, first, second)

    monkeypatch.setattr(Options, "composed", counted)
    return maps


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_a_walk_from_the_root_composes_no_more_than_a_sweep(
    path: Path, composed: list[IndexingMap]
) -> None:
    indexing.to_parameters(hlo.load(path).entry.root)
    walk = len(composed)
    list(indexing.all_to_parameters(hlo.load(path).entry))
    assert 0 < walk <= len(composed) - walk


@pytest.mark.parametrize("size", [64, 1024])
def test_a_scan_has_one_map(size: int) -> None:
    """Element i needs elements 0 to i; the maps of 2·log2(size) fusions are united to one."""
    entry = hlo.load(DATA / f"associative_scan_{size}.hlo").entry
    *_, swept = indexing.all_to_parameters(entry)
    for answer in (indexing.to_parameters(entry.root), swept):
        ((full,),) = answer.maps
        text = f"(d0)[s0] -> (s0), domain: d0 in [0, {size - 1}], s0 in [0, {size - 1}]"
        assert (str(full), full.grade) == (text, "may")
