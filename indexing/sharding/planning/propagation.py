"""Assignments: the axes that split each instruction of a program, from the given shardings.

1. Given splits propagate along factors to a fixed point (`reachable`).
2. Where several splits reach an array or an instruction, the ones with the least cost are chosen,
   over the whole program at once (`elimination`): bytes that conversions send, and undivided work.
   Loops multiply by their trip counts.

Partial values stay partial as long as that costs less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np

from hlo.modules.module import Computation, Instruction, Module
from hlo.shapes.shape import Shape
from hlo.shardings.mesh import Axis, Mesh
from hlo.text.source import HloError
from indexing.memory.executions import executions_from
from indexing.sharding.partition.assignment import Assignment, InstructionAssignment
from indexing.sharding.partition.usable_splits import usable_axes
from indexing.sharding.partition.windows import halo_bytes
from indexing.sharding.planning.array_splits import (
    ArraySplit,
    AxisNames,
    Partial,
    RuleSplits,
    disjoint_products,
)
from indexing.sharding.planning.costs import BYTES_OF_WORK, ResharderCosts, work_of
from indexing.sharding.planning.elimination import CostGraph
from indexing.sharding.planning.leaf_classes import (
    LeafClass,
    LeafClasses,
    is_structural,
    leaf_classes,
)
from indexing.sharding.planning.partial_operands import partial_operands
from indexing.sharding.planning.reachable import MAX_SPLITS, FactoredInstruction, reach_splits
from indexing.sharding.rules.derived_rules import sharding_rule
from indexing.sharding.rules.sharding_rules import ShardingRule

RuleOf: TypeAlias = Callable[[Instruction], ShardingRule]

NO_FACTORS = ShardingRule((), (), ())
"""The rule of instructions that pass leaves on."""


class GivenSplits(NamedTuple):
    """The splits that a plan starts from.

    Attributes:
        leaves: the splits of leaves of instructions; those of parameters are () by default.
        results: for each leaf of the result, its split, or None if it is free.
        banned: axes that must not be used on leaves of instructions.
        choices: the splits among which those of leaves are chosen, for leaves without given split.
        held_weight: the cost of a byte of `choices` that a device holds.
    """

    leaves: Mapping[tuple[Instruction, int], ArraySplit]
    results: tuple[ArraySplit | None, ...] = ()
    banned: Mapping[tuple[Instruction, int], frozenset[str]] = MappingProxyType({})
    choices: Mapping[tuple[Instruction, int], tuple[ArraySplit, ...]] = MappingProxyType({})
    held_weight: float = 0.0


class WorkSplit(NamedTuple):
    """One way to divide an instruction.

    Attributes:
        axes: the axes of each factor.
        passed: for each operand, the axes along which it stays partial.
        operands: the split in which each operand is needed.
        results: the split that each result has.
    """

    axes: tuple[AxisNames, ...]
    passed: tuple[Partial, ...]
    operands: tuple[ArraySplit, ...]
    results: tuple[ArraySplit, ...]

    def shards(self, sizes: Mapping[str, int]) -> int:
        """Return the number of parts into which the work is divided."""
        return int(np.prod([sizes[name] for names in self.axes for name in names], dtype=int))


@dataclass(frozen=True, slots=True)
class Propagated:
    """An assignment, and how it was chosen.

    Attributes:
        assignment: the assignment.
        classes: the classes of leaves that have one sharding.
        is_cheapest: no other choice of the reached splits has a smaller estimated cost.
        cost: the estimated cost.
        cuts: axes of which a part, of the given size, could split a factor that the whole axis
            cannot split.
    """

    assignment: Assignment
    classes: LeafClasses
    is_cheapest: bool
    cost: float
    cuts: Mapping[str, int]


def propagate(
    module: Module, mesh: Mesh, given: GivenSplits, rule_of: RuleOf = sharding_rule
) -> Propagated:
    """Return the assignment of a flattened program for given shardings.

    Args:
        module: the program, without calls and fusions.
        mesh: a mesh whose axes are used whole.
        given: the given shardings.
        rule_of: returns the sharding rule of an instruction.
    """
    classes = leaf_classes(module)
    return _Planner(module, mesh, given, rule_of, classes).propagate()


class _Planner:
    def __init__(
        self, module: Module, mesh: Mesh, given: GivenSplits, rule_of: RuleOf, classes: LeafClasses
    ) -> None:
        self.module, self.mesh, self.classes = module, mesh, classes
        self.sizes = mesh.sizes
        self.counts = executions_from(module.entry)
        self.costs = ResharderCosts(self.sizes)
        self.given = self._given_splits(given)
        self.excessive = frozenset(self._excessive_axes())
        self.works = [
            self._work(instruction, rule_of)
            for instruction in classes.of
            if not is_structural(instruction)
        ]
        banned = {classes.of[i][leaf]: names for (i, leaf), names in given.banned.items()}
        self.choices = {classes.of[i][leaf]: each for (i, leaf), each in given.choices.items()}
        self.reached = reach_splits(
            classes, self.works, self.given, self.sizes, banned, self.choices, self.excessive
        )
        self.graph = CostGraph()
        self.splits = [self._class_splits(number) for number in range(len(classes.shapes))]
        self.variables = [
            self.graph.variable(self._cost_of_holding(number, splits, given.held_weight))
            for number, splits in enumerate(self.splits)
        ]
        self.copies = self._copies()
        self.work_splits: dict[Instruction, list[WorkSplit]] = {}
        self.work_variables: dict[Instruction, int] = {}

    def _given_splits(self, given: GivenSplits) -> dict[LeafClass, ArraySplit]:
        splits: dict[LeafClass, ArraySplit] = {}
        for (instruction, leaf), split in given.leaves.items():
            splits[self.classes.of[instruction][leaf]] = split
        free = {self.classes.of[instruction][leaf] for instruction, leaf in given.choices}
        for parameter in self.module.entry.parameters:
            for number in self.classes.of[parameter]:
                if number in free:
                    continue
                shape = self.classes.shapes[number]
                rank = shape.rank if isinstance(shape, Shape) else 0
                splits.setdefault(number, ArraySplit(((),) * rank))
        for number, result in zip(self.classes.outputs, given.results, strict=False):
            if result is not None and splits.setdefault(number, result) != result:
                root = self.module.entry.root
                raise HloError(
                    f"the result `{root.name}` is an array with another given spec",
                    root.span,
                    "sharding",
                    help="leave its entry of out_specs None",
                )
        return splits

    def _excessive_axes(self) -> Iterator[AxisNames]:
        """Yield the axes that split a dimension of fewer elements than shards in a given spec."""
        for number, split in self.given.items():
            shape = self.classes.shapes[number]
            dims = shape.dims if isinstance(shape, Shape) else ()
            for size, names in zip(dims, split.dims, strict=False):
                if size < prod([self.sizes[name] for name in names]):
                    yield names

    def _work(self, instruction: Instruction, rule_of: RuleOf) -> FactoredInstruction:
        operands = [leaf for operand in instruction.operands for leaf in self.classes.of[operand]]
        rule = RuleSplits(rule_of(instruction), self.sizes, self.excessive)
        results = self.classes.of[instruction]
        return FactoredInstruction(
            instruction, rule, tuple(operands), results, partial_operands(instruction)
        )

    def _class_splits(self, number: LeafClass) -> list[ArraySplit]:
        splits = self.reached.splits(number)
        if number in self.classes.outputs and number not in self.given:
            splits = [split for split in splits if not split.partial]
        return splits

    def _copies(self) -> dict[LeafClass, tuple[list[ArraySplit], int]]:
        """Add copies of arrays with a given split and several users, which share a conversion.

        Returns:
            The splits of the copy of a class, and its variable.
        """
        users = Counter(number for work in self.works for number in dict.fromkeys(work.operands))
        copies: dict[LeafClass, tuple[list[ArraySplit], int]] = {}
        for number in (*self.given, *self.choices):
            shape = self.classes.shapes[number]
            if users[number] > 1 and isinstance(shape, Shape):
                splits = self.reached.copies(number)
                variable = self.graph.variable([0.0] * len(splits))
                table = self.costs.table(self.splits[number], splits, shape.bytes)
                self.graph.pair(self.variables[number], variable, table)
                copies[number] = splits, variable
        return copies

    def _cost_of_holding(
        self, number: LeafClass, splits: Sequence[ArraySplit], weight: float
    ) -> list[float]:
        """Return the cost of holding an array in each split."""
        shape = self.classes.shapes[number]
        if number not in self.choices or not isinstance(shape, Shape):
            return [0.0] * len(splits)
        return [weight * shape.bytes / each.shards(self.sizes) for each in splits]

    def _executions(self, computation: Computation) -> int:
        count = self.counts.get(computation)
        if count is None:
            return 1
        return max(count.lower if count.number is None else count.number, 1)

    # ------------------------------------------------------------ splits of instructions

    def _work_splits(self, work: FactoredInstruction) -> list[WorkSplit]:
        sets = [
            dict.fromkeys([(), *[names for names in reached if work.rule.fits(factor, names)]])
            for factor, reached in enumerate(self.reached.factors[work.instruction])
        ]
        splits: list[WorkSplit] = []
        for axes in disjoint_products(sets, MAX_SPLITS):
            splits += self._with_axes(work, axes)
        return splits[:MAX_SPLITS]

    def _with_axes(
        self, work: FactoredInstruction, axes: tuple[AxisNames, ...]
    ) -> Iterator[WorkSplit]:
        """Yield the ways to divide an instruction along these axes of its factors."""
        rule = work.rule.rule
        operands = work.rule.arrays(rule.operands, axes)
        results = work.rule.arrays(rule.results, axes)
        if operands is None or results is None or not self._is_usable(work, axes):
            return
        partial = work.rule.partial(axes)
        for passed, passed_on in self._passed_partials(
            work, {name for names in axes for name in names}
        ):
            made = _order_partial(partial + passed_on)
            yield WorkSplit(
                axes,
                passed,
                tuple([ArraySplit(dims, p) for dims, p in zip(operands, passed, strict=True)]),
                tuple([ArraySplit(dims, made) for dims in results]),
            )

    def _is_usable(self, work: FactoredInstruction, axes: tuple[AxisNames, ...]) -> bool:
        """Return True if the local instruction can work on these shards."""
        if not any(axes):
            return True
        named = _axes_named(axes)
        return usable_axes(work.instruction, work.rule.rule, named, self.mesh) == named

    def _halo_bytes(self, work: FactoredInstruction, split: WorkSplit) -> int:
        """Return the bytes of borders of shards that a device sends to its neighbours."""
        return halo_bytes(work.instruction, work.rule.rule, _axes_named(split.axes), self.mesh)

    def _passed_partials(
        self, work: FactoredInstruction, used: Iterable[str]
    ) -> list[tuple[tuple[Partial, ...], Partial]]:
        """Return the ways in which operands stay partial, and what results are then."""
        nothing: tuple[Partial, ...] = tuple([() for _ in work.operands])
        ways: list[tuple[tuple[Partial, ...], Partial]] = [(nothing, ())]
        for kind, sets in work.passing.items():
            for operands in sets:
                reached = [set(self.reached.partial[work.operands[k]]) for k in sorted(operands)]
                for pair in sorted(set.intersection(*reached)):
                    if pair[1] != kind or pair[0] in used:
                        continue
                    for passed, results in list(ways):
                        if pair[0] not in dict(results) and len(ways) < MAX_SPLITS:
                            more = [
                                _order_partial((*each, pair)) if k in operands else each
                                for k, each in enumerate(passed)
                            ]
                            ways.append((tuple(more), _order_partial((*results, pair))))
        return ways

    # ------------------------------------------------------------ costs

    def _add_work(self, work: FactoredInstruction) -> None:
        instruction = work.instruction
        splits = self._work_splits(work)
        count = self._executions(instruction.computation)
        amount = work_of(instruction) * BYTES_OF_WORK * count
        variable = self.graph.variable([
            amount / each.shards(self.sizes) + self._halo_bytes(work, each) * count
            for each in splits
        ])  # fmt: skip
        self.work_splits[instruction], self.work_variables[instruction] = splits, variable
        for position, number in enumerate(work.operands):
            needed = [each.operands[position] for each in splits]
            held = self.copies.get(number, (self.splits[number], self.variables[number]))
            self._pair(number, held, (needed, variable), count, is_operand=True)
        for position, number in enumerate(work.results):
            made = [each.results[position] for each in splits]
            array = self.splits[number], self.variables[number]
            self._pair(number, (made, variable), array, count)

    def _pair(
        self,
        number: LeafClass,
        source: tuple[Sequence[ArraySplit], int],
        target: tuple[Sequence[ArraySplit], int],
        count: int,
        is_operand: bool = False,
    ) -> None:
        """Add the costs of converting an array from the split of one variable to another's.

        An operand with a given split is converted from it or from the copy, whichever costs less.
        """
        shape = self.classes.shapes[number]
        if not isinstance(shape, Shape):
            return
        (before, one), (after, other) = source, target
        distinct = list(dict.fromkeys(before)), list(dict.fromkeys(after))
        rows, columns = (
            [distinct[0].index(s) for s in before],
            [distinct[1].index(s) for s in after],
        )
        table = self.costs.table(*distinct, shape.bytes * count)
        if is_operand and number in self.given:
            direct = self.costs.table(self.splits[number], distinct[1], shape.bytes * count)
            table = np.minimum(table, direct)
        self.graph.pair(one, other, table[rows][:, columns])

    def _add_passed(self) -> None:
        for leaf in self.classes.passed:
            shape = self.classes.shapes[leaf.source]
            if isinstance(shape, Shape):
                count = self._executions(leaf.instruction.computation)
                table = self.costs.table(
                    self.splits[leaf.source], self.splits[leaf.target], shape.bytes * count
                )
                self.graph.pair(self.variables[leaf.source], self.variables[leaf.target], table)

    # ------------------------------------------------------------ the assignment

    def propagate(self) -> Propagated:
        for work in self.works:
            self._add_work(work)
        self._add_passed()
        choice = self.graph.cheapest()
        chosen = [
            splits[choice.labels[variable]]
            for splits, variable in zip(self.splits, self.variables, strict=True)
        ]
        rules = {work.instruction: work.rule.rule for work in self.works}
        assignments = {}
        for instruction, numbers in self.classes.of.items():
            results = tuple([chosen[number].sharding(self.mesh) for number in numbers])
            if instruction not in rules:
                assignments[instruction] = InstructionAssignment(NO_FACTORS, (), results)
                continue
            split = self.work_splits[instruction][choice.labels[self.work_variables[instruction]]]
            axes = tuple([tuple([Axis(name) for name in names]) for names in split.axes])
            partial = tuple(
                [tuple([(Axis(name), kind) for name, kind in each]) for each in split.passed]
            )
            assignments[instruction] = InstructionAssignment(
                rules[instruction], axes, results, partial if any(partial) else ()
            )
        assignment = Assignment(self.mesh, assignments)
        cuts = {name: part for work in self.works for name, part in work.rule.cuts.items()}
        counts = [*map(len, self.splits), *map(len, self.work_splits.values())]
        is_complete = max(counts, default=0) < MAX_SPLITS
        is_cheapest = choice.is_optimal and is_complete
        return Propagated(assignment, self.classes, is_cheapest, choice.cost, cuts)


def _order_partial(partial: Partial) -> Partial:
    return tuple(sorted(partial))


def _axes_named(axes: Sequence[AxisNames]) -> tuple[tuple[Axis, ...], ...]:
    return tuple([tuple([Axis(name) for name in names]) for names in axes])
