"""Sorts in one form: ties decided by places, operands that a result does not depend on.

The interpreter sorts rows with many ties.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import hlo
from indexing import equivalent
from indexing.equivalence import Proved
from indexing.execution import run

LESS: Final = """less { a = s32[] parameter(0)  b = s32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
"""
PAIRS: Final = """pairs { a = s32[] parameter(0)  b = s32[] parameter(1)
  i = s32[] parameter(2)  j = s32[] parameter(3)
  ROOT c = pred[] compare(a, b), direction=LT }
"""
TIES: Final = """ties { a = s32[] parameter(0)  b = s32[] parameter(1)
  i = s32[] parameter(2)  j = s32[] parameter(3)
  l = pred[] compare(a, b), direction=LT  g = pred[] compare(b, a), direction=LT
  e = pred[] compare(l, g), direction=EQ  f = pred[] compare(i, j), direction=LT
  ROOT c = pred[] select(e, f, l) }
"""
HEAD: Final = """ENTRY e { p = s32[3,9] parameter(0)  q = s32[3,9] parameter(1)
  i = s32[3,9] iota(), iota_dimension=1  """
SORTED: Final = "(s32[3,9], s32[3,9]) sort(%s), dimensions={1}, to_apply=%s"

SINGLE: Final = (
    LESS + HEAD + ("ROOT s = s32[3,9] sort(p), dimensions={1}, is_stable=true, to_apply=less }")
)
STABLE: Final = (
    PAIRS
    + HEAD
    + (
        f"s = {SORTED % ('p, i', 'pairs')}, is_stable=true ROOT r = s32[3,9] get-tuple-element(s), "
        "index=%d }"
    )
)
EXPANDED: Final = (
    TIES
    + HEAD
    + (f"s = {SORTED % ('p, i', 'ties')} ROOT r = s32[3,9] get-tuple-element(s), index=%d }}")
)
WITH_OTHER: Final = (
    PAIRS
    + HEAD
    + (
        f"s = {SORTED % ('p, q', 'pairs')}, is_stable=true ROOT r = s32[3,9] get-tuple-element(s), "
        "index=0 }"
    )
)


def result(text: str) -> Any:
    chance = np.random.default_rng(5)
    given = [chance.integers(0, 4, (3, 9)).astype(np.int32) for _ in "pq"]
    (value,) = run(hlo.parse(text), given)
    return np.asarray(value)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (SINGLE, STABLE % 0),
        (SINGLE, EXPANDED % 0),
        (STABLE % 1, EXPANDED % 1),
        (SINGLE, WITH_OTHER),
    ],
)
def test_equal_sorts_are_proved(before: str, after: str) -> None:
    np.testing.assert_array_equal(result(before), result(after))
    verdict = equivalent(hlo.parse(before), hlo.parse(after))
    assert isinstance(verdict, Proved), verdict
    assert not verdict.laws


FREE: Final = (STABLE % 1).replace(", is_stable=true", "")
TWICE: Final = (
    PAIRS
    + HEAD
    + f"""a = {SORTED % ("p, i", "pairs")}  x = s32[3,9] get-tuple-element(a),
  index=1  b = {SORTED % ("p, i", "pairs")}, is_stable=true
  y = s32[3,9] get-tuple-element(b), index=1
  ROOT t = (s32[3,9], s32[3,9]) tuple(x, %s) }}"""
)


@pytest.mark.parametrize("after", [STABLE % 1, EXPANDED % 1])
def test_a_sort_may_become_stable(after: str) -> None:
    verdict = equivalent(hlo.parse(FREE), hlo.parse(after))
    assert isinstance(verdict, Proved), verdict
    assert verdict.laws == {"sort(x) = stable sort(x)": 1}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (STABLE % 1, FREE),
        (EXPANDED % 1, FREE),
        (TWICE % "y", TWICE % "x"),  # the sort of both programs becomes the stable one's place
    ],
)
def test_a_sort_may_not_become_unstable(before: str, after: str) -> None:
    backwards = (EXPANDED % 1).replace("(i, j)", "(j, i)")  # a result of FREE that is allowed
    assert not np.array_equal(result(STABLE % 1), result(backwards))
    assert not isinstance(equivalent(hlo.parse(before), hlo.parse(after)), Proved)


def test_a_sort_has_one_order_in_all_outputs() -> None:
    """Both outputs before are equal; after, ties may have another order in the first one."""
    head = PAIRS + HEAD + "r = s32[3,9] negate(p)  "
    body = head + (
        "q2 = s32[3,9] negate(r)  "
        f"a = {SORTED % ('%s, i', 'pairs')}  x = s32[3,9] get-tuple-element(a), index=1  "
        f"b = {SORTED % ('p, i', 'pairs')}%s  y = s32[3,9] get-tuple-element(b), index=1  "
        "ROOT t = (s32[3,9], s32[3,9]) tuple(x, y) }"
    )
    before, after = body % ("p", ""), body % ("q2", ", is_stable=true")
    assert not isinstance(equivalent(hlo.parse(before), hlo.parse(after)), Proved)
    both = body % ("q2", ", is_stable=true")
    stable = both.replace("to_apply=pairs  x", "to_apply=pairs, is_stable=true  x")
    assert isinstance(equivalent(hlo.parse(before), hlo.parse(stable)), Proved)


OTHERS: Final = {
    "the other result": (STABLE % 0, EXPANDED % 1),
    "ties by the last place": (STABLE % 1, (EXPANDED % 1).replace("(i, j)", "(j, i)")),
    "ties by the other rows": (
        STABLE % 1,
        (EXPANDED % 1).replace("iota_dimension=1", "iota_dimension=0"),
    ),
    "places that are given": (
        (STABLE % 1).replace("sort(p, i)", "sort(p, q)"),
        (EXPANDED % 1).replace("sort(p, i)", "sort(p, q)"),
    ),
    "places that are counted down": (
        STABLE % 1,
        (EXPANDED % 1).replace("iota_dimension=1", "iota_dimension=1  n = s32[3,9] negate(i)")
        .replace("sort(p, i)", "sort(p, n)"),
    ),
    "another order": (SINGLE, (EXPANDED % 0).replace("(l, g)", "(g, g)")),
    "the greatest first": (
        SINGLE,
        (EXPANDED % 0).replace("compare(a, b)", "compare(b0, a0)")
        .replace("compare(b, a)", "compare(a, b)").replace("(b0, a0)", "(b, a)"),
    ),
    "another dimension": (SINGLE, (EXPANDED % 0).replace("dimensions={1}", "dimensions={0}")),
    "the other operand": (SINGLE, WITH_OTHER.replace("(p, q)", "(q, p)")),
    "compared by the other operand": (
        SINGLE,
        WITH_OTHER.replace("compare(a, b)", "compare(i, j)"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_other_sorts_are_not_proved(name: str) -> None:
    before, after = OTHERS[name]
    assert not np.array_equal(result(before), result(after))
    assert not isinstance(equivalent(hlo.parse(before), hlo.parse(after)), Proved)


def test_an_unstable_sort_is_no_stable_one() -> None:
    """It may exchange what is equal."""
    unstable = (STABLE % 1).replace(", is_stable=true", "")
    assert not isinstance(equivalent(hlo.parse(STABLE % 1), hlo.parse(unstable)), Proved)
