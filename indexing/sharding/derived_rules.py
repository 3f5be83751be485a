"""`sharding_rule`: the sharding rule of an instruction, derived from its maps."""

from __future__ import annotations

from collections.abc import Sequence

from hlo.arguments import checked
from hlo.modules.module import Instruction
from hlo.shapes.shape import OpaqueShape, Shape
from indexing.dataflow.soundness import require_sound
from indexing.sharding.array_reads import PASSES_LEAVES, arrays_of, result_reads
from indexing.sharding.derivation import Derivation
from indexing.sharding.rules import Factors, ShardingRule


@checked
def sharding_rule(instruction: Instruction) -> ShardingRule:
    """Return the factors that the dimensions of an instruction's operands and results share.

    Maps decide: a digit of an operand's index that equals a digit of a result's index passes
    through; a range variable over which the element rule reduces is a reduction factor.  A split
    that cannot be proved needs replication.

    Raises:
        HloError: the instruction, or an instruction of a computation it calls, is invalid.
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
    require_sound([instruction])
    operands = [leaf for operand in instruction.operands for leaf in arrays_of(operand.shape)]
    results = arrays_of(instruction.shape)
    if instruction.opcode in PASSES_LEAVES:
        return ShardingRule((), _no_factors(operands), _no_factors(results))
    return Derivation(operands, results, result_reads(instruction)).rule()


def _no_factors(arrays: Sequence[Shape | OpaqueShape]) -> tuple[Factors, ...]:
    ranks = [leaf.rank if isinstance(leaf, Shape) else 0 for leaf in arrays]
    return tuple([((),) * rank for rank in ranks])
