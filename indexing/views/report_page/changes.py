"""Differences of two modules: instructions matched by the names of computation and instruction."""

from __future__ import annotations

from typing import Any

from hlo.modules.module import Instruction, Module


def changes(before: Module, after: Module) -> dict[str, Any]:
    """Return the instructions that were added, removed and changed, as a value for JSON.

    An instruction is changed if the text without metadata differs.  Names that a compiler gave
    anew make an instruction removed and added.

    >>> import hlo
    >>> text = "ENTRY e { p = f32[4] parameter(0)  ROOT r = f32[4] negate(p) }"
    >>> other = text.replace("negate", "exponential")
    >>> {key: len(each) for key, each in changes(hlo.parse(text), hlo.parse(other)).items()}
    {'removed': 0, 'added': 0, 'changed': 1}
    """
    old, new = _by_name(before), _by_name(after)
    both = [key for key in old if key in new]
    return {
        "removed": [_listed(old[key]) for key in old if key not in new],
        "added": [_listed(new[key]) for key in new if key not in old],
        "changed": [
            [*_listed(new[key])[:3], texts[0], texts[1]]
            for key in both
            if (texts := (_text(old[key]), _text(new[key])))[0] != texts[1]
        ],
    }


def _by_name(module: Module) -> dict[tuple[str, str], Instruction]:
    """Return the instructions by name; ENTRY corresponds to ENTRY under any name."""
    return {
        ("" if c.is_entry else c.name, instruction.name): instruction
        for c in module.computations.values()
        for instruction in c.instructions
    }


def _listed(instruction: Instruction) -> list[str]:
    text = _text(instruction)
    return [instruction.computation.name, instruction.name, instruction.opcode, text]


def _text(instruction: Instruction) -> str:
    """Return the text of an instruction without its metadata."""
    text = str(instruction)
    metadata = instruction.attributes.get("metadata")
    return text if metadata is None else text.replace(f", metadata={metadata.printed}", "")
