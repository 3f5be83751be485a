"""Gather as a primitive: rows of an array along one axis, chosen by an array of indices.

``out[b, o, i, r] = params[b, o, indices[b, i], r]`` where b are the batch dimensions that params
and indices have in common, o the other dimensions before the axis, i the other dimensions of the
indices, and r the dimensions behind the axis. Only the product of the sizes of each of these
matters: every such gather is one of shape ``(batch, outer, processed, inner)``.

An index outside of the axis is clamped to it, as XLA's gather does.

Source: TensorFlow ``tf.gather`` (shapes, ``axis``, ``batch_dims``); OneFlow ``gather`` and
``batch_gather`` (offsets); XLA ``docs/operation_semantics.md``, "Gather" (clamping).

>>> found = gather((2, 5, 2), (2, 3), axis=1)
>>> found.output
(2, 2, 3, 2)
>>> print(found.to_params)
(d0, d1, d2, d3){rt0} -> (d0, rt0, d3),
domain: d0 in [0, 1], d1 in [0, 1], d2 in [0, 2], d3 in [0, 1], rt0 in [0, 4]
>>> found.collapsed.output, found.collapsed.coordinates(18)
((2, 6, 2), (1, 3, 0))
>>> found.collapsed.index_read(18), found.index_read(18)
((3,), (1, 0))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from hlo.shapes.shape import Shape
from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.layouts import logical_map, physical_map
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable
from simplifier.linear import Affine, as_expr

if TYPE_CHECKING:
    from hlo.modules.module import Instruction


class GatherError(ValueError):
    """A gather that means nothing; `rule` is the label of the rule that it breaks."""

    def __init__(self, rule: str, wanted: str, found: str) -> None:
        self.rule = rule
        super().__init__(f"gather {rule} does not hold: {wanted}; {found}")


@dataclass(frozen=True, slots=True)
class Gather:
    """One gather of given sizes; made by `gather` and `gather_of`.

    Attributes:
        params: sizes of the array that is gathered from.
        indices: sizes of the array of indices.
        axis: the dimension of params that the indices choose from, from 0.
        batch_dims: so many leading dimensions belong to both, element by element.
        source: what the indices are: the name, or an instruction.
        vector_dim: where the source has one dimension more, of size 1; `None` if it has not.
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
        """Number of batches."""
        return prod(self.params[: self.batch_dims])

    @property
    def outer(self) -> int:
        """Number of rows of a batch: positions before the axis."""
        return prod(self.params[self.batch_dims : self.axis])

    @property
    def processed(self) -> int:
        """Size of the axis: what an index chooses from."""
        return self.params[self.axis]

    @property
    def gathered(self) -> int:
        """Number of indices of a batch: what the axis becomes."""
        return prod(self.indices[self.batch_dims :])

    @property
    def inner(self) -> int:
        """Number of elements that each index chooses together: positions behind the axis."""
        return prod(self.params[self.axis + 1 :])

    @property
    def batch_size(self) -> int:
        """Elements of params in a batch."""
        return self.outer * self.processed * self.inner

    @property
    def gathered_batch_size(self) -> int:
        """Elements of the result in a batch."""
        return self.outer * self.gathered * self.inner

    @property
    def collapsed(self) -> Gather:
        """The same gather of ``[batch, outer, processed, inner]``, without batch where it has none.

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
        """From each element of the result to the index that it reads."""
        return IndexingMap.over(self.output, self._place_of_index)

    @property
    def to_params(self) -> IndexingMap:
        """From each element of the result to the element of params that it is.

        Its runtime variable is the index, clamped to the axis.
        """
        d = dims(self.output)
        place: list[Affine] = list(self._place_of_index(d))
        if self.vector_dim is not None:
            place.insert(self.vector_dim, 0)
        bounds = 0, self.processed - 1
        index = tuple(map(as_expr, place))
        rt = RuntimeVariable(Variable("rt0", *bounds), self.source, index, bounds)
        behind = d[self.axis + len(self.indices) - self.batch_dims :]
        return IndexingMap.of(d, [*d[: self.axis], rt.expr, *behind], runtime=[rt])

    def _place_of_index(self, d: Sequence[Any]) -> list[Any]:
        chosen = len(self.indices) - self.batch_dims
        return [*d[: self.batch_dims], *d[self.axis : self.axis + chosen]]

    # ------------------------------------------------------------ offsets

    def coordinates(self, offset: int) -> tuple[int, ...]:
        """Where in the result the element is that lies at `offset`, row by row.

        Raises:
            IndexError: the result has no such element.
        """
        return _coordinates(offset, self.output)

    def offset(self, coordinates: Sequence[int]) -> int:
        """Where the element of the result at `coordinates` lies, row by row.

        Raises:
            IndexError: the result has no such element.

        >>> gather((2, 5, 2), (2, 3), axis=1).offset((1, 1, 0, 0))
        18
        """
        if len(coordinates) == len(self.output):
            found = physical_map(Shape("s32", self.output)).evaluate(coordinates)
            if found is not None:
                return found[0]
        raise IndexError(f"there is no {tuple(coordinates)} in a result of sizes {self.output}")

    def index_read(self, offset: int) -> tuple[int, ...]:
        """Which element of the indices the element of the result at `offset` reads.

        Raises:
            IndexError: the result has no such element.
        """
        found = self.to_indices.evaluate(self.coordinates(offset))
        assert found is not None, "each element of the result reads an index"
        return found

    def in_batch(self, offset: int) -> tuple[int, int]:
        """The batch of the element of the result at `offset`, and its offset in this batch.

        Raises:
            IndexError: the result has no such element.

        >>> batched = gather((10, 2, 3), (10, 6), axis=1, batch_dims=1)
        >>> batched.batch, batched.batch_size, batched.gathered_batch_size, batched.in_batch(58)
        (10, 6, 18, (3, 4))
        """
        batch, inside = _coordinates(offset, (self.batch, self.gathered_batch_size))
        return batch, inside


def _coordinates(offset: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    found = logical_map(Shape("s32", sizes)).evaluate([offset])
    if found is None:
        raise IndexError(f"there is no offset {offset} in a result of sizes {sizes}")
    return found


def gather(
    params_shape: Sequence[int] | Shape,
    indices_shape: Sequence[int] | Shape,
    axis: int = 0,
    batch_dims: int = 0,
) -> Gather:
    """The gather of params of this shape along `axis`.

    Args:
        params_shape, indices_shape: shapes, or sizes.
        axis: a dimension of params; a negative one counts from the end.
        batch_dims: so many leading dimensions of params and of indices are the same.
    Raises:
        GatherError: these rules do not hold:
            G1: no size is negative;
            G2: ``-rank(params) <= axis < rank(params)``;
            G3: ``0 <= batch_dims <= rank(indices)``;
            G4: ``batch_dims <= axis``;
            G5: ``params.shape[:batch_dims] == indices.shape[:batch_dims]``;
            G6: there is something to choose from: the axis has an element, or the result has none.

    >>> gather((3, 4, 5), (3, 2), axis=-1, batch_dims=1).output
    (3, 4, 2)
    """
    params, indices = _sizes(params_shape), _sizes(indices_shape)
    given = f"params are {list(params)}, indices {list(indices)}"
    if min((*params, *indices), default=0) < 0:
        raise GatherError("G1", "no size is negative", given)
    rank = len(params)
    if not -rank <= axis < rank:
        wanted = f"the axis is in [{-rank}, {rank - 1}]" if rank else "params have a dimension"
        raise GatherError("G2", wanted, f"the axis is {axis}; {given}")
    axis %= rank
    said = f"batch_dims is {batch_dims}, the axis {axis}; {given}"
    if not 0 <= batch_dims <= len(indices):
        raise GatherError("G3", f"batch_dims is in [0, {len(indices)}], the rank of indices", said)
    if batch_dims > axis:
        raise GatherError("G4", "batch_dims <= axis", said)
    if params[:batch_dims] != indices[:batch_dims]:
        raise GatherError("G5", f"the first {batch_dims} sizes of both are the same", given)
    found = Gather(params, indices, axis, batch_dims)
    if not params[axis] and 0 not in found.output:
        raise GatherError("G6", "the axis has an element to choose", f"the axis is {axis}; {given}")
    return found


def _sizes(shape: Sequence[int] | Shape) -> tuple[int, ...]:
    return shape.dims if isinstance(shape, Shape) else tuple(shape)


def gather_of(instruction: Instruction) -> Gather | Unknown:
    """The primitive that an HLO gather is, if it is one; else why it is not.

    Its indices are those of the instruction without the dimension of index vectors, which have one
    component.

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
        return Unknown(f"`{instruction.name}` is {instruction.opcode}, no gather", instruction)
    operand, source = (o.shape for o in instruction.operands)
    assert isinstance(operand, Shape)
    assert isinstance(source, Shape)
    why = _no_primitive(op, operand.dims, source.rank)
    if why:
        reason = f"gather `{instruction.name}` is no gather along one axis: {why}"
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


def _no_primitive(op: Any, params: tuple[int, ...], rank: int) -> str:
    """Why a gather of XLA is no primitive; empty if it is."""
    if len(op.start_index_map) != 1:
        return f"its indices choose along the dimensions {list(op.start_index_map)}"
    (axis,) = op.start_index_map
    if op.collapsed_slice_dims != (axis,):
        return f"the dimensions {list(op.collapsed_slice_dims)} are collapsed, not just {axis}"
    batch_dims = len(op.operand_batching_dims)
    lead = list(range(batch_dims))
    theirs = [k - (k > op.index_vector_dim) for k in op.start_indices_batching_dims]
    pairs = sorted(zip(op.operand_batching_dims, theirs, strict=True))
    if pairs != [(k, k) for k in lead] or batch_dims > axis:
        return f"the batching dimensions {list(op.operand_batching_dims)} are not the first ones"
    cut = [
        k
        for k, (taken, size) in enumerate(zip(op.slice_sizes, params, strict=True))
        if taken != (1 if k == axis else size) and k not in lead
    ]
    if cut:
        return f"a window has {op.slice_sizes[cut[0]]} of {params[cut[0]]} in dimension {cut[0]}"
    chosen = rank - (op.index_vector_dim < rank) - batch_dims
    before, behind = range(batch_dims, axis), range(axis + chosen, len(params) - 1 + chosen)
    if sorted(op.offset_dims) != [*before, *behind]:
        return f"offset_dims are {list(op.offset_dims)}, not {[*before, *behind]}"
    return ""
