"""Answers for given values of integer parameters, from which other runtime values follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from indexing.dataflow.given_constants import with_constants
from indexing.dataflow.valued_maps import (
    evaluation_of,
    integer_parameters,
    integer_values,
    with_parameter_names,
)
from indexing.maps.answers import Answer
from indexing.maps.arrays import ArrayRef
from indexing.maps.given_values import by_value_name
from indexing.maps.regions import answers
from indexing.maps.regions.selection import Index

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def regions_at(
    answer: Answer, point: Sequence[Index], values: Mapping[str, ArrayLike]
) -> tuple[answers.OperandRegion, ...]:
    """Return the elements of each operand that a point or a tile needs; see `Answer.at`.

    >>> import hlo, indexing
    >>> root = hlo.parse('''ENTRY e {
    ...   x = f32[8] parameter(0)
    ...   n = s32[] parameter(1)
    ...   m = s32[] multiply(n, n)
    ...   ROOT r = f32[2] dynamic-slice(x, m), dynamic_slice_sizes={2}
    ... }''').entry.root
    >>> region, _ = indexing.to_parameters(root).at(0, n=2)
    >>> print(region)
    [4]
    """
    values = with_parameter_names(answer.instruction.computation, values)
    given = integer_values(answer.instruction.computation, values)
    answer = with_constants(answer, given)
    try:
        return answers.regions_at(answer, point, with_computed_values(answer, values))
    except TypeError as error:
        parameters = integer_parameters(answer.instruction.computation)
        if not parameters or values.keys() <= parameters.keys():
            raise
        listed = ", ".join(parameters)
        raise TypeError(f"{error}; the integer parameters are {listed}") from None


def with_computed_values(
    answer: Answer, values: Mapping[str, ArrayLike]
) -> Mapping[str, ArrayLike]:
    """Return values with those of the runtime variables that integer parameters decide.

    Parameters on which no runtime variable depends are left out: the answer is the same.
    """
    values = with_parameter_names(answer.instruction.computation, values)
    parameters = integer_parameters(answer.instruction.computation)
    own = {name: value for name, value in values.items() if name in parameters}
    others = {name: value for name, value in values.items() if name not in parameters}
    values = own | by_value_name([m for maps in answer.maps for m in maps], others)
    if parameters.keys().isdisjoint(values):
        return values
    sources = _sources(answer)
    kept = {n: v for n, v in values.items() if n not in parameters or n in sources}
    evaluation = evaluation_of(answer.instruction.computation, values)
    for name, array in sources.items():
        if name not in kept and (value := evaluation.value(array)) is not None:
            kept[name] = value
    return kept


def _sources(answer: Answer) -> dict[str, ArrayRef]:
    """Return the sources of the runtime variables of an answer outside of loops, by whole name."""
    runtime = [rt for maps in answer.maps for m in maps for rt in m.runtime]
    sources = [(rt.value_name, rt.array) for rt in runtime if isinstance(rt.array, ArrayRef)]
    return {name: array for name, array in sources if not array.loops}
