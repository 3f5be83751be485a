"""Assignments: the axes that split each factor of each instruction of a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hlo.modules.module import Instruction
from hlo.shardings.mesh import Axis, Mesh
from hlo.shardings.sharding import Sharding
from indexing.sharding.rules.sharding_rules import ShardingRule


@dataclass(frozen=True, slots=True)
class InstructionAssignment:
    """How devices divide the work of one instruction.

    Instructions that only pass leaves (parameters, ``tuple``, ``get-tuple-element``, ``while``,
    ``conditional``) have a rule without factors.  Their operands are needed as `results` says, leaf
    by leaf; the parameters of bodies, conditions and branches and the roots of bodies and branches
    have the shardings of the leaves that they receive and return.

    Attributes:
        rule: the sharding rule.
        factor_axes: the axes that split each factor of the rule, major to minor. The operands are
            needed in the shardings that these axes give.
        results: the sharding that users find, one for each leaf of the result. Where the factors
            give another one, the result is resharded.
        partial: for each operand, the axes along which it may stay partial, each with the
            reduction: the instruction computes a partial result from partial operands, as an
            addition does. The factors then give results that are also partial along these axes.
            Empty where no operand stays partial.
    """

    rule: ShardingRule
    factor_axes: tuple[tuple[Axis, ...], ...]
    results: tuple[Sharding, ...]
    partial: tuple[tuple[tuple[Axis, str], ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """The division of a program's work over a mesh.

    Attributes:
        mesh: the mesh.
        instructions: the division of each instruction, those of loop bodies and branches included.
            The program has no fusions and no calls.
    """

    mesh: Mesh
    instructions: Mapping[Instruction, InstructionAssignment]
