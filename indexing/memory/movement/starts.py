"""Maps without start indices that only move a window: their counts do not depend on the starts."""

from __future__ import annotations

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.replaced_variables import with_replaced_variables
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr


def without_starts(m: IndexingMap) -> IndexingMap:
    """Return a map with as many points for any values, without the starts of moved windows.

    A constraint ``d - rt in [a, b]`` confines a variable d to a window that starts at ``rt + a``.
    If the window is within the bounds of d for each rt, then d becomes ``e + rt`` with e in [a, b].

    >>> import hlo, indexing
    >>> root = hlo.parse('''ENTRY e {
    ...   p = f32[10] parameter(0)  u = f32[2] parameter(1)  i = s32[] parameter(2)
    ...   ROOT d = f32[10] dynamic-update-slice(p, u, i)
    ... }''').entry.root
    >>> (update,) = indexing.output_to_input(root).maps[1]
    >>> print(update)
    (d0){rt0} -> (d0 - rt0), domain: d0 in [0, 9], rt0 in [0, 8], d0 - rt0 in [0, 1]
    >>> print(without_starts(update))
    (d0) -> (d0), domain: d0 in [0, 1]
    """
    for rt in m.runtime:
        for constraint in m.constraints if not rt.index and is_total(rt) else ():
            moved = _move_to_window(m, rt, constraint)
            if moved is not None:
                return without_starts(moved)
    return m


def is_total(rt: RuntimeVariable) -> bool:
    """Return True if the domain of a map contains every value of a runtime variable.

    A start index that is not clamped, such as that of a scatter, may be out of bounds.
    """
    clamp, bounds = rt.clamp, rt.variable.bounds
    return clamp is not None and bounds[0] <= clamp[0] and clamp[1] <= bounds[1]


def _move_to_window(
    m: IndexingMap, rt: RuntimeVariable, constraint: Constraint
) -> IndexingMap | None:
    """Return the map in the frame of the window of a constraint; None if it is no such window."""
    sign_and_variable = _window(m, rt, constraint.expr)
    if sign_and_variable is None:
        return None
    sign, variable = sign_and_variable
    rest = constraint.expr - (variable - rt.variable.as_expr()) * sign
    low, high = constraint.lower - rest.constant, constraint.upper - rest.constant
    if sign < 0:
        low, high = -high, -low
    start = rt.variable
    if start.lower + low < variable.lower or start.upper + high > variable.upper or low > high:
        return None
    inside = Variable(variable.name, low, high)
    values = {variable: inside + start.as_expr()}
    return with_replaced_variables(m, values, {variable: inside}).simplify(keep_multiplicity=True)


def _window(m: IndexingMap, rt: RuntimeVariable, expr: Expr) -> tuple[int, Variable] | None:
    """Return the sign and the variable d of ``±(d - rt) + constant``; None for other sums."""
    others = [v for v in expr.variables() if v != rt.variable]
    if len(others) != 1 or others[0] not in (*m.dims, *m.ranges):
        return None
    (variable,) = others
    for sign in (1, -1):
        if (expr - (variable - rt.variable.as_expr()) * sign).is_constant:
            return sign, variable
    return None
