"""Bounds of the reads of scalar-prefetch operands by index maps."""

from __future__ import annotations

from dataclasses import dataclass

from indexing.pallas.block_maps import PlacedOperand, at_least, at_most
from indexing.pallas.bounds import ArrayIndex, BoundsWord, GridPoint
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class ScalarBoundsVerdict:
    """The verdict about the scalars that an index map reads.

    Attributes:
        word: "inside", "out", or "may": the index depends on other scalars, or is not decided.
        at: the first grid point that reads outside of a scalar array, and the element.
    """

    word: BoundsWord
    at: tuple[GridPoint, ArrayIndex] | None = None


def scalar_bounds_verdict(operand: PlacedOperand) -> ScalarBoundsVerdict | None:
    """Return the verdict about the scalars that an index map reads; `None` if it reads none."""
    sizes = {scalar.name: scalar.sizes for scalar in operand.call.scalars}
    if not operand.scalars:
        return None
    for rt in operand.spec.runtime:
        for index, size in zip(rt.index, sizes[str(rt.source_name)], strict=True):
            for fails in (at_most(index, -1), at_least(index, size)):
                point = operand.first([fails])
                if isinstance(point, Unknown):
                    return ScalarBoundsVerdict("may")
                if point is not None:
                    step = tuple([point[v] for v in operand.starts.dims])
                    element = tuple([i.value(point) for i in rt.index])
                    mentioned = {v for i in rt.index for v in i.variables()}
                    sure = mentioned.isdisjoint(operand.scalars) and not operand.call.dynamic
                    return ScalarBoundsVerdict("out" if sure else "may", (step, element))
    return ScalarBoundsVerdict("inside")
