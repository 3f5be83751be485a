"""Programs that run: every instruction of a module on NumPy arrays, with XLA's semantics.

>>> import hlo, numpy
>>> from indexing.execution import run
>>> module = hlo.parse('''
... ENTRY e { x = s32[3] parameter(0)  y = s32[3] parameter(1)  ROOT q = s32[3] divide(x, y) }''')
>>> run(module, [numpy.int32([7, -7, 7]), numpy.int32([2, 2, 0])])
(array([ 3, -3, -1], dtype=int32),)
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
