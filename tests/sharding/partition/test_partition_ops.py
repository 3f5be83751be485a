"""Every sample of every op, split along every factor, computes what it computes unsplit."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

import indexing.ops  # noqa: F401 - registers the ops
from hlo import HloError
from hlo.modules.module import Module
from hlo.ops.op import OPS
from hlo.shardings.mesh import Mesh
from indexing.execution import ExecutionError, run
from indexing.ops.elementwise import ElementwiseOp
from indexing.ops.samples import instruction_of
from indexing.sharding import sharding_rule
from indexing.sharding.partition.assignment import Assignment, InstructionAssignment
from indexing.sharding.partition.flatten import flatten
from indexing.sharding.partition.program import partition
from tests.oracles import sampled
from tests.sharding.partition.partitions import (
    check,
    random_assignment,
    single_splits,
    small_inputs,
    whole,
)

MESHES = [Mesh.of({"x": 2}), Mesh.of({"x": 3}), Mesh.of({"x": 2, "y": 2})]
WIDE = Mesh.of({"x": 2, "y": 3})


def samples() -> list[str]:
    """The samples; of the elementwise ops, those of a few."""
    return [
        sample
        for name in sorted(OPS)
        for sample in getattr(OPS[name], "samples", ())
        if not issubclass(OPS[name], ElementwiseOp) or name in ("add", "clamp", "select", "not")
    ]


def refusal(module: Module) -> HloError | None:
    """Return the error of a module that has no program on shards."""
    rules = {i: sharding_rule(i) for i in module.instructions}
    mesh = MESHES[0]
    try:
        partition(Assignment(mesh, {
            i: InstructionAssignment(rule, ((),) * len(rule.factors), whole(mesh, i))
            for i, rule in rules.items()
        }), module)  # fmt: skip
    except HloError as error:
        return error
    return None


def can_run(module: Module) -> bool:
    try:
        run(module, small_inputs(module))
    except (ExecutionError, HloError):
        return False
    return True


def flattened_modules() -> Iterator[tuple[str, Module]]:
    for sample in samples():
        if ":T(" not in sample and ":L(" not in sample:  # bitcasts that read tiles or padding
            yield sample, flatten(instruction_of(sample).computation)


MODULES = list(flattened_modules())
RUNNING = [
    (sample, module) for sample, module in MODULES if not refusal(module) and can_run(module)
]


def test_ops_without_a_program_on_shards_are_refused_with_a_reason() -> None:
    errors = {sample: refusal(module) for sample, module in MODULES}
    reasons = {sample: error.label for sample, error in errors.items() if error}
    assert {error.code for error in errors.values() if error} == {"partition"}
    for reason in reasons.values():
        assert (
            "exchange" in reason or "token[]" in reason or "dynamic" in reason or "effect" in reason
        )
    opcodes = {sample.partition("(")[0].rpartition(" ")[2] for sample in reasons}
    assert {"all-reduce", "partition-id", "outfeed", "set-dimension-size"} <= opcodes
    assert len(RUNNING) > 200
    assert not {"dot", "sort", "fft", "while", "rng-bit-generator", "custom-call"} & opcodes


@pytest.mark.parametrize(("sample", "module"), RUNNING, ids=[sample[:50] for sample, _ in RUNNING])
def test_each_factor_is_split(sample: str, module: Module) -> None:
    root, inputs = module.entry.root, small_inputs(module)
    rule = sharding_rule(root)
    for mesh in MESHES[1 + len(sample) % 2 :: 2]:
        assigned = {}
        for i in module.instructions:
            count = len(sharding_rule(i).factors)
            assigned[i] = InstructionAssignment(sharding_rule(i), ((),) * count, whole(mesh, i))
        for axes in sampled(single_splits(mesh, rule), sample):
            assigned[root] = InstructionAssignment(rule, axes, whole(mesh, root))
            check(Assignment(mesh, assigned), module, inputs)


@pytest.mark.parametrize(("sample", "module"), RUNNING, ids=[sample[:50] for sample, _ in RUNNING])
def test_random_shardings_of_operands_factors_and_results(sample: str, module: Module) -> None:
    inputs = small_inputs(module)
    for seed, mesh in sampled(enumerate([*MESHES, WIDE]), sample):
        check(random_assignment(Random(seed), mesh, module), module, inputs)
