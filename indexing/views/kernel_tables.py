"""Text and JSON of kernels with their verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hlo.text.source import HloError
from indexing.kernels.checks import check_kernel, check_stages
from indexing.kernels.kernel import Kernel
from indexing.kernels.verdicts import KernelDiffers, KernelProved, KernelUndecided, KernelVerdict
from indexing.maps.answers import Unknown
from indexing.views.records import SCHEMA_VERSION
from indexing.views.tables import align_columns


@dataclass(frozen=True, slots=True)
class KernelResult:
    """A kernel with its verdict.

    Attributes:
        fault: the error in the kernel's text, or None.
        stages: for each stage that was compared, the pass that runs next and the verdict.
    """

    kernel: Kernel
    verdict: KernelVerdict
    fault: HloError | None = None
    stages: tuple[tuple[str, str], ...] = ()

    @property
    def word(self) -> str:
        """``proved``, ``differs`` or ``undecided``."""
        return _word(self.verdict)


def _word(verdict: KernelVerdict) -> str:
    match verdict:
        case KernelProved():
            return "proved"
        case KernelDiffers():
            return "differs"
    return "undecided"


def checked_kernel(kernel: Kernel, stages: bool = False) -> KernelResult:
    """Return the verdict of a kernel; an error in its text makes it undecided.

    Args:
        stages: also compare the later stages that have tensors.
    """
    try:
        if not stages:
            return KernelResult(kernel, check_kernel(kernel))
        every = list(check_stages(kernel))  # the first of them is the kernel's own
        words = tuple([(stage.before, _word(each)) for stage, each in every])
        return KernelResult(kernel, every[0][1], stages=words)
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
        "stages": [{"pass": name, "verdict": word} for name, word in result.stages],
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
    if not rows:
        yield "no kernels"
        return
    yield from align_columns([header, *rows])
    for result in results:
        if result.word == "differs":
            yield f"{result.kernel.name}: {result.verdict}"
        words = Counter(word for _, word in result.stages)
        if words:
            counts = ", ".join(f"{count} {word}" for word, count in words.items())
            broken = next((name for name, word in result.stages if word != "proved"), None)
            first = "" if broken is None else f"; the first that is not proved is before {broken}"
            yield f"{result.kernel.name}: stages: {counts}{first}"
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
