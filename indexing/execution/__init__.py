"""Execution of modules on NumPy with XLA's semantics: kernels, called computations, devices.

In come a module and its inputs; out come its results.  Read `program` first.

`machine` is the state of a device, `interpreter` executes its instructions through the ops'
reference kernels.  Ops that need more than their operands register a handler with `handles`.
Invariants: results equal XLA's up to rounding; every error is an `ExecutionError` with a location.
Imports `maps`, `devices`, `ops` and `dataflow` (dead-code elimination); no generated code.
"""

from __future__ import annotations

from indexing.execution.inputs import random_inputs
from indexing.execution.machine import Environment
from indexing.execution.program import evaluate, run
from indexing.execution.values import (
    Array,
    ExecutionError,
    Value,
    flattened,
    parameter_leaves,
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
