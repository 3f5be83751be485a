"""A few pairs of the hunt for false verdicts."""

from __future__ import annotations

from tests.equivalence.verdict_hunt import hunt
from tests.oracles import scale


def test_no_verdict_on_random_pairs_is_false() -> None:
    counts, false = hunt(seed=5, count=scale(120))
    assert not false, "\n\n".join(false)
    assert counts["equal: Proved"]
    assert counts["mutant: Differs"]
