"""Laws of sums, floordiv and mod."""

from __future__ import annotations

from typing import Final

from simplifier.trace import Law

MERGE_LIKE_TERMS: Final = Law(
    "merge like terms",
    "a·x + b·x = (a + b)·x;  d·floor(x / d) + x mod d = x",
    "none",
    "Distributivity. `x mod d` is stored as `x - d·floor(x / d)`, so mods cancel like any term.",
    (
        "simplifier.linear.Expr.__add__",
        "simplifier.linear.add_multiple",
        "simplifier.linear.without_zero_terms",
    ),
    observed="Sums are built too often to trace each of them: compare the expression with its "
    "operands.",
)
EXPAND_MOD: Final = Law(
    "expand a mod",
    "x mod d = x - d·floor(x / d)",
    "d > 0",
    "The definition of mod for floor division: the result lies in [0, d) for negative x too.",
    ("simplifier.divmod.floor_mod",),
)
FACTOR_OUT_MULTIPLES: Final = Law(
    "factor out multiples",
    "floor((d·q + r) / d) = q + floor(r / d)",
    "d > 0; q is an integer expression",
    "floor(q + y) = q + floor(y) for every integer q and every real y, whatever their signs.",
    ("simplifier.division.Division",),
)
FOLD_CONSTANT_FLOOR: Final = Law(
    "fold a constant floor",
    "floor(r / d) = k",
    "d > 0; the bounds of r lie in [k·d, k·d + d - 1]",
    "floor is monotonic, and both ends of the interval give k. For negative r, k is negative.",
    ("simplifier.division.Division.fold_by_bounds",),
)
CANCEL_COMMON_FACTOR: Final = Law(
    "cancel a common factor",
    "floor((g·a + b) / (g·c)) = floor((a + k) / c)",
    "g, c > 0; floor(b / g) is the constant k",
    "floor(n / (g·c)) = floor(floor(n / g) / c), and floor((g·a + b) / g) = a + k for any signs.",
    ("simplifier.division.Division.without_factor",),
)
MERGE_FLOORS: Final = Law(
    "merge nested floors",
    "floor((floor(n / e) + r) / d) = floor((n + e·r) / (d·e))",
    "d, e > 0; (choice) no other floor has the coefficient 1 or -1",
    "floor(n / e) + r = floor((n + e·r) / e), and floor(floor(y) / d) = floor(y / d) for real y.",
    ("simplifier.divmod.floor_div",),
)
MERGE_NEGATED_FLOOR: Final = Law(
    "merge a negated floor",
    "floor((r - floor(n / e)) / d) = floor((e·r - n + e - 1) / (d·e))",
    "d, e > 0; (choice) no other floor has the coefficient 1 or -1",
    "-floor(n / e) = ceil(-n / e) = floor((e - 1 - n) / e), then merge nested floors.",
    ("simplifier.divmod.floor_div",),
)
RECOMBINE_MOD: Final = Law(
    "recombine a mod",
    "a·g - a·m·floor(g / m) = a·(g mod m)",
    "m > 0; the floor may be stored as floor(N / (k·m)) with g = floor(N / k)",
    "The definition of mod, and floor(floor(N / k) / m) = floor(N / (k·m)).",
    ("simplifier.mods.split", "simplifier.mods.split_finest"),
)
BOUND_MOD: Final = Law(
    "bound a mod as a whole",
    "g mod m in [0, m - 1], or in [l mod m, u mod m]",
    "m > 0; the second if g in [l, u] and floor(l / m) = floor(u / m)",
    "0 <= g mod m < m for every sign of g. Within one multiple of m, mod subtracts a constant.",
    ("simplifier.bounds.KnownBounds.bounds_of_mod",),
    "in",
)

SECTION: Final = tuple([law for law in globals().values() if isinstance(law, Law)])
"""The laws of this module, in text order."""
