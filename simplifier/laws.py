"""The laws of simplification: one record each, shared by code, trace, tests and documentation.

A law rewrites an expression, a constraint or a variable into a simpler one with the same meaning.
`simplifier.trace` reports applications by these records, ``docs/laws.md`` is generated from them
(`simplifier.laws_page`), and ``tests/simplifier/test_laws.py`` tests and proves each of them.

Notation: ``floor(n / d)`` rounds towards minus infinity, ``n mod d = n - d·floor(n / d)`` lies in
``[0, d)`` for ``d > 0``, and ``[a, b]`` includes both ends.  Letters are integers of any sign.

>>> print(FACTOR_OUT_MULTIPLES.name, "|", FACTOR_OUT_MULTIPLES.formula)
factor out multiples | floor((d·q + r) / d) = q + floor(r / d)
"""

from __future__ import annotations

from typing import Final

from simplifier.trace import Law

# ---------------------------------------------------------------- sums, floordiv and mod

MERGE_LIKE_TERMS: Final = Law(
    "merge like terms",
    "a·x + b·x = (a + b)·x;  d·floor(x / d) + x mod d = x",
    "none",
    "Distributivity. `x mod d` is stored as `x - d·floor(x / d)`, so mods cancel like any term.",
    (
        "simplifier.linear.Expr.__add__",
        "simplifier.linear.added",
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
    ("simplifier.divmod.Division",),
)
FOLD_CONSTANT_FLOOR: Final = Law(
    "fold a constant floor",
    "floor(r / d) = k",
    "d > 0; the bounds of r lie in [k·d, k·d + d - 1]",
    "floor is monotonic, and both ends of the interval give k. For negative r, k is negative.",
    ("simplifier.divmod.Division.by_intervals",),
)
CANCEL_COMMON_FACTOR: Final = Law(
    "cancel a common factor",
    "floor((g·a + b) / (g·c)) = floor((a + k) / c)",
    "g, c > 0; floor(b / g) is the constant k",
    "floor(n / (g·c)) = floor(floor(n / g) / c), and floor((g·a + b) / g) = a + k for any signs.",
    ("simplifier.divmod.Division.by_intervals",),
)
MERGE_FLOORS: Final = Law(
    "merge nested floors",
    "floor((floor(n / e) + r) / d) = floor((n + e·r) / (d·e))",
    "d, e > 0; no other floor has the coefficient 1 or -1",
    "floor(n / e) + r = floor((n + e·r) / e), and floor(floor(y) / d) = floor(y / d) for real y.",
    ("simplifier.divmod.floor_div",),
)
MERGE_NEGATED_FLOOR: Final = Law(
    "merge a negated floor",
    "floor((r - floor(n / e)) / d) = floor((e·r - n + e - 1) / (d·e))",
    "d, e > 0; no other floor has the coefficient 1 or -1",
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

# ---------------------------------------------------------------- expressions on a domain

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

# ---------------------------------------------------------------- constraints

DECIDE_CONSTRAINT: Final = Law(
    "decide a constraint by bounds",
    "e in [a, b] <=> true;  e in [a, b] <=> false",
    "bounds of e lie in [a, b]; bounds of e and [a, b] are disjoint",
    "Bounds contain every value of e. They are computed with mods as a whole, or after one floor "
    "of e is removed.",
    ("simplifier.constraints.normalised",),
    "<=>",
)
MOVE_CONSTANT: Final = Law(
    "move the constant to the bounds",
    "e + c in [a, b] <=> e in [a - c, b - c]",
    "none",
    "Subtract c from all three sides.",
    ("simplifier.constraints.normalised",),
    "<=>",
)
DIVIDE_CONSTRAINT: Final = Law(
    "divide a constraint by its common factor",
    "g·e in [a, b] <=> e in [ceil(a / g), floor(b / g)]",
    "g > 0; for g < 0, [a, b] is negated first",
    "e is an integer, so the bounds round inwards, which ceil and floor do for either sign.",
    ("simplifier.constraints.normalised",),
    "<=>",
)
REMOVE_FLOOR: Final = Law(
    "remove the floor of a constraint",
    "q + floor(n / d) in [a, b] <=> d·q + n in [a·d, b·d + d - 1]",
    "d > 0; no other floor has the coefficient 1 or -1",
    "q + floor(n / d) = floor((d·q + n) / d), and a <= floor(y / d) <= b iff a·d <= y < (b + 1)·d.",
    ("simplifier.constraints.normalised",),
    "<=>",
)
CLIP_BOUNDS: Final = Law(
    "clip bounds to reachable values",
    "e in [a, b] <=> e in [max(a, l), min(b, u)]",
    "e in [l, u] for all values of its variables",
    "e never leaves [l, u]. An empty intersection is false.",
    ("simplifier.constraints.normalised",),
    "<=>",
)
INTERSECT_BOUNDS: Final = Law(
    "intersect bounds",
    "e in [a, b] and e in [p, q] <=> e in [max(a, p), min(b, q)]",
    "both constraints are on the same expression; the result is false if it is empty",
    "Intersection of intervals.",
    ("simplifier.constraints.merged",),
    "<=>",
)
DROP_IMPLIED: Final = Law(
    "drop an implied constraint",
    "A and B <=> A",
    "A and the bounds of the variables imply B",
    "By intervals: B is on c·p + r, and A bounds p. Otherwise all points or ISL show it.",
    (
        "simplifier.constraints.merged",
        "simplifier.domain.tightened",
        "simplifier.refine.refined",
    ),
    "<=>",
)
PROPAGATE_BOUNDS: Final = Law(
    "propagate bounds",
    "c·x + e in [a, b] => x in [ceil((a - u) / c), floor((b - l) / c)]",
    "c > 0 and e in [l, u]; for c < 0, the constraint is negated first",
    "c·x lies in [a - u, b - l]. x is an integer, so the bounds round inwards. "
    "floor(n / d) in [p, q] gives n in [p·d, q·d + d - 1].",
    ("simplifier.domain.tightened",),
    "=>",
)
REFINE_BOUNDS: Final = Law(
    "refine bounds exactly",
    "A => e in [min e, max e]",
    "minimum and maximum are over the points that satisfy A",
    "Enumeration of a small box with arrays, or ISL, finds the minimum and the maximum.",
    ("simplifier.refine.refined",),
    "=>",
)
DETECT_EMPTY: Final = Law(
    "detect an empty domain",
    "A <=> false",
    "no point satisfies A",
    "Enumeration of a small box with arrays, or ISL, finds no point.",
    ("simplifier.refine.refined",),
    "<=>",
)

# ---------------------------------------------------------------- residues

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
    ("simplifier.residues.both",),
    "<=>",
)
COMBINE_CONGRUENCES: Final = Law(
    "combine congruences",
    "g = r (mod m) and g = s (mod n) <=> g = t (mod lcm(m, n))",
    "gcd(m, n) divides r - s; otherwise the result is false",
    "Chinese remainder theorem; residues do not depend on the sign of g.",
    ("simplifier.residues.both",),
    "<=>",
)
DECIDE_RESIDUE: Final = Law(
    "decide residues by a finer congruence",
    "g = r (mod k·m) and g mod m in [a, b] <=> g = r (mod k·m)",
    "r mod m in [a, b]; otherwise the result is false",
    "g = r (mod k·m) implies g mod m = r mod m.",
    ("simplifier.residues.both",),
    "<=>",
)
SELECT_RESIDUE: Final = Law(
    "select the only residue",
    "g = r (mod m) and g mod (k·m) in [a, b] <=> g = s (mod k·m)",
    "s is the only number in [a, b] with s = r (mod m); without one the result is false",
    "g mod (k·m) is congruent to g modulo m, so it is a number of [a, b] congruent to r.",
    ("simplifier.residues.both",),
    "<=>",
)
ROUND_TO_RESIDUES: Final = Law(
    "round bounds to residues",
    "g mod m in [r, s] and g in [a, b] <=> g mod m in [r, s] and g in [a', b']",
    "a' is the least and b' the greatest number of [a, b] with such a residue",
    "Numbers between a and a', and between b' and b, have other residues.",
    ("simplifier.constraints.merged", "simplifier.domain.tightened"),
    "<=>",
)
DROP_IMPLIED_RESIDUES: Final = Law(
    "drop implied residues",
    "g in [a, b] and g mod m in [r, s] <=> g in [a, b]",
    "every number of [a, b] has a residue in [r, s]",
    "The residues of [a, b] are an interval modulo m that starts at a mod m, for negative a too.",
    ("simplifier.constraints.merged",),
    "<=>",
)

# ---------------------------------------------------------------- variables and maps

SOLVE_FOR_VARIABLE: Final = Law(
    "solve for a range variable",
    "c·s + e in [a, b]: s := floor((b - e) / c)",
    "c > 0, b - a < c; for c < 0, the constraint is negated; it stays, as do the bounds of s",
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
MERGE_MIXED_RADIX: Final = Law(
    "merge a mixed-radix pair",
    "s + n·t := u",
    "s in [0, n - 1] after a shift, t in [0, k - 1], u in [0, n·k - 1]; s and t only occur so",
    "(s, t) and s + n·t are in bijection: s is the remainder and t the quotient of u by n.",
    ("simplifier.solve.change",),
    ":=",
)
PROJECT_BOUNDS: Final = Law(
    "project a variable out of bounds",
    "exists s in [p, q]: c·s + e in [a, b] <=> e in [a - c·q, b - c·p]",
    "0 < c <= b - a + 1; for c < 0, [p, q] is negated; s occurs nowhere else",
    "Values of c·s for neighbouring s differ by c <= b - a + 1, so none of them skips [a, b].",
    ("simplifier.solve.projected",),
    "<=>",
)
PROJECT_RESIDUES: Final = Law(
    "project a variable out of residues",
    "exists s in [p, q]: (c·s + e) mod m in [a, b] <=> true",
    "gcd(c, m) = 1 and q - p + 1 >= m; s occurs nowhere else",
    "c is invertible modulo m, so m neighbouring s reach every residue.",
    ("simplifier.solve.projected",),
    "<=>",
)
DROP_UNUSED: Final = Law(
    "drop unused variables",
    "{x -> f(x) : C(x) and exists s: D(s)} = {x -> f(x) : C(x)}",
    "D(s) has a solution; s occurs in no result, and in no constraint with other variables",
    "The condition on s is true. Without a solution the map is empty.",
    ("indexing.maps.unused.without_unused", "indexing.maps.unused.without_idle"),
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
    "the results of g lie in [a, b]; the expression of g(f(x)) may have wider bounds",
    "Every value of g(f(x)) is a value of g. A composition keeps the bounds of its last map.",
    ("indexing.maps.result_bounds.outside",),
    "<=>",
)

# ---------------------------------------------------------------- products, minima and maxima

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
    "0 <= r < n by bounds",
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
    "x - y >= 0 by bounds",
    "x >= y at every point.",
    ("simplifier.semiaffine.minimum", "simplifier.semiaffine.maximum"),
)

TABLE: Final = tuple([law for law in globals().values() if isinstance(law, Law)])
"""Every law, in the order of this module."""
