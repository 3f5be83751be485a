"""The tally of a map in closed form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain, combinations
from math import prod
from typing import Final

from indexing.maps.counts.digits import merged_forms, split_forms
from indexing.maps.counts.forms import Form, factors, floors, simplest
from indexing.maps.counts.linear import linear_tally
from indexing.maps.counts.sums import few_sums, tally_of_sums
from indexing.maps.counts.tally import EMPTY, Tally, disjoint, independent, uniform
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.shared import is_deep

MAX_ATOMS: Final = 1 << 8
"""Maximum number of atoms in the texts of all forms that are tried for one tally."""
MAX_DEPTH: Final = 12
"""Maximum number of successive changes of variables."""


def closed_tally(
    variables: Iterable[Variable],
    results: Iterable[Expr],
    constraints: Iterable[Constraint] = (),
) -> Tally | None:
    """Return the tally of ``variables -> results`` on a domain; `None` without a closed form.

    The tallies of the last forms are memoised.

    >>> d0, d1 = Variable("d0", 0, 960), Variable("d1", 0, 999)
    >>> line = d0 * 1000 + d1
    >>> closed_tally((d0, d1), (line // 1550, line % 1550)).histogram
    {1: 961000}
    """
    return _memoised_tally(Form(tuple(variables), tuple(results), tuple(constraints)))


@lru_cache(maxsize=1 << 11)
def _memoised_tally(form: Form) -> Tally | None:
    exprs = form.exprs
    if any(not expr.is_affine or is_deep(expr) for expr in exprs):
        return None
    return _Search(form).tally


def forget() -> None:
    """Forget the memoised tallies: for tests and benchmarks."""
    _memoised_tally.cache_clear()


class _Search:
    """The search for changes of variables that make results independent.

    Attributes:
        tally: the tally, or `None`.
    """

    def __init__(self, form: Form) -> None:
        self._atoms = self._depth = 0
        self.tally = self._tally(form, tally_of_sums)

    def _tally(self, form: Form, remaining: Callable[[Form], Tally | None]) -> Tally | None:
        """The product of the tallies of factors; `remaining` counts those without a formula."""
        self._atoms += 1 + sum([expr.weight for expr in form.exprs])
        if self._atoms > MAX_ATOMS:
            return None
        simple = simplest(form)
        if simple is None:
            return EMPTY
        tallies: list[Tally] = []
        for part in sorted(factors(simple), key=lambda part: len(part.exprs)):
            own = self._formula(part) or remaining(part)
            if own is None or not own.total:
                return own
            tallies.append(own)
        return independent(tallies)

    def _formula(self, form: Form) -> Tally | None:
        sizes = [v.size for v in form.variables]
        if floors(form):
            return self._changed_tally(form)
        if form.constraints:
            return None
        if not form.results:
            return uniform(prod(sizes))
        if len(sizes) == 1:
            return uniform(1, sizes[0])
        return linear_tally(form)

    def _changed_tally(self, form: Form) -> Tally | None:
        """The tally after a change of variables; `None` if none of them leads to one."""
        own: Tally | None = None
        attempts: Iterable[Sequence[Form]] = chain(
            split_forms(form),
            ([merged] for merged in merged_forms(form)),
            split_forms(form, is_alone=False),
        )
        self._depth += 1
        if self._depth <= MAX_DEPTH:
            for parts in attempts:
                own = self._tally_of_parts(parts)
                if own is not None or self._atoms > MAX_ATOMS:
                    break
        self._depth -= 1
        return own

    def _tally_of_parts(self, parts: Sequence[Form]) -> Tally | None:
        """The tally of a union of disjoint domains."""
        if parts[0].results and not all(_are_apart(a, b) for a, b in combinations(parts, 2)):
            return None
        tallies: list[Tally] = []
        for part in parts:
            own = self._tally(part, few_sums)
            if own is None:
                return None
            tallies.append(own)
        if not parts[0].results:
            return uniform(sum([own.total for own in tallies]))
        return disjoint(tallies)


def _are_apart(first: Form, second: Form) -> bool:
    """True if intervals show that two forms have no result in common."""
    return any(
        a.bounds[1] < b.bounds[0] or b.bounds[1] < a.bounds[0]
        for a, b in zip(first.results, second.results, strict=True)
    )
