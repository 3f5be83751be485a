"""Selection of instructions and printing of their maps, for the command ``maps``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from typing import TYPE_CHECKING, Final

from indexing.cli.progress import Bar
from indexing.cli.reporter import Reporter

if TYPE_CHECKING:
    from hlo import HloError
    from hlo.modules.module import Computation, Instruction, Module
    from indexing.views.report import MapTable, Query


MAX_OUTPUTS: Final = 64
"""Maximum number of outputs of a root that is printed as text without being selected."""


@dataclass(frozen=True, slots=True)
class Request:
    """A query, the instructions it selects, and the output format.

    Attributes:
        query: the query for each selected instruction.
        names: selected instructions, as NAME or COMPUTATION/NAME.
        opcodes: selected opcodes.
        everything: select every instruction.
        notation: the output format.
        all_outputs: print a root with more than `MAX_OUTPUTS` outputs as text.
    """

    query: Query
    names: tuple[str, ...]
    opcodes: tuple[str, ...]
    everything: bool
    notation: str
    all_outputs: bool = False

    @property
    def selects_root(self) -> bool:
        """True if nothing is selected explicitly: the root of ENTRY is the default."""
        return not (self.names or self.opcodes or self.everything)

    def is_too_wide(self, outputs: int) -> bool:
        """Return True if a root with so many outputs is not printed: programs read any number."""
        chosen = self.all_outputs or self.query.output_id is not None
        is_text = self.notation == "text"
        return is_text and self.selects_root and not chosen and outputs > MAX_OUTPUTS


def answer_all(
    reporter: Reporter,
    module: Module,
    computations: Sequence[Computation],
    request: Request,
    bar: Bar,
) -> None:
    """Report errors in `computations`, and print the answers for their selected instructions."""
    from indexing.views.formats import lines

    import_module("indexing.ops")  # registers the ops
    with reporter.reporting(module.filename):
        for error in faults(computations):
            reporter.hlo_error(error)
    total, done = sum(map(len, computations)), 0
    for computation, selected in groupby(
        selected_instructions(module, computations, request), lambda i: i.computation
    ):
        for table in answers(reporter, module, computation, list(selected), request):
            bar.update(f"{module.filename}: {computation.name}", done, total)
            bar.hide()
            with reporter.reporting(f"{table.file}: {table.computation}: {table.instruction}"):
                for line in lines(table, request.notation, reporter.paint):
                    reporter.print(line)
                if request.notation not in ("text", "json"):
                    count_unmarked(reporter, table)
        done += len(computation)


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


def count_unmarked(reporter: Reporter, table: MapTable) -> None:
    """Count the maps and unknown accesses of `table`, for a format that prints maps alone."""
    reporter.unmarked.update(row.map.grade for row in table.rows if row.map is not None)
    reporter.unmarked["unknown"] += sum(row.unknown is not None for row in table.rows)


def note_unmarked(reporter: Reporter, notation: str) -> None:
    """Print notes about the accesses that a format for maps alone omits or does not mark."""
    unknown, may = reporter.unmarked["unknown"], reporter.unmarked["may"]
    if unknown:
        reporter.note(
            f"note: {unknown} of {reporter.unmarked.total()} accesses are unknown and have no map: "
            "--format text gives the reasons"
        )
    if may:
        total = may + reporter.unmarked["exact"]
        reporter.note(
            f"note: {may} of {total} maps are over-approximations (`may`), which {notation} does "
            "not mark: --format json has the grades"
        )


def answers(
    reporter: Reporter,
    module: Module,
    computation: Computation,
    instructions: Sequence[Instruction],
    request: Request,
) -> Iterator[MapTable]:
    """Yield the answers for some instructions of one computation."""
    from hlo.shapes.shape import leaves
    from indexing.views.report import answer, answers_to_parameters

    query = request.query
    if query.to_parameters and len(instructions) > 1 and is_valid(module):
        with reporter.reporting(f"{module.filename}: {computation.name}"):
            selected = set(instructions)
            yield from answers_to_parameters(computation, selected, query, module.filename)
        return
    for instruction in instructions:
        location = f"{module.filename}: {computation.name}: {instruction.name}"
        with reporter.reporting(location):
            if missing := query.missing_in(instruction):
                if not (request.everything or request.opcodes):
                    reporter.error(f"error[name]: {location} has no {missing}")
                continue
            outputs = len(leaves(instruction.shape))
            if request.is_too_wide(outputs):
                refuse_root(reporter, module, outputs)
                continue
            if not (outputs or request.everything):
                reporter.note(f"note: {location} has no outputs")
            yield from answer(instruction, query, module.filename)


def faults(computations: Sequence[Computation]) -> Iterator[HloError]:
    """Yield the error of each invalid instruction, selected or not.

    Unlike `hlo.verify`, unknown attributes are accepted: a newer XLA may define them.
    """
    from indexing.dataflow.soundness import fault_of

    for computation in computations:
        yield from filter(None, map(fault_of, computation.instructions))


def is_valid(module: Module) -> bool:
    """Return True if no instruction is invalid, so that one sweep can answer a computation."""
    return module.memoised(is_valid, lambda: not any(faults(list(module.computations.values()))))


def selected_instructions(
    module: Module, computations: Sequence[Computation], request: Request
) -> Iterator[Instruction]:
    """Yield the selected instructions of `computations`, in text order."""
    if request.selects_root:
        if module.entry in computations:
            yield module.entry.root
        return
    names = {name.removeprefix("%") for name in request.names}
    for computation in computations:
        for instruction in computation.instructions:
            if (
                request.everything
                or instruction.opcode in request.opcodes
                or (names and not names.isdisjoint(spellings(instruction)))
            ):
                yield instruction


def spellings(instruction: Instruction) -> tuple[str, str]:
    """Return the accepted names of an instruction: NAME and COMPUTATION/NAME."""
    return instruction.name, f"{instruction.computation.name}/{instruction.name}"


def report_missing(reporter: Reporter, module: Module, names: Sequence[str]) -> None:
    """Report each requested name that no instruction of `module` has."""
    missing = {name.removeprefix("%") for name in names}
    if missing:
        missing.difference_update(*map(spellings, module.instructions))
    for name in sorted(missing):
        reporter.error(
            f"error[name]: {module.filename}: no instruction named `{name}`",
            *suggestion(name, module),
        )


def note_opcodes(reporter: Reporter, module: Module, opcodes: Sequence[str]) -> None:
    """Record which requested opcodes occur in `module`."""
    if opcodes:
        reporter.opcodes.update({i.opcode for i in module.instructions}.intersection(opcodes))


def report_missing_opcodes(reporter: Reporter, opcodes: Sequence[str]) -> None:
    """Report requested opcodes that no file has: unknown ones as errors, others in a note."""
    from hlo.ops.op import OPS

    import_module("indexing.ops")  # registers the ops
    for opcode in dict.fromkeys(opcodes):
        if opcode in reporter.opcodes:
            continue
        if opcode not in OPS:
            reporter.error(f"error[name]: unknown opcode `{opcode}`", *did_you_mean(opcode, OPS))
        elif not reporter.failed:
            reporter.note(f"note: no instruction has the opcode `{opcode}`")


def did_you_mean(name: str, names: Iterable[str]) -> list[str]:
    """Return a help line with the most similar of `names`, or none.

    >>> did_you_mean("conv", ["convert", "convolution", "cosine", "transpose"])
    ['  = help: did you mean `convert` or `convolution`?']
    """
    from difflib import get_close_matches

    lower = name.lower()
    by_lower = {each.lower(): each for each in dict.fromkeys(names)}
    prefixed = [text for text in by_lower if text.startswith(lower)] if lower else []
    similar = [
        by_lower[text] for text in prefixed or get_close_matches(lower, by_lower, cutoff=0.7)
    ][:3]
    return _question(similar)


def _question(similar: Sequence[str]) -> list[str]:
    names = " or ".join(f"`{each}`" for each in similar)
    return [f"  = help: did you mean {names}?"] if similar else []


def suggestion(name: str, module: Module) -> list[str]:
    """Return a help line with names in `module` similar to `name`, or none."""
    from difflib import get_close_matches

    if name in module.computations:
        return [f"  = help: `{name}` is a computation: use {name}/NAME"]
    last = name.rpartition("/")[2]
    if last != name:  # such as CALL/NAME, the source of a runtime variable
        close = [spellings(i)[1] for i in module.instructions if i.name == last][:3]
    else:
        close = get_close_matches(name, dict.fromkeys(i.name for i in module.instructions))
    return _question(close)
