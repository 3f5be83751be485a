"""Computations applied to arguments, and the interface by which their formulas are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from hlo.modules.module import Computation
from indexing.equivalence.values.formulas.numbering import NumberedArray, Numbering
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.terms.terms import Formula, FormulaTable
from indexing.maps.answers import Unknown
from indexing.maps.arrays import Path
from indexing.maps.indexing_map import dims
from simplifier.linear import Expr

Arguments: TypeAlias = Mapping[tuple[int, Path], Formula]


@dataclass(slots=True)
class Frame:
    """A computation applied to arguments.

    Attributes:
        arguments: the formula of each leaf of an argument, over its own dimensions.
        bodies: the formulas of arrays of the computation, by number.
        level: the number of loops around it.
        loops: the analyses of loops of the computation, by the numbers of their arrays.
    """

    arguments: Arguments
    bodies: dict[int, Formula] = field(default_factory=dict)
    level: int = 0
    loops: dict[Hashable, Any] = field(default_factory=dict)


class Bodies(Protocol):
    """Formulas of arrays (`indexing.equivalence.values.formulas.elements.Elements`)."""

    numbering: Numbering
    table: FormulaTable
    algebra: FormulaAlgebra
    trusted: Counter[str]
    expands: bool
    origins: dict[int, list[int]]

    def is_after(self, array: NumberedArray) -> bool:
        """Return True if the program after, or a program that is not known, computes an array."""

    def is_in_both(self, array: NumberedArray) -> bool:
        """Return True if both programs compute an array, or programs that are not known."""

    def function(self, computation: Computation) -> tuple[Formula, ...]:
        """Return the formulas of the results of a computation, over symbols for its arguments."""

    def apply_computation(
        self, computation: Computation, arguments: Sequence[Formula]
    ) -> Formula | Unknown:
        """Return the result of a computation of scalars; unknown if it has other arrays."""

    def body(self, array: NumberedArray, frame: Frame) -> Formula:
        """Return the formula of an element of an array."""


def element_at(
    bodies: Bodies, array: NumberedArray, frame: Frame, index: Sequence[Expr]
) -> Formula:
    """Return the formula of the element of an array at an index."""
    assert array.shape is not None
    values = dict(zip(dims(array.shape), index, strict=True))
    return bodies.algebra.rewriting(values)(bodies.body(array, frame))
