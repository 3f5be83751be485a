"""Derived sharding rules are Shardy's, or an element decides why not.

Rules agree if they allow the same splits without communication: the same digits pass through or are
reduced. Names, order and sizes of the other factors do not matter.
"""

from __future__ import annotations

from math import prod
from pathlib import Path

import pytest
from hypothesis import given

from tests.checks import checks
from tests.ops import strategies
from tests.ops.samples import ALL, Sample, parse_sample, samples_of
from tests.ops.test_random_ops import ELEMENTWISE, STRATEGIES
from tests.oracles import fuzz
from tests.sharding.rules.sharding_checks import broken_factors
from tests.sharding.rules.shardy import NOT_STABLEHLO, Comparison, compare, kinds, reads_nothing

MAX_ELEMENTS = 200
OTHER_KINDS = frozenset({"pad", "reduce-scatter", "select-and-scatter"})
"""Ops of which a rule has a permutation where the other one has replication."""
NEAR_MISSES = [
    "f32[8] pad(f32[8] p, f32[] v), padding=1_-1",
    "f32[1,3] dynamic-slice(f32[4,3] p, s32[] i, s32[] j), dynamic_slice_sizes={1,3}",
    "f32[8] reduce-window(f32[8] p, f32[] z), window={size=3 pad=1_1}, to_apply=add",
]
PAGE = Path("docs/sharding.md")
HEAD = ["| instruction | Shardy | derived | what decides |", "|---|---|---|---|"]
NOT_CONVERTED = frozenset(
    [
        *("batch-norm-grad", "batch-norm-training", "bitcast", "copy-start", "dynamic-reshape"),
        *("get-dimension-size", "ragged-dot", "rng", "scaled-dot", "set-dimension-size", "topk"),
    ]
)
"""Opcodes with a strategy that Shardy has no rule for."""


def check_comparison(sample: Sample, comparison: Comparison) -> None:
    """Check that Shardy allows no split that holds and that the derived rule misses.

    The window of a convolution may read so few elements, because of padding and dilation, that
    each step reads one element: then the constraints alone make digits equal.
    """
    is_window = sample.instruction.opcode == "convolution"
    missed = {comparison.shardys.factors[number].kind for number in comparison.missed}
    assert not missed or (is_window and missed == {"reduction"})


@pytest.mark.parametrize("opcode", [opcode for opcode in ALL if opcode not in NOT_STABLEHLO])
def test_rules_of_samples_are_shardys(opcode: str) -> None:
    with checks() as check:
        for sample in samples_of(opcode):
            comparison = None if reads_nothing(sample) else compare(sample)
            if comparison is not None:
                with check(sample.text):
                    check_comparison(sample, comparison)
                    if not comparison.differs and opcode not in OTHER_KINDS:
                        assert kinds(sample, comparison.ours) == kinds(sample, comparison.shardys)


def test_the_page_lists_the_differences() -> None:
    """Print the rows for the page if they are not there."""
    samples = [s for name in ALL if name not in NOT_STABLEHLO for s in samples_of(name)]
    samples += map(parse_sample, NEAR_MISSES)
    pairs = [(sample, compare(sample)) for sample in samples if not reads_nothing(sample)]
    rules = [(sample, comparison) for sample, comparison in pairs if comparison is not None]
    rows = [row for sample, comparison in rules for row in table_rows(sample, comparison)]
    differing = sum(comparison.differs for _, comparison in rules)
    head = f"Of {len(rules)} instructions for which Shardy has a rule, {differing} differ:"
    expected = "\n".join([head, "", *HEAD, *rows])
    assert expected in PAGE.read_text(), f"docs/sharding.md needs:\n\n{expected}"


def table_rows(sample: Sample, comparison: Comparison) -> list[str]:
    """Return the row of a sample whose rules differ."""
    if not comparison.differs:
        return []
    reasons = [*comparison.broken, *comparison.proofs]
    cells = [sample.text, str(comparison.shardys), str(comparison.ours)]
    return [f"| {' | '.join(f'`{cell}`' for cell in cells)} | {'; '.join(reasons)} |"]


@pytest.mark.parametrize("name", sorted({*STRATEGIES, "elementwise"} - NOT_CONVERTED))
def test_rules_of_random_instructions_are_shardys(name: str) -> None:
    drawn = STRATEGIES.get(name, strategies.elementwise(ELEMENTWISE))

    @fuzz(25)
    @given(drawn)
    def check(text: str) -> None:
        sample = parse_sample(text)
        size = sum(prod(shape.dims) for shape in (*sample.outputs, *sample.arrays))
        if size > MAX_ELEMENTS or reads_nothing(sample):
            return
        comparison = compare(sample)
        if comparison is not None:
            assert not broken_factors(sample, comparison.ours)
            check_comparison(sample, comparison)

    check()
