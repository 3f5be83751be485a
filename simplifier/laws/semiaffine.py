"""Laws of products, quotients, minima and maxima of variables."""

from __future__ import annotations

from typing import Final

from simplifier.trace import Law

DISTRIBUTE_PRODUCT: Final = Law(
    "distribute a product",
    "(x + y)·n = x·n + y·n",
    "none",
    "Distributivity. Factors are sorted, so that like terms merge.",
    ("simplifier.semiaffine.product",),
)
FACTOR_OUT_DIVISOR: Final = Law(
    "factor out multiples of an expression",
    "floor((n·q + r) / n) = q + floor(r / n)",
    "n is not 0; its sign does not matter",
    "floor(q + y) = q + floor(y) for every integer q and every real y.",
    ("simplifier.semiaffine.quotient",),
)
DROP_REMAINDER: Final = Law(
    "drop a remainder below the divisor",
    "floor(r / n) = 0",
    "the bounds of r and of n - r imply 0 <= r < n",
    "0 <= r / n < 1. A negative r gives -1 or less, so it is excluded.",
    ("simplifier.semiaffine.quotient",),
)
NEGATE_DIVISION: Final = Law(
    "divide by the negated divisor",
    "floor(n / -d) = floor(-n / d)",
    "d > 0 is a constant",
    "Both sides round the same rational number towards minus infinity.",
    ("simplifier.semiaffine.quotient",),
)
FLATTEN_EXTREMUM: Final = Law(
    "flatten a nested minimum or maximum",
    "min(x, min(y, z)) = min(x, y, z), and so for max",
    "none",
    "Associativity.",
    ("simplifier.semiaffine.minimum", "simplifier.semiaffine.maximum"),
)
DROP_DOMINATED: Final = Law(
    "drop a dominated operand",
    "max(x, y) = x;  min(x, y) = y",
    "the interval bounds of x - y imply x - y >= 0",
    "x >= y at every point.",
    ("simplifier.semiaffine.minimum", "simplifier.semiaffine.maximum"),
)

SECTION: Final = tuple([law for law in globals().values() if isinstance(law, Law)])
"""The laws of this module, in text order."""
