"""Selection of instructions and printing of their maps, for the command ``maps``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from itertools import groupby
from typing import TYPE_CHECKING, Final

from indexing.cli.map_texts import MAP_ONLY
from indexing.cli.reporter import Reporter
from indexing.cli.selected import report_missed

if TYPE_CHECKING:
    from hlo import HloError
    from hlo.modules.module import Computation, Instruction, Module
    from indexing.views.map_query import Query
    from indexing.views.map_tables import MapTable
    from indexing.views.regions import Point
    from indexing.views.selection import Condition, Selection
    from indexing.views.terminal import Terminal

_formats = cache(partial(import_module, "indexing.views.formats"))  # help does without

MAX_OUTPUTS: Final = 64
"""Maximum number of outputs of a root that is printed as text without being selected."""


@dataclass(frozen=True, slots=True)
class Request:
    """A query, the instructions it selects, and the output format.

    Attributes:
        query: the query for each selected instruction.
        selection: the instructions.
        notation: the output format.
        all_outputs: print a root with more than `MAX_OUTPUTS` outputs as text.
        point: print the elements that this point or tile needs, in place of maps.
        is_one_file: True if the command has one file.
    """

    query: Query
    selection: Selection
    notation: str
    all_outputs: bool = False
    point: Point | None = None
    is_one_file: bool = True

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of the selection, and one for each parameter with a value."""
        from indexing.views.selection import Condition

        given = [Condition("--set", name) for name, _ in self.query.values]
        return *self.selection.conditions, *given

    def is_too_wide(self, outputs: int) -> bool:
        """Return True if a root with so many outputs is not printed: programs read any number."""
        chosen = self.all_outputs or self.query.output_id is not None
        is_text = self.notation == "text"
        return is_text and self.selection.selects_root and not chosen and outputs > MAX_OUTPUTS


def batches(
    answered: Iterable[tuple[MapTable, int]], reporter: Reporter
) -> Iterator[tuple[list[MapTable], int]]:
    """Yield the tables that are printed together, with the number of answers before.

    A terminal gets all outputs of an instruction together; otherwise, each is printed at once.
    """
    if reporter.width is None:
        for table, done in answered:
            yield [table], done
        return
    for (done, _), group in groupby(answered, lambda each: (each[1], each[0].direction)):
        yield [table for table, _ in group], done


def tables(
    reporter: Reporter, module: Module, selected: Sequence[Instruction], request: Request
) -> Iterator[tuple[MapTable, int]]:
    """Yield the answers for instructions, in their order, with the number of answers before.

    Answers without a map of the requested kinds, and answers beyond the limit, are left out.
    """
    from indexing.views.access_kinds import kinds_of

    selection = request.selection
    done, last = 0, ("", "")
    requested: set[tuple[str, str]] = set()
    for table in all_tables(reporter, module, selected, request):
        name = table.computation, table.instruction
        if name != last and len(requested) == selection.limit:
            return
        done, last = done + (name != last), name
        if not selection.kinds or not kinds_of(table.rows).isdisjoint(selection.kinds):
            if selection.limit is not None:
                requested.add(name)
            yield table, done


def all_tables(
    reporter: Reporter, module: Module, selected: Sequence[Instruction], request: Request
) -> Iterator[MapTable]:
    """Yield the answers for instructions, in their order."""
    selection, to_parameters = request.selection, request.query.to_parameters
    if to_parameters and selection.limit is not None and len(selected) > 1:
        # a few backward walks are cheaper than a sweep of all instructions
        for instruction in selected:
            for table in answers(reporter, module, [instruction], request):
                yield replace(table, rows=tuple(r for r in table.rows if r.map or r.unknown))
    elif to_parameters and selection.order is not None:
        yield from sweep_in_order(reporter, module, selected, request)
    else:
        for group in groups(selected):
            yield from answers(reporter, module, group, request)


def sweep_in_order(
    reporter: Reporter, module: Module, selected: Sequence[Instruction], request: Request
) -> list[MapTable]:
    """Return the answers of one sweep of each computation, in the order of `selected`."""
    from hlo.modules.recursion import positions

    number = {(i.computation.name, i.name): k for k, i in enumerate(selected)}
    in_text = sorted(selected, key=lambda i: (positions(module)[i.computation.name], i.index))
    answered = [t for each in groups(in_text) for t in answers(reporter, module, each, request)]
    return sorted(answered, key=lambda t: number[t.computation, t.instruction])


def groups(instructions: Sequence[Instruction]) -> Iterator[list[Instruction]]:
    """Yield adjacent instructions of one computation together."""
    yield from (list(group) for _, group in groupby(instructions, lambda i: i.computation))


def print_tables(reporter: Reporter, batch: Sequence[MapTable], request: Request) -> None:
    """Print the maps of an instruction, or the regions at the requested point."""
    first, terminal = batch[0], terminal_of(reporter, request)
    reporter.has_answer = True
    with reporter.reporting(f"{first.file}: {first.computation}: {first.instruction}"):
        paint = reporter.paint if reporter.coloured else _formats().plain
        printed: Iterable[str] = (
            _formats().lines(batch, request.notation, paint, terminal)
            if request.point is None
            else lines_at(reporter, batch, request, terminal)
        )
        printable: list[str] = []
        try:
            printable.extend(printed)
        finally:  # also the lines before an error
            reporter.print(*([""] if terminal is not None and printable else []), *printable)
        for table in batch:
            count_maps(reporter, table)


def lines_at(
    reporter: Reporter, batch: Sequence[MapTable], request: Request, terminal: Terminal | None
) -> list[str]:
    """Return the lines of the regions at the requested point; report outputs that lack it."""
    from indexing.views.regions import PointError, region_lines, table_regions, terminal_lines

    assert request.point is not None
    answered, values = [], dict(request.query.values)
    for table in batch:
        try:
            answered.append((table, table_regions(table, request.point, values)))
        except PointError as error:
            place = f"{table.file}: {table.computation}: {table.instruction}"
            reporter.error(f"error[at]: {place}: {error}")
    if terminal is not None:
        return list(terminal_lines(answered, request.point, terminal)) if answered else []
    return [
        line
        for table, regions in answered
        for line in region_lines(table, regions, request.point, request.notation, reporter.paint)
    ]


def terminal_of(reporter: Reporter, request: Request) -> Terminal | None:
    """Return the terminal on which text is laid out; None for one record a line."""
    if reporter.width is None or request.notation != "text":
        return None
    from indexing.views.terminal import Terminal

    return Terminal(reporter.width, reporter.paint, not request.is_one_file)


def refuse_root(reporter: Reporter, module: Module, outputs: int) -> None:
    """Report that the maps of the root are not printed, with the options that select fewer."""
    root = module.entry.root
    opcodes = Counter(each.opcode for each in module.entry.instructions)
    for small in ("parameter", "constant", "tuple", "get-tuple-element"):
        opcodes.pop(small, None)
    counts = ", ".join(f"{opcode} ({count})" for opcode, count in opcodes.most_common(4))
    select = [f"  = help: --opcode OPCODE selects instructions of the module: {counts}"]
    reporter.error(
        f"error[outputs]: {module.filename}: {module.entry.name}: the root `{root.name}` has "
        f"{outputs} outputs, more than {MAX_OUTPUTS}: its maps are not printed",
        f"  = help: --output N selects one output, 0 to {outputs - 1}; --all-outputs prints all",
        f"  = help: -i NAME selects an instruction: `hlo-indexing ls {module.filename}` lists them",
        *(select if counts else []),
    )


def count_maps(reporter: Reporter, table: MapTable) -> None:
    """Count the maps of `table` by grade, and its unknown accesses."""
    counts = reporter.counts
    for row in table.rows:
        if row.map is not None:
            counts[row.map.grade] += 1
        elif row.unknown is not None:
            counts["unknown"] += 1
        if row.assumptions:
            counts["--assume"] += 1
    if table.is_decided:
        counts["--set"] += 1


def note_unmarked(reporter: Reporter, notation: str) -> None:
    """Print notes about the accesses that a format for maps alone omits or does not mark."""
    if notation not in MAP_ONLY:
        return
    unknown, may = reporter.counts["unknown"], reporter.counts["may"]
    total = may + reporter.counts["exact"]
    if unknown:
        reporter.note(
            f"note: {unknown} of {total + unknown} accesses are unknown and have no map: "
            "--format text gives the reasons"
        )
    if may:
        reporter.note(
            f"note: {may} of {total} maps are over-approximations (`may`), which {notation} does "
            "not mark: --format json has the grades"
        )


def answers(
    reporter: Reporter, module: Module, instructions: Sequence[Instruction], request: Request
) -> Iterator[MapTable]:
    """Yield the answers for some instructions of one computation; note maps that isl cannot decide.

    isl decides only what ``--verify`` requests.
    """
    for table in _answers(reporter, module, instructions, request):
        note_undecided(reporter, table)
        yield table
    place = f"{module.filename}: {instructions[0].computation.name}"
    for reason in dict.fromkeys(reporter.undecided.values()):  # on the way to no table
        reporter.note(f"note: {place}: isl could not decide a composed map: {reason}")
    reporter.undecided.clear()


def note_undecided(reporter: Reporter, table: MapTable) -> None:
    """Print a note for each map that isl could not decide on the way to `table`."""
    if not (maps := reporter.undecided):
        return
    place = f"note: {table.file}: {table.computation}: {table.instruction}: isl could not decide"
    printed = set()
    for row in table.rows:
        if row.map in maps:
            printed.add(row.map)
            place_of_row = f"{place} {table.role} {row.operand} ({row.name})"
            reporter.note(f"{place_of_row}: its map is not proved: {maps[row.map]}")
    for reason in dict.fromkeys(maps[m] for m in maps if m not in printed):
        reporter.note(f"{place} a map that its maps are composed from: {reason}")
    maps.clear()


def _answers(
    reporter: Reporter, module: Module, instructions: Sequence[Instruction], request: Request
) -> Iterator[MapTable]:
    """Yield the answers for some instructions of one computation."""
    from hlo.shapes.shape import leaves
    from indexing.views.map_answers import answer, answers_to_parameters

    query, computation = request.query, instructions[0].computation
    place = f"{module.filename}: {computation.name}"
    if query.to_parameters and len(instructions) > 1 and is_valid(computation):
        with reporter.reporting(place):
            selected = set(instructions)
            yield from answers_to_parameters(computation, selected, query, module.filename)
        return
    for instruction in instructions:
        with reporter.reporting(location := f"{place}: {instruction.name}"):
            if missing := query.missing_in(instruction):
                if request.selection.is_by_name:
                    reporter.error(f"error[name]: {location} has no {missing}")
                continue
            outputs = len(leaves(instruction.shape))
            if request.is_too_wide(outputs):
                refuse_root(reporter, module, outputs)
                continue
            if not (outputs or request.selection.everything):
                reporter.note(f"note: {location} has no outputs")
                reporter.has_answer = True
            yield from answer(instruction, query, module.filename)


def faults(computations: Sequence[Computation]) -> Iterator[HloError]:
    """Yield the error of each invalid instruction, selected or not.

    Unlike `hlo.verify`, unknown attributes are accepted: a newer XLA may define them.
    """
    from indexing.dataflow.soundness import faults_in

    for computation in computations:
        yield from faults_in(computation)


def reported_valid(module: Module, reporter: Reporter) -> bool:
    """Report the error of each invalid instruction; return True if there is none."""
    errors = list(faults(list(module.computations.values())))
    for error in errors:
        reporter.hlo_error(error)
    return not errors


def is_valid(computation: Computation) -> bool:
    """Return True if no instruction is invalid, so that one sweep can answer the computation."""
    return computation.memoised(is_valid, lambda: not any(faults([computation])))


def report_no_match(reporter: Reporter, request: Request) -> None:
    """Report conditions that no module meets, and a selection without an instruction."""
    import_module("indexing.ops")  # registers the ops
    report_missed(reporter, request.conditions, request.is_one_file)
    if not (reporter.failed or reporter.has_answer or not request.selection.text):
        reporter.error(f"error[name]: no instruction matches {request.selection.text}")
