"""Affine expressions with floordiv and mod over bounded integers, in normal form.

>>> from simplifier import variable
>>> d0, d1 = variable("d0", 0, 6), variable("d1", 0, 14)
>>> d0 + d1 // 16, d1 % 16
(Expr('d0'), Expr('d1'))
"""

from simplifier.atoms import Floor, Variable
from simplifier.bounds import UNCONSTRAINED
from simplifier.divmod import floor_div, floor_mod
from simplifier.interval import Interval
from simplifier.linear import OPERATIONS, Affine, Expr, as_expr, constant, variable
from simplifier.pickled import constructor_call
from simplifier.reading import TextError
from simplifier.semiaffine import SemiAffine, maximum, minimum, product, quotient, remainder
from simplifier.text import expr_text

OPERATIONS.bounds = UNCONSTRAINED.bounds
OPERATIONS.floor_div, OPERATIONS.floor_mod = floor_div, floor_mod
OPERATIONS.product, OPERATIONS.quotient, OPERATIONS.remainder = product, quotient, remainder
OPERATIONS.text, OPERATIONS.reduced = expr_text, constructor_call

__all__ = [
    "Affine",
    "Expr",
    "Floor",
    "Interval",
    "SemiAffine",
    "TextError",
    "Variable",
    "as_expr",
    "constant",
    "maximum",
    "minimum",
    "variable",
]
