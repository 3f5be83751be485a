"""Reductions whose terms are split between devices."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import NamedTuple

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.maps.answers import Answer, Unknown
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.element import ReductionRule
from indexing.sharding.splits.containment import SplitDimension
from indexing.sharding.splits.states import BROADCAST, ArrayState, split
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact import unions
from simplifier.linear import Expr
from simplifier.substitute import Substitution


class SplitTerms(NamedTuple):
    """States of a reduction's operands that give each term to one device.

    Attributes:
        states: the states of operands that are reduced, or that index the terms, by number.
        shards: the numbers of shards are the divisors of this one.
        needs_place: a device must know the number of its shard.
        words: the reason.
    """

    states: dict[int, ArrayState]
    shards: int
    needs_place: bool
    words: str


def returns_update(instruction: Instruction, rule: ReductionRule) -> bool:
    """Return True for a scatter that replaces elements, each at most once."""
    if not rule.is_scatter or not getattr(instruction.op, "unique_indices", False):
        return False
    called = instruction.called_computations[0]
    return len(called.parameters) == 2 and called.root is called.parameters[1]


def split_terms(
    instruction: Instruction, rule: ReductionRule, reads: Answer, shards: int | None
) -> Iterator[SplitTerms | Unknown]:
    """Yield the states of operands with which each term of a reduction is reduced on one device.

    The index along the split dimension depends on range variables only, so that a device has terms
    of every element of the result.

    Args:
        reads: the maps to which the rule refers.
        shards: the number of shards; None for every number that divides the sizes.
    """
    yielded: list[dict[int, ArrayState]] = []
    for value in rule.values:
        maps = reads.maps[value]
        shape = instruction.operands[value].shape
        if reads.unknown[value] is not None or len(maps) != 1:
            if maps or reads.unknown[value] is not None:
                yield Unknown(f"the terms of operand {value} have no single map")
            continue
        (m,) = maps
        for dimension, index in enumerate(m.results):
            mentioned = set(index.variables())
            assert isinstance(shape, Shape)
            if mentioned and mentioned <= set(m.ranges) and shape.dims[dimension] > 1:
                terms = _terms(instruction, rule, reads, value, dimension, shards)
                if terms.states not in yielded:
                    yielded.append(terms.states)
                    yield terms


def _terms(
    instruction: Instruction,
    rule: ReductionRule,
    reads: Answer,
    value: int,
    dimension: int,
    shards: int | None,
) -> SplitTerms:
    """Return the states of operands for a split of one operand along one dimension."""
    (m,) = reads.maps[value]
    shape = instruction.operands[value].shape
    assert isinstance(shape, Shape)
    count = shards or shape.dims[dimension]
    states, needs_place = {value: split(dimension)}, False
    mentioned = set(m.results[dimension].variables())

    def beside(operand: int, index: tuple[Expr, ...], also: IndexingMap | None) -> None:
        nonlocal count, needs_place
        of = instruction.operands[operand].shape
        assert isinstance(of, Shape)
        for number, (expr, size) in enumerate(zip(index, of.dims, strict=True)):
            common = count if shards else gcd(count, size)
            if size > 1 and common > 1 and mentioned & set(expr.variables()):
                own = SplitDimension.of(shape.dims, dimension, common)
                if _is_beside(m, own, expr, SplitDimension.of(of.dims, number, common), also):
                    states[operand], count = split(number), common
                    return
        states[operand] = BROADCAST
        needs_place = needs_place or any(mentioned & set(e.variables()) for e in index)

    for other in rule.values:
        if other != value:
            maps = reads.maps[other]
            if len(maps) == 1:
                beside(other, maps[0].results, maps[0])
            else:
                states[other], needs_place = BROADCAST, True
    for operand, index in _runtime_indices(instruction, m).items():
        if index is not None:
            beside(operand, index, None)
        else:
            states[operand], needs_place = BROADCAST, True
    words = f"`{instruction.name}`: each term is reduced on the device with its element of operand"
    return SplitTerms(states, count, needs_place, f"{words} {value}, dimension {dimension}")


def _runtime_indices(
    instruction: Instruction, m: IndexingMap
) -> dict[int, tuple[Expr, ...] | None]:
    """For operands with runtime variables of the terms, the index that all of them have.

    None stands for different indices; they may differ where they are constant.
    """
    indices: dict[int, tuple[Expr, ...] | None] = {}
    for rt in m.runtime:
        if not isinstance(rt.array, ArrayRef) or rt.array.instruction not in instruction.operands:
            continue
        operand = instruction.operands.index(rt.array.instruction)
        known = indices.setdefault(operand, rt.element)
        if known is None or any(
            a != b and not (a.is_constant and b.is_constant)
            for a, b in zip(known, rt.element, strict=True)
        ):
            indices[operand] = None
    return indices


def _is_beside(
    m: IndexingMap,
    own: SplitDimension,
    other_index: Expr,
    other: SplitDimension,
    also: IndexingMap | None,
) -> bool:
    """Return True if both indices of each term are proved to be in shards of the same number."""
    index = m.results[own.number]
    shard = Variable("shard", 0, own.used - 1)
    inside = Variable("own", 0, own.shard - 1)
    place = shard * own.shard + inside
    maps = (m,) if also is None else (m, also)
    constraints = [c for each in maps for c in each.constraints]
    variables = list(dict.fromkeys(v for each in maps for v in each.variables))
    bare = index.as_variable
    if bare is not None:
        swap = Substitution({bare: place})
        constraints = [c.with_expr(swap(c.expr)) for c in constraints]
        constraints.append(Constraint(place, *bare.bounds))
        offset = swap(other_index) - shard * other.shard
        variables.remove(bare)
    else:
        constraints.append(Constraint(index - place, 0, 0))
        offset = other_index - shard * other.shard
    lower, upper = offset.bounds
    if lower >= 0 and upper < other.shard:
        return True
    below = (Constraint(offset, min(lower, -1), -1),)
    above = (Constraint(offset, other.shard, max(upper, other.shard)),)
    at = unions.point((shard, inside, *variables), constraints, [[below, above]])
    return at is None
