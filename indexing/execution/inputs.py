"""Random inputs of a program."""

from __future__ import annotations

import numpy as np

from hlo.modules.module import Computation
from indexing.execution.memory import check_bytes
from indexing.execution.values import (
    Array,
    bytes_of,
    check_representable,
    parameter_leaves,
    random_array,
)


def random_inputs(computation: Computation, seed: int) -> list[Array]:
    """Return one random array per leaf of `parameter_leaves`; deterministic for a seed.

    Floating-point and complex numbers follow the standard normal distribution; integers are small
    and non-negative.

    Raises:
        ExecutionError: a dimension of a parameter is unbounded, or the arrays exceed the available
            memory.

    >>> import hlo
    >>> text = "ENTRY e { p = s8[4] parameter(0) ROOT r = s8[4] negate(p) }"
    >>> [array.dtype for array in random_inputs(hlo.parse(text).entry, seed=1)]
    [dtype('int8')]
    """
    parameters = computation.parameters
    for parameter in parameters:
        check_representable(parameter)
    if parameters:
        largest = max(parameters, key=lambda parameter: bytes_of(parameter.shape))
        check_bytes(sum(bytes_of(parameter.shape) for parameter in parameters), None, largest)
    random = np.random.default_rng(seed)
    return [random_array(leaf.shape, random) for leaf in parameter_leaves(computation)]
