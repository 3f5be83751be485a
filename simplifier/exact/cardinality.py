"""The number of points of isl sets: by barvinok if the installed islpy has it, else by isl.

isl counts by scanning; barvinok computes the number from the generating functions of polyhedra, in
time polynomial in the size of the numbers for a fixed number of dimensions.  The package
islpy-barvinok replaces islpy and is under the GPL, so it is optional.  It does not observe isl's
budget of operations, so it gets sets of few dimensions, pieces and divisions only.

Source: Verdoolaege, "barvinok: User Guide", "Counting"; isl manual, ``isl_set_count_val``.
"""

from __future__ import annotations

from typing import Any, Final

import islpy as isl

from simplifier.exact.context import to_int

HAS_BARVINOK: Final = hasattr(isl.Set, "card")
"""True if islpy is that of the package islpy-barvinok."""

MAX_DIMENSIONS: Final = 6
"""Maximum number of dimensions of a set that barvinok counts."""
MAX_PIECES: Final = 8
"""Maximum number of its pieces."""
MAX_DIVISIONS: Final = 2
"""Maximum number of divisions in a piece."""


def cardinality(points: isl.Set) -> int:
    """Return the number of points of a bounded set.

    >>> cardinality(isl.Set("{ [i, j] : 0 <= i < 4 and i <= j < 6 }"))
    18
    """
    if not HAS_BARVINOK:
        return to_int(points.count_val())
    separate: Any = points.compute_divs().make_disjoint()
    if not is_simple(separate):
        return to_int(points.count_val())
    count = separate.card()
    return to_int(count.eval(isl.Point.zero(count.get_domain_space())))


def is_simple(points: isl.Set) -> bool:
    """Return True if barvinok counts the set in a fraction of a second.

    >>> is_simple(isl.Set("{ [i] : 0 <= i < 9 and i mod 3 = 1 }"))
    True
    """
    pieces = points.get_basic_sets()
    return (
        points.dim(isl.dim_type.set) <= MAX_DIMENSIONS
        and len(pieces) <= MAX_PIECES
        and all(piece.dim(isl.dim_type.div) <= MAX_DIVISIONS for piece in pieces)
    )
