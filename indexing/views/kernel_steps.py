"""Kernels as the step of a module after its last pass: text and JSON of ``hlo-indexing passes``."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from indexing.kernels.verdicts import KernelDiffers, KernelProved
from indexing.views.kernel_tables import KernelResult
from indexing.views.records import SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class KernelStep:
    """A kernel of a module with its verdict.

    Attributes:
        module: the number and name of the module, after the subfolder of its dumps.
    """

    module: str
    result: KernelResult


def kernel_step_lines(steps: Sequence[KernelStep]) -> Iterator[str]:
    """Yield the number of kernels by verdict, and a line for each that is not proved."""
    if not steps:
        return
    words = Counter([step.result.word for step in steps])
    counts = [f"{words[word]} {word}" for word in ("proved", "undecided", "differs") if words[word]]
    yield ""
    yield f"kernels: {', '.join(counts)}"
    for step in steps:
        if step.result.word != "proved":
            yield f"  {step.module}: {step.result.kernel.name}"
            yield f"    {step.result.verdict}"


def kernel_step_record(step: KernelStep) -> dict[str, Any]:
    """Return the JSON object of a kernel, with the keys of a pair of dumps."""
    kernel, verdict = step.result.kernel, step.result.verdict
    record: dict[str, Any] = {
        "module": step.module,
        "pass": "emitters",
        "kernel": kernel.name,
        "before": None if kernel.fusion is None else kernel.fusion.name,
        "after": os.path.basename(kernel.path),
        "invalid_between": [],
        "missing_between": [],
        "verdict": "unknown",
        "word": step.result.word,
        "level": None,
        "laws": {},
        "reason": None,
        "output": None,
        "element": None,
        "note": None,
        "schema_version": SCHEMA_VERSION,
    }
    match verdict:
        case KernelProved(level, premises):
            note = "; ".join(premises) or None
            return {**record, "verdict": "proved", "level": level, "note": note}
        case KernelDiffers(output=output, element=element):
            at = None if element is None else list(element)
            return {
                **record, "verdict": "differs", "level": "values",
                "reason": str(verdict).removeprefix("differs: "), "output": output, "element": at,
            }  # fmt: skip
    return {**record, "level": verdict.level, "reason": verdict.reason}
