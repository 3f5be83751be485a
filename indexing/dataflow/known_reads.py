"""Reads that known operands decide: rows of groups of known sizes, and sorts by known keys.

Edges of instructions whose deciding operands the program does not determine are returned as they
are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import Shape
from indexing.dataflow.alike import evaluated_in_calls
from indexing.dataflow.constants import MAX_ELEMENTS, is_integral
from indexing.dataflow.evaluation import function_of
from indexing.dataflow.needed import dependencies_of
from indexing.dataflow.tables import MAX_PIECES, table_maps
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.access_edge import AccessEdge
from indexing.ops.elementwise import ElementwiseOp
from indexing.ops.iota import Constant
from indexing.ops.ragged_dot import RaggedDot
from indexing.ops.sort import Sort, merge_sorted

_Maps: TypeAlias = Mapping[int, tuple[IndexingMap, ...]]
"""The exact maps to some operands."""
_NOTHING: Final[_Maps] = {}


def known_edges(
    instruction: Instruction, edges: Iterable[AccessEdge], calls: int = 0
) -> Iterable[AccessEdge]:
    """Return the backward edges of a `ragged-dot` or a `sort`, exact where operands decide them.

    Args:
        calls: the number of calls around the computation whose arguments count.

    >>> import hlo, indexing
    >>> root = hlo.parse('''ENTRY e {
    ...   rows = f32[6,4] parameter(0)  weights = f32[3,4,5] parameter(1)
    ...   sizes = s32[3] constant({2, 3, 0})
    ...   ROOT r = f32[6,5] ragged-dot(rows, weights, sizes), lhs_contracting_dims={1},
    ...     rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0} }''').entry.root
    >>> for m in indexing.to_parameters(root).maps[1]:
    ...     print(m)
    (d0, d1)[s0] -> (0, s0, d1), domain: d0 in [0, 1], d1 in [0, 4], s0 in [0, 3]
    (d0, d1)[s0] -> (1, s0, d1), domain: d0 in [2, 4], d1 in [0, 4], s0 in [0, 3]
    """
    maps: _Maps = instruction.module.memoised(
        (known_edges, instruction, calls), lambda: _known_maps(instruction, calls)
    )
    return [
        replace(edge, maps=maps[edge.operand], reasons=(), control=())
        if edge.operand in maps and _is_of_operand(instruction, edge)
        else edge
        for edge in edges
    ]


def _is_of_operand(instruction: Instruction, edge: AccessEdge) -> bool:
    """Return True for an edge whose map is that of `_known_maps`: a sort moves only its operand."""
    return not isinstance(instruction.op, Sort) or edge.output_path == (edge.operand,)


def _known_maps(instruction: Instruction, calls: int) -> _Maps:
    op, shapes = instruction.op, [operand.shape for operand in instruction.operands]
    arrays = [shape for shape in shapes if isinstance(shape, Shape)]
    if len(arrays) != len(shapes) or any(shape.is_dynamic for shape in arrays):
        return _NOTHING
    if isinstance(op, Sort):
        return _sorted_maps(instruction, op, arrays, calls)
    sizes = _value(instruction, 2, calls)
    if not isinstance(op, RaggedDot) or sizes is None or not 0 < sizes.size <= MAX_PIECES:
        return _NOTHING
    if sizes.min() < 0:  # not specified
        return _NOTHING
    assert isinstance(instruction.shape, Shape)
    left, right = op.maps_of_groups(instruction.shape, arrays[0], arrays[1], sizes)
    return {0: left, 1: right}


def _value(instruction: Instruction, operand: int, calls: int) -> np.ndarray[Any, Any] | None:
    """Return the elements of an operand, or None."""
    return evaluated_in_calls(ArrayRef(instruction.operands[operand]), calls)


def _sorted_maps(sort: Instruction, op: Sort, shapes: list[Shape], calls: int) -> _Maps:
    """Return the permutation of all operands of a sort, if the operands that it compares are known.

    There are no maps if several orders are possible: elements that tie, of a sort that is unstable.
    """
    shape, axis = shapes[0], op.dimensions[0]
    if not 0 < shape.size <= MAX_ELEMENTS:
        return _NOTHING
    compare = sort.called_computations[0]
    compared = _compared_operands(compare)
    values = [(k, _value(sort, k, calls)) for k in compared]
    keys = {k: value for k, value in values if value is not None}
    if not compared or len(keys) < len(compared):
        return _NOTHING
    number = np.arange(shape.dims[axis]).reshape(
        [-1 if k == axis else 1 for k in range(shape.rank)]
    )
    other = np.broadcast_to(number, shape.dims)
    columns = [np.moveaxis(keys.get(k, other), axis, 0) for k in range(len(shapes))]
    order = merge_sorted(columns, is_before := function_of(compare))
    if not _is_only_order(columns, order, is_before, op.is_stable):
        return _NOTHING
    table = table_maps(np.moveaxis(order, 0, axis))
    if table is None:
        return _NOTHING
    maps = tuple([_moved_along(m, axis).simplify() for m in table])
    return dict.fromkeys(range(len(shapes)), maps)


def _compared_operands(comparator: Computation) -> set[int]:
    """Return the operands of a sort that a comparator compares; none if values are rounded."""
    needed = dependencies_of([comparator.root])
    parameters = {p: number for number, p in enumerate(comparator.parameters)}
    if not all(each in parameters or _is_computed_exactly(each) for each in needed):
        return set()
    return {number // 2 for p, number in parameters.items() if p in needed}


def _is_computed_exactly(instruction: Instruction) -> bool:
    """Return True if all implementations compute the same bits from the same operands."""
    op = instruction.op
    if isinstance(op, Constant):
        return True
    is_integer = all(is_integral(ArrayRef(each)) for each in instruction.operands)
    return isinstance(op, ElementwiseOp) and (is_integer or op.is_exact)


def _is_only_order(
    columns: Sequence[np.ndarray[Any, Any]],
    order: np.ndarray[Any, Any],
    is_before: Callable[..., Any],
    is_stable: bool,
) -> bool:
    """Return True if no other order of the rows along the first dimension is possible."""
    ordered = [np.take_along_axis(column, order, 0) for column in columns]
    pairs = [(column[:-1], column[1:]) for column in ordered]
    if np.any(is_before(*[x for one, other in pairs for x in (other, one)])):
        return False
    return is_stable or bool(np.all(is_before(*[x for pair in pairs for x in pair])))


def _moved_along(table: IndexingMap, axis: int) -> IndexingMap:
    """Return the map of each index to that with the value of a table in one dimension."""
    results = [d.as_expr() for d in table.dims]
    results[axis] = table.results[0]
    return replace(table, results=tuple(results))
