"""The check of a map whose variables and expressions come from elsewhere."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, get_args

from hlo.arguments import check_fields, wrong_argument
from simplifier.atoms import Variable, undeclared
from simplifier.constraints import Constraint
from simplifier.linear import Expr

Grade: TypeAlias = Literal["exact", "may"]
_GRADES: Final = frozenset(get_args(Grade))


def check_map(m: Any) -> None:
    """Check the fields of an `IndexingMap`, whose module imports this one.

    Raises:
        TypeError: a field is of the wrong kind.
        ValueError: two variables have the same name, or an expression has a variable that is not a
            variable of the map; or the grade is unknown.
    """
    try:
        variables: tuple[Variable, ...] = m.variables
        names = {v.name for v in variables}
        exprs: list[Expr] = list(m.results)
        constraints: tuple[Constraint, ...] = m.constraints
        for constraint in constraints:
            exprs.append(constraint.expr)
        for rt in m.runtime:
            exprs += rt.index
        foreign = undeclared(exprs, variables)
        is_grade = m.grade in _GRADES
    except (AttributeError, TypeError, ValueError):  # the last one: an array has no truth value
        check_fields(m)
        raise
    if len(names) != len(variables):
        listed = [v.name for v in variables]
        raise ValueError(f"the variables of a map need distinct names, got {listed}")
    if foreign:
        first = min(map(repr, foreign))
        raise ValueError(f"{first} is not one of the map's variables {variables}")
    if not is_grade:
        raise wrong_argument("IndexingMap", "grade", Grade, m.grade)
