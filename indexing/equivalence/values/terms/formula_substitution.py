"""Substitution of index variables in terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from indexing.equivalence.values.terms.terms import Formula, FormulaTable
from simplifier.atoms import Variable, variables_in
from simplifier.interval import Interval
from simplifier.linear import Expr
from simplifier.substitute import Substitution


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """Terms and expressions that substitutions of the same values share.

    Attributes:
        terms: the terms that were rebuilt without a use of a law to record, by number.
        exprs: the values of expressions.
    """

    terms: dict[int, Formula] = field(default_factory=dict)
    exprs: dict[Expr, Expr] = field(default_factory=dict)


class FormulaSubstitution:
    """Substitution of expressions for the free variables of terms; each term is rebuilt once.

    Args:
        rebuild: makes a term of the same kind and head with other arguments and expressions.
        uses: the uses of laws, which `rebuild` records.
        shared: what other substitutions of the same values rebuilt.  Terms whose laws are recorded
            are not shared: each substitution records them again.
    """

    def __init__(
        self,
        table: FormulaTable,
        values: Mapping[Variable, Expr],
        rebuild: Callable[[Formula, tuple[Formula, ...], tuple[Expr, ...]], Formula],
        variable: Callable[[Formula, Interval], Expr],
        uses: Sequence[str],
        shared: Rebuilt,
    ) -> None:
        self.table, self.rebuild, self.variable = table, rebuild, variable
        self.values, self._uses, self._shared = dict(values), uses, shared.terms
        self._is_untouched = frozenset(values).isdisjoint
        self._rebuilt, self._exprs = shared.terms, shared.exprs

    def __call__(self, term: Formula) -> Formula:
        if self._is_untouched(term.free):
            return term
        known = self._rebuilt.get(term.number)
        if known is not None:
            return known
        start, added = len(self._uses), list[int]()
        try:
            return self._rebuild_inside(term, added)
        finally:
            if len(self._uses) != start:
                self._keep(added)

    def _keep(self, numbers: Iterable[int]) -> None:
        """Share these terms no longer."""
        if self._rebuilt is self._shared:
            self._rebuilt = self._shared.copy()
        for number in numbers:
            self._shared.pop(number, None)

    def _rebuild_inside(self, term: Formula, added: list[int]) -> Formula:
        """Rebuild a term, operands first.

        Args:
            added: the numbers of the terms that are rebuilt, which are appended.
        """
        is_untouched, rebuilt = self._is_untouched, self._rebuilt
        opened: set[int] = set()  # terms whose children are rebuilt before they are met again
        pending = [term]
        while pending:
            top = pending[-1]
            if top.number in rebuilt:
                pending.pop()
                continue
            if top.children and top.number not in opened:
                opened.add(top.number)
                waiting = [t for t in top.children if t.number not in rebuilt]
                pending += [t for t in waiting if not is_untouched(t.free)]
                if pending[-1] is not top:
                    continue
            pending.pop()
            parts = top.arguments
            arguments = tuple([rebuilt.get(t.number, t) for t in parts]) if parts else ()
            index = tuple([self._known_expr(e) for e in top.index]) if top.index else ()
            rebuilt[top.number] = self.rebuild(top, arguments, index)
            added.append(top.number)
        return rebuilt[term.number]

    def _known_expr(self, expr: Expr) -> Expr:
        known = self._exprs.get(expr)
        if known is None:
            known = self._exprs[expr] = self.expr(expr)
        return known

    def expr(self, expr: Expr) -> Expr:
        """Return an expression with the values of its variables; their terms are rebuilt."""
        runtime = [v for v in variables_in([expr]) if v in self.table.runtime]
        if not runtime:
            return Substitution(self.values)(expr)
        values = dict(self.values)
        for v in runtime:
            inner = self.table.runtime[v]
            if not self._is_untouched(inner.free):
                values[v] = self.variable(self(inner), v.bounds)
        return Substitution(values)(expr)
