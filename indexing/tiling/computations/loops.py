"""Sequential loops: the reduced, contracted and window dimensions of an instruction.

A tile of a reduction or of a dot needs whole rows of its operands, and one of a convolution whole
windows.  A kernel reads them piece by piece, so each such dimension is a loop with a tile size of
its own.  In the maps
of the op it is a range variable; `with_loops` turns it into a dimension.

Source: XLA ``xla/codegen/tiling/experimental/tiling_space.h``, sequential dimensions; XLA has none
for windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from hlo.modules.module import Instruction
from hlo.shapes.shape import AnyShape, Shape, dtype
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.convolution import Convolution
from indexing.ops.dot import Dot
from indexing.ops.padding_products import is_solved
from indexing.ops.reduce import Reduce
from indexing.ops.reduce_window import ReduceWindow
from indexing.ops.scaled_dot import ScaledDot
from indexing.ops.windows import only_element
from simplifier.atoms import Variable


class LoopDimension(NamedTuple):
    """A dimension that an instruction reduces, contracts, or slides a window over.

    Attributes:
        size: the number of elements.
        places: the dimension of each operand that the loop runs along; `None` where it does not.
        is_window: True for a window.
    """

    size: int
    places: tuple[int | None, ...]
    is_window: bool = False


def loop_dimensions(instruction: Instruction) -> tuple[LoopDimension, ...]:
    """Return the reduced, contracted or window dimensions in the order of the attribute.

    Windows of one element are no loops.  The input features of a convolution are its last loop.

    >>> import hlo
    >>> root = hlo.parse('''ENTRY e {
    ...   p = f32[4,8] parameter(0)
    ...   q = f32[8,16] parameter(1)
    ...   ROOT d = f32[4,16] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''').entry.root
    >>> loop_dimensions(root)
    (LoopDimension(size=8, places=(1, 0), is_window=False),)
    """
    op, operands = instruction.op, instruction.operands
    first = operands[0].shape if operands else None
    if not isinstance(first, Shape):
        return ()
    if isinstance(op, Reduce):
        half = len(operands) // 2
        return tuple(
            [LoopDimension(first.dims[k], (k,) * half + (None,) * half) for k in op.dimensions]
        )
    if isinstance(op, ReduceWindow):
        half = len(operands) // 2
        return tuple(
            [
                LoopDimension(w.size, (k,) * half + (None,) * half, is_window=True)
                for k, w in enumerate(op.window)
                if w.size > 1
            ]
        )
    if isinstance(op, Convolution):
        return _convolution_loops(op, instruction.shape, first, operands[1].shape)
    if not isinstance(op, Dot):
        return ()
    pairs = zip(op.lhs_contracting_dims, op.rhs_contracting_dims, strict=True)
    scales = 2 if isinstance(op, ScaledDot) else 1
    return tuple([LoopDimension(first.dims[k], (k, n) * scales) for k, n in pairs])


def _convolution_loops(
    op: Convolution, out: AnyShape, left: Shape, right: AnyShape
) -> tuple[LoopDimension, ...]:
    """Return the windows of several elements that no formula gives, and the input features."""
    if not (isinstance(right, Shape) and isinstance(out, Shape)):
        return ()
    types = [dtype(each.element_type) for each in (out, left, right)]
    products = op.padding_products(left.dims, right.dims, types)
    _, features, *spatial = op.dim_labels.order("lhs")
    inputs, _, *kernel = op.dim_labels.order("rhs")
    loops = [
        LoopDimension(w.size, (here, there), is_window=True)
        for w, here, there in zip(op.window, spatial, kernel, strict=True)
        if w.size > 1
        and not (
            is_solved(w, left.dims[here], products)
            and only_element(w, 0, left.dims[here], always=True) is not None
        )
    ]
    return (*loops, LoopDimension(right.dims[inputs], (features, inputs)))


def with_loops(
    first: IndexingMap,
    edge: IndexingMap,
    operand: int,
    loops: Sequence[tuple[LoopDimension, Variable]],
) -> tuple[IndexingMap, IndexingMap]:
    """Return two maps to compose, with the range variables of `edge` that are loops as dimensions.

    Args:
        first: the map from the tiled dimensions to the instruction.
        edge: the map from the instruction to an operand.
        operand: the number of the operand.
        loops: the loops of the instruction, each with the dimension that represents it.

    >>> from indexing.maps.text import parse_map
    >>> sums = parse_map("(d0)[s0] -> (d0, s0), domain: d0 in [0, 3], s0 in [0, 7]")
    >>> loop = LoopDimension(8, (1, None)), Variable("d1", 0, 7)
    >>> print(*with_loops(IndexingMap.identity((4,)), sums, 0, [loop]), sep="\\n")
    (d0, d1) -> (d0, d1), domain: d0 in [0, 3], d1 in [0, 7]
    (d0, s0) -> (d0, s0), domain: d0 in [0, 3], s0 in [0, 7]
    """
    taken: list[tuple[Variable, Variable]] = []
    for loop, dimension in loops:
        place = loop.places[operand]
        if place is None or place >= len(edge.results):  # a scalar scale
            continue
        inside = [v for v in edge.results[place].variables() if v in edge.ranges]
        if len(inside) == 1:
            taken.append((inside[0], dimension))
    if not taken:
        return first, edge
    added = [dimension for _, dimension in taken]
    first = replace(
        first,
        dims=(*first.dims, *added),
        results=(*first.results, *[dimension.as_expr() for dimension in added]),
    )
    moved = [variable for variable, _ in taken]
    edge = replace(
        edge,
        dims=(*edge.dims, *moved),
        ranges=tuple([v for v in edge.ranges if v not in moved]),
    )
    return first, edge
