"""Whole modules against XLA on CPU: the entry computation by the kernels, and as loop nests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Final

import numpy as np

from hlo.module import Instruction, Module
from hlo.source import HloError
from indexing.access import Unknown
from indexing.execution.values import random_inputs
from indexing.loopnest.build import loop_nest
from indexing.loopnest.differences import first_difference
from indexing.loopnest.nest import Array
from indexing.loopnest.validation import Finding, Report, arrays_of

OF_WHOLE_MODULES: Final = 1e-4
"""By how much floating numbers of a whole module may differ from XLA's, relative to the largest."""


def against_xla(module: Module, seed: int, most: int) -> Report:
    """The entry computation, by its loop nests and by the kernels, against XLA on CPU."""
    findings = tuple(_against_xla(module, seed, most))
    return Report(module.entry.root, findings)


def _against_xla(module: Module, seed: int, most: int) -> Iterator[Finding]:
    from indexing.execution import run, xla

    def skipped(reason: str) -> Finding:
        return Finding("xla", "skipped", (reason,))

    devices = int(module.header("num_partitions", 1)) * int(module.header("replica_count", 1))
    size = max([prod(s.dims) for i in module.entry for s in arrays_of(i)], default=0)
    random = [i for i in module.instructions if i.opcode in ("rng", "rng-get-and-update-state")]
    if not xla.is_available():
        yield skipped("jax is not installed (pip install 'hlo-indexing[xla]')")
    elif devices > 1:
        yield skipped(f"the module is for {devices} devices")
    elif random:
        yield skipped(f"`{random[0].name}` makes random numbers of another kind")
    elif undefined := [i for i in module.instructions if _is_cholesky(i)]:
        yield skipped(f"`{undefined[0].name}`: a random matrix need not have a Cholesky factor")
    elif size > most:
        yield skipped(f"an array has {size} elements, more than {most}")
    else:
        inputs = random_inputs(module.entry, seed)
        try:
            ours = run(module, inputs, seed=seed)
            theirs = xla.run(module, inputs)
        except (HloError, MemoryError, RuntimeError) as error:
            reason = getattr(error, "message", str(error).partition("\n")[0])
            yield skipped(reason)
            return
        differs = any(
            first_difference(a, b, OF_WHOLE_MODULES) is not None
            for a, b in zip(ours, theirs, strict=True)
        )
        if differs and hangs_on_roundings(module, inputs, ours, seed):
            yield skipped("changing the inputs in their last bit changes the result as much")
            return
        for number, (kernels, wanted) in enumerate(zip(ours, theirs, strict=True)):
            yield _with_xla("kernels = xla", number, kernels, wanted)
            nest = loop_nest(module.entry, number)
            if isinstance(nest, Unknown):
                yield Finding("maps = xla", "skipped", (nest.reason,))
            else:
                found = nest.vectorized().run(*inputs)
                yield _with_xla("maps = xla", number, found, wanted)


def hangs_on_roundings(
    module: Module, inputs: Sequence[Array], results: Sequence[Array], seed: int
) -> bool:
    """Inputs that differ in their last bit give other results: nobody can say which are right."""
    from indexing.execution import run

    random = np.random.default_rng(seed)
    moved = [
        array * (1 + random.choice([-1, 1], array.shape) * np.finfo(array.dtype).eps)
        if array.dtype.kind == "f"
        else array
        for array in inputs
    ]
    near = [new.astype(old.dtype) for new, old in zip(moved, inputs, strict=True)]
    others = run(module, near, seed=seed)
    pairs = zip(others, results, strict=True)
    return any(first_difference(a, b, OF_WHOLE_MODULES) is not None for a, b in pairs)


def _is_cholesky(instruction: Instruction) -> bool:
    """Its result is not defined for matrices that are not positive definite."""
    target = instruction.attributes.get("custom_call_target")
    return instruction.opcode == "cholesky" or (target is not None and "potrf" in target.text)


def _with_xla(check: str, number: int, found: Array, wanted: Array) -> Finding:
    at = first_difference(found, wanted, OF_WHOLE_MODULES)
    if at is None:
        return Finding(check, "ok")
    details = f"output {number} at {list(at)}: {found[at]} here, {wanted[at]} by XLA"
    return Finding(check, "wrong", (details,))
