"""Whole modules against XLA on CPU: the entry computation by the kernels, and as loop nests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Final

import numpy as np

from hlo.modules.module import Instruction, Module
from hlo.text.source import HloError
from indexing.codegen.build import loop_nest
from indexing.codegen.differences import epsilon, first_difference, tolerance
from indexing.codegen.graph import Array
from indexing.codegen.validation import Finding, Report, arrays_of
from indexing.execution import run, xla
from indexing.execution.values import random_inputs
from indexing.maps.answers import Unknown

OF_WHOLE_MODULES: Final = 1e-4
"""Tolerance of floating-point results of a whole module, relative to the largest element."""

NUDGES: Final = 3
"""How often the inputs are changed in their last bits, if a result differs from XLA's."""

MAX_MOVES: Final = 8
"""Limit on the distance from XLA's result, relative to the effect of these changes."""


def against_xla(module: Module, seed: int, most: int) -> Report:
    """The entry computation, by its loop nests and by the kernels, against XLA on CPU."""
    findings = tuple(_against_xla(module, seed, most))
    return Report(module.entry.root, findings)


def _against_xla(module: Module, seed: int, most: int) -> Iterator[Finding]:
    if obstacle := _obstacle(module, most):
        yield _skipped(obstacle)
        return
    inputs = random_inputs(module.entry, seed)
    try:
        ours = run(module, inputs, seed=seed)
        theirs = xla.run(module, inputs)
    except (HloError, MemoryError, RuntimeError) as error:
        yield _skipped(getattr(error, "message", str(error).partition("\n")[0]))
        return
    far = [number for number, pair in enumerate(zip(ours, theirs, strict=True))
           if first_difference(*pair, OF_WHOLE_MODULES) is not None]  # fmt: skip
    moves = movements(module, inputs, ours, seed) if far else []
    for number, (kernels, wanted) in enumerate(zip(ours, theirs, strict=True)):
        if number in far and distance(kernels, wanted) <= MAX_MOVES * moves[number]:
            yield _skipped(f"output {number} changes as much with the inputs' last bits")
            continue
        yield _with_xla("kernels = xla", number, kernels, wanted)
        nest = loop_nest(module.entry, number)
        if isinstance(nest, Unknown):
            yield Finding("maps = xla", "skipped", (nest.reason,))
        else:
            found = nest.vectorized().run(*inputs)
            yield _with_xla("maps = xla", number, found, wanted)


def _skipped(reason: str) -> Finding:
    return Finding("xla", "skipped", (reason,))


def _obstacle(module: Module, most: int) -> str:
    """Why a module cannot be compared with XLA; empty if it can."""
    devices = int(module.header("num_partitions", 1)) * int(module.header("replica_count", 1))
    size = max([prod(s.dims) for i in module.entry for s in arrays_of(i)], default=0)
    if not xla.is_available():
        return "jax is not installed (pip install 'hlo-indexing[xla]')"
    if devices > 1:
        return f"the module is for {devices} devices"
    if reason := next(filter(None, map(_incomparable, module.instructions)), ""):
        return reason
    return f"an array has {size} elements, more than {most}" if size > most else ""


def _incomparable(instruction: Instruction) -> str:
    """Why an instruction's value cannot be compared with XLA's; empty if it can."""
    name, target = instruction.name, instruction.attributes.get("custom_call_target")
    called = target.text.strip('"') if target is not None else ""
    if instruction.opcode in ("rng", "rng-get-and-update-state"):
        return f"`{name}` makes random numbers of another kind"
    if called.startswith("xla.sdy."):
        # XLA aborts on some of them, where they lack attributes that JAX's text omits
        return f"`{name}` is for the devices of a mesh: {called}"
    if instruction.opcode == "cholesky" or "potrf" in called:
        return f"`{name}`: a random matrix need not have a Cholesky factor"
    return ""


def movements(
    module: Module, inputs: Sequence[Array], results: Sequence[Array], seed: int
) -> list[float]:
    """How far each result moves, as `distance`, when the inputs change in their last bits.

    If that is as far as the distance to XLA's result, the two cannot be compared.
    """
    random = np.random.default_rng(seed)
    farthest = [0.0] * len(results)
    for _ in range(NUDGES):
        others = run(module, [_nudged(array, random) for array in inputs], seed=seed)
        moved = map(distance, others, results)
        farthest = list(map(max, farthest, moved))
    return farthest


def _nudged(array: Array, random: np.random.Generator) -> Array:
    """Floating numbers with another last bit."""
    if not tolerance(array.dtype):
        return array
    by = random.choice([-1.0, 1.0], array.shape) * epsilon(array.dtype)
    wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    with np.errstate(all="ignore"):
        return np.asarray(wide * (1 + by)).astype(array.dtype)


def distance(one: Array, other: Array) -> float:
    """The largest difference, relative to the largest element; 1 where one has no such number.

    >>> distance(np.float32([1, 4]), np.float32([1, 3]))
    0.25
    >>> distance(np.float32([1, np.nan]), np.float32([1, 3])), distance(np.int8([1]), np.int8([1]))
    (1.0, 0.0)
    """
    is_complex = one.dtype.kind == "c"
    a, b = (array.astype(np.complex128 if is_complex else np.float64) for array in (one, other))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if not (np.isfinite(a) & np.isfinite(b) | same).all():
        return 1.0
    largest = max(np.abs(array[np.isfinite(array)]).max(initial=0.0) for array in (a, b))
    with np.errstate(all="ignore"):
        return float((np.abs(a - b)[~same] / largest).max(initial=0.0))


def _with_xla(check: str, number: int, found: Array, wanted: Array) -> Finding:
    at = first_difference(found, wanted, OF_WHOLE_MODULES)
    if at is None:
        return Finding(check, "ok")
    details = f"output {number} at {list(at)}: {found[at]} here, {wanted[at]} by XLA"
    return Finding(check, "wrong", (details,))
