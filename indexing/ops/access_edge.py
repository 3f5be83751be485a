"""`AccessEdge`: the maps between one array that an instruction reads and one that it writes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from hlo.modules.module import Instruction
from hlo.shapes.shape import UNBOUNDED
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef, Path, array_at
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.indexing_map import dims as dims_of_sizes
from indexing.maps.reasons import Reason
from simplifier.atoms import Variable
from simplifier.unknown import first_unknown


@dataclass(frozen=True, slots=True)
class AccessEdge:
    """The maps between one array that an instruction reads and one array that it writes.

    Attributes:
        operand, operand_path: the array that is read, by operand number and path of the leaf.
        output_path: the leaf of the result that is written.
        maps: from output to operand on backward edges, from operand to output on forward edges.
        unknown: the reason if no maps can represent the access.
        reasons: why `maps` have the grade "may"; ``()`` if all of them are exact.
        control: those of `maps` whose elements decide only which iterations or branches are
            executed.
    """

    operand: int
    operand_path: Path
    output_path: Path
    maps: tuple[IndexingMap, ...] = ()
    unknown: Unknown | None = None
    reasons: tuple[Reason, ...] = ()
    control: Collection[IndexingMap] = ()

    @property
    def is_of_shapes(self) -> bool:
        """True if no part refers to an instruction: the edge follows from an op and its shapes."""
        return self.unknown is None and not self.reasons and not any(m.runtime for m in self.maps)

    @property
    def is_exact(self) -> bool:
        """True if the edge has all maps, and none of them is `may`."""
        return (
            self.unknown is None and not self.reasons and "may" not in [m.grade for m in self.maps]
        )

    def over_approximate(self, reason: Reason) -> AccessEdge:
        """Return the edge with `may` maps, and one more reason for this grade."""
        edge = self.change_maps(lambda m: [m.with_grade("may")])
        return replace(edge, reasons=(*self.reasons, reason) if self.maps else ())

    def change_maps(self, change: Callable[[IndexingMap], Iterable[IndexingMap]]) -> AccessEdge:
        """Return the edge with other maps instead of each map."""
        maps = {m: tuple(change(m)) for m in self.maps}
        data = {new for m, others in maps.items() if m not in self.control for new in others}
        every = tuple([new for m in self.maps for new in maps[m]])
        return replace(self, maps=every, control={m for m in every if m not in data})


def identity(array: ArrayRef) -> tuple[IndexingMap, ...]:
    """Return the identity map of an array; no map for a leaf without elements, such as a token."""
    shape = array.array_shape
    return () if shape is None else _identity(shape.dims)


@lru_cache(maxsize=1 << 9)
def _identity(sizes: tuple[int, ...]) -> tuple[IndexingMap, ...]:
    return (IndexingMap.identity(sizes),)


def dims(array: ArrayRef) -> tuple[Variable, ...] | None:
    """Return the dimensions of maps from an array; None for a leaf without elements."""
    shape = array.array_shape
    return None if shape is None else _dims(shape.dims)


_dims: Final = lru_cache(maxsize=1 << 9)(dims_of_sizes)


def why_unbounded(array: ArrayRef) -> Unknown | None:
    """Return the reason why an array with a dimension of unknown size has no maps, else None."""
    return _why_unbounded(array.instruction, array.path)


def bound_edge(instruction: Instruction, edge: AccessEdge) -> AccessEdge:
    """Return an edge, which is unknown between arrays that have a dimension of unknown size.

    The maps of a `MappedOp` need no such check: its `reads` and `writes` give the reason.
    """
    if not edge.maps:
        return edge
    reason = _why_unbounded(instruction, edge.output_path)
    if reason is None:
        reason = _why_unbounded(instruction.operands[edge.operand], edge.operand_path)
    if reason is None:
        return edge
    return replace(edge, maps=(), unknown=first_unknown(edge.unknown, reason))


def _why_unbounded(instruction: Instruction, path: Path) -> Unknown | None:
    shape = array_at(instruction.shape, path)
    if shape is None or UNBOUNDED not in shape.dims:
        return None
    reason = f"`{instruction.name}`: {shape} has a dimension of unknown size"
    return Unknown(reason, instruction)
