"""Text and JSON of kernels with their verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hlo.text.source import HloError
from indexing.kernels.kernel import Kernel
from indexing.kernels.proofs import check_kernel
from indexing.kernels.verdicts import KernelDiffers, KernelProved, KernelUndecided, KernelVerdict
from indexing.maps.answers import Unknown
from indexing.views.records import SCHEMA_VERSION
from indexing.views.tables import align_columns


@dataclass(frozen=True, slots=True)
class KernelResult:
    """A kernel with its verdict.

    Attributes:
        fault: the error in the kernel's text, or None.
    """

    kernel: Kernel
    verdict: KernelVerdict
    fault: HloError | None = None

    @property
    def word(self) -> str:
        """``proved``, ``differs`` or ``undecided``."""
        match self.verdict:
            case KernelProved():
                return "proved"
            case KernelDiffers():
                return "differs"
        return "undecided"


def checked_kernel(kernel: Kernel) -> KernelResult:
    """Return the verdict of a kernel; an error in its text makes it undecided."""
    try:
        return KernelResult(kernel, check_kernel(kernel))
    except HloError as error:
        return KernelResult(kernel, KernelUndecided(error.message), error)


def kernel_record(result: KernelResult) -> dict[str, Any]:
    """Return the JSON of a kernel."""
    kernel, verdict = result.kernel, result.verdict
    is_read = result.fault is None
    grid, threads = (None, None) if not is_read else (kernel.grid, kernel.threads)
    record: dict[str, Any] = {
        "name": kernel.name,
        "fusion": None if kernel.fusion is None else kernel.fusion.name,
        "kind": kernel.kind if is_read else None,
        "target": kernel.target if is_read else None,
        "read": is_read,
        "stage": kernel.stage,
        "grid": None if grid is None or isinstance(grid, Unknown) else list(grid),
        "threads": None if threads is None or isinstance(threads, Unknown) else list(threads),
        "shared_bytes": kernel.shared_bytes,
        "verdict": result.word,
        "level": None,
        "premises": [],
        "what": None,
        "block": None,
        "thread": None,
        "iteration": None,
        "output": None,
        "element": None,
        "stages": [],
        "file": kernel.path,
        "schema_version": SCHEMA_VERSION,
    }
    match verdict:
        case KernelProved(level, premises):
            record |= {"level": level, "premises": list(premises)}
        case KernelDiffers():
            record |= {
                "what": verdict.what,
                "block": dict(verdict.block),
                "thread": dict(verdict.thread),
                "iteration": dict(verdict.iteration),
                "output": verdict.output,
                "element": None if verdict.element is None else list(verdict.element),
            }
        case KernelUndecided():
            record |= {"level": verdict.level, "what": verdict.reason}
    return record


def kernel_lines(results: Sequence[KernelResult]) -> Iterator[str]:
    """Yield a table of kernels, then what differs, and why others are undecided."""
    rows = [_row(result) for result in results]
    header = ("KERNEL", "FUSION", "KIND", "GRID", "THREADS", "VERDICT")
    yield from align_columns([header, *rows])
    for result in results:
        if result.word == "differs":
            yield f"{result.kernel.name}: {result.verdict}"
    reasons = Counter([
        result.verdict.reason for result in results if isinstance(result.verdict, KernelUndecided)
    ])  # fmt: skip
    for reason, count in reasons.most_common():
        yield f"undecided, {count} kernel{'s' if count > 1 else ''}: {reason}"


def _row(result: KernelResult) -> tuple[str, ...]:
    record = kernel_record(result)
    sizes = [_sizes(record[key]) for key in ("grid", "threads")]
    level = f", {record['level']}" if record["level"] else ""
    return (
        record["name"], record["fusion"] or "-", record["kind"] or "-", *sizes,
        f"{record['verdict']}{level}",
    )  # fmt: skip


def _sizes(sizes: Sequence[int] | None) -> str:
    return "-" if sizes is None else "x".join(map(str, sizes))
