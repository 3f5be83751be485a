"""Laws of constraints on residues, ``e mod m in [a, b]``."""

from __future__ import annotations

from typing import Final

from simplifier.trace import Law

SHIFT_RESIDUES: Final = Law(
    "shift residues",
    "(g + c) mod m in [a, b] <=> g mod m in [a - c, b - c], modulo m",
    "m > 0; the interval may wrap around at m",
    "Addition of c permutes the residues modulo m.",
    ("simplifier.residues.residues_of",),
    "<=>",
)
NEGATE_RESIDUES: Final = Law(
    "negate residues",
    "(-g) mod m in [a, b] <=> g mod m in [-b, -a], modulo m",
    "m > 0; the interval may wrap around at m",
    "Negation permutes the residues modulo m.",
    ("simplifier.residues.residues_of",),
    "<=>",
)
INVERT_COEFFICIENT: Final = Law(
    "multiply a congruence by an inverse",
    "k·x + e = r (mod m) <=> x + i·e = i·r (mod m)",
    "k·i = 1 (mod m); coefficients are reduced modulo m to the least absolute value",
    "i is prime to m, so multiplication by i permutes the residues modulo m.",
    ("simplifier.residues.residues_of",),
    "<=>",
)
INTERSECT_RESIDUES: Final = Law(
    "intersect residues",
    "g mod m in A and g mod m in B <=> g mod m in A & B",
    "A, B and their intersection are intervals, which may wrap around at m",
    "g has one residue modulo m. An empty intersection is false.",
    ("simplifier.residues.intersection",),
    "<=>",
)
COMBINE_CONGRUENCES: Final = Law(
    "combine congruences",
    "g = r (mod m) and g = s (mod n) <=> g = t (mod lcm(m, n))",
    "gcd(m, n) divides r - s; otherwise the result is false",
    "Chinese remainder theorem; residues do not depend on the sign of g.",
    ("simplifier.residues.intersection",),
    "<=>",
)
DECIDE_RESIDUE: Final = Law(
    "decide residues by a finer congruence",
    "g = r (mod k·m) and g mod m in [a, b] <=> g = r (mod k·m)",
    "r mod m in [a, b]; otherwise the result is false",
    "g = r (mod k·m) implies g mod m = r mod m.",
    ("simplifier.residues.intersection",),
    "<=>",
)
SELECT_RESIDUE: Final = Law(
    "select the only residue",
    "g = r (mod m) and g mod (k·m) in [a, b] <=> g = s (mod k·m)",
    "s is the only number in [a, b] with s = r (mod m); without one the result is false",
    "g mod (k·m) is congruent to g modulo m, so it is a number of [a, b] congruent to r.",
    ("simplifier.residues.intersection",),
    "<=>",
)
ROUND_TO_RESIDUES: Final = Law(
    "round bounds to residues",
    "g mod m in [r, s] and g in [a, b] <=> g mod m in [r, s] and g in [a', b']",
    "a' is the least and b' the greatest number of [a, b] with such a residue",
    "Numbers between a and a', and between b' and b, have other residues.",
    ("simplifier.conjunction.merge_constraints", "simplifier.domain.tighten"),
    "<=>",
)
DROP_IMPLIED_RESIDUES: Final = Law(
    "drop implied residues",
    "g in [a, b] and g mod m in [r, s] <=> g in [a, b]",
    "every number of [a, b] has a residue in [r, s]",
    "The residues of [a, b] are an interval modulo m that starts at a mod m, for negative a too.",
    ("simplifier.conjunction.merge_constraints",),
    "<=>",
)

SECTION: Final = tuple([law for law in globals().values() if isinstance(law, Law)])
"""The laws of this module, in text order."""
