"""Runtime variables that depend on each other.

A cache is updated at ``clamp(pos)`` and masked by ``key <= pos``: the mask leaves no key after the
update, since `pos` decides both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from indexing.dataflow.constants import is_integral
from indexing.dataflow.values import named_values
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.integer_rules import clamp_cases
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.domain import are_disjoint
from simplifier.interval import Interval
from simplifier.linear import Expr
from simplifier.substitute import Substitution


class _Case(NamedTuple):
    """A formula of the elements of an array, clamped, where its conditions hold.

    Attributes:
        dims: the index of an element.
        runtime: the runtime values that the formula mentions.
    """

    dims: tuple[Variable, ...]
    runtime: tuple[RuntimeVariable, ...]
    formula: Expr
    conditions: tuple[Constraint, ...]


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
    if len(m.runtime) < 2:
        return True
    return all(_is_possible(m, rt) for rt in m.runtime)


def _is_possible(m: IndexingMap, rt: RuntimeVariable) -> bool:
    """Return False if a value is never that of its formulas, which mention other values of `m`."""
    array = rt.array
    if not isinstance(array, ArrayRef) or array.loops or not is_integral(array):
        return True
    shape = array.array_shape
    if shape is None or len(rt.element) != shape.rank:  # an element on a device
        return True
    module = array.instruction.module
    with module.lock:
        cases = module.memoised(
            (has_possible_values, array, rt.clamp), lambda: list(_cases(array, rt.clamp))
        )
    return not cases or any(_is_possible_case(m, rt, case) for case in cases)


def _cases(array: ArrayRef, clamp: Interval | None) -> Iterator[_Case]:
    """Yield the cases of the elements of an array that depends on other values; none if unknown."""
    for value in named_values(array) or ():
        (number,) = value.results
        runtime = tuple([_rename_variable(rt, k) for k, rt in enumerate(value.runtime)])
        pairs = zip(value.runtime, runtime, strict=True)
        swap = Substitution({old.variable: new.expr for old, new in pairs})
        own = [Constraint(swap(c.expr), c.lower, c.upper) for c in value.constraints]
        for clamped, conditions in clamp_cases(number, clamp) if clamp else [(number, ())]:
            where = [Constraint(swap(c.expr), c.lower, c.upper) for c in conditions]
            yield _Case(value.dims, runtime, swap(clamped), (*own, *where))


def _rename_variable(rt: RuntimeVariable, number: int) -> RuntimeVariable:
    """Return a runtime variable whose name no map has."""
    return rt.substituted(lambda index: index, rt.variable.renamed(f"value{number}"))


def _is_possible_case(m: IndexingMap, rt: RuntimeVariable, case: _Case) -> bool:
    """Return False if the domain of a map and the conditions of a case exclude each other."""
    swap = Substitution(dict(zip(case.dims, rt.element, strict=True)))
    known = {
        value.variable: other.expr
        for value in case.runtime
        for other in m.runtime
        if other is not rt and _is_same(other, value, swap)
    }
    if not known:
        return True
    swap = Substitution({**dict(zip(case.dims, rt.element, strict=True)), **known})
    number = swap(case.formula)
    replaced = Substitution({rt.variable: number})
    constraints = [
        *[Constraint(swap(c.expr), c.lower, c.upper) for c in case.conditions],
        *[Constraint(replaced(c.expr), c.lower, c.upper) for c in m.constraints],
        Constraint(number, *rt.variable.bounds),
        *[Constraint(value, *each.bounds) for each, value in known.items()],
    ]
    return not any(c.is_false for c in constraints) and not are_disjoint(constraints)


def _is_same(other: RuntimeVariable, value: RuntimeVariable, swap: Substitution) -> bool:
    """Return True if a runtime variable of a map has the value of one of a case."""
    return (other.array, other.clamp) == (value.array, value.clamp) and other.index == tuple(
        map(swap, value.index)
    )
