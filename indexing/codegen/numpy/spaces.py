"""Spaces: boxes of indices over which a stage is vectorised, with one axis per loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from indexing.codegen.graph import Node, Reduction, exprs_of, topological_order, with_cases
from indexing.codegen.stages import Stage
from indexing.codegen.text import index_text
from simplifier.atoms import Floor, Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution


@dataclass(frozen=True, slots=True)
class LoopAxis:
    """A loop as an axis of arrays: ``begin <= variable < end``.

    The ends are constants, or depend on variables that are constant in the box.
    """

    variable: Variable
    begin: Expr
    end: Expr

    @classmethod
    def full(cls, variable: Variable) -> LoopAxis:
        """Return the axis of all values of a variable."""
        return cls(variable, as_expr(variable.lower), as_expr(variable.upper + 1))

    @property
    def size(self) -> Expr:
        """The number of values."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Space:
    """Axes in order; `swap` substitutes them for the variables of the stage."""

    axes: tuple[LoopAxis, ...]
    swap: Callable[[Expr], Expr] = field(default_factory=lambda: Substitution({}))

    @classmethod
    def full(cls, variables: Iterable[Variable]) -> Space:
        """Return the space of all values; variables with a single value have no axis."""
        return cls(tuple([LoopAxis.full(v) for v in variables if v.lower < v.upper]))

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple([axis.variable for axis in self.axes])

    def axis(self, variable: Variable) -> LoopAxis:
        """Return the axis of a variable."""
        return next(axis for axis in self.axes if axis.variable is variable)

    def order_axes(self, variables: Iterable[Variable]) -> tuple[Variable, ...]:
        """Return those of `variables` that are axes, in the order of the axes, each once."""
        present = set(variables)
        return tuple([axis.variable for axis in self.axes if axis.variable in present])

    def size_text(self, variables: Sequence[Variable]) -> list[str]:
        """Return the size of each variable's axis as code."""
        return [index_text(self.axis(v).size) for v in variables]


def depends_on_axes(node: Node, space: Space) -> bool:
    """Return True if the value of a node varies along an axis."""
    exprs = map(space.swap, exprs_of(topological_order([node], with_cases)))
    return any(space.order_axes(expr.variables()) for expr in exprs)


def split_space(stage: Stage, variables: Sequence[Variable]) -> Space:
    """Return the full space, with each variable that is divided split into quotient and remainder.

    ``d0 floordiv 4`` and ``d0 mod 4`` become axes, which avoids index arrays.
    """
    divisors: dict[Variable, set[int]] = {}
    guards = stage.body.guards if isinstance(stage.body, Reduction) else ()
    for expr in (*exprs_of(stage.nodes()), *[guard.expr for guard in guards]):
        _note_divisors(expr, divisors)
    axes: list[LoopAxis] = []
    values: dict[Variable, Expr] = {}
    for v in variables:
        if v.lower == v.upper:
            continue
        steps = _chain(divisors.get(v, set()), v)
        if not steps:
            axes.append(LoopAxis.full(v))
            continue
        total = as_expr(0)
        for k, (step, above) in enumerate(zip(steps, [v.upper + 1, *steps], strict=False)):
            digit = Variable(f"{v.name}{'abcdefgh'[k]}", 0, above // step - 1)
            total = total + digit.as_expr() * step
            axes.append(LoopAxis.full(digit))
        values[v] = total
    return Space(tuple(axes), Substitution(values)) if values else Space(tuple(axes))


def _note_divisors(expr: Expr, divisors: dict[Variable, set[int]]) -> None:
    for atom, _ in expr.terms:
        if isinstance(atom, Floor):
            terms = atom.numerator.terms
            if len(terms) == 1 and isinstance(terms[0][0], Variable) and terms[0][1] == 1:
                if not atom.numerator.constant:
                    divisors.setdefault(terms[0][0], set()).add(atom.divisor)
            _note_divisors(atom.numerator, divisors)


def _chain(divisors: set[int], v: Variable) -> list[int]:
    """Return the place values of a mixed-radix split of a variable, largest first, or []."""
    steps = sorted(divisors, reverse=True)
    size = v.upper + 1
    if v.lower or not steps or len(steps) > 7:
        return []
    if any(a % b or a == b for a, b in zip([size, *steps], steps, strict=False)):
        return []
    return [*steps, 1]


@dataclass(frozen=True, slots=True)
class GuardedBox:
    """The box of a space in which the guards of a case hold.

    Attributes:
        space: the axes of the box.
        slices: the slice of each axis of the enclosing space, as code.
    """

    space: Space
    slices: tuple[str, ...]


def guarded_box(space: Space, guards: Sequence[Constraint]) -> GuardedBox | None:
    """Return the box in which guards hold; None if it is not a box."""
    values: dict[Variable, Expr] = {}
    axes, slices = [], []
    by_variable: dict[Variable, list[Constraint]] = {v: [] for v in space.variables}
    for guard in guards:
        expr = space.swap(guard.expr)
        inside = [v for v in dict.fromkeys(expr.variables()) if v in by_variable]
        if len(inside) != 1:
            return None
        by_variable[inside[0]].append(Constraint(expr, guard.lower, guard.upper))
    for axis in space.axes:
        own = by_variable[axis.variable]
        if not own:
            axes.append(axis)
            slices.append(":")
            continue
        progression = _interval(axis.variable, own) or _progression(axis, own)
        if progression is None:
            return None
        begin, count, step = progression
        offset = begin - axis.begin
        if count == 1:
            values[axis.variable] = begin
            slices.append(index_text(offset))
            continue
        fresh = Variable(f"{axis.variable.name}_", 0, count - 1)
        values[axis.variable] = fresh.as_expr() * step + begin
        axes.append(LoopAxis.full(fresh))
        last = index_text(offset + (count - 1) * step + 1)
        slices.append(f"{index_text(offset)}:{last}{f':{step}' if step > 1 else ''}")
    inner, before = Substitution(values), space.swap
    return GuardedBox(Space(tuple(axes), lambda expr: inner(before(expr))), tuple(slices))


def _interval(v: Variable, guards: Sequence[Constraint]) -> tuple[Expr, int, int] | None:
    """Return begin, count and step if the guards bound ``v + rest`` with a scalar rest."""
    ends = [_ends(v, guard) for guard in guards]
    if any(pair is None for pair in ends):
        return None
    pairs = [pair for pair in ends if pair is not None]
    if all(low.is_constant for low, _ in pairs):
        begin = as_expr(max([v.lower, *[low.constant for low, _ in pairs]]))
        end = as_expr(min([v.upper, *[high.constant for _, high in pairs]]))
    elif len(pairs) == 1 and v.lower <= pairs[0][0].bounds[0] <= pairs[0][1].bounds[1] <= v.upper:
        begin, end = pairs[0]
    else:
        return None  # the interval may be cut off at the bounds of the variable
    count = end - begin + 1
    return (begin, count.constant, 1) if count.is_constant and count.constant > 0 else None


def _ends(v: Variable, guard: Constraint) -> tuple[Expr, Expr] | None:
    """Return the bounds of `v` if the guard bounds ``v + rest`` or ``rest − v``."""
    coefficient = dict(guard.expr.terms).get(v, 0)
    rest = guard.expr - v.as_expr() * coefficient
    if v in rest.variables() or coefficient not in (1, -1):
        return None
    if coefficient == 1:
        return guard.lower - rest, guard.upper - rest
    return rest - guard.upper, rest - guard.lower


# Guards that are not bounds of a variable are enumerated on axes up to this size.
_MAX_ENUMERATED = 4096


def _progression(axis: LoopAxis, guards: Sequence[Constraint]) -> tuple[Expr, int, int] | None:
    """Return begin, count and step of the values that satisfy guards, if evenly spaced."""
    v = axis.variable
    if v.upper - v.lower >= _MAX_ENUMERATED or any(set(g.expr.variables()) != {v} for g in guards):
        return None
    values = [
        n
        for n in range(v.lower, v.upper + 1)
        if all(guard.lower <= guard.expr.value({v: n}) <= guard.upper for guard in guards)
    ]
    if not values:
        return None
    step = values[1] - values[0] if len(values) > 1 else 1
    if any(b - a != step for a, b in pairwise(values)):
        return None
    return as_expr(values[0]), len(values), step
