"""Programs on shards, executed on simulated devices and compared with the unsharded program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations, product
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hlo
from hlo.modules.calls import callees_of
from hlo.modules.module import Instruction, Module
from hlo.shapes.shape import Shape
from hlo.shardings.mesh import Axis, Mesh
from hlo.shardings.sharding import Sharding
from indexing.execution import run
from indexing.execution.inputs import random_inputs
from indexing.maps.arrays import array_leaves
from indexing.sharding import sharding_rule
from indexing.sharding.partition.assignment import Assignment, InstructionAssignment
from indexing.sharding.partition.program import Partitioned, partition
from indexing.sharding.planning.array_shards import assembled_array, shard_of
from indexing.sharding.rules.sharding_rules import ShardingRule

Array = NDArray[Any]
Axes = tuple[Axis, ...]


def shapes_of(instruction: Instruction) -> list[Shape]:
    return [shape for _, _, shape in array_leaves(instruction.shape)]


def whole(mesh: Mesh, instruction: Instruction) -> tuple[Sharding, ...]:
    return tuple(Sharding(mesh, ((),) * shape.rank) for shape in shapes_of(instruction))


def random_sharding(random: Random, mesh: Mesh, rank: int) -> Sharding:
    """A sharding that puts some axes on some dimensions."""
    axes = [Axis(name) for name in mesh.sizes]
    random.shuffle(axes)
    dims: list[list[Axis]] = [[] for _ in range(rank)]
    for axis in axes:
        place = random.randrange(rank + 1)
        if place < rank:
            dims[place].append(axis)
    return Sharding(mesh, tuple(map(tuple, dims)))


def random_shardings(random: Random, mesh: Mesh, instruction: Instruction) -> tuple[Sharding, ...]:
    return tuple(random_sharding(random, mesh, s.rank) for s in shapes_of(instruction))


def random_factor_axes(random: Random, mesh: Mesh, rule: ShardingRule) -> tuple[Axes, ...]:
    """Axes on some factors of a rule, of any kind."""
    axes: list[list[Axis]] = [[] for _ in rule.factors]
    for name in random.sample(list(mesh.sizes), len(mesh.sizes)):
        if rule.factors and random.random() < 0.9:
            random.choice(axes).append(Axis(name))
    return tuple(map(tuple, axes))


def random_assignment(random: Random, mesh: Mesh, module: Module) -> Assignment:
    """Random axes for all instructions; called computations receive and return what callers do."""
    assigned: dict[Instruction, InstructionAssignment] = {}
    for instruction in module.instructions:
        rule = sharding_rule(instruction)
        results = random_shardings(random, mesh, instruction)
        axes = random_factor_axes(random, mesh, rule)
        assigned[instruction] = InstructionAssignment(rule, axes, results)

    def give(to: Instruction, results: tuple[Sharding, ...]) -> None:
        assigned[to] = replace(assigned[to], results=results)

    for instruction in module.instructions:
        results = assigned[instruction].results
        for name, called in callees_of(instruction).items():
            for computation in called if instruction.opcode in ("while", "conditional") else ():
                if instruction.opcode == "while":
                    give(computation.parameters[0], results)
                give(computation.root, whole(mesh, computation.root)
                     if name == "condition" else results)  # fmt: skip
    return Assignment(mesh, assigned)


def small_inputs(module: Module, seed: int = 0) -> list[Array]:
    """Inputs whose floating-point numbers are small integers: sums are exact."""
    return [
        array if array.dtype.kind in "biu" else _round(array)
        for array in random_inputs(module.entry, seed)
    ]


def _round(array: Array) -> Array:
    if array.dtype.kind == "c":
        return np.asarray(np.rint(2 * array))
    return np.rint(2 * array.astype(np.float64)).astype(array.dtype)


def split(array: Array, sharding: Sharding, padding: Any) -> list[Array]:
    """The shard of each device."""
    return [shard_of(array, sharding, device, padding) for device in range(sharding.mesh.size)]


def garbage(array: Array) -> Any:
    """A value of padding that spoils every result that depends on it."""
    return {"b": True, "i": 77, "u": 77}.get(array.dtype.kind, float("nan"))


def run_partitioned(local: Partitioned, module: Module, inputs: Sequence[Array]) -> list[Array]:
    """Execute a program on shards and return the global results."""
    count = local.module.header("num_partitions")
    shards = [
        split(array, sharding, garbage(array))
        for array, sharding in zip(inputs, local.parameters, strict=True)
    ]
    results = run(
        local.module, [[each[d] for each in shards] for d in range(count)], replicas=count
    )
    return [
        assembled_array([results[d][k] for d in range(count)], sharding, shape.dims)
        for k, (sharding, shape) in enumerate(
            zip(local.results, shapes_of(module.entry.root), strict=True)
        )
    ]


def check(
    assignment: Assignment, module: Module, inputs: Sequence[Array] | None = None
) -> Partitioned:
    """Assert that a partitioned program is valid and computes what the module computes."""
    inputs = small_inputs(module) if inputs is None else inputs
    local = partition(assignment, module)
    errors = list(hlo.verify(local.module))
    assert not errors, f"{errors[0]}\n{local.module}"
    expected = run(module, inputs)
    for actual, wanted in zip(run_partitioned(local, module, inputs), expected, strict=True):
        is_exact = wanted.dtype.kind in "biu"
        np.testing.assert_allclose(
            actual.astype(wanted.dtype if is_exact else np.complex128),
            wanted if is_exact else wanted.astype(np.complex128),
            rtol=0 if is_exact else 1e-5, atol=0 if is_exact else 1e-6,
            err_msg=str(local.module),
        )  # fmt: skip
    return local


def single_splits(mesh: Mesh, rule: ShardingRule) -> list[tuple[Axes, ...]]:
    """The splits of one factor along each ordered choice of axes."""
    names = [Axis(name) for name in mesh.sizes]
    orders = [order for n in range(1, len(names) + 1) for order in permutations(names, n)]
    return [
        tuple(order if k == number else () for k in range(len(rule.factors)))
        for number, order in product(range(len(rule.factors)), orders)
    ]
