"""Formulas of traffic against the enumeration of grids, at each of many sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from indexing.pallas import check
from indexing.pallas.block_maps import PlacedOperand
from indexing.pallas.report import CallReport
from indexing.pallas.tracing import traced_calls
from indexing.pallas.traffic_formulas import TransferFormulas, transfer_formulas
from simplifier.linear import Expr
from simplifier.unknown import Unknown
from tests.oracles import sampled
from tests.pallas.enumeration import facts
from tests.pallas.kernels import Kernel, Operand, minimum
from tests.pallas.random_kernels import random_kernel
from tests.pallas.test_values import LAST, symbolic_kernel

pytest.importorskip("jax")


def value(formula: Expr, n: int) -> int:
    return formula.value(dict.fromkeys(formula.variables(), n))


def matmul(n: Any) -> Kernel:
    """Return a product of ragged rows: the sizes of the grid may be 1."""
    return Kernel(
        "matmul",
        ((n + 3) // 4, 3, n),
        (
            Operand((n, 2 * n), (4, 2), lambda i, j, k: (i, k)),
            Operand((2 * n, 6), (2, 2), lambda i, j, k: (k, j)),
        ),
        (Operand((n, 6), (4, 2), lambda i, j, k: (i, j)),),
    )


def outer_reduction(n: Any) -> Kernel:
    return Kernel(
        "outer",
        (2, n, 3),
        (Operand((6, 5 * n), (2, 5), lambda b, k, i: (i, k)),),
        (Operand((6, 4), (2, 4), lambda b, k, i: (i, 0)),),
    )


def grouped_heads(n: Any) -> Kernel:
    """Return attention in which two heads share keys: their blocks move at each second head."""
    return Kernel(
        "heads",
        (2 * n, 3, n),
        (
            Operand((2 * n, 12, 4), (None, 4, 4), lambda h, q, k: (h, q, 0)),
            Operand((n, 2 * n, 4), (None, 2, 4), lambda h, q, k: (h // 2, k, 0), "bfloat16"),
            Operand((n, 8), (None, 8), lambda h, q, k: (h // 2, 0)),
        ),
        (Operand((2 * n, 12, 4), (None, 4, 4), lambda h, q, k: (h, q, 0)),),
    )


def halves(n: Any) -> Kernel:
    """Return a grid without steps for one row, and with ragged blocks of two dimensions."""
    return Kernel(
        "halves",
        (n // 2, (n + 4) // 5),
        (
            Operand((n, n), (2, 5), lambda i, j: (i, j)),
            Operand((7, n), (7, 5), lambda i, j: (0, j)),
            Operand((3, 3), (3, 3), lambda i, j: (0, 0)),
        ),
        (Operand((n, n), (2, 5), lambda i, j: (i, j)),),
    )


FORMULAS: list[Callable[[Any], Kernel]] = [matmul, outer_reduction, grouped_heads, halves]


def report_of(kernel_of: Callable[[Any], Kernel]) -> CallReport:
    from jax import export

    (n,) = export.symbolic_shape("n")
    function, avals = kernel_of(n).function()
    (call,) = check(function, *avals, ranges={"n": (1, LAST)}).calls
    return call


@pytest.mark.parametrize("kernel_of", FORMULAS, ids=lambda kernel_of: kernel_of.__name__)
def test_formulas_hold_at_all_sizes(kernel_of: Callable[[Any], Kernel]) -> None:
    call = report_of(kernel_of)
    for size in range(1, LAST + 1):
        expected = facts(kernel_of(size))
        for number, operand in enumerate(call.operands):
            if operand.fetches is not None:
                assert (operand.fetches, operand.bytes) == expected[number, "moves"]
                continue
            formulas = operand.fetches_formula, operand.bytes_formula
            assert formulas[0] is not None, operand.notes
            assert formulas[1] is not None, operand.notes
            pair = value(formulas[0], size), value(formulas[1], size)
            assert pair == expected[number, "moves"], (operand.origin, size)
        assert call.bytes is None
        assert call.bytes_formula is not None
        assert value(call.bytes_formula, size) == expected["bytes"]


def check_formulas(moves: TransferFormulas, expected: tuple[int, int], n: int) -> int:
    """Check formulas at one size; return how many there are."""
    assert value(moves.count, n) == expected[0]
    if isinstance(moves.bytes, Unknown):
        return 1
    assert value(moves.bytes, n) == expected[1]
    return 2


@pytest.mark.sampled
def test_formulas_of_random_symbolic_kernels() -> None:
    from jax import export

    known = 0
    for seed in sampled(range(300)):
        (n,) = export.symbolic_shape("n")
        kernel = symbolic_kernel(seed, n)
        function, avals = kernel.function()
        sizes = [*kernel.grid, *[k for o in (*kernel.inputs, *kernel.outputs) for k in o.shape]]
        if all(isinstance(size, int) for size in sizes):
            continue
        (call,) = traced_calls(function, avals, {"n": (1, LAST)}).calls
        every = {size: facts(symbolic_kernel(seed, size)) for size in range(1, LAST + 1)}
        for number, spec in enumerate(call.operands):
            operand = PlacedOperand.of(call, spec)
            assert isinstance(operand, PlacedOperand)
            moves = transfer_formulas(operand)
            if isinstance(moves, TransferFormulas):
                for size, given in every.items():
                    known += check_formulas(moves, given[number, "moves"], size)
    assert known


@pytest.mark.sampled
def test_formulas_of_constant_sizes_are_the_numbers() -> None:
    known = 0
    for seed in sampled(range(300)):
        kernel = random_kernel(seed)
        function, avals = kernel.function()
        (call,) = traced_calls(function, avals, {}).calls
        expected = facts(kernel)
        for number, spec in enumerate(call.operands):
            operand = PlacedOperand.of(call, spec)
            assert isinstance(operand, PlacedOperand)
            moves = transfer_formulas(operand)
            if isinstance(moves, TransferFormulas):
                known += check_formulas(moves, expected[number, "moves"], 0)
    assert known


def test_a_grid_with_too_many_steps_to_enumerate_has_its_numbers() -> None:
    n = 1 << 12
    kernel = Kernel(
        "large",
        (n, n, 2),
        (Operand((8 * n, 256), (8, 128), lambda i, j, k: (i, k)),),
        (Operand((8 * n, 8 * n), (8, 8), lambda i, j, k: (i, j)),),
    )
    function, avals = kernel.function()
    (call,) = check(function, *avals).calls
    source, output = call.operands
    assert (source.fetches, source.bytes) == (2 * n * n, 2 * n * n * 8 * 128 * 4)
    assert (output.fetches, output.bytes) == (n * n, n * n * 8 * 8 * 4)


def test_a_block_without_a_formula_has_a_reason() -> None:
    """A causal index map stays in its block after the diagonal."""

    def causal(n: Any) -> Kernel:
        return Kernel(
            "causal",
            (n, n),
            (Operand((8 * n, 128), (8, 128), lambda q, k: (minimum(k, q), 0)),),
            (Operand((8 * n, 128), (8, 128), lambda q, k: (q, 0)),),
        )

    call = report_of(causal)
    source, output = call.operands
    assert (source.fetches, source.fetches_formula, call.bytes_formula) == (None, None, None)
    assert source.notes == ("no formula for the steps of k at which the block changes",)
    assert str(output.bytes_formula) == "n * 4096"
