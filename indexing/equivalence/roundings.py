"""Differences of values that are roundings to a narrower type, perhaps amplified by cancellation.

Both programs are executed once more with every f32, bf16 and f16 replaced by f64, on the same
inputs.  If they agree there to the accuracy of f32, the difference was made by rounding.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from hlo.formats.parser import parse
from hlo.modules.module import Module
from hlo.text.source import HloError
from indexing.codegen.differences import tolerance
from indexing.equivalence.evidence import far_apart
from indexing.equivalence.pairing import Pair, Side, pair_of
from indexing.equivalence.runs import SEEDS, Inputs, Runs, ValueGap
from indexing.equivalence.verdicts import Differs
from indexing.execution.values import Array
from indexing.maps.answers import Unknown

_WIDENED: Final = re.compile(r"\b(?:bf16|f16|f32)(?=\[)")
_NARROW: Final = re.compile(r"\b(?:bf16|f16)\[")

MAX_ROUNDING: Final = tolerance(np.dtype(np.float32))
"""Tolerance with which executions in f64 agree: constants are rounded to f32."""

SHOWN: Final = "executions in f64 agree"

WidePairing = Callable[[Module, Module], Runs | None]


def widen_floats(module: Module) -> Module | None:
    """Return a module with f64 in place of narrower floats; None if it has no such form.

    >>> narrow = "ENTRY e { p = bf16[2] parameter(0)  ROOT c = f32[2] convert(p) }"
    >>> wide = widen_floats(parse(narrow))
    >>> print(wide.entry.root)
    %c = f64[2] convert(%p)
    """
    if any(i.opcode == "bitcast-convert" for i in module.instructions):
        return None  # the bits of a float
    try:
        return parse(_WIDENED.sub("f64", str(module)))
    except HloError:
        return None


def computes_narrow(*modules: Module) -> bool:
    """Return True if a module has floats that are narrower than f32."""
    return any(_NARROW.search(str(module)) for module in modules)


def wide_runs(before: Module, after: Module) -> Runs | None:
    """Return executions of both modules in f64; None if a module has no such form."""
    modules = widen_floats(before), widen_floats(after)
    if modules[0] is None or modules[1] is None:
        return None
    try:
        pair = pair_of(modules[0], modules[1])
    except HloError:
        return None
    return Runs(pair) if isinstance(pair, Pair) else None


def judge_difference(
    difference: Differs, inputs: Inputs, programs: tuple[Side, Side], wide: WidePairing
) -> Differs:
    """Return a difference, marked if it was made by rounding.

    Args:
        inputs: the inputs of the execution that shows it.
        programs: the program before and after.
        wide: returns executions of both modules in f64.
    """
    if not all(side.root.is_root and side.computation.is_entry for side in programs):
        return difference
    modules = programs[0].computation.module, programs[1].computation.module
    if not computes_narrow(*modules) or not _is_finite(difference):
        return difference
    if not agree_in_f64(wide(*modules), inputs):
        return difference
    return replace(difference, by_rounding=True, reason=f"{difference.reason}; {SHOWN}")


def agree_in_f64(runs: Runs | None, inputs: Inputs) -> bool:
    """Return True if the outputs of executions in f64 agree to the accuracy of f32."""
    if runs is None or runs.obstacle is not None:
        return False
    runs.__dict__["roundings"] = [MAX_ROUNDING] * len(runs.pair.before.outputs)
    wide = Inputs(tuple([tuple(map(_widened_array, arrays)) for arrays in inputs.devices]))
    try:
        return runs.gap_on(wide) is None
    except HloError:
        return False


def rounded_gap(runs: Runs) -> ValueGap | None:
    """Return an element whose values differ by more than the rounding of its own type."""
    if runs.obstacle is not None or runs.devices > 1:
        return None
    for seed in range(0, 2 * SEEDS, 2):  # even seeds: the floats are no whole numbers
        inputs = runs.inputs(seed)
        before, after = (runs.outputs(side, inputs) for side in (runs.pair.before, runs.pair.after))
        if isinstance(before, Unknown) or isinstance(after, Unknown):
            return None
        for output, (one, other) in enumerate(zip(before[0], after[0], strict=True)):
            at = far_apart(one, other)
            if at is not None:
                return ValueGap(output, at, one[at], other[at], inputs)
    return None


def _widened_array(array: Array) -> Array:
    is_real = array.dtype.kind in "fV"  # bf16 is none of NumPy's own types
    return array.astype(np.float64) if is_real else array


def _is_finite(difference: Differs) -> bool:
    try:
        return bool(np.isfinite([float(difference.before), float(difference.after)]).all())
    except ValueError:  # no floats
        return False
