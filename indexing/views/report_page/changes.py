"""Differences of two modules: the instructions that were changed, renamed, removed and added."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from hlo.modules.forms import METADATA
from hlo.modules.module import Instruction, Module
from hlo.text.source import HloError
from indexing.equivalence.correspondence import (
    MAX_TERMS,
    Correspondence,
    correspondence,
    executed_instructions,
)
from indexing.equivalence.linking import How
from indexing.views.map_answers import answer
from indexing.views.map_query import Query
from indexing.views.map_tables import text_lines
from indexing.views.report_page.structure import numbers_of

KINDS_OF_CHANGES: Final = ("changed", "renamed", "removed", "added")
MAX_MAPPED: Final = 100
"""Limit on the instructions of a comparison whose maps are listed, before and after."""
MAX_COMPARED: Final = 4096
"""Limit on the instructions of two modules whose formulas are compared: there may be a million."""

_NAME: Final = re.compile(r"[\w.-]+")
_EVIDENCE: Final[Sequence[How]] = ("name", "op_name", "value")
"""What relates an instruction to itself, the best last; other links are to a neighbour."""


def page_correspondence(before: Module, after: Module) -> Correspondence:
    """Return the correspondence that pages show: of large modules without formulas."""
    count = max(sum(len(c) for c in m.computations.values()) for m in (before, after))
    return correspondence(before, after, max_terms=MAX_TERMS if count <= MAX_COMPARED else 0)


def changes_and_links(before: Module, after: Module) -> tuple[dict[str, Any], list[Any]]:
    """Return the `changes`, and the numbers of linked instructions with how each was found."""
    matched = page_correspondence(before, after)
    old, new = numbers_of(before), numbers_of(after)
    links = [[old[link.before], new[link.after], link.how] for link in matched.links]
    return changes(before, after, matched), links


def changes(before: Module, after: Module, matched: Correspondence) -> dict[str, Any]:
    """Return the instructions that were changed, renamed, removed and added, as a value for JSON.

    Each instruction has at most one counterpart: the most alike of those with its value, its
    ``op_name`` or its name.  It is changed if the text of its counterpart without metadata is
    another one, and renamed if only names in it are others; instructions without a counterpart were
    removed or added.  Each row has computation, name and opcode, the texts before and after, and
    the maps before and after of the first `MAX_MAPPED` rows; None stands for an instruction that
    does not exist or has no operands.

    Args:
        matched: the `correspondence` of both modules.

    >>> import hlo
    >>> text = "ENTRY e { p = f32[4] parameter(0)  ROOT r = f32[4] negate(p) }"
    >>> other = text.replace("negate", "exponential")
    >>> modules = hlo.parse(text), hlo.parse(other)
    >>> listed = changes(*modules, correspondence(*modules))
    >>> {key: len(each) for key, each in listed.items()}
    {'changed': 1, 'renamed': 0, 'removed': 0, 'added': 0}
    """
    pairs = _counterparts(matched)
    others = {new: old for old, new in pairs.items()}
    unequal = [
        (old, pairs[old])
        for old in executed_instructions(before)
        if old in pairs and _instruction_text(old) != _instruction_text(pairs[old])
    ]
    kinds: dict[str, Sequence[tuple[Instruction | None, Instruction | None]]] = {
        "changed": [pair for pair in unequal if not _is_renamed(*pair, pairs)],
        "renamed": [pair for pair in unequal if _is_renamed(*pair, pairs)],
        "removed": [(each, None) for each in executed_instructions(before) if each not in pairs],
        "added": [(None, each) for each in executed_instructions(after) if each not in others],
    }
    left, result = MAX_MAPPED, dict[str, Any]()
    for title, rows in kinds.items():
        result[title] = [_row(*pair, has_maps=k < left) for k, pair in enumerate(rows)]
        left = max(left - len(rows), 0)
    return result


def _counterparts(matched: Correspondence) -> dict[Instruction, Instruction]:
    """Return the pairs of instructions that are counterparts, the most alike first."""

    def likeness(k: int) -> tuple[bool, bool, int, int]:
        one, other, how = links[k].before, links[k].after, links[k].how
        is_alike = one.opcode == other.opcode
        return is_alike and one.name == other.name, is_alike, _EVIDENCE.index(how), -k

    links = [link for link in matched.links if link.how in _EVIDENCE]
    pairs: dict[Instruction, Instruction] = {}
    done = set[Instruction]()
    for k in sorted(range(len(links)), key=likeness, reverse=True):
        one, other = links[k].before, links[k].after
        if one not in pairs and other not in done:
            pairs[one] = other
            done.add(other)
    return pairs


def _is_renamed(
    old: Instruction, new: Instruction, pairs: Mapping[Instruction, Instruction]
) -> bool:
    """Return True if two instructions are equal besides names, as far as operands correspond."""
    return _without_names(old) == _without_names(new) and all(
        pairs.get(one) is other or _is_same_parameter(one, other)
        for one, other in zip(old.operands, new.operands, strict=True)
    )


def _is_same_parameter(one: Instruction, other: Instruction) -> bool:
    parameters = one.computation.parameters, other.computation.parameters
    return any(one is ours and other is theirs for ours, theirs in zip(*parameters, strict=False))


def _without_names(instruction: Instruction) -> tuple[Any, ...]:
    """Return an instruction without names, but with the number of its operands."""
    literal = instruction.literal
    return (
        *(instruction.opcode, str(instruction.shape), instruction.is_root),
        None if literal is None else literal.printed,
        len(instruction.operands),
        _attributes(instruction),
    )


def _attributes(instruction: Instruction) -> Iterable[tuple[str, str]]:
    """Return the attributes besides metadata, without the names of called computations."""
    called = {computation.name for computation in instruction.called_computations}

    def without_called(text: str) -> str:
        return _NAME.sub(lambda word: "" if word[0] in called else word[0], text)

    return tuple(
        [
            (name, without_called(value.printed) if called else value.printed)
            for name, value in instruction.attributes.items()
            if name != METADATA
        ]
    )


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
    metadata = instruction.attributes.get(METADATA)
    return text if metadata is None else text.replace(f", metadata={metadata.printed}", "")
