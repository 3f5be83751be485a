"""The memory that XLA allocates for a module, by its dumps, in ``hlo-indexing memory``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from indexing.memory.buffers.assignment import BufferAssignment
from indexing.memory.buffers.profile import MemoryProfile
from indexing.memory.buffers.usage_report import UsageReport
from indexing.memory.spaces import space_name
from indexing.views.tables import Table


def allocation_lines(profile: MemoryProfile) -> Iterator[str]:
    """Yield a table with a row for each memory space, and what differs; nothing without dumps.

    The report has what is allocated, and the scalars of reductions, which threads hold.
    """
    assignment, usage = profile.assignment, profile.usage
    if assignment is None and usage is None:
        return
    rows: list[list[object]] = []
    spaces = _spaces(assignment, usage)
    has_threads = assignment is not None and any(map(assignment.thread_bytes, spaces))
    for space in spaces:
        row: list[object] = [space_name(space, profile.module)]
        if assignment is not None:
            row += [assignment.bytes(space), _temporary_bytes(assignment, space)]
            row += [assignment.thread_bytes(space)] if has_threads else []
        if usage is not None:
            row.append(usage.bytes(space))
        rows.append([*row, profile.peaks[space].stored_bytes if space in profile.peaks else 0])
    columns = ["memory"]
    columns += ["allocated", "for temporaries"] if assignment is not None else []
    columns += ["in threads"] if has_threads else []
    columns += ["reported", "peak of arrays"] if usage is not None else ["peak of arrays"]
    table = Table("allocated by XLA", columns, rows, right=range(1, len(columns)))
    yield from str(table).splitlines()
    if assignment is not None:
        yield from _compare_sizes("assigned", len(assignment.values), assignment_faults(profile))
    if usage is not None:
        yield from _compare_sizes("reported", len(usage.rows), usage_faults(profile))


def assignment_faults(profile: MemoryProfile) -> list[str]:
    """Return the sizes of the buffer assignment that differ from those of the module."""
    given = profile.assignment
    return [] if given is None else list(given.mismatches(profile.module))


def usage_faults(profile: MemoryProfile) -> list[str]:
    """Return what differs between the report of memory usage, the module and the assignment."""
    usage, assignment = profile.usage, profile.assignment
    if usage is None:
        return []
    faults = list(usage.mismatches(profile.module))
    if assignment is None:
        return faults
    for space in _spaces(assignment, usage):
        assigned = assignment.bytes(space) + assignment.thread_bytes(space)
        if assigned != usage.bytes(space):
            name = space_name(space, profile.module)
            faults.append(f"{name}: {usage.bytes(space):,} bytes reported, {assigned:,} assigned")
    return faults


def _compare_sizes(word: str, count: int, faults: list[str]) -> Iterator[str]:
    """Yield how many sizes agree, and those that do not."""
    yield f"  {count - len(faults):,} of {count:,} {word} sizes are those computed here"
    yield from [f"  note: {fault}" for fault in faults]


def _spaces(assignment: BufferAssignment | None, usage: UsageReport | None) -> list[int]:
    """Return the numbers of the memory spaces of both."""
    assigned = [] if assignment is None else assignment.spaces
    reported = [] if usage is None else [each.space for each in usage.spaces]
    return sorted({*assigned, *reported})


def _temporary_bytes(assignment: BufferAssignment, space: int) -> int:
    own = [each for each in assignment.allocations if each.space == space]
    return sum(each.size for each in own if each.is_temporary)


def allocation_record(profile: MemoryProfile) -> dict[str, Any]:
    """Return the dumps of XLA as values for JSON; None for those that are not given."""
    assignment, usage = profile.assignment, profile.usage
    return {
        "assignment": assignment
        and {
            "allocations": [
                {
                    "number": each.number,
                    "size": each.size,
                    "space": each.space,
                    "argument": None if each.parameter is None else each.parameter[0],
                    "output": each.is_output,
                    "constant": each.is_constant,
                    "thread_local": each.is_thread_local,
                    "temporary": each.is_temporary,
                    "values": len(each.values),
                }
                for each in assignment.allocations
            ],
            "compared": len(assignment.values),
            "mismatches": assignment_faults(profile),
        },
        "usage": usage
        and {
            "spaces": [
                {"space": each.space, "name": each.name, "bytes": each.bytes}
                for each in usage.spaces
            ],
            "compared": len(usage.rows),
            "mismatches": usage_faults(profile),
        },
    }
