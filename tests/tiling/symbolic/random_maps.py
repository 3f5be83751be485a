"""Random maps in the forms of layout ops: sums, quotients, digits, phases, windows, bounds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from hypothesis import strategies as st

from indexing import IndexingMap, RuntimeVariable
from simplifier import Expr, Variable, as_expr
from simplifier.constraints import Constraint
from tests.tiling.symbolic.needed import Point

FACTORS = st.sampled_from([1, 1, 1, -1, -1, 2, 3, 4, 6, -2])
DIVISORS = st.sampled_from([2, 3, 4, 6])
OFFSETS = st.sampled_from([0, 0, 0, 1, -1, 2, -3, 5])


@st.composite
def sums(draw: st.DrawFn, variables: Sequence[Variable]) -> Expr:
    """A linear expression of up to three variables."""
    chosen = draw(st.lists(st.sampled_from(variables), min_size=1, max_size=3, unique=True))
    return sum([v * draw(FACTORS) for v in chosen], as_expr(draw(OFFSETS)))


@st.composite
def expressions(draw: st.DrawFn, variables: Sequence[Variable]) -> Expr:
    """A sum, a quotient, a remainder, or a digit."""
    total = draw(sums(variables))
    match draw(st.sampled_from(["sum", "sum", "quotient", "remainder", "digit", "pair"])):
        case "quotient":
            return total // draw(DIVISORS)
        case "remainder":
            return total % draw(DIVISORS)
        case "digit":
            return total // draw(DIVISORS) % draw(DIVISORS)
        case "pair":
            return total * draw(DIVISORS) + draw(sums(variables)) // draw(DIVISORS)
    return total


@st.composite
def digits(draw: st.DrawFn, variables: Sequence[Variable]) -> list[Expr]:
    """Some of the digits of a sum, in any order, as a reshape has them."""
    total = draw(sums(variables))
    total = total - min(0, total.bounds[0])
    place, radix = draw(DIVISORS), draw(DIVISORS)
    every = [total // (place * radix), total // place % radix, total % place]
    return draw(st.permutations(every))[: draw(st.integers(1, 3))]


@st.composite
def constraints(
    draw: st.DrawFn, results: Sequence[Expr], variables: Sequence[Variable]
) -> Constraint:
    """Bounds of a result or of another expression, or a phase."""
    form = draw(st.sampled_from(["result", "sum", "phase", "other"]))
    if form == "result":
        expr = draw(st.sampled_from(results))
    elif form == "other":
        expr = draw(expressions(variables))
    else:
        expr = draw(sums(variables))
        expr = expr % draw(DIVISORS) if form == "phase" else expr
    low, high = expr.bounds
    lower = draw(st.integers(low, high))
    upper = lower if form == "phase" else draw(st.integers(lower, high))
    return Constraint(expr, lower, upper)


@st.composite
def tiled_maps(draw: st.DrawFn) -> tuple[IndexingMap, list[int], Point]:
    """A map, the sizes of the tiled array, of which its domain may be a part, and tile sizes."""
    dims = []
    for k in range(draw(st.integers(1, 3))):
        lower = draw(st.sampled_from([0, 0, 0, 1, 2]))
        dims.append(Variable(f"d{k}", lower, lower + draw(st.integers(0, 6))))
    ranges = []
    for k in range(draw(st.integers(0, 2))):
        lower = draw(st.sampled_from([0, 0, 1, -1]))
        ranges.append(Variable(f"s{k}", lower, lower + draw(st.integers(0, 3))))
    runtime = []
    if draw(st.integers(0, 3)) == 3:
        index = draw(st.sampled_from([(), (dims[0].as_expr(),)]))
        runtime.append(RuntimeVariable(Variable("rt0", 0, draw(st.integers(1, 3))), 0, index))
    variables = [*dims, *ranges, *[rt.variable for rt in runtime]]
    if draw(st.booleans()):
        results = draw(st.lists(expressions(variables), min_size=1, max_size=3))
    else:
        results = draw(digits([*dims, *ranges]))
    bounds = draw(st.lists(constraints(results, variables), max_size=2))
    m = IndexingMap(tuple(dims), tuple(ranges), tuple(runtime), tuple(results), tuple(bounds))
    array = [max(1, d.upper + 1) + draw(st.sampled_from([0, 0, 0, 1, 3])) for d in dims]
    sizes = tuple([draw(st.integers(1, n)) for n in array])
    return (m.simplify() if draw(st.booleans()) else m), array, sizes


def all_sizes(array: Sequence[int], limit: int) -> list[Point]:
    """Tile sizes of an array: every choice if there are few, else some."""
    every = list(product(*[range(1, n + 1) for n in array]))
    return every[:: max(1, len(every) // limit)]
