"""Substitution of index variables in terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from indexing.equivalence.values.terms.terms import Formula, FormulaTable
from simplifier.atoms import Variable, variables_in
from simplifier.interval import Interval
from simplifier.linear import Expr
from simplifier.substitute import Substitution


class FormulaSubstitution:
    """Substitution of expressions for the free variables of terms; each term is rebuilt once.

    Args:
        rebuild: makes a term of the same kind and head with other arguments and expressions.
    """

    def __init__(
        self,
        table: FormulaTable,
        values: Mapping[Variable, Expr],
        rebuild: Callable[[Formula, tuple[Formula, ...], tuple[Expr, ...]], Formula],
        variable: Callable[[Formula, Interval], Expr],
    ) -> None:
        self.table, self.rebuild, self.variable = table, rebuild, variable
        self.values = dict(values)
        self._is_untouched = frozenset(values).isdisjoint
        self._rebuilt: dict[int, Formula] = {}
        self._exprs: dict[Expr, Expr] = {}

    def __call__(self, term: Formula) -> Formula:
        is_untouched = self._is_untouched
        if is_untouched(term.free):
            return term
        rebuilt = self._rebuilt
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
