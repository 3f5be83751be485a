"""Splits that the given shardings can reach: along factors, forward and backward.

An axis that splits a dimension of an operand or a result may split the factors of this dimension,
and these the other dimensions that have them.  A reduction factor that is split makes the results
partial.  All splits that some path of instructions leads to are collected, conflicting ones too:
costs decide between them.

Source: Shardy ``docs/propagation.md``; Y. Xu et al., "GSPMD", 2021, section 3.5.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final, NamedTuple

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.sharding.planning.array_splits import (
    ArraySplit,
    AxisNames,
    RuleSplits,
    disjoint_products,
)
from indexing.sharding.planning.leaf_classes import LeafClass, LeafClasses
from indexing.sharding.planning.partial_operands import PartialOperands

MAX_SPLITS: Final = 64
"""Limit on the splits of one array, and of one instruction, that are compared."""


class FactoredInstruction(NamedTuple):
    """An instruction that factors split.

    Attributes:
        instruction: the instruction.
        rule: the splits of its rule.
        operands: the class of each operand.
        results: the class of each result.
        passing: the sets of operands that may stay partial, by reduction.
    """

    instruction: Instruction
    rule: RuleSplits
    operands: tuple[LeafClass, ...]
    results: tuple[LeafClass, ...]
    passing: PartialOperands


@dataclass(slots=True)
class Reached:
    """The splits that are reached.

    Attributes:
        classes: the classes of leaves.
        given: the split of each class that is given.
        sizes: the size of each axis.
        banned: the axes that must not be used on a class.
        choices: the splits that a class may have, if only some.
        excessive: see `RuleSplits`.
        dims: for each class and dimension, the axes that may split it.
        wanted: the axes that users of a class with a given split need instead.
        partial: for each class, the axes along which it may be partial, with the reduction.
        factors: for each instruction and factor, the axes that may split it.
    """

    classes: LeafClasses
    given: Mapping[LeafClass, ArraySplit]
    sizes: Mapping[str, int]
    banned: Mapping[LeafClass, frozenset[str]]
    choices: Mapping[LeafClass, Sequence[ArraySplit]]
    excessive: Container[AxisNames] = ()
    dims: dict[LeafClass, list[dict[AxisNames, None]]] = field(default_factory=dict)
    wanted: dict[LeafClass, list[dict[AxisNames, None]]] = field(default_factory=dict)
    partial: dict[LeafClass, dict[tuple[str, str], None]] = field(default_factory=dict)
    factors: dict[Instruction, list[dict[AxisNames, None]]] = field(default_factory=dict)

    def splits(self, number: LeafClass) -> list[ArraySplit]:
        """Return the splits that an array may have; the given one, or the replicated one first."""
        if number in self.given:
            return [self.given[number]]
        if number in self.choices:
            return list(self.choices[number])
        if not isinstance(self.classes.shapes[number], Shape):
            return [ArraySplit(())]
        sets = [_with_none(each) for each in self.dims[number]]
        dims = disjoint_products(sets, MAX_SPLITS)
        by_axis: dict[str, list[AxisNames]] = defaultdict(lambda: [()])
        for name, kind in self.partial[number]:
            by_axis[name].append((name, kind))
        splits = []
        for partial in _choices(list(by_axis.values())):
            for axes in dims:
                split = ArraySplit(axes, tuple([(pair[0], pair[1]) for pair in partial if pair]))
                if split.is_disjoint:
                    splits.append(split)
        return splits[:MAX_SPLITS]

    def copies(self, number: LeafClass) -> list[ArraySplit]:
        """Return the splits in which several users may need an array whose split is given."""
        sets = [
            _with_none([*reached, *wanted])
            for reached, wanted in zip(self.dims[number], self.wanted[number], strict=True)
        ]
        splits = [ArraySplit(dims) for dims in disjoint_products(sets, MAX_SPLITS)]
        return list(dict.fromkeys([*self.splits(number), *splits]))


def _with_none(names: Iterable[AxisNames]) -> list[AxisNames]:
    return list(dict.fromkeys([(), *names]))


def _choices(sets: Sequence[Sequence[AxisNames]]) -> Iterator[tuple[AxisNames, ...]]:
    if not sets:
        yield ()
        return
    for rest in _choices(sets[1:]):
        for each in sets[0]:
            yield (each, *rest)


def reach_splits(
    classes: LeafClasses,
    works: Sequence[FactoredInstruction],
    given: Mapping[LeafClass, ArraySplit],
    sizes: Mapping[str, int],
    banned: Mapping[LeafClass, frozenset[str]],
    choices: Mapping[LeafClass, Sequence[ArraySplit]],
    excessive: Container[AxisNames] = (),
) -> Reached:
    """Propagate given splits to a fixed point."""
    result = Reached(classes, given, sizes, banned, choices, excessive)
    for number, shape in enumerate(classes.shapes):
        rank = shape.rank if isinstance(shape, Shape) else 0
        result.dims[number] = [{} for _ in range(rank)]
        result.wanted[number] = [{} for _ in range(rank)]
        result.partial[number] = {}
    for work in works:
        result.factors[work.instruction] = [{} for _ in work.rule.rule.factors]
    _Propagation(result, works).run()
    return result


class _Propagation:
    def __init__(self, result: Reached, works: Sequence[FactoredInstruction]) -> None:
        self.result = result
        self.users: dict[LeafClass, list[FactoredInstruction | tuple[LeafClass, LeafClass]]] = (
            defaultdict(list)
        )
        self.pending: deque[LeafClass] = deque()
        self.waiting: set[LeafClass] = set()
        for work in works:
            for number in dict.fromkeys((*work.operands, *work.results)):
                self.users[number].append(work)
        for leaf in result.classes.passed:
            for number in (leaf.source, leaf.target):
                self.users[number].append((leaf.source, leaf.target))

    def run(self) -> None:
        given = [(number, [split]) for number, split in self.result.given.items()]
        for number, split in [
            (number, split)
            for number, splits in (*given, *self.result.choices.items())
            for split in splits
        ]:
            for dim, names in enumerate(split.dims):
                self._reach(number, dim, names)
            for name, kind in split.partial:
                self._reach_partial(number, name, kind)
        while self.pending:
            number = self.pending.popleft()
            self.waiting.discard(number)
            for user in self.users[number]:
                if isinstance(user, FactoredInstruction):
                    self._visit(user)
                else:
                    self._pass(*user)

    def _touch(self, number: LeafClass) -> None:
        if number not in self.waiting:
            self.waiting.add(number)
            self.pending.append(number)

    def _reach(self, number: LeafClass, dim: int, names: AxisNames) -> None:
        reached = self.result.dims[number][dim]
        given = self.result.given.get(number)
        if not names or names in reached:
            return
        if given is not None and names != given.dims[dim]:
            self.result.wanted[number][dim][names] = None
            return
        shape = self.result.classes.shapes[number]
        assert isinstance(shape, Shape)
        fits = prod(self.result.sizes[name] for name in names) <= shape.dims[dim]
        fits = fits or given is not None or names in self.result.excessive
        if fits and not self.result.banned.get(number, frozenset()) & set(names):
            reached[names] = None
            self._touch(number)

    def _reach_partial(self, number: LeafClass, name: str, kind: str) -> None:
        given = self.result.given.get(number)
        if (name, kind) not in self.result.partial[number] and (
            given is None or (name, kind) in given.partial
        ):
            self.result.partial[number][name, kind] = None
            self._touch(number)

    def _pass(self, source: LeafClass, target: LeafClass) -> None:
        for one, other in ((source, target), (target, source)):
            for dim, reached in enumerate(self.result.dims[one]):
                for names in list(reached):
                    self._reach(other, dim, names)
        for name, kind in list(self.result.partial[source]):
            self._reach_partial(target, name, kind)

    def _visit(self, work: FactoredInstruction) -> None:
        factors = self.result.factors[work.instruction]
        rule = work.rule.rule
        arrays = [*zip(rule.operands, work.operands, strict=True),
                  *zip(rule.results, work.results, strict=True)]  # fmt: skip
        for dims, number in arrays:
            for dim, members in enumerate(dims):
                for names in self.result.dims[number][dim]:
                    for factor, taken in work.rule.pieces(members, names):
                        factors[factor][taken] = None
        for dims, number in arrays:
            for dim, members in enumerate(dims):
                for names in self._dimension(work.rule, members, factors):
                    self._reach(number, dim, names)
        self._visit_partial(work, factors)

    def _dimension(
        self, rule: RuleSplits, members: Sequence[int], factors: Sequence[Mapping[AxisNames, None]]
    ) -> Iterator[AxisNames]:
        """Yield the axes of a dimension that those of its factors give."""
        sets = [_with_none(factors[factor]) for factor in members]
        for way in disjoint_products(sets, MAX_SPLITS):
            axes: list[AxisNames] = [()] * len(factors)
            for factor, names in zip(members, way, strict=True):
                axes[factor] = names
            names_of_dim = rule.dimension(members, axes)
            if names_of_dim:
                yield names_of_dim

    def _visit_partial(
        self, work: FactoredInstruction, factors: Sequence[Mapping[AxisNames, None]]
    ) -> None:
        pairs = [
            (name, factor.reduction)
            for factor, sets in zip(work.rule.rule.factors, factors, strict=True)
            if factor.kind == "reduction"
            for names in sets
            for name in names
        ]
        for kind, sets in work.passing.items():
            for operands in sets:
                common = [set(self.result.partial[work.operands[k]]) for k in sorted(operands)]
                shared = set.intersection(*common)
                pairs += [pair for pair in sorted(shared) if pair[1] == kind]
        for name, kind in pairs:
            for number in work.results:
                self._reach_partial(number, name, kind)
