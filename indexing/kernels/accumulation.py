"""Values that loops accumulate: an initial value, combined with others in some order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from indexing.equivalence.values.folds.fold_ranges import Fold
from indexing.equivalence.values.folds.folds import fold_formula
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.terms.terms import Formula
from indexing.kernels.domains import Guards, NotHandled
from simplifier.atoms import Variable
from simplifier.constraints import Constraint

_COMBINING: Final = frozenset(["add", "multiply", "maximum", "minimum", "and", "or"])


def combined_symbols(algebra: FormulaAlgebra, kind: str) -> tuple[Formula, Formula]:
    """Return two unknown values of a type, to which a combiner is applied."""
    table = algebra.table
    arrays = [table.array("symbol", ("combined", k, ()), kind, ()) for k in (0, 1)]
    return table.read(arrays[0], ()), table.read(arrays[1], ())


def combining_opcode(term: Formula, symbols: Sequence[Formula]) -> str | None:
    """Return the opcode that combines two values in any order, if a term is that of the symbols."""
    if term.kind != "apply" or set(term.arguments) != set(symbols):
        return None
    opcode = {"sum": "add", "product": "multiply"}.get(term.head[0], term.head[0])
    return str(opcode) if opcode in _COMBINING else None


@dataclass(frozen=True, slots=True)
class AccumulatedPart:
    """A value that is combined once for each point of ranges at which the guards hold."""

    value: Formula
    ranges: tuple[Variable, ...] = ()
    guards: Guards = ()

    def solved(self, algebra: FormulaAlgebra) -> AccumulatedPart:
        """Return the part without ranges of which a guard leaves one value."""
        for guard in self.guards:
            factors = guard.expr.parts
            for v in self.ranges:
                if guard.lower == guard.upper and abs(factors.get(v, 0)) == 1:
                    value = v.as_expr() - (guard.expr - guard.lower) * factors[v]
                    if v in value.variables():
                        continue
                    swap = algebra.rewriting({v: value})
                    rest = [c.with_expr(swap.expr(c.expr)) for c in self.guards if c is not guard]
                    return AccumulatedPart(
                        swap(self.value), tuple([r for r in self.ranges if r is not v]),
                        (*rest, Constraint(value, v.lower, v.upper)),
                    ).solved(algebra)  # fmt: skip
        return self

    def over(self, ranges: Sequence[Variable], guards: Guards) -> AccumulatedPart:
        """Return the part within loops over further ranges."""
        together = tuple(dict.fromkeys((*guards, *self.guards)))
        return replace(self, ranges=(*ranges, *self.ranges), guards=together)


@dataclass(frozen=True, slots=True)
class Accumulated:
    """``init op part op part …``.

    Attributes:
        opcode: HLO's opcode of the combiner.
    """

    opcode: str
    init: Formula
    parts: tuple[AccumulatedPart, ...] = ()

    @staticmethod
    def start(first: Accumulated | Formula, opcode: str) -> Accumulated:
        """Return what is accumulated so far, to combine it with more."""
        if isinstance(first, Formula):
            return Accumulated(opcode, first)
        if first.opcode != opcode:
            raise NotHandled(f"a loop combines values by `{first.opcode}` and `{opcode}`")
        return first

    def with_part(self, *parts: AccumulatedPart) -> Accumulated:
        """Return this combined with further parts."""
        return replace(self, parts=(*self.parts, *parts))

    def formula(self, algebra: FormulaAlgebra) -> Formula:
        """Return the value as a formula."""
        total = self.init
        for part in [each.solved(algebra) for each in self.parts]:
            if part.value.type != total.type:
                raise NotHandled(f"{part.value.type} is combined with {total.type}")
            fold = Fold(
                self.opcode, (), 0, total.type, (total,), (part.value,), part.ranges, part.guards
            )
            if part.ranges or part.guards:
                total = fold_formula(algebra, fold)
            else:
                total = algebra.apply(self.opcode, (), total.type, [total, part.value])
        return total
