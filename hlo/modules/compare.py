"""Comparison of modules, up to parts that a print style omits.

XLA has many print styles, which may omit names, metadata, layouts and other parts. Two texts of one
module are equal *up to* the omitted parts:

>>> from hlo.formats.parser import parse
>>> long = parse("ENTRY e { p = f32[2]{0} parameter(0) ROOT n = f32[2]{0} negate(p) }")
>>> short = parse("ENTRY e { a = f32[2] parameter(0) ROOT b = f32[2] negate(a) }")
>>> difference(long, short)
'instruction 0 of `e`: the names are p and a'
>>> print(difference(long, short, up_to=("names", "layouts")))
None
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

from hlo.arguments import checked
from hlo.modules.effects import has_effect, value_attributes
from hlo.modules.header import EntryLayout
from hlo.modules.module import Computation, Instruction, Module
from hlo.shapes.shape import AnyShape, BufferShape, Shape, TupleShape
from hlo.text.lexer import NAME
from hlo.text.syntax import CALLEE_ATTRIBUTES

Facet: TypeAlias = Literal[
    "backend_config",
    "control-predecessors",
    "hints",
    "layouts",
    "literals",
    "metadata",
    "names",
    "order",
]

_REFERENCE: Final = re.compile(rf"%?({NAME})", re.ASCII)
_PREDECESSORS: Final = "control-predecessors"
_DISTRIBUTION: Final = ("frontend_attributes", "sharding")
_ELIDED: Final = "{...}"


@checked
def difference(first: Module, second: Module, up_to: Collection[Facet] = ()) -> str | None:
    """Return the first difference of two modules as a sentence; None if there is none.

    Computations are compared in the order of calls, beginning with the entry. Calls, operands,
    opcodes, element types, dimensions and headers are always compared.

    Args:
        first, second: the modules.
        up_to: facets to ignore:

            * ``"names"`` of instructions and computations;
            * ``"order"`` of the instructions in a computation: the instructions that the root or a
              side effect needs are compared, and only the opcodes of the others;
            * ``"hints"``: attributes on which the value of an instruction does not depend
              (`Op.value_attributes`), except the distribution over devices;
            * ``"layouts"`` of shapes;
            * ``"metadata"``, and the tables of files and stack frames that it refers to;
            * ``"backend_config"``, ``"control-predecessors"``;
            * ``"literals"``: an elided ``{...}`` equals every literal.

    >>> from hlo.formats.parser import parse
    >>> one = parse("ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }")
    >>> other = parse("ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] abs(p) }")
    >>> difference(one, other)
    '`e` and `e` have different opcodes'
    """
    return next(_Comparison(frozenset(up_to)).modules(first, second), None)


class _Comparison:
    def __init__(self, up_to: frozenset[str]) -> None:
        self.up_to = up_to

    def modules(self, first: Module, second: Module) -> Iterator[str]:
        if first.name != second.name:
            yield f"the modules are named {first.name} and {second.name}"
        yield from self.header(first, second)
        if "metadata" not in self.up_to and first.tables != second.tables:
            yield "the tables of files and stack frames differ"
        seen: set[tuple[Computation, Computation]] = set()
        waiting = [(first.entry, second.entry)]
        while waiting:
            pair = waiting.pop()
            if pair in seen:
                continue
            seen.add(pair)
            yield from self.computations(*pair)
            for one, other in self.pairs(*pair).items():
                called = one.called_computations, other.called_computations
                waiting.extend(zip(*called, strict=True))

    def header(self, first: Module, second: Module) -> Iterator[str]:
        if set(first.attributes) != set(second.attributes):
            keys = sorted(set(first.attributes) ^ set(second.attributes))
            yield f"only one header has {', '.join(keys)}"
        for key in first.attributes:
            one, other = first.header(key), second.header(key)
            if isinstance(one, EntryLayout) and isinstance(other, EntryLayout):
                one = [self.shape(s) for s in (*one.parameters, one.result)]
                other = [self.shape(s) for s in (*other.parameters, other.result)]
            if one != other:
                yield f"the headers have different values of {key}"

    def computations(self, first: Computation, second: Computation) -> Iterator[str]:
        if "names" not in self.up_to and first.name != second.name:
            yield f"the first module calls `{first.name}`, the second `{second.name}`"
        if Counter(i.opcode for i in first) != Counter(i.opcode for i in second):
            yield f"`{first.name}` and `{second.name}` have different opcodes"
        if first.attributes != second.attributes:
            yield f"the attributes of `{first.name}` differ"
        pairs = self.pairs(first, second)
        effects = self.effects(first), self.effects(second)
        if list(map(pairs.get, effects[0])) != effects[1]:
            yield f"the side effects of `{first.name}` differ"
        if pairs.get(first.root) is not second.root:
            yield f"the roots of `{first.name}` differ"
        for one, other in pairs.items():
            for text in self.instructions(one, other, pairs):
                yield f"instruction {one.index} of `{first.name}`: {text}"

    def pairs(self, first: Computation, second: Computation) -> dict[Instruction, Instruction]:
        """Map instructions of `first` to the corresponding ones of `second`."""
        if "order" not in self.up_to:
            return dict(zip(first, second, strict=True))
        paired: dict[Instruction, Instruction] = {}
        waiting = [
            (first.root, second.root),
            *zip(self.effects(first), self.effects(second), strict=False),
            *zip(first.parameters, second.parameters, strict=False),
        ]
        while waiting:
            one, other = waiting.pop()
            if one not in paired:
                paired[one] = other
                waiting.extend(zip(one.operands, other.operands, strict=False))
        return paired

    def effects(self, computation: Computation) -> list[Instruction]:
        """Return the instructions with side effects; in a fixed order, all are compared anyway."""
        return list(filter(has_effect, computation)) if "order" in self.up_to else []

    def instructions(
        self, one: Instruction, other: Instruction, pairs: Mapping[Instruction, Instruction]
    ) -> Iterator[str]:
        if "names" not in self.up_to and one.name != other.name:
            yield f"the names are {one.name} and {other.name}"
        if one.opcode != other.opcode:
            yield f"the opcodes are {one.opcode} and {other.opcode}"
        shapes = self.shape(one.declared_shape), self.shape(other.declared_shape)
        if shapes[0] != shapes[1]:
            yield f"the shapes are {shapes[0]} and {shapes[1]}"
        if [pairs.get(o) for o in one.operands] != list(other.operands):
            yield "the operands differ"
        if one.literal != other.literal and not self.is_elided(one, other):
            yield f"the literals are {one.literal} and {other.literal}"
        if len(one.called_computations) != len(other.called_computations):
            yield "the numbers of called computations differ"
        yield from self.attributes(one, other)
        if [pairs.get(i) for i in self.predecessors(one)] != self.predecessors(other):
            yield "the control predecessors differ"

    def is_elided(self, one: Instruction, other: Instruction) -> bool:
        texts = [i.literal.normal for i in (one, other) if i.literal is not None]
        return "literals" in self.up_to and _ELIDED in texts and len(texts) == 2

    def attributes(self, one: Instruction, other: Instruction) -> Iterator[str]:
        mine, theirs = self.texts(one), self.texts(other)
        if "hints" in self.up_to and mine != theirs:
            mine, theirs = _without_hints(one), _without_hints(other)
        for name in sorted(set(mine) | set(theirs)):
            if mine.get(name) != theirs.get(name):
                yield f"{name} is {mine.get(name)} and {theirs.get(name)}"

    def texts(self, instruction: Instruction) -> Mapping[str, Hashable]:
        """Return the compared attributes, except references to instructions and computations."""
        return {
            name: text
            for name, text in instruction.attributes.items()
            if name not in self.up_to
            and name != _PREDECESSORS
            and not (name in CALLEE_ATTRIBUTES and instruction.called_computations)
        }

    def predecessors(self, instruction: Instruction) -> list[Instruction]:
        text = instruction.attributes.get(_PREDECESSORS)
        if text is None or _PREDECESSORS in self.up_to:
            return []
        return [instruction.computation[name] for name in _REFERENCE.findall(text.normal)]

    def shape(self, shape: AnyShape | None) -> AnyShape | None:
        """Return `shape` without the parts to ignore."""
        if shape is None or "layouts" not in self.up_to:
            return shape
        return _without_layout(shape)


def _without_hints(instruction: Instruction) -> Mapping[str, Hashable]:
    """Return the attributes on which the value depends, and the distribution over devices."""
    texts = instruction.attributes
    distribution = {name: texts[name] for name in _DISTRIBUTION if name in texts}
    return {**value_attributes(instruction), **distribution}


def _without_layout(shape: AnyShape) -> AnyShape:
    match shape:
        case Shape():
            return shape.with_layout(None)
        case TupleShape(elements):
            return TupleShape(tuple(map(_without_layout, elements)))
        case BufferShape(element):
            return BufferShape(_without_layout(element))
        case _:
            return shape


def is_same(first: Module, second: Module) -> bool:
    """Return True if headers and instructions are equal, names and layouts included."""
    mine, theirs = first.computations, second.computations
    return (
        (first.name, first.entry.name, list(mine)) == (second.name, second.entry.name, list(theirs))
        and first.attributes == second.attributes
        and first.tables == second.tables
        and all(_same_computation(mine[name], theirs[name]) for name in mine)
    )


def _same_computation(first: Computation, second: Computation) -> bool:
    return (
        first.root.index == second.root.index
        and first.attributes == second.attributes
        and list(map(_structure, first)) == list(map(_structure, second))
    )


def _structure(i: Instruction) -> tuple[object, ...]:
    operands = [operand.index for operand in i.operands]
    called = [computation.name for computation in i.called_computations]
    return i.name, i.opcode, i.declared_shape, operands, called, i.literal, i.attributes
