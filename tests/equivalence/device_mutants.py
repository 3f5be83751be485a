"""Mutations of the program of one device: faults that a partitioner could have."""

from __future__ import annotations

import random
import re

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves
from tests.equivalence.mutants import Mutation

_COLLECTIVES = ("all-reduce", "all-gather", "all-to-all", "reduce-scatter", "collective-permute")


def _groups(i: Instruction) -> list[list[int]]:
    """Return the groups that a collective names; [] if it names none."""
    groups = getattr(i.op, "replica_groups", None)
    return [] if groups is None else [list(group) for group in groups.lists()]


def _with_groups(line: str, groups: list[list[int]]) -> str:
    """Return a line with other groups, as a list."""
    text = ",".join([f"{{{','.join(map(str, group))}}}" for group in groups])
    return re.sub(
        r"replica_groups=.*?(?=, (?!device_ids)[a-z_]+=|$)",
        f"replica_groups={{{text}}}",
        line,
        count=1,
    )


def _keeps_shape(i: Instruction, *, any_type: bool = False) -> bool:
    """Return True if the results have the shapes of the operands, in any layout."""
    results = [shape for _, shape in leaves(i.shape)]
    operands = [shape for operand in i.operands for _, shape in leaves(operand.shape)]
    shapes = [
        [(any_type or s.element_type, s.dims) for s in side if isinstance(s, Shape)]
        for side in (results, operands)
    ]
    return bool(shapes[0]) and shapes[0] == shapes[1]


def other_groups(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Exchange two devices of different groups."""
    groups = _groups(i)
    if len(groups) < 2:
        return None
    groups[0][-1], groups[1][0] = groups[1][0], groups[0][-1]
    return _with_groups(line, groups)


def across_groups(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Group the devices along another axis: one of each group, as far as sizes allow."""
    groups = _groups(i)
    if len(groups) < 2:
        return None
    numbers = [device for position in zip(*groups, strict=True) for device in position]
    size = len(groups[0])
    return _with_groups(line, [numbers[k : k + size] for k in range(0, len(numbers), size)])


def order_of_group(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Exchange two devices of a group, whose order determines the parts of the data."""
    groups = _groups(i)
    if i.opcode not in ("all-gather", "all-to-all", "reduce-scatter") or not groups:
        return None
    group = chance.choice(groups)
    if len(group) < 2:
        return None
    group[0], group[1] = group[1], group[0]
    return _with_groups(line, groups)


def split_groups(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Reduce over halves of the groups."""
    groups = _groups(i)
    if i.opcode != "all-reduce" or not groups or len(groups[0]) % 2:
        return None
    half = len(groups[0]) // 2
    return _with_groups(line, [part for g in groups for part in (g[:half], g[half:])])


def doubled_collective(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Execute a collective that keeps the shape twice."""
    if i.opcode not in _COLLECTIVES or not _keeps_shape(i) or len(i.operands) != 1:
        return None
    first = line.replace(f"%{i.name} =", f"%{i.name}.once =", 1)
    first = re.sub(r"channel_id=\d+", "channel_id=901", first)
    return f"{first}\n  {line.replace(f'(%{i.operands[0].name})', f'(%{i.name}.once)', 1)}"


def deleted_gather(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Repeat the part of the device in place of the parts of the group."""
    if i.opcode != "all-gather" or len(i.operands) != 1:
        return None
    whole, (operand,) = i.shape, i.operands
    part = operand.shape
    if not isinstance(whole, Shape) or not isinstance(part, Shape):
        return None
    along = next((k for k in range(part.rank) if whole.dims[k] != part.dims[k]), None)
    if along is None:
        return None
    dims = list(part.dims)
    dims.insert(along, whole.dims[along] // part.dims[along])
    kept = ",".join(str(k + (k >= along)) for k in range(part.rank))
    kind, sizes = whole.element_type, ",".join(map(str, dims))
    plain = whole.with_layout(None)
    return (
        f"%{i.name}.parts = {kind}[{sizes}] broadcast(%{operand.name}), dimensions={{{kept}}}\n"
        f"  %{i.name} = {plain} reshape(%{i.name}.parts)"
    )


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
    """Replace a collective that keeps the shape by its operand, or by a tuple of them."""
    if i.opcode not in _COLLECTIVES or not _keeps_shape(i, any_type=True):
        return None
    if not _keeps_shape(i):  # TPU: the sum in another type
        if len(i.operands) > 1:
            return None
        return f"{line.partition(' = ')[0]} = {i.shape} convert(%{i.operands[0].name})"
    if len(i.operands) > 1:
        operands = ", ".join([f"%{operand.name}" for operand in i.operands])
        return f"{line.partition(' = ')[0]} = {i.shape} tuple({operands})"
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
        *(other_groups, across_groups, order_of_group, split_groups, other_target, dropped_pair),
        *(dropped_collective, doubled_collective, deleted_gather, other_offset, other_combiner),
    )
}
"""To be added to `tests.equivalence.mutants.MUTATIONS`."""
