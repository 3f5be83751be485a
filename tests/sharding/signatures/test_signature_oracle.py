"""Signatures against two oracles: enumeration of the maps' points, and execution."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hlo.ops.op import OPS
from hlo.shapes.shape import ELEMENT_TYPES
from hlo.shardings.sharding import REDUCTIONS
from indexing import SbpSignature, Unknown, check_signature, sbp
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.elementwise import ElementwiseOp
from indexing.sharding.partial_values import laws, operand_states
from indexing.sharding.partial_values.laws import has_reduction
from indexing.sharding.signatures.checks import Refused
from indexing.sharding.splits import containment
from indexing.sharding.splits.containment import Breach, Contained, Containment
from indexing.sharding.splits.split_choices import SplitChoices
from indexing.sharding.splits.subjects import Subject
from tests.oracles import sampled
from tests.sharding.signatures.signature_oracle import (
    Pairs,
    candidates,
    differing_shards,
    executable,
    first_fault,
    pairs_of,
    samples,
    shard,
    subject_of,
    unequal_shards,
)

SAMPLES = samples()
BY_OPCODE: dict[str, list[str]] = defaultdict(list)
for sample in SAMPLES:
    if (tested := subject_of(sample)).obstacle() is None:
        BY_OPCODE[tested.root.opcode].append(sample)
FREQUENT = {"abs", "add", "clamp", "convert", "maximum", "multiply", "negate", "select", "subtract"}
"""The elementwise ops that are not left to the slow tests."""

OPCODES = [
    pytest.param(
        name,
        marks=pytest.mark.slow
        if issubclass(OPS[name], ElementwiseOp) and name not in FREQUENT
        else [],
    )
    for name in sorted(BY_OPCODE)
]

DOT = "f32[3,5] dot(f32[3,4] p, f32[4,5] q), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
DECIDED = (
    DOT,
    "f32[2,3] add(f32[2,3] x, f32[2,3] y)",
    "f32[2,3] sine(f32[2,3] x)",
    "f32[6,3] pad(f32[2,3] p, f32[] v), padding=1_3x0_0",
)


def outside(pairs: Pairs, result: int | None, size: int, source: int, of: int, n: int) -> Pairs:
    """The pairs whose elements are in shards of different numbers."""
    return [
        (d, e)
        for d, e in pairs
        if result is None or shard(d[result], size, n) != shard(e[source], of, n)
    ]


def fault_of(verdict: Containment, broken: Pairs, over: Pairs, is_complete: bool) -> bool:
    """True if a verdict is wrong, for the pairs that exact maps and all maps break."""
    match verdict:
        case Contained((0, 0)):
            return bool(over)
        case Contained():
            return not over
        case Breach(result, operand):
            return (result, operand) not in broken
        case Unknown(reason):
            return is_complete and not over and "has a dynamic size" not in reason
    raise AssertionError


def split_faults(subject: Subject, shards: int) -> list[str]:
    """Faults of all verdicts about splits of one subject, by enumeration."""
    faults, choices = [], SplitChoices(subject, shards)
    for r, out in enumerate(subject.results):
        for k, array in enumerate(subject.inputs):
            accesses = subject.accesses(r, k, exact=True)
            points = [(m, pairs_of(m)) for m in accesses.maps]
            assert all(pairs is not None for _, pairs in points)
            for j in [None, *range(out.shape.rank)]:
                size = 1 if j is None else out.shape.dims[j]
                for i, of in enumerate(array.shape.dims):
                    verdict = choices.decide(r, j, k, i, shards)
                    over = [
                        (m, outside(pairs or [], j, size, i, of, shards)) for m, pairs in points
                    ]
                    broken = [pair for m, pairs in over if m.grade == "exact" for pair in pairs]
                    every = [pair for _, pairs in over for pair in pairs]
                    if fault_of(verdict, broken, every, accesses.unknown is None):
                        faults.append(f"{subject.root}: {j} {k} {i} {shards}: {verdict}")
    return faults


def subjects(opcode: str, *, executed: bool = False) -> list[Subject]:
    """The samples of an op, or those that can be executed."""
    every = [subject_of(text) for text in BY_OPCODE[opcode]]
    return [subject for subject in every if not executed or executable(subject.root)]


@pytest.mark.parametrize("opcode", OPCODES)
def test_splits_are_valid_iff_no_element_is_outside(opcode: str) -> None:
    for subject in subjects(opcode):
        assert not [fault for n in (2, 3) for fault in split_faults(subject, n)]


@pytest.mark.parametrize("opcode", OPCODES)
def test_listed_signatures_execute(opcode: str) -> None:
    for subject in subjects(opcode, executed=True):
        for n in (2, 3):
            for s in sampled(sbp(subject.root, n), opcode):
                fault = first_fault(subject, s.operands, s.results, s.halo, n, seed=n)
                assert not fault, f"{subject.root}: {s}: {fault}"


@pytest.mark.parametrize("opcode", OPCODES)
def test_a_signature_without_places_has_the_same_maps_in_each_shard(opcode: str) -> None:
    for subject in subjects(opcode):
        for n in (None, 2):
            signatures = [s for s in sbp(subject.root, n) if not s.needs_place]
            assert not [fault for s in signatures for fault in differing_shards(subject, s)]


@pytest.mark.parametrize("opcode", OPCODES)
def test_a_signature_without_places_has_equal_results_for_equal_shards(opcode: str) -> None:
    for subject in subjects(opcode, executed=True):
        for s in sbp(subject.root):
            if not s.needs_place and s.shards and not any(map(any, s.halo)):
                fault = unequal_shards(subject, s, s.shards, seed=3)
                assert not fault, f"{subject.root}: {s}: {fault}"


@pytest.mark.parametrize("opcode", OPCODES)
def test_a_signature_holds_for_each_divisor_of_its_shards(opcode: str) -> None:
    for root in [subject.root for subject in subjects(opcode)]:
        for s in sbp(root):
            for n in range(2, (s.shards or 1) + 1):
                if (s.shards or 1) % n == 0:
                    verdict = check_signature(root, s.operands, s.results, n)
                    assert isinstance(verdict, SbpSignature), f"{s}, {n} shards: {verdict}"
                    assert verdict.halo == s.halo


def decide(subject: Subject, *, is_sampled: bool = False) -> Counter[str]:
    """Count the verdicts about partial values of all operands; executed if valid."""
    verdicts = Counter[str]()
    halos = [(0, 0)] * len(subject.inputs)
    for reduction in REDUCTIONS:
        types = [ELEMENT_TYPES[a.shape.element_type] for a in subject.results]
        if len(subject.inputs) > 3 or not all(has_reduction(t, reduction) for t in types):
            continue
        every = list(candidates(subject, reduction))
        for operands, results in sampled(every, subject.root) if is_sampled else every:
            verdict = check_signature(subject.root, operands, results, 2)
            verdicts[type(verdict).__name__] += 1
            if isinstance(verdict, SbpSignature):
                fault = first_fault(subject, operands, results, halos, 2, seed=5, draws=4)
                assert not fault, f"{verdict}: {fault}"
    return verdicts


@pytest.mark.sampled
@pytest.mark.parametrize("opcode", OPCODES)
def test_valid_partial_values_execute(opcode: str) -> None:
    for subject in subjects(opcode, executed=True):
        decide(subject, is_sampled=True)


def test_most_partial_values_are_decided() -> None:
    total = sum((decide(subject_of(text)) for text in DECIDED), Counter[str]())
    assert total["Unknown"] == 0
    assert total["SbpSignature"] > 20
    assert total["Refused"] > 20


# ---------------------------------------------------------------- the oracles see mutants


def test_a_wrong_law_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    sine: tuple[Callable[..., Any], str] = np.sin, "sum"
    monkeypatch.setitem(laws._FLOAT_LAWS, sine, (("sum",),))
    with pytest.raises(AssertionError, match="is not"):
        decide(subject_of("f32[2,3] sine(f32[2,3] x)"))


def test_a_reduction_that_ignores_its_init_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operand_states, "_is_read", lambda reads, k: False)
    with pytest.raises(AssertionError, match="is not"):
        decide(subject_of("f32[3] reduce(f32[2,3,5] p, f32[] z), dimensions={0,2}, to_apply=add"))


def test_a_wrong_split_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def contain(subject: object, m: IndexingMap, *rest: object) -> Containment:
        return Contained(maps=(m,))

    monkeypatch.setattr(containment, "containment", contain)
    text = (
        "f32[3,5] dot(f32[3,4] p, f32[4,5] q), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    )
    subject = subject_of(text)
    assert split_faults(subject, 2)
    results = [
        first_fault(subject, s.operands, s.results, s.halo, 2, seed=1) for s in sbp(subject.root, 2)
    ]
    assert any(results)


def test_a_refusal_names_an_element_that_breaks() -> None:
    text = "f32[4,2,3] transpose(f32[2,3,4] p), dimensions={2,0,1}"
    refused = check_signature(subject_of(text).root, ["S(0)"], ["S(0)"], 2)
    assert isinstance(refused, Refused)
    assert not refused
    assert refused.operand is not None
    assert refused.shards is not None
    (_, element), (_, needed), (own, other) = refused.result, refused.operand, refused.shards
    assert needed == (element[1], element[2], element[0])
    assert own == element[0] // 2 != other == needed[0] // 1


def test_a_missing_mark_of_places_is_seen() -> None:
    text = "f32[6] pad(f32[4] p, f32[] v), padding=1_1"
    (split,) = [s for s in sbp(subject_of(text).root, 2) if s.operands[0] == "S(0)"]
    assert split.needs_place
    assert differing_shards(subject_of(text), split)
