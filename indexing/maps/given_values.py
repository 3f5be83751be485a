"""Maps with values given for their runtime variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from hlo.arguments import brief
from hlo.text.names import nearest
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.replaced_variables import with_replaced_variables
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable, inside_atoms
from simplifier.linear import Expr, constant
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def unknown_count(name: str, element: object = "an element", needed: str = "its value") -> Unknown:
    """The `Unknown` for a count that depends on the runtime value `name`."""
    return Unknown(f"the read count of {element} depends on `{name}`: pass {needed}")


ValueT = TypeVar("ValueT")


class RuntimeValues(NamedTuple):
    """The values of a runtime variable: elements of an array, at the variable's index."""

    rt: RuntimeVariable
    array: NDArray[np.int64]

    def at(self, index: Sequence[Any]) -> Any:
        pairs = zip(index, self.array.shape, strict=True)
        inside = [np.asarray(np.clip(i, 0, size - 1), np.int64) for i, size in pairs]
        value = self.array[tuple(inside)] if inside else self.array
        return np.clip(value, *self.rt.clamp) if self.rt.clamp else value


class EvaluatedMap(NamedTuple):
    """A map with its runtime values.

    Attributes:
        map: the map, in which scalar values are substituted.
        given: values of the remaining runtime variables.
        translated_by: the name of a missing value that only translates the results, or ``""``.
    """

    map: IndexingMap
    given: dict[Variable, RuntimeValues]
    translated_by: str = ""


def with_values(
    indexing_map: IndexingMap, values: Mapping[str, ArrayLike]
) -> EvaluatedMap | Unknown:
    """The map with `values`; `Unknown` if a missing value does more than translate the results."""
    values = by_value_name([indexing_map], values)
    given = {rt.variable: g for rt in indexing_map.runtime if (g := given_values(rt, values))}
    fixed: dict[Variable, Expr] = {}
    translated_by = ""
    for rt in indexing_map.runtime:
        if rt.variable not in given:
            if not _only_translates(rt, indexing_map):
                return unknown_count(_name_of_value(rt), "an element", "its values")
            fixed[rt.variable] = constant(rt.variable.lower)
            translated_by = _name_of_value(rt)
        elif all(i.is_constant for i in rt.index):
            value = int(given.pop(rt.variable).at([i.constant for i in rt.index]))
            if not rt.variable.lower <= value <= rt.variable.upper:
                return EvaluatedMap(
                    IndexingMap.empty(indexing_map.dims, len(indexing_map.results)), {}
                )
            fixed[rt.variable] = constant(value)
    evaluated = with_replaced_variables(indexing_map, fixed, dict.fromkeys(fixed))
    remaining = {rt.variable: given[rt.variable]._replace(rt=rt) for rt in evaluated.runtime}
    return EvaluatedMap(evaluated, remaining, translated_by)


def by_value_name(maps: Iterable[IndexingMap], values: Mapping[str, ValueT]) -> dict[str, ValueT]:
    """Return values with the name of a source replaced by its `RuntimeVariable.value_name`.

    Raises:
        ValueError: a name is that of several sources, such as an instruction that is called twice.
    """
    whole: dict[str, dict[str, None]] = {}
    for rt in [rt for m in maps for rt in m.runtime]:
        whole.setdefault(_name_of_value(rt), {})[_whole_name(rt)] = None
    named: dict[str, ValueT] = {}
    for name, value in values.items():
        sources = whole.get(name, {name: None})
        if len(sources) > 1 and name not in sources:
            listed = sorted(sources)
            raise ValueError(
                f"`{name}` has different values in the maps: {', '.join(listed)}; "
                f"pass each by this name, such as `{listed[0]}`"
            )
        named[name if name in sources else next(iter(sources))] = value
    return named


def check_names(
    maps: Sequence[IndexingMap], values: Mapping[str, object], others: Iterable[str] = ()
) -> None:
    """Refuse values for names that no runtime variable of the maps, and no source of one, has.

    Args:
        others: names whose values the maps do not depend on.
    Raises:
        TypeError: there is such a name.
        ValueError: a name is that of several sources.
    """
    variables = [rt for m in maps for rt in m.runtime]
    known = {name for rt in variables for name in (rt.name, _name_of_value(rt), _whole_name(rt))}
    by_value_name(maps, values)
    for name in set(values).difference(known, others):
        hint = nearest(name, sorted(known)) or f"the maps have {', '.join(sorted(known)) or 'none'}"
        raise TypeError(f"no runtime variable, and no source of one, is named `{name}`; {hint}")


def given_values(rt: RuntimeVariable, values: Mapping[str, ArrayLike]) -> RuntimeValues | None:
    value = values.get(_whole_name(rt), values.get(rt.name))
    if value is None:
        return None
    array = source_values(rt, value, _name_of_value(rt))
    if array.ndim != len(rt.index):
        raise ValueError(
            f"`{_name_of_value(rt)}` has {len(rt.index)} dimensions; "
            f"the given value has {array.ndim}"
        )
    return RuntimeValues(rt, array.astype(np.int64))


def source_values(rt: RuntimeVariable, value: ArrayLike, name: str) -> NDArray[Any]:
    """Return a given value: one integer, or the array of the source.

    Of a source inside of loops, the arrays of all iterations are stacked: the first dimensions are
    the iterations of each loop, outermost first.

    Raises:
        TypeError: the value is not of integers.
        ValueError: the array has not the shape of the source, or lacks an iteration.
    """
    array = np.asarray(value)
    if array.dtype.kind not in "biu":
        raise TypeError(f"`{name}` needs integers, got {brief(value)}")
    if array.ndim not in (0, len(rt.index)):
        raise ValueError(
            f"`{name}` needs one integer, or an array with {len(rt.index)} dimensions; "
            f"got {array.ndim} dimensions"
        )
    if not array.ndim:
        return array
    shape = rt.array.array_shape if isinstance(rt.array, ArrayRef) else None
    own = array.shape[len(rt.iterations) :]
    if shape is not None and not any(shape.dynamic) and own != shape.dims:
        raise ValueError(f"`{name}` has shape {shape.dims}; the given value has {own}")
    for size, iteration in zip(array.shape, rt.iterations, strict=False):
        low, high = iteration.bounds
        if low <= high and high >= size:
            raise ValueError(
                f"`{name}` is read up to iteration {high}; the given value has {size} iterations"
            )
    return array


def _name_of_value(rt: RuntimeVariable) -> str:
    return str(rt.source_name if rt.source is not None else rt.name)


def _whole_name(rt: RuntimeVariable) -> str:
    return rt.value_name if rt.source is not None else rt.name


def _only_translates(rt: RuntimeVariable, m: IndexingMap) -> bool:
    """True if the value only translates the results: read counts do not depend on it."""
    mentions = [*[c.expr for c in m.constraints], *[i for other in m.runtime for i in other.index]]
    return (
        all(i.is_constant for i in rt.index)
        and rt.clamp in (None, rt.variable.bounds)
        and not any(rt.variable in expr.variables() for expr in mentions)
        and all(rt.variable not in inside_atoms(result) for result in m.results)
    )
