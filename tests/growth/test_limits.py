"""Chains whose maps, expressions or comparisons would grow without a limit."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import hlo
import indexing
from indexing import IndexingMap
from indexing.execution import run
from indexing.maps.answers import Unknown
from indexing.maps.deduplicate import deduplicate
from tests.growth.programs import PROGRAMS
from tests.growth.work import calls_in

import_module("tests.growth.chains")


def elements_of(m: IndexingMap, at: tuple[int, ...]) -> list[list[int]]:
    elements = m.at(*at).elements()
    assert not isinstance(elements, Unknown)
    return [[int(k) for k in element] for element in elements]


@pytest.mark.parametrize("n", [2, 8, 16, 24, 40, 128])
def test_awkward_reshapes_read_what_execution_copies(n: int) -> None:
    program = hlo.parse(PROGRAMS["reshapes_and_reverses"](n))
    (copied,) = run(program, [np.arange(210, dtype=np.float32)])
    (m,) = indexing.to_parameters(program.entry.root).maps[0]
    assert m.grade == ("exact" if n <= 16 else "may")
    for at in [(0, 0), (3, 5), (1, 13), (5, 14)]:
        if all(k < size for k, size in zip(at, copied.shape, strict=True)):
            region = {tuple(element) for element in elements_of(m, at)}
            assert (int(copied[at]),) in region
            assert m.grade == "may" or len(region) == 1


def test_maps_with_runtime_variables_of_other_sources_need_no_query() -> None:
    program = hlo.parse(PROGRAMS["updates_at_own_starts"](6))
    maps = indexing.to_parameters(program.entry.root).maps[1]
    calls, kept = calls_in(lambda: len(deduplicate(maps)))
    assert kept == 6
    assert calls < 2000  # one query takes about 400
