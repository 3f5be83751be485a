"""The table and the JSON of ``hlo-indexing bytes``; `schemas/bytes.json` is the JSON schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from hlo.modules.module import Module
from hlo.text.names import counted_noun
from indexing.memory.movement.amounts import Amount
from indexing.memory.movement.operand_traffic import OperandTraffic
from indexing.memory.movement.recomputation import weighted_recompute
from indexing.memory.movement.roofline import Peak, RooflineBound
from indexing.memory.movement.traffic_values import InstructionTraffic, Traffic
from indexing.memory.spaces import space_name
from indexing.ops.element import Work
from indexing.views.map_tables import Paint, plain
from indexing.views.records import SCHEMA_VERSION, shape_record
from indexing.views.tables import Table, align_columns, fit_rows, omitted_lines
from simplifier.unknown import Unknown

_MAX_REASON: Final = 100
TRAFFIC_COLUMNS: Final = (
    *("bytes", "read", "needed", "written", "stored", "padding", "requested", "recompute"),
    *("flops", "flops/byte", "time", "bound", "executions", "instruction"),
)
"""The columns of the table; bytes are those of all executions."""
SPACE_COLUMNS: Final = ("memory", "elements", "read", "written", "stored", "padding")
"""The columns of the table of memory spaces."""
_SPARED: Final = (
    *("stored", "padding", "flops", "requested", "needed", "recompute", "opcode", "flops/byte"),
)
_SPARED_OF_SPACES: Final = ("elements", "padding")


def traffic_table(traffic: Traffic) -> Table:
    """Return a table of traffic: its totals, and a row for each instruction."""
    total = traffic.total
    rows = []
    for each in traffic.ranked:
        place = f"{each.instruction.computation.name}/{each.instruction.name}"
        figures = each.read, each.written, each.requested, each.flops
        rows.append((each.instruction.opcode, place, _total_cell(each), *figures))
    head = f"traffic: {total.bytes} bytes, {total.read} read, {total.written} written"
    columns = ("opcode", "instruction", "bytes", "read", "written", "requested", "flops")
    return Table(head, columns, rows, right=range(2, 7))


@dataclass(frozen=True, slots=True)
class TrafficTable:
    """The traffic of a module with the roofline bounds of its instructions.

    Attributes:
        file: the name of the file.
        traffic: the traffic of a module.
        peak: the peak rates of the device, or None.
        selected: how many of the instructions the traffic has, if not all.
    """

    file: str
    traffic: Traffic
    peak: Peak | None = None
    selected: str = ""

    @property
    def ranked(self) -> list[InstructionTraffic]:
        """The instructions, those that move the most bytes in memory in all executions first."""
        return self.traffic.ranked

    @property
    def has_padding(self) -> bool:
        """True if padding is moved."""
        return any(own.padding.upper != 0 for own in self.traffic.spaces.values())

    def lines(self, top: int, paint: Paint = plain, width: int | None = None) -> Iterator[str]:
        """Yield the lines of the text.

        Args:
            top: the maximum number of instructions.
            paint: marks the name of the module.
            width: the number of columns of a terminal: columns that do not fit are omitted.
        """
        module = self.traffic.target
        assert isinstance(module, Module)
        yield f"{self.file}: HloModule {paint(module.name, 'name')}{self.selected}"
        yield from [f"  {line}" for line in self.totals(None if width is None else width - 2)]
        ranked = self.ranked
        omitted: list[str] = []
        if ranked:
            fitted, omitted = self._fitted_rows(ranked[:top], width)
            for row in fitted:
                yield from row
        if len(ranked) > top:
            yield f"  … {len(ranked) - top:,} more"
        yield from [f"  {line}" for line in omitted_lines(omitted)]
        yield from _reasons(ranked)

    def _fitted_rows(
        self, ranked: Sequence[InstructionTraffic], width: int | None
    ) -> tuple[list[list[str]], list[str]]:
        """Return the lines of each row, and the headings of the columns that are omitted."""
        cells = [self.cells(each) for each in ranked]
        has_text = [any(column) for column in zip(*cells, strict=True)]
        head = [name if has else "" for name, has in zip(TRAFFIC_COLUMNS, has_text, strict=True)]
        rows = [head, *cells]
        if width is None or max(map(len, align_columns(rows, range(11), 60))) <= width:
            return fit_rows(rows, range(11), 60)
        places = {each.instruction.computation.name for each in ranked}
        if len(places) == 1:
            head[-1] += f" of {places.pop()}"
        for each, row in zip(ranked, cells, strict=True):
            opcode, _, place = row.pop().partition(" ")
            if " of " in head[-1]:
                place = place.removeprefix(f"{each.instruction.computation.name}/")
            row += [opcode, place]
        return fit_rows([[*head[:-1], "opcode", head[-1]], *cells], range(11), 60, width, _SPARED)

    def totals(self, width: int | None = None, *, spaces: bool = True) -> Iterator[str]:
        """Yield the figures of all instructions, a line each; tables fit `width`.

        Args:
            spaces: include the table of memory spaces.
        """
        total = self.traffic.total
        yield f"{total.bytes} bytes: {total.read} read, {total.written} written"
        if total.needed != total.read:
            yield f"{total.needed} of the {total.read} bytes read are needed under masks"
        if spaces and self.space_rows:
            yield from Table(
                "", SPACE_COLUMNS, self.space_rows, right=range(1, 6), spared=_SPARED_OF_SPACES
            ).lines(width)
        yield f"{total.requested} bytes requested by all reads"
        yield f"{total.flops} flops, {total.transcendentals} transcendentals"
        if self.peak is not None:
            yield self._total_time()

    @property
    def space_rows(self) -> list[tuple[Any, ...]]:
        """The traffic with each memory space, if there are several or padding is moved."""
        module, spaces = self.traffic.target, self.traffic.spaces
        assert isinstance(module, Module)
        if len(spaces) < 2 and not self.has_padding:
            return []
        return [
            (space_name(number, module), *[getattr(own, name) for name in SPACE_COLUMNS[1:]])
            for number, own in spaces.items()
        ]

    def _total_time(self) -> str:
        assert self.peak is not None
        total, missing, is_exact = Fraction(0), 0, True
        for each in self.traffic.instructions:
            bound = self.peak.bound(each)
            time = None if isinstance(bound, Unknown) else bound.over(each.executions)
            if time is None or isinstance(bound, Unknown):
                missing += 1
                continue
            total += time
            is_exact &= bound.is_exact
        left_out = counted_noun(missing, "instruction")
        more = f", without {left_out} of unknown time" if missing else ""
        return f"{'' if is_exact else '<= '}{seconds_text(total)} at the peak rates{more}"

    def cells(self, each: InstructionTraffic) -> list[str]:
        """Return the text of each of the `TRAFFIC_COLUMNS` for an instruction."""
        times = ["", ""]
        if self.peak is not None:
            times = list(_time_cells(self.peak.bound(each), each))
        instruction = each.instruction
        name = f"{instruction.opcode} {instruction.computation.name}/{instruction.name}"
        if each.updates:
            name += ", in place"
        return [
            _total_cell(each),
            _figure(each.read),
            "" if each.needed == each.loaded else str(each.needed),
            _figure(each.written),
            *(_stored_cells(each) if self.has_padding else ("", "")),
            _figure(each.requested),
            _factor(each),
            _figure(each.flops),
            _intensity(each),
            *times,
            "" if each.executions.number == 1 else str(each.executions),
            name,
        ]

    def to_json(self, top: int | None = None) -> dict[str, Any]:
        """Return the figures as a value for JSON; `schemas/bytes.json` is its schema.

        Args:
            top: the maximum number of instructions; by default, all.
        """
        module, total = self.traffic.target, self.traffic.total
        assert isinstance(module, Module)
        return {
            "file": self.file,
            "module": module.name,
            "total": {"bytes": list(total.bytes)}
            | {name: list(bounds) for name, bounds in total._asdict().items()}
            | {"loaded": list(total.read)},
            "spaces": [
                {"space": number, "name": space_name(number, module)}
                | {name: list(bounds) for name, bounds in each._asdict().items()}
                for number, each in self.traffic.spaces.items()
            ],
            "peak": None
            if self.peak is None
            else {"bytes": self.peak.bytes, "flops": self.peak.flops},
            "instructions": [self.record(each) for each in self.ranked[:top]],
            "schema_version": SCHEMA_VERSION,
        }

    def record(self, each: InstructionTraffic) -> dict[str, Any]:
        """Return the figures of an instruction as a value for JSON."""
        bound = None if self.peak is None else self.peak.bound(each)
        known = bound if isinstance(bound, RooflineBound) else None
        return {
            "computation": each.instruction.computation.name,
            "instruction": each.instruction.name,
            "opcode": each.instruction.opcode,
            "executions": list(each.executions),
            "bytes": _number(each.bytes),
            "read": each.read.number,
            "grade": each.read.grade,
            **_both_counts(each),
            "requested": _number(each.requested),
            "spaces": [
                {"space": number, "name": space_name(number, each.instruction.computation.module)}
                | {name: value.number for name, value in own._asdict().items()}
                for number, own in each.spaces.items()
            ],
            "written": _number(each.written),
            "in_place": [update.name for update in each.updates],
            "flops": _number(each.flops),
            "transcendentals": each.work.transcendentals if isinstance(each.work, Work) else None,
            "evaluated_flops": (each.evaluated.flops if isinstance(each.evaluated, Work) else None),
            "evaluated_grade": each.evaluated_grade,
            "recompute": {
                inner.name: None if isinstance(factor, Unknown) else float(factor)
                for inner, factor in each.recompute.items()
            },
            "recompute_factor": _float(weighted_recompute(each)),
            "seconds": None if known is None else float(known.seconds),
            "bound": None if known is None else known.limit,
            "operands": [_operand_record(operand) for operand in each.operands],
            "unknown": list(dict.fromkeys(_unknowns(each))),
        }


def operand_lines(traffic: Traffic, width: int | None = None) -> Iterator[str]:
    """Yield a table of the operands: their distinct bytes, and how often an element is read."""
    rows = []
    for each in traffic.ranked:
        for read in each.operands:
            number = "constant" if read.operand is None else f"operand {read.operand}"
            figures = _figure(read.distinct), _figure(read.requested), _reads_cell(read)
            rows.append((*figures, f"{number} {read.source.name}", each.instruction.name))
    if rows:
        columns = ("read", "requested", "reads of an element", "array", "of")
        yield "operands, in bytes:"
        yield from Table("", columns, rows, right=range(3)).lines(width)


def _reads_cell(read: OperandTraffic) -> str:
    """Return the average number of reads of an element that is read."""
    requested, distinct = read.requested, read.distinct
    if isinstance(requested, Unknown) or distinct.grade != "exact" or not distinct.number:
        return "?"
    mark = "" if requested.grade == "exact" else "<= "
    return f"{mark}{requested.number / distinct.number:,.4g}"


def _operand_record(operand: OperandTraffic) -> dict[str, Any]:
    requested, utilisation = operand.requested, operand.utilisation
    return {
        "operand": operand.operand,
        "operand_name": operand.source.name,
        "path": list(operand.path),
        "shape": shape_record(operand.shape),
        "distinct": operand.distinct.number,
        "distinct_grade": operand.distinct.grade,
        **_both_counts(operand),
        "stored": operand.stored.number,
        "padding": operand.padding.number,
        "padding_grade": operand.padding.grade,
        "requested": _number(requested),
        "requested_grade": requested.grade if isinstance(requested, Amount) else None,
        "utilisation": None if utilisation is None else float(utilisation),
    }


def _both_counts(each: InstructionTraffic | OperandTraffic) -> dict[str, Any]:
    """Return the bytes that are loaded, and those of them that the result needs."""
    needed = each.needed
    return {"loaded": each.loaded.number, "needed": needed.number, "needed_grade": needed.grade}


def _float(ratio: Fraction | Unknown) -> float | None:
    return None if isinstance(ratio, Unknown) else float(ratio)


def _number(figure: Amount | int | Unknown) -> int | None:
    if isinstance(figure, Unknown):
        return None
    return figure.number if isinstance(figure, Amount) else figure


# ---------------------------------------------------------------- cells


def _total_cell(each: InstructionTraffic) -> str:
    """Return the bytes of all executions."""
    moved, times = each.bytes, each.executions
    if isinstance(moved, Unknown):
        return "?"
    if times.number is None:
        return f"{moved} each"
    return str(moved._replace(number=moved.number * times.number))


def _figure(figure: Amount | int | Unknown) -> str:
    if isinstance(figure, Unknown):
        return "?"
    return f"{figure:,}" if isinstance(figure, int) else str(figure)


def _stored_cells(each: InstructionTraffic) -> tuple[str, str]:
    """Return the bytes in memory, and those of padding if there are any."""
    moved = each.all_spaces
    if isinstance(moved, Unknown):
        return "?", "?"
    return str(moved.stored), str(moved.padding) if moved.padding.number else ""


def _factor(each: InstructionTraffic) -> str:
    """Return the recompute factor, weighed by work; empty if nothing is computed more than once."""
    factor = weighted_recompute(each)
    if isinstance(factor, Unknown):
        return "?"
    most = "<= " if each.evaluated_grade == "may" else ""
    digits = ".0f" if factor >= 1000 else ".4g"
    return f"{most}{float(factor):,{digits}}" if factor > 1 else ""


def _intensity(each: InstructionTraffic) -> str:
    """Return the operations per byte; at least, if the bytes are an upper bound."""
    ratio = each.intensity
    if ratio is None:
        return ""
    if isinstance(ratio, Unknown) or isinstance(each.bytes, Unknown):
        return "?"
    least = ">= " if each.bytes.grade == "may" else ""
    return f"{least}{float(ratio):,.4g}"


def _time_cells(bound: RooflineBound | Unknown, each: InstructionTraffic) -> tuple[str, str]:
    if isinstance(bound, Unknown):
        return "?", ""
    time = bound.over(each.executions)
    text = f"{seconds_text(bound.seconds)} each" if time is None else seconds_text(time)
    return text if bound.is_exact else f"<= {text}", bound.limit


def seconds_text(seconds: Fraction) -> str:
    """Return a time with a unit.

    >>> seconds_text(Fraction(1, 1_600_000)), seconds_text(Fraction(0)), seconds_text(Fraction(90))
    ('625 ns', '0 s', '90 s')
    """
    for unit, scale in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        if seconds * scale >= 1:
            return f"{float(seconds * scale):,.4g} {unit}"
    return f"{float(seconds * 10**9):.2g} ns" if seconds else "0 s"


# ---------------------------------------------------------------- reasons


def _unknowns(each: InstructionTraffic) -> Iterator[str]:
    """Yield why figures of an instruction are unknown."""
    figures: Sequence[object] = (each.written, each.requested, each.work, each.evaluated)
    for figure in (*figures, *[operand.unknown for operand in each.operands]):
        if isinstance(figure, Unknown):
            yield figure.reason


def _reasons(instructions: Sequence[InstructionTraffic]) -> Iterator[str]:
    counts = Counter([r for each in instructions for r in dict.fromkeys(_unknowns(each))])
    if counts:
        yield "unknown figures (`?`):"
    for reason, count in counts.most_common(10):
        clipped = reason if len(reason) <= _MAX_REASON else f"{reason[:_MAX_REASON]}…"
        yield f"  {count:,}  {clipped}"
    if len(counts) > 10:
        yield f"  … {len(counts) - 10:,} more reasons"
