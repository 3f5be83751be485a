"""The instructions that the options of a command select, and what they do not find."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Final

from indexing.cli.reporter import Reporter

if TYPE_CHECKING:
    from hlo.modules.module import Instruction, Module
    from indexing.views.map_query import GivenValues, Query
    from indexing.views.selection import Condition, Selection


MAX_LISTED: Final = 8
"""Limit on the parameters that a message lists."""


def selected_modules(
    reporter: Reporter, source: str | Module, names: tuple[str, ...], values: GivenValues = ()
) -> Iterator[tuple[Module, list[Instruction]]]:
    """Yield each module with the instructions that names select; report names without any.

    Args:
        source: a file, or a module.
        values: of parameters that the computations of the instructions should have.
    """
    from indexing.views.selection import Condition, Selection

    import_module("indexing.ops")  # registers the ops
    selection, given = Selection(names), [Condition("--set", name) for name, _ in values]
    modules: Iterable[Module]
    if isinstance(source, str):
        modules = reporter.modules([source], lazy=selection.is_partial)
    else:
        modules = [source]
    for module in modules:
        note_given(reporter, module, selection, given)
        if reporter.matched.issuperset(given):
            yield module, selection.instructions(module, list(module.computations.values()))
        note_matches(reporter, module, selection.conditions, is_one_file=True)
    report_missed(reporter, [*selection.conditions, *given], is_one_file=True)


def selected_instructions(
    reporter: Reporter, file: str, names: tuple[str, ...], query: Query
) -> Iterator[Instruction]:
    """Yield the instructions that names select; report those without the operand or output."""
    for _, instructions in selected_modules(reporter, file, names, query.values):
        for instruction in instructions:
            if not report_lack(reporter, instruction, query):
                yield instruction


def report_lack(reporter: Reporter, instruction: Instruction, query: Query) -> bool:
    """Report the operand or output that an instruction lacks; return True if it lacks one."""
    if missing := query.missing_in(instruction):
        reporter.error(f"error[name]: {place_of(instruction)} has no {missing}")
    return missing is not None


def place_of(instruction: Instruction) -> str:
    """Return the file, the computation and the name of an instruction."""
    computation = instruction.computation
    return f"{computation.module.filename}: {computation.name}: {instruction.name}"


def note_matches(
    reporter: Reporter, module: Module, conditions: Iterable[Condition], is_one_file: bool
) -> None:
    """Record the conditions that `module` meets, and names similar to those that it does not."""
    from hlo.modules.patterns import name_pattern

    for condition in conditions:
        if condition.is_met(module):
            reporter.matched.add(condition)
        elif condition not in reporter.matched and not any(reporter.missed.get(condition, ())[1:]):
            # similar names are searched for only where they are few
            is_name = name_pattern(condition.text).is_name
            is_asked = condition.option != "--opcode" and (is_one_file or is_name)
            question = condition.question(module) if is_asked else ""
            reporter.missed[condition] = module.filename, question


def note_given(
    reporter: Reporter, module: Module, selection: Selection, conditions: Iterable[Condition]
) -> None:
    """Record which parameters with a value the computations of selected instructions have."""
    given = [condition for condition in conditions if condition.option == "--set"]
    if not given:
        return
    from hlo.text.names import did_you_mean, similar
    from indexing.dataflow.valued_maps import integer_parameters, with_parameter_names

    selected = selection.instructions(module, list(module.computations.values()))
    computations = dict.fromkeys(each.computation for each in selected)
    known = {name for each in computations for name in integer_parameters(each)}
    for condition in given:
        asked = {condition.text: None}
        if any(not known.isdisjoint(with_parameter_names(each, asked)) for each in computations):
            reporter.matched.add(condition)
        else:
            question = did_you_mean(similar(condition.text, known))
            if known and not question:
                question = f"integer parameters: {', '.join(sorted(known)[:MAX_LISTED])}"
            reporter.missed.setdefault(condition, (module.filename, question))


def report_missed(reporter: Reporter, conditions: Iterable[Condition], is_one_file: bool) -> None:
    """Report each condition that no instruction of any module meets."""
    from hlo.ops.op import OPS

    is_complete = is_one_file or not reporter.failed  # a file that failed may have a match
    for condition in conditions:
        opcode = condition.text
        if condition in reporter.matched:
            continue
        if condition.option == "--opcode" and opcode not in OPS:
            reporter.error(f"error[name]: unknown opcode `{opcode}`", *did_you_mean(opcode, OPS))
        elif condition in reporter.missed and is_complete:
            file, question = reporter.missed[condition]
            place = f"{file}: " if is_one_file and condition.option != "--opcode" else ""
            if not question and is_one_file and condition.option == "--instruction":
                question = f"`hlo-indexing ls {shlex.quote(file)}` lists the names"
            reporter.error(f"error[name]: {place}{condition.message}", *_help(question))


def did_you_mean(name: str, names: Iterable[str]) -> list[str]:
    """Return a help line with the most similar of `names`, or none.

    >>> did_you_mean("conv", ["convert", "convolution", "cosine", "transpose"])
    ['  = help: did you mean `convert` or `convolution`?']
    """
    from hlo.text.names import did_you_mean, similar

    return _help(did_you_mean(similar(name, names)))


def _help(question: str) -> list[str]:
    return [f"  = help: {question}"] if question else []
