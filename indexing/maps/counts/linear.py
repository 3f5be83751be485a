"""Tallies of sums of variables on a box, from the differences of points with equal results.

Two points have the same results if their difference is in the kernel of the coefficients.  If the
kernel is ``{j·z}`` for one vector z, the points with equal results are chains ``x, x + z, x + 2·z``
and so on.  With the sizes ``n_i`` of the box, ``f(j) = Π max(n_i - j·|z_i|, 0)`` points x have
``x + j·z`` in the box, so ``f(j) - f(j + 1)`` chains have more than j points.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm, prod

from indexing.maps.counts.forms import Form
from indexing.maps.counts.tally import MAX_READ_COUNTS, Tally, uniform


def linear_tally(form: Form) -> Tally | None:
    """Return the tally of sums of variables; `None` if the kernel has more than one vector.

    Args:
        form: a form without constraints and without floors.

    >>> from simplifier.atoms import Variable
    >>> d0, s0 = Variable("d0", 0, 99_999), Variable("s0", 0, 2)
    >>> linear_tally(Form((d0, s0), (d0 * 2 + s0,), ())).histogram
    {1: 100002, 2: 99999}
    """
    sizes = [v.size for v in form.variables]
    kernel = kernel_of(form)
    if not kernel:
        return uniform(1, prod(sizes))
    if len(kernel) > 1:
        return None
    return chain_tally(sizes, kernel[0])


def chain_tally(sizes: Sequence[int], step: Sequence[int]) -> Tally:
    """Return the tally of a box whose points have equal results if they differ by j·`step`.

    >>> chain_tally((3, 3), (1, -1)).histogram
    {1: 2, 2: 2, 3: 1}
    """
    longest = min([-(-n // abs(z)) for n, z in zip(sizes, step, strict=True) if z])

    def points_shared(j: int) -> int:
        """Number of points x with ``x + j·step`` in the box."""
        return prod([max(n - j * abs(z), 0) for n, z in zip(sizes, step, strict=True)])

    total = points_shared(0)
    if longest > MAX_READ_COUNTS:
        return Tally(total, total - points_shared(1), longest, None)
    at_least = [points_shared(j) - points_shared(j + 1) for j in range(longest + 1)]
    lengths = {j + 1: at_least[j] - at_least[j + 1] for j in range(longest)}
    return Tally.of({length: count for length, count in lengths.items() if count})


def kernel_of(form: Form) -> list[list[int]]:
    """Return vectors that span the differences of points with equal results.

    A single vector z generates all integer ones: they are ``j·z``.  Several may not.

    >>> from simplifier.atoms import Variable
    >>> d0, d1 = Variable("d0", 0, 9), Variable("d1", 0, 9)
    >>> kernel_of(Form((d0, d1), (d0 * 6 - d1 * 4,), ()))
    [[2, 3]]
    """
    rows = [[result.parts.get(v, 0) for v in form.variables] for result in form.results]
    count = len(form.variables)
    reduced, pivots = _row_echelon_form(rows)
    free = [k for k in range(count) if k not in pivots]
    return [_primitive(_solution(k, pivots, reduced, count)) for k in free]


def _row_echelon_form(rows: Sequence[Sequence[int]]) -> tuple[list[list[Fraction]], list[int]]:
    """The reduced row echelon form, and the column of the pivot of each row."""
    reduced: list[list[Fraction]] = []
    pivots: list[int] = []
    for row in rows:
        rest = [Fraction(c) for c in row]
        for pivot, other in zip(pivots, reduced, strict=True):
            factor = rest[pivot]
            rest = [a - factor * b for a, b in zip(rest, other, strict=True)]
        column = next((k for k, c in enumerate(rest) if c), None)
        if column is None:
            continue
        rest = [c / rest[column] for c in rest]
        reduced = [
            [a - other[column] * b for a, b in zip(other, rest, strict=True)] for other in reduced
        ]
        reduced.append(rest)
        pivots.append(column)
    return reduced, pivots


def _solution(
    free: int, pivots: Sequence[int], reduced: Sequence[Sequence[Fraction]], count: int
) -> list[Fraction]:
    """The vector of the kernel with 1 for one free variable and 0 for the others."""
    vector = [Fraction(0)] * count
    vector[free] = Fraction(1)
    for pivot, row in zip(pivots, reduced, strict=True):
        vector[pivot] = -row[free]
    return vector


def _primitive(vector: Sequence[Fraction]) -> list[int]:
    scale = lcm(*[c.denominator for c in vector])
    integers = [int(c * scale) for c in vector]
    common = gcd(*integers)
    return [c // common for c in integers]
