"""Sharding rules: the factors that the dimensions of operands and results share.

Source: Shardy ``docs/sharding_representation.md`` and ``docs/propagation.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from hlo.arguments import checked_constructor

FactorKind: TypeAlias = Literal["pass_through", "reduction", "need_replication", "permutation"]
Factors: TypeAlias = tuple[tuple[int, ...], ...]
_LETTERS: Final = "ijklmnopqrstuvwxyz"
_LISTED: Final = ("reduction", "need_replication", "permutation")


@checked_constructor
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
        is_masked: the partial result of a device is 0 where the element that is read is not in its
            shard: runtime values are the indices along this factor.

    >>> import hlo, indexing
    >>> dot = hlo.parse('''ENTRY e {
    ...   p = f32[8,16] parameter(0)
    ...   q = f32[16,4] parameter(1)
    ...   ROOT dot = f32[8,4] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''').entry.root
    >>> rule = indexing.sharding_rule(dot)
    >>> print(rule)
    ([i, k], [k, j])->([i, j]) {i=8, j=4, k=16} reduction={k}
    >>> [(factor.size, factor.kind) for factor in rule.factors]
    [(8, 'pass_through'), (4, 'pass_through'), (16, 'reduction')]
    """

    size: int
    kind: FactorKind = "pass_through"
    reduction: str = ""
    is_masked: bool = False


@checked_constructor
@dataclass(frozen=True, slots=True)
class ShardingRule:
    """The factors of an instruction's operands and results.

    The text is Shardy's.

    Attributes:
        factors: the factors.
        operands: for each array of the operands, for each of its dimensions, the numbers of its
            factors, major to minor. An entry is () for a dimension of size 0 or 1 or without a
            factor. Each leaf of a tuple is an array.
        results: the same for each array of the result.
        inits: the operands that are initial values of reductions: where a reduction factor is
            split, they count on one device only.
        proofs: for each factor, the reasons for its kind; see `explain`.

    >>> i, j, k = Factor(8), Factor(32), Factor(16, "reduction", "sum")
    >>> print(ShardingRule((i, j, k), (((0,), (2,)), ((2,), (1,))), (((0,), (1,)),)))
    ([i, k], [k, j])->([i, j]) {i=8, j=32, k=16} reduction={k}
    """

    factors: tuple[Factor, ...]
    operands: tuple[Factors, ...]
    results: tuple[Factors, ...]
    inits: tuple[int, ...] = ()
    proofs: tuple[tuple[str, ...], ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        sizes = [factor.size for factor in self.factors]
        text = "->".join(
            f"({', '.join(self._array_text(dims, sizes) for dims in arrays)})"
            for arrays in (self.operands, self.results)
        )
        names = [f"{factor_name(number)}={size}" for number, size in enumerate(sizes)]
        lists = [f" {{{', '.join(names)}}}"] if names else []
        for kind in _LISTED:
            members = [factor_name(n) for n, f in enumerate(self.factors) if f.kind == kind]
            lists += [f" {kind}={{{', '.join(members)}}}"] if members else []
        return text + "".join(lists)

    @staticmethod
    def _array_text(dims: Factors, sizes: list[int]) -> str:
        """Return the factors of an array; a dimension without one gets its own of size 1."""
        words = []
        for numbers in dims:
            if not numbers:
                sizes.append(1)
            words.append("".join(map(factor_name, numbers or (len(sizes) - 1,))))
        return f"[{', '.join(words)}]"

    def explain(self) -> str:
        """Return the factors, each with the reasons for its kind.

        >>> import hlo
        >>> from indexing.sharding import sharding_rule
        >>> reverse = "ENTRY e { p = f32[4,3] parameter(0) ROOT r = f32[4,3] reverse(p), "
        >>> root = hlo.parse(reverse + "dimensions={0} }").entry.root
        >>> print(sharding_rule(root).explain())
        i=4 permutation: operand 0 dimension 0 is read at -d0 + 3
        j=3 pass_through: operand 0 dimension 1 is read at d1
        """
        return "\n".join(self._explanations())

    def _explanations(self) -> Iterator[str]:
        for number, factor in enumerate(self.factors):
            reasons = self.proofs[number] if number < len(self.proofs) else ()
            kind = f"{factor.kind} ({factor.reduction})" if factor.reduction else factor.kind
            yield f"{factor_name(number)}={factor.size} {kind}: {'; '.join(reasons)}"

    def dims_of(self, number: int, arrays: Sequence[Factors]) -> Iterator[tuple[int, int]]:
        """Yield array and dimension of each dimension of `arrays` that has factor `number`.

        >>> i, k = Factor(8), Factor(16, "reduction", "sum")
        >>> rule = ShardingRule((i, k), (((0,), (1,)), ((1,),)), (((0,),),))  # ([i, k], [k])->([i])
        >>> list(rule.dims_of(1, rule.operands)), list(rule.dims_of(1, rule.results))
        ([(0, 1), (1, 0)], [])
        """
        for array, dims in enumerate(arrays):
            for dim, numbers in enumerate(dims):
                if number in numbers:
                    yield array, dim


def factor_name(number: int) -> str:
    """Return Shardy's name of factor `number`: i to z, and then z_1, z_2, ….

    >>> [factor_name(number) for number in (0, 17, 18)]
    ['i', 'z', 'z_1']
    """
    last = len(_LETTERS) - 1
    return _LETTERS[number] if number <= last else f"z_{number - last}"
