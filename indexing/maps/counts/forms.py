"""`Form`: results and constraints over variables, in the form in which they are counted.

Each change keeps the tally: results change by an injective function, or the domain stays the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd
from typing import NamedTuple

from indexing.maps.independence import connected_variables
from simplifier.atoms import Floor, Variable
from simplifier.constraints import Constraint, normalise
from simplifier.linear import Expr, add_multiple
from simplifier.substitute import Substitution


class Form(NamedTuple):
    """``variables -> results`` on the points that satisfy `constraints`."""

    variables: tuple[Variable, ...]
    results: tuple[Expr, ...]
    constraints: tuple[Constraint, ...]

    @property
    def exprs(self) -> list[Expr]:
        """Results, and the expressions of constraints."""
        return [*self.results, *[c.expr for c in self.constraints]]

    def with_values(self, values: Mapping[Variable, Expr], new: Iterable[Variable]) -> Form:
        """Return the form with values for variables, which the variables `new` replace."""
        swap = Substitution(values)
        return Form(
            (*[v for v in self.variables if v not in values], *new),
            tuple([swap(result) for result in self.results]),
            tuple([c.with_expr(swap(c.expr)) for c in self.constraints]),
        )


def factors(form: Form) -> list[Form]:
    """Return the parts of a form that share no variables; constants are dropped.

    >>> d0, d1 = Variable("d0", 0, 3), Variable("d1", 0, 4)
    >>> [len(part.results) for part in factors(Form((d0, d1), (d1 * 2, d0 // 3, d1 // 3), ()))]
    [1, 2]
    """
    used = [set(expr.variables()) for expr in form.exprs]
    parts: list[Form] = []
    for group in connected_variables(form.variables, used):
        variables = tuple([v for v in form.variables if v in group])
        own = [bool(u) and u <= group for u in used]
        count = len(form.results)
        results = [r for r, is_own in zip(form.results, own, strict=False) if is_own]
        constraints = [c for c, is_own in zip(form.constraints, own[count:], strict=True) if is_own]
        parts.append(Form(variables, tuple(results), tuple(constraints)))
    return parts


def simplest(form: Form) -> Form | None:
    """Return a form with the same tally and simpler expressions; `None` if it has no points.

    >>> d0, d1 = Variable("d0", 0, 3), Variable("d1", 0, 4)
    >>> [str(r) for r in simplest(Form((d0, d1), (d0 * 15 + d1 * 3 + 1,), ())).results]
    ['d1', 'd0']
    """
    while True:
        inside = _within_bounds(form)
        if inside is None:
            return None
        results = simplest_results(inside.results)
        if results == form.results and inside == form:
            return form
        form = inside._replace(results=results)


# ---------------------------------------------------------------- constraints


def _within_bounds(form: Form) -> Form | None:
    """The form whose constraints on single variables are bounds of them; `None` if it is empty."""
    if any(v.is_empty for v in form.variables):
        return None
    constraints: list[Constraint] = []
    for constraint in form.constraints:
        simple = normalise(constraint)
        if simple is None:
            continue
        if simple.is_false:
            return None
        narrower = _narrower(simple)
        if narrower is not None:
            old, new = narrower
            narrow = form.with_values({old: new.as_expr()}, ())
            variables = [new if v is old else v for v in form.variables]
            return _within_bounds(narrow._replace(variables=tuple(variables)))
        constraints.append(simple)
    return form._replace(constraints=tuple(dict.fromkeys(constraints)))


def _narrower(constraint: Constraint) -> tuple[Variable, Variable] | None:
    """A variable and the same one with the bounds that a constraint on it alone implies."""
    parts = constraint.expr.parts
    if len(parts) != 1:
        return None
    ((atom, factor),) = parts.items()
    if not isinstance(atom, Variable):
        return None
    low, high = [bound - constraint.expr.constant for bound in constraint.bounds]
    if factor < 0:
        low, high, factor = -high, -low, -factor
    lower, upper = max(atom.lower, -(-low // factor)), min(atom.upper, high // factor)
    if (lower, upper) == atom.bounds:
        return None
    return atom, Variable(atom.name, lower, upper)


# ---------------------------------------------------------------- results


def simplest_results(results: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return results that determine the given ones and are determined by them.

    >>> d0, d1 = Variable("d0", 0, 3), Variable("d1", 0, 4)
    >>> [str(r) for r in simplest_results((d0 * 15 + d1 * 3 + 1, d0 - d1, d1 * 2 + 7))]
    ['d1', 'd0']
    """
    while True:
        simple = _without_variables(_separate_results(results))
        if simple == results:
            return results
        results = simple


def _separate_results(results: Iterable[Expr]) -> tuple[Expr, ...]:
    """The results without constants and common factors, and with sums of digits as results.

    ``M·e + f`` determines e and f if the values of f are within an interval shorter than M.
    """
    separate: dict[Expr, None] = {}
    waiting = list(results)[::-1]
    while waiting:
        result = waiting.pop()
        if result.is_constant:
            continue
        result = _primitive(result)
        halves = _halves(result)
        if halves is None:
            separate[result] = None
        else:
            waiting += halves[::-1]
    return tuple(separate)


def _primitive(result: Expr) -> Expr:
    """The result divided by the common factor of its terms, without a constant."""
    factor = gcd(*result.parts.values())
    if next(iter(result.parts.values())) < 0:
        factor = -factor
    if factor == 1 and not result.constant:
        return result
    return Expr({atom: c // factor for atom, c in result.parts.items()}, 0)


def _halves(result: Expr) -> tuple[Expr, Expr] | None:
    """``(f, e)`` if the result is ``M·e + f`` with values of f in an interval shorter than M."""
    if len(result.parts) < 2:
        return None
    for modulus in sorted({abs(c) for c in result.parts.values()})[::-1]:
        high = {atom: c // modulus for atom, c in result.parts.items() if not c % modulus}
        low = Expr({atom: c for atom, c in result.parts.items() if c % modulus}, 0)
        if low.parts and low.bounds[1] - low.bounds[0] < modulus:
            return low, Expr(high, 0)
    return None


def _without_variables(results: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The results, of which those that are variables do not occur in sums of other results."""
    known = {v for r in results if (v := r.as_variable) is not None}
    if not known:
        return results
    rest: list[Expr] = []
    for result in results:
        if result.as_variable is None:
            result = Expr({a: c for a, c in result.parts.items() if not _is_known(a, known)}, 0)
        rest.append(result)
    return tuple(dict.fromkeys([result for result in rest if result.parts]))


def _is_known(atom: object, known: set[Variable]) -> bool:
    """True if the values of some variables determine an atom."""
    if isinstance(atom, Variable):
        return atom in known
    return isinstance(atom, Floor) and known.issuperset(atom.numerator.variables())


# ---------------------------------------------------------------- inspection


def floors(form: Form) -> list[Floor]:
    """Return the floors whose numerators are sums of variables, each once."""
    innermost: dict[Floor, None] = {}
    waiting = form.exprs
    while waiting:
        for atom in waiting.pop().parts:
            if isinstance(atom, Floor):
                if atom.numerator.divides:
                    waiting.append(atom.numerator)
                else:
                    innermost[atom] = None
    return list(innermost)


def constant_difference(a: Expr, b: Expr) -> int | None:
    """Return the constant ``a - b``; `None` if it is not a constant."""
    distance = add_multiple(a, b, -1)
    return distance.constant if distance.is_constant else None
