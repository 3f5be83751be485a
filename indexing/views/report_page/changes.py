"""Differences of two modules: the instructions that were changed, renamed, removed and added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hlo.modules.module import Instruction, Module
from hlo.text.source import HloError
from indexing.views.map_answers import answer
from indexing.views.map_query import Query
from indexing.views.map_tables import text_lines
from indexing.views.report_page.matching import Match, instructions_by_name

KINDS_OF_CHANGES: Final = ("changed", "renamed", "removed", "added")
MAX_MAPPED: Final = 100
"""Limit on the instructions of a comparison whose maps are listed, before and after."""


def changes(before: Module, after: Module, matches: Sequence[Match]) -> dict[str, Any]:
    """Return the instructions that were changed, renamed, removed and added, as a value for JSON.

    An instruction is changed if its text without metadata is not that of its counterpart, and
    renamed if both have the same program, besides names.  Each row has computation, name and
    opcode, the texts before and after, and the maps before and after of the first `MAX_MAPPED`
    rows; None stands for an instruction that does not exist or has no operands.

    Args:
        matches: the `counterparts` of both modules.

    >>> import hlo
    >>> from indexing.views.report_page.matching import counterparts
    >>> text = "ENTRY e { p = f32[4] parameter(0)  ROOT r = f32[4] negate(p) }"
    >>> other = text.replace("negate", "exponential")
    >>> modules = hlo.parse(text), hlo.parse(other)
    >>> listed = changes(*modules, counterparts(*modules))
    >>> {key: len(each) for key, each in listed.items()}
    {'changed': 1, 'renamed': 0, 'removed': 0, 'added': 0}
    """
    old, new = instructions_by_name(before), instructions_by_name(after)
    matched = {match.before for match in matches}, {match.after for match in matches}
    pairs: dict[str, Sequence[tuple[Instruction | None, Instruction | None]]] = {
        "changed": [
            (one, other)
            for one, other, by in matches
            if by != "program" and _instruction_text(one) != _instruction_text(other)
        ],
        "renamed": [(one, other) for one, other, by in matches if by == "program"],
        "removed": [(each, None) for each in old.values() if each not in matched[0]],
        "added": [(None, each) for each in new.values() if each not in matched[1]],
    }
    left, result = MAX_MAPPED, dict[str, Any]()
    for title, rows in pairs.items():
        result[title] = [_row(*pair, has_maps=k < left) for k, pair in enumerate(rows)]
        left = max(left - len(rows), 0)
    return result


def _row(old: Instruction | None, new: Instruction | None, *, has_maps: bool) -> list[Any]:
    each = new or old
    assert each is not None
    both = (old, new)
    texts = [None if i is None else _instruction_text(i) for i in both]
    maps = [_map_lines(i) if has_maps and i is not None and i.operands else None for i in both]
    return [each.computation.name, each.name, each.opcode, texts, maps]


def _map_lines(instruction: Instruction) -> list[str]:
    """Return the maps to the operands as ``hlo-indexing maps`` prints them."""
    try:
        tables = list(answer(instruction, Query(), instruction.module.filename))
    except HloError as error:
        return [f"unknown: {error.message}"]
    lines: list[str] = []
    for table in tables:
        if table.outputs > 1:
            lines.append(f"output {table.output}")
        _, *maps = text_lines(table)
        lines += [line.removeprefix("  ") for line in maps]
    return lines


def _instruction_text(instruction: Instruction) -> str:
    """Return the text of an instruction without its metadata."""
    text = str(instruction)
    metadata = instruction.attributes.get("metadata")
    return text if metadata is None else text.replace(f", metadata={metadata.printed}", "")
