"""Signatures of the fusions of optimised modules, executed."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo
from indexing import sbp
from indexing.sharding.splits.subjects import Subject
from tests.sharding.signatures.signature_oracle import first_fault, is_separable

EXAMPLES = Path(__file__).parents[3] / "examples"
MAX_ELEMENTS = 4096


def fusions(name: str) -> list[Subject]:
    """Different fusions of arrays with few elements."""
    subjects: dict[str, Subject] = {}
    for computation in hlo.load(str(EXAMPLES / name)).computations.values():
        for instruction in computation:
            if instruction.opcode == "fusion":
                subject = Subject.of(instruction)
                arrays = [*subject.inputs, *subject.results]
                if max(array.shape.size for array in arrays) <= MAX_ELEMENTS:
                    body = [str(i.op) for i in instruction.called_computations[0]]
                    subjects.setdefault(f"{body} {[str(a.shape) for a in arrays]}", subject)
    return list(subjects.values())


# fmt: off
MODULES = [
    # module                        signatures, at least
    ("attention.opt.hlo",            30),
    ("gpt2_tiny.opt.hlo",            100),
    ("layernorm.opt.hlo",            3),
    ("dynamic_slice_update.opt.hlo", 10),
]
# fmt: on


@pytest.mark.parametrize(("name", "count"), MODULES)
def test_signatures_of_fusions_execute(name: str, count: int) -> None:
    executed = 0
    for subject in fusions(name):
        for s in sbp(subject.root, 2):
            executed += 1
            if any(text.startswith("S") for text in s.operands) and "P(sum)" in s.results:
                assert is_separable(subject, s.operands, s.results, seed=1), f"{subject.root}: {s}"
            elif not any(text.startswith("P") for text in s.results) or "S" not in str(s):
                fault = first_fault(subject, s.operands, s.results, s.halo, 2, seed=2, draws=2)
                assert not fault, f"{subject.root}: {s}: {fault}"
    assert executed >= count, executed


def test_a_product_is_not_separable() -> None:
    text = """
    f { p = f32[4] parameter(0)  q = f32[4] parameter(1)  ROOT m = f32[4] multiply(p, q) }
    ENTRY e { p = f32[4] parameter(0)  q = f32[4] parameter(1)
      ROOT r = f32[4] fusion(p, q), kind=kLoop, calls=f }"""
    subject = Subject.of(hlo.parse(text).entry.root)
    assert not is_separable(subject, ["P(sum)", "P(sum)"], ["P(sum)"], seed=1)
    assert is_separable(subject, ["P(sum)", "B"], ["P(sum)"], seed=1)
