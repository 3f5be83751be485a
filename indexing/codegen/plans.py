"""A loop nest while it is made: elements are keys, and plans say what they are made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from indexing.codegen.nest import Buffer, Element, Function
from indexing.codegen.rules import Folds
from indexing.codegen.values import Value
from indexing.maps.answers import Unknown
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr

Index: TypeAlias = tuple[Expr, ...]
Key: TypeAlias = "tuple[StagePlan, Value, Index]"
"""An element of an array at an index over the loops of a stage."""


class NotSaid(Exception):
    """Ends the making of a nest: something on the way cannot be said."""

    def __init__(self, unknown: Unknown) -> None:
        super().__init__(unknown.reason)
        self.unknown = unknown


@dataclass(eq=False, slots=True)
class StagePlan:
    """A stage while it is made.

    Attributes:
        number: orders stages: one reads only those with smaller numbers.
        buffers: by the leaf of the result.
        is_windowed: elements are read again and again.
        runtime: the runtime variables that are known in it, by what they are.
    """

    number: int
    buffers: dict[int, Buffer]
    dims: tuple[Variable, ...]
    is_windowed: bool = False
    runtime: dict[object, Wanted] = field(default_factory=dict)
    body: FoldPlan | Key | None = None


@dataclass(eq=False, slots=True)
class Wanted:
    """A runtime variable while the nest is made: its variable, and what its value is."""

    variable: Variable
    key: Key
    clamp: tuple[int, int]


@dataclass(eq=False, slots=True)
class FoldPlan:
    """A fold while its parts are only demanded."""

    value: Value
    rule: Folds
    inits: list[Key]
    values: list[Key]
    ranges: tuple[Variable, ...]
    guards: tuple[Constraint, ...]
    runtime: tuple[Wanted, ...]
    placing: PlacingPlan | None = None


@dataclass(eq=False, slots=True)
class PlacingPlan:
    """The fold from the other side while its parts are only demanded."""

    dims: tuple[Variable, ...]
    values: list[Key]
    index: tuple[Expr, ...]
    guards: tuple[Constraint, ...]
    runtime: tuple[Wanted, ...]


@dataclass(eq=False, slots=True)
class CasePlan:
    """One of several places where an element may come from."""

    guards: tuple[Constraint, ...]
    key: Key
    runtime: tuple[Wanted, ...]


@dataclass(eq=False, slots=True)
class Plan:
    """How a demanded element is made, from the keys of others."""

    keys: tuple[Key, ...] = ()
    function: Function | None = None
    cases: tuple[CasePlan, ...] = ()
    made: Element | None = None
    runtime: tuple[Wanted, ...] = ()
    rest: tuple[Constraint, ...] = ()
