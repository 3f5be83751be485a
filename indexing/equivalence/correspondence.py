"""`correspondence`: which instructions of a program became which, around a compiler.

Instructions correspond first by proved-equal values, unless their ``op_name`` differs from that of
another instruction: equal value numbers or normal formulas of all elements.  Others correspond by
the ``op_name`` of their metadata, which the compiler keeps, then by structure: an instruction that
only moves a value corresponds as its operand does, one that the compiler inserted as its user.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from hlo.arguments import checked
from hlo.modules.module import Computation, Instruction, Module
from hlo.modules.recursion import Recursive
from hlo.shapes.shape import leaves
from hlo.text.source import HloError
from indexing.equivalence.values.formulas.applications import Frame
from indexing.equivalence.values.formulas.elements import Elements
from indexing.equivalence.values.formulas.numbering import (
    Leaves,
    NoFormula,
    NumberedArray,
    Numbering,
)
from indexing.equivalence.values.laws.normalising import Normalising, RealAlgebra
from indexing.ops.control import callees
from indexing.ops.element import ConstantRule, CopyRule, ElementOp, declarations_of, element_of
from indexing.ops.structure import GetTupleElement
from indexing.ops.structured_ops import InlineOp
from indexing.programs.arrays import Values

How: TypeAlias = Literal["value", "op_name", "movement", "user"]
"""How a link was found: by values that are proved equal, by ``op_name``, or by neighbours."""

MAX_TERMS: Final = 1 << 15
"""Limit on the terms of the formulas by which instructions are compared."""

_STARTED: Final = ("-start", "-done", "-update")


@dataclass(frozen=True, slots=True)
class InstructionLink:
    """Two instructions that correspond.

    Attributes:
        before, after: the instructions.
        how: how the link was found.
    """

    before: Instruction
    after: Instruction
    how: How

    def __str__(self) -> str:
        return f"{self.before.name} -> {self.after.name} ({self.how})"


@dataclass(frozen=True, slots=True)
class Correspondence:
    """The links between the instructions of two modules.

    Attributes:
        links: one for each instruction of the module after that has one, in text order; then those
            of instructions before to which no instruction after is linked.
        removed: instructions before without a link.
        added: instructions after without a link.
    """

    links: tuple[InstructionLink, ...]
    removed: tuple[Instruction, ...]
    added: tuple[Instruction, ...]

    @property
    def linked_share(self) -> float:
        """Share of the instructions of both modules that have a link."""
        ours = {link.before for link in self.links}
        theirs = {link.after for link in self.links}
        linked = len(ours) + len(theirs)
        return linked / max(linked + len(self.removed) + len(self.added), 1)


@checked
def correspondence(before: Module, after: Module) -> Correspondence:
    """Return which instructions of two modules correspond, such as before and after a compiler.

    Instructions that nothing executes are left out, and so are the parameters of called
    computations.

    >>> import hlo
    >>> one = hlo.parse('''ENTRY e { p = f32[3,2] parameter(0)  n = f32[3,2] negate(p)
    ...   t = f32[2,3] transpose(n), dimensions={1,0}  ROOT a = f32[2,3] add(t, t) }''')
    >>> two = hlo.parse('''f { x = f32[3,2] parameter(0)  m = f32[3,2] negate(x)
    ...     u = f32[2,3] transpose(m), dimensions={1,0}  ROOT b = f32[2,3] add(u, u) }
    ...   ENTRY e { p = f32[3,2] parameter(0)  ROOT k = f32[2,3] fusion(p), kind=kLoop,
    ...     calls=f }''')
    >>> print(*correspondence(one, two).links, sep=", ")
    n -> m (value), t -> u (value), a -> b (value), p -> p (value), a -> k (value)
    """
    sides = executed_instructions(before), executed_instructions(after)
    keys = _value_keys(before, after)
    forward = _Linker(sides[0], sides[1], keys).links()
    links = [InstructionLink(forward[i][0], i, forward[i][1]) for i in sides[1] if i in forward]
    reached = {link.before for link in links}
    backward = _Linker(sides[1], sides[0], keys).links()
    rest = [i for i in sides[0] if i not in reached]
    links += [InstructionLink(i, backward[i][0], backward[i][1]) for i in rest if i in backward]
    removed = tuple([i for i in rest if i not in backward])
    added = tuple([i for i in sides[1] if i not in forward])
    return Correspondence(tuple(links), removed, added)


def executed_instructions(module: Module) -> list[Instruction]:
    """Return the instructions that a module executes, without parameters of called computations."""
    reached: dict[Computation, None] = {}
    pending = [module.entry]
    while pending:
        computation = pending.pop()
        if computation not in reached:
            reached[computation] = None
            pending += [c for i in computation for c in i.called_computations]
    return [
        i
        for computation in module.computations.values()
        if computation in reached
        for i in computation
        if computation.is_entry or not _is_parameter(i)
    ]


def _is_parameter(instruction: Instruction) -> bool:
    return declarations_of(instruction).is_given


# ---------------------------------------------------------------- values


class _RecordedNumbering(Numbering):
    """Value numbers that are kept for each instruction, as a function of the entry parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.recorded: dict[Instruction, Leaves] = {}
        self.depth = 0

    def result(self, computation: Computation) -> Leaves:
        self.depth += 1  # a function of other arguments
        try:
            return super().result(computation)
        finally:
            self.depth -= 1

    def values_of(
        self, computation: Computation, inputs: Sequence[Leaves], roots: Sequence[Instruction]
    ) -> Recursive[Values[NumberedArray]]:
        values = yield from super().values_of(computation, inputs, roots)
        if not self.depth:
            for instruction, value in values.items():
                self.recorded.setdefault(instruction, value)
        return values


def _value_keys(before: Module, after: Module) -> Mapping[Instruction, Hashable]:
    """Return keys that are equal for instructions with proved-equal values."""
    numbering = _RecordedNumbering()
    try:
        for module in (before, after):
            inputs = numbering.arguments(module.entry, {})
            numbering.values(module.entry, inputs, [module.entry.root])
    except (HloError, NoFormula):
        return {}
    terms = _term_keys(numbering)
    return {
        instruction: tuple([(path, terms.get(a.number, a.number)) for path, a in value.items()])
        for instruction, value in numbering.recorded.items()
        if value and not _is_plain_constant(instruction)
    }


def _is_plain_constant(instruction: Instruction) -> bool:
    """Return True for a constant: equal ones are all over a program."""
    return isinstance(element_of(instruction), ConstantRule)


def _term_keys(numbering: _RecordedNumbering) -> dict[int, Hashable]:
    """Return a key of the normal formula of each array, as far as the budget goes."""
    elements = Elements(numbering)
    elements.limit = MAX_TERMS
    normal = Normalising(RealAlgebra(elements.algebra, exact_arithmetic=False))
    arrays = {a.number: a for value in numbering.recorded.values() for a in value.values()}
    frame = Frame(elements.symbols(list(arrays.values()), "parameter"))
    keys: dict[int, Hashable] = {}
    for number, array in sorted(arrays.items()):
        if array.shape is None:
            continue
        try:
            keys[number] = array.shape.dims, normal(elements.body(array, frame)).number
        except NoFormula:
            break
    return keys


# ---------------------------------------------------------------- links


class _Linker:
    """Finds, for instructions of one module, those of another one.

    Args:
        targets: the instructions that are linked to.
        sources: the instructions that get a link.
        keys: keys of values.
    """

    def __init__(
        self,
        targets: Sequence[Instruction],
        sources: Sequence[Instruction],
        keys: Mapping[Instruction, Hashable],
    ) -> None:
        self.sources, self.keys = sources, keys
        self.names = {**full_names(targets), **full_names(sources)}
        self.by_value: dict[Hashable, list[Instruction]] = defaultdict(list)
        self.by_name: dict[str, list[Instruction]] = defaultdict(list)
        for target in targets:
            if target in keys:
                self.by_value[keys[target]].append(target)
            for name in self.names.get(target, ()):
                self.by_name[name].append(target)
        self.linked: dict[Instruction, tuple[Instruction, How]] = {}

    def links(self) -> dict[Instruction, tuple[Instruction, How]]:
        """Return the link of each source that has one."""
        for source in self.sources:
            self._link_itself(source)
        users = _users(self.sources)
        for source in self.sources:  # operands first
            if source not in self.linked and _only_moves(source):
                self._link_as(source, _moved_from(source), "movement")
        for source in reversed(self.sources):  # users first
            if source not in self.linked:
                self._link_as(source, users.get(source, ()), "user")
        for source in self.sources:
            if source not in self.linked:
                self._link_as(source, source.operands, "user")
        return self.linked

    def _link_itself(self, source: Instruction) -> None:
        """Link an instruction by its value, or by its name."""
        names = self.names.get(source, ())
        equal = self.by_value.get(self.keys[source], []) if source in self.keys else []
        named = [each for name in names for each in self.by_name.get(name, [])]
        both = [each for each in equal if self._agree(source, each)]
        alike = [each for each in named if _kind(each) == _kind(source)]
        ways: list[tuple[list[Instruction], How]] = [
            *((both, "value"), (alike, "op_name"), (named, "op_name"), (equal, "value")),
        ]
        for candidates, how in ways:
            if candidates:
                self.linked[source] = _most_alike(source, candidates), how
                return

    def _agree(self, one: Instruction, other: Instruction) -> bool:
        """Return True if two instructions have a name in common, or if one has none."""
        names = self.names.get(one, ()), self.names.get(other, ())
        return not all(names) or agree(*names)

    def _link_as(self, source: Instruction, others: Iterable[Instruction], how: How) -> None:
        """Link an instruction as one of its neighbours is linked."""
        for other in others:
            known = self.linked.get(other)
            if known is not None and self._agree(source, known[0]):
                self.linked[source] = known[0], how
                return


def full_names(instructions: Iterable[Instruction]) -> dict[Instruction, tuple[str, ...]]:
    """Return the ``op_name`` of instructions, with those of the calls around them.

    Inlining a call prepends its name to the names in the called computation.

    >>> import hlo
    >>> module = hlo.parse('''f { x = f32[] parameter(0)
    ...     ROOT n = f32[] negate(x), metadata={op_name="neg"} }
    ...   ENTRY e { p = f32[] parameter(0)
    ...     ROOT c = f32[] call(p), to_apply=f, metadata={op_name="jit(g)"} }''')
    >>> full_names(executed_instructions(module))[module.computations["f"].root]
    ('jit(g)/neg',)
    """
    ordered = list(instructions)
    callers: dict[Computation, list[Instruction]] = defaultdict(list)
    for instruction in ordered:
        if isinstance(instruction.op, InlineOp):
            for called in instruction.called_computations:
                callers[called].append(instruction)
    names: dict[Instruction, tuple[str, ...]] = {}

    def names_of(instruction: Instruction) -> tuple[str, ...]:
        if instruction not in names:
            own = instruction.source.op_name
            around = [n for c in callers[instruction.computation] for n in names_of(c)]
            joined = [own if own.startswith(n.split("/")[0]) else f"{n}/{own}" for n in around]
            names[instruction] = tuple(dict.fromkeys(joined or [own])) if own else ()
        return names[instruction]

    for instruction in ordered:
        names_of(instruction)
    return {i: _with_inner_names(i, names) for i in ordered}


def _with_inner_names(
    instruction: Instruction, names: Mapping[Instruction, tuple[str, ...]]
) -> tuple[str, ...]:
    """Return the names of an instruction; of a fusion or its leaf also those inside."""
    own, call = names[instruction], instruction
    if isinstance(instruction.op, GetTupleElement):
        call = instruction.operands[0]
    if not own or not isinstance(call.op, InlineOp):
        return own
    inside = [n for c in call.called_computations for i in c for n in names.get(i, ())]
    return tuple(dict.fromkeys([*own, *inside]))


def agree(ours: Iterable[str], theirs: Iterable[str]) -> bool:
    """Return True if two instructions have a name in common, up to the names of calls around them.

    >>> agree(["jit(f)/jit(g)/add"], ["jit(f)/mul", "jit(g)/add"]), agree(["add"], ["my_add"])
    (True, False)
    """
    return any(
        one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")
        for one in ours
        for other in theirs
    )


def _most_alike(source: Instruction, candidates: Sequence[Instruction]) -> Instruction:
    """Return the candidate with the same opcode, then of the same shape."""

    def likeness(target: Instruction) -> tuple[bool, bool, bool]:
        shapes = [[str(leaf) for _, leaf in leaves(i.shape)] for i in (source, target)]
        return (
            target.name == source.name and _kind(target) == _kind(source),
            _kind(target) == _kind(source),
            shapes[0] == shapes[1],
        )

    return max(candidates, key=likeness)


def _kind(instruction: Instruction) -> str:
    """Return the opcode, that of an asynchronous pair without its suffix."""
    opcode = instruction.opcode
    return next((opcode.removesuffix(end) for end in _STARTED if opcode.endswith(end)), opcode)


def _users(instructions: Sequence[Instruction]) -> dict[Instruction, list[Instruction]]:
    """Return the users of each instruction; of a parameter of a call, those inside."""
    users: dict[Instruction, list[Instruction]] = defaultdict(list)
    for instruction in instructions:
        for operand in instruction.operands:
            users[operand].append(instruction)
    return users


def _moved_from(instruction: Instruction) -> Iterator[Instruction]:
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
