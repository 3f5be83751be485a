"""Scatter: combine windows of the updates with the operand at start indices.

An update writes the elements that a gather with the same dimension numbers reads, with one
difference: start indices are not clamped. A window that is not within the bounds of the operand is
skipped as a whole.

Source: XLA ``docs/operation_semantics.md``, "Scatter", for the dimension numbers, which are those
of "Gather" under other names; ``xla/service/scatter_expander.cc``, ``CheckIndexValidity``, for
windows out of bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

import numpy as np

from hlo.modules.module import Instruction
from hlo.ops.attributes import boolean, computation, int_list, integer
from hlo.ops.op import (
    HOLDS,
    Fault,
    Shape,
    Signature,
    attribute,
    constraint,
    count_fault,
    dimensions_fault,
    disjoint_fault,
    op,
    signature,
)
from hlo.ops.unify import (
    PartialShape,
    Unranked,
    may_be_at_most,
    same_but_precision,
    same_shape,
    same_sizes,
)
from hlo.shapes.shape import AnyShape, TupleShape, dtype
from indexing.maps.arrays import ArrayName
from indexing.maps.indexing_map import IndexingMap, dims, ranges
from indexing.ops.base import Array, OperandMaps, VariadicOp
from indexing.ops.element import (
    ElementRule,
    ReductionRule,
    ShardReduction,
    Work,
    bounded_count,
    element_count,
)
from indexing.ops.gather import Gather
from indexing.ops.inverse import inverses
from indexing.ops.needed_operands import NeededOperands, ParametersRead
from indexing.ops.numerics import limits
from indexing.ops.positions import list_by_position
from indexing.ops.reductions import reduce_at
from indexing.ops.sliding import windows_of
from simplifier.constraints import Constraint
from simplifier.unknown import Unknown

Dims = tuple[int, ...]

_NAMES: Final = {
    "offset_dims": "update_window_dims",
    "collapsed_slice_dims": "inserted_window_dims",
    "start_index_map": "scatter_dims_to_operand_dims",
    "operand_batching_dims": "input_batching_dims",
    "start_indices_batching_dims": "scatter_indices_batching_dims",
}


@op(
    "scatter",
    samples=[
        "f32[6,3] scatter(f32[6,3] p, s32[2] i, f32[2,3] u), update_window_dims={1}, "
        "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
        "to_apply=add",
        "f32[4,5] scatter(f32[4,5] p, s32[2,2] i, f32[2,2,3] u), update_window_dims={1,2}, "
        "inserted_window_dims={}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=1, "
        "to_apply=add",
        "f32[4,3,2] scatter(f32[4,3,2] p, s8[2,3] i, f32[2,2] u), update_window_dims={1}, "
        "inserted_window_dims={1,0}, scatter_dims_to_operand_dims={2,0,1}, index_vector_dim=1, "
        "to_apply=add",
        "f32[3,5,2] scatter(f32[3,5,2] p, s32[1,2,3] i, f32[2,2,3] u), update_window_dims={0}, "
        "inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, "
        "scatter_indices_batching_dims={2}, index_vector_dim=0, to_apply=add",
        "(f32[5], s32[5]) scatter(f32[5] p, s32[5] q, u8[2,1] i, f32[2,2] u, s32[2,2] v), "
        "update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, "
        "index_vector_dim=1, to_apply=add_both",
        "f32[3,3] scatter(f32[3,3] p, s32[1] i, f32[3,2] u), update_window_dims={0,1}, "
        "inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=0, "
        "to_apply=add",
        "f32[3] scatter(f32[3] p, s32[0,1] i, f32[0] u), update_window_dims={}, "
        "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
        "to_apply=add",
        "f32[] scatter(f32[] p, s32[2,0] i, f32[2] u), update_window_dims={}, "
        "inserted_window_dims={}, scatter_dims_to_operand_dims={}, index_vector_dim=1, "
        "to_apply=add",
    ],
)
class Scatter(VariadicOp):
    """``out[target(u)] = to_apply(out[target(u)], updates[u])`` for each update u within bounds.

    Operands are n arrays, the indices, and n arrays of updates. The order of updates with the same
    target is undefined.
    """

    reduces_shards: ClassVar[ShardReduction] = "partial"
    accumulates: ClassVar[bool] = True
    depends_on_order: ClassVar[bool] = True
    is_splittable: ClassVar[bool] = True
    obstacle: ClassVar[str] = "an update may replace the element"
    min_operands: ClassVar[int] = 3
    update_window_dims: tuple[int, ...] = attribute(int_list)
    inserted_window_dims: tuple[int, ...] = attribute(int_list)
    scatter_dims_to_operand_dims: tuple[int, ...] = attribute(int_list)
    input_batching_dims: tuple[int, ...] = attribute(int_list, default=())
    scatter_indices_batching_dims: tuple[int, ...] = attribute(int_list, default=())
    index_vector_dim: int = attribute(integer)
    indices_are_sorted: bool = attribute(boolean, default=False, in_value=False)
    unique_indices: bool = attribute(boolean, default=False, in_value=False)
    to_apply: str = attribute(computation)

    # ------------------------------------------------------------ rules

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        half = len(operands) // 2
        indices, updates = operands[half], operands[half + 1 :]
        groups = [
            [(half, n), *[(number, k) for number in range(half)]]
            for k, n in zip(
                self.input_batching_dims, self.scatter_indices_batching_dims, strict=False
            )
        ]
        if isinstance(indices, Shape):
            batch = [k for k in range(indices.rank) if k != self.index_vector_dim]
            width = len(batch) + len(self.update_window_dims)
            places = [k for k in range(width) if k not in self.update_window_dims]
            groups += [
                [(half, n), *[(half + 1 + number, k) for number in range(len(updates))]]
                for k, n in zip(places, batch, strict=False)
            ]
        arrays = [*same_shape(*operands[:half]), indices, *same_shape(*updates)]
        return same_sizes(arrays, *groups)

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        return operands[0] if len(operands) == 3 else Unranked()

    @signature("to_apply")
    def combines(self, *operands: Shape) -> Signature:
        half = len(operands) // 2
        return Signature.reducer(totals=operands[:half], values=operands[half + 1 :])

    @constraint("C1", "operands must be n arrays of equal sizes, indices, n updates of equal sizes")
    def has_updates(self, *operands: Shape) -> Fault:
        if len(operands) % 2 == 0:
            label = f"{len(operands)} operands, expected an odd number"
            return Fault(label, help="write one array of updates for each array")
        half = len(operands) // 2
        for number, shape in enumerate(operands):
            first = 0 if number < half else half + 1
            if number != half and shape.dims != operands[first].dims:
                label = f"operand {number} is {shape.with_layout(None)}, operand {first} is"
                return Fault(f"{label} {operands[first].with_layout(None)}", number)
        for number, updates in enumerate(operands[half + 1 :]):
            if not same_but_precision(updates.element_type, operands[number].element_type):
                wanted, at = operands[number].element_type, half + 1 + number
                given = f"updates (operand {at}) have type {updates.element_type}"
                return Fault(f"{given}, expected {wanted}, the type of operand {number}", at)
        return HOLDS

    @constraint("C2", "each operand dimension must be a window, inserted or batching dimension")
    def names_dimensions(self, *operands: Shape) -> Fault:
        array, updates = operands[0], operands[-1]
        gone = (*self.inserted_window_dims, *self.input_batching_dims)
        wanted = array.rank - len(gone)
        at = "update_window_dims"
        return (
            disjoint_fault(
                array.rank,
                inserted_window_dims=self.inserted_window_dims,
                input_batching_dims=self.input_batching_dims,
            )
            or dimensions_fault(self.update_window_dims, updates.rank, at)
            or count_fault(self.update_window_dims, wanted, "windowed operand dimension", at)
        )

    @constraint("C3", "the window of an update must fit into the operand")
    def fits(self, *operands: Shape) -> Fault:
        array, half = operands[0], len(operands) // 2
        for k, taken in enumerate(self.window_sizes(array.rank, operands[-1].dims)):
            if k in self.window_dims(array.rank) and not may_be_at_most(taken, array.dims[k]):
                label = f"the window has size {taken} in dimension {k}, the operand"
                return Fault(f"{label} {array.dims[k]}", half + 1)
        return HOLDS

    @constraint("C4", "the indices must be integers")
    def has_integers(self, *operands: Shape) -> Fault:
        return self._fault(Gather.has_integers, operands)

    @constraint("C5", "index_vector_dim must be in [0, rank(indices)]")
    def has_vector(self, *operands: Shape) -> Fault:
        return self._fault(Gather.has_vector, operands)

    @constraint("C6", "scatter_dims_to_operand_dims must have one dimension per index component")
    def maps_starts(self, *operands: Shape) -> Fault:
        return self._fault(Gather.maps_starts, operands)

    @constraint("C7", "batching dimensions must pair up with equal sizes, without start indices")
    def pairs_batching(self, *operands: Shape) -> Fault:
        return self._fault(Gather.pairs_batching, operands)

    @constraint("C8", "the updates must have one window for each index vector")
    def has_windows(self, *operands: Shape) -> Fault:
        half = len(operands) // 2
        updates, indices = operands[-1], operands[half]
        kept = [n for k, n in enumerate(updates.dims) if k not in self.update_window_dims]
        wanted = [n for k, n in enumerate(indices.dims) if k != self.index_vector_dim]
        if kept == wanted:
            return HOLDS
        label = f"the scatter dimensions of the updates are {kept}, those of the indices {wanted}"
        return Fault(label, half + 1)

    def _fault(
        self, rule: Callable[[Gather, Shape, Shape], Fault], operands: tuple[Shape, ...]
    ) -> Fault:
        """Check a rule of the corresponding gather; translate attribute names in its fault."""
        half = len(operands) // 2
        fault = rule(self._gather(operands), operands[0], operands[half])
        label = fault.label.replace("operand 1 ", f"operand {half} ")
        for gather_name, scatter_name in _NAMES.items():
            label = label.replace(gather_name, scatter_name)
        at = half if fault.at == 1 else fault.at
        return Fault(label, _NAMES.get(at, at) if isinstance(at, str) else at, fault.help)

    # ------------------------------------------------------------ dimension numbers

    def _gather(self, operands: tuple[Shape, ...]) -> Gather:
        """The gather that reads the elements that the updates write."""
        return Gather(
            offset_dims=tuple(sorted(self.update_window_dims)),
            collapsed_slice_dims=self.inserted_window_dims,
            start_index_map=self.scatter_dims_to_operand_dims,
            operand_batching_dims=self.input_batching_dims,
            start_indices_batching_dims=self.scatter_indices_batching_dims,
            index_vector_dim=self.index_vector_dim,
            slice_sizes=self.window_sizes(operands[0].rank, operands[-1].dims),
        )

    def window_dims(self, rank: int) -> list[int]:
        """Return the operand dimensions that the windows of the updates have, in order."""
        gone = {*self.inserted_window_dims, *self.input_batching_dims}
        return [k for k in range(rank) if k not in gone]

    def window_sizes(self, rank: int, updates: tuple[int, ...]) -> tuple[int, ...]:
        """Size of an update's window in each dimension of the operand."""
        sizes = [updates[k] for k in sorted(self.update_window_dims)]
        taken = dict(zip(self.window_dims(rank), sizes, strict=True))
        return tuple([taken.get(k, 1) for k in range(rank)])

    def _batching_dims(self) -> dict[int, int]:
        """Batching dimensions of the indices, keyed by those of the operand."""
        pairs = zip(self.input_batching_dims, self.scatter_indices_batching_dims, strict=True)
        return dict(pairs)

    # ------------------------------------------------------------ shape, maps, kernel

    def infer_shape(self, *operands: Shape) -> Shape | TupleShape:
        arrays = [shape.with_layout(None) for shape in operands[: len(operands) // 2]]
        return arrays[0] if len(arrays) == 1 else TupleShape(tuple(arrays))

    def output_to_input(self, out: Shape, *operands: Shape) -> list[OperandMaps]:
        half = len(operands) // 2
        indices, updates = operands[half], operands[-1]
        targets, _ = self._gather(operands).output_to_input(updates, operands[0], indices)
        read_updates = inverses(_unclamped_targets(targets, half, indices), operands[0])
        base = IndexingMap.identity(out).with_grade("may")  # unless `needed_operands` accumulates
        read: OperandMaps = self._read_indices(operands) if updates.size else ()
        return [*[base] * half, read, *[read_updates] * half]

    def _read_indices(self, operands: tuple[Shape, ...]) -> IndexingMap:
        """The map to all index vectors of the batch: any window may contain the element."""
        array, indices = operands[0], operands[len(operands) // 2]
        i, batched = dims(array), self._batching_dims()
        free = [k for k in range(indices.rank) if k not in batched.values()]
        s = ranges(*[indices.dims[k] for k in free])
        fixed = [(n, i[k]) for k, n in batched.items()]
        return IndexingMap.of(
            i,
            list_by_position(indices.rank, [*fixed, *zip(free, s, strict=True)]),
            ranges=s,
            constraints=[
                Constraint(i[k].as_expr(), 0, n - 1) for k, n in self._unmoved_dims(operands)
            ],
        )

    def _unmoved_dims(self, operands: tuple[Shape, ...]) -> list[tuple[int, int]]:
        """Dimensions without start index, and the window size there: the window starts at 0."""
        sizes = enumerate(self.window_sizes(operands[0].rank, operands[-1].dims))
        moved = {*self.scatter_dims_to_operand_dims, *self.input_batching_dims}
        return [(k, n) for k, n in sizes if k not in moved]

    def element(self, out: Shape, *operands: Shape) -> ElementRule:
        bases, updates = range(len(operands) // 2), range(len(operands) // 2 + 1, len(operands))
        return ReductionRule(
            tuple(bases), tuple(updates), uses_computation=True, is_windowed=True, is_scatter=True
        )

    def needed_operands(
        self, instruction: Instruction, output_id: int, parameters_read: ParametersRead
    ) -> NeededOperands | None:
        needed = VariadicOp.needed_operands(self, instruction, output_id, parameters_read)
        if needed is None:
            return needed
        exact = [
            n for n in range(len(instruction.operands) // 2) if needed.grades.get(n) == "exact"
        ]
        only_last = frozenset() if self.unique_indices else needed.only_last  # one update at most
        return NeededOperands(needed.grades, only_last, frozenset(exact))

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        return applied[0].times(element_count(operands[-1]))

    def applications(self, out: AnyShape, operands: tuple[AnyShape, ...]) -> int:
        return bounded_count(operands[-1])

    def kernel(self, *operands: Array, to_apply: Callable[..., Any]) -> Any:
        half = len(operands) // 2
        arrays = [np.array(array) for array in operands[:half]]
        sizes = self.window_sizes(arrays[0].ndim, operands[-1].shape)
        windows = sorted(self.update_window_dims)
        batch = [k for k in range(operands[-1].ndim) if k not in windows]
        updates = [array.transpose(*batch, *windows) for array in operands[half + 1 :]]
        first, fits = self._first(arrays[0].shape, sizes, operands[half])
        places = np.arange(arrays[0].size).reshape(arrays[0].shape)
        if fits.any() and arrays[0].size and 0 not in sizes:
            chosen = windows_of(places, sizes)[tuple([at[fits] for at in first])]
            chosen = np.broadcast_to(chosen, (int(fits.sum()), *sizes)).reshape(-1)
            flat = [array.reshape(-1) for array in arrays]
            reduce_at(to_apply, flat, chosen, [array[fits].reshape(-1) for array in updates])
            arrays = [array.reshape(places.shape) for array in flat]
        return tuple(arrays) if half > 1 else arrays[0]

    def _first(self, shape: Dims, window: Dims, indices: Array) -> tuple[tuple[Array, ...], Array]:
        """Start of each window in each dimension of the operand, and a mask of those in bounds."""
        vectors = indices
        if self.index_vector_dim == indices.ndim:
            vectors = indices[..., None]
        vectors = np.moveaxis(vectors, self.index_vector_dim, -1)
        grid = vectors.shape[:-1]
        fits, first = np.ones(grid, bool), [np.zeros(grid, np.int64)] * len(shape)
        for k, n in self._batching_dims().items():
            place = n - (n > self.index_vector_dim)
            sizes = [-1 if at == place else 1 for at in range(len(grid))]
            first[k] = np.broadcast_to(np.arange(grid[place]).reshape(sizes), grid)
        for n, k in enumerate(self.scatter_dims_to_operand_dims):
            start = vectors[..., n]
            last = shape[k] - window[k]
            first[k] = start.astype(np.int64)
            fits &= (first[k] >= 0) & (first[k] <= last)
        return tuple(first), fits


def _unclamped_targets(targets: IndexingMap, source: int, indices: Shape) -> IndexingMap:
    """`targets` with runtime variables that are unclamped elements of operand `source`.

    The bounds of the variables stay: a window with a start out of bounds updates nothing.
    """
    clamp = limits(dtype(indices.element_type))
    runtime = [replace(rt, array=ArrayName(source), clamp=clamp) for rt in targets.runtime]
    return replace(targets, runtime=tuple(runtime))
