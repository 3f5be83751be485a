"""Exact answers about domains and relations, from ISL; the only package that imports islpy.

Every call has a budget of isl's own operations.  Beyond it the answer is `Unknown`.  What
simplifying asks of a small box needs no isl: there is an answer.

* `context`: budgets, a count of what was asked;
* `encode`: expressions and relations as isl's sets and maps; `decode`: the way back;
* `foreign`: what others made with isl, as relations;
* `questions`: emptiness, bounds, differences, counts, inverse, image; `surveying`: what simplifying
  asks, in one question; `points`: the same from all points of a small box; `unions`: several
  relations at once, points that satisfy alternatives.

Source: the isl manual (``isl_ctx_set_max_operations``); Verdoolaege, "isl: An Integer Set Library
for the Polyhedral Model", 2010.

>>> from simplifier.constraints import Constraint
>>> from simplifier.atoms import Variable
>>> d0, d1 = Variable("d0", 0, 9), Variable("d1", 0, 9)
>>> is_empty((d0, d1), [Constraint(d0 * 2 - d1 * 4, 3, 3)])
True
>>> bounds((d0, d1), [Constraint(d0 + d1, 0, 5)], d0 * 2 + d1)
(0, 10)
"""

from simplifier.exact.context import BUDGET, asked
from simplifier.exact.encode import Relation, relation_text, to_isl
from simplifier.exact.foreign import Foreign, relations
from simplifier.exact.points import Few, Shown, has_no_points, may_be_surveyed, shown, surveyed
from simplifier.exact.questions import (
    Witness,
    bounds,
    count,
    difference,
    image,
    inverse,
    is_empty,
)
from simplifier.exact.surveying import Survey, survey

__all__ = [
    "BUDGET",
    "Few",
    "Foreign",
    "Relation",
    "Shown",
    "Survey",
    "Witness",
    "asked",
    "bounds",
    "count",
    "difference",
    "has_no_points",
    "image",
    "inverse",
    "is_empty",
    "may_be_surveyed",
    "relation_text",
    "relations",
    "shown",
    "survey",
    "surveyed",
    "to_isl",
]
