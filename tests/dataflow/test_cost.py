"""The cost of walks, in compositions of maps: a query is not dearer than a sweep of everything."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import hlo
import indexing
from indexing import IndexingMap, methods
from indexing.maps.options import Options
from tests.growth.work import calls_of
from tests.oracles import union

DATA = Path(__file__).parent / "data"
ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples"
MODULES = [*sorted(DATA.glob("*.hlo")), *sorted(EXAMPLES.glob("*.hlo"))]


@pytest.fixture
def composed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The calls that compose maps while a test runs."""
    return calls_of(monkeypatch, Options, "compose_maps")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_a_walk_from_the_root_composes_no_more_than_a_sweep(
    path: Path, composed: list[tuple[Any, ...]]
) -> None:
    indexing.to_parameters(hlo.load(path).entry.root)
    walk = len(composed)
    list(indexing.all_to_parameters(hlo.load(path).entry))
    assert 0 < walk <= len(composed) - walk


@pytest.mark.parametrize("size", [64, pytest.param(1024, marks=pytest.mark.slow)])
def test_a_scan_has_one_map(size: int) -> None:
    """Element i needs elements 0 to i; the maps of 2·log2(size) fusions are coalesced to one."""
    entry = hlo.load(DATA / f"associative_scan_{size}.hlo").entry
    *_, swept = indexing.all_to_parameters(entry)
    for answer in (indexing.to_parameters(entry.root), swept):
        ((full,),) = answer.maps
        text = "(d0)[s0] -> (s0), domain: d0 in [0, {0}], s0 in [0, {0}], d0 - s0 in [0, {0}]"
        assert (str(full).replace("\n", " "), full.grade) == (text.format(size - 1), "exact")


CALLS = """
import sys, hlo, indexing
from tests.growth.work import calls_in
entry = hlo.load(sys.argv[1]).entry
question = {
    "walk": lambda: len(indexing.to_parameters(entry.root).maps),
    "sweep": lambda: len(list(indexing.all_to_parameters(entry))),
}[sys.argv[2]]
print(calls_in(question)[0])
"""


@pytest.mark.parametrize("size", [64, pytest.param(1024, marks=pytest.mark.slow)])
def test_a_walk_from_one_instruction_makes_fewer_calls_than_a_sweep(size: int) -> None:
    """Each in a process of its own: the second would find compositions in caches."""

    def calls(question: str) -> int:
        path = str(DATA / f"associative_scan_{size}.hlo")
        command = [sys.executable, "-c", CALLS, path, question]
        return int(subprocess.run(command, capture_output=True, check=True, cwd=ROOT).stdout)

    assert calls("walk") < calls("sweep")


def updates(count: int) -> hlo.Computation:
    """A chain of dynamic-update-slices; all starts are parameters."""
    lines = ["x0 = f32[64,8] parameter(0)", "zero = s32[] constant(0)"]
    for k in range(count):
        lines.append(f"u{k} = f32[4,8] parameter({2 * k + 1})")
        lines.append(f"i{k} = s32[] parameter({2 * k + 2})")
        root = "ROOT " if k == count - 1 else ""
        lines.append(f"{root}x{k + 1} = f32[64,8] dynamic-update-slice(x{k}, u{k}, i{k}, zero)")
    return hlo.parse("ENTRY e {\n" + "\n".join(lines) + "\n}").entry


@pytest.mark.slow
def test_exact_maps_of_updates_cost_as_much_for_each_further_update(
    composed: list[tuple[Any, ...]],
) -> None:
    """Beyond the budget, all maps are `may`; pieces would double them with each update."""
    costs = []
    for count in (16, 32, 64, 128):
        composed.clear()
        answer = indexing.to_parameters(updates(count).root, exact=True)
        costs.append(len(composed))
        grades = [{m.grade for m in maps} for maps in answer.maps]
        assert grades[-2:] == [{"exact"}, {"exact"}]  # the last update
        assert grades[1:3] == [{"may"}, {"may"}]  # the first update
        assert answer.unknown == (None,) * len(grades)
    first, *further = [b - a for a, b in pairwise(costs)]
    assert further == [2 * first, 4 * first]
    assert first <= 16 * 8


def test_bounds_tell_the_pieces_of_updates_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their runtime variables have different bounds: no two are compared by ISL or enumeration."""
    pairs: list[tuple[IndexingMap, IndexingMap]] = []

    def compare(a: IndexingMap, b: IndexingMap, **_: int) -> None:
        pairs.append((a, b))

    monkeypatch.setattr(methods, "difference", compare)
    answer = indexing.to_parameters(updates(32).root, exact=True)
    assert answer.unknown == (None,) * 65
    assert not pairs


def test_pieces_are_exact_until_the_budget_is_spent() -> None:
    """Fewer maps for more updates would be a loss."""
    short = indexing.to_parameters(updates(6).root, exact=True)
    assert {m.grade for maps in short.maps for m in maps} == {"exact"}
    long = indexing.to_parameters(updates(9).root, exact=True)
    for maps, same in zip(long.maps[-10:], short.maps[-10:], strict=True):
        assert [str(m) for m in maps] == [str(m) for m in same]


@pytest.mark.parametrize("nested", [False, True])
def test_maps_beyond_the_budget_include_the_exact_maps(nested: bool) -> None:
    """Constant starts, so that the maps of the window can be compared without runtime values."""
    lines = ["x0 = f32[24] parameter(0)"]
    steps = 30
    for k in range(steps):
        lines.append(f"i{k} = s32[] constant({k * 5 % 23})")
        lines.append(f"u{k} = f32[2] parameter({k + 1})")
        root = "ROOT " if k == steps - 1 else ""
        lines.append(f"{root}x{k + 1} = f32[24] dynamic-update-slice(x{k}, u{k}, i{k})")
    text = "\n".join(lines)
    if nested:
        operands = ", ".join(["x0", *[f"u{k}" for k in range(steps)]])
        shapes = "\n".join(line for line in lines if "parameter" in line)
        text = f"{shapes}\nROOT c = f32[24] call({operands}), to_apply=f"
        module = hlo.parse("f {\n" + "\n".join(lines) + "\n}\nENTRY e {\n" + text + "\n}")
    else:
        module = hlo.parse("ENTRY e {\n" + text + "\n}")
    owner = ["x0" for _ in range(24)]
    for k in range(steps):
        start = min(k * 5 % 23, 22)
        for at in (start, start + 1):
            owner[at] = f"u{k}"
    answer = indexing.to_parameters(module.entry.root, exact=True)
    for parameter, maps in zip(answer.operands, answer.maps, strict=True):
        written = {at for at in range(24) if owner[at] == parameter.name}
        read = {at for (at,), _ in union(maps)}
        assert written <= read, parameter.name
        if {m.grade for m in maps} <= {"exact"}:
            assert written == read
