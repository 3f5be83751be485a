"""Parts of blocks in their arrays: the elements of a step, and the steps of an element.

>>> from indexing.pallas.calls import GridDimension
>>> from simplifier.linear import as_expr
>>> grid = (GridDimension("d0", as_expr(4)),)
>>> array = (as_expr(32),), "f32", 32, (BlockDimension("blocked", 8),)
>>> step = Variable("d0", 0, 3).as_expr()
>>> spec = BlockSpecification("operand 0", "", False, *array, (step,), (), "vmem")
>>> call = KernelCall("k", "tpu", grid, (), frozenset(), (), (spec, spec))
>>> block = placed_part(call, spec, WHOLE)
>>> print(block.elements)
(d0)[s0] -> (d0 * 8 + s0), domain: d0 in [0, 3], s0 in [0, 7]
>>> print(block.steps(Shape("f32", (32,))))
(d0) -> (d0 floordiv 8), domain: d0 in [0, 31]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from hlo.shapes.shape import Shape
from indexing.kernels.mosaic.views import Box
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.pallas.block_maps import PlacedOperand
from indexing.pallas.calls import BlockDimension, BlockSpecification, KernelCall
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown

Part: TypeAlias = tuple[Box, tuple[Constraint, ...]]
"""A part of a block, and conditions on the grid without which it is not accessed."""

WHOLE: Final[Part] = (None, ())


@dataclass(frozen=True, slots=True)
class PlacedPart:
    """A part of the blocks of an operand, with the conditions of its access."""

    placed: PlacedOperand
    conditions: tuple[Constraint, ...]

    @property
    def elements(self) -> IndexingMap:
        """The map from a step of the grid to the elements of the array in the part."""
        read = self.placed.stated_elements
        return replace(read, constraints=(*read.constraints, *self.conditions)).simplify()

    def steps(self, array: Shape) -> IndexingMap:
        """Return the map from an element of the array to the steps with a part that has it."""
        starts, sizes = self.placed.starts, [each.size for each in self.placed.block]
        solved: dict[Variable, Expr] = {}
        others: list[tuple[Variable, Expr, int]] = []
        for d, start, size in zip(dims(array), starts.results, sizes, strict=True):
            variable = _block_number(start, size)
            if variable in starts.dims and variable not in solved:
                solved[variable] = (d.as_expr() - start.constant) // size
            else:
                others.append((d, start, size))
        free = [v for v in starts.dims if v not in solved]
        ranges = [v.renamed(f"s{k}") for k, v in enumerate(free)]
        values = {**solved, **{v: s.as_expr() for v, s in zip(free, ranges, strict=True)}}
        swap = Substitution(values)
        conditions = [*starts.constraints, *self.conditions]
        return IndexingMap.of(
            dims(array),
            [values[v] for v in starts.dims],
            ranges=ranges,
            runtime=[replace(rt, index=tuple(map(swap, rt.index))) for rt in starts.runtime],
            constraints=[
                *[Constraint(value, *v.bounds) for v, value in solved.items()],
                *[Constraint(d - swap(start), 0, size - 1) for d, start, size in others],
                *[c.with_expr(swap(c.expr)) for c in conditions],
            ],
        ).simplify()


def _block_number(start: Expr, size: int) -> Variable | None:
    """Return the variable that counts the blocks if they start at multiples of their size."""
    if len(start.parts) != 1:
        return None
    ((atom, step),) = start.parts.items()
    return atom if step == size and isinstance(atom, Variable) else None


def placed_part(call: KernelCall, spec: BlockSpecification, part: Part) -> PlacedPart | Unknown:
    """Return a part of the blocks of an operand; `Unknown` if the blocks have no formula."""
    box, conditions = part
    if box is not None and not isinstance(spec.block, Unknown):
        if isinstance(spec.index, Unknown):
            return spec.index
        starts = [each.start(index) for each, index in zip(spec.block, spec.index, strict=True)]
        spec = replace(
            spec,
            block=tuple([BlockDimension("element", size) for _, size in box]),
            index=tuple([start + first for start, (first, _) in zip(starts, box, strict=True)]),
        )
    placed = PlacedOperand.of(call, spec)
    return placed if isinstance(placed, Unknown) else PlacedPart(placed, conditions)
