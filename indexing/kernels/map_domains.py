"""`MapDomains`: results of maps that are also computed where the domain of the map does not hold.

A condition such as ``(d0 - 1) mod 2 == 0 and d0 >= 1`` has the result of a map over ``d0 >= 1``.
The text promises nothing about the result elsewhere, and the condition is false there whatever it
is.
"""

from __future__ import annotations

from dataclasses import dataclass

from indexing.kernels.domains import Guards, NotHandled, implies
from indexing.kernels.ir import MlirModule, MlirOp, MlirValue
from simplifier.atoms import Variable
from simplifier.linear import Expr
from simplifier.substitute import Substitution


@dataclass(frozen=True, slots=True)
class _Outside:
    """A result of a map, which is anything where the domain of the map does not hold."""

    expr: Expr
    domain: Guards
    op: MlirOp


class MapDomains:
    """The results of maps whose domains are not proved where the maps are applied."""

    def __init__(self, module: MlirModule, width: int) -> None:
        self.module, self.width = module, width
        self._outside: dict[Variable, _Outside] = {}
        self._users: dict[MlirValue, set[str]] = {}

    def outside(self, expr: Expr, domain: Guards, op: MlirOp) -> Expr:
        """Return a result of a map that is anything outside of a domain."""
        limit = 1 << self.width - 1
        variable = Variable(f"outside{len(self._outside)}", -limit, limit - 1)
        self._outside[variable] = _Outside(expr, domain, op)
        return variable.as_expr()

    def only_compared(self, op: MlirOp) -> bool:
        """Return True if the results of an op are operands of comparisons only."""
        if not self._users:
            for user in self.module.walk():
                for value in user.operands:
                    self._users.setdefault(value, set()).add(user.name)
        return all(self._users.get(v) == {"arith.cmpi"} for v in op.results)

    def within(self, guards: Guards, outer: Guards) -> Guards:
        """Return a conjunction without results of maps whose domains are other parts of it.

        Args:
            outer: conditions that hold where the conjunction is evaluated.
        """
        for variable in self._variables(guards):
            known = self._outside[variable]
            swap = Substitution({variable: known.expr})
            rest = [c for c in guards if variable not in c.expr.variables()]
            if all(implies((*outer, *rest), c) for c in known.domain):
                guards = tuple([c.with_expr(swap(c.expr)) for c in guards])
        return guards

    def require(self, guards: Guards) -> None:
        """Check that conditions are on no result that may be anything.

        Raises:
            NotHandled: one of them is.
        """
        for variable in self._variables(guards):
            line = self._outside[variable].op.span.line
            raise NotHandled(f"the domain of `xla.apply_indexing`, line {line}, may not hold")

    def _variables(self, guards: Guards) -> set[Variable]:
        if not self._outside:
            return set()
        return {v for c in guards for v in c.expr.variables()} & self._outside.keys()
