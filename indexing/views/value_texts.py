"""Formulas of runtime values over the parameters that decide them, as text.

>>> import hlo, indexing
>>> root = hlo.parse('''ENTRY e {
...   x = f32[16] parameter(0)  pos = s32[] parameter(1)
...   z = s32[] constant(0)  n = s32[] constant(16)
...   l = pred[] compare(pos, z), direction=LT
...   a = s32[] add(pos, n)
...   i = s32[] select(l, a, pos)
...   ROOT r = f32[1] dynamic-slice(x, i), dynamic_slice_sizes={1} }''').entry.root
>>> (rt,) = indexing.output_to_input(root).maps[0][0].runtime
>>> print(value_text(rt))
pos < 0 ? pos + 16 : pos
"""

from __future__ import annotations

from typing import Final

from hlo.shapes.element_type import range_of
from hlo.shapes.shape import Shape, leaf_shape
from indexing.dataflow.copies import origin_of_copy
from indexing.dataflow.values import named_values
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable, element_text
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.interval import Interval
from simplifier.linear import Expr
from simplifier.substitute import Substitution

MAX_CASES: Final = 4
"""Limit on the cases of a formula."""
MAX_LENGTH: Final = 100
"""Limit on the characters of a formula."""


def value_text(variable: RuntimeVariable) -> str | None:
    """Return the value of a runtime variable, before its clamp, as a formula of other values.

    Returns:
        None if the program does not compute it from other integers by a short formula, or inside
        of a loop.
    """
    array = variable.array
    if not isinstance(array, ArrayRef) or array.loops or array.instruction.opcode == "parameter":
        return None
    if origin_of_copy(array).path:  # a leaf of a parameter
        return None
    pieces = named_values(array)
    if pieces is None or not 0 < len(pieces) <= MAX_CASES:
        return None
    conditions: dict[str, list[str]] = {}
    for piece in pieces:
        case = _case(piece, variable, array)
        if case is None:
            return None
        conditions[case[1]] = [*conditions.pop(case[1], ()), case[0]]  # the last is the default
    *others, last = conditions
    chosen = [f"{' or '.join(conditions[value])} ? {value} : " for value in others]
    text = "".join([*chosen, last])
    return text if len(text) <= MAX_LENGTH else None


def _case(piece: IndexingMap, variable: RuntimeVariable, array: ArrayRef) -> tuple[str, str] | None:
    """Return the condition and the value of one case; None without such a text."""
    if not piece.runtime or any(_is_itself(rt, array) for rt in piece.runtime):
        return None
    index = dict(zip(piece.dims, variable.element, strict=True))
    within = [Constraint(value, *dim.bounds) for dim, value in index.items()]
    if piece.ranges or not all(c.is_true for c in within):
        return None
    at = Substitution(index)
    swap: dict[Variable, Expr] = {}
    conditions = []
    for rt in piece.runtime:
        kind = _range_of(rt)
        if kind is None or rt.clamp not in (None, kind):
            return None
        name = f"{rt.value_name}{element_text(map(at, rt.element))}"
        named = Variable(name, *rt.variable.bounds).as_expr()
        swap[rt.variable] = named
        conditions += _bounds_text(named, rt.variable.bounds, kind)
    to_text = Substitution(index | swap)
    for each in piece.constraints:
        expr = to_text(each.expr)
        conditions += _bounds_text(expr, (each.lower, each.upper), expr.bounds)
    return " and ".join(conditions), str(to_text(piece.results[0]))


def _is_itself(rt: RuntimeVariable, array: ArrayRef) -> bool:
    return not isinstance(rt.array, ArrayRef) or rt.array == array or bool(rt.array.loops)


def _range_of(rt: RuntimeVariable) -> Interval | None:
    """Return the bounds of the type of a value."""
    assert isinstance(rt.array, ArrayRef)
    leaf = leaf_shape(rt.array.instruction.shape, rt.array.path)
    return range_of(leaf.element_type) if isinstance(leaf, Shape) else None


def _bounds_text(expr: Expr, bounds: Interval, possible: Interval) -> list[str]:
    """Return the bounds that restrict an expression as comparisons."""
    lower, upper = bounds
    if lower == upper:
        return [f"{expr} == {lower}"]
    texts = []
    if lower > possible[0]:
        texts.append(f"{expr} >= {lower}")
    if upper < possible[1]:
        texts.append(f"{expr} < {upper + 1}")
    return texts
