"""Values that describe a loop: `InductionVariable`, `TripCount`, `LoopFacts`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hlo.arguments import checked
from hlo.modules.module import Instruction
from indexing.maps.answers import Path, Unknown
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable
from simplifier.linear import Affine, Expr, constant

Origin: TypeAlias = Literal["derived", "known_trip_count"]


@dataclass(frozen=True, slots=True)
class TripCount:
    """The number of iterations of a loop.

    Attributes:
        lower, upper: inclusive bounds; equal if the program determines the number.
        iterations: the number as a formula of `runtime`; None if only the bounds are known.
        runtime: the loop-invariant values that the formula mentions.
        origin: ``derived`` from condition and body, or the compiler's ``known_trip_count``.
        obstacle: why a part of the condition, which may end the loop earlier, gives no number.

    >>> import hlo, indexing
    >>> loop = hlo.load("examples/rnn.pre.hlo").find("while.6")[0]
    >>> count = indexing.trip_count(loop)
    >>> count.number, count.origin
    (7, 'derived')
    """

    lower: int
    upper: int
    iterations: Expr | None = None
    runtime: tuple[RuntimeVariable, ...] = ()
    origin: Origin = "derived"
    obstacle: str = ""

    @classmethod
    def known(cls, count: int, origin: Origin = "derived") -> TripCount:
        """Return the trip count of a loop that always executes `count` iterations.

        >>> print(TripCount.known(12))
        12
        """
        return cls(count, count, constant(count), (), origin)

    @property
    def number(self) -> int | None:
        """The number of iterations if the program determines it, else None."""
        return self.lower if self.lower == self.upper else None

    def __str__(self) -> str:
        if self.number is not None:
            return str(self.number)
        interval = f"[{self.lower}, {self.upper}]"
        return interval if self.iterations is None else f"{self.iterations} in {interval}"


@dataclass(frozen=True, slots=True)
class InductionVariable:
    """A carried integer that changes by the same step in each iteration.

    Attributes:
        path: its leaf of the carried tuple.
        element_type: its integer type.
        start: its value at the start of iteration 0, an expression over `runtime`.
        step: its change in each iteration, an expression over `runtime`.
        wraps: False if its values, until the loop exits, are proved to be in the range of the type;
            otherwise `at` is the value modulo ``2^bits``.
        direction, bound: the loop continues while the value compares so with the loop-invariant
            `bound`; empty and None for variables that the condition does not compare so.
        runtime: the loop-invariant values that the expressions mention.

    >>> import hlo, indexing
    >>> loop = hlo.load("examples/rnn.pre.hlo").find("while.6")[0]
    >>> (counter,) = indexing.induction_variables(loop)
    >>> counter.path, counter.direction, str(counter.bound), str(counter.at(4))
    ((0,), 'LT', '7', '4')
    """

    path: Path
    element_type: str
    start: Expr
    step: Expr
    wraps: bool
    direction: str
    bound: Expr | None
    runtime: tuple[RuntimeVariable, ...]

    @checked
    def at(self, iteration: Affine) -> Expr:
        """Return the value at the start of an iteration, counted from 0: ``start + i · step``.

        >>> import hlo, indexing
        >>> loop = hlo.load("examples/rnn.pre.hlo").find("while.6")[0]
        >>> print(indexing.induction_variables(loop)[0].at(3))
        3
        """
        return self.start + self.step * iteration

    def __str__(self) -> str:
        path = ", ".join(map(str, self.path))
        condition = "" if self.bound is None else f" while {self.direction} {self.bound}"
        modulo = f" (modulo 2^bits of {self.element_type})" if self.wraps else ""
        return f"element {{{path}}}: from {self.start} by {self.step}{condition}{modulo}"


@dataclass(frozen=True, slots=True)
class LoopFacts:
    """The facts about a loop that hold in one call stack.

    Attributes:
        loop: the ``while``.
        calls: the call stack of its computation.
        invariants: the carried leaves that the body forwards unchanged.
        variables: the induction variables, in the order of the leaves.
        trip_count: the number of iterations, or the reason why it is unknown.

    >>> import hlo, indexing
    >>> facts = indexing.loop_facts(hlo.load("examples/rnn.pre.hlo").find("while.6")[0])
    >>> facts.trip_count.number, facts.invariants, [v.path for v in facts.variables]
    (7, ((3,), (4,), (5,), (6,)), [(0,)])
    """

    loop: Instruction
    calls: tuple[Instruction, ...]
    invariants: tuple[Path, ...]
    variables: tuple[InductionVariable, ...]
    trip_count: TripCount | Unknown

    def variable(self, path: Path) -> InductionVariable | None:
        """Return the induction variable at a leaf, or None.

        >>> import hlo, indexing
        >>> facts = indexing.loop_facts(hlo.load("examples/rnn.pre.hlo").find("while.6")[0])
        >>> i = facts.variable((0,))
        >>> print(i.start, i.step, i.direction, i.bound)  # for i = 0; i < 7; i += 1
        0 1 LT 7
        """
        return next((each for each in self.variables if each.path == path), None)


def variables_in(
    exprs: Iterable[Expr | None], runtime: Mapping[Variable, RuntimeVariable]
) -> tuple[RuntimeVariable, ...]:
    """Return the runtime variables that expressions mention, in the order of `runtime`."""
    mentioned = {v for expr in exprs if expr is not None for v in expr.variables()}
    return tuple([rt for variable, rt in runtime.items() if variable in mentioned])
