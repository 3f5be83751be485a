"""Values of one step of a block: elements of arrays over the axes of the tile space.

A value has one dimension for each axis on which it depends: a tiled dimension or a loop.  A
broadcast, a transpose or a reshape therefore computes nothing: its elements are those of its
operand, which the maps of the tiles have reached already.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from indexing.maps.arrays import ArrayRef
from indexing.ops.functions import ScalarFunction
from indexing.tiling.loops.axes import joint_axes
from indexing.tiling.sizes.tile_sizes import dimension_of
from simplifier.constraints import Constraint
from simplifier.linear import Expr

Guards: TypeAlias = tuple[Constraint, ...]
TotalState: TypeAlias = Literal["running", "previous", "final"]


@dataclass(frozen=True, slots=True, eq=False)
class TileLoad:
    """The element of an input array at an index.

    Attributes:
        array: the array.
        index: the index, by the dimensions of the tile space.
        kind: the element type.
        axes: the axes on which the index depends, ascending.
    """

    array: ArrayRef
    index: tuple[Expr, ...]
    kind: str
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TileScalar:
    """A number of the text."""

    value: NDArray[Any]
    kind: str

    @property
    def axes(self) -> tuple[int, ...]:
        """No axis."""
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class TileIndex:
    """An index as a number: the element of an iota."""

    expr: Expr
    kind: str
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TileApply:
    """``function(arguments)``; `name` is the name of the instruction."""

    function: ScalarFunction
    arguments: tuple[TileValue, ...]
    kind: str
    name: str

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of all arguments."""
        return joint_axes([each.axes for each in self.arguments])


@dataclass(frozen=True, slots=True, eq=False)
class TileChoice:
    """The value of the first case whose guards hold, or `otherwise`."""

    cases: tuple[tuple[Guards, TileValue], ...]
    otherwise: TileValue
    kind: str
    name: str

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of all values and guards."""
        parts = [self.otherwise.axes]
        for guards, value in self.cases:
            parts += [value.axes, guard_axes(guards)]
        return joint_axes(parts)


@dataclass(frozen=True, slots=True, eq=False)
class TileFold:
    """The combination of terms over axes, where the guards hold.

    Attributes:
        combine: the function, as a ufunc.
        terms: the value that is combined, or two factors of it.
        init: the first value of the combination; None for the neutral element.
        over: the axes.
        guards: conditions under which a term counts.
        total_kind: the element type in which it is accumulated.
        kind: the element type of the result.
        name: the name of the instruction.
    """

    combine: np.ufunc
    terms: tuple[TileValue, ...]
    init: TileValue | None
    over: tuple[int, ...]
    guards: Guards
    total_kind: str
    kind: str
    name: str

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of the terms without those that are combined."""
        parts = [*[term.axes for term in self.terms], guard_axes(self.guards)]
        return tuple([axis for axis in joint_axes(parts) if axis not in self.over])


@dataclass(frozen=True, slots=True, eq=False)
class TileTotal:
    """The result of a nest.

    Attributes:
        number: the number of the nest.
        state: "final" after its loops; in a step, "running" with this step, "previous" without.
    """

    number: int
    state: TotalState
    kind: str
    axes: tuple[int, ...]
    name: str


TileValue: TypeAlias = (
    TileLoad | TileScalar | TileIndex | TileApply | TileChoice | TileFold | TileTotal
)


def guard_axes(guards: Iterable[Constraint]) -> tuple[int, ...]:
    """Return the axes on which guards depend, ascending."""
    return axes_of_exprs([guard.expr for guard in guards])


def axes_of_exprs(exprs: Iterable[Expr]) -> tuple[int, ...]:
    """Return the axes on which expressions depend, ascending."""
    return tuple(sorted({dimension_of(v) for expr in exprs for v in expr.variables()}))


def parts_of(value: TileValue) -> tuple[TileValue, ...]:
    """Return the values from which a value is computed."""
    match value:
        case TileApply():
            return value.arguments
        case TileChoice():
            return (*[case for _, case in value.cases], value.otherwise)
        case TileFold():
            return value.terms if value.init is None else (*value.terms, value.init)
        case TileLoad() | TileScalar() | TileIndex() | TileTotal():
            return ()


def in_order(roots: Iterable[TileValue]) -> list[TileValue]:
    """Return values and all that they are computed from, parts before users, each once."""
    order: dict[TileValue, None] = {}
    stack: list[tuple[TileValue, bool]] = [(root, False) for root in reversed(list(roots))]
    while stack:
        value, is_ready = stack.pop()
        if value in order:
            continue
        if is_ready:
            order[value] = None
        else:
            stack.append((value, True))
            stack += [(part, False) for part in reversed(parts_of(value))]
    return list(order)
