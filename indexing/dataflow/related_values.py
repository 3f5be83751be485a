"""Runtime variables that depend on each other.

A cache is updated at ``clamp(pos)`` and masked by ``key <= pos``: the mask leaves no key after the
update, since `pos` decides both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from indexing.dataflow.constants import is_integral
from indexing.dataflow.values import named_values
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.maps.shared_runtime import share_runtime
from indexing.ops.integer_rules import clamp_cases
from simplifier.constraints import Constraint


def has_possible_values(m: IndexingMap) -> bool:
    """Return False if the runtime variables of a map never have values of its domain together.

    Below, the update replaces the keys behind those that the mask leaves.

    >>> import hlo, indexing
    >>> root = hlo.parse('''ENTRY e {
    ...   x = f32[6] parameter(0)  u = f32[1] parameter(1)  n = s32[] parameter(2)
    ...   k = f32[6] dynamic-update-slice(x, u, n)
    ...   i = s32[6] iota(), iota_dimension=0
    ...   c = s32[6] broadcast(n), dimensions={}
    ...   p = pred[6] compare(i, c), direction=LE
    ...   z = f32[] constant(0)
    ...   b = f32[6] broadcast(z), dimensions={}
    ...   ROOT r = f32[6] select(p, k, b)
    ... }''').entry.root
    >>> for read in indexing.to_parameters(root).maps[0]:
    ...     print(read)
    (d0){rt0, rt1} -> (d0), domain: d0 in [0, 4], rt0 in [0, 2147483647], rt1 in [1, 5], \
d0 - rt0 in [-2147483647, 0], d0 - rt1 in [-5, -1]
    """
    known = [rt for rt in m.runtime if _has_formulas(rt)]
    return all(
        _is_possible(m, rt, {each.array for each in known if each is not rt}) for rt in known
    )


def _has_formulas(rt: RuntimeVariable) -> bool:
    array = rt.array
    return isinstance(array, ArrayRef) and not array.loops and is_integral(array)


def _is_possible(m: IndexingMap, rt: RuntimeVariable, others: Collection[object]) -> bool:
    """Return False if a value is never that of its formulas, which mention other values."""
    array = rt.array
    assert isinstance(array, ArrayRef)
    values = named_values(array) if others else None
    if values is None or not any(
        each.array in others for value in values for each in value.runtime
    ):
        return True
    if any(v in m.ranges for expr in rt.element for v in expr.variables()):
        return True
    return any(
        not case.simplify().is_known_empty for value in values for case in _cases(m, rt, value)
    )


def _cases(m: IndexingMap, rt: RuntimeVariable, value: IndexingMap) -> Iterator[IndexingMap]:
    """Yield maps with the domain of `m` where a runtime variable has the value of a formula."""
    place = IndexingMap.of(m.dims, rt.element, runtime=m.runtime)
    parts, runtime = share_runtime([replace(m, results=(rt.expr,)), place.then(value)])
    domain, formula = parts
    constraints = [*domain.constraints, *formula.constraints]
    (own,), (number,) = domain.results, formula.results
    for clamped, conditions in clamp_cases(number, rt.clamp) if rt.clamp else [(number, ())]:
        equal = Constraint(own - clamped, 0, 0)
        if not equal.is_false:
            yield replace(
                domain,
                results=(),
                runtime=runtime,
                constraints=tuple([c for c in (*constraints, *conditions, equal) if not c.is_true]),
            )
