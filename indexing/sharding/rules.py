"""Sharding rules: the factors that the dimensions of operands and results share.

Source: Shardy ``docs/sharding_representation.md`` and ``docs/propagation.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

FactorKind: TypeAlias = Literal["pass_through", "reduction", "need_replication", "permutation"]


@dataclass(frozen=True, slots=True)
class Factor:
    """A size that dimensions of operands and results are products of.

    Attributes:
        size: number of values.
        kind: "pass_through": a device computes its shard of the result from its shards of the
            operands; "reduction": from its shards it computes a partial result;
            "need_replication": a device needs all values; "permutation": it needs values of other
            devices.
        reduction: of a reduction factor, the function that combines partial results: "sum", "max",
            "min", "and", "or", "prod".
    """

    size: int
    kind: FactorKind = "pass_through"
    reduction: str = ""


@dataclass(frozen=True, slots=True)
class ShardingRule:
    """The factors of an instruction's operands and results.

    Attributes:
        factors: the factors.
        operands: for each operand, for each of its dimensions, the numbers of its factors, major
            to minor. An entry is () for a dimension of size 1 or without a factor.
        results: the same for each result.
    """

    factors: tuple[Factor, ...]
    operands: tuple[tuple[tuple[int, ...], ...], ...]
    results: tuple[tuple[tuple[int, ...], ...], ...]
