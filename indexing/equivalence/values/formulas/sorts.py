"""Sorts in one form: stable, with the operands on which a result depends.

An unstable sort whose comparator decides ties by the places of elements is stable, as XLA writes
it (``xla/service/stable_sort_expander.cc``).  A comparator is a strict weak order; a sort with
another one has no defined result.  Another unstable sort of the program before may become a stable
one, which has one of the results that are allowed, but not the reverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hlo.modules.module import Instruction
from indexing.equivalence.values.formulas.applications import Bodies, Frame
from indexing.equivalence.values.formulas.numbering import NumberedArray
from indexing.equivalence.values.laws.exact import is_call
from indexing.equivalence.values.laws.symbols import Renaming, symbols_in
from indexing.equivalence.values.terms.closed_terms import close_body
from indexing.equivalence.values.terms.terms import Formula
from indexing.maps.indexing_map import dims
from indexing.ops.sort import Sort
from simplifier.atoms import Variable
from simplifier.linear import as_expr
from simplifier.substitute import Substitution

STABLE: Final = "sort(x) = stable sort(x)"


def sorted_element(bodies: Bodies, array: NumberedArray, frame: Frame) -> Formula | None:
    """Return an element of a stable sort; None for other ops, and for sorts that are not stable."""
    instruction = array.instruction
    assert instruction is not None
    if not isinstance(instruction.op, Sort) or len(instruction.called_computations) != 1:
        return None
    operands = [bodies.body(leaf, frame) for tree in array.operands for leaf in tree.values()]
    orders = bodies.function(instruction.called_computations[0])
    if len(orders) != 1 or array.shape is None or len(operands) != len(array.operands):
        return None
    (along,) = instruction.op.dimensions
    order = _stable_order(bodies, array, operands, orders[0])
    if order is None:
        return None
    number = array.path[0] if array.path else 0
    element = stable_sort(bodies, array, operands, order, along, number)
    assert element.array is not None
    bodies.origins.setdefault(element.array.number, []).append(array.number)
    return element


def _stable_order(
    bodies: Bodies, array: NumberedArray, operands: Sequence[Formula], order: Formula
) -> Formula | None:
    """Return the comparator of a stable sort with the result of a sort; None if there is none."""
    instruction, shape = array.instruction, array.shape
    assert instruction is not None
    assert shape is not None
    if not is_unstable_sort(instruction):
        return order
    assert isinstance(instruction.op, Sort)
    place = dims(shape)[instruction.op.dimensions[0]].as_expr()
    are_places = [t.kind == "index" and t.index == (place,) for t in operands]
    stable = _without_ties(bodies, order, are_places)
    if stable is not None:
        return stable
    if not bodies.expands or bodies.is_after(array):
        return None
    bodies.trusted[STABLE] += 1
    return order


def is_unstable_sort(instruction: Instruction) -> bool:
    """Return True for a sort that may return equal elements in any order."""
    return isinstance(instruction.op, Sort) and not instruction.op.is_stable


def stable_sort(
    bodies: Bodies,
    array: NumberedArray,
    operands: Sequence[Formula],
    order: Formula,
    along: int,
    number: int,
) -> Formula:
    """Return an element ``d0, d1, …`` of a result of a stable sort of arrays of one shape.

    Each row is sorted alone, so the other dimensions are those on which the rows depend.

    Args:
        array: a result; an array of the sizes of the operands, or a part of it from index 0 on.
        operands: the elements of the operands.
        order: the comparator, over symbols for its arguments.
        along: the dimension.
        number: the number of the result.
    """
    table = bodies.table
    (_, own), *_ = [(path, leaf) for tree in array.operands for path, leaf in tree.items()]
    assert own.shape is not None
    assert array.shape is not None
    compared = {symbol.head[1] // 2 for symbol in symbols_in([order])}
    kept = sorted({*compared, number})
    names = {}
    for symbol in symbols_in([order]):
        name, place, path = symbol.head
        new = (name, 2 * kept.index(place // 2) + place % 2, path)
        names[symbol] = table.array("symbol", new, symbol.type, symbol.dims)
    renamed = Renaming(bodies.algebra, names)(order)
    place = dims(own.shape)[along]
    row = Variable("r", *place.bounds)
    swap = bodies.algebra.rewriting({place: row.as_expr()})
    rows = [swap(operands[k]) for k in kept]
    closure = close_body(table, bodies.algebra.rewriting, rows, ranges=[row], keeps_ranges=True)
    sorted_sizes = (*[v.upper + 1 for v in closure.dims], row.upper + 1)
    last = Variable(f"d{len(closure.dims)}", *row.bounds)
    swap = bodies.algebra.rewriting({v: last.as_expr() for v in closure.ranges})
    sizes = tuple([((), sorted_sizes)] * len(kept) + [("", 1)])
    attributes = ("dimensions", (len(closure.dims),)), ("is_stable", True)
    head = "sort", attributes, (kept.index(number),), sizes, ()
    arguments = [*map(swap, closure.terms), renamed]
    ordered = table.array("opaque", head, operands[number].type, sorted_sizes, arguments)
    values = {
        v: at.as_expr() if at.upper else as_expr(0)
        for v, at in zip(dims(own.shape), dims(array.shape), strict=True)
    }
    at = Substitution(values)
    return table.read(ordered, [*map(at, closure.index), at(place.as_expr())])


def _without_ties(bodies: Bodies, order: Formula, are_places: Sequence[bool]) -> Formula | None:
    """Return the order of ``select(order(a, b) = order(b, a), a is before b, order(a, b))``.

    Args:
        are_places: True for operands whose elements are their places along the sorted dimension.
    """
    if not is_call(order, "select"):
        return None
    is_tie, first, rest = order.arguments
    if not (is_call(is_tie, "compare") and is_call(first, "compare")):
        return None
    names = {}
    for symbol in symbols_in([rest]):
        name, number, path = symbol.head
        head = name, number ^ 1, path
        names[symbol] = bodies.table.array("symbol", head, symbol.type, symbol.dims)
    swapped = Renaming(bodies.algebra, names)(rest)
    directions = [dict(term.head[1])["direction"] for term in (is_tie, first)]
    if directions != ["EQ", "LT"] or set(is_tie.arguments) != {rest, swapped}:
        return None
    sides = [t.array.head[1] if t.array is not None and t.array.kind == "symbol" else -1
             for t in first.arguments]  # fmt: skip
    place = sides[0] // 2
    is_order = sides[0] >= 0 and sides == [2 * place, 2 * place + 1]
    return rest if is_order and are_places[place] else None
