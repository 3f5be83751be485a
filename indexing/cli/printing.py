"""What `maps` does with a module: which instructions are asked about, and their answers printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from typing import TYPE_CHECKING

from indexing.cli.progress import Bar
from indexing.cli.reporter import Reporter

if TYPE_CHECKING:
    from hlo import HloError
    from hlo.modules.module import Computation, Instruction, Module
    from indexing.views.report import Block, Query


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked about which instructions, and how the answers are written."""

    query: Query
    names: tuple[str, ...]
    opcodes: tuple[str, ...]
    everything: bool
    notation: str

    @property
    def is_one(self) -> bool:
        """The root of ENTRY alone is asked about."""
        return not (self.names or self.opcodes or self.everything)


def answer_all(
    reporter: Reporter,
    module: Module,
    computations: Sequence[Computation],
    request: Request,
    bar: Bar,
) -> None:
    """Print what is asked about instructions of `computations`, and what is wrong with them."""
    from indexing.views.report import lines

    import_module("indexing.ops")  # registers what is known of each opcode
    with reporter.reporting(module.filename):
        for error in broken(computations):
            reporter.error(str(error))
    total, done = sum(map(len, computations)), 0
    for computation, chosen in groupby(
        wanted(module, computations, request), lambda i: i.computation
    ):
        for block in answers(reporter, module, computation, list(chosen), request):
            bar.at(f"{module.filename}: {computation.name}", done, total)
            bar.make_way()
            with reporter.reporting(f"{block.file}: {block.computation}: {block.instruction}"):
                for line in lines(block, request.notation, reporter.paint):
                    reporter.print(line)
        done += len(computation)


def answers(
    reporter: Reporter,
    module: Module,
    computation: Computation,
    instructions: Sequence[Instruction],
    request: Request,
) -> Iterator[Block]:
    """The answers for some instructions of a computation."""
    from indexing.views.report import answer, answers_to_parameters

    query = request.query
    if query.to_parameters and len(instructions) > 1 and is_sound(module):
        with reporter.reporting(f"{module.filename}: {computation.name}"):
            asked = set(instructions)
            yield from answers_to_parameters(computation, asked, query, module.filename)
        return
    for instruction in instructions:
        place = f"{module.filename}: {computation.name}: {instruction.name}"
        with reporter.reporting(place):
            if lacking := query.beyond(instruction):
                if not (request.everything or request.opcodes):
                    reporter.error(f"error[name]: {place} has no {lacking}")
                continue
            yield from answer(instruction, query, module.filename)


def broken(computations: Sequence[Computation]) -> Iterator[HloError]:
    """What is wrong with instructions, asked about or not: they have no meaning.

    Unlike `hlo.verify`, attributes that nobody knows are let pass: a newer XLA may have them.
    """
    from indexing.dataflow.edges import fault_of

    for computation in computations:
        yield from filter(None, map(fault_of, computation.instructions))


def is_sound(module: Module) -> bool:
    """No instruction is broken, so that all of a computation can be answered in one sweep."""
    return module.remembered(is_sound, lambda: not any(broken(list(module.computations.values()))))


def wanted(
    module: Module, computations: Sequence[Computation], request: Request
) -> Iterator[Instruction]:
    """The instructions of `computations` that are asked about, in text order."""
    if request.is_one:
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
    """How an instruction may be called: NAME, or COMPUTATION/NAME."""
    return instruction.name, f"{instruction.computation.name}/{instruction.name}"


def report_missing(reporter: Reporter, module: Module, names: Sequence[str]) -> None:
    """Report the names that no instruction of `module` has."""
    missing = {name.removeprefix("%") for name in names}
    if missing:
        missing.difference_update(*map(spellings, module.instructions))
    for name in sorted(missing):
        reporter.error(
            f"error[name]: {module.filename}: no instruction is called `{name}`"
            + nearest(name, module)
        )


def nearest(name: str, module: Module) -> str:
    """A help line with the names in `module` that look like `name`; empty when none does."""
    from difflib import get_close_matches

    close = get_close_matches(name, dict.fromkeys(i.name for i in module.instructions))
    return f"\n  = help: did you mean {' or '.join(f'`{n}`' for n in close)}?" if close else ""
