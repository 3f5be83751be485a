"""`compare_costs`: which instructions of two compilations move more bytes, or hold more memory.

Executed instructions of both modules that correspond, directly or by what is inside of them, are
one group; groups share no instruction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from hlo.arguments import checked
from hlo.modules.module import Computation, Instruction, Module
from indexing.equivalence.compare import is_structurally_equal
from indexing.equivalence.correspondence import correspondence
from indexing.equivalence.dumps import Dump, ModuleDumps
from indexing.equivalence.passes import load_dump
from indexing.memory.buffers.profile import memory_profile
from indexing.memory.movement.amounts import TotalBounds
from indexing.memory.movement.analysis import traffic
from indexing.memory.movement.traffic_values import InstructionTraffic
from indexing.ops.structured_ops import InlineOp
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class CostGroup:
    """Instructions of two modules that correspond, with what they move and hold.

    Attributes:
        before, after: the executed instructions of both modules, in text order.
        moved: bytes that they read and write in all executions, in each module.
        held: bytes that their results hold when most memory is held, in each module.
    """

    before: tuple[Instruction, ...]
    after: tuple[Instruction, ...]
    moved: tuple[int, int]
    held: tuple[int, int]

    @property
    def more_moved(self) -> int:
        """Bytes that the module after moves more."""
        return self.moved[1] - self.moved[0]

    @property
    def more_held(self) -> int:
        """Bytes that the module after holds more."""
        return self.held[1] - self.held[0]


@dataclass(frozen=True, slots=True)
class CostComparison:
    """The costs of two modules.

    Attributes:
        groups: all groups, those with the largest change of the bytes moved first.
        moved: bytes that each module reads and writes; where bounds are known only, the lower ones.
        peaks: bytes that each module holds at most, in the default memory; None if unknown.

    >>> import hlo, indexing
    >>> text = "{ p = f32[9] parameter(0)  n = f32[9] negate(p)  ROOT e = f32[9] exponential(n) }"
    >>> call = "ENTRY e { p = f32[9] parameter(0)  ROOT f = f32[9] fusion(p), kind=kLoop, calls=f }"
    >>> costs = indexing.compare_costs(hlo.parse(f"ENTRY e {text}"), hlo.parse(f"f {text} {call}"))
    >>> costs.moved  # 4 arrays of 36 bytes, and 2
    (144, 72)
    >>> [[each.name for each in group.before] for group in costs.changed]
    [['n', 'e']]
    """

    groups: tuple[CostGroup, ...]
    moved: tuple[int, int]
    peaks: tuple[int | None, int | None]

    @property
    def changed(self) -> tuple[CostGroup, ...]:
        """The groups whose costs differ."""
        return tuple([each for each in self.groups if each.more_moved or each.more_held])


@checked
def compare_costs(before: Module, after: Module) -> CostComparison:
    """Compare what two modules move and hold, such as two compilations of one program.

    >>> import hlo
    >>> one = hlo.parse('''ENTRY e { p = f32[8] parameter(0)  n = f32[8] negate(p)
    ...   ROOT a = f32[8] add(n, n) }''')
    >>> two = hlo.parse('''f { x = f32[8] parameter(0)  m = f32[8] negate(x)
    ...     ROOT b = f32[8] add(m, m) }
    ...   ENTRY e { p = f32[8] parameter(0)  ROOT k = f32[8] fusion(p), kind=kLoop, calls=f }''')
    >>> costs = compare_costs(one, two)
    >>> costs.moved, [(len(g.before), len(g.after), g.more_moved) for g in costs.changed]
    ((160, 64), [(2, 1, -96)])
    """
    sides = [_Side.of(module) for module in (before, after)]
    groups = _Groups()
    for side in sides:
        for row in side.moved:
            groups.find(row)
    for link in correspondence(before, after).links:
        ours, theirs = sides[0].rows.get(link.before), sides[1].rows.get(link.after)
        if ours is not None and theirs is not None:
            groups.join(ours, theirs)
    made = [_group(members, sides) for members in groups.members()]
    made.sort(key=lambda each: -abs(each.more_moved) or -abs(each.more_held))
    moved = sum(sides[0].moved.values()), sum(sides[1].moved.values())
    return CostComparison(tuple(made), moved, (sides[0].peak, sides[1].peak))


def _group(members: list[Instruction], sides: list[_Side]) -> CostGroup:
    own = [[i for i in members if i in side.moved] for side in sides]
    moved = [sum(side.moved[i] for i in each) for side, each in zip(sides, own, strict=True)]
    held = [sum(side.held.get(i, 0) for i in each) for side, each in zip(sides, own, strict=True)]
    return CostGroup(tuple(own[0]), tuple(own[1]), (moved[0], moved[1]), (held[0], held[1]))


@dataclass(frozen=True, slots=True)
class _Side:
    """One module: the bytes of its executed instructions.

    Attributes:
        rows: the executed instruction that each instruction is, or is in.
        moved: bytes that each executed instruction reads and writes in all executions.
        held: bytes of the results that are held when most memory is.
        peak: bytes of all of them; None if the lives of arrays are unknown.
    """

    rows: Mapping[Instruction, Instruction]
    moved: Mapping[Instruction, int]
    held: Mapping[Instruction, int]
    peak: int | None

    @classmethod
    def of(cls, module: Module) -> _Side:
        rows: dict[Instruction, Instruction] = {}
        moved: dict[Instruction, int] = {}
        for each in traffic(module).ranked:
            moved[each.instruction] = _bytes_moved(each)
            rows[each.instruction] = each.instruction
            for inner in _fused_instructions(each.instruction):
                rows.setdefault(inner, each.instruction)
        profile = memory_profile(module)
        held: dict[Instruction, int] = defaultdict(int)
        if isinstance(profile, Unknown):
            return cls(rows, moved, held, None)
        for buffer in profile.at_peak:
            held[rows.get(buffer.instruction, buffer.instruction)] += buffer.stored_bytes
        return cls(rows, moved, held, profile.peak)


def _bytes_moved(row: InstructionTraffic) -> int:
    """Return the bytes of all executions; without a known number, the lower bound."""
    amount = row.read if isinstance(row.bytes, Unknown) else row.bytes
    return TotalBounds.of(amount.number, row.executions).lower


def _fused_instructions(instruction: Instruction) -> list[Instruction]:
    """Return the instructions inside a fusion, and in what it calls."""
    inside: list[Instruction] = []
    pending: list[Computation] = []
    if isinstance(instruction.op, InlineOp):
        pending += instruction.called_computations
    while pending:
        for inner in pending.pop():
            inside.append(inner)
            pending += inner.called_computations
    return inside


class _Groups:
    """Disjoint sets of instructions."""

    def __init__(self) -> None:
        self.parents: dict[Instruction, Instruction] = {}

    def find(self, instruction: Instruction) -> Instruction:
        """Return the representative of an instruction's set."""
        root = instruction
        while self.parents.setdefault(root, root) is not root:
            root = self.parents[root]
        while self.parents[instruction] is not root:
            self.parents[instruction], instruction = root, self.parents[instruction]
        return root

    def join(self, one: Instruction, other: Instruction) -> None:
        """Make one set of two."""
        self.parents[self.find(one)] = self.find(other)

    def members(self) -> list[list[Instruction]]:
        """Return the sets."""
        sets: dict[Instruction, list[Instruction]] = defaultdict(list)
        for instruction in self.parents:
            sets[self.find(instruction)].append(instruction)
        return list(sets.values())


# ---------------------------------------------------------------- passes


@dataclass(frozen=True, slots=True)
class FirstChange:
    """The first pass after which the modules of two compilations are not the same.

    Attributes:
        before, after: the dumps after it; None where a compilation has no more dumps.
        equal: the number of dumps up to which both compilations are equal.
    """

    before: Dump | None
    after: Dump | None
    equal: int

    def __str__(self) -> str:
        names = [d.pass_name or "the start" if d else "the end" for d in (self.before, self.after)]
        both = names[0] if names[0] == names[1] else f"{names[0]} before and {names[1]} after"
        return f"the compilations are equal up to dump {self.equal}; the first difference: {both}"


def first_change(before: ModuleDumps, after: ModuleDumps, max_bytes: int) -> FirstChange | None:
    """Return the first pass after which two compilations of a module differ; None if none does.

    Args:
        max_bytes: limit on the size of a dump, as for `hlo.load`.
    """
    dumps = before.dumps, after.dumps
    for number in range(max(map(len, dumps))):
        ours, theirs = (each[number] if number < len(each) else None for each in dumps)
        if ours is None or theirs is None or ours.pass_name != theirs.pass_name:
            return FirstChange(ours, theirs, number)
        modules = [load_dump(each, max_bytes) for each in (ours, theirs)]
        if any(isinstance(each, Exception) for each in modules):
            continue
        if not is_structurally_equal(modules[0], modules[1]):  # type: ignore[arg-type]
            return FirstChange(ours, theirs, number)
    return None
