"""Factors of an instruction, derived from the reads of its results.

A digit of an operand's index that equals a digit of a result's index is a factor that passes
through.  One that equals a digit of a range variable over which the result is reduced is a
reduction factor.  The other dimensions need values of other devices.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo.shapes.shape import Shape
from indexing.ops.element import CopyRule, OpaqueRule, ReductionRule
from indexing.sharding.rules.digit_classes import DigitClasses
from indexing.sharding.rules.digits import IndexDigit
from indexing.sharding.rules.dimensions import Dimensions
from indexing.sharding.rules.sharding_rules import Factor, FactorKind, Factors, ShardingRule


def derived_rule(dims: Dimensions) -> ShardingRule:
    """Return the factors of the dimensions of an instruction."""
    return _Derivation(dims).rule()


class _Derivation:
    """The factors of one instruction, in the order of the dimensions of results and operands."""

    def __init__(self, dims: Dimensions) -> None:
        self.dims = dims
        self.classes = DigitClasses(dims.sizes, dims.links())
        self.linked = {digit.dim for digit in self.classes.linked}
        self.groups = self._groups()
        self.factors: list[Factor] = []
        self.proofs: list[tuple[str, ...]] = []
        self.factor_of: dict[IndexDigit, int] = {}
        self.inits: set[int] = set()

    def rule(self) -> ShardingRule:
        """Return the rule."""
        arrays = [*self.dims.outputs, *self.dims.operands]
        for dim in [dim for array in arrays for dim in array]:
            for digit in reversed(self.classes.digits[dim]):
                if digit not in self.factor_of:
                    self._add(digit)
        return ShardingRule(
            tuple(self.factors),
            tuple([self._factors(array) for array in self.dims.operands]),
            tuple([self._factors(array) for array in self.dims.outputs]),
            tuple(sorted(self.inits)),
            tuple(self.proofs),
        )

    def _factors(self, array: Sequence[int]) -> Factors:
        digits = self.classes.digits
        return tuple([tuple([self.factor_of[d] for d in reversed(digits[k])]) for k in array])

    def _add(self, digit: IndexDigit) -> None:
        """Add the factor of a digit."""
        if digit in self.classes.linked:
            members = self.classes.members(digit)
            factor, proof = self._linked_factor(members)
        else:
            joined = self.groups.get(digit.dim, [digit.dim])
            members = [d for dim in joined for d in self.classes.digits[dim]]
            if digit.dim in self.linked:
                members, joined = [digit], [digit.dim]
            factor, proof = self._unlinked_factor(digit, joined)
        for member in members:
            self.factor_of[member] = len(self.factors)
        self.factors.append(factor)
        self.proofs.append(tuple(proof))

    # ------------------------------------------------------------ digits with equal digits

    def _linked_factor(self, members: Sequence[IndexDigit]) -> tuple[Factor, list[str]]:
        names = [self.dims.names[digit.dim] for digit in members]
        spaces = {name.space for name in names}
        proof = [self._reason(d) for d in members if self.dims.names[d.dim].space == "operand"]
        factor = Factor(members[0].size, "need_replication")
        if len({name[:2] for name in names}) != len(names):
            return factor, proof
        if "steps" not in spaces:
            return Factor(members[0].size), proof
        return factor if "result" in spaces else self._reduction_factor(members), proof

    def _reduction_factor(self, members: Sequence[IndexDigit]) -> Factor:
        """Return the factor of digits of operands that equal a digit of a range variable."""
        size = members[0].size
        steps = [digit for digit in members if self.dims.names[digit.dim].space == "steps"]
        combiners = {self._combiner(digit) for digit in steps}
        name = combiners.pop()
        if name is None or combiners:
            return Factor(size, "need_replication")
        for digit in steps:
            rule = self.dims.results[self.dims.names[digit.dim].array].rule
            assert isinstance(rule, ReductionRule)
            self.inits |= set(rule.inits)
        return Factor(size, "reduction", name)

    def _combiner(self, digit: IndexDigit) -> str | None:
        """Return the combiner of the reduction over a range variable, if its steps can be split.

        Every value that depends on the variable must be split, too.
        """
        result = self.dims.results[self.dims.names[digit.dim].array]
        linked = {(k.operand.dim, k.root.dim) for k in self.classes.links}
        for dim, reads in self.dims.reads.items():
            for each in reads:
                variables = each.expr.variables() if each.result is result else ()
                depends = any(each.roots.get(v, (-1, 0))[0] == digit.dim for v in variables)
                if depends and each.read.is_value and (dim, digit.dim) not in linked:
                    return None
        return result.combiner

    def _reason(self, digit: IndexDigit) -> str:
        """Return the indices at which a digit of an operand is read."""
        where = str(self.dims.names[digit.dim])
        if digit.size != self.dims.sizes[digit.dim]:
            where += f", floordiv {digit.stride} mod {digit.size},"
        texts = dict.fromkeys(str(each.expr) for each in self.dims.reads.get(digit.dim, ()))
        return f"{where} is read at {' and '.join(texts)}" if texts else f"{where} is not read"

    # ------------------------------------------------------------ dimensions without equal digits

    def _groups(self) -> dict[int, list[int]]:
        """Return the dimensions that share a factor that needs communication, for each such one."""
        dims, groups = self.dims, dict[int, list[int]]()
        for dim in [dim for array in dims.operands for dim in array if self._is_free(dim)]:
            roots = dims.dims_behind(dim)
            results = [dims.names[root].array for root in roots]
            if len(set(results)) == len(results) and not roots & self.linked:
                for root in sorted(roots):
                    _join(groups, root, dim)
        self._pair_positions(groups)
        for dim, group in list(groups.items()):
            arrays = [dims.names[each][:2] for each in group]
            if len(set(arrays)) != len(arrays):
                del groups[dim]
        return groups

    def _pair_positions(self, groups: dict[int, list[int]]) -> None:
        """Join dimensions at the same position where a result has no element rule."""
        dims = self.dims
        for result, output in zip(dims.results, dims.outputs, strict=True):
            if isinstance(result.rule, OpaqueRule):
                same_rank = [array for array in dims.operands if len(array) == len(output)]
                pairs = [pair for array in same_rank for pair in zip(output, array, strict=True)]
                for root, dim in pairs:
                    is_free = self._is_free(root) and self._is_free(dim)
                    if is_free and not dims.dims_behind(dim):
                        _join(groups, root, dim)

    def _is_free(self, dim: int) -> bool:
        return self.dims.sizes[dim] > 1 and dim not in self.linked

    def _unlinked_factor(
        self, digit: IndexDigit, joined: Sequence[int]
    ) -> tuple[Factor, list[str]]:
        """Return the factor of a digit of one dimension, or of several whole dimensions."""
        dims = self.dims
        operands = [dim for dim in joined if dims.names[dim].space == "operand"]
        if digit.dim in dims.dynamic:
            reason = f"the size of {dims.names[digit.dim]} is known only at run time"
            return Factor(digit.size, "need_replication"), [reason]
        if not operands:
            return self._result_factor(digit)
        proof = [self._reason(IndexDigit(dim, 1, dims.sizes[dim])) for dim in operands]
        if len(joined) > 1:
            return Factor(self._joint_size(joined, operands), self._joint_kind(operands)), proof
        return self._operand_factor(digit), proof

    def _operand_factor(self, digit: IndexDigit) -> Factor:
        """Return the factor of a digit of an operand that is in no other array."""
        dims = self.dims
        number = dims.names[digit.dim].array
        reads = dims.reads.get(digit.dim, ())
        if number in dims.unknown:
            return Factor(digit.size, "need_replication")
        if not reads:
            return Factor(digit.size)
        if self._is_masked(digit.dim):
            shape = dims.shapes[number]
            is_predicate = isinstance(shape, Shape) and shape.element_type == "pred"
            reduction = "or" if is_predicate else "sum"
            return Factor(digit.size, "reduction", reduction, is_masked=True)
        is_one = len(reads) == 1 and reads[0].expr.is_constant
        return Factor(digit.size, "permutation" if is_one else "need_replication")

    def _result_factor(self, digit: IndexDigit) -> tuple[Factor, list[str]]:
        """Return the factor of a digit of a result that equals no digit of an operand."""
        dims = self.dims
        name = dims.names[digit.dim]
        rule = dims.results[name.array].rule
        reads = [dim for dim in dims.reads if digit.dim in dims.dims_behind(dim)]
        reads = [dim for dim in reads if dims.sizes[dim] > 1]
        kind: FactorKind = "need_replication"
        if isinstance(rule, OpaqueRule):
            return Factor(digit.size, kind), [f"{name}: {rule.reason}"]
        if isinstance(rule, CopyRule) and rule.parts > 1:
            return Factor(digit.size, kind), [f"{name} selects the bits of an element"]
        if reads:
            proof = [self._reason(IndexDigit(dim, 1, dims.sizes[dim])) for dim in reads]
            return Factor(digit.size, kind), proof
        if dims.is_constrained(digit.dim):
            return Factor(digit.size, "permutation"), [f"{name} decides what is read"]
        return Factor(digit.size), [f"no read depends on {name}"]

    def _joint_size(self, joined: Sequence[int], operands: Sequence[int]) -> int:
        """Return the size of a shared factor: that of the only operand of a copy, as in Shardy."""
        reduces = any(isinstance(result.rule, ReductionRule) for result in self.dims.results)
        root = next(dim for dim in joined if dim not in operands)
        return self.dims.sizes[root if reduces or len(operands) > 1 else operands[0]]

    def _joint_kind(self, operands: Sequence[int]) -> FactorKind:
        """Return "permutation" if a shard of a result needs one moved part of the operands."""
        reads = [each for dim in operands for each in self.dims.reads[dim]]
        variables = {v for each in reads for v in each.expr.variables()}
        is_known = bool(reads) and not any(each.result.unknown for each in reads)
        is_one = len({str(each.expr) for each in reads}) == 1
        is_placed = bool(self.dims.dims_behind(operands[0]))
        at_runtime = any(variables & each.read.runtime for each in reads)
        is_moved = is_known and is_one and is_placed and not at_runtime
        return "permutation" if is_moved else "need_replication"

    def _is_masked(self, dim: int) -> bool:
        """Return True if each result copies one element, at a runtime index along `dim`.

        A constant index is one, too, if indices along other dimensions are runtime values.
        """
        reads = self.dims.reads[dim]
        if len(reads) != 1:
            return False
        expr, read, _, result = reads[0]
        if not isinstance(result.rule, CopyRule) or result.rule.operands != (read.operand,):
            return False
        variable = expr.as_variable
        if variable is None:
            return expr.is_constant and bool(read.runtime)
        return variable in read.runtime and variable.bounds == (0, self.dims.sizes[dim] - 1)


def _join(groups: dict[int, list[int]], one: int, other: int) -> None:
    """Merge the groups of two dimensions."""
    first, second = groups.get(one, [one]), groups.get(other, [other])
    if first is not second:
        merged = sorted({*first, *second})
        groups.update(dict.fromkeys(merged, merged))
