"""Laws that eliminate, rescale or merge variables, and laws of whole maps."""

from __future__ import annotations

from typing import Final

from simplifier.trace import Law

SOLVE_FOR_VARIABLE: Final = Law(
    "solve for a range variable",
    "c·s + e in [a, b]: s := floor((b - e) / c)",
    "c > 0, b - a < c; for c < 0, the constraint is negated; it and the bounds of s are kept",
    "Values of c·s for neighbouring s differ by c, so at most one s fits: the largest one with "
    "c·s <= b - e.",
    ("simplifier.solve.change",),
    ":=",
)
RESCALE_VARIABLE: Final = Law(
    "rescale a strided range",
    "s mod m = r: s := m·t + r",
    "t in [ceil((l - r) / m), floor((u - r) / m)] for s in [l, u]",
    "The numbers congruent to r modulo m are m·t + r, one for each t of any sign.",
    ("simplifier.solve.change",),
    ":=",
)
SHIFT_RANGE: Final = Law(
    "shift a range",
    "s + e in [a, b]: s := t + a - e",
    "t in [0, b - a]; the constraints imply the bounds of s; no expression gets more variables, "
    "and one gets fewer",
    "s and t = s + e - a are in bijection, and the bounds of t are the constraint.",
    ("simplifier.solve.change",),
    ":=",
)
MERGE_MIXED_RADIX: Final = Law(
    "merge a mixed-radix pair",
    "s + n·t := u",
    "s in [0, n - 1] after a shift, t in [0, k - 1], u in [0, n·k - 1]; s, t occur nowhere else",
    "(s, t) and s + n·t are in bijection: s is the remainder and t the quotient of u by n.",
    ("simplifier.solve.change",),
    ":=",
)
PROJECT_BOUNDS: Final = Law(
    "project a variable out of bounds",
    "exists s in [p, q]: c·s + e in [a, b] <=> e in [a - c·q, b - c·p]",
    "0 < c <= b - a + 1; for c < 0, [p, q] is negated; s occurs nowhere else",
    "Values of c·s for neighbouring s differ by c <= b - a + 1, so none of them skips [a, b].",
    ("simplifier.solve.project",),
    "<=>",
)
PROJECT_RESIDUES: Final = Law(
    "project a variable out of residues",
    "exists s in [p, q]: (c·s + e) mod m in [a, b] <=> true",
    "gcd(c, m) = 1 and q - p + 1 >= m; s occurs nowhere else",
    "c is invertible modulo m, so m neighbouring s reach every residue.",
    ("simplifier.solve.project",),
    "<=>",
)
DROP_UNUSED: Final = Law(
    "drop unused variables",
    "{x -> f(x) : C(x) and exists s: D(s)} = {x -> f(x) : C(x)}",
    "D(s) has a solution; s occurs in no result, and in no constraint with other variables",
    "The condition on s is true. Without a solution the map is empty.",
    ("indexing.maps.unused.drop_unused", "indexing.maps.unused.drop_uncounted"),
    "<=>",
)
DROP_EQUAL_MAP: Final = Law(
    "drop an equal map",
    "A or B <=> A",
    "the maps A and B are the same relation, as ISL proves",
    "The union of a set with itself.",
    ("indexing.maps.deduplicate.deduplicate",),
    "<=>",
)
OMIT_RESULT_BOUNDS: Final = Law(
    "omit bounds that results satisfy",
    "g(f(x)) in [a, b] <=> true",
    "bounds or constraints of g keep its results in [a, b]; g(f(x)) may have wider bounds",
    "Every value of g(f(x)) is a value of g. A composition keeps the bounds of its last map.",
    ("indexing.maps.result_bounds.outside",),
    "<=>",
)

SECTION: Final = tuple([law for law in globals().values() if isinstance(law, Law)])
"""The laws of this module, in text order."""
