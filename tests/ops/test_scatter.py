"""Scatter: all dimension numbers, windows out of bounds, and the bounds of runtime variables."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
from indexing import IndexingMap, input_to_output, output_to_input, to_parameters
from tests.ops.samples import parse_sample
from tests.ops.strategies import scatters
from tests.ops.test_ops import check_random
from tests.oracles import fuzz


@fuzz(40)
@given(scatters(), st.integers(0, 1 << 30))
def test_maps_of_random_scatters_are_the_dependencies(text: str, seed: int) -> None:
    check_random(text, seed, inverses=2)


# ---------------------------------------------------------------- windows out of bounds


def only(maps: tuple[IndexingMap, ...]) -> IndexingMap:
    (index_map,) = maps
    return index_map


ROWS = (
    "f32[6,3] scatter(f32[6,3] p, s32[2] i, f32[2,3] u), update_window_dims={1}, "
    "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add"
)


def test_an_update_writes_the_row_of_its_index() -> None:
    scatter = parse_sample(ROWS).instruction
    written = only(input_to_output(scatter, 2).maps[0])
    assert str(written) == (
        "(d0, d1){rt0} -> (rt0, d1), domain: d0 in [0, 1], d1 in [0, 2], rt0 in [0, 5]"
    )
    (row,) = written.runtime
    assert row.source is scatter.operands[1]
    assert str(written.source_map(row)) == "(d0, d1) -> (d0), domain: d0 in [0, 1], d1 in [0, 2]"
    assert written.evaluate((1, 2), runtime=[4]) == (4, 2)
    assert written.evaluate((1, 2), runtime=[6]) is None
    assert written.evaluate((1, 2), runtime=[-1]) is None


def test_an_index_is_not_clamped_to_the_operand() -> None:
    """The bounds of the variable keep the window in bounds; the clamp is the range of the type."""
    (row,) = only(output_to_input(parse_sample(ROWS).instruction).maps[2]).runtime
    assert row.variable.bounds == (0, 5)
    assert row.clamp == (-(2**31), 2**31 - 1)


def test_a_window_of_full_size_depends_on_its_index() -> None:
    """Any index other than 0 skips the update: composition must not fold it to a constant."""
    module = hlo.parse("""
    add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
    ENTRY e {
      p = f32[3] parameter(0)  i = s32[1] parameter(1)  u = f32[3] parameter(2)
      n = f32[3] negate(u)
      s = f32[3] scatter(p, i, n), update_window_dims={0}, inserted_window_dims={},
        scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=add
      ROOT r = f32[3] reverse(s), dimensions={0}
    }""")
    updates = only(to_parameters(module.entry.root).maps[2])
    assert [rt.source for rt in updates.runtime] == [module.entry["i"]]
    assert updates.evaluate((0,), runtime=[0]) == (2,)
    assert updates.evaluate((0,), runtime=[1]) is None


def test_all_arrays_are_scattered_at_the_same_indices() -> None:
    text = (
        "(f32[5], s32[5]) scatter(f32[5] p, s32[5] q, s32[2,1] i, f32[2,2] u, s32[2,2] v), "
        "update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, "
        "index_vector_dim=1, to_apply=add_both"
    )
    sample = parse_sample(text)
    arrays = [np.zeros(5, np.float32), np.zeros(5, np.int32)]
    updates = [np.ones((2, 2), np.float32), np.full((2, 2), 10, np.int32)]
    index = np.array(
        [[3], [4]], np.int32
    )  # the second window is out of bounds and skipped as a whole
    first, second = sample.run([*arrays, index, *updates])
    assert first.tolist() == [0, 0, 0, 11, 11]
    assert second.tolist() == [0, 0, 0, 11, 11]


# ---------------------------------------------------------------- rules

# fmt: off
FAULTS = [
    # replaced text              replacement                     rule  location   label
    (", f32[2,3] u",             ", f32[2,3] u, f32[2,3] v",     "C1", None,      "4 operands, expected an odd number"),
    ("f32[2,3] u",               "s32[2,3] u",                   "C1", None,      "updates (operand 2) have type s32, expected f32, the type of operand 0"),
    ("inserted_window_dims={0}", "inserted_window_dims={2}",     "C2", "{2}",     "2 is not in [0, 1]"),
    ("update_window_dims={1}",   "update_window_dims={}",        "C2", "{}",      "0 values, expected 1: one for each windowed operand dimension"),
    ("update_window_dims={1}",   "update_window_dims={2}",       "C2", "{2}",     "2 is not in [0, 1]"),
    ("f32[2,3] u",               "f32[2,4] u",                   "C3", None,      "the window has size 4 in dimension 1, the operand 3"),
    ("s32[2] i",                 "f32[2] i",                     "C4", None,      "operand 1 is f32[2]"),
    ("index_vector_dim=1",       "index_vector_dim=2",           "C5", "2",       "2 is not in [0, 1]"),
    ("operand_dims={0}",         "operand_dims={0,1}",           "C6", "{0,1}",   "2 values, expected 1: one for each component of an index vector"),
    ("operand_dims={0}",         "operand_dims={2}",             "C6", "{2}",     "2 is not in [0, 1]"),
    ("index_vector_dim=1",       "scatter_indices_batching_dims={0}, index_vector_dim=1", "C7", "{0}", "1 value, expected 0: one for each entry of input_batching_dims"),
    ("f32[2,3] u",               "f32[5,3] u",                   "C8", None,      "the scatter dimensions of the updates are [5], those of the indices [2]"),
]
# fmt: on


@pytest.mark.parametrize("before, after, rule, at, label", FAULTS)
def test_a_fault_has_its_rule_location_and_label(
    before: str, after: str, rule: str, at: str | None, label: str
) -> None:
    assert before in ROWS
    text = ROWS.replace(before, after, 1)
    (error,) = hlo.verify(parse_sample(text).instruction.module)
    assert f" {rule}: " in error.message
    assert (error.span.text, error.label) == (at or f"out = {text}", label)


def test_a_fault_of_the_indices_gives_their_operand_number() -> None:
    text = (
        "(f32[5], s32[5]) scatter(f32[5] p, s32[5] q, f32[2,1] i, f32[2,2] u, s32[2,2] v), "
        "update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, "
        "index_vector_dim=1, to_apply=add_both"
    )
    (error,) = hlo.verify(parse_sample(text).instruction.module)
    assert error.label == "operand 2 is f32[2,1]"
