"""Printing of the answers for the selected instructions of a module, for the command ``maps``.

Answers that differ in names only are printed from one text (`indexing.views.repeated_answers`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

from indexing.cli.printing import Request, answers, batches, faults, print_tables, tables

if TYPE_CHECKING:
    from hlo.modules.module import Computation, Instruction, Module
    from indexing.cli.progress import Bar
    from indexing.cli.reporter import Reporter
    from indexing.views.repeated_answers import RepeatedAnswer

MAX_WAITING: Final = 256
"""Limit on the answers that wait to be printed together."""


def answer_all(
    reporter: Reporter,
    module: Module,
    computations: Sequence[Computation],
    request: Request,
    bar: Bar,
    share: Mapping[Computation, range] | None = None,
) -> None:
    """Print the answers for the selected instructions of `computations`, and report errors.

    If conditions select the instructions, only what their answers need is checked.

    Args:
        share: the positions of the instructions in each computation; by default, all.
    """
    import_module("indexing.ops")  # registers the ops
    if not request.selection.is_partial:
        with reporter.reporting(module.filename):
            for error in faults(computations):
                reporter.hlo_error(error)
    selected = request.selection.instructions(module, computations)
    if share is not None:
        selected = [each for each in selected if each.index in share[each.computation]]
    total = len(selected)
    reporter.counts["instructions"] += total
    if repeats(reporter, request):
        print_repeated(reporter, module, selected, request, bar)
        return
    for batch, done in batches(tables(reporter, module, selected, request), reporter):
        bar.update(f"{module.filename}: {batch[0].computation}", done, total)
        bar.hide()
        print_tables(reporter, batch, request)


def repeats(reporter: Reporter, request: Request) -> bool:
    """Return True if answers are printed line by line, and differ for equal ops in names only."""
    from indexing.views.repeated_answers import RepeatedAnswers

    selection = request.selection
    chooses = selection.kinds or selection.limit is not None or selection.selects_root
    is_plain = request.point is None and reporter.width is None and not reporter.coloured
    return is_plain and not chooses and RepeatedAnswers.can_answer(request.query, request.notation)


def print_repeated(
    reporter: Reporter,
    module: Module,
    selected: Sequence[Instruction],
    request: Request,
    bar: Bar,
) -> None:
    """Print the answers for instructions, in their order; each form is answered once."""
    from indexing.views.repeated_answers import RepeatedAnswers

    answers_by_form = RepeatedAnswers(request.query, request.notation)
    counts: Counter[RepeatedAnswer] = Counter()
    waiting: list[str] = []

    def show_progress(done: int, instruction: Instruction) -> None:
        bar.update(f"{module.filename}: {instruction.computation.name}", done, len(selected))
        bar.hide()

    def print_waiting() -> None:
        if waiting:
            reporter.has_answer = True
            reporter.print(*"\n".join(waiting).split("\n"))
            waiting.clear()

    for done, instruction in enumerate(selected):
        if len(waiting) == MAX_WAITING:
            show_progress(done, instruction)
            print_waiting()
        answer = answers_by_form.find(instruction)
        if answer is not None:
            waiting.append(answers_by_form.text(answer, instruction))
            counts[answer] += 1
            continue
        print_waiting()  # before the messages of the next answer
        for table in answers(reporter, module, [instruction], request):
            show_progress(done, instruction)
            print_tables(reporter, [table], request)
            answers_by_form.learn(instruction, table)
    print_waiting()
    for answer, count in counts.items():
        for grade in answer.grades:
            reporter.counts[grade] += count
