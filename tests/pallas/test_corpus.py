"""Kernels of many kinds: every fact is decided, as the enumeration of the grid decides it."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from indexing.pallas.report import BlockReport
from simplifier.unknown import Unknown
from tests.oracles import sampled
from tests.pallas.corpus import SCALAR_VALUES, SCALARS, STATIC
from tests.pallas.enumeration import (
    Box,
    best_bytes,
    bounds,
    box,
    facts,
    is_covered,
    is_legal,
    race,
    steps,
    visits,
)
from tests.pallas.kernels import Kernel, Operand
from tests.pallas.test_check import answers, check_facts, check_witnesses, report_of
from tests.pallas.test_mutants import check_mutant, mutants

pytest.importorskip("jax")

TPU = [kernel for kernel in STATIC if kernel.target == "tpu"]
GPU = [kernel for kernel in STATIC if kernel.target != "tpu"]


@pytest.mark.sampled
def test_facts_of_kernels_for_tpus() -> None:
    for kernel in sampled(TPU):
        report = report_of(kernel)
        check_facts(kernel, report)
        assert not report.is_undecided
        if not isinstance(report.best_order, Unknown):
            fewest = None if report.best_order is None else report.best_order.bytes
            assert fewest == best_bytes(kernel), kernel.name


@pytest.mark.parametrize("kernel", GPU, ids=lambda kernel: kernel.name)
def test_facts_of_kernels_for_gpus(kernel: Kernel) -> None:
    """Blocks are pointers: no pipeline moves them, and what programs share is no race for sure."""
    if kernel.target == "mosaic_gpu" and importlib.util.find_spec("absl") is None:
        pytest.skip("jax.experimental.pallas.mosaic_gpu needs absl")
    report = report_of(kernel)
    given = answers(report)
    for key, value in facts(kernel).items():
        if key in ("vmem", "bytes"):
            assert given[key] is None
        elif key[1] == "moves":
            assert given[key] == (None, None)
        else:
            assert given[key] == ("may" if key[1] == "race" and value else value), key
    check_witnesses(kernel, report)


@pytest.mark.slow
def test_faults_of_mutants_of_kernels_are_told() -> None:
    """All answers about all mutants are those of the enumeration."""
    total = sum(check_mutant(mutant) for kernel in TPU for mutant in mutants(kernel))
    assert total > 1000


# ---------------------------------------------------------------- scalars


def scalar_arrays(kernel: Kernel) -> Iterator[tuple[Any, ...]]:
    """Yield all values of the scalar arrays."""
    low, high = SCALAR_VALUES
    counts = [prod(shape) for shape in kernel.scalars]
    ends = np.cumsum([0, *counts])
    for flat in product(range(low, high + 1), repeat=sum(counts)):
        yield tuple(
            np.array(flat[ends[k] : ends[k + 1]]).reshape(shape)
            for k, shape in enumerate(kernel.scalars)
        )


MAX_ARRAYS = 1024


@pytest.mark.sampled
def test_answers_about_scalars_hold_for_all_their_values() -> None:
    for kernel in sampled(SCALARS):
        report = report_of(kernel, ranges=dict.fromkeys(range(len(kernel.scalars)), SCALAR_VALUES))
        arrays = list(scalar_arrays(kernel))
        arrays = arrays[:: -(-len(arrays) // MAX_ARRAYS)]
        operands = (*kernel.inputs, *kernel.outputs)
        for operand, answer in zip(operands, report.operands, strict=True):
            blocks = [[box(operand, p, each) for p in steps(kernel.grid)] for each in arrays]
            oracles: dict[str, Callable[[list[Box]], object]] = {"bounds": partial(bounds, operand)}
            if answer.is_output:
                oracles |= {
                    "covered": partial(is_covered, operand),
                    "visits": partial(visits, operand),
                    "race": partial(race, kernel, operand),
                }
            for name, oracle in oracles.items():
                words = {oracle(each) for each in blocks}
                actual = getattr(answer, name)
                if words == {"inside", "padded"}:  # the largest overhang counts
                    words = {"padded"}
                expected = words.pop() if len(words) == 1 else "may"
                assert actual == expected, (kernel.name, answer.origin, name)
            if answer.bounds == "may":
                check_condition(kernel, operand, answer, arrays)


def check_condition(
    kernel: Kernel, operand: Operand, answer: BlockReport, arrays: list[tuple[Any, ...]]
) -> None:
    """Check the condition of an answer: it holds at a step exactly if the block is legal."""
    text = answer.condition.replace("floordiv", "//").replace("mod", "%")
    condition = compile(text, "condition", "eval")
    names = [*inspect.signature(operand.index_map).parameters]
    for each in arrays:
        for step in steps(kernel.grid):
            values = dict(zip(names, (*step, *each), strict=True))
            holds = eval(condition, {"min": min, "max": max}, values)
            assert holds == is_legal(operand, box(operand, step, each)), (text, values)


def test_too_few_steps_are_a_fault_for_all_scalars() -> None:
    (kernel,) = [kernel for kernel in SCALARS if kernel.name == "scatter_rows"]
    (fault,) = report_of(kernel, ranges={0: SCALAR_VALUES}).faults
    assert fault == "outputs[0]: the blocks of all steps have fewer elements than the array"
