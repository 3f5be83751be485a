"""Reads of exact maps of which changes may have no effect, because of how values are computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hlo.modules.module import Computation, Instruction
from indexing.codegen.graph import Array
from indexing.dataflow.needed import dependencies_of
from indexing.execution import random_inputs, run

SCALAR_DRAWS: Final = 40
"""Number of random values of the parameters of a called computation."""


def may_hide_elements(instruction: Instruction) -> bool:
    """Return True if called computations may hide the elements that they read.

    ``v * 0`` depends on v, but no value of v changes it.  A computation of which some result
    depends on some parameters only is not trusted to do this: the maps may have missed that.
    """
    called = instruction.called_computations
    return bool(called) and all(
        set(each.parameters) <= set(dependencies_of([result]))
        for each in called
        for result in _results(each)
    )


def _results(computation: Computation) -> Sequence[Instruction]:
    """Return the results of a computation of scalars."""
    root = computation.root
    return root.operands if root.opcode == "tuple" else [root]


def hides_parameters(computation: Computation) -> bool:
    """Return True if a parameter of scalars changes no result that depends on it, as far as tried.

    >>> import hlo, indexing.ops
    >>> entry = hlo.parse('''ENTRY e { p = pred[] parameter(0)  x = f32[] parameter(1)
    ...   ROOT s = f32[] select(p, x, x) }''').entry
    >>> hides_parameters(entry)
    True
    """
    parameters = computation.parameters
    depends = {
        (k, j)
        for j, result in enumerate(_results(computation))
        for k in range(len(parameters))
        if parameters[k] in dependencies_of([result])
    }
    for seed in range(SCALAR_DRAWS):
        inputs, others = (
            random_inputs(computation, seed),
            random_inputs(computation, SCALAR_DRAWS + seed),
        )
        before = run(computation, inputs)
        for k in {k for k, _ in depends}:
            after = run(computation, [*inputs[:k], others[k], *inputs[k + 1 :]])
            pairs = enumerate(zip(before, after, strict=True))
            depends -= {(k, j) for j, (one, other) in pairs if one.tobytes() != other.tobytes()}
    return bool(depends)


def may_hide_changes(operands: Sequence[Array], results: Iterable[Array]) -> bool:
    """Return True if a change of an element that is read may have no effect on the result.

    Floats of less than 16 bits round or saturate, sums of narrow integers and booleans saturate,
    and a mean over no elements is not a number.

    >>> import numpy as np
    >>> wide, narrow, none = np.zeros(3, np.float32), np.zeros(3, np.int8), np.zeros(0, np.float32)
    >>> may_hide_changes([wide, narrow], [wide]), may_hide_changes([narrow], [narrow])
    (False, True)
    >>> may_hide_changes([wide, none], [wide])
    True
    """
    arrays = [*operands, *results]
    return (
        any(array.size == 0 for array in arrays)
        or any(_is_narrow(array) and array.dtype.kind not in "iub" for array in arrays)
        or all(map(_is_narrow, operands))
    )


def _is_narrow(array: Array) -> bool:
    return array.dtype.itemsize < 2
