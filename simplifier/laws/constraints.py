"""Laws of constraints ``expression in [lower, upper]``."""

from __future__ import annotations

from typing import Final

from simplifier.trace import Law

DECIDE_CONSTRAINT: Final = Law(
    "decide a constraint by bounds",
    "e in [a, b] <=> true;  e in [a, b] <=> false",
    "bounds of e lie in [a, b]; bounds of e and [a, b] are disjoint",
    "Bounds contain every value of e. They are computed with mods as units, or after one floor "
    "of e is multiplied out.",
    ("simplifier.constraints.normalise",),
    "<=>",
)
MOVE_CONSTANT: Final = Law(
    "move the constant to the bounds",
    "e + c in [a, b] <=> e in [a - c, b - c]",
    "none",
    "Subtract c from all three sides.",
    ("simplifier.constraints.normalise",),
    "<=>",
)
DIVIDE_CONSTRAINT: Final = Law(
    "divide a constraint by its common factor",
    "g·e in [a, b] <=> e in [ceil(a / g), floor(b / g)]",
    "g > 0; for g < 0, [a, b] is negated first",
    "e is an integer, so the bounds round inwards, which ceil and floor do for either sign.",
    ("simplifier.constraints.normalise",),
    "<=>",
)
REMOVE_FLOOR: Final = Law(
    "remove the floor of a constraint",
    "q + floor(n / d) in [a, b] <=> d·q + n in [a·d, b·d + d - 1]",
    "d > 0; (choice) no other floor has the coefficient 1 or -1",
    "q + floor(n / d) = floor((d·q + n) / d), and a <= floor(y / d) <= b iff a·d <= y < (b + 1)·d.",
    ("simplifier.constraints.normalise",),
    "<=>",
)
CLIP_BOUNDS: Final = Law(
    "clip bounds to reachable values",
    "e in [a, b] <=> e in [max(a, l), min(b, u)]",
    "e in [l, u] for all values of its variables",
    "e never leaves [l, u]. An empty intersection is false.",
    ("simplifier.constraints.normalise",),
    "<=>",
)
INTERSECT_BOUNDS: Final = Law(
    "intersect bounds",
    "e in [a, b] and e in [p, q] <=> e in [max(a, p), min(b, q)]",
    "both constraints are on the same expression; the result is false if it is empty",
    "Intersection of intervals.",
    ("simplifier.conjunction.merge_constraints",),
    "<=>",
)
DROP_IMPLIED: Final = Law(
    "drop an implied constraint",
    "A and B <=> A",
    "A and the bounds of the variables imply B",
    "By intervals: B is on c·p + r, and A bounds p. Otherwise enumeration or ISL proves it.",
    (
        "simplifier.conjunction.merge_constraints",
        "simplifier.domain.tighten",
        "simplifier.refine.refine",
    ),
    "<=>",
)
PROPAGATE_BOUNDS: Final = Law(
    "propagate bounds",
    "c·x + e in [a, b] => x in [ceil((a - u) / c), floor((b - l) / c)]",
    "c > 0 and e in [l, u]; for c < 0, the constraint is negated first",
    "c·x lies in [a - u, b - l]. x is an integer, so the bounds round inwards. "
    "floor(n / d) in [p, q] gives n in [p·d, q·d + d - 1].",
    ("simplifier.domain.tighten",),
    "=>",
)
REFINE_BOUNDS: Final = Law(
    "refine bounds exactly",
    "A => e in [min e, max e]",
    "minimum and maximum are over the points that satisfy A",
    "Enumeration of a small box with arrays, or ISL, finds the minimum and the maximum.",
    ("simplifier.refine.refine",),
    "=>",
)
DETECT_EMPTY: Final = Law(
    "detect an empty domain",
    "A <=> false",
    "no point satisfies A",
    "Enumeration of a small box with arrays, or ISL, finds no point.",
    ("simplifier.refine.refine",),
    "<=>",
)

SECTION: Final = tuple([law for law in globals().values() if isinstance(law, Law)])
"""The laws of this module, in text order."""
