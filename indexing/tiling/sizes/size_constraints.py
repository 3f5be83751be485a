"""Constraints on tile sizes: a tree of conjunctions and disjunctions of conditions.

A condition bounds an expression of the tile sizes ``ts_0, ts_1, …``, one for each dimension of the
tiled array.  The tree is never expanded to a disjunctive normal form, whose size is exponential in
the number of conjuncts.  A size above the upper bound of its variable means the whole dimension.

Source: XLA ``xla/service/gpu/model/constraint_expression.h``, for the notation.

>>> from simplifier import as_expr, variable
>>> ts_0 = variable("ts_0", 1, 48)
>>> aligned = condition(as_expr(6) % ts_0, 0, 0) | condition(ts_0 % 6, 0, 0)
>>> print(aligned)
6 mod ts_0 in [0, 0] || ts_0 mod 6 in [0, 0]
>>> [size for size in range(1, 19) if aligned.satisfied_by([size])]
[1, 2, 3, 6, 12, 18]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import gcd, inf
from typing import Final

from indexing import methods
from indexing.tiling.sizes.tile_sizes import SizeSource, size_point
from simplifier import Affine, Expr, Variable, as_expr
from simplifier.substitute import Substitution
from simplifier.sums import make
from simplifier.text import terms_and_constant


class SizeConstraints:
    """A condition on tile sizes, or a conjunction or disjunction of constraints; immutable.

    Equality is structural, and ignores the reasons and sources of conditions.  A conjunction or
    disjunction has `parts`.
    """

    parts: tuple[SizeConstraints, ...] = ()

    def __and__(self, other: SizeConstraints) -> SizeConstraints:
        return all_of((self, other))

    def __or__(self, other: SizeConstraints) -> SizeConstraints:
        return any_of([self, other])

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The variables of all conditions, once each, sorted."""
        variables = {variable for part in self.parts for variable in part.variables}
        return tuple(sorted(variables, key=lambda variable: variable.key))

    def satisfied_by(self, sizes: Sequence[int]) -> bool:
        """Return True if the constraints hold for the tile sizes ``ts_k = sizes[k]``.

        Raises:
            ValueError: a size is missing, or below the lower bound of its variable.

        >>> from simplifier import variable
        >>> condition(variable("ts_1", 1, 8) % 4, 0, 0).satisfied_by([5, 8])
        True
        """
        return holds(self, size_point(self.variables, sizes))

    def violation(self, sizes: Sequence[int]) -> methods.Violation | None:
        """Return the first condition that fails for `sizes`, and the nearest legal sizes.

        >>> from simplifier import as_expr, variable
        >>> print(condition(as_expr(6) % variable("ts_0", 1, 48), 0, 0).violation([5]))
        ts_0 = 5 does not divide 6: 6 mod ts_0 = 1; legal sizes nearby: 3 and 6
        """
        return methods.size_violation(self, sizes)

    def simplify(self) -> SizeConstraints:
        """Drop parts that the others imply, or that cannot hold together with them.

        >>> from simplifier import as_expr, variable
        >>> ts_0 = variable("ts_0", 1, 8)
        >>> print(all_of([condition(ts_0 % 4, 0, 0), condition(ts_0 % 6, 0, 0)]).simplify())
        unsatisfiable
        """
        return methods.simplified_constraints(self)

    def pretty(self) -> str:
        """Return the constraints in words.

        >>> from simplifier import as_expr, variable
        >>> ts_0 = variable("ts_0", 1, 48)
        >>> (condition(as_expr(6) % ts_0, 0, 0) | condition(ts_0 % 6, 0, 0)).pretty()
        'ts_0 divides 6, or 6 divides ts_0'
        """
        return methods.constraints_text(self)

    def bind(self, values: Mapping[Variable, Affine]) -> SizeConstraints:
        """Substitute sizes, or expressions of other sizes, for variables.

        >>> from simplifier import Variable
        >>> ts_0, ts_1 = Variable("ts_0", 1, 8), Variable("ts_1", 1, 8)
        >>> print(condition(ts_0 * ts_1 % 6, 0, 0).bind({ts_1: 2}))
        ts_0 mod 3 in [0, 0]
        """
        new = Substitution({variable: as_expr(value) for variable, value in values.items()})
        return _rebuild(self, lambda leaf: _fold_leaf(replace(leaf, expr=new(leaf.expr))), {})

    def with_source(self, instruction: str, expression: str = "") -> SizeConstraints:
        """Label the conditions without a source, and those whose source has no instruction.

        >>> from simplifier import variable
        >>> three = condition(variable("ts_0", 1, 8) % 3, 0, 0).with_source("reshape.1", "d0 / 3")
        >>> print(*three.sources)
        `reshape.1`: d0 / 3
        """

        def label(leaf: SizeCondition) -> SizeConstraints:
            sources = leaf.sources or (SizeSource("", expression),)
            named = [s if s.instruction else s._replace(instruction=instruction) for s in sources]
            return replace(leaf, sources=tuple(named))

        return _rebuild(self, label, {})


@dataclass(frozen=True)
class SizeCondition(SizeConstraints):
    """``lower <= expr <= upper``; `None` is no bound."""

    expr: Expr
    lower: int | None
    upper: int | None
    reason: str = field(default="", compare=False)
    sources: tuple[SizeSource, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        if self.upper is None:
            return f"{self.expr} >= {self.lower}"
        if self.lower is None:
            return f"{self.expr} <= {self.upper}"
        return f"{self.expr} in [{self.lower}, {self.upper}]"

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The variables of the expression, sorted."""
        return tuple(sorted(self.expr.variables(), key=lambda variable: variable.key))

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds; infinite where there is none."""
        return -inf if self.lower is None else self.lower, inf if self.upper is None else self.upper

    def between(self, lower: float, upper: float) -> SizeCondition:
        """Return the condition with other bounds."""
        low, high = (None if abs(bound) == inf else int(bound) for bound in (lower, upper))
        return replace(self, lower=low, upper=high)

    def admits(self, value: int) -> bool:
        """Return True if `value` is in the interval."""
        lower, upper = self.ends
        return lower <= value <= upper

    def implies(self, other: SizeCondition) -> bool:
        """Return True if this condition, on the same expression, implies `other`."""
        return other.ends[0] <= self.ends[0] and self.ends[1] <= other.ends[1]


@dataclass(frozen=True, eq=False)
class _Joined(SizeConstraints):
    """A conjunction or disjunction; the order of its parts does not matter to equality."""

    parts: tuple[SizeConstraints, ...]

    @cached_property
    def _identity(self) -> tuple[type[_Joined], frozenset[SizeConstraints]]:
        return type(self), frozenset(self.parts)

    @cached_property
    def _hash(self) -> int:
        return hash(self._identity)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _Joined) and self._identity == other._identity)


class Conjunction(_Joined):
    """All of `parts` hold; `ALWAYS` has none."""

    def __str__(self) -> str:
        texts = [f"({p})" if isinstance(p, Disjunction) else str(p) for p in self.parts]
        return " && ".join(texts) or "always satisfied"


class Disjunction(_Joined):
    """One of `parts` holds at least; `NEVER` has none."""

    def __str__(self) -> str:
        return " || ".join(map(str, self.parts)) or "unsatisfiable"


ALWAYS: Final = Conjunction(())
NEVER: Final = Disjunction(())


def condition(
    expr: Affine, lower: int | None, upper: int | None = None, reason: str = ""
) -> SizeConstraints:
    """Return ``lower <= expr <= upper`` as a constraint; without an upper bound if it is `None`.

    Args:
        reason: why the condition is needed, in words, for `SizeConstraints.violation`.

    >>> from simplifier import variable
    >>> ts_0 = variable("ts_0", 1, 48)
    >>> print(condition(ts_0 - 2, 1, 5)), print(condition(ts_0, 4)), print(condition(ts_0, 1))
    ts_0 in [3, 7]
    ts_0 >= 4
    always satisfied
    (None, None, None)
    """
    return _fold_leaf(SizeCondition(as_expr(expr), lower, upper, reason))


def _fold_leaf(leaf: SizeCondition) -> SizeConstraints:
    """Decide a condition by bounds of its expression, or divide by the factor of its terms."""
    low, high = leaf.expr.bounds
    lower, upper = leaf.ends
    if lower <= low and high <= upper:
        return ALWAYS
    if max(low, lower) > min(high, upper):
        return NEVER
    expr, constant, factor = _divide_factor(leaf.expr)
    if (constant, factor) == (0, 1):
        return leaf
    lower, upper = lower - constant, upper - constant
    if factor < 0:
        lower, upper, factor = -upper, -lower, -factor
    lower = lower if lower == -inf else -(-lower // factor)
    upper = upper if upper == inf else upper // factor
    return _fold_leaf(replace(leaf.between(lower, upper), expr=expr))


@lru_cache(maxsize=1 << 11)
def _divide_factor(expr: Expr) -> tuple[Expr, int, int]:
    """Return ``(e, c, factor)`` with ``expr = e * factor + c``; the text of `e` has no constant."""
    text, constant = terms_and_constant(expr)
    rest = expr - constant
    factor = gcd(rest.constant, *rest.parts.values()) * (-1 if text.startswith("-") else 1)
    parts = [(atom, coefficient // factor) for atom, coefficient in rest.terms]
    return make(parts, rest.constant // factor), constant, factor


def all_of(constraints: Iterable[SizeConstraints]) -> SizeConstraints:
    """Return the conjunction of `constraints`; `ALWAYS` for none.

    Intervals of one expression are intersected.  A disjunction is dropped if a conjunct implies one
    of its parts.

    >>> from simplifier import variable
    >>> ts_0, ts_1 = variable("ts_0", 1, 9), variable("ts_1", 1, 9)
    >>> low, high = condition(ts_0, 1, 5), condition(ts_0, 3, 7)
    >>> print(all_of([low, high, low | condition(ts_1, 1, 1)]))
    ts_0 in [3, 5]
    """
    parts: dict[SizeConstraints, None] = {}
    by_expr: dict[Expr, SizeCondition] = {}
    for part in _flat(constraints, Conjunction):
        if part == NEVER:
            return NEVER
        if isinstance(part, SizeCondition):
            other = by_expr.get(part.expr)
            if other is not None:
                lower, upper = _common(other, part)
                if lower > upper:
                    return NEVER
                part = _merge_leaves(other, part, lower, upper)
                if part != other:
                    parts = {part if p == other else p: None for p in parts}
            by_expr[part.expr] = part
        parts.setdefault(part)

    def is_implied(part: SizeConstraints) -> bool:
        if isinstance(part, SizeCondition):
            return part.expr in by_expr and by_expr[part.expr].implies(part)
        return part in parts

    return _join_parts(Conjunction, parts, Disjunction, is_implied)


def any_of(constraints: Iterable[SizeConstraints]) -> SizeConstraints:
    """Return the disjunction of `constraints`; `NEVER` for none.

    Intervals of one expression are united if they touch.  A conjunction is dropped if one of its
    parts implies a disjunct.

    >>> from simplifier import variable
    >>> ts_0, ts_1 = variable("ts_0", 1, 9), variable("ts_1", 1, 9)
    >>> low, high = condition(ts_0, 2, 5), condition(ts_0, 6, 7)
    >>> print(any_of([low, high, low & condition(ts_1, 1, 1)]))
    ts_0 in [2, 7]
    """
    parts: dict[SizeConstraints, None] = {}
    by_expr: dict[Expr, list[SizeCondition]] = {}
    for part in _flat(constraints, Disjunction):
        if part == ALWAYS:
            return ALWAYS
        if isinstance(part, SizeCondition):
            for other in by_expr.setdefault(part.expr, []).copy():
                lower, upper = _common(other, part)
                if lower <= upper + 1:  # overlapping or adjacent
                    ends = (*other.ends, *part.ends)
                    part = _merge_leaves(other, part, min(ends), max(ends))
                    by_expr[part.expr].remove(other)
                    parts.pop(other)
            by_expr[part.expr].append(part)
            if _fold_leaf(part) == ALWAYS:
                return ALWAYS
        parts.setdefault(part)

    def is_implying(part: SizeConstraints) -> bool:
        if not isinstance(part, SizeCondition):
            return part in parts
        return any(part.implies(other) for other in by_expr.get(part.expr, ()))

    return _join_parts(Disjunction, parts, Conjunction, is_implying)


def _flat(
    constraints: Iterable[SizeConstraints], kind: type[SizeConstraints]
) -> Iterator[SizeConstraints]:
    """Yield the constraints, and the parts instead of those of `kind`, which are flat."""
    for part in constraints:
        if isinstance(part, kind):
            yield from part.parts
        else:
            yield part


def _common(a: SizeCondition, b: SizeCondition) -> tuple[float, float]:
    """Return the intersection of two intervals; for disjoint ones the upper bound is smaller."""
    return max(a.ends[0], b.ends[0]), min(a.ends[1], b.ends[1])


def _merge_leaves(a: SizeCondition, b: SizeCondition, lower: float, upper: float) -> SizeCondition:
    """Return a condition with the reasons and sources of those that it depends on."""
    for only in (a, b):
        if only.ends == (lower, upper):
            return only
    reasons = "; ".join(dict.fromkeys(filter(None, (a.reason, b.reason))))
    sources = tuple(dict.fromkeys([*a.sources, *b.sources]))
    return replace(a.between(lower, upper), reason=reasons, sources=sources)


def _join_parts(
    kind: type[_Joined],
    parts: Iterable[SizeConstraints],
    other: type[_Joined],
    is_absorbing: Callable[[SizeConstraints], bool],
) -> SizeConstraints:
    """Join `parts` without those of the `other` kind that one of their own parts absorbs."""
    kept = tuple(
        [p for p in parts if not (isinstance(p, other) and any(map(is_absorbing, p.parts)))]
    )
    return kept[0] if len(kept) == 1 else kind(kept)


def holds(
    tree: SizeConstraints,
    point: Mapping[Variable, int],
    decided: dict[int, bool] | None = None,
) -> bool:
    """Return True if `tree` holds at `point`; `decided` memoises shared subtrees.

    >>> from simplifier import Variable
    >>> ts_0 = Variable("ts_0", 1, 9)
    >>> holds(condition(ts_0 % 4, 0, 0), {ts_0: 8})
    True
    """
    if isinstance(tree, SizeCondition):
        return tree.admits(tree.expr.value(point))
    decided = {} if decided is None else decided
    if id(tree) not in decided:
        verdicts = (holds(part, point, decided) for part in tree.parts)
        decided[id(tree)] = all(verdicts) if isinstance(tree, Conjunction) else any(verdicts)
    return decided[id(tree)]


def _rebuild(
    tree: SizeConstraints,
    change: Callable[[SizeCondition], SizeConstraints],
    known: dict[int, SizeConstraints],
) -> SizeConstraints:
    """Change every condition; `known` memoises shared subtrees."""
    if isinstance(tree, SizeCondition):
        return change(tree)
    if id(tree) not in known:
        join = all_of if isinstance(tree, Conjunction) else any_of
        known[id(tree)] = join([_rebuild(part, change, known) for part in tree.parts])
    return known[id(tree)]
