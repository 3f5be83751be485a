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

from simplifier.laws import constraints, division, domain, residues, semiaffine, variables
from simplifier.laws.constraints import (
    CLIP_BOUNDS,
    DECIDE_CONSTRAINT,
    DETECT_EMPTY,
    DIVIDE_CONSTRAINT,
    DROP_IMPLIED,
    INTERSECT_BOUNDS,
    MOVE_CONSTANT,
    PROPAGATE_BOUNDS,
    REFINE_BOUNDS,
    REMOVE_FLOOR,
)
from simplifier.laws.division import (
    BOUND_MOD,
    CANCEL_COMMON_FACTOR,
    EXPAND_MOD,
    FACTOR_OUT_MULTIPLES,
    FOLD_CONSTANT_FLOOR,
    MERGE_FLOORS,
    MERGE_LIKE_TERMS,
    MERGE_NEGATED_FLOOR,
    RECOMBINE_MOD,
)
from simplifier.laws.domain import (
    ADD_ZERO,
    DIVIDE_EXACTLY,
    FOLD_SINGLE_VALUE,
    ROUND_CONSTANT,
)
from simplifier.laws.residues import (
    COMBINE_CONGRUENCES,
    DECIDE_RESIDUE,
    DROP_IMPLIED_RESIDUES,
    INTERSECT_RESIDUES,
    INVERT_COEFFICIENT,
    NEGATE_RESIDUES,
    ROUND_TO_RESIDUES,
    SELECT_RESIDUE,
    SHIFT_RESIDUES,
)
from simplifier.laws.semiaffine import (
    DISTRIBUTE_PRODUCT,
    DROP_DOMINATED,
    DROP_REMAINDER,
    FACTOR_OUT_DIVISOR,
    FLATTEN_EXTREMUM,
    NEGATE_DIVISION,
)
from simplifier.laws.variables import (
    DROP_EQUAL_MAP,
    DROP_UNUSED,
    MERGE_MIXED_RADIX,
    OMIT_RESULT_BOUNDS,
    PROJECT_BOUNDS,
    PROJECT_RESIDUES,
    RESCALE_VARIABLE,
    SHIFT_RANGE,
    SOLVE_FOR_VARIABLE,
)

TABLE: Final = (
    *division.SECTION,
    *domain.SECTION,
    *constraints.SECTION,
    *residues.SECTION,
    *variables.SECTION,
    *semiaffine.SECTION,
)
"""Every law, in the order of ``docs/laws.md``."""

__all__ = [
    "ADD_ZERO",
    "BOUND_MOD",
    "CANCEL_COMMON_FACTOR",
    "CLIP_BOUNDS",
    "COMBINE_CONGRUENCES",
    "DECIDE_CONSTRAINT",
    "DECIDE_RESIDUE",
    "DETECT_EMPTY",
    "DISTRIBUTE_PRODUCT",
    "DIVIDE_CONSTRAINT",
    "DIVIDE_EXACTLY",
    "DROP_DOMINATED",
    "DROP_EQUAL_MAP",
    "DROP_IMPLIED",
    "DROP_IMPLIED_RESIDUES",
    "DROP_REMAINDER",
    "DROP_UNUSED",
    "EXPAND_MOD",
    "FACTOR_OUT_DIVISOR",
    "FACTOR_OUT_MULTIPLES",
    "FLATTEN_EXTREMUM",
    "FOLD_CONSTANT_FLOOR",
    "FOLD_SINGLE_VALUE",
    "INTERSECT_BOUNDS",
    "INTERSECT_RESIDUES",
    "INVERT_COEFFICIENT",
    "MERGE_FLOORS",
    "MERGE_LIKE_TERMS",
    "MERGE_MIXED_RADIX",
    "MERGE_NEGATED_FLOOR",
    "MOVE_CONSTANT",
    "NEGATE_DIVISION",
    "NEGATE_RESIDUES",
    "OMIT_RESULT_BOUNDS",
    "PROJECT_BOUNDS",
    "PROJECT_RESIDUES",
    "PROPAGATE_BOUNDS",
    "RECOMBINE_MOD",
    "REFINE_BOUNDS",
    "REMOVE_FLOOR",
    "RESCALE_VARIABLE",
    "ROUND_CONSTANT",
    "ROUND_TO_RESIDUES",
    "SELECT_RESIDUE",
    "SHIFT_RANGE",
    "SHIFT_RESIDUES",
    "SOLVE_FOR_VARIABLE",
    "TABLE",
]
