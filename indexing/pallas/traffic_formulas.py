"""Traffic of symbolic and of large grids: formulas that hold for all sizes.

Let ``G_0, ..., G_r`` be the sizes of the grid.  A block moves at the first step, and at each step
whose block differs from that of the step before.  In that step some dimension ``k`` advances: the
earlier ones stay, and the later ones start again at 0.  So::

    moves = 1 + sum over k of G_0 * ... * G_(k-1) * (number of i_k >= 1 at which the block changes)

isl proves for all sizes that the block changes at each ``i_k``, at none, or at the multiples of a
divisor in the index map.  If later dimensions decide, there are two cases: all of them have one
step, or one of them has more.  The bytes are those of whole blocks; in a dimension of the array
that is ``i_k`` blocks wide, the last block is clipped, and all blocks together have its size.

>>> from indexing.pallas.calls import BlockDimension, BlockSpecification
>>> from indexing.pallas.calls import GridDimension, KernelCall
>>> from indexing.maps.runtime_variable import RuntimeVariable
>>> n, i = Variable("n", 9, 99), Variable("d0", 0, 12)
>>> rows = (n.as_expr(),), "f32", 32, (BlockDimension("blocked", 8),), (i.as_expr(),), (), "vmem"
>>> spec = BlockSpecification("x", "", False, *rows)
>>> grid = (GridDimension("i", (n + 7) // 8),)
>>> call = KernelCall("copy", "tpu", grid, (RuntimeVariable(n),), frozenset(), (), (spec,))
>>> moves = transfer_formulas(PlacedOperand.of(call, spec))
>>> print(moves.count, "copies,", moves.bytes, "bytes")
(n + 7) floordiv 8 copies, n * 4 bytes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd, prod

from indexing.maps.map_copies import unequal
from indexing.pallas.block_maps import PlacedOperand, at_least, at_most, equal, first_point
from indexing.pallas.visits import successors
from simplifier import exact, maximum, minimum
from simplifier.atoms import Floor, Variable
from simplifier.constraints import Constraint
from simplifier.exact.unions import Clause
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class TransferFormulas:
    """The transfers of the blocks of one operand, in the symbols of its sizes.

    Attributes:
        count: the number of copies in, or of writes back.
        bytes: their bytes; `Unknown` if blocks are clipped in a way without a formula.
    """

    count: Expr
    bytes: Expr | Unknown


def transfer_formulas(operand: PlacedOperand) -> TransferFormulas | Unknown:
    """Return the transfers of an operand in the order of the grid, for all sizes."""
    if operand.scalars:
        return Unknown("the blocks depend on scalars")
    return _Formulas(operand).transfers()


@dataclass(frozen=True, slots=True)
class _WeightSums:
    """Sums over the values of one dimension of the grid, each value with a weight.

    Attributes:
        every: the sum over all values.
        first: the weight of value 0.
        period: the weight of one other value, or `None` if they differ.
    """

    every: Expr
    first: Expr
    period: Expr | None

    def changing(self, period: int) -> Expr | None:
        """Return the sum over the values from 1 that are multiples of a period; 0 for none."""
        if period == 0:
            return as_expr(0)
        if period == 1:
            return self.every - self.first
        return None if self.period is None else ((self.every - 1) // period) * self.period


class _Formulas:
    def __init__(self, operand: PlacedOperand) -> None:
        self.operand = operand
        self.variables = *operand.symbols, *operand.starts.dims
        self.conditions = operand.starts.constraints
        self.real = [each.size for each in operand.call.grid]
        self.sizes = [self._size(k, size) for k, size in enumerate(self.real)]
        mentioned = {v for e in operand.starts.results for v in e.variables()}
        self.used = [k for k, v in enumerate(operand.starts.dims) if v in mentioned]

    def _size(self, k: int, size: Expr) -> Expr:
        """Return a variable for a size of the grid, with its bounds; a constant stays."""
        if size.is_constant:
            return size
        inputs = self.operand.symbols
        values = exact.bounds(inputs, self.operand.call.conditions, size)
        low, high = size.bounds if isinstance(values, Unknown) or values is None else values
        return Variable(f"G{k}", max(low, 0), max(high, 0)).as_expr()

    def transfers(self) -> TransferFormulas | Unknown:
        cases = [self._changes(k, next_dims, given)
                 for k, (next_dims, given) in self._successors()]  # fmt: skip
        known = [case for case in cases if not isinstance(case, Unknown)]
        if len(known) < len(cases):
            return next(case for case in cases if isinstance(case, Unknown))
        ones = [_WeightSums(size, as_expr(1), as_expr(1)) for size in self.sizes]
        count = self._total(known, ones)
        if count is None:
            return Unknown("the changes of the block have no formula")
        elements = self._elements(known)
        if not isinstance(elements, Unknown):
            elements = self._final(elements * self.operand.spec.bits) // 8
        return TransferFormulas(self._final(count), elements)

    def _successors(self) -> Iterator[tuple[int, tuple[list[Expr], list[Constraint]]]]:
        a = self.operand.copy("")
        rank = len(self.sizes)
        return ((rank - 1 - n, each) for n, each in enumerate(successors(self.operand, a)))

    # ------------------------------------------------------------ changes of the block

    def _changes(
        self, k: int, next_dims: Sequence[Expr], given: Sequence[Constraint]
    ) -> _Changes | Unknown:
        """Return when the block changes as dimension `k` advances."""
        starts = self.operand.starts
        after = Substitution(dict(zip(starts.dims, next_dims, strict=True)))
        pairs = [(e, after(e)) for e in starts.results]
        later = [j for j in self.used if j > k]
        single = [at_most(self.real[j], 1) for j in later]
        several: Clause = [[at_least(self.real[j], 2)] for j in later]
        periods = [0, 1, *sorted(set(_periods(starts.results, starts.dims[k])))]
        ways: list[int] = []
        for constraints, clauses in (((), [several] if later else []), (single, [])):
            for period in periods:
                if self._changes_every(period, k, pairs, (*given, *constraints), clauses):
                    ways.append(period)
                    break
            else:
                name = self.operand.call.grid[k].name
                return Unknown(f"no formula for the steps of {name} at which the block changes")
        return _Changes(k, later, *ways)

    def _changes_every(
        self,
        period: int,
        k: int,
        pairs: Sequence[tuple[Expr, Expr]],
        given: Sequence[Constraint],
        clauses: list[Clause],
    ) -> bool:
        """True if the block changes exactly where the next value of dimension `k` is a multiple."""
        advanced = self.operand.starts.dims[k] + 1
        at_multiples, elsewhere = list(given), list(given)
        if period > 1:
            at_multiples.append(Constraint(advanced % period, 0, 0))
            elsewhere.append(Constraint(advanced % period, 1, period - 1))
        same = [equal(a, b) for a, b in pairs]
        differs = unequal([a for a, _ in pairs], [b for _, b in pairs])
        if period and not self._is_empty([*at_multiples, *same], clauses):
            return False
        if period == 1 or not differs:
            return True
        return self._is_empty(elsewhere, [*clauses, differs])

    def _is_empty(self, constraints: Sequence[Constraint], clauses: Sequence[Clause]) -> bool:
        every = (*self.conditions, *constraints)
        return first_point(self.variables, every, clauses) is None

    # ------------------------------------------------------------ sums

    def _total(self, changes: Sequence[_Changes], values: Sequence[_WeightSums]) -> Expr | None:
        """Return the sum over all steps with a new block of the product of the weights."""
        total = _product([v.first for v in values])
        for change in changes:
            k = change.dimension
            around = _product([v.every for v in values[:k]])
            inside = _product([v.first for v in values[k + 1 :]])
            several, single = (values[k].changing(p) for p in (change.several, change.single))
            if several is None or single is None:
                return None
            moved = several
            if change.several != change.single:
                sizes = [self.sizes[j] for j in change.later]
                is_single = maximum(0, len(sizes) + 1 - sum(sizes[1:], sizes[0]))
                moved = several - is_single * (several - single)
            total = total + around * moved * inside
        return total

    def _elements(self, changes: Sequence[_Changes]) -> Expr | Unknown:
        """Return the elements of all blocks that move, within the array."""
        whole = 1
        clipped: dict[int, tuple[Expr, int]] = {}
        operand = self.operand
        for start, each, size in zip(
            operand.starts.results, operand.block, operand.spec.sizes, strict=True
        ):
            outside = [at_most(start, -1)], [at_least(start + each.size, size + 1)]
            if all(self._is_empty(way, []) for way in outside):
                whole *= each.size
                continue
            k = self._own_dimension(start, each.size)
            if k is None or not self._is_empty([at_least(start, size)], []):
                return Unknown("blocks at the end of the array have no formula")
            clipped[k] = size, each.size
        values = [
            self._clipped_sums(k, *clipped[k])
            if k in clipped
            else _WeightSums(n, as_expr(1), as_expr(1))
            for k, n in enumerate(self.sizes)
        ]
        total = self._total(changes, values)
        return Unknown("clipped blocks have no formula") if total is None else total * whole

    def _own_dimension(self, start: Expr, size: int) -> int | None:
        """Return the dimension of the grid that alone counts blocks along a dimension of the array.

        No other dimension of the array may depend on it.
        """
        dims = self.operand.starts.dims
        owned = [k for k, v in enumerate(dims) if start == v * size]
        users = [
            e for e in self.operand.starts.results if owned and dims[owned[0]] in e.variables()
        ]
        return owned[0] if len(users) == 1 else None

    def _clipped_sums(self, k: int, size: Expr, block: int) -> _WeightSums:
        """Return the sums of the sizes of the blocks in the array, by the index of the block."""
        return _WeightSums(
            self._smaller(size, self.real[k] * block, self.sizes[k] * block),
            self._smaller(size, as_expr(block), as_expr(block)),
            None,
        )

    def _smaller(self, first: Expr, second: Expr, shown: Expr) -> Expr:
        """Return the minimum of two expressions; one of them, if isl proves it."""
        inputs, conditions = self.operand.symbols, self.operand.call.conditions
        if first_point(inputs, (*conditions, at_least(first, second + 1))) is None:
            return first
        if first_point(inputs, (*conditions, at_least(second, first + 1))) is None:
            return shown
        return minimum(first, shown)

    def _final(self, total: Expr) -> Expr:
        """Return a sum in the symbols of the sizes, which is 0 for a grid without steps."""
        for size in self.sizes:
            if size.is_constant:
                total = total if size.constant else as_expr(0)
            elif size.bounds[0] < 1:
                without_steps = Substitution({_variable(size): as_expr(0)})(total)
                total = total if without_steps == as_expr(0) else total * minimum(1, size)
        pairs = zip(self.sizes, self.real, strict=True)
        return Substitution({_variable(s): real for s, real in pairs if not s.is_constant})(total)


@dataclass(frozen=True, slots=True)
class _Changes:
    """When a block changes as a dimension of the grid advances, as periods; 0 is never.

    Attributes:
        dimension: the number of the dimension.
        later: the later dimensions on which the block depends.
        several: the period if one of the later dimensions has several steps.
        single: the period if each of them has one step.
    """

    dimension: int
    later: Sequence[int]
    several: int
    single: int


def _variable(size: Expr) -> Variable:
    """Return the variable that is a size of the grid."""
    (atom,) = size.parts
    assert isinstance(atom, Variable)
    return atom


def _product(factors: Sequence[Expr]) -> Expr:
    return prod(factors, start=as_expr(1))


def _periods(exprs: Sequence[Expr], dimension: Variable) -> Iterator[int]:
    """Yield the periods of the floors and mods of a dimension in expressions.

    >>> i = Variable("i", 0, 99)
    >>> list(_periods([i * 2 // 6], i))
    [3]
    """
    for expr in exprs:
        for atom, _ in expr.terms:
            if isinstance(atom, Variable):
                continue
            if isinstance(atom, Floor):
                coefficient = dict(atom.numerator.terms).get(dimension, 0)
                if coefficient:
                    yield atom.divisor // gcd(coefficient, atom.divisor)
            yield from _periods(atom.operands, dimension)
