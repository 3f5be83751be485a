"""Simplification of constraints on tile sizes by what the rest of the tree implies.

A part of a conjunction matters only where the other parts hold, and a part of a disjunction only
where they do not.  A part that holds wherever it matters is dropped from a conjunction, and one
that fails there makes it unsatisfiable; disjunctions are dual.  Constraints on one variable with a
small domain are compared as sets of sizes, the others by the intervals of equal expressions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_, or_
from typing import Final, NamedTuple

import numpy as np

from indexing.tiling.sizes.size_constraints import (
    ALWAYS,
    NEVER,
    Conjunction,
    SizeCondition,
    SizeConstraints,
    all_of,
    any_of,
)
from simplifier import Expr, Variable

MAX_SIZES: Final = 512
"""Maximum number of sizes of a variable whose constraints are compared as sets."""

MAX_STEPS: Final = 10_000
"""Maximum number of parts to simplify; the others stay as they are."""

MAX_COMPARED: Final = 64
"""Maximum number of disjuncts that are compared in pairs."""

_ROUNDS: Final = 4


class _Context(NamedTuple):
    """Where a part matters.

    Attributes:
        sizes: the sizes of each variable that matter, as bits.
        known: conditions that hold, by their expressions.
        excluded: conditions that do not hold, by their expressions.
    """

    sizes: Mapping[Variable, int]
    known: Mapping[Expr, SizeCondition]
    excluded: Mapping[Expr, tuple[SizeCondition, ...]]


def simplified_constraints(tree: SizeConstraints) -> SizeConstraints:
    """Return an equivalent tree without redundant and unsatisfiable parts.

    >>> from indexing.tiling.sizes.size_constraints import condition
    >>> from simplifier import as_expr, variable
    >>> ts_0 = variable("ts_0", 1, 6)
    >>> aligned = condition(as_expr(6) % ts_0, 0, 0) | condition(ts_0 % 6, 0, 0)
    >>> print(simplified_constraints(aligned))
    6 mod ts_0 in [0, 0]
    """
    simplification = _Simplification()
    for _ in range(_ROUNDS):
        before, tree = tree, simplification.of(tree, _Context({}, {}, {}))
        if tree == before:
            break
    return tree


class _Simplification:
    """Simplification of one tree, with its memos and its budget."""

    def __init__(self) -> None:
        self.steps = 0
        self._legal: dict[int, tuple[SizeConstraints, int | None]] = {}

    def of(self, tree: SizeConstraints, context: _Context) -> SizeConstraints:
        """Return a tree that is equivalent where it matters."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            return tree
        legal = self.legal(tree)
        if legal is not None:
            (variable,) = tree.variables
            matters = context.sizes.get(variable, _all_sizes(variable))
            if not legal & matters:
                return NEVER
            if not matters & ~legal:
                return ALWAYS
        if isinstance(tree, SizeCondition):
            return _decide_condition(tree, context)
        if not tree.parts:
            return tree
        if isinstance(tree, Conjunction):
            return all_of(self._parts(tree, context, is_conjunction=True))
        return any_of(_without_supersets(self._parts(tree, context, is_conjunction=False)))

    def _parts(
        self, tree: SizeConstraints, context: _Context, *, is_conjunction: bool
    ) -> list[SizeConstraints]:
        """Simplify each part where the others hold, or, in a disjunction, where they fail.

        A part that is dropped no longer counts as one of the others.
        """
        parts = list(tree.parts)
        siblings = _Siblings(context, is_conjunction)
        for number, part in enumerate(parts):
            siblings.add(number, part, self.legal(part))
        for number, part in enumerate(parts):
            siblings.remove(number, part)
            parts[number] = self.of(part, siblings.context(part))
            siblings.add(number, parts[number], self.legal(parts[number]))
        return parts

    def legal(self, tree: SizeConstraints) -> int | None:
        """Return the legal sizes as bits; `None` if `tree` has no single small variable."""
        if len(tree.variables) != 1 or tree.variables[0].size > MAX_SIZES:
            return None
        if id(tree) not in self._legal:
            (variable,) = tree.variables
            if isinstance(tree, SizeCondition):
                sizes = np.arange(variable.lower, variable.upper + 1, dtype=object)
                values = tree.expr.value({variable: sizes})
                bits = sum([1 << k for k, value in enumerate(values) if tree.admits(value)])
            else:
                join = and_ if isinstance(tree, Conjunction) else or_
                bits = reduce(join, [self.legal(part) or 0 for part in tree.parts])
            self._legal[id(tree)] = tree, bits  # the tree stays alive, so that its id is unique
        return self._legal[id(tree)][1]


class _Siblings:
    """The context of one part of a conjunction or disjunction, from the other parts."""

    def __init__(self, outside: _Context, is_conjunction: bool) -> None:
        self._outside, self._is_conjunction = outside, is_conjunction
        self._known, self._excluded = dict(outside.known), dict(outside.excluded)
        self._legal: dict[Variable, dict[int, int]] = {}

    def add(self, number: int, part: SizeConstraints, legal: int | None) -> None:
        """Add a part; `legal` is the set of its sizes if it has one variable."""
        if legal is not None:
            self._legal.setdefault(part.variables[0], {})[number] = legal
        if isinstance(part, SizeCondition):
            if self._is_conjunction:
                self._known[part.expr] = part
            else:
                self._excluded[part.expr] = (*self._excluded.get(part.expr, ()), part)

    def remove(self, number: int, part: SizeConstraints) -> None:
        """Remove a part that was added."""
        if len(part.variables) == 1:
            self._legal.get(part.variables[0], {}).pop(number, None)
        if isinstance(part, SizeCondition):
            if self._is_conjunction:
                _restore(self._known, self._outside.known, part.expr)
            else:
                left = tuple([c for c in self._excluded[part.expr] if c is not part])
                self._excluded[part.expr] = left

    def context(self, part: SizeConstraints) -> _Context:
        """Return where `part` matters."""
        sizes = dict(self._outside.sizes)
        for variable in part.variables:
            others = self._legal.get(variable, {}).values()
            if others:
                matter = reduce(and_, others) if self._is_conjunction else ~reduce(or_, others)
                sizes[variable] = sizes.get(variable, _all_sizes(variable)) & matter
        return _Context(sizes, self._known, self._excluded)


def _restore(
    known: dict[Expr, SizeCondition], outside: Mapping[Expr, SizeCondition], expr: Expr
) -> None:
    """Undo the assignment of a condition on `expr` in a conjunction."""
    if expr in outside:
        known[expr] = outside[expr]
    else:
        known.pop(expr, None)


def _decide_condition(condition: SizeCondition, context: _Context) -> SizeConstraints:
    """Decide a condition by others on the same expression, if they do."""
    known = context.known.get(condition.expr)
    if known is not None:
        if known.implies(condition):
            return ALWAYS
        (low, high), (lower, upper) = known.ends, condition.ends
        if max(low, lower) > min(high, upper):
            return NEVER
    excluded = context.excluded.get(condition.expr, ())
    return NEVER if any(map(condition.implies, excluded)) else condition


def _without_supersets(parts: list[SizeConstraints]) -> list[SizeConstraints]:
    """Drop disjuncts whose conjuncts include all conjuncts of another one."""
    if len(parts) > MAX_COMPARED:
        return parts
    conjuncts = [frozenset(p.parts if isinstance(p, Conjunction) else (p,)) for p in parts]
    return [
        part for k, part in enumerate(parts) if not any(other < conjuncts[k] for other in conjuncts)
    ]


def _all_sizes(variable: Variable) -> int:
    return (1 << variable.size) - 1
