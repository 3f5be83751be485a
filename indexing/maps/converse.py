"""The converse of one map: the same relation from results to dimensions, without ISL.

`indexing.maps.relation.inverse` gives disjoint pieces; the converse is one map, whose range
variables may reach a result several times.
"""

from __future__ import annotations

from collections.abc import Sequence

from indexing.maps.indexing_map import IndexingMap
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.substitute import Substitution


def converse(m: IndexingMap, dims: Sequence[Variable]) -> IndexingMap:
    """Return the relation of `m` from its results, indexed by `dims`, to its dimensions.

    >>> from indexing.maps.indexing_map import dims
    >>> halves = IndexingMap.over((8,), lambda d: [d[0] // 2])
    >>> print(converse(halves, dims((4,))).simplify())
    (d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 7], d0 * 2 - s0 in [-1, 0]
    """
    taken = {v.name for v in (*dims, *[rt.variable for rt in m.runtime])}
    renamed: dict[Variable, Expr] = {}
    ranges: list[Variable] = []
    for variable in (*m.dims, *m.ranges):
        is_free = variable in m.ranges and variable.name not in taken
        name = variable.name if is_free else _free_name(taken)
        taken.add(name)
        ranges.append(variable.renamed(name))
        renamed[variable] = ranges[-1].as_expr()
    results, constraints = m.substituted(renamed)
    equal = [Constraint(r - d, 0, 0) for r, d in zip(results, dims, strict=True)]
    swap = Substitution(renamed)
    return IndexingMap.of(
        dims,
        [renamed[d] for d in m.dims],
        ranges=ranges,
        runtime=[rt.substituted(swap) for rt in m.runtime],
        constraints=[*equal, *constraints],
        grade=m.grade,
    )


def _free_name(taken: set[str]) -> str:
    number = 0
    while f"s{number}" in taken:
        number += 1
    return f"s{number}"
