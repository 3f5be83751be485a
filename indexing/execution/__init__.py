"""Modules execute on NumPy arrays with XLA's semantics: kernels, called computations, devices.

`machine` holds the state of a device, `interpreter` runs its instructions, and modules that
register handlers with `runs` add the ops whose value needs more than their operands.
Promises: the same results as XLA up to rounding; every error is an `ExecutionError` with its place.
Imports `maps`, `devices`, `ops` and `dataflow` (what a result needs); no generated code.
"""

from __future__ import annotations

from indexing.execution.machine import Environment
from indexing.execution.program import evaluate, run
from indexing.execution.values import (
    Array,
    ExecutionError,
    Value,
    flattened,
    parameter_leaves,
    random_inputs,
)

__all__ = [
    "Array",
    "Environment",
    "ExecutionError",
    "Value",
    "evaluate",
    "flattened",
    "parameter_leaves",
    "random_inputs",
    "run",
]
