"""Mutants of right kernels: each fault is told, and right kernels have none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from indexing.pallas.checking import check_call
from indexing.pallas.tracing import traced_calls
from tests.oracles import sampled
from tests.pallas import examples
from tests.pallas.enumeration import facts
from tests.pallas.kernels import Kernel, Operand, minimum, where
from tests.pallas.test_check import check_facts

pytest.importorskip("jax")

MATMUL = Kernel(
    "matmul",
    (3, 2, 4),
    (
        Operand((24, 512), (8, 128), lambda i, j, k: (i, k)),
        Operand((512, 256), (128, 128), lambda i, j, k: (k, j)),
    ),
    (Operand((24, 256), (8, 128), lambda i, j, k: (i, j)),),
    ("parallel", "parallel", "arbitrary"),
)
ATTENTION = Kernel(
    "attention",
    (2, 4, 3, 3),
    (
        Operand((2, 4, 24, 128), (1, 1, 8, 128), lambda b, h, q, k: (b, h, q, 0)),
        Operand((2, 2, 24, 128), (1, 1, 8, 128), lambda b, h, q, k: (b, h // 2, minimum(k, q), 0)),
    ),
    (Operand((2, 4, 24, 128), (1, 1, 8, 128), lambda b, h, q, k: (b, h, q, 0)),),
    ("parallel", "parallel", "parallel", "arbitrary"),
)
SNAKE = Kernel(
    "snake",
    (3, 4),
    (Operand((24, 512), (8, 128), lambda i, k: (i, where(i % 2 == 0, k, 3 - k))),),
    (Operand((24, 128), (8, 128), lambda i, k: (i, 0)),),
    ("arbitrary", "arbitrary"),
)
GROUPED = Kernel(
    "grouped",
    (8, 3),
    (Operand((32, 384), (8, 128), lambda t, k: (t // 4 * 2 + t % 2, k)),),
    (Operand((32, 256), (8, 128), lambda t, k: (t // 4 * 2 + t % 2, t % 4 // 2)),),
    ("parallel", "arbitrary"),
)
HALO = Kernel(
    "halo",
    (4,),
    (Operand((64, 128), ((18, 1, 1), (128,)), lambda i: (16 * i, 0)),),
    (Operand((64, 128), (16, 128), lambda i: (i, 0)),),
    ("parallel",),
)
IN_PLACE = Kernel(
    "in_place",
    (2, 3),
    (
        Operand((16, 384), (8, 128), lambda i, j: (i, j)),
        Operand((16, 128), (8, 128), lambda i, j: (i, 0)),
    ),
    (Operand((16, 384), (8, 128), lambda i, j: (i, j)),),
    ("parallel", "arbitrary"),
    aliases=((0, 0),),
)
RIGHT = [
    examples.MATVEC,
    examples.ragged_kernel(16),
    MATMUL,
    ATTENTION,
    SNAKE,
    GROUPED,
    HALO,
    IN_PLACE,
]


def answer(kernel: Kernel) -> Any:
    function, avals = kernel.function()
    (call,) = traced_calls(function, avals, {}).calls
    return check_call(call)


@pytest.mark.parametrize("kernel", RIGHT, ids=lambda kernel: kernel.name)
def test_a_right_kernel_has_no_fault(kernel: Kernel) -> None:
    report = answer(kernel)
    check_facts(kernel, report)
    assert (report.faults, report.is_undecided) == ((), False)


def shift(operand: Operand, k: int, by: int) -> Operand:
    """Return the operand with another index in one dimension."""
    old = operand.index_map

    def index_map(*ids: Any) -> Any:
        return tuple(e + by if n == k else e for n, e in enumerate(old(*ids)))

    return replace(operand, index_map=index_map)


def swap(operand: Operand, a: int, b: int) -> Operand:
    """Return the operand with two program ids in each other's place."""
    old = operand.index_map

    def index_map(*ids: Any) -> Any:
        order = list(ids)
        order[a], order[b] = order[b], order[a]
        return old(*order)

    return replace(operand, index_map=index_map)


def fix(operand: Operand, k: int) -> Operand:
    """Return the operand with the index 0 in one dimension."""
    old = operand.index_map

    def index_map(*ids: Any) -> Any:
        return tuple(0 if n == k else e for n, e in enumerate(old(*ids)))

    return replace(operand, index_map=index_map)


def with_block(operand: Operand, k: int, factor: int) -> Operand:
    block = list(operand.block)
    size = block[k]
    if size is None:
        return operand
    size = (size[0] * factor, *size[1:]) if isinstance(size, tuple) else size * factor
    return replace(operand, block=(*block[:k], size, *block[k + 1 :]))


def mutants(kernel: Kernel) -> Iterator[Kernel]:
    rank = len(kernel.grid)
    operands = [(kernel.inputs, "inputs"), (kernel.outputs, "outputs")]
    for group, name in operands:
        for n, operand in enumerate(group):
            changed: list[Operand] = []
            for k in range(len(operand.shape)):
                changed += [shift(operand, k, 1), shift(operand, k, -1), fix(operand, k)]
                changed.append(with_block(operand, k, 2))
            changed += [swap(operand, a, b) for a in range(rank) for b in range(a)]
            for each in changed:
                fields: dict[str, Any] = {name: (*group[:n], each, *group[n + 1 :])}
                yield replace(kernel, **fields)
    for k in range(rank):
        words = kernel.semantics or ("arbitrary",) * rank
        other = "arbitrary" if words[k] == "parallel" else "parallel"
        yield replace(kernel, semantics=(*words[:k], other, *words[k + 1 :]))
        for by in (1, -1):
            grid = (*kernel.grid[:k], kernel.grid[k] + by, *kernel.grid[k + 1 :])
            yield replace(kernel, grid=grid)


def is_faulty(kernel: Kernel, given: dict[Any, Any]) -> bool:
    """Return True if the enumeration finds a fault.

    A hole of an aliased output is none, nor are visits apart of an output that may be revisited.
    """
    operands = (*kernel.inputs, *kernel.outputs)
    aliased = {key[0] for key in given if isinstance(key, tuple) and key[1] == "hazard"}
    for key, value in given.items():
        if not isinstance(key, tuple):
            continue
        match key[1], value:
            case ("bounds", "out") | ("race" | "hazard", True) | ("visits", "overlap"):
                return True
            case ("visits", "apart") if not operands[key[0]].may_revisit:
                return True
            case ("covered", False) if key[0] not in aliased:
                return True
    return False


def check_mutant(mutant: Kernel) -> bool:
    """Check all answers, and that a fault is told exactly if there is one; return if there is."""
    report = answer(mutant)
    check_facts(mutant, report)
    faulty = is_faulty(mutant, facts(mutant))
    assert bool(report.faults) == faulty, mutant
    return faulty


@pytest.mark.sampled
def test_faults_of_mutants_are_told() -> None:
    """All answers are those of the enumeration, so that exactly the faulty mutants have faults."""
    every = [mutant for kernel in RIGHT for mutant in mutants(kernel)]
    assert sum(map(check_mutant, sampled(every))) > 10
