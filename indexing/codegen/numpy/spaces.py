"""The box of indices over which a stage is computed at once, with one axis for each loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from indexing.codegen.graph import Fold, Node, Stage, exprs_of, in_order, with_cases
from indexing.codegen.text import index_text
from simplifier.atoms import Floor, Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop as an axis of arrays: `variable` runs from `begin` to `end`, which is left out.

    The ends are numbers, or depend on variables that have one value for all of the box.
    """

    variable: Variable
    begin: Expr
    end: Expr

    @classmethod
    def whole(cls, variable: Variable) -> Axis:
        """All values of the variable."""
        return cls(variable, as_expr(variable.lower), as_expr(variable.upper + 1))

    @property
    def size(self) -> Expr:
        """How many values there are."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Space:
    """Axes in order; `swap` expresses the variables of the stage by them."""

    axes: tuple[Axis, ...]
    swap: Callable[[Expr], Expr] = field(default_factory=lambda: Substitution({}))

    @classmethod
    def whole(cls, variables: Iterable[Variable]) -> Space:
        """All values of the variables; those with just one are no axis."""
        return cls(tuple([Axis.whole(v) for v in variables if v.lower < v.upper]))

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple([axis.variable for axis in self.axes])

    def axis(self, variable: Variable) -> Axis:
        """The axis of a variable."""
        return next(axis for axis in self.axes if axis.variable is variable)

    def ordered(self, variables: Iterable[Variable]) -> tuple[Variable, ...]:
        """Variables in the order of the axes, each once."""
        wanted = set(variables)
        return tuple([axis.variable for axis in self.axes if axis.variable in wanted])

    def size_text(self, variables: Sequence[Variable]) -> list[str]:
        """The size of the axis of each variable."""
        return [index_text(self.axis(v).size) for v in variables]


def depends_on_axes(node: Node, space: Space) -> bool:
    """A node has different values along an axis."""
    exprs = map(space.swap, exprs_of(in_order([node], with_cases)))
    return any(space.ordered(expr.variables()) for expr in exprs)


def split_space(stage: Stage, variables: Sequence[Variable]) -> Space:
    """All values, where a variable that is divided by a number is two axes: quotient and rest.

    ``d0 floordiv 4`` and ``d0 mod 4`` are axes then, and arrays are read without index arrays.
    """
    divisors: dict[Variable, set[int]] = {}
    guards = stage.body.guards if isinstance(stage.body, Fold) else ()
    for expr in (*exprs_of(stage.nodes()), *[guard.expr for guard in guards]):
        _note_divisors(expr, divisors)
    axes: list[Axis] = []
    values: dict[Variable, Expr] = {}
    for v in variables:
        if v.lower == v.upper:
            continue
        steps = _chain(divisors.get(v, set()), v)
        if not steps:
            axes.append(Axis.whole(v))
            continue
        total = as_expr(0)
        for k, (step, above) in enumerate(zip(steps, [v.upper + 1, *steps], strict=False)):
            digit = Variable(f"{v.name}{'abcdefgh'[k]}", 0, above // step - 1)
            total = total + digit.as_expr() * step
            axes.append(Axis.whole(digit))
        values[v] = total
    return Space(tuple(axes), Substitution(values)) if values else Space(tuple(axes))


def _note_divisors(expr: Expr, found: dict[Variable, set[int]]) -> None:
    for atom, _ in expr.terms:
        if isinstance(atom, Floor):
            terms = atom.numerator.terms
            if len(terms) == 1 and isinstance(terms[0][0], Variable) and terms[0][1] == 1:
                if not atom.numerator.constant:
                    found.setdefault(terms[0][0], set()).add(atom.divisor)
            _note_divisors(atom.numerator, found)


def _chain(divisors: set[int], v: Variable) -> list[int]:
    """The steps of the digits of a variable, largest first; [] where it has none."""
    steps = sorted(divisors, reverse=True)
    size = v.upper + 1
    if v.lower or not steps or len(steps) > 7:
        return []
    whole = [size, *steps]
    if any(a % b or a == b for a, b in zip(whole, steps, strict=False)):
        return []
    return [*steps, 1]


@dataclass(frozen=True, slots=True)
class Region:
    """The box of a space in which the guards of a case hold.

    Attributes:
        space: its axes.
        slices: for each axis of the enclosing space, the slice of the box as text.
    """

    space: Space
    slices: tuple[str, ...]


def region_of(space: Space, guards: Sequence[Constraint]) -> Region | None:
    """The box in which guards hold; None if they do not hold in a box."""
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
        wanted = by_variable[axis.variable]
        if not wanted:
            axes.append(axis)
            slices.append(":")
            continue
        found = _interval(axis.variable, wanted) or _progression(axis, wanted)
        if found is None:
            return None
        begin, count, step = found
        offset = begin - axis.begin
        if count == 1:
            values[axis.variable] = begin
            slices.append(index_text(offset))
            continue
        fresh = Variable(f"{axis.variable.name}_", 0, count - 1)
        values[axis.variable] = fresh.as_expr() * step + begin
        axes.append(Axis.whole(fresh))
        last = index_text(offset + (count - 1) * step + 1)
        slices.append(f"{index_text(offset)}:{last}{f':{step}' if step > 1 else ''}")
    inner, before = Substitution(values), space.swap
    return Region(Space(tuple(axes), lambda expr: inner(before(expr))), tuple(slices))


def _interval(v: Variable, wanted: Sequence[Constraint]) -> tuple[Expr, int, int] | None:
    """Begin, count and step where the guards are bounds of ``v + rest``, rest being one value."""
    ends = [_ends(v, guard) for guard in wanted]
    if any(pair is None for pair in ends):
        return None
    pairs = [pair for pair in ends if pair is not None]
    if all(low.is_constant for low, _ in pairs):
        begin = as_expr(max([v.lower, *[low.constant for low, _ in pairs]]))
        end = as_expr(min([v.upper, *[high.constant for _, high in pairs]]))
    elif len(pairs) == 1 and v.lower <= pairs[0][0].bounds[0] <= pairs[0][1].bounds[1] <= v.upper:
        begin, end = pairs[0]
    else:
        return None  # the box may end at the bounds of the variable
    count = end - begin + 1
    return (begin, count.constant, 1) if count.is_constant and count.constant > 0 else None


def _ends(v: Variable, guard: Constraint) -> tuple[Expr, Expr] | None:
    """The bounds of `v`, if a guard bounds ``v + rest`` or ``rest − v``."""
    coefficient = dict(guard.expr.terms).get(v, 0)
    rest = guard.expr - v.as_expr() * coefficient
    if v in rest.variables() or coefficient not in (1, -1):
        return None
    if coefficient == 1:
        return guard.lower - rest, guard.upper - rest
    return rest - guard.upper, rest - guard.lower


# Guards that are no plain bounds are tried out on axes of at most this size.
_TRIED = 4096


def _progression(axis: Axis, wanted: Sequence[Constraint]) -> tuple[Expr, int, int] | None:
    """Begin, count and step of the values where the guards hold, if they are evenly spaced."""
    v = axis.variable
    if v.upper - v.lower >= _TRIED or any(set(g.expr.variables()) != {v} for g in wanted):
        return None
    found = [
        n
        for n in range(v.lower, v.upper + 1)
        if all(guard.lower <= guard.expr.value({v: n}) <= guard.upper for guard in wanted)
    ]
    if not found:
        return None
    step = found[1] - found[0] if len(found) > 1 else 1
    if any(b - a != step for a, b in pairwise(found)):
        return None
    return as_expr(found[0]), len(found), step
