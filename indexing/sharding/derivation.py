"""Factors of an instruction, derived from the reads of its results.

A digit of an operand's index that equals a digit of a result's index is a factor that passes
through.  One that equals a digit of a range variable over which the result is reduced is a
reduction factor.  The other dimensions need values of other devices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hlo.shapes.shape import OpaqueShape, Shape
from indexing.ops.element import CopyRule, OpaqueRule, ReductionRule
from indexing.sharding.array_reads import ArrayRead, ResultReads
from indexing.sharding.digit_classes import DigitClasses
from indexing.sharding.digits import DigitLink, IndexDigit, links_of
from indexing.sharding.rules import Factor, FactorKind, ShardingRule
from simplifier.atoms import Variable
from simplifier.linear import Expr


@dataclass(frozen=True, slots=True)
class AxisName:
    """An axis: a dimension of an operand ("o") or result ("r"), or a range variable ("s")."""

    space: str
    array: int
    name: int | str


class Derivation:
    """The factors of one instruction."""

    def __init__(
        self,
        operands: Sequence[Shape | OpaqueShape],
        outputs: Sequence[Shape | OpaqueShape],
        results: Sequence[ResultReads],
    ) -> None:
        self.results = results
        self.numbers: dict[AxisName, int] = {}
        self.names: list[AxisName] = []
        self.sizes: list[int] = []
        self.operands = [self._array("o", k, shape) for k, shape in enumerate(operands)]
        self.outputs = [self._array("r", k, shape) for k, shape in enumerate(outputs)]
        self.reads = [
            (k, read, self._roots(k, read))
            for k, result in enumerate(results)
            for read in result.reads
        ]
        self.texts: dict[int, list[str]] = defaultdict(list)
        self.links = self._links()
        self.classes = DigitClasses(self.sizes, self.links)
        self.factors: list[Factor] = []
        self.proofs: list[tuple[str, ...]] = []
        self.factor_of: dict[IndexDigit, int] = {}
        self.inits: set[int] = set()

    # ------------------------------------------------------------ axes and links

    def _array(self, space: str, number: int, shape: Shape | OpaqueShape) -> list[int]:
        dims = shape.dims if isinstance(shape, Shape) else ()
        return [self._axis(AxisName(space, number, k), size) for k, size in enumerate(dims)]

    def _axis(self, name: AxisName, size: int) -> int:
        if name not in self.numbers:
            self.numbers[name] = len(self.sizes)
            self.names.append(name)
            self.sizes.append(size)
        return self.numbers[name]

    def _roots(self, result: int, read: ArrayRead) -> dict[Variable, tuple[int, int]]:
        """Return the axis of each variable of a read whose digits may be factors."""
        axes = dict(zip(read.dims, self.outputs[result], strict=True))
        for step in read.steps:
            lower, upper = step.bounds
            if lower == 0:
                axes[step] = self._axis(AxisName("s", result, step.name), upper + 1)
        return {variable: (axis, self.sizes[axis]) for variable, axis in axes.items()}

    def _links(self) -> list[DigitLink]:
        """Return the links that hold in all reads of an operand, for each result that reads it."""
        links: dict[int, list[list[DigitLink]]] = defaultdict(list)
        for _, read, roots in self.reads:
            for axis, expr in zip(self.operands[read.operand], read.indices, strict=True):
                self.texts[axis].append(str(expr))
            for axis, those in self._links_of_read(read, roots):
                links[axis].append(those)
        for operand, _ in [u for result in self.results for u in result.unknown]:
            for axis in self.operands[operand]:
                links[axis].append([])
        agreed = [link for each in links.values() for link in self._agreed(each)]
        return [*agreed, *self._links_of_unread(links)]

    def _links_of_read(
        self, read: ArrayRead, roots: dict[Variable, tuple[int, int]]
    ) -> Iterator[tuple[int, list[DigitLink]]]:
        """Yield each axis of the array that is read, and its links: a root in one axis only."""
        used: set[tuple[int, int]] = set()
        total = {
            v
            for v, (_, size) in roots.items()
            if v.bounds == (0, size - 1) and v not in read.constrained
        }
        axes = self.operands[read.operand]
        for axis, expr in zip(reversed(axes), reversed(read.indices), strict=True):
            if self.sizes[axis] > 1:
                links = links_of(expr, axis, self.sizes[axis], roots, total) or []
                links = [k for k in links if (k.root.axis, k.root.stride) not in used]
                used |= {(k.root.axis, k.root.stride) for k in links}
                yield axis, links

    def _links_of_unread(self, links: Mapping[int, object]) -> Iterator[DigitLink]:
        """Yield links of operands that are not read: there, every link holds."""
        for axes in self.operands:
            for outputs in self.outputs[:1]:
                if len(axes) == len(outputs) and not any(axis in links for axis in axes):
                    for axis, root in zip(axes, outputs, strict=True):
                        size = self.sizes[axis]
                        if size == self.sizes[root] > 1:
                            yield DigitLink(IndexDigit(axis, 1, size), IndexDigit(root, 1, size))

    def _agreed(self, lists: Sequence[list[DigitLink]]) -> list[DigitLink]:
        """Return the links of an operand's axis if all its reads have the same digits.

        Reads for one result must also have equal roots.
        """
        pieces = {tuple([link.operand for link in each]) for each in lists}
        if len(pieces) != 1:
            return []
        roots: dict[tuple[IndexDigit, int], IndexDigit] = {}
        for each in lists:
            for link in each:
                key = link.operand, self.names[link.root.axis].array
                if roots.setdefault(key, link.root) != link.root:
                    return []
        return list(dict.fromkeys(link for each in lists for link in each))

    # ------------------------------------------------------------ kinds

    def rule(self) -> ShardingRule:
        """Return the rule."""
        groups = self._joined()
        for axes in self.outputs:
            for axis in axes:
                for digit in reversed(self.classes.digits[axis]):
                    self._add(digit, groups)
        for axes in self.operands:
            for axis in axes:
                for digit in reversed(self.classes.digits[axis]):
                    self._add(digit, groups)
        return ShardingRule(
            tuple(self.factors),
            tuple([self._factors(axes) for axes in self.operands]),
            tuple([self._factors(axes) for axes in self.outputs]),
            tuple(sorted(self.inits)),
            tuple(self.proofs),
        )

    def _factors(self, axes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        digits = self.classes.digits
        return tuple([tuple([self.factor_of[d] for d in reversed(digits[axis])]) for axis in axes])

    def _add(self, digit: IndexDigit, groups: dict[int, list[int]]) -> None:
        """Add the factor of a digit, unless it has one."""
        if digit in self.factor_of:
            return
        if digit in self.classes.linked:
            members = self._class_members(digit)
            self._new(members, *self._linked_factor(members))
            return
        joined = groups.get(digit.axis, [digit.axis])
        members = [d for axis in joined for d in self.classes.digits[axis]]
        if any(d in self.classes.linked for d in members) or len(members) > len(joined):
            members, joined = [digit], [digit.axis]
        self._new(members, *self._unlinked_factor(digit, joined))

    def _class_members(self, digit: IndexDigit) -> list[IndexDigit]:
        """Return the digits of the class of `digit`."""
        first = self.classes.of(digit)
        linked = sorted(self.classes.linked)
        return [d for d in linked if self.classes.of(d) == first]

    def _new(self, members: Sequence[IndexDigit], factor: Factor, proof: Sequence[str]) -> None:
        for digit in members:
            self.factor_of[digit] = len(self.factors)
        self.factors.append(factor)
        self.proofs.append(tuple(proof))

    def _linked_factor(self, members: Sequence[IndexDigit]) -> tuple[Factor, list[str]]:
        size = members[0].size
        spaces = {self.names[digit.axis].space for digit in members}
        reasons = [self._described(d) for d in members if self.names[d.axis].space == "o"]
        if "s" not in spaces:
            return Factor(size), reasons
        combiners = [self._combiner(d) for d in members if self.names[d.axis].space == "s"]
        if "r" in spaces or None in combiners or len(set(combiners)) > 1:
            return Factor(size, "need_replication"), reasons
        for digit in members:
            name = self.names[digit.axis]
            rule = self.results[name.array].rule if name.space == "s" else None
            if isinstance(rule, ReductionRule):
                self.inits |= set(rule.inits)
        return Factor(size, "reduction", combiners[0] or ""), reasons

    def _combiner(self, digit: IndexDigit) -> str | None:
        """Return the combiner of the results of a range variable's digits, if they can be split.

        Every value that depends on the variable must be split.
        """
        name = self.names[digit.axis]
        result = self.results[name.array]
        for number, read, roots in self.reads:
            if number != name.array:
                continue
            for dim, expr in enumerate(read.indices):
                axis = self.operands[read.operand][dim]
                depends = any(roots.get(v, (-1,))[0] == digit.axis for v in expr.variables())
                if depends and read.is_value and not self._is_linked(axis, digit.axis):
                    return None
        return result.combiner

    def _is_linked(self, axis: int, root: int) -> bool:
        return any(k.operand.axis == axis and k.root.axis == root for k in self.classes.links)

    def _described(self, digit: IndexDigit) -> str:
        name = self.names[digit.axis]
        what = "operand" if name.space == "o" else "result"
        place = f"{what} {name.array} dimension {name.name}"
        if digit.size != self.sizes[digit.axis]:
            place += f", floordiv {digit.stride} mod {digit.size},"
        texts = dict.fromkeys(self.texts[digit.axis])
        return f"{place} is read at {' and '.join(texts)}" if texts else f"{place} is not read"

    # ------------------------------------------------------------ dimensions without a link

    def _joined(self) -> dict[int, list[int]]:
        """Return the axes that share a factor that does not pass through, for each such axis."""
        groups: dict[int, list[int]] = {}
        for axes in self.operands:
            for axis in axes:
                roots = self._dims_behind(axis)
                arrays = [self.names[root].array for root in roots]
                if self._is_free(axis) and len(set(arrays)) == len(arrays):
                    if not roots & self._partly_linked():
                        for root in sorted(roots):
                            _join(groups, root, axis)
        self._pair_positions(groups)
        for axis, group in list(groups.items()):
            places = [(self.names[each].space, self.names[each].array) for each in group]
            if len(set(places)) != len(places):
                del groups[axis]
        return groups

    def _pair_positions(self, groups: dict[int, list[int]]) -> None:
        """Join dimensions at the same position where a result has no element rule."""
        for result, axes in zip(self.results, self.outputs, strict=True):
            for position, root in enumerate(axes):
                if not isinstance(result.rule, OpaqueRule) or not self._is_free(root):
                    continue
                for operand in self.operands:
                    if len(operand) == len(axes) and self._is_free(operand[position]):
                        if not self._dims_behind(operand[position]):
                            _join(groups, root, operand[position])

    def _is_free(self, axis: int) -> bool:
        return self.sizes[axis] > 1 and axis not in self._partly_linked()

    def _partly_linked(self) -> set[int]:
        return {digit.axis for digit in self.classes.linked}

    def _exprs(
        self, axis: int
    ) -> list[tuple[Expr, ArrayRead, dict[Variable, tuple[int, int]], ResultReads]]:
        """Return the indices of an operand's axis, with the axes of their variables."""
        name = self.names[axis]
        return [
            (read.indices[int(name.name)], read, roots, self.results[number])
            for number, read, roots in self.reads
            if name.space == "o" and read.operand == name.array
        ]

    def _dims_behind(self, axis: int) -> set[int]:
        """Return the result dimensions on which the index of an operand's axis depends."""
        return {
            roots[v][0]
            for expr, _, roots, _ in self._exprs(axis)
            for v in expr.variables()
            if v in roots and self.names[roots[v][0]].space == "r"
        }

    def _unlinked_factor(
        self, digit: IndexDigit, joined: Sequence[int]
    ) -> tuple[Factor, list[str]]:
        """Return the factor of axes without links."""
        operands = [axis for axis in joined if self.names[axis].space == "o"]
        reasons = [self._described(IndexDigit(axis, 1, self.sizes[axis])) for axis in operands]
        size = self._joint_size(digit, joined, operands)
        if self.names[digit.axis].space == "r" and not operands:
            return self._result_factor(digit)
        if len(joined) == 1 and not self._exprs(operands[0]) and not self._has_unknown(operands[0]):
            return Factor(digit.size), reasons
        if len(joined) == 1 and self._is_masked(operands[0]):
            return self._masked_factor(operands[0]), reasons
        kind: FactorKind = "need_replication"
        if digit.size == self.sizes[digit.axis] and self._moves(joined, operands):
            kind = "permutation"
        return Factor(size, kind), reasons

    def _has_unknown(self, axis: int) -> bool:
        array = self.names[axis].array
        return any(array == operand for result in self.results for operand, _ in result.unknown)

    def _joint_size(self, digit: IndexDigit, joined: Sequence[int], operands: Sequence[int]) -> int:
        """Return the size of a shared factor: that of the operand of a copy, as in Shardy."""
        if len(joined) == 1:
            return digit.size
        is_copy = all(not isinstance(r.rule, ReductionRule) for r in self.results)
        root = next(axis for axis in joined if axis not in operands)
        return self.sizes[operands[0] if len(operands) == 1 and is_copy else root]

    def _result_factor(self, digit: IndexDigit) -> tuple[Factor, list[str]]:
        """Return the factor of a result's digit on which no operand's split depends."""
        name = self.names[digit.axis]
        place = f"result {name.array} dimension {name.name}"
        rule = self.results[name.array].rule
        if isinstance(rule, OpaqueRule):
            return Factor(digit.size, "need_replication"), [f"{place}: {rule.reason}"]
        if isinstance(rule, CopyRule) and rule.parts > 1:
            reasons = [f"{place} selects the bits of an element"]
            return Factor(digit.size, "need_replication"), reasons
        readers = [
            axis
            for axes in self.operands
            for axis in axes
            if digit.axis in self._dims_behind(axis) and self.sizes[axis] > 1
        ]
        if readers:
            reasons = [self._described(IndexDigit(axis, 1, self.sizes[axis])) for axis in readers]
            return Factor(digit.size, "need_replication"), reasons
        constrained = any(
            v in read.constrained and roots[v][0] == digit.axis
            for number, read, roots in self.reads
            for v in roots
        )
        if constrained:
            return Factor(digit.size, "permutation"), [f"{place} decides if an operand is read"]
        return Factor(digit.size), [f"no read depends on {place}"]

    def _moves(self, joined: Sequence[int], axes: Sequence[int]) -> bool:
        """Return True if a shard of the result is a function of a shifted part of the operands."""
        exprs = [each for axis in axes for each in self._exprs(axis)]
        variables = {v for expr, _, _, _ in exprs for v in expr.variables()}
        runtime = {v for _, read, _, _ in exprs for v in read.runtime}
        is_known = bool(exprs) and not any(result.unknown for _, _, _, result in exprs)
        is_one = len({str(expr) for expr, _, _, _ in exprs}) == 1
        is_placed = bool(self._dims_behind(axes[0])) if len(joined) > 1 else not variables
        return is_known and is_one and is_placed and not variables & runtime

    def _is_masked(self, axis: int) -> bool:
        """Return True if each result copies one element, at a runtime index along `axis`."""
        exprs = self._exprs(axis)
        if len(exprs) != 1:
            return False
        ((expr, read, _, result),) = exprs
        variable = expr.as_variable
        return (
            isinstance(result.rule, CopyRule)
            and self.names[axis].array in result.rule.operands
            and len(result.rule.operands) == 1
            and variable is not None
            and variable in read.runtime
            and variable.bounds == (0, self.sizes[axis] - 1)
        )

    def _masked_factor(self, axis: int) -> Factor:
        return Factor(self.sizes[axis], "reduction", "sum", is_masked=True)


def _join(groups: dict[int, list[int]], one: int, other: int) -> None:
    """Merge the groups of two axes."""
    first, second = groups.get(one, [one]), groups.get(other, [other])
    if first is not second:
        merged = sorted({*first, *second})
        groups.update(dict.fromkeys(merged, merged))
