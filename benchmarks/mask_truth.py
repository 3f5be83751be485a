"""The elements that programs need, by executions on XLA:CPU with one element changed at a time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import jax
import numpy as np

from benchmarks.mask_programs import Array, Program
from tests.dataflow.influence import Mask

Needed: TypeAlias = dict[tuple[int, int], Mask]
"""Of an output and an argument: which element of the output needs which element of the argument."""

FLOATS: Final = (0.0, 1.0, -1.0, 0.37, 50.0, -50.0, 1e30, -1e30, 3e38, np.inf, -np.inf, np.nan)
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "lowered": {"xla_disable_hlo_passes": "algsimp"},
    "optimized": {},
}


@dataclass
class Executions:
    """Executions of a program in one of its forms.

    Each is a call of its own: XLA:CPU emits some ops in a loop over many executions otherwise, such
    as a convolution with padding.
    """

    program: Program
    form: str

    def needed(self, bases: Sequence[Sequence[Array]], fixed: Collection[str] = ()) -> Needed:
        """Return the needed elements of each output and argument.

        Args:
            bases: arguments, around which one element is changed at a time.
            fixed: names of the arguments that are not changed.
        """
        tables = [_find_changed(self.program, base, fixed) for base in bases]
        count = len(self.program.arguments)
        columns = [np.concatenate([table.columns[k] for table in tables]) for k in range(count)]
        outputs = self._run(columns)
        needed: Needed = {}
        first = 0
        for table in tables:
            rows = slice(first, first + len(table.places))
            for number, output in enumerate(outputs):
                moved = output[rows] != output[first]
                for k, argument in enumerate(self.program.arguments):
                    mask = needed.setdefault(
                        (number, k), np.zeros((output.shape[1], int(np.prod(argument.shape))), bool)
                    )
                    own = np.flatnonzero(table.places[:, 0] == k)
                    np.logical_or.at(mask.T, table.places[own, 1], moved[own])
            first = rows.stop
        return needed

    def _run(self, columns: Sequence[Array]) -> list[Array]:
        """Return the bits of each output, a row for each row of the arguments."""
        rows = [
            [np.array(output) for output in self._compiled(*arguments)]
            for arguments in zip(*columns, strict=True)
        ]
        return [_bits(np.stack(each)).reshape(len(rows), -1) for each in zip(*rows, strict=True)]

    @cached_property
    def _compiled(self) -> Any:
        def leaves(*arguments: Any) -> Any:
            return tuple(jax.tree.leaves(self.program.function(*arguments)))

        lowered = jax.jit(leaves, keep_unused=True).lower(*self.program.arguments)
        return lowered.compile(compiler_options=OPTIONS[self.form])


@dataclass
class _Table:
    """Arguments with one changed element in each row but the first.

    Attributes:
        columns: the values of each argument.
        places: the number of the argument that is changed, and of its element; -1 in the first row.
    """

    columns: list[Array]
    places: Array


def _find_changed(program: Program, base: Sequence[Array], fixed: Collection[str]) -> _Table:
    places, values = [(-1, -1)], [None]
    for k, array in enumerate(base):
        if program.names[k] not in fixed:
            for element, old in enumerate(array.ravel()):
                new = others(old, program.near)
                values += new
                places += [(k, element)] * len(new)
    where, columns = np.array(places), []
    for k, array in enumerate(base):
        column = np.repeat(array.reshape(1, -1), len(places), axis=0)
        rows = np.flatnonzero(where[:, 0] == k)
        column[rows, where[rows, 1]] = [values[row] for row in rows]
        columns.append(column.reshape(len(places), *array.shape))
    return _Table(columns, where)


def others(value: Any, near: int) -> list[Any]:
    """Return values to change a value to: extreme ones, zeros, neighbours and indices."""
    kind = value.dtype
    if kind.kind == "b":
        return [not value]
    if kind.kind == "f":
        return [*FLOATS, -value]
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    steps = [int(value) + step for step in (-near, -3, -2, -1, 1, 2, 3, near)]
    numbers = {low, high, low + 1, high - 1, 0, 1, -1, near - 1, near, *steps}
    return [number for number in sorted(numbers) if low <= number <= high]


def _bits(array: Array) -> Array:
    """Return integers that are equal for equal elements; all NaN are equal."""
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.asarray(np.nan, array.dtype), array)
    return array.view(f"u{array.dtype.itemsize}")
