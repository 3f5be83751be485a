"""Answers about Pallas calls against the enumeration of their grids."""

from __future__ import annotations

from typing import Any

import pytest

from indexing.pallas import block_tables, check
from indexing.pallas.checking import check_call
from indexing.pallas.grid_orders import GridOrder
from indexing.pallas.report import CallReport
from indexing.pallas.tracing import traced_calls
from simplifier.unknown import Unknown
from tests.oracles import sampled
from tests.pallas import examples
from tests.pallas.enumeration import best_bytes, box, elements, facts, is_legal, meet, steps
from tests.pallas.kernels import Kernel, Operand
from tests.pallas.random_kernels import random_kernel

pytest.importorskip("jax")

WORKED = [
    examples.MATVEC,
    examples.K_OUTERMOST,
    examples.ragged_kernel(2),
    examples.ragged_kernel(16),
    examples.RACE,
    examples.transpose(is_aliased=True),
    examples.transpose(is_aliased=False),
]


def report_of(kernel: Kernel, **options: Any) -> CallReport:
    function, avals = kernel.function()
    (call,) = check(function, *avals, **options).calls
    return call


def answers(report: CallReport) -> dict[Any, Any]:
    """Return the answers by the keys of `facts`."""
    given: dict[Any, Any] = {"bytes": report.bytes, "vmem": report.vmem_bytes}
    for number, operand in enumerate(report.operands):
        given[number, "bounds"] = operand.bounds
        given[number, "moves"] = operand.fetches, operand.bytes
        given[number, "overhang"] = operand.overhang
        for name in ("covered", "visits", "race", "hazard"):
            given[number, name] = getattr(operand, name)
    return given


def check_facts(kernel: Kernel, report: CallReport) -> None:
    """Check that each fact is decided, and as the enumeration decides it."""
    given, expected = answers(report), facts(kernel)
    assert {key: given[key] for key in expected} == expected
    check_witnesses(kernel, report)


def check_witnesses(kernel: Kernel, report: CallReport) -> None:
    """Check each witness by the blocks of the steps that it names."""
    operands = (*kernel.inputs, *kernel.outputs)
    for operand, answer in zip(operands, report.operands, strict=True):
        if answer.bounds == "out":
            assert answer.bounds_at is not None
            step, element = answer.bounds_at
            block = box(operand, step)
            assert not is_legal(operand, block)
            assert all(a <= e < b for e, (a, b) in zip(element, block, strict=True))
            assert all(is_legal(operand, box(operand, p)) for p in steps(kernel.grid) if p < step)
        if answer.hole is not None:
            blocks = [box(operand, p) for p in steps(kernel.grid)]
            assert all(answer.hole not in elements(operand, b) for b in blocks)
        if answer.visits == "apart":
            assert answer.visits_at is not None
            first, second = answer.visits_at
            between = [p for p in steps(kernel.grid) if first < p < second]
            assert box(operand, first) == box(operand, second)
            assert any(box(operand, p) != box(operand, first) for p in between)
        if answer.visits == "overlap":
            assert answer.visits_at is not None
            first, second = answer.visits_at
            assert box(operand, first) != box(operand, second)
            assert meet(box(operand, first), box(operand, second))
        if answer.race is True:
            assert answer.race_at is not None
            first, second, element = answer.race_at
            for step in (first, second):
                assert element in elements(operand, box(operand, step))
            names = [f"i{k}" for k in range(len(kernel.grid))]
            assert any(a != b for a, b in zip(first, second, strict=True))
            assert answer.race_dimension in names or answer.race_dimension
        if answer.hazard is True:
            assert answer.hazard_at is not None
            writer, reader, element = answer.hazard_at
            ((source, _),) = kernel.aliases
            assert element in elements(operand, box(operand, writer))
            assert element in elements(operand, box(kernel.inputs[source], reader))


@pytest.mark.parametrize("kernel", WORKED, ids=lambda kernel: kernel.name)
def test_worked_examples(kernel: Kernel) -> None:
    check_facts(kernel, report_of(kernel))


def test_matrix_times_vector() -> None:
    """An output block stays in VMEM over the inner dimension."""
    report = report_of(examples.MATVEC)
    x, v, out = report.operands
    assert (x.fetches, v.fetches, out.fetches) == (15, 15, 3)
    assert (x.bytes, v.bytes, out.bytes, report.vmem_bytes) == (61_440, 7_680, 96, 24_576)
    assert (out.covered, out.visits, out.race, report.faults) == (True, "consecutive", False, ())


def test_reduction_in_the_outer_dimension() -> None:
    """The output is written and dropped in each round; the order (i, k) repairs this."""
    report = report_of(examples.K_OUTERMOST)
    x, v, out = report.operands
    assert (x.fetches, v.fetches, out.fetches) == (15, 5, 15)
    assert (x.bytes, v.bytes, out.bytes) == (61_440, 2_560, 480)
    assert (out.visits, out.visits_at) == ("apart", ((0, 0), (1, 0)))
    order = report.best_order
    assert order is not None
    assert not isinstance(order, Unknown)
    assert (order.names, order.bytes) == (("i", "k"), 69_216)


def test_element_blocks() -> None:
    """The padding decides whether the last block is legal."""
    source, output = report_of(examples.ragged_kernel(2)).operands
    assert (source.bounds, source.bounds_at) == ("out", ((3,), (52, 0)))
    assert (output.bounds, output.overhang) == ("padded", (14, 0))
    source, output = report_of(examples.ragged_kernel(16)).operands
    assert (source.bounds, source.bytes, output.bytes) == ("padded", 31_744, 25_600)


def test_pages() -> None:
    """A range of the page numbers proves the bounds; without it, there is a condition."""
    source, output = report_of(examples.PAGES, ranges={"s": (0, 9)}).operands
    assert (source.bounds, output.visits, output.covered) == ("inside", "once", True)
    source, output = report_of(examples.PAGES).operands
    assert (source.bounds, source.condition) == ("may", "0 <= j + s[i] * 2 <= 19")
    assert (output.bounds, output.visits, output.covered) == ("inside", "once", True)
    assert (source.fetches, source.bytes) == (None, None)
    source = report_of(examples.PAGES, ranges={"s": (10, 99)}).operands[0]
    assert (source.bounds, source.bounds_at) == ("out", ((0, 0), (160, 0)))
    source = report_of(examples.PAGES).operands[0]
    (rt,) = source.map.runtime  # type: ignore[union-attr]
    assert (rt.source_name, [str(i) for i in rt.index]) == ("s", ["d0"])


def test_race() -> None:
    report = report_of(examples.RACE)
    source, output = report.operands
    assert (output.race, output.race_at) == (True, ((0, 0, 0), (1, 0, 0), (0, 0)))
    assert output.race_dimension == "b"
    assert (output.visits, output.visits_at) == ("apart", ((0, 0, 0), (1, 0, 0)))
    assert (source.fetches, source.bytes, output.fetches, output.bytes) == (24, 49_152, 8, 32_768)
    assert report.vmem_bytes == 16_384


def test_hazard_of_a_transpose_in_place() -> None:
    (_, output) = report_of(examples.transpose(is_aliased=True)).operands
    assert (output.hazard, output.hazard_at) == (True, ((0, 1), (1, 0), (0, 128)))
    (_, output) = report_of(examples.transpose(is_aliased=False)).operands
    assert output.hazard is False


@pytest.mark.sampled
def test_random_kernels() -> None:
    """All facts of random kernels are decided, and as the enumeration decides them."""
    for seed in sampled(range(400)):
        kernel = random_kernel(seed)
        function, avals = kernel.function()
        (call,) = traced_calls(function, avals, {}).calls
        report = check_call(call)
        check_facts(kernel, report)
        if not isinstance(report.best_order, Unknown):
            fewest = None if report.best_order is None else report.best_order.bytes
            assert fewest == best_bytes(kernel), seed


def test_far_blocks_are_numbered_by_sorting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of few steps may start at many elements."""
    monkeypatch.setattr(block_tables, "_MIN_NUMBERS", 0)
    block = ((2,), (3,))
    kernel = Kernel(
        "far",
        (2, 3, 3),
        (Operand((90, 400), block, lambda i, j, k: (40 * (i + j) % 80, 97 * (k % 2) + 150 * i)),),
        (Operand((90, 400), block, lambda i, j, k: (40 * j, 97 * k + 150 * i)),),
    )
    report = report_of(kernel)
    check_facts(kernel, report)
    assert isinstance(report.best_order, GridOrder)
    assert report.best_order.bytes == best_bytes(kernel)
