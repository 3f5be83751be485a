"""Exact answers about domains and relations, from ISL; the only package that imports islpy.

Each query has a budget of isl operations.  Beyond the budget the answer is `Unknown`.  Small boxes
are enumerated instead, which always gives an answer.

* `context`: budgets and the number of queries;
* `encode`: relations, and their formulas; `matrices`: the same as constraints, without formulas;
* `reading`: relations as isl sets and maps; `decode`: the way back;
* `foreign`: isl objects made by other tools, as relations;
* `cardinality`: the number of points of a set, by isl or barvinok;
* `queries`: emptiness, bounds, equality, differences, counts, inverse, image;
* `tightening`: tight bounds and implied constraints of a domain, in one query;
* `points`: enumeration of small boxes and probes of large ones; `point_arrays`: their arrays;
* `unions`: unions of relations, and points that satisfy disjunctions;
* `closures`: transitive closures of relations that step back in time.

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

from simplifier.exact.context import BUDGET, query_count
from simplifier.exact.encode import Relation, relation_text
from simplifier.exact.foreign import ImportedRelation, relations, to_isl
from simplifier.exact.point_arrays import number_type
from simplifier.exact.points import (
    Probe,
    enumerated_is_empty,
    enumerated_tight_bounds,
    keep_probe,
    probe,
    probed_tight_bounds,
    should_enumerate,
)
from simplifier.exact.queries import (
    DifferingPoint,
    are_equal,
    bounds,
    count,
    difference,
    image,
    inverse,
    is_empty,
)
from simplifier.exact.tightening import TightBounds, tight_bounds

__all__ = [
    "BUDGET",
    "DifferingPoint",
    "ImportedRelation",
    "Probe",
    "Relation",
    "TightBounds",
    "are_equal",
    "bounds",
    "count",
    "difference",
    "enumerated_is_empty",
    "enumerated_tight_bounds",
    "image",
    "inverse",
    "is_empty",
    "keep_probe",
    "number_type",
    "probe",
    "probed_tight_bounds",
    "query_count",
    "relation_text",
    "relations",
    "should_enumerate",
    "tight_bounds",
    "to_isl",
]
