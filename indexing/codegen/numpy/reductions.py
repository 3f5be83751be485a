"""Writer of reductions as NumPy code: matrix products, ufunc calls, scatters, or Python loops."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from string import ascii_letters
from typing import Any

import numpy as np

from hlo.shapes.mixed_radix import number_of
from indexing.codegen.graph import (
    Apply,
    BufferRead,
    Node,
    Reduction,
    ScatterReduction,
    dtype_of,
    topological_order,
)
from indexing.codegen.numpy.access import Text, expand_axes, vector_text
from indexing.codegen.numpy.block import BlockWriter, WriterState, reads_parameter
from indexing.codegen.numpy.spaces import LoopAxis, Space, depends_on_axes, split_space
from indexing.codegen.numpy.storing import full_text, store
from indexing.codegen.stages import Stage
from indexing.codegen.text import dtype_text, scalar_text, tuple_text
from indexing.ops.functions import neutral
from simplifier.atoms import Variable, point_count
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr

# Windows up to this size are reduced by a loop: NumPy reduces their views slowly.
_SMALL_WINDOW = 128

# Disjoint windows from this size on are reduced by NumPy.
_WIDE_WINDOW = 16


class ReductionWriter:
    """Writes the reduction of one stage, for all elements or for a box of them.

    Attributes:
        ranges: the range variables with more than one value.
    """

    def __init__(
        self, state: WriterState, stage: Stage, reduction: Reduction, box: Space | None
    ) -> None:
        self.state, self.source = state, state.source
        self.stage, self.reduction, self.box = stage, reduction, box
        self.ranges = [s for s in reduction.ranges if s.lower < s.upper]

    def write(self) -> None:
        """Write the reduction in the fastest form that applies."""
        reduction, box = self.reduction, self.box
        if box is None:
            space = split_space(self.stage, (*self.stage.dims, *self.ranges))
            of_dims = tuple([a for a in space.axes if a.variable.name[0] == "d"])
            dims = Space(of_dims, space.swap)
        else:
            space = Space((*box.axes, *[LoopAxis.full(s) for s in self.ranges]))
            dims = box
        if not reduction.values:
            self._empty(dims)
        elif reduction.scatter is not None and box is None:
            self._write_scatter(reduction.scatter)
        elif reduction.is_product:
            self._write_contraction(space, dims)
        elif self._is_reduction(space, dims):
            self._write_reduction(space, dims)
        else:
            self._write_loop(Space.full(self.stage.dims) if box is None else box)

    def _store(self, number: int, code: str, axes: tuple[Variable, ...], space: Space) -> None:
        """Store total `number` in its buffer."""
        finish = self.reduction.finish
        if finish is not None:
            code = self.source.call(finish, code)
        text = Text(code, axes)
        store(self.state, self.stage, self.stage.buffers[number], text, space, self.box)

    def _empty(self, dims: Space) -> None:
        """Write a reduction of no values: the initial values."""
        block = BlockWriter(self.state, dims)
        for number, init in enumerate(self.reduction.inits):
            text = block.text_of(init)
            self._store(number, text.code, text.axes, dims)

    # ------------------------------------------------------------ products

    def _write_contraction(self, space: Space, dims: Space) -> None:
        """Write a sum of products as a matrix product."""
        (product,) = self.reduction.values
        assert isinstance(product, Apply)
        block = BlockWriter(self.state, space)
        guards = self._pad_arrays(product.arguments, space, "0")
        sides = [block.text_of(side) for side in product.arguments]
        for guard in guards:
            mask = block.mask([guard])
            inside = (k for k, side in enumerate(sides) if set(mask.axes) <= set(side.axes))
            k = next(inside, 0)
            sides[k] = _where(space, mask, sides[k], "0")
        read = {v for side in sides for v in side.axes}
        out = tuple([v for v in dims.variables if v in read])
        letters = dict(zip(space.variables, ascii_letters, strict=False))
        terms = ["".join([letters[v] for v in axes]) for axes in (*[s.axes for s in sides], out)]
        formula = f"{','.join(terms[:-1])}->{terms[-1]}"
        code = f"contract({formula!r}, {sides[0].code}, {sides[1].code})"
        lost = set(space.variables) - set(dims.variables) - read
        if lost:
            count = np.asarray(point_count(lost), self._dtype)
            code = f"{code} * {scalar_text(count)}"
        self._store(0, code, out, dims)

    # ------------------------------------------------------------ reductions

    def _is_reduction(self, space: Space, dims: Space) -> bool:
        """Return True if a NumPy reduction applies and is not slowed down by small windows."""
        reduction = self.reduction
        reduced = set(space.variables) - set(dims.variables)
        if reduction.function.ufunc is None or reduction.runtime or not reduced:
            return False
        if depends_on_axes(reduction.inits[0], space):
            return False
        count = point_count(reduced)
        if count > _SMALL_WINDOW or not _is_windowed(reduction, space):
            return True
        return count >= _WIDE_WINDOW and not _overlaps(reduction, space)

    def _write_reduction(self, space: Space, dims: Space) -> None:
        """Write a NumPy reduction over all ranges."""
        reduction, ufunc = self.reduction, self.reduction.function.ufunc
        reduced = [v for v in space.variables if v not in dims.variables]
        neutral = self._neutral(ufunc)
        guards = self._pad_arrays(reduction.values, space, neutral)
        block = BlockWriter(self.state, space)
        init, value = block.text_of(reduction.inits[0]), block.text_of(reduction.values[0])
        if guards:
            value = _where(space, block.mask(guards), value, neutral)
        if not set(reduced) <= set(value.axes):
            axes = space.order_axes([*value.axes, *reduced])
            sizes = tuple_text(space.size_text(axes))
            value = Text(f"np.broadcast_to({expand_axes(value, axes)}, {sizes})", axes)
        along = tuple([k for k, v in enumerate(value.axes) if v in reduced])
        axis = str(along[0]) if len(along) == 1 else str(along)
        keeps_type = self._dtype.kind in "fc"  # NumPy sums other types in a wider type by default
        options = "" if keeps_type else f", dtype={dtype_text(self._dtype)}"
        if init.code != neutral:
            options += f", initial={init.code}"
        code = f"np.{ufunc.__name__}.reduce({value.code}, {axis}{options})"
        self._store(0, code, tuple([v for v in value.axes if v not in reduced]), dims)

    # ------------------------------------------------------------ scatters

    def _write_scatter(self, scatter: ScatterReduction) -> None:
        """Write a scatter: each value is reduced into the element at its index."""
        stage, reduction = self.stage, self.reduction
        dims = Space.full(stage.dims)
        before = BlockWriter(self.state, dims)
        bases = []
        for buffer, init in zip(stage.buffers, reduction.inits, strict=True):
            text = before.text_of(init)
            bases.append(full_text(stage, buffer, text, dims, None))
        space = Space.full(scatter.dims)
        block = BlockWriter(self.state, space)
        for rt in scatter.runtime:
            block.text_of(rt)
        flat = as_expr(number_of(scatter.index, stage.buffers[0].dims))
        positions = vector_text(space, flat, space.variables, block)
        where = expand_axes(block.mask(scatter.guards), space.variables)
        values = [expand_axes(block.text_of(value), space.variables) for value in scatter.values]
        ufunc = reduction.function.ufunc
        function = f"np.{ufunc.__name__}" if ufunc else self.source.callee(reduction.function)
        arguments = [
            function,
            tuple_text(bases),
            positions,
            where,
            tuple_text(values),
            tuple_text(space.size_text(space.variables)),
        ]
        names = tuple_text([buffer.name for buffer in stage.buffers])
        self.source.text.add(f"{names} = put({', '.join(arguments)})")

    # ------------------------------------------------------------ loops over ranges

    def _write_loop(self, dims: Space) -> None:
        """Write a Python loop over the ranges, vectorised over the dimensions."""
        reduction, ufunc = self.reduction, self.reduction.function.ufunc
        guards: Sequence[Constraint] = reduction.guards
        if ufunc is not None and not reduction.runtime:
            neutral = self._neutral(ufunc)
            guards = self._pad_arrays(reduction.values, dims, neutral)
        is_plain = ufunc is not None and not guards  # totals are updated in place
        block = BlockWriter(self.state, dims)
        sizes = tuple_text(dims.size_text(dims.variables))
        totals = [self.source.names.new("total") for _ in reduction.inits]
        for total, init in zip(totals, reduction.inits, strict=True):
            code = expand_axes(block.text_of(init), dims.variables)
            code = f"np.broadcast_to({code}, {sizes})"
            self.source.text.add(f"{total} = {f'np.array({code})' if is_plain else code}")
            block.track(total, dims.variables)
        with self.source.text.loops(self.ranges):
            self._guarded_step(BlockWriter(self.state, dims, block), totals, guards)
        for number, total in enumerate(totals):
            has_axes = reads_parameter(reduction.function, number, number)
            code = total if has_axes else f"np.broadcast_to({total}, {sizes})"
            self._store(number, code, dims.variables, dims)

    def _guarded_step(
        self, block: BlockWriter, totals: list[str], guards: Sequence[Constraint]
    ) -> None:
        for rt in self.reduction.runtime:
            block.text_of(rt)
        mask = block.mask(guards) if guards else None
        if mask is not None and not mask.axes:
            with self.source.text.indent_below(f"if {mask.code}:"):
                self._step(block, totals, None, False)
        else:
            self._step(block, totals, mask, not guards)

    def _step(
        self, block: BlockWriter, totals: list[str], mask: Text | None, is_plain: bool
    ) -> None:
        function, axes = self.reduction.function, block.space.variables
        values = [expand_axes(block.text_of(value), axes) for value in self.reduction.values]
        code = self.source.call(function, *totals, *values)
        ufunc = function.ufunc
        if ufunc is not None and is_plain:
            code = f"np.{ufunc.__name__}({totals[0]}, {values[0]}, out={totals[0]})"
            self.source.text.add(code)
            return
        if mask is None:
            self.source.text.add(f"{', '.join(totals)} = {code}")
            return
        results = [self.source.names.new("updated") for _ in totals]
        self.source.text.add(f"{', '.join(results)} = {code}")
        where = self.source.names.new("where")
        self.source.text.add(f"{where} = {expand_axes(mask, axes)}")
        for total, new in zip(totals, results, strict=True):
            self.source.text.add(f"{total} = np.where({where}, {new}, {total})")

    # ------------------------------------------------------------ padding

    def _pad_arrays(self, values: Sequence[Node], space: Space, fill: str) -> list[Constraint]:
        """Pad arrays that are read out of bounds; return the guards that remain.

        The padding value is `fill`, a neutral element of the reduction.
        """
        guards = [Constraint(space.swap(g.expr), g.lower, g.upper) for g in self.reduction.guards]
        remaining = [g for g in guards if not g.is_true]
        for node in topological_order(values):
            if not remaining or not isinstance(node, BufferRead) or not _is_plain(values, node):
                continue
            if node.runtime or node.buffer in self.state.offsets:
                continue
            padding = _padding(node, space, remaining)
            if padding is None:
                continue
            widths, satisfied = padding
            name = self.source.names.new(f"{node.buffer.name}_padded")
            code = f"np.pad({node.buffer.name}, {tuple_text(widths)}, constant_values={fill})"
            self.source.text.add(f"{name} = {code}")
            wide = [n + a + b for n, (a, b) in zip(node.buffer.dims, widths, strict=True)]
            self.state.track(name, prod(wide))
            self.state.padded[node] = name, tuple(wide), tuple([low for low, _ in widths])
            remaining = [g for g in remaining if g not in satisfied]
        return remaining

    # ------------------------------------------------------------ types

    @property
    def _dtype(self) -> np.dtype[Any]:
        """Type of the (first) total."""
        return dtype_of(self.reduction.inits[0])

    def _neutral(self, ufunc: Any) -> str:
        """Return the neutral element of a ufunc."""
        return scalar_text(np.asarray(neutral(ufunc, self._dtype)))


def _where(space: Space, mask: Text, value: Text, fill: str) -> Text:
    """Return the value where the mask is true, and `fill` elsewhere."""
    axes = space.order_axes([*mask.axes, *value.axes])
    condition, code = expand_axes(mask, axes), expand_axes(value, axes)
    return Text(f"np.where({condition}, {code}, {fill})", axes)


def _padding(
    node: BufferRead, space: Space, guards: Sequence[Constraint]
) -> tuple[list[tuple[int, int]], set[Constraint]] | None:
    """Return the padding that keeps a read in bounds, and the guards that it satisfies.

    None if the read is out of bounds along a dimension without a guard on its index.
    """
    widths: list[tuple[int, int]] = []
    satisfied: set[Constraint] = set()
    for e, size in zip(map(space.swap, node.index), node.buffer.dims, strict=True):
        low, high = e.bounds
        widths.append((max(0, -low), max(0, high - size + 1)))
        if any(widths[-1]):
            own = {g for g in guards if _keeps_inside(g, e, size)}
            if not own:
                return None
            satisfied |= own
    return (widths, satisfied) if satisfied else None


def _is_windowed(reduction: Reduction, space: Space) -> bool:
    """Return True if an index depends on several axes, or if there are guards."""
    if reduction.guards:
        return True
    return any(
        len(space.order_axes(space.swap(e).variables())) > 1
        for node in topological_order(reduction.values)
        if isinstance(node, BufferRead)
        for e in node.index
    )


def _overlaps(reduction: Reduction, space: Space) -> bool:
    """Return True if windows overlap, or if there are guards."""
    for node in topological_order(reduction.values):
        for e in map(space.swap, node.index if isinstance(node, BufferRead) else ()):
            steps = sorted(
                (abs(step), atom.key, atom)
                for atom, step in e.terms
                if isinstance(atom, Variable) and atom in space.variables
            )
            extent = 1
            for step, _, v in steps:
                if step < extent:
                    return True
                extent += step * (v.upper - v.lower)
    return bool(reduction.guards)


def _is_plain(values: Sequence[Node], node: BufferRead) -> bool:
    """Return True if the read is itself a reduced value, possibly after a type conversion."""
    return any(
        value is node
        or (
            isinstance(value, Apply)
            and value.arguments == (node,)
            and value.function.name.startswith("to_")
        )
        for value in values
    )


def _keeps_inside(guard: Constraint, index: Expr, size: int) -> bool:
    """Return True if a guard bounds an index exactly to a dimension of this size."""
    offset = guard.expr - index
    if offset.is_constant:
        return guard.lower - offset.constant <= 0 and guard.upper - offset.constant >= size - 1
    return False
