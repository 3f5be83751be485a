"""Rewrites of XLA's passes as small modules written by hand: before, after, and a near miss.

Each file in ``rewrites/`` has three modules.  The second computes the same as the first; the third
differs in one place from a correct rewrite, as a faulty pass would leave it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

import hlo
from hlo.modules.module import Module
from indexing import equivalent
from indexing.equivalence import Differs, Proved, Undecided

REWRITES: Final = Path(__file__).parent / "rewrites"

PROVED: Final = (
    *(
        "all_reduce_reassociation",
        "batch_norm_expander",
        "bitcast",
        "call_inlining",
        "convolution_canonicalization",
    ),
    *("dot_decomposer", "fusion", "layout_assignment", "sharding_removal", "tuple_forwarding"),
    *("loop_unrolling", "loop_unrolling_of_two", "scatter_expander_of_one_update"),
    *("scatter_without_bounds", "while_loop_simplification"),
)

# fmt: off
UNDECIDED: Final = {
    # rewrite                    (proved level, start of the subterm before, start of it after)
    "batch_norm_textbook":      ("reads", "add(negate(multiply(", "add(parameter 2[d1], multiply("),
    "scatter_expander":         (None, "add(parameter 0[d0], reduce add[8](",
                                 "add(parameter 0[d0], select("),
    "scatter_expander_loop":    (None, "add(parameter 0[d0], reduce add[8](", "loop[8]("),
}
# fmt: on
"""Correct rewrites that no law covers: a scatter against its loop,
distribution of a product over a sum, a fold over updates against its terms."""

NOT_EXECUTED: Final = ("all_reduce_reassociation",)
"""Near misses without a witness: executions of one device do not reach other devices."""


def modules(name: str) -> tuple[Module, Module, Module]:
    before, after, near_miss = hlo.load_all(REWRITES / f"{name}.hlo")
    return before, after, near_miss


def test_each_file_has_an_expected_verdict() -> None:
    assert sorted((*PROVED, *UNDECIDED)) == sorted(path.stem for path in REWRITES.iterdir())


@pytest.mark.parametrize("name", PROVED)
def test_a_rewrite_is_proved(name: str) -> None:
    before, after, _ = modules(name)
    for verdict in (equivalent(before, after), equivalent(after, before)):
        assert isinstance(verdict, Proved), verdict
        assert verdict.level == "values"


@pytest.mark.parametrize("name", UNDECIDED)
def test_a_rewrite_without_a_law_is_undecided_with_its_terms(name: str) -> None:
    before, after, _ = modules(name)
    level, start_before, start_after = UNDECIDED[name]
    verdict = equivalent(before, after)
    assert isinstance(verdict, Undecided), verdict
    assert verdict.level == level
    assert verdict.reason.startswith("the formulas differ")
    assert verdict.terms is not None
    assert verdict.terms[0].startswith(start_before)
    assert verdict.terms[1].startswith(start_after)


@pytest.mark.parametrize("name", [*PROVED, *UNDECIDED])
def test_a_near_miss_differs(name: str) -> None:
    before, after, near_miss = modules(name)
    for correct in (before, after):
        verdict = equivalent(correct, near_miss)
        if name in NOT_EXECUTED:
            assert isinstance(verdict, Undecided), verdict
        else:
            assert isinstance(verdict, Differs), verdict
            assert verdict.before != verdict.after


NARROW: Final = """ENTRY e { x = bf16[40] parameter(0)  m = bf16[40] multiply(x, x)
  s = bf16[40] %s(m, x)  ROOT r = f32[40] convert(s) }"""
WIDE: Final = """ENTRY e { x = bf16[40] parameter(0)  f = f32[40] convert(x)
  m = f32[40] multiply(f, f)  ROOT s = f32[40] add(m, f) }"""


def test_rounding_to_a_narrow_type_is_no_difference() -> None:
    """The outputs of type f32 differ by the rounding of bf16, as passes that widen types do."""
    wide = hlo.parse(WIDE)
    assert isinstance(equivalent(hlo.parse(NARROW % "add"), wide, "numbers"), Undecided)
    assert isinstance(equivalent(hlo.parse(NARROW % "subtract"), wide, "numbers"), Differs)
