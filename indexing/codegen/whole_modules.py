"""Validation of whole modules against XLA on CPU: entry computations by kernels and loop nests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Final, TypeAlias

import numpy as np

from hlo.modules.module import Instruction, Module
from hlo.text.source import HloError
from indexing.codegen.build import loop_nest
from indexing.codegen.differences import epsilon, first_difference, tolerance
from indexing.codegen.findings import Finding, Report
from indexing.codegen.graph import Array
from indexing.codegen.validation_limits import MAX_OPERATIONS, array_shapes
from indexing.execution import run, xla
from indexing.execution.inputs import random_inputs
from indexing.maps.answers import Unknown
from indexing.maps.arrays import array_leaves
from indexing.ops.custom_call import target_of

MODULE_TOLERANCE: Final = 1e-4
"""Tolerance of floating-point results of a whole module, relative to the largest element."""

PERTURBATIONS: Final = 3
"""Number of perturbations of the inputs' last bits, if a result differs from XLA's."""

MAX_PERTURBATION_RATIO: Final = 8
"""A result is ill-conditioned if its distance from XLA's is at most this multiple of the effect of
these perturbations."""


Execute: TypeAlias = Callable[[Module, Sequence[Array]], Sequence[Array]]
"""Executes a module by XLA:CPU; raises `RuntimeError` if XLA rejects it."""


def against_xla(module: Module, seed: int, max_elements: int, execute: Execute = xla.run) -> Report:
    """Compare the entry computation with XLA on CPU: through kernels and through loop nests.

    Args:
        module: the module.
        seed: seed of the random inputs.
        max_elements: skip the module if an array of the entry has more elements.
        execute: executes the module; XLA may end the process in which it is called.
    """
    findings = tuple(_against_xla(module, seed, max_elements, execute))
    return Report(module.entry.root, findings)


def _against_xla(
    module: Module, seed: int, max_elements: int, execute: Execute
) -> Iterator[Finding]:
    if obstacle := _obstacle(module, max_elements):
        yield _skipped_finding(obstacle)
        return
    try:
        inputs = random_inputs(module.entry, seed)
        ours = run(module, inputs, seed=seed, max_operations=MAX_OPERATIONS)
        theirs = execute(module, inputs)
    except (HloError, MemoryError, RuntimeError) as error:
        yield _skipped_finding(getattr(error, "message", str(error).partition("\n")[0]))
        return
    far = [number for number, pair in enumerate(zip(ours, theirs, strict=True))
           if first_difference(*pair, MODULE_TOLERANCE) is not None]  # fmt: skip
    effects = perturbation_effects(module, inputs, ours, seed) if far else []
    outputs = [number for number, _, _ in array_leaves(module.entry.root.shape)]
    for number, (by_kernels, expected) in enumerate(zip(ours, theirs, strict=True)):
        if (
            number in far
            and distance(by_kernels, expected) <= MAX_PERTURBATION_RATIO * effects[number]
        ):
            reason = "rounding the inputs changes it as much as the deviation from XLA"
            yield _skipped_finding(f"output {number} is ill-conditioned: {reason}")
            continue
        yield _with_xla("kernels = xla", number, by_kernels, expected)
        nest = loop_nest(module.entry, outputs[number])
        if isinstance(nest, Unknown):
            yield Finding("maps = xla", "skipped", (nest.reason,))
        else:
            by_maps = nest.vectorized().run(*inputs)
            yield _with_xla("maps = xla", number, by_maps, expected)


def _skipped_finding(reason: str) -> Finding:
    return Finding("xla", "skipped", (reason,))


def _obstacle(module: Module, max_elements: int) -> str:
    """Return the reason why a module cannot be compared with XLA, or an empty string."""
    devices = int(module.header("num_partitions", 1)) * int(module.header("replica_count", 1))
    size = max([prod(s.dims) for i in module.entry for s in array_shapes(i)], default=0)
    if not xla.is_available():
        return "jax is not installed (pip install 'hlo-indexing[xla]')"
    if devices > 1:
        return f"the module is for {devices} devices"
    if reason := next(filter(None, map(_incomparable, module.instructions)), ""):
        return reason
    is_large = size > max_elements
    return f"an array has {size} elements, more than {max_elements}" if is_large else ""


def _incomparable(instruction: Instruction) -> str:
    """Return the reason why an instruction cannot be compared with XLA, or an empty string."""
    name, called = instruction.name, target_of(instruction)
    if instruction.opcode in ("rng", "rng-get-and-update-state"):
        return f"`{name}`: the random-number generators differ"
    if called.startswith("xla.sdy."):
        # XLA aborts on some of these calls: they lack attributes that JAX's text omits
        return f"`{name}` needs a device mesh: {called}"
    if instruction.opcode == "cholesky" or "potrf" in called:
        return f"`{name}`: a random matrix may have no Cholesky decomposition"
    return ""


def perturbation_effects(
    module: Module, inputs: Sequence[Array], results: Sequence[Array], seed: int
) -> list[float]:
    """Return the largest change of each result, as `distance`, if the inputs' last bits change.

    A result for which this is comparable to the distance from XLA's result is ill-conditioned.
    """
    random = np.random.default_rng(seed)
    largest = [0.0] * len(results)
    for _ in range(PERTURBATIONS):
        perturbed = run(module, [_perturb(array, random) for array in inputs], seed=seed)
        largest = list(map(max, largest, map(distance, perturbed, results)))
    return largest


def _perturb(array: Array, random: np.random.Generator) -> Array:
    """Change each floating-point number by one epsilon, relative; keep integers."""
    if not tolerance(array.dtype):
        return array
    by = random.choice([-1.0, 1.0], array.shape) * epsilon(array.dtype)
    wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    with np.errstate(all="ignore"):
        return np.asarray(wide * (1 + by)).astype(array.dtype)


def distance(one: Array, other: Array) -> float:
    """Largest difference relative to the largest element; 1 if a NaN or infinity differs.

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


def _with_xla(check: str, number: int, actual: Array, expected: Array) -> Finding:
    at = first_difference(actual, expected, MODULE_TOLERANCE)
    if at is None:
        return Finding(check, "ok")
    details = f"output {number} at {list(at)}: {actual[at]} here, {expected[at]} by XLA"
    return Finding(check, "wrong", (details,))
