"""The kernels that JAX has: all static facts are those of index maps that JAX evaluates."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from indexing.pallas import check
from indexing.pallas.report import CallReport
from tests.pallas import enumeration
from tests.pallas.enumeration import Box
from tests.pallas.kernels import Kernel, Operand
from tests.pallas.ops_kernels import cases

jax = pytest.importorskip("jax")
core = import_module("jax.extend.core")


def pallas_calls(jaxpr: Any) -> list[Any]:
    """Return the equations that call kernels, in program order."""
    calls = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "pallas_call":
            calls.append(eqn)
            continue
        for inner in jax.tree.leaves(
            list(eqn.params.values()), is_leaf=lambda p: hasattr(p, "eqns")
        ):
            if hasattr(getattr(inner, "jaxpr", inner), "eqns"):
                calls += pallas_calls(getattr(inner, "jaxpr", inner))
    return calls


def evaluate(mapping: Any, block: Any) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Return the results of an index map at all steps, as JAX evaluates it."""
    function = core.jaxpr_as_fun(block.index_map_jaxpr)
    every = enumeration.steps(mapping.grid)
    if not mapping.grid:
        return {(): tuple([int(result) for result in function()])}
    columns = np.array(every, np.int32).T
    results = [np.broadcast_to(r, len(every)).tolist() for r in jax.vmap(function)(*columns)]
    return {step: tuple(index) for step, *index in zip(every, *results, strict=True)}


def operand_of(mapping: Any, block: Any) -> Operand | None:
    """Return an operand of the oracle; None if its index map reads scalars."""
    used = {v for e in block.index_map_jaxpr.jaxpr.eqns for v in e.invars if hasattr(v, "count")}
    if used & set(block.index_map_jaxpr.jaxpr.invars[len(mapping.grid) :]):
        return None
    if mapping.num_index_operands:
        return None if block.index_map_jaxpr.jaxpr.eqns else constant_operand(mapping, block)
    index = evaluate(mapping, block)
    return describe(block, lambda *step: index[step])


def constant_operand(mapping: Any, block: Any) -> Operand:
    """Return an operand whose index map has no operations, but arguments that are scalars."""
    jaxpr = block.index_map_jaxpr.jaxpr
    places = {v: k for k, v in enumerate(jaxpr.invars)}

    def index_map(*step: int) -> tuple[int, ...]:
        return tuple(int(a.val) if hasattr(a, "val") else step[places[a]] for a in jaxpr.outvars)

    return describe(block, index_map)


def describe(block: Any, index_map: Any) -> Operand:
    dims = tuple(getattr(each, "block_size", None) for each in block.block_shape)
    space = str(block.transformed_block_aval.memory_space)
    name = {"default": "", "vmem": "", "None": ""}.get(space, "smem" if space == "smem" else "any")
    dtype = str(block.array_aval.dtype)
    return Operand(tuple(block.array_aval.shape), dims, index_map, dtype, name)


def has_race(kernel: Kernel, operand: Operand, blocks: list[Box]) -> bool:
    """Return as `enumeration.race`, for blocks that are equal or disjoint."""
    by_block: dict[Box, list[tuple[int, ...]]] = {}
    for step, block in zip(enumeration.steps(kernel.grid), blocks, strict=True):
        by_block.setdefault(block, []).append(step)
    parallel = [k for k in range(len(kernel.grid)) if enumeration.is_parallel(kernel, k)]
    return any(len({step[k] for step in same}) > 1 for same in by_block.values() for k in parallel)


enumeration.BITS.update({"float16": 16, "uint32": 32})


def check_call(report: CallReport, eqn: Any) -> int:
    """Check the answers about operands without scalars; return the number of facts."""
    mapping = eqn.params["grid_mapping"]
    if not all(isinstance(size, int) for size in mapping.grid):
        return 0
    kernel = Kernel("", tuple(mapping.grid), (), (), report.semantics, target=report.target)
    facts = 0
    for answer, block in zip(report.operands, mapping.block_mappings, strict=True):
        operand = operand_of(mapping, block)
        if operand is None:
            continue
        blocks = [enumeration.box(operand, step) for step in enumeration.steps(kernel.grid)]
        assert answer.bounds == enumeration.bounds(operand, blocks)
        assert answer.overhang == enumeration.overhang(operand, blocks)
        facts += 2
        if report.target == "tpu":
            moves = enumeration.moves(operand, blocks, answer.is_output)
            assert (answer.fetches, answer.bytes) == moves
            facts += 2
        if answer.is_output:
            assert answer.covered == enumeration.is_covered(operand, blocks)
            assert answer.visits == enumeration.visits(operand, blocks)
            race = has_race(kernel, operand, blocks)
            assert answer.race == ("may" if race and report.target == "gpu" else race)
            facts += 3
    return facts


CASES = ["flash_attention causal", "matmul", "splash_attention gradient", "mha", "gmm"]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in CASES else pytest.mark.slow) for n, _, _ in cases()]
)
def test_kernels_of_jax(name: str) -> None:
    (case,) = [case for case in cases() if case[0] == name]
    _, function, args = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = check(function, *args)
        eqns = pallas_calls(jax.make_jaxpr(function)(*args).jaxpr)
    assert len(report) == len(eqns) > 0
    facts = sum(check_call(call, eqn) for call, eqn in zip(report, eqns, strict=True))
    assert facts or name in ("gmm", "tgmm")
    assert not report.notes
    for call in report:  # the scratch arrays of splash attention are outputs that heads share
        faults = [fault for fault in call.faults if "in parallel" not in fault]
        assert not faults, call.name
        assert name.startswith("splash") or not call.faults
