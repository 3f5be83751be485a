"""Which sums can be rescaled while a statistic changes: formulas, and near misses."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import indexing
from indexing.tiling.loops.loop_tiling import LoopTiling
from tests.tiling.loops.hand_problems import REDUCERS

# fmt: off
FORMULAS = [
    # the value that is summed, from x, its row maximum m and its row sum l      can be rescaled
    ("d = {t} subtract(x, m)  v = {t} exponential(d)",                                     True),
    ("v = {t} divide(x, m)",                                                               True),
    ("d = {t} subtract(x, m)  e = {t} exponential(d)  v = {t} multiply(e, x)",             True),
    ("d = {t} add(x, m)  n = {t} negate(d)  v = {t} exponential(n)",                       True),
    ("v = {t} subtract(x, m)",                                                             False),
    ("v = {t} maximum(x, m)",                                                              False),
    ("p = pred[6,20] compare(x, m), direction=GE  v = {t} select(p, x, m)",                False),
    ("d = {t} subtract(x, m)  v = {t} tanh(d)",                                            False),
    ("d = {t} multiply(x, m)  v = {t} exponential(d)",                                     False),
    ("d = {t} subtract(x, m)  e = {t} exponential(d)  v = {t} add(e, x)",                  False),
    ("d = {t} subtract(x, m)  f = {t} multiply(d, x)  v = {t} exponential(f)",             False),
    ("d = {t} divide(x, m)  n = bf16[6,20] convert(d)  v = {t} convert(n)",                True),
    ("d = {t} divide(x, m)  n = s8[6,20] convert(d)  v = {t} convert(n)",                  False),
    ("i = s32[6,20] convert(x)  j = s32[6,20] convert(m)  q = s32[6,20] divide(i, j)  "
     "v = {t} convert(q)",                                                                 False),
]
# fmt: on


def tile(formula: str, reducer: str = "add") -> LoopTiling:
    lines = formula.format(t="f32[6,20]").replace("  ", "\n  ")
    root = hlo.parse(f"""{REDUCERS}
ENTRY e {{
  x = f32[6,20] parameter(0)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  top = f32[6] reduce(x, low), dimensions={{1}}, to_apply=max
  m = f32[6,20] broadcast(top), dimensions={{0}}
  {lines}
  ROOT s = f32[6] reduce(v, zero), dimensions={{1}}, to_apply={reducer}
}}""").entry.root
    tiling = indexing.tile(root, (2,), to="parameters", loop_sizes={"k": 5})
    assert isinstance(tiling, LoopTiling)
    return tiling


@pytest.mark.parametrize("formula, is_online", FORMULAS)
def test_sums_are_rescaled_if_the_statistic_is_a_factor(formula: str, is_online: bool) -> None:
    tiling = tile(formula)
    assert (tiling.online, tiling.passes) == (is_online, 1 if is_online else 2)
    assert tiling.bytes == (1 if is_online else 2) * 6 * 20 * 4 + 24


def test_a_maximum_of_scaled_values_waits() -> None:
    assert not tile("d = {t} subtract(x, m)  v = {t} exponential(d)", "max").online


def test_the_law_holds_for_numbers() -> None:
    """Sums of parts, rescaled by `h(new) / h(old)`, are the sum for the final statistic."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=40)
    total, top = 0.0, -np.inf
    for part in np.split(x, 8):
        new = max(top, part.max())
        total = total * np.exp(top - new) + np.exp(part - new).sum()
        top = new
    assert np.isclose(total, np.exp(x - x.max()).sum(), rtol=1e-12)
