"""Maps with the values that given integer parameters decide.

>>> import hlo, indexing
>>> root = hlo.parse('''ENTRY e {
...   x = f32[8] parameter(0)
...   n = s32[] parameter(1)
...   ROOT r = f32[2] dynamic-slice(x, n), dynamic_slice_sizes={2}
... }''').entry.root
>>> answer = with_values(indexing.output_to_input(root), {"n": 9})
>>> print(*answer.maps[0])
(d0) -> (d0 + 6), domain: d0 in [0, 1]
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from hlo.modules.module import Computation, Instruction
from hlo.shapes.element_type import dtype, range_of
from hlo.shapes.shape import Shape
from indexing.dataflow.constants import is_integral
from indexing.dataflow.evaluation import Evaluation
from indexing.dataflow.given_constants import with_constants
from indexing.dataflow.tables import table_maps
from indexing.maps.answers import Answer
from indexing.maps.arrays import ArrayRef
from indexing.maps.assumed_map import assumed_map
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.options import Options
from indexing.maps.replaced_variables import with_replaced_variables
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.constraints import Constraint
from simplifier.substitute import Substitution

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def integer_parameters(computation: Computation) -> Mapping[str, Instruction]:
    """Return the parameters of a computation that are arrays of integers, by name."""

    def find() -> Mapping[str, Instruction]:
        own = {each.name: each for each in computation.parameters if is_integral(ArrayRef(each))}
        return MappingProxyType(own)

    return computation.memoised(integer_parameters, find)


ValueT = TypeVar("ValueT")


def with_parameter_names(
    computation: Computation, values: Mapping[str, ValueT]
) -> dict[str, ValueT]:
    """Return values by the names that HLO has for parameters, given also by names that JAX has.

    The argument `pos` of a function is the parameter ``pos.1``, with ``pos`` as its ``op_name``.

    >>> import hlo
    >>> entry = hlo.parse('''ENTRY e {
    ...   ROOT pos.1 = s32[] parameter(0), metadata={op_name="pos"} }''').entry
    >>> with_parameter_names(entry, {"pos": 5, "rt0": 3})
    {'pos.1': 5, 'rt0': 3}
    """
    own = _own_names(computation)
    return {own.get(name, name): value for name, value in values.items()}


def _own_names(computation: Computation) -> dict[str, str]:
    """Return the name of each integer parameter by its names in JAX, those that are unambiguous."""

    def find() -> dict[str, str]:
        owners: dict[str, set[str]] = {}
        for name, parameter in integer_parameters(computation).items():
            for other in {parameter.source.op_name, _NUMBER.sub("", name)} - {"", None, name}:
                owners.setdefault(str(other), set()).add(name)
        own = computation.names
        single = {other: min(names) for other, names in owners.items() if len(names) == 1}
        return {other: name for other, name in single.items() if other not in own}

    return computation.memoised(_own_names, find)


_NUMBER: Final = re.compile(r"\.\d+$")


def evaluation_of(computation: Computation, values: Mapping[str, ArrayLike]) -> Evaluation:
    """Return what follows from the values of the integer parameters of a computation."""
    given = integer_values(computation, values)
    return Evaluation({ArrayRef(computation[name]): value for name, value in given.items()})


def integer_values(
    computation: Computation, values: Mapping[str, ArrayLike]
) -> dict[str, NDArray[Any]]:
    """Return the given values of the integer parameters of a computation, in their types."""
    parameters = integer_parameters(computation).items()
    return {name: parameter_value(p, values[name]) for name, p in parameters if name in values}


def with_values(answer: Answer, values: Mapping[str, ArrayLike]) -> Answer:
    """Return an answer whose maps have the values that given integer parameters decide.

    A map for whose value there is no formula keeps its runtime variable.
    """
    computation = answer.instruction.computation
    answer = with_constants(answer, integer_values(computation, values))
    evaluation = evaluation_of(computation, values)
    columns = []
    for rows in zip(answer.maps, answer.paths, answer.reasons, answer.control, strict=True):
        own = {
            (piece, *row): None
            for m, *row in zip(*rows, strict=True)
            for piece in _pieces(m, evaluation, answer.options)
        }
        columns.append(tuple(zip(*own, strict=True)) or ((),) * len(rows))
    maps, paths, reasons, control = tuple(zip(*columns, strict=True)) or ((),) * 4
    return replace(answer, maps=maps, paths=paths, reasons=reasons, control=control)


def _pieces(m: IndexingMap, evaluation: Evaluation, options: Options) -> Sequence[IndexingMap]:
    """Return the disjoint pieces of a map with the known values of its runtime variables."""
    pieces = [m]
    for rt in m.runtime:
        pieces = [new for piece in pieces for new in _with_value(piece, rt.name, evaluation)]
    if pieces != [m]:
        pieces = [options.simplify_map(piece) for piece in pieces]
    if m.assumptions:
        pieces = [assumed_map(piece, m.assumptions) for piece in pieces]
    return [piece for piece in pieces if not piece.is_known_empty]


def _with_value(m: IndexingMap, name: str, evaluation: Evaluation) -> Iterator[IndexingMap]:
    """Yield a map with the value of the runtime variable `name`, in a piece for each formula."""
    rt = next(rt for rt in m.runtime if rt.name == name)
    table = _table(rt, evaluation)
    if table is None:
        yield m
        return
    for piece in table:
        swap = Substitution(dict(zip(piece.dims, rt.index, strict=True)))
        value = swap(piece.results[0])
        within = [Constraint(swap(c.expr), c.lower, c.upper) for c in piece.constraints]
        within.append(Constraint(value, *rt.variable.bounds))
        if not any(c.is_false for c in within):
            new = with_replaced_variables(m, {rt.variable: value}, {rt.variable: None})
            yield new.with_constraints([c for c in within if not c.is_true])


def _table(rt: RuntimeVariable, evaluation: Evaluation) -> tuple[IndexingMap, ...] | None:
    """Return the clamped elements of the source of a runtime variable as formulas, if known."""
    if not isinstance(rt.array, ArrayRef) or rt.array.loops:
        return None
    value = evaluation.value(rt.array)
    if value is None:
        return None
    exact = value.astype(object)
    return table_maps(np.asarray(np.clip(exact, *rt.clamp), object) if rt.clamp else exact)


def parameter_value(parameter: Instruction, value: ArrayLike) -> NDArray[Any]:
    """Return a value of a parameter in its type; one integer is the value of all elements.

    Raises:
        ValueError: the value has another shape, is not of integers, or exceeds the type.
    """
    shape = parameter.shape
    assert isinstance(shape, Shape)
    array = np.asarray(value)
    if array.dtype.kind not in "biu" or array.shape not in ((), shape.dims):
        raise ValueError(
            f"`{parameter.name}` is {shape.with_layout(None)}; the given value is "
            f"{array.dtype}{list(array.shape)}"
        )
    low, high = range_of(shape.element_type) or (0, 0)
    outside = array[(array < low) | (array > high)]
    if outside.size:
        raise ValueError(
            f"`{parameter.name}` is {shape.with_layout(None)}, of integers in [{low}, {high}]; "
            f"a given value is {outside.flat[0]}"
        )
    return np.broadcast_to(array, shape.dims).astype(dtype(shape.element_type))
