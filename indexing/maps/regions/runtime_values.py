"""The runtime variables without a value of a region: one name for each, and the words for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Literal, TypeAlias

from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable

RegionSide: TypeAlias = Literal["over", "under"]


def name_apart(variables: Iterable[RuntimeVariable]) -> tuple[RuntimeVariable, ...]:
    """Return each runtime value once, with a name of its own.

    Maps name their variables each from ``rt0``.  Variables of one source are one value, whose
    bounds contain those of all.  A variable whose name another value has is called ``rt0_1``, …, a
    name of no map, so that no value can be passed to the wrong variable.

    >>> pieces = [("i", 1, 4), ("i", 0, 3), ("j", 0, 4)]
    >>> starts = [RuntimeVariable(Variable("rt0", *own), array) for array, *own in pieces]
    >>> [(v.name, v.source, v.variable.bounds) for v in name_apart(starts)]
    [('rt0', 'i', (0, 4)), ('rt0_1', 'j', (0, 4))]
    """
    return name_together([tuple(variables)])[0]


def name_together(
    groups: Sequence[Iterable[RuntimeVariable]],
) -> list[tuple[RuntimeVariable, ...]]:
    """Return the variables of several regions with names for all regions; see `name_apart`."""
    listed = [list(group) for group in groups]
    names: dict[object, str] = {}
    for rt in [rt for group in listed for rt in group]:
        key = value_key(rt)
        if key not in names:
            names[key] = _unused_name(rt.name, names.values())
    return [_unite_variables(group, names) for group in listed]


def value_key(rt: RuntimeVariable) -> object:
    """Return what two variables of the same value have in common: the element of the source.

    A variable without a source is known by its name only.
    """
    return rt.name if rt.array is None else (rt.array, rt.index, rt.clamp)


def _unused_name(name: str, used: Iterable[str]) -> str:
    taken = set(used)
    if name not in taken:
        return name
    first = name.partition("_")[0] or name
    return next(new for k in count(1) if (new := f"{first}_{k}") not in taken)


def _unite_variables(
    group: Sequence[RuntimeVariable], names: dict[object, str]
) -> tuple[RuntimeVariable, ...]:
    values: dict[object, RuntimeVariable] = {}
    for rt in group:
        key = value_key(rt)
        known = values.get(key, rt).variable
        low, high = min(known.lower, rt.variable.lower), max(known.upper, rt.variable.upper)
        values[key] = replace(rt, variable=Variable(names[key], low, high))
    return tuple(values.values())


def over_values(variables: Iterable[RuntimeVariable], side: RegionSide) -> str:
    """Return the words for the values of runtime variables, after a space; empty without any.

    A region that contains the needed elements is the union *over* all values: some value needs
    each element. The elements of an under-approximation are needed *for all* values.

    >>> start = RuntimeVariable.start(0, size=9, window=5, source=1)
    >>> over_values([start], "over"), over_values([start], "under")
    (' over rt0 in [0, 4]', ' for all rt0 in [0, 4]')
    """
    bounds = [f"{v.name} in [{v.lower}, {v.upper}]" for v in [rt.variable for rt in variables]]
    words = "over" if side == "over" else "for all"
    return f" {words} {', '.join(bounds)}" if bounds else ""
