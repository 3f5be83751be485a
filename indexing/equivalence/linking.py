"""Links from the instructions of one module to those of another one, by several evidences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import leaves
from indexing.equivalence.full_names import agree
from indexing.ops.control import callees
from indexing.ops.element import ConstantRule, CopyRule, ElementOp, element_of
from indexing.ops.structured_ops import InlineOp

How: TypeAlias = Literal["value", "op_name", "name", "movement", "user"]
"""How a link was found: by values that are proved equal, by ``op_name``, by the instruction's own
name, or by neighbours."""

Names: TypeAlias = Mapping[Instruction, tuple[str, ...]]
Link: TypeAlias = tuple[Instruction, How]

_STARTED: Final = ("-start", "-done", "-update")


class Linker:
    """Finds, for instructions of one module, those of another one.

    Args:
        targets: the instructions that are linked to.
        sources: the instructions that get a link.
        keys: keys of values.
        names: the full names of the instructions of both modules.
    """

    def __init__(
        self,
        targets: Sequence[Instruction],
        sources: Sequence[Instruction],
        keys: Mapping[Instruction, Hashable],
        names: Names,
    ) -> None:
        self.sources, self.keys, self.names = sources, keys, names
        self.by_value: dict[Hashable, dict[tuple[str, ...], _Candidates]] = {}
        self.by_op_name: dict[str, _Candidates] = defaultdict(_Candidates)
        self.by_name: dict[Hashable, Instruction] = {}
        for target in targets:
            own = names.get(target, ())
            if target in keys and not is_plain_constant(target):
                equal = self.by_value.setdefault(keys[target], {})
                equal.setdefault(own, _Candidates()).add(target)
            for name in own:
                self.by_op_name[name].add(target)
            self.by_name[_own_name(target)] = target
        self.linked: dict[Instruction, Link] = {}

    def links(self) -> dict[Instruction, Link]:
        """Return the link of each source that has one."""
        for source in self.sources:
            self._link_itself(source)
        users = _users(self.sources)
        for source in self.sources:
            if source not in self.linked and is_plain_constant(source):
                self._link_constant(source, users.get(source, ()))
        for source in self.sources:  # operands first
            if source not in self.linked and _only_moves(source):
                self._link_as(source, _sources_of_moves(source), "movement")
        for source in reversed(self.sources):  # users first
            if source not in self.linked:
                self._link_as(source, users.get(source, ()), "user")
        for source in self.sources:
            if source not in self.linked:
                self._link_as(source, source.operands, "user")
        return self.linked

    def _link_itself(self, source: Instruction) -> None:
        """Link an instruction by its value, by its ``op_name``, or by its own name."""
        own, equal = self.names.get(source, ()), self._of_equal_value(source)
        both = [c for names, c in equal.items() if not (own and names) or agree(own, names)]
        named = [self.by_op_name[name] for name in own if name in self.by_op_name]
        alike = [c for c in named if _kind(source) in c.kinds]
        ways: list[tuple[Iterable[_Candidates], How]] = [
            *((both, "value"), (alike, "op_name"), (named, "op_name"), (equal.values(), "value")),
        ]
        for candidates, how in ways:
            if candidates:
                most_alike = [each.most_alike(source) for each in candidates]
                self.linked[source] = max(most_alike, key=lambda i: _likeness(source, i)), how
                return
        same = self.by_name.get(_own_name(source))
        if same is not None and any(_likeness(source, same)) and self._agree(source, same):
            self.linked[source] = same, "name"

    def _of_equal_value(self, source: Instruction) -> Mapping[tuple[str, ...], _Candidates]:
        """Return the targets with an equal value, by their full names."""
        if source not in self.keys or is_plain_constant(source):
            return {}
        return self.by_value.get(self.keys[source], {})

    def _link_constant(self, source: Instruction, users: Sequence[Instruction]) -> None:
        """Link a constant to an equal one of which a user corresponds."""
        for target in [self.linked[user][0] for user in users if user in self.linked]:
            for operand in target.operands:
                if is_plain_constant(operand) and self.keys.get(operand) == self.keys.get(source):
                    self.linked[source] = operand, "value"
                    return

    def _agree(self, one: Instruction, other: Instruction) -> bool:
        """Return True if two instructions have a full name in common, or if one has none."""
        names = self.names.get(one, ()), self.names.get(other, ())
        return not all(names) or agree(*names)

    def _link_as(self, source: Instruction, others: Iterable[Instruction], how: How) -> None:
        """Link an instruction as one of its neighbours is linked."""
        for other in others:
            known = self.linked.get(other)
            if known is not None and self._agree(source, known[0]):
                self.linked[source] = known[0], how
                return


class _Candidates:
    """Instructions in text order, of which one with given properties is found at once.

    Attributes:
        kinds: the first instruction of each kind.
    """

    def __init__(self) -> None:
        self.kinds: dict[str, Instruction] = {}
        self._first: dict[Hashable, Instruction] = {}

    def add(self, instruction: Instruction) -> None:
        """Add an instruction."""
        kind, shapes = _kind(instruction), _shapes(instruction)
        self.kinds.setdefault(kind, instruction)
        keys: list[Hashable] = [(kind, instruction.name), (kind, shapes), shapes, ()]
        for key in keys:
            self._first.setdefault(key, instruction)

    def most_alike(self, source: Instruction) -> Instruction:
        """Return the instruction of the same kind and name, or kind, or shape, or the first."""
        kind, shapes = _kind(source), _shapes(source)
        ways = (
            self._first.get((kind, source.name)),
            self._first.get((kind, shapes)),
            self.kinds.get(kind),
            self._first.get(shapes),
        )
        return next(filter(None, ways), self._first[()])


def is_plain_constant(instruction: Instruction) -> bool:
    """Return True for a constant: equal ones are all over a program."""
    return isinstance(element_of(instruction), ConstantRule)


def _likeness(source: Instruction, target: Instruction) -> tuple[bool, bool, bool]:
    is_alike = _kind(target) == _kind(source)
    is_named = is_alike and target.name == source.name
    return is_named, is_alike, _shapes(source) == _shapes(target)


def _kind(instruction: Instruction) -> str:
    """Return the opcode, that of an asynchronous pair without its suffix."""
    opcode = instruction.opcode
    return next((opcode.removesuffix(end) for end in _STARTED if opcode.endswith(end)), opcode)


def _shapes(instruction: Instruction) -> tuple[str, ...]:
    return tuple([str(leaf) for _, leaf in leaves(instruction.shape)])


def _own_name(instruction: Instruction) -> Hashable:
    """Return the names of an instruction and its computation, "" for ENTRY."""
    computation = instruction.computation
    return "" if computation.is_entry else computation.name, instruction.name


def _users(instructions: Sequence[Instruction]) -> dict[Instruction, list[Instruction]]:
    """Return the users of each instruction."""
    users: dict[Instruction, list[Instruction]] = defaultdict(list)
    for instruction in instructions:
        for operand in instruction.operands:
            users[operand].append(instruction)
    return users


def _sources_of_moves(instruction: Instruction) -> Iterator[Instruction]:
    """Yield the operands whose values an instruction moves, outside of a called computation."""
    yield from instruction.operands
    if isinstance(instruction.op, InlineOp):
        yield callees(instruction, "calls", "to_apply")[0].root


def _only_moves(instruction: Instruction) -> bool:
    """Return True if an instruction only moves or forwards what it reads."""
    op = instruction.op
    if not isinstance(op, ElementOp) or not instruction.operands:
        return False
    first = next((path for path, _ in leaves(instruction.shape)), None)
    if first is None:
        return False
    return op.forwarded_leaf(first) is not None or isinstance(element_of(instruction), CopyRule)
