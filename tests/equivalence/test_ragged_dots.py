"""Ragged dots against one dot over all groups, as XLA's rewriter writes it; both are executed."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import hlo
from hlo.shapes.shape import dtype
from indexing import equivalent
from indexing.equivalence import Differs, Proved
from indexing.equivalence.values.formulas.expansions import EXPANSIONS
from indexing.execution import run
from indexing.ops.samples import instruction_of

HEAD: Final = """add { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT c = s32[] add(a, b) }
ENTRY e { p = f32[7,4] parameter(0)  q = f32[3,4,5] parameter(1)  n = s32[3] parameter(2)  """
RAGGED: Final = HEAD + (
    "ROOT r = f32[7,5] ragged-dot(p, q, n), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
    "lhs_ragged_dims={0}, rhs_group_dims={0} }"
)
DENSE: Final = (
    HEAD
    + """z = s32[] constant(0)
  ends = s32[3] reduce-window(n, z), window={size=3 pad=2_0}, to_apply=add
  some = s32[2] slice(ends), slice={[0:2]}  none = s32[1] broadcast(z), dimensions={}
  starts = s32[3] concatenate(none, some), dimensions={0}
  i = s32[7] iota(), iota_dimension=0  rows = s32[3,7,4] broadcast(i), dimensions={1}
  s = s32[3,7,4] broadcast(starts), dimensions={0}  t = s32[3,7,4] broadcast(ends), dimensions={0}
  ge = pred[3,7,4] compare(s, rows), direction=LE  lt = pred[3,7,4] compare(rows, t), direction=LT
  both = pred[3,7,4] and(ge, lt)  copies = f32[3,7,4] broadcast(p), dimensions={1,2}
  zero = f32[] constant(0)  zeros = f32[3,7,4] broadcast(zero), dimensions={}
  own = f32[3,7,4] select(both, copies, zeros)
  ROOT r = f32[7,5] dot(own, q), lhs_contracting_dims={0,2}, rhs_contracting_dims={0,1} }"""
)


def result(text: str) -> Any:
    chance = np.random.default_rng(3)
    p, q = (chance.integers(1, 9, dims).astype(np.float32) for dims in ((7, 4), (3, 4, 5)))
    (value,) = run(hlo.parse(text), [p, q, np.array([2, 1, 3], np.int32)])
    return np.asarray(value)


def test_a_ragged_dot_is_a_dot_over_all_groups() -> None:
    np.testing.assert_array_equal(result(RAGGED), result(DENSE))
    for before, after in ((RAGGED, DENSE), (DENSE, RAGGED)):
        verdict = equivalent(hlo.parse(before), hlo.parse(after))
        assert isinstance(verdict, Proved), verdict
        assert "ragged-dot = dot of the rows of each group" in verdict.laws


FORMS: Final = [
    "f32[7,5] ragged-dot(f32[4,7] p, f32[4,5,3] q, s32[3] n), lhs_contracting_dims={0}, "
    "rhs_contracting_dims={0}, lhs_ragged_dims={1}, rhs_group_dims={2}",
    "f32[7,2,5] ragged-dot(f32[7,2,4] p, f32[3,5,4] q, s64[3] n), lhs_contracting_dims={2}, "
    "rhs_contracting_dims={2}, lhs_ragged_dims={0}, rhs_group_dims={0}",
    "f32[7,5] ragged-dot(f32[7,4] p, f32[1,4,5] q, u32[1] n), lhs_contracting_dims={1}, "
    "rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}",
]


@pytest.mark.parametrize("form", FORMS)
def test_the_definition_is_executed(form: str) -> None:
    instruction = instruction_of(form)
    definition = hlo.parse(EXPANSIONS["ragged-dot"].text(instruction))
    chance = np.random.default_rng(7)
    shapes: list[Any] = [each.shape for each in instruction.operands]
    p, q = (chance.integers(1, 9, shape.dims).astype(np.float32) for shape in shapes[:2])
    for sizes in ([2, 1, 3], [0, 7, 0], [5, 0, 4], [0, 0, 0]):
        n = np.array(sizes[: shapes[2].dims[0]], dtype(shapes[2].element_type))
        (ours,), (theirs,) = (run(m, [p, q, n]) for m in (instruction.module, definition))
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("compare(s, rows), direction=LE", "compare(s, rows), direction=LT"),
        ("compare(rows, t), direction=LT", "compare(rows, t), direction=LE"),
        ("pad=2_0", "pad=0_2"),
        ("concatenate(none, some)", "concatenate(some, none)"),
        ("broadcast(i), dimensions={1}", "broadcast(one), dimensions={1}"),
        ("constant(0)\n", "constant(1)\n"),
        ("zero = f32[] constant(0)", "zero = f32[] constant(1)"),
    ],
)
def test_other_groups_differ(old: str, new: str) -> None:
    changed = DENSE.replace(old, new)
    if "one" in new and "(one)" in new:
        ones = "k = s32[] constant(1)  ks = s32[7] broadcast(k), dimensions={}"
        changed = changed.replace("rows =", f"{ones}  one = s32[7] add(i, ks)  rows =")
    assert changed != DENSE
    assert not np.array_equal(result(RAGGED), result(changed))
    verdict = equivalent(hlo.parse(RAGGED), hlo.parse(changed))
    assert isinstance(verdict, Differs), verdict
