"""Branches of conditionals: their reads, restricted to the indices that execute them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from hlo.modules.module import Instruction
from indexing.dataflow.constants import is_integral
from indexing.dataflow.conversions import integer_rule
from indexing.dataflow.masks import drop_mask_values
from indexing.dataflow.needed import dependent_on_parameters
from indexing.dataflow.scalars import scalar_value
from indexing.dataflow.value_pieces import Surroundings, ValueMaps
from indexing.dataflow.values import named_values, value_maps
from indexing.maps.arrays import ArrayName, ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.joining import join_maps
from indexing.ops.access_edge import AccessEdge, dims
from indexing.ops.base import MappedOp
from indexing.ops.control import Conditional, why_any_branch
from indexing.ops.integer_rules import identity
from simplifier.constraints import Constraint
from simplifier.interval import Interval

MAX_PARTS: Final = 4
"""Limit on the intervals of runtime values that execute a branch; beyond it, any value does."""


def branch_edges(
    conditional: Instruction,
    op: Conditional,
    edges: Iterable[AccessEdge],
    around: Surroundings | None = None,
    *,
    backward: bool,
) -> Iterator[AccessEdge]:
    """Yield the edges of a conditional, restricted to where their branches are executed.

    They are exact as those of a select are: some inputs need each branch.  If no input decides, or
    if integers are computed of which no formula is known, it may be that no input needs a branch,
    and its maps are `may`.

    Args:
        edges: of the index, and of the branches for any index.
        around: what is known about the parameters of the computation: in the body of a loop.
        backward: maps lead from the result to operands.
    """
    index = ArrayRef(conditional.operands[0])
    branches = range(len(conditional.operands) - 1)
    if len(branches) == 1 or scalar_value(index) is not None:
        yield from edges
        return
    is_data = index.instruction in dependent_on_parameters(conditional.computation)
    values = None
    if around is not None:
        is_data, values = False, value_maps(index, around)
    elif is_data:
        values = named_values(index)
    if values is None:
        for edge in edges:
            is_known = is_data or not edge.operand
            yield edge if is_known else edge.over_approximate(why_any_branch(conditional))
    else:
        yield from _by_values(conditional, op, edges, values, backward)


def _by_values(
    conditional: Instruction,
    op: Conditional,
    edges: Iterable[AccessEdge],
    values: ValueMaps,
    backward: bool,
) -> Iterator[AccessEdge]:
    """Yield edges, restricted to where their branches are executed, given values of the index."""
    branches = range(len(conditional.operands) - 1)
    executed = [
        _executed_maps(conditional, values, op.selecting(number, len(branches)))
        for number in branches
    ]
    is_decided = sum(map(bool, executed)) == 1
    is_free = all(_takes_any_value(rt.array) for value in values for rt in value.runtime)
    for edge in edges:
        parts = executed[edge.operand - 1]
        if edge.operand and parts:
            edge = edge.change_maps(partial(_where_executed, conditional, edge, parts, backward))
            yield edge if is_free else edge.over_approximate(why_any_branch(conditional))
        elif not edge.operand and not is_decided:
            yield edge


def _takes_any_value(array: ArrayRef | ArrayName | None) -> bool:
    """Return True if an integer may have any value of its type, by what is known of its op.

    Of integers computed from others, such as ``x & 2``, an op may return few.
    """
    if not isinstance(array, ArrayRef):
        return True
    instruction = array.instruction
    while instruction.operands and integer_rule(instruction) is identity:  # a conversion
        instruction = instruction.operands[0]
    if not isinstance(instruction.op, MappedOp) or not instruction.operands:
        return True
    return not all(is_integral(ArrayRef(each)) for each in instruction.operands)


def _executed_maps(
    conditional: Instruction, values: ValueMaps, selecting: Iterable[Interval]
) -> tuple[IndexingMap, ...]:
    """Return maps without dimensions and results, whose domains are where a branch is executed."""
    parts = [
        replace(value, results=(), constraints=(*value.constraints, within))
        for value in values
        for within in [Constraint(value.results[0], *interval) for interval in selecting]
        if not within.is_false
    ]
    named = [drop_mask_values(part, conditional).simplify() for part in parts]
    joined = [part.simplify() for part in join_maps(named)]
    return tuple([part for part in joined if not part.is_known_empty])


def _where_executed(
    conditional: Instruction,
    edge: AccessEdge,
    executed: Sequence[IndexingMap],
    backward: bool,
    m: IndexingMap,
) -> Iterator[IndexingMap]:
    """Return the maps for each part of the domain where the branch of an edge is executed."""
    is_any = any(not part.constraints and not part.runtime for part in executed)
    if is_any or len(executed) > MAX_PARTS:
        yield m
        return
    variables = dims(ArrayRef(conditional, edge.output_path)) or ()
    whole = IndexingMap.of(variables, [d.as_expr() for d in variables])
    parts = [
        replace(whole, runtime=part.runtime, constraints=part.constraints) for part in executed
    ]
    yield from restrict_to_parts(parts, backward, m)


def restrict_to_parts(
    parts: Iterable[IndexingMap], backward: bool, m: IndexingMap
) -> Iterator[IndexingMap]:
    """Yield a map for each part of the result that needs the operand."""
    for part in parts:
        yield part.then(m) if backward else m.then(part)
