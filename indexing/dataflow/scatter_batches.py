"""Scatters whose indices state a batch: a column of the indices that counts the index vectors.

XLA writes the batching dimensions of a scatter as a column of its indices, an iota, often in
another fusion than the scatter.  Each element has the updates of its own batch only.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.dataflow.alike import argument_of
from indexing.dataflow.op_edges import edge_of
from indexing.dataflow.scatters import replaces
from indexing.dataflow.soundness import fault_of
from indexing.dataflow.values import named_values
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.access_edge import AccessEdge
from indexing.ops.needed_operands import reads_several
from indexing.ops.scatter import Scatter
from simplifier.constraints import Constraint
from simplifier.linear import constant

Maps: TypeAlias = tuple[IndexingMap, ...] | Unknown


class _Batch(NamedTuple):
    """A column of the indices with the numbers of the index vectors along one dimension.

    Attributes:
        column: the place of the column in the index vectors.
        dim: the dimension of the indices.
        target: the dimension of the array.
    """

    column: int
    dim: int
    target: int


def batch_edges(
    scatter: Instruction, edges: Iterable[AccessEdge], calls: int = 0
) -> Iterable[AccessEdge]:
    """Return the backward edges of a scatter, to the indices and updates of the own batch only.

    Edges to the array are returned as they are.

    Args:
        calls: the number of calls around the computation whose arguments count.

    >>> import hlo, indexing
    >>> root = hlo.parse('''
    ... last { a = f32[] parameter(0)  ROOT b = f32[] parameter(1) }
    ... ENTRY e {
    ...   x = f32[2,5] parameter(0)
    ...   rows = s32[2,1] iota(), iota_dimension=0
    ...   columns = s32[2,1] parameter(1)
    ...   i = s32[2,2] concatenate(rows, columns), dimensions={1}
    ...   u = f32[2] parameter(2)
    ...   ROOT r = f32[2,5] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0,1},
    ...     scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=last
    ... }''').entry.root
    >>> print(*indexing.to_parameters(root).maps[1])
    (d0, d1) -> (d0, 0), domain: d0 in [0, 1], d1 in [0, 4]
    """
    maps = scatter.module.memoised((batch_edges, scatter, calls), lambda: _maps(scatter, calls))
    return [_in_batch(scatter, edge, maps) for edge in edges] if maps else edges


def states_batch(instruction: Instruction, calls: int) -> bool:
    """Return True for a scatter whose indices state a batch.

    Args:
        calls: the number of calls around the computation whose arguments count.
    """
    return isinstance(instruction.op, Scatter) and bool(_batches(instruction, calls))


def _in_batch(scatter: Instruction, edge: AccessEdge, maps: dict[int, Maps]) -> AccessEdge:
    """Return an edge with its maps in the batch; exact if that leaves an element one update."""
    own = maps.get(edge.operand)
    if own is None:
        return edge
    new = edge_of(scatter, edge.operand, edge.output_path, own)
    is_update = edge.operand > len(scatter.operands) // 2
    if edge.is_exact or (is_update and replaces(scatter) and not reads_several(own)):
        return new
    return replace(edge, maps=tuple([m.with_grade("may") for m in new.maps]), control=())


def _maps(scatter: Instruction, calls: int) -> dict[int, Maps]:
    """Return the maps to the indices and the updates, by operand, of a scatter with batches."""
    batches = _batches(scatter, calls)
    if not batches:
        return {}
    op, array, indices, updates = _parts(scatter)
    half = len(scatter.operands) // 2
    removed = _removed_dims(op, array, batches)
    sizes = tuple([n for k, n in enumerate(updates.dims) if k not in removed])
    own = replace(updates.with_layout(None), dims=sizes)
    batched = _with_batches(op, batches, removed)
    reads = batched.output_to_input(array, *[array] * half, indices, *[own] * half)
    read, read_updates = reads[half], reads[-1]
    assert isinstance(read, IndexingMap)
    assert isinstance(read_updates, tuple)
    columns = _columns_left(op, batches)
    whole = tuple([_in_whole(m, removed, columns, op.index_vector_dim) for m in read_updates])
    return {half: (read,), **dict.fromkeys(range(half + 1, len(scatter.operands)), whole)}


def _parts(scatter: Instruction) -> tuple[Scatter, Shape, Shape, Shape]:
    """Return a scatter with the shapes of one array, of the indices and of its updates."""
    op, shapes = scatter.op, [operand.shape for operand in scatter.operands]
    array, indices, updates = shapes[0], shapes[len(shapes) // 2], shapes[-1]
    assert isinstance(op, Scatter)
    assert isinstance(array, Shape)
    assert isinstance(indices, Shape)
    assert isinstance(updates, Shape)
    return op, array, indices, updates


def _removed_dims(op: Scatter, array: Shape, batches: Iterable[_Batch]) -> list[int]:
    """Return the window dimensions of the updates, of size 1, in the dimensions of batches."""
    windows = dict(zip(op.window_dims(array.rank), sorted(op.update_window_dims), strict=True))
    return sorted([windows[batch.target] for batch in batches if batch.target in windows])


def _columns_left(op: Scatter, batches: Iterable[_Batch]) -> list[int]:
    """Return the columns of the indices that count nothing."""
    counting = [batch.column for batch in batches]
    return [k for k in range(len(op.scatter_dims_to_operand_dims)) if k not in counting]


def _with_batches(op: Scatter, batches: Iterable[_Batch], removed: Sequence[int]) -> Scatter:
    """Return a scatter with batching dimensions instead of columns of its indices.

    Its index vectors have the entries of the columns that are left; those after them are ignored.

    Args:
        removed: the dimensions of the updates, of size 1, that its updates don't have.
    """
    columns, dims, targets = zip(*batches, strict=True)
    starts = enumerate(op.scatter_dims_to_operand_dims)
    return replace(
        op,
        update_window_dims=tuple(
            [k - bisect(removed, k) for k in op.update_window_dims if k not in removed]
        ),
        inserted_window_dims=tuple([k for k in op.inserted_window_dims if k not in targets]),
        scatter_dims_to_operand_dims=tuple([k for n, k in starts if n not in columns]),
        input_batching_dims=(*op.input_batching_dims, *targets),
        scatter_indices_batching_dims=(*op.scatter_indices_batching_dims, *dims),
    )


def _in_whole(
    m: IndexingMap, removed: Iterable[int], columns: Sequence[int], vector: int
) -> IndexingMap:
    """Return a map to updates without some dimensions as a map to the updates of the scatter.

    Args:
        removed: the dimensions of the updates that the map doesn't have, in order.
        columns: the columns of the indices of the scatter, for those that the map mentions.
        vector: the dimension of the indices with the columns.
    """
    results = list(m.results)
    for k in removed:
        results.insert(k, constant(0))
    runtime = []
    for rt in m.runtime:
        index = list(rt.index)
        if vector < len(index):
            index[vector] = constant(columns[index[vector].constant])
        runtime.append(replace(rt, index=tuple(index)))
    return replace(m, results=tuple(results), runtime=tuple(runtime))


def _batches(scatter: Instruction, calls: int) -> tuple[_Batch, ...]:
    """Return the columns of the indices that count the index vectors, each for a dimension."""
    if fault_of(scatter):
        return ()
    op, array, indices, updates = _parts(scatter)
    sizes = op.window_sizes(array.rank, updates.dims)
    batches: list[_Batch] = []
    for column, dim in _counting_columns(scatter, calls):
        target = op.scatter_dims_to_operand_dims[column]
        used = [op.index_vector_dim, *op.scatter_indices_batching_dims, *[b.dim for b in batches]]
        is_new = dim not in used and column not in [b.column for b in batches]
        if is_new and sizes[target] == 1 and array.dims[target] == indices.dims[dim]:
            batches.append(_Batch(column, dim, target))
    return tuple(batches)


def _counting_columns(scatter: Instruction, calls: int) -> Iterator[tuple[int, int]]:
    """Yield each column of the indices that is an iota, and its dimension of the indices."""
    op, array = scatter.op, ArrayRef(scatter.operands[len(scatter.operands) // 2])
    assert isinstance(op, Scatter)
    while calls and (argument := argument_of(array)) is not None:
        array, calls = argument, calls - 1
    values = named_values(array)
    shape = array.array_shape
    if values is None or shape is None:
        return
    for column in range(len(op.scatter_dims_to_operand_dims)):
        entries = [_in_column(piece, op.index_vector_dim, column) for piece in values]
        entries = [piece for piece in entries if not piece.is_known_empty]
        for dim in range(shape.rank):
            counts = [piece.results[0] == piece.dims[dim].as_expr() for piece in entries]
            if counts and all(counts):
                yield column, dim


def _in_column(values: IndexingMap, vector: int, column: int) -> IndexingMap:
    """Return the values of the entries of index vectors in a column, from their index."""
    if vector < len(values.dims):
        at = Constraint(values.dims[vector].as_expr(), column, column)
        values = values.with_constraints([at])
    return values.simplify()
