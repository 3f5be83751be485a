"""Mutations of the program of one device: faults that a partitioner could have."""

from __future__ import annotations

import random
import re

from hlo.modules.module import Instruction
from tests.equivalence.mutants import Mutation

_COLLECTIVES = ("all-reduce", "all-gather", "all-to-all", "reduce-scatter", "collective-permute")


def other_groups(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Exchange two devices of different groups."""
    match = re.search(r"replica_groups=\{(\{[\d,{}]*\})\}", line)
    if match is None:
        return None
    groups = [text.split(",") for text in re.findall(r"\{([\d,]+)\}", match[1])]
    if len(groups) < 2:
        return None
    groups[0][-1], groups[1][0] = groups[1][0], groups[0][-1]
    text = ",".join([f"{{{','.join(group)}}}" for group in groups])
    return line.replace(match[0], f"replica_groups={{{text}}}")


def order_of_group(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Exchange two devices of a group, whose order determines the parts of the data."""
    if i.opcode not in ("all-gather", "all-to-all", "reduce-scatter"):
        return None
    match = re.search(r"replica_groups=\{\{(\d+),(\d+)", line)
    return line.replace(match[0], f"replica_groups={{{{{match[2]},{match[1]}") if match else None


def other_target(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Send to another device: the targets of the first two pairs are exchanged."""
    match = re.search(r"source_target_pairs=\{\{(\d+),(\d+)\},\{(\d+),(\d+)\}", line)
    if match is None:
        return None
    pairs = f"source_target_pairs={{{{{match[1]},{match[4]}}},{{{match[3]},{match[2]}}}"
    return line.replace(match[0], pairs)


def dropped_pair(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Do not send to one of the devices, which receives zeros."""
    match = re.search(r"source_target_pairs=\{\{\d+,\d+\},", line)
    return line.replace(match[0], "source_target_pairs={") if match else None


def dropped_collective(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Replace a collective that keeps the shape by its operand."""
    if i.opcode not in _COLLECTIVES or len(i.operands) != 1 or i.shape != i.operands[0].shape:
        return None
    return f"{line.partition(' = ')[0]} = {i.shape} copy(%{i.operands[0].name})"


def other_offset(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Change an entry of a table that the device looks up."""
    match = re.search(r"constant\(\{([\d, ]+)\}\)", line)
    if i.opcode != "constant" or match is None:
        return None
    entries = [int(text) for text in match[1].split(",")]
    place = chance.randrange(len(entries))
    entries[place] = entries[(place + 1) % len(entries)] if len(set(entries)) > 1 else 1
    if chance.random() < 0.5:
        entries[place] += 1
    return line.replace(match[0], f"constant({{{', '.join(map(str, entries))}}})")


def other_combiner(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Compute the maximum instead of the sum in a computation that a collective applies."""
    if i.computation.is_entry or len(i.computation.parameters) != 2:
        return None
    return line.replace(" add(", " maximum(", 1) if i.opcode == "add" else None


DEVICE_MUTATIONS: dict[str, Mutation] = {
    each.__name__: each
    for each in (
        *(other_groups, order_of_group, other_target, dropped_pair),
        *(dropped_collective, other_offset, other_combiner),
    )
}
"""To be added to `tests.equivalence.mutants.MUTATIONS`."""
