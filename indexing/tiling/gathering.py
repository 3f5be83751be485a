"""Gather along one axis: slices of an array, selected by an array of indices.

``out[b, o, i, r] = params[b, o, indices[b, i], r]``, where

* b are the batch dimensions shared by params and indices,
* o the other dimensions before the axis, and r the dimensions after the axis,
* i the other dimensions of the indices.

Only the product of the sizes of each group matters: every such gather is equivalent to a gather of
shape ``(batch, outer, processed, inner)``.

An index out of bounds is clamped to the axis, as in XLA's gather.

Source: TensorFlow ``tf.gather`` (shapes, ``axis``, ``batch_dims``); OneFlow ``gather`` and
``batch_gather`` (offsets); XLA ``docs/operation_semantics.md``, "Gather" (clamping).

>>> rows = gather((2, 5, 2), (2, 3), axis=1)
>>> rows.output
(2, 2, 3, 2)
>>> print(rows.to_params)
(d0, d1, d2, d3){rt0} -> (d0, rt0, d3),
domain: d0 in [0, 1], d1 in [0, 1], d2 in [0, 2], d3 in [0, 1], rt0 in [0, 4]
>>> rows.collapsed.output, rows.collapsed.coordinates(18)
((2, 6, 2), (1, 3, 0))
>>> rows.collapsed.index_position(18), rows.index_position(18)
((3,), (1, 0))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from hlo.arguments import checked, checked_constructor
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.dataflow.soundness import require_sound
from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.layouts import logical_map, physical_map
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable
from simplifier.linear import Affine, as_expr


class GatherError(ValueError):
    """An invalid gather.

    Attributes:
        rule: the label of the violated rule, G1 to G6; see `gather`.

    >>> try:
    ...     gather((3, 4), (2,), axis=2)
    ... except GatherError as error:
    ...     print(error.rule, "|", error)
    G2 | gather G2: the axis must be in [-2, 1]: axis is 2; params are [3, 4], indices [2]
    """

    def __init__(self, rule: str, requirement: str, actual: str) -> None:
        self.rule = rule
        super().__init__(rule, requirement, actual)  # what a pickle has

    def __str__(self) -> str:
        return "gather {}: {}: {}".format(*self.args)


@checked_constructor
@dataclass(frozen=True, slots=True)
class Gather:
    """A gather along one axis with given sizes; created by `gather` and `gather_of`.

    Attributes:
        params: sizes of the array to gather from.
        indices: sizes of the array of indices.
        axis: the dimension of params that the indices select from, at least 0.
        batch_dims: the number of leading dimensions shared by params and indices.
        source: the array of indices: a name, or an instruction.
        vector_dim: the position of an additional dimension of size 1 in `source`, or `None`.

    >>> rows = gather((7, 3), (5,))
    >>> rows.output
    (5, 3)
    >>> print(rows.to_params)
    (d0, d1){rt0} -> (rt0, d1), domain: d0 in [0, 4], d1 in [0, 2], rt0 in [0, 6]
    >>> columns = gather((2, 7, 3), (2, 5), axis=1, batch_dims=1)
    >>> columns.output, columns.batch, columns.outer, columns.inner
    ((2, 5, 3), 2, 1, 3)
    >>> columns.processed, columns.gathered, columns.batch_size, columns.gathered_batch_size
    (7, 5, 21, 15)
    >>> print(columns.to_indices)
    (d0, d1, d2) -> (d0, d1), domain: d0 in [0, 1], d1 in [0, 4], d2 in [0, 2]
    """

    params: tuple[int, ...]
    indices: tuple[int, ...]
    axis: int
    batch_dims: int
    source: Instruction | str = "indices"
    vector_dim: int | None = None

    # ------------------------------------------------------------ sizes

    @property
    def output(self) -> tuple[int, ...]:
        """Sizes of the result: ``params[:axis] + indices[batch_dims:] + params[axis + 1:]``."""
        chosen = self.indices[self.batch_dims :]
        return (*self.params[: self.axis], *chosen, *self.params[self.axis + 1 :])

    @property
    def batch(self) -> int:
        """Number of batches: the product of the batch dimensions."""
        return prod(self.params[: self.batch_dims])

    @property
    def outer(self) -> int:
        """Number of outer positions in a batch: the product of its dimensions before the axis."""
        return prod(self.params[self.batch_dims : self.axis])

    @property
    def processed(self) -> int:
        """Size of the gathered axis, as in `params`."""
        return self.params[self.axis]

    @property
    def gathered(self) -> int:
        """Number of indices in a batch, which replaces the size of the axis in the output."""
        return prod(self.indices[self.batch_dims :])

    @property
    def inner(self) -> int:
        """Number of elements selected by an index: the product of the dimensions after the axis."""
        return prod(self.params[self.axis + 1 :])

    @property
    def batch_size(self) -> int:
        """Number of elements of params in a batch."""
        return self.outer * self.processed * self.inner

    @property
    def gathered_batch_size(self) -> int:
        """Number of elements of the result in a batch."""
        return self.outer * self.gathered * self.inner

    @property
    def collapsed(self) -> Gather:
        """The equivalent gather of ``[batch, outer, processed, inner]``.

        There is no batch dimension if `batch_dims` is 0.

        >>> gather((4, 2, 3, 2, 6), (5,), axis=2).collapsed.params
        (8, 3, 12)
        >>> gather((2, 5, 3, 7, 4), (2, 5, 6), axis=3, batch_dims=2).collapsed.params
        (10, 3, 7, 4)
        """
        lead = [self.batch][: self.batch_dims]
        return Gather(
            (*lead, self.outer, self.processed, self.inner),
            (*lead, self.gathered),
            axis=len(lead) + 1,
            batch_dims=len(lead),
        )

    # ------------------------------------------------------------ maps

    @property
    def to_indices(self) -> IndexingMap:
        """The map from each element of the result to the index that it reads."""
        return IndexingMap.over(self.output, self._position_in_indices)

    @property
    def to_params(self) -> IndexingMap:
        """The map from each element of the result to the element of params that it copies.

        The runtime variable is the index, clamped to the axis.
        """
        d = dims(self.output)
        position: list[Affine] = list(self._position_in_indices(d))
        if self.vector_dim is not None:
            position.insert(self.vector_dim, 0)
        bounds = 0, self.processed - 1
        index = tuple(map(as_expr, position))
        rt = RuntimeVariable(Variable("rt0", *bounds), self.source, index, bounds)
        inner = d[self.axis + len(self.indices) - self.batch_dims :]
        return IndexingMap.of(d, [*d[: self.axis], rt.expr, *inner], runtime=[rt])

    def _position_in_indices(self, d: Sequence[Any]) -> list[Any]:
        chosen = len(self.indices) - self.batch_dims
        return [*d[: self.batch_dims], *d[self.axis : self.axis + chosen]]

    # ------------------------------------------------------------ offsets

    @checked
    def coordinates(self, offset: int) -> tuple[int, ...]:
        """Return the index of the element of the result at a row-major offset.

        Raises:
            IndexError: `offset` is out of range.

        >>> gather((2, 5, 2), (2, 3), axis=1).coordinates(18)
        (1, 1, 0, 0)
        """
        return _coordinates(offset, self.output)

    @checked
    def offset(self, coordinates: Sequence[int]) -> int:
        """Return the row-major offset of the element of the result at `coordinates`.

        Raises:
            IndexError: `coordinates` are out of range.

        >>> gather((2, 5, 2), (2, 3), axis=1).offset((1, 1, 0, 0))
        18
        """
        if len(coordinates) == len(self.output):
            result = physical_map(Shape("s32", self.output)).evaluate(coordinates)
            if result is not None:
                return result[0]
        raise IndexError(
            f"coordinates {tuple(coordinates)} are out of range for sizes {self.output}"
        )

    @checked
    def index_position(self, offset: int) -> tuple[int, ...]:
        """Return the position in the indices of the index that the element at `offset` reads.

        Raises:
            IndexError: `offset` is out of range.

        >>> gather((2, 5, 2), (2, 3), axis=1).index_position(18)
        (1, 0)
        """
        position = self.to_indices.evaluate(self.coordinates(offset))
        assert position is not None, "each element of the result reads an index"
        return position

    @checked
    def in_batch(self, offset: int) -> tuple[int, int]:
        """Return the batch of the element of the result at `offset`, and its offset in the batch.

        Raises:
            IndexError: `offset` is out of range.

        >>> batched = gather((10, 2, 3), (10, 6), axis=1, batch_dims=1)
        >>> batched.batch, batched.batch_size, batched.gathered_batch_size, batched.in_batch(58)
        (10, 6, 18, (3, 4))
        """
        batch, inside = _coordinates(offset, (self.batch, self.gathered_batch_size))
        return batch, inside


def _coordinates(offset: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    coordinates = logical_map(Shape("s32", sizes)).evaluate([offset])
    if coordinates is None:
        raise IndexError(f"offset {offset} is out of range for sizes {sizes}")
    return coordinates


@checked
def gather(
    params_shape: Sequence[int] | Shape,
    indices_shape: Sequence[int] | Shape,
    axis: int = 0,
    batch_dims: int = 0,
) -> Gather:
    """Return the gather along `axis` for these shapes.

    Args:
        params_shape: shape or sizes of the array to gather from.
        indices_shape: shape or sizes of the array of indices.
        axis: a dimension of params; a negative axis counts from the end.
        batch_dims: the number of leading dimensions shared by params and indices.
    Returns:
        A `Gather` with result sizes ``params[:axis] + indices[batch_dims:] + params[axis + 1:]``.
    Raises:
        GatherError: one of these rules is violated:
            G1: no size is negative;
            G2: ``-rank(params) <= axis < rank(params)``;
            G3: ``0 <= batch_dims <= rank(indices)``;
            G4: ``batch_dims <= axis``;
            G5: ``params.shape[:batch_dims] == indices.shape[:batch_dims]``;
            G6: ``params[axis] > 0``, or the result is empty.
    Source: TensorFlow ``tf.gather``, arguments ``axis`` and ``batch_dims``.

    >>> gather((3, 4, 5), (3, 2), axis=-1, batch_dims=1).output
    (3, 4, 2)
    """
    params, indices = _sizes(params_shape), _sizes(indices_shape)
    shapes = f"params are {list(params)}, indices {list(indices)}"
    if min((*params, *indices), default=0) < 0:
        raise GatherError("G1", "sizes must not be negative", shapes)
    rank = len(params)
    if not -rank <= axis < rank:
        required = f"be in [{-rank}, {rank - 1}]" if rank else "exist, but params are a scalar"
        raise GatherError("G2", f"the axis must {required}", f"axis is {axis}; {shapes}")
    axis %= rank
    actual = f"batch_dims is {batch_dims}, axis is {axis}; {shapes}"
    if not 0 <= batch_dims <= len(indices):
        required = f"batch_dims must be in [0, {len(indices)}], where {len(indices)} is the rank"
        raise GatherError("G3", f"{required} of indices", actual)
    if batch_dims > axis:
        raise GatherError("G4", "batch_dims must be at most the axis", actual)
    if params[:batch_dims] != indices[:batch_dims]:
        required = f"the first {batch_dims} sizes of params and indices must be equal"
        raise GatherError("G5", required, shapes)
    result = Gather(params, indices, axis, batch_dims)
    if not params[axis] and 0 not in result.output:
        raise GatherError("G6", "the axis must not be empty", f"axis is {axis}; {shapes}")
    return result


def _sizes(shape: Sequence[int] | Shape) -> tuple[int, ...]:
    return shape.dims if isinstance(shape, Shape) else tuple(shape)


@checked
def gather_of(instruction: Instruction) -> Gather | Unknown:
    """Return the gather along one axis that an HLO gather is equivalent to, if there is one.

    The index vectors must have one component.  Their dimension is removed from the indices.

    Args:
        instruction: a gather.
    Returns:
        The `Gather`, or `Unknown` with the reason if the instruction is not a gather along one
        axis.
    Raises:
        HloError: the instruction is invalid.
    Source: XLA ``docs/operation_semantics.md``, "Gather".

    >>> import hlo, indexing.ops
    >>> root = hlo.parse('''ENTRY e {
    ...   p = f32[4,5,7] parameter(0)
    ...   i = s32[2,3] parameter(1)
    ...   ROOT g = f32[4,2,3,7] gather(p, i), offset_dims={0,3}, collapsed_slice_dims={1},
    ...     start_index_map={1}, index_vector_dim=2, slice_sizes={4,1,7}
    ... }''').entry.root
    >>> gather_of(root).axis
    1
    """
    from indexing.ops.gather import Gather as GatherOp

    op = instruction.op
    if not isinstance(op, GatherOp):
        return Unknown(f"{instruction.opcode} `{instruction.name}` is not a gather", instruction)
    require_sound([instruction])
    operand, source = (o.shape for o in instruction.operands)
    assert isinstance(operand, Shape)
    assert isinstance(source, Shape)
    obstacle = _obstacle(op, operand.dims, source.rank)
    if obstacle:
        reason = f"gather `{instruction.name}` is not a gather along one axis: {obstacle}"
        return Unknown(reason, instruction)
    vector = op.index_vector_dim
    sizes = tuple([size for k, size in enumerate(source.dims) if k != vector])
    (axis,) = op.start_index_map
    batch_dims = len(op.operand_batching_dims)
    return Gather(
        operand.dims,
        sizes,
        axis,
        batch_dims,
        instruction.operands[1],
        vector if vector < source.rank else None,
    )


def _obstacle(op: Any, params: tuple[int, ...], rank: int) -> str:
    """Return the reason why an HLO gather is not a gather along one axis, or an empty string."""
    if len(op.start_index_map) != 1:
        return f"start_index_map is {list(op.start_index_map)}, not one dimension"
    (axis,) = op.start_index_map
    if op.collapsed_slice_dims != (axis,):
        return f"collapsed_slice_dims is {list(op.collapsed_slice_dims)}, not [{axis}]"
    batch_dims = len(op.operand_batching_dims)
    leading = list(range(batch_dims))
    in_indices = [k - (k > op.index_vector_dim) for k in op.start_indices_batching_dims]
    pairs = sorted(zip(op.operand_batching_dims, in_indices, strict=True))
    if pairs != [(k, k) for k in leading] or batch_dims > axis:
        return f"the batching dimensions {list(op.operand_batching_dims)} are not leading"
    partial = [
        k
        for k, (taken, size) in enumerate(zip(op.slice_sizes, params, strict=True))
        if taken != (1 if k == axis else size) and k not in leading
    ]
    if partial:
        k = partial[0]
        return f"slices have {op.slice_sizes[k]} of {params[k]} elements in dimension {k}"
    chosen = rank - (op.index_vector_dim < rank) - batch_dims
    outer, inner = range(batch_dims, axis), range(axis + chosen, len(params) - 1 + chosen)
    if sorted(op.offset_dims) != [*outer, *inner]:
        return f"offset_dims is {list(op.offset_dims)}, not {[*outer, *inner]}"
    return ""
