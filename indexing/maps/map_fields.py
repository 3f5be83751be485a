"""The fields of a map, and their check where variables and expressions come from elsewhere.

`indexing.maps.indexing_map.IndexingMap` adds the methods.  The fields have a class of their own for
mypyc, which compiles it: compiled modules read and set these fields directly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, TypeVar, get_args

from hlo.arguments import wrong_argument
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable, are_variables, undeclared_variables
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.native import is_native, mypyc_attr
from simplifier.slots import setters

Grade: TypeAlias = Literal["exact", "may"]
GRADES: Final = frozenset(get_args(Grade))


@mypyc_attr(allow_interpreted_subclasses=True)
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class MapFields:
    """The fields of an `IndexingMap`, which documents them.

    Two maps are equal if all their fields are equal.
    """

    dims: tuple[Variable, ...]
    ranges: tuple[Variable, ...]
    runtime: tuple[RuntimeVariable, ...]
    results: tuple[Expr, ...]
    constraints: tuple[Constraint, ...]
    grade: Grade
    _hash: int = field(init=False, repr=False)
    # the last map of the composition that made this map; results are within its result bounds
    _last: MapFields | None = field(init=False, repr=False)

    def __hash__(self) -> int:
        if not self._hash:
            key = self.dims, self.ranges, self.runtime, self.results, self.constraints, self.grade
            _SET_HASH(self, hash(key))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, MapFields):
            return NotImplemented
        return (
            self.dims == other.dims
            and self.results == other.results
            and self.ranges == other.ranges
            and self.runtime == other.runtime
            and self.constraints == other.constraints
            and self.grade == other.grade
        )

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Dimensions, range variables and runtime variables, in this order.

        >>> from indexing import parse_map
        >>> window = parse_map("(d0)[s0] -> (d0 * 2 + s0), domain: d0 in [0, 7], s0 in [0, 2]")
        >>> [(v.name, v.lower, v.upper) for v in window.variables]
        [('d0', 0, 7), ('s0', 0, 2)]
        """
        if not self.runtime:
            return (*self.dims, *self.ranges)
        return (*self.dims, *self.ranges, *[rt.variable for rt in self.runtime])

    @property
    def is_identity(self) -> bool:
        """True if the results are the dimensions, and these are the only variables.

        >>> from indexing import IndexingMap
        >>> transposed = IndexingMap.over((2, 3), lambda d: [d[1], d[0]])
        >>> transposed.is_identity, IndexingMap.identity((2, 3)).is_identity
        (False, True)
        """
        if self.ranges or self.runtime or self.constraints or self.grade != "exact":
            return False
        return are_variables(self.results, self.dims)


_SET_DIMS, _SET_RANGES, _SET_RUNTIME = setters(MapFields, "dims", "ranges", "runtime")
_SET_RESULTS, _SET_CONSTRAINTS = setters(MapFields, "results", "constraints")
_SET_GRADE, _SET_HASH, _SET_LAST = setters(MapFields, "grade", "_hash", "_last")
_IS_NATIVE: Final = is_native(MapFields)
_NEW: Final = MapFields.__new__

M = TypeVar("M", bound=MapFields)


def set_fields(
    m: MapFields,
    dims: tuple[Variable, ...],
    ranges: tuple[Variable, ...],
    runtime: tuple[RuntimeVariable, ...],
    results: tuple[Expr, ...],
    constraints: tuple[Constraint, ...],
    grade: Grade,
) -> None:
    """Set the fields of a new map."""
    if _IS_NATIVE:
        m.dims, m.ranges, m.runtime = dims, ranges, runtime  # type: ignore[misc]
        m.results, m.constraints, m.grade = results, constraints, grade  # type: ignore[misc]
        m._hash, m._last = 0, None  # type: ignore[misc]
    else:
        _SET_DIMS(m, dims)
        _SET_RANGES(m, ranges)
        _SET_RUNTIME(m, runtime)
        _SET_RESULTS(m, results)
        _SET_CONSTRAINTS(m, constraints)
        _SET_GRADE(m, grade)
        _SET_HASH(m, 0)
        _SET_LAST(m, None)


def set_last_map(m: MapFields, last: MapFields) -> None:
    """Record the last map of the composition that made `m` (`indexing.maps.result_bounds`)."""
    if _IS_NATIVE:
        m._last = last  # type: ignore[misc]
    else:
        _SET_LAST(m, last)


def closed_map(
    cls: type[M],
    dims: tuple[Variable, ...],
    ranges: tuple[Variable, ...],
    runtime: tuple[RuntimeVariable, ...],
    results: tuple[Expr, ...],
    constraints: tuple[Constraint, ...],
    grade: Grade,
) -> M:
    """Return a map whose names and variables are those of checked maps, without a check."""
    m = _NEW(cls)
    set_fields(m, dims, ranges, runtime, results, constraints, grade)
    return m


def check_fields(m: MapFields) -> None:
    """Check the names and variables of a map.

    Raises:
        TypeError: a field is of the wrong kind.
        ValueError: two variables have the same name, or an expression has a variable that is not a
            variable of the map; or the grade is unknown.
    """
    variables, exprs = m.dims + m.ranges, m.results
    if m.runtime + m.constraints:
        variables += tuple([rt.variable for rt in m.runtime])
        exprs += tuple([expr for rt in m.runtime for expr in rt.index])
        exprs += tuple([constraint.expr for constraint in m.constraints])
    names: set[str] = set()
    for variable in variables:  # no comprehensions, which are calls: maps are made often
        names.add(variable.name)
    foreign = undeclared_variables(exprs, variables)
    if len(names) != len(variables):
        listed = [v.name for v in variables]
        raise ValueError(f"the variables of a map need distinct names, got {listed}")
    if foreign:
        first = min(map(repr, foreign))
        raise ValueError(f"{first} is not one of the map's variables {variables}")
    if m.grade not in GRADES:
        raise wrong_argument("IndexingMap", "grade", Grade, m.grade)
