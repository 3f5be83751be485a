"""Runtime variables of one map that have the same value: one of them stays."""

from __future__ import annotations

from indexing.dataflow.alike import are_alike
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.replaced_variables import with_replaced_variables
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.constraints import Constraint


def share_equal_values(m: IndexingMap) -> IndexingMap:
    """Return a map in which runtime variables that are computed alike are one.

    Its bounds are those of both.  JAX writes the start of each slice at `pos` anew.

    >>> import hlo, indexing
    >>> root = hlo.parse('''ENTRY e {
    ...   x = f32[6,6] parameter(0)  n = s32[] parameter(1)
    ...   i = s32[] negate(n)  j = s32[] negate(n)
    ...   ROOT r = f32[1,1] dynamic-slice(x, i, j), dynamic_slice_sizes={1,1}
    ... }''').entry.root
    >>> print(indexing.to_parameters(root).maps[0][0])
    (d0, d1){rt0} -> (rt0, rt0), domain: d0 in [0, 0], d1 in [0, 0], rt0 in [0, 5]
    """
    if len(m.runtime) < 2:
        return m
    for k, later in enumerate(m.runtime):
        for first in m.runtime[:k]:
            if _are_equal(first, later):
                value = first.variable.as_expr()
                shared = with_replaced_variables(m, {later.variable: value}, {later.variable: None})
                within = Constraint(value, *later.variable.bounds)
                if not within.is_true:
                    shared = shared.with_constraints([within])
                return share_equal_values(shared)
    return m


def _are_equal(one: RuntimeVariable, other: RuntimeVariable) -> bool:
    """Return True if two variables have the same value, whatever the arguments are."""
    first, second = one.array, other.array
    if not isinstance(first, ArrayRef) or not isinstance(second, ArrayRef):
        return False
    if first.loops or second.loops or (one.index, one.clamp) != (other.index, other.clamp):
        return False
    module = first.instruction.module
    with module.lock:
        is_alike: bool = module.memoised(
            (share_equal_values, first, second), lambda: are_alike(first, second)
        )
    return is_alike
