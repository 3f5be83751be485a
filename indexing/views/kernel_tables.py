"""Text and JSON of kernels with their verdicts."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hlo.text.source import HloError
from indexing.kernels.checks import StageFault, check_kernel, check_stages, first_fault
from indexing.kernels.kernel import Kernel
from indexing.kernels.kernel_access import KernelAccesses, SectorCount
from indexing.kernels.verdicts import KernelDiffers, KernelProved, KernelUndecided, KernelVerdict
from indexing.maps.answers import Unknown
from indexing.views.access_tables import access_numbers
from indexing.views.records import SCHEMA_VERSION
from indexing.views.tables import Table, align_columns


@dataclass(frozen=True, slots=True)
class KernelResult:
    """A kernel with its verdict.

    Attributes:
        access: the sectors that its warps touch; `Unknown` with the reason.
        device: the name of the GPU whose sectors are counted.
        fault: the error in the kernel's text, or None.
        stages: the verdict of each stage that was compared, with the pass that runs next.
        wrong_stage: the first stage that differs, if stages were compared.
    """

    kernel: Kernel
    verdict: KernelVerdict
    access: KernelAccesses | Unknown
    device: str
    fault: HloError | None = None
    stages: tuple[tuple[str, KernelVerdict], ...] = ()
    wrong_stage: StageFault | None = None

    @property
    def word(self) -> str:
        """``proved``, ``differs`` or ``undecided``."""
        return _word(self.verdict)

    @property
    def worst(self) -> str:
        """The same, or ``differs`` if a later stage differs."""
        return self.word if self.wrong_stage is None else "differs"


def _word(verdict: KernelVerdict) -> str:
    match verdict:
        case KernelProved():
            return "proved"
        case KernelDiffers():
            return "differs"
    return "undecided"


def _what(verdict: KernelVerdict) -> str | None:
    """Return the fault, or why the verdict is undecided; None if it is proved."""
    match verdict:
        case KernelProved():
            return None
        case KernelDiffers():
            return verdict.what
    return verdict.reason


def checked_kernel(kernel: Kernel, stages: bool = False, device: str = "H100") -> KernelResult:
    """Return the verdict of a kernel; an error in its text makes it undecided.

    Args:
        stages: also compare the later stages that have tensors.
        device: the GPU whose sectors are counted.
    """
    try:
        access = kernel.access(device)
        if not stages:
            return KernelResult(kernel, check_kernel(kernel), access, device)
        every = list(check_stages(kernel))  # the first of them is the kernel's own
        verdicts = tuple([(stage.before, each) for stage, each in every])
        wrong = first_fault(every)
        return KernelResult(kernel, every[0][1], access, device, None, verdicts, wrong)
    except HloError as error:
        verdict = KernelUndecided(error.message)
        return KernelResult(kernel, verdict, Unknown("the text is invalid"), device, error)


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
        "what": _what(verdict),
        "block": None,
        "thread": None,
        "iteration": None,
        "output": None,
        "element": None,
        "access": _access_record(result),
        "stages": [
            {"pass": name, "verdict": _word(each), "what": _what(each)}
            for name, each in result.stages
        ],
        "wrong_stage": _wrong_stage_record(result.wrong_stage),
        "shared_by": [
            {"fusion": other.instruction.name, "evidence": other.evidence}
            for other in kernel.shared_by
        ],
        "file": kernel.path,
        "schema_version": SCHEMA_VERSION,
    }
    match verdict:
        case KernelProved(level, premises):
            record |= {"level": level, "premises": list(premises)}
        case KernelDiffers():
            record |= {
                "block": dict(verdict.block),
                "thread": dict(verdict.thread),
                "iteration": dict(verdict.iteration),
                "output": verdict.output,
                "element": None if verdict.element is None else list(verdict.element),
            }
        case KernelUndecided():
            record |= {"level": verdict.level}
    return record


def _access_record(result: KernelResult) -> dict[str, Any]:
    """Return the sectors of a kernel as JSON, or the reason why they are unknown."""
    access, record = result.access, {"device": result.device}
    if isinstance(access, Unknown):
        return {**record, "unknown": access.reason, "loaded": None, "stored": None, "arrays": []}
    arrays = [
        {"role": each.role, "number": each.number, "name": each.name, **access_numbers(each.access)}
        for each in access.arrays
    ]
    loaded, stored = _count_record(access.loaded), _count_record(access.stored)
    return {**record, "unknown": None, "loaded": loaded, "stored": stored, "arrays": arrays}


def _count_record(count: SectorCount | Unknown) -> dict[str, Any] | None:
    if isinstance(count, Unknown):
        return None
    return {
        "sectors": count.touched,
        "ideal_sectors": count.ideal,
        "efficiency": count.efficiency,
        "grade": "exact" if count.is_exact else "may",
    }


def kernel_lines(results: Sequence[KernelResult]) -> Iterator[str]:
    """Yield a table of kernels, one of their sectors, then what is not proved or not known."""
    if not results:
        yield "no kernels"
        return
    yield from _table(_HEADER, results, _row)
    has_several = len({_module_of(result) for result in results}) > 1
    for result in results:
        module = f"{_module_of(result)}: " if has_several else ""
        details = list(_detail_lines(result))
        if details:
            yield f"{module}{result.kernel.name}"
            yield from [f"    {line}" for line in details]
    yield from _verdict_lines(results)
    yield from _sector_lines(results)


def _verdict_lines(results: Sequence[KernelResult]) -> Iterator[str]:
    """Yield the premises of proofs, why kernels are undecided, and their shared memory."""
    verdicts = [result.verdict for result in results]
    premises = [p for each in verdicts if isinstance(each, KernelProved) for p in each.premises]
    yield from _reason_lines("proved", [f"if {premise}" for premise in premises])
    yield from _reason_lines(
        "undecided", [each.reason for each in verdicts if isinstance(each, KernelUndecided)]
    )
    sizes = [f"{n:,} bytes" for each in results if (n := each.kernel.shared_bytes)]
    yield from _reason_lines("dynamic shared memory", sizes)


def _sector_lines(results: Sequence[KernelResult]) -> Iterator[str]:
    """Yield a table of the sectors of kernels, and the reasons why others are unknown."""
    counted = [each for each in results if isinstance(each.access, KernelAccesses)]
    if counted:
        yield ""
        yield f"sectors that warps load and store, {counted[0].device}; %: ideal / touched"
        yield from _table(_SECTORS, counted, _sector_row, right=range(1, 7))
    yield from _reason_lines("no sectors", [r for each in results for r in sector_reasons(each)])


def sector_reasons(result: KernelResult) -> tuple[str, ...]:
    """Return the reasons why the sectors of a kernel are unknown."""
    access = result.access
    every = [access] if isinstance(access, Unknown) else [access.loaded, access.stored]
    return tuple(dict.fromkeys([each.reason for each in every if isinstance(each, Unknown)]))


def array_lines(result: KernelResult) -> Iterator[str]:
    """Yield a table with the sectors of each array, then the worst warps, and what is unknown."""
    if not isinstance(result.access, KernelAccesses):
        return
    rows, notes = [], []
    for each in result.access.arrays:
        label = (f"{each.role} {each.number}", each.name)
        access = each.access
        if isinstance(access, Unknown):
            rows.append((*label, "unknown", "", "", ""))
            notes.append(f"{each.role} {each.number}: {access.reason}")
        else:
            widths = dict.fromkeys([load.bytes_per_lane for load in access.instructions])
            counts = SectorCount(access.sectors, access.ideal_sectors, access.grade == "exact")
            rows.append((*label, *_counts(counts), ", ".join(map(str, widths))))
            worst = "nothing is accessed" if access.worst is None else f"at worst {access.worst}"
            notes.append(f"{each.role} {each.number}: {worst}")
    yield ""
    yield f"{_module_of(result)}: {result.kernel.name}"
    yield from align_columns([_ARRAYS, *rows], right=range(2, 6))
    yield from notes


def kernel_text(kernel: Kernel) -> str:
    """Return the launch of a kernel and the maps of its arrays as text."""
    return str(kernel_table(kernel))


def kernel_table(kernel: Kernel) -> Table:
    """Return the launch of a kernel, and a row for each map of an array."""
    fusion, reads, writes = kernel.fusion, kernel.reads, kernel.writes
    head = f"kernel {kernel.name}: {kernel.kind}"
    if not isinstance(kernel.grid, Unknown) and not isinstance(kernel.threads, Unknown):
        head += f", {_sizes(kernel.grid)} blocks of {_sizes(kernel.threads)} threads"
    if kernel.shared_bytes:
        head += f", {kernel.shared_bytes:,} bytes of shared memory"
    if isinstance(reads, Unknown) or isinstance(writes, Unknown):
        return Table(head, (), (), [f"unknown: {reads}"])
    assert fusion is not None
    rows = [
        (f"reads {operand.name}", str(m))
        for operand, maps in zip(fusion.operands, reads, strict=True)
        for m in maps
    ]
    for number, maps in enumerate(writes):
        leaf = f" {number}" if len(writes) > 1 else ""
        rows += [(f"writes {fusion.name}{leaf}", str(m)) for m in maps]
    return Table(head, ("", "map"), rows)


_HEADER: Final = ("KERNEL", "FUSION", "KIND", "GRID", "THREADS", "VERDICT")
_SECTORS: Final = ("KERNEL", "LOADED", "IDEAL", "%", "STORED", "IDEAL", "%")
_ARRAYS: Final = ("ARRAY", "NAME", "SECTORS", "IDEAL", "%", "BYTES/LANE")


def _table(
    header: tuple[str, ...],
    results: Sequence[KernelResult],
    row: Callable[[KernelResult], tuple[str, ...]],
    right: Collection[int] = (),
) -> Iterator[str]:
    """Yield a table; a line with the module precedes its kernels if there are several."""
    modules = [_module_of(result) for result in results]
    has_several = len(set(modules)) > 1
    rows: list[tuple[str, ...]] = [header]
    heads: dict[int, str] = {}
    for number, (module, result) in enumerate(zip(modules, results, strict=True)):
        if has_several and (not number or modules[number - 1] != module):
            heads[len(rows)] = module
        first, *others = row(result)
        rows.append((f"  {first}" if has_several else first, *others))
    is_used = [any(column[1:]) for column in zip(*rows, strict=True)]
    rows[0] = tuple([name if used else "" for name, used in zip(header, is_used, strict=True)])
    for number, line in enumerate(align_columns(rows, right)):
        if number in heads:
            yield heads[number]
        yield line


def _module_of(result: KernelResult) -> str:
    """Return the name of the dumped module: that of the file up to the kernel's name."""
    fusion = result.kernel.fusion
    if fusion is not None:
        return fusion.computation.module.name
    file = os.path.basename(result.kernel.path)
    module = file.partition(result.kernel.name)[0].rstrip(".")
    return module or ".".join(file.split(".")[:2])  # a text without an entry has the file's name


def _wrong_stage_record(wrong: StageFault | None) -> dict[str, Any] | None:
    if wrong is None:
        return None
    return {"number": wrong.number, "after": wrong.after, "what": str(wrong.verdict)}


def _detail_lines(result: KernelResult) -> Iterator[str]:
    """Yield the fault, the stages and the first ones not proved, and the other fusions."""
    if result.word == "differs":
        yield str(result.verdict)
    counts = Counter(_word(verdict) for _, verdict in result.stages)
    if counts:
        yield f"stages: {', '.join(f'{count} {word}' for word, count in counts.items())}"
    seen, after = {"proved", result.word}, ""
    for number, (before, verdict) in enumerate(result.stages):
        if _word(verdict) not in seen:
            seen.add(_word(verdict))
            yield f"stage {number}, the result of {after}"
            yield f"    {verdict}"
        after = before
    yield from map(str, result.kernel.shared_by)


def _reason_lines(head: str, reasons: Sequence[str]) -> Iterator[str]:
    """Yield a line for each reason, with the number of kernels, the most frequent first."""
    for reason, count in Counter(reasons).most_common():
        yield f"{head}, {count} kernel{'s' if count > 1 else ''}: {reason}"


def launch_cells(result: KernelResult) -> tuple[str, str]:
    """Return the blocks and the threads of a block as text."""
    record = kernel_record(result)
    return _sizes(record["grid"]), _sizes(record["threads"])


def sector_cells(result: KernelResult) -> tuple[str, ...]:
    """Return the sectors loaded, the ideal and the efficiency, then those stored, as text."""
    if isinstance(result.access, Unknown):
        return ("",) * 6
    return (*_counts(result.access.loaded), *_counts(result.access.stored))


def _row(result: KernelResult) -> tuple[str, ...]:
    record = kernel_record(result)
    is_proved = record["verdict"] == "proved"
    level = f", {record['level']} proved" if record["level"] and not is_proved else ""
    name, fusion = record["name"], record["fusion"] or "-"
    is_named_alike = re.sub(r"[.-]", "_", fusion) == re.sub(r"[.-]", "_", name)
    return (
        name, "" if is_named_alike else fusion, record["kind"] or "-", *launch_cells(result),
        f"{record['verdict']}{level}",
    )  # fmt: skip


def _sector_row(result: KernelResult) -> tuple[str, ...]:
    return (result.kernel.name, *sector_cells(result))


def _counts(count: SectorCount | Unknown) -> tuple[str, str, str]:
    """Return sectors, ideal sectors and efficiency in percent; the last is no bound."""
    if isinstance(count, Unknown):
        return "unknown", "", ""
    bound = "" if count.is_exact else "<="
    percent = f"{100 * count.efficiency:.0f}" if count.is_exact else "?"
    return f"{bound}{count.touched:,}", f"{bound}{count.ideal:,}", percent


def _sizes(sizes: Sequence[int] | None) -> str:
    """Return sizes without those of 1 at the end.

    >>> _sizes((6, 1, 1)), _sizes((1, 2, 1)), _sizes((1,)), _sizes(None)
    ('6', '1x2', '1', '-')
    """
    if sizes is None:
        return "-"
    used = max([k + 1 for k, size in enumerate(sizes) if size > 1], default=1)
    return "x".join(map(str, sizes[:used]))
