"""Counts as formulas of symbolic sizes: the sizes of dimensions, or those of a tile.

The changes of variables are those of the other closed forms (`indexing.maps.counts`), with sizes
that are expressions.  A variable becomes two digits only if the radix divides its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import permutations
from math import gcd
from typing import Final

from hlo.arguments import checked, checked_constructor
from indexing.maps.counts.digits import fresh_names
from indexing.maps.counts.forms import Form, factors, floors, simplest_results
from indexing.maps.counts.linear import kernel_of
from indexing.maps.displayed import Displayed
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.symbolic import Bounds, both_sides, one_sided
from simplifier.atoms import Floor, Variable, variables_in
from simplifier.linear import Expr, as_expr, from_atom
from simplifier.semiaffine import maximum, minimum, product
from simplifier.unknown import Unknown

MAX_CHANGES: Final = 16
"""Maximum number of changes of variables that remove divisions."""


@checked_constructor
@dataclass(frozen=True, repr=False)
class SymbolicCounts(Displayed):
    """Formulas for the counts of a map.

    Attributes:
        parameters: the symbolic sizes; the formulas hold for all values in their bounds.
        total: number of points.
        distinct: number of results.
        maximum: largest number of points with the same result.

    >>> from simplifier import variable
    >>> n = variable("n", 1, 1024)
    >>> counts = symbolic_counts(IndexingMap.over((n * 2, 64), lambda d: [d[0] // 2]))
    >>> print(counts)
    total n * 128, distinct n, maximum 128
    >>> counts.at(n=5)
    (640, 5, 128)
    """

    parameters: tuple[Variable, ...]
    total: Expr
    distinct: Expr | Unknown
    maximum: Expr | Unknown

    @checked
    def at(self, **sizes: int) -> tuple[int, int | Unknown, int | Unknown]:
        """Return `total`, `distinct` and `maximum` for values of the parameters.

        Raises:
            TypeError: a parameter has no value, or a name is no parameter.
            ValueError: a value is outside the bounds of its parameter.

        >>> from simplifier import variable
        >>> n = variable("n", 1, 8)
        >>> counts = symbolic_counts(IndexingMap.over((n, 3), lambda d: [d[0]]))
        >>> counts.at(n=4)  # 12 points, 4 results, each of 3 points
        (12, 4, 3)
        """
        names = [v.name for v in self.parameters]
        if sorted(names) != sorted(sizes):
            raise TypeError(f"expected values of {', '.join(names)}, got {', '.join(sizes)}")
        point = {v: sizes[v.name] for v in self.parameters}
        for v, value in point.items():
            if not v.lower <= value <= v.upper:
                raise ValueError(f"{v.name} = {value} is outside [{v.lower}, {v.upper}]")
        distinct, largest = [
            formula if isinstance(formula, Unknown) else formula.value(point)
            for formula in (self.distinct, self.maximum)
        ]
        return self.total.value(point), distinct, largest

    def __str__(self) -> str:
        parts = [f"total {self.total}"]
        for name in ("distinct", "maximum"):
            formula = getattr(self, name)
            parts.append(f"{name} {'unknown' if isinstance(formula, Unknown) else formula}")
        return ", ".join(parts)


@checked
def symbolic_counts(m: IndexingMap) -> SymbolicCounts | Unknown:
    """Return the counts of a map with symbolic sizes, as formulas of these.

    The counts are those for one value of each runtime variable, which may only translate results.

    Returns:
        The formulas; `Unknown` if a constraint does more than to bound one variable, if a size may
        be less than 1, or if a division remains.

    >>> from simplifier import variable
    >>> n = variable("n", 1, 1024)
    >>> windows = IndexingMap.over((n, 8), lambda d, s: [d[0] * 2 + s[0], d[1]], ranges=(3,))
    >>> print(symbolic_counts(windows))
    total n * 24, distinct n * 16 + 8, maximum min(n, 2)
    """
    if m.is_known_empty:
        return Unknown(f"{m} has no points")
    moving = [rt.name for rt in m.runtime if any(not i.is_constant for i in rt.index)]
    if moving:
        return Unknown(f"the value of {moving[0]} depends on the point")
    parameters = [rt.variable for rt in m.runtime]
    bounds = _bounds(m, parameters)
    if isinstance(bounds, Unknown):
        return bounds
    sizes: dict[Variable, Expr] = {}
    values: dict[Variable, Expr] = {}
    for v in (*m.dims, *m.ranges):
        own = bounds.get(v, Bounds(None, None, ()))
        low = as_expr(v.lower) if own.lower is None else maximum(own.lower, v.lower)
        high = as_expr(v.upper) if own.upper is None else minimum(own.upper, v.upper)
        index = Variable(v.name, 0, v.upper - v.lower)
        sizes[index], values[v] = high - low + 1, low + index
    form = Form((*m.dims, *m.ranges), m.results, ())
    return _counts(form.with_values(values, sizes), sizes, parameters)


@checked
def tile_counts(m: IndexingMap) -> SymbolicCounts | Unknown:
    """Return the counts over a tile of symbolic sizes ``ts_0, ts_1, …``, as formulas of these.

    The tile is within the bounds of the dimensions; its position does not affect the counts.

    Returns:
        The formulas; `Unknown` as for `symbolic_counts`, or if the counts depend on the position.

    >>> window = IndexingMap.over((64, 64), lambda d, s: [d[0] + s[0], d[1] + s[1]], ranges=(3, 5))
    >>> counts = tile_counts(window)
    >>> print(counts)
    total (ts_0 * ts_1) * 15, distinct ts_0 * 4 + ts_1 * 2 + ts_0 * ts_1 + 8,
    maximum min(ts_0, 3) * min(ts_1, 5)
    >>> counts.at(ts_0=8, ts_1=16)
    (1920, 200, 15)
    """
    taken = {v.name for v in m.variables}
    sizes: dict[Variable, Expr] = {}
    values: dict[Variable, Expr] = {}
    parameters: list[Variable] = []
    positions: list[Variable] = []
    for k, d in enumerate(m.dims):
        size, first, index = f"ts_{k}", f"position_{k}", f"index_{k}"
        if taken & {size, first, index}:
            return Unknown(f"{size}, {first} or {index} is the name of a variable of the map")
        length = d.upper - d.lower
        parameters.append(Variable(size, 1, length + 1))
        positions.append(Variable(first, *d.bounds))
        inside = Variable(index, 0, length)
        sizes[inside], values[d] = parameters[-1].as_expr(), positions[-1] + inside
    if m.constraints:
        return Unknown(f"the constraint {m.constraints[0]} depends on the position of the tile")
    if m.runtime:
        return Unknown(f"the tile has the runtime variable {m.runtime[0].name}")
    sizes |= {s: as_expr(s.size) for s in m.ranges}
    form = Form((*m.dims, *m.ranges), m.results, ()).with_values(values, sizes)
    return _counts(form, sizes, [*parameters, *positions])


def _bounds(m: IndexingMap, parameters: Iterable[Variable]) -> dict[Variable, Bounds] | Unknown:
    """The symbolic bounds of dimensions and range variables."""
    own: dict[Variable, Bounds] = {}
    free = set(m.variables).difference(parameters)
    for number, constraint in enumerate(m.constraints):
        inside = free.intersection(constraint.expr.variables())
        bounds = one_sided(v := inside.pop(), constraint, number) if len(inside) == 1 else None
        if bounds is None:
            return Unknown(f"the constraint {constraint} is not a bound of one variable")
        own[v] = both_sides(own.get(v), bounds)
        if number not in own[v].constraint_ids:
            return Unknown(f"{v.name} has several bounds: {constraint}")
    return own


def _counts(
    form: Form, sizes: dict[Variable, Expr], parameters: Sequence[Variable]
) -> SymbolicCounts | Unknown:
    small = [size for size in sizes.values() if size.bounds[0] < 1]
    if small:
        return Unknown(f"the size {small[0]} may be less than 1")
    if not all(result.is_affine for result in form.results):
        return Unknown("a result is not affine")
    results = _of_digits(form, sizes, parameters)
    if isinstance(results, Unknown):
        return results
    variables = tuple(v for v in sizes if v.lower < v.upper)
    total = reduce(product, [sizes[v] for v in variables], as_expr(1))
    parts = [
        _linear(part, [sizes[v] for v in part.variables])
        for part in factors(Form(variables, results, ()))
    ]
    used = variables_in([*sizes.values()])
    distinct, largest = map(_product, zip(*parts, strict=True)) if parts else (total, total)
    return SymbolicCounts(tuple([v for v in parameters if v in used]), total, distinct, largest)


def _of_digits(
    form: Form, sizes: dict[Variable, Expr], parameters: Sequence[Variable]
) -> tuple[Expr, ...] | Unknown:
    """The results without floors; `sizes` gets the digits instead of the variables."""
    fixed = set(parameters)
    divided: list[Floor] = []
    for _ in range(MAX_CHANGES):
        results = simplest_results(
            tuple([_without_offsets(result, fixed) for result in form.results])
        )
        form = form._replace(results=results)
        divided = floors(form)
        if not divided:
            return results
        changed = _split_digit(form, divided, sizes) or _merge_digits(form, divided, sizes)
        if changed is None:
            break
        form = changed
    return Unknown(f"no digits of the variables remove the division {from_atom(divided[0])}")


def _without_offsets(result: Expr, parameters: set[Variable]) -> Expr:
    """The result without terms that have one value at all points."""
    moving = {
        atom: c
        for atom, c in result.parts.items()
        if not parameters.issuperset(from_atom(atom).variables())
    }
    return Expr(moving, 0)


def _split_digit(form: Form, divided: Iterable[Floor], sizes: dict[Variable, Expr]) -> Form | None:
    """The form in which a variable is two digits, if the radix divides its size."""
    for floor in divided:
        for v, factor in floor.numerator.parts.items():
            radix = floor.divisor // gcd(factor, floor.divisor)
            if not isinstance(v, Variable) or radix == 1 or v not in sizes:
                continue
            size = sizes[v]
            if any(c % radix for c in (*size.parts.values(), size.constant)):
                continue
            if size == as_expr(radix):
                continue
            names = fresh_names(form)
            high, low = Variable(names[0], 0, v.upper // radix), Variable(names[1], 0, radix - 1)
            del sizes[v]
            sizes[high], sizes[low] = size // radix, as_expr(radix)
            return form.with_values({v: high * radix + low}, (high, low))
    return None


def _merge_digits(form: Form, divided: Sequence[Floor], sizes: dict[Variable, Expr]) -> Form | None:
    """The form in which one variable replaces two, the lower of constant size."""
    pairs = [p for f in divided for p in permutations(f.numerator.variables(), 2)]
    for high, low in dict.fromkeys(pairs):
        if not (high in sizes and low in sizes and sizes[low].is_constant):
            continue
        size = sizes[low].constant
        numerators = [(f.numerator.parts, f.divisor) for f in divided]
        if any((p.get(high, 0) - size * p.get(low, 0)) % divisor for p, divisor in numerators):
            continue
        number = Variable(fresh_names(form)[0], 0, (high.upper + 1) * size - 1)
        sizes[number] = sizes.pop(high) * size
        del sizes[low]
        return form.with_values({high: number // size, low: number % size}, (number,))
    return None


def _linear(form: Form, sizes: Sequence[Expr]) -> tuple[Expr | Unknown, Expr | Unknown]:
    """The formulas for the distinct results, and for the most points of one, of sums."""
    total = reduce(product, sizes)
    kernel = kernel_of(form)
    if not kernel:
        return total, as_expr(1)
    if len(kernel) == 1:
        steps = [abs(z) for z in kernel[0]]
        rest = [maximum(n - z, 0) for n, z in zip(sizes, steps, strict=True)]
        chains = [(n + z - 1) // z for n, z in zip(sizes, steps, strict=True) if z]
        return total - reduce(product, rest), minimum(*chains)
    largest = Unknown("the windows of several variables overlap: no formula for the maximum")
    if len(form.results) == 1:
        return _progression(form, sizes), largest
    return Unknown("several results share overlapping windows"), largest


def _progression(form: Form, sizes: Sequence[Expr]) -> Expr | Unknown:
    """The number of values of a sum, if they are a progression for all sizes."""
    parts = form.results[0].parts
    steps = sorted([(abs(parts[v]), k) for k, v in enumerate(form.variables)])
    stride = steps[0][0]
    count = as_expr(1)
    for step, k in steps:
        if step % stride or step > stride * count.bounds[0]:
            return Unknown(f"the values of {form.results[0]} are not contiguous for all sizes")
        count = count + (sizes[k] - 1) * (step // stride)
    return count


def _product(formulas: Iterable[Expr | Unknown]) -> Expr | Unknown:
    total = as_expr(1)
    for formula in formulas:
        if isinstance(formula, Unknown):
            return formula
        total = product(total, formula)
    return total
