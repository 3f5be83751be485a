"""Search of the shardings of parameters that send the fewest bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Final, TypeAlias

import indexing.methods as methods
from hlo.arguments import checked, checked_constructor
from hlo.html import Preformatted
from hlo.modules.module import Computation, Instruction, Module
from hlo.shapes.shape import Shape, leaves
from hlo.shardings.mesh import Axis, Mesh
from hlo.shardings.sharding import Sharding
from indexing.maps.arrays import leaf_name
from indexing.sharding.partition.flatten import flatten_with_names
from indexing.sharding.planning.array_splits import ArraySplit, split_of
from indexing.sharding.planning.given_specs import (
    MeshSpec,
    ShardingSpec,
    given_specs,
    mesh_of_spec,
)
from indexing.sharding.planning.leaf_classes import is_structural
from indexing.sharding.planning.plan import Plan
from indexing.sharding.planning.propagation import GivenSplits, propagate
from indexing.sharding.planning.sharded_programs import shard
from indexing.sharding.rules.derived_rules import sharding_rule

MAX_PLANS: Final = 200
"""Default for the maximum number of plans that a search makes."""

_WEIGHTS: Final = (0.0, 0.01, 0.1, 1.0, 10.0, 100.0)
"""Costs of a byte that a device holds, for the first choices."""

Choice: TypeAlias = tuple[Sharding, ...]
"""The sharding of each leaf that is searched."""


@dataclass(frozen=True, slots=True)
class RankedPlan:
    """A choice of shardings.

    Attributes:
        specs: the sharding of each leaf of the parameters, by name.
        plan: the plan.
    """

    specs: Mapping[str, Sharding]
    plan: Plan


@checked_constructor
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BestShardings(Preformatted):
    """The best choices of a search.

    Attributes:
        mesh: the mesh.
        memory_limit: the maximum of bytes that a device may hold, or None.
        ranked: choices within the limit: those with the fewest bytes sent first, among equal ones
            those with the fewest bytes held.
        planned: the number of plans that were made.
        choices: the number of all choices.
        is_optimal: no other choice within the limit sends fewer bytes.
        least_held: the fewest bytes that a device holds in the plans that were made.

    >>> import hlo, indexing
    >>> dot = hlo.parse('''ENTRY e {
    ...   p = f32[8,16] parameter(0)
    ...   q = f32[16,4] parameter(1)
    ...   ROOT dot = f32[8,4] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''')
    >>> best = indexing.best_shardings(dot.entry, {"x": 4})
    >>> best.ranked[0].plan.bytes_sent, best.is_optimal
    (0, True)
    """

    mesh: Mesh
    memory_limit: int | None
    ranked: tuple[RankedPlan, ...]
    planned: int
    choices: int
    is_optimal: bool
    least_held: int

    def __str__(self) -> str:
        return methods.best_shardings_text(self)


@checked
def best_shardings(
    program: Module | Computation,
    mesh: MeshSpec,
    *,
    memory_limit: int | None = None,
    specs: Mapping[str, ShardingSpec] | None = None,
    out_specs: Sequence[ShardingSpec | None] | None = None,
    max_plans: int = MAX_PLANS,
    keep: int = 5,
) -> BestShardings:
    """Return the shardings of parameters whose plans send the fewest bytes.

    Each axis splits a dimension of each parameter, or none: dimensions whose size it divides and
    along which a user can be split.  If there are more than `max_plans` choices, the first ones are
    those of least estimated cost for several prices of held bytes, and neighbours of the best
    choice follow.

    Args:
        program, mesh, out_specs: as for `shard`.
        memory_limit: the maximum of `Plan.peak_bytes`.
        specs: the shardings of parameters that are not searched.
        max_plans: maximum number of plans to make.
        keep: maximum number of choices to return.
    Raises:
        HloError, UnknownName, ValueError: as for `shard`.

    >>> import hlo, indexing
    >>> module = hlo.parse('''ENTRY e { x = f32[64,16] parameter(0)  w = f32[16,16] parameter(1)
    ...   ROOT y = f32[64,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} }''')
    >>> best = indexing.best_shardings(module, {"x": 4}, memory_limit=4000)
    >>> best.is_optimal, best.planned, best.choices
    (True, 6, 9)
    >>> {name: str(spec) for name, spec in best.ranked[0].specs.items()}
    {'x': '[x, _]', 'w': '[_, _]'}
    """
    if max_plans < 1 or keep < 1:
        raise ValueError("best_shardings: `max_plans` and `keep` must be at least 1")
    computation = program.entry if isinstance(program, Module) else program
    search = _ShardingSearch(
        computation, mesh_of_spec(mesh), memory_limit, dict(specs or {}), out_specs
    )
    return search.result(max_plans, keep)


@dataclass(slots=True)
class _ShardingSearch:
    computation: Computation
    mesh: Mesh
    memory_limit: int | None
    specs: dict[str, ShardingSpec]
    out_specs: Sequence[ShardingSpec | None] | None
    flat: Module = field(init=False)
    given: dict[tuple[Instruction, int], ArraySplit] = field(init=False)
    results: tuple[ArraySplit | None, ...] = field(init=False)
    leaves: list[tuple[str, Instruction, int]] = field(init=False)
    candidates: list[list[Sharding]] = field(init=False)
    plans: dict[Choice, Plan] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.flat, names = flatten_with_names(self.computation)
        given = given_specs(
            self.flat, self.computation, names, self.mesh, self.specs, self.out_specs, {}, ()
        )
        if part := next((axis for axis in given.axes if axis.size is not None), None):
            raise ValueError(f"best_shardings: axes must be used whole, not {part}")
        self.given = {leaf: split_of(sharding) for leaf, sharding in given.leaves.items()}
        self.results = tuple([None if s is None else split_of(s) for s in given.results])
        self.leaves = [each for each in _leaves_of(self.flat) if each[1:] not in self.given]
        self.candidates = [list(_candidates(self.mesh, *leaf[1:])) for leaf in self.leaves]

    @property
    def choices(self) -> int:
        """The number of choices."""
        return prod(map(len, self.candidates))

    def result(self, max_plans: int, keep: int) -> BestShardings:
        is_complete = self.choices <= max_plans
        if is_complete:
            self._plan_all()
        else:
            self._plan_some(max_plans)
        ranked = sorted(
            [(plan.bytes_sent, plan.peak_bytes, k) for k, plan in enumerate(self.plans.values())
             if self._fits(plan)]
        )  # fmt: skip
        listed = list(self.plans.items())
        best = [listed[k] for _, _, k in ranked[:keep]]
        names = [name for name, _, _ in self.leaves]
        return BestShardings(
            mesh=self.mesh,
            memory_limit=self.memory_limit,
            ranked=tuple(
                [RankedPlan(dict(zip(names, choice, strict=True)), plan) for choice, plan in best]
            ),
            planned=len(self.plans),
            choices=self.choices,
            is_optimal=is_complete or bool(ranked and ranked[0][0] == 0),
            least_held=min([plan.peak_bytes for plan in self.plans.values()], default=0),
        )

    def _fits(self, plan: Plan) -> bool:
        return self.memory_limit is None or plan.peak_bytes <= self.memory_limit

    def _bytes_held(self, choice: Sequence[Sharding]) -> int:
        """Return the bytes of the searched parameters that a device holds: a bound of its peak."""
        held = 0
        for (_, instruction, leaf), sharding in zip(self.leaves, choice, strict=True):
            shape = _shape(instruction, leaf)
            held += shape.with_dims(sharding.local_dims(shape.dims)).bytes
        return held

    def _plan(self, choice: Choice) -> Plan:
        if choice not in self.plans:
            names = [name for name, _, _ in self.leaves]
            specs = {**self.specs, **dict(zip(names, choice, strict=True))}
            self.plans[choice] = shard(self.computation, self.mesh, specs, out_specs=self.out_specs)
        return self.plans[choice]

    def _plan_all(self) -> None:
        """Plan all choices whose parameters fit: of those that send nothing, some hold less."""
        for choice in product(*self.candidates):
            if self.memory_limit is None or self._bytes_held(choice) <= self.memory_limit:
                self._plan(choice)

    def _plan_some(self, max_plans: int) -> None:
        for weight in _WEIGHTS:
            if len(self.plans) < max_plans:
                self._plan(self._cheapest(weight))
        best = min(self.plans, key=self._rank)
        is_better = True
        while is_better and len(self.plans) < max_plans:
            is_better = False
            for neighbour in self._neighbours(best):
                if len(self.plans) >= max_plans:
                    return
                self._plan(neighbour)
                if self._rank(neighbour) < self._rank(best):
                    best, is_better = neighbour, True
                    break

    def _rank(self, choice: Choice) -> tuple[int, int, int]:
        """Return the order of choices: first those that fit, or exceed the limit least."""
        plan = self.plans[choice]
        excess = 0 if self._fits(plan) else plan.peak_bytes - (self.memory_limit or 0)
        return excess, plan.bytes_sent, plan.peak_bytes

    def _neighbours(self, choice: Choice) -> Iterator[Choice]:
        """Yield the choices that differ in one leaf, large leaves first."""
        sizes = [_shape(instruction, leaf).bytes for _, instruction, leaf in self.leaves]
        for k in sorted(range(len(sizes)), key=lambda k: -sizes[k]):
            for sharding in self.candidates[k]:
                neighbour = (*choice[:k], sharding, *choice[k + 1 :])
                if neighbour not in self.plans:
                    yield neighbour

    def _cheapest(self, weight: float) -> Choice:
        """Return the choice of least estimated cost, with a price of held bytes."""
        choices = {
            (instruction, leaf): tuple(map(split_of, candidates))
            for (_, instruction, leaf), candidates in zip(self.leaves, self.candidates, strict=True)
        }
        given = {leaf: split for leaf, split in self.given.items() if leaf not in choices}
        splits = GivenSplits(given, self.results, choices=choices, held_weight=weight)
        assigned = propagate(self.flat, self.mesh, splits).assignment.instructions
        return tuple([assigned[instruction].results[leaf] for _, instruction, leaf in self.leaves])


def _leaves_of(module: Module) -> Iterator[tuple[str, Instruction, int]]:
    """Yield name, parameter and number of each array of the parameters."""
    for parameter in module.entry.parameters:
        for number, (path, shape) in enumerate(leaves(parameter.shape)):
            if isinstance(shape, Shape):
                yield leaf_name(parameter.name, path), parameter, number


def _shape(instruction: Instruction, leaf: int) -> Shape:
    shape = leaves(instruction.shape)[leaf][1]
    assert isinstance(shape, Shape)
    return shape


def _candidates(mesh: Mesh, parameter: Instruction, leaf: int) -> Iterator[Sharding]:
    """Yield the shardings of a parameter to compare, the replicated one first."""
    shape = _shape(parameter, leaf)
    dims = [dim for dim in range(shape.rank) if _is_splittable(parameter, dim)]
    for places in product([None, *dims], repeat=len(mesh.axes)):
        axes: list[tuple[Axis, ...]] = [()] * shape.rank
        for (name, _), dim in zip(mesh.axes, places, strict=True):
            if dim is not None:
                axes[dim] = (*axes[dim], Axis(name))
        sharding = Sharding(mesh, tuple(axes))
        if all(size % sharding.shards(dim) == 0 for dim, size in enumerate(shape.dims)):
            yield sharding


def _is_splittable(parameter: Instruction, dim: int) -> bool:
    """Return True if a user of a parameter can be split along a dimension."""
    for user in parameter.users:
        if is_structural(user):
            return True
        rule = sharding_rule(user)
        for number, operand in enumerate(user.operands):
            if operand is parameter and any(
                rule.factors[factor].kind != "need_replication"
                for factor in rule.operands[number][dim]
            ):
                return True
    return False
