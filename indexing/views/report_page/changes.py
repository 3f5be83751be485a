"""Differences of two modules: instructions matched by the names of computation and instruction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hlo.modules.module import Instruction, Module
from hlo.text.source import HloError
from indexing.views.map_answers import answer
from indexing.views.map_query import Query
from indexing.views.map_tables import text_lines

MAX_MAPPED: Final = 100
"""Limit on the instructions of a comparison whose maps are listed, before and after."""


def changes(before: Module, after: Module) -> dict[str, Any]:
    """Return the instructions that were added, removed and changed, as a value for JSON.

    An instruction is changed if the text without metadata differs.  Names that a compiler gave
    anew make an instruction removed and added.  Each row has computation, name and opcode, the
    texts before and after, and the maps before and after of the first `MAX_MAPPED` rows; None
    stands for an instruction that does not exist or has no operands.

    >>> import hlo
    >>> text = "ENTRY e { p = f32[4] parameter(0)  ROOT r = f32[4] negate(p) }"
    >>> other = text.replace("negate", "exponential")
    >>> {key: len(each) for key, each in changes(hlo.parse(text), hlo.parse(other)).items()}
    {'changed': 1, 'removed': 0, 'added': 0}
    """
    old, new = _by_name(before), _by_name(after)
    pairs: dict[str, Sequence[tuple[Instruction | None, Instruction | None]]] = {
        "changed": [
            (old[key], new[key])
            for key in old
            if key in new and _instruction_text(old[key]) != _instruction_text(new[key])
        ],
        "removed": [(old[key], None) for key in old if key not in new],
        "added": [(None, new[key]) for key in new if key not in old],
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


def _by_name(module: Module) -> dict[tuple[str, str], Instruction]:
    """Return the instructions by name; ENTRY corresponds to ENTRY under any name."""
    return {
        ("" if c.is_entry else c.name, instruction.name): instruction
        for c in module.computations.values()
        for instruction in c.instructions
    }


def _instruction_text(instruction: Instruction) -> str:
    """Return the text of an instruction without its metadata."""
    text = str(instruction)
    metadata = instruction.attributes.get("metadata")
    return text if metadata is None else text.replace(f", metadata={metadata.printed}", "")
