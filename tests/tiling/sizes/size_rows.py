"""Random constraints on tile sizes as rows, and their values without construction."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import strategies as st

from indexing.tiling.sizes.size_constraints import SizeConstraints, all_of, any_of, condition
from simplifier import Expr, as_expr, maximum, minimum, variable

UPPER = 7
TS = [variable(f"ts_{k}", 1, UPPER) for k in range(3)]
POINTS = list(product(range(1, UPPER + 3), repeat=3))
"""Sizes of tiles, also beyond the dimensions."""

LEAVES: list[Expr] = [
    *TS,
    *(ts % 3 for ts in TS),
    *(as_expr(6) % ts for ts in TS),
    TS[0] * TS[1],
    TS[0] - TS[1] * 2,
    (TS[0] * TS[1]) % 4,
    as_expr(6) % (TS[0] + TS[1]),
    (TS[1] + 3) // 4,
    minimum(TS[0], 5) % TS[2],
    maximum(TS[1], TS[2]),
]
_BOUNDS = st.one_of(st.none(), st.integers(-2, 9))
_LEAF = st.tuples(st.integers(0, len(LEAVES) - 1), _BOUNDS, _BOUNDS)


def rows(depth: int) -> st.SearchStrategy[Any]:
    """Conditions, as the number of a leaf and bounds, and joins of at most `depth` levels."""
    strategy: st.SearchStrategy[Any] = _LEAF
    for _ in range(depth):
        joins = st.tuples(st.sampled_from("&|"), st.lists(strategy, max_size=4))
        strategy = st.one_of(_LEAF, joins)
    return strategy


def tree_of(row: Any) -> SizeConstraints:
    """The constraints of a row."""
    match row:
        case "&", list(parts):
            return all_of(map(tree_of, parts))
        case "|", list(parts):
            return any_of(map(tree_of, parts))
        case number, lower, upper:
            return condition(LEAVES[number], lower, upper)
        case _:
            raise TypeError(row)


def value_of(row: Any, sizes: tuple[int, ...]) -> bool:
    """The value of a row at `sizes`, from its expressions alone."""
    match row:
        case "&", list(parts):
            return all(value_of(part, sizes) for part in parts)
        case "|", list(parts):
            return any(value_of(part, sizes) for part in parts)
        case number, lower, upper:
            expr = LEAVES[number]
            point = {v: min(sizes[int(v.name[3:])], UPPER) for v in expr.variables()}
            value = expr.value(point)
            return (lower is None or lower <= value) and (upper is None or value <= upper)
        case _:
            raise TypeError(row)
