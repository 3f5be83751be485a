"""The moves of arrays that an assignment needs: between producers and users, and of results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves
from hlo.shardings.sharding import Sharding
from indexing.memory.executions import executions_from
from indexing.sharding.partition.assignment import Assignment, InstructionAssignment
from indexing.sharding.partition.moves import ShardingMove, cheapest_moves
from indexing.sharding.planning.array_splits import ArraySplit, RuleSplits
from indexing.sharding.planning.leaf_classes import branches_of, is_structural


class MovedArray(NamedTuple):
    """The moves of one array.

    Attributes:
        producer: the instruction that makes the array.
        user: the instruction that needs it in another sharding; the producer itself if all users
            find it in another one than it is made in.
        moves: the collectives and slices, in order.
        executions: how often they are executed; as often as is certain, if that is unknown.
    """

    producer: Instruction
    user: Instruction
    moves: tuple[ShardingMove, ...]
    executions: int

    @property
    def bytes_sent(self) -> int:
        """Bytes that a device sends in all executions."""
        return self.executions * sum(move.bytes_sent for move in self.moves)


def moved_arrays(assignment: Assignment) -> Iterator[MovedArray]:
    """Yield the arrays that change their sharding; equal changes of one array happen once."""
    seen: set[tuple[Instruction, int, Sharding]] = set()
    for user, producer, leaf, source, target in _conversions(assignment):
        shape = leaves(producer.shape)[leaf][1]
        if not isinstance(shape, Shape) or source == target or not shape.size:
            continue
        if user is not producer:
            if (producer, leaf, target) in seen:
                continue
            seen.add((producer, leaf, target))
        moves = cheapest_moves(shape.with_layout(None), source, target)
        if moves:
            counts = executions_from(user.module.entry).get(user.computation)
            yield MovedArray(producer, user, moves, max(counts.lower, 1) if counts else 1)


def _conversions(
    assignment: Assignment,
) -> Iterator[tuple[Instruction, Instruction, int, Sharding, Sharding]]:
    """Yield user, producer, leaf, and the shardings before and after."""
    for instruction, own in assignment.instructions.items():
        if is_structural(instruction):
            yield from _of_leaves(assignment, instruction)
        else:
            yield from _of_factors(assignment, instruction, own)


def _of_factors(
    assignment: Assignment, instruction: Instruction, own: InstructionAssignment
) -> Iterator[tuple[Instruction, Instruction, int, Sharding, Sharding]]:
    """Yield the conversions of the operands and results of an instruction that factors split."""
    rule = RuleSplits(own.rule, assignment.mesh.sizes)
    axes = [tuple([axis.name for axis in each]) for each in own.factor_axes]
    needed, made = rule.arrays(own.rule.operands, axes), rule.arrays(own.rule.results, axes)
    assert needed is not None
    assert made is not None
    passed = [tuple([(axis.name, kind) for axis, kind in each]) for each in own.partial]
    passed = passed or [()] * len(needed)
    operands = [(o, k) for o in instruction.operands for k in range(len(leaves(o.shape)))]
    for (operand, leaf), dims, partial in zip(operands, needed, passed, strict=True):
        target = ArraySplit(dims, partial).sharding(assignment.mesh)
        yield instruction, operand, leaf, assignment.instructions[operand].results[leaf], target
    results = tuple(sorted({*rule.partial(axes), *[pair for each in passed for pair in each]}))
    for leaf, dims in enumerate(made):
        source = ArraySplit(dims, results).sharding(assignment.mesh)
        yield instruction, instruction, leaf, source, own.results[leaf]


def _of_leaves(
    assignment: Assignment, instruction: Instruction
) -> Iterator[tuple[Instruction, Instruction, int, Sharding, Sharding]]:
    """Yield the conversions of leaves that tuples, loops and conditionals take."""
    targets = list(assignment.instructions[instruction].results)
    operands = instruction.operands
    if instruction.opcode == "conditional":
        operands = instruction.operands[1:]
        targets = [
            sharding
            for branch in branches_of(instruction)
            for sharding in assignment.instructions[branch.parameters[0]].results
        ]
    elif instruction.opcode not in ("tuple", "while"):
        return
    sources = [(o, leaf) for o in operands for leaf in range(len(leaves(o.shape)))]
    for (operand, leaf), target in zip(sources, targets, strict=True):
        source = assignment.instructions[operand].results[leaf]
        yield instruction, operand, leaf, source, target
