"""Values of sources with one name: instructions of a computation that is called twice."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Final

import numpy as np
import pytest

import hlo
import indexing

CALLED_TWICE: Final = """
double { n = s32[] parameter(0)  x = f32[8] parameter(1)  start = s32[] add(n, n)
  ROOT d = f32[2] dynamic-slice(x, start), dynamic_slice_sizes={2} }
ENTRY e { n = s32[] parameter(0)  m = s32[] parameter(1)  x = f32[8] parameter(2)
  a = f32[2] call(n, x), to_apply=double  b = f32[2] call(m, x), to_apply=double
  c = f32[2] dynamic-slice(x, m), dynamic_slice_sizes={2}  ab = f32[2] add(a, b)
  ROOT r = f32[2] add(ab, c) }
"""


def elements(regions: Sequence[object]) -> list[int]:
    """Return the elements of the last operand."""
    region = regions[-1]
    assert isinstance(region, indexing.Region)
    return [index for (index,) in np.asarray(region.elements()).tolist()]


def test_each_call_of_a_computation_has_its_own_values() -> None:
    answer = indexing.to_parameters(hlo.parse(CALLED_TWICE).entry.root)
    for n, m in product(range(5), repeat=2):
        starts = {min(2 * n, 6), min(2 * m, 6), min(m, 6)}
        assert elements(answer.at(1, n=n, m=m)) == sorted([start + 1 for start in starts])


def test_a_name_of_several_values_is_rejected_and_each_has_a_name() -> None:
    answer = indexing.to_parameters(hlo.parse(CALLED_TWICE).entry.root)
    with pytest.raises(ValueError, match=r"`start` has different values .* a/start, b/start; "):
        answer.at(0, start=3)
    assert elements(answer.at(0, **{"a/start": 0, "b/start": 4}, m=2)) == [0, 2, 4]
