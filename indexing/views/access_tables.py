"""Memory accesses as ``hlo-indexing access`` prints them: a table, or JSON records.

`schemas/access.json` is the JSON schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hlo.shapes.shape import AnyShape
from indexing.memory.warps.access import Accesses, MemoryAccess
from indexing.views.map_tables import Paint, instruction_head, output_shape, plain, shape_text
from indexing.views.records import SCHEMA_VERSION, instruction_record, shape_record
from indexing.views.tables import Table
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from hlo.modules.module import Instruction

_COLUMNS: Final = (
    *("array", "name", "shape", "requested", "used", "transferred", "ratio", "sectors", "lines"),
    *("warps", "XLA", "worst warp"),
)
_RIGHT: Final = range(3, 10)
_SPARED: Final = ("lines", "worst warp", "warps", "sectors", "shape", "requested")


@dataclass(frozen=True, slots=True)
class AccessSubject:
    """An instruction, and the launch of its threads.

    Attributes:
        instruction: the instruction.
        threads: the threads of a block along x, y and z.
        unroll: the number of elements of a vector.
        device: the name of the GPU.
        output: the number of the output.
    """

    instruction: Instruction
    threads: tuple[int, ...]
    unroll: int
    device: str
    output: int

    @property
    def shape(self) -> AnyShape:
        """The shape of the output."""
        return output_shape(self.instruction, self.output)

    def arrays(
        self, accesses: Accesses
    ) -> Iterator[tuple[str, int, str, AnyShape, MemoryAccess | Unknown]]:
        """Yield role, number, name, shape and access of each operand, and of the output."""
        for number, operand in enumerate(self.instruction.operands):
            yield "operand", number, operand.name, operand.shape, accesses[number]
        yield "output", self.output, self.instruction.name, self.shape, accesses.store


def access_lines(
    subject: AccessSubject, accesses: Accesses, paint: Paint = plain, width: int | None = None
) -> Iterator[str]:
    """Yield a heading, a table with a row for each array, and notes.

    Args:
        width: the number of columns of a terminal: columns that do not fit are omitted.
    """
    instruction = subject.instruction
    threads = " x ".join(map(str, subject.threads))
    head = instruction_head(instruction, subject.shape, paint)
    yield f"{head}, {threads} threads, unroll {subject.unroll}, {subject.device}"
    arrays = [
        (role, number, name, shape_text(shape), access)
        for role, number, name, shape, access in subject.arrays(accesses)
    ]
    table = _table("", arrays, accesses)
    yield from (f"  {line}" for line in table.lines(None if width is None else width - 2))


def accesses_table(accesses: Accesses) -> Table:
    """Return the table of the loads and of the store; an unknown access does not name its array."""
    arrays = []
    for number, access in enumerate((*accesses.loads, accesses.store)):
        array = None if isinstance(access, Unknown) else access.array
        name, shape = ("", "") if array is None else (array.instruction.name, str(array.shape))
        is_load = number < len(accesses.loads)
        role = ("operand", number) if is_load else ("output", 0)
        arrays.append((*role, name, shape, access))
    known = [each for each in (*accesses.loads, accesses.store) if isinstance(each, MemoryAccess)]
    return _table(known[0].device.name if known else "", arrays, accesses)


def _table(
    title: str,
    arrays: Sequence[tuple[str, int, str, str, MemoryAccess | Unknown]],
    accesses: Accesses,
) -> Table:
    """Return a table of the role, number, name, shape and access of each array."""
    rows: list[Sequence[str]] = []
    notes: list[str] = []
    for role, number, name, shape, access in arrays:
        subject = f"{role} {number} {name}".rstrip()
        if isinstance(access, Unknown):
            cells: Sequence[str] = (*["unknown"] * 3, *[""] * (len(_COLUMNS) - 6))
            notes.append(f"{subject}: unknown: {access.reason}")
        else:
            cells = tuple(_cells(role, access))
            notes += [f"{subject}: {note}" for note in _notes(access)]
        rows.append((f"{role} {number}", name, shape, *cells))
        if role == "operand":
            notes += [f"{subject}: {note}" for note in _mask_note(accesses, number)]
    return Table(title, _COLUMNS, rows, notes, right=_RIGHT, spared=_SPARED)


def _cells(role: str, access: MemoryAccess) -> Iterator[str]:
    bound = "<=" if access.grade == "may" else ""
    counts = access.transactions
    for number in (access.bytes_requested, counts.bytes_used, access.bytes_transferred):
        yield f"{bound}{number:,}"
    yield "?" if bound else f"{access.ratio:.2f}"  # a ratio of upper bounds is no bound
    for number in (access.sectors, access.lines, access.transactions.warps):
        yield f"{bound}{number:,}"
    verdict = "coalesced" if access.coalesced else "not coalesced"
    yield verdict if role == "operand" else ""
    yield str(access.worst) if access.worst is not None else "nothing is accessed"


def _mask_note(accesses: Accesses, number: int) -> Iterator[str]:
    loaded, needed = accesses.loaded[number], accesses.needed[number]
    if loaded != needed:
        yield f"{loaded} bytes loaded, {needed} of them needed under masks"


def _notes(access: MemoryAccess) -> Iterator[str]:
    if access.worst_starts:
        best, worst = (
            ", ".join(f"{name}={value}" for name, value in starts.items())
            for starts in (access.best_starts, access.worst_starts)
        )
        yield (
            f"{access.best.sectors:,} sectors at best, with {best}; {access.sectors:,} at worst, "
            f"with {worst}"
        )
    if len(access.instructions) > 1:
        loads = ", ".join(
            f"{load.bytes_per_lane} bytes x {load.transactions.warps:,} warps"
            for load in access.instructions
        )
        yield f"{len(access.instructions)} instructions: {loads}"


def access_records(subject: AccessSubject, accesses: Accesses) -> Iterator[dict[str, Any]]:
    """Yield a record for each operand, and one for the output."""
    for role, number, name, shape, access in subject.arrays(accesses):
        yield {
            **instruction_record(subject.instruction),
            "shape": shape_record(subject.shape),
            "threads": list(subject.threads),
            "unroll": subject.unroll,
            "device": subject.device,
            "role": role,
            "number": number,
            "name": name,
            "array_shape": shape_record(shape),
            **access_numbers(access),
            **(_distinct_record(accesses, number) if role == "operand" else {}),
            "schema_version": SCHEMA_VERSION,
        }


def _distinct_record(accesses: Accesses, number: int) -> dict[str, Any]:
    """Return the bytes of the distinct elements of an operand that are loaded, and needed."""
    record: dict[str, Any] = {}
    for key, amount in (("loaded", accesses.loaded[number]), ("needed", accesses.needed[number])):
        if isinstance(amount, Unknown):
            record[key] = None
        else:
            record |= {key: amount.number, f"{key}_grade": amount.grade}
    return record


def access_numbers(access: MemoryAccess | Unknown) -> dict[str, Any]:
    """Return the counts of an access as JSON; the reason if it is unknown."""
    if isinstance(access, Unknown):
        return {"unknown": access.reason, "grade": None}
    counts, worst = access.transactions, access.worst
    return {
        "unknown": None,
        "grade": access.grade,
        "bytes_requested": access.bytes_requested,
        "bytes_used": counts.bytes_used,
        "bytes_transferred": access.bytes_transferred,
        "ratio": access.ratio,
        "sectors": access.sectors,
        "ideal_sectors": access.ideal_sectors,
        "lines": access.lines,
        "segments": {str(size): number for size, number in access.segments.items()},
        "warps": counts.warps,
        "histogram": [[sectors, warps] for sectors, warps in access.histogram.items()],
        "coalesced": access.coalesced,
        "worst": worst
        and {"at": worst.where, "sectors": worst.sectors, "addresses": worst.addresses},
        "best_starts": access.best_starts,
        "worst_starts": access.worst_starts,
        "best_sectors": access.best.sectors,
        "instructions": [
            {
                "unroll": load.unroll,
                "path": load.path,
                "bytes_per_lane": load.bytes_per_lane,
                "warps": load.transactions.warps,
                "sectors": load.transactions.sectors,
            }
            for load in access.instructions
        ],
    }
