"""Laws of expressions on a domain: they use the constraints of the domain."""

from __future__ import annotations

from typing import Final

from simplifier.trace import Law

ADD_ZERO: Final = Law(
    "add a multiple of zero",
    "e = e + k·z",
    "the constraints imply z = 0; the result has fewer floors, or fewer atoms",
    "k·0 = 0.",
    ("simplifier.rewrite.Rewriting",),
)
DIVIDE_EXACTLY: Final = Law(
    "divide exactly",
    "d·floor(n / d) = n - r mod d",
    "the congruences imply n = r (mod d)",
    "n - d·floor(n / d) = n mod d = r mod d for every sign of n.",
    ("simplifier.rewrite.Rewriting",),
)
ROUND_CONSTANT: Final = Law(
    "round the constant of a dividend",
    "floor((n + c) / d) = floor((n + g·floor((r + c) / g)) / d)",
    "g divides d; the congruences imply n = r (mod g), with 0 <= r < g",
    "With n = g·q + r and d = g·e, both sides are floor((q + floor((r + c) / g)) / e).",
    ("simplifier.rewrite.Rewriting",),
)
FOLD_SINGLE_VALUE: Final = Law(
    "fold a single value",
    "e = k",
    "the bounds of e on the domain are [k, k]",
    "An interval of one point has one value.",
    ("simplifier.rewrite.Rewriting",),
)

SECTION: Final = tuple([law for law in globals().values() if isinstance(law, Law)])
"""The laws of this module, in text order."""
