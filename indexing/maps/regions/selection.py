"""Maps at points, on arrays of points and on slices; see the methods of `IndexingMap`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import index
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, TypeGuard

import numpy as np

from hlo.arguments import brief, integers
from hlo.text.names import nearest
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.replaced_variables import with_replaced_variables
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact import number_type
from simplifier.linear import constant

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Index: TypeAlias = "int | slice | EllipsisType"

# ---------------------------------------------------------------- evaluation


def evaluate_at(
    m: IndexingMap,
    point: Sequence[ArrayLike],
    outside: Literal["mask", "raise"],
    values: Mapping[str, ArrayLike],
) -> tuple[Any, ...] | None:
    """Return the results at points; see `IndexingMap.__call__`."""
    if outside not in ("mask", "raise"):
        raise ValueError(f"`outside` is 'mask' or 'raise', got {outside!r}")
    if len(point) != len(m.dims):
        raise TypeError(f"the map has {_dimensions(m)}; got {len(point)} indices")
    others = m.variables[len(m.dims) :]
    _check_names(m, values, others)
    missing = [v.name for v in others if v.name not in values]
    if missing:
        raise TypeError(
            f"the map needs values of {', '.join(missing)}: pass {missing[0]}=…, or use "
            "`at` for all elements that a point needs"
        )
    given = [*point, *[values[v.name] for v in others]]
    arrays = [_integers(value, v.name) for value, v in zip(given, m.variables, strict=True)]
    if all(array.ndim == 0 for array in arrays):
        results = _results_at(m, [int(array) for array in arrays])
        if results is None and outside == "raise":
            numbers = ", ".join(
                [f"{v.name} = {a}" for v, a in zip(m.variables, arrays, strict=True)]
            )
            raise IndexError(f"{numbers} is outside the domain of {m}")
        return results
    return _results_of_arrays(m, arrays, outside)


def point_integers(function: str, m: IndexingMap, *kinds: object) -> tuple[int, ...]:
    """Return the values of dimensions, range and runtime variables together, as `int`.

    Raises:
        TypeError: a value is not an integer; for arrays, the message has the call to write.
    """
    values: list[int] = []
    own = m.dims, m.ranges, m.runtime
    for name, variables, given in zip(("dims", "ranges", "runtime"), own, kinds, strict=True):
        arrays = [each for each in given if _has_elements(each)] if _has_elements(given) else []
        if isinstance(given, np.ndarray) and given.shape != (len(variables),):
            arrays = [given]
        if arrays:
            raise TypeError(
                f"{function}: `{name}` must be a sequence of integers, one for each variable, "
                f"not {brief(arrays[0])}; write {_call(m)}, which accepts arrays"
            )
        values += integers(function, name, given)
    return tuple(values)


def _has_elements(value: object) -> TypeGuard[Iterable[object]]:
    return isinstance(value, list | tuple) or getattr(value, "ndim", 0) > 0


def _call(m: IndexingMap) -> str:
    """The expression that calls a map."""
    others = [f"{v.name}=…" for v in m.variables[len(m.dims) :]]
    return f"m({', '.join([*[d.name for d in m.dims], *others])})"


def _results_at(m: IndexingMap, values: Sequence[int]) -> tuple[int, ...] | None:
    dims, ranges = len(m.dims), len(m.ranges)
    return m.evaluate(values[:dims], values[dims : dims + ranges], values[dims + ranges :])


def _results_of_arrays(
    m: IndexingMap, arrays: Sequence[NDArray[Any]], outside: str
) -> tuple[Any, ...]:
    together = np.broadcast_arrays(*arrays)
    inside = np.ones(together[0].shape, bool)
    for v, array in zip(m.variables, together, strict=True):
        inside &= (array >= v.lower) & (array <= v.upper)
    kept, columns = _columns(m, [array[inside] for array in together])
    inside[inside] = kept
    if outside == "raise" and not inside.all():
        where = tuple(np.argwhere(~inside)[0].tolist())
        at = [f"{v.name} = {a[where]}" for v, a in zip(m.variables, together, strict=True)]
        raise IndexError(f"{', '.join(at)} is outside the domain of {m}")
    results: list[Any] = []
    for column in columns:
        values = np.zeros(inside.shape, column.dtype)
        values[inside] = column
        results.append(np.ma.array(values, mask=~inside))
    return tuple(results)


def _columns(
    m: IndexingMap, values: Sequence[NDArray[Any]]
) -> tuple[NDArray[np.bool_], list[NDArray[Any]]]:
    """For points in the box of `m`: which are in the domain, and the results of these points."""
    exprs = (*m.results, *[c.expr for c in m.constraints])
    if not all(expr.is_affine for expr in exprs):  # a divisor may be 0
        return _columns_one_by_one(m, values)
    largest = number_type((*exprs, *[v.as_expr() for v in m.variables]))
    number = object if largest is object else np.int64
    at = {v: array.astype(number) for v, array in zip(m.variables, values, strict=True)}
    kept = np.ones(values[0].shape, bool)
    for c in m.constraints:
        value = c.expr.value(at)
        kept &= (value >= c.lower) & (value <= c.upper)
    inside = {v: array[kept] for v, array in at.items()}
    count = int(kept.sum())
    return kept, [np.broadcast_to(np.asarray(r.value(inside), number), count) for r in m.results]


def _columns_one_by_one(
    m: IndexingMap, values: Sequence[NDArray[Any]]
) -> tuple[NDArray[np.bool_], list[NDArray[Any]]]:
    rows = [_results_at(m, row) for row in zip(*[v.tolist() for v in values], strict=True)]
    present = [row for row in rows if row is not None]
    columns = [np.array([row[k] for row in present], np.int64) for k in range(len(m.results))]
    return np.array([row is not None for row in rows], bool), columns


def _integers(value: ArrayLike, name: str) -> NDArray[Any]:
    array = np.asarray(value)
    if array.dtype == object and all(isinstance(v, int) for v in array.flat):
        return array
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name} needs integers, got {brief(value)} of type {array.dtype}")
    return array.astype(object) if array.dtype == np.uint64 else array.astype(np.int64)


# ---------------------------------------------------------------- regions


def image_of(m: IndexingMap) -> IndexingMap:
    """Return the results of `m` as a map without dimensions."""
    return replace(m, dims=(), ranges=(*m.dims, *m.ranges))


def expand_ellipsis(point: Sequence[Index], m: IndexingMap) -> list[int | slice]:
    """Return the point with slices for `...`."""
    places = [k for k, at in enumerate(point) if isinstance(at, EllipsisType)]
    rank = len(m.dims)
    if len(places) == 1:
        k = places[0]
        missing = rank - len(point) + 1
        if missing >= 0:
            point = [*point[:k], *[slice(None)] * missing, *point[k + 1 :]]
    if len(point) != rank:
        raise ValueError(f"the map has {_dimensions(m)}; got {len(point)} indices")
    return [slice(None) if isinstance(at, EllipsisType) else at for at in point]


def check_index(v: Variable, at: int) -> int:
    """Return an index as `int`.

    Raises:
        IndexError: it is outside of the bounds of the variable.
        TypeError: it is not an integer.
    """
    value = integer(at, v.name)
    if not v.lower <= value <= v.upper:
        raise IndexError(f"{v.name} = {value} is outside [{v.lower}, {v.upper}]")
    return value


def integer(value: object, name: str, expected: str = "an integer or a slice") -> int:
    """Return an index as `int`; raise `TypeError` for other types."""
    try:
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        write = "; write m(…) to evaluate the map on arrays" if _has_elements(value) else ""
        raise TypeError(f"{name} needs {expected}, got {brief(value)}{write}") from None


def fix_variables(m: IndexingMap, values: Mapping[str, int]) -> IndexingMap:
    """Return the map with values for some variables; see `IndexingMap.fix`."""
    by_name = _check_names(m, values, m.variables)
    for name, value in values.items():
        m = with_value(m, by_name[name], integer(value, name, "an integer"))
    return m.simplify()


def restrict_domain(m: IndexingMap, slices: Mapping[str, slice]) -> IndexingMap:
    """Return the map on slices of its domain; see `IndexingMap.restrict`."""
    _check_names(m, slices, (*m.dims, *m.ranges))
    for name, part in slices.items():
        (variable,) = [v for v in (*m.dims, *m.ranges) if v.name == name]
        if not isinstance(part, slice):
            raise TypeError(f"{name} needs a slice such as slice(0, 32), got {brief(part)}")
        m = restrict_to(m, variable, part)
    return m.simplify()


def restrict_to(m: IndexingMap, v: Variable, part: slice) -> IndexingMap:
    """Return the map with a variable restricted to a slice of its bounds.

    Raises:
        TypeError: a bound of the slice is not an integer.
        ValueError: the step is not positive, or a bound is negative.
    """
    start, stop, step = [
        None if bound is None else integer(bound, v.name)
        for bound in (part.start, part.stop, part.step)
    ]
    if step is not None and step < 1:
        raise ValueError(f"the step of {v.name} must be at least 1, got {step}")
    if min(start or 0, stop or 0) < 0 <= v.lower:
        raise ValueError(
            f"{v.name} is in [{v.lower}, {v.upper}], and negative indices do not count from the "
            f"end: write slice({v.upper + 1} - n, None) for the last n"
        )
    low = v.lower if start is None else start
    high = v.upper if stop is None else min(v.upper, stop - 1)
    first = max(low, v.lower) if step is None else low + -((low - v.lower) // step) * step
    first = max(low, first)
    narrowed = Variable(v.name, first, high)
    changed = with_replaced_variables(m, {v: narrowed.as_expr()}, {v: narrowed})
    if step in (None, 1) or first >= high:
        return changed
    on_step = Constraint((narrowed - first) % step, 0, 0)
    return changed.with_constraints([on_step])


def rename_variables(m: IndexingMap, names: Mapping[Variable, str]) -> IndexingMap:
    """Return the map with other names for variables.

    >>> m = IndexingMap.identity((4,))
    >>> print(rename_variables(m, {m.dims[0]: "row"}))
    (row) -> (row), domain: row in [0, 3]
    """
    new = {v: v.renamed(name) for v, name in names.items() if v.name != name}
    return (
        with_replaced_variables(m, {v: other.as_expr() for v, other in new.items()}, new)
        if new
        else m
    )


def with_value(m: IndexingMap, v: Variable, value: int) -> IndexingMap:
    """Return the map without a variable, on the part of the domain where it has this value."""
    if not v.lower <= value <= v.upper:
        dims = [d for d in m.dims if d is not v]
        return IndexingMap.empty(dims, len(m.results))
    return with_replaced_variables(m, {v: constant(value)}, {v: None})


# ---------------------------------------------------------------- values by name


def _check_names(
    m: IndexingMap, values: Iterable[str], variables: Iterable[Variable]
) -> dict[str, Variable]:
    by_name = {v.name: v for v in variables}
    for name in values:
        if name not in by_name:
            raise_unknown_name(m, name, by_name)
    return by_name


def raise_unknown_name(m: IndexingMap, name: str, known: Iterable[str]) -> NoReturn:
    """Raise `TypeError` for a name that is not one of those `known`, with similar names."""
    names = sorted(known)
    hint = nearest(name, names) or f"it has {', '.join(names) or 'none'}"
    raise TypeError(f"{m} has no variable {name!r} to set; {hint}")


def _dimensions(m: IndexingMap) -> str:
    count = len(m.dims)
    return f"{count} dimension{'s' * (count != 1)}"


# ---------------------------------------------------------------- counts
