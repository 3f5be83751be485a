"""Maps whose variables are replaced by expressions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from indexing.maps.indexing_map import IndexingMap
from simplifier.atoms import Variable
from simplifier.linear import Expr
from simplifier.substitute import Substitution
from simplifier.zero_divisor import ZeroDivisorError


def with_replaced_variables(
    m: IndexingMap,
    values: Mapping[Variable, Expr],
    replacements: Mapping[Variable, Variable | None],
) -> IndexingMap:
    """Return the map with values for variables, which are dropped or replaced by other variables.

    Args:
        values: the expressions of the new variables that replace the old ones.
        replacements: the new variable of an old one, or `None` if it is dropped.

    >>> m = IndexingMap.identity((8, 5))
    >>> (row, column), half = m.dims, Variable("h", 0, 3)
    >>> values = {row: half * 2, column: half.expr}
    >>> print(with_replaced_variables(m, values, {row: half, column: None}))
    (h) -> (h * 2, h), domain: h in [0, 3]
    """
    results, constraints = m.substituted(dict(values))
    swap = Substitution(values)

    def keep_variables(variables: Iterable[Variable]) -> tuple[Variable, ...]:
        new = [replacements.get(v, v) for v in variables]
        return tuple([v for v in new if v is not None])

    try:
        runtime = [
            rt.substituted(swap, new)
            for rt in m.runtime
            if (new := replacements.get(rt.variable, rt.variable)) is not None
        ]
    except ZeroDivisorError:  # in an index
        return IndexingMap.empty(keep_variables(m.dims), len(results))
    return IndexingMap(
        keep_variables(m.dims),
        keep_variables(m.ranges),
        tuple(runtime),
        tuple(results),
        tuple(constraints),
        m.grade,
    )
