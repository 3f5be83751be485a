"""`correspondence`: which instructions of a program became which, around a compiler.

Instructions correspond first by proved-equal values, unless their ``op_name`` differs from that of
another instruction: equal value numbers or normal formulas of all elements.  Others correspond by
the ``op_name`` of their metadata, which the compiler keeps, by their own names, then by structure:
an instruction that only moves a value corresponds as its operand does, one that the compiler
inserted as its user.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hlo.arguments import checked
from hlo.modules.module import Computation, Instruction, Module
from hlo.modules.recursion import Recursive
from hlo.text.source import HloError
from indexing.equivalence.full_names import full_names
from indexing.equivalence.linking import How, Linker
from indexing.equivalence.values.formulas.applications import Frame
from indexing.equivalence.values.formulas.elements import Elements
from indexing.equivalence.values.formulas.numbering import (
    Leaves,
    NoFormula,
    NumberedArray,
    Numbering,
)
from indexing.equivalence.values.laws.normalising import Normalising, RealAlgebra
from indexing.maps.displayed import Displayed
from indexing.ops.element import declarations_of
from indexing.programs.arrays import Values

MAX_TERMS: Final = 1 << 15
"""Limit on the terms of the formulas by which instructions are compared."""


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


@dataclass(frozen=True, slots=True, repr=False)
class Correspondence(Displayed):
    """The links between the instructions of two modules.

    Attributes:
        links: one for each instruction of the module after that has one, in text order; then those
            of instructions before to which no instruction after is linked.
        removed: instructions before without a link.
        added: instructions after without a link.

    >>> import hlo, indexing
    >>> before = hlo.parse("ENTRY e { p = f32[3] parameter(0)  ROOT n = f32[3] negate(p) }")
    >>> after = hlo.parse("ENTRY e { q = f32[3] parameter(0)  ROOT m = f32[3] negate(q) }")
    >>> for link in indexing.correspondence(before, after).links:
    ...     print(link)
    p -> q (value)
    n -> m (value)
    >>> indexing.correspondence(before, after).linked_share  # 4 of 4 instructions
    1.0
    """

    links: tuple[InstructionLink, ...]
    removed: tuple[Instruction, ...]
    added: tuple[Instruction, ...]

    def __repr__(self) -> str:
        removed, added = len(self.removed), len(self.added)
        return f"<correspondence: {len(self.links)} links, {removed} removed, {added} added>"

    @property
    def linked_share(self) -> float:
        """Share of the instructions of both modules that have a link."""
        ours = {link.before for link in self.links}
        theirs = {link.after for link in self.links}
        linked = len(ours) + len(theirs)
        return linked / max(linked + len(self.removed) + len(self.added), 1)


@checked
def correspondence(before: Module, after: Module, *, max_terms: int = MAX_TERMS) -> Correspondence:
    """Return which instructions of two modules correspond, such as before and after a compiler.

    Instructions that nothing executes are left out, and so are the parameters of called
    computations.

    Args:
        max_terms: limit on the terms of the formulas by which values are compared; with 0, values
            are equal only if the same operations compute them, calls inlined.

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
    keys = _value_keys(before, after, max_terms)
    names = {**full_names(sides[0]), **full_names(sides[1])}
    forward = Linker(sides[0], sides[1], keys, names).links()
    links = [InstructionLink(forward[i][0], i, forward[i][1]) for i in sides[1] if i in forward]
    reached = {link.before for link in links}
    backward = Linker(sides[1], sides[0], keys, names).links()
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


def _value_keys(before: Module, after: Module, max_terms: int) -> Mapping[Instruction, Hashable]:
    """Return keys that are equal for instructions with proved-equal values."""
    numbering = _RecordedNumbering()
    try:
        for module in (before, after):
            inputs = numbering.arguments(module.entry, {})
            numbering.values(module.entry, inputs, [module.entry.root])
    except (HloError, NoFormula):
        return {}
    terms = _term_keys(numbering, max_terms) if max_terms else {}
    return {
        instruction: tuple([(path, terms.get(a.number, a.number)) for path, a in value.items()])
        for instruction, value in numbering.recorded.items()
        if value
    }


def _term_keys(numbering: _RecordedNumbering, max_terms: int) -> dict[int, Hashable]:
    """Return a key of the normal formula of each array, as far as the budget goes."""
    elements = Elements(numbering)
    elements.limit = max_terms
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
