"""Integers of HLO text may have any value: every question has an answer or an `HloError`."""

from __future__ import annotations

import re
from random import Random
from typing import Final

import pytest

from hlo.ops.op import OPS, OPS_BY_TARGET
from indexing.ops.samples import instruction_of
from tests.analysis_fuzz.questions import ask
from tests.checks import checks
from tests.oracles import sampled

EXTREMES: Final = (
    *("-1", "0", "2147483648", "4294967296", "9223372036854775807", "9223372036854775808"),
    *("1" + "0" * 30, "1" + "0" * 4400),
)
_INTEGER: Final = re.compile(r"(?<![\w.])-?\d+(?![\w.])")
QUESTIONS: Final = 4


def extremes_of(sample: str) -> list[str]:
    """Return a module for each integer in the module of a sample, and each extreme."""
    text = str(instruction_of(sample).module)
    return [
        text[: match.start()] + extreme + text[match.end() :]
        for match in _INTEGER.finditer(text)
        for extreme in EXTREMES
    ]


@pytest.mark.sampled
@pytest.mark.parametrize("name", [*OPS, *OPS_BY_TARGET])
def test_every_integer_may_be_extreme(name: str) -> None:
    op = OPS.get(name) or OPS_BY_TARGET[name]
    every = [text for sample in op.samples for text in extremes_of(sample)]
    with checks() as check:
        for text in sampled(Random(name).sample(every, min(len(every), 60)), name):
            with check(text[:2000]):
                ask(text, len(text), QUESTIONS)


EMPTY = [
    "ENTRY e { p = f32[2,0] parameter(0)  ROOT r = f32[0,9223372036854775807] reshape(p) }",
    "ENTRY e { p = s16[0,9223372036854775807] parameter(0)  ROOT r = s16[0,9223372036854775807] "
    "abs(p) }",
    "ENTRY e { p = f32[0,7] parameter(0)  ROOT r = f32[4294967296,0] reshape(p) }",
    "ENTRY e { ROOT c = s32[9223372036854775807] constant(1) }",
    "ENTRY e { ROOT c = s32[0,9223372036854775807] constant({}) }",
]


@pytest.mark.parametrize("text", EMPTY)
def test_empty_and_unrepresentable_arrays_have_answers(text: str) -> None:
    for seed in range(3):
        ask(text, seed)
