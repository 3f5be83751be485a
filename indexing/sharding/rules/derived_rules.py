"""`sharding_rule`: the sharding rule of an instruction, derived from its maps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from hlo.arguments import checked
from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import AnyShape, OpaqueShape, Shape, leaves
from indexing.dataflow.soundness import require_sound
from indexing.ops.base import MappedOp
from indexing.ops.element import declarations_of
from indexing.ops.structured_ops import InlineOp
from indexing.sharding.rules.array_reads import ResultReads, arrays_of, reads_of_op
from indexing.sharding.rules.called_reads import reads_of_computation, reads_of_operands
from indexing.sharding.rules.combiners import reducing_function
from indexing.sharding.rules.dimensions import Dimensions
from indexing.sharding.rules.factors import derived_rule
from indexing.sharding.rules.sharding_rules import Factors, ShardingRule


@checked
def sharding_rule(subject: Instruction | Computation) -> ShardingRule:
    """Return the factors that the dimensions of an instruction's operands and results share.

    Those of a computation are shared by its parameters and its result.

    Maps decide: a digit of an operand's index that equals a digit of a result's index passes
    through; a range variable over which the element rule reduces is a reduction factor.  A split
    that cannot be proved needs replication.

    Raises:
        HloError: an instruction that the result depends on is invalid.
    Source: Shardy ``docs/sharding_representation.md``; openxla/shardy
    ``op_sharding_rule_registry.cc``.

    >>> import hlo
    >>> entry = hlo.parse('''ENTRY e {
    ...   p = f32[8,16] parameter(0)
    ...   q = f32[16,32] parameter(1)
    ...   ROOT dot = f32[8,32] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''').entry
    >>> print(sharding_rule(entry.root))
    ([i, k], [k, j])->([i, j]) {i=8, j=32, k=16} reduction={k}
    """
    if isinstance(subject, Computation):
        require_sound([subject.root])
        return _rule_of_computation(subject)
    require_sound([subject])
    return _rule_of_instruction(subject)


def _rule_of_instruction(instruction: Instruction) -> ShardingRule:
    out, op = instruction.shape, instruction.op
    operands = tuple([operand.shape for operand in instruction.operands])
    if declarations_of(instruction).passes_leaves:
        return ShardingRule((), _no_factors(arrays_of(*operands)), _no_factors(arrays_of(out)))
    if isinstance(op, MappedOp):
        called = instruction.called_computations
        count = len(leaves(out))
        names = [reducing_function(called[0], k) if called else None for k in range(count)]
        return _rule_of_op(op, out, operands, tuple(names))
    if isinstance(op, InlineOp):
        return _rule_of_computation(instruction.called_computations[0])
    return instruction.module.memoised(
        (sharding_rule, instruction),
        lambda: _derive_rule(out, operands, reads_of_operands(instruction)),
    )


def _rule_of_computation(computation: Computation) -> ShardingRule:
    parameters = [parameter.shape for parameter in computation.parameters]
    return computation.memoised(
        sharding_rule,
        lambda: _derive_rule(computation.root.shape, parameters, reads_of_computation(computation)),
    )


@lru_cache(maxsize=1 << 11)
def _rule_of_op(
    op: MappedOp, out: AnyShape, operands: tuple[AnyShape, ...], names: tuple[str | None, ...]
) -> ShardingRule:
    return _derive_rule(out, operands, reads_of_op(op, out, operands, names))


def _derive_rule(
    out: AnyShape, operands: Sequence[AnyShape], results: Sequence[ResultReads]
) -> ShardingRule:
    return derived_rule(Dimensions(arrays_of(*operands), arrays_of(out), results))


def _no_factors(arrays: Sequence[Shape | OpaqueShape]) -> tuple[Factors, ...]:
    ranks = [leaf.rank if isinstance(leaf, Shape) else 0 for leaf in arrays]
    return tuple([((),) * rank for rank in ranks])
