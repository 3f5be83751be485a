"""`validate_instruction` reports every corrupted map with the reason, and raises no exception."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

import hlo
from indexing import Constraint, IndexingMap, RuntimeVariable
from indexing.codegen.findings import Report
from indexing.codegen.validation import is_checked, validate_instruction
from indexing.ops.base import MappedOp
from indexing.ops.samples import instruction_of
from simplifier.atoms import Variable
from simplifier.linear import as_expr
from simplifier.substitute import Substitution
from tests import memos
from tests.ops.samples import MAPPED, Sample, SampleChecks, parse_sample, samples_of
from tests.oracles import sampled

Corruption: TypeAlias = Callable[[IndexingMap], IndexingMap | None]
"""None if the map has no such part."""

CHECKS = SampleChecks()
LIMIT = 4096
EXTRA = Variable("rt9", 0, 3)


def without_last_dim(m: IndexingMap) -> IndexingMap | None:
    if not m.dims:
        return None
    swap = Substitution({m.dims[-1]: as_expr(m.dims[-1].lower)})
    return replace(
        m,
        dims=m.dims[:-1],
        results=tuple(map(swap, m.results)),
        constraints=tuple([c.with_expr(swap(c.expr)) for c in m.constraints]),
        runtime=tuple([rt.substituted(swap) for rt in m.runtime]),
    )


def with_runtime(m: IndexingMap, array: Any, index: tuple[int, ...] = ()) -> IndexingMap | None:
    """Add a runtime variable to the first result."""
    if not m.results:
        return None
    rt = RuntimeVariable(EXTRA, array, tuple(map(as_expr, index)), (0, 3))
    first = m.results[0] + EXTRA.as_expr()
    return replace(m, runtime=(*m.runtime, rt), results=(first, *m.results[1:]))


def changed_sources(m: IndexingMap, **changes: Any) -> IndexingMap | None:
    if not m.runtime:
        return None
    return replace(m, runtime=tuple([replace(rt, **changes) for rt in m.runtime]))


def shift(m: IndexingMap, by: int) -> IndexingMap | None:
    if not m.results:
        return None
    return replace(m, results=(m.results[0] + by, *m.results[1:]))


def with_bounds(m: IndexingMap, lower: int, upper: int) -> IndexingMap | None:
    """Change the bounds of the first dimension."""
    if not m.dims:
        return None
    first = Variable(m.dims[0].name, m.dims[0].lower + lower, m.dims[0].upper + upper)
    swap = Substitution({m.dims[0]: first.as_expr()})
    return IndexingMap(
        (first, *m.dims[1:]),
        m.ranges,
        tuple([rt.substituted(swap) for rt in m.runtime]),
        tuple(map(swap, m.results)),
        tuple([c.with_expr(swap(c.expr)) for c in m.constraints]),
        m.grade,
    )


# Not even a map between the arrays.
MALFORMED: dict[str, Corruption] = {
    "a dimension less": without_last_dim,
    "a dimension more": lambda m: replace(m, dims=(*m.dims, Variable("d9", 0, 1))),
    "a result less": lambda m: replace(m, results=m.results[:-1]) if m.results else None,
    "a result more": lambda m: replace(m, results=(*m.results, as_expr(0))),
    "results far outside": lambda m: shift(m, 1 << 20),
    "results below 0": lambda m: shift(m, -(1 << 20)),
    "a dimension beyond its size": lambda m: with_bounds(m, 0, 1),
    "a dimension below 0": lambda m: with_bounds(m, -1, 0),
    "a value without a source": lambda m: with_runtime(m, None),
    "a value of an operand that does not exist": lambda m: with_runtime(m, 99),
    "a value of an unknown instruction": lambda m: with_runtime(m, "nobody"),
    "a value at an index of another rank": lambda m: with_runtime(m, 0, (0,) * 9),
    "values without a source": lambda m: changed_sources(m, array=None),
    "values at an index far outside": lambda m: (
        changed_sources(
            m, index=tuple([as_expr(1 << 20) for _ in m.runtime[0].index] or [as_expr(0)])
        )
        if m.runtime
        else None
    ),
}

# The bounds of a map inside a fusion: composition restricts them to those of its consumer.
WITHIN_BOUNDS = {"a dimension beyond its size", "a dimension below 0"}

# Another relation, or the same one if the change is harmless.
DIFFERENT: dict[str, Corruption] = {
    "shifted by 1": lambda m: shift(m, 1),
    "shifted by -1": lambda m: shift(m, -1),
    "a smaller dimension": lambda m: with_bounds(m, 1, 0),
    "no constraints": lambda m: replace(m, constraints=()) if m.constraints else None,
    "a constraint that never holds": lambda m: replace(
        m, constraints=(Constraint(as_expr(1), 0, 0),)
    ),
    "exact": lambda m: m.with_grade("exact") if m.grade == "may" else None,
    "values without a clamp": lambda m: changed_sources(m, clamp=None),
}


def report_of(sample: Sample, corruption: Corruption) -> tuple[Report, list[IndexingMap]]:
    """Validate a sample with corrupted maps; return the report, and the maps that changed.

    A change that simplification undoes is harmless.
    """
    reads, kind, changed = MappedOp.reads, type(sample.op), list[IndexingMap]()

    def corrupt(m: IndexingMap) -> IndexingMap:
        other = corruption(m)
        if other is None or other.simplify() == m.simplify():
            return m
        changed.append(m)
        return other

    def corrupted_reads(self: MappedOp, *args: Any, **kwargs: Any) -> Any:
        entries = reads(self, *args, **kwargs)
        if type(self) is not kind:
            return entries
        return tuple([tuple(map(corrupt, e)) if isinstance(e, tuple) else e for e in entries])

    memos.forget(*memos.OF_MAPS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MappedOp, "reads", corrupted_reads)
        return validate_instruction(instruction_of(sample.text), 0, LIMIT), changed


def is_executed(sample: Sample) -> bool:
    """Return True for a sample whose checks are not all skipped."""
    if not is_checked(sample.instruction):
        return False
    return validate_instruction(sample.instruction, 0, LIMIT).status != "skipped"


@CHECKS.of(MAPPED)
def malformed_maps_are_wrong(sample: Sample) -> None:
    for name, corruption in MALFORMED.items() if is_executed(sample) else ():
        report, changed = report_of(sample, corruption)
        if any(m.is_empty() is False for m in changed):
            assert report.status == "wrong", f"{name}: {report.findings}"
            details = [text for f in report.findings if f.status == "wrong" for text in f.details]
            assert all(details), name


@CHECKS.of(MAPPED)
def different_maps_are_reported_without_an_exception(sample: Sample) -> None:
    for corruption in DIFFERENT.values() if is_executed(sample) else ():
        report, _ = report_of(sample, corruption)
        assert report.status in ("ok", "wrong")


@pytest.mark.usefixtures("forget_maps")
@pytest.mark.parametrize("opcode", MAPPED)
def test_corrupted_maps_of_samples_are_reported(opcode: str) -> None:
    CHECKS.check(opcode, sampled(samples_of(opcode), opcode))


@pytest.mark.usefixtures("forget_maps")
@pytest.mark.parametrize("name", ["shifted by 1", "shifted by -1", "a smaller dimension"])
@pytest.mark.parametrize(
    "text",
    [
        "f32[5,7] transpose(f32[7,5] p), dimensions={1,0}",
        "f32[3,5] slice(f32[7,9] p), slice={[2:5], [1:6]}",
        "f32[6,4] negate(f32[6,4] p)",
        "f32[4] reduce(f32[5,4] p, f32[] z), dimensions={0}, to_apply=add",
    ],
)
def test_maps_to_other_elements_are_wrong(text: str, name: str) -> None:
    report, changed = report_of(parse_sample(text), DIFFERENT[name])
    assert changed
    assert report.status == "wrong"


@pytest.mark.usefixtures("forget_maps")
@pytest.mark.parametrize("name", [n for n in MALFORMED if n not in WITHIN_BOUNDS])
def test_a_malformed_map_inside_a_fusion_is_wrong(name: str) -> None:
    text = """
    f { p = f32[7,9] parameter(0)  i = s32[] parameter(1)  n = f32[7,9] negate(p)
      s = f32[3,5] dynamic-slice(n, i, i), dynamic_slice_sizes={3,5}
      ROOT r = f32[15] reshape(s) }
    ENTRY e { p = f32[7,9] parameter(0)  i = s32[] parameter(1)
      ROOT r = f32[15] fusion(p, i), kind=kLoop, calls=f }"""
    reads = MappedOp.reads

    def corrupted_reads(self: MappedOp, *args: Any, **kwargs: Any) -> Any:
        entries = reads(self, *args, **kwargs)
        if self.opcode != "dynamic-slice":
            return entries
        maps, *others = entries
        assert isinstance(maps, tuple)
        return tuple([MALFORMED[name](m) or m for m in maps]), *others

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MappedOp, "reads", corrupted_reads)
        report = validate_instruction(hlo.parse(text).entry.root, 0, LIMIT)
    assert report.status == "wrong"
