"""Closed array terms in a canonical form: the same fold of another shape is the same term.

The free variables of a body are its dimensions.  Unused dimensions are dropped, dimensions that
occur only as ``i * n + j`` are merged, dimensions of which digits ``i floordiv n, i mod n`` occur
are split, range variables are counted such that their first factor is positive, and the variables
are renamed in the order of their first occurrence.  Transposed and
reshaped dots and reductions therefore have one term, which is read at other indices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, TypeAlias

from indexing.equivalence.values.terms.formula_substitution import FormulaSubstitution
from indexing.equivalence.values.terms.terms import Formula, FormulaTable
from simplifier.atoms import Floor, Variable
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution

Rewrite: TypeAlias = Callable[[Mapping[Variable, Expr]], FormulaSubstitution]

MAX_CHANGES: Final = 32
"""Limit on the dimensions that are merged or split."""


@dataclass(frozen=True, slots=True)
class ClosedBody:
    """A body over canonical variables.

    Attributes:
        dims: the canonical dimensions ``d0, …``.
        ranges: the canonical range variables ``s0, …``.
        terms: the formulas of the body.
        exprs: the expressions of the body.
        index: the value of each canonical dimension, over the variables of the given body.
    """

    dims: tuple[Variable, ...]
    ranges: tuple[Variable, ...]
    terms: tuple[Formula, ...]
    exprs: tuple[Expr, ...]
    index: tuple[Expr, ...]


@dataclass(frozen=True)
class OpenBody:
    """Formulas and expressions over variables, of which `ranges` are bound."""

    table: FormulaTable
    terms: tuple[Formula, ...]
    exprs: tuple[Expr, ...]
    ranges: tuple[Variable, ...]

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The free variables in the order of their first occurrence."""
        ordered: dict[Variable, None] = {}
        for expr in self.all_exprs:
            ordered.update(dict.fromkeys(self.table.first_variables(expr)))
        return tuple([v for v in ordered if v not in self.table.runtime])

    @cached_property
    def all_exprs(self) -> tuple[Expr, ...]:
        """The expressions of all subterms, each once, in an order that does not depend on names."""
        inside = [expr for term in self.all_terms() for expr in term.index]
        return tuple(dict.fromkeys([*inside, *self.exprs]))

    def all_terms(self) -> Iterator[Formula]:
        """Yield the subterms with free variables, in an order that does not depend on names."""
        visited: set[int] = set()
        pending = [*self.terms, *self._runtime(self.exprs)][::-1]
        while pending:
            term = pending.pop()
            if term.number in visited or not term.free:
                continue
            visited.add(term.number)
            yield term
            has_runtime = len(term.children) > len(term.arguments)
            runtime = self._runtime(term.index) if has_runtime else ()
            pending += [*runtime, *term.arguments][::-1]

    def _runtime(self, exprs: Sequence[Expr]) -> list[Formula]:
        """Return the terms of the runtime variables in expressions, in order of occurrence."""
        ordered = [v for expr in exprs for v in self.table.first_variables(expr)]
        return [self.table.runtime[v] for v in ordered if v in self.table.runtime]

    @cached_property
    def linear_forms(self) -> frozenset[Expr]:
        """The sums in which variables occur: expressions, and operands of their atoms."""
        forms: set[Expr] = set()
        pending = list(self.all_exprs)
        while pending:
            expr = pending.pop()
            if expr not in forms:
                forms.add(expr)
                pending += [e for atom in expr.parts for e in getattr(atom, "operands", ())]
        return frozenset(forms)

    def rewrite_body(self, rewrite: Rewrite, values: Mapping[Variable, Expr],
                  ranges: Sequence[Variable]) -> OpenBody:  # fmt: skip
        """Return the body with expressions for variables."""
        swap = rewrite(values)
        terms, exprs = tuple(map(swap, self.terms)), tuple(map(swap.expr, self.exprs))
        return OpenBody(self.table, terms, exprs, tuple(ranges))


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of variables: `values` of the old ones, and the new ones over the old ones."""

    values: dict[Variable, Expr]
    parts: dict[Variable, Expr]


def close_body(
    table: FormulaTable,
    rewrite: Rewrite,
    terms: Sequence[Formula],
    exprs: Sequence[Expr] = (),
    ranges: Sequence[Variable] = (),
    *,
    keeps_ranges: bool = False,
) -> ClosedBody:
    """Close a body over its free variables.

    Args:
        rewrite: returns the substitution of expressions for variables in terms.
        terms: the formulas of the body.
        exprs: further expressions of the body, such as guards.
        ranges: the bound variables of the body; all other free variables are dimensions.
        keeps_ranges: the order of the range variables matters, so they are kept.
    """
    body = OpenBody(table, tuple(terms), tuple(exprs), tuple(ranges))
    body, index = _change_variables(body, rewrite, keeps_ranges)
    if not keeps_ranges:
        body = _reverse_ranges(body, rewrite)
    order = body.variables
    outer = [v for v in order if v not in body.ranges]
    inner = [] if keeps_ranges else [v for v in order if v in body.ranges]
    inner += [v for v in body.ranges if v not in inner]
    dims = [Variable(f"d{k}", v.lower, v.upper) for k, v in enumerate(outer)]
    bound = [Variable(f"s{k}", v.lower, v.upper) for k, v in enumerate(inner)]
    news = [v.as_expr() for v in (*dims, *bound)]
    body = body.rewrite_body(rewrite, dict(zip((*outer, *inner), news, strict=True)), bound)
    assert set(body.variables) <= {*dims, *bound}, "a closed body has no other variables"
    at_dims = tuple([index[v] for v in outer])
    return ClosedBody(tuple(dims), tuple(bound), body.terms, body.exprs, at_dims)


def unused_name(name: str, variables: Iterable[Variable]) -> str:
    """Return a name that none of the variables has, with the same first letter.

    >>> unused_name("s0", [Variable("s0", 0, 3)])
    "s0'"
    """
    names = {v.name for v in variables}
    while name in names:
        name += "'"
    return name


def _change_variables(
    body: OpenBody, rewrite: Rewrite, keeps_ranges: bool
) -> tuple[OpenBody, dict[Variable, Expr]]:
    """Merge and split the variables of a body; also return the values of its dimensions."""
    index = {v: v.as_expr() for v in body.variables if v not in body.ranges}
    for count in range(MAX_CHANGES):
        change = _merge_variables(body, keeps_ranges, count) or _split_variable(
            body, keeps_ranges, count
        )
        if change is None:
            break
        bound = [v for v in body.ranges if v not in change.values]
        if len(bound) == len(body.ranges):
            at = Substitution(index)
            kept = {v: e for v, e in index.items() if v not in change.values}
            index = kept | {new: at(expr) for new, expr in change.parts.items()}
        else:
            bound += change.parts
        body = body.rewrite_body(rewrite, change.values, bound)
    return body, index


def _reverse_ranges(body: OpenBody, rewrite: Rewrite) -> OpenBody:
    """Count range variables downwards that have a negative factor where they occur first."""
    pending = {v for v in body.ranges if not v.lower and v.upper}
    values = {}
    for expr in body.all_exprs:
        for v in pending.intersection(expr.parts):
            if isinstance(v, Variable) and expr.parts[v] < 0:
                values[v] = v.upper - v.as_expr()
        pending.difference_update(expr.parts)
        if not pending:
            break
    return body.rewrite_body(rewrite, values, body.ranges) if values else body


def _merge_variables(body: OpenBody, keeps_ranges: bool, count: int) -> _Change | None:
    """Return the change to ``z = x * size(y) + y`` for variables that occur only so, if any."""
    forms = [expr for expr in body.linear_forms if expr.parts]
    variables = body.variables
    for y in variables:
        for x in variables:
            if x is y or (x in body.ranges) != (y in body.ranges):
                continue
            if x in body.ranges and keeps_ranges:
                continue
            size = y.upper + 1
            if y.lower or x.lower or size < 2:
                continue
            if all(f.parts.get(x, 0) == f.parts.get(y, 0) * size for f in forms):
                name = unused_name(f"{y.name[:1]}_{count}", variables)
                z = Variable(name, 0, (x.upper + 1) * size - 1)
                values = {x: z.as_expr() // size, y: z.as_expr() % size}
                return _Change(values, {z: x.as_expr() * size + y.as_expr()})
    return None


def _split_variable(body: OpenBody, keeps_ranges: bool, count: int) -> _Change | None:
    """Return the change to digits of a variable of which digits occur, if any."""
    divisors, variables = _divisors(body), [*body.variables, *body.ranges]
    for v in body.variables:
        if v not in divisors or v.lower or (keeps_ranges and v in body.ranges):
            continue
        chain = [1, *sorted(divisors[v]), v.upper + 1]
        if any(b % a for a, b in pairwise(chain)):
            continue
        value, parts = as_expr(0), {}
        for k, (low, high) in enumerate(pairwise(chain)):
            if high > low:
                name = unused_name(f"{v.name[:1]}_{count}_{k}", variables)
                digit = Variable(name, 0, high // low - 1)
                value = value + digit.as_expr() * low
                parts[digit] = v.as_expr() // low % (high // low)
        return _Change({v: value}, parts)
    return None


def _divisors(body: OpenBody) -> dict[Variable, set[int]]:
    """Return the divisors in ``floor(v / divisor)`` of each variable."""
    divisors: dict[Variable, set[int]] = {}
    for form in body.linear_forms:
        for atom in form.parts:
            if not isinstance(atom, Floor) or atom.numerator.constant:
                continue
            if len(atom.numerator.parts) == 1:
                ((inner, factor),) = atom.numerator.parts.items()
                if factor == 1 and isinstance(inner, Variable):
                    divisors.setdefault(inner, set()).add(atom.divisor)
    return divisors
